//! The door: the only place where a search runs and judges inputs.
//!
//! ```text
//! run a batch → judge → keep at once → count → stop? tick? look outside?
//! ```
//!
//! A stage passes candidates to [`Door::run_batch`] or [`Door::try_out`], makes single runs with [`Door::run`], and
//! calls [`Door::between_batches`] to learn whether to continue. So limits, signals, orders, imports and the screen
//! work the same in every stage, and finds are stored before the next run. The executor and the judge are private to
//! the fuzzer, so nothing else can run or judge.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use miette::Diagnostic;

use super::Fuzzer;
use super::admit::{self, Crash, NewSeed, Stored, StoredSeed, admit};
use super::sidecars::Inspection;
use crate::calibrate::{Calibration, calibrate};
use crate::corpus::SeedId;
use crate::coverage::path_hash;
use crate::domain::KeyGain;
use crate::executor::{ExitKind, Observation, RunError};
use crate::feedback::{Finding, Judge, Verdict};
use crate::mutate::Candidate;
use crate::mutate::foreign::ForeignMutators;
use crate::options::Strategy;
use crate::schedule::ledger::Purpose;
use ffuzz_comparisons::log::ComparisonLog;

/// Behaviour of a run: its path and, if domains are watched, a hash of all their values.
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

/// A request for one run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub input: &'a [u8],
    pub judging: Judging<'a>,
    /// Wall time limit; None: the usual timeout.
    pub timeout: Option<Duration>,
    /// The input was recorded as delivered to the target: mutator hooks are skipped.
    pub is_delivered: bool,
    /// Edges to check, see [`Seen::hit`].
    pub edges: &'a [u32],
}

impl<'a> Run<'a> {
    /// A usual run that is not judged.
    #[must_use]
    pub fn of(input: &'a [u8]) -> Self {
        Self { input, judging: Judging::Not, timeout: None, is_delivered: false, edges: &[] }
    }

    /// A usual run that is judged.
    #[must_use]
    pub fn judged(input: &'a [u8]) -> Self {
        Self { judging: Judging::Always, ..Self::of(input) }
    }
}

/// Whether the judge records a run, so that its coverage is known afterwards.
#[derive(Clone, Copy, Debug)]
pub enum Judging<'a> {
    Not,
    Always,
    /// Only if the run ends unlike a seed. For crashes and hangs of an earlier process: one that now ends well is not
    /// recorded.
    IfBad,
    /// Unless the run ends well but is too slow for a seed: its coverage stays new for other inputs. The limit is the
    /// usual timeout, or `room` if the run would improve a domain.
    InTime {
        room: Option<Duration>,
    },
    /// Always, as a second run that confirms these gains.
    Again(&'a [KeyGain]),
}

/// Result of a single run.
#[derive(Clone, Debug)]
pub struct Seen {
    pub exit: ExitKind,
    pub duration: Duration,
    pub behaviour: Behaviour,
    /// None if the run was not judged.
    pub verdict: Option<Verdict>,
    /// Gains that the run has confirmed, see [`Judging::Again`].
    pub confirmed: Vec<KeyGain>,
    /// The edges of [`Run::edges`] that the run hits.
    pub hit: Vec<u32>,
}

impl Seen {
    /// `usual`: the usual timeout.
    fn of(
        judge: &mut Judge,
        run: &Observation<'_>,
        judging: Judging<'_>,
        edges: &[u32],
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

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchOutcome {
    /// True if a seed was kept.
    pub found: bool,
    /// True if the last run differed from the reference.
    pub changed: bool,
    /// True if the last run timed out, was cut, or lost the fork server.
    pub hang: bool,
}

/// Parts of a search whose time is reported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    Calibration,
    Comparisons,
    Trimming,
}

/// The error that ends a search.
pub trait DoorError: From<RunError> {
    /// True if a run was aborted because the search is to end; nothing has failed.
    fn is_interruption(&self) -> bool;
}

impl DoorError for RunError {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted)
    }
}

/// What a search has found besides seeds.
#[derive(Clone, Copy, Debug)]
pub enum Discovery<'a> {
    /// A crash, new or not.
    Crash(Crash),
    /// A unique hang.
    Hang,
    /// A run with which the target's fork server died; `unique`: the first such run.
    Lost { unique: bool },
    /// An input that improves these keys, with [`AdmissionOptions::records`].
    ///
    /// [`AdmissionOptions::records`]: super::admit::AdmissionOptions::records
    Record(&'a [KeyGain]),
}

