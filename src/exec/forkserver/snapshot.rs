//! Runs by snapshot: their verification, and the conditions under which fork is used instead.
//!
//! A child that is restored after each run takes batches as a loop does (`runtime/snapshot/cycle.c`). A snapshot run
//! can only reject an input: a run that seems new is executed again with fork before it is judged, and so is a run
//! that cannot be restored, or that ends the child. Some uninteresting runs are checked as well.

use std::time::{Duration, Instant};

use super::batches::{BatchEnd, nonsense};
use super::notes::ModeNote;
use super::{ForkServer, NoRun, Pass, RunAccount};
use crate::delivery::InputDelivery;
use crate::launcher::{InputFrom, Setup, describe_end};
use crate::runs::{Child, RunChannel};
use crate::{RunEnd, RunResult, exit_kind};
use ffuzz_config::options::RunMode;
use ffuzz_engine::executor::{ExitKind, SnapshotRuns};
use syscalls::Sysno;

/// Number of runs between two checks: if fork is twenty times slower, checks cost a hundredth of the time.
const CHECK_EVERY: u64 = 2_000;
/// Number of first observed runs that are all checked: they are the seeds.
const FIRST_CHECKS: u64 = 16;
/// Number of differences after which snapshots are switched off. After the first, a new snapshot is taken, because a
/// run may have changed something permanently; after the second, one at main.
const MOST_DIFFERENCES: u32 = 4;
/// Number of later seconds in which a fork is repeated before snapshots are switched off: many programs seed a random
/// number from the clock, in seconds (`srand(time(NULL))`). Its results may be few.
const LATER_SECONDS: u32 = 5;
const NEXT_SECOND: Duration = Duration::from_millis(1_050);
/// Number of runs timed against fork until which checks use the shorter interval.
const LEAST_TIMED: u32 = 16;
const CHECK_SOON: u64 = 16;
/// Maximum weight of timed runs; old ones lose weight beyond it.
const MOST_TIMED: u32 = 64;
/// Factor by which a startup on a busy machine may exceed a measured one.
const SLOWER_STARTUP: u32 = 5;
/// Number of slower first runs of a child, in which it learns which pages are written.
const LEARNING_RUNS: u64 = 128;
/// Maximum number of system calls traced before the input is used, each for some microseconds; and maximum number of
/// reports by a child that there were too many.
const LONGEST_PROLOGUE: u32 = 50_000;
const MOST_SHORTENED: u32 = 8;
/// A run that needs a fork also costs a new snapshot: above a tenth of all runs, fork is faster. Runs are counted in
/// a window of this size; the first `FREE_FORKS` forks are free.
const WINDOW: u32 = 2_000;
const FREE_FORKS: u32 = 10;
/// Crashes come in bursts: most mutants of a new crash crash as well. So too many of them only pause snapshots for
/// this many runs; for twice as long if the last pause was no longer ago than its own length.
const PAUSE: u64 = 1_000;
const LONGEST_PAUSE: u64 = 1 << 20;

/// The first value of `enum ffuzz_why` (`runtime/channel.h`) that concerns all runs.
const WHY_EVERY_RUN: u32 = 32;
/// `FFUZZ_WHY_PROCESS`, `FFUZZ_WHY_CALL`, `FFUZZ_WHY_PROLOGUE`.
const WHY_PROCESS: u32 = 1;
const WHY_CALL: u32 = 2;
const WHY_PROLOGUE: u32 = 7;
const WHY: [&str; 8] = [
    "",
    "it starts processes or threads",
    "it makes system calls that cannot be undone",
    "it changes memory mappings from before the run",
    "it maps or replaces more memory than can be recorded",
    "it leaves signals pending, or handles SIGSYS",
    "its input cannot be delivered",
    "it changes something outside of its process before it reads its input",
];
const WHY_ALL: [&str; 10] = [
    "userfaultfd is refused: Linux 6.7 or newer and permission to use it are needed",
    "the kernel has no PAGEMAP_SCAN: Linux 6.7 or newer is needed",
    "seccomp is refused: a container may forbid it",
    "it has threads before main, or before __AFL_INIT()",
    "it shares memory with others before its run",
    "file descriptors 180 to 196 are taken, or beyond the limit (ulimit -n)",
    "a timer runs before main, or before __AFL_INIT()",
    "there is no memory for the copy of its memory: allow it more (-m)",
    "its restartable sequences cannot be switched off",
    "too many domain keys are touched before main",
];

