//! Mutators whose work on a seed comes after all other stages, and goes on after a restart.

use super::batches::run_producer;
use super::foreign::Foreign;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::mutate::foreign::ForeignMutators;

pub(super) struct LateMutators;

impl<D: Door> Stage<D> for LateMutators {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        let mutators = &door.fuzzer().mutators;
        (0..mutators.len()).any(|index| mutators.is_late(index))
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        match door.fuzzer().budget(id) {
            None => Ok(StageEnd::TurnOver),
            Some(budget) => run_producer(door, id, &mut Foreign::late(budget)),
        }
    }
}
