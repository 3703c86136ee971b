//! Seeds preferred for a while from outside the scheduler.

use crate::corpus::{Corpus, SeedId};

/// Gives every second turn to one of the preferred seeds, in order.
#[derive(Debug, Default)]
pub(super) struct Preferred {
    seeds: Vec<SeedId>,
    next: usize,
    /// True if the previous turn used a preferred seed.
    had_turn: bool,
}

impl Preferred {
    pub(super) fn set(&mut self, seeds: Vec<SeedId>) {
        *self = Self { seeds, ..Self::default() };
    }

    /// Preferred seed for this turn, if it gets one.
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
