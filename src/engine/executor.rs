//! Execution of inputs: the trait that every engine of `exec` implements, and the observation of a run.
//!
//! [`super::fake::FakeExecutor`] needs no process: it computes the maps from the input.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;

use super::coverage::Classes;
use super::coverage::flow::FunctionFlow;
use super::domain::{Domain, DsfView, Site};
use super::messages::Beginning;
use super::mutate::Candidate;
use super::mutate::words::Word;
use crate::options::RunMode;
use ffuzz_comparisons::log::ComparisonLog;
use ffuzz_sys::remedy::Remedy;

/// Reason why a run has no observation.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RunError {
    /// No space left; the run can be retried once there is some.
    #[error("{cause}")]
    #[diagnostic(help("free some space"))]
    Full { cause: String },
    /// Temporary error; the run can be retried.
    #[error("{0}")]
    #[diagnostic(help("{}", .0.remedy()))]
    Passing(Failure),
    #[error("a run was given up because an end was requested")]
    #[diagnostic(help("start it again"))]
    Interrupted,
    /// Permanent error; the target can no longer be run.
    #[error("{0}")]
    #[diagnostic(help("{}", .0.remedy()))]
    Failed(Failure),
}

/// An error with a remedy.
pub type Failure = Box<dyn Diagnostic + Send + Sync>;

/// A request to end the campaign.
pub use ffuzz_sys::stop::StopRequest;

/// A file whose code has edge counters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Module {
    /// Indices in the edge map.
    pub counters: Range<usize>,
    pub file: PathBuf,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExitKind {
    Ok,
    /// Killed by a signal, or an exit code that counts as a crash (`signal` is 0 then).
    Crash {
        signal: i32,
    },
    /// Killed by the fuzzer at the timeout.
    Hang,
    /// Killed by the fuzzer at the soft limit, long before the timeout: it computed for much longer than usual.
    Cut,
    /// Killed by a SIGKILL that the fuzzer did not send: nearly always the kernel's out-of-memory killer.
    Oom,
    /// Ended, stopped or damaged the target's fork server twice; nothing else is known of the run.
    Lost,
}

/// Observation of one run. Borrows the executor, so no other run can start while the maps are read.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Position of the candidate in the batch.
    pub index: usize,
    pub exit: ExitKind,
    pub duration: Duration,
    /// Raw edge counters.
    pub edges: &'a [u8],
    /// Domain maps; empty if there are none.
    pub dsf: DsfView<'a>,
    /// Logged comparisons, see [`RunSettings::log_comparisons`].
    pub comparisons: ComparisonLog<'a>,
}

/// Time spent in runs, split by use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub target: Duration,
    /// Time for wake-ups and forks; None (and included in `target`) if runs are ordered by pipes.
    pub hand_over: Option<Duration>,
}

/// Processor time of a fork server and of its children, living ones included.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    pub server: Duration,
    pub children: Duration,
}

/// Input-generating functions of a libFuzzer harness.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InputFunctions {
    /// `LLVMFuzzerCustomMutator`
    pub mutator: bool,
    /// `LLVMFuzzerCustomCrossOver`
    pub crossover: bool,
}

impl InputFunctions {
    /// True if the harness has one of them.
    #[must_use]
    pub fn any(self) -> bool {
        self.mutator || self.crossover
    }
}

/// Statistics of runs in snapshot mode.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SnapshotRuns {
    pub runs: u64,
    /// Runs that had to be repeated by fork.
    pub by_fork: u64,
    /// Reason for the last of these, or for giving up snapshots.
    pub why: Option<String>,
    /// Memory pages restored.
    pub pages: u64,
    /// Runs whose repetition by fork gave a different result.
    pub differences: u32,
    /// Number of system calls of `main` before the snapshot.
    pub prologue: u32,
    /// Runs that begin after the first messages of their input ([`RunSettings::beginning`]), and the total number of
    /// these messages.
    pub behind: u64,
    pub behind_messages: u64,
    /// Time of the last process for startup, snapshot and first run.
    pub start: Duration,
}

impl Spent {
    /// Total time of runs; zero if the executor does not measure it.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.target + self.hand_over.unwrap_or_default()
    }

    pub fn add(&mut self, elapsed: Duration, work: Option<Duration>) {
        let work = work.map(|work| work.min(elapsed));
        self.target += work.unwrap_or(elapsed);
        if let Some(work) = work {
            *self.hand_over.get_or_insert_default() += elapsed - work;
        }
    }
}

