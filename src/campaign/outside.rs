//! What surrounds the [`Fuzzer`] of a campaign: files, limits, the screen, orders, other fuzzers.

use std::time::{Duration, Instant};

use super::keep::MAX_HANGS;
use super::{Campaign, CampaignError};
use crate::config::options::Strategy;
use crate::engine::corpus::{Origin, SeedId};
use crate::engine::domain::KeyGain;
use crate::engine::executor::{Failure, RunError};
use crate::engine::fuzzer::Fuzzer;
use crate::engine::fuzzer::admit::{
    Crash, NewSeed, Outcome as Admitted, Stored, StoredSeed, admit,
};
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

    fn crashed(
        &mut self,
        candidate: &Candidate,
        crash: Crash,
    ) -> Result<Option<Stored>, CampaignError> {
        self.store_crash(candidate, crash)
    }

    fn store_seed(&mut self, new: &NewSeed<'_>) -> Result<StoredSeed, CampaignError> {
        self.store_new_seed(new)
    }

    fn seed_added(&mut self, id: SeedId, gains: &[KeyGain]) {
        if self.fuzzer.judge().watches_domains() {
            self.note_gains(id, gains);
        }
    }

    fn seed_found(&mut self, new: &NewSeed<'_>, gains: &[KeyGain], stored: &Stored) {
        self.report_seed(new, gains, stored);
    }

    fn timed_out(&mut self) {
        self.statistics.total_timeouts += 1;
    }

    fn was_cut(&mut self) {
        self.statistics.cut_runs += 1;
    }

    fn takes_hangs(&self) -> bool {
        !self.options.findings.ignore_timeouts && self.statistics.saved_hangs < MAX_HANGS
    }

    fn hung(&mut self, candidate: &Candidate) -> Result<Option<Stored>, CampaignError> {
        self.store_hang(candidate).map(Some)
    }

    fn record(&mut self, candidate: &Candidate, gains: &[KeyGain]) -> Result<(), CampaignError> {
        self.store_record(candidate, gains)
    }

    fn elapsed(&self) -> Duration {
        self.statistics.started.elapsed()
    }

    fn sanitizer_failed(&mut self, why: &dyn Failure) {
        self.warn(format!("a build of -w cannot be run any more: {why}; {}", why.remedy()));
    }

    fn look_outside(&mut self) -> Result<(), CampaignError> {
        underway::note_runs(self.execs());
        self.tick_if_due();
        self.obey()?;
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
        let outcome = admit(self, &candidate, verdict)?;
        if outcome.kept {
            self.inspect(&candidate)?;
        }
        let Admitted { kept, crash, hang, stored } = outcome;
        let (input_id, path) = stored.map(|stored| (stored.number, stored.path)).unzip();
        Ok(Outcome { kept, crash, hang, input_id, path })
    }
}
