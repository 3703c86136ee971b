//! Signals and limits that end a campaign.

use super::statistics::Statistics;
use crate::config::options;
use crate::engine::corpus::Seed;
use crate::engine::fuzzer::Fuzzer;
use crate::event::StopReason;
use crate::mutators::Mutators;
use crate::sys::stop::Stop;

/// Number of fruitless cycles after which `AFL_EXIT_WHEN_DONE` ends the campaign; AFL's number.
const DONE_CYCLES: u64 = 100;

/// The user's limits, and the request to stop.
pub(super) struct CampaignLimits {
    pub(super) options: options::Limits,
    pub(super) stop: Stop,
}

impl CampaignLimits {
    /// Sets the deadline that `-V` implies for waits on foreign code; call it at the start, after the dry run, and
    /// after every period that does not count.
    pub(super) fn arm(&self, statistics: &Statistics) {
        let spent = statistics.limited_time();
        self.stop.limit(self.options.time.map(|limit| limit.saturating_sub(spent)));
    }

    /// Returns true if the limit of runs (`-E`) is reached after `execs` runs.
    pub(super) fn is_out_of_runs(&self, execs: u64) -> bool {
        self.options.execs.is_some_and(|limit| execs >= limit)
    }

    /// Number of remaining runs after `execs` runs, at least 1.
    pub(super) fn runs_left(&self, execs: u64) -> usize {
        let left = self.options.execs.map(|limit| limit.saturating_sub(execs));
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX).max(1))
    }

    /// Reason to stop now, if any.
    pub(super) fn stop_reason(
        &self,
        fuzzer: &Fuzzer<Mutators>,
        statistics: &Statistics,
    ) -> Option<StopReason> {
        let limits = &self.options;
        if self.stop.asked() {
            return Some(StopReason::User);
        }
        if self.is_out_of_runs(statistics.execs(fuzzer)) {
            return Some(StopReason::ExecLimit);
        }
        if limits.time.is_some() && self.stop.is_over() {
            return Some(StopReason::TimeLimit);
        }
        if limits.until_crash && statistics.saved_crashes > 0 {
            return Some(StopReason::Done);
        }
        let fruitless = statistics.without_finds();
        if limits.without_finds.is_some_and(|limit| fruitless >= limit) {
            return Some(StopReason::Done);
        }
        let exhausted = limits.when_done
            && fuzzer.progress.cycles_without_finds > DONE_CYCLES
            && !fuzzer.corpus.iter().any(Seed::is_pending);
        exhausted.then_some(StopReason::Done)
    }
}
