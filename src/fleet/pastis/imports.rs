//! Inputs of the broker on their way into the fuzzer: queued, sent, answered. None is lost when the
//! fuzzer restarts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::link::Reservation;
use super::messages::SeedKind;

/// Maximum number of refusals by the fuzzer before an input is dropped.
const MOST_TRIES: u8 = 3;

/// An input with its reserved memory.
#[derive(Debug)]
pub(super) struct BrokerInput {
    pub(super) kind: SeedKind,
    pub(super) bytes: Vec<u8>,
    tries: u8,
    _held: Option<Reservation>,
}

impl BrokerInput {
    #[must_use]
    pub(super) fn new(kind: SeedKind, bytes: Vec<u8>, held: Option<Reservation>) -> Self {
        Self { kind, bytes, tries: 0, _held: held }
    }
}

/// Counters of the imports.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ImportCount {
    /// Inputs that were run, as a seed or after injection.
    pub(super) run: u64,
    /// Inputs among `run` that the fuzzer received as seeds.
    pub(super) seeds: u64,
    /// Sends over the control socket, repetitions included; `answered` counts their answers.
    pub(super) injected: u64,
    pub(super) answered: u64,
    /// Number of dropped inputs.
    pub(super) refused: u64,
    pub(super) open: usize,
}

/// Shared by the client and the thread that writes to the fuzzer's socket.
#[derive(Debug, Default)]
pub(super) struct ImportQueue {
    state: Mutex<ImportState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ImportState {
    waiting: VecDeque<BrokerInput>,
    under_way: BTreeMap<u64, BrokerInput>,
    next_id: u64,
    /// Number of the connection to the fuzzer; 0 if there is none.
    connection: u32,
    count: ImportCount,
}

impl ImportQueue {
    fn lock(&self) -> MutexGuard<'_, ImportState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, input: BrokerInput) {
        self.lock().waiting.push_back(input);
        self.changed.notify_all();
    }

    /// Passes the first queued inputs that can be seeds to `keep`, and removes each one that it kept.
    pub(super) fn move_seeds<E>(
        &self,
        most: usize,
        mut keep: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        for _ in 0..most {
            let is_good = |input: &BrokerInput| input.kind == SeedKind::Input;
            let Some(place) = state.waiting.iter().position(is_good) else { break };
            keep(&state.waiting[place].bytes)?;
            state.waiting.remove(place);
            state.count.run += 1;
            state.count.seeds += 1;
        }
        Ok(())
    }

    /// Notes that `connection` is established.
    pub(super) fn open(&self, connection: u32) {
        self.lock().connection = connection;
        self.changed.notify_all();
    }

    /// Notes the end of a connection, and queues its unanswered inputs again.
    pub(super) fn close(&self, connection: u32) {
        let mut state = self.lock();
        if state.connection == connection {
            state.connection = 0;
            let again = std::mem::take(&mut state.under_way);
            for (_, input) in again.into_iter().rev() {
                state.retry(input, VecDeque::push_front);
            }
        }
        self.changed.notify_all();
    }

