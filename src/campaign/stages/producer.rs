//! Stages that make candidates one after the other: batches of them go through the door until there are no
//! more.

pub(in crate::campaign) use crate::engine::stage::produce::Producer;

use super::StageEnd;
use crate::campaign::{Campaign, CampaignError};
use crate::config::options::Strategy;
use crate::engine::corpus::SeedId;
use crate::engine::executor::Executor;
use crate::engine::mutate::foreign::{ForeignMutators, Made};
use crate::engine::mutate::{Candidate, is_text};
use crate::engine::stage::produce::{Lent, Materials};

/// Timeouts in a row after which a seed's turn ends; AFL's number.
const MAX_TIMEOUTS: u32 = 250;
/// Runs without a find after which larger blocks and deeper stacks are allowed. Runs, not cycles:
/// a cycle of a small corpus is over in a moment (fuzzbench 848).
const ESCALATION: [u64; 2] = [1 << 17, 1 << 19];

impl Campaign {
    pub(in crate::campaign) fn run_producer(
        &mut self,
        id: SeedId,
        stage: &mut Producer,
    ) -> Result<StageEnd, CampaignError> {
        let result = self.run_candidates(id, stage);
        stage.end(&mut self.executor.mutators);
        result
    }

    fn run_candidates(
        &mut self,
        id: SeedId,
        stage: &mut Producer,
    ) -> Result<StageEnd, CampaignError> {
        let input = self.corpus[id].data.clone();
        let owner_at_start = self.guided() && self.scheduler.is_owner(id);
        let mut reference = None;
        let text = self.options.mutation.text.unwrap_or_else(|| is_text(&input));
        let mut timeouts = 0;
        self.donors.next_seed();
        loop {
            let name = stage.name();
            let made = self.fill((id, &input, text), stage);
            if made == 0 {
                return Ok(StageEnd::Finished);
            }
            let batch = std::mem::take(&mut self.batch);
            if stage.wants_report() && reference.is_none() {
                reference = Some(self.behaviour_of(&input)?);
            }
            let wanted = reference.filter(|_| stage.wants_report());
            let outcome = self.run_batch(&batch[..made], wanted);
            self.note_stage(name, stage, &batch[..made]);
            self.batch = batch;
            let outcome = outcome?;
            if stage.wants_report() {
                stage.report(outcome.changed);
            }
            timeouts = if outcome.hang { timeouts + 1 } else { 0 };
            if outcome.found {
                stage.extend();
            }
            let over = self.between_batches()?;
            let superseded = outcome.found && owner_at_start && !self.scheduler.is_owner(id);
            if superseded || timeouts > MAX_TIMEOUTS || over {
                return Ok(StageEnd::TurnOver);
            }
        }
    }

    /// Makes as many candidates as the executor takes at once; their buffers are reused.
    fn fill(&mut self, (id, input, text): (SeedId, &[u8], bool), stage: &mut Producer) -> usize {
        let single = stage.wants_report() || stage.is_described(&self.executor.mutators);
        let room = if single { 1 } else { self.executor.batch_size().min(self.execs_left()) };
        let climbing = self.guided() && self.scheduler.is_owner(id);
        let exploit = match self.options.mutation.strategy {
            Strategy::Explore => false,
            Strategy::Exploit => true,
            Strategy::Alternate(time) => self.statistics.without_finds() >= time,
        };
        let batch = &mut self.batch;
        batch.resize_with(room.max(batch.len()), Candidate::default);
        let donors = match stage.has_donors() {
            true => self.donors.lend(&mut self.rng, &self.corpus, id, room),
            false => Lent::default(),
        };
        let fruitless = self.executor.execs() - self.statistics.execs_at_find;
        let expand = self.options.mutation.expand_havoc;
        let due = |runs: &&u64| expand || fruitless >= **runs;
        let escalation = ESCALATION.iter().filter(due).count() as u32;
        let from = Materials {
            seed: id,
            input,
            text,
            dictionary: &self.dictionary,
            donors,
            min_len: self.options.mutation.min_len,
            max_len: self.options.mutation.max_len,
            long_blocks: 1 + escalation,
            stack_power: 4 + escalation,
            climbing,
            exploit,
        };
        let mut made = 0;
        while made < room {
            let mutators: &mut dyn ForeignMutators = &mut self.executor.mutators;
            let with = (mutators, &mut self.rng);
            match stage.next(&from, with, &mut batch[made]) {
                Made::Input => made += 1,
                // A foreign mutator may be slow.
                Made::Nothing if self.stop.asked() => break,
                Made::Nothing => {}
                Made::Over => break,
            }
            if stage.wants_report() {
                break;
            }
        }
        made
    }

    fn note_stage(&mut self, name: &'static str, stage: &Producer, batch: &[Candidate]) {
        let (done, planned) = stage.progress();
        self.statistics.stage = (name, done, planned);
        for same in batch.chunk_by(|a, b| std::ptr::eq(a.origin.step.op(), b.origin.step.op())) {
            self.statistics.yield_of(same[0].origin.step.op()).execs += same.len() as u64;
        }
    }
}
