//! One state for all workers, made from the state of each: the one place for it, whoever shows it.
//!
//! What workers do and what they keep adds up, as in `ffuzz-whatsup`. Edges do not: workers take over
//! each other's finds within seconds, so that the one that knows most knows what all know.

use crate::event::{DomainStatus, MutatorStatus, Shares, Snapshot, StageYield};

/// Reducers ([`crate::engine::domain::Reducer::name`]) whose best value is the smallest.
const FALLING: &[&str] = &["MIN", "BITWISE_INTERSECTION"];

/// The state of all. `workers` and what only the fleet knows is filled in by the caller.
#[must_use]
pub(super) fn join(all: &[&Snapshot]) -> Snapshot {
    let sum = |field: fn(&Snapshot) -> u64| all.iter().map(|s| field(s)).sum::<u64>();
    let rate = |field: fn(&Snapshot) -> f64| all.iter().map(|s| field(s)).sum::<f64>();
    let last = |field: fn(&Snapshot) -> u64| all.iter().map(|s| field(s)).max().unwrap_or(0);
    let first = |field: fn(&Snapshot) -> u64| all.iter().map(|s| field(s)).min().unwrap_or(0);
    // Of equals the first: the main.
    let leader = all.iter().rev().max_by_key(|s| (s.edges_found, s.corpus_count));
    Snapshot {
        started_at: first(|s| s.started_at),
        now: last(|s| s.now),
        run_time_ms: last(|s| s.run_time_ms),
        calibration_ms: sum(|s| s.calibration_ms),
        trim_ms: sum(|s| s.trim_ms),
        sync_ms: sum(|s| s.sync_ms),
        cycles_done: last(|s| s.cycles_done),
        cycles_without_finds: first(|s| s.cycles_without_finds),
        longest_without_finds_s: first(|s| s.longest_without_finds_s),
        execs: sum(|s| s.execs),
        execs_per_sec: rate(|s| s.execs_per_sec),
        execs_per_sec_last_min: rate(|s| s.execs_per_sec_last_min),
        corpus_count: sum(|s| s.corpus_count),
        corpus_favored: sum(|s| s.corpus_favored),
        corpus_found: sum(|s| s.corpus_found),
        corpus_imported: sum(|s| s.corpus_imported),
        corpus_variable: sum(|s| s.corpus_variable),
        max_depth: all.iter().map(|s| s.max_depth).max().unwrap_or(0),
        current: None,
        pending_favored: sum(|s| s.pending_favored),
        pending_total: sum(|s| s.pending_total),
        saved_crashes: sum(|s| s.saved_crashes),
        dependent_crashes: sum(|s| s.dependent_crashes),
        total_crashes: sum(|s| s.total_crashes),
        saved_hangs: sum(|s| s.saved_hangs),
        total_timeouts: sum(|s| s.total_timeouts),
        last_find_at: last(|s| s.last_find_at),
        last_crash_at: last(|s| s.last_crash_at),
        last_hang_at: last(|s| s.last_hang_at),
        execs_since_crash: sum(|s| s.execs_since_crash),
        exec_timeout_ms: last(|s| s.exec_timeout_ms),
        slowest_exec_ms: last(|s| s.slowest_exec_ms),
        peak_rss_mb: last(|s| s.peak_rss_mb),
        cpu: None,
        stages: stages(all),
        stage: String::new(),
        stage_done: 0,
        stage_total: 0,
        trim_execs: sum(|s| s.trim_execs),
        domains: domains(all),
        mutators: mutators(all),
        guided_by_domains: all.iter().any(|s| s.guided_by_domains),
        schedule: schedules(all),
        shares: shares(all),
        load_percent: all.iter().rev().find_map(|s| s.load_percent),
        ..leader.map_or_else(Snapshot::default, |leader| (*leader).clone())
    }
}

/// The one that all have.
fn schedules(all: &[&Snapshot]) -> String {
    let first = all.first().map(|s| s.schedule.as_str()).unwrap_or_default();
    let same = all.iter().all(|s| s.schedule == first);
    if same { first.to_owned() } else { "mixed".to_owned() }
}

/// By name, in the order in which they appear.
fn stages(all: &[&Snapshot]) -> Vec<StageYield> {
    let mut found: Vec<StageYield> = Vec::new();
    for stage in all.iter().flat_map(|s| &s.stages) {
        match found.iter_mut().find(|known| known.name == stage.name) {
            Some(known) => {
                known.finds += stage.finds;
                known.execs += stage.execs;
            }
            None => found.push(stage.clone()),
        }
    }
    found
}

