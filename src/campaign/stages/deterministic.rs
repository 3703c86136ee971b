//! Deterministic steps: for favored seeds, once.

use super::producer::Producer;
use super::{Stage, StageEnd, Tactic};
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;
use crate::engine::mutate::deterministic::Deterministic;

/// Under guidance the stage is taken in slices of this number of runs: random changes have their chance in
/// between.
const SLICE: u64 = 512;
/// Stages that may be under way; the seed of one more begins again.
const MOST_WALKS: usize = 1024;

pub(super) struct DeterministicSteps;

impl Stage for DeterministicSteps {
    fn name(&self) -> &'static str {
        "deterministic"
    }

    /// Under guidance it has to compete with random small changes: bits of a comparison are found step by
    /// step, an order is not.
    fn wants(&self, campaign: &mut Campaign, id: SeedId) -> bool {
        let options = &campaign.options;
        let skip = options.mutation.skip_deterministic || options.custom.only;
        let seed = &campaign.corpus[id];
        if skip || !seed.favored || seed.det_done {
            return false;
        }
        let drawn = |campaign: &mut Campaign| {
            campaign.tactics.draw(&mut campaign.rng, |_| true) == Some(Tactic::Walk as usize)
        };
        !campaign.guided() || drawn(campaign)
    }

    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        let mutation = &campaign.options.mutation;
        let seed = &campaign.corpus[id];
        let (skip_arith, max) = (mutation.skip_arith, mutation.max_len);
        let begin = || {
            Deterministic::new(seed.data.len(), &campaign.dictionary, skip_arith)
                .limit(max)
                .from_byte(seed.changed_at as usize)
        };
        let steps = campaign.walks.remove(&id).unwrap_or_else(begin);
        let slice = if campaign.guided() { SLICE } else { u64::MAX };
        let mut stage = Producer::deterministic(steps, slice);
        let end = campaign.run_producer(id, &mut stage)?;
        if let Some(steps) = stage.suspended() {
            campaign.suspend(id, steps);
        } else if end == StageEnd::Finished {
            campaign.corpus[id].det_done = true;
            let name = campaign.corpus[id].name.clone();
            if let Err(error) = campaign.output.mark_det_done(&name) {
                campaign.warn(error.to_string());
            }
        }
        Ok(end)
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Walk)
    }
}

impl Campaign {
    fn suspend(&mut self, id: SeedId, steps: Deterministic) {
        if self.walks.len() >= MOST_WALKS {
            let scheduler = &self.scheduler;
            self.walks.retain(|id, _| scheduler.is_owner(*id));
        }
        if self.walks.len() < MOST_WALKS {
            self.walks.insert(id, steps);
        }
    }
}
