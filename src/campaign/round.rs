//! One picked seed's turn: trim, deterministic steps, havoc, splice.

use std::time::Instant;

use super::orders::{Orders, PATIENCE};
use super::{Campaign, CampaignError};
use crate::config::options::Strategy;
use crate::engine::corpus::{Origin, SeedId, Step};
use crate::engine::coverage;
use crate::engine::executor::{Executor, ExitKind};
use crate::engine::feedback::Verdict;
use crate::engine::mutate::deterministic::Deterministic;
use crate::engine::mutate::{Candidate, is_text};
use crate::engine::stage::produce::{Lent, Materials, Producer};
use crate::engine::stage::trim::Trimmer;
use crate::mutators::{Hook, Made};

/// Timeouts in a row after which a seed's turn ends; AFL's number.
const MAX_TIMEOUTS: u32 = 250;
/// Runs of havoc for energy 100 (AFL++: 256 · score / 100 / 2.56), and at least.
const HAVOC_BASE: u64 = 100;
const HAVOC_MIN: u64 = 12;
/// Splice gets an eighth of havoc's runs, in a campaign that finds nothing new by other means.
const SPLICE_SHARE: u64 = 8;
/// Runs without a find after which larger blocks and deeper stacks are allowed. Runs, not cycles:
/// a cycle of a small corpus is over in a moment (fuzzbench 848).
const ESCALATION: [u64; 2] = [1 << 17, 1 << 19];

/// Under guidance a walk is taken in slices of so many runs: random changes have their chance in between.
const WALK_SLICE: u64 = 512;
/// Walks that may be under way; the seed of one more begins anew.
const MOST_WALKS: usize = 1024;

/// How a stage ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StageEnd {
    Finished,
    /// The turn is over: another seed is now worth more, or the user said so.
    TurnOver,
}

/// How a waypoint is fuzzed: the arms of [`Campaign::tactics`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Tactic {
    /// Deterministic steps, one after the other.
    Walk,
    /// Small random changes.
    Climb,
}

impl Tactic {
    pub(super) const COUNT: usize = 2;
}

/// The run of the seed itself, to which deterministic steps are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Behaviour(u64, u64);

impl Campaign {
    pub(super) fn round(&mut self, id: SeedId) -> Result<(), CampaignError> {
        let execs = self.executor.execs();
        self.statistics.current = Some(id);
        if self.judge.watches_domains() {
            self.log.fuzzing(id.0, self.corpus[id].favored);
        }
        if !self.mutators_want(id) {
            self.scheduler.picked(&mut self.corpus, id, 0);
            self.tick_if_due();
            return Ok(());
        }
        if self.wants_trim(id) {
            self.trim_seed(id)?;
        }
        let mut end = StageEnd::Finished;
        if self.wants_deterministic(id) {
            end = self.measured(Tactic::Walk, |campaign| campaign.deterministic(id))?;
        }
        if end == StageEnd::Finished && self.executor.mutators.has(Hook::Fuzz) {
            end = self.custom(id)?;
        }
        let built_in = !self.options.custom.only;
        if end == StageEnd::Finished && built_in {
            end = self.measured(Tactic::Climb, |campaign| campaign.havoc(id))?;
        }
        if end == StageEnd::Finished && built_in && self.statistics.cycles_without_finds > 0 {
            end = self.splice(id)?;
        }
        if end == StageEnd::Finished && self.executor.mutators.has_late() {
            self.late_stage(id)?;
        }
        let runs = self.executor.execs() - execs;
        self.scheduler.picked(&mut self.corpus, id, runs);
        self.tick_if_due();
        Ok(())
    }

