//! Updates of the frontier, limited to a hundredth of the time.

use std::time::Duration;

use crate::corpus::SeedId;
use crate::coverage::frontier::Frontier;
use crate::schedule::ledger::Effort;

/// Approximate time of one step of an update, and the wait until the next update as a multiple of the last one's
/// time.
const STEP: Duration = Duration::from_nanos(5);
const WAIT: u32 = 100;
/// Steps that count as one run if time is not measured, and steps for each fork and seed in [`Ahead::of_seeds`].
const STEPS_PER_RUN: u64 = 2;
const STEPS_PER_ITEM: u64 = 8;

/// A frontier and the time of its next update.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) frontier: Frontier,
    /// Total effort at which the next update is due; runs or time, whichever counts.
    due: Effort,
}

impl Ahead {
    pub(super) fn new(frontier: Frontier) -> Self {
        Self { frontier, due: Effort::ZERO }
    }

    /// Updates the frontier if due; returns true if it has changed. `seeds`: number of seeds. `counts_time`: measure
    /// the effort by time, not by runs.
    pub(super) fn update(
        &mut self,
        virgin: &[u8],
        seeds: usize,
        now: Effort,
        counts_time: bool,
    ) -> bool {
        if now.amount(counts_time) < self.due.amount(counts_time) {
            return false;
        }
        let has_changed = self.frontier.update(virgin);
        let mut steps = self.frontier.steps();
        if has_changed {
            steps += (seeds + self.frontier.forks().len()) as u64 * STEPS_PER_ITEM;
        }
        let time = STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX)) * WAIT;
        self.due = now.and(Effort { runs: steps / STEPS_PER_RUN, time });
        has_changed
    }

    /// For each seed below `end`: the sum of log2(1 + counters behind the fork) over the forks for which it is the
    /// cheapest seed. `best_of`: the cheapest seed that hits a counter.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::flow::{BlockFlow, Flow, FunctionFlow};

    /// Two forks: counter 0 leads to 1 or 2, and 1 to 3 or 4.
    fn ahead() -> Ahead {
        let block = |counter: u32, after: &[usize]| BlockFlow {
            counter: Some(counter),
            after: after.to_vec(),
            ..BlockFlow::default()
        };
        let blocks =
            vec![block(0, &[1, 2]), block(1, &[3, 4]), block(2, &[]), block(3, &[]), block(4, &[])];
        let function = FunctionFlow { name: 1, has_address: false, blocks };
        Ahead::new(Frontier::new(Flow::new(&[function])))
    }

    #[test]
    fn the_cheapest_way_to_a_fork_has_it_ahead() {
        let mut ahead = ahead();
        assert!(ahead.update(&[0, 0, 0xff, 0, 0xff], 3, Effort::ZERO, false));
        // Seed 2 is the cheapest seed for both forks, then seed 1 for the second one.
        let of = |best: [u32; 2]| {
            ahead.of_seeds(SeedId(3), |counter| Some(SeedId(best[counter as usize])))
        };
        assert_eq!(of([2, 2]), [0.0, 0.0, 2.0]);
        assert_eq!(of([2, 1]), [0.0, 1.0, 1.0]);
        assert_eq!(ahead.of_seeds(SeedId(3), |_| None), [0.0; 3]);
    }

    #[test]
    fn an_update_waits_for_its_part_of_the_time() {
        let mut ahead = ahead();
        let now = |runs: u64, millis: u64| Effort { runs, time: Duration::from_millis(millis) };
        let mut virgin = [0, 0xff, 0xff, 0xff, 0xff];
        assert!(ahead.update(&virgin, 0, now(0, 0), true));
        virgin[1] = 0;
        assert!(!ahead.update(&virgin, 0, now(1 << 40, 0), true));
        assert!(ahead.update(&virgin, 0, now(0, 100), true));
        // Nothing has changed.
        assert!(!ahead.update(&virgin, 0, now(0, 200), true));
        virgin[2] = 0;
        assert!(!ahead.update(&virgin, 0, now(0, 1000), false));
        assert!(ahead.update(&virgin, 0, now(1000, 1000), false));
    }
}
