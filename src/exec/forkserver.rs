//! A target that forks a process for one run or for many, controlled by AFL's pipes or through the channel.

mod bare;
mod batches;
pub(crate) mod delay;
mod helpers;
mod notes;
mod patience;
mod pipes;
mod snapshot;
mod soft;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use helpers::Helpers;
use notes::ModeNote;

use super::channel::Channel;
use super::delivery::{Feed, InputDelivery};
use super::launcher::{ServerSession, Setup, describe_end};
use super::runs::{Child, RunChannel};
use super::{RunEnd, TargetError, blocked, late, net};
use ffuzz_config::options::RunMode;
use ffuzz_engine::coverage::flow::FunctionFlow;
use ffuzz_engine::domain::{Domain, Site};
use ffuzz_engine::executor::{
    Executor, ExitKind, FirstSession, InputFunctions, Module, Observation, ProcessorTime, RunError,
    RunSettings, SnapshotRuns, Spent, StopRequest, TargetInfo, UnseenCode,
};
use ffuzz_inspect::lines::CounterPlaces;
use ffuzz_inspect::{flow, modules, sites, words};
use ffuzz_mutate::Candidate;
use ffuzz_mutate::messages::Beginning;
use ffuzz_mutate::words::Word;
use ffuzz_sys::alarm::Alarm;
use ffuzz_sys::stop::Leave;
use ffuzz_sys::waits::Wait;
use ffuzz_sys::{load, process};

/// Time limit for a child to end after a signal that it can catch.
const GRACE: Duration = Duration::from_secs(1);

/// Maximum number of consecutive inputs that may end the fork server before the target is considered broken: while no
/// run has finished, and later.
const MOST_LOST: [u32; 2] = [3, 20];

/// Exit codes of MemorySanitizer and LeakSanitizer that AFL sets (see `config::env`).
const SANITIZER_CODES: [u8; 2] = [86, 23];

/// A target with a fork server.
#[derive(Debug)]
pub struct ForkServer {
    setup: Setup,
    session: ServerSession,
    settings: RunSettings,
    /// True if the current run may be cut at the soft limit.
    cuts: bool,
    /// The last child, if it may still exist: running, or stopped between two runs.
    child: Option<i32>,
    /// Process of the last run by pipes.
    last: i32,
    /// True if the fuzzer killed the last child; AFL's protocol must report it.
    killed: bool,
    execs: u64,
    spent: Spent,
    /// Alarm for runs ordered by pipes.
    alarm: Option<Alarm>,
    restart: Option<String>,
    /// Number of test cases in the next batch; slow targets get fewer.
    cases: usize,
    /// Number of consecutive inputs that ended the fork server twice; `has_run`: one did not.
    lost: u32,
    has_run: bool,
    /// Number of starts after the first one.
    restarts: u64,
    helpers: Helpers,
    /// True if children log comparisons, see [`RunSettings::log_comparisons`].
    logs: bool,
    /// See [`RunSettings::beginning`].
    beginning: Option<Beginning>,
    /// See [`Executor::quiet_paths`].
    quiet: Vec<(usize, u64)>,
    /// See [`ForkServer::end_without_breakpoints`].
    bare: bare::BareChecks,
    /// None if children are never restored.
    snapshot: Option<snapshot::Policy>,
    /// Kinds of notes already reported, and notes not fetched yet.
    reported: BTreeSet<ModeNote>,
    notes: Vec<String>,
    /// See [`Executor::take_account`].
    account: Option<RunAccount>,
    counter_places: RefCell<CounterPlaces>,
}

/// See [`Executor::take_account`].
#[derive(Debug)]
struct RunAccount {
    /// Input of the account; None for the last run.
    input: Option<Vec<u8>>,
    text: String,
}

/// Result of a batch until it stopped: number of finished runs, and the outcome of the last one if it must be judged.
struct Pass {
    done: usize,
    shown: Option<RunEnd>,
}

