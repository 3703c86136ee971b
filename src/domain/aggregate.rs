//! The best value of every key so far, and what a run adds to it.

use super::{Domain, DsfView, Reducer};

/// One key that an input moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyGain {
    /// Global index.
    pub key: u32,
    /// Value of the run.
    pub value: u32,
    /// Aggregate before and after.
    pub before: u32,
    pub after: u32,
    /// Bits gained, for reducers where several inputs can own one key; 0 otherwise.
    pub bits: u32,
}

/// Aggregates of all keys.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    domains: Vec<Domain>,
    values: Vec<u32>,
}

impl Aggregates {
    #[must_use]
    pub fn new(domains: &[Domain]) -> Self {
        let total = domains.last().map_or(0, Domain::end) as usize;
        let mut values = vec![0; total];
        for domain in domains {
            values[domain.range()].fill(domain.initial);
        }
        Self { domains: domains.to_vec(), values }
    }

    /// True if a run would move any aggregate. Reads only.
    #[must_use]
    pub fn would_gain(&self, run: &DsfView<'_>) -> bool {
        let mut gains = false;
        run.for_each_changed(|domain, key, value| {
            let aggregate = self.values[key as usize];
            gains |= domain.reducer.apply(aggregate, value) != aggregate;
        });
        gains
    }

    /// Moves the aggregates by one run; returns what changed, by ascending key.
    pub fn merge(&mut self, run: &DsfView<'_>) -> Vec<KeyGain> {
        let mut gains = Vec::new();
        run.for_each_changed(|domain, key, value| {
            let aggregate = &mut self.values[key as usize];
            let (before, after) = (*aggregate, domain.reducer.apply(*aggregate, value));
            if before != after {
                *aggregate = after;
                let bits = if domain.reducer.is_bitwise() { before ^ after } else { 0 };
                gains.push(KeyGain { key, value, before, after, bits });
            }
        });
        gains.sort_unstable_by_key(|gain| gain.key);
        gains
    }

    /// Aggregates of all keys, by global index.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Keys whose aggregate left the initial value, ascending: (key, aggregate).
    pub fn changed(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.domains.iter().flat_map(|domain| self.changed_in(domain))
    }

    /// The same for one domain.
    pub fn changed_in<'a>(&'a self, domain: &'a Domain) -> impl Iterator<Item = (u32, u32)> + 'a {
        (domain.start..)
            .zip(&self.values[domain.range()])
            .filter(|(_, value)| **value != domain.initial)
            .map(|(key, value)| (key, *value))
    }

    /// The most remarkable key of a domain: the smallest aggregate for MIN, otherwise the largest.
    #[must_use]
    pub fn best_in(&self, domain: &Domain) -> Option<(u32, u32)> {
        let changed = self.changed_in(domain);
        match domain.reducer {
            Reducer::Min | Reducer::BitIntersect => changed.min_by_key(|(_, value)| *value),
            _ => changed.max_by_key(|(key, value)| (*value, std::cmp::Reverse(*key))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(domains: &'a [Domain], values: &'a [u32]) -> DsfView<'a> {
        DsfView { domains, values, touched: None }
    }

    fn two_domains() -> Vec<Domain> {
        let name = String::new;
        vec![
            Domain { name: name(), start: 0, size: 2, reducer: Reducer::Max, initial: 0 },
            Domain { name: name(), start: 2, size: 1, reducer: Reducer::BitUnion, initial: 0 },
        ]
    }

    #[test]
    fn max_reducer_ignores_a_lower_value() {
        let domains = two_domains();
        let mut aggregates = Aggregates::new(&domains);
        assert_eq!(aggregates.merge(&view(&domains, &[7, 0, 0])).len(), 1);
        assert!(!aggregates.would_gain(&view(&domains, &[6, 0, 0])));
        assert_eq!(aggregates.merge(&view(&domains, &[6, 0, 0])), []);
        assert_eq!(aggregates.changed().collect::<Vec<_>>(), [(0, 7)]);
    }

    #[test]
    fn union_reports_the_bits_gained() {
        let domains = two_domains();
        let mut aggregates = Aggregates::new(&domains);
        aggregates.merge(&view(&domains, &[0, 0, 0b01]));
        let gains = aggregates.merge(&view(&domains, &[0, 0, 0b11]));
        assert_eq!(gains[0], KeyGain { key: 2, value: 3, before: 1, after: 3, bits: 0b10 });
    }

    #[test]
    fn a_key_listed_twice_counts_once() {
        let domains = two_domains();
        let mut aggregates = Aggregates::new(&domains);
        let run = DsfView { domains: &domains, values: &[3, 0, 0], touched: Some(&[0, 0]) };
        assert_eq!(aggregates.merge(&run).len(), 1);
    }

    #[test]
    fn best_of_min_is_the_smallest() {
        let domains = [Domain {
            name: String::new(),
            start: 0,
            size: 3,
            reducer: Reducer::Min,
            initial: u32::MAX,
        }];
        let mut aggregates = Aggregates::new(&domains);
        aggregates.merge(&view(&domains, &[9, u32::MAX, 4]));
        assert_eq!(aggregates.best_in(&domains[0]), Some((2, 4)));
    }
}
