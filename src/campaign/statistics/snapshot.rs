//! Fills the groups of a snapshot, each with every field, so that a missing one does not compile.

use std::time::Duration;

use super::{Statistics, milliseconds, unix_now};
use crate::config::options::Wanted;
use crate::crashes::triage::Follower;
use crate::engine::coverage;
use crate::engine::executor::{SnapshotRuns, Spent};
use crate::engine::fuzzer::Fuzzer;
use crate::engine::schedule::ledger::{Effort, Purpose};
use crate::event::{
    Corpus, Coverage, Cycles, DomainStatus, Finds, PartOfTime, Resources, Runs, Search, Shares,
    Snapshot, SnapshotUse, Times, Turn,
};
use crate::mutators::Mutators;
use crate::sys::{load, process};

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn snapshot_use(runs: &SnapshotRuns) -> SnapshotUse {
    SnapshotUse {
        by_fork_percent: percent(runs.by_fork, runs.runs + runs.by_fork),
        why: runs.why.clone(),
        pages: runs.pages as f64 / runs.runs.max(1) as f64,
        differences: runs.differences,
        prologue: runs.prologue,
        behind_percent: percent(runs.behind, runs.runs),
        behind_messages: runs.behind_messages as f64 / runs.behind.max(1) as f64,
    }
}

fn shares(spent: Spent, waited: Duration, elapsed: Duration) -> Shares {
    let percent = |part: Duration| part.as_secs_f64() * 100.0 / elapsed.as_secs_f64().max(0.001);
    let waited = waited.min(spent.hand_over.unwrap_or_default());
    let (target, waiting) = (percent(spent.target), percent(waited));
    let hand_over = spent.hand_over.map(|time| percent(time - waited));
    let fuzzer = (100.0 - target - waiting - hand_over.unwrap_or(0.0)).max(0.0);
    Shares { target, hand_over, waiting, fuzzer }
}

impl Statistics {
    /// Raises values to those of the earlier process while its queue is read.
    pub(in crate::campaign) fn add_earlier(&self, snapshot: &mut Snapshot) {
        let Some(earlier) = self.earlier else { return };
        let Snapshot { corpus, coverage, finds, .. } = snapshot;
        corpus.corpus_count = corpus.corpus_count.max(earlier.corpus);
        corpus.corpus_favored = corpus.corpus_favored.max(earlier.favored);
        finds.saved_crashes = finds.saved_crashes.max(earlier.crashes);
        finds.saved_hangs = finds.saved_hangs.max(earlier.hangs);
        corpus.max_depth = corpus.max_depth.max(earlier.max_depth);
        coverage.edges_found = coverage.edges_found.max(earlier.edges.min(coverage.map_size));
    }

    pub(in crate::campaign) fn times(&self) -> Times {
        Times {
            started_at: self.started_at,
            now: unix_now(),
            run_time_ms: self.campaign_ms(),
            calibration_ms: milliseconds(self.calibration),
            comparisons_ms: milliseconds(self.comparisons),
            trim_ms: milliseconds(self.trim),
            sync_ms: milliseconds(self.sync),
        }
    }

    pub(in crate::campaign) fn cycles(&self, fuzzer: &Fuzzer<Mutators>) -> Cycles {
        let fruitless = self.without_finds().as_secs();
        Cycles {
            cycles_done: self.cycles_before + fuzzer.scheduler.cycles(),
            cycles_without_finds: fuzzer.progress.cycles_without_finds,
            longest_without_finds_s: self.longest_without_finds.max(fruitless),
        }
    }

    pub(in crate::campaign) fn runs(&mut self, fuzzer: &Fuzzer<Mutators>, wanted: Wanted) -> Runs {
        let own = fuzzer.target().execs();
        let elapsed = self.started.elapsed().as_secs_f64();
        Runs {
            execs: self.execs(fuzzer),
            execs_per_sec: own as f64 / elapsed.max(0.001),
            execs_per_sec_last_min: self.last_minute_rate(own),
            target_mode: target_mode(fuzzer, wanted),
            run_mode: fuzzer.target().run_mode().name().into(),
            snapshot_runs: fuzzer.target().snapshot_runs().map(|runs| snapshot_use(&runs)),
        }
    }

    pub(in crate::campaign) fn resources(&mut self, fuzzer: &Fuzzer<Mutators>) -> Resources {
        let peak = match fuzzer.target().server() {
            Some(server) => process::peak_rss_mb(server),
            None => process::peak_child_rss_mb(),
        };
        self.peak_rss_mb = self.peak_rss_mb.max(peak);
        Resources {
            exec_timeout_ms: milliseconds(fuzzer.timeout()),
            slowest_exec_ms: milliseconds(fuzzer.progress.slowest),
            peak_rss_mb: self.peak_rss_mb,
            cpu: self.core,
            shares: shares(fuzzer.target().spent(), self.waiting.total(), self.started.elapsed()),
            load_percent: self.waiting.load_percent(),
        }
    }

    pub(in crate::campaign) fn corpus(&self, fuzzer: &Fuzzer<Mutators>) -> Corpus {
        let mut corpus = Corpus {
            corpus_count: fuzzer.corpus.len() as u64,
            corpus_favored: 0,
            corpus_found: fuzzer.progress.found,
            corpus_imported: self.imported,
            corpus_variable: 0,
            max_depth: 0,
            pending_favored: 0,
            pending_total: 0,
        };
        // In a single pass, because a large corpus exceeds the cache.
        for seed in fuzzer.corpus.iter() {
            corpus.corpus_favored += u64::from(seed.favored);
            corpus.corpus_variable += u64::from(seed.variable);
            corpus.max_depth = corpus.max_depth.max(seed.depth + 1);
            corpus.pending_total += u64::from(seed.is_pending());
            corpus.pending_favored += u64::from(seed.is_pending() && seed.favored);
        }
        corpus
    }

