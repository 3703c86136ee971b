//! The last inputs that a target got: a crash of a process that has run many may need more than one.

use std::collections::VecDeque;

use crate::mutate::Candidate;

/// A ring; without room it costs nothing.
#[derive(Debug, Default)]
pub(super) struct Record {
    most: usize,
    inputs: VecDeque<Vec<u8>>,
}

impl Record {
    pub(super) fn new(most: usize) -> Self {
        Self { most, inputs: VecDeque::new() }
    }

    pub(super) fn add(&mut self, input: &[u8]) {
        if self.most == 0 {
            return;
        }
        // The buffer of the oldest is used again.
        let oldest = if self.inputs.len() == self.most { self.inputs.pop_front() } else { None };
        let mut buffer = oldest.unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(input);
        self.inputs.push_back(buffer);
    }

    pub(super) fn add_all(&mut self, candidates: &[Candidate]) {
        let from = candidates.len().saturating_sub(self.most);
        for candidate in &candidates[from..] {
            self.add(&candidate.bytes);
        }
    }

    /// All of them, the oldest first.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.inputs).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_in_order() {
        let candidates: Vec<Candidate> = [b"a", b"b", b"c"]
            .map(|bytes| Candidate { bytes: bytes.to_vec(), ..Candidate::default() })
            .into();
        let mut record = Record::new(3);
        record.add(b"x");
        record.add(b"y");
        record.add_all(&candidates[..2]);
        assert_eq!(record.take(), [b"y", b"a", b"b"]);
        let mut short = Record::new(2);
        short.add_all(&candidates);
        assert_eq!(short.take(), [b"b", b"c"]);
        let mut off = Record::default();
        off.add_all(&candidates);
        assert!(off.take().is_empty());
    }
}
