//! Batches of candidates of one [`Producer`] go through the door until there are no more.

use std::time::Duration;

use super::donors::{DonorPool, Donors};
use super::produce::{Materials, Needs, Producer, Tools};
use super::repair::{self, Tactic, Waiting};
use super::{StageEnd, Turn};
use crate::corpus::Length;
use crate::fuzzer::door::{Host, Run};
use crate::fuzzer::{Fuzzer, Progress};
use crate::messages::{self, Beginning, HEAD};
use crate::mutate::buffer::Buffer;
use crate::mutate::foreign::Made;
use crate::mutate::{self, Candidate, Rng, is_text};
use crate::options::MutationOptions;
use crate::schedule::bandit::Bandit;

/// Timeouts in a row after which a seed's turn ends; AFL's number.
const MAX_TIMEOUTS: u32 = 250;
/// Runs without a find after which larger blocks and deeper stacks are allowed. Runs, not cycles:
/// a cycle of a small corpus is over in a moment (fuzzbench 848).
const ESCALATION: [u64; 2] = [1 << 17, 1 << 19];
/// Attempts in a row that make no input before limits and the user are asked: a foreign mutator may be slow.
const MOST_FRUITLESS: u32 = 16;

/// What havoc changes in text: the arms of a [`Bandit`]. Whole words gained 6 and 9 % of the edges of two
/// parsers in 20 s, and nothing with four others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TextUnit {
    Byte,
    Word,
}

/// What havoc does with the lengths and offsets of an input that becomes longer or shorter: the arms of a [`Bandit`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Resizing {
    Leaves,
    Adjusts,
}

/// What batches of all stages are made with.
pub(super) struct Batches {
    text_units: Bandit,
    resizing: Bandit,
    /// Whether mutants of seeds with fields are repaired, see `repair.rs`.
    repairing: Bandit,
    donors: DonorPool,
    buffer: Buffer,
    /// The candidates under way; their buffers are used again and again.
    batch: Vec<Candidate>,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            text_units: Bandit::new(2),
            resizing: Bandit::new(2),
            repairing: Bandit::new(2),
            donors: DonorPool::default(),
            buffer: Buffer::default(),
            batch: Vec::new(),
        }
    }
}

impl Batches {
    /// Whether the next batch changes words of a text.
    fn draw_text_unit(&self, rng: &mut Rng) -> TextUnit {
        match self.text_units.draw(rng, |_| true) {
            Some(arm) if arm == TextUnit::Word as usize => TextUnit::Word,
            _ => TextUnit::Byte,
        }
    }

    /// Whether havoc keeps the lengths of a seed right in the next batch.
    fn draw_resizing(&self, rng: &mut Rng) -> Resizing {
        match self.resizing.draw(rng, |_| true) {
            Some(arm) if arm == Resizing::Adjusts as usize => Resizing::Adjusts,
            _ => Resizing::Leaves,
        }
    }

    /// Notes what a batch that was made in these ways has cost and found.
    fn note_way(
        &mut self,
        unit: Option<TextUnit>,
        resizing: Option<Resizing>,
        cost: f64,
        finds: u64,
    ) {
        unit.into_iter().for_each(|unit| self.text_units.note(unit as usize, cost, finds));
        resizing.into_iter().for_each(|way| self.resizing.note(way as usize, cost, finds));
    }

    /// Notes what a batch without repairs has cost and found, and draws whether it is to be repaired as well.
    fn draws_repair(&mut self, rng: &mut Rng, cost: f64, finds: u64) -> bool {
        self.repairing.note(Tactic::Leave as usize, cost, finds);
        // Drawn twice, because a repair costs several runs: a quarter of the effort as long as neither pays.
        let mut draw = || self.repairing.draw(rng, |_| true);
        [draw(), draw()] == [Some(Tactic::Repair as usize); 2]
    }
}

/// Runs what the producer makes of the turn's seed, to its end or to that of the turn.
pub(super) fn run_producer<H: Host>(
    turn: &mut Turn<'_, H>,
    stage: &mut dyn Producer,
) -> Result<StageEnd, H::Error> {
    run_producer_behind(turn, None, stage)
}

/// The same with what it makes of the messages behind those that the seed begins with.
pub(super) fn run_producer_behind<H: Host>(
    turn: &mut Turn<'_, H>,
    beginning: Option<Beginning>,
    stage: &mut dyn Producer,
) -> Result<StageEnd, H::Error> {
    turn.door.fuzzer_mut().begin_with(beginning.clone());
    let result = run_candidates(turn, beginning.as_ref(), stage);
    let fuzzer = turn.door.fuzzer_mut();
    fuzzer.begin_with(None);
    stage.end(&mut fuzzer.mutators);
    let len = fuzzer.corpus[turn.id].data.len();
    fuzzer.release_buffers(len);
    mutate::release(&mut turn.shared.batches.batch, len);
    result
}

