//! Queue of events from the campaign to the screen's thread. The campaign never waits for a terminal.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ffuzz_event::{Event, Snapshot};

/// Maximum number of queued events; a stopped terminal (Ctrl-S) takes none. The oldest are dropped.
const MOST: usize = 20_000;

/// An event and the worker that sent it.
pub(super) type Sent = (Option<String>, Event);

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) events: VecDeque<Sent>,
    /// The latest snapshot.
    pub(super) tick: Option<Box<Snapshot>>,
    /// True if no more events will arrive.
    pub(super) is_last: bool,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    batch: Mutex<Batch>,
    changed: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, worker: Option<&str>, event: &Event) {
        let mut batch = self.lock();
        match event {
            Event::Tick(_) if worker.is_some() => return,
            Event::Tick(snapshot) => {
                let mut newest = snapshot.clone();
                newest.coverage.virgin_map = None;
                batch.tick = Some(newest);
            }
            Event::Reply(_) => return,
            _ => {
                if batch.events.len() >= MOST {
                    batch.events.pop_front();
                }
                batch.events.push_back((worker.map(str::to_owned), event.clone()));
            }
        }
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().is_last = true;
        self.changed.notify_one();
    }

    /// Takes all queued events; waits up to `longest` if there are none.
    pub(super) fn take(&self, longest: Duration) -> Batch {
        let batch = self.lock();
        let is_empty =
            |batch: &mut Batch| batch.events.is_empty() && batch.tick.is_none() && !batch.is_last;
        let waited = self.changed.wait_timeout_while(batch, longest, is_empty);
        let mut batch = waited.unwrap_or_else(PoisonError::into_inner).0;
        let events = std::mem::take(&mut batch.events);
        Batch { events, tick: batch.tick.take(), is_last: batch.is_last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_state_and_all_other_events_arrive() {
        let inbox = Inbox::default();
        let tick = |now| {
            let mut snapshot = Box::<Snapshot>::default();
            snapshot.times.now = now;
            snapshot.coverage.virgin_map = Some(Box::new([0; 8]));
            Event::Tick(snapshot)
        };
        let warning = |text: &str| Event::Warning { message: text.into() };
        inbox.put(None, &tick(1));
        inbox.put(Some("main"), &warning("a"));
        inbox.put(Some("main"), &tick(9));
        inbox.put(None, &tick(2));
        inbox.put(None, &warning("b"));
        let batch = inbox.take(Duration::ZERO);
        let who: Vec<_> = batch.events.iter().map(|(who, _)| who.as_deref()).collect();
        assert_eq!((who, batch.is_last), (vec![Some("main"), None], false));
        let newest = batch.tick.unwrap();
        assert_eq!((newest.times.now, newest.coverage.virgin_map), (2, None));
        for _ in 0..MOST + 3 {
            inbox.put(None, &warning("c"));
        }
        inbox.close();
        let batch = inbox.take(Duration::from_secs(60));
        assert_eq!((batch.events.len(), batch.is_last), (MOST, true));
        assert!(inbox.take(Duration::from_secs(60)).is_last);
    }
}
