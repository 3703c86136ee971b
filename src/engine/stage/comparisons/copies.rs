//! Operands that are copies of bytes of the input (input-to-state correspondence, see [`edits`]).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::super::StageEnd;
use super::super::batches::run_producer;
use super::super::produce::{Materials, Producer, Tools};
use super::super::repair;
use super::{Limit, MOST_EXTENSIONS, comes_equal, extend, logged, origin, settled};
use crate::comparison::{ComparisonKind, ComparisonLog, Place, SiteCounts};
use crate::corpus::{Origin, SeedId, Step};
use crate::fuzzer::door::Door;
use crate::mutate::Candidate;
use crate::mutate::foreign::Made;
use crate::mutate::solve::{Edit, Logged, colorize, edits};
use crate::schedule::Budget;

/// Runs in which a part of the seed is colored. Halves of what decides something are tried again, so this is enough
/// for some forty bytes that do.
const MOST_COLORIZATIONS: usize = 512;
/// Edits of one input that are tried with the log.
const MOST_TRIED: usize = 512;
/// Inputs that turn something and are worked on, of one input.
const MOST_TURNING: usize = 16;
/// Inputs that are edited for one comparison without effect, where the log does not show all that it comes to.
const MOST_FRUITLESS: u32 = 8;

/// Runs all edits of an input, as usual runs. Those inputs that turn a comparison are returned, also if they show
/// nothing that makes them a seed: the compiler may have made one branch of several comparisons. None if the turn is
/// to end.
pub(super) fn turn<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    limit: Limit,
) -> Result<Option<Vec<Vec<u8>>>, D::Error> {
    let Some((edits, base)) = solutions(door, (id, input), limit)? else { return Ok(None) };
    let found = turning(door, (id, input), (&edits, &base), limit)?;
    let Some(turning) = found else { return Ok(None) };
    let mut solutions = Solutions { input: input.to_vec(), edits, done: 0, budget: limit.budget };
    let end = run_producer(door, id, &mut solutions)?;
    Ok((end != StageEnd::TurnOver).then_some(turning))
}

/// Runs an input with its log, and colored as far as it takes the same path. Also what it has logged. None if the turn
/// is to end.
fn solutions<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    limit: Limit,
) -> Result<Option<(Vec<Edit>, SiteCounts)>, D::Error> {
    let log = settled(door, (id, input))?;
    let fuzzer = door.fuzzer_mut();
    fuzzer.results.learn(log.view());
    if !log.view().is_partial() {
        fuzzer.blockers.add(id.0 as usize, log.view());
    }
    if repair::learn(door, input, log.view())? == StageEnd::TurnOver {
        return Ok(None);
    }
    let path = log.view().path();
    let (mut colored, mut colored_log) = (input.to_vec(), log.clone());
    let mut parts = VecDeque::new();
    parts.push_back(0..input.len());
    for _ in 0..MOST_COLORIZATIONS {
        let Some(part) = parts.pop_front().filter(|_| !limit.is_reached(door)) else { break };
        let mut candidate = colored.clone();
        if door.between_batches()? {
            return Ok(None);
        }
        colorize(&mut candidate[part.clone()], &mut door.fuzzer_mut().rng);
        if candidate == colored {
            continue;
        }
        let same = |log: ComparisonLog<'_>| (log.path() == path).then(|| log.to_own());
        let other = logged(door, origin(id, "copy"), &mut candidate, same)?;
        match other {
            Some(log) => (colored, colored_log) = (candidate, log),
            None if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([part.start..middle, middle..part.end]);
            }
            None => {}
        }
    }
    let (log, colored_log) = (log.view(), colored_log.view());
    let run = Logged { input, log, colored: &colored, colored_log };
    let results = &door.fuzzer().results;
    // A switch is open as long as it has cases.
    let is_open = |place, kind| {
        let is_shown = !log.is_partial() || kind == ComparisonKind::Text;
        let is_left = is_shown || results.edits_without_effect(place) < MOST_FRUITLESS;
        is_left && (kind == ComparisonKind::Switch || results.is_open(place, kind))
    };
    Ok(Some((edits(run, is_open), SiteCounts::of(log))))
}

