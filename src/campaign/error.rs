//! Errors of campaigns.

use std::fmt;
use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use crate::disk::archive::ArchiveError;
use crate::disk::coverage::CoverageError;
use crate::disk::output::OutputError;
use crate::engine::executor::RunError;
use crate::exec::TargetError;
use crate::fleet::control::NO_THREAD;
use crate::mutators::CustomError;

/// Number of consecutive turns without a run after which none will follow: enough for each queue entry
/// to have had its turn with near certainty.
pub(super) fn turns_without_runs(queue: usize) -> u64 {
    (20 * queue as u64).max(2_000)
}

/// Numbers of unusable starting seeds, by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BadSeeds {
    pub crash: u64,
    pub slow: u64,
    /// Seeds that end the target's fork server.
    pub lost: u64,
    /// Seeds that the harness rejects.
    pub rejected: u64,
}

impl BadSeeds {
    fn remedy(&self) -> &'static str {
        match self {
            Self { lost: 1.., .. } => {
                "look for writes out of bounds, and for signals to the parent process; \
                 AFL_DEBUG_CHILD=1 shows the target's output"
            }
            Self { crash: 0, slow: 0, rejected: 1.., .. } => {
                "give an input that LLVMFuzzerTestOneInput accepts: it returns -1 for these"
            }
            Self { crash: 0, slow: 1.., .. } => "give runs more time with a larger -t",
            _ => {
                "run the target on one by hand; a larger -m or -t may help, -C starts from crashes"
            }
        }
    }
}

impl fmt::Display for BadSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crash, slow, lost, rejected } = self;
        if let Self { crash: 0, slow: 0, lost: 0, rejected: 1.. } = self {
            return write!(f, "the harness rejects {rejected}");
        }
        write!(f, "{crash} crash the target, {slow} take longer than the timeout")?;
        if *lost > 0 {
            write!(f, ", {lost} end its fork server")?;
        }
        if *rejected > 0 {
            write!(f, ", the harness rejects {rejected}")?;
        }
        Ok(())
    }
}

/// Reason why a campaign cannot start or continue.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CampaignError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Target(#[from] TargetError),
    /// Error of the program of `-c`.
    #[error("-c {}: {source}", program.display())]
    #[diagnostic(forward(source))]
    Logger { program: PathBuf, source: TargetError },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Custom(#[from] CustomError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Coverage(#[from] CoverageError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Archive(#[from] ArchiveError),
    #[error("cannot read the seed {path:?}: {source}")]
    #[diagnostic(help("check its permissions, or take it out of the folder"))]
    Seed { path: PathBuf, source: io::Error },
    #[error("the seed folder {path:?} holds no file with content")]
    #[diagnostic(help("put one small valid input into {}", path.display()))]
    NoSeeds { path: PathBuf },
    #[error("no seed is usable: {0}")]
    #[diagnostic(help("{}", .0.remedy()))]
    NoUsableSeed(BadSeeds),
    #[error("no seed is usable: {seeds}: it waits for connections or data on a socket")]
    #[diagnostic(help("let inputs come over that socket: --net {option}"))]
    WaitsOnSocket { seeds: BadSeeds, option: String },
    #[error("{line}")]
    #[diagnostic(help("{remedy}"))]
    NoSession { line: String, remedy: String },
    #[error("the time limit (-V) was reached before the target had started")]
    #[diagnostic(help("raise -V: it includes the start of the target and of its mutators"))]
    LimitAtStart,
    #[error("no seed crashes the target, and -C starts from crashes")]
    #[diagnostic(help("give inputs of crashes/ as seeds, or leave -C out"))]
    NoCrashingSeed,
    #[error("no input reached the target in {turns} turns: the mutators drop all")]
    #[diagnostic(help("see what their queue_get, fuzz and post_process hooks return"))]
    NothingRuns { turns: u64 },
    #[error("{0}")]
    #[diagnostic(help("--mutator-list shows its options; its own words are above"))]
    Mutator(String),
    #[error("the mutator {name} failed after {made} inputs")]
    #[diagnostic(help("its message is above, if it wrote one"))]
    MutatorFailed { name: String, made: u64 },
    #[error("--mutator-only with {count} seeds")]
    #[diagnostic(help("leave one file in the folder of seeds"))]
    OneSeed { count: usize },
    #[error("cannot read the mutator's state {path:?}: {source}")]
    #[diagnostic(help("--mutator-state takes a file that a module wrote"))]
    MutatorState { path: PathBuf, source: io::Error },
    #[error("the seed {path:?} {what}")]
    #[diagnostic(help("take it out, or unset AFL_EXIT_ON_SEED_ISSUES"))]
    BadSeed { path: PathBuf, what: &'static str },
    #[error("cannot read the dictionary {path:?}: {source}")]
    #[diagnostic(help("-x takes a dictionary file or a folder of tokens"))]
    Dictionary { path: PathBuf, source: io::Error },
    #[error("crashes go to a helper program (/proc/sys/kernel/core_pattern begins with '|')")]
    #[diagnostic(help(
        "echo core | sudo tee /proc/sys/kernel/core_pattern, or set \
         AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1"
    ))]
    CorePattern,
    #[error("cannot bind to core {core}: this process may use {allowed:?}")]
    #[diagnostic(help("name one of these with -b, or leave -b out"))]
    Core { core: usize, allowed: Vec<usize> },
    #[error("cannot handle signals: {0}")]
    #[diagnostic(help("this is a fault of ffuzz; please report it"))]
    Signals(io::Error),
    #[error("cannot listen to the control socket: {0}")]
    #[diagnostic(help("{}", NO_THREAD))]
    Control(io::Error),
}
