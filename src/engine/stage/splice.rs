//! Splicing: joins the seed with another one, then havoc changes the result. Runs once a cycle has found nothing.

use std::time::Duration;

use super::batches::run_producer;
use super::custom::{Base, Foreign};
use super::donors::DONOR_ATTEMPTS;
use super::havoc::stack;
use super::produce::{Materials, Needs, Producer, Tools};
use super::{Stage, StageEnd, Turn};
use crate::corpus::SeedId;
use crate::fuzzer::door::Host;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::splice::{splice, splice_lists};
use crate::mutate::{Candidate, Rng};
use crate::schedule::Budget;

/// Splicing gets an eighth of havoc's budget.
const SHARE: u32 = 8;
/// Havoc runs between two splices, AFL++'s number.
const RUNS_PER_JOIN: u64 = 32;

pub(super) struct Splicing;

impl<H: Host> Stage<H> for Splicing {
    fn name(&self) -> &'static str {
        "splice"
    }

    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool {
        let fuzzer = turn.door.fuzzer();
        let is_ours = !fuzzer.foreign_only && !turn.shared.is_custom_turn;
        is_ours && fuzzer.progress.cycles_without_finds > 0
    }

    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let budget = turn.door.fuzzer().budget(turn.id);
        let Some(budget) = budget else { return Ok(StageEnd::TurnOver) };
        run_producer(turn, &mut Joins::new(budget.part(SHARE), budget))
    }
}

/// Rounds of: join with another seed, then foreign mutators and havoc on the result.
struct Joins {
    done: u64,
    budget: Budget,
    joined: Vec<u8>,
    other: Option<SeedId>,
    foreign: Foreign,
    /// Budget of each foreign mutator after each join.
    foreign_budget: Budget,
}

impl Joins {
    fn new(budget: Budget, foreign_budget: Budget) -> Self {
        let foreign = Foreign::ended();
        Self { done: 0, budget, joined: Vec::new(), other: None, foreign, foreign_budget }
    }

    /// Joins the seed with another one.
    fn join(&mut self, from: &Materials<'_>, rng: &mut Rng) {
        self.other = (0..DONOR_ATTEMPTS).find_map(|_| {
            let (id, bytes) = from.donors.pick(rng)?;
            let joined = &mut self.joined;
            let is_joined = match from.messages {
                true => splice_lists(rng, from.input, bytes, joined),
                false => splice(rng, from.input, bytes, joined),
            };
            let fits = is_joined && joined.len() <= from.max_len;
            fits.then_some(id)
        });
    }
}

impl Producer for Joins {
    fn name(&self) -> &'static str {
        "splice"
    }

    fn next(&mut self, from: &Materials<'_>, tools: &mut Tools<'_>, out: &mut Candidate) -> Made {
        if self.budget.is_used(self.done, from.spent) {
            return Made::Over;
        }
        let is_due = self.done.is_multiple_of(RUNS_PER_JOIN);
        if is_due && self.foreign.is_over(tools.mutators) {
            self.join(from, tools.rng);
            self.foreign = Foreign::new(self.foreign_budget);
        }
        let Some(id) = self.other else { return Made::Over };
        let base = Base { input: &self.joined, other: Some(id) };
        match self.foreign.next_of(base, from, tools, out) {
            Made::Over => {}
            made => return made,
        }
        if is_due {
            tools.mutators.havoc_begins();
        }
        self.done += 1;
        stack(from, tools, base, "splice", out);
        Made::Input
    }

    fn progress(&self, spent: Duration) -> (u64, u64) {
        (self.done, self.budget.planned(self.done, spent))
    }

    fn needs(&self, mutators: &dyn ForeignMutators) -> Needs {
        Needs { donors: true, single: mutators.describes(), ..Needs::default() }
    }

    fn extend(&mut self) {
        self.budget.extend();
        self.foreign.extend();
    }

    fn end(&mut self, mutators: &mut dyn ForeignMutators) {
        self.foreign.end(mutators);
    }
}
