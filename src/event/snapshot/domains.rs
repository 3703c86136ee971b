//! State of the target's domains.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

/// Reducers ([`ffuzz_engine::domain::Reducer::name`]) with the smallest value as the best.
const FALLING: &[&str] = &["MIN", "BITWISE_INTERSECTION"];

/// One domain, as the status screen shows it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DomainStatus {
    pub name: String,
    /// Name of the reducer (`MAX`, …).
    pub reducer: Cow<'static, str>,
    pub size: u32,
    /// Number of keys whose aggregate differs from the initial value.
    pub keys: u32,
    /// Global key index and aggregate of the largest value (the smallest for `MIN` and `BITWISE_INTERSECTION`).
    pub best: Option<(u32, u32)>,
    /// File and line of the best key; empty if unknown, as for `last_place`.
    pub best_place: String,
    /// Key of the last improvement, its new aggregate, and the Unix second.
    pub last: Option<(u32, u32, u64)>,
    pub last_place: String,
    pub waypoints: u64,
}

impl DomainStatus {
    fn add(&mut self, other: &Self) {
        let Self {
            name: _,
            reducer: _,
            size: _,
            keys,
            best,
            best_place,
            last,
            last_place,
            waypoints,
        } = other;
        self.keys = self.keys.max(*keys);
        self.waypoints += waypoints;
        let value = |best: &Option<(u32, u32)>| best.map(|(_, value)| value);
        let smallest = FALLING.contains(&self.reducer.as_ref());
        let better = match (value(best), value(&self.best)) {
            (Some(theirs), Some(ours)) if smallest => theirs < ours,
            (theirs, ours) => theirs > ours,
        };
        if better {
            (self.best, self.best_place) = (*best, best_place.clone());
        }
        let time = |last: &Option<(u32, u32, u64)>| last.map(|(_, _, at)| at);
        if time(last) > time(&self.last) {
            (self.last, self.last_place) = (*last, last_place.clone());
        }
    }
}

/// Joins by position: every worker registers the same domains.
impl Join for Vec<DomainStatus> {
    fn join(all: &All<'_, Self>) -> Self {
        let mut found = Self::new();
        for (index, domain) in all.iter().flat_map(|one| one.iter().enumerate()) {
            match found.get_mut(index) {
                Some(known) => DomainStatus::add(known, domain),
                None => found.push(domain.clone()),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_value_of_a_domain_depends_on_its_reducer() {
        let domain = |reducer: &'static str, value, at| {
            vec![DomainStatus {
                reducer: reducer.into(),
                best: Some((1, value)),
                last: Some((1, value, at)),
                waypoints: 3,
                ..DomainStatus::default()
            }]
        };
        for (reducer, best) in [("MAX", 9), ("MIN", 4)] {
            let (one, other) = (domain(reducer, 4, 20), domain(reducer, 9, 10));
            let all = Vec::join(&All::new(&[&one, &other], Vec::len));
            assert_eq!(all[0].best, Some((1, best)), "{reducer}");
            assert_eq!((all[0].last, all[0].waypoints), (Some((1, 4, 20)), 6));
        }
    }
}