    pub(in crate::campaign) fn coverage(&self, fuzzer: &Fuzzer<Mutators>) -> Coverage {
        let (edges, bits) = coverage::found(fuzzer.judge().virgin());
        let unstable = fuzzer.judge().ignored_edges() as u64;
        let map_size = fuzzer.target().edges() as u64;
        let current = self.current.map_or(0, |id| fuzzer.corpus[id].edges);
        Coverage {
            stability: 100.0 - percent(unstable, edges),
            edges_found: edges,
            map_size,
            unstable_edges: unstable,
            bits_per_edge: bits as f64 / edges.max(1) as f64,
            current_density: percent(current.into(), map_size),
            virgin_map: None,
        }
    }

    pub(in crate::campaign) fn finds(
        &self,
        fuzzer: &Fuzzer<Mutators>,
        mut triage: Option<&mut Follower>,
    ) -> Finds {
        let execs = self.execs(fuzzer);
        Finds {
            saved_crashes: self.saved_crashes,
            crashing_seeds: self.crashing_seeds,
            bugs: triage.as_mut().and_then(|triage| triage.bugs()),
            dependent_crashes: self.dependent_crashes,
            undelivered: triage.and_then(|triage| triage.undelivered()),
            total_crashes: self.total_crashes,
            saved_hangs: self.saved_hangs,
            total_timeouts: self.total_timeouts,
            cut_runs: self.cut_runs,
            lost_runs: self.lost_runs,
            sanitizer_runs: self.sanitizer_runs(fuzzer.sidecars()),
            sanitizer_crashes: self.sanitizer_crashes,
            last_find_at: self.last_find_at,
            last_crash_at: self.last_crash_at,
            last_hang_at: self.last_hang_at,
            execs_since_crash: execs.saturating_sub(self.execs_at_crash),
        }
    }

    pub(in crate::campaign) fn turn(&self, fuzzer: &Fuzzer<Mutators>) -> Turn {
        let (stage, stage_done, stage_total) = fuzzer.progress.stage;
        Turn { current: self.current, stage: stage.into(), stage_done, stage_total }
    }

    /// Statistics of the domains; `place` gives the source position of a key.
    pub(in crate::campaign) fn domains(
        &self,
        fuzzer: &Fuzzer<Mutators>,
        place: impl Fn(u32) -> String,
    ) -> Vec<DomainStatus> {
        let aggregates = fuzzer.judge().aggregates();
        let activity = self.domains.iter();
        aggregates
            .domains()
            .iter()
            .zip(activity)
            .enumerate()
            .map(|(index, (domain, activity))| {
                let best = aggregates.best_in(domain);
                DomainStatus {
                    name: domain.label(index),
                    reducer: domain.reducer.name().into(),
                    size: domain.size,
                    keys: u32::try_from(aggregates.changed_in(domain).count()).unwrap_or(u32::MAX),
                    best,
                    best_place: best.map_or_else(String::new, |(key, _)| place(key)),
                    last: activity.last,
                    last_place: activity.last.map_or_else(String::new, |(key, _, _)| place(key)),
                    waypoints: activity.waypoints,
                }
            })
            .collect()
    }
}

/// Shares of the time by account of the ledger. `elapsed`: wall time.
fn parts(fuzzer: &Fuzzer<Mutators>, elapsed: Duration) -> Vec<PartOfTime> {
    let effort = fuzzer.effort();
    let own = Effort { time: load::thread_clock().unwrap_or_default(), runs: 0 };
    let wall = Effort { time: elapsed, runs: 0 };
    let part = |purpose: Purpose| {
        let all = match purpose {
            Purpose::Comparisons | Purpose::Lengths | Purpose::Trimming => effort.and(own),
            Purpose::SecondRuns | Purpose::Imports => wall,
            Purpose::Sanitizers => effort,
        };
        let account = &fuzzer.ledger[purpose];
        let used = account.used(all).time.as_secs_f64() / all.time.as_secs_f64().max(0.001);
        PartOfTime { name: account.name.into(), used: used * 100.0, share: account.share * 100.0 }
    };
    let is_there = |purpose: &Purpose| match purpose {
        Purpose::Sanitizers => fuzzer.sidecars().is_some(),
        _ => true,
    };
    Purpose::ALL.into_iter().filter(is_there).map(part).collect()
}

pub(in crate::campaign) fn search(fuzzer: &Fuzzer<Mutators>, elapsed: Duration) -> Search {
    let (before, after) = fuzzer.progress.trim_bytes;
    Search {
        havoc_expansion: 0,
        dictionary_entries: fuzzer.dictionary.len() as u64,
        stages: fuzzer.progress.yields.clone(),
        trimmed_percent: percent(before - after, before),
        trim_execs: fuzzer.progress.trim_execs,
        parts: parts(fuzzer, elapsed),
    }
}

/// The executor's target mode, with AFL's name for `-C`.
fn target_mode(fuzzer: &Fuzzer<Mutators>, wanted: Wanted) -> String {
    let mode = fuzzer.target().target_mode();
    match (wanted, mode.as_str()) {
        (Wanted::Crashing, "default") => "crash".into(),
        (Wanted::Crashing, mode) => format!("crash {mode}"),
        _ => mode,
    }
}