/// What has happened in a search.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// A seed has entered the corpus, including initial seeds. It owns the gains unless it is disabled.
    SeedAdded { id: SeedId, gains: &'a [KeyGain] },
    /// This search has found or imported the seed that was added last. Gains only for a waypoint.
    SeedFound { new: &'a NewSeed<'a>, gains: &'a [KeyGain], stored: &'a Stored },
    /// A run timed out.
    TimedOut,
    /// A run was cut at the soft limit.
    Cut,
    /// A sanitizer build could no longer run and was removed.
    SanitizerFailed(&'a dyn Diagnostic),
    /// The build that logs comparisons could no longer run and was removed.
    LoggerFailed(&'a dyn Diagnostic),
    /// The deterministic stage of a seed is complete.
    DeterministicDone(SeedId),
    /// A part of the search has taken this time of [`Host::elapsed`].
    Took(Part, Duration),
}

/// The program around a [`Fuzzer`]: it stores finds, ends the search, and acts between batches. An embedding program
/// only has to write the methods without a body.
pub trait Host: Sized + 'static {
    type Mutators: ForeignMutators;
    type Error: DoorError;

    fn fuzzer(&self) -> &Fuzzer<Self::Mutators>;

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<Self::Mutators>;

    /// Handles a candidate that is no seed but worth keeping. Returns where it was stored, if it was.
    fn store(
        &mut self,
        candidate: &Candidate,
        as_what: Discovery<'_>,
    ) -> Result<Option<Stored>, Self::Error>;

    /// Stores a candidate that becomes a seed.
    fn store_seed(&mut self, new: &NewSeed<'_>) -> Result<StoredSeed, Self::Error> {
        Ok(StoredSeed { data: new.candidate.bytes.clone(), ..StoredSeed::default() })
    }

    /// Called when the bytes of a seed change; the corpus still has the old ones.
    fn seed_changed(&mut self, _id: SeedId, _bytes: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Called for each event that needs no answer.
    fn notice(&mut self, _what: Notice<'_>) {}

    /// Whether more hangs are stored.
    fn takes_hangs(&self) -> bool {
        true
    }

    /// Time that the search has taken so far; by default the target's time.
    fn elapsed(&self) -> Duration {
        self.fuzzer().target().spent().whole()
    }

    /// Processor time of the fuzzer itself; zero if not measured.
    fn own_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Updates the screen and handles external events, between two batches.
    fn look_outside(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// True if the current stage is to end.
    fn is_over(&self) -> bool {
        false
    }

    /// Runs left until a limit; at least 1.
    fn runs_left(&self) -> usize {
        usize::MAX
    }

    /// Handles the error of a run. `Ok`: the run is repeated.
    fn wait_for_room(&mut self, error: RunError) -> Result<(), Self::Error> {
        Err(error.into())
    }

    /// True if havoc prefers changes that break code to those that reach new code.
    fn exploits(&self) -> bool {
        self.fuzzer().mutation.strategy == Strategy::Exploit
    }
}

/// The door to a search: makes and judges its runs.
pub struct Door<'a, H>(pub &'a mut H);

impl<H> Deref for Door<'_, H> {
    type Target = H;

    fn deref(&self) -> &H {
        self.0
    }
}

impl<H> DerefMut for Door<'_, H> {
    fn deref_mut(&mut self) -> &mut H {
        self.0
    }
}

impl<H: Host> Door<'_, H> {
    /// The same door for a shorter time.
    pub fn reborrow(&mut self) -> Door<'_, H> {
        Door(self.0)
    }

    /// Does `work` and reports its time as that of `part`.
    pub fn timed<T>(&mut self, part: Part, work: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.elapsed();
        let result = work(self);
        let spent = self.elapsed().saturating_sub(start);
        self.notice(Notice::Took(part, spent));
        result
    }

    /// Does the work between two batches. Returns true if the current stage is to end.
    pub fn between_batches(&mut self) -> Result<bool, H::Error> {
        self.look_around()?;
        Ok(self.is_over())
    }

    /// Handles external events and the queued second runs.
    pub fn look_around(&mut self) -> Result<(), H::Error> {
        self.look_outside()?;
        admit::look_at_doubtful(self)
    }

    /// Runs a batch and keeps the finds. With `reference`, also tells whether the last run differed from it.
    pub fn run_batch(
        &mut self,
        batch: &[Candidate],
        reference: Option<Behaviour>,
    ) -> Result<BatchOutcome, H::Error> {
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
                // The batch ended early, because runs are slow or because of the user.
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

    /// The last candidate as delivered to the target, if its path is new and the sanitizer builds have time.
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

    /// Runs the candidates of runs that were not shown in the sanitizer builds, if their path is new.
    fn inspect_quiet(&mut self, batch: &[Candidate]) -> Result<(), H::Error> {
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

    /// Runs a candidate in each sanitizer build until one crashes.
    pub fn inspect(&mut self, candidate: &Candidate) -> Result<(), H::Error> {
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
                    self.notice(Notice::SanitizerFailed(&*failure));
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

    /// Judges an input that ended with `exit` in a build without edges, by its edges in the target. The target runs
    /// it twice and the second run counts: the first run of a loop lacks the edge back to its start and would look
    /// unique.
    fn judged_by_target(
        &mut self,
        input: &[u8],
        build: usize,
        exit: ExitKind,
    ) -> Result<Option<Finding>, H::Error> {
        self.when_there_is_room(|Fuzzer { runner, mutators, sidecars, .. }| {
            runner.observe(mutators, input)?;
            let run = runner.observe(mutators, input)?;
            Ok(sidecars.as_mut().and_then(|sidecars| sidecars.judge_by(build, exit, run)))
        })
    }

    /// Runs one candidate and keeps it if it is a find. Returns its behaviour; None if it ended unlike a seed.
    pub fn try_out(&mut self, candidate: &Candidate) -> Result<Option<Behaviour>, H::Error> {
        let seen = self.run(Run::judged(&candidate.bytes))?;
        let behaviour = self.usable(&seen);
        self.keep_if_deserved(candidate, seen.verdict.unwrap_or_default())?;
        Ok(behaviour)
    }

    /// The behaviour of a run; None if it ended unlike a seed.
    pub fn usable(&self, seen: &Seen) -> Option<Behaviour> {
        self.fuzzer().judge.accepts(seen.exit).then_some(seen.behaviour)
    }

    pub fn keep_if_deserved(
        &mut self,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Result<bool, H::Error> {
        if verdict.finding.is_none() && !verdict.is_interesting() {
            return Ok(false);
        }
        let fuzzer = self.fuzzer();
        let delivered = fuzzer.delivered().filter(|_| !fuzzer.admission.options.keeps_original);
        let delivered =
            delivered.map(|bytes| Candidate { bytes: bytes.to_vec(), origin: candidate.origin });
        Ok(admit(self, delivered.as_ref().unwrap_or(candidate), verdict)?.kept)
    }

    /// Makes one run, repeated while [`Host::wait_for_room`] allows it. The caller acts on the verdict.
    pub fn run(&mut self, run: Run<'_>) -> Result<Seen, H::Error> {
        let usual = self.fuzzer().timeout();
        self.fuzzer_mut().set_timeout(run.timeout.unwrap_or(usual));
        let seen = self.when_there_is_room(|Fuzzer { runner, mutators, judge, .. }| {
            let shown = match run.is_delivered {
                false => runner.observe(mutators, run.input)?,
                true => runner.replay(mutators, run.input)?,
            };
            Ok(Seen::of(judge, &shown, run.judging, run.edges, usual))
        });
        self.fuzzer_mut().set_timeout(usual);
        seen
    }

    /// Runs an input with a log of its comparisons, see [`Runner::observe_logged`]. The run shows no edges, so it is
    /// not judged.
    ///
    /// [`Runner::observe_logged`]: crate::runner::Runner::observe_logged
    pub fn logged<T>(
        &mut self,
        input: &[u8],
        look: impl FnOnce(ComparisonLog<'_>) -> T,
    ) -> Result<(ExitKind, T), H::Error> {
        loop {
            let has_logger = self.fuzzer().has_logger();
            let Fuzzer { runner, mutators, .. } = self.fuzzer_mut();
            match runner.observe_logged(mutators, input) {
                Ok(run) => return Ok((run.exit, look(run.comparisons))),
                Err(RunError::Failed(failure)) if has_logger => {
                    self.fuzzer_mut().lose_logger();
                    self.notice(Notice::LoggerFailed(&*failure));
                }
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }

    /// Whether the target reads its input, see [`Executor::reads_input`].
    ///
    /// [`Executor::reads_input`]: crate::executor::Executor::reads_input
    pub fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, H::Error> {
        self.when_there_is_room(|fuzzer| fuzzer.runner.reads_input(input))
    }

    /// Runs an input several times. Returns an empty calibration if the search ends meanwhile.
    pub fn calibrated(&mut self, input: &[u8], runs: u32) -> Result<Calibration, H::Error> {
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

    /// Repeats `attempt` while it fails and [`Host::wait_for_room`] allows it.
    fn when_there_is_room<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Fuzzer<H::Mutators>) -> Result<T, RunError>,
    ) -> Result<T, H::Error> {
        loop {
            match attempt(self.fuzzer_mut()) {
                Ok(result) => return Ok(result),
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }
}
