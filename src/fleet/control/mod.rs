//! The control socket: clients inject inputs, receive finds, and pause or stop the
//! campaign.
//!
//! `commands` and `events` are the protocol. A [`CommandSource`] reads commands in separate threads and
//! passes them on as [`Order`]s; answers return as events through the sink.

mod client;
mod commands;
mod events;
mod mailbox;
mod questions;
mod refused;
mod server;
mod socket;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde::Serialize;

pub use client::SocketClient;
pub use commands::{Command, LONGEST_INPUT, Preference, Setting};
pub use events::Hello;
pub use questions::Questions;
pub use socket::{ControlError, Socket};

use ffuzz_config::options::ControlPlace;
use ffuzz_event::{BlockedComparison, Event, EventSink, InjectionOutcome, Reply, Snapshot};
use ffuzz_sys::stdio;

/// Hint if [`CommandSource::serve`] fails.
pub const NO_THREAD: &str = "allow this user more processes and open files: ulimit -u, ulimit -n";

/// A request from a client.
#[derive(Clone, Debug)]
pub struct Order {
    /// Number of the connection; 0 is standard input.
    pub client: u64,
    /// Number that the client gave the command.
    pub id: Option<u64>,
    /// The command, or the error of a line that is none.
    pub command: Result<Command, String>,
}

/// A message from a client.
#[derive(Clone, Debug)]
pub enum Incoming {
    Order(Order),
    /// A client's error, for the fuzzer's log.
    Refused(String),
}

impl Incoming {
    /// Returns true for a command that ends the campaign. It takes effect immediately, before all
    /// queued commands.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Order(order) if order.is_stop())
    }

    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Order(order) if order.is_input())
    }
}

impl From<Order> for Incoming {
    fn from(order: Order) -> Self {
        Self::Order(order)
    }
}

/// Result of a command, in addition to `ok`.
#[derive(Debug)]
pub enum Answer {
    Done,
    Judged(InjectionOutcome),
    Stats(Box<Snapshot>),
    Blockers(Vec<BlockedComparison>),
}

impl Order {
    #[must_use]
    pub fn is_stop(&self) -> bool {
        self.command == Ok(Command::Stop)
    }

    /// Returns true if the command contains an input to run.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self.command, Ok(Command::Inject(_)))
    }

    /// The event with the answer to this order.
    #[must_use]
    pub fn answer(&self, answer: Result<Answer, String>) -> Event {
        let mut reply = Reply { client: self.client, id: self.id, ..Reply::default() };
        reply.ok = answer.is_ok();
        match answer {
            Ok(Answer::Done) => {}
            Ok(Answer::Judged(outcome)) => reply.outcome = Some(outcome),
            Ok(Answer::Stats(snapshot)) => reply.stats = Some(snapshot),
            Ok(Answer::Blockers(blockers)) => reply.blockers = Some(blockers),
            Err(error) => reply.error = Some(error),
        }
        Event::Reply(reply)
    }
}

/// Accepts a message; false if the receiver is gone. May wait for room.
pub type Deliver = Arc<dyn Fn(Incoming) -> bool + Send + Sync>;

/// Source of commands. Created before the campaign, so that an unusable path is reported
/// immediately.
#[derive(Debug)]
pub enum CommandSource {
    Socket(Socket, Hello, Arc<Questions>),
    /// Commands on standard input; the answers are among the events of `--json`.
    Stdin,
    /// Commands from another part of this program, which needs no answers.
    Inside(Receiver<Command>),
}

/// Connection number of [`CommandSource::Inside`].
const INSIDE: u64 = u64::MAX;

impl CommandSource {
    pub fn open(
        place: &ControlPlace,
        hello: Hello,
        questions: Arc<Questions>,
    ) -> Result<Self, ControlError> {
        Ok(match place {
            ControlPlace::Path(path) => Self::Socket(Socket::bind(path)?, hello, questions),
            ControlPlace::Stdin => Self::Stdin,
        })
    }

    /// Starts listening. The sink, if there is one, sends events to clients.
    pub fn serve(self, deliver: Deliver) -> io::Result<Option<Box<dyn EventSink>>> {
        match self {
            Self::Socket(socket, hello, questions) => {
                let sink = server::ClientSink::serve(socket, hello, questions, deliver)?;
                Ok(Some(Box::new(sink)))
            }
            Self::Stdin => {
                let thread = std::thread::Builder::new().name("control".into());
                let deliver = move |order: Order| deliver(order.into());
                let input = stdio::input()?;
                thread.spawn(move || server::listen(input, 0, deliver, |_| true))?;
                Ok(None)
            }
            Self::Inside(commands) => {
                let thread = std::thread::Builder::new().name("control".into());
                let order = |command| Order { client: INSIDE, id: None, command: Ok(command) };
                thread.spawn(move || {
                    commands.iter().map(order).take_while(|it| deliver(it.clone().into())).count()
                })?;
                Ok(None)
            }
        }
    }
}

/// Serializes an object as a line. Objects contain only names and numbers, so this cannot fail.
fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_default() + "\n"
}