/// Settings for runs. A change takes effect in every engine with the next run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Wall time after which a run is a hang.
    pub timeout: Duration,
    /// Extends the timeout while other programs keep the run's process from a core.
    pub allow_for_load: bool,
    /// Processor time of the target after which [`Executor::run`] may cut a run ([`ExitKind::Cut`]).
    /// [`Executor::observe`] cuts only runs that log comparisons, after a multiple of it.
    pub soft_limit: Option<Duration>,
    /// Makes [`Executor::run`] show every run, uninteresting ones as well.
    pub show_every_run: bool,
    /// Makes domains count as well.
    pub watch_domains: bool,
    /// Requests the path of every run ([`Executor::quiet_paths`]): [`map_hash`] of its edges or of their hit-count
    /// classes.
    ///
    /// [`map_hash`]: crate::coverage::map_hash
    pub paths: Option<Classes>,
    /// Makes the target log comparisons, if it can ([`TargetInfo::logs_comparisons`]). Such runs show no edges and no
    /// keys. Each change costs a new process.
    pub log_comparisons: bool,
    /// Messages that all inputs begin with: runs start after them where possible ([`TargetInfo::shares_beginnings`]).
    /// Each change costs a new process, and so does each input that begins otherwise.
    pub beginning: Option<Beginning>,
}

impl RunSettings {
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            allow_for_load: false,
            soft_limit: None,
            show_every_run: false,
            watch_domains: false,
            paths: None,
            log_comparisons: false,
            beginning: None,
        }
    }
}

/// Code that coverage does not include.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UnseenCode {
    /// Libraries that the target loads at run time.
    pub libraries: Vec<PathBuf>,
    /// Program that replaces the target by `exec`, under the name the target uses.
    pub program: Option<PathBuf>,
}

/// Result of the first session of a target with a socket (`--net`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FirstSession {
    /// One line for the user.
    pub line: String,
    /// Remedy if there was no session.
    pub remedy: Option<String>,
    /// True if the target used the expected socket.
    pub is_used: bool,
}

/// Facts about a target. Only methods that say so run it.
pub trait TargetInfo {
    /// Bytes of the edge map.
    fn map_size(&self) -> usize;

    /// Number of edges that can be counted, at most the map size: the map of several modules has padding, and not each
    /// block of a program without source has a counter.
    fn edges(&self) -> usize {
        self.map_size()
    }

    fn domains(&self) -> &[Domain];

    /// True if a harness function takes the inputs: then an empty input is valid.
    fn is_harness(&self) -> bool {
        false
    }

    /// Number of runs without observation because the harness rejected their input (−1 from `LLVMFuzzerTestOneInput`).
    /// Wraps; restarts at 0 with the target.
    fn rejected_runs(&self) -> u32 {
        0
    }

    /// Names of static keys. Reads the target's files.
    fn sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// Dictionary words of the target's files, and the files with a damaged word table. Reads these files.
    fn words(&self) -> (Vec<Word>, Vec<PathBuf>) {
        Default::default()
    }

    /// Known modules whose edges are counted.
    fn modules(&self) -> Vec<Module> {
        Vec::new()
    }

    /// Source position of a counter's block, if known. The first call reads the target's files.
    fn place_of_counter(&self, _counter: u32) -> Option<Site> {
        None
    }

    /// Address and index of each counter of `file`, ascending; None if the file has its own table.
    fn counter_addresses(&self, _file: &Path) -> Option<Vec<(u64, usize)>> {
        None
    }

    /// Known control flow of the target, and the files with a damaged flow table. Reads these files.
    fn flow(&self) -> (Vec<FunctionFlow>, Vec<PathBuf>) {
        Default::default()
    }

    /// One line about the tool that makes the target's coverage visible; None if the target does it itself.
    fn introduction(&self) -> Option<String> {
        None
    }

    /// AFL's words for `target_mode`, for example `persistent shmem_testcase`; `default` if none
    /// applies.
    fn target_mode(&self) -> String;

    /// The execution mode in use now.
    fn run_mode(&self) -> RunMode;

