//! Havoc: stacks of random changes, for as long as the schedule gives the seed.

use super::batches::run_producer;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::Tactic;
use crate::fuzzer::door::Door;

pub(super) struct Havoc;

impl<D: Door> Stage<D> for Havoc {
    fn name(&self) -> &'static str {
        "havoc"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        !door.fuzzer().foreign_only
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        match door.fuzzer().budget(id) {
            None => Ok(StageEnd::TurnOver),
            Some(budget) => run_producer(door, id, &mut Producer::havoc(budget)),
        }
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Havoc)
    }
}
