//! The one door: every run of a search is made here and judged here.
//!
//! ```text
//! run a batch → judge → keep at once → count → stop? tick? look outside?
//! ```
//!
//! A stage makes candidates and hands them to [`Door::run_batch`] or [`Door::try_out`], asks for single runs by
//! [`Door::run`], and asks [`Door::between_batches`] whether it goes on. So limits, signals, orders, imports and the
//! screen reach every stage alike, and what a run shows is kept before the next run. Nothing else can run or judge:
//! the fuzzer shows its executor and its judge to nobody.

use std::time::Duration;

use miette::Diagnostic;

use super::Fuzzer;
use super::admit::{self, Crash, NewSeed, Stored, StoredSeed, admit};
use super::sidecars::Inspection;
use crate::calibrate::{Calibration, calibrate};
use crate::comparison::ComparisonLog;
use crate::corpus::SeedId;
use crate::coverage::path_hash;
use crate::domain::KeyGain;
use crate::executor::{ExitKind, Observation, RunError};
use crate::feedback::{Finding, Judge, Verdict};
use crate::mutate::Candidate;
use crate::mutate::foreign::ForeignMutators;
use crate::options::Strategy;
use crate::schedule::ledger::Purpose;

/// What a run did: its path and, if domains are watched, a hash of all their values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Behaviour {
    pub path: u64,
    pub values: u64,
}

impl Behaviour {
    fn of(judge: &Judge, run: &Observation<'_>) -> Self {
        let values = if judge.watches_domains() { run.dsf.hash() } else { 0 };
        Self { path: path_hash(run.edges), values }
    }
}

/// A run that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub input: &'a [u8],
    pub judging: Judging<'a>,
    /// Wall time that it may take; None: as every run.
    pub timeout: Option<Duration>,
    /// The input is what the target got in an earlier run: no hook of a mutator changes it.
    pub is_delivered: bool,
    /// Edges of which is asked whether the run hits them, see [`Seen::hit`].
    pub edges: &'a [u32],
}

impl<'a> Run<'a> {
    /// An ordinary run, which is not judged.
    #[must_use]
    pub fn of(input: &'a [u8]) -> Self {
        Self { input, judging: Judging::Not, timeout: None, is_delivered: false, edges: &[] }
    }

    /// An ordinary run, which is judged.
    #[must_use]
    pub fn judged(input: &'a [u8]) -> Self {
        Self { judging: Judging::Always, ..Self::of(input) }
    }
}

/// Whether what a run shows is known from then on.
#[derive(Clone, Copy, Debug)]
pub enum Judging<'a> {
    Not,
    Always,
    /// Only if it ends in a way in which no seed does: a crash or hang of an earlier process. What ends well by now
    /// teaches nothing.
    IfBad,
    /// Unless it is too slow for a seed: what it shows has to stay new for others then. It may take as long as every
    /// run, and up to `room` if it would improve a domain.
    InTime {
        room: Option<Duration>,
    },
    /// Always, as the second run of what was promising: gains that it shows as well are confirmed.
    Again(&'a [KeyGain]),
}

/// What a single run has shown.
#[derive(Clone, Debug)]
pub struct Seen {
    pub exit: ExitKind,
    pub duration: Duration,
    pub behaviour: Behaviour,
    /// None if the run was not judged.
    pub verdict: Option<Verdict>,
    /// Gains that it has confirmed, see [`Judging::Again`].
    pub confirmed: Vec<KeyGain>,
    /// The edges of [`Run::edges`] that it hits.
    pub hit: Vec<u32>,
}

impl Seen {
    /// `usual`: wall time that every run may take.
    fn of(
        judge: &mut Judge,
        run: &Observation<'_>,
        (judging, edges): (Judging<'_>, &[u32]),
        usual: Duration,
    ) -> Self {
        let is_hit = |edge: &&u32| run.edges.get(**edge as usize).is_some_and(|count| *count > 0);
        let hit = edges.iter().filter(is_hit).copied().collect();
        let behaviour = Behaviour::of(judge, run);
        let confirmed = match judging {
            Judging::Again(gains) => judge.confirm(gains, run),
            _ => Vec::new(),
        };
        let is_judged = match judging {
            Judging::Not => false,
            Judging::Always | Judging::Again(_) => true,
            Judging::IfBad => !judge.accepts(run.exit),
            Judging::InTime { room } => {
                !judge.accepts(run.exit)
                    || run.duration <= usual
                    || (room.is_some_and(|room| run.duration <= room) && judge.would_gain(run))
            }
        };
        let verdict = is_judged.then(|| judge.judge(run));
        Self { exit: run.exit, duration: run.duration, behaviour, verdict, confirmed, hit }
    }
}

/// What a batch brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchOutcome {
    /// A seed was kept.
    pub found: bool,
    /// The last run differed from the reference.
    pub changed: bool,
    /// The last run timed out, or was cut.
    pub hang: bool,
}

