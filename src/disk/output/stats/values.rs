//! The way back: numbers from the values of a file, of whichever fuzzer.

use std::collections::BTreeMap;
use std::str::FromStr;

use ffuzz_engine::corpus::SeedId;
use ffuzz_event::{
    CampaignSetup, Corpus, Coverage, Cycles, DomainStatus, Finds, MutatorStatus, PartOfTime,
    Resources, Runs, Search, Shares, Snapshot, SnapshotUse, Times, Turn,
};

/// More domains or mutators than any campaign has.
pub(super) const MOST_PARTS: u64 = 4096;

/// The numbers of a file that [`super::parse`] has read, as far as it tells.
#[must_use]
pub fn snapshot(values: &BTreeMap<String, String>) -> Snapshot {
    let values = StatValues(values);
    let count = |name: &str| values.number(name).min(MOST_PARTS);
    Snapshot {
        times: values.times(),
        cycles: Cycles {
            cycles_done: values.number("cycles_done"),
            cycles_without_finds: values.number("cycles_wo_finds"),
            longest_without_finds_s: values.number("time_wo_finds"),
        },
        runs: values.runs(),
        resources: values.resources(),
        corpus: values.corpus(),
        coverage: Coverage {
            stability: values.fraction("stability"),
            edges_found: values.number("edges_found"),
            map_size: values.number("total_edges"),
            unstable_edges: values.number("var_byte_count"),
            ..Coverage::default()
        },
        finds: values.finds(),
        turn: Turn { current: values.read("cur_item").map(SeedId), ..Turn::default() },
        search: values.search(),
        setup: CampaignSetup {
            pid: values.small("fuzzer_pid"),
            guided_by_domains: values.number("dsf_guided") > 0,
            banner: values.text("afl_banner").to_owned(),
            command_line: values.text("command_line").to_owned(),
            ..CampaignSetup::default()
        },
        domains: (0..count("dsf_domains")).map(|index| values.domain(index)).collect(),
        mutators: (0..count("mutators")).map(|index| values.mutator(index)).collect(),
        ..Snapshot::default()
    }
}

/// Values by name. What is missing or no number is 0.
struct StatValues<'a>(&'a BTreeMap<String, String>);

impl StatValues<'_> {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn read<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).trim_end_matches('%').parse().ok()
    }

    fn number(&self, name: &str) -> u64 {
        self.read(name).unwrap_or(0)
    }

    fn small(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).unwrap_or(u32::MAX)
    }

    fn fraction(&self, name: &str) -> f64 {
        self.read(name).unwrap_or(0.0)
    }

    fn times(&self) -> Times {
        let milliseconds = |name: &str| self.number(name).saturating_mul(1000);
        Times {
            started_at: self.number("start_time"),
            now: self.number("last_update"),
            run_time_ms: milliseconds("run_time"),
            calibration_ms: milliseconds("calibration_time"),
            comparisons_ms: milliseconds("cmplog_time"),
            trim_ms: milliseconds("trim_time"),
            sync_ms: milliseconds("sync_time"),
        }
    }

    fn runs(&self) -> Runs {
        let snapshot_runs = self.read("snapshot_pages").map(|pages| SnapshotUse {
            by_fork_percent: self.fraction("snapshot_by_fork"),
            why: self.0.get("snapshot_why").cloned(),
            pages,
            differences: self.small("snapshot_differs"),
            prologue: self.small("snapshot_prologue"),
            behind_percent: self.fraction("net_behind_share"),
            behind_messages: self.fraction("net_snapshot_behind"),
        });
        Runs {
            execs: self.number("execs_done"),
            execs_per_sec: self.fraction("execs_per_sec"),
            execs_per_sec_last_min: self.fraction("execs_ps_last_min"),
            target_mode: self.text("target_mode").to_owned(),
            run_mode: self.text("run_mode").to_owned().into(),
            snapshot_runs,
        }
    }

    fn resources(&self) -> Resources {
        Resources {
            exec_timeout_ms: self.number("exec_timeout"),
            slowest_exec_ms: self.number("slowest_exec_ms"),
            peak_rss_mb: self.number("peak_rss_mb"),
            cpu: self.read("cpu_affinity"),
            shares: Shares {
                target: self.fraction("time_in_target"),
                hand_over: self.read("time_in_handover"),
                waiting: self.fraction("time_waiting"),
                fuzzer: self.fraction("time_in_fuzzer"),
            },
            load_percent: None,
        }
    }

    fn corpus(&self) -> Corpus {
        Corpus {
            corpus_count: self.number("corpus_count"),
            corpus_favored: self.number("corpus_favored"),
            corpus_found: self.number("corpus_found"),
            corpus_imported: self.number("corpus_imported"),
            corpus_variable: self.number("corpus_variable"),
            max_depth: self.small("max_depth"),
            pending_favored: self.number("pending_favs"),
            pending_total: self.number("pending_total"),
        }
    }

    fn finds(&self) -> Finds {
        Finds {
            saved_crashes: self.number("saved_crashes"),
            total_crashes: self.number("saved_crashes"),
            saved_hangs: self.number("saved_hangs"),
            total_timeouts: self.number("total_tmout"),
            bugs: self.read("saved_bugs"),
            cut_runs: self.number("cut_runs"),
            lost_runs: self.number("lost_runs"),
            sanitizer_runs: self.number("sanitizer_execs"),
            sanitizer_crashes: self.number("sanitizer_crashes"),
            last_find_at: self.number("last_find"),
            last_crash_at: self.number("last_crash"),
            last_hang_at: self.number("last_hang"),
            execs_since_crash: self.number("execs_since_crash"),
            ..Finds::default()
        }
    }

    fn search(&self) -> Search {
        let part = |(key, value): (&String, &String)| {
            let (used, share) = value.split_once("% of ")?;
            Some(PartOfTime {
                name: key.strip_prefix("part_")?.to_owned().into(),
                used: used.parse().ok()?,
                share: share.trim_end_matches('%').parse().ok()?,
            })
        };
        Search {
            havoc_expansion: self.small("havoc_expansion"),
            dictionary_entries: self.number("auto_dict_entries"),
            parts: self.0.iter().filter_map(part).collect(),
            ..Search::default()
        }
    }

    fn domain(&self, index: u64) -> DomainStatus {
        let name = |end: &str| format!("dsf{index}_{end}");
        let keys = self.small(&name("keys"));
        let best = self.read(&name("best_key")).zip(self.read(&name("best")));
        DomainStatus {
            name: self.text(&name("name")).to_owned(),
            reducer: self.text(&name("reducer")).to_owned().into(),
            keys,
            best: best.filter(|_| keys > 0),
            best_place: self.text(&name("best_place")).to_owned(),
            waypoints: self.number(&name("waypoints")),
            ..DomainStatus::default()
        }
    }

    fn mutator(&self, index: u64) -> MutatorStatus {
        let name = |end: &str| format!("mutator{index}_{end}");
        MutatorStatus {
            name: self.text(&name("name")).to_owned(),
            calls: self.number(&name("calls")),
            finds: self.number(&name("finds")),
            time_percent: self.fraction(&name("time")),
            failures: self.number(&name("failures")),
            says: self.0.get(&name("says")).cloned(),
            ..MutatorStatus::default()
        }
    }
}
