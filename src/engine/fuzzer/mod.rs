//! The fuzzer as one object: everything that chooses the next input and judges its run.
//!
//! An embedding program owns a [`Fuzzer`] and implements [`door::Door`]; the stages in [`super::stage`] do the rest.
//! `examples/in_process.rs` is a complete example.

pub mod admit;
mod ahead;
pub mod door;
mod sidecars;

pub use admit::{Admission, AdmissionOptions};
pub use sidecars::Sidecars;

use std::borrow::Cow;
use std::time::Duration;

use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use self::ahead::Ahead;
use super::corpus::{Corpus, SeedId};
use super::coverage::flow::{Flow, FunctionFlow};
use super::coverage::frontier::{Frontier, NeverEntered};
use super::domain::{Domain, Site};
use super::executor::{Executor, ExitKind, StopRequest, TargetInfo};
use super::feedback::{Judge, Known, Lessons, Stuck, stuck};
use super::messages::Beginning;
use super::mutate::Rng;
use super::mutate::dictionary::Dictionary;
use super::mutate::foreign::ForeignMutators;
use super::runner::{Runner, Runs};
use super::schedule::ledger::{Effort, Ledger, Purpose};
use super::schedule::{Budget, ScheduleOptions, Scheduler};
use crate::options::{MutationOptions, Wanted};
use ffuzz_comparisons::blockers::Blockers;

/// Options of a search.
#[derive(Clone, Debug)]
pub struct Plan {
    pub mutation: MutationOptions,
    /// Only foreign mutators make inputs (`AFL_CUSTOM_MUTATOR_ONLY`).
    pub foreign_only: bool,
    pub schedule: ScheduleOptions,
    /// Gains of domains count even if domains do not guide the search.
    pub watch_domains: bool,
    /// Which runs can become seeds.
    pub wanted: Wanted,
    pub admission: AdmissionOptions,
    pub rng_seed: u64,
}

/// One search: executor, judge, corpus, scheduler and the foreign mutators `M`.
///
/// Only this module can run inputs and judge runs: stages, and the program around them, use [`door::Door`].
pub struct Fuzzer<M> {
    runner: Runner,
    judge: Judge,
    pub mutators: M,
    pub corpus: Corpus,
    pub scheduler: Scheduler,
    pub dictionary: Dictionary,
    pub rng: Rng,
    pub progress: Progress,
    pub mutation: MutationOptions,
    pub foreign_only: bool,
    pub admission: Admission,
    pub ledger: Ledger,
    sidecars: Option<Sidecars>,
    guides: bool,
    /// True if slow runs may be what the search looks for.
    wants_slow: bool,
    /// The first seed whose comparisons are solved.
    pub compares_from: SeedId,
    ahead: Ahead,
    /// Comparisons that no seed passes; input numbers are seed numbers.
    pub(super) blockers: Blockers,
}

impl<M: ForeignMutators> Fuzzer<M> {
    /// Creates a search without seeds. The schedule is guided only if the target has domains.
    #[must_use]
    pub fn new(mut runner: Runner, mutators: M, dictionary: Dictionary, plan: Plan) -> Self {
        let Plan { mutation, foreign_only, mut schedule, .. } = plan;
        let Plan { watch_domains, wanted, admission, rng_seed, .. } = plan;
        let target = runner.info();
        let judge = Judge::new(target.map_size(), target.domains(), watch_domains).wants(wanted);
        schedule.guided &= judge.watches_domains();
        let guides = schedule.guided;
        let guides_slowly = guides && !target.domains().iter().all(Domain::favors_quick_runs);
        let wants_slow = guides_slowly || judge.accepts(ExitKind::Hang);
        let scheduler = Scheduler::new(schedule, target.map_size(), target.domains());
        runner.settings_mut().watch_domains |= judge.watches_domains();
        let ledger = Ledger::new(mutation.length_share);
        Self {
            runner,
            judge,
            ledger,
            mutators,
            corpus: Corpus::default(),
            scheduler,
            dictionary,
            rng: Rng::seed_from_u64(rng_seed),
            progress: Progress { stage: ("init", 0, 0), ..Progress::default() },
            mutation,
            foreign_only,
            admission: Admission::new(admission),
            sidecars: None,
            guides,
            wants_slow,
            compares_from: SeedId(0),
            ahead: Ahead::default(),
            blockers: Blockers::default(),
        }
    }

    /// Sets the control flow of the target, from which the frontier is computed.
    pub fn follow(&mut self, functions: &[FunctionFlow]) {
        self.ahead = Ahead::new(Frontier::new(Flow::new(functions)));
    }

