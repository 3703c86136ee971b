//! Foreign mutators: AFL++'s hooks as a trait, and the chain of loaded mutators.
//!
//! Hooks that a mutator lacks are never called: [`Mutators`] asks [`Mutator::hooks`] once. A hook's result is always
//! bytes in a buffer of ours; each kind of mutator does its own conversion and checks.
//!
//! [`Mutators`] holds them in the user's order and is the only caller. The fuzzer owns it and uses it through the
//! engine's trait `ForeignMutators`. Its runner applies `post_process`, `fuzz_send` and `post_run` to every run of
//! every command. A mutator that is called before and after a run, or that makes and processes inputs, gets them one by
//! one to keep AFL++'s order of calls. Other mutators work with batches.

mod chain;
pub mod fake;
pub mod find;
pub mod killerbeez;
mod library;
mod load;
mod pause;
#[cfg(feature = "python")]
pub mod python;
#[cfg(not(feature = "python"))]
#[path = "python/missing.rs"]
pub mod python;
pub mod states;

pub use chain::Mutators;
pub use load::{CustomError, check, load};

use std::path::Path;

use ffuzz_engine::corpus::SeedId;
pub use ffuzz_mutate::foreign::{Job, Made, Processed, bit};

/// Maximum length of a short name (`op:NAME` in file names) in bytes, as in AFL++.
pub const NAME_MAX: usize = 21;

/// An optional function of a mutator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    /// [`Mutator::stage_begins`] and [`Mutator::stage_ends`]; not in AFL++.
    Stage,
    FuzzCount,
    Fuzz,
    SpliceOptout,
    Describe,
    PostProcess,
    /// `init_trim`, `trim` and `post_trim`: all three or none.
    Trim,
    Havoc,
    QueueGet,
    QueueNewEntry,
    FuzzSend,
    PostRun,
    Introspection,
}

impl Hook {
    pub const COUNT: usize = Self::NAMES.len();

    /// All hooks in their order, with the names that mutator authors use.
    pub const NAMES: [(Self, &'static str); 13] = [
        (Self::Stage, "stage"),
        (Self::FuzzCount, "fuzz_count"),
        (Self::Fuzz, "fuzz"),
        (Self::SpliceOptout, "splice_optout"),
        (Self::Describe, "describe"),
        (Self::PostProcess, "post_process"),
        (Self::Trim, "trim"),
        (Self::Havoc, "havoc_mutation"),
        (Self::QueueGet, "queue_get"),
        (Self::QueueNewEntry, "queue_new_entry"),
        (Self::FuzzSend, "fuzz_send"),
        (Self::PostRun, "post_run"),
        (Self::Introspection, "introspection"),
    ];

    /// The name that mutator authors use.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// A set of hooks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Hooks(u16);

impl Hooks {
    #[must_use]
    pub fn with(self, hook: Hook) -> Self {
        Self(self.0 | 1 << hook as u16)
    }

    #[must_use]
    pub fn without(self, hook: Hook) -> Self {
        Self(self.0 & !(1 << hook as u16))
    }

    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn has(self, hook: Hook) -> bool {
        self.0 & 1 << hook as u16 != 0
    }

    #[must_use]
    pub fn has_any(self, hooks: &[Hook]) -> bool {
        hooks.iter().any(|hook| self.has(*hook))
    }
}

impl FromIterator<Hook> for Hooks {
    fn from_iter<I: IntoIterator<Item = Hook>>(hooks: I) -> Self {
        hooks.into_iter().fold(Self::default(), Self::with)
    }
}

/// The error of a call: one line for the user, possibly followed by a traceback.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// A foreign mutator. Hooks missing in [`Mutator::hooks`] are never called.
///
/// `out` is empty when a hook is called; its content is only valid after [`Made::Input`].
pub trait Mutator {
    /// Short name for the screen and for `op:NAME` of finds.
    fn name(&self) -> &str;

    fn hooks(&self) -> Hooks;

    /// Begins work on a seed: [`Mutator::fuzz`] gets the same input until [`Mutator::stage_ends`].
    fn stage_begins(&mut self, _seed: SeedId, _input: &[u8]) -> Result<(), HookError> {
        Ok(())
    }

    fn stage_ends(&mut self) -> Result<(), HookError> {
        Ok(())
    }

    /// Number of calls of [`Mutator::fuzz`] for this seed.
    fn fuzz_count(&mut self, _input: &[u8]) -> Result<u32, HookError> {
        Ok(0)
    }

    fn fuzz(&mut self, _job: &mut Job<'_>, _out: &mut Vec<u8>) -> Result<Made, HookError> {
        Ok(Made::Over)
    }

    /// Describes the last [`Mutator::fuzz`] for a file name.
    fn describe(&mut self, _max_len: usize) -> Result<Option<String>, HookError> {
        Ok(None)
    }

    fn post_process(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<Made, HookError> {
        Ok(Made::Nothing)
    }

    /// Begins trimming; returns the estimated number of steps.
    fn init_trim(&mut self, _input: &[u8]) -> Result<u32, HookError> {
        Ok(0)
    }

    fn trim(&mut self, _out: &mut Vec<u8>) -> Result<Made, HookError> {
        Ok(Made::Over)
    }

    /// Reports the result of a trimming step; returns the next step.
    fn post_trim(&mut self, _success: bool) -> Result<u32, HookError> {
        Ok(u32::MAX)
    }

    /// Changes the input in place. Unless it returns [`Made::Input`], the bytes remain an input of unchanged length.
    fn havoc_mutation(&mut self, _bytes: &mut Vec<u8>, _max_len: usize) -> Result<Made, HookError> {
        Ok(Made::Nothing)
    }

    /// Percentage of havoc steps that call [`Mutator::havoc_mutation`].
    fn havoc_probability(&mut self) -> Result<u8, HookError> {
        Ok(DEFAULT_PROBABILITY)
    }

    /// Returns true to fuzz the seed now.
    fn queue_get(&mut self, _path: &Path) -> Result<bool, HookError> {
        Ok(true)
    }

    /// Reports a new queue file. Returns true if the file was changed. `parent` is None for a starting seed.
    fn queue_new_entry(&mut self, _path: &Path, _parent: Option<&Path>) -> Result<bool, HookError> {
        Ok(false)
    }

    fn fuzz_send(&mut self, _input: &[u8]) -> Result<(), HookError> {
        Ok(())
    }

    fn post_run(&mut self) -> Result<(), HookError> {
        Ok(())
    }

    /// Fails if the mutator cannot work on this starting seed, which means wrong options.
    fn check(&mut self, _input: &[u8]) -> Result<(), HookError> {
        Ok(())
    }

    /// Returns true if it competes with havoc for turns; the share follows the finds of both.
    fn competes(&self) -> bool {
        false
    }

    /// Returns true if its stage runs after havoc and splicing instead of before.
    fn is_late(&self) -> bool {
        false
    }

    /// Its states per seed, if it can resume from them.
    fn states(&self) -> Option<&states::States> {
        None
    }

    /// Updates [`Mutator::states`] during a stage.
    fn note_state(&mut self) {}

    fn states_mut(&mut self) -> Option<&mut states::States> {
        None
    }

    /// A line for the statistics.
    fn introspection(&mut self) -> Result<Option<String>, HookError> {
        Ok(None)
    }
}

/// Percentage, as in AFL++.
pub(crate) const DEFAULT_PROBABILITY: u8 = 6;
