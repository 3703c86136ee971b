//! Edits of an input that may flip a comparison of its run: where one operand is a copy of bytes of the input, the
//! other one takes its place (input-to-state correspondence: Aschermann and others, REDQUEEN, NDSS 2019).

use std::ops::Range;

use memchr::{memchr_iter, memchr2_iter};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::log::{Comparison, ComparisonKind, ComparisonLog, Operand};
use crate::results::{Occurrences, Place};
use ffuzz_mutate::messages;
use ffuzz_mutate::{Rng, below};

/// Maximum number of edits of one input.
const MOST_EDITS: usize = 4096;
/// Maximum number of positions at which one operand is found in the input.
const MOST_PLACES: usize = 16;
/// Maximum number of distinct pairs of operands of one key.
const MOST_OF_SITE: usize = 32;
/// Maximum number of bytes scanned by all searches for operands, about 50 ms: bounds the cost of long inputs and of
/// programs with many comparisons.
const MOST_SEARCHED: usize = 32 << 20;
/// Maximum number of digits of a number.
const DIGITS: usize = 20;
/// Number of leading bytes searched as pairs of hexadecimal digits.
const FEWEST_PAIRS: usize = 2;
/// Maximum bytes of the input per pair, with what separates pairs.
const BYTES_OF_PAIR: usize = 4;
/// Maximum length of an operand that is also written in URL encoding or in hexadecimal digits, bytes.
const LONGEST_ESCAPED: usize = 64;
/// Lengths of memory tried if more was logged than is compared, and number of positions for each.
const PREFIXES: [usize; 18] = [4, 8, 16, 6, 5, 7, 12, 10, 3, 9, 11, 13, 14, 15, 2, 20, 24, 28];
const MOST_OPEN: usize = 2;

/// A change of an input that replaces some bytes with others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edit {
    pub at: usize,
    pub removed: usize,
    pub inserted: Box<[u8]>,
    /// True if the input is a list and the edit changes one of its messages.
    pub is_of_list: bool,
    /// Kind of operand that it solves, for the table of yields.
    pub op: &'static str,
    /// The comparison that it may flip.
    pub place: Place,
    pub kind: ComparisonKind,
}

impl Edit {
    /// Writes the changed input.
    pub fn apply(&self, input: &[u8], out: &mut Vec<u8>) {
        if self.is_of_list {
            messages::edit(input, self.at..self.at + self.removed, &self.inserted, out);
            return;
        }
        out.clear();
        out.extend_from_slice(&input[..self.at]);
        out.extend_from_slice(&self.inserted);
        out.extend_from_slice(&input[self.at + self.removed..]);
    }

    /// The changed input.
    pub(crate) fn applied(&self, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.apply(input, &mut out);
        out
    }

    /// The input with the new bytes inserted before the bytes that they would replace.
    pub(crate) fn inserted_into(&self, input: &[u8]) -> Vec<u8> {
        Self { removed: 0, ..self.clone() }.applied(input)
    }
}

/// An input and its colored version, with the logs of their runs, which have taken the same path.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    pub input: &'a [u8],
    pub log: ComparisonLog<'a>,
    /// The input with other bytes where they decide nothing, and the log of its run. Both distinguish a copy from
    /// equal bytes elsewhere. Has the length of the input.
    pub colored: &'a [u8],
    pub colored_log: ComparisonLog<'a>,
    /// Inputs are lists of messages.
    pub messages: bool,
}

