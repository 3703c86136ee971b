//! Record of a target's last inputs: reproducing a crash of a long-running process may need several.

use crate::mutate::Candidate;

/// Limit of recorded bytes; the oldest inputs are dropped at twice this size.
const ROOM: usize = 4 << 20;

/// Inputs of one process. Free at capacity 0, otherwise one copy per input.
#[derive(Debug, Default)]
pub(super) struct InputRecord {
    most: usize,
    /// Full, or empty.
    older: InputLog,
    newer: InputLog,
    /// Number of inputs so far, and of the first input that counts.
    added: u64,
    first: u64,
}

/// Concatenated inputs.
#[derive(Debug, Default)]
struct InputLog {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl InputLog {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl InputRecord {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn add(&mut self, input: &[u8]) {
        if self.most == 0 {
            return;
        }
        if self.newer.ends.len() == self.most || self.newer.bytes.len() >= ROOM {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        self.newer.bytes.extend_from_slice(input);
        self.newer.ends.push(self.newer.bytes.len());
        self.added += 1;
    }

    pub(super) fn add_all(&mut self, candidates: &[Candidate]) {
        candidates.iter().for_each(|candidate| self.add(&candidate.bytes));
    }

    /// Number of inputs so far.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Discards inputs before this number, which belong to another process.
    pub(super) fn forget_before(&mut self, number: u64) {
        self.first = number;
    }

    /// Takes the last inputs, the oldest first.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        let all: Vec<&[u8]> = self.older.iter().chain(self.newer.iter()).collect();
        let own = usize::try_from(self.added - self.first).unwrap_or(usize::MAX);
        let last = all[all.len().saturating_sub(self.most.min(own))..].iter();
        let taken = last.map(|input| input.to_vec()).collect();
        self.older.clear();
        self.newer.clear();
        taken
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
        let mut record = InputRecord::new(3);
        record.add(b"x");
        record.add(b"y");
        record.add_all(&candidates[..2]);
        assert_eq!(record.take(), [b"y", b"a", b"b"]);
        let mut short = InputRecord::new(2);
        short.add_all(&candidates);
        assert_eq!(short.take(), [b"b", b"c"]);
        for number in 0..7_u8 {
            short.add(&[number]);
        }
        assert_eq!(short.take(), [[5], [6]]);
        short.add(b"x");
        short.forget_before(short.added());
        assert!(short.take().is_empty());
        short.add(b"y");
        assert_eq!(short.take(), [b"y"]);
        let mut off = InputRecord::default();
        off.add_all(&candidates);
        assert!(off.take().is_empty());
    }
}
