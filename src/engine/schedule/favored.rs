//! The favoured set: for each edge the best seed, for each domain key its owner, and small sets
//! of seeds that cover all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::corpus::{Corpus, Seed, SeedId};

/// Winner of an edge that no seed hits.
const NOBODY: SeedId = SeedId(u32::MAX);

/// The best seed of every edge.
#[derive(Debug)]
pub(super) struct EdgeWinners {
    best: Vec<SeedId>,
    /// Per seed: number of edges for which it is the best.
    won: Vec<u32>,
}

impl EdgeWinners {
    pub(super) fn new(map_size: usize) -> Self {
        Self { best: vec![NOBODY; map_size], won: Vec::new() }
    }

    /// Best seed of an edge; None if no seed hits it.
    pub(super) fn best_of(&self, edge: u32) -> Option<SeedId> {
        self.best.get(edge as usize).copied().filter(|best| *best != NOBODY)
    }

    /// Number of edges for which the seed is the best.
    pub(super) fn won(&self, id: SeedId) -> u32 {
        self.won.get(id.index()).copied().unwrap_or(0)
    }

    /// Gives the seed all edges of its trace for which it is cheaper than the current winner. Empties the traces of
    /// seeds left with no edge. Returns true if an edge changed hands.
    pub(super) fn challenge(
        &mut self,
        corpus: &mut Corpus,
        id: SeedId,
        cost: impl Fn(&Seed) -> u64,
    ) -> bool {
        let trace = std::mem::take(&mut corpus[id].trace);
        if let Some(&last) = trace.last()
            && last as usize >= self.best.len()
        {
            self.best.resize(last as usize + 1, NOBODY);
        }
        if self.won.len() <= id.index() {
            self.won.resize(id.index() + 1, 0);
        }
        let price = cost(&corpus[id]);
        let mut changed = false;
        for &edge in &trace {
            let best = &mut self.best[edge as usize];
            if *best == id || (*best != NOBODY && cost(&corpus[*best]) <= price) {
                continue;
            }
            if *best != NOBODY {
                self.won[best.index()] -= 1;
                if self.won[best.index()] == 0 {
                    corpus[*best].trace = Box::default();
                }
            }
            *best = id;
            self.won[id.index()] += 1;
            changed = true;
        }
        if self.won[id.index()] > 0 {
            corpus[id].trace = trace;
        }
        changed
    }

    /// Winners that together cover every edge that is hit: for each edge in order its winner, unless an earlier choice
    /// hits it (AFL's greedy cover).
    pub(super) fn cover(&self, corpus: &Corpus) -> Vec<SeedId> {
        let mut covered = vec![false; self.best.len()];
        let mark = |covered: &mut Vec<bool>, id: SeedId| {
            for &edge in &corpus[id].trace {
                covered[edge as usize] = true;
            }
        };
        let mut chosen = Vec::new();
        for edge in 0..self.best.len() {
            let best = self.best[edge];
            if !covered[edge] && best != NOBODY && !corpus[best].disabled {
                mark(&mut covered, best);
                chosen.push(best);
            }
        }
        chosen
    }
}

/// Maximum cost of an owner, as a multiple of the cheapest input ever seen with the value.
const DEAREST: u64 = 2;

/// Owners of the slots of domain keys. A key has one slot, or one for each of its 32 bits.
#[derive(Debug, Default)]
pub(super) struct KeyOwners {
    /// Ordered, so that campaigns are reproducible.
    slots: BTreeMap<(u32, Slot), Claim>,
    /// Per seed: number of slots it owns.
    owned: Vec<u32>,
}

/// Owner of a slot; `cheapest` is the lowest price at which its current value was reached.
#[derive(Clone, Copy, Debug)]
struct Claim {
    owner: SeedId,
    cheapest: u64,
}

/// A seed that competes for slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant {
    pub(super) id: SeedId,
    pub(super) price: u64,
    /// True if it improved some key: it wins over seeds that are equal elsewhere.
    pub(super) ahead: bool,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Slot {
    Whole,
    Bit(u8),
}

/// Slots of a key: the whole key (`bits` 0), or one for each of these bits.
fn slots_of(key: u32, bits: u32) -> impl Iterator<Item = (u32, Slot)> {
    let whole = (bits == 0).then_some((key, Slot::Whole));
    let bits = (0..32).filter(move |bit| bits >> bit & 1 == 1);
    whole.into_iter().chain(bits.map(move |bit| (key, Slot::Bit(bit))))
}

impl KeyOwners {
    pub(super) fn is_owner(&self, id: SeedId) -> bool {
        self.owned.get(id.index()).is_some_and(|&owned| owned > 0)
    }

