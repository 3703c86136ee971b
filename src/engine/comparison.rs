//! What a target compares: the log of one run (`runtime/channel.h`, `struct ffuzz_log`).
//!
//! Only a run that asks for it has a log, and such a run counts no edges. The target writes it: nothing here trusts
//! it beyond its bounds.

/// Bytes of an entry.
const ENTRY: usize = 24;

/// What is compared, and how.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ComparisonKind {
    /// Two integers, `==` or `!=`.
    Equal,
    /// The order of two integers.
    Unsigned,
    Signed,
    /// Two floating-point numbers: 4 bytes, or those of a double.
    Float,
    /// An integer with the cases of a `switch`: the second side holds them, 8 bytes each.
    Switch,
    /// Blocks of memory; of `memmem` the second is what is looked for.
    Memory,
    /// Texts, without the NUL at their end.
    Text,
    /// The second text is looked for in the first.
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operand<'a> {
    /// An integer of [`Comparison::bytes`] bytes, or the bits of a floating-point number.
    Value(u64),
    /// Memory, text, an integer of more than eight bytes (the lowest first) or the cases of a `switch`. As much as was
    /// logged of it; empty if there was no room.
    Bytes(&'a [u8]),
}

/// A comparison of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Comparison<'a> {
    /// Its number in the target's table of sites.
    pub site: u32,
    pub kind: ComparisonKind,
    /// Bytes of an integer or floating-point number, 1 to 16.
    pub bytes: usize,
    /// The first, the second side is a constant of the program.
    pub constant: [bool; 2],
    /// Large and small letters are the same.
    pub ignores_case: bool,
    pub a: Operand<'a>,
    pub b: Operand<'a>,
}

/// The comparisons of a run, in order. A site in a loop has its first 16 occurrences, then those whose number is a
/// power of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonLog<'a> {
    entries: &'a [u8],
    arena: &'a [u8],
    is_cut: bool,
}

impl<'a> ComparisonLog<'a> {
    /// `entries`: 24 bytes each. `is_cut`: there were more than had room.
    #[must_use]
    pub fn new(entries: &'a [u8], arena: &'a [u8], is_cut: bool) -> Self {
        Self { entries, arena, is_cut }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() / ENTRY
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The run compared more than had room.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Those that can be understood.
    pub fn iter(&self) -> impl Iterator<Item = Comparison<'a>> + use<'a> {
        let arena = self.arena;
        self.entries.chunks_exact(ENTRY).filter_map(move |entry| comparison(entry, arena))
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
    let (constant, ignores_case) = ([flag(1), flag(2)], flag(4));
    Some(Comparison { site, kind, bytes, constant, ignores_case, a, b })
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
        // What lies outside is empty.
        assert_eq!((seen[4].b, seen[4].ignores_case), (Operand::Bytes(&[]), true));
    }

    proptest! {
        #[test]
        fn anything_is_read(entries: Vec<u8>, arena: Vec<u8>) {
            let log = ComparisonLog::new(&entries, &arena, false);
            prop_assert!(log.iter().count() <= log.len());
        }
    }
}
