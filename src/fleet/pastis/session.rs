//! One target being fuzzed: an ordinary `ffuzz -j N --control SOCKET`, kept running, with its inputs and events.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::control_client::{ControlClient, FuzzerEvent};
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

/// Time without an event after a Stop until a fuzzer is killed. Above the time that it
/// gives its triage at the end (`StopReason::patience`, and 2 s until that is gone), with room for an
/// overloaded machine: one that is killed leaves no last numbers. Usually it ends within a second.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// The same for one that still sends events.
const LONGEST_STOP_GRACE: Duration = Duration::from_secs(20);
/// For what the socket of a fuzzer that has ended still holds. Its end comes with the process, so this is
/// a bound that is not reached.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Messages of the fuzzer's pipes under way.
const INBOX: usize = 4096;
/// Inputs that are written into the folder of seeds. The others are fed to the fuzzer that runs.
const MOST_SEEDS: usize = 10;
/// The control socket: from the working folder, because the kernel takes short paths only.
const SOCKET: &str = "../control";
/// Seed if the broker has none. It may crash the target: then the next start uses what has arrived by then.
const DEFAULT_SEED: &[u8] = b"0";

/// How the session is doing.
#[derive(Debug)]
pub(super) enum SessionState {
    Running,
    /// Its fuzzer died and is started again.
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
    /// Output of its pipes.
    sender: SyncSender<FleetMessage>,
    inbox: Receiver<FleetMessage>,
    control: Option<ControlClient>,
    stopping: Option<Instant>,
    /// How and when the fuzzer has ended; its last answers may still come.
    ended: Option<(WorkerEnd, Instant)>,
    /// Number of inputs that the broker has sent, and of those that were known already.
    received: u64,
    known_already: u64,
    /// Number of the broker's inputs that were run at the last report.
    pub(super) reported_run: u64,
}

impl BrokerSession {
    /// Starts nothing yet. `plan` leads from the order, the folder of seeds and the socket
    /// to a command line.
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

    /// The broker's inputs go to the fuzzer once each.
    pub(super) fn receive(&mut self, kind: SeedKind, bytes: Vec<u8>, held: Reservation) {
        self.received += 1;
        if self.known.receive(&bytes, kind) {
            self.imports.add(BrokerInput::new(kind, bytes, Some(held)));
        } else {
            self.known_already += 1;
        }
    }

    /// Starts the fuzzer if it is time, and reads its events. Must be called by a thread that lives as long
    /// as the process. A new connection to the fuzzer gets the next number of `control_clients`.
    pub(super) fn supervise(
        &mut self,
        control_clients: &mut u32,
        events: &Sender<impl From<(u32, FuzzerEvent)> + Send + 'static>,
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
            // Until the fuzzer has opened it, there is none.
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
        // Files next to the target are found by relative names, and so is the socket.
        std::env::set_current_dir(self.order.folder.join("package")).map_err(|e| e.to_string())?;
        self.worker.start(0, &self.sender).map_err(|error| format!("{error} ({})", error.remedy()))
    }

    /// It is started later.
    fn start_later(&mut self, cause: &str) -> String {
        format!("{cause}; it starts again in {} s", self.worker.start_later().as_secs())
    }

    /// What came so far, unless the fuzzer resumes its own campaign. A fuzzer that could use none of its seeds
    /// takes others from there.
    fn write_seeds(&self) -> Result<(), Refusal> {
        let folder = self.order.folder.join("seeds");
        package::make_folder(&folder)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|source| {
                // What there is of it is no input.
                let _ = fs::remove_file(&path);
                Refusal::Write { path, source }
            })
        };
        write("default", DEFAULT_SEED)?;
        let works = output::holds_work(&self.order.output(), &strategy::name(0));
        if works && !self.worker.has_failed_to_start() {
            return Ok(());
        }
        // Those of an earlier start that came to nothing are still there.
        self.imports.move_seeds(MOST_SEEDS, |bytes| write(&seed_name(bytes), bytes))
    }

    fn end(&mut self) -> SessionState {
        let stopped = self.stopping.is_some();
        if let Some(end) = self.worker.end() {
            self.ended = Some((end, Instant::now()));
        }
        // What it has answered counts, and is read up to the end of the connection.
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

    /// Requests the end of the fuzzer.
    pub(super) fn stop(&mut self) {
        self.stopping.get_or_insert_with(Instant::now);
        self.worker.signal(libc::SIGINT);
    }

    /// Whether this connection to the fuzzer is the one of now.
    #[must_use]
    pub(super) fn is_control_client(&self, number: u32) -> bool {
        self.control.as_ref().is_some_and(|control| control.number() == number)
    }

    /// The connection is gone.
    pub(super) fn close_control(&mut self) {
        self.control = None;
    }

    /// Once all that the broker has sent was run: how much that is, unless it was reported.
    pub(super) fn all_run(&self) -> Option<ImportCount> {
        let count = self.imports.count();
        (count.open == 0 && count.run > self.reported_run).then_some(count)
    }

    /// What became of the broker's inputs, counted at each step of their way.
    pub(super) fn account(&self) -> String {
        let ImportCount { run, seeds, injected, answered, refused, open } = self.imports.count();
        let (received, known) = (self.received, self.known_already);
        format!(
            "inputs of the broker: {run} run, {refused} dropped, {open} not run ({received} \
             received, {known} known already, {seeds} as seeds, {injected} injected, {answered} answered)"
        )
    }

    /// Its last numbers.
    #[must_use]
    pub(super) fn numbers(&self) -> Option<&Snapshot> {
        self.worker.snapshot()
    }

    #[must_use]
    pub(super) fn is_running(&self) -> bool {
        self.worker.is_running()
    }
}

/// By content: another input never takes its place.
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
