//! Trimming: the first turn of a seed removes bytes that do not affect its behaviour.

use super::{Stage, StageEnd, Turn};
use crate::corpus::{Length, Origin, SeedId, Step};
use crate::fuzzer::door::{Behaviour, Door, Host, Part, Run};
use crate::messages;
use crate::minimize::trim::Trim;
use crate::mutate::Candidate;
use crate::mutate::buffer::Buffer;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Purpose, SLICE};

/// Maximum trimming steps of a foreign mutator: endless trimming would starve all seeds.
const MOST_FOREIGN_STEPS: u32 = 1 << 16;

/// Trimming a seed ends after this multiple of a stage's longest budget: a seed a thousand times slower than the
/// others would block them. A seed of 10 KiB with runs of average time needs less.
const LONGER: u32 = 4;

/// Blocks of at least this fraction of a seed (1/32) are always tried. That takes at most 48 runs and removes most of
/// what can be removed. Untrimmed seeds would have children as long as themselves.
const COARSE: usize = 32;

pub(super) struct Trimming;

/// State of the trimming of one seed.
struct Work {
    /// The input, trimmed so far.
    input: Vec<u8>,
    /// Length fields of the input, updated when bytes are removed.
    lengths: Box<[Length]>,
    candidate: Candidate,
    /// The behaviour to preserve.
    wanted: Behaviour,
    /// Skip short blocks, see [`COARSE`].
    only_coarse: bool,
}

impl<H: Host> Stage<H> for Trimming {
    fn name(&self) -> &'static str {
        "trim"
    }

    /// Skips a waypoint without new edges in its first turn: most are soon replaced by a better one.
    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool {
        let fuzzer = turn.door.fuzzer();
        let seed = &fuzzer.corpus[turn.id];
        let passing = seed.waypoint && !seed.new_edge && seed.fuzzed == 0 && fuzzer.guided();
        !seed.trimmed && !passing && !fuzzer.mutation.skip_trim
    }

    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        // Shorter blocks take up to 1000 runs per seed.
        let only_coarse = !turn.door.may(Purpose::Trimming, SLICE);
        turn.door.open(Purpose::Trimming);
        let end = turn.timed(Part::Trimming, |turn| trim_seed(turn, only_coarse));
        turn.door.close(Purpose::Trimming);
        end
    }
}

fn trim_seed<H: Host>(
    Turn { door, id, shared }: &mut Turn<'_, H>,
    only_coarse: bool,
) -> Result<StageEnd, H::Error> {
    let id = *id;
    let fuzzer = door.fuzzer_mut();
    let execs = fuzzer.target().execs();
    let lengths = shared.lengths_of(&fuzzer.corpus, id);
    let seed = &fuzzer.corpus[id];
    let before = seed.data.len();
    let (input, path) = (seed.data.to_vec(), seed.path_hash);
    fuzzer.progress.stage = ("trim", 0, 0);
    // Without domains, calibration has recorded the behaviour.
    let has_messages = fuzzer.mutation.messages;
    let framing = messages::framing(&input).filter(|_| has_messages);
    let lengths = lengths.into_iter().chain(framing).collect();
    let wanted = match fuzzer.judge().watches_domains() {
        true => door.run(Run::of(&input))?.behaviour,
        false => Behaviour { path, values: 0 },
    };
    let step = Step::Stacked { op: "trim", count: 1 };
    let origin = Origin { parent: id, other: None, step, by: 0 };
    let candidate = Candidate { bytes: Vec::new(), origin };
    let mut work = Work { input, lengths, candidate, wanted, only_coarse };
    let limit = Limit::of(door, id);
    let end = trim(door, &mut work, limit);
    // A partial result is kept as well.
    let Work { input, lengths, .. } = work;
    if *input != *door.fuzzer().corpus[id].data {
        door.seed_changed(id, &input)?;
    }
    let fuzzer = door.fuzzer_mut();
    let runs = fuzzer.target().execs() - execs;
    let progress = &mut fuzzer.progress;
    progress.trim_bytes.0 += before as u64;
    progress.trim_bytes.1 += input.len().min(before) as u64;
    progress.trim_execs += runs;
    progress.yield_of("trim").execs += runs;
    if let Some(known) = shared.lengths.get_mut(&id) {
        *known = lengths.into_iter().filter(|length| !messages::is_framing(length)).collect();
    }
    let seed = &mut fuzzer.corpus[id];
    seed.data = input.into();
    seed.trimmed = matches!(end, Ok(StageEnd::Finished));
    end
}

/// Limit of the trimming of a seed.
#[derive(Clone, Copy)]
struct Limit {
    budget: Option<Budget>,
    begin: Effort,
}

