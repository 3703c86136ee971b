//! Executions: how many, how fast, and in which way.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Runs {
    pub execs: u64,
    /// Average over this process's run time, and over the last minute at most.
    pub execs_per_sec: f64,
    pub execs_per_sec_last_min: f64,
    /// AFL's words, for example `persistent shmem_testcase`, or `default`.
    pub target_mode: String,
    /// See [`ffuzz_engine::executor::TargetInfo::run_mode`].
    pub run_mode: Cow<'static, str>,
    /// What came of snapshots, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_runs: Option<SnapshotUse>,
}

impl Join for Runs {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            execs: all.sum(|r| r.execs),
            execs_per_sec: all.rate(|r| r.execs_per_sec),
            execs_per_sec_last_min: all.rate(|r| r.execs_per_sec_last_min),
            target_mode: all.leading(|r| &r.target_mode),
            run_mode: all.leading(|r| &r.run_mode),
            snapshot_runs: all.leading(|r| &r.snapshot_runs),
        }
    }
}

/// Runs by a process that is restored after each ([`ffuzz_engine::executor::SnapshotRuns`]).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SnapshotUse {
    /// Of all runs, those that had to be made by fork in the end; and why, the last time or for good.
    pub by_fork_percent: f64,
    pub why: Option<String>,
    /// Memory pages, per run.
    pub pages: f64,
    /// Runs that showed something else by fork.
    pub differences: u32,
    /// System calls of main that are made once, and not in each run.
    pub prologue: u32,
    /// Of all runs, those that began behind the first messages of their input, and the mean number of these.
    #[serde(default)]
    pub behind_percent: f64,
    #[serde(default)]
    pub behind_messages: f64,
}
