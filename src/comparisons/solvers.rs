//! Solves operands that are calculated from the input, given the bytes that affect them.
//!
//! Runs show everything. A changed byte shows which operands depend on it (Gan and others, GREYONE, USENIX Security
//! 2020); a field of some bytes is then solved as linear, as digits or as monotonic (Choi and others, Grey-box
//! Concolic Testing on Binary Code, ICSE 2019), and otherwise by descent on the difference.
//!
//! The solvers in order: length, digits, affine, monotonic, several numbers in text (addresses, times), descent, and
//! for up to four bytes a sum of one term per byte. Memory and text are solved as numbers, four bytes at a time after
//! the equal ones. An eight-byte number that depends on many bytes, or that was not solved, is solved as memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{ControlFlow, Range};

use crate::InputRules;
use crate::log::ComparisonKind;
use crate::results::Place;
use ffuzz_mutate::messages;

/// Maximum runs for one operand, see [`solve`].
pub(crate) const MOST_ATTEMPTS: usize = 3000;
/// Number of bytes of memory that are solved as one number.
pub(crate) const WINDOW: usize = 4;
/// Maximum length of a number field, bytes.
const WIDEST: usize = 8;
/// Number of bytes that are tried alone for an operand that depends on many.
const SINGLE: usize = 4;
/// Maximum number of bytes for which a descent tries all values.
const FEW: usize = 8;
/// Maximum number of numbers in text that make up one operand.
const MOST_NUMBERS: usize = 8;
/// Maximum number of bytes in a sum, and of solutions tried.
const MOST_ADDED: usize = 4;
const MOST_SUMS: usize = 4;
/// Maximum number of bytes that a descent changes, and its rounds.
const MOST_DESCENDED: usize = 64;
const ROUNDS: usize = 4;
/// Maximum growth of an input for an operand that depends on its length, bytes.
const LARGEST_GROWTH: usize = 1 << 16;

/// The value of an operand after one byte of the input was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Change {
    pub(crate) at: usize,
    pub(crate) byte: u8,
    pub(crate) value: u64,
}

/// One operand of a comparison, and how it depends on the input.
#[derive(Clone, Debug)]
pub(crate) struct Dependent {
    pub(crate) place: Place,
    /// Offset of the operand, if it is a part of memory or text.
    pub(crate) part: Option<usize>,
    pub(crate) kind: ComparisonKind,
    /// Size of the operand, 1 to 8 bytes.
    pub(crate) bytes: usize,
    /// Index of the operand, 0 or 1.
    pub(crate) side: usize,
    /// Both operands in the run of the input.
    pub(crate) operands: [u64; 2],
    /// Effects of changed bytes on the operand.
    pub(crate) changes: Vec<Change>,
    /// How the operand depends on the length of the input, or of a part of it.
    pub(crate) growth: Option<Growth>,
}

/// The value of an operand after one byte was inserted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Growth {
    pub(crate) at: usize,
    pub(crate) value: u64,
}

/// Runs inputs for the solvers.
pub(crate) trait Attempts {
    /// Runs an input. Returns both operands of the comparison, if the run reaches it, or a break if the comparison
    /// has flipped or the time is over. `op`: how the input was made.
    async fn run(&mut self, input: &[u8], op: &'static str) -> ControlFlow<(), Option<[u64; 2]>>;
}

/// Runs each input only once, even if several solvers make it.
struct Once<'a, A> {
    attempts: &'a mut A,
    /// Results by hash of the input.
    known: HashMap<u64, Option<[u64; 2]>>,
}

impl<A: Attempts> Attempts for Once<'_, A> {
    async fn run(&mut self, input: &[u8], op: &'static str) -> ControlFlow<(), Option<[u64; 2]>> {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        ControlFlow::Continue(match self.known.entry(hasher.finish()) {
            Entry::Occupied(seen) => *seen.get(),
            Entry::Vacant(place) => *place.insert(self.attempts.run(input, op).await?),
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    Little,
    Big,
}

/// A field of the input read as one number.
#[derive(Clone, Copy, Debug)]
struct Window {
    at: usize,
    len: usize,
    order: Order,
}

/// Distance of two operands.
#[derive(Clone, Copy, Debug)]
enum Metric {
    /// Exclusive or: the highest differing bit counts most, so digits and bytes are solved one by one.
    Leading,
    Difference,
    /// Number of differing bits.
    Bits,
}

impl Window {
    fn of(self, input: &[u8]) -> u64 {
        let mut number = [0; 8];
        let field = &input[self.at..self.at + self.len];
        match self.order {
            Order::Little => number[..self.len].copy_from_slice(field),
            Order::Big => number[..self.len]
                .iter_mut()
                .zip(field.iter().rev())
                .for_each(|(to, from)| *to = *from),
        }
        u64::from_le_bytes(number)
    }

    fn put(self, number: u64, input: &mut [u8]) {
        let number = number.to_le_bytes();
        let field = &mut input[self.at..self.at + self.len];
        match self.order {
            Order::Little => field.copy_from_slice(&number[..self.len]),
            Order::Big => {
                field.iter_mut().rev().zip(number).for_each(|(to, from)| *to = from);
            }
        }
    }

    fn with(self, input: &[u8], number: u64) -> Vec<u8> {
        let mut bytes = input.to_vec();
        self.put(number, &mut bytes);
        bytes
    }

    fn largest(self) -> u64 {
        mask(self.len)
    }

    fn holds(self, at: usize) -> bool {
        (self.at..self.at + self.len).contains(&at)
    }
}

