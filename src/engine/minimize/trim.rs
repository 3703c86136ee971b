//! Trim: removes blocks of a seed that do not affect its behaviour.
//!
//! A generator: [`Trim::next`] proposes, the stage runs the proposal and answers with
//! [`Trim::accepted`] or [`Trim::rejected`].

use std::ops::Range;

/// Smallest block, bytes; inputs up to this length are not trimmed (AFL).
const MIN_BLOCK: usize = 4;
/// Block size of the first pass: the length, rounded up to a power of two, divided by this (AFL).
const FIRST_DIVISOR: usize = 16;
/// Block size of the last pass: the length, rounded up to a power of two, divided by this. Smaller blocks cost more
/// runs than the removed bytes save later (AFL).
const LAST_DIVISOR: usize = 1024;

/// Trimming of one seed.
#[derive(Clone, Debug)]
pub struct Trim {
    /// Block length of the present pass, bytes; a power of two.
    block: usize,
    /// Start of the next proposal.
    pos: usize,
    /// Length of the input after the accepted proposals.
    len: usize,
    /// Length of the proposed block.
    pending: usize,
    /// Minimum length of a proposal.
    min_len: usize,
    done: u64,
}

impl Trim {
    /// Trimming of an input of `len` bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let block = block_for(len, FIRST_DIVISOR);
        Self { block, pos: block, len, pending: 0, min_len: 1, done: 0 }
    }

    /// Never shortens the input below `min_len` bytes (`-g`).
    #[must_use]
    pub fn keep(mut self, min_len: usize) -> Self {
        self.min_len = min_len.max(1);
        self
    }

    /// True if the blocks of the current pass are shorter than the input divided by `divisor`.
    pub(crate) fn is_finer_than(&self, divisor: usize) -> bool {
        self.block < block_for(self.len, divisor)
    }

    /// Writes `input` without one block into `out` and returns the range of that block; None at the end. `input` is the
    /// last accepted proposal. The first block of each pass is never tried: in most formats it holds the magic number.
    pub fn next(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<Range<usize>> {
        self.len = input.len();
        loop {
            if self.len <= MIN_BLOCK || self.block < block_for(self.len, LAST_DIVISOR) {
                return None;
            }
            let end = (self.pos + self.block).min(self.len);
            if self.pos >= end || self.len - (end - self.pos) < self.min_len {
                self.block /= 2;
                self.pos = self.block;
                continue;
            }
            self.pending = end - self.pos;
            self.done += 1;
            out.clear();
            out.extend_from_slice(&input[..self.pos]);
            out.extend_from_slice(&input[end..]);
            return Some(self.pos..end);
        }
    }

    /// Accepts the proposal, which replaces the input.
    pub fn accepted(&mut self) {
        self.len -= self.pending;
        self.pending = 0;
    }

    /// Rejects the proposal: the block is needed.
    pub fn rejected(&mut self) {
        self.pos += self.block;
        self.pending = 0;
    }

    /// Number of proposals so far plus an upper bound of those to come.
    #[must_use]
    pub fn planned(&self) -> u64 {
        let per_pass = |block: usize| self.len.saturating_sub(block).div_ceil(block);
        let mut left = self.len.saturating_sub(self.pos).div_ceil(self.block);
        let mut block = self.block / 2;
        while block >= block_for(self.len, LAST_DIVISOR) {
            left += per_pass(block);
            block /= 2;
        }
        self.done + left as u64
    }

    /// Number of proposals so far.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }
}

fn block_for(len: usize, divisor: usize) -> usize {
    (len.next_power_of_two() / divisor).max(MIN_BLOCK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Trims with a judge; returns the result and the number of proposals.
    fn trimmed(seed: &[u8], trim: Trim, judge: impl Fn(&[u8]) -> bool) -> (Vec<u8>, u64) {
        let (mut trim, mut input, mut out) = (trim, seed.to_vec(), Vec::new());
        while trim.next(&input, &mut out).is_some() {
            assert!(trim.done() <= trim.planned());
            if judge(&out) {
                std::mem::swap(&mut input, &mut out);
                trim.accepted();
            } else {
                trim.rejected();
            }
        }
        (input, trim.done())
    }

    fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
        let mut rest = whole.iter();
        part.iter().all(|byte| rest.any(|other| other == byte))
    }

    #[test]
    fn inputs_below_five_bytes_are_left_alone() {
        assert_eq!(trimmed(b"abcd", Trim::new(4), |_| true), (b"abcd".to_vec(), 0));
        assert_eq!(trimmed(b"", Trim::new(0), |_| true), (Vec::new(), 0));
        assert_eq!(trimmed(b"abcde", Trim::new(5), |_| true).0, b"abcd");
    }

    #[test]
    fn everything_but_the_first_block_goes_when_nothing_matters() {
        assert_eq!(trimmed(&[7; 1000], Trim::new(1000), |_| true).0.len(), 4);
    }

    #[test]
    fn a_needed_byte_stays() {
        let mut seed = [b'.'; 300];
        seed[200] = b'!';
        let (result, _) = trimmed(&seed, Trim::new(300), |input| input.contains(&b'!'));
        assert!(result.contains(&b'!') && result.len() <= 8, "{result:?}");
    }

    #[test]
    fn the_shortest_allowed_input_is_respected() {
        assert!(trimmed(&[7; 1000], Trim::new(1000).keep(100), |_| true).0.len() >= 100);
    }

    #[test]
    fn a_refusing_judge_costs_what_was_planned() {
        let trim = Trim::new(4096);
        let planned = trim.planned();
        assert_eq!(trimmed(&[1; 4096], trim, |_| false).1, planned);
        assert_eq!(planned, 15 + 31 + 63 + 127 + 255 + 511 + 1023);
    }

    proptest! {
        #[test]
        fn the_result_is_a_subsequence_that_the_judge_accepts(
            seed in proptest::collection::vec(any::<u8>(), 0..2000),
            needle in any::<u8>(),
        ) {
            let count = |input: &[u8]| input.iter().filter(|&&byte| byte == needle).count();
            let wanted = count(&seed);
            let (result, _) = trimmed(&seed, Trim::new(seed.len()), |input| count(input) == wanted);
            prop_assert!(is_subsequence(&result, &seed));
            prop_assert_eq!(count(&result), wanted);
        }
    }
}
