//! Domain-specific feedback: registry, reducers, aggregates.
//!
//! Padhye, Lemieux, Sen, Simon, Vijayakumar: FuzzFactory: Domain-Specific Fuzzing with Waypoints,
//! OOPSLA 2019. A domain is a map of 32-bit values with a reducer; an input whose value moves the
//! aggregate of a key is a waypoint. No I/O, no clock.

mod aggregate;
mod names;
mod reducer;

pub use aggregate::{Aggregates, KeyGain};
pub use names::{KeyName, KeyNames, Site};
pub use reducer::Reducer;

/// One domain: keys `start..start + size` of the DSF array.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Domain {
    /// Empty for targets of the original FuzzFactory, which send no names.
    pub name: String,
    pub start: u32,
    pub size: u32,
    pub reducer: Reducer,
    pub initial: u32,
}

impl Domain {
    /// True if slow runs have no advantage in this domain. Known only for some built-in domains: a sum grows with run
    /// time, and a user's domain may be one.
    #[must_use]
    pub(crate) fn favors_quick_runs(&self) -> bool {
        ["cmp", "slack", "valid", "diff"].contains(&self.name.as_str())
    }

    /// True if the domain only serves to reach new edges: finds in its turns are counted in edges.
    #[must_use]
    pub(crate) fn leads_to_edges(&self) -> bool {
        self.name == "cmp"
    }

    /// First key after this domain.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.start + self.size
    }

    /// True if the global index `key` belongs to this domain.
    #[must_use]
    pub fn holds(&self, key: u32) -> bool {
        (self.start..self.end()).contains(&key)
    }

    /// Display name of domain number `index`.
    #[must_use]
    pub fn label(&self, index: usize) -> String {
        if self.name.is_empty() { format!("map {index}") } else { self.name.clone() }
    }

    /// Bits of the initial value that `value` changes, highest first.
    pub fn moved_bits(&self, value: u32) -> impl Iterator<Item = u32> + use<> {
        let moved = self.reducer.apply(self.initial, value) ^ self.initial;
        (0..32).rev().map(|shift| 1 << shift).filter(move |bit| moved & bit != 0)
    }

    /// Range of indices in the DSF array.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end() as usize
    }
}

/// Description of a target's domains in the format of FuzzFactory's tools.
#[must_use]
pub fn describe(domains: &[Domain]) -> String {
    use std::fmt::Write as _;
    if domains.is_empty() {
        return "No domain-specific front-ends to receive.\n".into();
    }
    let count = domains.len();
    let mut text = format!(
        "Receiving {count} domain-specific front-ends..\n\
         [+] {count} domain-specific front-end configs received\n"
    );
    for (index, domain) in domains.iter().enumerate() {
        let _ = writeln!(
            text,
            "DSF {index}: Start=0x{:06x}, End=0x{:06x}, Size={}, Reducer[{}]={}, Initial={}",
            domain.start,
            domain.end(),
            domain.size,
            domain.reducer as u32,
            domain.reducer.name(),
            domain.initial.cast_signed()
        );
    }
    let total = domains.last().map_or(0, Domain::end);
    let _ = writeln!(text, "Total DSF map length = {total}");
    text
}

/// All domain maps of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct DsfView<'a> {
    pub domains: &'a [Domain],
    /// Values of all keys of all domains.
    pub values: &'a [u32],
    /// Keys that may differ from their initial value, in order of first touch, possibly repeated; each a valid index.
    /// None: the whole array must be read.
    pub touched: Option<&'a [u32]>,
}

impl DsfView<'_> {
    /// Calls `visit` with the domain, global index and value of every key that left its initial value. A key that is
    /// listed twice in `touched` is visited twice.
    pub fn for_each_changed(&self, mut visit: impl FnMut(&Domain, u32, u32)) {
        match self.touched {
            Some(keys) => {
                for key in keys {
                    let value = self.values[*key as usize];
                    if let Some(domain) = self.domain_of(*key)
                        && value != domain.initial
                    {
                        visit(domain, *key, value);
                    }
                }
            }
            None => {
                for domain in self.domains {
                    for_each_changed_in(domain, &self.values[domain.range()], &mut visit);
                }
            }
        }
    }

    /// Hash of all keys that left their initial value; independent of the order of touches.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut seen = std::collections::HashSet::new();
        let mut hash = 0u64;
        self.for_each_changed(|_, key, value| {
            if self.touched.is_none() || seen.insert(key) {
                hash ^= crate::coverage::mix(u64::from(key) << 32 | u64::from(value));
            }
        });
        hash
    }

    /// The domain that a key belongs to.
    #[must_use]
    pub fn domain_of(&self, key: u32) -> Option<&Domain> {
        // A handful of domains: a loop is quicker than a search.
        self.domains.iter().find(|domain| key < domain.end())
    }
}

