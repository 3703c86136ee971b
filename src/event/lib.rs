//! Events and statistics of a campaign as plain data ([`Event`], [`Snapshot`]), and the bus that passes them to sinks.

mod bus;
mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use ffuzz_engine::corpus::SeedId;

pub use bus::{EventBus, EventSink};
pub use snapshot::{
    CampaignSetup, Control, Corpus, Coverage, Cycles, DomainStatus, Finds, Injected, MutatorStatus,
    PartOfTime, Resources, Runs, Search, Shares, Snapshot, SnapshotUse, StageYield, Times, Turn,
    Undelivered, WorkerStatus, join,
};

/// A campaign event. Executions are no events but counters in [`Snapshot`].
///
/// In JSON (`--json`), an object whose `event` is the variant's name. A fleet parses the events of its workers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The dry run is over and fuzzing begins.
    Started,
    /// A starting seed was imported during the dry run: number `index` of `total`, from 1.
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
        source: InputOrigin,
        /// Gains per improved domain, at most [`MOST_GAINS`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gains: Vec<DomainGain>,
    },
    CrashSaved {
        number: u64,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        signal: i32,
        #[serde(flatten)]
        source: InputOrigin,
    },
    HangSaved {
        number: u64,
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
        #[serde(flatten)]
        source: InputOrigin,
    },
    /// The answer to a command (`--control`).
    Reply(Reply),
    /// Every seed had a turn.
    CycleFinished { cycles: u64 },
    /// The fork server died or was replaced; `reason` is one line.
    TargetRestarted { reason: String },
    /// The lines that introduce the target's domains; only with `-p`.
    DomainsFound { lines: String },
    /// A problem that does not stop the campaign.
    Warning { message: String },
    /// A result that the user has waited for.
    Notice { message: String },
    /// The current statistics, at most five times per second.
    Tick(Box<Snapshot>),
    /// The end, with the final statistics.
    Stopped {
        reason: StopReason,
        /// Places and commands to continue with.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        next: Vec<Pointer>,
        #[serde(flatten)]
        snapshot: Box<Snapshot>,
    },
}

/// A path to inspect or a command to continue with.
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

/// Maximum number of domains reported for a waypoint; a target may register any number.
pub const MOST_GAINS: usize = 16;

/// Origin of an input. In JSON `origin`, with `peer` next to it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "origin", rename_all = "lowercase")]
pub enum InputOrigin {
    /// Derived from a seed by this campaign.
    #[default]
    Own,
    /// A starting seed.
    Seed,
    /// A find of another fuzzer.
    Import { peer: String },
    /// Injected by a command.
    Inject,
}

/// Gain of an input in one domain.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DomainGain {
    pub domain: String,
    /// The improved key with the most remarkable value.
    pub key: u32,
    /// New aggregate of `key`.
    pub value: u32,
    /// See [`DomainStatus::best_place`].
    pub place: String,
    /// Number of improved keys.
    pub keys: u32,
}

/// Result of a command.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Reply {
    /// Connection that receives the reply.
    #[serde(skip)]
    pub client: u64,
    /// Number that the client gave the command.
    pub id: Option<u64>,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(flatten)]
    pub outcome: Option<InjectionOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Box<Snapshot>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockers: Option<Vec<BlockedComparison>>,
}

/// A place that seeds reach but where at least one outcome never occurs; usually a comparison decides there.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BlockedComparison {
    /// Identifier, stable across runs of one build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Source file, or empty if unknown; `line` and `column` are then 0.
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
    /// First unreached line behind this place; 0 if unknown.
    #[serde(default)]
    pub to: u32,
    /// Number of copies that the compiler made of this place.
    #[serde(default)]
    pub copies: u64,
    /// The deciding comparison, for instance `i32 ==`; empty if unknown.
    pub comparison: String,
    /// The outcome that always or never occurred, or the number of untaken branches.
    pub outcome: String,
    /// Number of unreached edges behind this place, including those in functions that no seed enters. Missing if the
    /// target's control flow is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    /// Number of such functions, at most 64.
    pub functions: u64,
    /// Number of seeds that reach this place.
    pub seeds: u64,
    /// Number of solver runs that tried to pass it.
    pub attempts: u64,
    /// Both operands at their closest.
    pub operands: String,
    /// First and last byte of each part of the input known to affect the operands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<(usize, usize)>,
    /// The seed that the solver worked on when the operands were closest.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "lossy_or_none")]
    pub path: Option<PathBuf>,
}

/// Result of an injected input.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct InjectionOutcome {
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

/// Serializes a path as text; invalid UTF-8 is replaced.
pub fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn lossy_or_none<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// The reason for the end of a campaign.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// SIGINT, SIGTERM or SIGHUP.
    User,
    TimeLimit,
    ExecLimit,
    /// `AFL_EXIT_WHEN_DONE`, `AFL_EXIT_ON_TIME`, `AFL_BENCH_UNTIL_CRASH`, `AFL_BENCH_JUST_ONE`.
    Done,
    /// The campaign failed; the process that started it reports the cause.
    Failed,
}

impl StopReason {
    /// Maximum wait for untriaged crashes at the end.
    #[must_use]
    pub fn patience(self) -> Duration {
        Duration::from_secs(if matches!(self, Self::User | Self::TimeLimit) { 3 } else { 10 })
    }
}
