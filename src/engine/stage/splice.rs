//! Splicing: the seed is joined with another one, then havoc changes the result. For a search that finds
//! nothing new by other means.

use super::batches::run_producer;
use super::havoc::{HAVOC_BASE, HAVOC_MIN, havoc_runs};
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::engine::corpus::SeedId;
use crate::engine::fuzzer::door::Door;

/// It gets an eighth of havoc's runs.
const SHARE: u64 = 8;

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
        let fuzzer = door.fuzzer();
        let energy = u64::from(fuzzer.scheduler.energy(&fuzzer.corpus, id));
        let runs = (HAVOC_BASE * energy / 100 / SHARE).max(HAVOC_MIN);
        let runs = runs.min(fuzzer.scheduler.runs_in_time(&fuzzer.corpus, id));
        let mut stage = Producer::splice(runs, havoc_runs(fuzzer, id));
        run_producer(door, id, &mut stage)
    }
}
