//! Splice: the head of one input joined with the tail of another.

use super::{Rng, index};
use crate::messages::{messages, push};

/// Joins the head of `base` with the tail of `other` in `out`. The cut lies after the first and
/// not after the last byte in which they differ, so the result equals neither. False, and `out`
/// unchanged, if they differ in fewer than two places of their common length.
pub fn splice(rng: &mut Rng, base: &[u8], other: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((first, last)) = differing_span(base, other) else { return false };
    let cut = first + 1 + index(rng, last - first);
    out.clear();
    out.extend_from_slice(&base[..cut]);
    out.extend_from_slice(&other[cut..]);
    true
}

/// Splices lists of messages: joins the head of `base` with the tail of `other` inside one message of each. If these
/// two messages hardly differ, that of `other` is used whole. False if an input has no message.
pub fn splice_lists(rng: &mut Rng, base: &[u8], other: &[u8], out: &mut Vec<u8>) -> bool {
    let [base, other] = [base, other].map(|input| messages(input).collect::<Vec<_>>());
    if base.is_empty() || other.is_empty() {
        return false;
    }
    let (last, first) = (index(rng, base.len()), index(rng, other.len()));
    let mut joined = Vec::new();
    if !splice(rng, base[last].bytes, other[first].bytes, &mut joined) {
        joined.extend_from_slice(other[first].bytes);
    }
    out.clear();
    base[..last].iter().for_each(|message| push(out, message.connection, message.bytes));
    push(out, other[first].connection, &joined);
    other[first + 1..].iter().for_each(|message| push(out, message.connection, message.bytes));
    true
}

/// First and last position in which the inputs differ; None if fewer than two positions differ.
fn differing_span(base: &[u8], other: &[u8]) -> Option<(usize, usize)> {
    let common = base.len().min(other.len());
    let pairs = || base[..common].iter().zip(&other[..common]);
    let first = pairs().position(|(a, b)| a != b)?;
    let last = pairs().rposition(|(a, b)| a != b)?;
    (first < last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng as _;

    use super::super::Rng;
    use super::*;

    #[test]
    fn inputs_that_hardly_differ_are_refused() {
        let mut rng = Rng::seed_from_u64(0);
        let mut out = b"kept".to_vec();
        assert!(!splice(&mut rng, b"abcd", b"abcd", &mut out));
        assert!(!splice(&mut rng, b"abcd", b"abXd", &mut out));
        assert!(!splice(&mut rng, b"abcd", b"abcdefgh", &mut out));
        assert!(!splice(&mut rng, b"", b"abc", &mut out));
        assert_eq!(out, b"kept");
    }

    #[test]
    fn lists_are_joined_within_messages() {
        let (mut rng, mut out) = (Rng::seed_from_u64(0), Vec::new());
        let (base, other) = (b"\x01\0\0\0a\x04\0\0\0bcde", b"\x04\0\0\x01vwxy\x01\0\0\0z");
        let mut seen = Vec::new();
        for _ in 0..50 {
            assert!(splice_lists(&mut rng, base, other, &mut out));
            assert_eq!(crate::messages::list(messages(&out)), out);
            seen.push(out.clone());
        }
        assert!(seen.contains(&b"\x01\0\0\0a\x04\0\0\x01bcxy\x01\0\0\0z".to_vec()), "{seen:?}");
        assert!(!splice_lists(&mut rng, b"", other, &mut out));
    }

    proptest! {
        #[test]
        fn the_result_is_a_head_and_a_tail_and_differs_from_both(
            base in proptest::collection::vec(any::<u8>(), 0..64),
            other in proptest::collection::vec(any::<u8>(), 0..64),
            seed in any::<u64>(),
        ) {
            let mut out = Vec::new();
            if splice(&mut Rng::seed_from_u64(seed), &base, &other, &mut out) {
                prop_assert!(out != base && out != other);
                prop_assert_eq!(out.len(), other.len());
                let cut = out.iter().zip(&base).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(&out[cut..], &other[cut..]);
            }
        }
    }
}
