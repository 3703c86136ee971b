//! What the campaign tells the world: plain data, and the bus that hands it to sinks.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::engine::corpus::SeedId;

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

/// Domains of a waypoint that are told; a target may register any number.
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

/// Paths are bytes, JSON is text.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
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
    /// The campaign cannot go on; the cause is told by whoever started it.
    Failed,
}

impl StopReason {
    /// How long the crashes that are not triaged yet are waited for at the end.
    #[must_use]
    pub fn patience(self) -> Duration {
        Duration::from_secs(if self == Self::User { 3 } else { 10 })
    }
}

/// The campaign's numbers at one moment: everything that the status screen, `fuzzer_stats`,
/// `plot_data` and `--json` show. Times are in the unit of their name; `*_at` are unix seconds, 0 =
/// never.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Snapshot {
    pub started_at: u64,
    pub now: u64,
    /// Milliseconds of campaign time, earlier runs included.
    pub run_time_ms: u64,
    /// Part of it spent in calibration, trimming.
    pub calibration_ms: u64,
    pub trim_ms: u64,
    pub sync_ms: u64,
    pub pid: u32,
    pub cycles_done: u64,
    pub cycles_without_finds: u64,
    /// Longest time without a find, seconds.
    pub longest_without_finds_s: u64,
    pub execs: u64,
    /// By a command (`--control`).
    #[serde(default)]
    pub paused: bool,
    /// Inputs that commands have brought.
    #[serde(default, skip_serializing_if = "Injected::is_none")]
    pub injected: Injected,
    /// Average over this process's run time, and over the last minute at most.
    pub execs_per_sec: f64,
    pub execs_per_sec_last_min: f64,
    pub corpus_count: u64,
    pub corpus_favored: u64,
    pub corpus_found: u64,
    pub corpus_imported: u64,
    pub corpus_variable: u64,
    pub max_depth: u32,
    pub current: Option<SeedId>,
    pub pending_favored: u64,
    pub pending_total: u64,
    /// Percent of edges that behave the same in every run.
    pub stability: f64,
    pub edges_found: u64,
    pub map_size: u64,
    /// Unstable edges.
    pub unstable_edges: u64,
    /// Hit-count bits per edge found (AFL's "count coverage", bits/tuple).
    pub bits_per_edge: f64,
    /// Density of the current seed's map in percent.
    pub current_density: f64,
    pub saved_crashes: u64,
    /// Kinds of crashes, once they were triaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bugs: Option<u64>,
    /// Crashes that did not happen again in a process of their own.
    #[serde(default)]
    pub dependent_crashes: u64,
    /// At the end of a campaign that reports: what has not reached the crash server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<Undelivered>,
    pub total_crashes: u64,
    pub saved_hangs: u64,
    pub total_timeouts: u64,
    pub last_find_at: u64,
    pub last_crash_at: u64,
    pub last_hang_at: u64,
    pub execs_since_crash: u64,
    pub exec_timeout_ms: u64,
    pub slowest_exec_ms: u64,
    pub peak_rss_mb: u64,
    /// Core the fuzzer is bound to.
    pub cpu: Option<usize>,
    pub havoc_expansion: u32,
    pub dictionary_entries: u64,
    /// Finds and runs per stage, in display order (`flip1/2/4`, `arith`, `havoc`, `splice`, …).
    pub stages: Vec<StageYield>,
    /// Stage at work, its progress (runs done, runs planned).
    pub stage: String,
    pub stage_done: u64,
    pub stage_total: u64,
    /// Trimming: bytes removed in percent, runs spent.
    pub trimmed_percent: f64,
    pub trim_execs: u64,
    /// Empty if the target registers no domain. Shown whenever there is one.
    pub domains: Vec<DomainStatus>,
    /// Foreign mutators, in the user's order.
    pub mutators: Vec<MutatorStatus>,
    /// The workers of a fleet (`-j`), whose state this is together; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStatus>,
    /// Whether domains guide the campaign (`-p`).
    pub guided_by_domains: bool,
    /// Unchanging text.
    pub banner: String,
    pub instance: String,
    pub schedule: String,
    /// AFL's words, for example `persistent shmem_testcase`, or `default`.
    pub target_mode: String,
    /// See [`crate::engine::executor::Executor::rung`].
    pub rung: Cow<'static, str>,
    /// What came of snapshots, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_back: Option<PutBack>,
    pub shares: Shares,
    /// Of the whole machine: threads that run or want to, in percent of its cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
    pub command_line: String,
    /// The target's map as a virgin map (0xff = never hit); only in the final snapshot and
    /// whenever `fuzzer_stats` is due, because it is large. File `fuzz_bitmap`.
    #[serde(skip)]
    pub virgin_map: Option<Box<[u8]>>,
}