impl Dependent {
    /// The bytes that affect the operand, ascending.
    #[must_use]
    pub(crate) fn movers(&self) -> Vec<usize> {
        let mut movers: Vec<usize> = self.changes.iter().map(|change| change.at).collect();
        movers.sort_unstable();
        movers.dedup();
        movers
    }

    /// Converts a number to a part of memory that starts at the first differing byte: compilers compare up to eight
    /// bytes of memory or text as one number.
    pub(crate) fn into_memory(self) -> Self {
        let [a, b] = self.operands.map(u64::to_le_bytes);
        let from = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let part = |value: u64| window(&value.to_le_bytes(), from);
        let operands = self.operands.map(part);
        let before = operands[self.side];
        let changes = self.changes.into_iter();
        let changes = changes.map(|change| Change { value: part(change.value), ..change });
        let changes = changes.filter(|change| change.value != before).collect();
        Self { part: Some(from), bytes: WINDOW, operands, changes, growth: None, ..self }
    }

    /// True for an eight-byte number that looks like memory: several of its bytes depend on different bytes of the
    /// input.
    pub(crate) fn is_like_memory(&self) -> bool {
        let before = self.value();
        let mut lowest: Vec<u32> = self
            .changes
            .iter()
            .map(|change| (change.value ^ before).trailing_zeros() / u8::BITS)
            .collect();
        lowest.sort_unstable();
        lowest.dedup();
        self.may_be_memory() && lowest.len() >= WINDOW && self.movers().len() > WIDEST
    }

    pub(crate) fn may_be_memory(&self) -> bool {
        self.kind == ComparisonKind::Equal && self.bytes == 8 && self.part.is_none()
    }

    /// True if changes give more than one other value: two values alone show no direction.
    fn has_direction(&self) -> bool {
        let other = self.changes.first().map(|change| change.value);
        self.changes.iter().any(|change| Some(change.value) != other)
    }

    fn value(&self) -> u64 {
        self.operands[self.side]
    }

    fn other(&self) -> u64 {
        self.operands[1 - self.side]
    }

    /// Values of the operand for each possible result. First the value just beyond the other operand, which flips `<`
    /// as well as `<=`; for floating-point numbers, first the equal value.
    fn targets(&self) -> Vec<u64> {
        let (other, mask) = (self.other(), mask(self.bytes));
        let [above, below] = [other.wrapping_add(1) & mask, other.wrapping_sub(1) & mask];
        match self.kind {
            ComparisonKind::Equal => vec![other],
            ComparisonKind::Float => vec![other, above, below],
            _ if self.rank(self.value()) > self.rank(other) => vec![below, other, above],
            _ => vec![above, other, below],
        }
    }

    /// True if the value is negative when read as signed.
    fn is_negative(&self, value: u64) -> bool {
        value >> (8 * self.bytes - 1) & 1 == 1
    }

    /// Maps a value to a number with the order of the comparison.
    fn rank(&self, value: u64) -> i128 {
        let sign = 1u64 << (8 * self.bytes - 1);
        match self.kind {
            ComparisonKind::Signed => i128::from(value ^ sign) - i128::from(sign),
            ComparisonKind::Float if value & sign != 0 => -i128::from(value & (sign - 1)),
            _ => i128::from(value),
        }
    }

    /// Difference between two values. For a large unsigned number that is to become small, it may wrap around to 0:
    /// compilers check a range by one comparison.
    fn difference(&self, from: u64, to: u64) -> i128 {
        let comes_around = self.kind == ComparisonKind::Unsigned
            && self.is_negative(self.value())
            && !self.is_negative(self.other());
        let missing = to.wrapping_sub(from) & mask(self.bytes);
        match comes_around {
            true if self.is_negative(missing) => {
                i128::from(missing) - i128::from(mask(self.bytes)) - 1
            }
            true => i128::from(missing),
            false => self.rank(to) - self.rank(from),
        }
    }

    /// The value nearest to `other` that flips the comparison: one beyond it for integer orders, otherwise equal.
    fn goal(&self, other: u64) -> u64 {
        let mask = mask(self.bytes);
        let beyond = match self.kind {
            ComparisonKind::Unsigned | ComparisonKind::Signed => {
                let is_above = self.rank(self.value()) > self.rank(self.other());
                if is_above { other.wrapping_sub(1) & mask } else { other.wrapping_add(1) & mask }
            }
            _ => other,
        };
        // The smallest and the largest number have no successor.
        let is_next = self.rank(beyond).abs_diff(self.rank(other)) <= 1;
        if is_next { beyond } else { other }
    }

    fn distance(&self, metric: Metric, operands: [u64; 2]) -> u128 {
        let (value, other) = (operands[self.side], self.goal(operands[1 - self.side]));
        match metric {
            Metric::Leading => u128::from(value ^ other),
            Metric::Difference => self.difference(value, other).unsigned_abs(),
            Metric::Bits => u128::from((value ^ other).count_ones()),
        }
    }
}

