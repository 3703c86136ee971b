//! Checked and resolved options of the fuzzer. `cmd::fuzz` makes them from the command line and the environment, which
//! nothing reads later.

use std::ffi::{CString, OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::env::AssetPlaces;
use crate::net::NetOptions;
pub use ffuzz_engine::options::{
    DeterministicStage, Inspected, LENGTH_SHARE, MutationOptions, RunMode, Schedule, Strategy,
    Wanted,
};

/// All settings of a campaign. `campaign` splits them; no other part gets all of them.
#[derive(Clone, Debug)]
pub struct Options {
    pub input: Input,
    pub output: OutputOptions,
    pub target: TargetOptions,
    pub schedule: Schedule,
    pub domains: DomainMode,
    pub mutation: MutationOptions,
    pub custom: CustomOptions,
    pub limits: Limits,
    pub coverage: CoverageOptions,
    pub seeds: SeedPolicy,
    pub sync: SyncOptions,
    pub calibration: CalibrationOptions,
    pub findings: FindingOptions,
    pub sanitizers: SanitizerOptions,
    pub logger: Logger,
    pub statsd: Option<StatsdOptions>,
    pub control: Option<ControlPlace>,
    /// `--metrics`.
    pub metrics: Option<SocketAddr>,
    /// None: crashes are saved but not triaged.
    pub triage: Option<TriageOptions>,
    pub ui: UiMode,
    pub colors: Colors,
    pub banner: String,
    /// `-I`: shell command run for each new crash.
    pub crash_command: Option<OsString>,
    /// `-s`: fixed seed of the random generator.
    pub rng_seed: Option<u64>,
}

/// `-w`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SanitizerOptions {
    /// Programs that replace the target's program.
    pub builds: Vec<PathBuf>,
    pub inspected: Inspected,
}

/// `-c`: the program that logs comparisons for the solvers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Logger {
    /// The target, if it can log.
    #[default]
    TargetIfAble,
    /// `-c 0`: the target, even one of AFL++.
    Target,
    /// Another program that replaces the target's program.
    Build(PathBuf),
}

/// `--control`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ControlPlace {
    Path(PathBuf),
    /// `-`: standard input.
    Stdin,
}

/// Coverage states to load and to save.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CoverageOptions {
    /// `--load-coverage`, absolute.
    pub load: Option<PathBuf>,
    /// `--save-coverage`, absolute.
    pub save: Option<PathBuf>,
}

impl CoverageOptions {
    /// Returns true if neither is requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Part of `crashes::triage`: the process that triages the campaign's crashes.
#[derive(Clone, Debug)]
pub struct TriageOptions {
    pub argv: Vec<OsString>,
    /// Variables added to the fuzzer's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Output folder of the triage.
    pub folder: PathBuf,
    /// Triages hangs as well.
    pub hangs: bool,
    /// Looks at domain values as well, from the beginning of the campaign.
    pub records: bool,
}

/// `-i DIR` or `-i -`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Input {
    Directory(PathBuf),
    /// `-i -`, or `AFL_AUTORESUME` with a non-empty instance folder.
    Resume,
}

/// Part of `disk::output`.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// `-o`, absolute.
    pub root: PathBuf,
    /// Name of the instance folder: `default`, or the name given to `-M`/`-S`.
    pub instance: String,
    /// True without `-M`/`-S`: links in `root` lead into the instance folder.
    pub links: bool,
    pub main_node: bool,
    /// Extension of stored files (`-e`), without the dot.
    pub extension: Option<String>,
    /// Folder of `.cur_input` (`AFL_TMPDIR`).
    pub tmpdir: Option<PathBuf>,
    pub stats_interval: Duration,
    pub crash_readme: bool,
    /// All words of the command line, for `fuzzer_setup` and `fuzzer_stats`.
    pub command_line: Vec<OsString>,
    /// The shell line that resumes this campaign; None if it cannot be resumed.
    pub resume: Option<String>,
    /// Known variables that are set, for `fuzzer_setup`.
    pub environment: Vec<(String, String)>,
    /// `AFL_AUTORESUME` was given (changes the remedy in an error message).
    pub autoresume: bool,
}

