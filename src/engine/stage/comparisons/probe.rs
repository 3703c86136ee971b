//! Operands that are calculated from the input: a probe shows which bytes move them, and solvers by runs turn what is
//! open (see [`depend`]).

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use super::{Limit, MOST_EXTENSIONS, extend, logged, origin};
use crate::comparison::{Comparison, ComparisonKind, ComparisonLog, Occurrences, Operand, Place};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::mutate::Candidate;
use crate::mutate::depend::{self, Change, Dependent};

/// Runs for the probe of one input. It goes by halves, so that a long part that decides nothing costs one run.
const MOST_PROBES: usize = 2048;
/// Comparisons of one input that are probed.
const MOST_WATCHED: usize = 256;
/// Operands that the same bytes move, of one site.
const MOST_ALIKE: usize = 2;
/// Inputs that turn something and are worked on, of one input.
const MOST_TURNING: usize = 8;
/// What a byte is changed to. Numbers in text show themselves by digits only.
const PROBES: [fn(u8) -> u8; 6] =
    [|byte| byte ^ 1, |_| b'1', |_| b'9', |byte| byte ^ 0x80, |_| b'a', |byte| !byte];

/// An open comparison of two numbers.
struct Watched {
    place: Place,
    kind: ComparisonKind,
    bytes: usize,
    operands: [u64; 2],
    changes: [Vec<Change>; 2],
    grown: Option<[u64; 2]>,
}

/// The open comparisons of one input.
struct Watch {
    all: Vec<Watched>,
    by_place: HashMap<Place, usize>,
    /// By site: whether there is one of it.
    sites: Vec<bool>,
}

/// Probes an input and solves what is open. Returns the inputs that turned a comparison, which have been run and judged
/// like others. None if the turn is to end.
pub(super) fn turn<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    limit: Limit,
) -> Result<Option<Vec<Vec<u8>>>, D::Error> {
    let Some(mut watch) = Watch::of(door, (id, input))? else { return Ok(Some(Vec::new())) };
    if !probe(door, (id, input), &mut watch, limit)? {
        return Ok(None);
    }
    let mut turning = Vec::new();
    for dependent in watch.dependents(door) {
        if turning.len() >= MOST_TURNING || limit.is_reached(door) {
            break;
        }
        if !door.fuzzer().results.is_open(dependent.place, dependent.kind) {
            continue;
        }
        match solve(door, (id, input), &dependent, limit)? {
            Solved::TurnOver => return Ok(None),
            Solved::Not => door.fuzzer_mut().results.failed(dependent.place),
            Solved::By { bytes, op } => {
                door.try_out(&Candidate { bytes: bytes.clone(), origin: origin(id, op) })?;
                turning.push(bytes);
            }
        }
    }
    Ok(Some(turning))
}

/// The two numbers of a comparison.
fn numbers(comparison: &Comparison<'_>) -> Option<[u64; 2]> {
    match (comparison.a, comparison.b) {
        (Operand::Value(a), Operand::Value(b)) => Some([a, b]),
        _ => None,
    }
}

impl Watch {
    /// What is open in the run of an input, and the same in two runs. None if that is nothing.
    fn of<D: Door>(door: &mut D, (id, input): (SeedId, &[u8])) -> Result<Option<Self>, D::Error> {
        let logs = [
            logged(door, origin(id, "copy"), &mut input.to_vec(), |log| log.to_own())?,
            logged(door, origin(id, "copy"), &mut input.to_vec(), |log| log.to_own())?,
        ];
        let results = &mut door.fuzzer_mut().results;
        results.learn(logs[0].view());
        let mut open = Vec::new();
        let mut occurrences = Occurrences::default();
        for (comparison, again) in logs[0].view().iter().zip(logs[1].view().iter()) {
            let place = occurrences.place(&comparison);
            let is_stable = comparison == again && comparison.constant != [true; 2];
            if let Some(operands) = numbers(&comparison).filter(|_| is_stable)
                && results.is_open(place, comparison.kind)
                && attempts_left(results.failures(place)) > 0
            {
                open.push(Watched {
                    place,
                    kind: comparison.kind,
                    bytes: comparison.bytes,
                    operands,
                    changes: [vec![], vec![]],
                    grown: None,
                });
            }
        }
        open.sort_by_key(|watched| !results.is_one_sided(watched.place.site));
        open.truncate(MOST_WATCHED);
        let by_place = open.iter().enumerate().map(|(index, watched)| (watched.place, index));
        let most = open.iter().map(|watched| watched.place.site as usize + 1).max().unwrap_or(0);
        let mut watch = Self { by_place: by_place.collect(), sites: vec![false; most], all: open };
        for watched in &watch.all {
            watch.sites[watched.place.site as usize] = true;
        }
        Ok((!watch.all.is_empty()).then_some(watch))
    }