impl Limit {
    fn of<H: Host>(door: &Door<'_, H>, id: SeedId) -> Self {
        let fuzzer = door.fuzzer();
        let budget = fuzzer.budget(id).map(|budget| budget.longest().times(LONGER));
        Self { budget, begin: fuzzer.effort() }
    }

    fn is_reached<H: Host>(self, door: &Door<'_, H>) -> bool {
        let done = door.fuzzer().effort().since(self.begin);
        self.budget.is_some_and(|budget| budget.is_used(done.runs, done.time))
    }
}

fn trim<H: Host>(
    door: &mut Door<'_, H>,
    work: &mut Work,
    limit: Limit,
) -> Result<StageEnd, H::Error> {
    let mutators = &door.fuzzer().mutators;
    let trimmers: Vec<usize> = (0..mutators.len()).filter(|index| mutators.trims(*index)).collect();
    if trimmers.is_empty() {
        return trim_blocks(door, work, limit);
    }
    for mutator in trimmers {
        if trim_by(door, mutator, work, limit)? == StageEnd::TurnOver {
            return Ok(StageEnd::TurnOver);
        }
    }
    Ok(StageEnd::Finished)
}

/// Removes single messages, the last one first.
fn trim_messages<H: Host>(
    door: &mut Door<'_, H>,
    work: &mut Work,
    limit: Limit,
) -> Result<StageEnd, H::Error> {
    let mut buffer = Buffer::default();
    let min_len = door.fuzzer().mutation.min_len.max(1);
    for number in (0..messages::messages(&work.input).count()).rev() {
        let gone = messages::span(&work.input, number);
        if work.input.len() < min_len + gone.len() {
            continue;
        }
        buffer.set(&work.input, &work.lengths);
        buffer.close_gap(gone.start, gone.len());
        work.candidate.bytes.clear();
        work.candidate.bytes.extend_from_slice(&buffer);
        if door.try_out(&work.candidate)? == Some(work.wanted) {
            std::mem::swap(&mut work.input, &mut work.candidate.bytes);
            work.lengths = buffer.lengths().into();
        }
        if door.between_batches()? {
            return Ok(StageEnd::TurnOver);
        }
        if limit.is_reached(door) {
            break;
        }
    }
    Ok(StageEnd::Finished)
}

/// Removes blocks.
fn trim_blocks<H: Host>(
    door: &mut Door<'_, H>,
    work: &mut Work,
    limit: Limit,
) -> Result<StageEnd, H::Error> {
    let is_list = door.fuzzer().mutation.messages && messages::is_list(&work.input);
    if is_list && trim_messages(door, work, limit)? == StageEnd::TurnOver {
        return Ok(StageEnd::TurnOver);
    }
    let mut trim = Trim::new(work.input.len()).keep(door.fuzzer().mutation.min_len);
    let mut buffer = Buffer::default();
    while let Some(block) = trim.next(&work.input, &mut work.candidate.bytes) {
        if work.only_coarse && trim.is_finer_than(COARSE) {
            break;
        }
        let block = if is_list { messages::within(&work.input, block) } else { block };
        if block.is_empty() {
            trim.rejected();
            continue;
        }
        buffer.set(&work.input, &work.lengths);
        buffer.close_gap(block.start, block.len());
        work.candidate.bytes.clear();
        work.candidate.bytes.extend_from_slice(&buffer);
        if door.try_out(&work.candidate)? == Some(work.wanted) {
            std::mem::swap(&mut work.input, &mut work.candidate.bytes);
            work.lengths = buffer.lengths().into();
            trim.accepted();
        } else {
            trim.rejected();
        }
        door.fuzzer_mut().progress.stage = ("trim", trim.done(), trim.planned());
        if door.between_batches()? {
            return Ok(StageEnd::TurnOver);
        }
        if limit.is_reached(door) {
            break;
        }
    }
    Ok(StageEnd::Finished)
}

