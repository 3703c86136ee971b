//! `-j N`: several workers under one command. Each is an ordinary `ffuzz` process with its own instance
//! folder; they exchange finds by `sync`. This module starts them, reads their events, restarts them when
//! they die, and ends them. It joins their events into one stream.

mod error;
mod orders;
pub mod strategy;
pub(crate) mod worker;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

pub use error::FleetError;
pub use worker::WorkerPlan;

use crate::control::{Answer, Command, CommandSource, Deliver, Incoming, Order};
use ffuzz_config::options::TriageOptions;
use ffuzz_crashes::triage::{Follower, pointers};
use ffuzz_event::{Event, EventBus, EventSink, Snapshot, StopReason};
use ffuzz_sys::process::raise_open_files;
use ffuzz_sys::stop::Stop;
use ffuzz_sys::strays::Adopted;
use orders::{OrderShare, PendingCommands};
use worker::{FleetMessage, Worker, WorkerEnd, WorkerOutput};

/// Interval between two checks of processes and signals while no event arrives.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between two status events.
const TICK: Duration = Duration::from_millis(200);
/// Capacity of the message queue; more than all workers send between two checks.
const INBOX: usize = 4096;
/// Maximum number of messages handled before signals are checked again.
const IN_A_ROW: usize = 1000;
/// Maximum number of warnings remembered, to report each once.
const MOST_WARNINGS: usize = 1000;
/// Open files of the fleet itself, including start-up and clients; `FILES_A_WORKER` adds the three pipes
/// of each worker.
const FILES: u64 = 256;
const FILES_A_WORKER: u64 = 3;
/// Time for the workers to pause after Ctrl-Z: their longest batches of runs, on a loaded machine.
const PAUSE: Duration = Duration::from_secs(5);
/// Time for a worker's last run and its files. A worker that has neither ended by then nor sent an event
/// (it may import peers' finds, `AFL_FINAL_SYNC`) is killed.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// Options of [`run`]. All others are on the workers' command lines.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Workers, with the main first.
    pub workers: Vec<WorkerPlan>,
    /// Time limit (`-V`).
    pub time: Option<Duration>,
    /// `AFL_BENCH_UNTIL_CRASH`: the end of one worker ends all.
    pub until_crash: bool,
    pub command_line: String,
    /// The output folder, and the line that resumes the campaign.
    pub root: PathBuf,
    pub resume: Option<String>,
    pub triage: Option<TriageOptions>,
}

/// Runs all workers until the last one has ended, or a stop is requested.
///
/// Must be called by a thread that lives as long as the process: the kernel ends the workers together with
/// the thread that started them.
pub fn run(
    options: FleetOptions,
    sinks: Vec<Box<dyn EventSink>>,
    control: Vec<CommandSource>,
) -> Result<StopReason, FleetError> {
    let stop = Stop::on_signals().map_err(FleetError::Signals)?;
    stop.suspend_between_runs().map_err(FleetError::Signals)?;
    let mut bus = EventBus::default();
    for sink in sinks {
        bus.add(sink);
    }
    raise_open_files(FILES + FILES_A_WORKER * options.workers.len() as u64);
    let (sender, inbox) = sync_channel(INBOX);
    for place in control {
        let sink = place.serve(deliver(&sender, &stop)).map_err(FleetError::Control)?;
        sink.into_iter().for_each(|sink| bus.add(sink));
    }
    let mut fleet = Fleet {
        workers: options.workers.into_iter().map(Worker::new).collect(),
        time: options.time,
        until_crash: options.until_crash,
        command_line: options.command_line,
        root: options.root,
        resume: options.resume,
        triage: options.triage.map(Follower::new),
        stop,
        bus,
        sender,
        inbox,
        target_works: false,
        fuzzing_since: None,
        commands: PendingCommands::default(),
        at_work: Vec::new(),
        adopted: Adopted::default(),
        last_reason: StopReason::Done,
        last_tick: Instant::now(),
        warnings: HashMap::new(),
    };
    let result = fleet.watch();
    fleet.end(result)
}

/// Receives messages from clients' threads. A request to stop takes effect immediately.
fn deliver(inbox: &SyncSender<FleetMessage>, stop: &Stop) -> Deliver {
    let (inbox, stop) = (inbox.clone(), stop.clone());
    Arc::new(move |incoming: Incoming| {
        if incoming.is_stop() {
            stop.ask();
        }
        inbox.send(FleetMessage::Client(incoming)).is_ok()
    })
}

