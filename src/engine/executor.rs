//! What runs inputs: the trait that every engine of `exec` implements, and what can be seen of a run.
//!
//! No process is needed for it: [`super::fake::FakeExecutor`] computes the maps from the input.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;

use super::comparison::ComparisonLog;
use super::coverage::Classes;
use super::coverage::flow::FunctionFlow;
use super::domain::{Domain, DsfView, Site};
use super::messages::Beginning;
use super::mutate::Candidate;
use super::mutate::words::Word;
use crate::options::RunMode;
use ffuzz_sys::remedy::Remedy;

/// Why there is nothing to be seen of a run.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RunError {
    /// The run can be tried again once there is room.
    #[error("{cause}")]
    #[diagnostic(help("free some space"))]
    Full { cause: String },
    /// The run can be tried again: the error may be over in a moment.
    #[error("{0}")]
    #[diagnostic(help("{}", .0.remedy()))]
    Passing(Failure),
    #[error("a run was given up because an end was requested")]
    #[diagnostic(help("start it again"))]
    Interrupted,
    /// The target cannot be run any more.
    #[error("{0}")]
    #[diagnostic(help("{}", .0.remedy()))]
    Failed(Failure),
}

/// A cause with a remedy.
pub type Failure = Box<dyn Diagnostic + Send + Sync>;

/// Answers whether an end was requested.
pub use ffuzz_sys::stop::StopRequest;

/// A file with counters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Module {
    /// Places in the edge map.
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
    /// Killed by us when its time was up.
    Hang,
    /// Killed by us long before, at the soft limit: it computed for much longer than runs usually do.
    Cut,
    /// Killed by SIGKILL that we did not send: nearly always the kernel's out-of-memory killer.
    Oom,
    /// It ended, stopped or damaged the target's fork server, twice: nothing else is known of it.
    Lost,
}

/// What can be seen of one run. It borrows the executor, so no other run can start while the maps
/// are being read.
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
    /// What it compared, see [`RunSettings::log_comparisons`].
    pub comparisons: ComparisonLog<'a>,
}

/// Where the time of runs went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub target: Duration,
    /// Waking each other, forking. Not known apart (and in `target`) where runs are ordered by pipes.
    pub hand_over: Option<Duration>,
}

/// Processor time of a fork server, and of its children, those that live included.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    pub server: Duration,
    pub children: Duration,
}

/// The functions by which a libFuzzer harness makes inputs of its own.
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

/// Runs by a process whose memory is restored after each.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SnapshotRuns {
    pub runs: u64,
    /// Those that had to be made by fork in the end.
    pub by_fork: u64,
    /// Why, the last time, or for good.
    pub why: Option<String>,
    /// Memory pages that were restored.
    pub pages: u64,
    /// Runs that showed something else by fork.
    pub differences: u32,
    /// System calls of main that stand before the snapshot.
    pub prologue: u32,
    /// Runs that begin behind the first messages of their input ([`RunSettings::beginning`]), and the sum of the numbers
    /// of these messages.
    pub behind: u64,
    pub behind_messages: u64,
    /// What the last process took for its start, its snapshot and its first run.
    pub start: Duration,
}