    /// The frontier as of the last call of [`Fuzzer::frontier`].
    pub(super) fn known_frontier(&self) -> &Frontier {
        &self.ahead.frontier
    }

    /// The frontier, updated first if an update is due.
    pub fn frontier(&mut self) -> &Frontier {
        let (now, counts_time) = (self.effort(), self.counts_time());
        let seeds = self.corpus.len();
        if self.ahead.update(self.judge.virgin(), seeds, now, counts_time) {
            let best_of = |counter| self.scheduler.best_of(counter);
            let seeds = self.ahead.of_seeds(self.corpus.next_id(), best_of);
            self.scheduler.note_ahead(seeds);
        }
        &self.ahead.frontier
    }

    /// Sets the sanitizer builds, which run inputs with a new path.
    pub fn run_beside(&mut self, sidecars: Sidecars) {
        self.runner.settings_mut().paths = sidecars.paths();
        self.sidecars = Some(sidecars);
    }

    /// Logs comparisons with another build of the target from now on (`-c`).
    pub fn log_by(&mut self, logger: Box<dyn Executor>) {
        self.runner.log_by(Some(logger));
    }

    /// Removes the build that logs, which can no longer run. Its logs do not apply to the target, so the blockers are
    /// cleared.
    pub(super) fn lose_logger(&mut self) {
        self.runner.log_by(None);
        self.blockers = Blockers::default();
    }

    /// True if another build than the target logs comparisons.
    #[must_use]
    pub(crate) fn has_logger(&self) -> bool {
        self.runner.logger().is_some()
    }

    /// See [`ComparisonLog::is_partial`](ffuzz_comparisons::log::ComparisonLog::is_partial).
    #[must_use]
    pub fn has_partial_log(&self) -> bool {
        self.runner.logger().is_some_and(TargetInfo::has_partial_log)
    }

    /// True if runs can log their comparisons.
    #[must_use]
    pub fn logs_comparisons(&self) -> bool {
        self.has_logger() || self.target().logs_comparisons()
    }

    /// Comparison sites of the build that logs, see [`TargetInfo::comparison_sites`].
    #[must_use]
    pub fn comparison_sites(&self) -> Vec<Site> {
        self.runner.logger().unwrap_or(self.target()).comparison_sites()
    }

    /// The sanitizer builds; None if there are none.
    #[must_use]
    pub fn sidecars(&self) -> Option<&Sidecars> {
        self.sidecars.as_ref()
    }

    /// True if domains guide the search (`-p`).
    #[must_use]
    pub fn guided(&self) -> bool {
        self.guides
    }

    /// Properties of the target.
    #[must_use]
    pub fn target(&self) -> &dyn TargetInfo {
        self.runner.info()
    }

    /// The judge, which has the state of earlier runs.
    #[must_use]
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Restores the judge's state from an earlier process of this search.
    pub fn recall(&mut self, lessons: &Lessons) {
        self.judge.recall(lessons);
    }

    /// Comparisons that no seed passes, by the target's own logs. None if another build logs: that build may change.
    #[must_use]
    pub fn own_blockers(&self) -> Option<&Blockers> {
        (!self.has_logger()).then_some(&self.blockers)
    }

    /// Restores the blockers of an earlier process. Ignored if another build logs.
    pub fn recall_blockers(&mut self, blockers: Blockers) {
        if !self.has_logger() {
            self.blockers = blockers;
        }
    }

    /// Merges the knowledge of others, which is then no longer new, see [`Judge::know`].
    pub fn know(&mut self, known: &Known) {
        self.judge.know(known);
    }

