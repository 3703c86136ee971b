//! Set cover: a few inputs that together cover what all of them cover.
//!
//! AFL's greedy algorithm: takes the rarest item not covered yet, and keeps the best input that shows it with all its
//! other items.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::coverage;
use crate::domain::{Aggregates, Domain, DsfView};

/// Marks items that belong to a domain's key.
const KEY: u64 = 1 << 63;

/// Coverage of an input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Trace {
    /// Edges: index times 8, plus the hit-count class (0 to 7).
    pub edges: Vec<u32>,
    /// Keys that left their initial value, with their values.
    pub keys: Vec<(u32, u32)>,
}

impl Trace {
    #[must_use]
    pub fn of(edges: &[u8], dsf: &DsfView<'_>) -> Self {
        let hit = (0u32..).zip(edges).filter(|(_, count)| **count != 0);
        let class = |count: u8| u32::from(coverage::class_number(count) - 1);
        let edges = hit.map(|(index, count)| index << 3 | class(*count)).collect();
        let mut keys = Vec::new();
        dsf.for_each_changed(|_, key, value| keys.push((key, value)));
        keys.sort_unstable();
        keys.dedup();
        Self { edges, keys }
    }

    /// Builds counters with the same classes; an edge beyond `size` enlarges the map.
    #[must_use]
    pub fn counters(&self, size: usize) -> Vec<u8> {
        let most = self.edges.iter().map(|tuple| (tuple >> 3) as usize + 1).max();
        let mut counters = vec![0; size.max(most.unwrap_or(0))];
        for tuple in &self.edges {
            counters[(tuple >> 3) as usize] = LEAST_COUNTS[(tuple & 7) as usize];
        }
        counters
    }
}

/// The smallest count of each class.
const LEAST_COUNTS: [u8; 8] = [1, 2, 3, 4, 8, 16, 32, 128];

/// The kept inputs, and the numbers of items to cover.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Cover {
    /// Positions in `traces`, ascending.
    pub kept: Vec<usize>,
    /// Number of edges, counted per class.
    pub tuples: usize,
    /// Number of domain keys, or of their bits for bitwise reducers.
    pub keys: usize,
    /// Number of edges in any class.
    pub edges: usize,
    /// The parts of `tuples` and `edges` that known traces cover.
    pub known_tuples: usize,
    pub known_edges: usize,
}

/// Computes the cover. `traces` has the best input first: it keeps items that several traces show. A key is covered by
/// a value that reaches the best of all traces. The first `known` traces count as covered and are never kept.
#[must_use]
pub fn cover(traces: &[&Trace], domains: &[Domain], edges_only: bool, known: usize) -> Cover {
    let mut aggregates = Aggregates::new(domains);
    for (key, value) in traces.iter().flat_map(|trace| &trace.keys) {
        aggregates.merge_value(*key, *value);
    }
    let items: Vec<Vec<u64>> =
        traces.iter().map(|trace| items(trace, &aggregates, edges_only)).collect();
    let mut found: HashMap<u64, Item> = HashMap::new();
    for (owner, items) in items.iter().enumerate() {
        for item in items {
            found.entry(*item).or_insert(Item { owner, count: 0, covered: owner < known });
        }
    }
    // Ignores traces that are first in nothing: whether they were recorded at all depends on chance.
    let owners: BTreeSet<usize> = found.values().map(|item| item.owner).collect();
    for item in owners.iter().flat_map(|owner| &items[*owner]) {
        if let Some(item) = found.get_mut(item) {
            item.count += 1;
        }
    }
    let mut rarest: Vec<(u32, u64)> =
        found.iter().map(|(item, seen)| (seen.count, *item)).collect();
    rarest.sort_unstable();
    let mut kept = Vec::new();
    for (_, item) in &rarest {
        let Item { owner, covered: false, .. } = found[item] else { continue };
        kept.push(owner);
        for item in &items[owner] {
            if let Some(item) = found.get_mut(item) {
                item.covered = true;
            }
        }
    }
    kept.sort_unstable();
    let keys = rarest.iter().filter(|(_, item)| item & KEY != 0).count();
    let tuples = found.iter().filter(|(item, _)| **item & KEY == 0);
    let known_tuples: Vec<u64> =
        tuples.clone().filter(|(_, seen)| seen.owner < known).map(|(item, _)| *item).collect();
    Cover {
        kept,
        tuples: rarest.len() - keys,
        keys,
        edges: edges(tuples.map(|(item, _)| *item)),
        known_tuples: known_tuples.len(),
        known_edges: edges(known_tuples.into_iter()),
    }
}

fn edges(tuples: impl Iterator<Item = u64>) -> usize {
    tuples.map(|tuple| tuple >> 3).collect::<HashSet<_>>().len()
}

/// One item to cover.
struct Item {
    /// First trace that shows it.
    owner: usize,
    count: u32,
    covered: bool,
}

