//! Statistics of each worker of a fleet.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Injected;

/// One worker of a fleet.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WorkerStatus {
    pub name: String,
    /// `waiting`, `starting`, `fuzzing`, `paused` or `ended`.
    pub state: Cow<'static, str>,
    pub schedule: String,
    pub execs: u64,
    /// See [`super::Runs`].
    pub execs_per_sec: f64,
    pub corpus_count: u64,
    pub corpus_imported: u64,
    pub edges_found: u64,
    pub saved_crashes: u64,
    pub saved_hangs: u64,
    pub last_find_at: u64,
    /// Number of restarts.
    pub restarts: u32,
    /// Inputs injected into the worker's process by commands.
    #[serde(default, skip_serializing_if = "Injected::is_none")]
    pub injected: Injected,
}
