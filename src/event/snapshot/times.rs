//! Times and cycles.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Times {
    pub started_at: u64,
    pub now: u64,
    /// Campaign time in milliseconds, including earlier runs.
    pub run_time_ms: u64,
    /// Time spent in calibration; calibration within other stages counts for both.
    pub calibration_ms: u64,
    /// Time spent on comparisons.
    #[serde(default)]
    pub comparisons_ms: u64,
    /// Time spent in trimming.
    pub trim_ms: u64,
    pub sync_ms: u64,
}

impl Join for Times {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            started_at: all.smallest(|t| t.started_at),
            now: all.largest(|t| t.now),
            run_time_ms: all.largest(|t| t.run_time_ms),
            calibration_ms: all.sum(|t| t.calibration_ms),
            comparisons_ms: all.sum(|t| t.comparisons_ms),
            trim_ms: all.sum(|t| t.trim_ms),
            sync_ms: all.sum(|t| t.sync_ms),
        }
    }
}

/// Passes over the queue.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Cycles {
    pub cycles_done: u64,
    pub cycles_without_finds: u64,
    /// Longest time without a find, in seconds.
    pub longest_without_finds_s: u64,
}

impl Join for Cycles {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            cycles_done: all.largest(|c| c.cycles_done),
            cycles_without_finds: all.smallest(|c| c.cycles_without_finds),
            longest_without_finds_s: all.smallest(|c| c.longest_without_finds_s),
        }
    }
}