/// Whether all messages are text.
fn are_text(input: &[u8]) -> bool {
    let bodies = messages::messages(input).map(|message| message.bytes);
    let mut bodies = bodies.filter(|bytes| !bytes.is_empty()).peekable();
    bodies.peek().is_some() && bodies.all(is_text)
}

fn is_mutated_as_text(options: &MutationOptions, input: &[u8]) -> bool {
    let seems_text = || if options.messages { are_text(input) } else { is_text(input) };
    options.text.unwrap_or_else(seems_text)
}

fn run_candidates<H: Host>(
    turn: &mut Turn<'_, H>,
    beginning: Option<&Beginning>,
    stage: &mut dyn Producer,
) -> Result<StageEnd, H::Error> {
    repair::repair_once(turn)?;
    let (id, fuzzer) = (turn.id, turn.door.fuzzer_mut());
    fuzzer.limit_mutants_of(id);
    let first = beginning.map_or(0, |beginning| beginning.bytes().len());
    let input: Box<[u8]> = fuzzer.corpus[id].data[first..].into();
    let lengths = behind(&turn.shared.lengths_of(&fuzzer.corpus, id), first);
    let has_fields = turn.shared.logs.have_fields(&fuzzer.corpus, id);
    let climbs_at_start = fuzzer.scheduler.climbs(id);
    let mut reference = None;
    let text = is_mutated_as_text(&fuzzer.mutation, &input);
    let (mut timeouts, mut waiting) = (0, Waiting::default());
    let before = fuzzer.target().spent().whole();
    turn.shared.batches.donors.next_seed();
    loop {
        let fuzzer = turn.door.fuzzer_mut();
        let (name, needs) = (stage.name(), stage.needs(&fuzzer.mutators));
        let spent = fuzzer.target().spent().whole() - before;
        let (batches, rng) = (&turn.shared.batches, &mut fuzzer.rng);
        let unit = (text && needs.words).then(|| batches.draw_text_unit(rng));
        let words = unit == Some(TextUnit::Word);
        let has_lengths = needs.lengths && !lengths.is_empty();
        let resizing = has_lengths.then(|| batches.draw_resizing(rng));
        let kept = if resizing == Some(Resizing::Adjusts) { &*lengths } else { &[] };
        let seed = (&*input, kept);
        let made = match fill(turn, seed, beginning, (text, words), spent, (stage, needs)) {
            (0, Made::Over) => return run_repaired(turn, &mut waiting),
            (0, _) if turn.door.between_batches()? => return Ok(StageEnd::TurnOver),
            (0, _) => continue,
            (made, _) => made,
        };
        let batch = std::mem::take(&mut turn.shared.batches.batch);
        let door = &mut turn.door;
        if stage.wants_report() && reference.is_none() {
            reference = Some(door.run(Run::of(&input))?.behaviour);
        }
        let wanted = reference.filter(|_| stage.wants_report());
        let (effort, found) = (door.fuzzer().effort(), door.fuzzer().progress.found);
        let outcome = door.run_batch(&batch[..made], wanted);
        let (fuzzer, batches) = (door.fuzzer_mut(), &mut turn.shared.batches);
        let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
        batches.note_way(unit, resizing, cost, finds);
        if has_fields && batches.draws_repair(&mut fuzzer.rng, cost, finds) {
            waiting.add(&batch[..made]);
        }
        note_stage(&mut fuzzer.progress, name, stage.progress(spent), &batch[..made]);
        batches.batch = batch;
        let outcome = outcome?;
        if stage.wants_report() {
            stage.report(outcome.changed);
        }
        timeouts = if outcome.hang { timeouts + 1 } else { 0 };
        if outcome.found {
            stage.extend();
        }
        let over = door.between_batches()?;
        let climbs = door.fuzzer().scheduler.climbs(id);
        let superseded = outcome.found && climbs_at_start && !climbs;
        if superseded || timeouts > MAX_TIMEOUTS || over {
            return Ok(StageEnd::TurnOver);
        }
        if waiting.is_full() && run_repaired(turn, &mut waiting)? == StageEnd::TurnOver {
            return Ok(StageEnd::TurnOver);
        }
    }
}

/// Runs repaired versions of the mutants that wait for that.
fn run_repaired<H: Host>(
    turn: &mut Turn<'_, H>,
    waiting: &mut Waiting,
) -> Result<StageEnd, H::Error> {
    if waiting.is_empty() {
        return Ok(StageEnd::Finished);
    }
    let fuzzer = turn.door.fuzzer();
    let (effort, found) = (fuzzer.effort(), fuzzer.progress.found);
    let repaired = waiting.repaired(turn)?;
    let door = &mut turn.door;
    let mut end = StageEnd::Finished;
    for batch in repaired.chunks(door.fuzzer().batch_size().max(1)) {
        door.run_batch(batch, None)?;
        if door.between_batches()? {
            end = StageEnd::TurnOver;
            break;
        }
    }
    let fuzzer = door.fuzzer();
    let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
    turn.shared.batches.repairing.note(Tactic::Repair as usize, cost, finds);
    Ok(end)
}