    /// Calls `see` for each watched comparison of a run with its operands. Returns how many there were.
    fn look(&self, log: ComparisonLog<'_>, mut see: impl FnMut(usize, [u64; 2])) -> usize {
        let (mut count, mut occurrences) = (0, Occurrences::default());
        for comparison in log.iter() {
            if self.sites.get(comparison.site as usize) != Some(&true) {
                continue;
            }
            let place = occurrences.place(&comparison);
            if let (Some(index), Some(operands)) = (self.by_place.get(&place), numbers(&comparison))
            {
                count += 1;
                see(*index, operands);
            }
        }
        count
    }

    /// The operands that something moves: those of open sites first, then those that few bytes move.
    fn dependents<D: Door>(self, door: &D) -> Vec<Dependent> {
        let mut dependents = Vec::new();
        for Watched { place, kind, bytes, operands, changes, grown } in self.all {
            for (side, changes) in changes.into_iter().enumerate() {
                let grown = grown.map(|grown| grown[side]).filter(|grown| *grown != operands[side]);
                if !changes.is_empty() || grown.is_some() {
                    dependents.push(Dependent {
                        place,
                        kind,
                        bytes,
                        side,
                        operands,
                        changes,
                        grown,
                    });
                }
            }
        }
        let results = &door.fuzzer().results;
        dependents.sort_by_cached_key(|dependent| {
            let is_one_sided = results.is_one_sided(dependent.place.site);
            (!is_one_sided, dependent.movers().len(), dependent.place)
        });
        let mut alike: HashMap<_, usize> = HashMap::new();
        dependents.retain(|dependent| {
            let count = alike
                .entry((dependent.place.site, dependent.side, dependent.movers()))
                .or_default();
            *count += 1;
            *count <= MOST_ALIKE
        });
        dependents
    }
}

/// Notes which bytes move what is watched. False if the turn is to end.
fn probe<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    watch: &mut Watch,
    limit: Limit,
) -> Result<bool, D::Error> {
    let origin = origin(id, "copy");
    let mut left = MOST_PROBES;
    if input.len() < door.fuzzer().mutation.max_len {
        let mut longer = [input, &input[input.len().saturating_sub(1)..]].concat();
        let mut seen = Vec::new();
        logged(door, origin, &mut longer, |log| {
            seen.clear();
            watch.look(log, |index, operands| seen.push((index, operands)))
        })?;
        seen.into_iter().for_each(|(index, operands)| watch.all[index].grown = Some(operands));
    }
    let mut bytes = input.to_vec();
    for change in PROBES {
        let mut parts = VecDeque::new();
        parts.push_back(0..input.len());
        while let Some(part) = parts.pop_front() {
            if left == 0 || limit.is_reached(door) {
                return Ok(true);
            }
            if door.between_batches()? {
                return Ok(false);
            }
            bytes.clear();
            bytes.extend_from_slice(input);
            bytes[part.clone()].iter_mut().for_each(|byte| *byte = change(*byte));
            if bytes == *input {
                continue;
            }
            let changed = part.clone().next().filter(|_| part.len() == 1).map(|at| bytes[at]);
            left -= 1;
            let mut moved = Vec::new();
            let all = &watch.all;
            let count = logged(door, origin, &mut bytes, |log| {
                moved.clear();
                watch.look(log, |index, operands| {
                    if all[index].operands != operands {
                        moved.push((index, operands));
                    }
                })
            })?;
            if let Some(byte) = changed {
                for (index, operands) in moved {
                    let Watched { operands: before, changes, .. } = &mut watch.all[index];
                    for side in 0..2 {
                        if operands[side] != before[side] {
                            let value = operands[side];
                            changes[side].push(Change { at: part.start, byte, value });
                        }
                    }
                }
            } else if !moved.is_empty() || count < watch.all.len() {
                let middle = part.start + part.len() / 2;
                parts.extend([part.start..middle, middle..part.end]);
            }
        }
    }
    Ok(true)
}

