//! The way of an event to those who show it or write it down.

use std::io;
use std::path::PathBuf;

use super::Event;

/// A consumer of events. A sink that fails says so by itself; it never ends the campaign.
pub trait EventSink {
    fn handle(&mut self, event: &Event);

    /// What one worker of a fleet reports; [`EventSink::handle`] gets the whole then. For sinks
    /// that know the difference.
    fn handle_of(&mut self, _worker: &str, _event: &Event) {}

    /// Snapshots are to have comparisons that the search does not pass.
    fn shows_blockers(&self) -> bool {
        false
    }

    /// The file that the last event could not be written to. Asked for at the end: until then a sink
    /// tries again with the next event.
    fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        None
    }
}

/// Hands every event to the sinks in a fixed order.
#[derive(Default)]
pub struct EventBus {
    sinks: Vec<Box<dyn EventSink>>,
}

impl EventBus {
    pub fn add(&mut self, sink: Box<dyn EventSink>) {
        self.sinks.push(sink);
    }

    pub fn send(&mut self, event: &Event) {
        for sink in &mut self.sinks {
            sink.handle(event);
        }
    }

    /// See [`EventSink::shows_blockers`].
    #[must_use]
    pub fn shows_blockers(&self) -> bool {
        self.sinks.iter().any(|sink| sink.shows_blockers())
    }

    /// See [`EventSink::take_failure`].
    pub fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        self.sinks.iter_mut().find_map(|sink| sink.take_failure())
    }

    pub fn send_of(&mut self, worker: &str, event: &Event) {
        for sink in &mut self.sinks {
            sink.handle_of(worker, event);
        }
    }
}
