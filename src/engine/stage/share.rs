//! The part of a search that a stage may take, see [`ledger`](crate::schedule::ledger).

use crate::fuzzer::door::Door;
use crate::schedule::ledger::{Effort, Left, Purpose};

/// What the search has taken so far. The fuzzer's own time counts, too: with a quick target it is most of all, and a part
/// of the target's time alone would be next to nothing.
pub(super) fn taken<D: Door>(door: &D) -> Effort {
    let effort = door.fuzzer().effort();
    Effort { time: effort.time + door.own_time(), ..effort }
}

/// What the stage may take now.
pub(super) fn left<D: Door>(door: &D, purpose: Purpose) -> Left {
    let fuzzer = door.fuzzer();
    fuzzer.ledger[purpose].left(taken(door), fuzzer.counts_time())
}

/// Whether it may take more than this piece.
pub(super) fn may<D: Door>(door: &D, purpose: Purpose, piece: Effort) -> bool {
    !left(door, purpose).is_used_by(piece)
}

/// From now on the stage is at work.
pub(super) fn open<D: Door>(door: &mut D, purpose: Purpose) {
    let all = taken(door);
    door.fuzzer_mut().ledger[purpose].open(all);
}

/// Its work has ended.
pub(super) fn close<D: Door>(door: &mut D, purpose: Purpose) {
    let all = taken(door);
    door.fuzzer_mut().ledger[purpose].close(all);
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
