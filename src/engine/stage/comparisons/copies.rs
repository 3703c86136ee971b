//! Operands that are copies of bytes of the input (input-to-state correspondence, see [`edits`]).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::super::batches::run_producer;
use super::super::produce::{Materials, Producer, Tools};
use super::super::repair;
use super::super::{StageEnd, Turn};
use super::work::{Coloring, Copies, CopiesPhase, Editing};
use super::{
    Left, Limit, MOST_EXTENSIONS, Stop, comes_equal, extend, logged, logged_to_end, origin,
    settled, try_out,
};
use crate::comparison::{ComparisonKind, ComparisonLog, Place, SiteCounts};
use crate::corpus::{Origin, SeedId, Step};
use crate::fuzzer::door::Door;
use crate::fuzzer::{Effort, Fuzzer};
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::foreign::Made;
use crate::mutate::solve::{Edit, Logged, colorize, edits};
use crate::schedule::Budget;

/// Runs in which a part of the seed is colored. Halves of what decides something are tried again, so this is enough
/// for some forty bytes that do.
const MOST_COLORIZATIONS: usize = 512;
/// Edits of one input that are tried with the log.
const MOST_TRIED: usize = 512;
/// Inputs that flip something and are worked on, of one input.
const MOST_FLIPPING: usize = 16;
/// Inputs that are edited for one comparison without effect, where the log does not show all that it comes to.
const MOST_FRUITLESS: u32 = 8;

/// Runs all edits of an input, as usual runs. Those inputs that flip a comparison are returned, also if they show
/// nothing that makes them a seed: the compiler may have made one branch of several comparisons.
pub(super) fn flip<D: Door>(
    turn: &mut Turn<'_, D>,
    id: SeedId,
    Copies { input, phase }: &mut Copies,
    limit: Limit,
) -> Result<Vec<Vec<u8>>, Stop<D::Error>> {
    loop {
        *phase = match phase {
            CopiesPhase::Begun => begin(turn, (id, input), limit)?,
            CopiesPhase::Learning(log, learning) => {
                repair::learn(turn, input, learning, |turn| limit.check(turn))?;
                CopiesPhase::Coloring(Coloring {
                    colored: input.clone(),
                    colored_log: log.clone(),
                    log: std::mem::take(log),
                    parts: VecDeque::from_iter(std::iter::once(0..input.len())),
                    runs_left: MOST_COLORIZATIONS,
                })
            }
            CopiesPhase::Coloring(coloring) => {
                color(turn, id, coloring, limit)?;
                let editing = edit(turn, input, coloring);
                note_bytes(turn, (id, input), &editing.edits);
                CopiesPhase::Editing(editing)
            }
            CopiesPhase::Editing(editing) => {
                if !editing.is_tried {
                    try_with_log(turn, (id, input), editing, limit)?;
                }
                run_all(turn, input, editing, limit)?;
                return Ok(std::mem::take(&mut editing.flipping));
            }
        };
    }
}

/// Runs an input with its log.
fn begin<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    limit: Limit,
) -> Result<CopiesPhase, Stop<D::Error>> {
    limit.check(turn)?;
    let log = settled(turn, (id, input))?;
    turn.shared.logs.results.learn(log.view());
    let fuzzer = turn.door.fuzzer_mut();
    // Of other inputs, such as a longer one, there is no file that shows it.
    if !log.view().is_partial() && *fuzzer.corpus[id].data == *input {
        fuzzer.blockers.add(id.0 as usize, log.view());
    }
    let learning = repair::suspects(turn, input, log.view());
    Ok(CopiesPhase::Learning(log, learning))
}

