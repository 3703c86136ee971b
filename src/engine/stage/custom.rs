//! The custom stage: foreign mutators make inputs. Each has havoc's budget, unless it gives its own number of inputs.
//!
//! The mutator of a libFuzzer harness competes with havoc: a bandit gives each turn to one of them by their finds.
//! Mutators of AFL's interface run before havoc in each turn, as in AFL++.

use std::time::Duration;

use super::batches::run_producer;
use super::havoc::change;
use super::produce::{Materials, Needs, Producer, Tools};
use super::{Stage, StageEnd, Tactic, Turn};
use crate::corpus::{Origin, SeedId, Step};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::Host;
use crate::mutate::Candidate;
use crate::mutate::foreign::{ForeignMutators, Job, Made, bit};
use crate::schedule::Budget;

pub(super) struct Custom;

impl<H: Host> Stage<H> for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&mut self, Turn { door, shared, .. }: &mut Turn<'_, H>) -> bool {
        let Fuzzer { mutators, rng, foreign_only, .. } = door.fuzzer_mut();
        let has = |competes: bool| {
            let mut all = 0..mutators.len();
            all.any(|index| mutators.makes_inputs(index) && mutators.competes(index) == competes)
        };
        let is_open = |arm| arm == Tactic::Custom as usize || arm == Tactic::Havoc as usize;
        shared.is_custom_turn = !*foreign_only
            && has(true)
            && shared.tactics.draw(rng, is_open) == Some(Tactic::Custom as usize);
        shared.is_custom_turn || has(false) || (*foreign_only && has(true))
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Custom)
    }

    /// Doubles the budget if there is no havoc.
    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let fuzzer = turn.door.fuzzer();
        let Some(mut budget) = fuzzer.budget(turn.id) else { return Ok(StageEnd::TurnOver) };
        if fuzzer.foreign_only {
            budget.extend();
        }
        run_producer(turn, &mut Foreign::new(budget))
    }
}

/// Late mutators work on a seed after all other stages, and continue after a restart. With `--mutator-only` the campaign
/// runs only this stage, in an endless loop.
pub(super) struct LateMutators;

impl<H: Host> Stage<H> for LateMutators {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool {
        let mutators = &turn.door.fuzzer().mutators;
        (0..mutators.len()).any(|index| mutators.is_late(index))
    }

    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        match turn.door.fuzzer().budget(turn.id) {
            None => Ok(StageEnd::TurnOver),
            Some(budget) => run_producer(turn, &mut Foreign::late(budget)),
        }
    }
}

/// Input of the mutators: the seed, or a splice of it.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    pub input: &'a [u8],
    /// The other seed of the splice.
    pub other: Option<SeedId>,
}

/// One pass over the mutators that make inputs.
#[derive(Debug)]
pub struct Foreign {
    /// True for a pass over the late mutators, false for the others.
    late: bool,
    /// Budget of a mutator that gives no number of inputs.
    budget: Budget,
    /// Index of the current mutator, and its turn once begun.
    at: usize,
    turn: Option<MutatorTurn>,
    done: u64,
}

#[derive(Clone, Copy, Debug)]
struct MutatorTurn {
    done: u64,
    budget: Budget,
    /// The mutator gave its number of inputs itself.
    fixed: bool,
    /// Time spent by the stage when the turn began.
    began: Duration,
}

impl MutatorTurn {
    fn time(&self, spent: Duration) -> Duration {
        spent.saturating_sub(self.began)
    }
}

