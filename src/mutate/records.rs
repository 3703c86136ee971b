//! Guesses the records of an input: a type, a length and the counted bytes, in sequence and nested. Shapes of common
//! formats are matched against the bytes alone. Records that tile the input without a gap are only a guess; runs
//! verify it.

use std::ops::Range;

use crate::length::Length;

/// Maximum number of records in one input, and maximum nesting.
const MOST_RECORDS: usize = 256;
const DEEPEST: usize = 8;
/// Maximum length of a header before the first record of an input, and possible lengths before nested records, bytes.
const LONGEST_HEAD: usize = 16;
const HEADS: [usize; 3] = [0, 4, 1];

/// A guessed record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    pub length: Length,
    /// Index of the enclosing record.
    pub parent: Option<usize>,
    /// True if it contains no other record.
    pub is_leaf: bool,
}

/// Encoding of a record's length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Number {
    Little(usize),
    Big(usize),
    /// Short or long form of X.690, section 8.1.3 (DER).
    Der,
}

/// Layout of the records of a format.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Bytes before the number, and between the number and the payload.
    before: usize,
    number: Number,
    behind: usize,
    /// True if the number also counts the whole head, including itself.
    counts_head: bool,
    /// Bytes after the payload, such as a checksum.
    trailer: usize,
    /// Records are aligned to this number of bytes.
    align: usize,
}

const fn shape(before: usize, number: Number, behind: usize) -> Shape {
    Shape { before, number, behind, counts_head: false, trailer: 0, align: 1 }
}

/// Shapes of common formats, the most specific ones first.
const SHAPES: [Shape; 11] = [
    // PNG.
    Shape { trailer: 4, ..shape(0, Number::Big(4), 4) },
    // RIFF, and IFF.
    Shape { align: 2, ..shape(4, Number::Little(4), 0) },
    Shape { align: 2, ..shape(4, Number::Big(4), 0) },
    // Boxes of MP4.
    Shape { counts_head: true, ..shape(0, Number::Big(4), 4) },
    shape(2, Number::Big(4), 0),
    shape(2, Number::Little(4), 0),
    shape(2, Number::Big(2), 0),
    shape(2, Number::Little(2), 0),
    shape(1, Number::Der, 0),
    shape(1, Number::Big(2), 0),
    shape(1, Number::Little(2), 0),
];

impl Shape {
    /// The length of the record that begins at `at`.
    fn length(self, input: &[u8], at: usize) -> Option<Length> {
        let at = at + self.before;
        let (at, width, is_big) = match self.number {
            Number::Little(width) => (at, width, false),
            Number::Big(width) => (at, width, true),
            Number::Der => match input.get(at)? {
                0..=0x7f => (at, 1, true),
                0x81 => (at + 1, 1, true),
                0x82 => (at + 1, 2, true),
                0x84 => (at + 1, 4, true),
                _ => return None,
            },
        };
        let from = if self.counts_head { at - self.before } else { at + width + self.behind };
        let length = Length { at, width, is_big, from: from + self.trailer };
        length.fits(input.len()).then_some(length)
    }

    /// The payload of a record, without head and trailer, and the start of the next record. None if that is beyond
    /// `end`.
    fn extent(self, input: &[u8], length: Length, end: usize) -> Option<(Range<usize>, usize)> {
        let begin = length.at + length.width + self.behind;
        let stop = length.end(input);
        let payload = begin..stop.checked_sub(self.trailer)?;
        let rest = (stop - payload.start.min(stop)) % self.align;
        let next = stop.checked_add(if rest > 0 { self.align - rest } else { 0 })?;
        // Only the last record may lack its padding.
        let next = if stop == end { end } else { next };
        (payload.start <= payload.end && next <= end).then_some((payload, next))
    }
}

/// Guesses the records of the input, at most once for each shape. Each guess has at least two records.
#[must_use]
pub fn guesses(input: &[u8]) -> Vec<Vec<Record>> {
    let guess = |shape: &Shape| {
        (0..=LONGEST_HEAD.min(input.len())).find_map(|head| {
            let mut records = Vec::new();
            let is_tiled = tile(*shape, input, head..input.len(), None, 0, &mut records);
            (is_tiled && records.len() > 1).then_some(records)
        })
    };
    SHAPES.iter().filter_map(guess).collect()
}

