//! Splicing: the seed is joined with another one, then havoc changes the result. For a campaign that finds
//! nothing new by other means.

use super::havoc::{HAVOC_BASE, HAVOC_MIN};
use super::producer::Producer;
use super::{Stage, StageEnd};
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;

/// It gets an eighth of havoc's runs.
const SHARE: u64 = 8;

pub(super) struct Splicing;

impl Stage for Splicing {
    fn name(&self) -> &'static str {
        "splice"
    }

    fn wants(&self, campaign: &mut Campaign, _: SeedId) -> bool {
        !campaign.options.custom.only && campaign.statistics.cycles_without_finds > 0
    }

    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        let energy = u64::from(campaign.scheduler.energy(&campaign.corpus, id));
        let runs = (HAVOC_BASE * energy / 100 / SHARE).max(HAVOC_MIN);
        let foreign = campaign.havoc_runs(id);
        campaign.run_producer(id, &mut Producer::splice(runs, foreign))
    }
}
