//! A turn: the stages that run on one picked seed. A new stage takes one file here, including its state, and one line
//! in [`Stages::new`].

mod beginning;
mod comparisons;
pub mod custom;
mod deterministic;
mod donors;
#[cfg(test)]
mod fake;
mod havoc;
mod lengths;
mod splice;
mod trim;

mod batches;
pub mod produce;
mod repair;
mod share;
mod shared;

pub use havoc::Stacks;
pub use shared::Shared;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::produce::Producer;
use super::corpus::{BySeed, Corpus, SeedId};
use super::fuzzer::Fuzzer;
use super::fuzzer::door::{Door, Host, Part};

/// Saved state of the stages for the next process, by stage name.
pub type Saved = BTreeMap<String, Value>;

/// Seeds unchanged since an earlier process saved state about them.
#[derive(Clone, Copy)]
pub struct Kept<'a> {
    pub corpus: &'a Corpus,
    pub ids: &'a BTreeSet<SeedId>,
}

impl Kept<'_> {
    fn has(self, id: SeedId) -> bool {
        self.ids.contains(&id) && id < self.corpus.next_id()
    }

    /// Removes saved entries of other seeds.
    fn retain<T>(self, saved: &mut BySeed<T>) {
        saved.retain(|id, _| self.has(*id));
    }
}

/// The stages of a search and their shared state.
pub struct Stages<H> {
    list: Vec<Box<dyn Stage<H>>>,
    shared: Shared,
}

/// Context of a stage: the search, the seed of the turn, and the state shared by the stages.
pub struct Turn<'a, H> {
    pub door: Door<'a, H>,
    pub id: SeedId,
    pub shared: &'a mut Shared,
}

impl<H: Host> Turn<'_, H> {
    /// The same turn with another seed.
    fn of(&mut self, id: SeedId) -> Turn<'_, H> {
        Turn { door: self.door.reborrow(), id, shared: &mut *self.shared }
    }

    /// Does `work` and charges its time to `part`.
    fn timed<T>(&mut self, part: Part, work: impl FnOnce(&mut Turn<'_, H>) -> T) -> T {
        let Self { door, id, shared } = self;
        door.timed(part, |door| work(&mut Turn { door: door.reborrow(), id: *id, shared }))
    }
}

/// A part of a turn, with its state across turns.
pub trait Stage<H: Host> {
    /// Name for the screen, for [`Stages::save`], and for the table of yields unless the steps have their own names.
    fn name(&self) -> &'static str;

    /// Whether the stage runs in this turn.
    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool;

    /// Runs the stage. All runs go through the door, and between two batches the stage calls
    /// [`Door::between_batches`] to learn whether to continue.
    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error>;

    /// Arm of the bandit, if the stage competes with others.
    fn tactic(&self) -> Option<Tactic> {
        None
    }

    /// State for the next process; None if there is none.
    fn save(&self, _fuzzer: &Fuzzer<H::Mutators>) -> Option<Value> {
        None
    }

