//! Late mutators: they work on a seed after all other stages, and continue after a restart.
//!
//! With `--mutator-only` the campaign runs only this stage, in an endless loop.

use super::batches::run_producer;
use super::foreign::Foreign;
use super::{Stage, StageEnd, Turn};
use crate::fuzzer::door::Host;
use crate::mutate::foreign::ForeignMutators;

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
