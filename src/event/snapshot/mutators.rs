//! Statistics of foreign mutators.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

/// Cost and yield of one foreign mutator.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct MutatorStatus {
    pub name: String,
    pub calls: u64,
    /// Seeds, crashes and hangs to which the mutator contributed.
    pub finds: u64,
    pub time_ms: u64,
    /// Percentage of this process's run time.
    pub time_percent: f64,
    pub failures: u64,
    /// Output of the mutator's introspection; only in the final snapshot.
    pub says: Option<String>,
}

impl MutatorStatus {
    fn add(&mut self, other: &Self) {
        let Self { name: _, calls, finds, time_ms, time_percent, failures, says: _ } = other;
        self.calls += calls;
        self.finds += finds;
        self.time_ms += time_ms;
        self.time_percent += time_percent;
        self.failures += failures;
    }
}

/// Joins by position; `time_percent` is the mean of all workers.
impl Join for Vec<MutatorStatus> {
    fn join(all: &All<'_, Self>) -> Self {
        let mut found = Self::new();
        for (index, mutator) in all.iter().flat_map(|one| one.iter().enumerate()) {
            match found.get_mut(index) {
                Some(known) => MutatorStatus::add(known, mutator),
                None => found.push(mutator.clone()),
            }
        }
        for mutator in &mut found {
            mutator.time_percent /= all.len() as f64;
        }
        found
    }
}
