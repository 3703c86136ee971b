//! Changes whole words of text: languages are parsed word by word, and most changes of single bytes fail the first
//! check of the parser.
//!
//! A word is a run of letters, digits and underscores, or any other single character, with the blanks after it.
//! Nothing is parsed in advance: a word is located from a position inside it.
//!
//! Two of five changes of a candidate replace, insert, delete or exchange words, with words of the seed, of another
//! seed or of the dictionary. Only some parsers benefit, so a bandit draws for each batch of havoc on a text whether
//! to change words (`TextUnit`).

use rand_core::Rng as _;

use super::super::buffer::Buffer;
use super::super::{Rng, below, index};
use super::HavocContext;

/// Maximum length of a word, bytes: bounds the cost of a change of a long input.
const LONGEST_WORD: usize = 64;
/// Maximum number of words in a block; 1, 2, 3 … words have odds of 1/2, 1/4, 1/8 …
const MOST_WORDS: u32 = 8;
/// Longest block in bytes.
const LONGEST_BLOCK: usize = 512;

/// Applies one change of words. Returns false and changes nothing if that is not possible.
pub(super) fn change(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    match below(rng, 20) {
        0..8 => replace(rng, bytes, context),
        8..14 => insert(rng, bytes, context),
        14..17 => delete(rng, bytes, context),
        _ => exchange(rng, bytes),
    }
}

/// Replaces a block of words with another one.
fn replace(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let (from, to) = words(rng, bytes);
    let mut block = Block::default();
    if !source(rng, bytes, context, &mut block) {
        return false;
    }
    block.part_from(bytes.get(from.wrapping_sub(1)), bytes.get(to));
    let (old, new) = (to - from, block.bytes().len());
    let length = bytes.len() - old + new;
    if length > context.ceiling() || length < context.floor() {
        return false;
    }
    if new > old {
        bytes.open_gap(to, new - old);
    } else {
        bytes.close_gap(from, old - new);
    }
    bytes[from..from + new].copy_from_slice(block.bytes());
    true
}

/// Inserts a block of words between two words.
fn insert(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let mut block = Block::default();
    if !source(rng, bytes, context, &mut block) {
        return false;
    }
    let (start, end) = words(rng, bytes);
    let at = if below(rng, 2) == 0 { start } else { end };
    block.part_from(bytes.get(at.wrapping_sub(1)), bytes.get(at));
    let new = block.bytes().len();
    if new > context.ceiling() - bytes.len() {
        return false;
    }
    bytes.open_gap(at, new);
    bytes[at..at + new].copy_from_slice(block.bytes());
    true
}

fn delete(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let (from, to) = words(rng, bytes);
    if bytes.len() - (to - from) < context.floor() {
        return false;
    }
    bytes.close_gap(from, to - from);
    true
}

/// Exchanges two blocks of words.
fn exchange(rng: &mut Rng, bytes: &mut [u8]) -> bool {
    let (one, other) = (words(rng, bytes), words(rng, bytes));
    let (first, second) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    if first.1 > second.0 {
        return false;
    }
    // Rotating the whole region moves the second block to the front; rotating the rest moves the first one to the
    // back.
    let (left, right) = (first.1 - first.0, second.1 - second.0);
    let region = &mut bytes[first.0..second.1];
    region.rotate_right(right);
    region[right..].rotate_left(left);
    true
}

/// Bytes to insert, on the stack to avoid allocation.
struct Block {
    bytes: [u8; LONGEST_BLOCK + 2],
    start: usize,
    end: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { bytes: [0; LONGEST_BLOCK + 2], start: 1, end: 1 }
    }
}

