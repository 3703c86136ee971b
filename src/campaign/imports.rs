//! Imports of other fuzzers' finds: pending inputs, their schedule, and the positions read so far.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::outside::Outside;
use crate::disk::sync::{Import, Peers, Position};

/// Interval between two checks of the other queues: a find arrives within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// Other fuzzers, and the time of the next check.
#[derive(Debug)]
pub(super) struct Imports {
    peers: Peers,
    next_look: Instant,
    /// True if the last check found nothing.
    is_empty: bool,
}

impl Imports {
    pub(super) fn new(peers: Peers) -> Self {
        Self { peers, next_look: Instant::now(), is_empty: true }
    }

    /// Returns true if an input is pending or a check is due.
    pub(super) fn are_due(&self) -> bool {
        !self.is_empty || Instant::now() >= self.next_look
    }

    /// Checks the other queues if it is time for that.
    pub(super) fn look_if_due(&mut self, outside: &mut Outside) {
        if Instant::now() >= self.next_look {
            self.look(outside);
        }
    }

    /// Checks the other queues for new inputs.
    pub(super) fn look(&mut self, outside: &mut Outside) {
        self.note_positions(outside);
        self.next_look = Instant::now() + LOOK;
        self.is_empty = false;
        let damaged = RefCell::new(Vec::new());
        self.peers.look(|peer| {
            let bytes = outside.output.synced(peer);
            Position::from_bytes(&bytes).unwrap_or_else(|| {
                if !bytes.is_empty() {
                    damaged.borrow_mut().push(peer.to_owned());
                }
                Position::default()
            })
        });
        let notes = self.peers.take_notes();
        for peer in damaged.take() {
            outside.warn(format!(
                ".synced/{peer} is damaged: the queue of {peer} is read from its start"
            ));
        }
        for note in notes {
            outside.warn(note);
        }
    }

    /// The next pending input.
    pub(super) fn next(&mut self) -> Option<Import> {
        let next = self.peers.take();
        self.is_empty = next.is_none();
        next
    }

    /// Saves the read positions once the inputs are judged; others are read again after a restart.
    pub(super) fn note_positions(&mut self, outside: &mut Outside) {
        for (peer, position) in self.peers.moved() {
            if let Err(error) = outside.output.note_synced(peer, &position.to_bytes()) {
                outside.warn(error.to_string());
            }
        }
    }
}
