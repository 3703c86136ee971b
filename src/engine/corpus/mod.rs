//! The corpus: every kept input with its data.
//!
//! Pure data: no I/O, no clock. Files belong to `disk::output`, decisions to
//! [`crate::schedule`].

pub mod names;

pub use ffuzz_mutate::length::Length;
pub use ffuzz_mutate::origin::{Origin, SeedId, Step};

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// Data by seed.
pub type BySeed<T> = BTreeMap<SeedId, T>;

/// A kept input with its data.
#[derive(Clone, Debug, Default)]
pub struct Seed {
    pub id: SeedId,
    /// File name in the queue folder.
    pub name: String,
    pub data: Box<[u8]>,
    pub parent: Option<SeedId>,
    /// Length of the chain of parents; 0 for an imported seed.
    pub depth: u32,
    /// Position of the first changed byte, 0 if unknown; deterministic steps continue there.
    pub changed_at: u32,
    /// Mean time of one run, microseconds.
    pub exec_us: u64,
    /// Time of the quickest calibration run, microseconds; not affected by load on the machine.
    pub quickest_us: u64,
    /// Number of edges hit.
    pub edges: u32,
    /// Indices of the edges hit, ascending. Emptied when the seed is the best for none of them.
    pub trace: Box<[u32]>,
    /// Hash of the classified edge map.
    pub path_hash: u64,
    /// Queue cycles missed because the seed came late (AFL's "handicap").
    pub handicap: u32,
    /// Turns in which the seed was fuzzed.
    pub fuzzed: u32,
    /// True if it had a new edge when found.
    pub new_edge: bool,
    /// True if it improved a domain key when found.
    pub waypoint: bool,
    /// True if its trace differs between runs.
    pub variable: bool,
    pub favored: bool,
    pub trimmed: bool,
    /// True if the deterministic stage is complete.
    pub det_done: bool,
    /// Never picked: a duplicate, or it crashes, hangs or cannot be calibrated. Still a donor for splicing.
    pub disabled: bool,
}

impl Seed {
    /// True while it waits for its first turn.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.fuzzed == 0 && !self.disabled
    }
}

/// Which positions of one input correspond to positions of another: those of the common prefix, and those of the
/// common suffix after it. All of them if the lengths are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alignment {
    from: usize,
    to: usize,
    prefix: usize,
    suffix: usize,
}

impl Alignment {
    pub(crate) fn of(from: &[u8], to: &[u8]) -> Self {
        let common = from.len().min(to.len());
        let prefix = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let pairs = from.iter().rev().zip(to.iter().rev());
        let suffix = pairs.take(common - prefix).take_while(|(a, b)| a == b).count();
        Self { from: from.len(), to: to.len(), prefix, suffix }
    }

    /// The position that corresponds to `at`; None if there is none.
    pub(crate) fn moved(self, at: usize) -> Option<usize> {
        let Self { from, to, prefix, suffix } = self;
        match at {
            at if from == to && at <= from => Some(at),
            at if at < prefix => Some(at),
            at if at >= from - suffix && at <= from => Some(at + to - from),
            _ => None,
        }
    }
}

/// All seeds, indexed by [`SeedId`].
#[derive(Debug, Default)]
pub struct Corpus {
    seeds: Vec<Seed>,
}

impl Corpus {
    /// Id of the next seed to add.
    #[must_use]
    pub fn next_id(&self) -> SeedId {
        SeedId(u32::try_from(self.seeds.len()).unwrap_or(u32::MAX))
    }

    /// Adds a seed. Panics if its id is not [`Corpus::next_id`]: ids are dense.
    pub fn add(&mut self, seed: Seed) -> SeedId {
        assert_eq!(seed.id, self.next_id(), "seed ids are dense");
        let id = seed.id;
        self.seeds.push(seed);
        id
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.seeds.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Seed> {
        self.seeds.iter()
    }

    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Seed> {
        self.seeds.iter_mut()
    }
}

impl Index<SeedId> for Corpus {
    type Output = Seed;
    fn index(&self, id: SeedId) -> &Seed {
        &self.seeds[id.index()]
    }
}

impl IndexMut<SeedId> for Corpus {
    fn index_mut(&mut self, id: SeedId) -> &mut Seed {
        &mut self.seeds[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_bytes_around_a_change() {
        let from = b"head: value; tail";
        for (to, expected) in [
            // A change that moves nothing.
            (&b"head: VALUE; tail"[..], &[0, 8, 16][..]),
            (b"head: a long value; tail", &[0, 15, 23]),
            (b"head: ue; tail", &[0, 13]),
            (b"tail", &[3]),
            (b"head", &[0]),
            (b"", &[]),
        ] {
            let alignment = Alignment::of(from, to);
            let moved: Vec<_> =
                [0, 8, 16].into_iter().filter_map(|at| alignment.moved(at)).collect();
            assert_eq!(moved, expected, "{to:?}");
        }
        // What is there twice belongs to the start.
        assert_eq!(Alignment::of(b"aaa", b"aaaa").moved(2), Some(2));
    }
}