fn items(trace: &Trace, aggregates: &Aggregates, edges_only: bool) -> Vec<u64> {
    let edge = |tuple: &u32| u64::from(if edges_only { tuple & !7 } else { *tuple });
    let mut items: Vec<u64> = trace.edges.iter().map(edge).collect();
    for (key, value) in &trace.keys {
        let parts = aggregates.parts(*key, *value).into_iter();
        items.extend(parts.map(|part| KEY | u64::from(*key) << 32 | u64::from(part)));
    }
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Reducer;

    fn trace(edges: &[u32], keys: &[(u32, u32)]) -> Trace {
        Trace { edges: edges.to_vec(), keys: keys.to_vec() }
    }

    fn domains() -> Vec<Domain> {
        let domain = |start, reducer| Domain {
            name: String::new(),
            start,
            size: 4,
            reducer,
            initial: if reducer == Reducer::Min { u32::MAX } else { 0 },
        };
        vec![domain(0, Reducer::Max), domain(4, Reducer::Min), domain(8, Reducer::BitUnion)]
    }

    fn kept(traces: &[Trace], edges_only: bool) -> Vec<usize> {
        cover(&traces.iter().collect::<Vec<_>>(), &domains(), edges_only, 0).kept
    }

    #[test]
    fn a_run_becomes_edges_with_classes_and_keys() {
        let domains = domains();
        let mut values = vec![0; 12];
        values[4..8].fill(u32::MAX);
        (values[5], values[1]) = (9, 7);
        let dsf = DsfView { domains: &domains, values: &values, touched: Some(&[5, 1, 5]) };
        let seen = Trace::of(&[0, 1, 0, 200], &dsf);
        assert_eq!(seen, trace(&[8, 31], &[(1, 7), (5, 9)]));
        assert_eq!(seen.counters(6), [0, 1, 0, 128, 0, 0]);
        for count in 1..=u8::MAX {
            let seen = Trace::of(&[count], &dsf);
            assert_eq!(Trace::of(&seen.counters(1), &dsf), seen, "{count}");
        }
    }

    #[test]
    fn the_rarest_comes_first_and_brings_the_rest_with_it() {
        let traces = [trace(&[8, 16], &[]), trace(&[8, 24], &[]), trace(&[8, 16, 24, 32], &[])];
        assert_eq!(kept(&traces, false), [2]);
        assert_eq!(kept(&traces[..2], false), [0, 1]);
    }

    #[test]
    fn hit_counts_matter_by_default() {
        let traces = [trace(&[8], &[]), trace(&[9], &[])];
        assert_eq!(kept(&traces, false), [0, 1]);
        assert_eq!(kept(&traces, true), [0]);
    }

    #[test]
    fn keys_are_kept_by_the_first_that_reaches_the_best() {
        let maximum = [trace(&[8], &[(0, 5)]), trace(&[8], &[(0, 7)]), trace(&[8], &[(0, 7)])];
        assert_eq!(kept(&maximum, false), [1]);
        let minimum = [trace(&[8], &[(4, 5)]), trace(&[8], &[(4, 3)]), trace(&[8], &[(4, 4)])];
        assert_eq!(kept(&minimum, false), [1]);
        let bits =
            [trace(&[8], &[(8, 0b011)]), trace(&[8], &[(8, 0b001)]), trace(&[8], &[(8, 0b100)])];
        assert_eq!(kept(&bits, false), [0, 2]);
        let all = cover(&bits.iter().collect::<Vec<_>>(), &domains(), false, 0);
        assert_eq!((all.tuples, all.keys), (1, 3));
    }

    #[test]
    fn known_traces_count_first_and_are_not_chosen_again() {
        let traces = [
            trace(&[8, 16], &[(0, 5)]),
            trace(&[8], &[(0, 5)]),
            trace(&[16, 17, 24], &[]),
            trace(&[8], &[(0, 6)]),
        ];
        let all = cover(&traces.iter().collect::<Vec<_>>(), &domains(), false, 2);
        assert_eq!(all.kept, [2, 3]);
        assert_eq!([all.known_tuples, all.tuples, all.known_edges, all.edges], [2, 4, 2, 3]);
    }

    fn any_trace() -> impl Strategy<Value = Trace> {
        let edges = proptest::collection::btree_set(0u32..60, 0..12);
        let keys = proptest::collection::btree_map(0u32..12, 1u32..6, 0..4);
        (edges, keys).prop_map(|(edges, keys)| Trace {
            edges: edges.into_iter().collect(),
            keys: keys.into_iter().collect(),
        })
    }

    proptest! {
        #[test]
        fn nothing_that_somebody_shows_is_lost(
            traces in proptest::collection::vec(any_trace(), 0..20),
            edges_only: bool,
        ) {
            let all: Vec<&Trace> = traces.iter().collect();
            let result = cover(&all, &domains(), edges_only, 0);
            // Who brings nothing first changes nothing.
            let twice: Vec<&Trace> = all.iter().flat_map(|trace| [*trace, *trace]).collect();
            let kept: Vec<usize> =
                cover(&twice, &domains(), edges_only, 0).kept.iter().map(|at| at / 2).collect();
            prop_assert_eq!(&kept, &result.kept);
            let some: Vec<&Trace> = result.kept.iter().map(|at| all[*at]).collect();
            let again = cover(&some, &domains(), edges_only, 0);
            prop_assert_eq!((again.tuples, again.keys), (result.tuples, result.keys));
            let aggregates = |traces: &[&Trace]| {
                let mut aggregates = Aggregates::new(&domains());
                for (key, value) in traces.iter().flat_map(|trace| &trace.keys) {
                    aggregates.merge_value(*key, *value);
                }
                aggregates.values().to_vec()
            };
            prop_assert_eq!(aggregates(&some), aggregates(&all));
        }
    }
}
