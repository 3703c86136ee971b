//! The control socket: who connects hands inputs in, hears of finds, and pauses or stops the
//! campaign.
//!
//! [`protocol`] is what is said. A [`Control`] reads commands in threads of its own and hands them on
//! as [`Order`]s; answers come back as events, through the sink.

mod mailbox;
pub mod protocol;
mod server;
mod socket;

use std::io;
use std::sync::Arc;

pub use protocol::{Command, Hello, Setting};
pub use socket::{ControlError, Socket};

use crate::config::options::ControlPlace;
use crate::event::{Event, EventSink, Outcome, Reply, Snapshot};

/// The remedy if [`Control::serve`] fails.
pub const NO_THREAD: &str = "allow this user more processes and open files: ulimit -u, ulimit -n";

/// Something that a client wants.
#[derive(Clone, Debug)]
pub struct Order {
    /// The connection; 0 is standard input.
    pub client: u64,
    /// The client's number for it.
    pub id: Option<u64>,
    /// What is wrong with a line that is no command.
    pub command: Result<Command, String>,
}

/// What a command brought, beside `ok`.
#[derive(Debug)]
pub enum Answer {
    Done,
    Judged(Outcome),
    Stats(Box<Snapshot>),
}

impl Order {
    /// The campaign is to end. Whoever delivers this asks for it at once, whatever waits before it.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        self.command == Ok(Command::Stop)
    }

    /// The event that answers it.
    #[must_use]
    pub fn answer(&self, answer: Result<Answer, String>) -> Event {
        let mut reply = Reply { client: self.client, id: self.id, ..Reply::default() };
        reply.ok = answer.is_ok();
        match answer {
            Ok(Answer::Done) => {}
            Ok(Answer::Judged(outcome)) => reply.outcome = Some(outcome),
            Ok(Answer::Stats(snapshot)) => reply.stats = Some(snapshot),
            Err(error) => reply.error = Some(error),
        }
        Event::Reply(reply)
    }
}

/// Takes an order; false if nobody wants more. May wait until there is room.
pub type Deliver = Arc<dyn Fn(Order) -> bool + Send + Sync>;

/// Where commands come from. Made before the campaign, so that a path that cannot be used is told at
/// once.
#[derive(Debug)]
pub enum Control {
    Socket(Socket, Hello),
    /// Commands on standard input; the answers are among the events of `--json`.
    Stdin,
}

impl Control {
    pub fn open(place: &ControlPlace, hello: Hello) -> Result<Self, ControlError> {
        Ok(match place {
            ControlPlace::Path(path) => Self::Socket(Socket::bind(path)?, hello),
            ControlPlace::Stdin => Self::Stdin,
        })
    }

    /// Begins to listen. The sink, if there is one, tells clients of events.
    pub fn serve(self, deliver: Deliver) -> io::Result<Option<Box<dyn EventSink>>> {
        match self {
            Self::Socket(socket, hello) => {
                let sink = server::Sink::serve(socket, hello, deliver)?;
                Ok(Some(Box::new(sink)))
            }
            Self::Stdin => {
                let thread = std::thread::Builder::new().name("control".into());
                thread.spawn(move || server::listen(io::stdin(), 0, &deliver, |_| true))?;
                Ok(None)
            }
        }
    }
}