    /// Statistics of snapshot mode, if it was used.
    fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        None
    }

    /// True if runs can begin after messages that all inputs share, see [`RunSettings::beginning`].
    fn shares_beginnings(&self) -> bool {
        false
    }

    /// Largest useful batch now.
    fn batch_size(&self) -> usize {
        1
    }

    /// Source positions of comparisons. Reads the target's files.
    fn comparison_sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// Finds code that coverage does not include. Runs the target once with `input`, passed in `file` if it takes one.
    fn unseen_code(&self, _input: &[u8], _file: &Path) -> UnseenCode {
        UnseenCode::default()
    }

    /// Examines the first session of a target with a socket; None if it has no socket. Runs the target once with
    /// `input`, passed in `file` if it takes one.
    fn first_session(&self, _input: &[u8], _file: &Path) -> Option<FirstSession> {
        None
    }

    /// Finds the socket on which a hanging run waits for connections or data, as a value of `--net`. Runs the target
    /// once with `input`, passed in `file` if it takes one.
    fn awaited_socket(&self, _input: &[u8], _file: &Path) -> Option<String> {
        None
    }

    /// True if runs can log comparisons.
    fn logs_comparisons(&self) -> bool {
        false
    }

    /// Input-generating functions of the harness.
    fn input_functions(&self) -> InputFunctions {
        InputFunctions::default()
    }

    /// True if the log is in AFL++'s format, see [`ComparisonLog::is_partial`].
    fn has_partial_log(&self) -> bool {
        false
    }

    /// Number of runs so far.
    fn execs(&self) -> u64;

    /// Time spent in these runs.
    fn spent(&self) -> Spent {
        Spent::default()
    }

    /// Processor time of the runs; None if it cannot be measured apart. Reads kernel files.
    fn processor_time(&self) -> Option<ProcessorTime> {
        None
    }

    /// Pid of the fork server; None if each run is a child of the fuzzer.
    fn server(&self) -> Option<i32> {
        None
    }

    /// Pid of the last run's process if it takes many inputs; None if each run has its own process.
    fn process(&self) -> Option<i32> {
        None
    }

    /// Number of restarts so far.
    fn restarts(&self) -> u64 {
        0
    }

    /// True if the end of the campaign was requested: optional runs should be skipped.
    fn is_stopping(&self) -> bool {
        false
    }
}

/// Runs inputs. The unit is a batch; an executor limited to one run at a time stops after each.
pub trait Executor {
    fn info(&self) -> &dyn TargetInfo;

    fn settings(&self) -> &RunSettings;

    fn settings_mut(&mut self) -> &mut RunSettings;

    /// Runs one input and always returns its observation.
    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError>;

    /// Runs an input that `send` delivers to the target: before the run, or if `late`, once the receiving process
    /// exists.
    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError>;

    /// Runs `batch[*next..]` in order until a run may be interesting, moves `next` past it and returns its observation;
    /// None at the end of the batch. `next` is 0 for a new batch.
    fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        let index = *next;
        let Some(candidate) = batch.get(index) else { return Ok(None) };
        *next += 1;
        Ok(Some(Observation { index, ..self.observe(&candidate.bytes)? }))
    }

    /// Paths of the well-ended runs that the last call of [`Executor::run`] did not show, with their batch positions.
    fn quiet_paths(&self) -> &[(usize, u64)] {
        &[]
    }

    /// Returns true if the target reads `input` from standard input or a file; None if unknown. May need an extra run,
    /// which it does not show.
    fn reads_input(&mut self, _input: &[u8]) -> Result<Option<bool>, RunError> {
        Ok(None)
    }

    /// Sets the virgin map: per edge the hit-count classes not seen yet.
    fn learn_edges(&mut self, _virgin: &[u8]) {}

    /// Sets the threshold that values of `key` must exceed to be interesting.
    fn learn_key(&mut self, _key: u32, _threshold: u32) {}

    /// Ends the process that takes many inputs, if any; the next run starts a new one.
    fn end_process(&mut self) {}

    /// Sets the stop request: once it is raised, [`Executor::run`] may return None before the end of a batch and long
    /// runs are abandoned ([`RunError::Interrupted`]). None: no request.
    fn stop_on(&mut self, _request: Option<StopRequest>) {}

    /// Takes the unreported notes for the user about the target, one line each.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Takes a one-line account of this input's crash or hang that its file does not contain; None for most. Call it
    /// before the next crash or hang.
    fn take_account(&mut self, _input: &[u8]) -> Option<String> {
        None
    }

    /// Takes the tokens that the target offered at startup (AFL's "autodictionary").
    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Takes the reason for a restart since the last call.
    fn take_restart(&mut self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_target_did_not_work_was_hand_over() {
        let us = Duration::from_micros;
        let mut spent = Spent::default();
        spent.add(us(10), None);
        assert_eq!((spent.target, spent.hand_over), (us(10), None));
        spent.add(us(10), Some(us(7)));
        // More than there was: the target says what it likes.
        spent.add(us(10), Some(us(99)));
        assert_eq!((spent.target, spent.hand_over), (us(27), Some(us(3))));
    }
}
