//! Repair of checksums and of what else has to follow other bytes (see [`repair`](crate::mutate::repair)): which
//! comparisons have such a field, and runs of inputs whose fields are put right.

use std::ops::Range;

use super::StageEnd;
use crate::comparison::{ComparisonLog, Occurrences, Operand, Place};
use crate::corpus::SeedId;
use crate::executor::ExitKind;
use crate::fuzzer::door::Door;
use crate::mutate::Candidate;
use crate::mutate::repair::{Field, Suspect};

/// Runs of one input, each with the fields right that the one before has shown. Checksums may be nested.
const MOST_ROUNDS: usize = 4;
/// Bytes of which some have to move what is calculated: before a field, after it, and everywhere.
const BEFORE: usize = 12;
const AFTER: usize = 6;
const EVERYWHERE: usize = 6;
const FEWEST_MOVERS: usize = 3;
/// Candidates that are repaired together, because runs with and without the log are those of different processes.
const TOGETHER: usize = 256;

/// Whether mutants of a seed are repaired, as arms of a bandit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tactic {
    Leave,
    Repair,
}

/// Runs an input with its log. Fields that are wrong are put right, and it is run again: afterwards the input is as the
/// target got it last, and `look` has seen that run last.
pub(super) fn run_logged<D: Door, T>(
    door: &mut D,
    input: &mut Vec<u8>,
    mut look: impl FnMut(ComparisonLog<'_>) -> T,
) -> Result<(ExitKind, T), D::Error> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        let repairs = std::mem::take(&mut door.fuzzer_mut().repairs);
        let (mut repaired, mut is_changed) = (Vec::new(), false);
        let run = door.logged(input, |log| {
            if !repairs.is_empty() && rounds < MOST_ROUNDS {
                repaired.clone_from(input);
                is_changed = repairs.repair(log, &mut repaired);
            }
            look(log)
        });
        door.fuzzer_mut().repairs = repairs;
        let (exit, seen) = run?;
        if !is_changed || exit != ExitKind::Ok {
            return Ok((exit, seen));
        }
        std::mem::swap(input, &mut repaired);
    }
}

/// Looks for fields among the equal operands of a run: a field is one that follows its bytes in the input, while the
/// other operand follows other bytes.
pub(super) fn learn<D: Door>(
    door: &mut D,
    input: &[u8],
    log: ComparisonLog<'_>,
) -> Result<StageEnd, D::Error> {
    let suspects = door.fuzzer().repairs.suspects(log, input);
    // The ways in which one operand may stand in the input.
    for alike in suspects.chunk_by(|one, other| one.place == other.place) {
        let site = alike[0].place.site;
        let mut field = None;
        for suspect in alike {
            match understand(door, input, suspect)? {
                None => return Ok(StageEnd::TurnOver),
                Some(found) => field = found,
            }
            if field.is_some() {
                break;
            }
        }
        match field {
            Some(field) => door.fuzzer_mut().repairs.add(site, field),
            None => door.fuzzer_mut().repairs.failed(site),
        }
    }
    Ok(StageEnd::Finished)
}

/// The outer None: the turn is to end. The inner one: it is no field.
#[expect(clippy::option_option, reason = "two things that may be missing")]
fn understand<D: Door>(
    door: &mut D,
    input: &[u8],
    suspect: &Suspect,
) -> Result<Option<Option<Field>>, D::Error> {
    for at in &suspect.at {
        let window = *at..at + suspect.len;
        if door.between_batches()? {
            return Ok(None);
        }
        let mut flipped = input.to_vec();
        flipped[window.clone()].iter_mut().for_each(|byte| *byte = !*byte);
        let wanted = flipped[window.clone()].to_vec();
        // Other fields are repaired, this one is not known yet.
        let (_, sides) = run_logged(door, &mut flipped, |log| {
            let seen = operands(log, suspect.place)?;
            Some(seen.map(|operand| suspect.encoding.write(operand).as_ref() == Some(&wanted)))
        })?;
        let side = match sides {
            Some([true, false]) => 0,
            Some([false, true]) => 1,
            _ => continue,
        };
        let Some(count) = movers(door, input, suspect, (&window, 1 - side))? else {
            return Ok(None);
        };
        if count >= FEWEST_MOVERS || is_length(door, input, suspect, 1 - side)? {
            return Ok(Some(Some(Field { side, encoding: suspect.encoding, at: *at })));
        }
    }
    Ok(Some(None))
}

