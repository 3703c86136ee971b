//! Trimming: a seed's first turn begins with the removal of what changes nothing in its behaviour.

use std::time::Instant;

use super::{Stage, StageEnd};
use crate::campaign::door::Behaviour;
use crate::campaign::{Campaign, CampaignError};
use crate::engine::corpus::{Origin, SeedId, Step};
use crate::engine::executor::Executor;
use crate::engine::minimize::trim::Trim;
use crate::engine::mutate::Candidate;
use crate::mutators::{Hook, Made};

/// Steps of a foreign mutator's trimming: one that never comes to its end would starve all seeds.
const MOST_FOREIGN_STEPS: u32 = 1 << 16;

pub(super) struct Trimming;

/// A seed under work.
struct Work {
    /// As far as it is trimmed.
    input: Vec<u8>,
    candidate: Candidate,
    /// What must stay the same.
    wanted: Behaviour,
}

impl Stage for Trimming {
    fn name(&self) -> &'static str {
        "trim"
    }

    /// A waypoint is mostly a step to the next one: it is not worth the runs before it has stayed.
    fn wants(&self, campaign: &mut Campaign, id: SeedId) -> bool {
        let seed = &campaign.corpus[id];
        let passing = seed.waypoint && !seed.new_edge && seed.fuzzed == 0 && campaign.guided();
        !seed.trimmed && !passing && !campaign.options.mutation.skip_trim
    }

    fn run(&self, campaign: &mut Campaign, id: SeedId) -> Result<StageEnd, CampaignError> {
        let (start, execs) = (Instant::now(), campaign.executor.execs());
        let seed = &campaign.corpus[id];
        let before = seed.data.len();
        let (input, path_hash) = (seed.data.to_vec(), seed.path_hash);
        campaign.statistics.stage = (self.name(), 0, 0);
        // Without domains calibration has seen it.
        let wanted = match campaign.judge.watches_domains() {
            true => campaign.behaviour_of(&input)?,
            false => Behaviour(path_hash, 0),
        };
        let step = Step::Stacked { op: self.name(), count: 1 };
        let origin = Origin { parent: id, other: None, step, by: 0 };
        let candidate = Candidate { bytes: Vec::new(), origin };
        let mut work = Work { input, candidate, wanted };
        let end = campaign.trim(&mut work);
        // Also what is done so far counts.
        let Work { input, .. } = work;
        if *input != *campaign.corpus[id].data {
            let name = campaign.corpus[id].name.clone();
            campaign.write(|output| output.replace_seed(&name, &input))?;
        }
        let statistics = &mut campaign.statistics;
        statistics.trim_bytes.0 += before as u64;
        statistics.trim_bytes.1 += input.len().min(before) as u64;
        statistics.trim += start.elapsed();
        let runs = campaign.executor.execs() - execs;
        statistics.trim_execs += runs;
        statistics.yield_of(self.name()).execs += runs;
        let seed = &mut campaign.corpus[id];
        seed.data = input.into();
        seed.trimmed = matches!(end, Ok(StageEnd::Finished));
        campaign.walks.remove(&id);
        end
    }
}

impl Campaign {
    fn trim(&mut self, work: &mut Work) -> Result<StageEnd, CampaignError> {
        let trimmers = self.executor.mutators.with_hook(Hook::Trim);
        if trimmers.is_empty() {
            return self.trim_blocks(work);
        }
        for mutator in trimmers {
            if self.trim_by(mutator, work)? == StageEnd::TurnOver {
                return Ok(StageEnd::TurnOver);
            }
        }
        Ok(StageEnd::Finished)
    }

    /// Leaves out block by block.
    fn trim_blocks(&mut self, work: &mut Work) -> Result<StageEnd, CampaignError> {
        let mut trim = Trim::new(work.input.len()).keep(self.options.mutation.min_len);
        while trim.next(&work.input, &mut work.candidate.bytes).is_some() {
            let wanted = work.wanted;
            if self.try_out(&work.candidate, |campaign, seen| campaign.is_same(seen, wanted))? {
                std::mem::swap(&mut work.input, &mut work.candidate.bytes);
                trim.accepted();
            } else {
                trim.rejected();
            }
            self.statistics.stage = ("trim", trim.done(), trim.planned());
            if self.between_batches()? {
                return Ok(StageEnd::TurnOver);
            }
        }
        Ok(StageEnd::Finished)
    }

    /// Lets a foreign mutator propose what the input is replaced by.
    fn trim_by(&mut self, mutator: usize, work: &mut Work) -> Result<StageEnd, CampaignError> {
        let begun = self.executor.mutators.init_trim(mutator, &work.input);
        let Some(mut planned) = begun else { return Ok(StageEnd::Finished) };
        let (mut step, min_len) = (0, self.options.mutation.min_len);
        for _ in 0..MOST_FOREIGN_STEPS {
            if step >= planned {
                return Ok(StageEnd::Finished);
            }
            let made = self.executor.mutators.trim(mutator, &mut work.candidate.bytes);
            let lengths = (work.input.len(), work.candidate.bytes.len());
            let runs = made == Made::Input && lengths.1 >= min_len;
            let wanted = work.wanted;
            // The mutator's own step is reported to it before what the step has found.
            let report = |campaign: &mut Self, seen| {
                let same = runs && campaign.is_same(seen, wanted);
                let mutators = &mut campaign.executor.mutators;
                let next = mutators.post_trim(mutator, same);
                mutators.tell_trim(mutator, (step, planned), lengths, same);
                (same, next)
            };
            let (same, next) = match runs {
                true => self.try_out(&work.candidate, report)?,
                false => report(self, None),
            };
            if same {
                std::mem::swap(&mut work.input, &mut work.candidate.bytes);
            }
            step = next.filter(|_| made != Made::Over).unwrap_or(planned);
            planned = planned.max(1);
            self.statistics.stage = ("trim", step.into(), planned.into());
            if self.between_batches()? {
                return Ok(StageEnd::TurnOver);
            }
        }
        let text = format!("trimming did not end after {MOST_FOREIGN_STEPS} steps: stopped");
        self.executor.mutators.complain(mutator, text);
        Ok(StageEnd::Finished)
    }

    /// Whether a proposal behaves as the seed did.
    fn is_same(&self, seen: Option<Behaviour>, wanted: Behaviour) -> bool {
        let watches = self.judge.watches_domains();
        seen.is_some_and(|Behaviour(path, values)| {
            path == wanted.0 && (!watches || values == wanted.1)
        })
    }
}
