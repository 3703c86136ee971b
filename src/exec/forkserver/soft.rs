//! The soft limit: a run that computes for much longer than runs usually do is cut.
//!
//! It counts the processor time of the child, so a busy machine cuts nothing, and a run that sleeps or waits
//! has the whole timeout. The clock of the child is first read once a run is longer than the limit by the wall
//! clock: quick runs cost nothing.

use std::time::{Duration, Instant};

use super::ForkServer;
use ffuzz_sys::load;

/// A run with a log takes longer, up to 2.5 times in a build and a hundred times with breakpoints: its limit is that
/// of this many runs, which is 300 usual ones, and at least this time.
const LOGGED: u32 = 30;
const SHORTEST_LOGGED: Duration = Duration::from_millis(100);

/// Watches one run after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftLimit {
    limit: Duration,
    /// The child, its processor time at the first look, and when that was.
    first: Option<(i32, Duration, Instant)>,
}

impl ForkServer {
    /// None: the present run must not be cut.
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
    /// Interval at which to look.
    pub(super) fn interval(&self) -> Duration {
        self.limit
    }

    /// A new run has begun.
    pub(super) fn restart(&mut self) {
        self.first = None;
    }

    /// Whether the run has computed for longer than the limit since the first look at it.
    pub(super) fn is_over(&mut self, child: Option<i32>) -> bool {
        let Some(child) = child else { return false };
        match self.first {
            Some((pid, before, since)) if pid == child => {
                // Its clock cannot have gone faster than time.
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
