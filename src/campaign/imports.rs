//! Other fuzzers' finds: which of them wait, when it is their turn, and up to where they were read.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::outside::Outside;
use crate::disk::sync::{Import, Peers, Position};

/// Between two checks of the other queues: a find arrives within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// The other fuzzers, and when it is their turn.
#[derive(Debug)]
pub(super) struct Imports {
    peers: Peers,
    next_look: Instant,
    /// Nothing waits, as far as the last look has shown.
    is_empty: bool,
}

impl Imports {
    pub(super) fn new(peers: Peers) -> Self {
        Self { peers, next_look: Instant::now(), is_empty: true }
    }

    /// Whether something waits, or it is time for a look.
    pub(super) fn are_due(&self) -> bool {
        !self.is_empty || Instant::now() >= self.next_look
    }

    /// Checks the other queues if it is time for that.
    pub(super) fn look_if_due(&mut self, outside: &mut Outside) {
        if Instant::now() >= self.next_look {
            self.look(outside);
        }
    }

    /// Looks for what is new in the other queues.
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

    /// The next input that waits.
    pub(super) fn next(&mut self) -> Option<Import> {
        let next = self.peers.take();
        self.is_empty = next.is_none();
        next
    }

    /// On disk once the inputs are judged: what was not is read again after a restart.
    pub(super) fn note_positions(&mut self, outside: &mut Outside) {
        for (peer, position) in self.peers.moved() {
            if let Err(error) = outside.output.note_synced(peer, &position.to_bytes()) {
                outside.warn(error.to_string());
            }
        }
    }
}
