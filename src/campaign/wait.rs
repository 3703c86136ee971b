//! Standing still: the one way in which a campaign waits for what will be there later, and what ends it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::CampaignError;
use super::outside::Outside;
use crate::disk::output::{OutputDir, OutputError};
use crate::engine::executor::RunError;
use crate::engine::fuzzer::Fuzzer;
use crate::mutators::Mutators;
use crate::sys::file;

/// Between two looks at signals and limits.
const LOOK: Duration = Duration::from_millis(50);
/// Between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// A disk that is full again within this time is still the same pause.
const SAME_PAUSE: Duration = Duration::from_secs(10);

/// The same for an error that may pass.
const SAME_ERROR: Duration = Duration::from_millis(500);

/// What the campaign had to wait for last.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    full_disk: Option<Pause>,
    passing_error: Option<Pause>,
}

/// An obstacle: since when it is there, and when it was last.
#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    last: Instant,
}

impl Outside {
    /// Writes a find. An error that may pass is tried again for some seconds; a full disk pauses the campaign
    /// until there is room. Both end when the campaign is to end.
    pub(super) fn write(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        mut attempt: impl FnMut(&mut OutputDir) -> Result<PathBuf, OutputError>,
    ) -> Result<PathBuf, CampaignError> {
        let (mut warned, start) = (false, Instant::now());
        loop {
            match attempt(&mut self.output) {
                Err(error) if error.may_pass() && start.elapsed() < file::PATIENCE => {
                    if !std::mem::replace(&mut warned, true) {
                        self.warn(format!("{error}; tried again for some seconds"));
                    }
                    if !self.stand_still(fuzzer, file::RETRY) {
                        return Err(error.into());
                    }
                }
                Err(error) if error.is_missing() && self.restore_folder(fuzzer)? => {}
                Err(error @ OutputError::Full { .. }) => {
                    if !self.pause_for_room(fuzzer, &error.to_string()) {
                        return Err(error.into());
                    }
                }
                result => return Ok(result?),
            }
        }
    }

    /// After a run that failed so. `Ok`: it is to be tried again. An input for which there was no room is
    /// lost with a campaign that is to end: it was not run.
    pub(super) fn wait_after(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        error: RunError,
    ) -> Result<(), CampaignError> {
        if !matches!(error, RunError::Interrupted) && self.restore_folder(fuzzer)? {
            // The target reads its input there.
            return Ok(());
        }
        match error {
            RunError::Full { .. } if self.pause_for_room(fuzzer, &error.to_string()) => Ok(()),
            RunError::Full { .. } => Err(RunError::Interrupted.into()),
            RunError::Passing(_) if self.pause_for_a_moment(fuzzer, &error.to_string()) => Ok(()),
            error => Err(error.into()),
        }
    }

    /// False if the error has not passed for some seconds, or the campaign is to end.
    fn pause_for_a_moment(&mut self, fuzzer: &mut Fuzzer<Mutators>, cause: &str) -> bool {
        let earlier = self.obstacles.passing_error;
        let earlier = earlier.filter(|error| error.last.elapsed() < SAME_ERROR);
        if earlier.is_none() {
            self.warn(format!("{cause}; tried again for some seconds"));
        }
        let since = earlier.map_or_else(Instant::now, |error| error.since);
        let goes_on = since.elapsed() < file::PATIENCE && self.stand_still(fuzzer, file::RETRY);
        self.obstacles.passing_error = Some(Pause { since, last: Instant::now() });
        goes_on
    }

    /// False if the campaign is to end.
    fn pause_for_room(&mut self, fuzzer: &mut Fuzzer<Mutators>, cause: &str) -> bool {
        let now = Instant::now();
        let earlier = self.obstacles.full_disk.filter(|full| full.last.elapsed() < SAME_PAUSE);
        if earlier.is_none() {
            self.warn(format!("{cause}; paused until there is room"));
        }
        let since = earlier.map_or(now, |full| full.since);
        let goes_on = self.stand_still(fuzzer, RETRY);
        self.obstacles.full_disk = Some(Pause { since, last: Instant::now() });
        goes_on
    }

    /// Waits for so long; false, and at once, if the campaign is to end.
    fn stand_still(&mut self, fuzzer: &mut Fuzzer<Mutators>, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            if self.stop_reason(fuzzer).is_some() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
            self.suspend_if_asked();
            // No state is written: it would claim what could not be.
            self.tick_if_due(fuzzer);
        }
    }

    /// Stops this process for as long as Ctrl-Z wants it. That time does not count.
    pub(super) fn suspend_if_asked(&mut self) {
        let suspended = self.limits.stop.suspend();
        if !suspended.is_zero() {
            self.statistics.leave_out(suspended);
            self.limits.arm(&self.statistics);
        }
    }

    /// Leaves out a pause by command, in which this process was suspended for a part of the time. Of the limits, that
    /// time counts for `-V` alone.
    pub(super) fn leave_out_pause(&mut self, time: Duration, suspended: Duration) {
        self.statistics.leave_out_pause(time, suspended);
        self.limits.arm(&self.statistics);
    }
}
