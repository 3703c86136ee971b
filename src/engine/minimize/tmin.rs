//! Minimizing one input as `afl-tmin` does: bytes are made equal, blocks are left out, kinds of bytes
//! and then single bytes are made equal, again and again until nothing helps any more.
//!
//! A generator, as [`super::trim`]: [`Tmin::next`] proposes, the caller runs the proposal and answers
//! with [`Tmin::accepted`] or [`Tmin::rejected`]. A clone knows what comes next if all is rejected.

use std::num::NonZeroUsize;

use crate::corpus::Length;
use crate::messages;
use crate::mutate::buffer::Buffer;

/// What bytes without a meaning become (AFL).
pub const FILLER: u8 = b'0';
/// The first stage fills blocks of the length, rounded up to a power of two, divided by this (AFL).
const FILL_DIVISOR: usize = 128;
/// Smallest block that is filled at once (AFL).
const LEAST_FILL: usize = 4;
/// The second begins with blocks of the length divided by this (AFL).
const REMOVE_DIVISOR: usize = 16;

/// What is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Whole messages are left out, the last one first.
    Messages,
    Fill,
    Remove,
    Symbols,
    Characters,
    Done,
}

/// What a caller may want to report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    Pass(u32),
    /// `symbols`: different bytes in the input.
    Begins {
        stage: Stage,
        symbols: usize,
    },
    Block {
        size: usize,
        left: usize,
    },
    /// `times`: proposals that were accepted; `bytes`: those removed or made equal.
    Ends {
        stage: Stage,
        times: usize,
        bytes: usize,
    },
}

/// Minimizing of one input.
#[derive(Clone, Debug)]
pub struct Tmin {
    stage: Stage,
    pass: u32,
    /// The input is a list of messages, and stays one.
    is_list: bool,
    /// Smallest block that is removed.
    least_block: usize,
    block: usize,
    pos: usize,
    /// Bytes that are left to be tried in the stage of symbols.
    symbols: Vec<u8>,
    /// Bytes that the present proposal changes.
    pending: usize,
    /// Accepted in this stage, and the bytes.
    times: usize,
    bytes: usize,
    /// Something was accepted in this pass.
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

    /// The same for an input of a target with a socket: if it is a list of messages, it stays one.
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

    /// The words of messages, which keep their values.
    fn words(&self, input: &[u8]) -> Vec<Length> {
        messages::framing(input).take_while(|_| self.is_list).collect()
    }

    /// Writes the next proposal into `out`; false at the end. `input` is what was accepted last.
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

    /// The proposal replaces the input.
    pub fn accepted(&mut self) {
        self.times += 1;
        self.bytes += self.pending;
        self.changed = true;
        // What comes after a removed block has moved to its place.
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

    /// What has happened since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Leaves out a message that was not tried: `pos` counts those behind it that have to stay.
    fn message(&self, out: &mut Vec<u8>) -> usize {
        let count = messages::messages(out).count();
        let Some(number) = count.checked_sub(self.pos + 1).filter(|_| count > 1) else { return 0 };
        let gone = messages::span(out, number);
        let bytes = gone.len();
        out.drain(gone);
        bytes
    }

    /// Each of these changes `out` and returns how many bytes it concerns; 0 when there is no more to try.
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
            // An empty input is none.
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
            // A later pass that removes nothing would only repeat what the one before has tried.
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

/// Whether a byte is part of the word before a message.
fn is_word(words: &[Length], at: usize) -> bool {
    let before = words.partition_point(|word| word.at <= at);
    before.checked_sub(1).is_some_and(|last| at < words[last].from)
}

/// The different bytes of an input, the largest first.
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
