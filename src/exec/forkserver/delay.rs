//! Detects runs that are slow only because other programs use the cores.
//!
//! Limits that the fuzzer chose itself do not cut such runs (see
//! [`RunSettings::allow_for_load`](ffuzz_engine::executor::RunSettings::allow_for_load)). Their process is ready to
//! run, and its processor time is below the limit. A process that sleeps is cut at the limit.

use std::time::Duration;

use ffuzz_engine::executor::RunSettings;
use ffuzz_sys::load;
use ffuzz_sys::process::{self, Doing};

/// Maximum duration of such a run, as a multiple of the limit.
const LONGEST: u32 = 10;

/// Minimum wait for a core, as a fraction (1/N) of the limit: even on an idle machine, interrupts and the fuzzer take
/// some time.
const SHORTEST_WAIT: u32 = 4;

/// Observes one run at a time.
#[derive(Debug)]
pub(crate) struct Delay {
    allows: bool,
    /// The process, its processor clock at the first check, and an upper bound of its work on the run until then.
    first: Option<(i32, Duration, Duration)>,
}

impl Delay {
    pub(crate) fn new(settings: &RunSettings) -> Self {
        Self { allows: settings.allow_for_load, first: None }
    }

    /// Starts with a new run.
    pub(super) fn restart(&mut self) {
        self.first = None;
    }

    /// Returns true if a run of process `pid`, which has taken `elapsed` so far, may continue. Call it a few times
    /// before the limit as well: the first call records the clock.
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
            // The process that must report the end gets no core.
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
