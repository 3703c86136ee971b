//! Deterministic steps: for favored seeds, once, in as many turns as the time of their runs demands.

use super::batches::run_producer;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::engine::corpus::SeedId;
use crate::engine::fuzzer::door::Door;
use crate::engine::fuzzer::{Fuzzer, Tactic};
use crate::engine::mutate::deterministic::Deterministic;

/// Under guidance the stage is taken in slices of this number of runs: random changes have their chance in
/// between. That of a slow seed is taken in slices in any case.
const SLICE: u64 = 512;
/// Stages that may be under way; the seed of one more begins again.
const MOST_SUSPENDED: usize = 1024;

pub(super) struct DeterministicSteps;

impl<D: Door> Stage<D> for DeterministicSteps {
    fn name(&self) -> &'static str {
        "deterministic"
    }

    /// Under guidance it has to compete with random small changes: bits of a comparison are found step by
    /// step, an order is not.
    fn wants(&self, door: &mut D, id: SeedId) -> bool {
        let Fuzzer { corpus, mutation, foreign_only, .. } = door.fuzzer();
        let seed = &corpus[id];
        if mutation.skip_deterministic || *foreign_only || !seed.favored || seed.det_done {
            return false;
        }
        !door.fuzzer().guided() || {
            let Fuzzer { tactics, rng, .. } = door.fuzzer_mut();
            tactics.draw(rng, |_| true) == Some(Tactic::Deterministic as usize)
        }
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        let fuzzer = door.fuzzer_mut();
        let (mutation, seed) = (&fuzzer.mutation, &fuzzer.corpus[id]);
        let begin = || {
            Deterministic::new(seed.data.len(), &fuzzer.dictionary, mutation.skip_arith)
                .limit(mutation.max_len)
                .from_byte(seed.changed_at as usize)
        };
        let steps = fuzzer.suspended.remove(&id).unwrap_or_else(begin);
        let slice = if fuzzer.guided() { SLICE } else { u64::MAX };
        let slice = slice.min(fuzzer.scheduler.runs_in_time(&fuzzer.corpus, id));
        let mut stage = Producer::deterministic(steps, slice);
        let end = run_producer(door, id, &mut stage)?;
        if let Some(steps) = stage.suspended() {
            suspend(door.fuzzer_mut(), id, steps);
        } else if end == StageEnd::Finished {
            door.fuzzer_mut().corpus[id].det_done = true;
            door.deterministic_done(id);
        }
        Ok(end)
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Deterministic)
    }
}

fn suspend<X>(fuzzer: &mut Fuzzer<X>, id: SeedId, steps: Deterministic) {
    let Fuzzer { suspended, scheduler, corpus, .. } = fuzzer;
    if suspended.len() >= MOST_SUSPENDED {
        suspended.retain(|id, _| scheduler.is_owner(*id) || corpus[*id].favored);
    }
    if suspended.len() < MOST_SUSPENDED {
        suspended.insert(id, steps);
    }
}
