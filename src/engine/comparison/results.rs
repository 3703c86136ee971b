//! What comparisons have come to, by site and occurrence.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};

use super::{Comparison, ComparisonKind, ComparisonLog};

/// A comparison of a run, also in another run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    pub site: u32,
    /// See [`Comparison::key`]; 0 in the state of an older version.
    #[serde(default)]
    pub key: u32,
    /// How many with this key stand before it in the log.
    pub occurrence: u32,
}

#[cfg(test)]
impl Place {
    /// Of numbers.
    pub(crate) const fn new(site: u32, occurrence: u32) -> Self {
        Self { site, key: site, occurrence }
    }
}

/// Counts the comparisons of each key while a log is read.
#[derive(Clone, Debug, Default)]
pub struct Occurrences(HashMap<u32, u32>);

impl Occurrences {
    /// The place of the next comparison of the log.
    pub fn place(&mut self, comparison: &Comparison<'_>) -> Place {
        let key = comparison.key();
        let count = self.0.entry(key).or_default();
        let place = Place { site: comparison.site, key, occurrence: *count };
        *count += 1;
        place
    }
}

/// How many comparisons of each site a run has logged. In a log that leaves out integers that are equal, this shows
/// that one has come to be equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteCounts {
    /// By site and result.
    counts: HashMap<(u32, u32), u32>,
    /// Those of numbers: how many.
    numbers: HashMap<u32, u32>,
}

/// Why a comparison is missing in the log of another run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Missing {
    /// It is not.
    Not,
    /// It has come to be equal: nothing else is different.
    Equal,
    /// It has, or the run did not come to it: there are others that were not there before.
    EqualOrUnreached,
    /// The same, and others are missing as well.
    Unknown,
}

impl SiteCounts {
    pub(crate) fn of(log: ComparisonLog<'_>) -> Self {
        let mut counts = Self::default();
        for comparison in log.iter() {
            *counts.counts.entry((comparison.site, comparison.result())).or_default() += 1;
            if comparison.bytes > 0 {
                *counts.numbers.entry(comparison.site).or_default() += 1;
            }
        }
        counts
    }

    /// Whether a comparison of this site is missing in another run.
    pub(crate) fn missing(&self, other: &Self, site: u32) -> Missing {
        // Memory and texts are never left out.
        if self.numbers.get(&site) <= other.numbers.get(&site) {
            return Missing::Not;
        }
        if self.has_more(other, site) {
            Missing::Unknown
        } else if other.has_more(self, site) {
            Missing::EqualOrUnreached
        } else {
            Missing::Equal
        }
    }

    /// It has something that another run has not, apart from this site.
    fn has_more(&self, other: &Self, except: u32) -> bool {
        let mut others = self.counts.iter().filter(|((site, _), _)| *site != except);
        others.any(|(key, count)| other.counts.get(key) < Some(count))
    }
}

/// What comparisons have come to so far: those of a key, and of each of its first occurrences. A keyword that is
/// compared in a loop is passed letter by letter so.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Results {
    keys: HashMap<u32, Vec<u32>>,
    #[serde(with = "pairs")]
    places: HashMap<Place, Vec<u32>>,
    /// How often solvers have failed.
    #[serde(with = "pairs")]
    failures: HashMap<Place, u32>,
    /// How many inputs were edited for it without effect.
    #[serde(with = "pairs")]
    fruitless: HashMap<Place, u32>,
    /// Hashes of inputs from which it was made equal, see [`Results::learn_equal`].
    #[serde(with = "pairs")]
    equal: HashMap<Place, Vec<u64>>,
}

impl Results {
    /// Different results of one key that are distinguished.
    const MOST: usize = 64;
    /// Occurrences of one key that are distinguished.
    const MOST_OCCURRENCES: u32 = 16;
    /// Inputs from which a comparison is made equal, if logs do not show that.
    const MOST_EQUAL: usize = 4;

    /// Adds those of a run. True if a key came to something new.
    pub fn learn(&mut self, log: ComparisonLog<'_>) -> bool {
        let (mut is_new, mut occurrences) = (false, Occurrences::default());
        for comparison in log.iter() {
            let (place, result) = (occurrences.place(&comparison), comparison.result());
            let add = |known: &mut Vec<u32>| {
                let is_new = known.len() < Self::MOST && !known.contains(&result);
                known.extend(is_new.then_some(result));
                is_new
            };
            is_new |= add(self.keys.entry(place.key).or_default());
            if tells_occurrences(comparison.kind) && place.occurrence < Self::MOST_OCCURRENCES {
                add(self.places.entry(place).or_default());
            }
        }
        is_new
    }

    /// Adds what a key came to, of no occurrence.
    pub(crate) fn learn_key(&mut self, key: u32, result: u32) {
        let known = self.keys.entry(key).or_default();
        if known.len() < Self::MOST && !known.contains(&result) {
            known.push(result);
        }
    }

    /// How many results of a key are known.
    #[must_use]
    pub(crate) fn seen(&self, key: u32) -> usize {
        self.keys.get(&key).map_or(0, Vec::len)
    }

