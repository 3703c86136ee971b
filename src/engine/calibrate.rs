//! Calibration: run a new seed several times to learn its speed, its trace and what varies.
//!
//! Three runs instead of seven for targets that have not varied so far gained nothing: 1.00 of the edges on six
//! libraries after 20 s, 0.99 on two that make 220 runs a second.

use std::time::Duration;

use crate::coverage::{self, Novelty};
use crate::executor::{ExitKind, RunError};
use crate::feedback::{Finding, Judge};
use crate::runner::Runs;

/// Runs of an ordinary calibration, and with `AFL_CAL_FAST`; AFL++'s numbers.
pub const RUNS: u32 = 7;
pub const RUNS_FAST: u32 = 3;
/// Runs of a seed that varies.
const RUNS_VARIABLE: u32 = 12;

/// Target restarts allowed per calibration; each takes as long as many runs.
const MOST_RESTARTS: u64 = 1;

/// Results of a calibration.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// Exit of the first run that did not end well; such a seed cannot be used.
    pub failed: Option<ExitKind>,
    /// The judge's finding for the failed run.
    pub finding: Option<Finding>,
    /// Mean time of a run, microseconds, at least 1; 0 if there was no run.
    pub exec_us: u64,
    /// Time of the quickest run, microseconds: load on the machine can only lengthen runs.
    pub quickest_us: u64,
    pub slowest: Duration,
    /// Edges hit in the first run, ascending.
    pub trace: Box<[u32]>,
    pub path_hash: u64,
    /// Edges whose count differed between the runs.
    pub unstable: Vec<u32>,
    /// Novelty of these runs beyond the run judged before.
    pub novelty: Novelty,
    /// Domain keys whose aggregate the seed reaches, with the bits it reaches (0: the whole key).
    pub reached: Vec<(u32, u32)>,
}

/// Runs `input` `count` times, more if it varies. Raises the timeout by a quarter (at least 50 ms), so that noise does
/// not fail an input that was in time once.
pub(crate) fn calibrate(
    runs: &mut Runs<'_>,
    judge: &mut Judge,
    input: &[u8],
    count: u32,
) -> Result<Calibration, RunError> {
    let usual = runs.runner.settings().timeout;
    runs.runner.settings_mut().timeout = usual + (usual / 4).max(Duration::from_millis(50));
    let result = measure(runs, judge, input, count);
    runs.runner.settings_mut().timeout = usual;
    result
}

fn measure(
    runs: &mut Runs<'_>,
    judge: &mut Judge,
    input: &[u8],
    count: u32,
) -> Result<Calibration, RunError> {
    let mut result = Calibration::default();
    let mut first: Vec<u8> = Vec::new();
    let mut varies = vec![];
    let (mut total, mut quickest) = (Duration::ZERO, Duration::MAX);
    let (mut done, mut planned) = (0, count);
    // Classes seen in this input's first run are no longer new.
    judge.teach(runs.runner.executor_mut());
    let restarts = runs.runner.info().restarts();
    while done < planned {
        let target = runs.runner.info();
        let costly = target.restarts() - restarts > MOST_RESTARTS;
        if done > 0 && (costly || target.is_stopping()) {
            break;
        }
        let run = runs.observe(input)?;
        let verdict = judge.judge(&run);
        if !judge.accepts(run.exit) {
            result.failed = Some(run.exit);
            result.finding = verdict.finding;
            return Ok(result);
        }
        done += 1;
        total += run.duration;
        quickest = quickest.min(run.duration);
        result.slowest = result.slowest.max(run.duration);
        result.novelty = result.novelty.max(verdict.novelty);
        judge.note_noise(&verdict.gains);
        if done == 1 {
            first = run.edges.to_vec();
            result.trace = coverage::trace(run.edges);
            result.path_hash = coverage::path_hash(run.edges);
            result.reached = judge.reached(&run);
        } else if first != run.edges {
            coverage::add_differences(&first, run.edges, &mut varies);
            planned = planned.max(RUNS_VARIABLE);
        }
    }
    let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    result.exec_us = microseconds(total / done);
    result.quickest_us = microseconds(quickest);
    varies.sort_unstable();
    varies.dedup();
    result.unstable = varies;
    judge.ignore_edges(&result.unstable);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::fake::FakeExecutor;
    use crate::mutate::foreign::NoMutators;
    use crate::runner::Runner;

    /// Calibrates the input 5; returns the runner as well.
    fn calibrated(
        judge: &mut Judge,
        mut program: impl FnMut(&[u8], &mut [u8]) -> ExitKind + 'static,
    ) -> (Calibration, Runner) {
        let executor = FakeExecutor::new(16, vec![], move |input, edges, _| program(input, edges));
        let mut runner = Runner::new(Box::new(executor));
        let mut runs = Runs { runner: &mut runner, mutators: &mut NoMutators };
        (calibrate(&mut runs, judge, &[5], RUNS).unwrap(), runner)
    }

    #[test]
    fn a_steady_seed_has_its_trace_and_no_unstable_edge() {
        let mut judge = Judge::new(16, &[], false);
        let (result, runner) = calibrated(&mut judge, |input, edges| {
            edges[usize::from(input[0])] = 1;
            ExitKind::Ok
        });
        assert_eq!((&*result.trace, result.unstable.len()), (&[5][..], 0));
        assert_eq!((runner.info().execs(), result.exec_us), (u64::from(RUNS), 100));
        assert_eq!(runner.settings().timeout, Duration::from_secs(1));
    }

    #[test]
    fn a_busy_machine_makes_no_seed_slow() {
        let clock = Rc::new(Cell::new(Duration::ZERO));
        let shown = clock.clone();
        let mut run = 0;
        let executor = FakeExecutor::new(16, vec![], move |_, _, _| {
            run += 1;
            shown.set(Duration::from_micros(if run == 3 { 70 } else { 9_000 }));
            ExitKind::Ok
        })
        .timed_by(&clock);
        let mut runner = Runner::new(Box::new(executor));
        let mut runs = Runs { runner: &mut runner, mutators: &mut NoMutators };
        let result = calibrate(&mut runs, &mut Judge::new(16, &[], false), &[5], RUNS).unwrap();
        assert_eq!((result.quickest_us, result.slowest), (70, Duration::from_millis(9)));
        assert!(result.exec_us > 5000);
    }

    #[test]
    fn edges_that_vary_are_found_and_ignored_from_then_on() {
        let mut count = 0;
        let mut judge = Judge::new(16, &[], false);
        let (result, runner) = calibrated(&mut judge, move |_, edges| {
            count += 1;
            edges[3] = count % 3;
            ExitKind::Ok
        });
        assert_eq!(result.unstable, [3]);
        assert_eq!(runner.info().execs(), u64::from(RUNS_VARIABLE));
        assert_eq!(judge.virgin()[3], 0);
    }

    #[test]
    fn a_crash_ends_the_calibration() {
        let crash = ExitKind::Crash { signal: 6 };
        let mut judge = Judge::new(16, &[], false);
        let (result, runner) = calibrated(&mut judge, move |_, _| crash);
        assert_eq!((result.failed, runner.info().execs()), (Some(crash), 1));
    }
}
