//! Standing still: the one way in which a campaign waits for what will be there later, and what ends it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::disk::output::{OutputDir, OutputError};
use crate::engine::executor::RunError;
use crate::sys::file;

/// Between two looks at signals and limits.
const LOOK: Duration = Duration::from_millis(50);
/// Between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// A disk that is full again within this time is still the same pause.
const SAME_PAUSE: Duration = Duration::from_secs(10);

/// The same for an error that may pass.
const SAME_ERROR: Duration = Duration::from_millis(500);

/// An obstacle: since when it is there, and when it was last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    since: Instant,
    last: Instant,
}

impl Campaign {
    /// Writes a find. An error that may pass is tried again for some seconds; a full disk pauses the campaign
    /// until there is room. Both end when the campaign is to end.
    pub(super) fn write(
        &mut self,
        mut attempt: impl FnMut(&mut OutputDir) -> Result<PathBuf, OutputError>,
    ) -> Result<PathBuf, CampaignError> {
        let (mut told, start) = (false, Instant::now());
        loop {
            match attempt(&mut self.output) {
                Err(error) if error.may_pass() && start.elapsed() < file::PATIENCE => {
                    if !std::mem::replace(&mut told, true) {
                        self.warn(format!("{error}; tried again for some seconds"));
                    }
                    if !self.stand_still(file::RETRY) {
                        return Err(error.into());
                    }
                }
                Err(error @ OutputError::Full { .. }) => {
                    if !self.pause_for_room(&error.to_string()) {
                        return Err(error.into());
                    }
                }
                result => return Ok(result?),
            }
        }
    }

    /// After a run that failed so. `Ok`: it is to be tried again. An input for which there was no room is
    /// lost with a campaign that is to end: it was not run.
    pub(super) fn wait_after(&mut self, error: RunError) -> Result<(), CampaignError> {
        match error {
            RunError::Full { .. } if self.pause_for_room(&error.to_string()) => Ok(()),
            RunError::Full { .. } => Err(RunError::Interrupted.into()),
            RunError::Passing(_) if self.pause_for_a_moment(&error.to_string()) => Ok(()),
            error => Err(error.into()),
        }
    }

    /// False if the error has not passed for some seconds, or the campaign is to end.
    fn pause_for_a_moment(&mut self, cause: &str) -> bool {
        let earlier = self.passing_error.filter(|error| error.last.elapsed() < SAME_ERROR);
        if earlier.is_none() {
            self.warn(format!("{cause}; tried again for some seconds"));
        }
        let since = earlier.map_or_else(Instant::now, |error| error.since);
        let goes_on = since.elapsed() < file::PATIENCE && self.stand_still(file::RETRY);
        self.passing_error = Some(Pause { since, last: Instant::now() });
        goes_on
    }

    /// False if the campaign is to end.
    fn pause_for_room(&mut self, cause: &str) -> bool {
        let now = Instant::now();
        let earlier = self.full_disk.filter(|full| full.last.elapsed() < SAME_PAUSE);
        if earlier.is_none() {
            self.warn(format!("{cause}; paused until there is room"));
        }
        let since = earlier.map_or(now, |full| full.since);
        let goes_on = self.stand_still(RETRY);
        self.full_disk = Some(Pause { since, last: Instant::now() });
        goes_on
    }

    /// Waits for so long; false, and at once, if the campaign is to end.
    fn stand_still(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            if self.stop_reason().is_some() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
            let suspended = self.stop.suspend();
            if !suspended.is_zero() {
                self.statistics.leave_out(suspended);
                self.arm_limit();
            }
            // No state is written: it would claim what could not be.
            if self.last_tick.elapsed() >= self.tick_pause {
                self.tick();
            }
        }
    }
}
