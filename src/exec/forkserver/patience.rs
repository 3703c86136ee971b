//! Time limits for a fork server that does not answer, and the message shown to the user.
//!
//! A fork server that is stopped, sleeps although it has something to report, or computes forever
//! is given up after about a second. One that gets no core has more time.

use std::time::{Duration, Instant};

use super::NoRun;
use crate::TargetError;
use ffuzz_sys::process::{self, Doing, Process};
use ffuzz_sys::stop::Leave;
use ffuzz_sys::waits::Wait;

/// Maximum time for a fork server to fork, or to report a killed child: far beyond any load, so
/// that only a dead or hostile one reaches it.
const LONGEST: Duration = Duration::from_secs(20);

/// Time before which only a stopped fork server is given up.
const MOMENT: Duration = Duration::from_secs(1);

/// Processor time within which it should have answered.
const ENOUGH_WORK: Duration = Duration::from_millis(500);

/// Number of consecutive checks that find it asleep: a single one may be a coincidence.
const MOST_NAPS: u32 = 3;

/// Interval between two checks.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Wait for an answer that is late.
#[derive(Debug)]
pub(super) struct Patience {
    since: Instant,
    /// Processor time of the fork server when the wait began.
    worked: Duration,
    naps: u32,
    /// Reports a long wait to the user.
    _wait: Wait,
}

impl Patience {
    pub(super) fn new(server: &Process) -> Self {
        let (_, worked) = server.doing();
        let wait = Wait::begin("the target's fork server has not answered");
        Self { since: Instant::now(), worked, naps: 0, _wait: wait }
    }

    /// Reason to stop waiting. `child`: the process whose end must be reported, if known; it may be
    /// slow to end. `leave`: set when the campaign ends.
    pub(super) fn is_over(
        &mut self,
        server: &Process,
        child: Option<i32>,
        leave: &mut Leave,
    ) -> Option<NoRun> {
        if leave.is_due() {
            return Some(TargetError::Interrupted.into());
        }
        self.why_over(server, child).map(|how| NoRun::Lost(how.into()))
    }

    fn why_over(&mut self, server: &Process, child: Option<i32>) -> Option<&'static str> {
        let (doing, worked) = server.doing();
        match doing {
            Doing::Stopped => return Some("it was stopped, or is traced"),
            Doing::Ended => return Some("it has ended"),
            Doing::Sleeps | Doing::Works => {}
        }
        let waited = self.since.elapsed();
        if waited < MOMENT {
            return None;
        }
        let is_ending = child.is_some_and(|pid| process::doing_of(pid) == Doing::Works);
        let naps = doing == Doing::Sleeps && !is_ending;
        self.naps = if naps { self.naps + 1 } else { 0 };
        let given_up = self.naps >= MOST_NAPS
            || worked.saturating_sub(self.worked) >= ENOUGH_WORK
            || waited >= LONGEST;
        given_up.then_some("it does not answer")
    }
}
