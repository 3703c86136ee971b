//! What surrounds the [`Fuzzer`] of a campaign: files, limits, the screen, orders, other fuzzers.

use std::time::Instant;

use super::keep::CrashIn;
use super::{Campaign, CampaignError};
use crate::config::options::Strategy;
use crate::engine::corpus::{Origin, SeedId};
use crate::engine::executor::{Failure, RunError};
use crate::engine::feedback::Verdict;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::door::{Door, DoorError, Part, Run};
use crate::engine::mutate::Candidate;
use crate::event::Outcome;
use crate::mutators::Mutators;
use crate::sys::underway;

impl DoorError for CampaignError {
    fn is_interruption(&self) -> bool {
        matches!(self, Self::Run(RunError::Interrupted))
    }
}

impl Door for Campaign {
    type Mutators = Mutators;
    type Error = CampaignError;

    fn fuzzer(&self) -> &Fuzzer<Mutators> {
        &self.fuzzer
    }

    fn fuzzer_mut(&mut self) -> &mut Fuzzer<Mutators> {
        &mut self.fuzzer
    }

    fn keep(&mut self, candidate: &Candidate, verdict: Verdict) -> Result<bool, CampaignError> {
        let delivered = self.as_delivered(candidate);
        Ok(self.keep_find(delivered.as_ref().unwrap_or(candidate), verdict)?.kept)
    }

    fn keep_sanitizer_crash(
        &mut self,
        candidate: &Candidate,
        signal: i32,
        unique: bool,
    ) -> Result<(), CampaignError> {
        self.keep_crash(candidate, CrashIn::Sanitizer, signal, unique).map(drop)
    }

    fn sanitizer_failed(&mut self, why: &dyn Failure) {
        self.warn(format!("a build of -w cannot be run any more: {why}; {}", why.remedy()));
    }

    fn look_outside(&mut self) -> Result<(), CampaignError> {
        underway::note_runs(self.execs());
        self.tick_if_due();
        self.obey()?;
        self.keep_doubtful()?;
        self.import_if_due()
    }

    fn is_over(&self) -> bool {
        self.stop.skip() || self.stop_reason().is_some()
    }

    fn runs_left(&self) -> usize {
        let left = self.options.limits.execs.map(|limit| limit.saturating_sub(self.execs()));
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX).max(1))
    }

    fn wait_for_room(&mut self, error: RunError) -> Result<(), CampaignError> {
        self.wait_after(error)
    }

    fn exploits(&self) -> bool {
        match self.options.mutation.strategy {
            Strategy::Explore => false,
            Strategy::Exploit => true,
            Strategy::Alternate(time) => self.statistics.without_finds() >= time,
        }
    }

    fn timed<T>(&mut self, part: Part, work: impl FnOnce(&mut Self) -> T) -> T {
        let start = Instant::now();
        let result = work(self);
        let spent = match part {
            Part::Calibration => &mut self.statistics.calibration,
            Part::Trimming => &mut self.statistics.trim,
        };
        *spent += start.elapsed();
        result
    }

    fn seed_changed(&mut self, id: SeedId, bytes: &[u8]) -> Result<(), CampaignError> {
        let name = self.fuzzer.corpus[id].name.clone();
        self.write(|output| output.replace_seed(&name, bytes)).map(drop)
    }

    fn deterministic_done(&mut self, id: SeedId) {
        let name = self.fuzzer.corpus[id].name.clone();
        if let Err(error) = self.output.mark_det_done(&name) {
            self.warn(error.to_string());
        }
    }
}

impl Campaign {
    /// An input that was made elsewhere: run, judged and kept if it deserves it.
    pub(super) fn take_over(
        &mut self,
        bytes: Vec<u8>,
        origin: Origin,
    ) -> Result<Outcome, CampaignError> {
        let verdict = self.run(Run::judged(&bytes))?.verdict.unwrap_or_default();
        let candidate = Candidate { bytes, origin };
        let outcome = self.keep_find(&candidate, verdict)?;
        if outcome.kept {
            self.inspect(&candidate)?;
        }
        Ok(outcome)
    }
}
