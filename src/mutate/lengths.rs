//! Numbers of an input that count other bytes of it: lengths of parts, and offsets. When bytes are inserted or
//! removed, these numbers must be updated, or the target's parser fails at the next one. They are found by coverage
//! alone, as in [FrameShift](https://arxiv.org/abs/2507.05421): a larger number loses edges, and inserting the same
//! number of bytes brings them back.
//!
//! A child has the lengths of its parent until its own are known. `Buffer` adjusts them with every gap that havoc or
//! trimming opens or closes.

use std::cmp::Reverse;

use crate::length::Length;

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
