//! What a target compares: the log of one run (`runtime/channel.h`, `struct ffuzz_log`).
//!
//! Only a run that requests a log has one, and such a run counts no edges. The target writes the log, so every
//! position and length in it is checked.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

/// Size of an entry, bytes.
const ENTRY: usize = 24;

/// The kind of operands and of comparison.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ComparisonKind {
    /// Two integers, `==` or `!=`.
    Equal,
    /// Two integers, by order.
    Unsigned,
    Signed,
    /// Two floating-point numbers: `float` if 4 bytes, otherwise `double`.
    Float,
    /// An integer and the cases of a `switch`; the second operand holds the cases, 8 bytes each.
    Switch,
    /// Two blocks of memory; for `memmem` the second one is the needle.
    Memory,
    /// Two strings, without the terminating NUL.
    Text,
    /// A search for the second string in the first.
    Search,
}

impl ComparisonKind {
    const ALL: [Self; 8] = [
        Self::Equal,
        Self::Unsigned,
        Self::Signed,
        Self::Float,
        Self::Switch,
        Self::Memory,
        Self::Text,
        Self::Search,
    ];
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operand<'a> {
    /// An integer of [`Comparison::bytes`] bytes, or the bits of a floating-point number.
    Value(u64),
    /// Memory, text, an integer of more than eight bytes (little endian) or the cases of a `switch`. Only the logged
    /// part of them; empty if the log had no room.
    Bytes(&'a [u8]),
}

/// A comparison of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Comparison<'a> {
    /// Its number in the target's table of sites.
    pub site: u32,
    pub kind: ComparisonKind,
    /// Size of an integer or floating-point number, 1 to 16 bytes; 0 for memory and text.
    pub bytes: usize,
    /// For each operand: true if it is a constant of the program.
    pub constant: [bool; 2],
    /// True if upper and lower case compare equal.
    pub ignores_case: bool,
    /// True for a call that has the signature of a comparison function but may be something else.
    pub is_guess: bool,
    pub a: Operand<'a>,
    pub b: Operand<'a>,
}

impl Comparison<'_> {
    /// False for a guess ([`Comparison::is_guess`]) with an operand that is neither constant, nor text, nor part of
    /// the input.
    #[must_use]
    pub fn is_plausible(&self, input: &[u8]) -> bool {
        let is_text =
            |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, b'\t'..=b'\r' | b' '..=b'~'));
        let is_of = |operand: Operand<'_>| match operand {
            Operand::Bytes(bytes) => {
                is_text(bytes) || input.windows(bytes.len()).any(|part| part == bytes)
            }
            Operand::Value(_) => true,
        };
        !self.is_guess || (self.constant[0] || is_of(self.a)) && (self.constant[1] || is_of(self.b))
    }

    /// Key by which solvers distinguish comparisons: the site, plus the constant if exactly one operand is constant
    /// memory or text. Many constants may be compared at one site, for instance in a helper function.
    #[must_use]
    pub fn key(&self) -> u32 {
        let constant = match (self.constant, self.a, self.b) {
            ([true, false], Operand::Bytes(constant), Operand::Bytes(_))
            | ([false, true], Operand::Bytes(_), Operand::Bytes(constant)) => constant,
            _ => return self.site,
        };
        let mut hasher = FxHasher::default();
        (self.site, constant).hash(&mut hasher);
        (hasher.finish() >> 32) as u32
    }

    /// The result on which the program branches: equality, order, or the index of the `switch` case.
    #[must_use]
    pub fn result(&self) -> u32 {
        match (self.a, self.b) {
            (Operand::Value(value), Operand::Bytes(cases)) => {
                let is_case = |case: &[u8]| case == value.to_le_bytes();
                cases.chunks_exact(8).position(is_case).map_or(u32::MAX, |place| place as u32)
            }
            (Operand::Value(a), Operand::Value(b)) => match self.kind {
                ComparisonKind::Signed => {
                    let unused = 64 - 8 * self.bytes.clamp(1, 8) as u32;
                    let signed = |value: u64| (value << unused).cast_signed();
                    signed(a).cmp(&signed(b)) as u32
                }
                ComparisonKind::Float => self.order_of_floats(a, b),
                ComparisonKind::Equal => u32::from(a == b),
                _ => a.cmp(&b) as u32,
            },
            (Operand::Bytes(a), Operand::Bytes(b)) => match self.kind {
                ComparisonKind::Search => {
                    u32::from(a.windows(b.len().max(1)).any(|part| part == b))
                }
                _ if self.ignores_case => u32::from(a.eq_ignore_ascii_case(b)),
                _ => u32::from(a == b),
            },
            (Operand::Bytes(_), Operand::Value(_)) => 0,
        }
    }

    fn order_of_floats(&self, a: u64, b: u64) -> u32 {
        let number = |bits: u64| match self.bytes {
            4 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        number(a).partial_cmp(&number(b)).map_or(2, |order| order as u32)
    }
}