impl Snapshot {
    /// More wants to run than there are cores, and not by chance.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.load_percent.is_some_and(|load| load > 120.0)
    }

    /// Edges found, in percent of the map.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
    pub fn map_percent(&self) -> f64 {
        self.edges_found as f64 * 100.0 / self.map_size.max(1) as f64
    }
}

/// Reports of bugs that the crash server does not have yet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Undelivered {
    pub reports: u64,
    /// Delivers them.
    pub command: String,
}

/// Inputs that commands have brought to this process, counted at each step of their way: none may be
/// lost or stay unanswered. Each number is that of the step, not made from the others.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Injected {
    /// Taken from the threads that read from clients.
    pub received: u64,
    /// Given to workers; an instance alone gives none.
    #[serde(default)]
    pub forwarded: u64,
    /// Run and judged; in a fleet those of which a worker has answered that.
    pub run: u64,
    /// Answered, whatever the answer.
    pub answered: u64,
}

impl Injected {
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Runs by a process that is put back after each ([`crate::engine::executor::SnapshotRuns`]).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PutBack {
    /// Of all runs, those that had to be made by fork in the end; and why, the last time or for good.
    pub by_fork_percent: f64,
    pub why: Option<String>,
    /// Memory pages, per run.
    pub pages: f64,
    /// Runs that showed something else by fork.
    pub differences: u32,
    /// System calls of main that are made once, and not in each run.
    pub prologue: u32,
}

/// Where the time of this process went, in percent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Shares {
    pub target: f64,
    /// See [`crate::engine::executor::Spent`].
    pub hand_over: Option<f64>,
    /// Of what would be hand-over: waiting for a core that others use.
    #[serde(default)]
    pub waiting: f64,
    /// All else: making inputs, judging, writing files.
    pub fuzzer: f64,
}

/// What one stage brought.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct StageYield {
    pub name: Cow<'static, str>,
    pub finds: u64,
    pub execs: u64,
}

/// What one foreign mutator did and brought.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct MutatorStatus {
    pub name: String,
    pub calls: u64,
    /// Seeds, crashes and hangs that it had a hand in.
    pub finds: u64,
    pub time_ms: u64,
    /// Its part of this process's run time, percent.
    pub time_percent: f64,
    pub failures: u64,
    /// What its introspection says; only in the final snapshot.
    pub says: Option<String>,
}

/// One worker of a fleet.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WorkerStatus {
    pub name: String,
    /// `waiting`, `starting`, `fuzzing`, `paused` or `ended`.
    pub state: Cow<'static, str>,
    pub schedule: String,
    pub execs: u64,
    /// See [`Snapshot`].
    pub execs_per_sec: f64,
    pub corpus_count: u64,
    pub corpus_imported: u64,
    pub edges_found: u64,
    pub saved_crashes: u64,
    pub saved_hangs: u64,
    pub last_find_at: u64,
    /// How often it was started again.
    pub restarts: u32,
    /// Inputs that commands have brought to its process.
    #[serde(default, skip_serializing_if = "Injected::is_none")]
    pub injected: Injected,
}

/// One domain, as the status screen shows it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DomainStatus {
    pub name: String,
    /// Printed name of the reducer (`MAX`, …).
    pub reducer: Cow<'static, str>,
    pub size: u32,
    /// Keys whose aggregate has left the initial value.
    pub keys: u32,
    /// Key (global index) and aggregate with the largest value (smallest for MIN).
    pub best: Option<(u32, u32)>,
    /// File and line of the best key; empty if it has none, like `last_place`.
    pub best_place: String,
    /// Last key that improved, its new aggregate, and the unix second.
    pub last: Option<(u32, u32, u64)>,
    pub last_place: String,
    pub waypoints: u64,
}

/// A consumer of events. A sink that fails says so by itself; it never ends the campaign.
pub trait EventSink {
    fn handle(&mut self, event: &Event);

    /// What one worker of a fleet says; [`EventSink::handle`] hears of the whole then. For sinks
    /// that know the difference.
    fn handle_of(&mut self, _worker: &str, _event: &Event) {}

    /// The file that the last event could not be written to. Asked for at the end: until then a sink
    /// tries again with the next event.
    fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        None
    }
}

/// Hands every event to the sinks in a fixed order.
#[derive(Default)]
pub struct EventBus {
    sinks: Vec<Box<dyn EventSink>>,
}

impl EventBus {
    pub fn add(&mut self, sink: Box<dyn EventSink>) {
        self.sinks.push(sink);
    }

    pub fn send(&mut self, event: &Event) {
        for sink in &mut self.sinks {
            sink.handle(event);
        }
    }

    /// See [`EventSink::take_failure`].
    pub fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        self.sinks.iter_mut().find_map(|sink| sink.take_failure())
    }

    pub fn send_of(&mut self, worker: &str, event: &Event) {
        for sink in &mut self.sinks {
            sink.handle_of(worker, event);
        }
    }
}