/// Colors an input as far as it takes the same path.
fn color<D: Door>(
    turn: &mut Turn<'_, D>,
    id: SeedId,
    Coloring { log, colored, colored_log, parts, runs_left }: &mut Coloring,
    limit: Limit,
) -> Result<(), Stop<D::Error>> {
    let path = log.view().path();
    while *runs_left > 0 && !limit.is_reached(turn) {
        let Some(part) = parts.front() else { break };
        limit.check(turn)?;
        let mut candidate = colored.clone();
        colorize(&mut candidate[part.clone()], &mut turn.door.fuzzer_mut().rng);
        if turn.door.fuzzer().mutation.messages {
            messages::keep_words(colored, &mut candidate);
        }
        *runs_left -= 1;
        let Some(part) = parts.pop_front().filter(|_| candidate != *colored) else { continue };
        let same = |log: ComparisonLog<'_>| (log.path() == path).then(|| log.own_copy());
        let other = logged(turn, origin(id, "copy"), &mut candidate, same)?;
        match other {
            Some(log) => (*colored, *colored_log) = (candidate, log),
            None if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([part.start..middle, middle..part.end]);
            }
            None => {}
        }
    }
    Ok(())
}

/// The edits that both runs show, and which of them are tried with the log.
fn edit<D: Door>(turn: &Turn<'_, D>, input: &[u8], coloring: &Coloring) -> Editing {
    let (log, colored_log) = (coloring.log.view(), coloring.colored_log.view());
    let messages = turn.door.fuzzer().mutation.messages;
    let run = Logged { input, log, colored: &coloring.colored, colored_log, messages };
    let results = &turn.shared.logs.results;
    // A switch is open as long as it has cases.
    let is_left = |place, kind| {
        let is_shown = !log.is_partial() || kind == ComparisonKind::Text;
        let is_left = is_shown || results.edits_without_effect(place) < MOST_FRUITLESS;
        is_left && (kind == ComparisonKind::Switch || results.is_open(place, kind))
    };
    let edits = edits(run, is_left);
    let is_one_sided = |edit: &&Edit| results.is_one_sided(edit.place.site);
    // Also a case that is known may lead to something new, by what the program remembers of the cases before.
    let is_open = |edit: &&Edit| {
        edit.kind == ComparisonKind::Switch || results.is_open(edit.place, edit.kind)
    };
    let first = edits.iter().filter(is_one_sided);
    let others = edits.iter().filter(|edit| !is_one_sided(edit) && is_open(edit));
    let chosen = first.chain(others).take(MOST_TRIED).cloned().collect();
    Editing {
        base: SiteCounts::of(log),
        edits,
        chosen,
        extensions: MOST_EXTENSIONS,
        flipping: Vec::new(),
        joint: Vec::new(),
        tried: BTreeSet::new(),
        is_tried: false,
        done: 0,
        spent: Duration::ZERO,
    }
}

/// Where copies of operands stand is what decides their comparisons.
fn note_bytes<D: Door>(turn: &mut Turn<'_, D>, (id, input): (SeedId, &[u8]), edits: &[Edit]) {
    let Fuzzer { corpus, blockers, .. } = turn.door.fuzzer_mut();
    if corpus[id].data.as_ref() != input {
        return;
    }
    for Edit { at, removed, place, .. } in edits {
        blockers.note_bytes(place.site, id.0 as usize, *at..at + removed);
    }
}

