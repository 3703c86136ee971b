//! Numbers that programs are known to stumble over, and reading and writing them in a window of
//! one, two or four bytes.

/// Arithmetic steps add or subtract 1 to this (AFL).
pub const ARITH_MAX: u32 = 35;

/// Interesting values, AFL's selection: limits of the integer types, powers of two, round
/// numbers, and near misses of them. The first [`WIDTH_1`] fit a byte, the first [`WIDTH_2`] two.
const INTERESTING: [i32; 28] = [
    -128,
    -1,
    0,
    1,
    16,
    32,
    64,
    100,
    127,
    -32_768,
    -129,
    128,
    255,
    256,
    512,
    1000,
    1024,
    4096,
    32_767,
    i32::MIN,
    -100_663_046,
    -32_769,
    32_768,
    65_535,
    65_536,
    100_663_045,
    2_139_095_040,
    i32::MAX,
];
const WIDTH_1: usize = 9;
const WIDTH_2: usize = 19;

/// Interesting values for a window of `width` bytes (1, 2 or 4), the narrower ones first.
#[must_use]
pub const fn interesting(width: usize) -> &'static [i32] {
    match width {
        1 => INTERESTING.split_at(WIDTH_1).0,
        2 => INTERESTING.split_at(WIDTH_2).0,
        _ => &INTERESTING,
    }
}

/// Reads a window of at most four bytes as an unsigned number.
#[inline]
pub(super) fn load(window: &[u8], big_endian: bool) -> u32 {
    let shift_in = |number: u32, &byte: &u8| (number << 8) | u32::from(byte);
    if big_endian { window.iter().fold(0, shift_in) } else { window.iter().rev().fold(0, shift_in) }
}

/// Writes the low bytes of `number` into a window of at most four bytes.
#[inline]
pub(super) fn store(window: &mut [u8], mut number: u32, big_endian: bool) {
    let mut put = |byte: &mut u8| {
        *byte = number as u8;
        number >>= 8;
    };
    if big_endian {
        window.iter_mut().rev().for_each(&mut put);
    } else {
        window.iter_mut().for_each(&mut put);
    }
}

/// Adds `delta` to the number in the window, wrapping at its width.
#[inline]
pub(super) fn add(window: &mut [u8], delta: i32, big_endian: bool) {
    let sum = load(window, big_endian).wrapping_add_signed(delta);
    store(window, sum, big_endian);
}

/// `number` cut to `width` bytes, as [`load`] would read it back.
pub(super) const fn truncate(number: u32, width: usize) -> u32 {
    match width {
        1 => number & 0xff,
        2 => number & 0xffff,
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interesting_values_fit_their_width() {
        assert!(interesting(1).iter().all(|&value| i8::try_from(value).is_ok()));
        assert!(interesting(2).iter().all(|&value| i16::try_from(value).is_ok()));
        assert_eq!(interesting(4).len(), 28);
    }

    #[test]
    fn load_reads_what_store_wrote_in_both_orders() {
        for width in [1, 2, 4] {
            for big_endian in [false, true] {
                let mut window = vec![0u8; width];
                store(&mut window, 0x8182_8384, big_endian);
                assert_eq!(load(&window, big_endian), truncate(0x8182_8384, width));
            }
        }
        let mut window = [0u8; 4];
        store(&mut window, 1, true);
        assert_eq!(window, [0, 0, 0, 1]);
    }

    #[test]
    fn addition_carries_and_wraps() {
        let mut window = [0xff, 0xff];
        add(&mut window, 1, false);
        assert_eq!(window, [0, 0]);
        add(&mut window, -1, true);
        assert_eq!(window, [0xff, 0xff]);
    }
}