impl Pass {
    fn one(outcome: RunEnd) -> Self {
        Self { done: 1, shown: Some(outcome) }
    }
}

/// Reason why a run has no outcome.
enum NoRun {
    /// The fork server has ended.
    Lost(String),
    Error(TargetError),
}

impl From<TargetError> for NoRun {
    fn from(error: TargetError) -> Self {
        Self::Error(error)
    }
}

impl ForkServer {
    /// Starts the target and waits for its hello.
    pub fn start(setup: Setup, timeout: Duration) -> Result<Self, TargetError> {
        let session = ServerSession::start(&setup, timeout)?;
        let is_wanted = setup.logs();
        let mut server = Self {
            setup,
            session,
            settings: RunSettings::new(timeout),
            cuts: false,
            child: None,
            last: 0,
            killed: false,
            execs: 0,
            spent: Spent::default(),
            alarm: None,
            restart: None,
            cases: 1,
            lost: 0,
            has_run: false,
            restarts: 0,
            helpers: Helpers::new(),
            logs: false,
            beginning: None,
            quiet: Vec::new(),
            bare: bare::BareChecks::default(),
            snapshot: None,
            reported: BTreeSet::new(),
            notes: Vec::new(),
            account: None,
            counter_places: RefCell::default(),
        };
        if is_wanted && !server.can_log() {
            return Err(TargetError::NotLogging);
        }
        server.offer_snapshots();
        Ok(server)
    }

    fn execute(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        self.look_at_doubt()?;
        if self.restores() && self.begins_right(input) {
            self.observe_by_snapshot(input)
        } else if self.session.runs.is_some() {
            self.run_by_channel(input)
        } else {
            self.run_by_pipes(Feed::Input(input))
        }
    }

    fn is_crash_code(&self, code: u8) -> bool {
        let sanitizer = self.setup.traits.sanitizer && SANITIZER_CODES.contains(&code);
        sanitizer || self.setup.options.is_crash_code(code)
    }

    fn lost(&mut self) -> NoRun {
        NoRun::Lost(describe_end(self.session.process.wait_for(Duration::from_millis(200))))
    }

    /// Restarts the target after its fork server died, unless the campaign is ending. The domains must not change.
    fn start_again(&mut self, how: String) -> Result<(), TargetError> {
        if self.setup.leave.is_asked() {
            return Err(TargetError::Interrupted);
        }
        let _wait = Wait::begin("the target has not restarted");
        self.kill_child(libc::SIGKILL);
        (self.child, self.last) = (None, 0);
        self.killed = false;
        self.restarts += 1;
        let started = ServerSession::start(&self.setup, self.settings.timeout);
        let mut session = started.map_err(|error| match error {
            TargetError::NoHello { .. } if self.setup.leave.is_asked() => TargetError::Interrupted,
            error => error,
        })?;
        if let (Some(runs), Some(earlier)) = (&mut session.runs, &self.session.runs) {
            runs.inherit(earlier);
        }
        let (before, now) = (self.session.maps.keys(), session.maps.keys());
        let [edges_before, edges_now] = [&self.session, &session].map(|it| it.maps.edges().len());
        self.session = session;
        self.logs = false;
        self.beginning = None;
        self.helpers = Helpers::new();
        self.offer_snapshots();
        self.restart = Some(how);
        self.note_new_map(edges_before, edges_now);
        if before == now { Ok(()) } else { Err(TargetError::Changed { before, now }) }
    }

