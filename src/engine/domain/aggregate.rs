//! Best value of every key so far, and the gains of a run.

use std::collections::BTreeSet;

use super::{Domain, DsfView};

/// Gain of one key.
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
    noisy: BTreeSet<u32>,
    /// Keys whose threshold has moved since [`Aggregates::take_moved`].
    moved: Vec<u32>,
}

impl Aggregates {
    #[must_use]
    pub fn new(domains: &[Domain]) -> Self {
        let total = domains.last().map_or(0, Domain::end) as usize;
        let mut values = vec![0; total];
        for domain in domains {
            values[domain.range()].fill(domain.initial);
        }
        Self { domains: domains.to_vec(), values, noisy: BTreeSet::new(), moved: Vec::new() }
    }

    /// True if a run would move any aggregate. Reads only.
    #[must_use]
    pub fn would_gain(&self, run: &DsfView<'_>) -> bool {
        let mut gains = false;
        run.for_each_changed(|domain, key, value| {
            gains |= self.gain(domain, key, value).is_some();
        });
        gains
    }

    /// Gains that a run would bring, by ascending key. Reads only.
    #[must_use]
    pub fn gains(&self, run: &DsfView<'_>) -> Vec<KeyGain> {
        let mut gains = Vec::new();
        run.for_each_changed(|domain, key, value| gains.extend(self.gain(domain, key, value)));
        gains.sort_unstable_by_key(|gain| gain.key);
        gains.dedup_by_key(|gain| gain.key);
        gains
    }

    /// Merges a run into the aggregates; returns the gains by ascending key.
    pub fn merge(&mut self, run: &DsfView<'_>) -> Vec<KeyGain> {
        let gains = self.gains(run);
        for gain in &gains {
            self.values[gain.key as usize] = gain.after;
            self.moved.push(gain.key);
        }
        gains
    }

    /// Merges one value into the aggregate of `key`.
    pub fn merge_value(&mut self, key: u32, value: u32) {
        if let Some(domain) = self.domain_of(key) {
            let before = self.values[key as usize];
            let after = domain.reducer.apply(before, value);
            if after != before {
                self.values[key as usize] = after;
                self.moved.push(key);
            }
        }
    }

    /// True if [`Aggregates::merge_value`] would change the aggregate. Reads only.
    #[must_use]
    pub fn would_move(&self, key: u32, value: u32) -> bool {
        self.domain_of(key).is_some_and(|domain| {
            let before = self.values[key as usize];
            domain.reducer.apply(before, value) != before
        })
    }

    fn domain_of(&self, key: u32) -> Option<&Domain> {
        self.domains.iter().find(|domain| key < domain.end())
    }

    /// Parts of the aggregate that `value` reaches: 0 for the whole, or each of its bits.
    pub fn parts(&self, key: u32, value: u32) -> Vec<u32> {
        let Some(domain) = self.domain_of(key) else {
            return Vec::new();
        };
        if domain.reducer.is_bitwise() {
            return domain.moved_bits(value).collect();
        }
        let alone = domain.reducer.apply(domain.initial, value);
        let counts = alone != domain.initial && alone == self.values[key as usize];
        if counts { vec![0] } else { Vec::new() }
    }

    /// Merges the `gains` of a first run that a second run of the same input confirms, and returns them. A key whose
    /// value differed becomes noisy and from then on gains only by clear steps; otherwise a value that depends on an
    /// address or on uninitialized memory would gain forever.
    pub fn confirm(&mut self, gains: &[KeyGain], second: &DsfView<'_>) -> Vec<KeyGain> {
        let mut confirmed = Vec::new();
        for gain in gains {
            let Some(domain) = second.domain_of(gain.key) else { continue };
            let value = second.values[gain.key as usize];
            if value != gain.value {
                self.noisy.insert(gain.key);
                self.moved.push(gain.key);
            }
            let value = domain.reducer.weaker(gain.value, value);
            if let Some(gain) = self.gain(domain, gain.key, value) {
                self.values[gain.key as usize] = gain.after;
                self.moved.push(gain.key);
                confirmed.push(gain);
            }
        }
        confirmed
    }

