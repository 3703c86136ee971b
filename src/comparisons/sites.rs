//! Comparisons that seeds reach but none passes, and the seed from which to try next.
//!
//! The site with the fewest tries comes first, then the one that the fewest seeds reach, from its cheapest seed. Each
//! is tried twice.

use serde::{Deserialize, Serialize};

use rustc_hash::FxHashMap as HashMap;

use crate::log::{ComparisonKind, ComparisonLog, Operand};
use crate::results::Results;
use ffuzz_mutate::origin::SeedId;

/// Maximum number of seeds recorded for a site, the cheapest ones.
const MOST_SEEDS: usize = 4;
/// Maximum number of tries of a site. More would take time from sites without any.
const MOST_TRIES: u32 = 2;
/// Maximum number of sites. Further ones are solved in long rounds only.
const MOST_SITES: usize = 1 << 16;
/// Maximum number of results distinguished for a site.
const MOST_CASES: usize = 64;

/// Shut keys of comparisons that seeds reach, see [`Comparison::key`](crate::log::Comparison::key). A key is
/// shut while it has only one result or, for a switch, lacks a case.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Sites {
    shut: HashMap<u32, Site>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Site {
    /// Site of the key.
    #[serde(default)]
    number: u32,
    /// Number of seeds that reach it.
    inputs: u32,
    tries: u32,
    /// Number of possible results.
    cases: usize,
    /// Seeds with the cost of a run, the cheapest first.
    seeds: Vec<(u64, SeedId)>,
}

impl Sites {
    /// Adds the sites of a seed's run, and their results to `results`.
    pub fn scan(&mut self, id: SeedId, cost: u64, log: ComparisonLog<'_>, results: &mut Results) {
        let (mut sites, mut last) = (HashMap::default(), None);
        for one in log.iter() {
            let key = one.key();
            // A loop over the input repeats the same comparison many times.
            let now = Some((key, one.result()));
            if now == last {
                continue;
            }
            last = now;
            results.learn_key(key, one.result());
            if one.constant != [true; 2] {
                sites.entry(key).or_insert_with(|| {
                    let cases = match (one.kind, one.b) {
                        (ComparisonKind::Switch, Operand::Bytes(cases)) => {
                            (cases.len() / 8 + 1).min(MOST_CASES)
                        }
                        _ => 2,
                    };
                    (one.site, cases)
                });
            }
        }
        for (key, (number, cases)) in sites {
            if results.seen(key) >= cases {
                self.shut.remove(&key);
                continue;
            }
            let is_full = self.shut.len() >= MOST_SITES && !self.shut.contains_key(&key);
            if is_full {
                continue;
            }
            let site = self.shut.entry(key).or_default();
            (site.number, site.inputs, site.cases) = (number, site.inputs + 1, cases);
            site.seeds.push((cost, id));
            site.seeds.sort_by_key(|(cost, id)| (*cost, std::cmp::Reverse(*id)));
            site.seeds.truncate(MOST_SEEDS);
        }
    }

    /// The cheapest seed with `may_try` that reaches the rarest of the sites with the fewest tries. Of these, sites
    /// with `leads` (to code not reached) come before others.
    pub fn next(
        &self,
        results: &Results,
        leads: impl Fn(u32) -> bool,
        may_try: impl Fn(SeedId) -> bool,
    ) -> Option<SeedId> {
        let open = self.shut.iter().filter(|(key, _)| self.is_left(**key, results));
        let seeds = open.filter_map(|(key, site)| {
            let (_, id) = site.seeds.iter().find(|(_, id)| may_try(*id))?;
            let rank = self.rank(*key, leads(site.number));
            Some(((rank, std::cmp::Reverse(*id), *key), *id))
        });
        seeds.min_by_key(|(key, _)| *key).map(|(_, id)| id)
    }

    /// Whether a site may be tried: it is shut and has tries left. A site that no scan has seen needs only be
    /// one-sided.
    pub fn is_left(&self, key: u32, results: &Results) -> bool {
        match self.shut.get(&key) {
            Some(site) => site.tries < MOST_TRIES && results.seen(key) < site.cases,
            None => results.is_one_sided(key),
        }
    }

    /// Rank of a site, the lowest is tried first. `leads`: the site leads to code not reached.
    pub fn rank(&self, key: u32, leads: bool) -> (u32, bool, u32) {
        let site = self.shut.get(&key);
        site.map_or((0, !leads, 0), |site| (site.tries, !leads, site.inputs))
    }

    /// Counts a round that has tried to pass the site.
    pub fn tried(&mut self, key: u32) {
        if let Some(site) = self.shut.get_mut(&key) {
            site.tries += 1;
        }
    }

    /// Resets the tries of all sites.
    pub fn forget_tries(&mut self) {
        self.shut.values_mut().for_each(|site| site.tries = 0);
    }

    /// Removes seeds that are not kept.
    pub fn retain(&mut self, is_kept: impl Fn(SeedId) -> bool) {
        for site in self.shut.values_mut() {
            site.seeds.retain(|(_, id)| is_kept(*id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::OwnLog;

    fn log(entries: &[(u32, u64, u64)]) -> OwnLog {
        let mut log = OwnLog::default();
        for (site, a, b) in entries {
            log.add_integers(*site, ComparisonKind::Equal, 4, *a, *b);
        }
        log
    }

    #[test]
    fn the_rarest_shut_site_comes_first_with_its_cheapest_seed() {
        let (mut sites, mut results) = (Sites::default(), Results::default());
        let [a, b, c] = [0, 1, 2].map(SeedId);
        sites.scan(a, 10, log(&[(1, 1, 2), (2, 1, 2)]).view(), &mut results);
        sites.scan(b, 5, log(&[(1, 3, 2), (3, 7, 7)]).view(), &mut results);
        sites.scan(c, 9, log(&[(1, 3, 2), (3, 7, 7), (3, 7, 7)]).view(), &mut results);
        // Site 2 has one seed, 1 three, 3 two.
        assert_eq!(sites.next(&results, |_| false, |_| true), Some(a));
        sites.tried(2);
        assert_eq!(sites.next(&results, |_| false, |_| true), Some(b));
        assert_eq!(sites.next(&results, |_| false, |id| id != b), Some(c));
        [2, 3, 3].into_iter().for_each(|site| sites.tried(site));
        assert!(!sites.is_left(3, &results) && sites.is_left(1, &results));
        assert_eq!(sites.next(&results, |_| false, |_| true), Some(b));
        // Site 3 leads to something.
        sites.forget_tries();
        assert_eq!(sites.next(&results, |site| site == 3, |_| true), Some(b));
        [1, 2, 2, 3, 3].into_iter().for_each(|site| sites.tried(site));
        // A site that any run passes is no longer shut.
        sites.scan(SeedId(3), 1, log(&[(1, 2, 2)]).view(), &mut results);
        assert!(!sites.is_left(1, &results));
        sites.tried(2);
        assert_eq!(sites.next(&results, |_| false, |_| true), None);
    }
}
