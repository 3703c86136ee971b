//! Operators for decimal numbers in text.

use std::ops::Range;

use rand_core::Rng as _;

use super::super::buffer::Buffer;
use super::super::{Rng, below, index};
use super::HavocContext;
use super::operators::insert_block;

/// Number of bytes searched for a number from a random position: bounds the cost for a long input without numbers.
const SEARCH_WINDOW: usize = 4096;

/// Maximum number of digits read; 18 always fit an `i64`.
const MAX_DIGITS: usize = 18;

/// Maximum length of a decimal number: the sign and 19 digits.
const MAX_TEXT: usize = 20;

/// Replaces a decimal number in the text with a related one.
pub(super) fn change_number(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let start = index(rng, bytes.len());
    let Some(place) = number_near(bytes, start) else { return false };
    let mut buffer = [0; MAX_TEXT];
    let text = decimal(related(rng, parse(&bytes[place.clone()])), &mut buffer);
    let len = bytes.len() - place.len() + text.len();
    if !(context.floor()..=context.ceiling()).contains(&len) {
        return false;
    }
    if text.len() > place.len() {
        bytes.open_gap(place.start, text.len() - place.len());
    } else {
        bytes.close_gap(place.start, place.len() - text.len());
    }
    bytes[place.start..place.start + text.len()].copy_from_slice(text);
    true
}

/// Inserts a random decimal number at a random position; all orders of magnitude are equally likely.
pub(super) fn insert_number(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let number = (rng.next_u64() as i64) >> below(rng, 64);
    let mut buffer = [0; MAX_TEXT];
    let text = decimal(number, &mut buffer);
    insert_block(rng, bytes, text, context)
}

/// A number that likely takes another path than `number`.
fn related(rng: &mut Rng, number: i64) -> i64 {
    match below(rng, 8) {
        0 => number.wrapping_add(1),
        1 => number.wrapping_sub(1),
        2 => number.wrapping_mul(2),
        3 => number / 2,
        4 => (rng.next_u64() as i64) >> below(rng, 64),
        5 => number.wrapping_add(i64::from(below(rng, 256))),
        6 => number.wrapping_sub(i64::from(below(rng, 256))),
        _ => !number,
    }
}

/// The number at `start` or the next one after it.
fn number_near(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let window = &bytes[start..bytes.len().min(start + SEARCH_WINDOW)];
    let mut first = start + window.iter().position(u8::is_ascii_digit)?;
    let end = |first: usize| {
        let digits = bytes[first..].iter().take(MAX_DIGITS);
        first + digits.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let left = first.saturating_sub(MAX_DIGITS / 2);
    while first > left && bytes[first - 1].is_ascii_digit() {
        first -= 1;
    }
    let end = end(first);
    if first > 0 && bytes[first - 1] == b'-' {
        first -= 1;
    }
    Some(first..end)
}

fn parse(text: &[u8]) -> i64 {
    let (digits, sign) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    sign * digits.iter().fold(0, |number, byte| number * 10 + i64::from(byte - b'0'))
}

/// The number as decimal text at the end of the buffer.
fn decimal(number: i64, buffer: &mut [u8; MAX_TEXT]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut start = MAX_TEXT;
    loop {
        start -= 1;
        buffer[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        buffer[start] = b'-';
    }
    &buffer[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text_is_what_format_writes() {
        for number in [0, 7, -7, 10, 1_234_567, i64::MAX, i64::MIN] {
            assert_eq!(decimal(number, &mut [0; MAX_TEXT]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_number_is_found_whole_and_with_its_sign() {
        let text = b"width=-120;x";
        assert_eq!(number_near(text, 0), Some(6..10));
        assert_eq!(number_near(text, 9), Some(6..10));
        assert_eq!(number_near(text, 10), None);
        assert_eq!(parse(&text[6..10]), -120);
    }

    #[test]
    fn a_very_long_number_is_cut() {
        let text = [b'9'; 100];
        let place = number_near(&text, 50).unwrap();
        assert_eq!(place.len(), MAX_DIGITS);
        assert_eq!(parse(&text[place]), 999_999_999_999_999_999);
    }
}