/// Adds the records that tile a range, and the records inside them. Returns false and adds nothing if none do.
fn tile(
    shape: Shape,
    input: &[u8],
    range: Range<usize>,
    parent: Option<usize>,
    depth: usize,
    records: &mut Vec<Record>,
) -> bool {
    let (first, mut at, mut payloads) = (records.len(), range.start, Vec::new());
    while at < range.end {
        let length = shape.length(input, at);
        let extent = length.and_then(|length| shape.extent(input, length, range.end));
        let (Some(length), Some((payload, next)), true) =
            (length, extent, records.len() < MOST_RECORDS)
        else {
            records.truncate(first);
            return false;
        };
        records.push(Record { length, parent, is_leaf: true });
        payloads.push(payload);
        at = next;
    }
    if depth < DEEPEST {
        for (number, payload) in (first..).zip(payloads.clone()) {
            let mut has_records = |head: usize| {
                let inner = payload.start + head..payload.end;
                inner.start < inner.end
                    && tile(shape, input, inner, Some(number), depth + 1, records)
            };
            if HEADS.into_iter().any(&mut has_records) {
                records[number].is_leaf = false;
            }
        }
    }
    !payloads.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Position of the number and parent of each record, in the first guess with `count` records.
    fn guessed(input: &[u8], count: usize) -> Vec<(usize, Option<usize>)> {
        let all = guesses(input);
        let found = all.iter().find(|records| records.len() == count);
        let records = found.unwrap_or_else(|| panic!("{all:?}"));
        records.iter().map(|record| (record.length.at, record.parent)).collect()
    }

    #[test]
    fn elements_of_der_lie_in_each_other() {
        let input = b"\x30\x0d\x30\x08\x06\x03abc\x02\x01\x07\x03\x01\xff";
        let found = [(1, None), (3, Some(0)), (13, Some(0)), (5, Some(1)), (10, Some(1))];
        assert_eq!(guessed(input, 5), found);
        let mut long = vec![0x30, 0x82, 1, 4, 0x04, 0x82, 1, 0];
        long.resize(8 + 256, 0xff);
        assert_eq!(guessed(&long, 2), [(2, None), (6, Some(0))]);
    }

    #[test]
    fn chunks_have_heads_trailers_and_padding() {
        let chunk = |name: &[u8; 4], data: &[u8]| {
            [&(data.len() as u32).to_be_bytes()[..], name, data, b"\xcc\xcc\xcc\xcc"].concat()
        };
        let png =
            [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", b"123"), chunk(b"IEND", b"")].concat();
        assert_eq!(guessed(&png, 2), [(8, None), (23, None)]);
        let part = |name: &[u8; 4], data: &[u8]| {
            let padding = vec![0; data.len() % 2];
            [name, &(data.len() as u32).to_le_bytes()[..], data, &padding].concat()
        };
        let list = [b"INFO".to_vec(), part(b"INAM", b"abc")].concat();
        let riff =
            part(b"RIFF", &[b"WAVE".to_vec(), part(b"fmt ", b"12"), part(b"LIST", &list)].concat());
        assert_eq!(guessed(&riff, 4), [(4, None), (16, Some(0)), (26, Some(0)), (38, Some(2))]);
        let record = &guesses(&png)[0][0];
        assert_eq!(record.length.end(&png), 23, "with its checksum");
    }

    #[test]
    fn what_has_a_gap_is_no_list_of_records() {
        assert!(guesses(b"").is_empty() && guesses(b"\xff\xff\xff\xff\xff").is_empty());
        // Only empty records, up to the limits of nesting and number.
        assert!(guesses(&[0; 1 << 16]).iter().all(|records| records.len() <= MOST_RECORDS));
    }

    proptest! {
        #[test]
        fn guesses_lie_in_the_input(input in proptest::collection::vec(0u8..12, 0..200)) {
            for records in guesses(&input) {
                for (number, record) in records.iter().enumerate() {
                    prop_assert!(record.length.fits(input.len()));
                    prop_assert!(record.length.end(&input) <= input.len());
                    prop_assert!(record.parent.is_none_or(|parent| parent < number));
                }
            }
        }
    }
}
