//! A PASTIS engine: waits for a broker's Start, fuzzes its target, exchanges inputs, and ends with Stop.
//!
//! The fuzzer is a separate process, and this process is a client of its control socket, so network problems never
//! affect fuzzing. One loop owns all state; the threads that read and write the network and the socket only pass
//! messages on.
//!
//! ```text
//! broker ══ link (reader, writer) ─ BrokerEvent ─► Client ── Order ─► Session: package unpacked, ffuzz -j N --control
//!    ▲                                         │                               kept running (workers::Worker)
//!    │                                         │  seeds ─► ImportQueue ─► ControlClient ─► inject
//!    │                                         │  finds ◄─ ControlClient ◄─ FuzzerEvent
//!    └── outbox (bounded; newest numbers win) ◄┴── ExportQueue (the output folder holds it), Machine, AlertWatcher
//! ```
//!
//! The outbox belongs to one connection and is emptied with it. `KnownInputs` records by content what the broker sent
//! or received over this connection, so nothing goes back or twice. After a new connection the folders are read
//! again, and what the broker lacks is sent. `ImportQueue` keeps each input until the fuzzer has answered. Each step
//! counts (`event::Injected`, `imports::ImportCount`), and tests compare the counts.

pub mod alerts;
mod connection;
mod control_client;
pub mod engines;
mod error;
mod exports;
mod imports;
mod link;
pub mod messages;
mod order;
mod package;
mod session;
mod zmtp;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

pub use error::{PastisError, Refusal};
pub use messages::Level;
pub use order::StartOrder;

use crate::control::LONGEST_INPUT;
use crate::workers::WorkerPlan;
use alerts::AlertWatcher;
use connection::Connection;
use control_client::{FuzzerEvent, OWN};
use engines::MachineLoad;
use error::shortened;
use ffuzz_event::StopReason;
use ffuzz_sys::remedy::Remedy;
use ffuzz_sys::stop::Stop;
use ffuzz_sys::strays::Adopted;
use imports::ImportCount;
use link::{BrokerEvent, BrokerLink};
use messages::{Log, Message, SeedKind, SeedMessage, StartMessage};
use session::{BrokerSession, SessionState};

/// Interval between two checks of processes and signals while no message arrives.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum number of messages handled before processes and signals are checked again.
const IN_A_ROW: usize = 10_000;
/// Interval between two messages with statistics.
const NUMBERS: Duration = Duration::from_secs(5);
/// Time limit for sending the last messages.
const FLUSH: Duration = Duration::from_secs(1);
/// Maximum number of recorded warnings.
const MOST_REPORTED: usize = 1000;
/// Maximum number of letters of a log line.
const LONGEST_LOG: usize = 2000;

/// Options of the client.
pub struct PastisOptions {
    /// `HOST:PORT` of the broker.
    pub address: String,
    /// Folder for all targets.
    pub root: PathBuf,
    /// Makes the fuzzer's command line from an order, a folder of seeds and the control socket.
    pub plan: Plans,
    /// Prints a message for the user.
    pub say: LogFn,
}

type LogFn = Box<dyn Fn(Level, &str)>;
type Plans = Box<dyn Fn(&StartOrder, &Path, &Path) -> Result<WorkerPlan, String>>;

/// An event from a thread.
#[derive(Debug)]
enum ClientEvent {
    Broker(BrokerEvent),
    /// An event of the fuzzer, with the number of the connection.
    Fuzzer(u32, FuzzerEvent),
}

impl From<BrokerEvent> for ClientEvent {
    fn from(news: BrokerEvent) -> Self {
        Self::Broker(news)
    }
}