    /// Wall time after which a run is a hang.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.runner.settings().timeout
    }

    pub fn set_timeout(&mut self, timeout: Duration) {
        self.runner.settings_mut().timeout = timeout;
    }

    /// See [`RunSettings::allow_for_load`](super::executor::RunSettings::allow_for_load).
    pub fn allow_for_load(&mut self, allow: bool) {
        self.runner.settings_mut().allow_for_load = allow;
    }

    /// Sets the request on which runs are aborted, see [`Executor::stop_on`].
    ///
    /// [`Executor::stop_on`]: super::executor::Executor::stop_on
    pub fn stop_on(&mut self, request: Option<StopRequest>) {
        self.runner.stop_on(request);
    }

    /// Ends the persistent process of the target, if there is one.
    pub fn end_process(&mut self) {
        self.runner.executor_mut().end_process();
    }

    /// True if the control flow of the target is known.
    #[must_use]
    pub fn knows_flow(&self) -> bool {
        self.ahead.frontier.is_known()
    }

    /// Lists at most `most` places where the corpus is stuck, as of the last call of [`Fuzzer::frontier`]. Each comes
    /// with the seed closest to passing its comparison, or the cheapest seed that reaches it.
    #[must_use]
    pub fn stuck(&self, most: usize) -> Vec<(Stuck, Option<SeedId>)> {
        let seed = |stuck: &Stuck| match (&stuck.comparison, stuck.counter) {
            (Some(comparison), _) => u32::try_from(comparison.closest).ok().map(SeedId),
            (None, counter) => self.scheduler.best_of(counter?),
        };
        let with_seed = |stuck: Stuck| {
            let seed = seed(&stuck).filter(|id| *id < self.corpus.next_id());
            (stuck, seed)
        };
        stuck(&self.ahead.frontier, &self.blockers, most).into_iter().map(with_seed).collect()
    }

    /// Functions of the target that no seed has entered, as of the last call of [`Fuzzer::frontier`]; None if the
    /// control flow is unknown.
    #[must_use]
    pub fn never_entered(&self) -> Option<NeverEntered> {
        let frontier = &self.ahead.frontier;
        frontier.is_known().then(|| frontier.never_entered())
    }

    /// The last inputs of the target's process, see [`Runner::take_record`].
    pub fn take_record(&mut self) -> Vec<Vec<u8>> {
        self.runner.take_record()
    }

    /// The bytes that the target received in the last run shown, if they differ from the input.
    #[must_use]
    pub fn delivered(&self) -> Option<&[u8]> {
        self.runner.delivered()
    }

    /// See [`Executor::take_account`].
    pub fn take_account(&mut self, input: &[u8]) -> Option<String> {
        let input = self.runner.delivered().unwrap_or(input).to_vec();
        self.runner.executor_mut().take_account(&input)
    }

    /// Notes about the target that were not reported yet, one line each.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.runner.executor_mut().take_notes()
    }

    /// Why the target was restarted since the last call, if it was.
    pub fn take_restart(&mut self) -> Option<String> {
        self.runner.executor_mut().take_restart()
    }

    /// Frees batch buffers that are far larger than mutants of a seed of length `len`.
    pub(crate) fn release_buffers(&mut self, len: usize) {
        self.runner.release_buffers(len);
    }

    /// The largest useful batch size at present.
    pub(super) fn batch_size(&self) -> usize {
        self.runner.batch_size(&self.mutators)
    }

    /// Sets the soft limit for mutants of this seed: runs that compute for much longer are cut.
    pub(super) fn limit_mutants_of(&mut self, id: SeedId) {
        self.runner.settings_mut().soft_limit = self.soft_limit(id);
    }

    /// Sets the messages with which the next inputs begin, see
    /// [`RunSettings::beginning`](super::executor::RunSettings::beginning).
    pub(super) fn begin_with(&mut self, beginning: Option<Beginning>) {
        self.runner.settings_mut().beginning = beginning;
    }

    /// The runner and the judge, for work inside the door such as calibration.
    fn runs(&mut self) -> (Runs<'_>, &mut Judge) {
        (Runs { runner: &mut self.runner, mutators: &mut self.mutators }, &mut self.judge)
    }

    /// Budget of a stage for the seed; None if the schedule skips the seed.
    #[must_use]
    pub fn budget(&self, id: SeedId) -> Option<Budget> {
        self.scheduler.budget(&self.corpus, id, self.counts_time())
    }

    /// Processor time after which a mutant of the seed is cut. None if slow runs may be what the search looks for, or
    /// if efforts are not compared by time.
    #[must_use]
    pub fn soft_limit(&self, id: SeedId) -> Option<Duration> {
        (self.counts_time() && !self.wants_slow)
            .then(|| self.scheduler.soft_limit(&self.corpus, id))
    }

    /// True if efforts are compared by the target's time, false if by runs: the search has to be reproducible, or the
    /// executor does not measure time.
    pub(super) fn counts_time(&self) -> bool {
        self.scheduler.uses_measured_times() && !self.target().spent().whole().is_zero()
    }

    /// Whether the sanitizer builds may run an input now. If not, a new path remains new.
    pub(super) fn may_inspect(&self) -> bool {
        let account = &self.ledger[Purpose::Sanitizers];
        self.sidecars.is_some() && account.may(self.effort(), self.counts_time(), Effort::ZERO)
    }

    /// Runs and time so far, of the target and of the build that logs, without the time of second runs.
    pub fn effort(&self) -> Effort {
        let both = [Some(self.target()), self.runner.logger()];
        let mut effort = Effort { runs: 0, time: Duration::ZERO };
        for info in both.into_iter().flatten() {
            effort.runs += info.execs();
            effort.time += info.spent().whole();
        }
        let waited = self.ledger[Purpose::SecondRuns].used(Effort::ZERO);
        effort.time = effort.time.saturating_sub(waited.time);
        effort
    }

    /// Cost since `before`, in average runs of the whole search.
    pub(super) fn cost_since(&self, before: Effort) -> f64 {
        let (now, done) = (self.effort(), self.effort().since(before));
        if !self.counts_time() {
            return done.runs as f64;
        }
        done.time.as_secs_f64() / now.time.as_secs_f64() * now.runs as f64
    }

    /// Picks the seed of the next turn; None if no seed can be used.
    pub fn pick(&mut self) -> Option<SeedId> {
        self.frontier();
        self.scheduler.cull(&mut self.corpus);
        self.scheduler.pick(&self.corpus, &mut self.rng)
    }
}