impl Foreign {
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self { late: false, budget, at: 0, turn: None, done: 0 }
    }

    /// A pass over the late mutators, which run after all other stages.
    #[must_use]
    pub fn late(budget: Budget) -> Self {
        Self { late: true, ..Self::new(budget) }
    }

    /// A pass that is already over.
    #[must_use]
    pub fn ended() -> Self {
        Self { at: usize::MAX, ..Self::new(Budget::of_runs(0)) }
    }

    #[must_use]
    pub fn is_over(&self, mutators: &dyn ForeignMutators) -> bool {
        self.at >= mutators.len()
    }

    /// Writes the next input made from `base` to `out`.
    pub(crate) fn next_of(
        &mut self,
        base: Base<'_>,
        from: &Materials<'_>,
        Tools { mutators, rng, buffer }: &mut Tools<'_>,
        out: &mut Candidate,
    ) -> Made {
        let Some(turn) = self.turn(base, from, *mutators) else { return Made::Over };
        turn.done += 1;
        let optout = mutators.declines_splicing(self.at);
        let donor = if optout { None } else { from.donors.pick(rng) };
        let other = donor.map(|(_, bytes)| bytes);
        let mut havoc = |bytes: &mut Vec<u8>, max_len| change(from, rng, buffer, bytes, max_len);
        let mut job = Job { input: base.input, other, max_len: from.max_len, havoc: &mut havoc };
        let made = mutators.fuzz(self.at, &mut job, &mut out.bytes);
        match made {
            Made::Input => {
                self.done += 1;
                let op = mutators.name(self.at);
                let step = Step::Custom { op, mutator: u8::try_from(self.at).unwrap_or(u8::MAX) };
                let other = base.other.or(donor.map(|(id, _)| id));
                out.origin = Origin { parent: from.seed, other, step, by: bit(self.at) };
                Made::Input
            }
            Made::Nothing => Made::Nothing,
            Made::Over => {
                self.turn_over(*mutators);
                Made::Nothing
            }
        }
    }

    /// The current turn; begins the next one if needed. None after the last mutator.
    fn turn(
        &mut self,
        base: Base<'_>,
        from: &Materials<'_>,
        mutators: &mut dyn ForeignMutators,
    ) -> Option<&mut MutatorTurn> {
        let (seed, spent) = (from.seed, from.spent);
        while self.at < mutators.len() {
            if self.turn.is_some_and(|turn| turn.budget.is_used(turn.done, turn.time(spent))) {
                self.turn_over(mutators);
                continue;
            }
            let fuzzes = mutators.makes_inputs(self.at) && mutators.is_late(self.at) == self.late;
            if self.turn.is_none() && fuzzes && mutators.stage_begins(self.at, seed, base.input) {
                let count = mutators.fuzz_count(self.at, base.input).map(u64::from);
                let budget = count.map_or(self.budget, Budget::of_runs);
                self.turn =
                    Some(MutatorTurn { done: 0, budget, fixed: count.is_some(), began: spent });
            } else if self.turn.is_none() {
                self.at += 1;
            } else {
                break;
            }
        }
        self.turn.as_mut()
    }

    fn turn_over(&mut self, mutators: &mut dyn ForeignMutators) {
        mutators.stage_ends(self.at);
        self.turn = None;
        self.at += 1;
    }
}

/// As a producer, makes inputs from the seed itself.
impl Producer for Foreign {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn next(&mut self, from: &Materials<'_>, tools: &mut Tools<'_>, out: &mut Candidate) -> Made {
        self.next_of(Base { input: from.input, other: None }, from, tools, out)
    }

    /// Inputs made and planned; future turns are unknown.
    fn progress(&self, spent: Duration) -> (u64, u64) {
        let left = self.turn.map_or(0, |turn| {
            turn.budget.planned(turn.done, turn.time(spent)).saturating_sub(turn.done)
        });
        (self.done, self.done + left)
    }

    fn needs(&self, mutators: &dyn ForeignMutators) -> Needs {
        Needs { donors: true, single: mutators.describes(), ..Needs::default() }
    }

    /// Extends the turn, unless the mutator gave its number of inputs.
    fn extend(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.fixed) {
            turn.budget.extend();
        }
    }

    fn end(&mut self, mutators: &mut dyn ForeignMutators) {
        if self.turn.is_some() {
            self.turn_over(mutators);
        }
        self.at = mutators.len();
    }
}
