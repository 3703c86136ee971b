//! What the stages brought, and the one at work.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::join::{All, Join};
use ffuzz_engine::corpus::SeedId;
pub use ffuzz_engine::fuzzer::StageYield;

/// The turn of a seed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Turn {
    pub current: Option<SeedId>,
    /// Stage at work, its progress (runs done, runs planned).
    pub stage: String,
    pub stage_done: u64,
    pub stage_total: u64,
}

/// Each worker has its own.
impl Join for Turn {
    fn join(_all: &All<'_, Self>) -> Self {
        Self { current: None, stage: String::new(), stage_done: 0, stage_total: 0 }
    }
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Search {
    pub havoc_expansion: u32,
    pub dictionary_entries: u64,
    /// Finds and runs per stage, in display order (`flip1/2/4`, `arith`, `havoc`, `splice`, …).
    pub stages: Vec<StageYield>,
    /// Trimming: bytes removed in percent, runs spent.
    pub trimmed_percent: f64,
    pub trim_execs: u64,
    /// What parts that have a share of the time have taken of it.
    #[serde(default)]
    pub parts: Vec<PartOfTime>,
}

/// A part of a search that may take a share of the time, in percent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PartOfTime {
    pub name: Cow<'static, str>,
    pub used: f64,
    /// Of what the search takes: the target's and the fuzzer's time, wall time, or the target's.
    pub share: f64,
}

impl Join for Search {
    fn join(all: &All<'_, Self>) -> Self {
        Self {
            havoc_expansion: all.leading(|s| &s.havoc_expansion),
            dictionary_entries: all.leading(|s| &s.dictionary_entries),
            stages: all.join(|s| &s.stages),
            trimmed_percent: all.leading(|s| &s.trimmed_percent),
            trim_execs: all.sum(|s| s.trim_execs),
            parts: all.join(|s| &s.parts),
        }
    }
}

/// The means. All workers have the same parts.
impl Join for Vec<PartOfTime> {
    fn join(all: &All<'_, Self>) -> Self {
        let mut parts: Self = all.leading(|parts| parts);
        for (index, part) in parts.iter_mut().enumerate() {
            let used = all.iter().filter_map(|parts| Some(parts.get(index)?.used));
            let used: Vec<f64> = used.collect();
            part.used = used.iter().sum::<f64>() / used.len().max(1) as f64;
        }
        parts
    }
}

/// By name, in the order in which they appear.
impl Join for Vec<StageYield> {
    fn join(all: &All<'_, Self>) -> Self {
        let mut found = Self::new();
        for stage in all.iter().flatten() {
            match found.iter_mut().find(|known: &&mut StageYield| known.name == stage.name) {
                Some(StageYield { name: _, finds, execs }) => {
                    *finds += stage.finds;
                    *execs += stage.execs;
                }
                None => found.push(stage.clone()),
            }
        }
        found
    }
}
