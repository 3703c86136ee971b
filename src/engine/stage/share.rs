//! The part of a search that one stage may take.

use std::time::Duration;

use crate::fuzzer::Effort;
use crate::fuzzer::door::Door;

/// What a stage may take beyond its part, because a search begins with it: this number of runs of average length.
pub(super) const FIRST_RUNS: u32 = 5000;
pub(super) const FIRST_TIME: Duration = Duration::from_millis(500);
/// A slice of work is to have this time, or [`FIRST_RUNS`]; the first one comes at once.
pub(super) const SLICE_TIME: Duration = Duration::from_millis(250);

/// If times do not count, a run of a stage counts as this number of runs: the others are in batches, most of which cost
/// much less.
const RUNS_OF_A_RUN: f64 = 4.0;

/// What the search has taken so far. The fuzzer's own time counts, too: with a quick target it is most of all, and a part
/// of the target's time alone would be next to nothing.
pub(super) fn taken<D: Door>(door: &D) -> Effort {
    let effort = door.fuzzer().effort();
    Effort { time: effort.time + door.own_time(), ..effort }
}

/// What is left of the stage's part, in seconds, or in runs if times do not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    amount: f64,
    counts_time: bool,
}

impl Left {
    /// Of a stage that may take `part` of the whole search, and has `used` so much.
    pub(super) fn of<D: Door>(door: &D, used: Effort, part: f64) -> Self {
        let all = taken(door);
        let counts_time = door.fuzzer().counts_time();
        let first = match counts_time {
            true => {
                let average = all.time.div_f64(all.runs.max(1) as f64);
                ((average * FIRST_RUNS).min(FIRST_TIME) + SLICE_TIME).as_secs_f64()
            }
            false => f64::from(2 * FIRST_RUNS),
        };
        let amount = match counts_time {
            true => first + all.time.as_secs_f64() * part - used.time.as_secs_f64(),
            false => first + all.runs as f64 * part / RUNS_OF_A_RUN - used.runs as f64,
        };
        Self { amount, counts_time }
    }

    /// Whether it is worth beginning with a piece of work.
    pub(super) fn has_slice(self) -> bool {
        !self.is_used_by(Effort { runs: FIRST_RUNS.into(), time: SLICE_TIME })
    }

    /// Whether this uses it up.
    pub(super) fn is_used_by(self, done: Effort) -> bool {
        let done = if self.counts_time { done.time.as_secs_f64() } else { done.runs as f64 };
        done >= self.amount
    }
}

/// Why the work of a stage ends before it is done.
pub(super) enum Stop<E> {
    /// The turn is to end, and the work with it.
    TurnOver,
    /// What the stage may take is used up for now.
    Spent,
    Error(E),
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}
