//! The fuzzer as one object: everything that decides which input is run next and what a run was worth.
//!
//! A program that embeds it owns a [`Fuzzer`] and implements [`door::Door`]; the stages in
//! [`super::stage`] do the rest. `examples/in_process.rs` is a whole one.

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
use super::comparison::Blockers;
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

/// What a search may do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub mutation: MutationOptions,
    /// No inputs but those of foreign mutators (`AFL_CUSTOM_MUTATOR_ONLY`).
    pub foreign_only: bool,
    pub schedule: ScheduleOptions,
    /// Domains count, also if they do not guide.
    pub watch_domains: bool,
    /// Which runs make seeds.
    pub wanted: Wanted,
    pub admission: AdmissionOptions,
    pub rng_seed: u64,
}

/// One search: what runs inputs, what judges them, and the parts that decide, with foreign mutators `M`.
///
/// Nothing outside this module can run an input or judge a run: stages, and the program around them, ask
/// [`door::Door`] for it.
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
    /// A run that takes long may be what it looks for.
    wants_slow: bool,
    /// The first seed whose comparisons are solved.
    pub compares_from: SeedId,
    ahead: Ahead,
    /// What the seeds do not pass; inputs have the numbers of the seeds.
    pub(super) blockers: Blockers,
}

impl<M: ForeignMutators> Fuzzer<M> {
    /// A search without seeds. The plan's schedule is guided only if the target has domains.
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

    /// The control flow of the target: from now on it is known what is shut.
    pub fn follow(&mut self, functions: &[FunctionFlow]) {
        self.ahead = Ahead::new(Frontier::new(Flow::new(functions)));
    }

    /// What is shut, as it was at the last call of [`Fuzzer::frontier`].
    pub(super) fn known_frontier(&self) -> &Frontier {
        &self.ahead.frontier
    }

    /// What is shut, as it was lately.
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

    /// Sanitizer builds, to run what takes a path of its own.
    pub fn run_beside(&mut self, sidecars: Sidecars) {
        self.runner.settings_mut().paths = sidecars.paths();
        self.sidecars = Some(sidecars);
    }

    /// Comparisons are logged by another build of the target from now on (`-c`).
    pub fn log_by(&mut self, logger: Box<dyn Executor>) {
        self.runner.log_by(Some(logger));
    }

    /// The other build cannot be run any more. What it has logged says nothing of the target's own log.
    pub(super) fn lose_logger(&mut self) {
        self.runner.log_by(None);
        self.blockers = Blockers::default();
    }

    /// Comparisons are logged by another build than the target.
    #[must_use]
    pub(crate) fn has_logger(&self) -> bool {
        self.runner.logger().is_some()
    }

    /// See [`ComparisonLog::is_partial`](super::comparison::ComparisonLog::is_partial).
    #[must_use]
    pub fn has_partial_log(&self) -> bool {
        self.runner.logger().is_some_and(TargetInfo::has_partial_log)
    }

    /// Runs can be asked for their comparisons.
    #[must_use]
    pub fn logs_comparisons(&self) -> bool {
        self.has_logger() || self.target().logs_comparisons()
    }

    /// The places of comparisons in what logs them, see [`TargetInfo::comparison_sites`].
    #[must_use]
    pub fn comparison_sites(&self) -> Vec<Site> {
        self.runner.logger().unwrap_or(self.target()).comparison_sites()
    }

    /// None without sanitizer builds.
    #[must_use]
    pub fn sidecars(&self) -> Option<&Sidecars> {
        self.sidecars.as_ref()
    }

    /// Domains guide the search (`-p`).
    #[must_use]
    pub fn guided(&self) -> bool {
        self.guides
    }

    /// What is known of the target.
    #[must_use]
    pub fn target(&self) -> &dyn TargetInfo {
        self.runner.info()
    }

    /// What is known of earlier runs.
    #[must_use]
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Takes up what an earlier process of this search knew.
    pub fn recall(&mut self, lessons: &Lessons) {
        self.judge.recall(lessons);
    }

    /// What the seeds do not pass, by the target's own logs: those of another build say nothing once that has changed.
    #[must_use]
    pub fn own_blockers(&self) -> Option<&Blockers> {
        (!self.has_logger()).then_some(&self.blockers)
    }

    /// Takes up what the target's own logs have shown to an earlier process.
    pub fn recall_blockers(&mut self, blockers: Blockers) {
        if !self.has_logger() {
            self.blockers = blockers;
        }
    }

    /// What others know is not new, see [`Judge::know`].
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

    /// Runs are given up once the request is there, see [`Executor::stop_on`].
    ///
    /// [`Executor::stop_on`]: super::executor::Executor::stop_on
    pub fn stop_on(&mut self, request: Option<StopRequest>) {
        self.runner.stop_on(request);
    }

    /// Ends the process that takes many inputs, if there is one.
    pub fn end_process(&mut self) {
        self.runner.executor_mut().end_process();
    }

    /// The control flow of the target is known.
    #[must_use]
    pub fn knows_flow(&self) -> bool {
        self.ahead.frontier.is_known()
    }

    /// Where no seed goes on, as far as that was known at the last call of [`Fuzzer::frontier`], with the cheapest seed that
    /// comes there, or the one that came closest. At most `most` places.
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

