//! The favourites that were never fuzzed, in the order in which they are taken.

use std::collections::VecDeque;

use crate::corpus::{Corpus, Seed, SeedId};
use crate::mutate::{Rng, below};

/// Ascending; taken from either end. The newest seed is often the deepest, and alone it would leave the others behind;
/// the oldest alone would let a deep find wait for all that was found before it.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<SeedId>);

impl Pending {
    /// Queues the pending ones of these favourites.
    pub(super) fn rebuild(&mut self, corpus: &Corpus, mut favored: Vec<SeedId>) {
        favored.retain(|&id| is_pending(&corpus[id]));
        favored.sort_unstable();
        self.0 = favored.into();
    }

    /// Takes the oldest or the newest one, by the toss of a coin.
    pub(super) fn next(&mut self, corpus: &Corpus, rng: &mut Rng) -> Option<SeedId> {
        self.drop_finished(corpus);
        match self.0.len() {
            0 | 1 => self.0.pop_front(),
            _ if below(rng, 2) == 0 => self.0.pop_front(),
            _ => self.0.pop_back(),
        }
    }

    pub(super) fn exists(&mut self, corpus: &Corpus) -> bool {
        self.drop_finished(corpus);
        !self.0.is_empty()
    }

    /// Drops seeds at both ends that were fuzzed or disabled meanwhile.
    fn drop_finished(&mut self, corpus: &Corpus) {
        while self.0.front().is_some_and(|&id| !is_pending(&corpus[id])) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|&id| !is_pending(&corpus[id])) {
            self.0.pop_back();
        }
    }
}

/// True for a favourite that waits for its first turn.
fn is_pending(seed: &Seed) -> bool {
    seed.favored && seed.is_pending()
}