/// The comparisons of a run, in order. A site in a loop is logged for its first 16 occurrences, then for those whose
/// number is a power of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonLog<'a> {
    entries: &'a [u8],
    arena: &'a [u8],
    is_cut: bool,
    is_partial: bool,
}

impl<'a> ComparisonLog<'a> {
    /// `entries`: 24 bytes each. `is_cut`: the log was too small for the run.
    #[must_use]
    pub fn new(entries: &'a [u8], arena: &'a [u8], is_cut: bool) -> Self {
        Self { entries, arena, is_cut, is_partial: false }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() / ENTRY
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the log was too small for all comparisons of the run.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// True for a log of AFL++: it omits equal integers, and holds more memory than the target compares. A missing
    /// comparison may therefore have a new result.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Copies the log into one that outlives the run.
    pub fn copy_to(&self, own: &mut OwnLog) {
        own.clear();
        own.entries.extend_from_slice(self.entries);
        own.arena.extend_from_slice(self.arena);
        (own.is_cut, own.is_partial) = (self.is_cut, self.is_partial);
    }

    /// Hash of the sites and results in order, without the operands. Two runs with the same hash have taken the same
    /// path, as far as comparisons decide it.
    #[must_use]
    pub fn path(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.iter().for_each(|comparison| (comparison.site, comparison.result()).hash(&mut hasher));
        hasher.finish()
    }

    /// Iterates over the valid entries; malformed ones are skipped.
    pub fn iter(&self) -> impl Iterator<Item = Comparison<'a>> + use<'a> {
        let arena = self.arena;
        self.entries.chunks_exact(ENTRY).filter_map(move |entry| comparison(entry, arena))
    }
}

/// An owned log: for a target that is not a process, or converted from another format.
#[derive(Clone, Debug, Default)]
pub struct OwnLog {
    entries: Vec<u8>,
    arena: Vec<u8>,
    is_cut: bool,
    is_partial: bool,
}

impl OwnLog {
    /// A log of `Equal` comparisons of 4-byte integers, each given as (site, a, b).
    #[must_use]
    pub fn of_equalities(entries: &[(u32, u64, u64)]) -> Self {
        let mut log = Self::default();
        for (site, a, b) in entries {
            log.add_variables(*site, ComparisonKind::Equal, 4, *a, *b);
        }
        log
    }
}

impl OwnLog {
    /// See [`ComparisonLog::is_partial`].
    #[must_use]
    pub fn partial() -> Self {
        Self { is_partial: true, ..Self::default() }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
        self.is_cut = false;
    }

    /// Marks the log as incomplete, see [`ComparisonLog::is_cut`].
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Adds two integers of `bytes` bytes, at most 8; `b` is a constant of the program.
    pub fn add_integers(&mut self, site: u32, kind: ComparisonKind, bytes: u8, a: u64, b: u64) {
        self.add(site, u32::from(bytes) | (kind as u32) << 8 | 2 << 16, [a, b]);
    }

    /// Adds two integers of `bytes` bytes, at most 8; neither is a constant.
    pub fn add_variables(&mut self, site: u32, kind: ComparisonKind, bytes: u8, a: u64, b: u64) {
        self.add(site, u32::from(bytes) | (kind as u32) << 8, [a, b]);
    }

    /// Adds two blocks of memory or two strings.
    pub fn add_bytes(&mut self, site: u32, kind: ComparisonKind, a: &[u8], b: &[u8]) {
        self.add_long_integers(site, kind, 0, [a, b]);
    }

    /// Adds two integers of more than eight bytes, little endian.
    pub fn add_long_integers(
        &mut self,
        site: u32,
        kind: ComparisonKind,
        bytes: u8,
        sides: [&[u8]; 2],
    ) {
        let sides = sides.map(|side| {
            let at = self.arena.len() as u64;
            self.arena.extend_from_slice(side);
            at | (side.len() as u64) << 32
        });
        self.add(site, u32::from(bytes) | (kind as u32) << 8, sides);
    }

    fn add(&mut self, site: u32, how: u32, sides: [u64; 2]) {
        self.entries.extend([site, how].map(u32::to_le_bytes).concat());
        self.entries.extend(sides.map(u64::to_le_bytes).concat());
    }

    #[must_use]
    pub fn view(&self) -> ComparisonLog<'_> {
        let Self { is_partial, .. } = *self;
        ComparisonLog { is_partial, ..ComparisonLog::new(&self.entries, &self.arena, self.is_cut) }
    }
}