/// Runs until a signal requests the end.
///
/// Must be called by a thread that lives as long as the process.
pub fn run(options: PastisOptions) -> Result<(), PastisError> {
    let stop = Stop::on_signals().map_err(PastisError::Signals)?;
    let failed = |source| PastisError::Folder { path: options.root.clone(), source };
    std::fs::create_dir_all(&options.root).map_err(failed)?;
    let (sender, inbox) = channel();
    let link = BrokerLink::start(options.address.clone(), hello(None), sender.clone());
    let link = link.map_err(failed)?;
    let mut client = PastisClient {
        options,
        link,
        sender,
        inbox,
        session: None,
        ending: Vec::new(),
        watcher: None,
        connection: None,
        was_down: false,
        offers_one: false,
        control_clients: 0,
        machine: MachineLoad::default(),
        next_numbers: Instant::now(),
        adopted: Adopted::default(),
        reported: HashSet::new(),
    };
    while !stop.asked() {
        client.receive_event();
        client.tick();
    }
    client.end_session();
    while !client.ending.is_empty() {
        client.receive_event();
        client.tick();
    }
    client.link.flush(FLUSH);
    Ok(())
}

struct PastisClient {
    options: PastisOptions,
    link: BrokerLink,
    sender: Sender<ClientEvent>,
    inbox: Receiver<ClientEvent>,
    session: Option<BrokerSession>,
    /// Sessions that were asked to stop.
    ending: Vec<BrokerSession>,
    /// Searches the finds for alerts.
    watcher: Option<AlertWatcher>,
    connection: Option<Connection>,
    /// True if the missing broker was reported.
    was_down: bool,
    /// True if the next connection begins with a Hello for the current engine only.
    offers_one: bool,
    /// Number of connections to fuzzers so far.
    control_clients: u32,
    machine: MachineLoad,
    next_numbers: Instant,
    adopted: Adopted,
    reported: HashSet<String>,
}

impl PastisClient {
    fn receive_event(&mut self) {
        let Ok(first) = self.inbox.recv_timeout(LOOK) else { return };
        self.take(first);
        // Every message taken from the channel is handled, so the limit is checked first.
        for _ in 1..IN_A_ROW {
            let Ok(next) = self.inbox.try_recv() else { return };
            self.take(next);
        }
    }

    fn take(&mut self, incoming: ClientEvent) {
        match incoming {
            ClientEvent::Broker(news) => self.receive_from_broker(news),
            ClientEvent::Fuzzer(client, said) => self.receive_from_fuzzer(client, said),
        }
    }

    fn receive_from_broker(&mut self, news: BrokerEvent) {
        match news {
            BrokerEvent::Up => {
                self.connection = Some(Connection::new());
                self.was_down = false;
                (self.options.say)(Level::Info, &format!("connected to {}", self.options.address));
                if let Some(session) = &mut self.session {
                    session.known.begin_connection();
                    session.exports.begin_connection();
                }
            }
            BrokerEvent::Down(reason) => {
                self.connection = None;
                if !std::mem::replace(&mut self.was_down, true) {
                    let address = &self.options.address;
                    let text =
                        format!("no connection to {address} ({reason}); the client tries again");
                    (self.options.say)(Level::Warning, &text);
                }
            }
            BrokerEvent::Message(None, _) => {
                self.log_once(Level::Warning, "the broker sent an invalid message")
            }
            BrokerEvent::Message(Some(Message::Start(start)), _) => self.start(&start),
            BrokerEvent::Message(Some(Message::Stop(_)), _) => {
                self.log(Level::Info, "stopped by the broker");
                self.end_session();
            }
            BrokerEvent::Message(Some(Message::Seed(seed)), held) => self.receive(seed, held),
            BrokerEvent::Message(Some(_), _) => {
                self.log_once(Level::Warning, "the broker sent a message that is meant for brokers")
            }
        }
    }

