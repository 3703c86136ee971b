//! Batches of candidates of one [`Producer`] go through the door until there are no more.

use std::time::Duration;

use super::StageEnd;
use super::produce::{Materials, Needs, Producer, Tools};
use super::repair::{self, Tactic, Waiting};
use crate::corpus::Length;
use crate::corpus::SeedId;
use crate::fuzzer::door::{Door, Run};
use crate::fuzzer::{Fuzzer, Progress, Resizing, TextUnit};
use crate::messages::{self, Beginning, HEAD};
use crate::mutate::donors::Donors;
use crate::mutate::foreign::Made;
use crate::mutate::{Candidate, is_text};

/// Timeouts in a row after which a seed's turn ends; AFL's number.
const MAX_TIMEOUTS: u32 = 250;
/// Runs without a find after which larger blocks and deeper stacks are allowed. Runs, not cycles:
/// a cycle of a small corpus is over in a moment (fuzzbench 848).
const ESCALATION: [u64; 2] = [1 << 17, 1 << 19];
/// Attempts in a row that make no input before limits and the user are asked: a foreign mutator may be slow.
const MOST_FRUITLESS: u32 = 16;

/// Runs what the producer makes of a seed, to its end or to that of the turn.
pub fn run_producer<D: Door>(
    door: &mut D,
    id: SeedId,
    stage: &mut dyn Producer,
) -> Result<StageEnd, D::Error> {
    run_producer_behind(door, id, None, stage)
}

/// The same with what it makes of the messages behind those that the seed begins with.
pub(super) fn run_producer_behind<D: Door>(
    door: &mut D,
    id: SeedId,
    beginning: Option<Beginning>,
    stage: &mut dyn Producer,
) -> Result<StageEnd, D::Error> {
    door.fuzzer_mut().begin_with(beginning.clone());
    let result = run_candidates(door, id, beginning.as_ref(), stage);
    let fuzzer = door.fuzzer_mut();
    fuzzer.begin_with(None);
    stage.end(&mut fuzzer.mutators);
    fuzzer.release_buffers(id);
    result
}

/// Whether all messages are text.
fn are_text(input: &[u8]) -> bool {
    let bodies = messages::messages(input).map(|message| message.bytes);
    let mut bodies = bodies.filter(|bytes| !bytes.is_empty()).peekable();
    bodies.peek().is_some() && bodies.all(is_text)
}

