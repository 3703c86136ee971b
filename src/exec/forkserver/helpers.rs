//! Ends processes that runs leave behind, and spares helper processes that a target needs.
//!
//! A target may start helpers before its hello, and a child with a loop before its first run. They live as long
//! as the fork server, or that child. All others belong to finished runs.

use std::time::{Duration, Instant};

use super::ForkServer;
use ffuzz_sys::clock::since_boot;

/// The kernel's resolution of process start times: the reported time is up to this much too early.
const TICK: Duration = Duration::from_millis(10);

/// Times when helpers were started, since boot.
#[derive(Debug)]
pub(super) struct Helpers {
    hello: Duration,
    /// The last child with a loop, with the period from before its start to the end of its first runs
    /// (`first`).
    child: Option<i32>,
    first: (Duration, Duration),
}

impl Helpers {
    /// Starts at the target's hello.
    pub(super) fn new() -> Self {
        Self { hello: since_boot(), child: None, first: (Duration::ZERO, Duration::ZERO) }
    }

    fn has(&self, since: Duration) -> bool {
        let (from, to) = self.first;
        since <= self.hello || (since + TICK >= from && since <= to)
    }
}

impl ForkServer {
    /// Notes a child that existed during finished runs, which took `elapsed`.
    pub(super) fn note_child(&mut self, elapsed: Duration) {
        if self.setup.persistent() && self.child.is_some() && self.child != self.helpers.child {
            let now = since_boot();
            self.helpers.child = self.child;
            self.helpers.first = (now.saturating_sub(elapsed), now);
        }
    }

    /// Ends left processes at intervals; call it between two runs.
    pub(super) fn sweep_if_due(&mut self) {
        let helpers = &self.helpers;
        let (spared, leave) = (|since| helpers.has(since), &self.setup.leave);
        self.session.strays.sweep_if_due(Instant::now(), spared, || leave.is_asked());
    }
}
