//! The edge map: hit-count classes, virgin maps, novelty.
//!
//! A map is one counter byte per edge. Counters are reduced to eight classes (Zalewski, AFL
//! technical details); a virgin map holds, per edge, the classes not yet seen (0xff = never hit).
//! Free functions over slices: no I/O, no clock. Zero blocks are skipped.

pub mod flow;
pub mod frontier;

/// Number of counters compared at once, with vector instructions.
const BLOCK: usize = 64;

/// Hit counts 1, 2, 3, 4–7, 8–15, 16–31, 32–127, 128–255 as one bit each.
const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut count = 1;
    while count < 256 {
        table[count] = match count {
            1 => 1,
            2 => 2,
            3 => 4,
            4..=7 => 8,
            8..=15 => 16,
            16..=31 => 32,
            32..=127 => 64,
            _ => 128,
        };
        count += 1;
    }
    table
}

/// Novelty of a run with respect to a virgin map.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Novelty {
    #[default]
    None,
    /// A known edge in a new hit-count class.
    Count,
    /// An edge never hit before.
    Edge,
}

/// Reduction of counters before comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Classes {
    /// Eight hit-count classes, for ordinary runs.
    Counts,
    /// Hit or not hit, for crashes and hangs: their counts mean little.
    Binary,
}

/// Number of a counter's class, 1 to 8, as AFL's tools print it; 0 for an edge that was not hit.
#[must_use]
pub fn class_number(count: u8) -> u8 {
    match CLASSES[usize::from(count)] {
        0 => 0,
        class => class.ilog2() as u8 + 1,
    }
}

/// Reduces a counter to one bit of a virgin map.
#[must_use]
pub fn classify_one(count: u8, classes: Classes) -> u8 {
    match classes {
        Classes::Counts => CLASSES[usize::from(count)],
        Classes::Binary => u8::from(count != 0),
    }
}

/// Classifies eight counters at once.
#[must_use]
pub(crate) fn classify(word: u64) -> u64 {
    each_byte(word, |count| CLASSES[usize::from(count)])
}

/// A loop: `array::map` is not inlined in every build.
#[inline]
fn each_byte(word: u64, change: impl Fn(u8) -> u8) -> u64 {
    let mut bytes = word.to_le_bytes();
    bytes.iter_mut().for_each(|byte| *byte = change(*byte));
    u64::from_le_bytes(bytes)
}

