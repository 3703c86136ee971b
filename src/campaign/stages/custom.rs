//! Foreign mutators make inputs: as many runs as havoc, each.

use super::producer::Producer;
use super::{Stage, StageEnd};
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;
use crate::mutators::Hook;

pub(super) struct Custom;

impl Stage for Custom {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn wants(&self, campaign: &mut Campaign, _: SeedId) -> bool {
        campaign.executor.mutators.has(Hook::Fuzz)
    }

    /// Twice as many runs if there is no havoc.
    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        match campaign.havoc_runs(id) << u32::from(campaign.options.custom.only) {
            0 => Ok(StageEnd::TurnOver),
            runs => campaign.run_producer(id, &mut Producer::custom(runs)),
        }
    }
}
