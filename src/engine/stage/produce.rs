//! What makes candidates from a seed, one after the other, and what it works from.

use std::time::Duration;

use crate::corpus::Length;
use crate::corpus::SeedId;
use crate::mutate::buffer::Buffer;
use crate::mutate::dictionary::Dictionary;
use crate::mutate::donors::Donors;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::{Candidate, Rng};

/// What producers work from.
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
    /// Numbers of the input that follow what comes in and goes; none if they stay as they are this time.
    pub lengths: &'a [Length],
    pub dictionary: &'a Dictionary,
    pub donors: Donors<'a>,
    pub min_len: usize,
    pub max_len: usize,
    /// Block classes and stack depth that havoc may use; they grow while nothing is found.
    pub long_blocks: u32,
    pub stack_power: u32,
    /// The seed is a step on the way to a higher value, see [`HavocContext::gentle`].
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

/// What producers change while they work.
pub struct Tools<'a> {
    pub mutators: &'a mut dyn ForeignMutators,
    pub rng: &'a mut Rng,
    /// What havoc works in.
    pub buffer: &'a mut Buffer,
}

/// How the next candidates are to be run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// Each is run before the next one is made: a foreign mutator describes only its last input.
    pub single: bool,
    /// They take pieces of other seeds.
    pub donors: bool,
    /// They may change whole words of text.
    pub words: bool,
    /// They move bytes, and lengths may follow.
    pub lengths: bool,
}

/// Makes the candidates of one stage. It knows nothing of the others.
pub trait Producer {
    /// Name for the status screen and for the table of yields.
    fn name(&self) -> &'static str;

    /// Writes the next candidate in `out`, unless there is none this time.
    fn next(&mut self, from: &Materials<'_>, tools: &mut Tools<'_>, out: &mut Candidate) -> Made;

    /// Runs done and planned, after the stage took this time.
    fn progress(&self, spent: Duration) -> (u64, u64);

    fn needs(&self, _mutators: &dyn ForeignMutators) -> Needs {
        Needs::default()
    }

    /// [`Producer::report`] is to get the outcome of the last candidate before the next one is made.
    fn wants_report(&self) -> bool {
        false
    }

    /// Whether the last candidate's run differed from the seed's.
    fn report(&mut self, _changed: bool) {}

    /// Lengthens the stage: it just found something, and more may be near.
    fn extend(&mut self) {}

    /// The stage is over, maybe before its time.
    fn end(&mut self, _mutators: &mut dyn ForeignMutators) {}
}