/// State and statistics of the snapshot mode with this target.
#[derive(Debug, Default)]
pub(super) struct Policy {
    runs: SnapshotRuns,
    checks: u64,
    next_check: u64,
    /// Number of recent runs, and of those that needed a fork.
    recent: (u32, u32),
    /// Number of runs of the current child, and the mean time of a run in its last batch.
    of_child: u64,
    work: Duration,
    /// Largest excess of a run with fork over a snapshot run: the startup time.
    startup: Duration,
    /// Number of timed runs, and of those that took longer than their forks.
    timed: (u32, u32),
    /// Maximum number of system calls before the snapshot, and the number of times it was lowered.
    prologue: u32,
    shortened: u32,
    /// True if results of runs with fork depend on the time.
    depends_on_time: bool,
    /// Number of snapshots taken after messages that could not be used.
    lost_beginnings: u32,
    doubt: Option<Doubt>,
    left: bool,
    pause: Pause,
}

/// A period in which runs use fork.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    /// Run number at which it ends, and its length in runs; a length of 0 means that there was none.
    end: u64,
    length: u64,
}

impl Pause {
    /// Begins a pause after this many runs.
    fn begin(&mut self, runs: u64) {
        let is_close = self.length > 0 && runs < self.end + self.length;
        self.length = if is_close { (2 * self.length).min(LONGEST_PAUSE) } else { PAUSE };
        self.end = runs + self.length;
    }
}

/// A difference that switches snapshots off, unless the run with fork depends on the time.
#[derive(Debug)]
struct Doubt {
    input: Vec<u8>,
    fork: RunResult,
    what: String,
    /// Time of the last repetition, and number of seconds in which it must still be repeated.
    at: Instant,
    left: u32,
}

/// A crash of a restored child, before it is repeated with fork.
struct RestoredCrash {
    exit: ExitKind,
    end: String,
    edges: Vec<u8>,
    /// See [`RunChannel::left`].
    left: (u32, String),
}

/// Strength of the evidence of a shown run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Proof {
    /// The run used fork.
    Fork,
    /// The child reports it as uninteresting.
    Uninteresting,
    /// The child reports it as new, which needs a run with fork.
    News,
}

impl Proof {
    fn needs_check(self, due: bool) -> bool {
        self == Self::News || (self == Self::Uninteresting && due)
    }
}

impl Policy {
    fn new(prologue: u32) -> Self {
        Self { prologue, ..Self::default() }
    }

    /// Counts runs. `work` is measured by the child's clock, so waiting for a core does not count.
    fn note_runs(&mut self, done: usize, pages: u32, work: Duration) {
        self.work = work / done.max(1) as u32;
        self.runs.runs += done as u64;
        self.of_child += done as u64;
        self.runs.pages += u64::from(pages);
        self.recent.0 += done as u32;
        if self.recent.0 > WINDOW {
            self.recent = (self.recent.0 / 2, self.recent.1 / 2);
        }
    }

    fn note_fork(&mut self, why: Option<String>) {
        self.runs.by_fork += 1;
        self.recent.1 += 1;
        if why.is_some() {
            self.runs.why = why;
        }
    }

    fn forks_too_often(&self) -> bool {
        let (runs, forks) = self.recent;
        forks > FREE_FORKS + runs / 10
    }

    /// Takes later snapshots earlier in the run, because one was taken after something that it cannot restore.
    fn shorten_prologue(&mut self, most: u32) {
        self.shortened += 1;
        let most = if self.shortened < MOST_SHORTENED { most } else { 0 };
        self.prologue = most.min(self.prologue.saturating_sub(1));
        self.recent = (0, 0);
    }

