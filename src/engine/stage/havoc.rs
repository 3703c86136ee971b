//! Havoc: stacks of random changes, limited by the budget of the seed.

use std::time::Duration;

use super::batches::run_producer_behind;
use super::beginning::MessageTimes;
use super::custom::Base;
use super::produce::{Materials, Needs, Producer, Tools};
use super::{Stage, StageEnd, Tactic, Turn};
use crate::corpus::{Origin, Step};
use crate::fuzzer::door::Host;
use crate::mutate::buffer::Buffer;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::havoc::{HavocContext, havoc};
use crate::mutate::{Candidate, Rng};
use crate::schedule::Budget;

#[derive(Default)]
pub(super) struct Havoc {
    times: MessageTimes,
}

impl<H: Host> Stage<H> for Havoc {
    fn name(&self) -> &'static str {
        "havoc"
    }

    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool {
        !turn.door.fuzzer().foreign_only && !turn.shared.is_custom_turn
    }

    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let budget = turn.door.fuzzer().budget(turn.id);
        let Some(budget) = budget else { return Ok(StageEnd::TurnOver) };
        let beginning = self.times.choose(turn, budget)?;
        run_producer_behind(turn, beginning, &mut Stacks::new(budget))
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Havoc)
    }
}

/// Producer of stacked changes.
pub struct Stacks {
    done: u64,
    budget: Budget,
}

impl Stacks {
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self { done: 0, budget }
    }
}

impl Producer for Stacks {
    fn name(&self) -> &'static str {
        "havoc"
    }

    fn next(&mut self, from: &Materials<'_>, tools: &mut Tools<'_>, out: &mut Candidate) -> Made {
        if self.budget.is_used(self.done, from.spent) {
            return Made::Over;
        }
        if self.done == 0 {
            tools.mutators.havoc_begins();
        }
        self.done += 1;
        let op = if from.words { "words" } else { "havoc" };
        stack(from, tools, Base { input: from.input, other: None }, op, out);
        Made::Input
    }

    fn progress(&self, spent: Duration) -> (u64, u64) {
        (self.done, self.budget.planned(self.done, spent))
    }

    fn needs(&self, _: &dyn ForeignMutators) -> Needs {
        Needs { donors: true, words: true, lengths: true, ..Needs::default() }
    }

    fn extend(&mut self) {
        self.budget.extend();
    }
}

/// Writes `base` with one stack of changes to `out`; foreign mutators may add theirs.
pub(super) fn stack(
    from: &Materials<'_>,
    Tools { mutators, rng, buffer }: &mut Tools<'_>,
    base: Base<'_>,
    op: &'static str,
    out: &mut Candidate,
) {
    let donor = from.donors.pick(rng).map(|(_, bytes)| bytes);
    // The lengths are those of the seed, not of a splice.
    let lengths = if base.other.is_none() { from.lengths } else { &[] };
    buffer.set(base.input, lengths);
    if from.messages {
        buffer.reframe();
    }
    let context = context(from, donor);
    let mut by = 0;
    let count = if mutators.joins_havoc() {
        let mut pause = mutators.havoc_pause();
        let foreign = |bytes: &mut Vec<u8>| {
            if pause > 0 {
                pause -= 1;
                return false;
            }
            by |= mutators.havoc(bytes, from.max_len);
            pause = mutators.havoc_pause();
            true
        };
        let count = havoc(rng, buffer, &context, foreign);
        mutators.havoc_paused(pause);
        count
    } else {
        havoc(rng, buffer, &context, |_| false)
    };
    buffer.hand_over(&mut out.bytes);
    let step = Step::Stacked { op, count };
    out.origin = Origin { parent: from.seed, other: base.other, step, by };
}

/// Applies one change, rarely a few, at the request of a foreign mutator. `bytes` may be a single message, so they
/// are not treated as a list of messages.
pub(super) fn change(
    from: &Materials<'_>,
    rng: &mut Rng,
    buffer: &mut Buffer,
    bytes: &mut Vec<u8>,
    max_len: usize,
) {
    let donor = from.donors.pick(rng).map(|(_, bytes)| bytes);
    buffer.set(bytes, &[]);
    let from = &Materials { words: false, messages: false, ..*from };
    let context = HavocContext { gentle: true, min_len: 1, max_len, ..context(from, donor) };
    havoc(rng, buffer, &context, |_| false);
    buffer.hand_over(bytes);
}

fn context<'a>(from: &Materials<'a>, donor: Option<&'a [u8]>) -> HavocContext<'a> {
    HavocContext {
        dictionary: from.dictionary,
        donor,
        min_len: from.min_len,
        max_len: from.max_len,
        long_blocks: from.long_blocks,
        stack_power: from.stack_power,
        text: from.text,
        words: from.words,
        messages: from.messages,
        exploit: from.exploit,
        gentle: from.climbing,
    }
}
