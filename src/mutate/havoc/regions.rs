//! Changes whole parts of an input with known lengths: chunks, records, labels. Updates the lengths of the enclosing
//! parts.

use std::ops::Range;

use rand_core::Rng as _;

use super::super::buffer::Buffer;
use super::super::{Rng, below, index};
use super::{HavocContext, operators};
use crate::length::Length;
use crate::messages::is_framing;

/// Numbers of bytes before a length that may belong to the part, such as its type; one is drawn.
const BEFORE: [usize; 8] = [0, 0, 0, 0, 1, 2, 4, 8];
/// Sizes of a type, bytes.
const TAGS: [usize; 3] = [1, 2, 4];
const LONGEST_TAG: usize = 8;
/// Maximum number of bytes added to the end of a part at once.
const MOST_ADDED: usize = 64;
/// Maximum length of a changed part, bytes.
const LONGEST: usize = 4096;

/// Applies one change of a part. Returns false and changes nothing if that is not possible.
pub(super) fn change(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    match below(rng, 12) {
        0..3 => delete(rng, bytes, context),
        3..5 => double(rng, bytes, context),
        5..8 => copy(rng, bytes, context).is_some(),
        8 => retag_one(rng, bytes, context),
        9 => resize_one(rng, bytes, context),
        _ => add(rng, bytes, context),
    }
}

fn delete(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some((part, _)) = part(rng, bytes) else { return false };
    let is_possible = bytes.len() - part.len() >= context.floor();
    if is_possible {
        bytes.close_gap(part.start, part.len());
    }
    is_possible
}

/// Duplicates a part directly after itself; enclosing parts include the copy.
fn double(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some((part, _)) = part(rng, bytes) else { return false };
    let has_room = part.len() <= context.ceiling() - bytes.len();
    if has_room {
        bytes.insert_copy(part.clone(), part.end, part.start);
    }
    has_room
}

/// Copies a part before another one, which may be inside of it. Returns the length of the copy.
fn copy(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> Option<Length> {
    let (part, length) = part(rng, bytes)?;
    let (other, _) = self::part(rng, bytes)?;
    if part.len() > context.ceiling() - bytes.len() {
        return None;
    }
    let pos = other.start;
    bytes.insert_copy(part.clone(), pos, 0);
    let to = |place: usize| place - part.start + pos;
    Some(Length { at: to(length.at), from: to(length.from), ..length })
}

/// Adds a copy of a part with another type and possibly another size.
fn add(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(added) = copy(rng, bytes, context) else { return false };
    retag(rng, bytes, context, added);
    if below(rng, 2) == 0 && bytes.lengths().contains(&added) {
        resize(rng, bytes, context, added);
    }
    true
}

fn retag_one(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some((_, length)) = part(rng, bytes) else { return false };
    retag(rng, bytes, context, length)
}

/// Gives a part another type, before or after its length: a token, the type of another part, or a random byte.
fn retag(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>, length: Length) -> bool {
    let is_before = below(rng, 3) > 0;
    let place = |of: Length, len: usize| match is_before {
        true => of.at.checked_sub(len),
        false => Some(of.at + of.width),
    };
    match below(rng, 4) {
        0..2 => {
            let words = context.dictionary;
            let word = words.draw(rng);
            let word = word.or_else(|| operators::token(rng, &words.auto));
            let Some(word) = word else { return false };
            if word.len() > LONGEST_TAG {
                return false;
            }
            let Some(at) = place(length, word.len()) else { return false };
            let Some(tag) = bytes.get_mut(at..at + word.len()) else { return false };
            tag.copy_from_slice(word);
        }
        2 => {
            let len = TAGS[index(rng, TAGS.len())];
            let Some((_, other)) = part(rng, bytes) else { return false };
            let (Some(from), Some(at)) = (place(other, len), place(length, len)) else {
                return false;
            };
            if from.max(at) + len > bytes.len() {
                return false;
            }
            bytes.copy_within(from..from + len, at);
        }
        _ => {
            let Some(at) = place(length, 1) else { return false };
            let Some(tag) = bytes.get_mut(at) else { return false };
            *tag = rng.next_u32() as u8;
        }
    }
    true
}

fn resize_one(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some((_, length)) = part(rng, bytes) else { return false };
    resize(rng, bytes, context, length)
}

/// Adds or removes bytes at the end of a part, possibly all.
fn resize(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>, length: Length) -> bool {
    let end = length.end(bytes);
    if end > bytes.len() || end < length.from {
        return false;
    }
    let len = end - length.from;
    if below(rng, 2) == 0 {
        let most = len.min(bytes.len() - context.floor());
        if most == 0 {
            return false;
        }
        let removed = if below(rng, 4) == 0 { most } else { 1 + index(rng, most) };
        bytes.close_gap(end - removed, removed);
        return true;
    }
    let room = (context.ceiling() - bytes.len()).min(LONGEST);
    if room == 0 {
        return false;
    }
    let added = 1 + index(rng, room.min(MOST_ADDED));
    bytes.open_gap_within(end, added, length.from);
    match context.donor {
        Some(donor) if donor.len() >= added && below(rng, 2) == 0 => {
            let from = index(rng, donor.len() - added + 1);
            bytes[end..end + added].copy_from_slice(&donor[from..from + added]);
        }
        _ => {
            let byte = if below(rng, 2) == 0 { 0 } else { rng.next_u32() as u8 };
            bytes[end..end + added].fill(byte);
        }
    }
    true
}

/// A random part: a length, possibly with bytes before it, and the bytes that it counts.
fn part(rng: &mut Rng, bytes: &Buffer) -> Option<(Range<usize>, Length)> {
    let lengths = bytes.lengths();
    if lengths.is_empty() {
        return None;
    }
    let length = lengths[index(rng, lengths.len())];
    let end = length.end(bytes);
    // An offset counts from the start.
    let is_part = !is_framing(&length)
        && length.from >= length.at
        && end > length.at + length.width
        && end <= bytes.len();
    let before = BEFORE[below(rng, BEFORE.len() as u32) as usize];
    let part = length.at.saturating_sub(before)..end;
    (is_part && part.len() <= LONGEST).then_some((part, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng as _;

    use super::super::tests as havoc_tests;
    use super::*;
    use crate::dictionary::Dictionary;
    use crate::length::Length;

    /// A byte with the length of the rest, then records of a length and letters.
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
        let mut rng = crate::Rng::seed_from_u64(1);
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
            let mut rng = crate::Rng::seed_from_u64(seed);
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