impl Block {
    fn take(&mut self, from: &[u8]) -> bool {
        let length = from.len().min(LONGEST_BLOCK);
        self.bytes[1..=length].copy_from_slice(&from[..length]);
        self.end = 1 + length;
        length > 0
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Adds a blank at an end that would form one word with its neighbour.
    fn part_from(&mut self, before: Option<&u8>, after: Option<&u8>) {
        let joins = |a: Option<&u8>, b: Option<&u8>| {
            a.zip(b).is_some_and(|(a, b)| is_letter(*a) && is_letter(*b))
        };
        let (first, last) = (self.bytes().first().copied(), self.bytes().last().copied());
        if joins(before, first.as_ref()) {
            self.start = 0;
            self.bytes[0] = b' ';
        }
        if joins(last.as_ref(), after) {
            self.bytes[self.end] = b' ';
            self.end += 1;
        }
    }
}

/// Fills `block` with words from the dictionary, from another seed or from the input itself.
fn source(rng: &mut Rng, bytes: &[u8], context: &HavocContext<'_>, block: &mut Block) -> bool {
    let token = match below(rng, 4) {
        0 => context.dictionary.draw(rng),
        _ => None,
    };
    if let Some(token) = token {
        return block.take(token);
    }
    let donor = context.donor.filter(|donor| !donor.is_empty() && below(rng, 2) == 0);
    let from = donor.unwrap_or(bytes);
    let (start, end) = words(rng, from);
    block.take(&from[start..end])
}

/// Range of a random block of words. The input must not be empty.
fn words(rng: &mut Rng, bytes: &[u8]) -> (usize, usize) {
    let start = start_of_word(bytes, index(rng, bytes.len()));
    let count = 1 + (rng.next_u32() | 1 << (MOST_WORDS - 1)).trailing_zeros();
    let limit = bytes.len().min(start + LONGEST_BLOCK);
    let mut end = start;
    for _ in 0..count {
        end = end_of_word(bytes, end, limit);
    }
    (start, end)
}

fn start_of_word(bytes: &[u8], place: usize) -> usize {
    let before = &bytes[place.saturating_sub(LONGEST_WORD)..=place];
    // A blank belongs to the word before it.
    let blanks = before.iter().rev().take_while(|byte| is_blank(**byte)).count();
    let last = (before.len() - 1).saturating_sub(blanks);
    let letters = before[..=last].iter().rev().take_while(|byte| is_letter(**byte)).count();
    place + 1 - before.len() + last - letters.saturating_sub(1)
}

/// End of the word that begins at `start`, with its blanks. Equals `start` only at the limit.
fn end_of_word(bytes: &[u8], start: usize, limit: usize) -> usize {
    let rest = &bytes[start..limit.min(start + LONGEST_WORD)];
    let letters = rest.iter().take_while(|byte| is_letter(**byte)).count();
    let word = letters.max(1).min(rest.len());
    start + word + rest[word..].iter().take_while(|byte| is_blank(**byte)).count()
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Class {
    Letter,
    Blank,
    Other,
}

/// Class of each byte: a table, because many changes of text search for words.
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | 0x80.. => Class::Letter,
            b' ' | b'\t' | b'\r' | b'\n' => Class::Blank,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

fn is_letter(byte: u8) -> bool {
    CLASSES[usize::from(byte)] == Class::Letter
}

fn is_blank(byte: u8) -> bool {
    CLASSES[usize::from(byte)] == Class::Blank
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use rand_core::SeedableRng;

    use super::*;
    use crate::Rng;
    use crate::dictionary::{Dictionary, Token};

    const TEXT: &[u8] = b"SELECT a_1, 'x' FROM t\nWHERE  a=2;";

    fn context<'a>(dictionary: &'a Dictionary, donor: Option<&'a [u8]>) -> HavocContext<'a> {
        HavocContext {
            dictionary,
            donor,
            min_len: 1,
            max_len: 100,
            long_blocks: 1,
            stack_power: 4,
            text: true,
            messages: false,
            words: true,
            exploit: false,
            gentle: false,
        }
    }

    fn split(text: &[u8]) -> Vec<&[u8]> {
        let (mut at, mut parts) = (0, vec![]);
        while at < text.len() {
            let end = end_of_word(text, at, text.len());
            parts.push(&text[at..end]);
            at = end;
        }
        parts
    }

    #[test]
    fn words_keep_their_blanks() {
        let expected: [&[u8]; 14] = [
            b"SELECT ", b"a_1", b", ", b"'", b"x", b"' ", b"FROM ", b"t\n", b"WHERE  ", b"a", b"=",
            b"2", b";", b"",
        ];
        assert_eq!(split(TEXT), expected[..13]);
        for place in 0..TEXT.len() {
            let start = start_of_word(TEXT, place);
            let end = end_of_word(TEXT, start, TEXT.len());
            assert!(
                (start..end).contains(&place) && split(TEXT).contains(&&TEXT[start..end]),
                "{place}"
            );
        }
    }

    #[test]
    fn what_is_put_in_are_whole_words() {
        let mut dictionary = Dictionary::default();
        dictionary.add_user(Token::new(b"HAVING"));
        let context = context(&dictionary, Some(b"ORDER BY b"));
        let known: BTreeSet<&[u8]> =
            split(TEXT).into_iter().chain(split(b"ORDER BY b")).map(<[u8]>::trim_ascii).collect();
        let mut rng = Rng::seed_from_u64(3);
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            let mut bytes = Buffer::new(TEXT, &[]);
            let put_in = if rng.next_u32() % 2 == 0 { insert } else { replace };
            if put_in(&mut rng, &mut bytes, &context) {
                for word in split(&bytes) {
                    let word = word.trim_ascii();
                    assert!(
                        word.is_empty() || word == b"HAVING" || known.contains(word),
                        "{bytes:?}"
                    );
                    seen.insert(word.to_vec());
                }
            }
        }
        for word in ["HAVING", "ORDER", "BY", "b"] {
            assert!(seen.contains(word.as_bytes()), "{word}");
        }
    }

    proptest! {
        #[test]
        fn any_input_stays_within_the_limits(
            mut bytes in proptest::collection::vec(any::<u8>(), 1..200),
            donor in proptest::collection::vec(any::<u8>(), 0..1000),
            seed: u64,
        ) {
            let dictionary = Dictionary::default();
            let context = HavocContext { min_len: 5, max_len: 150, ..context(&dictionary, Some(&donor)) };
            let mut rng = Rng::seed_from_u64(seed);
            bytes.resize(bytes.len().clamp(5, 150), b' ');
            let mut bytes = Buffer::new(&bytes, &[]);
            for _ in 0..50 {
                let before = bytes.to_vec();
                if !change(&mut rng, &mut bytes, &context) {
                    prop_assert_eq!(&*before, &*bytes);
                }
                prop_assert!((5..=150).contains(&bytes.len()));
            }
        }
    }
}