    /// Retries an attempt that ends the fork server once, with a new fork server (`again`: only the first input). An
    /// input that ends it twice is a find; several such inputs in a row are an error.
    fn persistently(
        &mut self,
        mut attempt: impl FnMut(&mut Self, bool) -> Result<Pass, NoRun>,
    ) -> Result<Pass, TargetError> {
        self.account.take_if(|account| account.input.is_none());
        self.sweep_if_due();
        self.switch_children();
        let lost = match attempt(self, false) {
            Err(NoRun::Lost(how)) => how,
            other => return self.settle(other),
        };
        self.start_again(lost)?;
        self.switch_children();
        let how = match attempt(self, true) {
            Err(NoRun::Lost(how)) => how,
            other => return self.settle(other),
        };
        self.lost += 1;
        if self.lost >= MOST_LOST[usize::from(self.has_run)] {
            return Err(TargetError::Lost { how });
        }
        let text = format!("twice it took the target's fork server along: {how}");
        self.account = Some(RunAccount { input: None, text });
        self.start_again(how)?;
        self.switch_children();
        self.session.maps.clear();
        self.session.maps.collect(false);
        self.execs += 1;
        Ok(Pass::one(RunEnd { exit: ExitKind::Lost, duration: self.settings.timeout }))
    }

    fn settle(&mut self, result: Result<Pass, NoRun>) -> Result<Pass, TargetError> {
        self.lost = 0;
        self.has_run |= result.is_ok();
        result.map_err(|failure| match failure {
            NoRun::Error(error) => error,
            NoRun::Lost(how) => TargetError::Lost { how },
        })
    }

    fn shown(&self, pass: Pass) -> Result<Observation<'_>, TargetError> {
        let unseen = || TargetError::Lost { how: "a run was not shown".into() };
        Ok(self.observation(0, pass.shown.ok_or_else(unseen)?))
    }

    fn observation(&self, index: usize, outcome: RunEnd) -> Observation<'_> {
        let RunEnd { exit, duration } = outcome;
        let maps = &self.session.maps;
        let comparisons = match (&self.session.log, maps.channel()) {
            _ if !self.logs => Default::default(),
            (Some(log), _) => log.view(),
            (None, channel) => channel.map(Channel::log).unwrap_or_default(),
        };
        Observation { index, exit, duration, edges: maps.edges(), dsf: maps.dsf(), comparisons }
    }

    /// Process of the current run, or the fork server itself if there is no child.
    fn running(&self) -> i32 {
        self.child.filter(|pid| *pid > 0).unwrap_or_else(|| self.session.process.pid())
    }

    /// Kills the last child if it descends from this fork server; its pid is untrusted.
    fn kill_child(&mut self, signal: i32) {
        let server = self.session.process.pid();
        if let Some(pid) = self.child.filter(|pid| process::descends_from(*pid, server)) {
            process::send(pid, signal);
        }
    }
}

impl Executor for ForkServer {
    fn info(&self) -> &dyn TargetInfo {
        self
    }

    fn settings(&self) -> &RunSettings {
        &self.settings
    }

