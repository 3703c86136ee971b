//! What came of a job: one row of the table.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Job, process};
use ffuzz_disk::output::stats;

/// Numbers of a campaign so far, all its rounds included.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct JobTotals {
    pub execs: u64,
    pub seconds: u64,
    pub finds: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub bugs: u64,
    pub edges: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Not finished; it may have been started.
    #[default]
    Waiting,
    Done,
    Failed,
}

/// One job with its results.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct JobRow {
    pub target: String,
    pub mutators: String,
    pub seed: String,
    pub round: u32,
    pub status: JobStatus,
    pub execs: u64,
    pub seconds: u64,
    /// Inputs that were kept, without the seeds.
    pub finds: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub bugs: u64,
    /// Known to its campaign at its end; what was carried to it is included.
    pub edges: u64,
    /// Of these, those that no job of the target has ended with before.
    pub new_edges: u64,
    /// Of a failed job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl JobRow {
    /// Of a job that is not finished.
    pub(super) fn waiting(job: &Job) -> Self {
        let Job { target, mutators, seed, round, .. } = job;
        Self {
            target: target.clone(),
            mutators: mutators.clone(),
            seed: seed.clone(),
            round: *round,
            ..Self::default()
        }
    }

    /// Of one that has ended well: the difference of its campaign's numbers before and after it.
    pub(super) fn of(job: &Job, before: &JobTotals, after: &JobTotals) -> Self {
        Self {
            status: JobStatus::Done,
            execs: after.execs.saturating_sub(before.execs),
            seconds: after.seconds.saturating_sub(before.seconds),
            finds: after.finds.saturating_sub(before.finds),
            crashes: after.crashes.saturating_sub(before.crashes),
            hangs: after.hangs.saturating_sub(before.hangs),
            bugs: after.bugs.saturating_sub(before.bugs),
            edges: after.edges,
            new_edges: after.edges.saturating_sub(before.edges),
            ..Self::waiting(job)
        }
    }

    /// Of one that did not even start.
    pub(super) fn failed(job: &Job, cause: &impl ToString, remedy: impl Into<String>) -> Self {
        let (cause, remedy) = (cause.to_string(), remedy.into());
        Self { status: JobStatus::Failed, cause, remedy, ..Self::waiting(job) }
    }
}

/// The numbers of the campaign in a job's folder; zero before it has written some.
pub(super) fn totals(folder: &Path) -> JobTotals {
    let stats = stats::read(&folder.join(process::OUT).join("default"));
    let number = |name: &str| stats.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
    JobTotals {
        execs: number("execs_done"),
        seconds: number("run_time"),
        finds: number("corpus_found"),
        crashes: number("saved_crashes"),
        hangs: number("saved_hangs"),
        bugs: number("saved_bugs"),
        edges: number("edges_found"),
    }
}