/// Tries to flip the comparison: to make the operand equal to the other one, or to change their order. Runs the most
/// promising attempts first, until one breaks.
pub(crate) async fn solve(
    input: &[u8],
    dependent: &Dependent,
    rules: &InputRules,
    attempts: &mut impl Attempts,
) -> ControlFlow<()> {
    let run = &mut Once { attempts, known: HashMap::new() };
    change_length(input, dependent, rules, run).await?;
    let movers = dependent.movers();
    if movers.is_empty() {
        return ControlFlow::Continue(());
    }
    write_digits(input, dependent, &movers, rules, run).await?;
    let windows = windows(input.len(), &movers);
    for window in &windows {
        invert(input, dependent, *window, run).await?;
    }
    for window in &windows {
        bisect(input, dependent, *window, run).await?;
    }
    write_numbers(input, dependent, &movers, rules, run).await?;
    if movers.len() <= MOST_DESCENDED && (movers.len() == 1 || dependent.has_direction()) {
        // An operand that depends on many bytes is more likely a sum than a number.
        let metrics = match movers.len() > WIDEST {
            true => [Metric::Difference, Metric::Leading, Metric::Bits],
            false => [Metric::Leading, Metric::Difference, Metric::Bits],
        };
        for metric in metrics {
            descend(input, dependent, &movers, metric, run).await?;
        }
    }
    add_up(input, dependent, &movers, run).await
}

/// The input with `by` more bytes at `at` (repeats of the byte before it; at the end, of the whole input), or with
/// `-by` fewer bytes before it. None if that is not possible.
#[must_use]
pub(crate) fn resized(input: &[u8], at: usize, by: i128, has_messages: bool) -> Option<Vec<u8>> {
    let count = usize::try_from(by.unsigned_abs()).ok().filter(|count| *count <= LARGEST_GROWTH)?;
    let (before, after) = input.split_at_checked(at)?;
    if by < 0 {
        return replaced(input, at.checked_sub(count)?..at, b"", has_messages);
    }
    let bytes: Vec<u8> = match after.is_empty() {
        true => input.iter().copied().cycle().take(count).collect(),
        false => vec![*before.last()?; count],
    };
    replaced(input, at..at, &bytes, has_messages)
}

/// The input with `range` replaced by `bytes`. None if the range is not within one message of a list.
fn replaced(
    input: &[u8],
    range: Range<usize>,
    bytes: &[u8],
    has_messages: bool,
) -> Option<Vec<u8>> {
    if !has_messages {
        return Some([&input[..range.start], bytes, &input[range.end..]].concat());
    }
    let mut out = Vec::new();
    messages::edit(input, range, bytes, &mut out).then_some(out)
}

/// Solves an operand that depends on the length of the input, or of a part of it.
async fn change_length(
    input: &[u8],
    dependent: &Dependent,
    rules: &InputRules,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    let Some(Growth { at, value }) = dependent.growth else { return ControlFlow::Continue(()) };
    let slope = dependent.rank(value) - dependent.rank(dependent.value());
    for target in dependent.targets() {
        let difference = dependent.rank(target) - dependent.rank(dependent.value());
        if slope == 0 || difference % slope != 0 {
            continue;
        }
        let bytes = resized(input, at, difference / slope, rules.messages);
        if let Some(bytes) = bytes.filter(|bytes| bytes.len() <= *rules.lengths.end()) {
            run.run(&bytes, "length").await?;
        }
    }
    ControlFlow::Continue(())
}