/// Lets a foreign mutator propose trimmed inputs.
fn trim_by<H: Host>(
    door: &mut Door<'_, H>,
    mutator: usize,
    work: &mut Work,
    limit: Limit,
) -> Result<StageEnd, H::Error> {
    let min_len = door.fuzzer().mutation.min_len;
    let begun = door.fuzzer_mut().mutators.trim_begins(mutator, &work.input);
    let Some(mut planned) = begun else { return Ok(StageEnd::Finished) };
    let mut step = 0;
    for _ in 0..MOST_FOREIGN_STEPS {
        if step >= planned || limit.is_reached(door) {
            return Ok(StageEnd::Finished);
        }
        let mutators = &mut door.fuzzer_mut().mutators;
        let made = mutators.trim(mutator, &mut work.candidate.bytes);
        let lengths = (work.input.len(), work.candidate.bytes.len());
        let runs = made == Made::Input && lengths.1 >= min_len;
        let seen = match runs {
            true => Some(door.run(Run::judged(&work.candidate.bytes))?),
            false => None,
        };
        let same = seen.as_ref().and_then(|seen| door.usable(seen)) == Some(work.wanted);
        // Report the mutator's step to it before its finds.
        let mutators = &mut door.fuzzer_mut().mutators;
        let next = mutators.trimmed(mutator, (step, planned), lengths, same);
        if let Some(verdict) = seen.and_then(|seen| seen.verdict) {
            door.keep_if_deserved(&work.candidate, verdict)?;
        }
        if same {
            // The mutator may have moved the length fields.
            work.lengths = Box::default();
            std::mem::swap(&mut work.input, &mut work.candidate.bytes);
        }
        step = next.filter(|_| made != Made::Over).unwrap_or(planned);
        planned = planned.max(1);
        door.fuzzer_mut().progress.stage = ("trim", step.into(), planned.into());
        if door.between_batches()? {
            return Ok(StageEnd::TurnOver);
        }
    }
    let text = format!("trimming did not end after {MOST_FOREIGN_STEPS} steps: stopped");
    door.fuzzer_mut().mutators.complain(mutator, text);
    Ok(StageEnd::Finished)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;
    use crate::schedule::{ScheduleOptions, Scheduler};
    use crate::stage::fake::Search;

    /// A seed a thousand times slower than others is not trimmed completely.
    #[test]
    fn a_slow_seed_does_not_keep_the_others_waiting() {
        let clock = Rc::new(Cell::new(Duration::ZERO));
        let time = clock.clone();
        let executor = FakeExecutor::new(8, vec![], move |input, edges, _| {
            let is_slow = input.len() > 8;
            time.set(Duration::from_millis(if is_slow { 1000 } else { 1 }));
            edges[usize::from(is_slow)] = 1;
            edges[2] = input.len() as u8;
            ExitKind::Ok
        });
        let mut search = Search::of(executor.timed_by(&clock));
        search.0.scheduler = Scheduler::new(ScheduleOptions::default(), 8, &[]);
        for len in (1..8).chain([4000]) {
            let candidate = Candidate { bytes: vec![b'x'; len], origin: Origin::injected(0) };
            search.door().try_out(&candidate).unwrap();
        }
        let id = SeedId(search.0.corpus.next_id().0 - 1);
        assert_eq!(search.0.corpus[id].data.len(), 4000);
        let before = search.0.effort();
        let end = search.turn(id, |turn| Trimming.run(turn)).unwrap();
        let done = search.0.effort().since(before);
        assert!(end == StageEnd::Finished && search.0.corpus[id].trimmed);
        let average = Duration::from_secs(1) / 8;
        let most = average * 1000 * LONGER + Duration::from_secs(20);
        assert!(done.time < most && done.runs > 16, "{done:?}");
    }

    /// Nothing can be removed from these seeds, so every pass makes all its runs.
    #[test]
    fn short_blocks_are_left_out_when_trimming_has_used_its_share() {
        let clock = Rc::new(Cell::new(Duration::ZERO));
        let time = clock.clone();
        let executor = FakeExecutor::new(16, vec![], move |input, edges, _| {
            time.set(Duration::from_millis(1));
            edges[if input.len() == 2000 { usize::from(input[0]) } else { 0 }] = 1;
            ExitKind::Ok
        });
        let mut search = Search::of(executor.timed_by(&clock));
        search.0.scheduler = Scheduler::new(ScheduleOptions::default(), 16, &[]);
        let add = |search: &mut Search, byte: u8| {
            let mut bytes = vec![0; 2000];
            bytes[0] = byte;
            search.door().try_out(&Candidate { bytes, origin: Origin::injected(0) }).unwrap();
        };
        let runs_on_new = |search: &mut Search, byte: u8| {
            add(search, byte);
            let id = SeedId(search.0.corpus.next_id().0 - 1);
            assert!(search.turn(id, |turn| Trimming.wants(turn)));
            let before = search.0.effort().runs;
            search.turn(id, |turn| Trimming.run(turn)).unwrap();
            assert!(search.0.corpus[id].trimmed);
            search.0.effort().runs - before
        };
        assert!(runs_on_new(&mut search, 1) > 400);
        let runs: Vec<u64> = (2..8).map(|byte| runs_on_new(&mut search, byte)).collect();
        assert!(runs[5] > 16 && runs[5] <= 48, "{runs:?}");
        for _ in 0..10_000 {
            search
                .door()
                .try_out(&Candidate { bytes: vec![1; 9], origin: Origin::injected(0) })
                .unwrap();
        }
        assert!(runs_on_new(&mut search, 8) > 400);
    }
}
