//! The full-screen sink: plain lines until fuzzing begins, then pages, then plain lines again.
//!
//! The sink puts events into an inbox. A separate thread prints the lines, draws the screen and reads the keys. So the
//! campaign never waits for a terminal, and keys act at once whatever the target does.

pub(crate) mod asking;
pub(crate) mod facts;
mod inbox;
mod keys;
mod shown;
mod terminal;
pub(crate) mod view;

use std::io::stdout;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::plain::Plain;
use ffuzz_config::options::Colors;
use ffuzz_event::{Event, EventSink};

pub use asking::QueryHandler;
use inbox::Inbox;
use shown::Shown;

/// A request of the user to the campaign.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wish {
    Pause,
    Resume,
    End,
}

/// Inputs of the screen besides events.
pub struct Surroundings {
    /// The folder of `-o`.
    pub root: PathBuf,
    /// Receives the output of foreign code while the screen is shown.
    pub log: Option<PathBuf>,
    /// Answers for pages that need runs of the queue.
    pub ask: QueryHandler,
    /// Carries out a [`Wish`].
    pub wish: Box<dyn Fn(Wish) + Send>,
    /// The campaign belongs to another process: it cannot be paused, and continues after the screen closes.
    pub only_watches: bool,
}

/// The full-screen sink; draws on stdout.
pub(super) struct Screen {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    /// Prints if the thread could not start or has panicked.
    lines: Plain<std::io::Stdout>,
}

impl Screen {
    pub(super) fn new(colors: Colors, surroundings: Surroundings) -> Self {
        let inbox = Arc::<Inbox>::default();
        let theirs = Arc::clone(&inbox);
        let thread = std::thread::Builder::new().name("screen".into());
        let thread = thread.spawn(move || Shown::new(theirs, colors, surroundings).run());
        Self { inbox, thread: thread.ok(), lines: Plain::new(stdout()) }
    }

    /// Waits until the thread has printed everything.
    fn close(&mut self) {
        self.inbox.close();
        // A panic has printed its message.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl EventSink for Screen {
    fn shows_blockers(&self) -> bool {
        true
    }

    fn handle(&mut self, event: &Event) {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return self.lines.handle(event);
        }
        self.inbox.put(None, event);
        if matches!(event, Event::Stopped { .. }) {
            self.close();
        }
    }

    fn handle_of(&mut self, worker: &str, event: &Event) {
        match self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            true => self.lines.handle_of(worker, event),
            false => self.inbox.put(Some(worker), event),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A campaign that fails sends no `Stopped`; its warnings explain the failure.
        self.close();
    }
}
