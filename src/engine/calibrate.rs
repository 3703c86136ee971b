//! Calibration: run a new seed several times to learn its speed, its trace and what varies.

use std::time::Duration;

use crate::coverage::{self, Novelty};
use crate::executor::{Executor, ExitKind, RunError};
use crate::feedback::{Finding, Judge};

/// Runs of an ordinary calibration, and with `AFL_CAL_FAST`; AFL++'s numbers.
pub const RUNS: u32 = 7;
pub const RUNS_FAST: u32 = 3;
/// Runs once a seed turned out to vary.
const RUNS_VARIABLE: u32 = 12;

/// Starts of the target that one calibration may cost: each takes as long as many runs.
const MOST_RESTARTS: u64 = 1;

/// What calibration learned of a seed.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The first run that did not end well; the seed cannot be used then.
    pub failed: Option<ExitKind>,
    /// The same run as the judge sees it.
    pub finding: Option<Finding>,
    /// Mean time of a run, microseconds, at least 1; 0 if there was no run.
    pub exec_us: u64,
    pub slowest: Duration,
    /// Edges hit in the first run, ascending.
    pub trace: Box<[u32]>,
    pub path_hash: u64,
    /// Edges whose count differed between the runs.
    pub unstable: Vec<u32>,
    /// What the runs brought beyond the one that was judged before.
    pub novelty: Novelty,
    /// Domain keys whose aggregate the seed reaches, and which of their bits (0: all).
    pub reached: Vec<(u32, u32)>,
}

/// Runs `input` `runs` times, more if it varies. The timeout is a quarter (at least 50 ms) longer
/// than usual: an input that was in time once should not fail here by noise.
pub fn calibrate(
    executor: &mut dyn Executor,
    judge: &mut Judge,
    input: &[u8],
    runs: u32,
) -> Result<Calibration, RunError> {
    let usual = executor.timeout();
    executor.set_timeout(usual + (usual / 4).max(Duration::from_millis(50)));
    let result = measure(executor, judge, input, runs);
    executor.set_timeout(usual);
    result
}

fn measure(
    executor: &mut dyn Executor,
    judge: &mut Judge,
    input: &[u8],
    runs: u32,
) -> Result<Calibration, RunError> {
    let mut result = Calibration::default();
    let mut first: Vec<u8> = Vec::new();
    let mut varies = vec![];
    let mut total = Duration::ZERO;
    let (mut done, mut planned) = (0, runs);
    // What the first run of this input has shown is not new any more.
    judge.teach(executor);
    let restarts = executor.restarts();
    while done < planned {
        let costly = executor.restarts() - restarts > MOST_RESTARTS;
        if done > 0 && (costly || executor.is_hurried()) {
            break;
        }
        let run = executor.observe(input)?;
        let verdict = judge.judge(&run);
        if !judge.accepts(run.exit) {
            result.failed = Some(run.exit);
            result.finding = verdict.finding;
            return Ok(result);
        }
        done += 1;
        total += run.duration;
        result.slowest = result.slowest.max(run.duration);
        result.novelty = result.novelty.max(verdict.novelty);
        judge.note_noise(&verdict.gains);
        if done == 1 {
            first = run.edges.to_vec();
            result.trace = coverage::trace(run.edges);
            result.path_hash = coverage::path_hash(run.edges);
            result.reached = judge.reached(&run);
        } else if first != run.edges {
            note_differences(&first, run.edges, &mut varies);
            planned = planned.max(RUNS_VARIABLE);
        }
    }
    result.exec_us = u64::try_from((total / done).as_micros()).unwrap_or(u64::MAX).max(1);
    varies.sort_unstable();
    varies.dedup();
    result.unstable = varies;
    judge.ignore_edges(&result.unstable);
    Ok(result)
}

fn note_differences(first: &[u8], now: &[u8], varies: &mut Vec<u32>) {
    let differing = (0u32..).zip(first.iter().zip(now)).filter(|(_, (a, b))| a != b);
    varies.extend(differing.map(|(index, _)| index));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeExecutor;

    #[test]
    fn a_steady_seed_has_its_trace_and_no_unstable_edge() {
        let mut executor = FakeExecutor::new(16, vec![], |input, edges, _| {
            edges[usize::from(input[0])] = 1;
            ExitKind::Ok
        });
        let mut judge = Judge::new(16, &[], false);
        let result = calibrate(&mut executor, &mut judge, &[5], RUNS).unwrap();
        assert_eq!((&*result.trace, result.unstable.len()), (&[5][..], 0));
        assert_eq!((executor.execs(), result.exec_us), (u64::from(RUNS), 100));
        assert_eq!(executor.timeout(), Duration::from_secs(1));
    }

    #[test]
    fn edges_that_vary_are_found_and_ignored_from_then_on() {
        let mut count = 0;
        let mut executor = FakeExecutor::new(16, vec![], move |_, edges, _| {
            count += 1;
            edges[3] = count % 3;
            ExitKind::Ok
        });
        let mut judge = Judge::new(16, &[], false);
        let result = calibrate(&mut executor, &mut judge, &[5], RUNS).unwrap();
        assert_eq!(result.unstable, [3]);
        assert_eq!(executor.execs(), u64::from(RUNS_VARIABLE));
        assert_eq!(judge.virgin()[3], 0);
    }

    #[test]
    fn a_crash_ends_the_calibration() {
        let crash = ExitKind::Crash { signal: 6 };
        let mut executor = FakeExecutor::new(16, vec![], move |_, _, _| crash);
        let mut judge = Judge::new(16, &[], false);
        let result = calibrate(&mut executor, &mut judge, &[5], RUNS).unwrap();
        assert_eq!((result.failed, executor.execs()), (Some(crash), 1));
    }
}
