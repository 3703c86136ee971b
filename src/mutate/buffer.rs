//! An input buffer for mutations that keeps lengths and offsets consistent when bytes are inserted or removed.

use std::ops::{Deref, DerefMut, Range};

use crate::length::Length;
use crate::messages;

/// An input with consistent [`Length`]s. A length is dropped when a change removes a part of the number, or when its
/// new value no longer fits. The buffer is reused, so that a change allocates nothing.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    lengths: Vec<Length>,
    /// Lengths inside the part being copied.
    inside: Vec<Length>,
}

/// Maximum number of lengths; beyond it, lengths in copies are not recorded.
const MOST_LENGTHS: usize = 256;

impl Buffer {
    #[must_use]
    pub fn new(input: &[u8], lengths: &[Length]) -> Self {
        Self { bytes: input.to_vec(), lengths: lengths.to_vec(), inside: Vec::new() }
    }

    /// Replaces the contents with another input.
    pub fn set(&mut self, input: &[u8], lengths: &[Length]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(input);
        self.lengths.clear();
        self.lengths.reserve(MOST_LENGTHS);
        self.inside.reserve(MOST_LENGTHS);
        self.lengths.extend_from_slice(lengths);
    }

    /// Moves the bytes to `other`, and keeps its former buffer for the next input.
    pub fn hand_over(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, other);
        self.lengths.clear();
    }

    /// The lengths that are still valid.
    #[must_use]
    pub fn lengths(&self) -> &[Length] {
        &self.lengths
    }

    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Inserts `len` undefined bytes at `pos`. Parts that end at `pos` include them.
    pub fn open_gap(&mut self, pos: usize, len: usize) {
        self.open_gap_within(pos, len, usize::MAX);
    }

    /// Inserts `len` undefined bytes at `pos`. Parts that end at `pos` include them only if they begin at or before
    /// `within`.
    pub fn open_gap_within(&mut self, pos: usize, len: usize, within: usize) {
        let Self { bytes, lengths, .. } = self;
        lengths.retain_mut(|length| length.grow(bytes, pos, len, within));
        let old = bytes.len();
        bytes.resize(old + len, 0);
        bytes.copy_within(pos..old, pos + len);
    }

    /// Removes `len` bytes at `pos`.
    pub fn close_gap(&mut self, pos: usize, len: usize) {
        let Self { bytes, lengths, .. } = self;
        lengths.retain_mut(|length| length.shrink(bytes, pos, len));
        bytes.copy_within(pos + len.., pos);
        bytes.truncate(bytes.len() - len);
    }

    /// Inserts a copy of `part` at `pos`; `within` is as for [`Self::open_gap_within`]. Lengths inside the copy are
    /// recorded as well.
    pub fn insert_copy(&mut self, part: Range<usize>, pos: usize, within: usize) {
        let len = part.len();
        if self.lengths.len() < MOST_LENGTHS {
            let room = MOST_LENGTHS - self.lengths.len();
            let is_inside = |length: &Length| {
                part.start <= length.at
                    && length.at + length.width <= part.end
                    && (length.at..=part.end).contains(&length.from)
                    && !messages::is_framing(length)
            };
            let inside = self.lengths.iter().filter(|length| is_inside(length));
            self.inside.extend(inside.take(room));
        }
        self.open_gap_within(pos, len, within);
        let to = |place: usize| place - part.start + pos;
        let copies = self.inside.drain(..);
        self.lengths.extend(copies.map(|length| Length {
            at: to(length.at),
            from: to(length.from),
            ..length
        }));
        // The rest of the part after `pos` has moved by `len`.
        let head = pos.saturating_sub(part.start).min(len);
        self.bytes.copy_within(part.start..part.start + head, pos);
        self.bytes.copy_within(part.start + len + head..part.end + len, pos + head);
    }

    /// Treats the bytes as a list of messages and keeps the lengths of the messages consistent from now on.
    pub fn reframe(&mut self) {
        self.lengths.retain(|length| !messages::is_framing(length));
        self.lengths.extend(messages::framing(&self.bytes));
    }

    /// Applies an arbitrary change. Drops all lengths if the number of bytes changes.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.bytes.len();
        let result = change(&mut self.bytes);
        if self.bytes.len() != before {
            self.lengths.clear();
        }
        result
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A length of one byte at 1, counting from 2; an offset of two bytes at 4 from the start, little endian; and
    /// a length of four bytes at 8, of what comes after a tag of two bytes.
    const INPUT: &[u8] = b"L\x0e..\x10\x00..\0\0\0\x04TGdata..tail";

    fn lengths() -> [Length; 3] {
        [
            Length { at: 1, width: 1, is_big: true, from: 2 },
            Length { at: 4, width: 2, is_big: false, from: 0 },
            Length { at: 8, width: 4, is_big: true, from: 14 },
        ]
    }

    fn values(buffer: &Buffer) -> Vec<u64> {
        buffer.lengths.iter().map(|length| length.value(buffer)).collect()
    }

    #[test]
    fn numbers_count_what_comes_in_and_goes() {
        let mut buffer = Buffer::new(INPUT, &lengths());
        assert_eq!(values(&buffer), [14, 16, 4]);
        buffer.open_gap(15, 3);
        assert_eq!(values(&buffer), [17, 19, 7]);
        assert_eq!(&buffer[..6], b"L\x11..\x13\x00");
        // At the end of the counted part: the new bytes belong to it.
        buffer.open_gap(21, 1);
        assert_eq!(values(&buffer), [17, 19, 8]);
        buffer.open_gap(0, 2);
        assert_eq!(values(&buffer), [17, 21, 8]);
        assert_eq!(&buffer[2..4], b"L\x11");
        // The last length does not count half of it.
        buffer.close_gap(14, 4);
        assert_eq!(values(&buffer), [13, 17, 6]);
        // Removes a part of a number, then all of another one.
        buffer.close_gap(6, 1);
        assert_eq!(values(&buffer), [12, 6]);
        buffer.close_gap(9, 5);
        assert_eq!(values(&buffer), [7]);
    }

    #[test]
    fn a_number_that_overflows_is_forgotten() {
        let mut buffer = Buffer::new(INPUT, &lengths());
        buffer.open_gap(16, 250);
        assert_eq!(values(&buffer), [266, 254]);
        assert_eq!(buffer[1], 14);
        buffer.open_gap(5, 1);
        assert_eq!(values(&buffer), [254]);
    }

    #[test]
    fn after_an_unknown_change_nothing_is_known() {
        let mut buffer = Buffer::new(INPUT, &lengths());
        buffer.change(|bytes| bytes[1] = 15);
        assert_eq!(values(&buffer), [15, 16, 4]);
        buffer.change(|bytes| bytes.push(0));
        assert!(buffer.lengths.is_empty());
    }

    proptest! {
        /// Whatever the lengths, the buffer has the expected size, and no number lies beyond its end.
        #[test]
        fn any_change_keeps_to_the_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 1..60),
            lengths in proptest::collection::vec((0usize..60, 0u32..4, any::<bool>(), 0usize..70), 0..6),
            changes in proptest::collection::vec((any::<bool>(), 0usize..100, 0usize..20), 0..12),
        ) {
            let lengths: Vec<Length> = lengths
                .into_iter()
                .map(|(at, power, is_big, from)| Length { at, width: 1 << power, is_big, from })
                .filter(|length| length.at + length.width <= bytes.len())
                .collect();
            let mut buffer = Buffer::new(&bytes, &lengths);
            let mut len = bytes.len();
            for (grows, pos, count) in changes {
                let pos = pos % (len + 1);
                match grows {
                    true => (buffer.open_gap(pos, count), len += count).0,
                    false => {
                        let count = count.min(len - pos);
                        buffer.close_gap(pos, count);
                        len -= count;
                    }
                }
                prop_assert_eq!(buffer.len(), len);
                prop_assert!(buffer.lengths.iter().all(|length| length.at + length.width <= len));
            }
        }
    }
}
