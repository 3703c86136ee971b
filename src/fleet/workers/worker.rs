//! One worker: an ordinary `ffuzz` process, its events, and its restarts.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error::FleetError;
use crate::control::Incoming;
use ffuzz_event::{Event, Snapshot, StopReason, WorkerStatus};
use ffuzz_sys::subprocess::{Restarts, Subprocess, exit_in_words};
use ffuzz_sys::wire;

/// Maximum length of a line: a status with thousands of domains has some hundred kilobytes.
const LONGEST_LINE: u64 = 16 << 20;
/// Maximum number of last output lines kept to explain a worker's end, and length of each: a panic with
/// its backtrace is the longest.
const LINES_KEPT: usize = 20;
const LONGEST_LINE_KEPT: usize = 4096;
/// Number of consecutive starts without fuzzing after which the worker is given up.
const MOST_FALSE_STARTS: u32 = 3;
/// Time without output after which the fleet stops waiting for the pipes of an ended process, which its
/// children may hold open; `LATEST_OUTPUT` is the limit in any case.
const LATE_OUTPUT: Duration = Duration::from_secs(1);
const LATEST_OUTPUT: Duration = Duration::from_secs(10);
/// Prefixes of the last lines of an ffuzz command (`cmd::exit`), and of its warnings.
const PREFIX: &str = "ffuzz: ";
const HINT: &str = "hint: ";
const WARNING: &str = "warning: ";

/// Settings with which a worker starts.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    pub name: String,
    /// Command line, including the program.
    pub argv: Vec<OsString>,
    /// Changes to the environment; None removes a variable.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Its own `AFL_TMPDIR`, created and removed with it.
    pub tmpdir: Option<PathBuf>,
    /// True if it reads commands from its standard input.
    pub takes_commands: bool,
}

/// Output of a worker.
#[derive(Debug)]
pub(crate) enum WorkerOutput {
    Event(Box<Event>),
    /// An event of one of its own workers, if it is a fleet itself; its joined status is a separate event.
    Part,
    /// A line of its standard error, or a line of its standard output that is no event.
    Line(String),
    Closed,
}

/// A message to the fleet's main loop.
#[derive(Debug)]
pub(crate) enum FleetMessage {
    /// Number of the worker, number of its process, and its output.
    Worker(usize, u32, WorkerOutput),
    Client(Incoming),
}

/// How a process of a worker ended.
#[derive(Debug)]
pub(crate) enum WorkerEnd {
    /// Ended after the last event of a campaign that ends well.
    Stopped(StopReason),
    /// Description of the end.
    Died(String),
}

#[derive(Debug)]
enum Phase {
    /// Earliest time for its next start.
    Waiting {
        from: Instant,
    },
    Running(Running),
    Ended,
}

#[derive(Debug)]
struct Running {
    process: Subprocess,
    /// Lines for its standard input.
    commands: Option<Sender<String>>,
    /// Number of open pipes.
    open: u8,
    fuzzing_since: Option<Instant>,
    stopped: Option<StopReason>,
    /// Time and status of its end, once known.
    gone: Option<(Instant, i32)>,
    /// Time of its last output.
    last_output_at: Instant,
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) plan: WorkerPlan,
    phase: Phase,
    /// Number of its process; identifies late output of an earlier one.
    started: u32,
    last_event_at: Instant,
    last: Option<Box<Snapshot>>,
    last_lines: VecDeque<String>,
    /// Number of consecutive ends without fuzzing.
    false_starts: u32,
    /// Pauses before restarts, longer after each process that did not fuzz for a while.
    restarts: Restarts,
}

impl Worker {
    pub(crate) fn new(plan: WorkerPlan) -> Self {
        Self {
            plan,
            phase: Phase::Waiting { from: Instant::now() },
            started: 0,
            last_event_at: Instant::now(),
            last: None,
            last_lines: VecDeque::new(),
            false_starts: 0,
            restarts: Restarts::default(),
        }
    }