impl Spent {
    /// All time of runs; zero for an executor that does not measure it.
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

/// How runs are made, and what is shown of them. A change takes effect in every engine with its next run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Wall time after which a run is a hang.
    pub timeout: Duration,
    /// A run may take longer as long as other programs keep its process from a core.
    pub allow_for_load: bool,
    /// [`Executor::run`] may cut runs that compute for longer than this ([`ExitKind::Cut`]), in processor time of
    /// the target; [`Executor::observe`] does not, except those that log and take many times as long.
    pub soft_limit: Option<Duration>,
    /// [`Executor::run`] shows every run, uninteresting ones as well.
    pub show_every_run: bool,
    /// Domains count, too.
    pub watch_domains: bool,
    /// The path of every run is of interest ([`Executor::quiet_paths`]): [`map_hash`] of its edges, or of the
    /// classes of their hit counts.
    ///
    /// [`map_hash`]: crate::coverage::map_hash
    pub paths: Option<Classes>,
    /// The target logs what it compares, if it can ([`TargetInfo::logs_comparisons`]). Such runs show no edges and no
    /// keys. To switch it on or off costs a new process.
    pub log_comparisons: bool,
    /// The inputs begin with these messages: runs begin behind them where that is possible
    /// ([`TargetInfo::shares_beginnings`]). A change costs a new process, and so does each input that begins otherwise.
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

/// Code that runs show nothing of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UnseenCode {
    /// Libraries that the target loads only when it runs.
    pub libraries: Vec<PathBuf>,
    /// The program that it executes in its place, under the name that it gives it.
    pub program: Option<PathBuf>,
}

/// What the first session of a target with a socket was like (`--net`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FirstSession {
    /// One line for the user.
    pub line: String,
    /// What helps, if there was no session.
    pub remedy: Option<String>,
    /// The target has used the socket that is meant.
    pub is_used: bool,
}

/// What is known of a target. Nothing here makes a run.
pub trait TargetInfo {
    /// Bytes of the edge map.
    fn map_size(&self) -> usize;

    /// Edges that can be counted, at most as many as the map has bytes: that of several modules has padding, and not
    /// each block of a program without source has a counter.
    fn edges(&self) -> usize {
        self.map_size()
    }

    fn domains(&self) -> &[Domain];

    /// A function of a harness takes the inputs: an empty one is an input like others.
    fn is_harness(&self) -> bool {
        false
    }

    /// Runs that show nothing because the harness refused their inputs (−1 of `LLVMFuzzerTestOneInput`); wraps, and
    /// starts at 0 again with the target.
    fn rejected_runs(&self) -> u32 {
        0
    }

    /// The names of static keys, as far as the target's files have them. Reads those files.
    fn sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// Words of the target's files, for a dictionary, and the files whose table of words is damaged. Reads those
    /// files.
    fn words(&self) -> (Vec<Word>, Vec<PathBuf>) {
        Default::default()
    }

    /// The program and the libraries whose edges are counted, as far as that is known.
    fn modules(&self) -> Vec<Module> {
        Vec::new()
    }

    /// Where the block of a counter begins, as far as the target's files say. Reads those files at the first call.
    fn place_of_counter(&self, _counter: u32) -> Option<Site> {
        None
    }

    /// Address and number of each counter of one of these files, ascending; None if the file has a table of them itself.
    fn counter_addresses(&self, _file: &Path) -> Option<Vec<(u64, usize)>> {
        None
    }

    /// The control flow of these files, as far as that is known, and the files whose table of it is damaged. Reads those
    /// files.
    fn flow(&self) -> (Vec<FunctionFlow>, Vec<PathBuf>) {
        Default::default()
    }

    /// What makes the target's coverage visible, in one line, if it is not the target itself.
    fn introduction(&self) -> Option<String> {
        None
    }

    /// AFL's words for `target_mode`, for example `persistent shmem_testcase`; `default` if none
    /// applies.
    fn target_mode(&self) -> String;

    /// The execution mode in use now.
    fn run_mode(&self) -> RunMode;

