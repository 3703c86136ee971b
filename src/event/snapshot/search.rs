//! Yield of the stages, and the current turn.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::join::{All, Join};
use ffuzz_engine::corpus::SeedId;
pub use ffuzz_engine::fuzzer::StageYield;

/// The current turn of a seed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Turn {
    pub current: Option<SeedId>,
    /// Current stage.
    pub stage: String,
    /// Runs done in the current stage.
    pub stage_done: u64,
    pub stage_total: u64,
}

/// Turns differ per worker, so the joined one is empty.
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
    /// Bytes removed by trimming, in percent.
    pub trimmed_percent: f64,
    /// Runs spent on trimming.
    pub trim_execs: u64,
    /// Time used by the parts of the search that have a time share.
    #[serde(default)]
    pub parts: Vec<PartOfTime>,
}

/// A part of the search with a limited share of the time, in percent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PartOfTime {
    pub name: Cow<'static, str>,
    pub used: f64,
    /// Limit for `used`. The base is the target's and the fuzzer's time, wall time, or the target's time, depending on
    /// the part.
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

/// Joins by mean. All workers have the same parts.
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

/// Joins by name, in order of appearance.
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