fn run_candidates<D: Door>(
    door: &mut D,
    id: SeedId,
    beginning: Option<&Beginning>,
    stage: &mut dyn Producer,
) -> Result<StageEnd, D::Error> {
    repair::repair_once(door, id)?;
    let fuzzer = door.fuzzer_mut();
    fuzzer.limit_mutants_of(id);
    let first = beginning.map_or(0, |beginning| beginning.bytes().len());
    let input: Box<[u8]> = fuzzer.corpus[id].data[first..].into();
    let lengths = behind(&fuzzer.corpus[id].lengths, first);
    let climbs_at_start = fuzzer.scheduler.climbs(id);
    let mut reference = None;
    let is_list = fuzzer.mutation.messages;
    let seems_text = || if is_list { are_text(&input) } else { is_text(&input) };
    let text = fuzzer.mutation.text.unwrap_or_else(seems_text);
    let (mut timeouts, mut waiting) = (0, Waiting::default());
    let before = fuzzer.target().spent().whole();
    fuzzer.donors.next_seed();
    loop {
        let (name, needs) = (stage.name(), stage.needs(&door.fuzzer().mutators));
        let spent = door.fuzzer().target().spent().whole() - before;
        let unit = (text && needs.words).then(|| door.fuzzer_mut().draw_text_unit());
        let words = unit == Some(TextUnit::Word);
        let has_lengths = needs.lengths && !lengths.is_empty();
        let resizing = has_lengths.then(|| door.fuzzer_mut().draw_resizing());
        let kept = if resizing == Some(Resizing::Adjusts) { &*lengths } else { &[] };
        let seed = (id, &*input, kept);
        let made = match fill(door, seed, beginning, (text, words), spent, (stage, needs)) {
            (0, Made::Over) => return run_repaired(door, &mut waiting),
            (0, _) if door.between_batches()? => return Ok(StageEnd::TurnOver),
            (0, _) => continue,
            (made, _) => made,
        };
        let batch = std::mem::take(&mut door.fuzzer_mut().batch);
        if stage.wants_report() && reference.is_none() {
            reference = Some(door.run(Run::of(&input))?.behaviour);
        }
        let wanted = reference.filter(|_| stage.wants_report());
        let (effort, found) = (door.fuzzer().effort(), door.fuzzer().progress.found);
        let outcome = door.run_batch(&batch[..made], wanted);
        let fuzzer = door.fuzzer_mut();
        let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
        if let Some(unit) = unit {
            fuzzer.text_units.note(unit as usize, cost, finds);
        }
        if let Some(resizing) = resizing {
            fuzzer.resizing.note(resizing as usize, cost, finds);
        }
        if fuzzer.corpus[id].has_fields {
            fuzzer.repairing.note(Tactic::Leave as usize, cost, finds);
            // Drawn twice, because a repair costs several runs: a quarter of the effort as long as neither pays.
            let mut draw = || fuzzer.repairing.draw(&mut fuzzer.rng, |_| true);
            if [draw(), draw()] == [Some(Tactic::Repair as usize); 2] {
                waiting.add(&batch[..made]);
            }
        }
        note_stage(&mut fuzzer.progress, name, stage.progress(spent), &batch[..made]);
        fuzzer.batch = batch;
        let outcome = outcome?;
        if stage.wants_report() {
            stage.report(outcome.changed);
        }
        timeouts = if outcome.hang { timeouts + 1 } else { 0 };
        if outcome.found {
            stage.extend();
        }
        let over = door.between_batches()?;
        let climbs = |door: &D| door.fuzzer().scheduler.climbs(id);
        let superseded = outcome.found && climbs_at_start && !climbs(door);
        if superseded || timeouts > MAX_TIMEOUTS || over {
            return Ok(StageEnd::TurnOver);
        }
        if waiting.is_full() && run_repaired(door, &mut waiting)? == StageEnd::TurnOver {
            return Ok(StageEnd::TurnOver);
        }
    }
}

/// Runs repaired versions of the mutants that wait for that.
fn run_repaired<D: Door>(door: &mut D, waiting: &mut Waiting) -> Result<StageEnd, D::Error> {
    if waiting.is_empty() {
        return Ok(StageEnd::Finished);
    }
    let (effort, found) = (door.fuzzer().effort(), door.fuzzer().progress.found);
    let repaired = waiting.repaired(door)?;
    let mut end = StageEnd::Finished;
    for batch in repaired.chunks(door.fuzzer().batch_size().max(1)) {
        door.run_batch(batch, None)?;
        if door.between_batches()? {
            end = StageEnd::TurnOver;
            break;
        }
    }
    let fuzzer = door.fuzzer_mut();
    let (cost, finds) = (fuzzer.cost_since(effort), fuzzer.progress.found - found);
    fuzzer.repairing.note(Tactic::Repair as usize, cost, finds);
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
fn fill<D: Door>(
    door: &mut D,
    (id, input, lengths): (SeedId, &[u8], &[Length]),
    beginning: Option<&Beginning>,
    (text, words): (bool, bool),
    spent: Duration,
    (stage, needs): (&mut dyn Producer, Needs),
) -> (usize, Made) {
    let (exploit, left) = (door.exploits(), door.runs_left());
    let fuzzer = door.fuzzer_mut();
    let room = if needs.single { 1 } else { fuzzer.batch_size().min(left) };
    let climbing = fuzzer.scheduler.climbs(id);
    let execs = fuzzer.target().execs();
    let Fuzzer { mutators, corpus, donors, rng, buffer, batch, .. } = fuzzer;
    let Fuzzer { progress, mutation, dictionary, .. } = fuzzer;
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
    use crate::corpus::Origin;
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
        search.try_out(&Candidate { bytes: b"a".into(), origin: Origin::injected(0) }).unwrap();
        run_producer(&mut search, SeedId(0), &mut Large(false)).unwrap();
        assert!(!search.0.batch.is_empty());
        assert!(search.0.batch.iter().all(|candidate| candidate.bytes.capacity() < 1 << 20));
    }
}
