//! Deterministic steps: for favored seeds, once, in slices. Recent finds of the steps and of havoc decide whether a
//! turn has a slice: the complete stage would take nine tenths of all runs of a campaign and finds little on most
//! targets.

use std::time::Duration;

use super::batches::run_producer;
use super::produce::{Materials, Producer, Tools};
use super::{Stage, StageEnd, Tactic, Turn};
use crate::corpus::{BySeed, Origin, SeedId, Step};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::{Host, Notice};
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::deterministic::Deterministic;
use crate::mutate::foreign::Made;
use crate::options::DeterministicStage;
use crate::schedule::Budget;

/// Maximum number of suspended stages; any other seed starts over.
const MOST_SUSPENDED: usize = 1024;

#[derive(Default)]
pub(super) struct DeterministicSteps {
    suspended: BySeed<Suspended>,
}

/// Steps to be continued in a later turn.
struct Suspended {
    /// Whether the seed was trimmed, and its length. If either has changed, the steps start over.
    seed: (bool, usize),
    steps: Deterministic,
}

impl<H: Host> Stage<H> for DeterministicSteps {
    fn name(&self) -> &'static str {
        "deterministic"
    }

    fn wants(&mut self, Turn { door, id, shared }: &mut Turn<'_, H>) -> bool {
        let Fuzzer { corpus, mutation, foreign_only, rng, .. } = door.fuzzer_mut();
        let seed = &corpus[*id];
        if *foreign_only || !seed.favored || seed.det_done {
            return false;
        }
        match mutation.deterministic {
            DeterministicStage::Skipped => false,
            DeterministicStage::Always => true,
            DeterministicStage::Competes => {
                let is_open = |arm| arm != Tactic::Custom as usize;
                shared.tactics.draw(rng, is_open) == Some(Tactic::Deterministic as usize)
            }
        }
    }

    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let (id, fuzzer) = (turn.id, turn.door.fuzzer());
        let (mutation, seed) = (&fuzzer.mutation, &fuzzer.corpus[id]);
        let begin = || {
            Deterministic::new(seed.data.len(), &fuzzer.dictionary, mutation.skip_arith)
                .limit(mutation.max_len)
                .starting_at(seed.changed_at as usize)
        };
        let suspended = self.suspended.remove(&id);
        let suspended = suspended.filter(|of| of.seed == (seed.trimmed, seed.data.len()));
        let steps = suspended.map_or_else(begin, |of| of.steps);
        let Some(slice) = fuzzer.budget(id) else { return Ok(StageEnd::TurnOver) };
        let slice = match fuzzer.mutation.deterministic {
            DeterministicStage::Always => slice.longest(),
            _ => slice,
        };
        let mut producer = Steps { steps, done: 0, slice, is_paused: false };
        let end = run_producer(turn, &mut producer)?;
        if producer.is_paused {
            self.suspend(turn.door.fuzzer(), id, producer.steps);
        } else if end == StageEnd::Finished {
            turn.door.fuzzer_mut().corpus[id].det_done = true;
            turn.door.notice(Notice::DeterministicDone(id));
        }
        Ok(end)
    }

    fn tactic(&self) -> Option<Tactic> {
        Some(Tactic::Deterministic)
    }
}

/// One slice of the steps of a seed.
struct Steps {
    steps: Deterministic,
    /// Number of steps made in this slice.
    done: u64,
    slice: Budget,
    /// The slice is used up, and steps are left.
    is_paused: bool,
}

impl Producer for Steps {
    fn name(&self) -> &'static str {
        self.steps.stage_name()
    }

    fn next(&mut self, from: &Materials<'_>, _: &mut Tools<'_>, out: &mut Candidate) -> Made {
        self.is_paused = self.slice.is_used(self.done, from.spent);
        if self.is_paused {
            return Made::Over;
        }
        self.done += 1;
        let step = loop {
            match self.steps.next(from.input, from.dictionary, &mut out.bytes) {
                None => return Made::Over,
                Some(Step::At { pos, .. })
                    if from.messages && !is_within_message(from.input, pos as usize, out) => {}
                Some(step) => break step,
            }
        };
        out.origin = Origin { parent: from.seed, other: None, step, by: 0 };
        Made::Input
    }

    fn progress(&self, _: Duration) -> (u64, u64) {
        (self.steps.done(), self.steps.planned())
    }

    fn wants_report(&self) -> bool {
        self.steps.wants_report()
    }

    fn report(&mut self, changed: bool) {
        self.steps.report(changed);
    }
}

