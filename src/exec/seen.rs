//! Results of a run, for comparing two runs of the same input.

use std::collections::BTreeMap;

use ffuzz_engine::executor::{ExitKind, Observation};

/// A copy of the results of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunResult {
    pub exit: ExitKind,
    pub edges: Vec<u8>,
    /// Domain keys whose value differs from that before the run.
    pub keys: BTreeMap<u32, u32>,
}

impl RunResult {
    #[must_use]
    pub fn of(run: &Observation<'_>) -> Self {
        let mut keys = BTreeMap::new();
        run.dsf.for_each_changed(|_, key, value| {
            keys.insert(key, value);
        });
        Self { exit: run.exit, edges: run.edges.to_vec(), keys }
    }

    /// Describes the difference to a run of the same input with fork.
    #[must_use]
    pub fn difference(&self, fork: &Self) -> String {
        if self.exit != fork.exit {
            return format!("it ended as {:?}, with fork as {:?}", self.exit, fork.exit);
        }
        let pairs = || self.edges.iter().zip(&fork.edges).enumerate();
        if let Some((edge, (here, there))) = pairs().find(|(_, (here, there))| here != there) {
            let count = pairs().filter(|(_, (here, there))| here != there).count();
            return format!("{count} edges, the first {edge}: {here} times, with fork {there}");
        }
        let keys = self.keys.keys().chain(fork.keys.keys());
        let values = |key: &u32| (self.keys.get(key).copied(), fork.keys.get(key).copied());
        let other = keys.map(|key| (key, values(key))).find(|(_, (here, there))| here != there);
        let said = |value: Option<u32>| value.map_or("nothing".into(), |value| value.to_string());
        other.map_or_else(String::new, |(key, (here, there))| {
            format!("domain key {key}: {}, with fork {}", said(here), said(there))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_differs_first() {
        let seen = |exit, edges: &[u8], keys: &[(u32, u32)]| RunResult {
            exit,
            edges: edges.to_vec(),
            keys: keys.iter().copied().collect(),
        };
        let one = seen(ExitKind::Ok, &[0, 1, 2], &[(5, 7)]);
        let difference = |other: RunResult| one.difference(&other);
        let edges = difference(seen(ExitKind::Ok, &[0, 3, 0], &[(5, 7)]));
        assert_eq!(edges, "2 edges, the first 1: 1 times, with fork 3");
        let keys = difference(seen(ExitKind::Ok, &[0, 1, 2], &[(5, 8), (6, 1)]));
        assert_eq!(keys, "domain key 5: 7, with fork 8");
        let more = difference(seen(ExitKind::Ok, &[0, 1, 2], &[(5, 7), (6, 1)]));
        assert_eq!(more, "domain key 6: nothing, with fork 1");
        let end = difference(seen(ExitKind::Hang, &[], &[]));
        assert_eq!(end, "it ended as Ok, with fork as Hang");
    }
}
