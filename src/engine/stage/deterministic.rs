//! Deterministic steps: for favored seeds, once, in slices. Whether a turn has one is decided by what the
//! steps and havoc have found lately: a whole stage at once takes nine tenths of all runs of a campaign, and
//! finds little on most targets.

use super::batches::run_producer;
use super::produce::Producer;
use super::{Stage, StageEnd};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::fuzzer::{Fuzzer, Tactic};
use crate::mutate::deterministic::Deterministic;
use crate::options::DeterministicStage;

/// Stages that may be under way; the seed of one more begins again.
const MOST_SUSPENDED: usize = 1024;

pub(super) struct DeterministicSteps;

impl<D: Door> Stage<D> for DeterministicSteps {
    fn name(&self) -> &'static str {
        "deterministic"
    }

    fn wants(&self, door: &mut D, id: SeedId) -> bool {
        let Fuzzer { corpus, mutation, foreign_only, tactics, rng, .. } = door.fuzzer_mut();
        let seed = &corpus[id];
        if *foreign_only || !seed.favored || seed.det_done {
            return false;
        }
        match mutation.deterministic {
            DeterministicStage::Skipped => false,
            DeterministicStage::Always => true,
            DeterministicStage::Competes => {
                tactics.draw(rng, |_| true) == Some(Tactic::Deterministic as usize)
            }
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
        let Some(slice) = fuzzer.budget(id) else { return Ok(StageEnd::TurnOver) };
        let slice = match fuzzer.mutation.deterministic {
            DeterministicStage::Always => slice.longest(),
            _ => slice,
        };
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

fn suspend<M>(fuzzer: &mut Fuzzer<M>, id: SeedId, steps: Deterministic) {
    let Fuzzer { suspended, scheduler, corpus, .. } = fuzzer;
    if suspended.len() >= MOST_SUSPENDED {
        suspended.retain(|id, _| scheduler.is_owner(*id) || corpus[*id].favored);
    }
    if suspended.len() < MOST_SUSPENDED {
        suspended.insert(id, steps);
    }
}