/// The lengths that stand behind `first` bytes and count from there.
fn behind(lengths: &[Length], first: usize) -> Box<[Length]> {
    let moved = lengths.iter().filter(|length| length.at >= first && length.from >= first);
    moved
        .map(|length| Length { at: length.at - first, from: length.from - first, ..*length })
        .collect()
}

/// Makes as many candidates as the executor takes at once; their buffers are reused. Returns their number, and
/// [`Made::Over`] after the last one.
fn fill<H: Host>(
    Turn { door, id, shared }: &mut Turn<'_, H>,
    (input, lengths): (&[u8], &[Length]),
    beginning: Option<&Beginning>,
    (text, words): (bool, bool),
    spent: Duration,
    (stage, needs): (&mut dyn Producer, Needs),
) -> (usize, Made) {
    let (id, exploit, left) = (*id, door.exploits(), door.runs_left());
    let fuzzer = door.fuzzer_mut();
    let room = if needs.single { 1 } else { fuzzer.batch_size().min(left) };
    let climbing = fuzzer.scheduler.climbs(id);
    let execs = fuzzer.target().execs();
    let Batches { donors, buffer, batch, .. } = &mut shared.batches;
    let Fuzzer { mutators, corpus, rng, progress, mutation, dictionary, .. } = fuzzer;
    batch.resize_with(room.max(batch.len()), Candidate::default);
    let donors = match needs.donors {
        true => donors.draw(rng, corpus, id, room),
        false => Donors::default(),
    };
    let fruitless = execs - progress.execs_at_find;
    let due = |runs: &&u64| mutation.expand_havoc || fruitless >= **runs;
    let escalation = ESCALATION.iter().filter(due).count() as u32;
    let first = beginning.map_or(0, |beginning| beginning.bytes().len());
    let least = if beginning.is_some() { HEAD } else { 0 };
    let from = Materials {
        seed: id,
        input,
        text,
        messages: mutation.messages,
        words,
        lengths,
        dictionary,
        donors,
        min_len: mutation.min_len.saturating_sub(first).max(least),
        max_len: mutation.max_len.saturating_sub(first).max(least),
        long_blocks: 1 + escalation,
        stack_power: 4 + escalation,
        climbing,
        exploit,
        spent,
    };
    let mut tools = Tools { mutators, rng, buffer };
    let (mut made, mut fruitless) = (0, 0);
    while made < room && fruitless < MOST_FRUITLESS {
        match stage.next(&from, &mut tools, &mut batch[made]) {
            Made::Input => {
                if let Some(beginning) = beginning {
                    beginning.put_before(&mut batch[made].bytes);
                }
                (made, fruitless) = (made + 1, 0);
            }
            Made::Nothing => fruitless += 1,
            Made::Over => return (made, Made::Over),
        }
        if stage.wants_report() {
            break;
        }
    }
    (made, Made::Nothing)
}

fn note_stage(
    progress: &mut Progress,
    name: &'static str,
    (done, planned): (u64, u64),
    batch: &[Candidate],
) {
    progress.stage = (name, done, planned);
    for same in batch.chunk_by(|a, b| std::ptr::eq(a.origin.step.op(), b.origin.step.op())) {
        progress.yield_of(same[0].origin.step.op()).execs += same.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Search;
    use super::*;
    use crate::corpus::{Origin, SeedId};
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;

    /// One candidate that is far larger than its seed.
    struct Large(bool);

    impl Producer for Large {
        fn name(&self) -> &'static str {
            "large"
        }

        fn next(&mut self, _: &Materials<'_>, _: &mut Tools<'_>, out: &mut Candidate) -> Made {
            out.bytes.resize(5 << 20, 0);
            if std::mem::replace(&mut self.0, true) { Made::Over } else { Made::Input }
        }

        fn progress(&self, _: Duration) -> (u64, u64) {
            (0, 1)
        }
    }

    #[test]
    fn large_buffers_are_freed_after_a_stage() {
        let executor = FakeExecutor::new(8, vec![], |_, edges, _| {
            edges[0] = 1;
            ExitKind::Ok
        });
        let mut search = Search::of(executor);
        search
            .door()
            .try_out(&Candidate { bytes: b"a".into(), origin: Origin::injected(0) })
            .unwrap();
        search.turn(SeedId(0), |turn| run_producer(turn, &mut Large(false))).unwrap();
        let batch = &search.2.batches.batch;
        assert!(!batch.is_empty());
        assert!(batch.iter().all(|candidate| candidate.bytes.capacity() < 1 << 20));
    }
}
