//! One status of the whole fleet, joined from the status of each worker, for all views.
//! Each group of numbers defines how it is joined ([`ffuzz_event::join`]).

use ffuzz_event::Snapshot;
use ffuzz_event::join::All;

/// The joined status. The caller fills in `workers` and what only the fleet knows.
#[must_use]
pub(super) fn join(all: &[&Snapshot]) -> Snapshot {
    // The first of equal ones: the main.
    let all = All::new(all, |s| (s.coverage.edges_found, s.corpus.corpus_count));
    Snapshot {
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

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::{Corpus, Coverage, Finds, Runs, Search, StageYield};

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
        let all = join(&[&main, &other]);
        let edges = all.coverage.edges_found;
        assert_eq!((all.runs.execs, edges, all.corpus.corpus_count), (1500, 9, 160));
        assert_eq!((all.finds.saved_crashes, all.finds.last_find_at), (4, 50));
        let stages = &all.search.stages;
        assert_eq!((stages[0].finds, stages[0].execs, stages.len()), (2, 1500, 1));
        assert!((all.runs.execs_per_sec - 200.0).abs() < 1e-9);
        assert_eq!(join(&[]).runs.execs, 0);
    }
}
