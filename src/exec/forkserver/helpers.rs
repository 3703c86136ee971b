//! Processes that runs leave running, and helper processes that a target needs.
//!
//! A target may start helpers before its hello, and a child with a loop before its first run: they stay as long
//! as the fork server, or that child. All others belong to finished runs.

use std::time::{Duration, Instant};

use super::ForkServer;
use ffuzz_sys::clock::since_boot;

/// The kernel's unit for the start of a process: it reports a time up to this much before the start.
const TICK: Duration = Duration::from_millis(10);

/// When helpers were started, as time since the machine's start.
#[derive(Debug)]
pub(super) struct Helpers {
    hello: Duration,
    /// The last child with a loop, from before its start to the end of its first runs.
    child: Option<i32>,
    first: (Duration, Duration),
}

impl Helpers {
    /// The target has just sent its hello.
    pub(super) fn new() -> Self {
        Self { hello: since_boot(), child: None, first: (Duration::ZERO, Duration::ZERO) }
    }

    fn has(&self, since: Duration) -> bool {
        let (from, to) = self.first;
        since <= self.hello || (since + TICK >= from && since <= to)
    }
}

impl ForkServer {
    /// A child existed during finished runs that took this long.
    pub(super) fn note_child(&mut self, elapsed: Duration) {
        if self.setup.persistent() && self.child.is_some() && self.child != self.helpers.child {
            let now = since_boot();
            self.helpers.child = self.child;
            self.helpers.first = (now.saturating_sub(elapsed), now);
        }
    }

    /// Between two runs.
    pub(super) fn sweep_if_due(&mut self) {
        let helpers = &self.helpers;
        let (spared, leave) = (|since| helpers.has(since), &self.setup.leave);
        self.session.strays.sweep_if_due(Instant::now(), spared, || leave.is_asked());
    }
}
