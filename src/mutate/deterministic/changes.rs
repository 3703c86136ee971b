//! The changes of single deterministic steps.

use super::super::dictionary::Token;
use super::super::{reachable, values};
use super::families::{ARITH_VARIANTS, Family};
use crate::origin::Step;

/// Maximum number of tokens tried at one position. With more tokens, each position tries others (AFL uses each token
/// with falling probability).
pub(super) const TOKENS_PER_POSITION: usize = 256;

pub(super) fn copy(seed: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(seed);
}

pub(super) fn at(family: &Family, pos: usize) -> Step {
    Step::At { op: family.op, pos: pos as u32, value: None, big_endian: false }
}

/// A window of up to four changed bytes, and the byte order used.
pub(super) struct Window {
    bytes: [u8; 4],
    width: usize,
    big_endian: bool,
}

impl Window {
    fn of(old: &[u8], number: u32, big_endian: bool) -> Self {
        let mut bytes = [0; 4];
        values::store(&mut bytes[..old.len()], number, big_endian);
        Self { bytes, width: old.len(), big_endian }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.width]
    }
}

/// The arithmetic step `variant` on a window; None if another step writes the same.
pub(super) fn arith(variant: usize, old: &[u8]) -> Option<(i32, Window)> {
    let big_endian = variant >= ARITH_VARIANTS;
    let step = if big_endian { variant - ARITH_VARIANTS } else { variant };
    let amount = (step / 2 + 1) as i32;
    let delta = if step % 2 == 0 { amount } else { -amount };
    let number = values::load(old, big_endian).wrapping_add_signed(delta);
    let window = Window::of(old, number, big_endian);
    let new = window.bytes();
    let known = reachable::by_flip(old, new)
        || reachable::by_arith(old, new, old.len() / 2)
        || (big_endian && reachable::same_arith(old, new, false));
    (!known).then_some((delta, window))
}

/// The interesting value `variant` for a window; None if another step writes the same.
pub(super) fn interesting(variant: usize, old: &[u8], skip_arith: bool) -> Option<(i32, Window)> {
    let choices = values::interesting(old.len());
    let big_endian = variant >= choices.len();
    let value = choices[if big_endian { variant - choices.len() } else { variant }];
    let window = Window::of(old, value as u32, big_endian);
    let new = window.bytes();
    let known = reachable::by_flip(old, new)
        || (!skip_arith && reachable::by_arith(old, new, old.len()))
        || reachable::by_interesting(old, new, old.len() / 2)
        || (big_endian && reachable::same_interesting(new, false));
    (!known).then_some((value, window))
}

pub(super) fn overwrite(
    family: &Family,
    pos: usize,
    window: &Window,
    value: i32,
    seed: &[u8],
    out: &mut Vec<u8>,
) -> Step {
    copy(seed, out);
    out[pos..pos + window.width].copy_from_slice(window.bytes());
    let big_endian = window.big_endian;
    Step::At { op: family.op, pos: pos as u32, value: Some(value), big_endian }
}

/// The token number `variant` for position `pos`; with many tokens each position starts elsewhere in the lists.
pub(super) fn token([first, second]: [&[Token]; 2], pos: usize, variant: usize) -> Option<&[u8]> {
    let count = first.len() + second.len();
    let place = if count > TOKENS_PER_POSITION {
        (pos * TOKENS_PER_POSITION + variant) % count
    } else {
        variant
    };
    let token = first.get(place).or_else(|| second.get(place.checked_sub(first.len())?));
    token.map(Token::bytes)
}

pub(super) fn overwrite_token(
    family: &Family,
    pos: usize,
    token: &[u8],
    seed: &[u8],
    out: &mut Vec<u8>,
) -> Option<Step> {
    let end = pos + token.len();
    if seed.get(pos..end)? == token {
        return None;
    }
    copy(seed, out);
    out[pos..end].copy_from_slice(token);
    Some(at(family, pos))
}
