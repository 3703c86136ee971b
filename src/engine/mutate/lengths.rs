//! Numbers of an input that count other bytes of it: lengths of parts, and offsets. When bytes are inserted or
//! removed, these numbers must be updated, or the target's parser fails at the next one. They are found by coverage
//! alone, as in [FrameShift](https://arxiv.org/abs/2507.05421): a larger number loses edges, and inserting the same
//! number of bytes brings them back.
//!
//! A child has the lengths of its parent until its own are known. `Buffer` adjusts them with every gap that havoc or
//! trimming opens or closes; edits of the solvers are repeated with updated lengths (`with_lengths`).

use std::cmp::Reverse;

use super::buffer::Buffer;
use super::solve::Edit;
use crate::corpus::Length;

/// Number of leading bytes of an input in which numbers are searched.
const FIRST: usize = 1 << 14;

/// Minimum value of a number wider than a byte: smaller ones count something else.
const LEAST_WIDE: u64 = 4;

/// Numbers of `width` bytes that may be lengths or offsets: they count from their end, from their start or from the
/// start of the input to a position within it. Those with the farthest end come first: in a table of offsets, all but
/// the last one are right only together with those after them.
#[must_use]
pub fn suspects(input: &[u8], width: usize) -> Vec<Length> {
    let places = (input.len() + 1).saturating_sub(width).min(FIRST);
    let both = if width == 1 { &[true][..] } else { &[true, false] };
    let numbers = (0..places).flat_map(|at| both.iter().map(move |is_big| (at, *is_big)));
    let mut suspects: Vec<Length> = numbers
        .flat_map(|(at, is_big)| {
            // A single byte is often small by chance: it is only taken to count from its end.
            let count = match (width, at) {
                (1, _) => 1,
                (_, 0) => 2,
                _ => 3,
            };
            let from = [at + width, at, 0].into_iter().take(count);
            from.map(move |from| Length { at, width, is_big, from })
        })
        .filter(|length| length.value(input) >= if width == 1 { 1 } else { LEAST_WIDE })
        .filter(|length| length.end(input) <= input.len())
        .collect();
    suspects.sort_by_key(|length| Reverse(length.end(input)));
    suspects
}

/// Maximum number of bytes by which a part grows or shrinks with its length.
const LARGEST_STEP: u64 = 1 << 12;
/// Maximum number of edits of one input that are repeated with updated lengths.
const MOST_FOLLOWED: usize = 256;

/// Returns the edits; each one that changes the length of the input, or a number of `lengths`, is followed by a copy
/// with the necessary updates: new lengths of enclosing parts, or new bytes for a new length.
#[must_use]
pub(crate) fn with_lengths(edits: Vec<Edit>, input: &[u8], lengths: &[Length]) -> Vec<Edit> {
    if lengths.is_empty() {
        return edits;
    }
    let (mut all, mut buffer, mut left) = (Vec::new(), Buffer::default(), MOST_FOLLOWED);
    for edit in edits {
        let is_followed = left > 0 && !edit.is_of_list;
        let followed = is_followed.then(|| followed(&edit, input, lengths, &mut buffer)).flatten();
        all.push(edit);
        left -= usize::from(followed.is_some());
        all.extend(followed);
    }
    all
}

/// The edit with its updates; None if it needs none.
fn followed(edit: &Edit, input: &[u8], lengths: &[Length], buffer: &mut Buffer) -> Option<Edit> {
    let Edit { at, removed, ref inserted, .. } = *edit;
    let end = at + removed;
    buffer.set(input, lengths);
    if removed == inserted.len() {
        let is_of = |length: &&Length| length.at <= at && end <= length.at + length.width;
        let length = *lengths.iter().find(is_of)?;
        let mut edited = Vec::new();
        edit.apply(input, &mut edited);
        let (old, new) = (length.value(input), length.value(&edited));
        let step = usize::try_from(old.abs_diff(new)).ok()?;
        let stop = length.end(input);
        if old.abs_diff(new) > LARGEST_STEP || stop > input.len() {
            return None;
        }
        if new > old {
            buffer.open_gap_within(stop, step, length.from);
            buffer[stop..stop + step].fill(0);
        } else {
            buffer.close_gap(stop - step, step);
        }
    } else if removed < inserted.len() {
        buffer.open_gap_within(end, inserted.len() - removed, at);
        buffer[at..at + inserted.len()].copy_from_slice(inserted);
    } else {
        buffer.close_gap(at + inserted.len(), removed - inserted.len());
        buffer[at..at + inserted.len()].copy_from_slice(inserted);
    }
    let mut edited = Vec::new();
    edit.apply(input, &mut edited);
    if *edited == **buffer {
        return None;
    }
    let pairs = || input.iter().zip(&**buffer);
    let same = pairs().take_while(|(a, b)| a == b).count();
    let most = input.len().min(buffer.len()) - same;
    let backwards = input.iter().rev().zip(buffer.iter().rev()).take(most);
    let behind = backwards.take_while(|(a, b)| a == b).count();
    let inserted = buffer[same..buffer.len() - behind].into();
    Some(Edit { at: same, removed: input.len() - behind - same, inserted, ..edit.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{ComparisonKind, Place};

    /// As in DER: a sequence of 9 bytes with an identifier of 3 and a number.
    const NESTED: &[u8] = b"\x30\x09\x06\x03abc\x02\x02\x01\x07tail";

    fn results(at: usize, removed: usize, inserted: &[u8]) -> Vec<Vec<u8>> {
        let place = Place::new(1, 0);
        let edit = Edit {
            at,
            removed,
            inserted: inserted.into(),
            is_of_list: false,
            op: "text",
            place,
            kind: ComparisonKind::Text,
        };
        let length = |at| Length { at, width: 1, is_big: true, from: at + 1 };
        let edits = with_lengths(vec![edit], NESTED, &[1, 3, 8].map(length));
        let apply = |edit: &Edit| {
            let mut out = Vec::new();
            edit.apply(NESTED, &mut out);
            out
        };
        edits.iter().map(apply).collect()
    }

    #[test]
    fn lengths_follow_edits() {
        let longer = results(4, 3, b"longer");
        assert_eq!(longer[1], b"\x30\x0c\x06\x06longer\x02\x02\x01\x07tail");
        let shorter = results(4, 3, b"o");
        assert_eq!(shorter[1], b"\x30\x07\x06\x01o\x02\x02\x01\x07tail");
        // The number itself changes: bytes are inserted or removed.
        assert_eq!(results(3, 1, b"\x05")[1], b"\x30\x0b\x06\x05abc\0\0\x02\x02\x01\x07tail");
        assert_eq!(results(3, 1, b"\x01")[1], b"\x30\x07\x06\x01a\x02\x02\x01\x07tail");
        // No update is needed.
        assert_eq!(results(4, 3, b"xyz").len(), 1);
        assert_eq!(results(11, 4, b"end").len(), 1);
    }

    #[test]
    fn numbers_within_the_input_are_suspected() {
        let input = b"\0\0\0\x05....\x08\0\0\0";
        let ends = |width| -> Vec<(usize, usize, usize)> {
            let of = |length: Length| (length.at, length.from, length.end(input));
            suspects(input, width).into_iter().map(of).collect()
        };
        assert_eq!(ends(4), [(0, 4, 9), (8, 0, 8), (0, 0, 5)]);
        assert_eq!(ends(1), [(3, 4, 9)]);
        assert!(
            ends(8).is_empty() && suspects(b"", 1).is_empty() && suspects(b"\x01", 1).is_empty()
        );
    }
}
