//! Detects a time limit that cuts most runs, which then show little.

use std::time::Duration;

/// Minimum number of runs between two checks of the share.
const RUNS: u64 = 100;

/// Counters at the last check.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    runs: u64,
    timeouts: u64,
    has_warned: bool,
}

impl Cuts {
    /// Warns once if the limit cut half of the runs since the last check. `runs` and `timeouts` count from the
    /// start of this process.
    pub(super) fn warning(&mut self, runs: u64, timeouts: u64, limit: Duration) -> Option<String> {
        let (new, cut) = (runs.saturating_sub(self.runs), timeouts.saturating_sub(self.timeouts));
        if new < RUNS {
            return None;
        }
        (self.runs, self.timeouts) = (runs, timeouts);
        if cut * 2 < new || std::mem::replace(&mut self.has_warned, true) {
            return None;
        }
        Some(format!(
            "{cut} of the last {new} runs were cut by the time limit of {} ms; set a longer one (-t {}), or use \
             smaller or faster seeds",
            limit.as_millis(),
            limit.as_millis() * 5
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_runs_is_too_much_and_is_said_once() {
        let mut cuts = Cuts::default();
        let mut told =
            |runs, timeouts| cuts.warning(runs, timeouts, Duration::from_millis(20)).is_some();
        assert!(!told(99, 99), "too few runs");
        assert!(!told(200, 99), "fewer than half");
        assert!(!told(299, 199), "too few since then");
        assert!(told(300, 150));
        assert!(!told(500, 350), "a second time");
    }
}
