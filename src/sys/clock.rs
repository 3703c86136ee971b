//! A clock that can be read around every call of foreign code: some nanoseconds, where the kernel's
//! takes tens, in virtual machines sometimes hundreds.

use std::time::{Duration, Instant};

/// Ticks since the machine started. Their length shows over time, see [`TickLength`].
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; it reads a counter.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Time since the machine was started, the unit in which the kernel reports when a process began.
#[must_use]
pub fn since_boot() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call gets a valid local struct; Linux has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    let (seconds, rest) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), rest.unwrap_or(0))
}

/// For a signal handler: milliseconds since some moment before the start, never 0.
pub(super) fn milliseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call is async-signal-safe and gets a valid local struct; Linux has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let whole = u64::try_from(time.tv_sec).unwrap_or(0) * 1000;
    (whole + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000).max(1)
}

/// Both clocks at one moment: the time passed on one gives the length of a tick of the other.
#[derive(Clone, Copy, Debug)]
pub struct TickLength {
    time: Instant,
    ticks: u64,
}

impl TickLength {
    #[must_use]
    pub fn from_now() -> Self {
        Self { time: Instant::now(), ticks: ticks() }
    }

    /// Converts ticks to a time.
    #[must_use]
    pub fn time_of(&self, count: u64) -> Duration {
        let passed = ticks().saturating_sub(self.ticks).max(1);
        self.time.elapsed().mul_f64((count as f64 / passed as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_go_on() {
        let (start, begin) = (Instant::now(), milliseconds());
        while milliseconds() < begin + 20 {
            std::hint::spin_loop();
        }
        assert!(begin > 0 && start.elapsed() > Duration::from_millis(15));
    }

    #[test]
    fn ticks_become_times() {
        let clock = TickLength::from_now();
        let (start, begin) = (Instant::now(), ticks());
        while start.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let time = clock.time_of(ticks() - begin);
        assert!(time > Duration::from_millis(10) && time <= start.elapsed() * 2, "{time:?}");
    }
}