    /// A comparison that is not in the log has come to be equal. It stays open at first: others may have to flip at
    /// once, and the log does not show that it was right before.
    pub(crate) fn learn_equal(&mut self, place: Place, kind: ComparisonKind, from: &[u8]) {
        let (inputs, from) = (self.equal.entry(place).or_default(), hash(from));
        if !inputs.contains(&from) {
            inputs.push(from);
        }
        if inputs.len() < Self::MOST_EQUAL {
            return;
        }
        let result = match kind {
            ComparisonKind::Equal => 1,
            _ => Ordering::Equal as u32,
        };
        let of_place = self.places.entry(place).or_default();
        for known in [self.keys.entry(place.key).or_default(), of_place] {
            if !known.contains(&result) && known.len() < Self::MOST {
                known.push(result);
            }
        }
    }

    /// It was made equal from this input.
    pub(crate) fn was_made_equal(&self, place: Place, from: &[u8]) -> bool {
        self.equal.get(&place).is_some_and(|inputs| inputs.contains(&hash(from)))
    }

    /// A key that always came to the same.
    #[must_use]
    pub(crate) fn is_one_sided(&self, key: u32) -> bool {
        self.keys.get(&key).is_none_or(|results| results.len() < 2)
    }

    /// It always came to the same: its key did, or this occurrence of it.
    #[must_use]
    pub fn is_open(&self, place: Place, kind: ComparisonKind) -> bool {
        let is_told = tells_occurrences(kind) && place.occurrence < Self::MOST_OCCURRENCES;
        let known = || self.places.get(&place).is_none_or(|results| results.len() < 2);
        self.is_one_sided(place.key) || (is_told && known())
    }

    /// A solver has failed to flip it.
    pub fn failed(&mut self, place: Place) {
        *self.failures.entry(place).or_default() += 1;
    }

    pub fn forget_failures(&mut self) {
        self.failures.clear();
    }

    #[must_use]
    pub fn failures(&self, place: Place) -> u32 {
        self.failures.get(&place).copied().unwrap_or(0)
    }

    /// The edits of an input have not flipped it, as far as a log shows that.
    pub(crate) fn had_no_effect(&mut self, place: Place) {
        *self.fruitless.entry(place).or_default() += 1;
    }

    /// How many inputs were edited for it without effect.
    pub(crate) fn edits_without_effect(&self, place: Place) -> u32 {
        self.fruitless.get(&place).copied().unwrap_or(0)
    }

    /// What it came to.
    #[must_use]
    pub fn of(&self, place: Place) -> &[u32] {
        let of_key = || self.keys.get(&place.key);
        let is_one_sided = self.is_one_sided(place.key);
        let of_place = self.places.get(&place).filter(|_| !is_one_sided);
        of_place.or_else(of_key).map_or(&[], Vec::as_slice)
    }
}

/// Maps by place as lists of pairs: JSON has only texts as keys.
mod pairs {
    use rustc_hash::FxHashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Place;

    pub(super) fn serialize<V: Serialize, S: Serializer>(
        map: &FxHashMap<Place, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'a, V: Deserialize<'a>, D: Deserializer<'a>>(
        from: D,
    ) -> Result<FxHashMap<Place, V>, D::Error> {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}

fn hash(input: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    input.hash(&mut hasher);
    hasher.finish()
}

/// In a loop over the input, what is in order at one time says nothing about another time.
fn tells_occurrences(kind: ComparisonKind) -> bool {
    use ComparisonKind::{Equal, Memory, Search, Text};
    matches!(kind, Equal | Memory | Search | Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::OwnLog;

    fn counts(sites: &[u32]) -> SiteCounts {
        let mut log = OwnLog::partial();
        for site in sites {
            match site {
                0..100 => log.add_variables(*site, ComparisonKind::Equal, 4, 1, 2),
                _ => log.add_bytes(*site, ComparisonKind::Memory, b"a", b"b"),
            }
        }
        SiteCounts::of(log.view())
    }

    #[test]
    fn an_integer_that_alone_is_missing_is_equal() {
        let base = counts(&[1, 2, 2, 100]);
        for (others, site, expected) in [
            (&[1, 2, 2, 100][..], 2, Missing::Not),
            (&[1, 2, 100], 2, Missing::Equal),
            (&[2, 2, 100], 1, Missing::Equal),
            // An end before it, at what was equal until now, looks the same.
            (&[2, 2, 3, 100], 1, Missing::EqualOrUnreached),
            (&[2, 100], 1, Missing::Unknown),
            // What is always logged was not come to.
            (&[1, 2, 2], 100, Missing::Not),
        ] {
            assert_eq!(base.missing(&counts(others), site), expected, "{others:?}");
        }
    }

    #[test]
    fn what_is_learned_to_be_equal_is_not_open() {
        let place = Place::new(7, 0);
        let mut log = OwnLog::partial();
        log.add_variables(7, ComparisonKind::Unsigned, 4, 1, 2);
        let mut results = Results::default();
        results.learn(log.view());
        assert!(results.is_open(place, ComparisonKind::Unsigned));
        for input in [b"a", b"b", b"b", b"c", b"d"] {
            assert!(results.is_open(place, ComparisonKind::Unsigned));
            results.learn_equal(place, ComparisonKind::Unsigned, input);
        }
        assert!(results.was_made_equal(place, b"a") && !results.was_made_equal(place, b"e"));
        assert!(!results.is_open(place, ComparisonKind::Unsigned));
    }
}
