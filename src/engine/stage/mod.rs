//! A turn: what is done with one picked seed. A new stage is one file here, with all that it remembers, and one line in
//! [`Stages::new`].

mod beginning;
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
mod shared;

pub use havoc::Stacks;
pub use shared::Shared;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::produce::Producer;
use super::corpus::{BySeed, Corpus, SeedId};
use super::fuzzer::Fuzzer;
use super::fuzzer::door::{Door, Part};

/// What stages know for the next process, by their names.
pub type Saved = BTreeMap<String, Value>;

/// Seeds that are as they were when an earlier process has saved something of them.
#[derive(Clone, Copy)]
pub struct Kept<'a> {
    pub corpus: &'a Corpus,
    pub ids: &'a BTreeSet<SeedId>,
}

impl Kept<'_> {
    fn has(self, id: SeedId) -> bool {
        self.ids.contains(&id) && id < self.corpus.next_id()
    }

    /// What was saved of these seeds.
    fn retain<T>(self, saved: &mut BySeed<T>) {
        saved.retain(|id, _| self.has(*id));
    }
}

/// The stages of all turns of a search, and what they have in common.
pub struct Stages<D> {
    list: Vec<Box<dyn Stage<D>>>,
    shared: Shared,
}

/// What a stage works with: the seed of the turn, the search, and what stages have in common.
pub struct Turn<'a, D> {
    pub door: &'a mut D,
    pub id: SeedId,
    pub shared: &'a mut Shared,
}

impl<D: Door> Turn<'_, D> {
    /// The same for another seed.
    fn of(&mut self, id: SeedId) -> Turn<'_, D> {
        Turn { door: &mut *self.door, id, shared: &mut *self.shared }
    }

    /// Does `work`, whose time belongs to `part`.
    fn timed<T>(&mut self, part: Part, work: impl FnOnce(&mut Turn<'_, D>) -> T) -> T {
        let Self { door, id, shared } = self;
        door.timed(part, |door| work(&mut Turn { door, id: *id, shared }))
    }
}

/// A part of a turn, with all that it remembers from one turn to the next.
pub trait Stage<D: Door> {
    /// For the screen, the table of yields, unless its steps have names of their own, and [`Stages::save`].
    fn name(&self) -> &'static str;

    /// Whether it has something to do with this seed in this turn.
    fn wants(&mut self, turn: &mut Turn<'_, D>) -> bool;

    /// Does it. All runs go through the door, and between two batches the stage asks
    /// [`Door::between_batches`] whether it goes on.
    fn run(&mut self, turn: &mut Turn<'_, D>) -> Result<StageEnd, D::Error>;

    /// The arm of the bandit that it is, if it competes with another stage.
    fn tactic(&self) -> Option<Tactic> {
        None
    }

    /// What it knows for the next process. None: nothing.
    fn save(&self, _fuzzer: &Fuzzer<D::Mutators>) -> Option<Value> {
        None
    }

    /// Takes up what an earlier process has saved. False if no process has saved that.
    fn load(&mut self, _saved: Value, _kept: Kept<'_>) -> bool {
        true
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StageEnd {
    Finished,
    /// The turn is over: another seed is now worth more, or the user said so.
    TurnOver,
}

/// Stages that compete: the arms of a bandit.
#[derive(Clone, Copy, Debug)]
pub enum Tactic {
    /// Deterministic steps, one after the other.
    Deterministic,
    /// Random changes.
    Havoc,
    /// Foreign mutators that compete with havoc.
    Custom,
}

impl Tactic {
    const COUNT: usize = 3;
}

impl<D: Door> Default for Stages<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Door> Stages<D> {
    /// In the order of a turn. Each says itself when it has something to do.
    #[must_use]
    pub fn new() -> Self {
        let list: Vec<Box<dyn Stage<D>>> = vec![
            Box::new(trim::Trimming),
            Box::<comparisons::Comparisons<D>>::default(),
            Box::<lengths::Lengths>::default(),
            Box::<deterministic::DeterministicSteps>::default(),
            Box::new(custom::Custom),
            Box::<havoc::Havoc>::default(),
            Box::new(splice::Splicing),
            Box::new(modules::LateMutators),
        ];
        Self { list, shared: Shared::default() }
    }

    /// All stages on one seed, and what the scheduler learns of it. Returns what it cost, in runs of average length.
    pub fn run_turn(&mut self, door: &mut D, id: SeedId) -> Result<f64, D::Error> {
        let Self { list, shared } = self;
        let before = door.fuzzer().effort();
        for stage in list {
            let turn = &mut Turn { door: &mut *door, id, shared: &mut *shared };
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
        Ok(door.fuzzer().cost_since(before))
    }

    /// Runs what a producer makes of a seed, to its end or to that of the turn, without a stage around it.
    pub fn run_producer(
        &mut self,
        door: &mut D,
        id: SeedId,
        producer: &mut dyn Producer,
    ) -> Result<StageEnd, D::Error> {
        batches::run_producer(&mut Turn { door, id, shared: &mut self.shared }, producer)
    }

    /// The stages one by one, each with what they have in common.
    pub fn parts(&mut self) -> (&mut [Box<dyn Stage<D>>], &mut Shared) {
        (&mut self.list, &mut self.shared)
    }

    /// What they know for the next process.
    #[must_use]
    pub fn save(&self, fuzzer: &Fuzzer<D::Mutators>) -> Saved {
        let of_stages =
            self.list.iter().filter_map(|stage| Some((stage.name().into(), stage.save(fuzzer)?)));
        let shared = self.shared.save(fuzzer).map(|saved| (shared::NAME.into(), saved));
        of_stages.chain(shared).collect()
    }

    /// Takes up what an earlier process has saved. Returns the names of stages of which no process has saved that: they
    /// know nothing.
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
