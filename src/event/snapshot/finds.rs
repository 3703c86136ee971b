//! Counters and times of finds.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Finds {
    pub saved_crashes: u64,
    /// Starting seeds of this process that crash the target.
    #[serde(default)]
    pub crashing_seeds: u64,
    /// Number of distinct bugs; None before triage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bugs: Option<u64>,
    /// Crashes that did not repeat in a fresh process.
    #[serde(default)]
    pub dependent_crashes: u64,
    /// Reports missing on the crash server at the end of a campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<Undelivered>,
    pub total_crashes: u64,
    pub saved_hangs: u64,
    pub total_timeouts: u64,
    /// Runs cut off because they computed much longer than others.
    #[serde(default)]
    pub cut_runs: u64,
    /// Inputs that killed the target's fork server in two runs.
    #[serde(default)]
    pub lost_runs: u64,
    /// Runs in the sanitizer builds of `-w`.
    #[serde(default)]
    pub sanitizer_runs: u64,
    /// Saved crashes that only a sanitizer build shows.
    #[serde(default)]
    pub sanitizer_crashes: u64,
    /// Time of the last new seed.
    pub last_find_at: u64,
    pub last_crash_at: u64,
    pub last_hang_at: u64,
    pub execs_since_crash: u64,
}

/// `bugs` and `undelivered` come from the process that started the triage: in a fleet, the fleet itself.
impl Join for Finds {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            saved_crashes: all.sum(|f| f.saved_crashes),
            crashing_seeds: all.sum(|f| f.crashing_seeds),
            bugs: all.leading(|f| &f.bugs),
            dependent_crashes: all.sum(|f| f.dependent_crashes),
            undelivered: all.leading(|f| &f.undelivered),
            total_crashes: all.sum(|f| f.total_crashes),
            saved_hangs: all.sum(|f| f.saved_hangs),
            total_timeouts: all.sum(|f| f.total_timeouts),
            cut_runs: all.sum(|f| f.cut_runs),
            lost_runs: all.sum(|f| f.lost_runs),
            sanitizer_runs: all.sum(|f| f.sanitizer_runs),
            sanitizer_crashes: all.sum(|f| f.sanitizer_crashes),
            last_find_at: all.largest(|f| f.last_find_at),
            last_crash_at: all.largest(|f| f.last_crash_at),
            last_hang_at: all.largest(|f| f.last_hang_at),
            execs_since_crash: all.sum(|f| f.execs_since_crash),
        }
    }
}

/// Bug reports that the crash server lacks.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Undelivered {
    pub reports: u64,
    /// Command that delivers them.
    pub command: String,
}
