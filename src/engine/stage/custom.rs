//! Foreign mutators make inputs: each for as long as havoc, unless it says itself how many it wants to make. Those that
//! compete with havoc have turns in its place.

use super::batches::run_producer;
use super::foreign::Foreign;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::fuzzer::{Fuzzer, Tactic};
use crate::mutate::foreign::ForeignMutators;

pub(super) struct Custom;

impl<D: Door> Stage<D> for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        let Fuzzer { mutators, tactics, rng, foreign_only, is_custom_turn, .. } = door.fuzzer_mut();
        let has = |competes: bool| {
            let mut all = 0..mutators.len();
            all.any(|index| mutators.makes_inputs(index) && mutators.competes(index) == competes)
        };
        let is_open = |arm| arm == Tactic::Custom as usize || arm == Tactic::Havoc as usize;
        *is_custom_turn = !*foreign_only
            && has(true)
            && tactics.draw(rng, is_open) == Some(Tactic::Custom as usize);
        *is_custom_turn || has(false) || (*foreign_only && has(true))
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Custom)
    }

    /// Twice as long if there is no havoc.
    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        let Some(mut budget) = door.fuzzer().budget(id) else { return Ok(StageEnd::TurnOver) };
        if door.fuzzer().foreign_only {
            budget.extend();
        }
        run_producer(door, id, &mut Foreign::new(budget))
    }
}
