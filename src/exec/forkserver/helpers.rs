//! What runs leave behind, and which processes beside the runs a target needs.
//!
//! A target may start helpers before its hello, and a child with a loop before its first run: they stay as long
//! as the fork server, or that child. All others are of runs that are over.

use std::time::{Duration, Instant};

use super::ForkServer;
use crate::sys::clock::since_boot;

/// The kernel's unit for the start of a process: it says a moment up to this much before.
const TICK: Duration = Duration::from_millis(10);

/// When helpers were started, as time since the machine's start.
#[derive(Debug)]
pub(super) struct Helpers {
    hello: Duration,
    /// The child with a loop that was seen last, from before its start to the end of its first runs.
    child: Option<i32>,
    first: (Duration, Duration),
}

impl Helpers {
    /// The target has just said hello.
    pub(super) fn new() -> Self {
        Self { hello: since_boot(), child: None, first: (Duration::ZERO, Duration::ZERO) }
    }

    fn has(&self, since: Duration) -> bool {
        let (from, to) = self.first;
        since <= self.hello || (since + TICK >= from && since <= to)
    }
}

impl ForkServer {
    /// A child was there in runs that took so long and are over now.
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
        self.session.strays.sweep_if_due(Instant::now(), |since| helpers.has(since));
    }
}