enum Solved {
    By {
        bytes: Vec<u8>,
        op: &'static str,
    },
    Not,
    /// The turn is to end.
    TurnOver,
}

/// What has failed is tried again, because another seed may be nearer, but less.
fn attempts_left(failures: u32) -> usize {
    depend::MOST_ATTEMPTS.checked_shr(2 * failures).unwrap_or(0)
}

/// Runs attempts of the solvers until one turns the comparison.
fn solve<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    dependent: &Dependent,
    limit: Limit,
) -> Result<Solved, D::Error> {
    let mutation = &door.fuzzer().mutation;
    let (lengths, max_len) = (mutation.min_len..=mutation.max_len, mutation.max_len);
    let known = door.fuzzer().results.of(dependent.place).to_vec();
    let mut left = attempts_left(door.fuzzer().results.failures(dependent.place));
    let mut extensions = MOST_EXTENSIONS;
    let (mut solved, mut failure) = (Solved::Not, None);
    let mut run = |bytes: &[u8], op: &'static str| {
        if limit.is_reached(door) || left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        if !lengths.contains(&bytes.len()) {
            return ControlFlow::Continue(None);
        }
        let mut bytes = bytes.to_vec();
        let mut seen = attempt(door, (id, op), &mut bytes, dependent.place, &known);
        if matches!(seen, Ok(Some((None, false)))) && extensions > 0 {
            extensions -= 1;
            extend(door, &mut bytes);
            let longer = attempt(door, (id, op), &mut bytes, dependent.place, &known);
            // Operands of a longer input say nothing of this one.
            seen = longer.map(|seen| seen.map(|(_, is_new)| (None, is_new)));
        }
        match seen {
            Ok(Some((operands, false))) => return ControlFlow::Continue(operands),
            Ok(Some((_, true))) => solved = Solved::By { bytes, op },
            Ok(None) => solved = Solved::TurnOver,
            Err(error) => failure = Some(error),
        }
        ControlFlow::Break(())
    };
    let _ = depend::solve(input, dependent, max_len, &mut run);
    failure.map_or(Ok(solved), Err)
}

/// One run: the operands at the place, and whether it came to a new result. None if the turn is to end.
#[expect(clippy::type_complexity, reason = "two facts of one run, used once")]
fn attempt<D: Door>(
    door: &mut D,
    (id, op): (SeedId, &'static str),
    bytes: &mut Vec<u8>,
    place: Place,
    known: &[u32],
) -> Result<Option<(Option<[u64; 2]>, bool)>, D::Error> {
    if door.between_batches()? {
        return Ok(None);
    }
    let (seen, log) = logged(door, origin(id, op), bytes, |log| {
        let mut of_site = log.iter().filter(|comparison| comparison.site == place.site);
        let seen = of_site.nth(place.occurrence as usize);
        let is_new = seen.is_some_and(|comparison| !known.contains(&comparison.result()));
        (seen.and_then(|comparison| numbers(&comparison)), is_new.then(|| log.to_own()))
    })?;
    if let Some(log) = &log {
        door.fuzzer_mut().results.learn(log.view());
    }
    Ok(Some((seen, log.is_some())))
}
