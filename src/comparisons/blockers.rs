//! Where a corpus is stuck: comparisons that its runs reach and that always have the same result.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};

use crate::log::{Comparison, ComparisonKind, ComparisonLog, Operand};

/// Maximum number of deciding bytes listed for a comparison.
const MOST_BYTES: usize = 64;

/// Maximum number of sites recorded; further sites are ignored.
const MOST_SITES: usize = 1 << 16;

/// More than any campaign can count, and far from an overflow.
const MOST_COUNTED: u64 = 1 << 48;

/// Collects the comparisons of many runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Blockers {
    sites: HashMap<u32, Site>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Site {
    /// Number of the last input that reached the site, and the number of such inputs.
    last: usize,
    inputs: usize,
    attempts: u64,
    /// None once a second result was seen.
    blocker: Option<Blocker>,
}

/// A comparison that always had the same result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Blocker {
    pub site: u32,
    pub kind: ComparisonKind,
    pub result: u32,
    /// Number of inputs that reach it.
    pub inputs: usize,
    /// Runs that solvers have made to change the result.
    pub attempts: u64,
    /// True if the operands differed between runs.
    pub varies: bool,
    /// Number of the input whose operands are closest to each other, and their distance: the number of differing bits
    /// or bytes, or the difference of two ordered numbers.
    pub closest: usize,
    pub distance: u64,
    /// Positions in the closest input that are known to change the operands, at most 64.
    pub deciding: BTreeSet<usize>,
    bytes: usize,
    constant: [bool; 2],
    ignores_case: bool,
    operands: [Own; 2],
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
enum Own {
    Value(u64),
    Bytes(Box<[u8]>),
}

impl Blockers {
    /// Adds the comparisons of one run. `input` is the number of the input, `bytes` its content.
    pub fn add(&mut self, input: usize, bytes: &[u8], log: ComparisonLog<'_>) {
        let mut last = None;
        for comparison in log.iter() {
            let is_constant = comparison.constant == [true; 2];
            // A loop over the input may repeat the same comparison many times.
            let is_same = last.replace(comparison) == Some(comparison);
            if is_constant || is_same || !comparison.is_plausible(bytes) {
                continue;
            }
            if self.sites.len() >= MOST_SITES && !self.sites.contains_key(&comparison.site) {
                continue;
            }
            let site = self.sites.entry(comparison.site).or_insert_with(|| Site {
                last: input,
                inputs: 1,
                attempts: 0,
                blocker: Some(Blocker::new(input, &comparison)),
            });
            if site.last != input {
                (site.last, site.inputs) = (input, site.inputs + 1);
            }
            let Some(blocker) = &mut site.blocker else { continue };
            if blocker.result == comparison.result() {
                blocker.add(input, &comparison);
            } else {
                site.blocker = None;
            }
        }
    }

    /// False if a stored count is too high to come from a campaign.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let most = |site: &Site| (site.inputs as u64).max(site.attempts);
        self.sites.values().all(|site| most(site) <= MOST_COUNTED)
    }

    /// Number of distinct sites that the runs reached.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Counts one run by which a solver tries to change the result at `site`.
    pub fn note_attempt(&mut self, site: u32) {
        if let Some(site) = self.sites.get_mut(&site) {
            site.attempts += 1;
        }
    }

    /// Replaces the attempts of each site by their sum in `others`.
    pub fn take_attempts(&mut self, others: &[&Self]) {
        for (site, own) in &mut self.sites {
            let counted = others.iter().filter_map(|other| other.sites.get(site));
            own.attempts = counted.map(|site| site.attempts).sum();
        }
    }

    /// Records which `bytes` of an input change the operands at `site`. Ignored unless `input` is the closest one.
    pub fn note_bytes(&mut self, site: u32, input: usize, bytes: impl Iterator<Item = usize>) {
        let blocker = self.sites.get_mut(&site).and_then(|site| site.blocker.as_mut());
        if let Some(blocker) = blocker.filter(|blocker| blocker.closest == input) {
            let room = MOST_BYTES.saturating_sub(blocker.deciding.len());
            blocker.deciding.extend(bytes.take(room));
        }
    }

    /// The blocker at `site`; None if the site was never reached or had different results.
    #[must_use]
    pub fn get(&self, site: u32) -> Option<Blocker> {
        self.sites.get(&site).and_then(own)
    }

    /// The first `most` blockers. Order: operands never equal, deciding bytes known, operands vary, more inputs,
    /// smaller distance.
    #[must_use]
    pub fn list(&self, most: usize) -> Vec<Blocker> {
        let blocked = |site: &'_ Site| site.blocker.is_some();
        let mut all: Vec<&Site> = self.sites.values().filter(|site| blocked(site)).collect();
        all.sort_by_cached_key(|site| {
            let blocker = site.blocker.as_ref();
            let order = blocker.map(|blocker| {
                (!blocker.is_never_equal(), blocker.deciding.is_empty(), !blocker.varies)
            });
            let last = blocker.map(|blocker| (blocker.distance, blocker.site));
            (order, std::cmp::Reverse(site.inputs), last)
        });
        all.into_iter().take(most).filter_map(own).collect()
    }
}

fn own(site: &Site) -> Option<Blocker> {
    let Site { inputs, attempts, ref blocker, .. } = *site;
    Some(Blocker { inputs, attempts, ..blocker.clone()? })
}

impl Blocker {
    fn new(input: usize, comparison: &Comparison<'_>) -> Self {
        Self {
            site: comparison.site,
            kind: comparison.kind,
            result: comparison.result(),
            inputs: 1,
            attempts: 0,
            varies: false,
            closest: input,
            distance: distance(comparison),
            deciding: BTreeSet::new(),
            bytes: comparison.bytes,
            constant: comparison.constant,
            ignores_case: comparison.ignores_case,
            operands: [Own::of(comparison.a), Own::of(comparison.b)],
        }
    }