    fn settings_mut(&mut self) -> &mut RunSettings {
        &mut self.settings
    }

    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        self.cuts = self.settings.log_comparisons;
        let pass = self.persistently(|server, _| server.execute(input).map(Pass::one))?;
        Ok(self.shown(pass)?)
    }

    fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, RunError> {
        // The last run was often of this input.
        if self.session.delivery.was_read() == Some(true) {
            return Ok(Some(true));
        }
        self.session.delivery.watch(true);
        self.cuts = false;
        // A restored child would get its input in another way.
        let run = self.persistently(|server, _| match server.session.runs.is_some() {
            true => server.run_by_channel(input).map(Pass::one),
            false => server.run_by_pipes(Feed::Input(input)).map(Pass::one),
        });
        let was_read = self.session.delivery.was_read();
        self.session.delivery.watch(false);
        // A run that was ended early may not have reached its input.
        let is_whole =
            run?.shown.is_some_and(|end| end.exit == ExitKind::Ok) && !self.bare.has_differed();
        Ok(was_read.filter(|was_read| *was_read || is_whole))
    }

    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError> {
        assert!(self.session.runs.is_none(), "a sender needs the pipe mode");
        self.cuts = false;
        let pass = self.persistently(|server, _| {
            server.run_by_pipes(Feed::Sent { late, send: &mut *send }).map(Pass::one)
        })?;
        Ok(self.shown(pass)?)
    }

    fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        self.cuts = true;
        self.quiet.clear();
        while *next < batch.len() {
            let rest = &batch[*next..];
            let first = &rest[0].bytes;
            // With breakpoints, a run in a batch is cheaper than an observed one.
            let is_sparing = self.session.runs.is_some() && self.setup.way().copied().is_some();
            let batches = self.takes_batches() || is_sparing;
            let pass = self.persistently(|server, again| match batches && !again {
                true => server.run_batch(rest),
                false => server.execute(first).map(Pass::one),
            })?;
            self.keep_paths(*next, &pass);
            *next += pass.done;
            if let Some(outcome) = pass.shown {
                return Ok(Some(self.observation(*next - 1, outcome)));
            }
            if self.setup.leave.can_be_asked() && pass.done < rest.len() {
                break;
            }
        }
        Ok(None)
    }

    fn quiet_paths(&self) -> &[(usize, u64)] {
        &self.quiet
    }

    fn learn_edges(&mut self, virgin: &[u8]) {
        if let Some(runs) = &mut self.session.runs {
            runs.learn_edges(virgin);
        }
    }

    fn learn_key(&mut self, key: u32, threshold: u32) {
        if let Some(runs) = &mut self.session.runs {
            runs.thresholds_mut()[key as usize] = threshold;
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(self.notes_of_session());
        notes
    }

    fn take_account(&mut self, input: &[u8]) -> Option<String> {
        let account = self.account.take()?;
        account.input.is_none_or(|of| of == input).then_some(account.text)
    }

    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.session.dictionary)
    }

    fn end_process(&mut self) {
        if self.session.runs.is_some() {
            self.end_idle_child(Child::Own);
        } else if self.child.is_some() {
            self.kill_child(libc::SIGKILL);
            (self.child, self.killed) = (None, true);
        }
    }

    fn take_restart(&mut self) -> Option<String> {
        self.restart.take()
    }

    fn stop_on(&mut self, request: Option<StopRequest>) {
        self.setup.leave = Leave::from(request);
        self.alarm = None;
    }
}

impl TargetInfo for ForkServer {
    fn map_size(&self) -> usize {
        self.session.maps.edges().len()
    }

    fn edges(&self) -> usize {
        let [with, without] = self.session.maps.absent();
        let is_alone = self.session.runs.as_ref().is_some_and(RunChannel::has_left_detours);
        self.map_size() - if is_alone { without } else { with }
    }

    fn rejected_runs(&self) -> u32 {
        self.session.maps.channel().map_or(0, Channel::rejected)
    }

    fn domains(&self) -> &[Domain] {
        self.session.maps.domains()
    }

    fn sites(&self) -> Vec<Site> {
        let mut sites = sites::read(self.setup.program(), self.session.process.pid());
        sites.extend(self.setup.way().counted_sites());
        sites
    }

    fn is_harness(&self) -> bool {
        self.setup.traits.is_harness
    }

    fn words(&self) -> (Vec<Word>, Vec<PathBuf>) {
        let pid = self.session.process.pid();
        if let Some(files) = self.setup.way().files(self.setup.program(), pid) {
            return (words::strings(files.iter().map(PathBuf::as_path)), Vec::new());
        }
        // AFL's compilers store no words.
        if self.session.maps.channel().is_none() {
            return (words::strings([self.setup.program()].into_iter()), Vec::new());
        }
        words::read(self.setup.program(), Some(pid))
    }

    fn modules(&self) -> Vec<Module> {
        modules::located(self.session.maps.modules(), self.session.process.pid())
    }

    fn place_of_counter(&self, counter: u32) -> Option<Site> {
        let counted = |path: &Path| self.setup.way().counters(path);
        self.counter_places.borrow_mut().of(counter, &self.modules(), counted)
    }

    fn counter_addresses(&self, file: &Path) -> Option<Vec<(u64, usize)>> {
        self.setup.way().counters(file).map(|counted| counted.counters)
    }

