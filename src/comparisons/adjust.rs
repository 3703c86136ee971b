//! Edits with updated lengths: when an edit inserts or removes bytes, the numbers of the input that count them follow.

use ffuzz_mutate::buffer::Buffer;
use ffuzz_mutate::length::Length;

use crate::input_to_state::Edit;

/// Maximum number of bytes by which a part grows or shrinks with its length.
const LARGEST_STEP: u64 = 1 << 12;
/// Maximum number of edits of one input that are repeated with updated lengths.
const MOST_FOLLOWED: usize = 256;

/// Returns the edits; each one that changes the length of the input, or a number of `lengths`, is followed by a copy
/// with the necessary updates: new lengths of enclosing parts, or new bytes for a new length.
#[must_use]
pub fn with_lengths(edits: Vec<Edit>, input: &[u8], lengths: &[Length]) -> Vec<Edit> {
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
    use crate::log::ComparisonKind;
    use crate::results::Place;

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
}
