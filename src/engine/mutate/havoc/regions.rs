//! Changes of whole parts of an input whose lengths are known: chunks, records, labels. The lengths of the parts
//! around them follow.

use std::ops::Range;

use super::super::buffer::Buffer;
use super::super::{Rng, below, index};
use super::HavocContext;
use crate::messages::is_framing;

/// Bytes before a length that may belong to the part, such as its type.
const BEFORE: [usize; 8] = [0, 0, 0, 0, 1, 2, 4, 8];
/// The longest part that is copied, bytes.
const LONGEST: usize = 4096;

/// One change of a part; false, and nothing is changed, if it cannot be applied.
pub(super) fn change(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(part) = part(rng, bytes) else { return false };
    let len = part.len();
    let has_room = len <= context.ceiling() - bytes.len();
    match below(rng, 8) {
        0..3 if bytes.len() - len >= context.floor() => bytes.close_gap(part.start, len),
        // Twice in a row: what is around it includes the copy.
        3..5 if has_room => bytes.insert_copy(part.clone(), part.end, part.start),
        // Before another one, which may be in the middle of it.
        5.. if has_room => {
            let Some(other) = self::part(rng, bytes) else { return false };
            bytes.insert_copy(part, other.start, 0);
        }
        _ => return false,
    }
    true
}

/// A part that a length begins: the number, perhaps with bytes before it, and what it counts.
fn part(rng: &mut Rng, bytes: &Buffer) -> Option<Range<usize>> {
    let lengths = bytes.lengths();
    let length = lengths.get(index(rng, lengths.len()))?;
    let end = length.end(bytes);
    // An offset counts from the start.
    let is_part = !is_framing(length)
        && length.from >= length.at
        && end > length.at + length.width
        && end <= bytes.len();
    let before = BEFORE[below(rng, BEFORE.len() as u32) as usize];
    let part = length.at.saturating_sub(before)..end;
    (is_part && part.len() <= LONGEST).then_some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng as _;

    use super::super::tests as havoc_tests;
    use super::*;
    use crate::corpus::Length;
    use crate::mutate::dictionary::Dictionary;

    /// A byte that counts all others, and records of a length and letters.
    fn records(words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0];
        for word in words {
            bytes.push(word.len() as u8);
            bytes.extend_from_slice(word);
        }
        bytes[0] = bytes.len() as u8 - 1;
        bytes
    }

    fn words(bytes: &[u8]) -> Option<Vec<&[u8]>> {
        let (size, mut rest) = bytes.split_first()?;
        let mut words = Vec::new();
        while let [len, left @ ..] = rest {
            words.push(left.get(..usize::from(*len))?);
            rest = &left[usize::from(*len)..];
        }
        (usize::from(*size) == bytes.len() - 1).then_some(words)
    }

    fn lengths(words: &[&[u8]]) -> Vec<Length> {
        let mut at = 1;
        let mut lengths = vec![Length { at: 0, width: 1, is_big: true, from: 1 }];
        for word in words {
            lengths.push(Length { at, width: 1, is_big: true, from: at + 1 });
            at += 1 + word.len();
        }
        lengths
    }

    fn context(dictionary: &Dictionary) -> HavocContext<'_> {
        HavocContext { max_len: 100, ..havoc_tests::context(dictionary) }
    }

    #[test]
    fn records_are_doubled_moved_and_deleted() {
        let all: [&[u8]; 3] = [b"one", b"fifth", b"to"];
        let dictionary = Dictionary::default();
        let mut rng = crate::mutate::Rng::seed_from_u64(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let mut bytes = Buffer::new(&records(&all), &lengths(&all));
            if change(&mut rng, &mut bytes, &context(&dictionary))
                && let Some(words) = words(&bytes)
            {
                seen.insert(words.concat());
            }
        }
        for wanted in ["fifthto", "oneto", "oneonefifthto", "onefifthonefifthto"] {
            assert!(seen.contains(wanted.as_bytes()), "{wanted}");
        }
    }

    proptest! {
        #[test]
        fn any_input_stays_within_the_limits(
            bytes in proptest::collection::vec(any::<u8>(), 8..80),
            lengths in proptest::collection::vec((0usize..80, 0u32..4, any::<bool>(), 0usize..90), 1..6),
            seed: u64,
        ) {
            let lengths: Vec<Length> = lengths
                .into_iter()
                .map(|(at, power, is_big, from)| Length { at, width: 1 << power, is_big, from })
                .filter(|length| length.at + length.width <= bytes.len())
                .collect();
            let dictionary = Dictionary::default();
            let mut rng = crate::mutate::Rng::seed_from_u64(seed);
            let mut buffer = Buffer::new(&bytes, &lengths);
            for _ in 0..50 {
                let before = buffer.to_vec();
                if !change(&mut rng, &mut buffer, &context(&dictionary)) {
                    prop_assert_eq!(&before[..], &buffer[..]);
                }
                prop_assert!((1..=100).contains(&buffer.len()));
            }
        }
    }
}
