//! The one door: every run of a campaign is made here and judged here.
//!
//! ```text
//! run a batch → judge → keep at once → count → stop? tick? look outside?
//! ```
//!
//! A stage makes candidates and hands them to [`Campaign::run_batch`] or [`Campaign::try_out`], and asks
//! [`Campaign::between_batches`] whether it goes on. So limits, signals, orders, imports and the screen reach
//! every stage alike, and what a run shows is on the disk before the next run. `tests/tidy.rs` checks that
//! nothing else in this folder runs or judges.

use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::engine::corpus::Origin;
use crate::engine::coverage::path_hash;
use crate::engine::domain::KeyGain;
use crate::engine::executor::{Executor, ExitKind, Observation, RunError};
use crate::engine::feedback::{Judge, Verdict};
use crate::engine::mutate::Candidate;
use crate::engine::stage::calibrate::{Calibration, calibrate};
use crate::event::Outcome;
use crate::exec::Hooked;

/// What a run did: its path and, if domains are watched, all their values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Behaviour(pub(super) u64, pub(super) u64);

impl Behaviour {
    fn of(run: &Observation<'_>) -> Self {
        Self(path_hash(run.edges), run.dsf.hash())
    }
}

/// What a batch brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchOutcome {
    /// A seed was kept.
    pub(super) found: bool,
    /// The last run differed from the reference.
    pub(super) changed: bool,
    /// The last run timed out.
    pub(super) hang: bool,
}