/// Inputs that bring an open comparison to a new result. None if the turn is to end.
fn turning<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    (edits, base): (&[Edit], &SiteCounts),
    limit: Limit,
) -> Result<Option<Vec<Vec<u8>>>, D::Error> {
    let (mut turning, mut bytes, mut joint) = (Vec::new(), Vec::new(), Vec::<Edit>::new());
    let mut extensions = MOST_EXTENSIONS;
    let fuzzer = door.fuzzer();
    let is_partial = fuzzer.has_partial_log();
    let lengths = fuzzer.mutation.min_len..=fuzzer.mutation.max_len;
    let is_one_sided = |edit: &&Edit| fuzzer.results.is_one_sided(edit.place.site);
    // Also a case that is known may lead to something new, by what the program remembers of the cases before.
    let is_open = |edit: &&Edit| {
        edit.kind == ComparisonKind::Switch || fuzzer.results.is_open(edit.place, edit.kind)
    };
    let mut tried = BTreeSet::new();
    let first = edits.iter().filter(is_one_sided);
    let others = edits.iter().filter(|edit| !is_one_sided(edit) && is_open(edit));
    for edit in first.chain(others).take(MOST_TRIED).cloned().collect::<Vec<_>>() {
        if turning.len() >= MOST_TURNING || limit.is_reached(door) {
            break;
        }
        if door.between_batches()? {
            return Ok(None);
        }
        edit.apply(input, &mut bytes);
        let was_open = door.fuzzer().results.is_open(edit.place, edit.kind);
        if !lengths.contains(&bytes.len()) || !was_open && edit.kind != ComparisonKind::Switch {
            continue;
        }
        // Else it would be closed now.
        if is_partial && joint.iter().any(|done| done.place == edit.place) {
            continue;
        }
        let (mut edited, origin) = (bytes.clone(), origin(id, edit.op));
        let mut log = logged(door, origin, &mut bytes, |log| log.to_own())?;
        if extensions > 0 && !is_partial && !comes_to(log.view(), edit.place) {
            extensions -= 1;
            edited.clone_from(&bytes);
            extend(door, &mut bytes);
            log = logged(door, origin, &mut bytes, |log| log.to_own())?;
        }
        let shows = is_partial && {
            tried.insert(edit.place);
            let place = (edit.place, edit.kind);
            comes_equal(door, (input, base), place, (log.view(), &bytes, origin))?
        };
        let results = &mut door.fuzzer_mut().results;
        let is_new = results.learn(log.view()) || shows;
        if is_new || was_open && !results.is_open(edit.place, edit.kind) {
            if bytes != edited {
                // The edit alone will not show what it does.
                door.try_out(&Candidate { bytes: bytes.clone(), origin })?;
            }
            turning.push(bytes.clone());
            joint.push(edit);
        }
    }
    tried.retain(|place| joint.iter().all(|edit| edit.place != *place));
    tried.into_iter().for_each(|place| door.fuzzer_mut().results.had_no_effect(place));
    let all = together(input, &joint);
    if let Some(mut all) = all.filter(|all| !turning.contains(all)) {
        let origin = origin(id, "joint");
        let log = logged(door, origin, &mut all, |log| log.to_own())?;
        door.fuzzer_mut().results.learn(log.view());
        door.try_out(&Candidate { bytes: all.clone(), origin })?;
        turning.push(all);
    }
    Ok(Some(turning))
}

/// The input with all edits that leave its length as it is: a compiler joins comparisons that have to turn at once, such
/// as the parts of a short block of memory. None if there are no two.
fn together(input: &[u8], edits: &[Edit]) -> Option<Vec<u8>> {
    let mut bytes = input.to_vec();
    let fitting = edits.iter().filter(|edit| edit.removed == edit.inserted.len());
    let mut count = 0;
    for edit in fitting {
        bytes[edit.at..edit.at + edit.removed].copy_from_slice(&edit.inserted);
        count += 1;
    }
    (count > 1).then_some(bytes)
}

fn comes_to(log: ComparisonLog<'_>, place: Place) -> bool {
    let of_site = log.iter().filter(|comparison| comparison.site == place.site);
    of_site.count() > place.occurrence as usize
}

struct Solutions {
    input: Vec<u8>,
    edits: Vec<Edit>,
    done: usize,
    budget: Budget,
}

impl Producer for Solutions {
    fn name(&self) -> &'static str {
        "comparisons"
    }

    fn next(&mut self, from: &Materials<'_>, _: &mut Tools<'_>, out: &mut Candidate) -> Made {
        if self.budget.is_used(self.done as u64, from.spent) {
            return Made::Over;
        }
        let Some(edit) = self.edits.get(self.done) else { return Made::Over };
        self.done += 1;
        edit.apply(&self.input, &mut out.bytes);
        if !(from.min_len..=from.max_len).contains(&out.bytes.len()) {
            return Made::Nothing;
        }
        let pos = u32::try_from(edit.at).unwrap_or(u32::MAX);
        let step = Step::At { op: edit.op, pos, value: None, big_endian: false };
        out.origin = Origin { parent: from.seed, other: None, step, by: 0 };
        Made::Input
    }

    fn progress(&self, _: Duration) -> (u64, u64) {
        (self.done as u64, self.edits.len() as u64)
    }
}
