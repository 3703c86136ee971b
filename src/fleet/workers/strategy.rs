//! Differences between the workers. Equal fuzzers find the same inputs; a mix of schedules, orders
//! and trimming covers more than any single setting.

use ffuzz_config::options::Schedule;

/// Schedules of the secondaries, in turn. Those that count paths (`fast`, `coe`, `lin`, `quad`,
/// `rare`) observe every single run, which makes a target that takes batches many times slower.
const SCHEDULES: &[Schedule] =
    &[Schedule::Explore, Schedule::Exploit, Schedule::Mmopt, Schedule::Seek];
/// One secondary in this number trims, takes seeds in order, prefers changes that lead to crashes, or
/// searches only for new edges. The main's queue is untrimmed as well, because long inputs keep
/// unexpected content.
const TRIMS: usize = 3;
const IN_ORDER: usize = 5;
const EXPLOITS: usize = 5;
const EDGES_ONLY: usize = 4;

/// Strategy of one worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerStrategy {
    pub main: bool,
    pub schedule: Schedule,
    /// Runs the deterministic stage, which only the main does: once is enough for all workers.
    pub deterministic: bool,
    pub trim: bool,
    /// Picks seeds in queue order; a main always does.
    pub sequential: bool,
    /// Uses `-P exploit`.
    pub exploits: bool,
    /// Guided by domains, if any worker is (`-p`).
    pub domains: bool,
}

impl WorkerStrategy {
    /// Strategy of a worker; number 0 is the main.
    #[must_use]
    pub fn of(number: usize) -> Self {
        let Some(index) = number.checked_sub(1) else {
            return Self {
                main: true,
                schedule: Schedule::Explore,
                deterministic: true,
                trim: false,
                sequential: true,
                exploits: false,
                domains: true,
            };
        };
        Self {
            main: false,
            schedule: SCHEDULES[index % SCHEDULES.len()],
            deterministic: false,
            trim: index.is_multiple_of(TRIMS),
            sequential: number.is_multiple_of(IN_ORDER),
            exploits: number % EXPLOITS == EXPLOITS - 1,
            domains: number % EDGES_ONLY != EDGES_ONLY - 1,
        }
    }
}

/// Name of a worker: `main`, `worker01`, `worker02` …. They sort in this order, and AFL's tools
/// accept any name.
#[must_use]
pub fn name(number: usize) -> String {
    if number == 0 { "main".to_owned() } else { format!("worker{number:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_the_first_six_do_the_same() {
        let all: Vec<WorkerStrategy> = (0..6).map(WorkerStrategy::of).collect();
        for (number, strategy) in all.iter().enumerate() {
            assert!(!all[..number].contains(strategy), "{number}: {strategy:?}");
            assert_eq!((strategy.main, strategy.deterministic), (number == 0, number == 0));
        }
    }

    #[test]
    fn two_workers_share_what_has_to_be_done() {
        let (main, second) = (WorkerStrategy::of(0), WorkerStrategy::of(1));
        assert!(main.deterministic && !main.trim && main.domains);
        assert!(!second.deterministic && second.trim && second.domains && !second.sequential);
        assert_eq!(
            (name(0), name(1), name(100)),
            ("main".into(), "worker01".into(), "worker100".into())
        );
    }
}
