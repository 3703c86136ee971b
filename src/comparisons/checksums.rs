//! Fields of an input that must equal a value the program calculates from other bytes: checksums, digests, copies of
//! another field. A changed input is repaired with the log of its run, which has the value of the field and the
//! expected value.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::log::{Comparison, ComparisonKind, ComparisonLog, Operand};
use crate::results::{Occurrences, Place};

/// Minimum length of a field, bytes: shorter ones are found in every input.
const SHORTEST: usize = 2;
/// Maximum number of positions in the input considered for a field.
const MOST_PLACES: usize = 4;
/// Maximum number of positions for a number in text, whose radix and width are unknown.
const MOST_TEXTS: usize = 12;
/// Limit of the suspects of one log: no further site is added beyond it.
const MOST_SUSPECTS: usize = 16;
/// Minimum number of bytes that affect the calculated value of a field: fewer may be a coincidence.
const FEWEST_MOVERS: usize = 3;
/// Maximum number of attempts to find the field of a site.
const MOST_TRIED: u32 = 3;

/// The field that a comparison checks, and its encoding in an input.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Field {
    /// Index of the operand that is the field; the other operand is calculated.
    pub side: usize,
    pub encoding: Encoding,
    /// Position of the field in the input where it was found.
    pub at: usize,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Encoding {
    Little(usize),
    Big(usize),
    /// Memory, unchanged.
    Bytes,
    /// A number in text, zero-padded to the width: for instance octal in a tar header.
    Digits {
        radix: u32,
        width: usize,
        upper: bool,
    },
}

impl Field {
    /// False for a stored field that no search can have found.
    fn is_possible(&self) -> bool {
        let is_encoding = match self.encoding {
            Encoding::Little(len) | Encoding::Big(len) => (1..=8).contains(&len),
            Encoding::Bytes => true,
            Encoding::Digits { radix, width, .. } => {
                RADICES.iter().any(|(known, _)| *known == radix) && width <= ffuzz_mutate::MAX_INPUT
            }
        };
        self.side < 2 && is_encoding
    }
}

/// Radices of numbers in text, and whether letters are upper case.
const RADICES: [(u32, bool); 4] = [(10, false), (8, false), (16, false), (16, true)];
/// Hexadecimal digits of one, two and four bytes.
const FIXED_WIDTHS: [usize; 3] = [2, 4, 8];
/// Minimum number of digits of a number in text.
const FEWEST_DIGITS: usize = 2;

fn digits(value: u64, radix: u32, upper: bool, width: usize) -> String {
    match (radix, upper) {
        (8, _) => format!("{value:0width$o}"),
        (16, false) => format!("{value:0width$x}"),
        (16, true) => format!("{value:0width$X}"),
        _ => format!("{value:0width$}"),
    }
}

impl Encoding {
    /// Encodes an operand as in the input. None if it does not fit.
    #[must_use]
    pub fn write(self, operand: Operand<'_>) -> Option<Vec<u8>> {
        match (self, operand) {
            (Self::Bytes, Operand::Bytes(bytes)) => Some(bytes.to_vec()),
            (Self::Little(len) | Self::Big(len), Operand::Value(value)) => {
                let fits = len == 8 || value >> (8 * len) == 0;
                let mut bytes = value.to_le_bytes()[..len].to_vec();
                if matches!(self, Self::Big(_)) {
                    bytes.reverse();
                }
                fits.then_some(bytes)
            }
            (Self::Digits { radix, width, upper }, Operand::Value(value)) => {
                let text = digits(value, radix, upper, width);
                (text.len() == width).then(|| text.into_bytes())
            }
            (_, _) => None,
        }
    }

    /// Another value for a field, to test which operand follows it. None if the bytes do not have this encoding.
    #[must_use]
    pub fn change(self, field: &[u8]) -> Option<Vec<u8>> {
        let Self::Digits { radix, upper, .. } = self else {
            return Some(field.iter().map(|byte| !byte).collect());
        };
        u64::from_str_radix(str::from_utf8(field).ok()?, radix).ok()?;
        let mut changed = field.to_vec();
        let [.., last_but_one, last] = &mut changed[..] else { return None };
        // The last digit alone does not distinguish radices, and without a letter neither upper and lower case.
        *last_but_one = if *last_but_one == b'1' { b'2' } else { b'1' };
        if radix == 16 {
            let letters = if upper { [b'A', b'B'] } else { [b'a', b'b'] };
            *last = letters[usize::from(*last == letters[0])];
        }
        Some(changed)
    }
}