    fn trim_seed(&mut self, id: SeedId) -> Result<(), CampaignError> {
        let start = Instant::now();
        let execs = self.executor.execs();
        let before = self.corpus[id].data.len();
        let mut input = self.corpus[id].data.to_vec();
        let mut finds: Vec<(Candidate, Verdict)> = Vec::new();
        self.statistics.stage = ("trim", 0, 0);
        let (stop, orders) = (&self.stop, &mut self.orders);
        let mut hurried = false;
        let trimmers = self.executor.mutators.with_hook(Hook::Trim);
        let mut trimmer = Trimmer {
            executor: &mut self.executor,
            judge: &mut self.judge,
            path_hash: self.corpus[id].path_hash,
            min_len: self.options.mutation.min_len,
            found: |candidate: &Candidate, verdict| finds.push((candidate.clone(), verdict)),
            go_on: || {
                let asked = orders.as_mut().is_some_and(Orders::wait);
                hurried |= asked && start.elapsed() > PATIENCE;
                !hurried && !stop.asked()
            },
        };
        let trimmed = match trimmers.is_empty() {
            true => trimmer.trim(&mut input),
            false => trimmers.into_iter().try_for_each(|by| trimmer.trim_by(by, &mut input)),
        };
        self.keep_from_trim(id, finds)?;
        if let Err(error) = trimmed {
            self.wait_for_room(error)?;
            hurried = true;
        }
        if *input != *self.corpus[id].data {
            let name = self.corpus[id].name.clone();
            self.write(|output| output.replace_seed(&name, &input))?;
        }
        self.statistics.trim_bytes.0 += before as u64;
        self.statistics.trim_bytes.1 += input.len().min(before) as u64;
        self.corpus[id].data = input.into();
        self.corpus[id].trimmed = !hurried;
        self.walks.remove(&id);
        self.statistics.trim += start.elapsed();
        let runs = self.executor.execs() - execs;
        self.statistics.trim_execs += runs;
        self.statistics.yield_of("trim").execs += runs;
        Ok(())
    }

    /// All of them, also if one cannot be kept.
    fn keep_from_trim(
        &mut self,
        id: SeedId,
        finds: Vec<(Candidate, Verdict)>,
    ) -> Result<(), CampaignError> {
        let mut all = Ok(());
        for (mut candidate, verdict) in finds {
            let step = Step::Stacked { op: "trim", count: 1 };
            candidate.origin = Origin { parent: id, other: None, step, by: 0 };
            all = all.and(self.keep(&candidate, verdict).map(|_| ()));
        }
        all
    }

    /// A waypoint is mostly a step to the next one: it is not worth the runs before it has stayed.
    fn wants_trim(&self, id: SeedId) -> bool {
        let seed = &self.corpus[id];
        let passing = seed.waypoint && !seed.new_edge && seed.fuzzed == 0 && self.guided();
        !seed.trimmed && !passing && !self.options.mutation.skip_trim
    }

    /// The deterministic stage is for favoured seeds, once. Under guidance it has to compete with
    /// random small changes: bits of a comparison are found by walking, an order is not.
    fn wants_deterministic(&mut self, id: SeedId) -> bool {
        let seed = &self.corpus[id];
        let skip = self.options.mutation.skip_deterministic || self.options.custom.only;
        if skip || !seed.favored || seed.det_done {
            return false;
        }
        !self.guided() || self.tactics.draw(&mut self.rng, |_| true) == Some(Tactic::Walk as usize)
    }

    /// Runs a stage and notes what it brought.
    fn measured(
        &mut self,
        tactic: Tactic,
        stage: impl FnOnce(&mut Self) -> Result<StageEnd, CampaignError>,
    ) -> Result<StageEnd, CampaignError> {
        let (execs, found) = (self.executor.execs(), self.statistics.found);
        let end = stage(self)?;
        let (runs, finds) = (self.executor.execs() - execs, self.statistics.found - found);
        self.tactics.note(tactic as usize, runs, finds);
        Ok(end)
    }

    fn deterministic(&mut self, id: SeedId) -> Result<StageEnd, CampaignError> {
        let mutation = &self.options.mutation;
        let seed = &self.corpus[id];
        let (skip_arith, max) = (mutation.skip_arith, mutation.max_len);
        let begin = || {
            Deterministic::new(seed.data.len(), &self.dictionary, skip_arith)
                .limit(max)
                .from_byte(seed.changed_at as usize)
        };
        let steps = self.walks.remove(&id).unwrap_or_else(begin);
        let slice = if self.guided() { WALK_SLICE } else { u64::MAX };
        let mut stage = Producer::deterministic(steps, slice);
        let end = self.run_stage(id, &mut stage)?;
        if let Some(steps) = stage.suspended() {
            self.suspend(id, steps);
        } else if end == StageEnd::Finished {
            self.corpus[id].det_done = true;
            let name = self.corpus[id].name.clone();
            if let Err(error) = self.output.mark_det_done(&name) {
                self.warn(error.to_string());
            }
        }
        Ok(end)
    }

