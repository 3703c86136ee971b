//! What is shut, as far as it was brought up to date: that takes at most a hundredth of the time.

use std::time::Duration;

use crate::corpus::SeedId;
use crate::coverage::frontier::Frontier;
use crate::schedule::ledger::Effort;

/// A step of an update takes about so long; and an update that was of so much work waits for so many times the work.
const STEP: Duration = Duration::from_nanos(5);
const WAIT: u32 = 100;
/// Steps for one run, where no time is measured.
const STEPS_PER_RUN: u64 = 2;

/// A frontier, and when it is updated next.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) frontier: Frontier,
    /// From this effort on; either part.
    due: Effort,
}

impl Ahead {
    pub(super) fn new(frontier: Frontier) -> Self {
        Self { frontier, due: Effort::ZERO }
    }

    /// Updates the frontier if that is due; true if it did. `counts_time`: by time, not by runs.
    pub(super) fn update(&mut self, virgin: &[u8], now: Effort, counts_time: bool) -> bool {
        if now.amount(counts_time) < self.due.amount(counts_time) {
            return false;
        }
        let steps = self.frontier.update(virgin);
        let time = STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX)) * WAIT;
        self.due = now.and(Effort { runs: steps / STEPS_PER_RUN, time });
        true
    }

    /// By seed below `end`: the sum over the forks to which it is the cheapest way of the logarithm of what lies behind
    /// each. `best_of`: the cheapest seed that hits a counter.
    pub(super) fn of_seeds(
        &self,
        end: SeedId,
        best_of: impl Fn(u32) -> Option<SeedId>,
    ) -> Vec<f32> {
        let mut seeds = vec![0.0; end.index()];
        for fork in self.frontier.forks() {
            let counter = self.frontier.counter_of(fork.block);
            if let Some(id) = counter.and_then(&best_of) {
                seeds[id.index()] += (fork.behind as f32 + 1.0).log2();
            }
        }
        seeds
    }
}
