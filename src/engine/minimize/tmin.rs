//! Minimizes one input as `afl-tmin` does: normalizes bytes, removes blocks, normalizes byte values and then single
//! bytes, and repeats until nothing helps.
//!
//! A generator like [`super::trim`]: [`Tmin::next`] proposes, the caller runs the proposal and answers with
//! [`Tmin::accepted`] or [`Tmin::rejected`]. A clone shows the next proposals if all are rejected.

use std::num::NonZeroUsize;

use crate::corpus::Length;
use crate::messages;
use crate::mutate::buffer::Buffer;

/// Replacement for bytes without effect (AFL).
pub const FILLER: u8 = b'0';
/// Block size of the first stage: the length, rounded up to a power of two, divided by this (AFL).
const FILL_DIVISOR: usize = 128;
/// Smallest block of the first stage, bytes (AFL).
const LEAST_FILL: usize = 4;
/// First block size of the second stage: the length, rounded up to a power of two, divided by this (AFL).
const REMOVE_DIVISOR: usize = 16;

/// Stage of the minimization.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Removes whole messages, the last one first.
    Messages,
    Fill,
    Remove,
    Symbols,
    Characters,
    Done,
}

/// Progress for the caller to report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    Pass(u32),
    /// `symbols`: number of different bytes in the input.
    Begins {
        stage: Stage,
        symbols: usize,
    },
    Block {
        size: usize,
        left: usize,
    },
    /// `times`: accepted proposals; `bytes`: removed or normalized bytes.
    Ends {
        stage: Stage,
        times: usize,
        bytes: usize,
    },
}

/// Minimization of one input.
#[derive(Clone, Debug)]
pub struct Tmin {
    stage: Stage,
    pass: u32,
    /// True if the input is a list of messages, and stays one.
    is_list: bool,
    /// Smallest block removed by halving, bytes.
    least_block: usize,
    block: usize,
    pos: usize,
    /// Byte values left to try in the stage `Symbols`.
    symbols: Vec<u8>,
    /// Number of bytes that the current proposal changes.
    pending: usize,
    /// Accepted proposals of this stage, and their bytes.
    times: usize,
    bytes: usize,
    /// True if a proposal of this pass was accepted.
    changed: bool,
    notes: Vec<Note>,
}

impl Tmin {
    #[must_use]
    pub fn new(input: &[u8], least_block: NonZeroUsize) -> Self {
        let mut tmin = Self {
            stage: Stage::Fill,
            pass: 0,
            is_list: false,
            least_block: least_block.get(),
            block: (input.len() / FILL_DIVISOR).next_power_of_two().max(LEAST_FILL),
            pos: 0,
            symbols: Vec::new(),
            pending: 0,
            times: 0,
            bytes: 0,
            changed: false,
            notes: Vec::new(),
        };
        tmin.note_begin(input);
        tmin
    }

    /// Minimization for a target with a socket: an input that is a list of messages stays one.
    #[must_use]
    pub fn of_messages(input: &[u8], least_block: NonZeroUsize) -> Self {
        let mut tmin = Self::new(input, least_block);
        if messages::is_list(input) {
            (tmin.is_list, tmin.stage) = (true, Stage::Messages);
            tmin.notes.clear();
            tmin.note_begin(input);
        }
        tmin
    }

    /// Words of messages, which keep their values.
    fn words(&self, input: &[u8]) -> Vec<Length> {
        messages::framing(input).take_while(|_| self.is_list).collect()
    }

    /// Writes the next proposal into `out`; false at the end. `input` is the last accepted version.
    pub fn next(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        loop {
            out.clear();
            out.extend_from_slice(input);
            self.pending = match self.stage {
                Stage::Messages => self.message(out),
                Stage::Fill => self.fill(out),
                Stage::Remove => self.remove(out),
                Stage::Symbols => self.symbol(out),
                Stage::Characters => self.character(out),
                Stage::Done => return false,
            };
            if self.pending > 0 {
                return true;
            }
            self.end_stage(input);
        }
    }

    /// Accepts the proposal, which replaces the input.
    pub fn accepted(&mut self) {
        self.times += 1;
        self.bytes += self.pending;
        self.changed = true;
        // The bytes after a removed block have moved to its place.
        if !matches!(self.stage, Stage::Remove | Stage::Messages) {
            self.rejected();
        }
    }

    pub fn rejected(&mut self) {
        match self.stage {
            Stage::Symbols => drop(self.symbols.pop()),
            Stage::Messages => self.pos += 1,
            _ => self.pos += self.block,
        }
    }

    /// Takes the notes since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Removes the next untried message and returns its size; `pos` counts the messages after it that must stay.
    fn message(&self, out: &mut Vec<u8>) -> usize {
        let count = messages::messages(out).count();
        let Some(number) = count.checked_sub(self.pos + 1).filter(|_| count > 1) else { return 0 };
        let gone = messages::span(out, number);
        let bytes = gone.len();
        out.drain(gone);
        bytes
    }