    /// What came of snapshots, if there were any.
    fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        None
    }

    /// Runs can begin behind messages that all inputs share, see [`RunSettings::beginning`].
    fn shares_beginnings(&self) -> bool {
        false
    }

    /// Largest useful batch now.
    fn batch_size(&self) -> usize {
        1
    }

    /// The places of comparisons, as far as the target's files have them. Reads those files.
    fn comparison_sites(&self) -> Vec<Site> {
        Vec::new()
    }

    /// Code of the target that its runs do not show. Runs it once more with the input, through that file if it takes
    /// one.
    fn unseen_code(&self, _input: &[u8], _file: &Path) -> UnseenCode {
        UnseenCode::default()
    }

    /// What the first session of a target with a socket is like. None: it has no socket. Runs the target once more with
    /// the input, through that file if it takes one.
    fn first_session(&self, _input: &[u8], _file: &Path) -> Option<FirstSession> {
        None
    }

    /// The socket on which a run that does not end waits for connections or data, as a value of `--net`. Runs the target
    /// once more with the input, through that file if it takes one.
    fn awaited_socket(&self, _input: &[u8], _file: &Path) -> Option<String> {
        None
    }

    /// Runs can be asked for their comparisons.
    fn logs_comparisons(&self) -> bool {
        false
    }

    /// The functions by which a harness makes inputs.
    fn input_functions(&self) -> InputFunctions {
        InputFunctions::default()
    }

    /// The log is one of AFL++, see [`ComparisonLog::is_partial`].
    fn has_partial_log(&self) -> bool {
        false
    }

    /// Runs so far.
    fn execs(&self) -> u64;

    /// Where the time of those runs went.
    fn spent(&self) -> Spent {
        Spent::default()
    }

    /// What the scheduler gave to them; None if that is not known apart. Reads files of the kernel.
    fn processor_time(&self) -> Option<ProcessorTime> {
        None
    }

    /// The process that starts the target's; None if each run is a child of the fuzzer.
    fn server(&self) -> Option<i32> {
        None
    }

    /// The process that made the last run, if one takes many inputs; None if each has a process of its own.
    fn process(&self) -> Option<i32> {
        None
    }

    /// Restarts so far.
    fn restarts(&self) -> u64 {
        0
    }

    /// The end of the campaign was requested: runs that need not be made should not be made.
    fn is_stopping(&self) -> bool {
        false
    }
}

/// Runs inputs. The unit is a batch; an executor that can only do one run at a time is one that
/// stops after each.
pub trait Executor {
    fn info(&self) -> &dyn TargetInfo;

    fn settings(&self) -> &RunSettings;

    fn settings_mut(&mut self) -> &mut RunSettings;

    /// Runs one input, however uninteresting, and shows what was seen.
    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError>;

    /// Runs an input that `send` hands to the target in our place: before the run, or `late`, once
    /// the process that has to take it is there.
    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError>;

    /// Runs `batch[*next..]` in order until a run may deserve to be judged, moves `next` past it
    /// and shows what was seen; None when the batch is finished. `next` is 0 for a new batch.
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

    /// Paths of the runs of the last call of [`Executor::run`] that it did not show, with their positions in the
    /// batch. Only runs that ended well.
    fn quiet_paths(&self) -> &[(usize, u64)] {
        &[]
    }

    /// Whether a process that gets this input, as its standard input or in a file, reads it; None if that is not
    /// known. Makes a run of its own if the last one does not answer it, and does not show it.
    fn reads_input(&mut self, _input: &[u8]) -> Result<Option<bool>, RunError> {
        Ok(None)
    }

    /// What is not new any more: per edge the hit-count classes that no run has shown yet.
    fn learn_edges(&mut self, _virgin: &[u8]) {}

    /// What a value of this key has to beat to be of interest.
    fn learn_key(&mut self, _key: u32, _threshold: u32) {}

    /// Ends the process that takes many inputs, if there is one: the next run is the first of another one.
    fn end_process(&mut self) {}

    /// From now on [`Executor::run`] may return None before the end of a batch, and a run that takes long is
    /// given up ([`RunError::Interrupted`]), once the request is there. None: no end can be requested.
    fn stop_on(&mut self, _request: Option<StopRequest>) {}

    /// What the user should know of the target and that was not reported yet, a line each.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// What is known of the bad end of this input that its file does not tell, in one line; None for most. To be called
    /// before the next bad end.
    fn take_account(&mut self, _input: &[u8]) -> Option<String> {
        None
    }

    /// Tokens that the target offered at its start (AFL's "autodictionary").
    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Why the target was restarted since the last call, if it was.
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