impl Campaign {
    /// Runs a batch and keeps what deserves it. With `reference` it also says whether the last
    /// run differed from that.
    pub(super) fn run_batch(
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
                outcome.changed = Behaviour::of(&run) != reference;
            }
            if self.scheduler.needs_path_counts() {
                self.scheduler.count_path(path_hash(run.edges));
            }
            let verdict = self.judge.judge(&run);
            outcome.found |= self.keep_delivered(&batch[index], verdict)?.kept;
        }
        Ok(outcome)
    }

    /// Runs one candidate and keeps it if it deserves that; `report` gets how it behaved (None if it ended in
    /// a way in which no seed does) after the run and before anything is kept.
    pub(super) fn try_out<T>(
        &mut self,
        candidate: &Candidate,
        report: impl FnOnce(&mut Self, Option<Behaviour>) -> T,
    ) -> Result<T, CampaignError> {
        let (behaviour, verdict) = self.see(&candidate.bytes, |judge, run| {
            (judge.accepts(run.exit).then(|| Behaviour::of(run)), judge.judge(run))
        })?;
        let reported = report(self, behaviour);
        self.keep_delivered(candidate, verdict)?;
        Ok(reported)
    }

    /// An input that was made elsewhere: run, judged and kept if it deserves it.
    pub(super) fn take_over(
        &mut self,
        bytes: Vec<u8>,
        origin: Origin,
    ) -> Result<Outcome, CampaignError> {
        let (_, verdict) = self.judged(&bytes)?;
        self.keep(&Candidate { bytes, origin }, verdict)
    }

    /// What comes between two batches: the screen, and what comes from outside. True if the stage at work
    /// is to end.
    pub(super) fn between_batches(&mut self) -> Result<bool, CampaignError> {
        self.tick_if_due();
        self.look_outside()?;
        Ok(self.turn_over())
    }

    fn turn_over(&self) -> bool {
        self.stop.skip() || self.stop_reason().is_some()
    }

    /// What comes from outside: orders, and other fuzzers' finds.
    pub(super) fn look_outside(&mut self) -> Result<(), CampaignError> {
        self.obey()?;
        self.import_if_due()
    }

    fn keep_delivered(
        &mut self,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Result<Outcome, CampaignError> {
        if verdict.finding.is_none() && !verdict.is_interesting() {
            return Ok(Outcome::default());
        }
        let delivered = self.as_delivered(candidate);
        self.keep(delivered.as_ref().unwrap_or(candidate), verdict)
    }

    /// Runs one input and judges it; whoever asks acts on the verdict.
    pub(super) fn judged(&mut self, input: &[u8]) -> Result<(ExitKind, Verdict), CampaignError> {
        self.see(input, |judge, run| (run.exit, judge.judge(run)))
    }

    /// How the target behaves on an input. The run is not judged.
    pub(super) fn behaviour_of(&mut self, input: &[u8]) -> Result<Behaviour, CampaignError> {
        self.see(input, |_, run| Behaviour::of(run))
    }

    /// A second run of what was promising: which of its gains show again, and the verdict on this run.
    pub(super) fn confirmed(
        &mut self,
        input: &[u8],
        gains: &[KeyGain],
    ) -> Result<(Vec<KeyGain>, Verdict), CampaignError> {
        self.see(input, |judge, run| (judge.confirm(gains, run), judge.judge(run)))
    }

    /// A crash or hang of an earlier process: its kind is not new from now on. What ends well by now
    /// teaches nothing.
    pub(super) fn recall(&mut self, input: &[u8]) -> Result<(), CampaignError> {
        self.see(input, |judge, run| {
            if !judge.accepts(run.exit) {
                judge.judge(run);
            }
        })
    }

    /// One run with another time limit. It is judged unless it took longer than `usual` and than `room`, up
    /// to which inputs are taken that improve a domain: what a run shows that is too slow for a seed has to
    /// stay new for others.
    pub(super) fn judged_patiently(
        &mut self,
        input: &[u8],
        patient: Duration,
        room: Option<Duration>,
    ) -> Result<(ExitKind, Option<Verdict>, Duration), CampaignError> {
        let usual = self.executor.timeout();
        self.executor.set_timeout(patient);
        let seen = self.see(input, |judge, run| {
            let (exit, duration) = (run.exit, run.duration);
            let is_kept = !judge.accepts(exit)
                || duration <= usual
                || (room.is_some_and(|limit| duration <= limit) && judge.would_gain(run));
            (exit, is_kept.then(|| judge.judge(run)), duration)
        });
        self.executor.set_timeout(usual);
        seen
    }

    /// One run, as soon as there is room for its input.
    fn see<T>(
        &mut self,
        input: &[u8],
        look: impl FnOnce(&mut Judge, &Observation<'_>) -> T,
    ) -> Result<T, CampaignError> {
        loop {
            match self.executor.observe(input) {
                Ok(run) => return Ok(look(&mut self.judge, &run)),
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }

    /// Whether the target reads its standard input, see [`Executor::reads_stdin`].
    pub(super) fn reads_stdin(&mut self, input: &[u8]) -> Result<Option<bool>, CampaignError> {
        self.when_there_is_room(|executor, _| executor.reads_stdin(input))
    }

    /// Runs an input as the target got it before: no hook changes it, and it is not judged.
    pub(super) fn replay(&mut self, input: &[u8]) -> Result<ExitKind, CampaignError> {
        self.when_there_is_room(|executor, _| executor.replay(input))
    }

    /// Runs an input several times. The clock and the counters notice. What an end of the campaign leaves
    /// off is done by the next process.
    pub(super) fn calibrated(
        &mut self,
        input: &[u8],
        runs: u32,
    ) -> Result<Calibration, CampaignError> {
        let start = Instant::now();
        let result =
            self.when_there_is_room(|executor, judge| calibrate(executor, judge, input, runs));
        let result = match result {
            Err(error) if error.is_interruption() => Calibration::default(),
            result => result?,
        };
        self.statistics.calibration += start.elapsed();
        self.statistics.slowest = self.statistics.slowest.max(result.slowest);
        Ok(result)
    }

    fn when_there_is_room<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Hooked, &mut Judge) -> Result<T, RunError>,
    ) -> Result<T, CampaignError> {
        loop {
            match attempt(&mut self.executor, &mut self.judge) {
                Ok(result) => return Ok(result),
                Err(error) => self.wait_for_room(error)?,
            }
        }
    }
}
