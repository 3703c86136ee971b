//! Seeds that somebody outside prefers for a while.

use crate::corpus::{Corpus, SeedId};

/// Each other turn is one of theirs, in their order.
#[derive(Debug, Default)]
pub(super) struct Preferred {
    seeds: Vec<SeedId>,
    next: usize,
    /// The turn before was one of theirs.
    had_turn: bool,
}

impl Preferred {
    pub(super) fn set(&mut self, seeds: Vec<SeedId>) {
        *self = Self { seeds, ..Self::default() };
    }

    /// The seed for this turn, if it is one of theirs.
    pub(super) fn pick(&mut self, corpus: &Corpus) -> Option<SeedId> {
        if self.seeds.is_empty() {
            return None;
        }
        self.had_turn = !self.had_turn;
        if !self.had_turn {
            return None;
        }
        let order = (self.next..self.seeds.len()).chain(0..self.next);
        let at = order.into_iter().find(|at| !corpus[self.seeds[*at]].disabled)?;
        self.next = (at + 1) % self.seeds.len();
        Some(self.seeds[at])
    }
}