/// Solves a number that the program reads from text. The values for other first digits show the radix and the unit.
async fn write_digits(
    input: &[u8],
    dependent: &Dependent,
    movers: &[usize],
    rules: &InputRules,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    let (at, all) = (movers[0], mask(dependent.bytes));
    let value_with = |byte: u8| {
        let change = dependent.changes.iter().find(|change| change.at == at && change.byte == byte);
        change.map_or(dependent.value(), |change| change.value)
    };
    let [one, nine, ten] = [b'1', b'9', b'a'].map(value_with);
    // For a number with a minus sign before its digits, or one that the program negates.
    let is_negative =
        [one, nine, nine.wrapping_sub(one) & all].iter().all(|value| dependent.is_negative(*value));
    let plain = |value: u64| if is_negative { value.wrapping_neg() & all } else { value };
    let [one, nine, ten] = [one, nine, ten].map(plain);
    let is_digit = |radix: u64, value: u64, digit: u64| value % radix == digit;
    let eight = nine.wrapping_sub(one) & all;
    let is_higher = |radix: u64| {
        let mut places = (1..16).map_while(|place| radix.checked_pow(place));
        places.any(|factor| eight == factor.wrapping_mul(8))
    };
    let is_decimal = is_digit(10, one, 1) && is_digit(10, nine, 9) || is_higher(10);
    // In octal, nine is not a digit, like a letter.
    let is_octal = nine == ten
        && nine != one
        && (is_digit(8, one, 1) || (1..21).any(|place| one.wrapping_sub(nine) == 1 << (3 * place)));
    let is_hexadecimal = is_digit(16, nine, 9) && is_digit(16, ten, 10) || is_higher(16);
    let digits = input[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    for target in dependent.targets() {
        let target = plain(target);
        let decimal = is_decimal.then(|| target.to_string());
        // Fields of fixed width have leading zeros.
        let octal = is_octal.then(|| format!("{target:0digits$o}"));
        let hexadecimal = is_hexadecimal.then(|| format!("{target:x}"));
        let full = is_hexadecimal.then(|| format!("{target:0digits$X}"));
        let full = full.filter(|full| Some(full) != hexadecimal.as_ref());
        // A number that is multiplied by a unit.
        let unit = eight / 8;
        let distance = target.wrapping_sub(one.wrapping_sub(unit)) & all;
        let is_scaled = !is_decimal && digits < 2 && unit > 0 && distance.is_multiple_of(unit);
        let scaled = is_scaled.then(|| (distance / unit).to_string());
        let is_below = is_decimal && dependent.is_negative(target);
        let signed = is_below.then(|| format!("-{}", target.wrapping_neg() & all));
        for text in [decimal, octal, hexadecimal, full, signed, scaled].into_iter().flatten() {
            // Overwrite the same number of bytes, replace the digits, and overwrite with a blank that ends the
            // number.
            let (text, end) = (text.as_bytes(), at + text.len());
            for (text, end) in [
                (text.to_vec(), end),
                (text.to_vec(), at + digits),
                ([text, b" "].concat(), end + 1),
            ] {
                let end = end.min(input.len());
                if let Some(bytes) = replaced(input, at..end, &text, rules.messages) {
                    run.run(&bytes, "digits").await?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// Digits of the input read as one number.
struct Number {
    at: usize,
    len: usize,
    value: u64,
    /// Growth of the operand when the number grows by 1.
    unit: u64,
}

/// Solves an operand made of several numbers in text, each with its own unit: addresses, times, versions. The number
/// with the largest unit is chosen first, and the others share the remainder.
async fn write_numbers(
    input: &[u8],
    dependent: &Dependent,
    movers: &[usize],
    rules: &InputRules,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    let all = mask(dependent.bytes);
    let mut numbers = numbers(input, dependent, movers);
    if numbers.len() < 2 {
        return ControlFlow::Continue(());
    }
    let known = numbers.iter().map(|number| number.unit.wrapping_mul(number.value));
    let rest = dependent.value().wrapping_sub(known.fold(0, u64::wrapping_add)) & all;
    numbers.sort_by_key(|number| std::cmp::Reverse(number.unit));
    for target in dependent.targets() {
        let mut left = target.wrapping_sub(rest) & all;
        let mut written: Vec<(&Number, u64)> = Vec::new();
        for number in &numbers {
            written.push((number, left / number.unit));
            left %= number.unit;
        }
        // From the end, so that earlier positions remain valid.
        written.sort_by_key(|(number, _)| std::cmp::Reverse(number.at));
        let mut bytes = input.to_vec();
        for (Number { at, len, .. }, value) in written {
            let text = format!("{value:0len$}");
            let Some(next) = replaced(&bytes, *at..at + len, text.as_bytes(), rules.messages)
            else {
                return ControlFlow::Continue(());
            };
            bytes = next;
        }
        run.run(&bytes, "digits").await?;
    }
    ControlFlow::Continue(())
}

/// The decimal numbers that the operand depends on. A mask may hide the last digits of some, whose units are then
/// extrapolated from the numbers before them.
fn numbers(input: &[u8], dependent: &Dependent, movers: &[usize]) -> Vec<Number> {
    let all = mask(dependent.bytes);
    let mut numbers: Vec<Number> = Vec::new();
    let is_no_digit = |byte: &u8| !byte.is_ascii_digit();
    let mut at = input[..movers[0]].iter().rposition(is_no_digit).map_or(0, |last| last + 1);
    for _ in 0..MOST_NUMBERS {
        let Some(skip) = input[at..].iter().position(u8::is_ascii_digit) else { break };
        let first = at + skip;
        let len = input[first..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = first + len;
        let text = std::str::from_utf8(&input[first..at]).unwrap_or_default();
        let Ok(value) = text.parse() else { continue };
        // A change of its last digit shows the unit.
        let changes = dependent.changes.iter().filter(|change| change.at == at - 1);
        let unit = changes.filter(|change| change.byte.is_ascii_digit()).find_map(|change| {
            let steps = u64::from(change.byte).wrapping_sub(input[at - 1].into());
            let moved = change.value.wrapping_sub(dependent.value());
            let unit = divide(moved, steps & all, all)? & all;
            (unit <= all / 2).then_some(unit)
        });
        let hidden = || match &numbers[..] {
            [.., before, last] if last.unit > 0 && before.unit > last.unit => {
                let factor = before.unit / last.unit;
                (last.unit % factor == 0).then(|| last.unit / factor)
            }
            _ => None,
        };
        if let Some(unit) = unit.or_else(hidden).filter(|unit| *unit > 0) {
            numbers.push(Number { at: first, len, value, unit });
        }
    }
    numbers
}

/// Solves an operand that is a sum of one term per byte: measures the term for each value of each byte, then combines
/// values whose terms add up to the target.
async fn add_up(
    input: &[u8],
    dependent: &Dependent,
    movers: &[usize],
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    if !(2..=MOST_ADDED).contains(&movers.len()) || dependent.kind != ComparisonKind::Equal {
        return ControlFlow::Continue(());
    }
    let (all, base) = (mask(dependent.bytes), dependent.value());
    // For each byte, the change of the operand by each of its values.
    let mut tables: Vec<Vec<(u8, u64)>> = Vec::new();
    for at in movers {
        let mut bytes = input.to_vec();
        let mut table = vec![(input[*at], 0)];
        for byte in 0..=u8::MAX {
            bytes[*at] = byte;
            if byte != input[*at]
                && let Some(seen) = run.run(&bytes, "sum").await?
                && seen[1 - dependent.side] == dependent.other()
            {
                table.push((byte, seen[dependent.side].wrapping_sub(base) & all));
            }
        }
        tables.push(table);
    }
    // Meet in the middle: look up the pairs of one half in the other half.
    let pairs = |tables: &[Vec<(u8, u64)>]| match tables {
        [one] => one.iter().map(|(byte, adds)| (vec![*byte], *adds)).collect(),
        [one, two] => {
            let pairs = one.iter().flat_map(|a| two.iter().map(move |b| (a, b)));
            pairs.map(|(a, b)| (vec![a.0, b.0], a.1.wrapping_add(b.1) & all)).collect()
        }
        _ => Vec::new(),
    };
    let (low, high) = tables.split_at(tables.len().min(2));
    let high = if high.is_empty() { vec![(Vec::new(), 0)] } else { pairs(high) };
    let mut known: HashMap<u64, Vec<u8>> = HashMap::new();
    for (bytes, adds) in pairs(low) {
        known.entry(adds).or_insert(bytes);
    }
    for target in dependent.targets() {
        let missing = target.wrapping_sub(base) & all;
        let found = high.iter().filter_map(|(bytes, adds)| {
            let rest = known.get(&(missing.wrapping_sub(*adds) & all))?;
            Some([&rest[..], bytes].concat())
        });
        for values in found.take(MOST_SUMS) {
            let mut bytes = input.to_vec();
            movers.iter().zip(values).for_each(|(at, byte)| bytes[*at] = byte);
            run.run(&bytes, "sum").await?;
        }
    }
    ControlFlow::Continue(())
}

/// Fields of the input that may be one number and contain all movers; if these span too much, some single bytes.
fn windows(length: usize, movers: &[usize]) -> Vec<Window> {
    let (first, last) = (movers[0], movers[movers.len() - 1]);
    let span = last - first + 1;
    let mut fields = Vec::new();
    if span <= WIDEST {
        fields.push((first, span));
        for len in [1, 2, 4, 8].into_iter().filter(|len| *len > span) {
            let starts = (last + 1).saturating_sub(len)..=first;
            fields.extend(starts.filter(|at| at + len <= length).map(|at| (at, len)));
        }
    } else {
        fields.extend(movers.iter().take(SINGLE).map(|at| (*at, 1)));
    }
    let orders = |(at, len)| {
        let all = [Order::Little, Order::Big];
        let count = if len == 1 { 1 } else { 2 };
        all.into_iter().take(count).map(move |order| Window { at, len, order })
    };
    fields.into_iter().flat_map(orders).collect()
}

/// Solves an operand that is an affine function of a field, or its exclusive or with a constant.
async fn invert(
    input: &[u8],
    dependent: &Dependent,
    window: Window,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    if dependent.kind == ComparisonKind::Float {
        return ControlFlow::Continue(());
    }
    let changes: Vec<(u64, u64)> = dependent
        .changes
        .iter()
        .filter(|change| window.holds(change.at))
        .map(|change| {
            let mut bytes = input.to_vec();
            bytes[change.at] = change.byte;
            (window.of(&bytes), change.value)
        })
        .collect();
    let (number, value) = (window.of(input), dependent.value());
    let mut tried = Vec::new();
    let linear = slope(number, value, &changes, mask(dependent.bytes));
    for target in dependent.targets() {
        let solved = linear.and_then(|slope| {
            let step = divide(target.wrapping_sub(value), slope, mask(dependent.bytes))?;
            Some(number.wrapping_add(step) & mask(dependent.bytes.max(window.len)))
        });
        let is_exclusive = changes.iter().all(|(other, moved)| other ^ number == moved ^ value);
        let exclusive = is_exclusive.then_some(number ^ value ^ target);
        tried.extend([solved, exclusive].into_iter().flatten());
    }
    let is_below = dependent.kind == ComparisonKind::Unsigned && value > dependent.other();
    tried.extend(
        linear
            .filter(|_| is_below)
            .map(|slope| wrapping(number, value, slope, mask(dependent.bytes))),
    );
    for (index, wanted) in tried.iter().enumerate() {
        if *wanted <= window.largest() && !tried[..index].contains(wanted) {
            run.run(&window.with(input, *wanted), "affine").await?;
        }
    }
    ControlFlow::Continue(())
}

/// The first number at which the value wraps around to 0 and is smallest: compilers merge two comparisons into one
/// (unsigned `number - 5 < 10` checks a range).
fn wrapping(number: u64, value: u64, slope: u64, mask: u64) -> u64 {
    let at_zero = value.wrapping_sub(slope.wrapping_mul(number)) & mask;
    let is_falling = slope > mask / 2;
    if is_falling {
        return at_zero / (slope.wrapping_neg() & mask);
    }
    let [distance, slope] = [mask - at_zero, slope].map(u128::from);
    u64::try_from(distance / slope + 1).unwrap_or(u64::MAX)
}

/// The factor between changes of the number and of the value, modulo the width of the value. None unless all changes
/// agree.
fn slope(number: u64, value: u64, changes: &[(u64, u64)], mask: u64) -> Option<u64> {
    let steps = changes
        .iter()
        .map(|(other, moved)| (other.wrapping_sub(number), moved.wrapping_sub(value) & mask));
    let (step, moved) = steps.clone().find(|(step, _)| step & 1 == 1)?;
    let slope = moved.wrapping_mul(inverse(step)) & mask;
    let agrees = |(step, moved): (u64, u64)| slope.wrapping_mul(step) & mask == moved;
    (slope != 0 && steps.into_iter().all(agrees)).then_some(slope)
}

/// Solves `slope * step = difference` for the smallest step, modulo the width. None if the difference is 0 or no step
/// fits.
fn divide(difference: u64, slope: u64, mask: u64) -> Option<u64> {
    let (difference, zeros) = (difference & mask, slope.trailing_zeros());
    if difference == 0 {
        return None;
    }
    if difference.trailing_zeros() < zeros {
        return None;
    }
    let step = (difference >> zeros).wrapping_mul(inverse(slope >> zeros)) & (mask >> zeros);
    // The solution closest to zero, positive or negative.
    let sign = (mask >> zeros) / 2 + 1;
    Some(if step & sign != 0 { step | !(mask >> zeros) } else { step })
}

/// The inverse of an odd number modulo 2^64: each Newton step doubles the number of correct bits.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd.wrapping_mul(3) ^ 2, |inverse, _| {
        inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
    })
}

/// Solves an operand that is a monotonic function of a field, by bisection.
async fn bisect(
    input: &[u8],
    dependent: &Dependent,
    window: Window,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    let largest = match (dependent.kind, window.len) {
        (ComparisonKind::Float, 8) => f64::MAX.to_bits(),
        (ComparisonKind::Float, 4) => f32::MAX.to_bits().into(),
        _ => window.largest(),
    };
    let side = |operands: [u64; 2]| {
        let [value, other] = [dependent.side, 1 - dependent.side].map(|side| operands[side]);
        (dependent.rank(value) - dependent.rank(other)).signum()
    };
    let (mut low, mut high) = (0, largest);
    let at_low = run.run(&window.with(input, low), "monotonic").await?.map(side);
    let at_high = run.run(&window.with(input, high), "monotonic").await?.map(side);
    let (Some(at_low), Some(at_high)) = (at_low, at_high) else {
        return ControlFlow::Continue(());
    };
    if at_low == at_high {
        return ControlFlow::Continue(());
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match run.run(&window.with(input, middle), "monotonic").await?.map(side) {
            None => break,
            Some(side) if side == at_low => low = middle,
            Some(_) => high = middle,
        }
    }
    ControlFlow::Continue(())
}

/// Changes one byte after another and keeps the values that bring the operands closest.
async fn descend(
    input: &[u8],
    dependent: &Dependent,
    movers: &[usize],
    metric: Metric,
    run: &mut impl Attempts,
) -> ControlFlow<()> {
    let moved_by = |at: usize| {
        let changes = dependent.changes.iter().filter(|change| change.at == at);
        let by = changes.map(|change| dependent.difference(dependent.value(), change.value));
        by.map(i128::unsigned_abs).max().unwrap_or(0)
    };
    let mut order = movers.to_vec();
    order.sort_by_key(|at| std::cmp::Reverse(moved_by(*at)));
    let mut best = input.to_vec();
    let mut operands = dependent.operands;
    let mut least = dependent.distance(metric, operands);
    for _ in 0..ROUNDS {
        let before = least;
        for at in &order {
            let mut kept = best[*at];
            for byte in values(dependent, *at, kept, operands, order.len() <= FEW) {
                best[*at] = byte;
                let seen = run.run(&best, "descent").await?;
                let distance = seen.map_or(u128::MAX, |seen| dependent.distance(metric, seen));
                if distance < least {
                    (least, operands, kept) = (distance, seen.unwrap_or(operands), byte);
                }
            }
            best[*at] = kept;
        }
        if least == before {
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Values of a byte that a descent tries: those that would be right if the operand were linear in the byte, then all
/// values (`all`) or all flips of one bit.
fn values(dependent: &Dependent, at: usize, now: u8, operands: [u64; 2], all: bool) -> Vec<u8> {
    let [value, other] = [operands[dependent.side], operands[1 - dependent.side]];
    let difference = dependent.difference(value, dependent.goal(other));
    let mut values = Vec::new();
    for change in dependent.changes.iter().filter(|change| change.at == at) {
        let step = i128::from(change.byte) - i128::from(now);
        let moved = dependent.difference(dependent.value(), change.value);
        if moved != 0 && step != 0 {
            let right = i128::from(now) + (difference * step).checked_div(moved).unwrap_or(0);
            values.push(right.clamp(0, 255) as u8);
        }
    }
    match all {
        true => values.extend(0..=255),
        false => values.extend((0..8).map(|bit| now ^ 1 << bit)),
    }
    values.retain(|byte| *byte != now);
    values
}

/// Reads [`WINDOW`] bytes of memory at `from` as a big-endian number; missing bytes are 0.
pub(crate) fn window(memory: &[u8], from: usize) -> u64 {
    let bytes = (from..from + WINDOW).map(|at| memory.get(at).copied().unwrap_or(0));
    bytes.fold(0, |number, byte| number << 8 | u64::from(byte))
}

/// A mask of `bytes` bytes, 1 to 8.
fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    struct Counted<O, F> {
        count: usize,
        solved: bool,
        operands: O,
        flips: F,
    }

    impl<O: Fn(&[u8]) -> Option<[u64; 2]>, F: Fn([u64; 2]) -> bool> Attempts for Counted<O, F> {
        async fn run(
            &mut self,
            input: &[u8],
            _op: &'static str,
        ) -> ControlFlow<(), Option<[u64; 2]>> {
            self.count += 1;
            if self.count > MOST_ATTEMPTS {
                return ControlFlow::Break(());
            }
            let seen = (self.operands)(input);
            self.solved = seen.is_some_and(&self.flips);
            if self.solved { ControlFlow::Break(()) } else { ControlFlow::Continue(seen) }
        }
    }

    /// Makes runs until the comparison flips.
    fn attempts(
        input: &[u8],
        kind: ComparisonKind,
        bytes: usize,
        operands: impl Fn(&[u8]) -> Option<[u64; 2]>,
    ) -> Option<usize> {
        let start = operands(input).unwrap();
        let mut dependent = Dependent {
            place: Place::new(1, 0),
            part: None,
            kind,
            bytes,
            side: 0,
            operands: start,
            changes: vec![],
            growth: None,
        };
        let moved = (1..=input.len()).rev().find_map(|at| {
            let seen =
                operands(&resized(input, at, 1, false)?).filter(|seen| seen[0] != start[0])?;
            Some(Growth { at, value: seen[0] })
        });
        dependent.growth = moved;
        for at in 0..input.len() {
            for byte in [input[at] ^ 1, input[at] ^ 0x80, b'1', b'9', b'a', !input[at]] {
                let mut other = input.to_vec();
                other[at] = byte;
                let value = operands(&other).map_or(start[0], |seen| seen[0]);
                if value != start[0] {
                    dependent.changes.push(Change { at, byte, value });
                }
            }
        }
        let result = |[a, b]: [u64; 2]| match kind {
            ComparisonKind::Equal => std::cmp::Ordering::Equal == a.cmp(&b),
            _ => dependent.rank(a) < dependent.rank(b),
        };
        let flips = |seen| result(seen) != result(start);
        let mut attempts = Counted { count: 0, solved: false, operands, flips };
        {
            let rules = InputRules { lengths: 0..=1 << 20, messages: false, is_partial: false };
            let solving = pin!(solve(input, &dependent, &rules, &mut attempts));
            let end = solving.poll(&mut Context::from_waker(Waker::noop()));
            assert!(end.is_ready(), "no run waits for anything");
        }
        attempts.solved.then_some(attempts.count)
    }

    fn number(input: &[u8], at: usize, len: usize, order: Order) -> u64 {
        Window { at, len, order }.of(input)
    }

    #[test]
    fn multiples_and_exclusive_ors_are_inverted() {
        let input = [b'x'; 32];
        let of = |f: fn(&[u8]) -> u64, bytes: usize, wanted: u64| {
            let seen = move |input: &[u8]| Some([f(input) & mask(bytes), wanted]);
            attempts(&input, ComparisonKind::Equal, bytes, seen).unwrap()
        };
        assert!(of(|i| number(i, 3, 4, Order::Big) * 3 + 0x123, 4, 0xc0ff_ee11) < 20);
        assert!(of(|i| number(i, 8, 8, Order::Little).wrapping_mul(0x9e37_79b9), 8, 77) < 40);
        assert!(of(|i| number(i, 1, 2, Order::Little) ^ 0x1234, 2, 0x4321) < 20);
        assert!(of(|i| number(i, 1, 4, Order::Big) * 1000, 8, 123_456_000) < 20);
        assert!(of(|i| 5u64.wrapping_sub(number(i, 1, 4, Order::Big)), 4, 99) < 20);
    }

    #[test]
    fn what_grows_with_a_field_is_bisected() {
        let input = [b'x'; 32];
        let quotient = |i: &[u8]| Some([number(i, 5, 2, Order::Big) / 7, 8123]);
        assert!(attempts(&input, ComparisonKind::Equal, 4, quotient).unwrap() < 100);
        let below = |i: &[u8]| Some([number(i, 5, 8, Order::Little), 1.5f64.to_bits()]);
        assert!(attempts(&input, ComparisonKind::Float, 8, below).unwrap() < 100);
        let above = |i: &[u8]| Some([number(i, 5, 4, Order::Little), 7]);
        assert!(attempts(&input, ComparisonKind::Signed, 4, above).unwrap() < 20);
    }

    #[test]
    fn numbers_are_written_with_digits() {
        let input = b"xxxxxxxxxxxxxxxx";
        for radix in [8, 10, 16] {
            let read = |i: &[u8]| {
                let text: String = i[2..].iter().map(|byte| char::from(*byte)).collect();
                let end = text.find(|sign: char| !sign.is_digit(radix)).unwrap_or(text.len());
                Some([u64::from_str_radix(&text[..end], radix).unwrap_or(0), 3_141_592_653])
            };
            assert!(attempts(input, ComparisonKind::Equal, 8, read).unwrap() < 10, "{radix}");
        }
    }

    #[test]
    fn digits_of_a_fixed_number_have_zeros_before_them() {
        let seen = |i: &[u8]| {
            let digit = |byte: u8| match byte {
                b'0'..=b'9' => Some(byte - b'0'),
                b'A'..=b'F' => Some(byte - b'A' + 10),
                _ => None,
            };
            Some([u64::from(digit(i[2])?) * 16 + u64::from(digit(i[3])?), 11])
        };
        assert!(attempts(b"$*E1xxxxxxxx", ComparisonKind::Equal, 4, seen).unwrap() < 10);
    }

    #[test]
    fn numbers_with_a_sign_and_calculated_ones_are_written_with_digits() {
        let number = |i: &[u8]| {
            let text = i[2..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-');
            let text: String = text.map(|byte| char::from(*byte)).collect();
            text.parse::<i64>().unwrap_or(0)
        };
        let solved = |f: &dyn Fn(i64) -> i64, wanted: i64| {
            let seen = |i: &[u8]| Some([f(number(i)), wanted].map(i64::cast_unsigned));
            attempts(b"xxxxxxxxxxxxxxxx", ComparisonKind::Equal, 8, seen).unwrap()
        };
        assert!(solved(&|number| number, -90_210) < 20);
        assert!(solved(&|number| -number, -7_301_492) < 20);
        assert!(solved(&|number| number * 37 + 11, 48_611 * 37 + 11) < 20);
    }

    /// Addresses, times and versions, also if a mask hides a part.
    #[test]
    fn numbers_with_units_of_their_own_are_written_together() {
        let address = |mask: u64, wanted: u64| {
            move |i: &[u8]| {
                let text = std::str::from_utf8(i).ok()?.split_once('/')?.0;
                let parts: Vec<u8> =
                    text.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
                let bytes: [u8; 4] = parts.try_into().ok()?;
                Some([u64::from(u32::from_be_bytes(bytes)) & mask, wanted])
            }
        };
        let solved = |input: &[u8], mask, wanted| {
            attempts(input, ComparisonKind::Equal, 4, address(mask, wanted)).unwrap()
        };
        assert!(solved(b"0.0.0.8/", 0xffff_ffff, 0xc0a8_0107) < 400);
        assert!(solved(b"0.0.0.8/", 0xffff_f000, 0xac1f_4000) < 400);
        let clock = |i: &[u8]| {
            let text = std::str::from_utf8(i).ok()?;
            let parts: Vec<u64> = text.split(':').map_while(|part| part.parse().ok()).collect();
            let [hours, minutes, seconds] = parts.try_into().ok()?;
            Some([hours * 3600 + minutes * 60 + seconds, 3661 * 7])
        };
        assert!(attempts(b"1:02:03", ComparisonKind::Equal, 8, clock).unwrap() < 400);
        // Far more digits than a number has.
        let long = vec![b'1'; 1 << 16];
        let last = |i: &[u8]| Some([u64::from(*i.last()?), 7]);
        assert!(attempts(&long[..64], ComparisonKind::Equal, 4, last).is_some());
    }

    #[test]
    fn bytes_that_add_up_are_chosen_together() {
        // A month and a day in packed decimal digits: the nearest month alone is the wrong one.
        let decimal = |byte: u8| {
            let [tens, ones] = [byte >> 4, byte & 15];
            (tens < 10 && ones < 10).then_some(u64::from(tens * 10 + ones))
        };
        let day_of_year = |i: &[u8]| {
            let (month, day) = (decimal(i[1])?, decimal(i[2])?);
            let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day);
            is_valid.then(|| [(month - 1) * 31 + day, 342])
        };
        let input = b"\x00\x09\x30\x00";
        assert!(attempts(input, ComparisonKind::Equal, 4, day_of_year).unwrap() < 1200);
        // Four bytes.
        let sum = |i: &[u8]| {
            let table = |at: usize, factor: u64| u64::from(i[at] & 15) * factor;
            Some([
                table(0, 1) + table(2, 20) + table(4, 400) + table(6, 8000),
                15 + 300 + 6000 + 120_000,
            ])
        };
        assert!(attempts(&[0; 8], ComparisonKind::Equal, 4, sum).unwrap() < 1200);
    }

    /// A range check by one unsigned comparison, as compilers emit it.
    #[test]
    fn ranges_are_met() {
        let digits = |i: &[u8]| {
            let text = i.iter().take_while(|byte| byte.is_ascii_digit());
            text.fold(0, |number: u64, byte| number * 10 + u64::from(byte - b'0'))
        };
        let year = |i: &[u8]| Some([digits(i).wrapping_sub(1969) & mask(4), 1]);
        assert!(attempts(b"xxxx-xx-xxxx", ComparisonKind::Unsigned, 4, year).unwrap() < 20);
        let product = |i: &[u8]| {
            let product = number(i, 4, 4, Order::Big) * 1000;
            Some([product.wrapping_sub(123_456_789_000), 1500])
        };
        assert!(attempts(&[b'x'; 16], ComparisonKind::Unsigned, 8, product).unwrap() < 20);
        let falling = |i: &[u8]| {
            let product = number(i, 4, 4, Order::Little) * 1000;
            Some([123_456_789_000u64.wrapping_sub(product), 1500])
        };
        assert!(attempts(&[b'x'; 16], ComparisonKind::Unsigned, 8, falling).unwrap() < 20);
        let weighted = |i: &[u8]| {
            let sum: u64 = (1..).zip(&i[..12]).map(|(at, byte)| at * u64::from(*byte)).sum();
            Some([sum.wrapping_sub(15_000) & mask(4), 3])
        };
        assert!(attempts(&[b'x'; 16], ComparisonKind::Unsigned, 4, weighted).unwrap() < 300);
    }

    #[test]
    fn a_sum_and_digits_of_a_kind_of_their_own_are_descended_to() {
        let input = [b'x'; 32];
        let sum = |i: &[u8]| Some([i[..12].iter().map(|byte| u64::from(*byte)).sum(), 2345]);
        assert!(attempts(&input, ComparisonKind::Equal, 4, sum).unwrap() < 200);
        let digits = |i: &[u8]| {
            let digit = |byte: &u8| byte.checked_sub(b'?').filter(|digit| *digit < 64);
            let add = |number: u64, byte| Some(number << 6 | u64::from(digit(byte)?));
            Some([i[3..8].iter().try_fold(0, add)?, 0x31a5_c0de])
        };
        assert!(attempts(&input, ComparisonKind::Equal, 4, digits).unwrap() < 2500);
    }

    #[test]
    fn the_length_is_changed() {
        let input = [b'x'; 32];
        let of = |i: &[u8]| Some([i.len() as u64 * 2 + 1, 201]);
        assert_eq!(attempts(&input, ComparisonKind::Equal, 8, of), Some(1));
        let shorter = |i: &[u8]| Some([i.len() as u64, 9]);
        assert_eq!(attempts(&input, ComparisonKind::Unsigned, 8, shorter), Some(1));
    }

    #[test]
    fn what_cannot_be_solved_ends() {
        let input = [b'x'; 200];
        let hash = |i: &[u8]| {
            let add =
                |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            Some([i.iter().fold(7, add), 12])
        };
        assert_eq!(attempts(&input, ComparisonKind::Equal, 8, hash), None);
    }
}
