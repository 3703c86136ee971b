//! The custom stage: foreign mutators make inputs. Each has havoc's budget, unless it gives its own number of inputs.
//!
//! The mutator of a libFuzzer harness competes with havoc: a bandit gives each turn to one of them by their finds.
//! Mutators of AFL's interface run before havoc in each turn, as in AFL++.

use super::batches::run_producer;
use super::foreign::Foreign;
use super::{Stage, StageEnd, Tactic, Turn};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::Host;
use crate::mutate::foreign::ForeignMutators;

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
