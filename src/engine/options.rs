//! User options of the search, filled from the command line and the environment.

use std::path::PathBuf;
use std::time::Duration;

/// Execution modes, slowest first. `--run-mode` sets the fastest one allowed between `Pipe` and `Batch`.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum RunMode {
    /// No fork server: the fuzzer starts each run itself.
    Exec,
    /// AFL's pipes, also for targets that offer a faster mode.
    Pipe,
    /// One process per run, controlled through shared memory.
    Fork,
    /// One process, restored after each run instead of forked.
    Snapshot,
    /// One process for many runs, one input per hand-over.
    Persistent,
    /// Many inputs per hand-over; the target stops at the first that shows something new.
    #[default]
    Batch,
    /// No process: the target is part of this program.
    InProcess,
}

impl RunMode {
    /// Name in `--run-mode` and `fuzzer_stats`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Pipe => "pipe",
            Self::Fork => "fork",
            Self::Snapshot => "snapshot",
            Self::Persistent => "persistent",
            Self::Batch => "batch",
            Self::InProcess => "in-process",
        }
    }

    /// True if a fork server forks each run: between two runs another process has to get the core.
    #[must_use]
    pub fn forks_each_run(self) -> bool {
        matches!(self, Self::Pipe | Self::Fork)
    }
}

/// Power schedules of AFL++ (`--schedule`, `-p NAME`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Schedule {
    #[default]
    Explore,
    Fast,
    Exploit,
    Seek,
    Rare,
    Mmopt,
    Coe,
    Lin,
    Quad,
}

impl Schedule {
    pub const ALL: [Self; 9] = [
        Self::Explore,
        Self::Fast,
        Self::Exploit,
        Self::Seek,
        Self::Rare,
        Self::Mmopt,
        Self::Coe,
        Self::Lin,
        Self::Quad,
    ];

    /// Parses AFL++'s name of a schedule.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name)
    }

    /// True if a main instance (`-M`) may use this schedule.
    #[must_use]
    pub fn is_for_main(self) -> bool {
        matches!(self, Self::Explore | Self::Fast)
    }

    /// The name that AFL++ uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Fast => "fast",
            Self::Exploit => "exploit",
            Self::Seek => "seek",
            Self::Rare => "rare",
            Self::Mmopt => "mmopt",
            Self::Coe => "coe",
            Self::Lin => "lin",
            Self::Quad => "quad",
        }
    }
}

/// Turns of a favored seed that begin with deterministic steps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeterministicStage {
    /// Turns while deterministic steps find enough compared with havoc.
    #[default]
    Competes,
    /// All turns until the steps are done (`-D`).
    Always,
    /// No turn (`-z`, and `-d` as in classic AFL).
    Skipped,
}

/// Default of [`MutationOptions::length_share`].
pub const LENGTH_SHARE: f64 = 0.1;

#[derive(Clone, Debug)]
pub struct MutationOptions {
    /// `-x FILE[@LEVEL]`.
    pub dictionaries: Vec<(PathBuf, u32)>,
    /// `-g`, `-G`: input length limits, bytes.
    pub min_len: usize,
    pub max_len: usize,
    pub deterministic: DeterministicStage,
    /// `AFL_DISABLE_TRIM`.
    pub skip_trim: bool,
    /// Writes operands of logged comparisons into the input (`-c -`: off).
    pub solves_comparisons: bool,
    /// Share of the search, in 0..=1, spent on finding lengths and offsets; 0: off. AFL's `AFL_FRAMESHIFT_DISABLE` and
    /// `AFL_FRAMESHIFT_MAX_OVERHEAD`.
    pub length_share: f64,
    /// `AFL_NO_ARITH`.
    pub skip_arith: bool,
    /// `--net`: inputs are lists of messages, see [`crate::messages`].
    pub messages: bool,
    /// `-Z`: seeds in order of the queue.
    pub sequential: bool,
    /// `-a`: true if inputs are text; None: decided for each input.
    pub text: Option<bool>,
    /// `-P`.
    pub strategy: Strategy,
    /// `AFL_EXPAND_HAVOC_NOW`: large blocks and deep stacks of changes from the start.
    pub expand_havoc: bool,
}

impl Default for MutationOptions {
    fn default() -> Self {
        Self {
            dictionaries: Vec::new(),
            min_len: 1,
            max_len: 1 << 20,
            deterministic: DeterministicStage::Competes,
            skip_trim: false,
            solves_comparisons: true,
            length_share: LENGTH_SHARE,
            skip_arith: false,
            messages: false,
            sequential: false,
            text: None,
            strategy: Strategy::Explore,
            expand_havoc: false,
        }
    }
}

/// Changes that havoc prefers (`-P`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Strategy {
    /// Changes that lead to new code.
    #[default]
    Explore,
    /// Changes that break code: extreme numbers, small changes.
    Exploit,
    /// Explores; exploits after this time without a find.
    Alternate(Duration),
}

/// Runs that can become seeds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wanted {
    /// Runs that end well.
    #[default]
    Good,
    /// Also runs that exceed the timeout (`AFL_KEEP_TIMEOUTS`).
    GoodOrSlow,
    /// Only crashing runs (`-C`).
    Crashing,
}

/// Inputs that also run in the sanitizer builds of `-w` (`AFL_SAN_ABSTRACTION`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Inspected {
    /// Inputs that hit a new set of edges (`simplify_trace`).
    #[default]
    Edges,
    /// Inputs that hit a new set of edges with hit-count classes (`unique_trace`).
    Counts,
    /// Seeds only (`coverage_increase`).
    Seeds,
}