/// All edits of the input for the open comparisons of its run, each once.
#[must_use]
pub fn edits(run: Logged<'_>, is_open: impl Fn(Place, ComparisonKind) -> bool) -> Vec<Edit> {
    let Logged { input, log, colored, colored_log, messages } = run;
    let bodies = messages::bodies(input).take_while(|_| messages).collect();
    let mut occurrences = Occurrences::default();
    let pairs = log.iter().zip(colored_log.iter());
    let pairs = pairs.map(|(plain, colored)| (occurrences.place(&plain), plain, colored));
    let open = pairs.filter(|(place, plain, _)| is_open(*place, plain.kind));
    let (at, kind) = (Place { site: 0, key: 0, occurrence: 0 }, ComparisonKind::Equal);
    let (searched, known) = (0, HashSet::default());
    let (edits, is_partial) = (Vec::new(), log.is_partial());
    let mut solver =
        Solver { input, bodies, colored, at, kind, is_partial, searched, edits, known };
    let (mut seen, mut of_key) = (HashSet::default(), HashMap::<u32, usize>::default());
    for (place, plain, colored) in open {
        let count = of_key.entry(place.key).or_default();
        let is_new = seen.insert((plain.site, plain.a, plain.b, colored.a, colored.b));
        if solver.edits.len() >= MOST_EDITS || solver.searched > MOST_SEARCHED {
            break;
        }
        if *count >= MOST_OF_SITE || !is_new {
            continue;
        }
        *count += 1;
        if plain.site == colored.site {
            (solver.at, solver.kind) = (place, plain.kind);
            solver.solve(&plain, &colored);
        }
    }
    solver.edits
}

/// Replaces bytes with others of the same kind: digits with digits, letters with letters, non-text with anything.
/// Keeps blanks and punctuation, which make up the structure of a text.
pub fn colorize(bytes: &mut [u8], rng: &mut Rng) {
    for byte in bytes {
        let other = |rng: &mut Rng, first: u8, count: u32, byte: u8| {
            let place = u32::from(byte - first) + 1 + below(rng, count - 1);
            first + (place % count) as u8
        };
        *byte = match *byte {
            digit @ b'0'..=b'9' => other(rng, b'0', 10, digit),
            letter @ b'a'..=b'z' => other(rng, b'a', 26, letter),
            letter @ b'A'..=b'Z' => other(rng, b'A', 26, letter),
            sign @ b' '..=b'~' => sign,
            blank @ (b'\t' | b'\n' | b'\r') => blank,
            other => other ^ (1 + below(rng, 255)) as u8,
        };
    }
}

struct Solver<'a> {
    input: &'a [u8],
    /// Ranges of its messages, if it is a list.
    bodies: Vec<Range<usize>>,
    colored: &'a [u8],
    /// The current comparison.
    at: Place,
    kind: ComparisonKind,
    /// See [`ComparisonLog::is_partial`].
    is_partial: bool,
    /// Bytes scanned so far, see [`MOST_SEARCHED`].
    searched: usize,
    edits: Vec<Edit>,
    known: HashSet<(usize, usize, Box<[u8]>)>,
}

