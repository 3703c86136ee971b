//! What a user may set of the search. The command line and the environment fill it.

use std::path::PathBuf;
use std::time::Duration;

/// Execution modes, from the slowest to the fastest. `--run-mode` names the fastest of those between `Pipe`
/// and `Batch` that may be used.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum RunMode {
    /// Without a fork server: the fuzzer starts each run itself.
    Exec,
    /// AFL's pipes, also for targets that offer a faster mode.
    Pipe,
    /// A process for each run, ordered through shared memory.
    Fork,
    /// A process that is restored after each run, instead of being forked.
    Snapshot,
    /// A process for many runs; every run is handed over.
    Persistent,
    /// Many inputs per hand-over; the target stops at the first that shows something new.
    #[default]
    Batch,
    /// No process: the target is part of this program.
    InProcess,
}

impl RunMode {
    /// As `--run-mode` and `fuzzer_stats` have it.
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

    /// Each run is a process that a fork server forks: between two runs another process has to get the core.
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

    /// From the name that AFL++ uses.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name)
    }

    /// Whether a main instance (`-M`) may have it.
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

/// Which turns of a favored seed begin with deterministic steps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeterministicStage {
    /// Those for which the steps have found enough lately, compared with havoc.
    #[default]
    Competes,
    /// All until the steps are done (`-D`).
    Always,
    /// None (`-z`, and `-d` as classic AFL had it).
    Skipped,
}

/// Default of [`MutationOptions::length_share`].
pub const LENGTH_SHARE: f64 = 0.1;

#[derive(Clone, Debug)]
pub struct MutationOptions {
    /// `-x FILE[@LEVEL]`.
    pub dictionaries: Vec<(PathBuf, u32)>,
    /// `-g`, `-G`: bytes.
    pub min_len: usize,
    pub max_len: usize,
    pub deterministic: DeterministicStage,
    /// `AFL_DISABLE_TRIM`.
    pub skip_trim: bool,
    /// Operands of comparisons are put into the input, if the target logs them (`-c -`: not).
    pub solves_comparisons: bool,
    /// Part of the search, 0 to 1, in which lengths and offsets are looked for; 0: not at all. AFL's
    /// `AFL_FRAMESHIFT_DISABLE` and `AFL_FRAMESHIFT_MAX_OVERHEAD`.
    pub length_share: f64,
    /// `AFL_NO_ARITH`.
    pub skip_arith: bool,
    /// `--net`: inputs are lists of messages, see [`crate::messages`].
    pub messages: bool,
    /// `-Z`: seeds in order of the queue.
    pub sequential: bool,
    /// `-a`: the inputs are text, or are not; None: decided for each input.
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

/// Which changes havoc prefers (`-P`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Strategy {
    /// Those that lead to new code.
    #[default]
    Explore,
    /// Those that break code: extreme numbers, small changes.
    Exploit,
    /// To explore; to exploit after so much time without a find.
    Alternate(Duration),
}

/// Which runs can become seeds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wanted {
    /// Those that end well.
    #[default]
    Good,
    /// `AFL_KEEP_TIMEOUTS`: also those that take too long.
    GoodOrSlow,
    /// `-C`: only those that crash.
    Crashing,
}

/// Whose inputs are run in the sanitizer builds of `-w` (`AFL_SAN_ABSTRACTION`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Inspected {
    /// Runs that hit a set of edges that no run has hit before (`simplify_trace`).
    #[default]
    Edges,
    /// The same with the classes of their hit counts (`unique_trace`).
    Counts,
    /// Seeds only (`coverage_increase`).
    Seeds,
}
