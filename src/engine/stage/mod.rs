//! A turn: what is done with one picked seed. A new stage is one file here and one line in [`turn`].

pub(crate) mod beginning;
mod comparisons;
mod custom;
mod deterministic;
#[cfg(test)]
mod fake;
mod havoc;
mod lengths;
mod modules;
mod splice;
mod trim;

mod batches;
pub mod foreign;
pub mod produce;
mod repair;
mod share;

pub use batches::run_producer;
pub use havoc::Stacks;

use super::corpus::SeedId;
use super::fuzzer::Tactic;
use super::fuzzer::door::Door;

/// The stages of a turn, in their order. Each says itself when it has something to do.
#[must_use]
pub fn turn<'a, D: Door + 'a>() -> &'a [&'a dyn Stage<D>] {
    &[
        &trim::Trimming,
        &comparisons::Comparisons,
        &lengths::Lengths,
        &deterministic::DeterministicSteps,
        &custom::Custom,
        &havoc::Havoc,
        &splice::Splicing,
        &modules::LateMutators,
    ]
}

/// A part of a turn.
pub trait Stage<D: Door> {
    /// For the screen and the table of yields, unless its steps have names of their own.
    fn name(&self) -> &'static str;

    /// Whether it has something to do with this seed in this turn.
    fn wants(&self, door: &mut D, id: SeedId) -> bool;

    /// Does it. All runs go through the door, and between two batches the stage asks
    /// [`Door::between_batches`] whether it goes on.
    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error>;

    /// The arm of the bandit that it is, if it competes with another stage.
    fn tactic(&self) -> Option<Tactic> {
        None
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StageEnd {
    Finished,
    /// The turn is over: another seed is now worth more, or the user said so.
    TurnOver,
}

/// All stages on one seed, and what the scheduler learns of it. Returns what it cost, in runs of average length.
pub fn run_turn<D: Door>(door: &mut D, id: SeedId) -> Result<f64, D::Error> {
    let before = door.fuzzer().effort();
    for stage in turn::<D>() {
        if !stage.wants(door, id) {
            continue;
        }
        let (effort, found) = (door.fuzzer().effort(), door.fuzzer().progress.found);
        let end = stage.run(door, id)?;
        if let Some(tactic) = stage.tactic() {
            let fuzzer = door.fuzzer_mut();
            let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
            fuzzer.tactics.note(tactic as usize, cost, finds);
        }
        if end == StageEnd::TurnOver {
            break;
        }
    }
    Ok(door.fuzzer().cost_since(before))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::fake::Search;
    use crate::corpus::Origin;
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;
    use crate::fuzzer::door::Door as _;
    use crate::mutate::Candidate;

    /// With breakpoints, an executor makes more runs than the one that it reports.
    #[test]
    fn all_that_the_proof_of_a_hang_takes_counts_as_waiting() {
        let seconds = Duration::from_secs;
        let clock = Rc::new(Cell::new(seconds(1)));
        let (inner, is_second) = (clock.clone(), Cell::new(false));
        let executor = FakeExecutor::new(8, vec![], move |_, edges, _| {
            edges[0] = 1;
            // The second run is reported as one of a second, and takes three.
            inner.set(seconds(if is_second.replace(true) { 1 } else { 3 }));
            ExitKind::Hang
        });
        let mut search = Search::of(executor.timed_by(&clock));
        search.0.set_timeout(Duration::from_millis(20));
        search.try_out(&Candidate { bytes: b"a".into(), origin: Origin::injected(0) }).unwrap();
        assert_eq!(search.1, [b"a"]);
        assert_eq!(search.0.target().spent().whole(), seconds(4));
        assert_eq!(search.0.effort().time, seconds(1));
    }
}
