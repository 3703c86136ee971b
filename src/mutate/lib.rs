//! Makes candidates from seeds: deterministic steps, havoc, splice, dictionary.
//!
//! No I/O and no clock; the random generator is a parameter, never global.

pub mod buffer;
pub mod deterministic;
pub mod dictionary;
pub mod foreign;
pub mod havoc;
pub mod length;
pub mod messages;
pub mod origin;
mod reachable;
pub mod records;
pub mod splice;
pub mod values;
pub mod words;

use rand_core::Rng as _;

use crate::origin::Origin;

/// Random generator of the whole fuzzer: fast, small, reproducible from one seed.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// Default maximum length of an input, bytes.
pub const MAX_INPUT: usize = 1 << 20;

/// This number of leading bytes decides whether an input is text.
const TEXT_PREFIX: usize = 4096;

/// In text, at most one byte in this number is a control character or invalid UTF-8. So mutated text still counts as
/// text, and random bytes (one control character in nine) do not.
const TEXT_ODD_BYTES: usize = 16;

/// An input to run and its origin. The buffer is reused for later runs.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    pub bytes: Vec<u8>,
    pub origin: Origin,
}

/// Total size of a batch's buffers, and size of each buffer, up to which they are never freed, bytes.
const KEPT_BY_ALL: usize = 4 << 20;
const KEPT_BY_EACH: usize = 16 << 10;

/// Frees buffers much larger than mutants of an input of `len` bytes need, if the batch is large in total. Otherwise
/// each slot of a batch would keep the buffer of its largest mutant ever.
pub fn release(batch: &mut [Candidate], len: usize) {
    if batch.iter().map(|candidate| candidate.bytes.capacity()).sum::<usize>() <= KEPT_BY_ALL {
        return;
    }
    let most = len.saturating_mul(2).max(KEPT_BY_EACH);
    for candidate in batch.iter_mut().filter(|candidate| candidate.bytes.capacity() > most) {
        candidate.bytes = Vec::new();
    }
}

/// Random number in `0..n`, and 0 if `n` is 0.
///
/// One multiplication and one shift, no division (Lemire, ACM TOMACS 2019, without the rejection
/// step: the bias is below n / 2^32 and of no importance here).
#[inline]
pub fn below(rng: &mut Rng, n: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(n)) >> 32) as u32
}

/// Random index in `0..n` of a buffer shorter than 4 GiB.
#[inline]
pub fn index(rng: &mut Rng, n: usize) -> usize {
    below(rng, u32::try_from(n).unwrap_or(u32::MAX)) as usize
}

/// True if the input looks like text to a reader: UTF-8 with few control characters.
#[must_use]
pub fn is_text(bytes: &[u8]) -> bool {
    let prefix = &bytes[..bytes.len().min(TEXT_PREFIX)];
    let odd: usize = prefix
        .utf8_chunks()
        .map(|chunk| {
            let controls = chunk.valid().bytes().filter(|&byte| is_control(byte)).count();
            controls + chunk.invalid().len()
        })
        .sum();
    !prefix.is_empty() && odd * TEXT_ODD_BYTES <= prefix.len()
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng as _;

    use super::*;

    #[test]
    fn below_stays_in_range_and_reaches_every_value() {
        let mut rng = Rng::seed_from_u64(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[below(&mut rng, 7) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(below(&mut rng, 0), 0);
        assert_eq!(below(&mut rng, 1), 0);
    }

    #[test]
    fn prose_is_text_and_noise_is_not() {
        assert!(is_text(b"{\"key\": [1, 2]}\r\n"));
        assert!(is_text("größer als ∞".as_bytes()));
        assert!(!is_text(b""));
        assert!(!is_text(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"));
        let mut noise = vec![0u8; 4096];
        Rng::seed_from_u64(2).fill_bytes(&mut noise);
        assert!(!is_text(&noise));
    }

    #[test]
    fn text_cut_inside_a_character_stays_text() {
        let text = "ä".repeat(TEXT_PREFIX);
        assert!(is_text(&text.as_bytes()[1..]));
    }
}