    /// Keys whose aggregate a run reaches, with the bits it reaches (0: the whole key).
    #[must_use]
    pub fn reached(&self, run: &DsfView<'_>) -> Vec<(u32, u32)> {
        let mut keys = Vec::new();
        run.for_each_changed(|domain, key, value| {
            let aggregate = self.values[key as usize];
            let alone = domain.reducer.apply(domain.initial, value);
            let bits = alone ^ domain.initial;
            if !domain.reducer.is_bitwise() && alone == aggregate {
                keys.push((key, 0));
            } else if domain.reducer.is_bitwise() && bits != 0 {
                keys.push((key, bits));
            }
        });
        keys
    }

    pub(crate) fn note_noise(&mut self, keys: impl Iterator<Item = u32>) {
        for key in keys {
            self.noisy.insert(key);
            self.moved.push(key);
        }
    }

    /// Restores the state before a restart; skips unknown keys.
    pub fn recall(&mut self, values: &[(u32, u32)], noisy: &[u32]) {
        self.join(values.iter().copied());
        let keys = self.values.len();
        self.note_noise(noisy.iter().copied().filter(|key| (*key as usize) < keys));
    }

    /// Merges other aggregates; skips unknown keys.
    pub fn join(&mut self, values: impl Iterator<Item = (u32, u32)>) {
        for (key, value) in values {
            let Some(domain) = self.domain_of(key) else { continue };
            let after = domain.reducer.join(self.values[key as usize], value);
            self.values[key as usize] = after;
            self.moved.push(key);
        }
    }

    /// Keys whose threshold has moved since the last call, possibly repeated.
    pub fn take_moved(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.moved)
    }

    /// Value that a gain must exceed: the aggregate, or for a noisy key a clear step beyond it.
    #[must_use]
    pub fn threshold(&self, key: u32) -> u32 {
        let value = self.values[key as usize];
        match self.domain_of(key) {
            Some(domain) if self.noisy.contains(&key) => domain.reducer.clear_threshold(value),
            _ => value,
        }
    }

    /// Keys whose value differed between two runs of one input.
    #[must_use]
    pub fn noisy(&self) -> &BTreeSet<u32> {
        &self.noisy
    }

    fn gain(&self, domain: &Domain, key: u32, value: u32) -> Option<KeyGain> {
        let before = self.values[key as usize];
        let after = domain.reducer.apply(before, value);
        if before == after
            || (self.noisy.contains(&key) && !domain.reducer.clearly_better(before, value))
        {
            return None;
        }
        let bits = if domain.reducer.is_bitwise() { before ^ after } else { 0 };
        Some(KeyGain { key, value, before, after, bits })
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

    /// Like [`Aggregates::changed`], for one domain.
    pub fn changed_in<'a>(&'a self, domain: &'a Domain) -> impl Iterator<Item = (u32, u32)> + 'a {
        (domain.start..)
            .zip(&self.values[domain.range()])
            .filter(|(_, value)| **value != domain.initial)
            .map(|(key, value)| (key, *value))
    }

    /// The most remarkable key of a domain.
    #[must_use]
    pub fn best_in(&self, domain: &Domain) -> Option<(u32, u32)> {
        domain.reducer.most_remarkable(self.changed_in(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Reducer;

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
    fn a_value_counts_as_far_as_a_second_run_bears_it_out() {
        let domains = two_domains();
        let mut aggregates = Aggregates::new(&domains);
        let first = aggregates.gains(&view(&domains, &[100, 9, 0b11]));
        let confirmed = aggregates.confirm(&first, &view(&domains, &[60, 9, 0b01]));
        assert_eq!(confirmed.iter().map(|gain| gain.after).collect::<Vec<_>>(), [60, 9, 0b01]);
        assert_eq!(aggregates.noisy().iter().copied().collect::<Vec<_>>(), [0, 2]);
        // A noisy key needs a clear step, a steady one any.
        assert!(!aggregates.would_gain(&view(&domains, &[67, 9, 0b01])));
        assert!(aggregates.would_gain(&view(&domains, &[68, 9, 0b01])));
        assert!(aggregates.would_gain(&view(&domains, &[60, 10, 0b01])));
    }

    #[test]
    fn a_run_reaches_keys_whose_aggregate_it_equals() {
        let domains = two_domains();
        let mut aggregates = Aggregates::new(&domains);
        aggregates.merge(&view(&domains, &[5, 7, 0b110]));
        let reached = aggregates.reached(&view(&domains, &[5, 6, 0b010]));
        assert_eq!(reached, [(0, 0), (2, 0b010)]);
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
