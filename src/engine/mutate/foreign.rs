//! Mutators that are not part of the engine, as its stages see them.

use crate::corpus::SeedId;

/// What became of a call that makes an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Made {
    /// `out` holds it.
    Input,
    /// None this time.
    Nothing,
    /// None this time, and none will come for this seed.
    Over,
}

/// What a mutator works from.
pub struct Job<'a> {
    pub input: &'a [u8],
    /// Another input, to be spliced in.
    pub other: Option<&'a [u8]>,
    /// Longest result, bytes. More is cut by the caller.
    pub max_len: usize,
    /// Changes bytes by one of the engine's own mutations, up to a length.
    pub havoc: &'a mut dyn FnMut(&mut Vec<u8>, usize),
}

/// What post-processing made of an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Processed {
    /// No mutator changed it.
    AsGiven,
    /// The result is in the buffer.
    Changed,
    /// A mutator dropped it.
    Skipped,
}

/// The bit that stands for a mutator; those after the first 63 share one.
#[must_use]
pub fn bit(index: usize) -> u64 {
    1 << index.min(63)
}

/// All foreign mutators in the user's order; `index` is a place in it, below [`ForeignMutators::len`]. The methods do
/// nothing unless they are overridden.
pub trait ForeignMutators {
    fn len(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its short name, for `op:NAME` of its finds.
    fn name(&self, _index: usize) -> &'static str {
        ""
    }

    /// It makes inputs by [`ForeignMutators::fuzz`].
    fn makes_inputs(&self, _index: usize) -> bool {
        false
    }

    /// It wants no second input in its jobs.
    fn declines_splicing(&self, _index: usize) -> bool {
        false
    }

    /// Whether it competes with havoc for turns; the share follows the finds of both.
    fn competes(&self, _index: usize) -> bool {
        false
    }

    /// Its turn comes after havoc and splicing.
    fn is_late(&self, _index: usize) -> bool {
        false
    }

    /// One of them describes its last input, for a file name: inputs are run one by one then.
    fn describes(&self) -> bool {
        false
    }

    /// Work of one mutator on a seed begins. False if it cannot.
    fn stage_begins(&mut self, _index: usize, _seed: SeedId, _input: &[u8]) -> bool {
        true
    }

    fn stage_ends(&mut self, _index: usize) {}

    /// How many inputs it makes of this seed; None if that is the caller's choice.
    fn fuzz_count(&mut self, _index: usize, _input: &[u8]) -> Option<u32> {
        None
    }

    fn fuzz(&mut self, _index: usize, _job: &mut Job<'_>, _out: &mut Vec<u8>) -> Made {
        Made::Over
    }

    /// It trims by itself.
    fn trims(&self, _index: usize) -> bool {
        false
    }

    /// It begins to trim. Returns the number of steps that it plans; None if it cannot.
    fn trim_begins(&mut self, _index: usize, _input: &[u8]) -> Option<u32> {
        None
    }

    /// Its next proposal.
    fn trim(&mut self, _index: usize, _out: &mut Vec<u8>) -> Made {
        Made::Over
    }

    /// What became of the proposal of step `step` of `planned`, with the lengths before it and of it: `same` if the
    /// target behaved as before and it is taken. Returns the next step; None if it cannot.
    fn trimmed(
        &mut self,
        _index: usize,
        (_step, _planned): (u32, u32),
        (_before, _proposed): (usize, usize),
        _same: bool,
    ) -> Option<u32> {
        None
    }

    /// Reports a fault of it to the user.
    fn complain(&mut self, _index: usize, _text: String) {}

    /// One of them takes part in havoc.
    fn joins_havoc(&self) -> bool {
        false
    }

    /// A havoc stage begins.
    fn havoc_begins(&mut self) {}

    /// Steps of havoc before the next one in which a mutator is called.
    fn havoc_pause(&self) -> u64 {
        u64::MAX
    }

    /// `left` steps of the pause are left after a stack of havoc.
    fn havoc_paused(&mut self, _left: u64) {}

    /// The step after the pause. Returns a [`bit`] for each mutator that changed the input.
    fn havoc(&mut self, _bytes: &mut Vec<u8>, _max_len: usize) -> u64 {
        0
    }

    /// A find to which these mutators contributed (see [`bit`]).
    fn found(&mut self, _by: u64) {}

    /// One of them takes part in runs, by one of the four methods below.
    fn touch_runs(&self) -> bool {
        false
    }

    /// Inputs have to be made and run one by one: one of them is called before and after the making or the run.
    fn need_single_runs(&self) -> bool {
        false
    }

    /// What the target gets instead of `input`, in `out` if it is changed.
    fn post_process(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Processed {
        Processed::AsGiven
    }

    /// One of them delivers inputs instead of the executor.
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
