//! Foreign mutators make inputs: as many runs as havoc, each.

use super::batches::run_producer;
use super::havoc::havoc_runs;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::engine::corpus::SeedId;
use crate::engine::executor::Executor;
use crate::engine::fuzzer::door::Door;

pub(super) struct Custom;

impl<D: Door> Stage<D> for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        let mutators = door.fuzzer_mut().executor.mutators();
        (0..mutators.len()).any(|index| mutators.makes_inputs(index))
    }

    /// Twice as many runs if there is no havoc.
    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        match havoc_runs(door.fuzzer(), id) << u32::from(door.fuzzer().foreign_only) {
            0 => Ok(StageEnd::TurnOver),
            runs => run_producer(door, id, &mut Producer::custom(runs)),
        }
    }
}