/// A comparison with equal operands that may be a field and its calculated value.
#[derive(Clone, Debug)]
pub struct Suspect {
    pub place: Place,
    /// Positions of the operand in the input.
    pub at: Vec<usize>,
    pub len: usize,
    pub encoding: Encoding,
}

/// Known fields and failed attempts, by site.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Repairs {
    fields: HashMap<u32, Field>,
    tried: HashMap<u32, u32>,
}

impl Repairs {
    /// False for stored fields that no search can have found.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.fields.values().all(Field::is_possible)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Number of sites with a field.
    #[must_use]
    pub fn known(&self) -> u32 {
        u32::try_from(self.fields.len()).unwrap_or(u32::MAX)
    }

    pub fn add(&mut self, site: u32, field: Field) {
        self.fields.insert(site, field);
    }

    /// Counts an examination of a site without result.
    pub fn failed(&mut self, site: u32) {
        *self.tried.entry(site).or_default() += 1;
    }

    /// Minimum number of bytes that must affect the calculated value for the site to have a field. Only one after a
    /// failed examination: a text may be as short as its checksum, and a second time is no coincidence.
    #[must_use]
    pub fn fewest_movers(&self, site: u32) -> usize {
        if self.tried.contains_key(&site) { 1 } else { FEWEST_MOVERS }
    }

    /// True if the run reaches a site with a field.
    #[must_use]
    pub fn concern(&self, log: ComparisonLog<'_>) -> bool {
        !self.is_empty() && log.iter().any(|seen| self.fields.contains_key(&seen.site))
    }

    /// Comparisons of a run that may have a field not found yet.
    #[must_use]
    pub fn suspects(&self, log: ComparisonLog<'_>, input: &[u8]) -> Vec<Suspect> {
        let (mut suspects, mut occurrences) = (Vec::new(), Occurrences::default());
        for comparison in log.iter() {
            let place = occurrences.place(&comparison);
            let is_open = !self.fields.contains_key(&place.site)
                && self.tried.get(&place.site).is_none_or(|tried| *tried < MOST_TRIED)
                && !suspects.iter().any(|other: &Suspect| other.place.site == place.site);
            if !is_open || !may_be_field(&comparison) || suspects.len() >= MOST_SUSPECTS {
                continue;
            }
            suspects.extend(encodings(&comparison).into_iter().filter_map(|encoding| {
                let bytes = encoding.write(comparison.a)?;
                let windows = input.windows(bytes.len()).enumerate();
                let at = windows.filter(|(_, window)| **window == bytes).map(|(at, _)| at);
                let at: Vec<usize> = at.take(MOST_PLACES).collect();
                (!at.is_empty()).then_some(Suspect { place, at, len: bytes.len(), encoding })
            }));
            if let Operand::Value(value) = comparison.a {
                suspects.extend(in_text(value, input).take(MOST_TEXTS).map(|(at, encoding)| {
                    let len = encoding.write(comparison.a).map_or(0, |text| text.len());
                    Suspect { place, at: vec![at], len, encoding }
                }));
            }
        }
        suspects
    }

    /// Writes the expected values from the log into the fields of the input. Returns true if that changes the input.
    pub fn repair(&self, log: ComparisonLog<'_>, input: &mut [u8]) -> bool {
        let (mut from, mut is_changed) = (0, false);
        for comparison in log.iter() {
            let Some(field) = self.fields.get(&comparison.site) else { continue };
            let operands = [comparison.a, comparison.b];
            let [old, new] = [operands[field.side], operands[1 - field.side]]
                .map(|operand| field.encoding.write(operand));
            let (Some(old), Some(new)) = (old, new) else { continue };
            if old.len() != new.len() {
                continue;
            }
            // Most fields appear in the order in which they are compared, including correct ones.
            let find = |part: &[u8]| part.windows(old.len()).position(|window| window == old);
            let is_usual = from <= field.at
                && input.get(field.at..).is_some_and(|part| part.starts_with(&old));
            let usual = is_usual.then_some(field.at);
            let at =
                usual.or_else(|| find(&input[from..]).map(|at| from + at)).or_else(|| find(input));
            if let Some(at) = at {
                input[at..at + new.len()].copy_from_slice(&new);
                from = at + new.len();
                is_changed |= old != new;
            }
        }
        is_changed
    }
}