/// Part of `exec`.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// `PATH`, to find a program without a slash.
    pub search_path: Option<OsString>,
    /// Program and arguments, with unreplaced `@@`.
    pub command: Vec<OsString>,
    /// `-f`: the file that the target reads.
    pub file: Option<PathBuf>,
    pub timeout: TimeoutSpec,
    /// Maximum address space in bytes (`-m`); None = unlimited.
    pub memory_limit: Option<u64>,
    /// `AFL_FORKSRV_INIT_TMOUT`; default: ten times the run timeout.
    pub init_timeout: Option<Duration>,
    /// `AFL_HANG_TMOUT`; default: 1 s, or `-t` if that is larger.
    pub hang_timeout: Option<Duration>,
    /// `AFL_MAP_SIZE`.
    pub map_size: Option<usize>,
    /// `AFL_CRASH_EXITCODE`, 0..=255.
    pub crash_exit_code: Option<u8>,
    /// Every exit code but 0 counts as a crash (`tmin -x`).
    pub exit_is_crash: bool,
    /// `AFL_KILL_SIGNAL` (default SIGKILL).
    pub kill_signal: i32,
    /// `AFL_FORK_SERVER_KILL_SIGNAL` (default SIGTERM).
    pub fork_server_kill_signal: i32,
    /// `--run-mode`: the fastest execution mode allowed.
    pub run_mode: RunMode,
    /// Allow targets without a loop to be restored instead of forked (not `FFUZZ_NO_SNAPSHOT`).
    pub snapshots: bool,
    /// Snapshots are taken at main, even if the input is read much later (`FFUZZ_SNAPSHOT_AT_MAIN`).
    pub snapshots_at_main: bool,
    /// Batch sizes must not depend on measured times (`-s`).
    pub steady_batches: bool,
    /// `AFL_PERSISTENT`: the target has a loop, even if its file does not show that.
    pub force_persistent: bool,
    /// `AFL_DEFER_FORKSRV`: the target defers its fork server, even if its file does not show that.
    pub force_deferred: bool,
    /// `-n`: no instrumentation, every run is fork + exec.
    pub non_instrumented: bool,
    /// `-Q`: fuzz a program without instrumentation.
    pub native: Option<NativeOptions>,
    /// Folders for libraries that are loaded into the target.
    pub places: AssetPlaces,
    /// `--guard-heap`: `extra_env` contains the library for it.
    pub guards_heap: bool,
    /// `--net`: the target's socket that takes the inputs.
    pub net: Option<NetOptions>,
    /// `AFL_NO_FORKSRV`.
    pub no_fork_server: bool,
    /// `AFL_DUMB_FORKSRV`: `-n` with a fork server.
    pub blind_fork_server: bool,
    /// `AFL_SKIP_BIN_CHECK`.
    pub skip_binary_check: bool,
    /// `AFL_NO_AUTODICT`.
    pub ignore_auto_dictionary: bool,
    /// `AFL_DEBUG` or `AFL_DEBUG_CHILD`: show the target's output.
    pub show_output: bool,
    /// Variables added to the target's environment: `AFL_PRELOAD` as LD_PRELOAD, LD_BIND_NOW, sanitizer options that
    /// the user did not set, and last `AFL_TARGET_ENV`.
    pub extra_env: Vec<(OsString, OsString)>,
    /// `-N`: truncate the input file instead of replacing it.
    pub keep_input_file: bool,
    /// `AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES`.
    pub skip_core_pattern_check: bool,
    /// `-b N`; None = AFL_NO_AFFINITY or the first free core.
    pub cpu: CpuChoice,
}

/// Options to fuzz a program without instrumentation.
#[derive(Clone, Debug, Default)]
pub struct NativeOptions {
    /// `--modules`: file names separated by colons, or `all`. None: the program and all libraries that are not part of
    /// the language runtime.
    pub modules: Option<String>,
    pub engine: NativeEngine,
    /// Domains that the runtime counts, in the order of the maps; without breakpoints none.
    pub domains: Vec<NativeDomain>,
}

/// A domain that needs no source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NativeDomain {
    Mem,
    Heap,
    Out,
    Perf,
    Slow,
}

impl NativeDomain {
    pub const ALL: [Self; 5] = [Self::Mem, Self::Heap, Self::Out, Self::Perf, Self::Slow];
    /// Domains that count by default.
    pub const USUAL: [Self; 3] = [Self::Mem, Self::Heap, Self::Out];

    /// Name as in `WAYPOINTS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mem => "mem",
            Self::Heap => "heap",
            Self::Out => "out",
            Self::Perf => "perf",
            Self::Slow => "slow",
        }
    }

    /// The domain of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|domain| domain.name() == name)
    }

    /// Returns true if the domain is about executed blocks, which the copies of functions count.
    #[must_use]
    pub fn counts_blocks(self) -> bool {
        matches!(self, Self::Perf | Self::Slow)
    }
}