    fn start(&mut self, start: &StartMessage) {
        if let Some(connection) = &mut self.connection {
            connection.start();
        }
        let at_work = self.session.as_ref().map_or("", |session| &session.order.name);
        let order = match StartOrder::read(start, &self.options.root, at_work) {
            Ok(Some(order)) => order,
            Ok(None) => {
                let text =
                    format!("{} is being fuzzed already: the campaign continues", start.file_name);
                return self.log(Level::Info, &text);
            }
            Err(refusal) => return self.refuse(&start.file_name, &refusal),
        };
        self.end_session();
        for (level, note) in order.notes.clone() {
            self.log(level, &note);
        }
        let folder = order.folder.display().to_string();
        match BrokerSession::new(order, &self.options.plan) {
            Ok(session) => {
                let order = &session.order;
                self.watcher = order.report.clone().map(|_| AlertWatcher::start(order, &self.link));
                self.session = Some(session);
                self.offer();
                self.log(Level::Info, &format!("fuzzing {} in {folder}", start.file_name));
            }
            Err(refusal) => self.refuse(&start.file_name, &refusal),
        }
    }

    fn refuse(&mut self, name: &str, refusal: &Refusal) {
        let name = shortened(name);
        self.log(Level::Error, &format!("cannot fuzz {name}: {refusal} ({})", refusal.remedy()));
    }

    /// Passes each input of the broker to the fuzzer once.
    fn receive(&mut self, SeedMessage { bytes, kind }: SeedMessage, held: link::Reservation) {
        if let Some(connection) = &mut self.connection {
            connection.receive();
        }
        let Ok(kind) = SeedKind::try_from(kind) else {
            return self.log_once(Level::Warning, "the broker sent an input of an unknown kind");
        };
        match bytes.len() {
            0 => return self.log_once(Level::Warning, "the broker sent an empty input"),
            length if length > LONGEST_INPUT => {
                let text = "the broker sent an input above 1 MiB, the most that a run gets";
                return self.log_once(Level::Warning, text);
            }
            _ => {}
        }
        if let Some(session) = &mut self.session {
            session.receive(kind, bytes, held);
        }
    }

    fn receive_from_fuzzer(&mut self, client: u32, said: FuzzerEvent) {
        let sessions = self.session.iter_mut().chain(&mut self.ending);
        let Some(session) = sessions.into_iter().find(|session| session.is_control_client(client))
        else {
            return;
        };
        let (kind, path, origin) = match said {
            FuzzerEvent::Seed { path, origin } => (SeedKind::Input, path, origin),
            FuzzerEvent::Crash { path, origin } => (SeedKind::Crash, path, origin),
            FuzzerEvent::Hang { path, origin } => (SeedKind::Hang, path, origin),
            FuzzerEvent::Warning { message } => return self.log_once(Level::Warning, &message),
            FuzzerEvent::Gone => return session.close_control(),
            FuzzerEvent::Started | FuzzerEvent::Reply { .. } | FuzzerEvent::Other => return,
        };
        if origin == OWN {
            session.exports.add(kind, path);
        }
    }

    fn tick(&mut self) {
        self.warn_without_start();
        self.publish();
        self.check_ending_sessions();
        if self.ending.is_empty() {
            self.check_session();
        }
        if Instant::now() >= self.next_numbers {
            self.send_numbers();
        }
        self.adopted.reap_if_due();
    }

    /// Sets the Hello of the next connection. A restarted broker has no record of its clients' engines: a client with
    /// a target offers only its current engine, because otherwise all clients would be assigned other targets.
    fn offer(&mut self) {
        let engine = self.session.as_ref().map(|session| session.order.engine.as_str());
        self.link.greet_with(hello(engine));
        self.offers_one = engine.is_some();
    }

    fn warn_without_start(&mut self) {
        if !self.connection.as_mut().is_some_and(Connection::takes_warning) {
            return;
        }
        if std::mem::replace(&mut self.offers_one, false) {
            self.log(
                Level::Info,
                "the broker has no target for the current engine: offering all engines",
            );
            self.link.greet_with(hello(None));
            self.link.flush(FLUSH);
            self.link.hang_up();
        } else {
            let text = format!(
                "no Start after {} s: does the broker have a target built by ffuzz-cc in its bins folder, and \
                 the Python package pastis-ffuzz {}?",
                connection::NO_START.as_secs(),
                engines::VERSION
            );
            self.log(Level::Warning, &text);
        }
    }