/// Visits the changed keys of one map; 64 keys at their initial value cost one vector compare.
fn for_each_changed_in(domain: &Domain, values: &[u32], visit: &mut impl FnMut(&Domain, u32, u32)) {
    const BLOCK: usize = 64;
    for (index, block) in values.chunks(BLOCK).enumerate() {
        let differing = block.iter().fold(0, |bits, value| bits | (value ^ domain.initial));
        if differing == 0 {
            continue;
        }
        let first = domain.start + u32::try_from(index * BLOCK).unwrap_or(u32::MAX);
        for (key, value) in (first..).zip(block) {
            if *value != domain.initial {
                visit(domain, key, *value);
            }
        }
    }
}

/// Reason for rejecting a table of domains.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RecordError {
    #[error("domain {index} has the unknown reducer {reducer}")]
    Reducer { index: usize, reducer: u32 },
    #[error("domain {index} covers keys {start} to {end}, expected to begin at {expected}")]
    Range { index: usize, start: i64, end: i64, expected: u32 },
    #[error("domain {index} ends at key {end}, beyond the limit of {limit}")]
    Size { index: usize, end: u64, limit: u64 },
}

/// Checks that domains are contiguous, not empty and end within `limit`.
pub fn check_records(domains: &[Domain], limit: u64) -> Result<(), RecordError> {
    let mut expected = 0;
    for (index, domain) in domains.iter().enumerate() {
        let end = u64::from(domain.start) + u64::from(domain.size);
        if end > limit {
            return Err(RecordError::Size { index, end, limit });
        }
        if domain.start != expected || domain.size == 0 {
            let (start, end) = (domain.start.into(), end.try_into().unwrap_or(i64::MAX));
            return Err(RecordError::Range { index, start, end, expected });
        }
        expected = domain.end();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(start: u32, size: u32, reducer: Reducer, initial: u32) -> Domain {
        Domain { name: String::new(), start, size, reducer, initial }
    }

    fn changed(view: DsfView<'_>) -> Vec<(u32, u32)> {
        let mut keys = Vec::new();
        view.for_each_changed(|_, key, value| keys.push((key, value)));
        keys
    }

    #[test]
    fn touched_list_and_full_scan_see_the_same_keys() {
        let domains = [domain(0, 100, Reducer::Max, 0), domain(100, 3, Reducer::Min, u32::MAX)];
        let mut values = vec![0; 103];
        values[100..].fill(u32::MAX);
        (values[70], values[101]) = (5, 9);
        let full = DsfView { domains: &domains, values: &values, touched: None };
        let list = DsfView { touched: Some(&[101, 70, 3]), ..full };
        assert_eq!(changed(full), [(70, 5), (101, 9)]);
        assert_eq!(changed(list), [(101, 9), (70, 5)]);
        assert_eq!(full.hash(), list.hash());
        let twice = DsfView { touched: Some(&[70, 101, 70]), ..full };
        assert_eq!(full.hash(), twice.hash());
    }

    #[test]
    fn gaps_and_empty_domains_are_refused() {
        let good = [domain(0, 4, Reducer::Max, 0), domain(4, 1, Reducer::Max, 0)];
        assert_eq!(check_records(&good, 5), Ok(()));
        assert!(matches!(check_records(&good, 4), Err(RecordError::Size { index: 1, .. })));
        let gap = [domain(0, 4, Reducer::Max, 0), domain(5, 1, Reducer::Max, 0)];
        assert!(matches!(check_records(&gap, 99), Err(RecordError::Range { index: 1, .. })));
        let empty = [domain(0, 0, Reducer::Max, 0)];
        assert!(matches!(check_records(&empty, 99), Err(RecordError::Range { index: 0, .. })));
    }

    #[test]
    fn start_up_lines_are_those_of_fuzzfactory() {
        let domains = [
            domain(0, 1, Reducer::Max, 0),
            domain(1, 2, Reducer::Min, u32::MAX),
            domain(3, 3, Reducer::BitUnion, 0),
            domain(6, 4, Reducer::BitIntersect, u32::MAX),
        ];
        let expected = "\
Receiving 4 domain-specific front-ends..
[+] 4 domain-specific front-end configs received
DSF 0: Start=0x000000, End=0x000001, Size=1, Reducer[0]=MAX, Initial=0
DSF 1: Start=0x000001, End=0x000003, Size=2, Reducer[1]=MIN, Initial=-1
DSF 2: Start=0x000003, End=0x000006, Size=3, Reducer[3]=BITWISE_UNION, Initial=0
DSF 3: Start=0x000006, End=0x00000a, Size=4, Reducer[4]=BITWISE_INTERSECTION, Initial=-1
Total DSF map length = 10
";
        assert_eq!(describe(&domains), expected);
        assert_eq!(describe(&[]), "No domain-specific front-ends to receive.\n");
    }
}
