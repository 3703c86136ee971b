//! The surroundings of a [`Fuzzer`]: output folder, reports, statistics and limits.
//!
//! Each of the four has its own file. Operations on several of them are methods of [`Outside`]: storing finds
//! (`keep.rs`) and starting inputs (`seeds.rs`), waiting (`wait.rs`), and announcing files to mutators
//! (`mutators.rs`).

use super::limits::CampaignLimits;
use super::reports::Reports;
use super::statistics::Statistics;
use super::wait::Obstacles;
use crate::disk::output::OutputDir;
use crate::engine::fuzzer::Fuzzer;
use crate::event::{Snapshot, StopReason};
use crate::mutators::Mutators;

/// The surroundings of the search.
pub(super) struct Outside {
    pub(super) output: OutputDir,
    pub(super) reports: Reports,
    pub(super) statistics: Statistics,
    pub(super) limits: CampaignLimits,
    pub(super) obstacles: Obstacles,
    /// File extension of finds.
    pub(super) extension: Option<String>,
}

impl Outside {
    /// Reason to stop now, if any.
    pub(super) fn stop_reason(&self, fuzzer: &Fuzzer<Mutators>) -> Option<StopReason> {
        self.limits.stop_reason(fuzzer, &self.statistics)
    }

    pub(super) fn warn(&mut self, message: String) {
        self.reports.warn(message);
    }

    /// Starts the triage once there are findings.
    pub(super) fn start_triage(&mut self) {
        let (crashes, hangs) = (self.statistics.saved_crashes, self.statistics.saved_hangs);
        self.reports.triage.iter_mut().for_each(|triage| triage.start_for(crashes, hangs));
    }

    /// Reports the statistics if a tick is due; returns true if it was.
    pub(super) fn tick_if_due(&mut self, fuzzer: &mut Fuzzer<Mutators>) -> bool {
        let is_due = self.reports.is_tick_due();
        if is_due {
            self.tick(fuzzer);
        }
        is_due
    }

    pub(super) fn tick(&mut self, fuzzer: &mut Fuzzer<Mutators>) {
        self.reports.tick(fuzzer, &mut self.statistics);
    }

    pub(super) fn snapshot(&mut self, fuzzer: &Fuzzer<Mutators>) -> Snapshot {
        self.reports.snapshot(fuzzer, &mut self.statistics)
    }
}
