//! A turn: what is done with one picked seed. A new stage is one file here and one line in [`TURN`].

mod custom;
mod deterministic;
mod havoc;
mod modules;
mod producer;
mod splice;
mod trim;

use super::{Campaign, CampaignError};
use crate::engine::corpus::SeedId;
use crate::engine::executor::Executor;

/// The stages of a turn, in their order. Each says itself when it has something to do.
pub(super) const TURN: &[&dyn Stage] = &[
    &trim::Trimming,
    &deterministic::DeterministicSteps,
    &custom::Custom,
    &havoc::Havoc,
    &splice::Splicing,
    &modules::LateMutators,
];

/// A part of a turn.
pub(super) trait Stage: Sync {
    /// For the screen and the table of yields, unless its steps have names of their own.
    fn name(&self) -> &'static str;

    /// Whether it has something to do with this seed in this turn.
    fn wants(&self, campaign: &mut Campaign, id: SeedId) -> bool;

    /// Does it. All runs go through `campaign/door.rs`, and between two batches the stage asks
    /// [`Campaign::between_batches`] whether it goes on.
    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError>;

    /// The arm of the bandit that it is, if it competes with another stage.
    fn tactic(&self) -> Option<Tactic> {
        None
    }
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StageEnd {
    Finished,
    /// The turn is over: another seed is now worth more, or the user said so.
    TurnOver,
}

/// How a waypoint is fuzzed: the arms of [`Campaign::tactics`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Tactic {
    /// Deterministic steps, one after the other.
    Walk,
    /// Small random changes.
    Climb,
}

impl Tactic {
    pub(super) const COUNT: usize = 2;
}

impl Campaign {
    /// One picked seed's turn.
    pub(super) fn turn(&mut self, id: SeedId) -> Result<(), CampaignError> {
        let execs = self.executor.execs();
        self.statistics.current = Some(id);
        if self.judge.watches_domains() {
            self.log.fuzzing(id.0, self.corpus[id].favored);
        }
        if self.mutators_want(id) {
            self.run_stages(id)?;
        }
        let runs = self.executor.execs() - execs;
        self.scheduler.picked(&mut self.corpus, id, runs);
        self.tick_if_due();
        Ok(())
    }

    fn run_stages(&mut self, id: SeedId) -> Result<(), CampaignError> {
        for stage in TURN {
            if !stage.wants(self, id) {
                continue;
            }
            let (execs, found) = (self.executor.execs(), self.statistics.found);
            let end = stage.run(self, id)?;
            if let Some(tactic) = stage.tactic() {
                let (runs, finds) = (self.executor.execs() - execs, self.statistics.found - found);
                self.tactics.note(tactic as usize, runs, finds);
            }
            if end == StageEnd::TurnOver {
                break;
            }
        }
        Ok(())
    }
}