/// Counters of a search.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Seeds that the stages have found.
    pub found: u64,
    /// Runs of this process when the last seed was found or imported.
    pub execs_at_find: u64,
    pub cycles_without_finds: u64,
    found_this_cycle: bool,
    /// The current stage: name, steps done, steps planned.
    pub stage: (&'static str, u64, u64),
    /// Yields of the stages, in the order of their first run.
    pub yields: Vec<StageYield>,
    pub trim_execs: u64,
    /// Total length of the trimmed seeds, before and after.
    pub trim_bytes: (u64, u64),
    /// The slowest run of all calibrations.
    pub slowest: Duration,
}

/// Finds and runs of one stage.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct StageYield {
    pub name: Cow<'static, str>,
    pub finds: u64,
    pub execs: u64,
}

impl Progress {
    /// Records that `stage` has found a seed, after `execs` runs.
    pub fn seed_found(&mut self, stage: &'static str, execs: u64) {
        self.corpus_grew(execs);
        self.found += 1;
        self.yield_of(stage).finds += 1;
    }

    /// Records a new seed of any source, after `execs` runs.
    pub fn corpus_grew(&mut self, execs: u64) {
        self.execs_at_find = execs;
        self.found_this_cycle = true;
    }

    /// Records the end of a cycle: every seed had its turn.
    pub fn cycle_finished(&mut self) {
        let found = std::mem::take(&mut self.found_this_cycle);
        self.cycles_without_finds = if found { 0 } else { self.cycles_without_finds + 1 };
    }

    pub fn yield_of(&mut self, name: &'static str) -> &mut StageYield {
        let position = self.yields.iter().position(|stage| stage.name == name);
        let position = position.unwrap_or_else(|| {
            self.yields.push(StageYield { name: name.into(), ..StageYield::default() });
            self.yields.len() - 1
        });
        &mut self.yields[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Seed;
    use crate::domain::Reducer;
    use crate::fake::FakeExecutor;
    use crate::mutate::foreign::NoMutators;

    /// Whether mutants have a soft limit for a target with these domains.
    fn cuts(names: &[&str], guided: bool) -> bool {
        let domain = |(start, name): (u32, &&str)| {
            let name = (*name).to_owned();
            Domain { name, start, size: 1, reducer: Reducer::Max, initial: 0 }
        };
        let domains = (0..).zip(names).map(domain).collect();
        let executor = FakeExecutor::new(64, domains, |_, edges, _| {
            edges[1] = 1;
            ExitKind::Ok
        });
        let schedule = ScheduleOptions { guided, ..ScheduleOptions::default() };
        let plan = Plan {
            mutation: MutationOptions::default(),
            foreign_only: false,
            schedule,
            watch_domains: guided,
            wanted: Wanted::Good,
            admission: AdmissionOptions::default(),
            rng_seed: 1,
        };
        let runner = Runner::new(Box::new(executor));
        let mut fuzzer = Fuzzer::new(runner, NoMutators, Dictionary::default(), plan);
        fuzzer.runner.observe(&mut NoMutators, b"a").expect("a fake");
        let id = fuzzer.corpus.next_id();
        fuzzer.corpus.add(Seed { id, data: b"a".as_slice().into(), ..Seed::default() });
        fuzzer.soft_limit(id).is_some()
    }

    #[test]
    fn slow_mutants_are_cut_unless_a_domain_may_gain_by_them() {
        assert!(cuts(&[], false) && cuts(&[], true));
        assert!(cuts(&["slow"], false) && cuts(&["cmp"], true) && cuts(&["cmp", "valid"], true));
        assert!(!cuts(&["slow"], true) && !cuts(&["cmp", "mem"], true));
        // Domains of FuzzFactory have no names.
        assert!(!cuts(&[""], true));
    }
}