/// By place: each worker registers the same.
fn domains(all: &[&Snapshot]) -> Vec<DomainStatus> {
    let mut found: Vec<DomainStatus> = Vec::new();
    for snapshot in all {
        for (index, domain) in snapshot.domains.iter().enumerate() {
            match found.get_mut(index) {
                Some(known) => add_domain(known, domain),
                None => found.push(domain.clone()),
            }
        }
    }
    found
}

fn add_domain(known: &mut DomainStatus, other: &DomainStatus) {
    known.keys = known.keys.max(other.keys);
    known.waypoints += other.waypoints;
    let value = |best: Option<(u32, u32)>| best.map(|(_, value)| value);
    let smallest = FALLING.contains(&known.reducer.as_ref());
    let better = match (value(other.best), value(known.best)) {
        (Some(theirs), Some(ours)) if smallest => theirs < ours,
        (theirs, ours) => theirs > ours,
    };
    if better {
        known.best = other.best;
        known.best_place.clone_from(&other.best_place);
    }
    let time = |last: Option<(u32, u32, u64)>| last.map(|(_, _, at)| at);
    if time(other.last) > time(known.last) {
        known.last = other.last;
        known.last_place.clone_from(&other.last_place);
    }
}

/// By place; a share of time is the mean of all workers.
fn mutators(all: &[&Snapshot]) -> Vec<MutatorStatus> {
    let mut found: Vec<MutatorStatus> = Vec::new();
    for snapshot in all {
        for (index, mutator) in snapshot.mutators.iter().enumerate() {
            let Some(known) = found.get_mut(index) else {
                found.push(mutator.clone());
                continue;
            };
            known.calls += mutator.calls;
            known.finds += mutator.finds;
            known.time_ms += mutator.time_ms;
            known.time_percent += mutator.time_percent;
            known.failures += mutator.failures;
        }
    }
    for mutator in &mut found {
        mutator.time_percent /= all.len() as f64;
    }
    found
}

/// The mean. A rung on which the hand-over is not known makes it unknown for all.
fn shares(all: &[&Snapshot]) -> Shares {
    let count = all.len().max(1) as f64;
    let mean =
        |field: fn(&Shares) -> f64| all.iter().map(|s| field(&s.shares)).sum::<f64>() / count;
    let known = all.iter().all(|s| s.shares.hand_over.is_some());
    let hand_over = mean(|s| s.hand_over.unwrap_or(0.0));
    Shares {
        target: mean(|s| s.target) + if known { 0.0 } else { hand_over },
        hand_over: known.then_some(hand_over),
        waiting: mean(|s| s.waiting),
        fuzzer: mean(|s| s.fuzzer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(execs: u64, edges_found: u64, last_find_at: u64) -> Snapshot {
        let stage = StageYield { name: "havoc".into(), finds: 1, execs };
        Snapshot {
            execs,
            edges_found,
            corpus_count: 10 * edges_found,
            last_find_at,
            saved_crashes: 2,
            execs_per_sec: 100.0,
            stages: vec![stage],
            ..Snapshot::default()
        }
    }

    #[test]
    fn work_and_corpora_add_up_and_edges_are_those_of_the_best() {
        let (main, other) = (worker(1000, 7, 50), worker(500, 9, 40));
        let all = join(&[&main, &other]);
        assert_eq!((all.execs, all.edges_found, all.corpus_count), (1500, 9, 160));
        assert_eq!((all.saved_crashes, all.last_find_at), (4, 50));
        assert_eq!((all.stages[0].finds, all.stages[0].execs, all.stages.len()), (2, 1500, 1));
        assert!((all.execs_per_sec - 200.0).abs() < 1e-9);
        assert_eq!(join(&[]).execs, 0);
    }

    #[test]
    fn the_best_value_of_a_domain_depends_on_its_reducer() {
        let domain = |reducer: &'static str, value, at| DomainStatus {
            reducer: reducer.into(),
            best: Some((1, value)),
            last: Some((1, value, at)),
            waypoints: 3,
            ..DomainStatus::default()
        };
        for (reducer, best) in [("MAX", 9), ("MIN", 4)] {
            let with = |value, at| Snapshot {
                domains: vec![domain(reducer, value, at)],
                ..Snapshot::default()
            };
            let all = join(&[&with(4, 20), &with(9, 10)]);
            assert_eq!(all.domains[0].best, Some((1, best)), "{reducer}");
            assert_eq!((all.domains[0].last, all.domains[0].waypoints), (Some((1, 4, 20)), 6));
        }
    }
}
