//! What was found, and when.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Finds {
    pub saved_crashes: u64,
    /// Starting seeds that crash the target, of this process.
    #[serde(default)]
    pub crashing_seeds: u64,
    /// Kinds of crashes, once they were triaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bugs: Option<u64>,
    /// Crashes that did not happen again in a process of their own.
    #[serde(default)]
    pub dependent_crashes: u64,
    /// At the end of a campaign that reports: what has not reached the crash server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<Undelivered>,
    pub total_crashes: u64,
    pub saved_hangs: u64,
    pub total_timeouts: u64,
    /// Runs that were cut because they computed for much longer than others.
    #[serde(default)]
    pub cut_runs: u64,
    /// Runs that took the target's fork server along, twice each.
    #[serde(default)]
    pub lost_runs: u64,
    /// Runs of the sanitizer builds of `-w`, and saved crashes that only they show.
    #[serde(default)]
    pub sanitizer_runs: u64,
    #[serde(default)]
    pub sanitizer_crashes: u64,
    /// A new seed.
    pub last_find_at: u64,
    pub last_crash_at: u64,
    pub last_hang_at: u64,
    pub execs_since_crash: u64,
}

/// Bugs, and what is not delivered, are known to whoever has started the triage: in a fleet itself.
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

/// Reports of bugs that the crash server does not have yet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Undelivered {
    pub reports: u64,
    /// Delivers them.
    pub command: String,
}
