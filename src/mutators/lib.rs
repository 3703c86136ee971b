//! Foreign mutators: AFL++'s hooks as a trait, and the chain of all that were loaded.
//!
//! A hook that a mutator does not have is never called: [`Mutators`] asks [`Mutator::hooks`] once.
//! Whatever a hook returns is bytes in a buffer of ours by then; how they got there, and what may
//! be wrong with them, is the business of each kind of mutator.
//!
//! [`Mutators`] has them in the user's order, and is the only caller. The fuzzer owns it and sees it as the trait
//! `ForeignMutators` of the engine; its runner applies `post_process`, `fuzz_send` and `post_run` to every run of every
//! command. A mutator that is called before and after a run, or makes inputs and processes them, gets them one by one:
//! otherwise it would see its calls in another order than AFL++ makes them. Others work with batches.

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
pub use ffuzz_engine::mutate::foreign::{Job, Made, Processed, bit};

/// Longest short name (`op:NAME` in file names), bytes; AFL++'s number.
pub const NAME_MAX: usize = 21;

/// A function that a mutator may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    /// [`Mutator::stage_begins`] and [`Mutator::stage_ends`]: not AFL++'s.
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
    pub const COUNT: usize = Self::ALL.len();

    pub const ALL: [Self; 13] = [
        Self::Stage,
        Self::FuzzCount,
        Self::Fuzz,
        Self::SpliceOptout,
        Self::Describe,
        Self::PostProcess,
        Self::Trim,
        Self::Havoc,
        Self::QueueGet,
        Self::QueueNewEntry,
        Self::FuzzSend,
        Self::PostRun,
        Self::Introspection,
    ];

    /// The name as the mutator's author writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::FuzzCount => "fuzz_count",
            Self::Fuzz => "fuzz",
            Self::SpliceOptout => "splice_optout",
            Self::Describe => "describe",
            Self::PostProcess => "post_process",
            Self::Trim => "trim",
            Self::Havoc => "havoc_mutation",
            Self::QueueGet => "queue_get",
            Self::QueueNewEntry => "queue_new_entry",
            Self::FuzzSend => "fuzz_send",
            Self::PostRun => "post_run",
            Self::Introspection => "introspection",
        }
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

/// Why a call brought nothing: one line for the user (a traceback may follow on further lines).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// A foreign mutator. Hooks that [`Mutator::hooks`] does not name are never called.
///
/// `out` is empty when a hook is called, and of no meaning after anything but [`Made::Input`].
pub trait Mutator {
    /// Short name: for the screen, and for `op:NAME` of its finds.
    fn name(&self) -> &str;

    fn hooks(&self) -> Hooks;

    /// Work on a seed begins: [`Mutator::fuzz`] gets the same input until [`Mutator::stage_ends`].
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

    /// What the last [`Mutator::fuzz`] did, for a file name.
    fn describe(&mut self, _max_len: usize) -> Result<Option<String>, HookError> {
        Ok(None)
    }

    fn post_process(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<Made, HookError> {
        Ok(Made::Nothing)
    }

    /// Estimated number of steps.
    fn init_trim(&mut self, _input: &[u8]) -> Result<u32, HookError> {
        Ok(0)
    }

    fn trim(&mut self, _out: &mut Vec<u8>) -> Result<Made, HookError> {
        Ok(Made::Over)
    }

    /// The step that comes next.
    fn post_trim(&mut self, _success: bool) -> Result<u32, HookError> {
        Ok(u32::MAX)
    }

    /// Changes the input in place. On anything but [`Made::Input`] it still is an input, as long as
    /// before.
    fn havoc_mutation(&mut self, _bytes: &mut Vec<u8>, _max_len: usize) -> Result<Made, HookError> {
        Ok(Made::Nothing)
    }

    /// Percent of havoc's steps in which [`Mutator::havoc_mutation`] is called.
    fn havoc_probability(&mut self) -> Result<u8, HookError> {
        Ok(DEFAULT_PROBABILITY)
    }

    /// Whether to fuzz the seed now.
    fn queue_get(&mut self, _path: &Path) -> Result<bool, HookError> {
        Ok(true)
    }

    /// True if the file was changed. No `parent`: it is a starting seed.
    fn queue_new_entry(&mut self, _path: &Path, _parent: Option<&Path>) -> Result<bool, HookError> {
        Ok(false)
    }

    fn fuzz_send(&mut self, _input: &[u8]) -> Result<(), HookError> {
        Ok(())
    }

    fn post_run(&mut self) -> Result<(), HookError> {
        Ok(())
    }

    /// Fails if the mutator cannot work on this starting seed: its options are wrong then.
    fn check(&mut self, _input: &[u8]) -> Result<(), HookError> {
        Ok(())
    }

    /// Whether it competes with havoc for turns; the share follows the finds of both.
    fn competes(&self) -> bool {
        false
    }

    /// Whether its stage comes after havoc and splicing, not before.
    fn is_late(&self) -> bool {
        false
    }

    /// Its state on each seed, if it can continue from there.
    fn states(&self) -> Option<&states::States> {
        None
    }

    /// Brings [`Mutator::states`] up to date while a stage is under way.
    fn note_state(&mut self) {}

    fn states_mut(&mut self) -> Option<&mut states::States> {
        None
    }

    /// A line for the statistics.
    fn introspection(&mut self) -> Result<Option<String>, HookError> {
        Ok(None)
    }
}

/// AFL++'s number.
pub(crate) const DEFAULT_PROBABILITY: u8 = 6;