    fn add(&mut self, input: usize, comparison: &Comparison<'_>) {
        let own = self.comparison();
        if own.a == comparison.a && own.b == comparison.b {
            return;
        }
        self.varies = true;
        let distance = distance(comparison);
        if distance < self.distance {
            (self.distance, self.closest) = (distance, input);
            self.deciding.clear();
            self.operands = [Own::of(comparison.a), Own::of(comparison.b)];
        }
    }

    /// The comparison as logged in the run of the closest input.
    #[must_use]
    pub fn comparison(&self) -> Comparison<'_> {
        let [a, b] = &self.operands;
        Comparison {
            site: self.site,
            kind: self.kind,
            bytes: self.bytes,
            constant: self.constant,
            ignores_case: self.ignores_case,
            is_guess: false,
            a: a.operand(),
            b: b.operand(),
        }
    }

    /// True if the operands were never equal, or the value was never a case of the `switch`.
    #[must_use]
    pub fn is_never_equal(&self) -> bool {
        use ComparisonKind::{Equal, Memory, Search, Switch, Text};
        match self.kind {
            Equal | Memory | Text | Search => self.result == 0,
            Switch => self.result == u32::MAX,
            _ => false,
        }
    }

    /// Describes the result in words, such as "never equal".
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        use ComparisonKind::{Float, Search, Signed, Switch, Unsigned};
        match (self.kind, self.result) {
            (Switch, u32::MAX) => "never a case",
            (Switch, _) => "always the same case",
            (Search, 0) => "never found",
            (Search, _) => "always found",
            (Unsigned | Signed | Float, 0) => "always equal",
            (Unsigned | Signed | Float, 1) => "always greater",
            (Unsigned | Signed | Float, u32::MAX) => "always less",
            (Float, _) => "never ordered",
            (_, 0) => "never equal",
            (_, _) => "always equal",
        }
    }
}

impl Own {
    fn of(operand: Operand<'_>) -> Self {
        match operand {
            Operand::Value(value) => Self::Value(value),
            Operand::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }

    fn operand(&self) -> Operand<'_> {
        match self {
            Self::Value(value) => Operand::Value(*value),
            Self::Bytes(bytes) => Operand::Bytes(bytes),
        }
    }
}

/// Groups ascending numbers into ranges of consecutive ones, each as (first, last).
#[must_use]
pub fn ranges(numbers: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

fn distance(comparison: &Comparison<'_>) -> u64 {
    match (comparison.a, comparison.b) {
        (Operand::Value(a), Operand::Value(b)) => match comparison.kind {
            ComparisonKind::Equal => (a ^ b).count_ones().into(),
            _ => a.abs_diff(b),
        },
        (Operand::Value(value), Operand::Bytes(cases)) => {
            let cases = cases.chunks_exact(8).filter_map(|case| case.try_into().ok());
            let cases = cases.map(u64::from_le_bytes);
            cases.map(|case| (case ^ value).count_ones().into()).min().unwrap_or(u64::MAX)
        }
        (Operand::Bytes(a), Operand::Bytes(b)) => {
            let is_other = |(a, b): (&u8, &u8)| match comparison.ignores_case {
                true => !a.eq_ignore_ascii_case(b),
                false => a != b,
            };
            let others = a.iter().zip(b).filter(|pair| is_other(*pair)).count();
            (others + a.len().abs_diff(b.len())) as u64
        }
        (Operand::Bytes(_), Operand::Value(_)) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;

    #[test]
    fn what_never_flips_is_listed_with_its_closest_input() {
        let mut blockers = Blockers::default();
        for (input, value) in [0x10, 0x16, 0x81, 0x16].into_iter().enumerate() {
            let mut log = OwnLog::default();
            log.add_integers(1, ComparisonKind::Equal, 4, value, 0x17);
            log.add_integers(2, ComparisonKind::Unsigned, 4, value, 0x80);
            log.add_integers(3, ComparisonKind::Unsigned, 4, value, 0x100);
            log.add_bytes(4, ComparisonKind::Text, b"name", b"Nemo");
            log.add_bytes(5, ComparisonKind::Memory, b"ab", b"ab");
            if input > 1 {
                log.add_integers(6, ComparisonKind::Equal, 4, value, 0xff);
            }
            blockers.add(input, b"", log.view());
        }
        assert_eq!(blockers.sites(), 6);
        let mut counted = blockers.clone();
        counted.note_attempt(1);
        for _ in 0..2 {
            blockers.take_attempts(&[&counted, &counted]);
            assert_eq!(blockers.get(1).map(|blocker| blocker.attempts), Some(2));
        }
        blockers.take_attempts(&[]);
        blockers.note_bytes(1, 0, 7..9);
        blockers.note_bytes(1, 1, 4..6);
        blockers.note_bytes(6, 3, 0..1000);
        let all = blockers.list(usize::MAX);
        assert!(all[0].deciding.iter().eq(&[4, 5]) && all[1].deciding.len() == MOST_BYTES);
        assert_eq!(blockers.list(2), all[..2]);
        let seen: Vec<_> = all
            .iter()
            .map(|one| (one.site, one.inputs, one.closest, one.distance, one.outcome()))
            .collect();
        let expected = [
            (1, 4, 1, 1, "never equal"),
            (6, 2, 3, 5, "never equal"),
            (4, 4, 0, 3, "never equal"),
            (3, 4, 2, 0x7f, "always less"),
            (5, 4, 0, 0, "always equal"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(all[0].comparison().a, Operand::Value(0x16));
    }
}
