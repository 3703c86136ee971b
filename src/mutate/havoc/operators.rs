//! The operators of havoc and how often each profile draws them.
//!
//! Every operator answers false, and changes nothing, if it cannot be applied.

use rand_core::Rng as _;

use super::super::buffer::Buffer;
use super::super::dictionary::Token;
use super::super::values::{self, ARITH_MAX};
use super::super::{Rng, below, index};
use super::{HavocContext, block_len, numbers};

/// Longest block that is shuffled, bytes: a longer one becomes noise.
const MAX_SHUFFLE: usize = 32;

type Operator = fn(&mut Rng, &mut Buffer, &HavocContext<'_>) -> bool;

/// An operator and its share of draws in the three profiles, tenths of a percent.
pub(super) struct Row {
    pub(super) apply: Operator,
    pub(super) text: u16,
    pub(super) explore: u16,
    pub(super) exploit: u16,
}

const fn row(apply: Operator, text: u16, explore: u16, exploit: u16) -> Row {
    Row { apply, text, explore, exploit }
}

/// Shares as published for AFL++ 4.22 ("text", and the two binary profiles). One deviation: its
/// text profile serves binary inputs as well and so never touches decimal numbers or single
/// bytes; here it is used for text alone, where these operators are at home, and has a small
/// share of them.
pub(super) const OPERATORS: [Row; 37] = [
    row(flip_bit, 40, 27, 27),
    row(interesting::<1, false>, 20, 23, 27),
    row(interesting::<2, false>, 10, 23, 29),
    row(interesting::<2, true>, 10, 23, 29),
    row(interesting::<4, false>, 10, 23, 29),
    row(interesting::<4, true>, 10, 23, 29),
    row(subtract::<1, false>, 30, 27, 25),
    row(add::<1, false>, 30, 27, 25),
    row(subtract::<2, false>, 25, 23, 25),
    row(subtract::<2, true>, 25, 23, 25),
    row(add::<2, false>, 25, 23, 25),
    row(add::<2, true>, 25, 23, 25),
    row(subtract::<4, false>, 25, 23, 25),
    row(subtract::<4, true>, 25, 23, 25),
    row(add::<4, false>, 25, 23, 25),
    row(add::<4, true>, 25, 23, 25),
    row(random_byte, 40, 23, 27),
    row(clone_copy, 80, 55, 35),
    row(clone_fixed, 40, 35, 31),
    row(overwrite_copy, 50, 35, 23),
    row(overwrite_fixed, 25, 27, 23),
    row(increment, 25, 27, 25),
    row(decrement, 25, 27, 25),
    row(invert_byte, 20, 39, 39),
    row(switch, 35, 27, 27),
    row(delete, 50, 23, 23),
    row(shuffle, 0, 23, 23),
    row(delete_one, 10, 23, 23),
    row(insert_one, 10, 23, 23),
    row(numbers::change_number, 20, 23, 23),
    row(numbers::insert_number, 10, 23, 23),
    row(user_overwrite, 35, 27, 27),
    row(user_insert, 45, 27, 27),
    row(auto_overwrite, 20, 23, 27),
    row(auto_insert, 25, 23, 27),
    row(splice_overwrite, 60, 31, 27),
    row(splice_insert, 65, 39, 35),
];

pub(super) fn flip_bit(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    let pos = index(rng, bytes.len());
    bytes[pos] ^= 1 << below(rng, 8);
    true
}

fn random_byte(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    let pos = index(rng, bytes.len());
    bytes[pos] ^= 1 + below(rng, 255) as u8;
    true
}

fn invert_byte(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    let pos = index(rng, bytes.len());
    bytes[pos] ^= 0xff;
    true
}

fn increment(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    let pos = index(rng, bytes.len());
    bytes[pos] = bytes[pos].wrapping_add(1);
    true
}

fn decrement(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    let pos = index(rng, bytes.len());
    bytes[pos] = bytes[pos].wrapping_sub(1);
    true
}

/// A random window of `WIDTH` bytes; None if the input is shorter.
fn window<'a, const WIDTH: usize>(rng: &mut Rng, bytes: &'a mut [u8]) -> Option<&'a mut [u8]> {
    let places = (bytes.len() + 1).checked_sub(WIDTH).filter(|&places| places > 0)?;
    let pos = index(rng, places);
    Some(&mut bytes[pos..pos + WIDTH])
}

fn interesting<const WIDTH: usize, const BIG: bool>(
    rng: &mut Rng,
    bytes: &mut Buffer,
    _: &HavocContext<'_>,
) -> bool {
    let Some(window) = window::<WIDTH>(rng, bytes) else { return false };
    let choices = values::interesting(WIDTH);
    values::store(window, choices[index(rng, choices.len())] as u32, BIG);
    true
}

fn add<const WIDTH: usize, const BIG: bool>(
    rng: &mut Rng,
    bytes: &mut Buffer,
    _: &HavocContext<'_>,
) -> bool {
    let Some(window) = window::<WIDTH>(rng, bytes) else { return false };
    values::add(window, 1 + below(rng, ARITH_MAX) as i32, BIG);
    true
}

fn subtract<const WIDTH: usize, const BIG: bool>(
    rng: &mut Rng,
    bytes: &mut Buffer,
    _: &HavocContext<'_>,
) -> bool {
    let Some(window) = window::<WIDTH>(rng, bytes) else { return false };
    values::add(window, -1 - below(rng, ARITH_MAX) as i32, BIG);
    true
}

/// Length of a block that may be inserted; None if the input is full.
fn growth(rng: &mut Rng, limit: usize, bytes: &[u8], context: &HavocContext<'_>) -> Option<usize> {
    let limit = limit.min(context.ceiling() - bytes.len());
    (limit > 0).then(|| block_len(rng, limit, context.long_blocks))
}