/// Returns true if no other worker has sent this warning.
fn first_by(warnings: &mut HashMap<String, usize>, message: &str, number: usize) -> bool {
    if warnings.len() >= MOST_WARNINGS {
        warnings.clear();
    }
    *warnings.entry(message.to_owned()).or_insert(number) == number
}

struct Fleet {
    workers: Vec<Worker>,
    time: Option<Duration>,
    until_crash: bool,
    command_line: String,
    root: PathBuf,
    resume: Option<String>,
    triage: Option<Follower>,
    stop: Stop,
    bus: EventBus,
    sender: SyncSender<FleetMessage>,
    inbox: Receiver<FleetMessage>,
    /// True once the main has sent an event: the target works, so the others start.
    target_works: bool,
    fuzzing_since: Option<Instant>,
    /// Commands from outside (`--control`).
    commands: PendingCommands,
    /// Workers that have not paused yet for Ctrl-Z.
    at_work: Vec<usize>,
    adopted: Adopted,
    /// Reason of the last worker's end.
    last_reason: StopReason,
    last_tick: Instant,
    /// Warnings, each with the first worker that sent it: all workers have the same target, so one report
    /// is enough.
    warnings: HashMap<String, usize>,
}

impl Fleet {
    fn watch(&mut self) -> Result<StopReason, FleetError> {
        loop {
            self.start_due()?;
            self.receive();
            self.suspend_if_asked();
            for number in 0..self.workers.len() {
                self.restart_if_ended(number)?;
            }
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            if self.stop.skip() {
                self.signal(libc::SIGUSR1);
            }
            self.tick_if_due();
            self.adopted.reap_if_due();
        }
    }

    /// Starts workers that are due. The others follow once the main has shown that the target starts, so
    /// that an error is reported once.
    fn start_due(&mut self) -> Result<(), FleetError> {
        let count = if self.target_works { self.workers.len() } else { 1 };
        for number in 0..count {
            let worker = &mut self.workers[number];
            if !worker.is_due() {
                continue;
            }
            match worker.start(number, &self.sender) {
                Ok(()) => {
                    let lines = self.commands.for_start(number);
                    lines.iter().for_each(|line| worker.command(line));
                }
                Err(error) => self.take_false_start(number, error)?,
            }
        }
        Ok(())
    }

    /// Handles a worker whose process could not be started. Once the fleet fuzzes, it is retried.
    fn take_false_start(&mut self, number: usize, error: FleetError) -> Result<(), FleetError> {
        self.workers[number].note_false_start();
        if self.fuzzing_since.is_none() || self.is_lost(number) {
            return Err(error);
        }
        self.put_off(number, &error.to_string());
        Ok(())
    }

    /// Returns true if no worker fuzzes any more after the end of this one. Before any worker has fuzzed,
    /// a single hopeless one is enough.
    fn is_lost(&self, number: usize) -> bool {
        let at_work = |worker: &Worker| !worker.has_ended() && !worker.is_hopeless();
        let fuzzing = self.fuzzing_since.is_some() && self.workers.iter().any(at_work);
        self.workers[number].is_hopeless() && !fuzzing
    }

    fn put_off(&mut self, number: usize, what: &str) {
        let worker = &mut self.workers[number];
        let message = format!("{what}; starts again in {} s", worker.start_later().as_secs());
        self.bus.send_of(&worker.plan.name, &Event::Warning { message });
    }

    fn receive(&mut self) {
        let mut next = self.inbox.recv_timeout(LOOK).ok();
        for _ in 0..IN_A_ROW {
            let Some(message) = next else { return };
            self.take(message);
            next = self.inbox.try_recv().ok();
        }
        if let Some(message) = next {
            self.take(message);
        }
    }

