//! Inputs that were made elsewhere, run and judged like own ones; and other fuzzers' finds.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::{Campaign, CampaignError};
use crate::disk::sync::{Import, Peers, Position};
use crate::engine::corpus::Origin;
use crate::engine::fuzzer::door::DoorError;
use crate::event::Outcome;
use crate::sys::stop::Stop;

/// Between two checks of the other queues: a find arrives within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// Imports are a quarter of the time at most: then own work has its turn, for three times as long.
const SLICE: Duration = Duration::from_millis(50);
const REST: u32 = 3;

/// The other fuzzers, and when it is their turn.
#[derive(Debug)]
pub(super) struct Sync {
    peers: Peers,
    next_look: Instant,
    next_turn: Instant,
}

impl Sync {
    pub(super) fn new(peers: Peers) -> Self {
        let now = Instant::now();
        Self { peers, next_look: now, next_turn: now }
    }
}

impl Campaign {
    /// Takes over what has come, for a share of the time.
    pub(super) fn import_if_due(&mut self) -> Result<(), CampaignError> {
        let Some(sync) = &self.sync else { return Ok(()) };
        let start = Instant::now();
        if start < sync.next_turn {
            return Ok(());
        }
        if start >= sync.next_look {
            self.look_at_peers();
        }
        while start.elapsed() < SLICE && self.import_next()? {}
        let spent = start.elapsed();
        if let Some(sync) = &mut self.sync {
            let rest = if spent < SLICE { LOOK } else { spent * REST };
            sync.next_turn = Instant::now() + rest;
        }
        self.statistics.sync += spent;
        Ok(())
    }

    /// Takes over everything that is there now, unless the user does not want to wait for it.
    pub(super) fn import_all(&mut self) -> Result<(), CampaignError> {
        let start = Instant::now();
        // Once all seeds are there, a wish to stop has led here: only a further one is news.
        let ends = self.complete && self.stop.is_over();
        let hurried = |stop: &Stop| if ends { stop.asked_again() } else { stop.is_over() };
        self.look_at_peers();
        while !hurried(&self.stop) && self.import_next()? {
            self.obey()?;
            self.tick_if_due();
        }
        self.note_positions();
        self.statistics.sync += start.elapsed();
        Ok(())
    }

    fn look_at_peers(&mut self) {
        self.note_positions();
        let Some(sync) = &mut self.sync else { return };
        sync.next_look = Instant::now() + LOOK;
        let damaged = RefCell::new(Vec::new());
        sync.peers.look(|peer| {
            let bytes = self.output.synced(peer);
            Position::from_bytes(&bytes).unwrap_or_else(|| {
                if !bytes.is_empty() {
                    damaged.borrow_mut().push(peer.to_owned());
                }
                Position::default()
            })
        });
        let notes = sync.peers.take_notes();
        for peer in damaged.take() {
            self.warn(format!(
                ".synced/{peer} is damaged: the queue of {peer} is read from its start"
            ));
        }
        for note in notes {
            self.warn(note);
        }
    }

    /// On disk once the inputs are judged: what was not is read again after a restart.
    pub(super) fn note_positions(&mut self) {
        let Some(sync) = &mut self.sync else { return };
        for (peer, position) in sync.peers.moved() {
            if let Err(error) = self.output.note_synced(peer, &position.to_bytes()) {
                self.warn(error.to_string());
            }
        }
    }

    /// False if nothing waits.
    fn import_next(&mut self) -> Result<bool, CampaignError> {
        let Some(Import { peer, number, data }) =
            self.sync.as_mut().and_then(|sync| sync.peers.take())
        else {
            return Ok(false);
        };
        let taken = self.take_in(data, Origin::synced(peer, number));
        if taken.as_ref().is_err_and(CampaignError::is_interruption) {
            // It was not judged: the next process reads it again.
            self.sync = None;
        }
        taken.map(|_| true)
    }

    /// Takes an input that was made elsewhere. None if it has not the length that inputs have here.
    pub(super) fn take_in(
        &mut self,
        bytes: Vec<u8>,
        origin: Origin,
    ) -> Result<Option<Outcome>, CampaignError> {
        let mutation = &self.options.mutation;
        if !(mutation.min_len..=mutation.max_len).contains(&bytes.len()) {
            return Ok(None);
        }
        self.take_over(bytes, origin).map(Some)
    }
}
