//! Statistics of a campaign at one moment, in groups that are filled, joined and passed on together.
//!
//! The JSON form is flat: every field of every group is a key of one object, so field names must be unique.

mod control;
mod corpus;
mod coverage;
mod domains;
mod finds;
pub mod join;
mod mutators;
mod resources;
mod runs;
mod search;
mod setup;
mod times;
mod workers;

use serde::{Deserialize, Serialize};

use super::BlockedComparison;
use join::All;

pub use control::{Control, Injected};
pub use corpus::Corpus;
pub use coverage::Coverage;
pub use domains::DomainStatus;
pub use finds::{Finds, Undelivered};
pub use mutators::MutatorStatus;
pub use resources::{Resources, Shares};
pub use runs::{Runs, SnapshotUse};
pub use search::{PartOfTime, Search, StageYield, Turn};
pub use setup::CampaignSetup;
pub use times::{Cycles, Times};
pub use workers::WorkerStatus;

/// Everything that the status screen, `fuzzer_stats`, `plot_data` and `--json` show. Names give the unit of a time;
/// `*_at` are Unix seconds, 0 = never.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Snapshot {
    #[serde(flatten)]
    pub times: Times,
    #[serde(flatten)]
    pub cycles: Cycles,
    #[serde(flatten)]
    pub control: Control,
    #[serde(flatten)]
    pub runs: Runs,
    #[serde(flatten)]
    pub resources: Resources,
    #[serde(flatten)]
    pub corpus: Corpus,
    #[serde(flatten)]
    pub coverage: Coverage,
    #[serde(flatten)]
    pub finds: Finds,
    #[serde(flatten)]
    pub turn: Turn,
    #[serde(flatten)]
    pub search: Search,
    #[serde(flatten)]
    pub setup: CampaignSetup,
    /// Empty if the target registers no domain.
    pub domains: Vec<DomainStatus>,
    /// The first comparisons that seeds reach but do not pass; see
    /// [`EventSink::shows_blockers`](crate::EventSink::shows_blockers).
    #[serde(skip)]
    pub blockers: Vec<BlockedComparison>,
    /// Foreign mutators, in the user's order.
    pub mutators: Vec<MutatorStatus>,
    /// Workers of the fleet (`-j`) that this snapshot joins; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerStatus>,
}

impl Snapshot {
    /// Joins the snapshots of several processes of one campaign. The caller sets `workers` and the fields that only the
    /// fleet knows.
    #[must_use]
    pub fn joined(all: &[&Self]) -> Self {
        // The first of equals leads: the main.
        let all = All::new(all, |s| (s.coverage.edges_found, s.corpus.corpus_count));
        Self {
            times: all.join(|s| &s.times),
            cycles: all.join(|s| &s.cycles),
            control: all.join(|s| &s.control),
            runs: all.join(|s| &s.runs),
            resources: all.join(|s| &s.resources),
            corpus: all.join(|s| &s.corpus),
            coverage: all.join(|s| &s.coverage),
            finds: all.join(|s| &s.finds),
            turn: all.join(|s| &s.turn),
            search: all.join(|s| &s.search),
            setup: all.join(|s| &s.setup),
            domains: all.join(|s| &s.domains),
            mutators: all.join(|s| &s.mutators),
            blockers: Vec::new(),
            workers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::corpus::SeedId;

    /// Keys that readers rely on; removing or renaming one breaks them.
    const KEYS: &str = "banner bits_per_edge bugs calibration_ms command_line comparisons_ms corpus_count \
        corpus_favored corpus_found corpus_imported corpus_variable cpu crashing_seeds current current_density \
        cut_runs cycles_done cycles_without_finds dependent_crashes dictionary_entries domains edges_found \
        exec_timeout_ms execs execs_per_sec execs_per_sec_last_min execs_since_crash \
        guided_by_domains havoc_expansion injected instance last_crash_at last_find_at \
        last_hang_at load_percent longest_without_finds_s lost_runs map_size max_depth mutators now parts paused \
        peak_rss_mb pending_favored pending_total pid run_mode run_time_ms sanitizer_crashes sanitizer_runs saved_crashes \
        saved_hangs schedule shares slowest_exec_ms snapshot_runs stability stage stage_done stage_total stages \
        started_at sync_ms target_mode total_crashes total_timeouts trim_execs trim_ms \
        trimmed_percent undelivered unstable_edges workers";

    #[test]
    fn in_json_all_fields_are_keys_of_one_object() {
        let mut full = Snapshot {
            domains: vec![DomainStatus::default()],
            mutators: vec![MutatorStatus::default()],
            workers: vec![WorkerStatus::default()],
            ..Snapshot::default()
        };
        full.control.injected.received = u64::MAX;
        full.finds.bugs = Some(1);
        full.finds.undelivered = Some(Undelivered::default());
        full.runs.snapshot_runs = Some(SnapshotUse::default());
        full.runs.execs_per_sec = 4.0;
        full.resources.load_percent = Some(3.5);
        full.resources.cpu = Some(2);
        full.turn.current = Some(SeedId(7));
        let text = serde_json::to_string(&full).unwrap();
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, KEYS.split(' ').collect::<Vec<_>>());
        let read: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{full:?}"));
    }

    #[test]
    fn each_key_is_there_once_and_some_may_be_missing() {
        let text = serde_json::to_string(&Snapshot::default()).unwrap();
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        let inside = object["shares"].as_object().unwrap();
        assert_eq!(text.matches("\":").count(), object.len() + inside.len(), "{text}");
        for key in ["bugs", "undelivered", "snapshot_runs", "load_percent", "injected", "workers"] {
            assert!(!text.contains(&format!("\"{key}\"")), "{key}: {text}");
        }
        let text = text.replace("\"paused\":false,", "").replace("\"dependent_crashes\":0,", "");
        let read: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", Snapshot::default()));
        assert!(serde_json::from_str::<Snapshot>(&text.replace("\"execs\"", "\"x\"")).is_err());
    }

    fn worker(execs: u64, edges_found: u64, last_find_at: u64) -> Snapshot {
        let stage = StageYield { name: "havoc".into(), finds: 1, execs };
        Snapshot {
            runs: Runs { execs, execs_per_sec: 100.0, ..Runs::default() },
            coverage: Coverage { edges_found, ..Coverage::default() },
            corpus: Corpus { corpus_count: 10 * edges_found, ..Corpus::default() },
            finds: Finds { last_find_at, saved_crashes: 2, ..Finds::default() },
            search: Search { stages: vec![stage], ..Search::default() },
            ..Snapshot::default()
        }
    }

    #[test]
    fn work_and_corpora_add_up_and_edges_are_those_of_the_best() {
        let (main, other) = (worker(1000, 7, 50), worker(500, 9, 40));
        let all = Snapshot::joined(&[&main, &other]);
        let edges = all.coverage.edges_found;
        assert_eq!((all.runs.execs, edges, all.corpus.corpus_count), (1500, 9, 160));
        assert_eq!((all.finds.saved_crashes, all.finds.last_find_at), (4, 50));
        let stages = &all.search.stages;
        assert_eq!((stages[0].finds, stages[0].execs, stages.len()), (2, 1500, 1));
        assert!((all.runs.execs_per_sec - 200.0).abs() < 1e-9);
        assert_eq!(Snapshot::joined(&[]).runs.execs, 0);
    }
}