impl Solver<'_> {
    /// Adds edits for one comparison: searches the value of an operand in the colored run, and replaces it with the
    /// other operand of the plain run.
    fn solve(&mut self, plain: &Comparison<'_>, colored: &Comparison<'_>) {
        let Comparison { kind, bytes, constant, ignores_case, .. } = *plain;
        use Operand::{Bytes, Value};
        match (colored.a, colored.b, plain.a, plain.b) {
            (Value(from), _, Value(value), Bytes(cases)) => {
                let cases = cases.chunks_exact(8).filter_map(|case| case.try_into().ok());
                for case in cases.map(u64::from_le_bytes).filter(|case| *case != value) {
                    self.number(from, case, bytes, "switch");
                }
            }
            (Value(from_a), Value(from_b), Value(a), Value(b)) => {
                for (from, to, is_constant) in [(from_a, b, constant[0]), (from_b, a, constant[1])]
                {
                    if !is_constant {
                        self.integer(from, to, bytes, kind);
                    }
                }
            }
            (Bytes(from_a), Bytes(from_b), Bytes(a), Bytes(b)) => {
                self.text(from_a, b, ignores_case);
                if self.is_partial && kind == ComparisonKind::Memory {
                    self.prefixes(from_a, b);
                    self.prefixes(from_b, a);
                }
                if kind != ComparisonKind::Search {
                    self.text(from_b, a, ignores_case);
                }
                if kind == ComparisonKind::Text {
                    // In a field of fixed length, a shorter text needs its terminator.
                    self.text(from_a, &[b, b"\0"].concat(), ignores_case);
                    self.text(from_b, &[a, b"\0"].concat(), ignores_case);
                }
                if matches!(kind, ComparisonKind::Memory | ComparisonKind::Text) {
                    self.pairs_of_digits(from_a, b);
                    self.pairs_of_digits(from_b, a);
                }
                if bytes > 8 {
                    let reversed = |side: &[u8]| side.iter().rev().copied().collect::<Vec<u8>>();
                    self.text(&reversed(from_a), &reversed(b), false);
                    self.text(&reversed(from_b), &reversed(a), false);
                }
            }
            _ => {}
        }
    }

    /// Adds edits that make two integers equal or change their order.
    fn integer(&mut self, from: u64, to: u64, bytes: usize, kind: ComparisonKind) {
        let wanted = wanted(from, to, bytes, kind);
        wanted.iter().for_each(|to| self.number(from, *to, bytes, "copy"));
        if from == 0 && (1..256).contains(&to) && kind == ComparisonKind::Equal {
            // The end of a text: append the next byte.
            self.append(&[to as u8], "copy");
        }
        if kind != ComparisonKind::Float {
            self.digits(from, &wanted);
        }
    }

    /// Replaces one number with the other, in every width and byte order.
    fn number(&mut self, from: u64, to: u64, bytes: usize, op: &'static str) {
        let mut width = bytes;
        loop {
            let bits = 8 * width as u32;
            let fits = |value: u64| is_extended(value, bits, 8 * bytes as u32);
            if !fits(from) {
                return;
            }
            if fits(to) {
                let [old, new] = [from, to].map(|value| value.to_le_bytes());
                let (old, new) = (&old[..width], &new[..width]);
                self.replace(old, new, op);
                if width > 1 {
                    let [old, new] =
                        [old, new].map(|side| side.iter().rev().copied().collect::<Vec<u8>>());
                    self.replace(&old, &new, op);
                } else if old[0].is_ascii_alphabetic() && new[0].is_ascii_alphabetic() {
                    // A letter that was folded.
                    self.replace(&[old[0] ^ 0x20], &[new[0] ^ 0x20], op);
                    self.replace(&[old[0] ^ 0x20], new, op);
                }
            }
            width = match width {
                1 => return,
                2 => 1,
                3..=4 => 2,
                _ => 4,
            };
        }
    }

    fn replace(&mut self, old: &[u8], new: &[u8], op: &'static str) {
        for at in self.find(old, false) {
            self.add(at, old.len(), new, op);
        }
    }

    /// Replaces a number written in digits.
    fn digits(&mut self, from: u64, wanted: &[u64]) {
        for write in [decimal as fn(u64) -> String, hexadecimal] {
            let old = write(from);
            // A single digit is too common.
            if old.len() < 2 || old.len() > DIGITS {
                continue;
            }
            for at in self.find(old.as_bytes(), true) {
                for new in wanted.iter().copied().map(write) {
                    self.add(at, old.len(), new.as_bytes(), "digits");
                }
            }
        }
    }

    /// Replaces the beginning of `from` with prefixes of `to`, because the compared length is unknown.
    fn prefixes(&mut self, from: &[u8], to: &[u8]) {
        let Some((2.., places)) = self.beginnings(from, false) else { return };
        for length in PREFIXES.into_iter().filter(|length| *length < to.len()) {
            for at in places.iter().copied().take(MOST_OPEN) {
                self.add(at, length.min(self.input.len() - at), &to[..length], "text");
            }
        }
    }

    /// Replaces bytes written as two hexadecimal digits each. Keeps any separators between the digits.
    fn pairs_of_digits(&mut self, from: &[u8], to: &[u8]) {
        if from.len() != to.len() || !(FEWEST_PAIRS..=LONGEST_ESCAPED).contains(&to.len()) {
            return;
        }
        let first = &from[..FEWEST_PAIRS];
        for at in self.find(hexadecimal_pairs(first).as_bytes(), true) {
            let mut digits = hexadecimal_pairs(to).into_bytes().into_iter().peekable();
            let mut written = Vec::new();
            for byte in self.input[at..].iter().take(to.len() * BYTES_OF_PAIR) {
                match byte.is_ascii_hexdigit() {
                    true => written.extend(digits.next()),
                    false => written.push(*byte),
                }
                if digits.peek().is_none() {
                    break;
                }
            }
            if digits.next().is_none() {
                self.add(at, written.len(), &written, "digits");
            }
        }
    }

    /// Length and positions of the longest prefix of an operand that is found in the input. The target may have
    /// truncated or changed the rest of its copy.
    fn beginnings(&mut self, what: &[u8], ignores_case: bool) -> Option<(usize, Vec<usize>)> {
        let mut length = what.len();
        while length > 0 {
            let places = self.find(&what[..length], ignores_case);
            if !places.is_empty() {
                return Some((length, places));
            }
            length = if length > 4 { length / 2 } else { length - 1 };
        }
        None
    }

    /// Replaces `from` with `to`, or inserts `to` before it.
    fn text(&mut self, from: &[u8], to: &[u8], ignores_case: bool) {
        if from.is_empty() || to.is_empty() {
            // An empty operand may be the end of the input.
            if !to.is_empty() {
                self.append(to, "text");
            }
            return;
        }
        let Some((length, places)) = self.beginnings(from, ignores_case) else { return };
        let escaped = percent(to);
        let is_escaped = escaped.len() != to.len() && to.len() <= LONGEST_ESCAPED;
        for at in places {
            self.add(at, to.len().min(self.input.len() - at), to, "text");
            self.add(at, length, to, "text");
            self.add(at, 0, to, "text");
            if is_escaped {
                self.add(at, length, &escaped, "text");
            }
        }
    }

    /// The first positions of an operand in the colored input.
    fn find(&mut self, what: &[u8], ignores_case: bool) -> Vec<usize> {
        if self.searched > MOST_SEARCHED {
            return Vec::new();
        }
        let places = places_of(what, self.colored, ignores_case);
        self.searched += match places.last() {
            Some(last) if places.len() == MOST_PLACES => *last,
            _ => self.colored.len(),
        };
        places
    }

    /// Adds bytes at the end of the input, or of each message.
    fn append(&mut self, inserted: &[u8], op: &'static str) {
        let ends = self.bodies.iter().map(|body| body.end).take(MOST_PLACES);
        let ends: Vec<usize> = ends.collect();
        let end = ends.is_empty().then_some(self.input.len());
        end.into_iter().chain(ends).for_each(|end| self.add(end, 0, inserted, op));
    }

    fn add(&mut self, at: usize, mut removed: usize, inserted: &[u8], op: &'static str) {
        let is_of_list = !self.bodies.is_empty();
        if is_of_list {
            let body = self.bodies.get(self.bodies.partition_point(|body| body.end < at));
            let Some(body) = body.filter(|body| body.start <= at) else { return };
            removed = removed.min(body.end - at);
        }
        let changes = self.input[at..at + removed] != *inserted;
        let is_full = self.edits.len() >= MOST_EDITS;
        if changes && !is_full && self.known.insert((at, removed, inserted.into())) {
            let (inserted, place, kind) = (inserted.into(), self.at, self.kind);
            self.edits.push(Edit { at, removed, inserted, is_of_list, op, place, kind });
        }
    }
}

