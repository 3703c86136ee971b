//! Trimming: a seed's first turn begins with the removal of what changes nothing in its behaviour.

use super::{Stage, StageEnd};
use crate::corpus::{Length, Origin, SeedId, Step};
use crate::fuzzer::door::{Behaviour, Door, Part, Run};
use crate::minimize::trim::Trim;
use crate::mutate::Candidate;
use crate::mutate::buffer::Buffer;
use crate::mutate::foreign::{ForeignMutators, Made};

/// Steps of a foreign mutator's trimming: one that never comes to its end would starve all seeds.
const MOST_FOREIGN_STEPS: u32 = 1 << 16;

pub(super) struct Trimming;

/// A seed under work.
struct Work {
    /// As far as it is trimmed.
    input: Vec<u8>,
    /// Numbers of it that count other bytes, and follow what goes.
    lengths: Box<[Length]>,
    candidate: Candidate,
    /// What must stay the same.
    wanted: Behaviour,
}

impl<D: Door> Stage<D> for Trimming {
    fn name(&self) -> &'static str {
        "trim"
    }

    /// A waypoint is mostly a step to the next one: it is not worth the runs before it has stayed.
    fn wants(&self, door: &mut D, id: SeedId) -> bool {
        let fuzzer = door.fuzzer();
        let seed = &fuzzer.corpus[id];
        let passing = seed.waypoint && !seed.new_edge && seed.fuzzed == 0 && fuzzer.guided();
        !seed.trimmed && !passing && !fuzzer.mutation.skip_trim
    }

    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        door.timed(Part::Trimming, |door| trim_seed(door, id))
    }
}

fn trim_seed<D: Door>(door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
    let fuzzer = door.fuzzer_mut();
    let execs = fuzzer.target().execs();
    let seed = &fuzzer.corpus[id];
    let before = seed.data.len();
    let (input, lengths, path) = (seed.data.to_vec(), seed.lengths.clone(), seed.path_hash);
    fuzzer.progress.stage = ("trim", 0, 0);
    // Without domains calibration has seen it.
    let wanted = match fuzzer.judge().watches_domains() {
        true => door.run(Run::of(&input))?.behaviour,
        false => Behaviour { path, values: 0 },
    };
    let step = Step::Stacked { op: "trim", count: 1 };
    let origin = Origin { parent: id, other: None, step, by: 0 };
    let candidate = Candidate { bytes: Vec::new(), origin };
    let mut work = Work { input, lengths, candidate, wanted };
    let end = trim(door, &mut work);
    // Also what is done so far counts.
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
    let seed = &mut fuzzer.corpus[id];
    (seed.data, seed.lengths) = (input.into(), lengths);
    seed.trimmed = matches!(end, Ok(StageEnd::Finished));
    fuzzer.suspended.remove(&id);
    end
}

fn trim<D: Door>(door: &mut D, work: &mut Work) -> Result<StageEnd, D::Error> {
    let mutators = &door.fuzzer().mutators;
    let trimmers: Vec<usize> = (0..mutators.len()).filter(|index| mutators.trims(*index)).collect();
    if trimmers.is_empty() {
        return trim_blocks(door, work);
    }
    for mutator in trimmers {
        if trim_by(door, mutator, work)? == StageEnd::TurnOver {
            return Ok(StageEnd::TurnOver);
        }
    }
    Ok(StageEnd::Finished)
}

/// Leaves out block by block.
fn trim_blocks<D: Door>(door: &mut D, work: &mut Work) -> Result<StageEnd, D::Error> {
    let mut trim = Trim::new(work.input.len()).keep(door.fuzzer().mutation.min_len);
    let mut buffer = Buffer::default();
    while let Some(block) = trim.next(&work.input, &mut work.candidate.bytes) {
        buffer.set(&work.input, &work.lengths);
        buffer.close_gap(block.start, block.len());
        work.candidate.bytes.copy_from_slice(&buffer);
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
    }
    Ok(StageEnd::Finished)
}

/// Lets a foreign mutator propose what the input is replaced by.
fn trim_by<D: Door>(door: &mut D, mutator: usize, work: &mut Work) -> Result<StageEnd, D::Error> {
    let min_len = door.fuzzer().mutation.min_len;
    let begun = door.fuzzer_mut().mutators.trim_begins(mutator, &work.input);
    let Some(mut planned) = begun else { return Ok(StageEnd::Finished) };
    let mut step = 0;
    for _ in 0..MOST_FOREIGN_STEPS {
        if step >= planned {
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
        // The mutator's own step is reported to it before what the step has found.
        let mutators = &mut door.fuzzer_mut().mutators;
        let next = mutators.trimmed(mutator, (step, planned), lengths, same);
        if let Some(verdict) = seen.and_then(|seen| seen.verdict) {
            door.keep_if_deserved(&work.candidate, verdict)?;
        }
        if same {
            // Where the mutator has moved them is not known.
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
