//! Would an earlier deterministic step have written these bytes already?
//!
//! All functions compare the same window of at most four bytes before and after a change.

use super::values::{self, ARITH_MAX};

/// True if a walking flip of 1, 2 or 4 bits or of 1, 2 or 4 bytes makes `new` of `old`, or if
/// nothing changed at all.
pub(super) fn by_flip(old: &[u8], new: &[u8]) -> bool {
    // Flips go from the high bit of the first byte on, so their bits are neighbours in big
    // endian order, also across bytes.
    let changed = values::load(old, true) ^ values::load(new, true);
    let shift = changed.trailing_zeros();
    match changed.checked_shr(shift) {
        None | Some(1 | 3 | 15) => true,
        Some(0xff | 0xffff | 0xffff_ffff) => shift.is_multiple_of(8),
        Some(_) => false,
    }
}

/// True if an arithmetic step of at most `width` bytes makes `new` of `old`.
pub(super) fn by_arith(old: &[u8], new: &[u8], width: usize) -> bool {
    changed_windows(old, new, width).any(|(old, new)| {
        same_arith(old, new, false) || (old.len() > 1 && same_arith(old, new, true))
    })
}

/// True if an arithmetic step on the whole window in this byte order makes `new` of `old`.
pub(super) fn same_arith(old: &[u8], new: &[u8], big_endian: bool) -> bool {
    let (old_number, new_number) = (values::load(old, big_endian), values::load(new, big_endian));
    let up = values::truncate(new_number.wrapping_sub(old_number), old.len());
    let down = values::truncate(old_number.wrapping_sub(new_number), old.len());
    up.min(down) <= ARITH_MAX
}

/// True if writing an interesting value of at most `width` bytes makes `new` of `old`.
pub(super) fn by_interesting(old: &[u8], new: &[u8], width: usize) -> bool {
    changed_windows(old, new, width).any(|(_, new)| {
        same_interesting(new, false) || (new.len() > 1 && same_interesting(new, true))
    })
}

/// True if the window holds an interesting value in this byte order.
pub(super) fn same_interesting(new: &[u8], big_endian: bool) -> bool {
    let number = values::load(new, big_endian);
    values::interesting(new.len())
        .iter()
        .any(|&value| values::truncate(value as u32, new.len()) == number)
}

/// The windows of 1, 2 and 4 bytes, none wider than `width`, that hold every changed byte.
fn changed_windows<'a>(
    old: &'a [u8],
    new: &'a [u8],
    width: usize,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let differs = |&pos: &usize| old[pos] != new[pos];
    let first = (0..old.len()).find(differs).unwrap_or(0);
    let last = (0..old.len()).rfind(differs).unwrap_or(0);
    [1, 2, 4].into_iter().filter(move |&size| size <= width).flat_map(move |size| {
        let starts = 0..(old.len() + 1).saturating_sub(size);
        starts
            .filter(move |&start| start <= first && last < start + size)
            .map(move |start| (&old[start..start + size], &new[start..start + size]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_are_recognised_across_bytes() {
        assert!(by_flip(&[0b0000_0001, 0b1000_0000], &[0, 0]), "two neighbouring bits");
        assert!(!by_flip(&[0b1000_0000, 0b0000_0001], &[0, 0]), "two bits far apart");
        assert!(by_flip(&[0, 0, 0, 0], &[0, 0xff, 0xff, 0]));
        assert!(!by_flip(&[0, 0, 0, 0], &[0x0f, 0xf0, 0, 0]));
        assert!(by_flip(&[5, 6], &[5, 6]), "no change");
        assert!(by_flip(&[0; 4], &[0xff; 4]));
    }

    #[test]
    fn narrower_arithmetic_is_recognised() {
        assert!(by_arith(&[10, 0], &[12, 0], 1));
        assert!(by_arith(&[250, 0], &[4, 0], 1), "wraps in the byte");
        assert!(!by_arith(&[250, 0], &[4, 1], 1), "carries");
        assert!(by_arith(&[250, 0], &[4, 1], 2));
        assert!(by_arith(&[9, 1, 4, 9], &[9, 0, 250, 9], 2), "big endian in the middle");
        assert!(!by_arith(&[0; 4], &[0, 0, 0, 36], 1));
    }

    #[test]
    fn narrower_interesting_values_are_recognised() {
        assert!(by_interesting(&[3, 3], &[3, 127], 1));
        assert!(!by_interesting(&[3, 3], &[3, 126], 1));
        assert!(by_interesting(&[3, 3, 3, 3], &[3, 0x10, 0, 3], 2), "4096, big endian");
        assert!(!by_interesting(&[3, 3, 3, 3], &[3, 0x10, 0, 9], 2));
        assert!(same_interesting(&[0xe8, 3], false));
        assert!(!same_interesting(&[0xe8, 3], true));
    }
}
