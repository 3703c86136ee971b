//! Distribution of events to sinks.

use std::io;
use std::path::PathBuf;

use super::Event;

/// A consumer of events. A sink reports its own failures; they never end the campaign.
pub trait EventSink {
    fn handle(&mut self, event: &Event);

    /// Handles an event of one worker of a fleet. [`EventSink::handle`] gets the events of the whole fleet.
    fn handle_of(&mut self, _worker: &str, _event: &Event) {}

    /// Returns true if snapshots should list blocked comparisons.
    fn shows_blockers(&self) -> bool {
        false
    }

    /// The file that the last event could not be written to, with the error. Called at the end: until then, a sink
    /// tries again with the next event.
    fn take_failure(&mut self) -> Option<(PathBuf, io::Error)> {
        None
    }
}

/// Passes every event to the sinks in a fixed order.
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
