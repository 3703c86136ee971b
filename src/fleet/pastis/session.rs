//! One target being fuzzed by an ordinary `ffuzz -j N --control SOCKET`: supervision, inputs and events.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::ClientEvent;
use super::control_client::ControlClient;
use super::error::Refusal;
use super::exports::{ExportQueue, KnownInputs, digest};
use super::imports::{BrokerInput, ImportCount, ImportQueue};
use super::link::Reservation;
use super::messages::SeedKind;
use super::order::StartOrder;
use super::package;
use crate::workers::strategy;
use crate::workers::worker::{FleetMessage, Worker, WorkerEnd, WorkerPlan};
use ffuzz_disk::output;
use ffuzz_event::{Snapshot, StopReason};
use ffuzz_sys::remedy::Remedy;

/// Time without an event after a Stop until a fuzzer is killed. It exceeds the fuzzer's own limit for its final
/// triage (`StopReason::patience`, and 2 s until that is gone), with room for an overloaded machine: a killed
/// fuzzer leaves no last statistics. Usually it ends within a second.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Maximum time after a Stop for a fuzzer that still sends events.
const LONGEST_STOP_GRACE: Duration = Duration::from_secs(20);
/// Time limit for reading the socket of a fuzzer that has ended. The connection ends with the process, so this
/// limit is never reached.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Capacity of the queue for the output of the fuzzer's pipes.
const INBOX: usize = 4096;
/// Maximum number of inputs written to the seed folder. Others are injected into the running fuzzer.
const MOST_SEEDS: usize = 10;
/// The control socket, relative to the working folder, because socket paths must be short.
const SOCKET: &str = "../control";
/// Seed if the broker has none. It may crash the target; the next start then uses the inputs that have arrived.
const DEFAULT_SEED: &[u8] = b"0";

/// State of the session.
#[derive(Debug)]
pub(super) enum SessionState {
    Running,
    /// The fuzzer died and will be restarted.
    Died(String),
    Ended(StopReason),
}

#[derive(Debug)]
pub(super) struct BrokerSession {
    pub(super) order: StartOrder,
    pub(super) imports: Arc<ImportQueue>,
    pub(super) known: KnownInputs,
    pub(super) exports: ExportQueue,
    worker: Worker,
    /// Channel for the output of its pipes.
    sender: SyncSender<FleetMessage>,
    inbox: Receiver<FleetMessage>,
    control: Option<ControlClient>,
    stopping: Option<Instant>,
    /// Kind and time of the fuzzer's end; its last answers may still arrive.
    ended: Option<(WorkerEnd, Instant)>,
    /// Number of inputs from the broker, and of those already known.
    received: u64,
    known_already: u64,
    /// Number of the broker's inputs that were run at the last report.
    pub(super) reported_run: u64,
}

impl BrokerSession {
    /// Prepares a session without starting it. `plan` makes a command line from the order, the folder of seeds
    /// and the socket.
    pub(super) fn new(
        order: StartOrder,
        plan: impl FnOnce(&StartOrder, &Path, &Path) -> Result<WorkerPlan, String>,
    ) -> Result<Self, Refusal> {
        let seeds = order.folder.join("seeds");
        let plan = plan(&order, &seeds, SOCKET.as_ref()).map_err(Refusal::Arguments)?;
        let (sender, inbox) = sync_channel(INBOX);
        Ok(Self {
            imports: Arc::default(),
            known: KnownInputs::default(),
            exports: ExportQueue::new(order.output()),
            worker: Worker::new(plan),
            sender,
            inbox,
            control: None,
            stopping: None,
            ended: None,
            received: 0,
            known_already: 0,
            reported_run: 0,
            order,
        })
    }

    /// Passes each input of the broker to the fuzzer once.
    pub(super) fn receive(&mut self, kind: SeedKind, bytes: Vec<u8>, held: Reservation) {
        self.received += 1;
        if self.known.receive(&bytes, kind) {
            self.imports.add(BrokerInput::new(kind, bytes, Some(held)));
        } else {
            self.known_already += 1;
        }
    }

    /// Starts the fuzzer if it is due, and reads its events. Must be called by a thread that lives as long as
    /// the process. A new connection to the fuzzer gets the next number of `control_clients`.
    pub(super) fn supervise(
        &mut self,
        control_clients: &mut u32,
        events: &Sender<ClientEvent>,
    ) -> SessionState {
        if self.worker.is_due()
            && self.stopping.is_none()
            && let Err(cause) = self.start()
        {
            return SessionState::Died(self.start_later(&cause));
        }
        while let Ok(message) = self.inbox.try_recv() {
            if let FleetMessage::Worker(_, process, output) = message {
                self.worker.note(process, &output);
            }
        }
        if self.control.is_none() && self.worker.is_running() {
            // Fails until the fuzzer has opened the socket.
            if let Ok(open) = ControlClient::open(
                SOCKET.as_ref(),
                *control_clients + 1,
                &self.imports,
                events.clone(),
            ) {
                *control_clients += 1;
                self.control = Some(open);
            }
        }
        let silent = |since: Instant| since.max(self.worker.last_event_at()).elapsed() > STOP_GRACE;
        let late = |since: Instant| silent(since) || since.elapsed() > LONGEST_STOP_GRACE;
        if self.stopping.is_some_and(late) {
            self.worker.signal(libc::SIGKILL);
        }
        self.end()
    }