/// The first [`MOST_PLACES`] positions of `what` in the input; occurrences may overlap.
fn places_of(what: &[u8], input: &[u8], ignores_case: bool) -> Vec<usize> {
    let Some(&first) = what.first() else { return Vec::new() };
    let window = |at: usize| input.get(at..at + what.len());
    if ignores_case {
        let firsts = memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), input);
        let is_equal = |at: &usize| window(*at).is_some_and(|part| part.eq_ignore_ascii_case(what));
        firsts.filter(is_equal).take(MOST_PLACES).collect()
    } else {
        let is_equal = |at: &usize| window(*at) == Some(what);
        memchr_iter(first, input).filter(is_equal).take(MOST_PLACES).collect()
    }
}

/// Values of a number for each possible result. First the value just beyond the other operand, which flips `<` as
/// well as `<=`. For floating-point numbers, first the equal value; adjacent bit patterns are adjacent numbers.
fn wanted(from: u64, to: u64, bytes: usize, kind: ComparisonKind) -> Vec<u64> {
    let [above, below] = [to.wrapping_add(1), to.wrapping_sub(1)];
    let signed = |value: u64| (value << (64 - 8 * bytes.clamp(1, 8))).cast_signed();
    let is_above = match kind {
        ComparisonKind::Equal => return vec![to],
        ComparisonKind::Float => return vec![to, above, below],
        ComparisonKind::Signed => signed(from) > signed(to),
        _ => from > to,
    };
    if is_above { vec![below, to, above] } else { vec![above, to, below] }
}