    /// Waits for the next input for this connection: number, kind and bytes. None if the connection is
    /// gone.
    pub(super) fn next<T>(
        &self,
        connection: u32,
        make: impl FnOnce(u64, &BrokerInput) -> T,
    ) -> Option<T> {
        let idle =
            |state: &mut ImportState| state.connection == connection && state.waiting.is_empty();
        let state = self.changed.wait_while(self.lock(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.connection != connection {
            return None;
        }
        let input = state.waiting.pop_front()?;
        state.next_id += 1;
        let id = state.next_id;
        let made = make(id, &input);
        state.under_way.insert(id, input);
        state.count.injected += 1;
        Some(made)
    }

    /// Notes that the fuzzer has run (`run`) or refused an input.
    pub(super) fn answered(&self, id: u64, run: bool) {
        let mut state = self.lock();
        let Some(input) = state.under_way.remove(&id) else { return };
        state.count.answered += 1;
        if run {
            state.count.run += 1;
        } else {
            state.retry(input, VecDeque::push_back);
            self.changed.notify_all();
        }
    }

    pub(super) fn count(&self) -> ImportCount {
        let state = self.lock();
        ImportCount { open: state.waiting.len() + state.under_way.len(), ..state.count }
    }
}

impl ImportState {
    fn retry(&mut self, mut input: BrokerInput, put: fn(&mut VecDeque<BrokerInput>, BrokerInput)) {
        input.tries += 1;
        if input.tries < MOST_TRIES {
            put(&mut self.waiting, input);
        } else {
            self.count.refused += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(inputs: &[&str]) -> ImportQueue {
        let imports = ImportQueue::default();
        for input in inputs {
            imports.add(BrokerInput::new(SeedKind::Input, input.as_bytes().to_vec(), None));
        }
        imports
    }

    fn next(imports: &ImportQueue, connection: u32) -> (u64, Vec<u8>) {
        imports.next(connection, |id, input| (id, input.bytes.clone())).unwrap()
    }

    #[test]
    fn what_was_not_answered_comes_again_in_its_order() {
        let imports = imports(&["a", "b", "c"]);
        imports.open(1);
        assert_eq!(next(&imports, 1), (1, b"a".to_vec()));
        assert_eq!(next(&imports, 1), (2, b"b".to_vec()));
        imports.answered(1, true);
        imports.close(1);
        assert_eq!(imports.next(1, |id, _| id), None);
        imports.open(2);
        assert_eq!(next(&imports, 2).1, b"b");
        assert_eq!(next(&imports, 2).1, b"c");
        imports.answered(3, true);
        imports.answered(4, true);
        let count = ImportCount { run: 3, injected: 4, answered: 3, ..ImportCount::default() };
        assert_eq!(imports.count(), count);
    }

    #[test]
    fn only_good_inputs_become_seeds() {
        let imports = imports(&["a", "b"]);
        imports.add(BrokerInput::new(SeedKind::Crash, b"c".to_vec(), None));
        imports.add(BrokerInput::new(SeedKind::Input, b"d".to_vec(), None));
        assert_eq!(moved(&imports, 3, b'-'), *b"abd");
        assert_eq!(imports.count(), seeds(3, 1));
    }

    fn seeds(seeds: u64, open: usize) -> ImportCount {
        ImportCount { run: seeds, seeds, open, ..ImportCount::default() }
    }

    /// First letters of the inputs that are moved until writing one fails.
    fn moved(imports: &ImportQueue, most: usize, fails: u8) -> Vec<u8> {
        let mut kept = vec![];
        let _ = imports.move_seeds(most, |bytes| match bytes[0] {
            letter if letter == fails => Err(()),
            letter => {
                kept.push(letter);
                Ok(())
            }
        });
        kept
    }

    #[test]
    fn a_seed_that_was_not_written_waits() {
        let imports = imports(&["a", "b", "c"]);
        assert_eq!(moved(&imports, 9, b'b'), *b"a");
        assert_eq!(imports.count(), seeds(1, 2));
        assert_eq!(moved(&imports, 9, b'-'), *b"bc");
        assert_eq!(imports.count(), seeds(3, 0));
    }

    #[test]
    fn what_is_not_wanted_is_given_up() {
        let imports = imports(&["a"]);
        imports.open(1);
        for id in 1..=3 {
            assert_eq!(next(&imports, 1).0, id);
            imports.answered(id, false);
        }
        let count = ImportCount { injected: 3, answered: 3, refused: 1, ..ImportCount::default() };
        assert_eq!(imports.count(), count);
        // An answer over an earlier connection.
        imports.answered(1, true);
        imports.close(7);
        assert_eq!(moved(&imports, 9, b'-'), *b"");
    }
}
