//! Splicing: the seed is joined with another one, then havoc changes the result. For a search that finds
//! nothing new by other means.

use super::batches::run_producer;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;

/// It gets an eighth of what havoc gets.
const SHARE: u32 = 8;

pub(super) struct Splicing;

impl<D: Door> Stage<D> for Splicing {
    fn name(&self) -> &'static str {
        "splice"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        let fuzzer = door.fuzzer();
        !fuzzer.foreign_only && fuzzer.progress.cycles_without_finds > 0
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        let Some(budget) = door.fuzzer().budget(id) else { return Ok(StageEnd::TurnOver) };
        run_producer(door, id, &mut Producer::splice(budget.part(SHARE), budget))
    }
}