    fn take(&mut self, message: FleetMessage) {
        match message {
            FleetMessage::Worker(number, process, output) => {
                self.take_from(number, process, output)
            }
            FleetMessage::Client(Incoming::Order(order)) => self.carry_out(order),
            FleetMessage::Client(Incoming::Refused(message)) => {
                self.bus.send(&Event::Warning { message });
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        let own = match &order.command {
            Ok(Command::Stats) => Some(Answer::Stats(Box::new(self.snapshot()))),
            // The stop was requested when this message arrived.
            Ok(Command::Stop) => Some(Answer::Done),
            _ => None,
        };
        if let Some(answer) = own {
            return self.bus.send(&order.answer(Ok(answer)));
        }
        let running = (0..self.workers.len()).filter(|number| self.workers[*number].is_running());
        match self.commands.divide(order, running.collect()) {
            OrderShare::Answer(event) => self.bus.send(&event),
            OrderShare::Later => {}
            OrderShare::Line(line, workers) => {
                workers.into_iter().for_each(|number| self.workers[number].command(&line));
            }
        }
    }

    /// Handles Ctrl-Z: the workers run in sessions of their own, and pause meanwhile by command. Unlike
    /// with signals, they cannot miss the end of the pause.
    fn suspend_if_asked(&mut self) {
        if !self.stop.wants_suspension() {
            return;
        }
        if self.commands.standing.paused {
            self.leave_out(self.stop.suspend());
            return;
        }
        self.at_work = (0..self.workers.len()).filter(|n| self.workers[*n].is_running()).collect();
        self.send_to_workers(&Command::Pause, orders::SUSPENSION);
        let asked = Instant::now();
        // A second Ctrl-Z takes effect immediately.
        while !self.at_work.is_empty() && asked.elapsed() < PAUSE && self.stop.wants_suspension() {
            self.receive();
        }
        self.leave_out(self.stop.suspend());
        self.send_to_workers(&Command::Resume, orders::NOBODY);
    }

    /// Excludes time in the background (Ctrl-Z) from the fuzzing time.
    fn leave_out(&mut self, time: Duration) {
        self.fuzzing_since.iter_mut().for_each(|since| *since += time);
    }

    fn send_to_workers(&self, command: &Command, id: u64) {
        let line = command.to_line(id);
        self.workers.iter().for_each(|worker| worker.command(&line));
    }

    fn take_from(&mut self, number: usize, process: u32, output: WorkerOutput) {
        let worker = &mut self.workers[number];
        if !worker.note(process, &output) {
            return;
        }
        match output {
            WorkerOutput::Event(event) => self.take_event(number, *event),
            WorkerOutput::Line(line) if worker::is_own_message(&line) || line.is_empty() => {}
            WorkerOutput::Line(message) => {
                self.bus.send_of(&worker.plan.name, &Event::Warning { message });
            }
            WorkerOutput::Part | WorkerOutput::Closed => {}
        }
    }

    fn take_event(&mut self, number: usize, event: Event) {
        self.target_works = true;
        let is_new = match event {
            Event::Reply(reply) if reply.id == Some(orders::SUSPENSION) => {
                return self.at_work.retain(|other| *other != number);
            }
            Event::Reply(reply) => {
                let answer = self.commands.answered(number, reply);
                return answer.iter().for_each(|answer| self.bus.send(answer));
            }
            Event::Warning { ref message } => first_by(&mut self.warnings, message, number),
            _ => true,
        };
        if is_new {
            self.bus.send_of(&self.workers[number].plan.name, &event);
        }
        self.look_at_crashes(&event);
        if matches!(event, Event::Started) && self.fuzzing_since.is_none() {
            self.fuzzing_since = Some(Instant::now());
            self.bus.send(&Event::Started);
        }
    }

    /// Starts the triage with the first crash, or one of an earlier campaign.
    fn look_at_crashes(&mut self, event: &Event) {
        let Some(triage) = &mut self.triage else { return };
        match event {
            Event::Tick(state) => {
                triage.start_for(state.finds.saved_crashes, state.finds.saved_hangs);
            }
            Event::CrashSaved { .. } => triage.start_for(1, 0),
            Event::HangSaved { .. } => triage.start_for(0, 1),
            _ => {}
        }
        for message in triage.take_notes() {
            self.bus.send(&Event::Warning { message });
        }
    }

    /// Restarts a worker that has died, unless it is hopeless.
    fn restart_if_ended(&mut self, number: usize) -> Result<(), FleetError> {
        let Some(end) = self.workers[number].end() else { return Ok(()) };
        for answer in self.commands.ended(number) {
            self.bus.send(&answer);
        }
        let how = match end {
            WorkerEnd::Stopped(reason) => {
                self.last_reason = reason;
                return Ok(());
            }
            WorkerEnd::Died(how) => how,
        };
        let worker = &self.workers[number];
        let (name, error) = (&worker.plan.name, worker.last_error());
        // An error of the main would affect all workers, and is reported as by a single fuzzer.
        if let (None, Some((cause, remedy))) = (self.fuzzing_since, &error) {
            let cause = if number == 0 { cause.clone() } else { format!("{name}: {cause}") };
            return Err(FleetError::Worker { cause, remedy: remedy.clone() });
        }
        if self.is_lost(number) {
            let (cause, remedy) = error.unwrap_or_else(|| (how, format!("see -S {name} alone")));
            let cause = format!("{name} cannot start any more: {cause}");
            return Err(FleetError::Worker { cause, remedy });
        }
        let cause = error.map_or_else(String::new, |(cause, _)| format!(" ({cause})"));
        self.put_off(number, &format!("{how}{cause}"));
        Ok(())
    }

    fn stop_reason(&self) -> Option<StopReason> {
        if self.stop.asked() {
            return Some(StopReason::User);
        }
        // A pause by command counts, because its end may never come.
        let time = self.fuzzing_since.map_or(Duration::ZERO, |since| since.elapsed());
        if self.time.is_some_and(|limit| time >= limit) {
            return Some(StopReason::TimeLimit);
        }
        let ended = self.workers.iter().filter(|worker| worker.has_ended()).count();
        let all = ended == self.workers.len();
        let first = ended > 0 && self.until_crash && self.last_reason == StopReason::Done;
        (all || first).then_some(self.last_reason)
    }

    fn signal(&self, signal: i32) {
        self.workers.iter().for_each(|worker| worker.signal(signal));
    }

    /// Asks all workers to end, waits for them, and reports the final status.
    fn end(mut self, mut result: Result<StopReason, FleetError>) -> Result<StopReason, FleetError> {
        self.signal(libc::SIGINT);
        self.stop.suspend_at_once();
        let asked = Instant::now();
        let works = |worker: &Worker| {
            worker.is_running() && worker.last_event_at().max(asked).elapsed() < STOP_GRACE
        };
        while self.workers.iter().any(works) {
            self.receive();
            for number in 0..self.workers.len() {
                let failed = self.report_end(number);
                result = result.and_then(|reason| failed.map_or(Ok(reason), Err));
            }
        }
        for worker in self.workers.iter().filter(|worker| worker.is_running()) {
            let seconds = STOP_GRACE.as_secs();
            let message = format!("was silent for {seconds} s and did not end: killed");
            self.bus.send_of(&worker.plan.name, &Event::Warning { message });
        }
        let left: Vec<FleetMessage> = self.inbox.try_iter().take(INBOX).collect();
        left.into_iter().for_each(|message| self.take(message));
        self.commands.answer_remaining().iter().for_each(|answer| self.bus.send(answer));
        let reason = *result.as_ref().unwrap_or(&StopReason::Failed);
        if let Some(triage) = &mut self.triage {
            triage.finish(reason.patience());
        }
        // A fleet that never fuzzed shows only its error.
        if self.fuzzing_since.is_some() || result.is_ok() {
            let snapshot = Box::new(self.snapshot());
            let next = pointers(&self.root, None, &snapshot.finds, self.resume.as_deref());
            self.bus.send(&Event::Stopped { reason, next, snapshot });
        }
        result
    }

    /// Reports the end of a worker that has ended; returns the error that ended it.
    fn report_end(&mut self, number: usize) -> Option<FleetError> {
        let end = self.workers[number].end()?;
        self.commands.ended(number).iter().for_each(|answer| self.bus.send(answer));
        let WorkerEnd::Died(how) = end else { return None };
        let worker = &self.workers[number];
        let name = &worker.plan.name;
        let (message, cause, remedy) = match worker.last_error() {
            Some((cause, remedy)) => (format!("{how} ({cause})"), cause, remedy),
            None => (how.clone(), how, "-i - goes on with what it has found".to_owned()),
        };
        self.bus.send_of(name, &Event::Warning { message });
        Some(FleetError::Worker { cause: format!("{name}: {cause}"), remedy })
    }

    fn tick_if_due(&mut self) {
        if self.fuzzing_since.is_some() && self.last_tick.elapsed() >= TICK {
            self.last_tick = Instant::now();
            let snapshot = Box::new(self.snapshot());
            self.bus.send(&Event::Tick(snapshot));
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let known: Vec<&Snapshot> = self.workers.iter().filter_map(Worker::snapshot).collect();
        let mut all = Snapshot::joined(&known);
        all.workers = self.workers.iter().map(Worker::status).collect();
        all.runs.execs_per_sec = all.workers.iter().map(|worker| worker.execs_per_sec).sum();
        all.setup.pid = std::process::id();
        all.control.paused = self.commands.standing.paused;
        all.control.injected = self.commands.injected();
        all.setup.instance = format!("{} workers", self.workers.len());
        all.setup.command_line.clone_from(&self.command_line);
        all.finds.bugs = self.triage.as_mut().and_then(Follower::bugs);
        all.finds.undelivered = self.triage.as_ref().and_then(Follower::undelivered);
        all
    }
}

#[cfg(test)]
mod tests {
    use ffuzz_sys::remedy::Remedy;

    use super::*;

    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    /// Collects warnings of workers.
    #[derive(Clone, Default)]
    struct Reported(Arc<Mutex<Vec<String>>>);

    impl EventSink for Reported {
        fn handle(&mut self, _event: &Event) {}

        fn handle_of(&mut self, worker: &str, event: &Event) {
            if let Event::Warning { message } = event {
                self.0.lock().unwrap().push(format!("[{worker}] {message}"));
            }
        }
    }

    fn options(scripts: &[&str], time: Duration) -> FleetOptions {
        let plan = |(number, script): (usize, &&str)| WorkerPlan {
            name: strategy::name(number),
            argv: ["/bin/sh", "-c", script].map(Into::into).into(),
            env: Vec::new(),
            tmpdir: None,
            takes_commands: false,
        };
        let workers = scripts.iter().enumerate().map(plan).collect();
        let (time, command_line) = (Some(time), String::new());
        let (root, resume) = (PathBuf::new(), None);
        FleetOptions { workers, time, until_crash: false, command_line, root, resume, triage: None }
    }

    #[test]
    fn one_that_fails_while_it_ends_is_reported_and_fails_all() {
        let full =
            "trap 'echo ffuzz: no room left >&2; echo ffuzz: hint: free some >&2; exit 1' INT
            echo '{\"event\":\"started\"}'; sleep 1000 & wait";
        let well = "trap 'exit 0' INT; echo '{\"event\":\"started\"}'; sleep 1000 & wait";
        let (reported, time) = (Reported::default(), Duration::from_millis(1));
        let error = run(options(&[full, well], time), vec![Box::new(reported.clone())], Vec::new());
        let error = error.unwrap_err();
        assert_eq!(
            (error.to_string(), error.remedy()),
            ("main: no room left".into(), "free some".into())
        );
        assert_eq!(*reported.0.lock().unwrap(), ["[main] ended with exit code 1 (no room left)"]);
    }

    #[test]
    fn the_only_one_is_started_again() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let script =
            format!("echo '{{\"event\":\"started\"}}'; mkdir {} && exit 1; exit 0", mark.display());
        let reported = Reported::default();
        let options = options(&[&script], Duration::from_secs(120));
        assert_eq!(
            run(options, vec![Box::new(reported.clone())], Vec::new()).unwrap(),
            StopReason::Done
        );
        let reported = reported.0.lock().unwrap();
        assert_eq!(reported[0], "[main] ended with exit code 1; starts again in 1 s");
    }

    #[test]
    fn one_that_cannot_be_started_again_leaves_the_others_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let (program, end) = (dir.path().join("program"), dir.path().join("end"));
        nix::unistd::mkfifo(&end, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let script = "#!/bin/sh\necho '{\"event\":\"started\"}'; rm \"$0\"; exit 1\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let script = format!("echo '{{\"event\":\"started\"}}'; read line < {}", end.display());
        let mut options = options(&[&script, ""], Duration::from_secs(120));
        options.workers[1].argv = vec![program.into()];
        let reported = Reported::default();
        let seen = reported.clone();
        let wait = move || {
            let deadline = Instant::now() + Duration::from_secs(60);
            while seen.0.lock().unwrap().len() < 2 && Instant::now() < deadline {
                std::thread::yield_now();
            }
            std::fs::write(end, "end\n").unwrap();
        };
        options.until_crash = true;
        let waits = std::thread::spawn(wait);
        let reason = run(options, vec![Box::new(reported.clone())], Vec::new()).unwrap();
        waits.join().unwrap();
        assert_eq!(reason, StopReason::Done);
        let reported = reported.0.lock().unwrap();
        assert!(
            reported[0].contains("ended with exit code 1; starts again in 1 s"),
            "{reported:?}"
        );
        assert!(
            reported[1].contains("cannot start the worker worker01: No such file"),
            "{reported:?}"
        );
        assert!(reported[1].ends_with("; starts again in 2 s"), "{reported:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let argv = vec!["/proc/none".into()];
        let (name, env, tmpdir) = ("main".into(), Vec::new(), None);
        let plan = WorkerPlan { name, argv, env, tmpdir, takes_commands: false };
        let options = FleetOptions { workers: vec![plan], ..options(&[], Duration::ZERO) };
        let error = run(options, Vec::new(), Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot start the worker main: "), "{error}");
        assert!(error.remedy().contains("-j"));
    }
}
