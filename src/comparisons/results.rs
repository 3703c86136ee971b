//! Results of comparisons so far, by site and occurrence.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap as HashMap;
use serde::{Deserialize, Serialize};

use crate::log::{Comparison, ComparisonKind, ComparisonLog};

/// Identifies a comparison across runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    pub site: u32,
    /// See [`Comparison::key`]; 0 in the state of an older version.
    #[serde(default)]
    pub key: u32,
    /// Number of comparisons with the same key before it in the log.
    pub occurrence: u32,
}

#[cfg(test)]
impl Place {
    /// A comparison of numbers: its key is the site.
    pub const fn new(site: u32, occurrence: u32) -> Self {
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

/// Number of comparisons that a run has logged at each site. If the log omits equal integers, a missing comparison
/// shows that its operands are now equal.
#[derive(Clone, Debug, Default)]
pub struct SiteCounts {
    /// By site and result.
    counts: HashMap<(u32, u32), u32>,
    /// Number of comparisons of numbers, by site.
    numbers: HashMap<u32, u32>,
}

/// Why a comparison is missing in the log of another run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Missing {
    /// It is not missing.
    Not,
    /// Its operands are now equal: no other site has changed.
    Equal,
    /// Equal or not reached: the other run has comparisons that this one lacks.
    EqualOrUnreached,
    /// Equal or not reached: comparisons of other sites are missing as well.
    Unknown,
}

impl SiteCounts {
    pub fn of(log: ComparisonLog<'_>) -> Self {
        let mut counts = Self::default();
        for comparison in log.iter() {
            *counts.counts.entry((comparison.site, comparison.result())).or_default() += 1;
            if comparison.bytes > 0 {
                *counts.numbers.entry(comparison.site).or_default() += 1;
            }
        }
        counts
    }

    /// Why a comparison of `site` is missing in the run `other`.
    pub fn missing(&self, other: &Self, site: u32) -> Missing {
        // Only numbers are omitted from a log, memory and text never.
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

    /// True if this run has a comparison that `other` lacks at any site but `except`.
    fn has_more(&self, other: &Self, except: u32) -> bool {
        let mut others = self.counts.iter().filter(|((site, _), _)| *site != except);
        others.any(|(key, count)| other.counts.get(key) < Some(count))
    }
}

/// Results so far, for each key and for each of its first occurrences. Separate occurrences allow a keyword that is
/// compared in a loop to be solved letter by letter.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Results {
    keys: HashMap<u32, Vec<u32>>,
    #[serde(with = "pairs")]
    places: HashMap<Place, Vec<u32>>,
    /// Number of times that solvers have failed.
    #[serde(with = "pairs")]
    failures: HashMap<Place, u32>,
    /// Number of inputs edited for the place without effect.
    #[serde(with = "pairs")]
    fruitless: HashMap<Place, u32>,
    /// Hashes of the inputs from which the place was made equal, see [`Results::learn_equal`].
    #[serde(with = "pairs")]
    equal: HashMap<Place, Vec<u64>>,
}

impl Results {
    /// Maximum number of distinct results recorded for a key or place.
    const MOST: usize = 64;
    /// Number of occurrences of a key that have results of their own.
    const MOST_OCCURRENCES: u32 = 16;
    /// Number of inputs from which a comparison is made equal before that counts as a result, if logs do not show it.
    const MOST_EQUAL: usize = 4;

    /// Adds the results of a run. Returns true if a key has a new one.
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

    /// Adds a result of a key, without an occurrence.
    pub fn learn_key(&mut self, key: u32, result: u32) {
        let known = self.keys.entry(key).or_default();
        if known.len() < Self::MOST && !known.contains(&result) {
            known.push(result);
        }
    }

    /// Number of known results of a key.
    #[must_use]
    pub fn seen(&self, key: u32) -> usize {
        self.keys.get(&key).map_or(0, Vec::len)
    }

    /// Records that a comparison missing in the log was made equal in an input derived from `from`. The place stays
    /// open until `MOST_EQUAL` inputs have done so: others may have to flip at the same time, and the log does not
    /// show whether it was equal before.
    pub fn learn_equal(&mut self, place: Place, kind: ComparisonKind, from: &[u8]) {
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

    /// True if the place was made equal in an input derived from `from`.
    pub fn was_made_equal(&self, place: Place, from: &[u8]) -> bool {
        self.equal.get(&place).is_some_and(|inputs| inputs.contains(&hash(from)))
    }

    /// True if fewer than two results of the key are known.
    #[must_use]
    pub fn is_one_sided(&self, key: u32) -> bool {
        self.keys.get(&key).is_none_or(|results| results.len() < 2)
    }

    /// True if the key, or this occurrence of it, has had at most one result.
    #[must_use]
    pub fn is_open(&self, place: Place, kind: ComparisonKind) -> bool {
        let is_told = tells_occurrences(kind) && place.occurrence < Self::MOST_OCCURRENCES;
        let known = || self.places.get(&place).is_none_or(|results| results.len() < 2);
        self.is_one_sided(place.key) || (is_told && known())
    }

    /// Counts one failure of a solver to flip the comparison.
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

    /// Counts an input whose edits did not flip the comparison, as far as the log shows.
    pub fn had_no_effect(&mut self, place: Place) {
        *self.fruitless.entry(place).or_default() += 1;
    }

    /// Number of inputs edited for the place without effect.
    pub fn edits_without_effect(&self, place: Place) -> u32 {
        self.fruitless.get(&place).copied().unwrap_or(0)
    }

    /// The known results of the place; those of its key if that has fewer than two, or the place has none.
    #[must_use]
    pub fn of(&self, place: Place) -> &[u32] {
        let of_key = || self.keys.get(&place.key);
        let is_one_sided = self.is_one_sided(place.key);
        let of_place = self.places.get(&place).filter(|_| !is_one_sided);
        of_place.or_else(of_key).map_or(&[], Vec::as_slice)
    }
}

/// Serializes maps by place as lists of pairs, because JSON keys must be strings.
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

/// True if occurrences have results of their own. Not for orders: in a loop over the input, an order in one iteration
/// says nothing about another.
fn tells_occurrences(kind: ComparisonKind) -> bool {
    use ComparisonKind::{Equal, Memory, Search, Text};
    matches!(kind, Equal | Memory | Search | Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;

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
            // A run that ends earlier, at a comparison that was equal before, looks the same.
            (&[2, 2, 3, 100], 1, Missing::EqualOrUnreached),
            (&[2, 100], 1, Missing::Unknown),
            // Memory is always logged, so the run did not reach it.
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