    fn suspend(&mut self, id: SeedId, steps: Deterministic) {
        if self.walks.len() >= MOST_WALKS {
            let scheduler = &self.scheduler;
            self.walks.retain(|id, _| scheduler.is_owner(*id));
        }
        if self.walks.len() < MOST_WALKS {
            self.walks.insert(id, steps);
        }
    }

    fn havoc(&mut self, id: SeedId) -> Result<StageEnd, CampaignError> {
        match self.havoc_runs(id) {
            0 => Ok(StageEnd::TurnOver),
            runs => self.run_stage(id, &mut Producer::havoc(runs)),
        }
    }

    /// Foreign mutators get as many runs as havoc, each; twice as many if there is no havoc.
    fn custom(&mut self, id: SeedId) -> Result<StageEnd, CampaignError> {
        match self.havoc_runs(id) << u32::from(self.options.custom.only) {
            0 => Ok(StageEnd::TurnOver),
            runs => self.run_stage(id, &mut Producer::custom(runs)),
        }
    }

    /// Runs of a havoc stage; 0 if the schedule leaves the seed out.
    pub(super) fn havoc_runs(&self, id: SeedId) -> u64 {
        let energy = u64::from(self.scheduler.energy(&self.corpus, id));
        if energy == 0 {
            return 0;
        }
        let slow = match self.corpus[id].exec_us {
            0..=10_000 => 1,
            10_001..=20_000 => 2,
            20_001..=50_000 => 5,
            _ => 10,
        };
        (HAVOC_BASE * energy / 100 / slow).max(HAVOC_MIN)
    }

    fn splice(&mut self, id: SeedId) -> Result<StageEnd, CampaignError> {
        let energy = u64::from(self.scheduler.energy(&self.corpus, id));
        let runs = (HAVOC_BASE * energy / 100 / SPLICE_SHARE).max(HAVOC_MIN);
        let foreign = self.havoc_runs(id);
        self.run_stage(id, &mut Producer::splice(runs, foreign))
    }

    pub(super) fn run_stage(
        &mut self,
        id: SeedId,
        stage: &mut Producer,
    ) -> Result<StageEnd, CampaignError> {
        let result = self.run_candidates(id, stage);
        stage.end(&mut self.executor.mutators);
        result
    }

    fn run_candidates(
        &mut self,
        id: SeedId,
        stage: &mut Producer,
    ) -> Result<StageEnd, CampaignError> {
        let input = self.corpus[id].data.clone();
        let owner_at_start = self.guided() && self.scheduler.is_owner(id);
        let mut reference = None;
        let text = self.options.mutation.text.unwrap_or_else(|| is_text(&input));
        let mut timeouts = 0;
        self.donors.next_seed();
        loop {
            let name = stage.name();
            let made = self.fill((id, &input, text), stage);
            if made == 0 {
                return Ok(StageEnd::Finished);
            }
            let batch = std::mem::take(&mut self.batch);
            if stage.wants_report() && reference.is_none() {
                reference = Some(self.behaviour_of(&input)?);
            }
            let wanted = reference.filter(|_| stage.wants_report());
            let outcome = self.run_batch(&batch[..made], wanted);
            self.note_stage(name, stage, &batch[..made]);
            self.batch = batch;
            let outcome = outcome?;
            if stage.wants_report() {
                stage.report(outcome.changed);
            }
            self.look_outside()?;
            timeouts = if outcome.hang { timeouts + 1 } else { 0 };
            if outcome.found {
                stage.extend();
            }
            let superseded = outcome.found && owner_at_start && !self.scheduler.is_owner(id);
            if superseded || timeouts > MAX_TIMEOUTS || self.turn_over() {
                return Ok(StageEnd::TurnOver);
            }
        }
    }

    fn turn_over(&self) -> bool {
        self.stop.skip() || self.stop_reason().is_some()
    }

