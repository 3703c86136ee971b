//! A number of an input that counts other bytes of it: the length of a part, or an offset.

/// A number that says how many bytes there are from one place to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Length {
    /// Where the number stands.
    pub at: usize,
    /// Its bytes: 1, 2, 4 or 8.
    pub width: usize,
    pub is_big: bool,
    /// Where it begins to count; it may be a constant less or more from there.
    pub from: usize,
}

impl Length {
    /// It lies in an input of `len` bytes, with a width that a number can have.
    #[must_use]
    pub fn fits(&self, len: usize) -> bool {
        let is_width = matches!(self.width, 1 | 2 | 4 | 8);
        is_width
            && self.from <= len
            && self.at.checked_add(self.width).is_some_and(|end| end <= len)
    }

    /// Those of a parent that are right in its child as well. What is different between the two is taken for one piece.
    #[must_use]
    pub fn inherited(lengths: &[Self], parent: &[u8], child: &[u8]) -> Box<[Self]> {
        // The numbers themselves may be different.
        let mut free = vec![false; parent.len()];
        lengths.iter().for_each(|length| free[length.at..length.at + length.width].fill(true));
        let expected = parent.iter().zip(&free);
        let equal = |((a, free), b): &((&u8, &bool), &u8)| a == b || **free;
        let before = expected.clone().zip(child).take_while(equal).count();
        let after = expected.rev().zip(child.iter().rev()).take_while(equal).count();
        let after = parent.len() - after.min(parent.len().min(child.len()) - before);
        // Bytes that come in at a place may stand before it or after it.
        let moved = |first: usize, last: usize| {
            let shifted = || (first + child.len()).saturating_sub(parent.len());
            [(last <= before).then_some(first), (first >= after).then(shifted)]
        };
        let in_child = |length: &Self| {
            let end = length.end(parent);
            let ends = moved(end, end);
            let starts = moved(length.from, length.from);
            let numbers = moved(length.at, length.at + length.width).into_iter().flatten();
            let mut all = numbers.flat_map(|at| {
                starts.into_iter().flatten().map(move |from| Self { at, from, ..*length })
            });
            all.find(|length| length.fits(child.len()) && ends.contains(&Some(length.end(child))))
        };
        lengths.iter().filter_map(in_child).collect()
    }

    /// The number as it stands in the input.
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

    /// False, and nothing is written, if it does not fit.
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

    /// The first byte that is not counted.
    #[must_use]
    pub fn end(self, input: &[u8]) -> usize {
        let value = usize::try_from(self.value(input)).unwrap_or(usize::MAX);
        self.from.saturating_add(value)
    }

    /// Adds to the number. False if the sum does not fit.
    #[must_use]
    pub fn add(self, input: &mut [u8], count: usize) -> bool {
        let sum = self.value(input).checked_add(count as u64);
        sum.is_some_and(|sum| self.store(input, sum))
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.at < other.at + other.width && other.at < self.at + self.width
    }

    /// Before `len` bytes come in at `pos`. They are counted if they come in between the two ends, or at one of them; at
    /// the end only if it counts from `within` or before. False if it cannot follow.
    pub(crate) fn grow(
        &mut self,
        input: &mut [u8],
        (pos, len): (usize, usize),
        within: usize,
    ) -> bool {
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

    /// Before `len` bytes at `pos` go. False if it goes, too.
    pub(crate) fn shrink(&mut self, input: &mut [u8], pos: usize, len: usize) -> bool {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutate::buffer::Buffer;

    /// A length of one byte at 1, counting from 2, and an offset of two bytes at 6 from the start, big endian.
    const PARENT: &[u8] = b"L\x02ab..\0\x0e____||tail";
    const LENGTHS: [Length; 2] = [
        Length { at: 1, width: 1, is_big: true, from: 2 },
        Length { at: 6, width: 2, is_big: true, from: 0 },
    ];

    fn inherited(child: &[u8]) -> Vec<(usize, usize, usize)> {
        let lengths = Length::inherited(&LENGTHS, PARENT, child);
        lengths.iter().map(|length| (length.at, length.from, length.end(child))).collect()
    }

    #[test]
    fn a_child_has_the_lengths_that_are_right_in_it() {
        let both = [(1, 2, 4), (6, 0, 14)];
        assert_eq!(inherited(PARENT), both);
        // Bytes that nothing counts, or that are exchanged within what is counted.
        assert_eq!(inherited(b"L\x02ab..\0\x0e____||tale"), both);
        assert_eq!(inherited(b"L\x02ab..\0\x0e____||tails"), both);
        assert_eq!(inherited(b"L\x02xy..\0\x0e____||tail"), both);
        // The offset follows two bytes before its place, the length does not count them.
        assert_eq!(inherited(b"L\x02ab.22.\0\x10____||tail"), [(1, 2, 4), (8, 0, 16)]);
        assert_eq!(inherited(b"L\x02ab.22.\0\x0e____||tail"), [(1, 2, 4)]);
        // Another number alone is a wrong one.
        assert_eq!(inherited(b"L\x03ab..\0\x0e____||tail"), [(6, 0, 14)]);
        assert_eq!(inherited(b""), []);
    }

    proptest! {
        /// After a change that keeps them right, those that are inherited count the same bytes as before.
        #[test]
        fn what_is_inherited_is_right(
            bytes in proptest::collection::vec(0u8..40, 8..40),
            lengths in proptest::collection::vec((0usize..40, 0u32..3, any::<bool>(), 0usize..40), 1..6),
            (grows, pos, count) in (any::<bool>(), 0usize..40, 1usize..9),
        ) {
            let lengths = lengths.into_iter().map(|(at, power, is_big, from)| {
                Length { at, width: 1 << power, is_big, from }
            });
            let lengths: Vec<Length> = lengths
                .filter(|length| length.fits(bytes.len()) && length.end(&bytes) <= bytes.len())
                .collect();
            let mut buffer = Buffer::new(&bytes, &lengths);
            let pos = pos % bytes.len();
            if grows {
                buffer.open_gap(pos, count);
                buffer[pos..pos + count].fill(0xee);
            } else {
                buffer.close_gap(pos, count.min(bytes.len() - pos));
            }
            for length in Length::inherited(&lengths, &bytes, &buffer) {
                prop_assert!(length.fits(buffer.len()) && length.end(&buffer) <= buffer.len());
            }
            let same = Length::inherited(&lengths, &bytes, &bytes);
            prop_assert_eq!(&*same, &lengths[..]);
        }
    }
}
