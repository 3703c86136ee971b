//! What the campaign tells the world: plain data ([`Event`], and the numbers in a [`Snapshot`]), and
//! the bus that hands it to sinks.

mod bus;
mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use ffuzz_engine::corpus::SeedId;

pub use bus::{EventBus, EventSink};
pub use snapshot::{
    Control, Corpus, Coverage, Cycles, DomainStatus, Finds, Injected, MutatorStatus, PartOfTime,
    Resources, Runs, Search, Setup, Shares, Snapshot, SnapshotUse, StageYield, Times, Turn,
    Undelivered, WorkerStatus, join,
};

/// Something that happened. Not one per execution: those are counters in [`Snapshot`].
///
/// In JSON (`--json`) an object whose `event` is the variant's name; a fleet reads it back.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Fuzzing is about to begin; the dry run is over.
    Started,
    /// A starting seed was imported (`index` of `total`, the first is 1; for progress in the
    /// dry run).
    SeedImported {
        id: SeedId,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        index: usize,
        total: usize,
    },
    /// An input was added to the queue.
    SeedSaved {
        id: SeedId,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        new_edge: bool,
        waypoint: bool,
        #[serde(flatten)]
        source: Source,
        /// Per domain that it moved, at most [`MOST_GAINS`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gains: Vec<DomainGain>,
    },
    CrashSaved {
        number: u64,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        signal: i32,
        #[serde(flatten)]
        source: Source,
    },
    HangSaved {
        number: u64,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        #[serde(flatten)]
        source: Source,
    },
    /// The answer to a command (`--control`).
    Reply(Reply),
    /// All seeds had their turn once more.
    CycleFinished { cycles: u64 },
    /// The fork server died or was replaced; the reason in one line.
    TargetRestarted { reason: String },
    /// The lines that introduce the target's domains; not without `-p`.
    DomainsFound { lines: String },
    /// Something the user should know; the campaign goes on.
    Warning { message: String },
    /// Something the user has waited for.
    Notice { message: String },
    /// State of the campaign, at most five times a second.
    Tick(Box<Snapshot>),
    /// The end, with the final state.
    Stopped {
        reason: StopReason,
        /// Where to go on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        next: Vec<Pointer>,
        #[serde(flatten)]
        snapshot: Box<Snapshot>,
    },
}

/// A place to look at, or a command to go on with.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pointer {
    /// `crashes`, `bug`, `resume`, …
    pub what: String,
    pub text: String,
}

impl Pointer {
    pub fn new(what: &str, text: impl Into<String>) -> Self {
        Self { what: what.into(), text: text.into() }
    }
}

/// Domains of a waypoint that are reported; a target may register any number.
pub const MOST_GAINS: usize = 16;

/// Where an input came from. In JSON `origin`, and `peer` beside it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "origin", rename_all = "lowercase")]
pub enum Source {
    /// Made here from a seed.
    #[default]
    Own,
    /// A starting seed.
    Seed,
    /// The find of another fuzzer.
    Import { peer: String },
    /// Handed in by a command.
    Inject,
}

/// What an input brought to one domain.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DomainGain {
    pub domain: String,
    /// Of the keys that it moved the one with the most remarkable value, and its new aggregate.
    pub key: u32,
    pub value: u32,
    /// See [`DomainStatus::best_place`].
    pub place: String,
    /// Keys that it moved.
    pub keys: u32,
}

/// What became of a command.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Reply {
    /// The connection that it is for.
    #[serde(skip)]
    pub client: u64,
    /// The command's own number.
    pub id: Option<u64>,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Box<Snapshot>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockers: Option<Vec<BlockedComparison>>,
}

/// A place that seeds come to, and from which none goes on in some way; usually a comparison decides there.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BlockedComparison {
    /// The same in every run of one build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Empty, 0 and 0 if they are not known.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
    /// The first line behind it that no run has reached, 0 if it is not known.
    #[serde(default)]
    pub to: u32,
    /// How often the compiler has made this place of the source.
    #[serde(default)]
    pub copies: u64,
    /// What is compared, for instance `i32 ==`; empty if no comparison is known to decide there.
    pub comparison: String,
    /// What it always or never was, or how many ways were never taken.
    pub outcome: String,
    /// Edges behind it that no seed reaches, also those in functions that none enters, and how many such functions there
    /// are, at most 64; missing if the control flow of the target is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub functions: u64,
    /// How many seeds come to it.
    pub seeds: u64,
    /// Runs that solvers have made to pass it.
    pub attempts: u64,
    /// Both operands where they were closest to each other,
    pub operands: String,
    /// first and last byte of each part of the input that is known to move them,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<(usize, usize)>,
    /// and the seed that was worked on then.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "lossy_or_none")]
    pub path: Option<PathBuf>,
}

/// What became of an input that was handed in.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Outcome {
    pub kept: bool,
    pub crash: bool,
    pub hang: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "lossy_or_none")]
    pub path: Option<PathBuf>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Paths are bytes, JSON is text.
pub fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn lossy_or_none<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// Why a campaign ended without an error.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// SIGINT, SIGTERM or SIGHUP.
    User,
    TimeLimit,
    ExecLimit,
    /// `AFL_EXIT_WHEN_DONE`, `AFL_EXIT_ON_TIME`, `AFL_BENCH_UNTIL_CRASH`, `AFL_BENCH_JUST_ONE`.
    Done,
    /// The campaign cannot go on; the process that started it reports the cause.
    Failed,
}

impl StopReason {
    /// How long the end waits for crashes that are not triaged yet.
    #[must_use]
    pub fn patience(self) -> Duration {
        Duration::from_secs(if matches!(self, Self::User | Self::TimeLimit) { 3 } else { 10 })
    }
}