    /// Makes as many candidates as the executor takes at once; their buffers are reused.
    fn fill(&mut self, (id, input, text): (SeedId, &[u8], bool), stage: &mut Producer) -> usize {
        let single = stage.wants_report() || stage.is_described(&self.executor.mutators);
        let room = if single { 1 } else { self.executor.batch_size().min(self.execs_left()) };
        let climbing = self.guided() && self.scheduler.is_owner(id);
        let exploit = match self.options.mutation.strategy {
            Strategy::Explore => false,
            Strategy::Exploit => true,
            Strategy::Alternate(time) => self.statistics.without_finds() >= time,
        };
        let batch = &mut self.batch;
        batch.resize_with(room.max(batch.len()), Candidate::default);
        let donors = match stage.has_donors() {
            true => self.donors.lend(&mut self.rng, &self.corpus, id, room),
            false => Lent::default(),
        };
        let fruitless = self.executor.execs() - self.statistics.execs_at_find;
        let expand = self.options.mutation.expand_havoc;
        let due = |runs: &&u64| expand || fruitless >= **runs;
        let escalation = ESCALATION.iter().filter(due).count() as u32;
        let from = Materials {
            seed: id,
            input,
            text,
            dictionary: &self.dictionary,
            donors,
            min_len: self.options.mutation.min_len,
            max_len: self.options.mutation.max_len,
            long_blocks: 1 + escalation,
            stack_power: 4 + escalation,
            climbing,
            exploit,
        };
        let mut made = 0;
        while made < room {
            let with = (&mut self.executor.mutators, &mut self.rng);
            match stage.next(&from, with, &mut batch[made]) {
                Made::Input => made += 1,
                // A foreign mutator may be slow.
                Made::Nothing if self.stop.asked() => break,
                Made::Nothing => {}
                Made::Over => break,
            }
            if stage.wants_report() {
                break;
            }
        }
        made
    }

    fn behaviour_of(&mut self, input: &[u8]) -> Result<Behaviour, CampaignError> {
        let run = loop {
            match self.executor.observe(input) {
                Ok(run) => break run,
                Err(error) => self.wait_for_room(error)?,
            }
        };
        Ok(Behaviour(coverage::path_hash(run.edges), run.dsf.hash()))
    }

    fn note_stage(&mut self, name: &'static str, stage: &Producer, batch: &[Candidate]) {
        let (done, planned) = stage.progress();
        self.statistics.stage = (name, done, planned);
        for same in batch.chunk_by(|a, b| std::ptr::eq(a.origin.step.op(), b.origin.step.op())) {
            self.statistics.yield_of(same[0].origin.step.op()).execs += same.len() as u64;
        }
        self.tick_if_due();
    }

    /// Runs a batch and keeps what deserves it. With `reference` it also says whether the last
    /// run differed from the seed's.
    fn run_batch(
        &mut self,
        batch: &[Candidate],
        reference: Option<Behaviour>,
    ) -> Result<BatchOutcome, CampaignError> {
        let mut outcome = BatchOutcome::default();
        let mut next = 0;
        let every = reference.is_some() || self.scheduler.needs_path_counts();
        self.executor.show_every_run(every);
        while next < batch.len() {
            self.judge.teach(&mut self.executor);
            outcome.hang = false;
            let run = match self.executor.run(batch, &mut next) {
                Ok(Some(run)) => run,
                // It was cut short, because runs are slow or because of the user.
                Ok(None) => {
                    if next < batch.len() && !self.turn_over() {
                        continue;
                    }
                    break;
                }
                Err(error) => {
                    self.wait_for_room(error)?;
                    continue;
                }
            };
            let index = run.index;
            outcome.hang = run.exit == ExitKind::Hang;
            if let Some(reference) = reference {
                let now = Behaviour(coverage::path_hash(run.edges), run.dsf.hash());
                outcome.changed = now != reference;
            }
            if self.scheduler.needs_path_counts() {
                self.scheduler.count_path(coverage::path_hash(run.edges));
            }
            let verdict = self.judge.judge(&run);
            if verdict.finding.is_some() || verdict.is_interesting() {
                let delivered = self.as_delivered(&batch[index]);
                let candidate = delivered.as_ref().unwrap_or(&batch[index]);
                outcome.found |= self.keep(candidate, verdict)?.kept;
            }
        }
        Ok(outcome)
    }
}

/// What a batch brought.
#[derive(Clone, Copy, Debug, Default)]
struct BatchOutcome {
    found: bool,
    changed: bool,
    /// The last run timed out.
    hang: bool,
}
