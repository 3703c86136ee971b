//! Numbers of an input that count other bytes of it: lengths of parts, and offsets. When bytes are inserted or
//! removed, these numbers must be updated, or the target's parser fails at the next one. They are found by coverage
//! alone, as in [FrameShift](https://arxiv.org/abs/2507.05421): a larger number loses edges, and inserting the same
//! number of bytes brings them back.
//!
//! A child has the lengths of its parent until its own are known. `Buffer` adjusts them with every gap that havoc or
//! trimming opens or closes.

use std::cmp::Reverse;

/// A number that counts the bytes from one place to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Length {
    /// Position of the number.
    pub at: usize,
    /// Width in bytes: 1, 2, 4 or 8.
    pub width: usize,
    pub is_big: bool,
    /// Position where counting begins; the number may differ from the distance by a constant.
    pub from: usize,
}

impl Length {
    /// True if the number lies in an input of `len` bytes and has a valid width.
    #[must_use]
    pub fn fits(&self, len: usize) -> bool {
        let is_width = matches!(self.width, 1 | 2 | 4 | 8);
        is_width
            && self.from <= len
            && self.at.checked_add(self.width).is_some_and(|end| end <= len)
    }

    /// Value of the number in `input`.
    ///
    /// # Panics
    ///
    /// If the input ends before the number does.
    #[must_use]
    pub fn value(self, input: &[u8]) -> u64 {
        let number = &input[self.at..self.at + self.width];
        let append = |value, byte: &u8| value << 8 | u64::from(*byte);
        match self.is_big {
            true => number.iter().fold(0, append),
            false => number.iter().rev().fold(0, append),
        }
    }

    /// Stores `value`; returns false, writing nothing, if it does not fit.
    fn store(self, input: &mut [u8], value: u64) -> bool {
        let fits = self.width == 8 || value >> (8 * self.width) == 0;
        if fits {
            let number = &mut input[self.at..self.at + self.width];
            number.copy_from_slice(&value.to_le_bytes()[..self.width]);
            if self.is_big {
                number.reverse();
            }
        }
        fits
    }

    /// Position after the last counted byte.
    #[must_use]
    pub fn end(self, input: &[u8]) -> usize {
        let value = usize::try_from(self.value(input)).unwrap_or(usize::MAX);
        self.from.saturating_add(value)
    }

    /// Adds `count` to the number; returns false if the sum does not fit.
    #[must_use]
    pub fn add(self, input: &mut [u8], count: usize) -> bool {
        let sum = self.value(input).checked_add(count as u64);
        sum.is_some_and(|sum| self.store(input, sum))
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.at < other.at + other.width && other.at < self.at + self.width
    }

    /// Prepares for the insertion of `len` bytes at `pos`. They are counted if `pos` is at the start of the counted
    /// range or within it; at its end only if counting begins at `within` or before. Returns false if the number cannot
    /// be adjusted.
    pub fn grow(&mut self, input: &mut [u8], pos: usize, len: usize, within: usize) -> bool {
        if (self.at + 1..self.at + self.width).contains(&pos) {
            return false;
        }
        let end = self.end(input);
        let is_counted = self.from <= pos && (pos < end || pos == end && self.from <= within);
        if is_counted && !self.add(input, len) {
            return false;
        }
        self.at += if self.at >= pos { len } else { 0 };
        self.from += if self.from > pos { len } else { 0 };
        true
    }

    /// Prepares for the removal of `len` bytes at `pos`. Returns false if the number itself is removed.
    pub fn shrink(&mut self, input: &mut [u8], pos: usize, len: usize) -> bool {
        let gone = pos..pos + len;
        if self.at < gone.end && gone.start < self.at + self.width {
            return false;
        }
        let (first, last) = (self.from.max(gone.start), self.end(input).min(gone.end));
        let value = self.value(input) - last.saturating_sub(first) as u64;
        self.store(input, value);
        let before = |place: usize| place - place.clamp(gone.start, gone.end) + gone.start;
        self.at = if self.at >= gone.end { before(self.at) } else { self.at };
        self.from = if self.from > gone.start { before(self.from) } else { self.from };
        true
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
