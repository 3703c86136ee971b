//! Mutators whose work on a seed comes after all other stages, and goes on after a restart.

use super::producer::Producer;
use super::{Stage, StageEnd};
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;

pub(super) struct LateMutators;

impl Stage for LateMutators {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, campaign: &mut Campaign, _: SeedId) -> bool {
        campaign.executor.mutators.has_late()
    }

    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        match campaign.havoc_runs(id) {
            0 => Ok(StageEnd::TurnOver),
            runs => campaign.run_producer(id, &mut Producer::modules(runs)),
        }
    }
}
