//! Runs that are slow only because other programs use the cores.
//!
//! A limit that the fuzzer chose itself does not cut them (see
//! [`RunSettings::allow_for_load`](ffuzz_engine::executor::RunSettings::allow_for_load)): the process is ready to run,
//! and its clock shows less work than the limit. One that sleeps is cut at the limit.

use std::time::Duration;

use ffuzz_engine::executor::RunSettings;
use ffuzz_sys::load;
use ffuzz_sys::process::{self, Doing};

/// Longest time of such a run, in limits.
const LONGEST: u32 = 10;

/// Shortest wait for a core that counts, as a part of the limit: interrupts and the fuzzer take some time on an idle
/// machine, too.
const SHORTEST_WAIT: u32 = 4;

/// Watches one run after the other.
#[derive(Debug)]
pub(crate) struct Delay {
    allows: bool,
    /// The process, its clock at the first look, and its work on the run until then, at most.
    first: Option<(i32, Duration, Duration)>,
}

impl Delay {
    pub(crate) fn new(settings: &RunSettings) -> Self {
        Self { allows: settings.allow_for_load, first: None }
    }

    /// A new run has begun.
    pub(super) fn restart(&mut self) {
        self.first = None;
    }

    /// Whether a run of the process `pid` that has taken `elapsed` so far may continue. To be asked a few times
    /// before the limit as well: the first answer notes the clock.
    pub(crate) fn allows(&mut self, pid: i32, elapsed: Duration, limit: Duration) -> bool {
        if self.allows && self.first.is_none_or(|(first, ..)| first != pid) {
            let clock = load::processor_clock(pid);
            self.first = clock.map(|clock| (pid, clock, clock.min(elapsed)));
        }
        elapsed < limit
            || (self.allows && elapsed < limit * LONGEST && self.waits(pid, elapsed, limit))
    }

    fn waits(&self, pid: i32, elapsed: Duration, limit: Duration) -> bool {
        match process::doing_of(pid) {
            Doing::Stopped | Doing::Sleeps => false,
            // Whoever has to report its end gets no core.
            Doing::Ended => true,
            Doing::Works => {
                let clocks = self.first.zip(load::processor_clock(pid));
                clocks.is_some_and(|((_, before, work), now)| {
                    let work = work + now.saturating_sub(before);
                    work < limit && elapsed.saturating_sub(work) >= limit / SHORTEST_WAIT
                })
            }
        }
    }
}