/// Whether a number of `whole` bits is a number of `bits` bits, zero-extended or sign-extended.
fn is_extended(value: u64, bits: u32, whole: u32) -> bool {
    if bits >= whole.min(64) {
        return true;
    }
    let all = u64::MAX >> (64 - whole.min(64));
    value >> bits == 0 || value >> (bits - 1) == all >> (bits - 1)
}

fn hexadecimal_pairs(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encodes all but unreserved characters for a URL, such as `%2f` (RFC 3986, section 2.1).
fn percent(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            escaped.push(*byte);
        } else {
            escaped.extend(format!("%{byte:02x}").into_bytes());
        }
    }
    escaped
}

fn decimal(value: u64) -> String {
    value.to_string()
}

fn hexadecimal(value: u64) -> String {
    format!("{value:x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;
    use proptest::prelude::*;
    use rand_core::SeedableRng;

    /// The results of the edits for one comparison of two values.
    fn solved(input: &[u8], how: u32, a: u64, b: u64, arena: &[u8]) -> Vec<Vec<u8>> {
        let mut entry = [7u32.to_le_bytes(), how.to_le_bytes()].concat();
        entry.extend([a, b].map(u64::to_le_bytes).concat());
        let log = ComparisonLog::new(&entry, arena, false);
        let edits = edits(
            Logged { input, log, colored: input, colored_log: log, messages: false },
            |_, _| true,
        );
        let apply = |edit: &Edit| {
            let mut out = Vec::new();
            edit.apply(input, &mut out);
            out
        };
        edits.iter().map(apply).collect()
    }

    const CONSTANT_B: u32 = 2 << 16;

    #[test]
    fn copies_of_integers_are_replaced_in_every_encoding() {
        let has = |all: &[Vec<u8>], one: &[u8]| all.iter().any(|other| other == one);
        let little = solved(b"abcdefgh", 4 | CONSTANT_B, 0x6564_6362, 0x3433_3231, &[]);
        assert!(has(&little, b"a1234fgh"), "{little:?}");
        let big = solved(b"abcdefgh", 4 | CONSTANT_B, 0x6263_6465, 0x3132_3334, &[]);
        assert!(has(&big, b"a1234fgh"), "{big:?}");
        // A byte extended with zeros or with its sign.
        assert!(has(&solved(b"abc", 4 | CONSTANT_B, 0x62, 0x51, &[]), b"aQc"));
        assert!(has(&solved(b"a\xf0c", 4 | CONSTANT_B, 0xffff_fff0, 0xffff_ff81, &[]), b"a\x81c"));
        // Orders: values on both sides of the other operand.
        let order = solved(b"abc", 1 | 1 << 8 | CONSTANT_B, 0x62, 0x51, &[]);
        assert!([b"aQc", b"aRc", b"aPc"].iter().all(|one| has(&order, *one)), "{order:?}");
        // A letter that was folded.
        assert!(has(
            &solved(b"aBc", 4 | CONSTANT_B, u64::from(b'b'), u64::from(b'q'), &[]),
            b"aQc"
        ));
        // Written with digits.
        assert!(has(&solved(b"n=1234;", 8 | CONSTANT_B, 1234, 987_654, &[]), b"n=987654;"));
        assert!(has(&solved(b"0xAbC!", 8 | CONSTANT_B, 0xabc, 0x12345, &[]), b"0x12345!"));
        // A constant does not come from the input.
        assert!(solved(b"QQQQ", 1 | 3 << 16, 0x51, 0x52, &[]).is_empty());
    }

    #[test]
    fn texts_are_put_over_and_between() {
        let place = |at: u64, length: u64| at | length << 32;
        let arena = b"versionkeyword";
        let results = solved(b"a version=1", 6 << 8, place(0, 7), place(7, 7), arena);
        assert!(results.contains(&b"a keyword=1".to_vec()), "{results:?}");
        let short = solved(b"a version=1", 6 << 8, place(0, 7), place(7, 3), arena);
        for wanted in [&b"a keysion=1"[..], b"a key=1", b"a keyversion=1"] {
            assert!(short.contains(&wanted.to_vec()), "{short:?}");
        }
        // A shorter text in a field, and one too long for the input.
        assert!(short.contains(&b"a key\0ion=1".to_vec()), "{short:?}");
        let missing = solved(b"a version=", 6 << 8, place(0, 0), place(7, 7), arena);
        assert!(missing.contains(&b"a version=keyword".to_vec()), "{missing:?}");
        let next = solved(b"12", 4 | CONSTANT_B, 0, u64::from(b','), &[]);
        assert_eq!(next, [b"12,".to_vec()]);
    }

    #[test]
    fn texts_are_escaped_and_bytes_are_written_with_pairs_of_digits() {
        let place = |at: u64, length: u64| at | length << 32;
        let arena = b"namea&b c\x12\xab\x34\xcd\x56\x78\x9a\xbc";
        let escaped = solved(b"?name=1", 6 << 8, place(0, 4), place(4, 5), arena);
        assert!(escaped.contains(&b"?a%26b%20c=1".to_vec()), "{escaped:?}");
        let written = solved(b"id 12Ab-34cd!", 5 << 8, place(9, 4), place(13, 4), arena);
        assert!(written.contains(&b"id 5678-9abc!".to_vec()), "{written:?}");
        // Too few digits.
        let short = solved(b"id 12Ab-34", 5 << 8, place(9, 4), place(13, 4), arena);
        assert!(!short.iter().any(|one| one.starts_with(b"id 5678")), "{short:?}");
    }

    #[test]
    fn every_case_of_a_switch_is_tried() {
        let cases: Vec<u8> =
            [0x51u64, 0x52, 0x62].iter().flat_map(|case| case.to_le_bytes()).collect();
        let results = solved(b"abc", 4 | 4 << 8, 0x62, 24 << 32, &cases);
        assert!(results.contains(&b"aQc".to_vec()) && results.contains(&b"aRc".to_vec()));
    }

    #[test]
    fn colors_tell_a_copy_from_what_looks_like_one() {
        let (input, mut colored) = (*b"xxxx12 ,\0", *b"xxxx12 ,\0");
        colorize(&mut colored, &mut ffuzz_mutate::Rng::seed_from_u64(1));
        assert!(colored[..4].iter().all(|byte| byte.is_ascii_lowercase() && *byte != b'x'));
        assert!(colored[4..6].iter().all(u8::is_ascii_digit) && colored[6..8] == *b" ,");
        assert!((0..6).chain([8]).all(|at| colored[at] != input[at]), "{colored:?}");
        let own = |bytes: &[u8]| {
            let mut log = OwnLog::default();
            let value = u16::from_le_bytes([bytes[2], bytes[3]]);
            log.add_integers(1, ComparisonKind::Equal, 2, value.into(), 0x4241);
            log
        };
        let (plain, other) = (own(&input), own(b"abcdefghi"));
        let run = Logged {
            input: &input,
            log: plain.view(),
            colored: b"abcdefghi",
            colored_log: other.view(),
            messages: false,
        };
        let edits = edits(run, |_, _| true);
        assert_eq!(edits.len(), 1, "{edits:?}");
        assert_eq!((edits[0].at, &*edits[0].inserted), (2, &b"AB"[..]));
    }

    #[test]
    fn a_long_input_and_many_comparisons_do_not_take_for_ever() {
        let input = vec![b'x'; 1 << 20];
        let mut log = OwnLog::default();
        for number in 0..65_536_u64 {
            let site = number as u32 / 16;
            log.add_integers(site, ComparisonKind::Unsigned, 8, number << 40 | 0xabcd, number);
        }
        let began = std::time::Instant::now();
        let log = log.view();
        let run = Logged { input: &input, log, colored: &input, colored_log: log, messages: false };
        assert!(edits(run, |_, _| true).is_empty());
        // Without the limit this takes half an hour.
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn edits_stay_inside(input: Vec<u8>, how in 0u32..0x8_0811, a: u64, b: u64, arena: Vec<u8>) {
            for place in [a, b, a & 0xf_0000_000f, u64::from(input.first().copied().unwrap_or(0))] {
                for result in solved(&input, how, place, b & 0xf_0000_000f, &arena) {
                    prop_assert!(result != input);
                }
            }
        }
    }
}
