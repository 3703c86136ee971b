//! Time, memory and cores used by runs.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Resources {
    pub exec_timeout_ms: u64,
    pub slowest_exec_ms: u64,
    pub peak_rss_mb: u64,
    /// Core that the fuzzer is bound to.
    pub cpu: Option<usize>,
    pub shares: Shares,
    /// Runnable threads of the whole machine, in percent of its cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_percent: Option<f64>,
}

impl Resources {
    /// Returns true if runnable threads clearly exceed the cores.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.load_percent.is_some_and(|load| load > 120.0)
    }
}

impl Join for Resources {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            exec_timeout_ms: all.largest(|r| r.exec_timeout_ms),
            slowest_exec_ms: all.largest(|r| r.slowest_exec_ms),
            peak_rss_mb: all.largest(|r| r.peak_rss_mb),
            cpu: None,
            shares: all.join(|r| &r.shares),
            load_percent: all.iter().rev().find_map(|r| r.load_percent),
        }
    }
}

/// Distribution of this process's time, in percent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Shares {
    pub target: f64,
    /// See [`ffuzz_engine::executor::Spent`].
    pub hand_over: Option<f64>,
    /// Waiting for a core that others use; not part of `hand_over`.
    #[serde(default)]
    pub waiting: f64,
    /// The rest: making inputs, judging, writing files.
    pub fuzzer: f64,
}

/// Joins by mean. If one worker's `hand_over` is unknown, the joined one is, too.
impl Join for Shares {
    fn join(all: &All<'_, Self>) -> Self {
        let known = all.iter().all(|s| s.hand_over.is_some());
        let hand_over = all.mean(|s| s.hand_over.unwrap_or(0.0));
        Self {
            target: all.mean(|s| s.target) + if known { 0.0 } else { hand_over },
            hand_over: known.then_some(hand_over),
            waiting: all.mean(|s| s.waiting),
            fuzzer: all.mean(|s| s.fuzzer),
        }
    }
}
