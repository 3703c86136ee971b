//! The favourites that were never fuzzed, in the order in which they are taken.

use std::collections::VecDeque;

use crate::corpus::{Corpus, Seed, SeedId};

/// Ascending; taken from the front, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Pending(VecDeque<SeedId>);

impl Pending {
    /// Queues the pending ones of these favourites.
    pub(super) fn rebuild(&mut self, corpus: &Corpus, mut favored: Vec<SeedId>) {
        favored.retain(|&id| is_pending(&corpus[id]));
        favored.sort_unstable();
        self.0 = favored.into();
    }

    /// Takes the next one.
    pub(super) fn next(&mut self, corpus: &Corpus) -> Option<SeedId> {
        self.drop_finished(corpus);
        self.0.pop_front()
    }

    pub(super) fn exists(&mut self, corpus: &Corpus) -> bool {
        self.drop_finished(corpus);
        !self.0.is_empty()
    }

    /// Drops seeds at the front that were fuzzed or disabled meanwhile.
    fn drop_finished(&mut self, corpus: &Corpus) {
        while self.0.front().is_some_and(|&id| !is_pending(&corpus[id])) {
            self.0.pop_front();
        }
    }
}

/// True for a favourite that waits for its first turn.
fn is_pending(seed: &Seed) -> bool {
    seed.favored && seed.is_pending()
}