/// Positions and encodings of a number in the input as text.
fn in_text(value: u64, input: &[u8]) -> impl Iterator<Item = (usize, Encoding)> {
    RADICES.into_iter().flat_map(move |(radix, upper)| {
        let text = digits(value, radix, upper, 0);
        (0..input.len()).flat_map(move |at| {
            let rest = input[at..].strip_prefix(text.as_bytes());
            let zeros = input[..at].iter().rev().take_while(|byte| **byte == b'0').count();
            let (len, most) = (text.len(), zeros + text.len());
            let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
            let is_whole = rest.is_some_and(|rest| rest.first().is_none_or(|byte| !is_digit(byte)));
            let whole = is_whole.then_some(most);
            // Hexadecimal digits of fixed width need no delimiter.
            let fixed = FIXED_WIDTHS.into_iter().filter(move |width| {
                rest.is_some()
                    && radix == 16
                    && (len..=most).contains(width)
                    && whole != Some(*width)
            });
            let widths = whole.into_iter().chain(fixed).filter(|width| *width >= FEWEST_DIGITS);
            widths.map(move |width| (at + len - width, Encoding::Digits { radix, width, upper }))
        })
    })
}

/// True if the operands are equal, long enough, and not constants.
fn may_be_field(comparison: &Comparison<'_>) -> bool {
    let is_equality = matches!(comparison.kind, ComparisonKind::Equal | ComparisonKind::Memory);
    let is_long = match comparison.a {
        // Small numbers as well: they may be lengths.
        Operand::Value(_) => comparison.bytes >= SHORTEST,
        Operand::Bytes(bytes) => bytes.len() >= SHORTEST,
    };
    is_equality && is_long && comparison.constant == [false; 2] && comparison.a == comparison.b
}