    /// Gives the seed the whole key (`bits` 0) or these bits of it, because it improved them.
    pub(super) fn insert(&mut self, seed: Claimant, key: u32, bits: u32) {
        for slot in slots_of(key, bits) {
            self.take(slot, Claim { owner: seed.id, cheapest: seed.price });
        }
    }

    /// Lets a seed that reaches the owners' values compete for their slots. It gets those for which it is cheaper, and,
    /// if it is ahead, whole keys for which it costs at most `DEAREST` times the cheapest: a seed that is behind in
    /// one key and equal in all others is no longer a good base. Returns true if a slot changed hands.
    pub(super) fn challenge(
        &mut self,
        seed: Claimant,
        key: u32,
        bits: u32,
        price_of: impl Fn(SeedId) -> u64,
    ) -> bool {
        let mut changed = false;
        for slot in slots_of(key, bits) {
            let Some(claim) = self.slots.get_mut(&slot) else { continue };
            claim.cheapest = claim.cheapest.min(seed.price);
            let Claim { owner, cheapest } = *claim;
            let steps_in = seed.ahead && bits == 0 && seed.price / DEAREST <= cheapest;
            if owner != seed.id && (steps_in || seed.price < price_of(owner)) {
                self.take(slot, Claim { owner: seed.id, cheapest });
                changed = true;
            }
        }
        changed
    }

    /// Owner, key and bit (0: the whole key) of every slot.
    pub(super) fn claims(&self) -> impl Iterator<Item = (SeedId, (u32, u32))> + '_ {
        let bits = |slot: &Slot| match slot {
            Slot::Whole => 0,
            Slot::Bit(bit) => 1 << bit,
        };
        self.slots.iter().map(move |((key, slot), claim)| (claim.owner, (*key, bits(slot))))
    }

    /// Key and owner of every slot, by ascending key.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u32, SeedId)> + '_ {
        self.slots.iter().map(|(&(key, _), claim)| (key, claim.owner))
    }

    fn take(&mut self, slot: (u32, Slot), claim: Claim) {
        let id = claim.owner;
        if self.owned.len() <= id.index() {
            self.owned.resize(id.index() + 1, 0);
        }
        if let Some(old) = self.slots.insert(slot, claim) {
            self.owned[old.owner.index()] -= 1;
        }
        self.owned[id.index()] += 1;
    }

    /// A small set of seeds that together own every key, chosen greedily: first the seed that owns most keys not
    /// covered yet, of equals the cheaper one. A key with several bits counts as one, as an edge with several hit
    /// counts does. Keys owned only by disabled seeds are skipped.
    pub(super) fn cover(&self, corpus: &Corpus, cost: impl Fn(&Seed) -> u64) -> Vec<SeedId> {
        let keys_of = self.keys_by_owner(corpus);
        let rank = |count: usize, id: SeedId| (count, Reverse(cost(&corpus[id])), Reverse(id));
        let mut heap: BinaryHeap<_> =
            keys_of.iter().map(|(&id, keys)| rank(keys.len(), id)).collect();
        let mut covered = Covered::default();
        let mut chosen = Vec::new();
        // Counts only decrease, so an entry whose count still holds is the greatest of all.
        while let Some((count, _, Reverse(id))) = heap.pop() {
            let left = keys_of[&id].iter().filter(|&&key| !covered.has(key)).count();
            if left == count {
                keys_of[&id].iter().for_each(|&key| covered.add(key));
                chosen.push(id);
            } else if left > 0 {
                heap.push(rank(left, id));
            }
        }
        chosen
    }

    /// Keys of each enabled owner, numbered densely in ascending order.
    fn keys_by_owner(&self, corpus: &Corpus) -> BTreeMap<SeedId, Vec<u32>> {
        let mut keys_of: BTreeMap<SeedId, Vec<u32>> = BTreeMap::new();
        let mut number = 0;
        let mut last = None;
        for (key, id) in self.slots() {
            number += u32::from(last.is_some_and(|last| last != key));
            last = Some(key);
            if !corpus[id].disabled {
                let keys = keys_of.entry(id).or_default();
                if keys.last() != Some(&number) {
                    keys.push(number);
                }
            }
        }
        keys_of
    }
}

/// Set of small numbers.
#[derive(Default)]
struct Covered(Vec<bool>);

impl Covered {
    fn has(&self, key: u32) -> bool {
        self.0.get(key as usize).copied().unwrap_or(false)
    }

    fn add(&mut self, key: u32) {
        if self.0.len() <= key as usize {
            self.0.resize(key as usize + 1, false);
        }
        self.0[key as usize] = true;
    }
}