fn clone_copy(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(len) = growth(rng, bytes.len(), bytes, context) else { return false };
    let from = index(rng, bytes.len() - len + 1);
    let pos = index(rng, bytes.len() + 1);
    bytes.insert_copy(from..from + len, pos, usize::MAX);
    true
}

/// The byte of a constant block: random, or one that the input holds.
fn filler(rng: &mut Rng, bytes: &[u8]) -> u8 {
    let random = rng.next_u32();
    if random & 0x100 == 0 { random as u8 } else { bytes[index(rng, bytes.len())] }
}

fn clone_fixed(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(len) = growth(rng, usize::MAX, bytes, context) else { return false };
    let byte = filler(rng, bytes);
    let pos = index(rng, bytes.len() + 1);
    bytes.open_gap(pos, len);
    bytes[pos..pos + len].fill(byte);
    true
}

fn overwrite_copy(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if bytes.len() < 2 {
        return false;
    }
    let len = block_len(rng, bytes.len() - 1, context.long_blocks);
    let from = index(rng, bytes.len() - len + 1);
    let pos = index(rng, bytes.len() - len + 1);
    bytes.copy_within(from..from + len, pos);
    from != pos
}

fn overwrite_fixed(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if bytes.len() < 2 {
        return false;
    }
    let len = block_len(rng, bytes.len() - 1, context.long_blocks);
    let pos = index(rng, bytes.len() - len + 1);
    let byte = filler(rng, bytes);
    bytes[pos..pos + len].fill(byte);
    true
}

/// Exchanges two blocks of one length that do not overlap.
fn switch(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if bytes.len() < 4 {
        return false;
    }
    let len = block_len(rng, bytes.len() / 2, context.long_blocks);
    let first = index(rng, bytes.len() - 2 * len + 1);
    let second = first + len + index(rng, bytes.len() - first - 2 * len + 1);
    let (head, tail) = bytes.split_at_mut(second);
    head[first..first + len].swap_with_slice(&mut tail[..len]);
    true
}

fn delete(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let limit = bytes.len() - context.floor();
    if limit == 0 {
        return false;
    }
    let len = block_len(rng, limit, context.long_blocks);
    let pos = index(rng, bytes.len() - len + 1);
    bytes.close_gap(pos, len);
    true
}

fn delete_one(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if bytes.len() <= context.floor() {
        return false;
    }
    let pos = index(rng, bytes.len());
    bytes.close_gap(pos, 1);
    true
}

fn insert_one(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    if bytes.len() >= context.ceiling() {
        return false;
    }
    let byte = filler(rng, bytes);
    let pos = index(rng, bytes.len() + 1);
    bytes.open_gap(pos, 1);
    bytes[pos] = byte;
    true
}

/// Permutes a small block (Fisher and Yates).
fn shuffle(rng: &mut Rng, bytes: &mut Buffer, _: &HavocContext<'_>) -> bool {
    if bytes.len() < 2 {
        return false;
    }
    let len = 2 + index(rng, bytes.len().min(MAX_SHUFFLE) - 1);
    let pos = index(rng, bytes.len() - len + 1);
    for last in (1..len).rev() {
        bytes.swap(pos + last, pos + index(rng, last + 1));
    }
    true
}

fn overwrite_with(rng: &mut Rng, bytes: &mut [u8], block: &[u8]) -> bool {
    if block.len() > bytes.len() {
        return false;
    }
    let pos = index(rng, bytes.len() - block.len() + 1);
    bytes[pos..pos + block.len()].copy_from_slice(block);
    true
}

pub(super) fn insert_block(
    rng: &mut Rng,
    bytes: &mut Buffer,
    block: &[u8],
    context: &HavocContext<'_>,
) -> bool {
    if block.len() > context.ceiling() - bytes.len() {
        return false;
    }
    let pos = index(rng, bytes.len() + 1);
    bytes.open_gap(pos, block.len());
    bytes[pos..pos + block.len()].copy_from_slice(block);
    true
}

pub(super) fn token<'a>(rng: &mut Rng, tokens: &'a [Token]) -> Option<&'a [u8]> {
    (!tokens.is_empty()).then(|| tokens[index(rng, tokens.len())].bytes())
}

fn user_overwrite(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(token) = context.dictionary.draw(rng) else { return false };
    overwrite_with(rng, bytes, token)
}

fn user_insert(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(token) = context.dictionary.draw(rng) else { return false };
    insert_block(rng, bytes, token, context)
}

fn auto_overwrite(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(token) = token(rng, &context.dictionary.auto) else { return false };
    overwrite_with(rng, bytes, token)
}

fn auto_insert(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(token) = token(rng, &context.dictionary.auto) else { return false };
    insert_block(rng, bytes, token, context)
}

/// A random block of the donor, at most `limit` bytes; None without a donor or room.
fn donor_block<'a>(rng: &mut Rng, limit: usize, context: &HavocContext<'a>) -> Option<&'a [u8]> {
    let donor = context.donor?;
    let limit = limit.min(donor.len());
    if limit == 0 {
        return None;
    }
    let len = block_len(rng, limit, context.long_blocks);
    let from = index(rng, donor.len() - len + 1);
    Some(&donor[from..from + len])
}

fn splice_overwrite(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let Some(block) = donor_block(rng, bytes.len(), context) else { return false };
    overwrite_with(rng, bytes, block)
}

fn splice_insert(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) -> bool {
    let limit = context.ceiling() - bytes.len();
    let Some(block) = donor_block(rng, limit, context) else { return false };
    insert_block(rng, bytes, block, context)
}
