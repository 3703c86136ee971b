//! `-j N`: several workers under one command. Each is an ordinary `ffuzz` process with an instance
//! folder of its own; they know each other by what `sync` reads. Here they are started, heard,
//! started again when they die, and ended; what they say is handed on as one.

mod error;
mod join;
pub mod strategy;
mod worker;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

pub use error::FleetError;
pub use worker::Plan;

use crate::config::options::TriageOptions;
use crate::event::{Event, EventBus, EventSink, Snapshot, StopReason};
use crate::sys::process::raise_open_files;
use crate::sys::stop::Stop;
use crate::triage::Follower;
use worker::{End, Heard, Message, Worker};

/// Between two looks at processes and signals when nothing is heard.
const LOOK: Duration = Duration::from_millis(50);
/// Between two states for people.
const TICK: Duration = Duration::from_millis(200);
/// Messages under way; more than all workers send between two looks.
const INBOX: usize = 4096;
/// Taken in a row before signals are looked at again.
const IN_A_ROW: usize = 1000;
/// Warnings remembered.
const MOST_TOLD: usize = 1000;
/// Open files of the fleet itself, its start-up included, and of each worker's two pipes.
const FILES: u64 = 64;
const FILES_A_WORKER: u64 = 2;
/// For a worker's last run and its files. What has not ended then is killed.
const FAREWELL: Duration = Duration::from_secs(15);

/// What is to be done, as [`run`] needs to know it. The rest is in the workers' words.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The main first.
    pub workers: Vec<Plan>,
    /// `-V`.
    pub time: Option<Duration>,
    /// `AFL_BENCH_UNTIL_CRASH`: the first to end ends all.
    pub until_crash: bool,
    pub command_line: String,
    pub triage: Option<TriageOptions>,
}

/// Runs all workers until the last has ended, or something says stop.
///
/// Has to be called by a thread that lives as long as the process: the kernel ends the workers with
/// the thread that has started them.
pub fn run(orders: Orders, sinks: Vec<Box<dyn EventSink>>) -> Result<StopReason, FleetError> {
    let stop = Stop::on_signals().map_err(FleetError::Signals)?;
    let mut bus = EventBus::default();
    for sink in sinks {
        bus.add(sink);
    }
    raise_open_files(FILES + FILES_A_WORKER * orders.workers.len() as u64);
    let (sender, inbox) = sync_channel(INBOX);
    let mut fleet = Fleet {
        workers: orders.workers.into_iter().map(Worker::new).collect(),
        time: orders.time,
        until_crash: orders.until_crash,
        command_line: orders.command_line,
        triage: orders.triage.map(Follower::new),
        stop,
        bus,
        sender,
        inbox,
        target_works: false,
        fuzzing_since: None,
        last_reason: StopReason::Done,
        last_tick: Instant::now(),
        told: HashMap::new(),
    };
    let result = fleet.watch();
    fleet.end(result)
}

/// Whether nobody else has said it.
fn first_by(told: &mut HashMap<String, usize>, message: &str, number: usize) -> bool {
    if told.len() >= MOST_TOLD {
        told.clear();
    }
    *told.entry(message.to_owned()).or_insert(number) == number
}

struct Fleet {
    workers: Vec<Worker>,
    time: Option<Duration>,
    until_crash: bool,
    command_line: String,
    triage: Option<Follower>,
    stop: Stop,
    bus: EventBus,
    sender: SyncSender<Message>,
    inbox: Receiver<Message>,
    /// The main was heard, so the target has started: time for the others.
    target_works: bool,
    fuzzing_since: Option<Instant>,
    /// Of the worker that ended last.
    last_reason: StopReason,
    last_tick: Instant,
    /// Warnings, and who gave them first: one is enough, all workers have the same target.
    told: HashMap<String, usize>,
}

impl Fleet {
    fn watch(&mut self) -> Result<StopReason, FleetError> {
        loop {
            self.start_due()?;
            self.hear();
            for number in 0..self.workers.len() {
                self.look_after(number)?;
            }
            if let Some(reason) = self.stop_reason() {
                return Ok(reason);
            }
            if self.stop.skip() {
                self.signal(libc::SIGUSR1);
            }
            self.tick_if_due();
        }
    }