    /// Sends own finds that the broker lacks.
    fn publish(&mut self) {
        let settled = self.connection.as_ref().is_some_and(Connection::is_settled);
        let Some(session) = self.session.as_mut().filter(|_| settled) else { return };
        publish(&self.link, session, self.watcher.as_ref());
    }

    fn check_session(&mut self) {
        let Some(session) = &mut self.session else { return };
        match session.supervise(&mut self.control_clients, &self.sender) {
            SessionState::Running => self.log_imports_run(),
            SessionState::Died(how) => {
                let text = format!("the fuzzer of {} ended: {how}", session.order.name);
                self.log_once(Level::Error, &text);
            }
            SessionState::Ended(reason) => {
                if let Some(session) = self.session.take() {
                    self.offer();
                    self.report_end(session, reason);
                }
            }
        }
    }

    fn log_imports_run(&mut self) {
        let quiet = self.connection.as_ref().is_some_and(Connection::is_quiet);
        let Some(session) = self.session.as_mut().filter(|_| quiet) else { return };
        let Some(ImportCount { run, refused, .. }) = session.all_run() else { return };
        let message = format!("{run} inputs of the broker were run, {refused} dropped");
        // If there is no room, it is sent later.
        if self
            .link
            .send(Message::Log(Log { message: message.clone(), level: Level::Debug as i32 }))
        {
            (self.options.say)(Level::Debug, &message);
            session.reported_run = run;
        }
    }

    fn check_ending_sessions(&mut self) {
        for mut session in std::mem::take(&mut self.ending) {
            match session.supervise(&mut self.control_clients, &self.sender) {
                SessionState::Ended(reason) => self.report_end(session, reason),
                _ => self.ending.push(session),
            }
        }
    }

    /// Sends the last finds and statistics of a fuzzer that has ended.
    fn report_end(&mut self, mut session: BrokerSession, reason: StopReason) {
        session.exports.look_again();
        publish(&self.link, &mut session, None);
        self.link.send_numbers(self.machine.telemetry(session.numbers(), false));
        let text = format!("{} ended ({reason:?}); {}", session.order.name, session.account());
        self.log(Level::Info, &text);
    }

    /// Ends the current session, if there is one.
    fn end_session(&mut self) {
        self.publish();
        self.watcher = None;
        if let Some(mut session) = self.session.take() {
            session.stop();
            self.ending.push(session);
            self.offer();
        }
    }

    fn send_numbers(&mut self) {
        self.next_numbers = Instant::now() + NUMBERS;
        let session = self.session.as_ref();
        let running = session.is_some_and(BrokerSession::is_running);
        let numbers = self.machine.telemetry(session.and_then(BrokerSession::numbers), running);
        self.link.send_numbers(numbers);
    }

    /// Logs a message for the user and the broker.
    fn log(&self, level: Level, text: &str) {
        let message = printable(text);
        (self.options.say)(level, &message);
        self.link.send(Message::Log(Log { message, level: level as i32 }));
    }

    /// Logs a message that may repeat, once.
    fn log_once(&mut self, level: Level, text: &str) {
        if self.reported.len() >= MOST_REPORTED {
            self.reported.clear();
        }
        if self.reported.insert(text.to_owned()) {
            self.log(level, text);
        }
    }
}

fn hello(only: Option<&str>) -> Vec<u8> {
    Message::Hello(engines::hello(only)).to_bytes()
}

/// Removes control characters, because parts of the text may come from the network.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_LOG).collect()
}

fn publish(link: &BrokerLink, session: &mut BrokerSession, watcher: Option<&AlertWatcher>) {
    while let Some((kind, path, bytes)) = session.exports.next(&session.known) {
        let message = Message::Seed(SeedMessage { bytes: bytes.clone(), kind: kind as i32 });
        if !link.send(message) {
            return session.exports.requeue(kind, path);
        }
        session.known.sent(&bytes, kind);
        session.exports.sent();
        if let Some(watcher) = watcher {
            watcher.look(bytes);
        }
    }
}