    /// Restores state saved by an earlier process. Returns false if it is invalid.
    fn load(&mut self, _saved: Value, _kept: Kept<'_>) -> bool {
        true
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StageEnd {
    Finished,
    /// The turn is over: another seed is now worth more, or the user has requested it.
    TurnOver,
}

/// Stages that compete: the arms of a bandit.
#[derive(Clone, Copy, Debug)]
pub enum Tactic {
    /// Deterministic steps.
    Deterministic,
    /// Random changes.
    Havoc,
    /// Foreign mutators that compete with havoc.
    Custom,
}

impl Tactic {
    const COUNT: usize = 3;
}

impl<H: Host> Default for Stages<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Host> Stages<H> {
    /// Creates the stages in the order of a turn. Each decides itself whether it runs, see [`Stage::wants`].
    #[must_use]
    pub fn new() -> Self {
        let list: Vec<Box<dyn Stage<H>>> = vec![
            Box::new(trim::Trimming),
            Box::<comparisons::Comparisons>::default(),
            Box::<lengths::Lengths>::default(),
            Box::<deterministic::DeterministicSteps>::default(),
            Box::new(custom::Custom),
            Box::<havoc::Havoc>::default(),
            Box::new(splice::Splicing),
            Box::new(custom::LateMutators),
        ];
        Self { list, shared: Shared::default() }
    }

    /// Runs all stages on one seed and records the yields of competing stages. Returns the cost, in average runs.
    pub fn run_turn(&mut self, host: &mut H, id: SeedId) -> Result<f64, H::Error> {
        let Self { list, shared } = self;
        let before = host.fuzzer().effort();
        for stage in list {
            let turn = &mut Turn { door: Door(host), id, shared };
            turn.shared.logs.check_origin(turn.door.fuzzer().has_logger());
            if !stage.wants(turn) {
                continue;
            }
            let (effort, found) = (turn.door.fuzzer().effort(), turn.door.fuzzer().progress.found);
            let end = stage.run(turn)?;
            if let Some(tactic) = stage.tactic() {
                let fuzzer = turn.door.fuzzer();
                let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
                turn.shared.tactics.note(tactic as usize, cost, finds);
            }
            if end == StageEnd::TurnOver {
                break;
            }
        }
        Ok(host.fuzzer().cost_since(before))
    }

    /// Runs the candidates of a producer outside of any stage, until it ends or the turn is over.
    pub fn run_producer(
        &mut self,
        host: &mut H,
        id: SeedId,
        producer: &mut dyn Producer,
    ) -> Result<StageEnd, H::Error> {
        batches::run_producer(
            &mut Turn { door: Door(host), id, shared: &mut self.shared },
            producer,
        )
    }

    /// The single stages and their shared state.
    pub fn parts(&mut self) -> (&mut [Box<dyn Stage<H>>], &mut Shared) {
        (&mut self.list, &mut self.shared)
    }

    /// State of all stages for the next process.
    #[must_use]
    pub fn save(&self, fuzzer: &Fuzzer<H::Mutators>) -> Saved {
        let of_stages =
            self.list.iter().filter_map(|stage| Some((stage.name().into(), stage.save(fuzzer)?)));
        let shared = self.shared.save(fuzzer).map(|saved| (shared::NAME.into(), saved));
        of_stages.chain(shared).collect()
    }

    /// Restores state saved by an earlier process. Returns the names of stages whose state is invalid; they start
    /// empty.
    pub fn load(&mut self, mut saved: Saved, kept: Kept<'_>) -> Vec<&'static str> {
        let mut refused = Vec::new();
        for stage in &mut self.list {
            if saved.remove(stage.name()).is_some_and(|saved| !stage.load(saved, kept)) {
                refused.push(stage.name());
            }
        }
        if saved.remove(shared::NAME).is_some_and(|saved| !self.shared.load(saved, kept)) {
            refused.push(shared::NAME);
        }
        refused
    }
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
    use crate::mutate::Candidate;

    /// Models an executor with breakpoints, which makes more runs than it reports.
    #[test]
    fn all_that_the_proof_of_a_hang_takes_counts_as_waiting() {
        let seconds = Duration::from_secs;
        let clock = Rc::new(Cell::new(seconds(1)));
        let (inner, is_second) = (clock.clone(), Cell::new(false));
        let executor = FakeExecutor::new(8, vec![], move |_, edges, _| {
            edges[0] = 1;
            // The second run takes three seconds but reports one.
            inner.set(seconds(if is_second.replace(true) { 1 } else { 3 }));
            ExitKind::Hang
        });
        let mut search = Search::of(executor.timed_by(&clock));
        search.0.set_timeout(Duration::from_millis(20));
        search
            .door()
            .try_out(&Candidate { bytes: b"a".into(), origin: Origin::injected(0) })
            .unwrap();
        assert_eq!(search.1, [b"a"]);
        assert_eq!(search.0.target().spent().whole(), seconds(4));
        assert_eq!(search.0.effort().time, seconds(1));
    }
}
