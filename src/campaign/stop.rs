//! What ends a campaign: signals and limits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

use super::Campaign;
use crate::event::StopReason;

/// Fruitless cycles after which `AFL_EXIT_WHEN_DONE` believes that nothing is left; AFL's number.
const DONE_CYCLES: u64 = 100;

/// Wishes of the user, set by signal handlers.
#[derive(Debug, Default)]
pub(super) struct Stop {
    asked: Arc<AtomicBool>,
    skip: Arc<AtomicBool>,
}

impl Stop {
    /// SIGINT, SIGTERM, SIGHUP ask for a clean end, a second one ends at once; SIGUSR1 skips the
    /// seed at work.
    pub(super) fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop.asked))?;
            flag::register(signal, Arc::clone(&stop.asked))?;
        }
        flag::register(SIGUSR1, Arc::clone(&stop.skip))?;
        Ok(stop)
    }

    pub(super) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// True once after every SIGUSR1.
    pub(super) fn skip(&self) -> bool {
        self.skip.load(Ordering::Relaxed) && self.skip.swap(false, Ordering::Relaxed)
    }
}

impl Campaign {
    /// Runs until `-E`, at least one.
    pub(super) fn execs_left(&self) -> usize {
        let left = self.options.limits.execs.map(|limit| limit.saturating_sub(self.execs()));
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX).max(1))
    }

    /// Why to stop now, if there is a reason.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        let limits = &self.options.limits;
        if self.stop.asked() {
            return Some(StopReason::User);
        }
        if limits.execs.is_some_and(|limit| self.execs() >= limit) {
            return Some(StopReason::ExecLimit);
        }
        let fuzzing = self.statistics.fuzz_time();
        if limits.time.is_some_and(|limit| fuzzing >= limit) {
            return Some(StopReason::TimeLimit);
        }
        if limits.until_crash && self.statistics.saved_crashes > 0 {
            return Some(StopReason::Done);
        }
        let fruitless = self.statistics.without_finds();
        if limits.without_finds.is_some_and(|limit| fruitless >= limit) {
            return Some(StopReason::Done);
        }
        let exhausted = self.statistics.cycles_without_finds > DONE_CYCLES
            && self.scheduler.pending_total(&self.corpus) == 0;
        (limits.when_done && exhausted).then_some(StopReason::Done)
    }
}
