//! Executions: number, speed and execution mode.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Runs {
    pub execs: u64,
    /// Average speed over this process's run time.
    pub execs_per_sec: f64,
    /// Average speed over at most the last minute.
    pub execs_per_sec_last_min: f64,
    /// AFL's terms, for example `persistent shmem_testcase`, or `default`.
    pub target_mode: String,
    /// See [`ffuzz_engine::executor::TargetInfo::run_mode`].
    pub run_mode: Cow<'static, str>,
    /// Snapshot statistics; None without snapshots.
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

/// Runs in a process that is restored after each run ([`ffuzz_engine::executor::SnapshotRuns`]).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SnapshotUse {
    /// Percentage of runs that fell back to fork.
    pub by_fork_percent: f64,
    /// Last or permanent reason for the fallback.
    pub why: Option<String>,
    /// Memory pages restored per run.
    pub pages: f64,
    /// Runs whose result differed under fork.
    pub differences: u32,
    /// System calls of `main` before the snapshot, which are made only once.
    pub prologue: u32,
    /// Percentage of runs that started after the first messages of their input.
    #[serde(default)]
    pub behind_percent: f64,
    /// Mean number of messages that those runs skipped.
    #[serde(default)]
    pub behind_messages: f64,
}
