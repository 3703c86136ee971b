//! Favourites that were never fuzzed, in the order of their turns.

use std::collections::VecDeque;

use crate::corpus::{Corpus, Seed, SeedId};
use crate::mutate::{Rng, below};

/// One pick in this number is by age if the amount of code ahead of seeds is known.
const BY_AGE: u32 = 10;

/// Queue of pending favourites. Most picks are by the amount of code ahead. By age alone, the newest seed is often the
/// deepest and would starve the others; the oldest first would delay a deep find behind all earlier ones.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Ascending; taken from either end.
    by_age: VecDeque<SeedId>,
    /// Seeds with code ahead, ascending by its amount.
    by_ahead: Vec<SeedId>,
}

impl Pending {
    /// Queues the pending seeds of `favored`. `ahead`: per seed, the amount of code ahead.
    pub(super) fn rebuild(&mut self, corpus: &Corpus, mut favored: Vec<SeedId>, ahead: &[f32]) {
        favored.retain(|&id| is_pending(&corpus[id]));
        favored.sort_unstable();
        self.by_age = favored.into();
        self.order(ahead);
    }

    /// Orders the queue by the amount of code ahead of each seed.
    pub(super) fn order(&mut self, ahead: &[f32]) {
        let of = |id: SeedId| ahead.get(id.index()).copied().unwrap_or(0.0);
        self.by_ahead = self.by_age.iter().copied().filter(|id| of(*id) > 0.0).collect();
        self.by_ahead.sort_by(|one, other| of(*one).total_cmp(&of(*other)));
    }

    /// Takes the seed with most code ahead, or sometimes the oldest or the newest one.
    pub(super) fn next(&mut self, corpus: &Corpus, rng: &mut Rng) -> Option<SeedId> {
        self.drop_finished(corpus);
        if !self.by_ahead.is_empty() && below(rng, BY_AGE) != 0 {
            return self.by_ahead.pop();
        }
        match self.by_age.len() {
            0 | 1 => self.by_age.pop_front(),
            _ if below(rng, 2) == 0 => self.by_age.pop_front(),
            _ => self.by_age.pop_back(),
        }
    }

    pub(super) fn exists(&mut self, corpus: &Corpus) -> bool {
        self.drop_finished(corpus);
        !self.by_age.is_empty()
    }

    /// Drops seeds at the ends that have since been fuzzed or disabled.
    fn drop_finished(&mut self, corpus: &Corpus) {
        let is_finished = |id: &SeedId| !is_pending(&corpus[*id]);
        while self.by_age.front().is_some_and(is_finished) {
            self.by_age.pop_front();
        }
        while self.by_age.back().is_some_and(is_finished) {
            self.by_age.pop_back();
        }
        while self.by_ahead.last().is_some_and(is_finished) {
            self.by_ahead.pop();
        }
    }
}

/// True for a favourite that waits for its first turn.
fn is_pending(seed: &Seed) -> bool {
    seed.favored && seed.is_pending()
}
