//! Other fuzzers' finds: which of them wait, when it is their turn, and up to where they were read.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::outside::Outside;
use crate::disk::sync::{Import, Peers, Position};

/// Between two checks of the other queues: a find arrives within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// Imports are a quarter of the time at most: then own work has its turn, for three times as long.
const SLICE: Duration = Duration::from_millis(50);
const REST: u32 = 3;

/// The other fuzzers, and when it is their turn.
#[derive(Debug)]
pub(super) struct Imports {
    peers: Peers,
    next_look: Instant,
    next_turn: Instant,
}

impl Imports {
    pub(super) fn new(peers: Peers) -> Self {
        let now = Instant::now();
        Self { peers, next_look: now, next_turn: now }
    }

    /// It is the turn of what waits; until when, if so. The other queues are checked if it is time for that.
    pub(super) fn begin_turn(&mut self, now: Instant, outside: &mut Outside) -> Option<Instant> {
        if now < self.next_turn {
            return None;
        }
        if now >= self.next_look {
            self.look(outside);
        }
        Some(now + SLICE)
    }

    /// The turn has taken so long: own work is next.
    pub(super) fn end_turn(&mut self, spent: Duration) {
        let rest = if spent < SLICE { LOOK } else { spent * REST };
        self.next_turn = Instant::now() + rest;
    }

    /// Looks for what is new in the other queues.
    pub(super) fn look(&mut self, outside: &mut Outside) {
        self.note_positions(outside);
        self.next_look = Instant::now() + LOOK;
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
        self.peers.take()
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
