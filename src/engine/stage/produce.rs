//! Producers, which make candidates from a seed one by one, and their materials and tools.

use std::time::Duration;

use super::donors::Donors;
use crate::corpus::Length;
use crate::corpus::SeedId;
use crate::mutate::buffer::Buffer;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::{Candidate, Rng};

/// The input and other materials of producers.
#[derive(Clone, Copy)]
pub struct Materials<'a> {
    pub seed: SeedId,
    pub input: &'a [u8],
    /// The input is text, see [`crate::mutate::is_text`].
    pub text: bool,
    /// The input is a list of messages, see [`crate::messages`].
    pub messages: bool,
    /// Havoc changes whole words, see [`HavocContext::words`].
    ///
    /// [`HavocContext::words`]: crate::mutate::havoc::HavocContext::words
    pub words: bool,
    /// Length fields of the input to update when bytes are inserted or removed; empty if they stay unchanged this
    /// time.
    pub lengths: &'a [Length],
    pub dictionary: &'a Dictionary,
    pub donors: Donors<'a>,
    pub min_len: usize,
    pub max_len: usize,
    /// Block classes and stack depth that havoc may use; they grow while nothing is found.
    pub long_blocks: u32,
    pub stack_power: u32,
    /// The seed is a step towards a higher domain value, see [`HavocContext::gentle`].
    ///
    /// [`HavocContext::gentle`]: crate::mutate::havoc::HavocContext::gentle
    pub climbing: bool,
    /// See [`HavocContext::exploit`].
    ///
    /// [`HavocContext::exploit`]: crate::mutate::havoc::HavocContext::exploit
    pub exploit: bool,
    /// Time that the stage has taken so far.
    pub spent: Duration,
}

/// Mutable state that producers use.
pub struct Tools<'a> {
    pub mutators: &'a mut dyn ForeignMutators,
    pub rng: &'a mut Rng,
    /// Work buffer of havoc.
    pub buffer: &'a mut Buffer,
}

/// Requirements of a producer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// Each candidate runs before the next one is made: a foreign mutator describes only its last input.
    pub single: bool,
    /// Candidates contain pieces of other seeds.
    pub donors: bool,
    /// Candidates may have whole words of text changed.
    pub words: bool,
    /// Candidates have bytes moved, so length fields may be updated.
    pub lengths: bool,
}

/// Makes the candidates of one stage.
pub trait Producer {
    /// Name for the status screen and for the table of yields.
    fn name(&self) -> &'static str;

    /// Writes the next candidate to `out`, unless this call makes none.
    fn next(&mut self, from: &Materials<'_>, tools: &mut Tools<'_>, out: &mut Candidate) -> Made;

    /// Runs done and planned, after the stage has spent this time.
    fn progress(&self, spent: Duration) -> (u64, u64);

    fn needs(&self, _mutators: &dyn ForeignMutators) -> Needs {
        Needs::default()
    }

    /// True if [`Producer::report`] needs the outcome of the last candidate before the next one is made.
    fn wants_report(&self) -> bool {
        false
    }

    /// Reports whether the last candidate's run differed from the seed's.
    fn report(&mut self, _changed: bool) {}

    /// Extends the budget after a find: more may be near.
    fn extend(&mut self) {}

    /// Called when the stage ends, possibly early.
    fn end(&mut self, _mutators: &mut dyn ForeignMutators) {}
}