/// Source of coverage for a program without instrumentation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NativeEngine {
    /// Breakpoints if the program supports them, otherwise the emulator.
    #[default]
    Any,
    /// `--native`.
    Breakpoints,
    /// `--qemu`.
    Emulator,
}

impl TargetOptions {
    /// Options for another build of the target, which is instrumented and has its own heap.
    #[must_use]
    pub fn for_other_build(&self, program: OsString) -> Self {
        let mut options = Self { native: None, guards_heap: false, ..self.clone() };
        options.command[0] = program;
        if self.guards_heap {
            // The library is first in the list.
            let preload = |name: &OsString| name == "LD_PRELOAD";
            let place = options.extra_env.iter().position(|(name, _)| preload(name));
            if let Some((_, list)) = place.map(|place| options.extra_env.remove(place)) {
                let bytes = list.as_bytes();
                let rest = bytes.iter().position(|byte| *byte == b':').map(|at| &bytes[at + 1..]);
                let rest = rest.map(|rest| ("LD_PRELOAD".into(), OsStr::from_bytes(rest).into()));
                options.extra_env.extend(rest);
            }
        }
        options
    }

    /// Options for a command line only: no limits, AFL's signals.
    #[must_use]
    pub fn for_command(command: Vec<OsString>) -> Self {
        Self {
            search_path: None,
            command,
            file: None,
            timeout: TimeoutSpec::Auto,
            memory_limit: None,
            init_timeout: None,
            hang_timeout: None,
            map_size: None,
            crash_exit_code: None,
            exit_is_crash: false,
            kill_signal: libc::SIGKILL,
            fork_server_kill_signal: libc::SIGTERM,
            run_mode: RunMode::Batch,
            snapshots: false,
            snapshots_at_main: false,
            steady_batches: false,
            force_persistent: false,
            force_deferred: false,
            non_instrumented: false,
            native: None,
            places: AssetPlaces::default(),
            guards_heap: false,
            net: None,
            no_fork_server: false,
            blind_fork_server: false,
            skip_binary_check: false,
            ignore_auto_dictionary: false,
            show_output: false,
            extra_env: Vec::new(),
            keep_input_file: false,
            skip_core_pattern_check: false,
            cpu: CpuChoice::None,
        }
    }