fn comparison<'a>(entry: &[u8], arena: &'a [u8]) -> Option<Comparison<'a>> {
    let word = |at: usize| Some(u32::from_le_bytes(entry.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
    let (site, how, a, b) = (word(0)?, word(4)?, long(8)?, long(16)?);
    let kind = *ComparisonKind::ALL.get((how >> 8 & 0xff) as usize)?;
    let bytes = (how & 0xff) as usize;
    let part = |place: u64| {
        let (start, length) = ((place & 0xffff_ffff) as usize, (place >> 32) as usize);
        let end = start.checked_add(length);
        Operand::Bytes(end.and_then(|end| arena.get(start..end)).unwrap_or_default())
    };
    let value = |value: u64| {
        let unused = 64 - 8 * bytes.clamp(1, 8) as u32;
        Operand::Value(value << unused >> unused)
    };
    let is_number = (1..=8).contains(&bytes);
    let (a, b) = match kind {
        ComparisonKind::Switch if is_number => (value(a), part(b)),
        ComparisonKind::Memory | ComparisonKind::Text | ComparisonKind::Search => {
            (part(a), part(b))
        }
        _ if is_number => (value(a), value(b)),
        ComparisonKind::Equal | ComparisonKind::Unsigned | ComparisonKind::Signed => {
            (part(a), part(b))
        }
        ComparisonKind::Float | ComparisonKind::Switch => return None,
    };
    let flag = |bit: u32| how >> 16 & bit != 0;
    let (constant, ignores_case, is_guess) = ([flag(1), flag(2)], flag(4), flag(8));
    Some(Comparison { site, kind, bytes, constant, ignores_case, is_guess, a, b })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(site: u32, how: u32, a: u64, b: u64) -> Vec<u8> {
        let words = [site.to_le_bytes(), how.to_le_bytes()].concat();
        [words, a.to_le_bytes().into(), b.to_le_bytes().into()].concat()
    }

    #[test]
    fn entries_are_read() {
        let place = |at: u64, length: u64| at | length << 32;
        let entries = [
            entry(7, 4 | 2 << 16, 0xffff_ffff_0000_0041, 0x42),
            entry(8, 5 << 8, place(0, 3), place(3, 2)),
            entry(9, 1 | 4 << 8, 0x141, place(8, 16)),
            entry(10, 16 | 1 << 8, place(8, 16), place(8, 16)),
            entry(11, 6 << 8 | 4 << 16, place(0, 9), place(1 << 31, 1 << 31)),
        ]
        .concat();
        let arena: Vec<u8> = (0..24).collect();
        let log = ComparisonLog::new(&entries, &arena, false);
        let seen: Vec<_> = log.iter().collect();
        assert_eq!((log.len(), seen.len()), (5, 5));
        assert_eq!((seen[0].a, seen[0].b), (Operand::Value(0x41), Operand::Value(0x42)));
        assert_eq!((seen[0].constant, seen[0].kind), ([false, true], ComparisonKind::Equal));
        let bytes = |range: std::ops::Range<usize>| Operand::Bytes(&arena[range]);
        assert_eq!((seen[1].a, seen[1].b), (bytes(0..3), bytes(3..5)));
        assert_eq!((seen[2].a, seen[2].b), (Operand::Value(0x41), bytes(8..24)));
        assert_eq!((seen[3].a, seen[3].bytes), (bytes(8..24), 16));
        // An operand outside the arena is empty.
        assert_eq!((seen[4].b, seen[4].ignores_case), (Operand::Bytes(&[]), true));
    }

    #[test]
    fn a_constant_of_the_program_is_part_of_the_key() {
        let place = |at: u64, length: u64| at | length << 32;
        let arena = b"inputvaluename";
        let key = |constants: u32, a: u64, b: u64| {
            let entry = entry(7, 6 << 8 | constants << 16, a, b);
            ComparisonLog::new(&entry, arena, false).iter().next().unwrap().key()
        };
        let (input, value, name) = (place(0, 5), place(5, 5), place(10, 4));
        assert_eq!(key(2, input, value), key(2, name, value));
        assert_eq!(key(2, input, value), key(1, value, input), "on either side");
        assert_ne!(key(2, input, value), key(2, input, name));
        // With two constants or none, the key is the site.
        assert_eq!([key(0, input, value), key(3, input, name)], [7, 7]);
        let numbers = entry(9, 4 | 2 << 16, 1, 2);
        assert_eq!(ComparisonLog::new(&numbers, arena, false).iter().next().unwrap().key(), 9);
    }

    proptest! {
        #[test]
        fn anything_is_read(entries: Vec<u8>, arena: Vec<u8>) {
            let log = ComparisonLog::new(&entries, &arena, false);
            prop_assert!(log.iter().count() <= log.len());
        }
    }
}
