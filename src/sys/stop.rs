//! Requests of the user that arrive as signals.
//!
//! [`Stop`] is the one request to end a campaign: a signal, a client's order, or the limit of time, which the campaign
//! arms for the dry run and again for the time after it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1};
use signal_hook::{flag, low_level};

use super::{clock, terminal, underway};

/// Signals within this many milliseconds of the first are the same request: a key that was held, or a
/// closed terminal, which both the shell and the kernel report.
const ONE_REQUEST_MS: u64 = 500;

/// What the user has requested, set by signal handlers.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    again: Arc<AtomicBool>,
    skip: Arc<AtomicBool>,
    /// When a limit of time is reached, by [`clock::milliseconds`]; 0: never.
    limit: Arc<AtomicU64>,
    suspension: Arc<Suspension>,
}

impl Stop {
    /// One that listens to signals, see [`Stop::listen`].
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        stop.listen()?;
        Ok(stop)
    }

    /// SIGINT, SIGTERM, SIGHUP request a clean end, a later one of the first two ends immediately;
    /// SIGUSR1 skips the seed at work.
    pub fn listen(&self) -> io::Result<()> {
        let (all, hurried) = (Arc::<First>::default(), Arc::<First>::default());
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let (stop, all, hurried) = (self.clone(), Arc::clone(&all), Arc::clone(&hurried));
            let ask = move || {
                let now = clock::milliseconds();
                stop.record(all.is_before(now));
                if signal != SIGHUP && hurried.is_before(now) == Some(true) {
                    terminal::leave();
                    underway::forget();
                    low_level::exit(1);
                }
            };
            // SAFETY: the handler only reads a clock, sets flags, writes to the terminal and leaves
            // by `_exit`, all of which are async-signal-safe.
            unsafe { low_level::register(signal, ask) }?;
        }
        flag::register(SIGUSR1, Arc::clone(&self.skip))?;
        Ok(())
    }

    /// From now on SIGTSTP (Ctrl-Z) waits for [`Stop::suspend`]: between two runs no time limit of the
    /// target runs out meanwhile. A second one takes effect immediately.
    pub fn suspend_between_runs(&self) -> io::Result<()> {
        if terminal::ignores_stop() {
            return Ok(());
        }
        let suspension = Arc::clone(&self.suspension);
        // SAFETY: the handlers read a clock, set flags and modes, write to the terminal and raise the signal
        // itself, all of which is async-signal-safe.
        unsafe {
            low_level::register(SIGTSTP, move || suspension.ask())?;
            low_level::register(SIGCONT, terminal::note_continued)?;
        }
        Ok(())
    }

    /// There will be no further runs: from now on SIGTSTP takes effect when it comes.
    pub fn suspend_at_once(&self) {
        self.suspension.at_once.store(true, Ordering::Relaxed);
        self.suspension.stop_if_requested();
    }

    /// Ctrl-Z was pressed and has not taken effect yet.
    #[must_use]
    pub fn wants_suspension(&self) -> bool {
        self.suspension.wanted.load(Ordering::Relaxed)
    }

    /// Stops this process if Ctrl-Z has requested it. Returns how long it was stopped since the last
    /// call.
    #[must_use]
    pub fn suspend(&self) -> Duration {
        self.suspension.stop_if_requested()
    }

    /// A signal came; `later` than the first, unless it is the first.
    fn record(&self, later: Option<bool>) {
        if self.asked.swap(true, Ordering::Relaxed) && later != Some(false) {
            self.again.store(true, Ordering::Relaxed);
        }
    }

    /// Requests a clean end, as SIGINT does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether an end was requested.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// From now on `left` is what is left of a limit of time; None: there is no limit.
    pub fn limit(&self, left: Option<Duration>) {
        let left = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let end = left.map_or(0, |left| clock::milliseconds().saturating_add(left));
        self.limit.store(end, Ordering::Relaxed);
    }

    /// Whether an end was requested, or a limit of time is reached: whatever waits for foreign code waits no
    /// longer than its own grace period.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        self.asked() || (limit != 0 && clock::milliseconds() >= limit)
    }

    /// The same as a question that executors can keep.
    #[must_use]
    pub fn request(&self) -> StopRequest {
        let stop = self.clone();
        Arc::new(move || stop.is_over())
    }

    /// A signal came after that: the last work, too, should be left.
    #[must_use]
    pub fn asked_again(&self) -> bool {
        self.again.load(Ordering::Relaxed)
    }

    /// True once after every SIGUSR1.
    #[must_use]
    pub fn skip(&self) -> bool {
        self.skip.load(Ordering::Relaxed) && self.skip.swap(false, Ordering::Relaxed)
    }
}

