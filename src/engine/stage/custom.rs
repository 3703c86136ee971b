//! Foreign mutators make inputs: each for as long as havoc, unless it says itself how many it wants to make.

use super::batches::run_producer;
use super::foreign::Foreign;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::mutate::foreign::ForeignMutators;

pub(super) struct Custom;

impl<D: Door> Stage<D> for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        let mutators = &door.fuzzer().mutators;
        (0..mutators.len()).any(|index| mutators.makes_inputs(index))
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