    /// Fills the next block of `out` and returns the number of changed bytes; 0 if none is left. The functions below
    /// work alike.
    fn fill(&mut self, out: &mut [u8]) -> usize {
        while self.pos < out.len() {
            let end = out.len().min(self.pos + self.block);
            let words = self.words(out);
            let free = (self.pos..end).filter(|at| !is_word(&words, *at));
            let others =
                free.filter(|at| std::mem::replace(&mut out[*at], FILLER) != FILLER).count();
            if others > 0 {
                return others;
            }
            self.pos = end;
        }
        0
    }

    fn remove(&mut self, out: &mut Vec<u8>) -> usize {
        loop {
            let words = self.words(out);
            while is_word(&words, self.pos) && self.pos < out.len() {
                self.pos += 1;
            }
            let next = words.iter().map(|word| word.at).find(|at| *at > self.pos);
            let end = out.len().min(self.pos + self.block).min(next.unwrap_or(usize::MAX));
            // Never proposes an empty input.
            if self.pos < end && end - self.pos < out.len() {
                let mut buffer = Buffer::new(out, &words);
                buffer.close_gap(self.pos, end - self.pos);
                *out = buffer.into_bytes();
                return end - self.pos;
            }
            if self.block <= self.least_block {
                return 0;
            }
            self.begin_blocks(self.block / 2, out.len());
        }
    }

    fn symbol(&mut self, out: &mut [u8]) -> usize {
        let Some(symbol) = self.symbols.last() else { return 0 };
        let words = self.words(out);
        let same = out.iter_mut().enumerate().filter(|(_, byte)| **byte == *symbol);
        same.filter(|(at, _)| !is_word(&words, *at)).map(|(_, byte)| *byte = FILLER).count()
    }

    fn character(&mut self, out: &mut [u8]) -> usize {
        let words = self.words(out);
        let rest = out.iter().enumerate().skip(self.pos);
        self.pos += rest.take_while(|(at, byte)| **byte == FILLER || is_word(&words, *at)).count();
        match out.get_mut(self.pos) {
            Some(byte) => {
                *byte = FILLER;
                1
            }
            None => 0,
        }
    }

    fn begin_blocks(&mut self, block: usize, left: usize) {
        (self.block, self.pos) = (block, 0);
        self.notes.push(Note::Block { size: block, left });
    }

    fn end_stage(&mut self, input: &[u8]) {
        let (stage, times, bytes) = (self.stage, self.times, self.bytes);
        self.notes.push(Note::Ends { stage, times, bytes });
        let shorter = stage == Stage::Remove && bytes > 0;
        (self.times, self.bytes, self.pos, self.block) = (0, 0, 0, 1);
        if stage == Stage::Messages {
            self.block = (input.len() / FILL_DIVISOR).next_power_of_two().max(LEAST_FILL);
        }
        self.stage = match stage {
            Stage::Messages => Stage::Fill,
            Stage::Fill => self.next_pass(),
            // A later pass that removes nothing would only repeat the previous one.
            Stage::Remove if self.pass > 1 && !shorter => Stage::Done,
            Stage::Remove => Stage::Symbols,
            Stage::Symbols => Stage::Characters,
            Stage::Characters if self.changed => self.next_pass(),
            Stage::Characters | Stage::Done => Stage::Done,
        };
        self.note_begin(input);
        match self.stage {
            Stage::Remove => {
                let block = (input.len() / REMOVE_DIVISOR).next_power_of_two();
                self.begin_blocks(block.max(self.least_block), input.len());
            }
            Stage::Symbols => {
                self.symbols = symbols(input).filter(|byte| *byte != FILLER).collect()
            }
            _ => {}
        }
    }

    fn next_pass(&mut self) -> Stage {
        self.pass += 1;
        self.changed = false;
        self.notes.push(Note::Pass(self.pass));
        Stage::Remove
    }

    fn note_begin(&mut self, input: &[u8]) {
        if self.stage != Stage::Done {
            let symbols = symbols(input).count();
            self.notes.push(Note::Begins { stage: self.stage, symbols });
        }
    }
}

/// True if a byte is part of a message's word.
fn is_word(words: &[Length], at: usize) -> bool {
    let before = words.partition_point(|word| word.at <= at);
    before.checked_sub(1).is_some_and(|last| at < words[last].from)
}