/// Ctrl-Z, and the time that the process was stopped by it, in milliseconds.
#[derive(Debug, Default)]
struct Suspension {
    wanted: AtomicBool,
    at_once: AtomicBool,
    time: AtomicU64,
}

impl Suspension {
    /// In the handler.
    fn ask(&self) {
        let again = self.wanted.swap(true, Ordering::Relaxed);
        if again || self.at_once.load(Ordering::Relaxed) {
            self.stop();
        }
    }

    fn stop(&self) {
        let start = clock::milliseconds();
        terminal::stop_process();
        self.time.fetch_add(clock::milliseconds() - start, Ordering::Relaxed);
        self.wanted.store(false, Ordering::Relaxed);
    }

    fn stop_if_requested(&self) -> Duration {
        if self.wanted.load(Ordering::Relaxed) {
            self.stop();
        }
        match self.time.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            _ => Duration::from_millis(self.time.swap(0, Ordering::Relaxed)),
        }
    }
}

/// How long a run may continue after a request to stop.
const HURRY: Duration = Duration::from_millis(500);

/// Returns whether an end was requested.
pub type StopRequest = Arc<dyn Fn() -> bool + Send + Sync>;

/// Checked by each wait for a target: whether to leave it. By default it never is.
#[derive(Clone, Default)]
pub struct Leave {
    end: Option<StopRequest>,
    noticed: Option<Instant>,
}

impl From<Option<StopRequest>> for Leave {
    fn from(end: Option<StopRequest>) -> Self {
        Self { end, noticed: None }
    }
}

impl std::fmt::Debug for Leave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leave").field("is_asked", &self.is_asked()).finish_non_exhaustive()
    }
}

impl Leave {
    /// Whether an end can be requested.
    #[must_use]
    pub fn can_be_asked(&self) -> bool {
        self.end.is_some()
    }

    /// Whether an end was requested.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end())
    }

    /// Whether an end was requested some time ago, measured between calls of this function.
    pub fn is_due(&mut self) -> bool {
        self.is_asked() && self.noticed.get_or_insert_with(Instant::now).elapsed() >= HURRY
    }
}

/// When the first signal came, in milliseconds; 0 before.
#[derive(Debug, Default)]
struct First(AtomicU64);

impl First {
    /// Whether the first was an earlier request than the one of `now`; None if `now` is the first.
    fn is_before(&self, now: u64) -> Option<bool> {
        let first = self.0.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).err()?;
        Some(now.saturating_sub(first) > ONE_REQUEST_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one_request() {
        let first = First::default();
        let signals = [1000, 1001, 1500, 1501, 9000].map(|now| first.is_before(now));
        assert_eq!(signals, [None, Some(false), Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn what_was_asked_for_is_asked_for_again_by_a_later_signal() {
        let again = |stop: &Stop, later| {
            stop.record(later);
            assert!(stop.asked());
            stop.asked_again()
        };
        let stop = Stop::default();
        assert_eq!(
            [None, Some(false), Some(true)].map(|later| again(&stop, later)),
            [false, false, true]
        );
        // A client has requested an end, and then the user for the first time.
        let stop = Stop::default();
        stop.ask();
        assert!(!stop.asked_again() && again(&stop, None));
    }
}
