//! Havoc: stacks of random changes, as many runs as the schedule gives the seed, and as fit into the time of a stage.

use super::batches::run_producer;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::engine::corpus::SeedId;
use crate::engine::fuzzer::door::Door;
use crate::engine::fuzzer::{Fuzzer, Tactic};

/// Runs of havoc for energy 100 (AFL++: 256 · score / 100 / 2.56), and at least.
pub(super) const HAVOC_BASE: u64 = 100;
pub(super) const HAVOC_MIN: u64 = 12;

pub(super) struct Havoc;

impl<D: Door> Stage<D> for Havoc {
    fn name(&self) -> &'static str {
        "havoc"
    }

    fn wants(&self, door: &mut D, _: SeedId) -> bool {
        !door.fuzzer().foreign_only
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        match havoc_runs(door.fuzzer(), id) {
            0 => Ok(StageEnd::TurnOver),
            runs => run_producer(door, id, &mut Producer::havoc(runs)),
        }
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Climb)
    }
}

/// Runs of a havoc stage; 0 if the schedule leaves the seed out.
pub(super) fn havoc_runs<X>(fuzzer: &Fuzzer<X>, id: SeedId) -> u64 {
    let energy = u64::from(fuzzer.scheduler.energy(&fuzzer.corpus, id));
    if energy == 0 {
        return 0;
    }
    let runs = (HAVOC_BASE * energy / 100).max(HAVOC_MIN);
    runs.min(fuzzer.scheduler.runs_in_time(&fuzzer.corpus, id))
}