/// Distinct bytes of an input, the largest first.
fn symbols(input: &[u8]) -> impl Iterator<Item = u8> {
    let mut seen = [false; 256];
    input.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    (0..=u8::MAX).rev().filter(move |byte| seen[usize::from(*byte)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The result, the number of proposals, and the notes.
    fn minimized(input: &[u8], judge: impl Fn(&[u8]) -> bool) -> (Vec<u8>, usize, Vec<Note>) {
        minimized_by_blocks(input, 1, judge)
    }

    #[test]
    fn a_list_of_messages_stays_one() {
        let input = b"\x02\0\0\0hi\x05\0\0\0xDATA\x03\0\0\0end\x01\0\0\x01y";
        let (mut tmin, mut best) = (Tmin::of_messages(input, NonZeroUsize::MIN), input.to_vec());
        let mut out = Vec::new();
        while tmin.next(&best, &mut out) {
            let has = |text: &[u8]| messages::messages(&out).any(|m| m.bytes.ends_with(text));
            assert_eq!(messages::list(messages::messages(&out)), out);
            if has(b"DATA") && has(b"y") {
                std::mem::swap(&mut best, &mut out);
                tmin.accepted();
            } else {
                tmin.rejected();
            }
        }
        assert_eq!(best, b"\x04\0\0\0DATA\x01\0\0\x01y");
    }

    fn minimized_by_blocks(
        input: &[u8],
        least_block: usize,
        judge: impl Fn(&[u8]) -> bool,
    ) -> (Vec<u8>, usize, Vec<Note>) {
        let mut tmin = Tmin::new(input, NonZeroUsize::new(least_block).unwrap());
        let (mut input, mut out) = (input.to_vec(), Vec::new());
        let mut proposals = 0;
        while tmin.next(&input, &mut out) {
            assert!(out != input && !out.is_empty());
            proposals += 1;
            if judge(&out) {
                std::mem::swap(&mut input, &mut out);
                tmin.accepted();
            } else {
                tmin.rejected();
            }
        }
        (input, proposals, tmin.take_notes())
    }

    #[test]
    fn what_matters_stays_where_it_is_found() {
        let input = b"QUIZyyyyyyyyyyyyyyyyyyZZZ123abc";
        assert_eq!(minimized(input, |input| input.starts_with(b"QUIZ")).0, b"QUIZ");
        let anywhere = |input: &[u8]| input.windows(2).any(|pair| pair == b"y1");
        assert_eq!(minimized(b"aaaay1bbbbbbbbbbbb", anywhere).0, b"y1");
        assert_eq!(minimized(b"abcdefgh", |input| input.len() > 3).0, b"0000");
        assert_eq!(minimized(b"x", |_| false).0, b"x");
        assert_eq!(minimized(b"x", |_| true).0, b"0");
    }

    #[test]
    fn stages_come_in_the_order_of_afl() {
        let (_, proposals, notes) = minimized(b"QUI", |_| false);
        let begins = |stage| Note::Begins { stage, symbols: 3 };
        let ends = |stage| Note::Ends { stage, times: 0, bytes: 0 };
        let stages = [
            vec![begins(Stage::Fill), ends(Stage::Fill), Note::Pass(1), begins(Stage::Remove)],
            vec![Note::Block { size: 1, left: 3 }, ends(Stage::Remove)],
            vec![begins(Stage::Symbols), ends(Stage::Symbols)],
            vec![begins(Stage::Characters), ends(Stage::Characters)],
        ];
        assert_eq!(notes, stages.concat());
        assert_eq!(proposals, 1 + 3 + 3 + 3);
    }

    #[test]
    fn no_block_is_smaller_than_the_least() {
        let needs_7 = |input: &[u8]| input.contains(&7);
        let mut input = vec![1; 256];
        input[77] = 7;
        let (one, all, _) = minimized_by_blocks(&input, 1, needs_7);
        let (eight, fewer, _) = minimized_by_blocks(&input, 8, needs_7);
        assert_eq!((one.len(), eight.len()), (1, 8));
        assert!(fewer < all, "{fewer} of {all}");
    }

    #[test]
    fn blocks_get_smaller_as_in_afl() {
        let (result, proposals, notes) = minimized(&[7; 1_100_000], |_| true);
        assert_eq!(result, b"0");
        let blocks: Vec<usize> = notes
            .iter()
            .filter_map(|note| match note {
                Note::Block { size, .. } => Some(*size),
                _ => None,
            })
            .collect();
        assert_eq!((blocks[0], blocks[1], blocks.len()), (131_072, 65_536, 19));
        assert!(proposals < 200, "{proposals}");
    }

    proptest! {
        #[test]
        fn the_result_is_accepted_and_nothing_can_be_taken_from_it(
            input in proptest::collection::vec(any::<u8>(), 1..300),
            needle: u8,
        ) {
            let count = |input: &[u8]| input.iter().filter(|byte| **byte == needle).count();
            let wanted = count(&input);
            let (result, _, _) = minimized(&input, |input| count(input) == wanted);
            prop_assert_eq!(count(&result), wanted);
            prop_assert_eq!(result.len(), wanted.max(1));
        }

        #[test]
        fn a_clone_foresees_what_comes_after_rejections(
            input in proptest::collection::vec(any::<u8>(), 1..100),
        ) {
            let (mut tmin, mut out) = (Tmin::new(&input, NonZeroUsize::MIN), Vec::new());
            let mut ahead = tmin.clone();
            let mut foreseen = Vec::new();
            while ahead.next(&input, &mut out) {
                foreseen.push(out.clone());
                ahead.rejected();
            }
            for proposal in foreseen {
                prop_assert!(tmin.next(&input, &mut out));
                prop_assert_eq!(&proposal, &out);
                tmin.rejected();
            }
            prop_assert!(!tmin.next(&input, &mut out));
        }
    }
}