    /// Returns true if the pause before its next start is over.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.phase, Phase::Waiting { from } if Instant::now() >= from)
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// Time of its last event.
    pub(crate) fn last_event_at(&self) -> Instant {
        self.last_event_at
    }

    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.last.as_deref()
    }

    /// Starts its process. From the second start on, it resumes its instance folder.
    pub(crate) fn start(
        &mut self,
        number: usize,
        inbox: &SyncSender<FleetMessage>,
    ) -> Result<(), FleetError> {
        self.fresh_tmpdir()?;
        let started = self.launch(number, inbox);
        started.map_err(|source| FleetError::Start { name: self.plan.name.clone(), source })
    }

    fn launch(&mut self, number: usize, inbox: &SyncSender<FleetMessage>) -> io::Result<()> {
        self.started += 1;
        self.last_lines.clear();
        let (out, out_theirs) = wire::pipe()?;
        let (err, err_theirs) = wire::pipe()?;
        let mut env = self.plan.env.clone();
        if self.started > 1 {
            env.push(("AFL_AUTORESUME".into(), Some("1".into())));
        }
        let (stdin, commands) = self.plan.takes_commands.then(command_pipe).transpose()?.unzip();
        let stdin = stdin.unwrap_or_else(Stdio::null);
        let (out_theirs, err_theirs) = (out_theirs.as_fd(), err_theirs.as_fd());
        let process = Subprocess::start(&self.plan.argv, &env, stdin, out_theirs, err_theirs)?;
        for (pipe, is_json) in [(out, true), (err, false)] {
            let (inbox, process) = (inbox.clone(), self.started);
            let send =
                move |output| inbox.send(FleetMessage::Worker(number, process, output)).is_ok();
            thread::Builder::new().spawn(move || read_lines(pipe, is_json, send))?;
        }
        self.phase = Phase::Running(Running {
            process,
            commands,
            open: 2,
            fuzzing_since: None,
            stopped: None,
            gone: None,
            last_output_at: Instant::now(),
        });
        Ok(())
    }

    /// Recreates the folder, because files of an earlier process would prevent the start.
    fn fresh_tmpdir(&self) -> Result<(), FleetError> {
        let Some(folder) = &self.plan.tmpdir else { return Ok(()) };
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).map_err(|source| FleetError::Folder { path: folder.clone(), source })
    }

    /// Handles its output; false if the output is from an earlier process.
    pub(crate) fn note(&mut self, process: u32, output: &WorkerOutput) -> bool {
        let Phase::Running(running) = &mut self.phase else { return false };
        if process != self.started {
            return false;
        }
        if matches!(output, WorkerOutput::Event(_) | WorkerOutput::Part) {
            self.last_event_at = Instant::now();
        }
        running.last_output_at = Instant::now();
        match output {
            WorkerOutput::Closed => running.open -= 1,
            WorkerOutput::Part => {}
            WorkerOutput::Line(line) => {
                self.last_lines.push_back(line.clone());
                if self.last_lines.len() > LINES_KEPT {
                    self.last_lines.pop_front();
                }
            }
            WorkerOutput::Event(event) => match &**event {
                Event::Started => {
                    running.fuzzing_since = Some(Instant::now());
                    self.false_starts = 0;
                }
                Event::Tick(snapshot) => self.last = Some(snapshot.clone()),
                Event::Stopped { reason, snapshot, .. } => {
                    self.last = Some(snapshot.clone());
                    running.stopped = Some(*reason);
                }
                _ => {}
            },
        }
        true
    }

    /// Sends it a line, which a worker that ends meanwhile does not read.
    pub(crate) fn command(&self, line: &str) {
        if let Phase::Running(Running { commands: Some(commands), .. }) = &self.phase {
            let _ = commands.send(line.to_owned());
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        if let Phase::Running(running) = &self.phase {
            running.process.signal(signal);
        }
    }

    /// The end of its process, once all its output was read.
    pub(crate) fn end(&mut self) -> Option<WorkerEnd> {
        let Phase::Running(running) = &mut self.phase else { return None };
        if running.gone.is_none() {
            running.gone = running.process.try_wait().map(|status| (Instant::now(), status));
        }
        let (at, status) = running.gone?;
        let silence = at.max(running.last_output_at).elapsed();
        if running.open > 0 && silence < LATE_OUTPUT && at.elapsed() < LATEST_OUTPUT {
            return None;
        }
        let fuzzed = running.fuzzing_since.map(|since| since.elapsed());
        let stopped = running.stopped;
        self.phase = Phase::Ended;
        match status {
            0 => return Some(WorkerEnd::Stopped(stopped.unwrap_or(StopReason::Done))),
            // Asked to end before it handled signals.
            libc::SIGINT => return Some(WorkerEnd::Stopped(StopReason::User)),
            _ => {}
        }
        match fuzzed {
            Some(time) if time >= Restarts::A_WHILE => self.restarts.reset(),
            Some(_) => self.restarts.note_early_end(),
            None => self.note_false_start(),
        }
        Some(WorkerEnd::Died(exit_in_words(status)))
    }

    /// Notes an end before fuzzing.
    pub(crate) fn note_false_start(&mut self) {
        self.false_starts += 1;
        self.restarts.note_early_end();
    }

    /// Returns true if its last process ended before it fuzzed.
    pub(crate) fn has_failed_to_start(&self) -> bool {
        self.false_starts > 0
    }

    /// Returns true if it was started too often without fuzzing.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.false_starts >= MOST_FALSE_STARTS
    }

    /// Schedules its next start, and returns the pause before it.
    pub(crate) fn start_later(&mut self) -> Duration {
        let pause = self.restarts.pause();
        self.phase = Phase::Waiting { from: Instant::now() + pause };
        pause
    }

    /// Cause and remedy, if its last lines have the form of an ffuzz error.
    pub(crate) fn last_error(&self) -> Option<(String, String)> {
        let said = |line: &'_ String| line.strip_prefix(PREFIX).map(str::to_owned);
        let (mut cause, mut remedy) = (None, String::new());
        for line in
            self.last_lines.iter().filter_map(said).filter(|line| !line.starts_with(WARNING))
        {
            match line.strip_prefix(HINT) {
                Some(hint) => remedy = hint.to_owned(),
                None => cause = Some(line),
            }
        }
        cause.map(|cause| (cause, remedy))
    }

    pub(crate) fn status(&self) -> WorkerStatus {
        let (state, speed) = match &self.phase {
            Phase::Waiting { .. } => ("waiting", false),
            Phase::Running(Running { fuzzing_since: None, .. }) => ("starting", false),
            Phase::Running(_) => ("fuzzing", true),
            Phase::Ended => ("ended", true),
        };
        let name = self.plan.name.clone();
        let restarts = self.started.saturating_sub(1);
        let own = WorkerStatus { name, state: state.into(), restarts, ..WorkerStatus::default() };
        let Some(s) = self.snapshot() else { return own };
        let is_paused = state == "fuzzing" && s.control.paused;
        WorkerStatus {
            state: if is_paused { "paused".into() } else { own.state.clone() },
            schedule: s.setup.schedule.clone(),
            execs: s.runs.execs,
            execs_per_sec: if speed { s.runs.execs_per_sec } else { 0.0 },
            corpus_count: s.corpus.corpus_count,
            corpus_imported: s.corpus.corpus_imported,
            edges_found: s.coverage.edges_found,
            saved_crashes: s.finds.saved_crashes,
            saved_hangs: s.finds.saved_hangs,
            last_find_at: s.finds.last_find_at,
            injected: s.control.injected,
            ..own
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Kill a running process before its folder is removed.
        self.phase = Phase::Ended;
        if let Some(folder) = &self.plan.tmpdir {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Returns true if a line is reported elsewhere: with the worker's end, or by the fleet at its start.
pub(crate) fn is_own_message(line: &str) -> bool {
    line.starts_with(PREFIX)
}

/// The standard input of a worker, with a thread that writes to it, because the worker may be busy.
fn command_pipe() -> io::Result<(Stdio, Sender<String>)> {
    let (theirs, ours) = wire::pipe()?;
    let (sender, lines): (_, Receiver<String>) = channel();
    let mut pipe = File::from(ours);
    let write = move || {
        for line in lines {
            if pipe.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().spawn(write)?;
    Ok((Stdio::from(theirs), sender))
}

/// Reads lines until the pipe is closed or the receiver is gone.
fn read_lines(pipe: OwnedFd, is_json: bool, send: impl Fn(WorkerOutput) -> bool) {
    let mut reader = BufReader::new(File::from(pipe));
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let event = if is_json { event_of(&line) } else { None };
        if !send(event.unwrap_or_else(|| WorkerOutput::Line(printable(&line)))) {
            return;
        }
    }
    send(WorkerOutput::Closed);
}

/// Parses an event; None if the line is no event.
fn event_of(line: &[u8]) -> Option<WorkerOutput> {
    /// The field that `Json::handle_of` adds to the event of a worker.
    #[derive(Deserialize)]
    struct WorkerTag {
        worker: Option<IgnoredAny>,
    }
    let WorkerTag { worker } = serde_json::from_slice(line).ok()?;
    let event = serde_json::from_slice(line).ok()?;
    Some(if worker.is_some() { WorkerOutput::Part } else { WorkerOutput::Event(event) })
}

/// The text without control characters, which a terminal would interpret.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LINE_KEPT)]);
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::Runs;
    use ffuzz_sys::stop::Stop;

    fn worker(script: &str) -> Worker {
        let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        let (name, env, tmpdir) = ("worker01".into(), Vec::new(), None);
        Worker::new(WorkerPlan { name, argv, env, tmpdir, takes_commands: true })
    }

    /// Starts the worker and reads its output to the end.
    fn run(worker: &mut Worker) -> WorkerEnd {
        let (sender, inbox) = std::sync::mpsc::sync_channel(16);
        worker.start(0, &sender).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < deadline, "no end");
            let output = inbox.recv_timeout(Duration::from_millis(20));
            if let Ok(FleetMessage::Worker(0, process, output)) = output {
                worker.note(process, &output);
            }
            if let Some(end) = worker.end() {
                return end;
            }
        }
    }

    #[test]
    fn an_end_is_reported_with_the_lines_before_it() {
        let mut one = worker(
            "echo 'ffuzz: warning: w' >&2; echo 'ffuzz: no seed' >&2; \
                              echo 'ffuzz: hint: write one' >&2; exit 1",
        );
        let WorkerEnd::Died(how) = run(&mut one) else { panic!() };
        assert_eq!(how, "ended with exit code 1");
        assert_eq!(one.last_error(), Some(("no seed".into(), "write one".into())));
    }

    #[test]
    fn one_that_is_asked_to_end_before_it_handles_signals_ends_well() {
        // The test may run with SIGINT ignored; a handler is not inherited.
        Stop::on_signals().unwrap();
        assert!(matches!(run(&mut worker("kill -INT $$")), WorkerEnd::Stopped(StopReason::User)));
    }

    #[test]
    fn starts_that_fail_are_counted_and_pauses_grow() {
        let mut one = worker("kill -9 $$");
        for (start, pause) in [(1, 1), (2, 2), (3, 4)] {
            assert!(!one.is_hopeless());
            let WorkerEnd::Died(how) = run(&mut one) else { panic!() };
            assert_eq!(how, "was killed by signal 9");
            assert_eq!((one.started, one.start_later()), (start, Duration::from_secs(pause)));
            assert!(!one.is_due());
        }
        assert!(one.is_hopeless());
    }

    #[test]
    fn a_command_reaches_its_standard_input() {
        let mut one = worker("read line; echo \"ffuzz: $line\" >&2; exit 1");
        let (sender, inbox) = std::sync::mpsc::sync_channel(16);
        one.start(0, &sender).unwrap();
        one.command("stop\n");
        let output = loop {
            let message = inbox.recv_timeout(Duration::from_secs(60)).unwrap();
            if let FleetMessage::Worker(0, 1, WorkerOutput::Line(line)) = message {
                break line;
            }
        };
        assert_eq!(output, "ffuzz: stop");
    }

    #[test]
    fn the_numbers_of_a_fleet_are_those_of_the_whole() {
        let tick = |execs| {
            let runs = Runs { execs, ..Runs::default() };
            Event::Tick(Box::new(Snapshot { runs, ..Snapshot::default() }))
        };
        let whole = serde_json::to_string(&tick(5)).unwrap();
        let part = serde_json::to_string(&tick(3)).unwrap();
        let part = part.replacen('{', "{\"worker\":\"main\",", 1);
        let started = "{\"worker\":\"main\",\"event\":\"started\"}";
        let mut one = worker(&format!("echo '{whole}'; echo '{part}'; echo '{started}'; exit 1"));
        assert!(matches!(run(&mut one), WorkerEnd::Died(_)));
        assert_eq!(one.snapshot().map(|snapshot| snapshot.runs.execs), Some(5));
        assert!(one.false_starts == 1 && one.last_lines.is_empty(), "{:?}", one.last_lines);
    }

    #[test]
    fn one_that_was_fuzzing_begins_anew() {
        let mut one = worker("echo '{\"event\":\"started\"}'; echo no event; exit 101");
        one.false_starts = 3;
        assert!(matches!(run(&mut one), WorkerEnd::Died(_)));
        assert!(!one.is_hopeless() && one.false_starts == 0);
        assert_eq!(one.last_lines, ["no event"]);
    }
}
