//! Length and offset fields: numbers in an input that count other bytes of it.

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
