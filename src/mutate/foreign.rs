//! The interface between the stages and mutators outside of the engine.

use crate::origin::SeedId;

/// Result of a call that makes an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Made {
    /// The input is in `out`.
    Input,
    /// No input this time.
    Nothing,
    /// No input, and no further one for this seed.
    Over,
}

/// Arguments of a mutator's call.
pub struct Job<'a> {
    pub input: &'a [u8],
    /// Another input, for splicing.
    pub other: Option<&'a [u8]>,
    /// Maximum length of the result, bytes. The caller truncates longer ones.
    pub max_len: usize,
    /// Applies one of the engine's own mutations to bytes, up to a maximum length.
    pub havoc: &'a mut dyn FnMut(&mut Vec<u8>, usize),
}

/// Result of post-processing an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Processed {
    /// No mutator changed it.
    AsGiven,
    /// The result is in the buffer.
    Changed,
    /// A mutator dropped it.
    Skipped,
}

/// The bit of a mutator; all after the first 63 share one.
#[must_use]
pub fn bit(index: usize) -> u64 {
    1 << index.min(63)
}

/// All foreign mutators in the user's order; `index` is a position in it, below [`ForeignMutators::len`]. By default
/// the methods do nothing.
pub trait ForeignMutators {
    fn len(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Short name of the mutator, for `op:NAME` of its finds.
    fn name(&self, _index: usize) -> &'static str {
        ""
    }

    /// Whether it makes inputs by [`ForeignMutators::fuzz`].
    fn makes_inputs(&self, _index: usize) -> bool {
        false
    }

    /// Whether its jobs get no second input.
    fn declines_splicing(&self, _index: usize) -> bool {
        false
    }

    /// Whether it competes with havoc for turns, by the finds of both.
    fn competes(&self, _index: usize) -> bool {
        false
    }

    /// Whether it runs after havoc and splicing.
    fn is_late(&self, _index: usize) -> bool {
        false
    }

    /// Whether one of them describes its last input, for a file name. Inputs are then run one by one.
    fn describes(&self) -> bool {
        false
    }

    /// Begins the work of one mutator on a seed. Returns false if the mutator cannot.
    fn stage_begins(&mut self, _index: usize, _seed: SeedId, _input: &[u8]) -> bool {
        true
    }

    fn stage_ends(&mut self, _index: usize) {}

    /// Number of inputs that it makes from this seed; None leaves it to the caller.
    fn fuzz_count(&mut self, _index: usize, _input: &[u8]) -> Option<u32> {
        None
    }

    fn fuzz(&mut self, _index: usize, _job: &mut Job<'_>, _out: &mut Vec<u8>) -> Made {
        Made::Over
    }

    /// Whether it has its own trimming.
    fn trims(&self, _index: usize) -> bool {
        false
    }

    /// Begins trimming. Returns the planned number of steps; None if it cannot.
    fn trim_begins(&mut self, _index: usize, _input: &[u8]) -> Option<u32> {
        None
    }

    /// Writes its next trimmed input to `out`.
    fn trim(&mut self, _index: usize, _out: &mut Vec<u8>) -> Made {
        Made::Over
    }

    /// Reports the result of the input proposed in step `_step` of `_planned`, with the lengths before and of the
    /// proposal. `_same`: the target behaved as before and the proposal was accepted. Returns the next step; None if
    /// it cannot.
    fn trimmed(
        &mut self,
        _index: usize,
        (_step, _planned): (u32, u32),
        (_before, _proposed): (usize, usize),
        _same: bool,
    ) -> Option<u32> {
        None
    }

    /// Reports a problem with the mutator to the user.
    fn complain(&mut self, _index: usize, _text: String) {}

    /// Whether one of them takes part in havoc.
    fn joins_havoc(&self) -> bool {
        false
    }

    /// Called when a havoc stage begins.
    fn havoc_begins(&mut self) {}

    /// Number of havoc steps to skip before the next call of a mutator.
    fn havoc_pause(&self) -> u64 {
        u64::MAX
    }

    /// Saves the number of steps left to skip after a stack of havoc.
    fn havoc_paused(&mut self, _left: u64) {}

    /// Lets mutators change the input in a havoc step. Returns a [`bit`] for each one that did.
    fn havoc(&mut self, _bytes: &mut Vec<u8>, _max_len: usize) -> u64 {
        0
    }

    /// Called for a find to which these mutators contributed (see [`bit`]).
    fn found(&mut self, _by: u64) {}

    /// Whether one of them takes part in runs, by one of the methods below.
    fn touch_runs(&self) -> bool {
        false
    }

    /// Whether inputs have to be made and run one by one, because a mutator is called around each of them.
    fn need_single_runs(&self) -> bool {
        false
    }

    /// Writes the bytes to deliver instead of `input` to `out`, if they differ.
    fn post_process(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Processed {
        Processed::AsGiven
    }

    /// Whether one of them delivers inputs instead of the executor.
    fn sends(&self) -> bool {
        false
    }

    fn send(&mut self, _input: &[u8]) {}

    fn post_run(&mut self) {}
}

/// No foreign mutators.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMutators;

impl ForeignMutators for NoMutators {}
