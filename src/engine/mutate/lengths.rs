//! Numbers of an input that count other bytes of it: lengths of parts, and offsets. When bytes come in or go they have
//! to follow, or the target's parser ends at the next one. What they are is found by coverage alone, as
//! [FrameShift](https://arxiv.org/abs/2507.05421)
//! does: a larger number loses edges, and the same number with as many
//! bytes more brings them back.

use std::cmp::Reverse;

use crate::corpus::Length;

/// Where a number may stand in an input, bytes from its start: a bound for the search.
const FIRST: usize = 1 << 14;

/// The smallest value of a wide number: smaller ones are counts of something else.
const LEAST_WIDE: u64 = 4;

/// Numbers of this width that may be lengths or offsets: those that count from behind themselves, from themselves or
/// from the start of the input to a place within it. The ones that reach farthest come first: where offsets are in a
/// table, all but the last one are right only together with those after them.
#[must_use]
pub fn suspects(input: &[u8], width: usize) -> Vec<Length> {
    let places = (input.len() + 1).saturating_sub(width).min(FIRST);
    let both = if width == 1 { &[true][..] } else { &[true, false] };
    let numbers = (0..places).flat_map(|at| both.iter().map(move |is_big| (at, *is_big)));
    let mut suspects: Vec<Length> = numbers
        .flat_map(|(at, is_big)| {
            // A single byte is small by chance.
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