/// Whether a step keeps the framing of a list of messages intact. Updates the frame of a message that grows.
fn is_within_message(list: &[u8], pos: usize, out: &mut Candidate) -> bool {
    let Some(more) = out.bytes.len().checked_sub(list.len()) else { return false };
    if more == 0 {
        return messages::has_words(list, &out.bytes);
    }
    let pos = pos.min(list.len());
    let inserted = out.bytes[pos..pos + more].to_vec();
    messages::edit(list, pos..pos, &inserted, &mut out.bytes)
}

impl DeterministicSteps {
    fn suspend<M>(&mut self, fuzzer: &Fuzzer<M>, id: SeedId, steps: Deterministic) {
        let Fuzzer { scheduler, corpus, .. } = fuzzer;
        if self.suspended.len() >= MOST_SUSPENDED {
            self.suspended.retain(|id, _| scheduler.is_owner(*id) || corpus[*id].favored);
        }
        if self.suspended.len() < MOST_SUSPENDED {
            let seed = (corpus[id].trimmed, corpus[id].data.len());
            self.suspended.insert(id, Suspended { seed, steps });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Rng;
    use crate::mutate::buffer::Buffer;
    use crate::mutate::dictionary::Dictionary;
    use crate::mutate::foreign::NoMutators;
    use crate::stage::donors::Donors;
    use rand_core::SeedableRng;

    fn materials(dictionary: &Dictionary) -> Materials<'_> {
        Materials {
            seed: SeedId(0),
            input: b"seed",
            text: true,
            messages: false,
            words: false,
            lengths: &[],
            dictionary,
            donors: Donors::default(),
            min_len: 1,
            max_len: 1024,
            long_blocks: 1,
            stack_power: 4,
            climbing: false,
            exploit: false,
            spent: Duration::ZERO,
        }
    }

    #[test]
    fn steps_of_a_list_keep_its_words() {
        let list = b"\x02\0\0\0ab\x01\0\0\x01c";
        let mut dictionary = Dictionary::default();
        dictionary.add_user([crate::mutate::dictionary::Token::new(b"token").unwrap()]);
        let mut rng = Rng::seed_from_u64(1);
        let from = Materials { input: list, messages: true, ..materials(&dictionary) };
        let steps = Deterministic::new(list.len(), &dictionary, false);
        let slice = Budget::of_runs(u64::MAX);
        let mut producer = Steps { steps, done: 0, slice, is_paused: false };
        let (mut out, mut longer) = (Candidate::default(), Vec::new());
        let buffer = &mut Buffer::default();
        let mut tools = Tools { mutators: &mut NoMutators, rng: &mut rng, buffer };
        while producer.next(&from, &mut tools, &mut out) == Made::Input {
            let made = &out.bytes;
            let all: Vec<_> = messages::messages(made).collect();
            assert_eq!((all.len(), messages::list(all.iter().copied())), (2, made.clone()));
            assert_eq!([all[0].connection, all[1].connection], [0, 1]);
            longer.extend((made.len() == list.len() + 5).then(|| made.clone()));
        }
        for wanted in [&b"\x07\0\0\0abtoken\x01\0\0\x01c"[..], b"\x02\0\0\0ab\x06\0\0\x01tokenc"] {
            assert!(longer.contains(&wanted.to_vec()), "{longer:?}");
        }
    }

    #[test]
    fn a_walk_in_slices_makes_every_candidate_once() {
        let dictionary = Dictionary::default();
        let from = materials(&dictionary);
        let mut rng = Rng::seed_from_u64(1);
        let mut made = |slice: u64| {
            let (mut all, mut out) = (Vec::new(), Candidate::default());
            let mut steps = Some(Deterministic::new(4, &dictionary, false));
            while let Some(left) = steps.take() {
                let slice = Budget::of_runs(slice);
                let mut producer = Steps { steps: left, done: 0, slice, is_paused: false };
                let before = all.len();
                let buffer = &mut Buffer::default();
                let mut tools = Tools { mutators: &mut NoMutators, rng: &mut rng, buffer };
                while producer.next(&from, &mut tools, &mut out) == Made::Input {
                    all.push(out.bytes.clone());
                }
                assert!(!slice.is_used((all.len() - before) as u64 - 1, Duration::ZERO));
                steps = producer.is_paused.then_some(producer.steps);
            }
            all
        };
        let whole = made(u64::MAX);
        assert!(whole.len() > 100);
        assert_eq!(made(100), whole);
    }
}
