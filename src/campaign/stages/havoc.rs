//! Havoc: stacks of random changes, as many runs as the schedule gives the seed.

use super::producer::Producer;
use super::{Stage, StageEnd, Tactic};
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;

/// Runs of havoc for energy 100 (AFL++: 256 · score / 100 / 2.56), and at least.
pub(super) const HAVOC_BASE: u64 = 100;
pub(super) const HAVOC_MIN: u64 = 12;

pub(super) struct Havoc;

impl Stage for Havoc {
    fn name(&self) -> &'static str {
        "havoc"
    }

    fn wants(&self, campaign: &mut Campaign, _: SeedId) -> bool {
        !campaign.options.custom.only
    }

    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        match campaign.havoc_runs(id) {
            0 => Ok(StageEnd::TurnOver),
            runs => campaign.run_producer(id, &mut Producer::havoc(runs)),
        }
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Climb)
    }
}

impl Campaign {
    /// Runs of a havoc stage; 0 if the schedule leaves the seed out.
    pub(super) fn havoc_runs(&self, id: SeedId) -> u64 {
        let energy = u64::from(self.scheduler.energy(&self.corpus, id));
        if energy == 0 {
            return 0;
        }
        let slow = match self.corpus[id].exec_us {
            0..=10_000 => 1,
            10_001..=20_000 => 2,
            20_001..=50_000 => 5,
            _ => 10,
        };
        (HAVOC_BASE * energy / 100 / slow).max(HAVOC_MIN)
    }
}
