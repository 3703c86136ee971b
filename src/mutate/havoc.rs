//! Havoc: a stack of random changes, the main mutator of the fuzzer.
//!
//! Choosing an operator is one look-up in a table built at compile time. Operators change the buffer in place; only
//! its growth allocates.

mod messages;
mod numbers;
mod operators;
mod regions;
mod text;

use rand_core::Rng as _;

use self::operators::{OPERATORS, Row};
use super::buffer::Buffer;
use super::dictionary::Dictionary;
use super::{Rng, below, index};

/// Maximum number of draws until an operator can be applied; then a bit is flipped. At least two thirds of the draws
/// of every profile apply to any input of four bytes.
const MAX_DRAWS: u32 = 16;

/// Limit of [`HavocContext::stack_power`]: more than 1024 changes leave nothing of the seed.
const MAX_STACK_POWER: u32 = 10;

/// Two changes in this number change words, if word changes are on.
const WORDS_TWO_OF: u32 = 5;

/// One change in this number changes a whole part, if lengths of parts are known.
const PARTS_ONE_OF: u32 = 6;

/// One change in this number changes a whole message, if the input is a list of messages.
const MESSAGES_ONE_OF: u32 = 4;

/// Maximum number of changes of a gentle candidate, less one.
const GENTLE_MOST: u32 = 7;

/// Materials and limits of havoc.
#[derive(Clone, Copy, Debug)]
pub struct HavocContext<'a> {
    pub dictionary: &'a Dictionary,
    /// Another input that provides blocks for splicing.
    pub donor: Option<&'a [u8]>,
    /// Shortest result in bytes; 0 counts as 1.
    pub min_len: usize,
    /// Longest result in bytes; never below `min_len`.
    pub max_len: usize,
    /// Classes of block lengths in use, 1 to 3: up to 32, 128 and 32768 bytes.
    pub long_blocks: u32,
    /// Up to 2^n changes per candidate, n drawn evenly from 1 to this (AFL: 4).
    pub stack_power: u32,
    /// The input is text, see [`super::is_text`].
    pub text: bool,
    /// Some changes move whole words of the text.
    pub words: bool,
    /// The input is a list of messages, see [`crate::messages`].
    pub messages: bool,
    /// Prefer small changes near earlier finds to block operations that explore.
    pub exploit: bool,
    /// Make one change, rarely a few: for a seed whose domain value is to be raised step by step. Many changes at
    /// once would destroy more than they gain.
    pub gentle: bool,
}

impl HavocContext<'_> {
    fn floor(&self) -> usize {
        self.min_len.max(1)
    }

    fn ceiling(&self) -> usize {
        self.max_len.max(self.floor())
    }
}

/// Changes `input`, a copy of the seed, and returns the number of stacked changes (`rep:`). The result respects the
/// limits of `context` even if the seed did not. `foreign` may change the input before each step within these limits,
/// and returns true if it may have changed it.
pub fn havoc(
    rng: &mut Rng,
    input: &mut Buffer,
    context: &HavocContext<'_>,
    mut foreign: impl FnMut(&mut Vec<u8>) -> bool,
) -> u32 {
    fit(rng, input, context);
    let count = if context.gentle {
        // 1, 2, 3 … with odds of 1/2, 1/4, 1/8 …
        1 + (rng.next_u32() | 1 << GENTLE_MOST).trailing_zeros()
    } else {
        let power = 1 + below(rng, context.stack_power.clamp(1, MAX_STACK_POWER));
        1 + below(rng, 1 << power)
    };
    let table = match (context.text, context.exploit) {
        (true, _) => &TEXT,
        (false, false) => &EXPLORE,
        (false, true) => &EXPLOIT,
    };
    for _ in 0..count {
        if input.change(&mut foreign) && context.messages {
            input.reframe();
        }
        change(rng, input, context, table);
    }
    count
}

/// Applies one change: of a message, of words or of a part, or an operator of the profile.
fn change(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>, table: &Table) {
    if context.messages && below(rng, MESSAGES_ONE_OF) == 0 && messages::change(rng, bytes, context)
    {
        return;
    }
    if context.words && below(rng, WORDS_TWO_OF) < 2 && text::change(rng, bytes, context) {
        return;
    }
    let has_parts = bytes.lengths().iter().any(|length| !crate::messages::is_framing(length));
    if has_parts && below(rng, PARTS_ONE_OF) == 0 && regions::change(rng, bytes, context) {
        return;
    }
    for _ in 0..MAX_DRAWS {
        let slot = rng.next_u32() >> (u32::BITS - TABLE_BITS);
        let row = &OPERATORS[usize::from(table[slot as usize])];
        if (row.apply)(rng, bytes, context) {
            return;
        }
    }
    operators::flip_bit(rng, bytes, context);
}

/// Cuts or pads a seed that violates the limits.
fn fit(rng: &mut Rng, bytes: &mut Buffer, context: &HavocContext<'_>) {
    let (len, wanted) = (bytes.len(), bytes.len().clamp(context.floor(), context.ceiling()));
    if len > wanted {
        bytes.close_gap(wanted, len - wanted);
    } else {
        bytes.open_gap(len, wanted - len);
        bytes[len..].iter_mut().for_each(|byte| *byte = rng.next_u32() as u8);
    }
}

/// Length of a block for an operator, 1 to `limit` bytes (`limit` at least 1).
///
/// Classes and odds are AFL's: the class is drawn evenly from those allowed; one in ten blocks of
/// the third class is very long.
fn block_len(rng: &mut Rng, limit: usize, classes: u32) -> usize {
    let (low, high) = match below(rng, classes.clamp(1, 3)) {
        0 => (1, 32),
        1 => (32, 128),
        _ if below(rng, 10) == 0 => (1500, 32_768),
        _ => (128, 1500),
    };
    let low = if low < limit { low } else { 1 };
    let high = high.min(limit);
    low + index(rng, high - low + 1)
}

const TABLE_BITS: u32 = 10;
const TABLE_LEN: usize = 1 << TABLE_BITS;

/// Row of [`OPERATORS`] for each slot; an operator owns slots in proportion to its weight.
type Table = [u8; TABLE_LEN];

static TEXT: Table = table(Profile::Text);
static EXPLORE: Table = table(Profile::Explore);
static EXPLOIT: Table = table(Profile::Exploit);

#[derive(Clone, Copy)]
enum Profile {
    Text,
    Explore,
    Exploit,
}

const fn weight(row: &Row, profile: Profile) -> usize {
    let weight = match profile {
        Profile::Text => row.text,
        Profile::Explore => row.explore,
        Profile::Exploit => row.exploit,
    };
    weight as usize
}

const fn table(profile: Profile) -> Table {
    let mut total = 0;
    let mut row = 0;
    while row < OPERATORS.len() {
        total += weight(&OPERATORS[row], profile);
        row += 1;
    }
    let mut table = [0; TABLE_LEN];
    let (mut row, mut passed, mut slot) = (0, weight(&OPERATORS[0], profile), 0);
    while slot < TABLE_LEN {
        while slot * total >= passed * TABLE_LEN {
            row += 1;
            passed += weight(&OPERATORS[row], profile);
        }
        table[slot] = row as u8;
        slot += 1;
    }
    table
}

#[cfg(test)]
mod tests;