    fn is_check_due(&mut self) -> bool {
        let due = self.checks < FIRST_CHECKS || self.runs.runs >= self.next_check;
        if due {
            let soon = self.timed.0 < LEAST_TIMED;
            self.next_check = self.runs.runs + if soon { CHECK_SOON } else { CHECK_EVERY };
        }
        due
    }

    /// Compares a run of the last batch with the same run by fork. Counts only which one took longer, not by how
    /// much, so that a single pause of the machine has little effect.
    fn note_fork_time(&mut self, fork: Duration) {
        self.startup = self.startup.max(fork.saturating_sub(self.work));
        if self.of_child < LEARNING_RUNS {
            return;
        }
        if self.timed.0 == MOST_TIMED {
            self.timed = (self.timed.0 / 2, self.timed.1 / 2);
        }
        self.timed.0 += 1;
        self.timed.1 += u32::from(self.work > fork);
    }

    fn is_slower_than_fork(&self) -> bool {
        let (timed, slower) = self.timed;
        timed >= LEAST_TIMED && slower * 4 > timed * 3
    }
}

/// Describes a reason; `detail` is a system call if the reason is one, else an error number or the like.
fn words(why: u32, detail: u32) -> String {
    let call = || match Sysno::new(detail as usize) {
        Some(call) => call.name().to_owned(),
        None => format!("number {detail}"),
    };
    let known = match why.checked_sub(WHY_EVERY_RUN) {
        None => WHY.get(why as usize),
        Some(place) => WHY_ALL.get(place as usize),
    };
    let known = known.copied().unwrap_or("for an unknown reason");
    match why {
        WHY_PROCESS => format!("{known} ({})", call()),
        WHY_CALL => format!("{known} ({}){}", call(), remedy_of_call(detail)),
        _ if detail == 0 || why == WHY_PROLOGUE => known.into(),
        _ => format!("{known} ({detail})"),
    }
}

/// Remedy for a system call that cannot be undone.
fn remedy_of_call(call: u32) -> &'static str {
    match Sysno::new(call as usize) {
        Some(
            Sysno::setuid
            | Sysno::setgid
            | Sysno::setreuid
            | Sysno::setregid
            | Sysno::setresuid
            | Sysno::setresgid
            | Sysno::setgroups,
        ) => ": start ffuzz as the user that it changes to",
        _ => "",
    }
}

/// Returns true if the options allow restoring children of this target.
fn is_wanted(setup: &Setup) -> bool {
    let options = &setup.options;
    options.snapshots
        && options.run_mode >= RunMode::Snapshot
        && !setup.persistent()
        && setup.input != InputFrom::Inherit
}

impl ForkServer {
    /// Prepares the snapshot mode for a session that has just begun.
    pub(super) fn offer_snapshots(&mut self) {
        let can = self.session.maps.channel().is_some_and(|channel| channel.can_snapshot);
        let is_left = self.snapshot.as_ref().is_some_and(|policy| policy.left);
        if is_left || !is_wanted(&self.setup) {
            return;
        }
        if !can {
            self.note_incapable();
            return;
        }
        if self.setup.traits.thread_sanitizer {
            if self.reported.insert(ModeNote::Threads) {
                let why = "ThreadSanitizer has a thread of its own";
                self.notes.push(format!("runs use fork instead of snapshots: {why}"));
            }
            return;
        }
        let shared = matches!(self.session.delivery, InputDelivery::Shared { .. });
        let file = match &self.setup.input {
            InputFrom::File(path) if !shared => std::path::absolute(path).ok(),
            _ => None,
        };
        let file = file.as_ref().map(|path| path.as_os_str().as_encoded_bytes());
        let stdin = !shared && self.setup.input == InputFrom::Stdin;
        let codes: Vec<bool> = (0..=u8::MAX).map(|code| self.is_crash_code(code)).collect();
        let Some(runs) = &mut self.session.runs else { return };
        runs.set_crash_codes(|code| codes[usize::from(code)]);
        if !runs.set_input(file, stdin, self.setup.has_net()) {
            return;
        }
        let prologue = if self.setup.options.snapshots_at_main { 0 } else { LONGEST_PROLOGUE };
        let policy = self.snapshot.get_or_insert_with(|| Policy::new(prologue));
        policy.of_child = 0;
        runs.set_prologue(policy.prologue);
    }

