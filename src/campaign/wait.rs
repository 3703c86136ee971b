//! Waiting: the only way in which a campaign waits for a resource, and the conditions that end the wait.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::CampaignError;
use super::outside::Outside;
use crate::disk::output::{OutputDir, OutputError};
use crate::engine::executor::RunError;
use crate::engine::fuzzer::Fuzzer;
use crate::mutators::Mutators;
use crate::sys::file;

/// Interval between two checks of signals and limits.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum time between two full-disk errors that count as one pause.
const SAME_PAUSE: Duration = Duration::from_secs(10);

/// Maximum time between two transient errors that count as one.
const SAME_ERROR: Duration = Duration::from_millis(500);

/// Last reasons for waiting.
#[derive(Debug, Default)]
pub(super) struct Obstacles {
    full_disk: Option<Obstacle>,
    passing_error: Option<Obstacle>,
}

/// An obstacle: its start, and its last occurrence.
#[derive(Clone, Copy, Debug)]
struct Obstacle {
    since: Instant,
    last: Instant,
}

impl Outside {
    /// Writes a find. Retries a transient error for some seconds; pauses the campaign on a full disk until there is
    /// room. Both end when the campaign must end.
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

    /// Handles a failed run; `Ok` means to retry it. If the campaign must end, an input without room is lost, because
    /// it was not run.
    pub(super) fn wait_after(
        &mut self,
        fuzzer: &mut Fuzzer<Mutators>,
        error: RunError,
    ) -> Result<(), CampaignError> {
        if !matches!(error, RunError::Interrupted) && self.restore_folder(fuzzer)? {
            // The target reads its input from that folder.
            return Ok(());
        }
        match error {
            RunError::Full { .. } if self.pause_for_room(fuzzer, &error.to_string()) => Ok(()),
            RunError::Full { .. } => Err(RunError::Interrupted.into()),
            RunError::Passing(_) if self.pause_for_a_moment(fuzzer, &error.to_string()) => Ok(()),
            error => Err(error.into()),
        }
    }

    /// Waits a moment; false if the error has lasted for some seconds, or the campaign must end.
    fn pause_for_a_moment(&mut self, fuzzer: &mut Fuzzer<Mutators>, cause: &str) -> bool {
        let earlier = self.obstacles.passing_error;
        let earlier = earlier.filter(|error| error.last.elapsed() < SAME_ERROR);
        if earlier.is_none() {
            self.warn(format!("{cause}; tried again for some seconds"));
        }
        let since = earlier.map_or_else(Instant::now, |error| error.since);
        let goes_on = since.elapsed() < file::PATIENCE && self.stand_still(fuzzer, file::RETRY);
        self.obstacles.passing_error = Some(Obstacle { since, last: Instant::now() });
        goes_on
    }

    /// Waits for room; false if the campaign must end.
    fn pause_for_room(&mut self, fuzzer: &mut Fuzzer<Mutators>, cause: &str) -> bool {
        let now = Instant::now();
        let earlier = self.obstacles.full_disk.filter(|full| full.last.elapsed() < SAME_PAUSE);
        if earlier.is_none() {
            self.warn(format!("{cause}; paused until there is room"));
        }
        let since = earlier.map_or(now, |full| full.since);
        let goes_on = self.stand_still(fuzzer, RETRY);
        self.obstacles.full_disk = Some(Obstacle { since, last: Instant::now() });
        goes_on
    }

    /// Waits for `time`; returns false immediately if the campaign must end.
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
            // No state is saved: it would contain finds that could not be written.
            self.tick_if_due(fuzzer);
        }
    }

    /// Suspends this process for Ctrl-Z, and excludes that time.
    pub(super) fn suspend_if_asked(&mut self) {
        let suspended = self.limits.stop.suspend();
        if !suspended.is_zero() {
            self.statistics.leave_out(suspended);
            self.limits.arm(&self.statistics);
        }
    }

    /// Excludes a pause by command, during which this process was suspended for the time `suspended`. Among the
    /// limits, only `-V` counts the pause.
    pub(super) fn leave_out_pause(&mut self, time: Duration, suspended: Duration) {
        self.statistics.leave_out_pause(time, suspended);
        self.limits.arm(&self.statistics);
    }
}