fn reduce(word: u64, classes: Classes) -> u64 {
    match classes {
        Classes::Counts => classify(word),
        Classes::Binary => each_byte(word, |count| u8::from(count != 0)),
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    chunks
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
        .chain((!rest.is_empty()).then(|| u64::from_le_bytes(last)))
}

/// Blocks of a map that are not all zero, with their offsets.
fn hit_blocks(edges: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let blocks = edges.chunks(BLOCK).enumerate().map(|(index, block)| (BLOCK * index, block));
    blocks.filter(|(_, block)| block.iter().fold(0, |all, count| all | count) != 0)
}

/// True if a run has classes that `virgin` has not seen. Read-only, because every ordinary run pays for it; most of a
/// map is zero.
#[must_use]
pub fn is_new(edges: &[u8], virgin: &[u8], classes: Classes) -> bool {
    assert_eq!(edges.len(), virgin.len(), "map and virgin map have one size");
    let new_in = |edges, virgin| {
        words(edges)
            .zip(words(virgin))
            .any(|(counts, virgin)| counts != 0 && reduce(counts, classes) & virgin != 0)
    };
    let (blocks, rest) = edges.as_chunks::<BLOCK>();
    let (virgin, virgin_rest) = virgin.as_chunks::<BLOCK>();
    let hit = |block: &[u8; BLOCK]| block.iter().fold(0, |all, count| all | count) != 0;
    let mut hits = blocks.iter().zip(virgin).filter(|(block, _)| hit(block));
    hits.any(|(block, virgin)| new_in(block, virgin)) || new_in(rest, virgin_rest)
}

/// Removes the classes of a run from `virgin` and returns the novelty.
pub fn merge(edges: &[u8], virgin: &mut [u8], classes: Classes) -> Novelty {
    assert_eq!(edges.len(), virgin.len(), "map and virgin map have one size");
    let mut novelty = Novelty::None;
    for (start, block) in hit_blocks(edges) {
        let counts = block.iter().zip(&mut virgin[start..]);
        for (count, virgin) in counts.filter(|(count, _)| **count != 0) {
            let class = classify_one(*count, classes);
            if class & *virgin != 0 {
                novelty = novelty.max(if *virgin == 0xff { Novelty::Edge } else { Novelty::Count });
                *virgin &= !class;
            }
        }
    }
    novelty
}

/// Indices of the edges hit, ascending.
#[must_use]
pub fn trace(edges: &[u8]) -> Box<[u32]> {
    let hits = hit_blocks(edges).flat_map(|(start, block)| {
        (start as u32..).zip(block).filter(|(_, count)| **count != 0).map(|(index, _)| index)
    });
    hits.collect()
}

/// Adds the indices of the counters that differ between two maps of one size.
pub fn add_differences(one: &[u8], other: &[u8], differing: &mut Vec<u32>) {
    let blocks = one.chunks(BLOCK).zip(other.chunks(BLOCK)).enumerate();
    for (index, (one, other)) in blocks.filter(|(_, (one, other))| one != other) {
        let counters = ((BLOCK * index) as u32..).zip(one.iter().zip(other));
        differing.extend(counters.filter(|(_, (a, b))| a != b).map(|(index, _)| index));
    }
}

/// Number of edges hit.
#[must_use]
pub fn count(edges: &[u8]) -> usize {
    words(edges).map(|word| if word == 0 { 0 } else { nonzero_bytes(word) }).sum()
}

fn nonzero_bytes(word: u64) -> usize {
    word.to_le_bytes().iter().filter(|byte| **byte != 0).count()
}

/// Hash of the classified map: equal for runs that AFL calls the same path.
#[must_use]
pub fn path_hash(edges: &[u8]) -> u64 {
    map_hash(edges, Classes::Counts)
}

/// Hash of the map reduced to `classes`.
#[must_use]
pub fn map_hash(edges: &[u8], classes: Classes) -> u64 {
    let mut hash = 0;
    for (index, word) in words(edges).enumerate() {
        if word != 0 {
            hash = mix(hash ^ reduce(word, classes) ^ (index as u64).rotate_left(40));
        }
    }
    hash
}

/// Scrambles 64 bits (the finalizer of `SplitMix64`; Steele, Lea, Flood, OOPSLA 2014).
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Number of edges seen in `virgin`, and of their classes.
#[must_use]
pub fn found(virgin: &[u8]) -> (u64, u64) {
    virgin
        .iter()
        .filter(|byte| **byte != 0xff)
        .fold((0, 0), |(edges, bits), byte| (edges + 1, bits + u64::from(byte.count_zeros())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_hit_is_an_edge_then_a_count_then_nothing() {
        let mut virgin = vec![0xff; 10];
        let mut edges = vec![0; 10];
        edges[9] = 1;
        assert!(is_new(&edges, &virgin, Classes::Counts));
        assert_eq!(merge(&edges, &mut virgin, Classes::Counts), Novelty::Edge);
        assert_eq!(merge(&edges, &mut virgin, Classes::Counts), Novelty::None);
        edges[9] = 2;
        assert_eq!(merge(&edges, &mut virgin, Classes::Counts), Novelty::Count);
        assert!(!is_new(&edges, &virgin, Classes::Counts));
        assert_eq!(found(&virgin), (1, 2));
    }

    #[test]
    fn binary_classes_ignore_counts() {
        let mut virgin = vec![0xff; 8];
        assert_eq!(merge(&[0, 9, 0, 0, 0, 0, 0, 0], &mut virgin, Classes::Binary), Novelty::Edge);
        assert!(!is_new(&[0, 200, 0, 0, 0, 0, 0, 0], &virgin, Classes::Binary));
    }

    #[test]
    fn class_borders_are_those_of_afl() {
        let borders = [(1, 1), (2, 2), (3, 4), (4, 8), (7, 8), (8, 16), (15, 16), (16, 32)];
        for (count, class) in borders.into_iter().chain([(31, 32), (32, 64), (127, 64), (128, 128)])
        {
            assert_eq!(classify(count), class);
        }
        let numbers = [0, 1, 2, 3, 4, 7, 8, 16, 32, 128, 255].map(class_number);
        assert_eq!(numbers, [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]);
    }

    proptest! {
        #[test]
        fn is_new_agrees_with_merge(
            edges in proptest::collection::vec(0u8..4, 0..200),
            seen in proptest::collection::vec(0u8..4, 200),
        ) {
            let mut virgin = vec![0xff; edges.len()];
            merge(&seen[..edges.len()], &mut virgin, Classes::Counts);
            let new = is_new(&edges, &virgin, Classes::Counts);
            prop_assert_eq!(new, merge(&edges, &mut virgin, Classes::Counts) != Novelty::None);
            prop_assert!(!is_new(&edges, &virgin, Classes::Counts));
        }

        #[test]
        fn count_and_trace_agree(edges in proptest::collection::vec(0u8..3, 0..70)) {
            prop_assert_eq!(count(&edges), trace(&edges).len());
        }

        #[test]
        fn path_hash_depends_on_classes_only(edges in proptest::collection::vec(0u8..9, 1..40)) {
            let classified: Vec<u8> = edges.iter().map(|n| if *n == 5 { 6 } else { *n }).collect();
            prop_assert_eq!(path_hash(&edges), path_hash(&classified));
        }
    }
}