    /// Reports that snapshots are impossible, if the user requested this mode.
    fn note_incapable(&mut self) {
        if self.setup.options.run_mode == RunMode::Snapshot {
            self.notes.push(
                "runs use fork instead of snapshots: the target's runtime has none: rebuild it with this ffuzz-cc"
                    .into(),
            );
        }
    }

    /// True while runs are made by snapshots.
    pub(super) fn restores(&self) -> bool {
        let is_used = |policy: &Policy| !policy.left && policy.pause.end <= self.execs;
        self.session.runs.is_some() && self.snapshot.as_ref().is_some_and(is_used)
    }

    /// Additional time limit of a run with fork: the limit was measured on runs without the startup.
    pub(super) fn startup(&self) -> Duration {
        self.snapshot.as_ref().map_or(Duration::ZERO, |policy| SLOWER_STARTUP * policy.startup)
    }

    /// Returns true if a snapshot can be taken after the first messages of an input.
    pub(super) fn shares_beginnings(&self) -> bool {
        let can = |policy: &Policy| policy.prologue > 0 && policy.lost_beginnings < MOST_SHORTENED;
        self.setup.has_net() && self.restores() && self.snapshot.as_ref().is_some_and(can)
    }

    pub(super) fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        self.snapshot.as_ref().map(|policy| policy.runs.clone())
    }

    /// Runs one input and shows it.
    pub(super) fn observe_by_snapshot(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        // With a log there are no maps to compare.
        let due = !self.logs && self.is_check_due();
        let (pass, proof) = self.run_restored(std::iter::once(input), true)?;
        let Some(outcome) = pass.shown else { return Err(nonsense()) };
        if !self.logs && proof.needs_check(due) { self.check(input, outcome) } else { Ok(outcome) }
    }

    /// Runs inputs until one must be judged; one that shows something new is run again with fork.
    pub(super) fn run_by_snapshot<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Pass, NoRun> {
        let due = !self.logs && self.is_check_due();
        // Run the first input of a child alone, to measure the start.
        let is_first = self.snapshot.as_ref().is_some_and(|policy| policy.of_child == 0);
        let most = if due || is_first { 1 } else { usize::MAX };
        let (pass, proof) =
            self.run_restored(inputs.clone().take(most), due || self.shows_each())?;
        let shown = pass.shown.filter(|_| !self.logs && proof.needs_check(due));
        let Some(outcome) = shown else { return Ok(pass) };
        let Some(input) = inputs.nth(pass.done - 1) else { return Ok(pass) };
        Ok(Pass { shown: Some(self.check(input, outcome)?), ..pass })
    }

    fn is_check_due(&mut self) -> bool {
        self.snapshot.as_mut().is_some_and(Policy::is_check_due)
    }

    /// Runs inputs by snapshot. Also returns the evidence of the shown run.
    fn run_restored<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]> + Clone,
        each: bool,
    ) -> Result<(Pass, Proof), NoRun> {
        let (end, elapsed) = self.order_lasting(inputs.clone(), each)?;
        let (Some(runs), Some(policy)) = (&mut self.session.runs, &mut self.snapshot) else {
            return Err(nonsense());
        };
        if policy.of_child == 0 {
            policy.runs.start = elapsed;
        }
        if let Some(beginning) = &self.beginning {
            policy.runs.behind += end.done() as u64;
            policy.runs.behind_messages += (end.done() * beginning.count()) as u64;
        }
        policy.note_runs(end.done(), runs.take_pages(), runs.work());
        policy.runs.prologue = runs.prologue_calls();
        let proof = if runs.shows_news() { Proof::News } else { Proof::Uninteresting };
        let (finished, status) = match end {
            BatchEnd::Stopped { .. } => return Ok((self.conclude(end, elapsed), proof)),
            BatchEnd::Ended { finished, status } => (finished, Some(status)),
            BatchEnd::Hung { finished } | BatchEnd::Cut { finished } => (finished, None),
        };
        policy.of_child = 0;
        self.execs += finished as u64;
        self.spent.add(elapsed, None);
        let has_started = runs.has_started();
        let gave_up = match status {
            Some(status) => self.note_end_of_child(status, has_started),
            None if !has_started => {
                self.note_late_start();
                false
            }
            None => false,
        };
        self.session.maps.collect(false);
        let crash = status.filter(|_| has_started && !gave_up);
        let crash = crash.and_then(|status| self.restored_crash(status));
        let Some(input) = inputs.nth(finished) else { return Err(nonsense()) };
        // A run that was cut, or took too long, may be cut again.
        let mut outcome = match status {
            Some(_) => self.run_by_fork(input)?,
            None => self.run_by_channel(input)?,
        };
        if let Some(status) = status {
            self.count_forks(status, outcome.exit);
        }
        if let Some(crash) = crash {
            outcome.exit = self.keep_crash(input, crash, outcome.exit);
        }
        Ok((Pass { done: finished + 1, shown: Some(outcome) }, Proof::Fork))
    }

    /// The crash that ended a restored child; None for another end, or for a system call that our filter blocked.
    fn restored_crash(&self, status: i32) -> Option<RestoredCrash> {
        let exit = exit_kind(status, false, |code| self.is_crash_code(code));
        let is_crash = matches!(exit, ExitKind::Crash { signal } if signal != libc::SIGSYS);
        let left = self.session.runs.as_ref()?.left();
        let edges = self.session.maps.edges().to_vec();
        let end = describe_end(Some(status));
        is_crash.then_some(RestoredCrash { exit, end, edges, left })
    }

    /// Decides between a crash and its repetition with fork. A crash that did not recur is kept if the first run
    /// changed files, because that may prevent the second one. Otherwise the process may have been restored
    /// incompletely, and the run with fork counts.
    fn keep_crash(&mut self, input: &[u8], crash: RestoredCrash, repetition: ExitKind) -> ExitKind {
        if matches!(repetition, ExitKind::Crash { .. } | ExitKind::Oom | ExitKind::Lost) {
            return repetition;
        }
        let RestoredCrash { exit, end, edges, left: (count, first) } = crash;
        let second = match (repetition, self.session.runs.as_ref().map(RunChannel::status)) {
            (ExitKind::Ok, Some(status)) => describe_end(Some(status)),
            _ => "it took too long".to_owned(),
        };
        let text = format!(
            "it ({end}, in a process that is restored after each run) did not come again in a new process ({second})"
        );
        let others = match count {
            0 => {
                if self.reported.insert(ModeNote::FalseCrash) {
                    self.notes.push(format!(
                        "a crash is left out: {text}, and changed no file that could be the reason"
                    ));
                }
                return repetition;
            }
            1 => String::new(),
            _ => format!(", and {} more", count - 1),
        };
        let left = format!(
            "the first run made, removed or wrote {first:?}{others}, which the second has met"
        );
        self.account =
            Some(RunAccount { input: Some(input.to_vec()), text: format!("{text}; {left}") });
        self.session.maps.restore_edges(&edges);
        exit
    }

    /// Notes a child that was killed because it reached its first run too late.
    fn note_late_start(&mut self) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.note_fork(None);
        if policy.prologue > 0 {
            self.shorten_prologue(0);
        } else {
            self.give_up_snapshots("the first copy of its memory takes too long");
        }
    }

    /// Handles the end of a child. `has_started`: a run had begun. Returns true if the child gave up a run that it
    /// cannot restore.
    fn note_end_of_child(&mut self, status: i32, has_started: bool) -> bool {
        let why = self.session.runs.as_mut().and_then(|runs| runs.take_why());
        let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
        let ended_by_itself = libc::WIFEXITED(status) && !self.is_crash_code(code);
        let Some(policy) = &mut self.snapshot else { return false };
        let text = match why {
            Some((why, detail)) => Some(words(why, detail)),
            None if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS => {
                Some(WHY[WHY_PROCESS as usize].into())
            }
            None => None,
        };
        policy.note_fork(text);
        match why {
            Some((WHY_PROLOGUE, calls)) => self.shorten_prologue(calls),
            Some((why, detail)) if why >= WHY_EVERY_RUN => {
                self.give_up_snapshots(&words(why, detail));
            }
            None if !has_started && policy.prologue > 0 => self.shorten_prologue(0),
            None if ended_by_itself => {
                self.give_up_snapshots(
                    "its main is not started by the runtime: link it with ffuzz-cc",
                );
            }
            _ => {}
        }
        why.is_some()
    }

    /// Notes a run that ended the child, and its repetition with fork.
    fn count_forks(&mut self, status: i32, fork: ExitKind) {
        let runs = self.execs;
        let too_many = |policy: &&mut Policy| !policy.left && policy.forks_too_often();
        let Some(policy) = self.snapshot.as_mut().filter(too_many) else { return };
        let is_crash = matches!(fork, ExitKind::Crash { .. });
        if policy.prologue > 0 && !is_crash {
            self.shorten_prologue(0);
            return;
        }
        let SnapshotRuns { why, .. } = &policy.runs;
        let last = why.clone().unwrap_or_else(|| describe_end(Some(status)));
        let (recent, forks) = policy.recent;
        let text = format!("{forks} of its last {} runs needed a fork: {last}", recent.max(forks));
        if !is_crash {
            self.give_up_snapshots(&text);
            return;
        }
        if policy.pause.length == 0 {
            self.notes.push(format!("runs use fork instead of snapshots for a while: {text}"));
        }
        policy.pause.begin(runs);
        policy.recent = (0, 0);
        self.end_idle_child(Child::Lasting);
    }

    /// Makes the next child take its snapshot after at most `most` system calls of its main. If the last snapshot was
    /// taken after messages, their effects may be the reason; then the next one is taken without them.
    fn shorten_prologue(&mut self, most: u32) {
        let (Some(policy), Some(runs)) = (&mut self.snapshot, &mut self.session.runs) else {
            return;
        };
        if let Some(beginning) = self.beginning.take() {
            policy.lost_beginnings += 1;
            policy.recent = (0, 0);
            if policy.lost_beginnings == MOST_SHORTENED {
                let why = policy.runs.why.as_deref();
                let why = why.unwrap_or("runs had other results than with fork");
                self.notes.push(format!(
                    "snapshots are not taken behind messages any more (the last one: behind {}): {why}",
                    beginning.count()
                ));
            }
            self.settings.beginning = None;
            runs.set_prefix(0);
            return;
        }
        policy.shorten_prologue(most);
        runs.set_prologue(policy.prologue);
    }

    fn give_up_snapshots(&mut self, why: &str) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.left = true;
        policy.runs.why = Some(why.into());
        self.notes.push(format!("runs use fork instead of snapshots: {why}"));
        self.end_idle_child(Child::Lasting);
    }

    fn seen(&self, outcome: RunEnd) -> RunResult {
        RunResult::of(&self.observation(0, outcome))
    }

    /// Repeats a run with fork. It has the whole timeout: the soft limit applies to runs without the startup.
    fn run_by_fork(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let cuts = std::mem::replace(&mut self.cuts, false);
        let end = self.run_by_channel(input);
        self.cuts = cuts;
        end
    }

    /// Repeats the shown run with fork; the maps are then those of the fork.
    fn check(&mut self, input: &[u8], outcome: RunEnd) -> Result<RunEnd, NoRun> {
        if outcome.exit == ExitKind::Hang {
            return Ok(outcome);
        }
        let execs = self.execs;
        let snapshot = self.seen(outcome);
        let RunEnd { mut exit, duration } = self.run_by_fork(input)?;
        let fork = self.seen(RunEnd { exit, ..outcome });
        if snapshot != fork && exit != ExitKind::Hang {
            // An unstable target proves nothing, so repeat the fork.
            exit = self.run_by_fork(input)?.exit;
            if self.seen(RunEnd { exit, ..outcome }) == fork {
                self.note_difference(input, &snapshot, fork);
            }
        }
        if exit != ExitKind::Hang {
            self.note_fork_time(duration);
        }
        self.execs = execs;
        if let Some(policy) = &mut self.snapshot {
            policy.checks += 1;
        }
        Ok(RunEnd { exit, ..outcome })
    }

    fn note_fork_time(&mut self, fork: Duration) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.note_fork_time(fork);
        if policy.is_slower_than_fork() {
            let (timed, slower) = policy.timed;
            self.give_up_snapshots(&format!("{slower} of {timed} runs took longer than with fork"));
        }
    }

    /// Notes a new restored child: its first runs are slow, because it learns again which pages are written.
    pub(super) fn note_new_child(&mut self) {
        if let Some(policy) = &mut self.snapshot {
            policy.of_child = 0;
        }
    }

    fn note_difference(&mut self, input: &[u8], snapshot: &RunResult, fork: RunResult) {
        let Some(policy) = &mut self.snapshot else { return };
        policy.runs.differences += 1;
        policy.recent.1 += 1;
        if policy.doubt.is_some() {
            return;
        }
        if policy.depends_on_time {
            // Runs that always seem new cost one fork each.
            let (recent, different) = policy.recent;
            if policy.forks_too_often() {
                self.give_up_snapshots(&format!(
                    "{different} of its last {} runs had other results than with fork",
                    recent.max(different)
                ));
            }
            return;
        }
        if policy.runs.differences >= MOST_DIFFERENCES {
            let what = snapshot.difference(&fork);
            let (input, at) = (input.to_vec(), Instant::now());
            policy.doubt = Some(Doubt { input, fork, what, at, left: LATER_SECONDS });
        }
        let is_first = policy.runs.differences == 1;
        policy.of_child = 0;
        if !is_first {
            self.shorten_prologue(0);
        }
        self.end_idle_child(Child::Lasting);
    }

    /// Repeats the run in doubt with fork, if it is due.
    pub(super) fn look_at_doubt(&mut self) -> Result<(), NoRun> {
        let Some(policy) = &mut self.snapshot else { return Ok(()) };
        let Some(mut doubt) = policy.doubt.take_if(|doubt| doubt.at.elapsed() > NEXT_SECOND) else {
            return Ok(());
        };
        let execs = self.execs;
        let end = self.run_by_fork(&doubt.input)?;
        self.execs = execs;
        let is_same = end.exit == ExitKind::Hang || self.seen(end) == doubt.fork;
        (doubt.at, doubt.left) = (Instant::now(), doubt.left - 1);
        match &mut self.snapshot {
            Some(policy) if !is_same => policy.depends_on_time = true,
            Some(policy) if doubt.left > 0 => policy.doubt = Some(doubt),
            _ => self.give_up_snapshots(&format!(
                "{MOST_DIFFERENCES} runs had other results than with fork: {}",
                doubt.what
            )),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slower_than_a_fork_is_known_by_three_quarters_of_its_runs() {
        let (short, long) = (Duration::from_micros(10), Duration::from_millis(1));
        let mut policy = Policy::new(0);
        policy.note_runs(1, 1, long);
        for _ in 0..2 * MOST_TIMED {
            policy.note_fork_time(short);
        }
        assert!(!policy.is_slower_than_fork(), "during the first runs");
        policy.of_child = LEARNING_RUNS;
        for _ in 0..LEAST_TIMED {
            assert!(!policy.is_slower_than_fork());
            policy.note_fork_time(short);
        }
        assert!(policy.is_slower_than_fork());
        // Pauses in a quarter of the runs do not count, and slow runs can become fast.
        for run in 0..10 * MOST_TIMED {
            policy.note_runs(64, 1, 64 * if run % 4 == 0 { long } else { short });
            policy.note_fork_time(2 * short);
        }
        assert!(!policy.is_slower_than_fork());
    }

    #[test]
    fn a_prologue_only_becomes_shorter_and_soon_is_none() {
        let mut policy = Policy::new(100);
        policy.shorten_prologue(70);
        assert_eq!(policy.prologue, 70);
        policy.shorten_prologue(90);
        assert_eq!(policy.prologue, 69);
        for _ in 0..MOST_SHORTENED {
            policy.shorten_prologue(60);
        }
        assert_eq!(policy.prologue, 0);
    }

    #[test]
    fn checks_are_close_until_it_is_known_how_long_runs_take() {
        let mut policy = Policy { checks: FIRST_CHECKS, ..Policy::new(0) };
        let mut due = |timed: u32| {
            policy.timed.0 = timed;
            let runs = 100 * CHECK_EVERY;
            let count = (0..runs).filter(|_| {
                policy.note_runs(1, 1, Duration::ZERO);
                policy.is_check_due()
            });
            runs / count.count() as u64
        };
        assert_eq!((due(0), due(LEAST_TIMED)), (CHECK_SOON, CHECK_EVERY));
    }

    #[test]
    fn pauses_become_longer_while_one_follows_the_other() {
        let mut pause = Pause::default();
        let mut lengths = vec![];
        for runs in [100, 1_150, 3_200, 10_000, 11_000 + 1, 20_000_000] {
            pause.begin(runs);
            lengths.push(pause.length);
            assert_eq!(pause.end, runs + pause.length);
        }
        assert_eq!(lengths, [1_000, 2_000, 4_000, 8_000, 16_000, 1_000]);
        for _ in 0..20 {
            pause.begin(pause.end);
        }
        assert_eq!(pause.length, LONGEST_PAUSE);
    }

    #[test]
    fn a_tenth_of_the_runs_by_fork_is_too_much() {
        let mut policy = Policy::new(0);
        for _ in 0..FREE_FORKS {
            policy.note_fork(None);
            assert!(!policy.forks_too_often());
        }
        policy.note_fork(Some("it starts processes or threads".into()));
        assert!(policy.forks_too_often());
        // Old runs lose weight.
        for _ in 0..100 {
            policy.note_runs(64, 640, Duration::ZERO);
        }
        assert!(!policy.forks_too_often());
        assert_eq!((policy.runs.runs, policy.runs.pages), (6_400, 64_000));
        for _ in 0..40 {
            policy.note_runs(9, 0, Duration::ZERO);
            policy.note_fork(None);
        }
        assert!(!policy.forks_too_often(), "{:?}", policy.recent);
        for _ in 0..2_000 {
            policy.note_runs(4, 0, Duration::ZERO);
            policy.note_fork(None);
        }
        assert!(policy.forks_too_often());
    }

    /// Each value of `enum ffuzz_why` has its text, in the order of the header.
    #[test]
    fn every_reason_has_words() {
        let header = include_str!("../../../runtime/channel.h");
        let start = header.find("enum ffuzz_why {").unwrap();
        let values = header[start..].split("};").next().unwrap();
        let names = values.lines().map(str::trim).filter(|line| line.starts_with("FFUZZ_WHY_"));
        let names: Vec<&str> = names.collect();
        let border = names.iter().position(|name| name.contains("_RUN = 31")).unwrap();
        assert_eq!((border, names.len() - border - 1), (WHY.len(), WHY_ALL.len()));
        assert_eq!(words(1, libc::SYS_clone as u32), "it starts processes or threads (clone)");
        assert!(
            words(2, libc::SYS_setgroups as u32).ends_with(
                "cannot be undone (setgroups): start ffuzz as the user that it changes to"
            )
        );
        assert!(words(2, 9_999).ends_with("cannot be undone (number 9999)"));
        assert!(words(7, 27).ends_with("reads its input"));
        assert_eq!(
            words(33, 25),
            "the kernel has no PAGEMAP_SCAN: Linux 6.7 or newer is needed (25)"
        );
        assert_eq!(words(99, 0), "for an unknown reason");
    }
}
