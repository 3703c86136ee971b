//! The share of a search that a stage may use, see [`ledger`](crate::schedule::ledger).

use crate::fuzzer::door::{Door, Host};
use crate::schedule::ledger::{Effort, Left, Purpose};

impl<H: Host> Door<'_, H> {
    /// Total effort of the search so far. Includes the fuzzer's own time: with a fast target it dominates, and a share
    /// of the target's time alone would be next to nothing.
    pub(super) fn taken(&self) -> Effort {
        let effort = self.fuzzer().effort();
        Effort { time: effort.time + self.own_time(), ..effort }
    }

    /// Effort that the stage may still use now.
    pub(super) fn left(&self, purpose: Purpose) -> Left {
        let fuzzer = self.fuzzer();
        fuzzer.ledger[purpose].left(self.taken(), fuzzer.counts_time())
    }

    /// Whether the stage has more than `piece` left.
    pub(super) fn may(&self, purpose: Purpose, piece: Effort) -> bool {
        !self.left(purpose).is_used_by(piece)
    }

    /// Charges the effort of the search to the stage from now on.
    pub(super) fn open(&mut self, purpose: Purpose) {
        let all = self.taken();
        self.fuzzer_mut().ledger[purpose].open(all);
    }

    /// Stops charging the stage.
    pub(super) fn close(&mut self, purpose: Purpose) {
        let all = self.taken();
        self.fuzzer_mut().ledger[purpose].close(all);
    }
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