    fn flow(&self) -> (Vec<FunctionFlow>, Vec<PathBuf>) {
        flow::read(&self.modules(), |path| self.setup.way().counters(path))
    }

    fn introduction(&self) -> Option<String> {
        self.setup.way().introduction()
    }

    fn target_mode(&self) -> String {
        let shared = matches!(self.session.delivery, InputDelivery::Shared { .. });
        let words = [
            self.setup.options.non_instrumented.then_some("non_instrumented"),
            self.setup.way().word(),
            shared.then_some("shmem_testcase"),
            self.setup.persistent().then_some("persistent"),
            self.setup.deferred().then_some("deferred"),
        ];
        let words: Vec<_> = words.into_iter().flatten().collect();
        if words.is_empty() { "default".into() } else { words.join(" ") }
    }

    fn run_mode(&self) -> RunMode {
        match &self.session.runs {
            None => RunMode::Pipe,
            Some(_) if self.restores() => RunMode::Snapshot,
            Some(_) if self.takes_batches() => RunMode::Batch,
            Some(_) if self.setup.persistent() => RunMode::Persistent,
            Some(_) => RunMode::Fork,
        }
    }

    fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        self.snapshot_runs()
    }

    fn shares_beginnings(&self) -> bool {
        self.shares_beginnings()
    }

    fn batch_size(&self) -> usize {
        if self.takes_batches() { self.cases } else { 1 }
    }

    fn execs(&self) -> u64 {
        self.execs
    }

    fn spent(&self) -> Spent {
        self.spent
    }

    fn comparison_sites(&self) -> Vec<Site> {
        let of_program = || sites::of_comparisons(self.setup.program(), self.session.process.pid());
        self.setup.way().comparison_sites().unwrap_or_else(of_program)
    }

    fn unseen_code(&self, input: &[u8], file: &Path) -> UnseenCode {
        let Some(native) = self.setup.way().copied() else { return UnseenCode::default() };
        let limit = (self.settings.timeout * 10).max(Duration::from_secs(5));
        // Only a note depends on the result.
        let mut unseen = late::find(&self.setup.options, input, file, limit).unwrap_or_default();
        let known = native.files();
        unseen.libraries.retain(|path| !known.contains(path));
        unseen
    }

    fn first_session(&self, input: &[u8], file: &Path) -> Option<FirstSession> {
        net::first_session(&self.setup.options, input, file, self.settings.timeout)
    }

    fn awaited_socket(&self, input: &[u8], file: &Path) -> Option<String> {
        blocked::awaited_socket(&self.setup, self.settings.timeout, input, file)
    }

    fn input_functions(&self) -> InputFunctions {
        self.session.maps.channel().map_or_else(Default::default, |channel| channel.functions)
    }

    fn logs_comparisons(&self) -> bool {
        self.can_log()
    }

    fn has_partial_log(&self) -> bool {
        self.session.log.is_some()
    }

    fn processor_time(&self) -> Option<ProcessorTime> {
        let runs = self.session.runs.as_ref()?;
        let server = self.session.process.pid();
        let [own, mut children] = load::processor_times(server)?;
        // These pids are untrusted.
        let living = [self.child, runs.lasting_child()].into_iter().flatten();
        for child in living.filter(|pid| process::descends_from(*pid, server)) {
            children += load::processor_times(child).map_or(Duration::ZERO, |[own, _]| own);
        }
        Some(ProcessorTime { server: own, children })
    }

    fn server(&self) -> Option<i32> {
        Some(self.session.process.pid())
    }

    fn process(&self) -> Option<i32> {
        let last = || self.session.runs.as_ref().map_or(self.last, RunChannel::child);
        self.setup.persistent().then(last)
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }

    fn is_stopping(&self) -> bool {
        self.setup.leave.is_asked()
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // Kill a stopped persistent child first, because it would outlive its fork server.
        self.kill_child(libc::SIGKILL);
        self.session.process.stop(self.setup.options.fork_server_kill_signal);
    }
}
