//! What comparisons have come to, by site and occurrence.

use std::collections::HashMap;

use super::{Comparison, ComparisonKind, ComparisonLog};

/// A comparison of a run, also in another run.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Place {
    pub site: u32,
    /// How many of the site stand before it in the log.
    pub occurrence: u32,
}

/// Counts the comparisons of each site while a log is read.
#[derive(Clone, Debug, Default)]
pub struct Occurrences(HashMap<u32, u32>);

impl Occurrences {
    /// The place of the next comparison of the log.
    pub fn place(&mut self, comparison: &Comparison<'_>) -> Place {
        let count = self.0.entry(comparison.site).or_default();
        let place = Place { site: comparison.site, occurrence: *count };
        *count += 1;
        place
    }
}

/// What comparisons have come to so far: those of a site, and of each of its first occurrences. A keyword that is
/// compared in a loop is passed letter by letter so.
#[derive(Clone, Debug, Default)]
pub struct Results {
    sites: HashMap<u32, Vec<u32>>,
    places: HashMap<Place, Vec<u32>>,
    /// How often solvers have failed.
    failures: HashMap<Place, u32>,
}

impl Results {
    /// Different results of one site that are told apart.
    const MOST: usize = 64;
    /// Occurrences of one site that are told apart.
    const MOST_OCCURRENCES: u32 = 16;

    /// Adds those of a run. True if a site came to something new.
    pub fn learn(&mut self, log: ComparisonLog<'_>) -> bool {
        let (mut is_new, mut occurrences) = (false, Occurrences::default());
        for comparison in log.iter() {
            let (place, result) = (occurrences.place(&comparison), comparison.result());
            let add = |known: &mut Vec<u32>| {
                let is_new = known.len() < Self::MOST && !known.contains(&result);
                known.extend(is_new.then_some(result));
                is_new
            };
            is_new |= add(self.sites.entry(place.site).or_default());
            if tells_occurrences(comparison.kind) && place.occurrence < Self::MOST_OCCURRENCES {
                add(self.places.entry(place).or_default());
            }
        }
        is_new
    }

    /// A site that always came to the same.
    #[must_use]
    pub fn is_one_sided(&self, site: u32) -> bool {
        self.sites.get(&site).is_none_or(|results| results.len() < 2)
    }

    /// It always came to the same: its site did, or this occurrence of it.
    #[must_use]
    pub fn is_open(&self, place: Place, kind: ComparisonKind) -> bool {
        let is_told = tells_occurrences(kind) && place.occurrence < Self::MOST_OCCURRENCES;
        let known = || self.places.get(&place).is_none_or(|results| results.len() < 2);
        self.is_one_sided(place.site) || (is_told && known())
    }

    /// A solver has failed to turn it.
    pub fn failed(&mut self, place: Place) {
        *self.failures.entry(place).or_default() += 1;
    }

    #[must_use]
    pub fn failures(&self, place: Place) -> u32 {
        self.failures.get(&place).copied().unwrap_or(0)
    }

    /// What it came to.
    #[must_use]
    pub fn of(&self, place: Place) -> &[u32] {
        let of_site = || self.sites.get(&place.site);
        let is_one_sided = self.is_one_sided(place.site);
        let of_place = self.places.get(&place).filter(|_| !is_one_sided);
        of_place.or_else(of_site).map_or(&[], Vec::as_slice)
    }
}

/// In a loop over the input, what is in order at one time says nothing about another time.
fn tells_occurrences(kind: ComparisonKind) -> bool {
    use ComparisonKind::{Equal, Memory, Search, Text};
    matches!(kind, Equal | Memory | Search | Text)
}