    /// Functions of the target that no seed has entered, likewise; None if they are not known.
    #[must_use]
    pub fn never_entered(&self) -> Option<NeverEntered> {
        let frontier = &self.ahead.frontier;
        frontier.is_known().then(|| frontier.never_entered())
    }

    /// The last inputs of the target's process, see [`Runner::take_record`].
    pub fn take_record(&mut self) -> Vec<Vec<u8>> {
        self.runner.take_record()
    }

    /// What the target got in the run shown last, if that is not what was given.
    #[must_use]
    pub fn delivered(&self) -> Option<&[u8]> {
        self.runner.delivered()
    }

    /// See [`Executor::take_account`].
    pub fn take_account(&mut self, input: &[u8]) -> Option<String> {
        let input = self.runner.delivered().unwrap_or(input).to_vec();
        self.runner.executor_mut().take_account(&input)
    }

    /// What the user should know of the target and that was not reported yet, a line each.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.runner.executor_mut().take_notes()
    }

    /// Why the target was restarted since the last call, if it was.
    pub fn take_restart(&mut self) -> Option<String> {
        self.runner.executor_mut().take_restart()
    }

    /// Frees buffers of batches that are far larger than mutants of a seed of this length.
    pub(crate) fn release_buffers(&mut self, len: usize) {
        self.runner.release_buffers(len);
    }

    /// Largest useful batch now.
    pub(super) fn batch_size(&self) -> usize {
        self.runner.batch_size(&self.mutators)
    }

    /// Mutants of the seed come next: those that compute for much longer than others are cut.
    pub(super) fn limit_mutants_of(&mut self, id: SeedId) {
        self.runner.settings_mut().soft_limit = self.soft_limit(id);
    }

    /// The next inputs begin with these messages, see [`RunSettings::beginning`](super::executor::RunSettings::beginning).
    pub(super) fn begin_with(&mut self, beginning: Option<Beginning>) {
        self.runner.settings_mut().beginning = beginning;
    }

    /// Runs of inputs, for work that is done where the door is closed.
    fn runs(&mut self) -> (Runs<'_>, &mut Judge) {
        (Runs { runner: &mut self.runner, mutators: &mut self.mutators }, &mut self.judge)
    }

    /// What a stage may spend on the seed; None if the schedule leaves the seed out.
    #[must_use]
    pub fn budget(&self, id: SeedId) -> Option<Budget> {
        self.scheduler.budget(&self.corpus, id, self.counts_time())
    }

    /// Processor time after which a mutant of the seed is cut. None while slow runs may be what the search
    /// looks for, and where time must not count.
    #[must_use]
    pub fn soft_limit(&self, id: SeedId) -> Option<Duration> {
        (self.counts_time() && !self.wants_slow)
            .then(|| self.scheduler.soft_limit(&self.corpus, id))
    }

    /// Efforts are compared by the target's time, not by runs: nobody asked for a reproducible search, and the
    /// executor measures it.
    pub(super) fn counts_time(&self) -> bool {
        self.scheduler.uses_measured_times() && !self.target().spent().whole().is_zero()
    }

    /// Whether there are sanitizer builds, and they may run an input now. Else a new path stays new for later.
    pub(super) fn may_inspect(&self) -> bool {
        let account = &self.ledger[Purpose::Sanitizers];
        self.sidecars.is_some() && account.may(self.effort(), self.counts_time(), Effort::ZERO)
    }

    /// What was done so far, by the target and by the build that logs.
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

    /// What was done since then, in runs of the length of an average run of the whole search.
    pub(super) fn cost_since(&self, before: Effort) -> f64 {
        let (now, done) = (self.effort(), self.effort().since(before));
        if !self.counts_time() {
            return done.runs as f64;
        }
        done.time.as_secs_f64() / now.time.as_secs_f64() * now.runs as f64
    }

    /// The seed whose turn is next; None if none can be used.
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
    /// Runs of this process when a seed was found or imported last.
    pub execs_at_find: u64,
    pub cycles_without_finds: u64,
    found_this_cycle: bool,
    /// The stage at work: its name, steps done and planned.
    pub stage: (&'static str, u64, u64),
    /// In the order in which they first ran.
    pub yields: Vec<StageYield>,
    pub trim_execs: u64,
    /// Length of the trimmed seeds before and after.
    pub trim_bytes: (u64, u64),
    /// The slowest run of all calibrations.
    pub slowest: Duration,
}

/// What one stage brought.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct StageYield {
    pub name: Cow<'static, str>,
    pub finds: u64,
    pub execs: u64,
}

impl Progress {
    /// A stage has found a seed, after this number of runs.
    pub fn seed_found(&mut self, stage: &'static str, execs: u64) {
        self.corpus_grew(execs);
        self.found += 1;
        self.yield_of(stage).finds += 1;
    }

    /// The corpus has one more seed, wherever it came from.
    pub fn corpus_grew(&mut self, execs: u64) {
        self.execs_at_find = execs;
        self.found_this_cycle = true;
    }

    /// Every seed had its turn.
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

    /// Is there a soft limit for a target with these domains?
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
        // Those of FuzzFactory have no names.
        assert!(!cuts(&[""], true));
    }
}