    /// Returns true if the user's options make this exit code a crash.
    #[must_use]
    pub fn is_crash_code(&self, code: u8) -> bool {
        self.crash_exit_code == Some(code) || (self.exit_is_crash && code != 0)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CpuChoice {
    /// Takes a free core; starts unbound if there is none.
    Free,
    Fixed(usize),
    None,
}

/// `-t`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeoutSpec {
    /// Without `-t`: 1 s at first, then derived from the seeds.
    Auto,
    /// `-t N`.
    Fixed(Duration),
    /// `-t N+`: derived from the seeds, at most N; slower seeds are skipped.
    Upto(Duration),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DomainMode {
    /// Domain maps are read and reported, but guide nothing.
    Off,
    /// `-p`: keep waypoints.
    Guide,
    /// `--dsf-record`: write improving inputs to `perf_inputs/` instead of keeping them as seeds.
    Record,
}

/// Part of `mutators`: foreign mutators.
#[derive(Clone, Debug, Default)]
pub struct CustomOptions {
    /// `AFL_CUSTOM_MUTATOR_LIBRARY`.
    pub libraries: Vec<PathBuf>,
    /// `AFL_PYTHON_MODULE`.
    pub python: Option<PythonOptions>,
    pub killerbeez: KillerbeezOptions,
    /// `AFL_CUSTOM_MUTATOR_ONLY`: only foreign mutators make inputs.
    pub only: bool,
    /// `AFL_CUSTOM_MUTATOR_LATE_SEND`.
    pub late_send: bool,
    /// `AFL_POST_PROCESS_KEEP_ORIGINAL`.
    pub keep_original: bool,
    /// `AFL_DEBUG`: report each step of foreign trimming.
    pub debug: bool,
    /// `--net` without `--mutator-sees session`: mutators get one message of an input at a time.
    pub by_message: bool,
    /// `AFL_CUSTOM_INFO_*`, unless the user set them.
    pub info: Vec<(String, OsString)>,
}

impl CustomOptions {
    /// Returns true if no mutator is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.libraries.is_empty() && self.python.is_none() && self.killerbeez.modules.is_empty()
    }
}

/// Part of `mutators`: `--mutator` with Killerbeez modules.
#[derive(Clone, Debug, Default)]
pub struct KillerbeezOptions {
    pub modules: Vec<KillerbeezModule>,
    /// `--mutator-ratio`: size of a module's buffer relative to the input.
    pub ratio: f64,
    /// `--mutator-only`: run only the inputs that the single module makes of the single seed.
    pub only: bool,
    /// `--mutator-state`, with `only`.
    pub state: Option<PathBuf>,
    /// `-G`.
    pub max_len: usize,
    /// `-s`, if given.
    pub fixed_seed: Option<u64>,
}

/// `AFL_PYTHON_MODULE`.
#[derive(Clone, Debug)]
pub struct PythonOptions {
    pub module: String,
    /// `VIRTUAL_ENV`, as `activate` sets it.
    pub virtual_env: Option<PathBuf>,
}

/// A Killerbeez module.
#[derive(Clone, Debug)]
pub struct KillerbeezModule {
    pub path: PathBuf,
    pub name: String,
    /// `--mutator-options`, passed on unchanged.
    pub options: Option<CString>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// `-V`.
    pub time: Option<Duration>,
    /// `-E`.
    pub execs: Option<u64>,
    /// `AFL_BENCH_JUST_ONE`.
    pub one_seed: bool,
    /// `AFL_BENCH_UNTIL_CRASH`.
    pub until_crash: bool,
    /// `AFL_EXIT_WHEN_DONE`.
    pub when_done: bool,
    /// `AFL_EXIT_ON_TIME`: time without a find.
    pub without_finds: Option<Duration>,
}

/// Imports from other fuzzers.
#[derive(Clone, Debug, Default)]
pub struct SyncOptions {
    /// Read other instances in the output folder (`-M`, `-S`).
    pub instances: bool,
    /// `-F`: folders of other tools, absolute.
    pub folders: Vec<PathBuf>,
    /// `AFL_SYNC_TIME`: maximum time between two listings of all folders, in case the file system does not report
    /// writes.
    pub relist: Duration,
    /// `AFL_IMPORT_FIRST`: import everything before fuzzing begins.
    pub first: bool,
    /// `AFL_FINAL_SYNC`: import once more at the end.
    pub last: bool,
}

/// Data saved with finds in addition to the input.
#[derive(Clone, Copy, Debug, Default)]
pub struct FindingOptions {
    /// `AFL_IGNORE_TIMEOUTS`: count hangs, but do not store them.
    pub ignore_timeouts: bool,
    /// `AFL_CRASH_TRACES`: the target's output when it crashes.
    pub traces: bool,
    /// `AFL_PERSISTENT_RECORD`: maximum number of inputs saved that preceded a crash.
    pub record: usize,
}

/// `AFL_STATSD`: metrics for a StatsD server, once per second.
#[derive(Clone, Debug)]
pub struct StatsdOptions {
    pub host: String,
    pub port: u16,
    pub tags: StatsdTags,
}

/// Format of tags (`AFL_STATSD_TAGS_FLAVOR`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StatsdTags {
    #[default]
    None,
    Dogstatsd,
    Influxdb,
    Librato,
    Signalfx,
}

/// Treatment of seeds.
#[derive(Clone, Debug, Default)]
pub struct SeedPolicy {
    /// `AFL_EXIT_ON_SEED_ISSUES`.
    pub exit_on_issues: bool,
    /// `AFL_CRASHING_SEEDS_AS_NEW_CRASH`.
    pub crashes_as_finds: bool,
    /// `AFL_CMPLOG_ONLY_NEW`: do not solve the comparisons of seeds.
    pub leave_comparisons: bool,
    /// `AFL_SHUFFLE_QUEUE`.
    pub shuffle: bool,
    pub wanted: Wanted,
    /// `--split`: terminator of each message in a seed that is no list of messages.
    pub separator: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CalibrationOptions {
    /// `AFL_CAL_FAST`: 3 runs instead of 7.
    pub fast: bool,
    /// `AFL_NO_STARTUP_CALIBRATION`: a single run per starting seed.
    pub skip_at_start: bool,
    /// `AFL_NO_WARN_INSTABILITY`.
    pub silent_instability: bool,
}

/// Colors used on the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Colors {
    /// `NO_COLOR`, `AFL_NO_COLOR`.
    None,
    /// `AFL_NO_CPU_RED`: do not mark a high load.
    CalmLoad,
    All,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UiMode {
    /// Full screen on a terminal, plain lines elsewhere.
    Auto,
    /// `AFL_FORCE_UI`.
    Screen,
    /// `AFL_NO_UI`.
    Lines,
    /// `AFL_QUIET`.
    Quiet,
    /// `--json`: JSON lines for programs.
    Json,
}