    /// The others follow when the main has shown that the target can be started, so that a fault
    /// is told once.
    fn start_due(&mut self) -> Result<(), FleetError> {
        let count = if self.target_works { self.workers.len() } else { 1 };
        for (number, worker) in self.workers.iter_mut().enumerate().take(count) {
            if worker.is_due() {
                worker.start(number, &self.sender)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self) {
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

    fn take(&mut self, (number, process, heard): Message) {
        let worker = &mut self.workers[number];
        if !worker.note(process, &heard) {
            return;
        }
        match heard {
            Heard::Event(event) => {
                self.target_works = true;
                let is_news = match &*event {
                    Event::Warning { message } => first_by(&mut self.told, message, number),
                    _ => true,
                };
                if is_news {
                    self.bus.send_of(&worker.plan.name, &event);
                }
                self.look_at_crashes(&event);
                if matches!(*event, Event::Started) && self.fuzzing_since.is_none() {
                    self.fuzzing_since = Some(Instant::now());
                    self.bus.send(&Event::Started);
                }
            }
            Heard::Words(line) if worker::is_own_message(&line) || line.is_empty() => {}
            Heard::Words(message) => {
                self.bus.send_of(&worker.plan.name, &Event::Warning { message });
            }
            Heard::Closed => {}
        }
    }

    /// The first of them, or one of an earlier campaign, starts the triage.
    fn look_at_crashes(&mut self, event: &Event) {
        let Some(triage) = &mut self.triage else { return };
        match event {
            Event::Tick(state) => triage.start_for(state.saved_crashes, state.saved_hangs),
            Event::CrashSaved { .. } => triage.start_for(1, 0),
            Event::HangSaved { .. } => triage.start_for(0, 1),
            _ => {}
        }
        if let Some(message) = triage.take_note() {
            self.bus.send(&Event::Warning { message });
        }
    }

    /// Starts it again if it has died, unless there is no hope.
    fn look_after(&mut self, number: usize) -> Result<(), FleetError> {
        let worker = &mut self.workers[number];
        let how = match worker.end() {
            None => return Ok(()),
            Some(End::Stopped(reason)) => {
                self.last_reason = reason;
                return Ok(());
            }
            Some(End::Died(how)) => how,
        };
        let name = worker.plan.name.clone();
        let words = worker.last_words();
        // What keeps the first from fuzzing would keep all, and is told as a single fuzzer tells it.
        if let (None, Some((cause, remedy))) = (self.fuzzing_since, &words) {
            let cause = if number == 0 { cause.clone() } else { format!("{name}: {cause}") };
            return Err(FleetError::Worker { cause, remedy: remedy.clone() });
        }
        if worker.is_hopeless() {
            let (cause, remedy) = words.unwrap_or_else(|| (how, format!("see -S {name} alone")));
            let cause = format!("{name} cannot start any more: {cause}");
            return Err(FleetError::Worker { cause, remedy });
        }
        let pause = worker.start_later().as_secs();
        let cause = words.map_or_else(String::new, |(cause, _)| format!(" ({cause})"));
        let message = format!("{how}{cause}; starts again in {pause} s");
        self.bus.send_of(&name, &Event::Warning { message });
        Ok(())
    }

    fn stop_reason(&self) -> Option<StopReason> {
        if self.stop.asked() {
            return Some(StopReason::User);
        }
        let fuzzing = self.fuzzing_since.map_or(Duration::ZERO, |since| since.elapsed());
        if self.time.is_some_and(|limit| fuzzing >= limit) {
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

    /// Asks all workers to end and waits for them; tells the last state of all.
    fn end(mut self, result: Result<StopReason, FleetError>) -> Result<StopReason, FleetError> {
        self.signal(libc::SIGINT);
        let deadline = Instant::now() + FAREWELL;
        while self.workers.iter().any(Worker::is_running) && Instant::now() < deadline {
            self.hear();
            for worker in &mut self.workers {
                worker.end();
            }
        }
        for worker in self.workers.iter().filter(|worker| worker.is_running()) {
            let seconds = FAREWELL.as_secs();
            let message = format!("did not end within {seconds} s and was killed");
            self.bus.send_of(&worker.plan.name, &Event::Warning { message });
        }
        let reason = *result.as_ref().unwrap_or(&StopReason::Failed);
        if let Some(triage) = &mut self.triage {
            triage.finish(reason.patience());
        }
        // A fleet that never fuzzed has nothing to show but its error.
        if self.fuzzing_since.is_some() || result.is_ok() {
            let snapshot = Box::new(self.snapshot());
            self.bus.send(&Event::Stopped { reason, snapshot });
        }
        result
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
        let mut all = join::join(&known);
        all.workers = self.workers.iter().map(Worker::status).collect();
        all.execs_per_sec = all.workers.iter().map(|worker| worker.execs_per_sec).sum();
        all.pid = std::process::id();
        all.instance = format!("{} workers", self.workers.len());
        all.command_line.clone_from(&self.command_line);
        all.bugs = self.triage.as_mut().and_then(Follower::bugs);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let argv = vec!["/nonexistent".into()];
        let plan = Plan { name: "main".into(), argv, env: Vec::new(), tmpdir: None };
        let (time, command_line) = (None, String::new());
        let (until_crash, triage) = (false, None);
        let orders = Orders { workers: vec![plan], time, until_crash, command_line, triage };
        let error = run(orders, Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot start the worker main: "), "{error}");
        assert!(error.remedy().contains("-j"));
    }
}