/// The possible binary encodings of an operand, the widest first.
fn encodings(comparison: &Comparison<'_>) -> Vec<Encoding> {
    match comparison.a {
        Operand::Bytes(_) => return vec![Encoding::Bytes],
        // Zeros are everywhere.
        Operand::Value(0) => return Vec::new(),
        Operand::Value(_) => {}
    }
    let widths = [8, 4, 2].into_iter().filter(|width| *width <= comparison.bytes);
    widths.flat_map(|width| [Encoding::Big(width), Encoding::Little(width)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;
    use proptest::prelude::*;

    #[test]
    fn fields_are_suspected_where_equal_operands_stand_in_the_input() {
        let input = b"..\x12\x34\x56\x78..\x00\x00\x00\x07";
        let own = OwnLog::of_equalities(&[
            (1, 0x1234_5678, 0x1234_5678),
            (2, 0, 0),
            (3, 0x9999, 0x9999),
            (4, 1, 2),
        ]);
        let mut repairs = Repairs::default();
        let suspects = repairs.suspects(own.view(), input);
        assert_eq!(suspects.len(), 1, "{suspects:?}");
        assert_eq!((&*suspects[0].at, suspects[0].encoding), (&[2][..], Encoding::Big(4)));
        // A small number may be a length, of which the width is not known.
        let length = OwnLog::of_equalities(&[(2, 7, 7)]);
        let suspects = repairs.suspects(length.view(), input);
        let encodings: Vec<_> = suspects.iter().map(|suspect| suspect.encoding).collect();
        assert_eq!(encodings, [Encoding::Big(4), Encoding::Big(2)]);
        for _ in 0..3 {
            repairs.failed(1);
        }
        assert!(repairs.suspects(own.view(), input).is_empty());
    }

    #[test]
    fn fields_may_be_numbers_in_text() {
        let input = b"name 0001750\0 x3e8 1000 03E8*2A";
        let repairs = Repairs::default();
        let found = |value| -> Vec<(usize, usize, Encoding)> {
            let own = OwnLog::of_equalities(&[(1, value, value)]);
            let suspects = repairs.suspects(own.view(), input);
            suspects.iter().map(|one| (one.at[0], one.len, one.encoding)).collect()
        };
        let digits = |radix, width, upper| Encoding::Digits { radix, width, upper };
        let (decimal, octal) = (digits(10, 4, false), digits(8, 7, false));
        let (lower, upper) = (digits(16, 3, false), digits(16, 4, true));
        assert_eq!(found(1000), [(19, 4, decimal), (5, 7, octal), (15, 3, lower), (24, 4, upper)]);
        assert_eq!(found(0x2a), [(29, 2, digits(16, 2, true))]);
        let own = OwnLog::of_equalities(&[(1, 0, 0)]);
        let zero = repairs.suspects(own.view(), b"AB*00..");
        assert!(
            zero.iter().all(|one| (one.at[0], one.len) == (3, 2)) && zero.len() == 4,
            "{zero:?}"
        );
        assert_eq!(octal.change(b"0001750").unwrap(), b"0001710");
        assert_eq!(upper.change(b"03EA").unwrap(), b"031B");
        assert_eq!(octal.write(Operand::Value(8u64.pow(7))), None);
        assert_eq!(upper.change(b"03G8"), None);
        let mut repairs = Repairs::default();
        repairs.add(1, Field { side: 1, encoding: octal, at: 5 });
        let mut input = *input;
        assert!(repairs.repair(OwnLog::of_equalities(&[(1, 0o7070, 1000)]).view(), &mut input));
        assert_eq!(&input[..13], b"name 0007070\0");
    }

    #[test]
    fn fields_get_what_was_calculated_one_after_the_other() {
        let mut repairs = Repairs::default();
        assert!(repairs.is_empty() && !repairs.concern(OwnLog::of_equalities(&[(7, 1, 2)]).view()));
        repairs.add(7, Field { side: 1, encoding: Encoding::Little(4), at: 0 });
        let mut input = *b"a\x01\x00\x00\x00b\x01\x00\x00\x00";
        let own = OwnLog::of_equalities(&[
            (7, 0x6463_6261, 1),
            (7, 5, 5),
            (9, 1, 3),
            (7, 0x3231_3039, 1),
        ]);
        assert!(repairs.concern(own.view()) && repairs.repair(own.view(), &mut input));
        assert_eq!(&input, b"aabcdb9012");
        let mut second = *b"abcd..abcd";
        let own = OwnLog::of_equalities(&[(7, 0x6463_6261, 0x6463_6261), (7, 5, 0x6463_6261)]);
        assert!(repairs.repair(own.view(), &mut second));
        assert_eq!(&second, b"abcd..\x05\0\0\0");
        // The usual position is preferred to the first occurrence of the same bytes.
        repairs.add(8, Field { side: 0, encoding: Encoding::Big(2), at: 5 });
        let mut third = *b"..\0\x02.\0\x02";
        assert!(repairs.repair(OwnLog::of_equalities(&[(8, 2, 3)]).view(), &mut third));
        assert_eq!(&third, b"..\0\x02.\0\x03");
        assert!(!repairs.repair(OwnLog::of_equalities(&[(7, 6, 6)]).view(), &mut input));
        assert_eq!(&input, b"aabcdb9012");
    }

    proptest! {
        #[test]
        fn any_log_is_read(input: Vec<u8>, a: u64, b: u64, len in 1usize..9) {
            let mut repairs = Repairs::default();
            repairs.add(1, Field { side: 0, encoding: Encoding::Big(len), at: len });
            let mut repaired = input.clone();
            let changed = repairs.repair(OwnLog::of_equalities(&[(1, a, b), (1, b, a)]).view(), &mut repaired);
            prop_assert_eq!(repaired.len(), input.len());
            prop_assert!(changed || repaired == input);
        }
    }
}