/// How many of some bytes outside the window move the calculated operand. None if the turn is to end.
fn movers<D: Door>(
    door: &mut D,
    input: &[u8],
    suspect: &Suspect,
    (window, side): (&Range<usize>, usize),
) -> Result<Option<usize>, D::Error> {
    let before = window.start.saturating_sub(BEFORE)..window.start;
    let after = window.end..(window.end + AFTER).min(input.len());
    let everywhere = (0..EVERYWHERE).map(|part| part * input.len() / EVERYWHERE);
    let mut places: Vec<usize> = before.chain(after).chain(everywhere).collect();
    places.sort_unstable();
    places.dedup();
    places.retain(|at| !window.contains(at));
    let usual = input[window.clone()].to_vec();
    let mut count = 0;
    for at in places {
        if door.between_batches()? {
            return Ok(None);
        }
        let mut changed = input.to_vec();
        changed[at] ^= 1;
        let (_, moved) = run_logged(door, &mut changed, |log| {
            let seen = operands(log, suspect.place)?;
            Some(suspect.encoding.write(seen[side]).as_ref() != Some(&usual))
        })?;
        count += usize::from(moved == Some(true));
    }
    Ok(Some(count))
}

/// The calculated operand follows the length of the input.
fn is_length<D: Door>(
    door: &mut D,
    input: &[u8],
    suspect: &Suspect,
    side: usize,
) -> Result<bool, D::Error> {
    let value = |log: ComparisonLog<'_>| match operands(log, suspect.place)?[side] {
        Operand::Value(value) => Some(value),
        Operand::Bytes(_) => None,
    };
    let (_, usual) = run_logged(door, &mut input.to_vec(), value)?;
    let (_, longer) = run_logged(door, &mut [input, b"x"].concat(), value)?;
    let is_next = |(usual, longer): (u64, u64)| longer == usual.wrapping_add(1);
    Ok(usual.zip(longer).is_some_and(is_next))
}

/// Both operands of the comparison at a place, if the run comes to it.
fn operands<'a>(log: ComparisonLog<'a>, place: Place) -> Option<[Operand<'a>; 2]> {
    let mut occurrences = Occurrences::default();
    let mut all = log.iter();
    let found = all.find(|comparison| occurrences.place(comparison) == place)?;
    Some([found.a, found.b])
}

/// Mutants of one seed that wait for their repair.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    candidates: Vec<Candidate>,
}

impl Waiting {
    pub(super) fn add(&mut self, batch: &[Candidate]) {
        self.candidates.extend_from_slice(batch);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.candidates.len() >= TOGETHER
    }

    /// Those whose fields were wrong, with fields that are right.
    pub(super) fn repaired<D: Door>(&mut self, door: &mut D) -> Result<Vec<Candidate>, D::Error> {
        let mut repaired = Vec::new();
        for mut candidate in self.candidates.drain(..) {
            if door.between_batches()? {
                break;
            }
            let before = candidate.bytes.clone();
            run_logged(door, &mut candidate.bytes, |_| ())?;
            if candidate.bytes != before {
                repaired.push(candidate);
            }
        }
        Ok(repaired)
    }
}

/// Notes whether the seed has a field, so that its mutants are repaired.
pub(super) fn note_seed<D: Door>(door: &mut D, id: SeedId, log: ComparisonLog<'_>) {
    let fuzzer = door.fuzzer_mut();
    fuzzer.corpus[id].has_fields |= fuzzer.repairs.concern(log);
}
