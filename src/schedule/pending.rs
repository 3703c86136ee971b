//! The favourites that were never fuzzed, in the order in which they are taken.

use std::collections::VecDeque;

use crate::corpus::{Corpus, Seed, SeedId};

/// Two queues that are served in turn, so that neither domains nor edges starve.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Owners of domain keys, ascending; taken from the back, the newest first.
    owners: Vec<SeedId>,
    /// The others, ascending; taken from the front, the oldest first.
    others: VecDeque<SeedId>,
    /// The others are served next.
    others_turn: bool,
}

impl Pending {
    /// Queues the pending ones of these favourites.
    pub(super) fn rebuild(
        &mut self,
        corpus: &Corpus,
        mut favored: Vec<SeedId>,
        is_owner: impl Fn(SeedId) -> bool,
    ) {
        favored.retain(|&id| is_pending(&corpus[id]));
        favored.sort_unstable();
        let (owners, others) = favored.into_iter().partition(|&id| is_owner(id));
        self.owners = owners;
        self.others = Vec::into(others);
    }

    /// Takes the next one.
    pub(super) fn next(&mut self, corpus: &Corpus) -> Option<SeedId> {
        self.drop_finished(corpus);
        self.others_turn = !self.others_turn;
        if self.others_turn {
            self.owners.pop().or_else(|| self.others.pop_front())
        } else {
            self.others.pop_front().or_else(|| self.owners.pop())
        }
    }

    pub(super) fn exists(&mut self, corpus: &Corpus) -> bool {
        self.drop_finished(corpus);
        !self.owners.is_empty() || !self.others.is_empty()
    }

    /// Drops seeds at the heads that were fuzzed or disabled meanwhile.
    fn drop_finished(&mut self, corpus: &Corpus) {
        while self.owners.pop_if(|id| !is_pending(&corpus[*id])).is_some() {}
        while self.others.front().is_some_and(|&id| !is_pending(&corpus[id])) {
            self.others.pop_front();
        }
    }
}

/// True for a favourite that waits for its first turn.
pub(super) fn is_pending(seed: &Seed) -> bool {
    seed.favored && seed.fuzzed == 0 && !seed.disabled
}