/// Parts of a search whose time is of interest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    Calibration,
    Comparisons,
    Trimming,
}

/// Why a search cannot go on.
pub trait DoorError: From<RunError> {
    /// A run was given up because the search is to end: nothing has failed.
    fn is_interruption(&self) -> bool;
}

impl DoorError for RunError {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted)
    }
}

/// The surroundings of a [`Fuzzer`]: what keeps finds, what ends a search, and what comes in between. The
/// methods without a body are all that an embedding program has to write.
pub trait Door: Sized + 'static {
    type Mutators: ForeignMutators;
    type Error: DoorError;

    fn fuzzer(&self) -> &Fuzzer<Self::Mutators>;

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<Self::Mutators>;

    /// A crash, new or not. Returns where it is stored, if it is.
    fn crashed(
        &mut self,
        candidate: &Candidate,
        crash: Crash,
    ) -> Result<Option<Stored>, Self::Error>;

    /// A candidate is to be a seed: stores it.
    fn store_seed(&mut self, new: &NewSeed<'_>) -> Result<StoredSeed, Self::Error> {
        Ok(StoredSeed { data: new.candidate.bytes.clone(), ..StoredSeed::default() })
    }

    /// A seed is in the corpus, also one that the search began with. It has brought these gains, and owns them unless
    /// it is disabled.
    fn seed_added(&mut self, _id: SeedId, _gains: &[KeyGain]) {}

    /// The last seed was found by this search, or taken from another one. No gains unless it is a waypoint.
    fn seed_found(&mut self, _new: &NewSeed<'_>, _gains: &[KeyGain], _stored: &Stored) {}

    /// A run took longer than the timeout.
    fn timed_out(&mut self) {}

    /// A run was cut at the soft limit.
    fn was_cut(&mut self) {}

    /// Hangs are still stored.
    fn takes_hangs(&self) -> bool {
        true
    }

    /// A hang of a new kind. Returns where it is stored, if it is.
    fn hung(&mut self, _candidate: &Candidate) -> Result<Option<Stored>, Self::Error> {
        Ok(None)
    }

    /// A run took the target's fork server along; `unique`: the first one. Returns where it is stored, if it is.
    fn lost(
        &mut self,
        _candidate: &Candidate,
        _unique: bool,
    ) -> Result<Option<Stored>, Self::Error> {
        Ok(None)
    }

    /// [`AdmissionOptions::records`]: the candidate improves these keys.
    ///
    /// [`AdmissionOptions::records`]: super::admit::AdmissionOptions::records
    fn record(&mut self, _candidate: &Candidate, _gains: &[KeyGain]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Time that the search has taken so far.
    fn elapsed(&self) -> Duration {
        self.fuzzer().target().spent().whole()
    }

    /// Processor time of the fuzzer itself. Zero for a search that does not measure it.
    fn own_time(&self) -> Duration {
        Duration::ZERO
    }

    /// A sanitizer build cannot be run any more, and was left out.
    fn sanitizer_failed(&mut self, _why: &dyn Diagnostic) {}

    /// The build that logs comparisons cannot be run any more, and was left out.
    fn logger_failed(&mut self, _why: &dyn Diagnostic) {}

    /// Between two batches: the screen, and what comes from outside.
    fn look_outside(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The stage at work is to end.
    fn is_over(&self) -> bool {
        false
    }

    /// Runs that are left until a limit; at least 1.
    fn runs_left(&self) -> usize {
        usize::MAX
    }

    /// After a run that failed so. `Ok`: it is tried again.
    fn wait_for_room(&mut self, error: RunError) -> Result<(), Self::Error> {
        Err(error.into())
    }

    /// Havoc prefers what breaks code to what leads to new code.
    fn exploits(&self) -> bool {
        self.fuzzer().mutation.strategy == Strategy::Exploit
    }

    /// Does `work`, whose time belongs to `part`.
    fn timed<T>(&mut self, _part: Part, work: impl FnOnce(&mut Self) -> T) -> T {
        work(self)
    }

    /// A seed's bytes are these from now on; the corpus has the former ones still.
    fn seed_changed(&mut self, _id: SeedId, _bytes: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The deterministic stage of a seed is done for good.
    fn deterministic_done(&mut self, _id: SeedId) {}

    /// What comes between two batches. True if the stage at work is to end.
    fn between_batches(&mut self) -> Result<bool, Self::Error> {
        self.look_around()?;
        Ok(self.is_over())
    }

    /// What comes from outside, and runs that were put off.
    fn look_around(&mut self) -> Result<(), Self::Error> {
        self.look_outside()?;
        admit::look_at_doubtful(self)
    }

    /// Runs a batch and keeps what deserves it. With `reference` it also says whether the last
    /// run differed from that.
    fn run_batch(
        &mut self,
        batch: &[Candidate],
        reference: Option<Behaviour>,
    ) -> Result<BatchOutcome, Self::Error> {
        let mut outcome = BatchOutcome::default();
        let mut next = 0;
        let fuzzer = self.fuzzer_mut();
        let every = reference.is_some() || fuzzer.scheduler.needs_path_counts();
        fuzzer.runner.show_every_run(every);
        while next < batch.len() {
            let Fuzzer { runner, mutators, judge, scheduler, sidecars, .. } = self.fuzzer_mut();
            judge.teach(runner.executor_mut());
            outcome.hang = false;
            let run = match runner.run(mutators, batch, &mut next) {
                Ok(Some(run)) => run,
                // It was cut short, because runs are slow or because of the user.
                Ok(None) => {
                    self.inspect_quiet(batch)?;
                    if next < batch.len() && !self.is_over() {
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
            outcome.hang = matches!(run.exit, ExitKind::Hang | ExitKind::Cut | ExitKind::Lost);
            if let Some(reference) = reference {
                outcome.changed = Behaviour::of(judge, &run) != reference;
            }
            if scheduler.needs_path_counts() {
                scheduler.count_path(path_hash(run.edges));
            }
            let path = sidecars.as_ref().and_then(|sidecars| sidecars.path_of(&run));
            let verdict = judge.judge(&run);
            let inspected = self.due_for_inspection(&batch[index], path);
            let kept = self.keep_if_deserved(&batch[index], verdict)?;
            outcome.found |= kept;
            self.inspect_quiet(batch)?;
            match inspected {
                Some(delivered) => self.inspect(&delivered)?,
                None if kept && path.is_none() => self.inspect(&batch[index])?,
                None => {}
            }
        }
        Ok(outcome)
    }

    /// The candidate that was run last, as the target got it, if the sanitizer builds should see its path.
    fn due_for_inspection(
        &mut self,
        candidate: &Candidate,
        path: Option<u64>,
    ) -> Option<Candidate> {
        let path = path.filter(|_| self.fuzzer().may_inspect())?;
        let Fuzzer { runner, sidecars, .. } = self.fuzzer_mut();
        sidecars.as_mut()?.is_new(path).then(|| match runner.delivered() {
            Some(bytes) => Candidate { bytes: bytes.to_vec(), origin: candidate.origin },
            None => candidate.clone(),
        })
    }

    /// Runs in the sanitizer builds what took a path of its own among the runs that were not shown.
    fn inspect_quiet(&mut self, batch: &[Candidate]) -> Result<(), Self::Error> {
        if !self.fuzzer().may_inspect() {
            return Ok(());
        }
        let Fuzzer { runner, sidecars: Some(sidecars), .. } = self.fuzzer_mut() else {
            return Ok(());
        };
        let quiet = runner.executor_mut().quiet_paths().iter();
        let due = quiet.filter(|(_, path)| sidecars.is_new(*path));
        for index in due.map(|(index, _)| *index).collect::<Vec<_>>() {
            self.inspect(&batch[index])?;
        }
        Ok(())
    }

    /// Runs a candidate in the sanitizer builds, until one of them crashes.
    fn inspect(&mut self, candidate: &Candidate) -> Result<(), Self::Error> {
        let mut build = 0;
        loop {
            let Fuzzer { runner, sidecars: Some(sidecars), ledger, .. } = self.fuzzer_mut() else {
                return Ok(());
            };
            if build >= sidecars.count() {
                return Ok(());
            }
            let (timeout, account) = (runner.settings().timeout, &mut ledger[Purpose::Sanitizers]);
            let finding = match sidecars.run(build, &candidate.bytes, timeout, account) {
                Ok(Inspection::Fine) => None,
                Ok(Inspection::Judged(finding)) => finding,
                Ok(Inspection::Uncounted(exit)) => {
                    self.judged_by_target(&candidate.bytes, build, exit)?
                }
                Err(RunError::Failed(failure)) => {
                    sidecars.remove(build);
                    self.sanitizer_failed(&*failure);
                    continue;
                }
                Err(error) => {
                    self.wait_for_room(error)?;
                    continue;
                }
            };
            if let Some(Finding::Crash { signal, unique }) = finding {
                let crash = Crash { signal, unique, in_sanitizer: true };
                return admit::keep_crash(self, candidate, crash).map(drop);
            }
            build += 1;
        }
    }

    /// The finding of an input that ended so in a build without edges. The target runs it in a process that has run
    /// before: the first run of a loop lacks the edge back to its start, and would be a kind of its own.
    fn judged_by_target(
        &mut self,
        input: &[u8],
        build: usize,
        exit: ExitKind,
    ) -> Result<Option<Finding>, Self::Error> {
        self.when_there_is_room(|Fuzzer { runner, mutators, sidecars, .. }| {
            runner.observe(mutators, input)?;
            let run = runner.observe(mutators, input)?;
            Ok(sidecars.as_mut().and_then(|sidecars| sidecars.judge_by(build, exit, run)))
        })
    }

    /// Runs one candidate and keeps it if it deserves that. Returns how it behaved; None if it ended in
    /// a way in which no seed does.
    fn try_out(&mut self, candidate: &Candidate) -> Result<Option<Behaviour>, Self::Error> {
        let seen = self.run(Run::judged(&candidate.bytes))?;
        let behaviour = self.usable(&seen);
        self.keep_if_deserved(candidate, seen.verdict.unwrap_or_default())?;
        Ok(behaviour)
    }

    /// How a run behaved; None if it ended in a way in which no seed does.
    fn usable(&self, seen: &Seen) -> Option<Behaviour> {
        self.fuzzer().judge.accepts(seen.exit).then_some(seen.behaviour)
    }

    fn keep_if_deserved(
        &mut self,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Result<bool, Self::Error> {
        if verdict.finding.is_none() && !verdict.is_interesting() {
            return Ok(false);
        }
        let fuzzer = self.fuzzer();
        let delivered = fuzzer.delivered().filter(|_| !fuzzer.admission.options.keeps_original);
        let delivered =
            delivered.map(|bytes| Candidate { bytes: bytes.to_vec(), origin: candidate.origin });
        Ok(admit(self, delivered.as_ref().unwrap_or(candidate), verdict)?.kept)
    }

    /// One run, as soon as there is room for its input. Whoever asks acts on the verdict.
    fn run(&mut self, run: Run<'_>) -> Result<Seen, Self::Error> {
        let usual = self.fuzzer().timeout();
        self.fuzzer_mut().set_timeout(run.timeout.unwrap_or(usual));
        let seen = self.when_there_is_room(|Fuzzer { runner, mutators, judge, .. }| {
            let shown = match run.is_delivered {
                false => runner.observe(mutators, run.input)?,
                true => runner.replay(mutators, run.input)?,
            };
            Ok(Seen::of(judge, &shown, (run.judging, run.edges), usual))
        });
        self.fuzzer_mut().set_timeout(usual);
        seen
    }

    /// One run of an input with a log of its comparisons, see [`Runner::observe_logged`]. It is not judged: it shows
    /// no edges.
    ///
    /// [`Runner::observe_logged`]: crate::runner::Runner::observe_logged
    fn logged<T>(
        &mut self,
        input: &[u8],
        look: impl FnOnce(ComparisonLog<'_>) -> T,
    ) -> Result<(ExitKind, T), Self::Error> {
        loop {
            let has_logger = self.fuzzer().has_logger();
            let Fuzzer { runner, mutators, .. } = self.fuzzer_mut();
            match runner.observe_logged(mutators, input) {
                Ok(run) => return Ok((run.exit, look(run.comparisons))),
                Err(RunError::Failed(failure)) if has_logger => {
                    self.fuzzer_mut().lose_logger();
                    self.logger_failed(&*failure);
                }
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }

    /// Whether the target reads its input, see [`Executor::reads_input`].
    ///
    /// [`Executor::reads_input`]: crate::executor::Executor::reads_input
    fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, Self::Error> {
        self.when_there_is_room(|fuzzer| fuzzer.runner.reads_input(input))
    }

    /// Runs an input several times. What an end of the search leaves off counts as not done.
    fn calibrated(&mut self, input: &[u8], runs: u32) -> Result<Calibration, Self::Error> {
        let result = self.timed(Part::Calibration, |door| {
            door.when_there_is_room(|fuzzer| {
                let (mut of_target, judge) = fuzzer.runs();
                calibrate(&mut of_target, judge, input, runs)
            })
        });
        let result = match result {
            Err(error) if error.is_interruption() => Calibration::default(),
            result => result?,
        };
        let progress = &mut self.fuzzer_mut().progress;
        progress.slowest = progress.slowest.max(result.slowest);
        Ok(result)
    }

    /// An attempt to run something, as soon as there is room for its input.
    fn when_there_is_room<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Fuzzer<Self::Mutators>) -> Result<T, RunError>,
    ) -> Result<T, Self::Error> {
        loop {
            match attempt(self.fuzzer_mut()) {
                Ok(result) => return Ok(result),
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }
}
