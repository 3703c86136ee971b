//! The soft limit: a run that computes much longer than usual is cut.
//!
//! It counts the processor time of the child, so load on the machine cuts nothing, and a run that sleeps or waits
//! has the whole timeout. The child's clock is first read when a run exceeds the limit in wall time, so quick runs
//! cost nothing.

use std::time::{Duration, Instant};

use super::ForkServer;
use ffuzz_sys::load;

/// Factor of the limit for a run with a log, which is up to 2.5 times slower in a build and a hundred times with
/// breakpoints: 300 times a usual run, and at least `SHORTEST_LOGGED`.
const LOGGED: u32 = 30;
const SHORTEST_LOGGED: Duration = Duration::from_millis(100);

/// Observes one run at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftLimit {
    limit: Duration,
    /// The child, its processor time at the first check, and the time of that check.
    first: Option<(i32, Duration, Instant)>,
}

impl ForkServer {
    /// Limit of the current run; None if it must not be cut.
    pub(super) fn soft_limit(&self) -> Option<SoftLimit> {
        let limit = self.settings.soft_limit.filter(|_| self.cuts)?;
        let limit = match self.settings.log_comparisons {
            true => (limit * LOGGED).max(SHORTEST_LOGGED),
            false => limit,
        };
        (limit < self.settings.timeout).then_some(SoftLimit { limit, first: None })
    }
}

impl SoftLimit {
    /// Interval between two checks.
    pub(super) fn interval(&self) -> Duration {
        self.limit
    }

    /// Starts with a new run.
    pub(super) fn restart(&mut self) {
        self.first = None;
    }

    /// Returns true if the run has computed for longer than the limit since the first check.
    pub(super) fn is_over(&mut self, child: Option<i32>) -> bool {
        let Some(child) = child else { return false };
        match self.first {
            Some((pid, before, since)) if pid == child => {
                // Its clock cannot advance faster than wall time.
                since.elapsed() >= self.limit && {
                    let now = load::processor_clock(child);
                    now.is_some_and(|now| now.saturating_sub(before) >= self.limit)
                }
            }
            _ => {
                let now = load::processor_clock(child);
                self.first = now.map(|now| (child, now, Instant::now()));
                false
            }
        }
    }
}
