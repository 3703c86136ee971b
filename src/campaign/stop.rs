//! What ends a campaign: signals and limits.

use super::Campaign;
use crate::engine::corpus::Seed;
use crate::event::StopReason;

/// Fruitless cycles after which `AFL_EXIT_WHEN_DONE` believes that nothing is left; AFL's number.
const DONE_CYCLES: u64 = 100;

impl Campaign {
    /// The limit of runs (`-E`) is reached.
    pub(super) fn is_out_of_runs(&self) -> bool {
        self.options.limits.execs.is_some_and(|limit| self.execs() >= limit)
    }

    /// Why to stop now, if there is a reason.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        let limits = &self.options.limits;
        if self.stop.asked() {
            return Some(StopReason::User);
        }
        if self.is_out_of_runs() {
            return Some(StopReason::ExecLimit);
        }
        if limits.time.is_some() && self.stop.is_over() {
            return Some(StopReason::TimeLimit);
        }
        if limits.until_crash && self.statistics.saved_crashes > 0 {
            return Some(StopReason::Done);
        }
        let fruitless = self.statistics.without_finds();
        if limits.without_finds.is_some_and(|limit| fruitless >= limit) {
            return Some(StopReason::Done);
        }
        let exhausted = limits.when_done
            && self.fuzzer.progress.cycles_without_finds > DONE_CYCLES
            && !self.fuzzer.corpus.iter().any(Seed::is_pending);
        exhausted.then_some(StopReason::Done)
    }
}