/// Looks for inputs that bring an open comparison to a new result.
fn try_with_log<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    editing: &mut Editing,
    limit: Limit,
) -> Result<(), Stop<D::Error>> {
    let Editing { base, chosen, extensions, flipping, joint, tried, is_tried, .. } = editing;
    let mut bytes = Vec::new();
    let fuzzer = turn.door.fuzzer();
    let is_partial = fuzzer.has_partial_log();
    let lengths = fuzzer.mutation.min_len..=fuzzer.mutation.max_len;
    while flipping.len() < MOST_FLIPPING && !chosen.is_empty() && !limit.is_reached(turn) {
        limit.check(turn)?;
        let Some(edit) = chosen.pop_front() else { break };
        edit.apply(input, &mut bytes);
        let was_open = turn.shared.logs.results.is_open(edit.place, edit.kind);
        if !lengths.contains(&bytes.len()) || !was_open && edit.kind != ComparisonKind::Switch {
            continue;
        }
        // Else it would be closed now.
        if is_partial && joint.iter().any(|done| done.place == edit.place) {
            continue;
        }
        turn.door.fuzzer_mut().blockers.note_attempt(edit.place.site);
        let (mut edited, origin) = (bytes.clone(), origin(id, edit.op));
        let own_copy = |log: ComparisonLog<'_>| log.own_copy();
        let (mut log, mut ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
        if *extensions > 0 && !is_partial && !comes_to(log.view(), edit.place) {
            *extensions -= 1;
            edited.clone_from(&bytes);
            extend(turn, &mut bytes);
            (log, ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
            let is_longer =
                edit.removed > 0 && lengths.contains(&(input.len() + edit.inserted.len()));
            if is_longer && !comes_to(log.view(), edit.place) {
                // What it replaces may be needed as well.
                edit.insert(input, &mut bytes);
                (log, ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
            }
        }
        let shows = is_partial && {
            tried.insert(edit.place);
            let place = (edit.place, edit.kind);
            comes_equal(turn, (input, base), place, (log.view(), &bytes, origin))?
        };
        let results = &mut turn.shared.logs.results;
        let is_new = results.learn(log.view()) || shows;
        if ends && (is_new || was_open && !results.is_open(edit.place, edit.kind)) {
            if bytes != edited {
                // The edit alone will not show what it does.
                try_out(turn, Candidate { bytes: bytes.clone(), origin })?;
            }
            flipping.push(bytes.clone());
            joint.push(edit);
        }
    }
    tried.retain(|place| joint.iter().all(|edit| edit.place != *place));
    tried.iter().for_each(|place| turn.shared.logs.results.had_no_effect(*place));
    *is_tried = true;
    let all = together(input, joint);
    if let Some(mut all) = all.filter(|all| !flipping.contains(all)) {
        let origin = origin(id, "joint");
        let (log, ends) = logged_to_end(turn, origin, &mut all, |log| log.own_copy())?;
        turn.shared.logs.results.learn(log.view());
        if ends {
            try_out(turn, Candidate { bytes: all.clone(), origin })?;
            flipping.push(all);
        }
    }
    Ok(())
}

/// Runs all edits without the log.
fn run_all<D: Door>(
    turn: &mut Turn<'_, D>,
    input: &[u8],
    editing: &mut Editing,
    limit: Limit,
) -> Result<(), Stop<D::Error>> {
    limit.check(turn)?;
    let before = turn.door.fuzzer().target().spent().whole();
    let mut solutions = Solutions {
        input: input.to_vec(),
        edits: std::mem::take(&mut editing.edits),
        done: editing.done,
        spent: editing.spent,
        budget: limit.budget,
        left: limit.left(turn),
        first: editing.done,
        is_paused: false,
    };
    let end = run_producer(turn, &mut solutions)?;
    for edit in &solutions.edits[solutions.first..solutions.done] {
        turn.door.fuzzer_mut().blockers.note_attempt(edit.place.site);
    }
    editing.edits = solutions.edits;
    editing.done = solutions.done;
    editing.spent += turn.door.fuzzer().target().spent().whole().saturating_sub(before);
    match end {
        StageEnd::TurnOver => Err(Stop::TurnOver),
        StageEnd::Finished if solutions.is_paused => Err(Stop::Spent),
        StageEnd::Finished => Ok(()),
    }
}

/// The input with all edits that leave its length as it is: a compiler joins comparisons that have to flip at once, such
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
    /// In earlier slices.
    spent: Duration,
    first: usize,
    /// Of the stage's share, for this slice.
    left: Left,
    /// That is used up, and edits are left.
    is_paused: bool,
}

impl Producer for Solutions {
    fn name(&self) -> &'static str {
        "comparisons"
    }

    fn next(&mut self, from: &Materials<'_>, _: &mut Tools<'_>, out: &mut Candidate) -> Made {
        if self.budget.is_used(self.done as u64, self.spent + from.spent) {
            return Made::Over;
        }
        let Some(edit) = self.edits.get(self.done) else { return Made::Over };
        let done = Effort { runs: (self.done - self.first) as u64, time: from.spent };
        self.is_paused = self.left.is_used_by(done);
        if self.is_paused {
            return Made::Over;
        }
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