    fn start(&mut self) -> Result<(), String> {
        self.write_seeds().map_err(|refusal| refusal.to_string())?;
        // Relative names refer to files next to the target, and to the socket.
        std::env::set_current_dir(self.order.folder.join("package")).map_err(|e| e.to_string())?;
        self.worker.start(0, &self.sender).map_err(|error| format!("{error} ({})", error.remedy()))
    }

    /// Schedules the restart, and describes it.
    fn start_later(&mut self, cause: &str) -> String {
        format!("{cause}; it starts again in {} s", self.worker.start_later().as_secs())
    }

    /// Writes seeds from the inputs so far, unless the fuzzer resumes its campaign. A fuzzer whose seeds all
    /// failed gets more of them.
    fn write_seeds(&self) -> Result<(), Refusal> {
        let folder = self.order.folder.join("seeds");
        package::make_folder(&folder)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|source| {
                // A partial file is no input.
                let _ = fs::remove_file(&path);
                Refusal::Write { path, source }
            })
        };
        write("default", DEFAULT_SEED)?;
        let works = output::holds_work(&self.order.output(), &strategy::name(0));
        if works && !self.worker.has_failed_to_start() {
            return Ok(());
        }
        // Seeds of an earlier failed start are still there.
        self.imports.move_seeds(MOST_SEEDS, |bytes| write(&seed_name(bytes), bytes))
    }

    fn end(&mut self) -> SessionState {
        let stopped = self.stopping.is_some();
        if let Some(end) = self.worker.end() {
            self.ended = Some((end, Instant::now()));
        }
        // Answers are read up to the end of the connection, because they count.
        let late = |(_, at): &(WorkerEnd, Instant)| at.elapsed() < LAST_ANSWERS;
        if self.control.is_some() && self.ended.as_ref().is_some_and(late) {
            return SessionState::Running;
        }
        let how = match self.ended.take().map(|(end, _)| end) {
            None if stopped && !self.worker.is_running() => {
                return SessionState::Ended(StopReason::User);
            }
            None => return SessionState::Running,
            Some(WorkerEnd::Stopped(reason)) => return SessionState::Ended(reason),
            Some(WorkerEnd::Died(_)) if stopped => return SessionState::Ended(StopReason::User),
            Some(WorkerEnd::Died(how)) => how,
        };
        self.control = None;
        let error = self.worker.last_error().map(|(cause, remedy)| format!("{cause} ({remedy})"));
        SessionState::Died(self.start_later(&error.unwrap_or(how)))
    }

    /// Asks the fuzzer to stop.
    pub(super) fn stop(&mut self) {
        self.stopping.get_or_insert_with(Instant::now);
        self.worker.signal(libc::SIGINT);
    }

    /// Returns true if this is the current connection to the fuzzer.
    #[must_use]
    pub(super) fn is_control_client(&self, number: u32) -> bool {
        self.control.as_ref().is_some_and(|control| control.number() == number)
    }

    /// Closes the connection, which has ended.
    pub(super) fn close_control(&mut self) {
        self.control = None;
    }

    /// Counters, once all of the broker's inputs were run, unless they were reported.
    pub(super) fn all_run(&self) -> Option<ImportCount> {
        let count = self.imports.count();
        (count.open == 0 && count.run > self.reported_run).then_some(count)
    }

    /// Describes the outcome of the broker's inputs, counted at each step.
    pub(super) fn account(&self) -> String {
        let ImportCount { run, seeds, injected, answered, refused, open } = self.imports.count();
        let (received, known) = (self.received, self.known_already);
        format!(
            "inputs of the broker: {run} run, {refused} dropped, {open} not run ({received} \
             received, {known} known already, {seeds} as seeds, {injected} injected, {answered} answered)"
        )
    }

    /// The last statistics.
    #[must_use]
    pub(super) fn numbers(&self) -> Option<&Snapshot> {
        self.worker.snapshot()
    }

    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

/// Name by content, so that no input replaces another one.
fn seed_name(bytes: &[u8]) -> String {
    digest(bytes).iter().fold("broker-".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_named_by_their_content() {
        assert_eq!(seed_name(b"abc"), "broker-a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
