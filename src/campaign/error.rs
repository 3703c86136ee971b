//! Why a campaign cannot start or go on.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::disk::coverage::CoverageError;
use crate::disk::output::OutputError;
use crate::engine::executor::RunError;
use crate::exec::TargetError;
use crate::fleet::control::NO_THREAD;
use crate::mutators::CustomError;

/// Turns in a row without a run after which there will be none; beyond every pass over a large queue.
pub(super) const TURNS_WITHOUT_RUNS: u64 = 100_000;

/// Starting seeds that are of no use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BadSeeds {
    pub crash: u64,
    pub slow: u64,
    /// They end the target's fork server.
    pub lost: u64,
}

impl fmt::Display for BadSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crash, slow, lost } = self;
        write!(f, "{crash} crash the target, {slow} take longer than the timeout")?;
        if *lost > 0 {
            write!(f, ", {lost} end its fork server")?;
        }
        Ok(())
    }
}

/// Why a campaign cannot start or go on: Display is the cause, [`CampaignError::remedy`] the way
/// out.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// That of `-c`.
    #[error("-c {}: {source}", program.display())]
    Logger { program: PathBuf, source: TargetError },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Custom(#[from] CustomError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Coverage(#[from] CoverageError),
    #[error("cannot read the seed {path:?}: {source}")]
    Seed { path: PathBuf, source: io::Error },
    #[error("the seed folder {path:?} holds no file with content")]
    NoSeeds { path: PathBuf },
    #[error("no seed is usable: {0}")]
    NoUsableSeed(BadSeeds),
    #[error("no seed crashes the target, and -C starts from crashes")]
    NoCrashingSeed,
    #[error("no input reached the target in {TURNS_WITHOUT_RUNS} turns: the mutators drop all")]
    NothingRuns,
    #[error("{0}")]
    Mutator(String),
    #[error("the mutator {name} failed after {made} inputs")]
    MutatorFailed { name: String, made: u64 },
    #[error("--mutator-only with {count} seeds")]
    OneSeed { count: usize },
    #[error("cannot read the mutator's state {path:?}: {source}")]
    MutatorState { path: PathBuf, source: io::Error },
    #[error("the seed {path:?} {what}")]
    BadSeed { path: PathBuf, what: &'static str },
    #[error("cannot read the dictionary {path:?}: {source}")]
    Dictionary { path: PathBuf, source: io::Error },
    #[error("crashes go to a helper program (/proc/sys/kernel/core_pattern begins with '|')")]
    CorePattern,
    #[error("cannot bind to core {core}: this process may use {allowed:?}")]
    Core { core: usize, allowed: Vec<usize> },
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot listen to the control socket: {0}")]
    Control(io::Error),
}

impl CampaignError {
    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Target(error) | Self::Logger { source: error, .. } => error.remedy(),
            Self::Run(error) => error.remedy(),
            Self::Custom(error) => error.remedy(),
            Self::Output(error) => error.remedy(),
            Self::Coverage(error) => error.remedy(),
            Self::Seed { .. } => "check its permissions, or take it out of the folder".into(),
            Self::NoSeeds { path } => format!("put one small valid input into {}", path.display()),
            Self::NoUsableSeed(BadSeeds { lost: 1.., .. }) => {
                "look for writes out of bounds, and for signals to the parent process; \
                 AFL_DEBUG_CHILD=1 shows the target's output"
                    .into()
            }
            Self::NoUsableSeed(BadSeeds { crash: 0, slow: 1.., .. }) => {
                "give runs more time with a larger -t".into()
            }
            Self::NoUsableSeed(_) => "run the target on one by hand; a larger -m or -t may \
                                          help, -C starts from crashes"
                .into(),
            Self::NoCrashingSeed => "give inputs of crashes/ as seeds, or leave -C out".into(),
            Self::NothingRuns => {
                "see what its queue_get, fuzz and post_process hooks return".into()
            }
            Self::Mutator(_) => "--mutator-list shows its options; its own words are above".into(),
            Self::MutatorFailed { .. } => "its message is above, if it wrote one".into(),
            Self::OneSeed { .. } => "leave one file in the folder of seeds".into(),
            Self::MutatorState { .. } => "--mutator-state takes a file that a module wrote".into(),
            Self::BadSeed { .. } => "take it out, or unset AFL_EXIT_ON_SEED_ISSUES".into(),
            Self::Dictionary { .. } => "-x takes a dictionary file or a folder of tokens".into(),
            Self::CorePattern => "echo core | sudo tee /proc/sys/kernel/core_pattern, or set \
                                  AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1"
                .into(),
            Self::Core { .. } => "name one of these with -b, or leave -b out".into(),
            Self::Signals(_) => "this is a fault of ffuzz; please report it".into(),
            Self::Control(_) => NO_THREAD.into(),
        }
    }
}
