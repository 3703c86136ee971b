//! The share of a search that a stage may use, see [`ledger`](crate::schedule::ledger).

use crate::fuzzer::door::Door;
use crate::schedule::ledger::{Effort, Left, Purpose};

/// Total effort of the search so far. Includes the fuzzer's own time: with a fast target it dominates, and a share of
/// the target's time alone would be next to nothing.
pub(super) fn taken<D: Door>(door: &D) -> Effort {
    let effort = door.fuzzer().effort();
    Effort { time: effort.time + door.own_time(), ..effort }
}

/// Effort that the stage may still use now.
pub(super) fn left<D: Door>(door: &D, purpose: Purpose) -> Left {
    let fuzzer = door.fuzzer();
    fuzzer.ledger[purpose].left(taken(door), fuzzer.counts_time())
}

/// Whether the stage has more than `piece` left.
pub(super) fn may<D: Door>(door: &D, purpose: Purpose, piece: Effort) -> bool {
    !left(door, purpose).is_used_by(piece)
}

/// Charges the effort of the search to the stage from now on.
pub(super) fn open<D: Door>(door: &mut D, purpose: Purpose) {
    let all = taken(door);
    door.fuzzer_mut().ledger[purpose].open(all);
}

/// Stops charging the stage.
pub(super) fn close<D: Door>(door: &mut D, purpose: Purpose) {
    let all = taken(door);
    door.fuzzer_mut().ledger[purpose].close(all);
}

/// Why the work of a stage stops early.
pub(super) enum Stop<E> {
    /// The turn is to end, and the work with it.
    TurnOver,
    /// The share of the stage is used up for now.
    Spent,
    Error(E),
}

impl<E> From<E> for Stop<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}
