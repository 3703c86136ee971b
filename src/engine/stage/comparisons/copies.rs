//! Operands that are copies of bytes of the input (input-to-state correspondence, see [`edits`]).
//!
//! Bytes that decide nothing get others of their kind, as long as the path through the comparisons stays the same. What
//! an operand is in the colored run tells where its copy stands; the other operand of the plain run is put there, in
//! every width, order of bytes and spelling. All edits run as usual; those for open comparisons run with a log as well.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::super::batches::run_producer;
use super::super::produce::{Materials, Producer, Tools};
use super::super::repair;
use super::super::share::left;
use super::super::{StageEnd, Turn};
use super::ask::Ask;
use super::restore::{comes_to, restore};
use super::{
    Base, Limit, MOST_EXTENSIONS, comes_equal, extend, logged, logged_to_end, origin, settled,
    try_out,
};
use crate::comparison::{ComparisonKind, ComparisonLog, OwnLog};
use crate::corpus::{Origin, Step};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::Door;
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::foreign::Made;
use crate::mutate::lengths::with_lengths;
use crate::mutate::solve::{Edit, Logged, colorize, edits};
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Left, Purpose};

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
/// With them comes the colored input, see [`Base`].
pub(super) async fn flip<D: Door>(ask: &Ask<D>, input: &Rc<[u8]>) -> (Vec<Vec<u8>>, Rc<[u8]>) {
    let of = input.clone();
    let (log, suspects) = ask.order(move |turn| begin(turn, &of)).await;
    repair::learn(ask, input, suspects).await;
    let (colored, colored_log) = color(ask, input, &log).await;
    let base = Rc::new(Base::of(input, colored.clone(), log));
    let (of, log, its_colored) = (input.clone(), base.clone(), colored.clone());
    let (edits, chosen) = ask
        .order(move |turn| {
            let edits = choose(turn, (&of, &log.log), (&its_colored, &colored_log));
            note_bytes(turn, &of, &edits.0);
            Ok(edits)
        })
        .await;
    let flipping = try_with_log(ask, (input, &base), chosen).await;
    run_all(ask, input, edits).await;
    (flipping, colored)
}

/// Runs an input with its log. Returns that, and what may be a field that has to be repaired.
fn begin<D: Door>(
    turn: &mut Turn<'_, D>,
    input: &[u8],
) -> Result<(OwnLog, repair::Suspects), D::Error> {
    let log = settled(turn, input)?;
    turn.shared.logs.results.learn(log.view());
    let (id, fuzzer) = (turn.id, turn.door.fuzzer_mut());
    // Of other inputs, such as a longer one, there is no file that shows it.
    if !log.view().is_partial() && *fuzzer.corpus[id].data == *input {
        fuzzer.blockers.add((id.0 as usize, input), log.view());
    }
    let suspects = repair::suspects(turn, input, log.view());
    Ok((log, suspects))
}

/// Colors an input as far as it takes the same path. Returns it with its log.
async fn color<D: Door>(ask: &Ask<D>, input: &[u8], log: &OwnLog) -> (Rc<[u8]>, OwnLog) {
    let path = log.view().path();
    let (mut colored, mut colored_log): (Rc<[u8]>, _) = (input.into(), log.clone());
    let mut parts = VecDeque::from_iter(std::iter::once(0..input.len()));
    for _ in 0..MOST_COLORIZATIONS {
        let Some(part) = parts.pop_front().filter(|_| !ask.is_over()) else { break };
        let (of, at) = (colored.clone(), part.clone());
        let seen = ask.order(move |turn| {
            let mut candidate = of.to_vec();
            colorize(&mut candidate[at], &mut turn.door.fuzzer_mut().rng);
            if turn.door.fuzzer().mutation.messages {
                messages::keep_words(&of, &mut candidate);
            }
            if candidate == *of {
                return Ok(None);
            }
            let origin = origin(turn.id, "copy");
            let same = |log: ComparisonLog<'_>| (log.path() == path).then(|| log.own_copy());
            let log = logged(turn, origin, &mut candidate, same)?;
            Ok(Some((candidate, log)))
        });
        match seen.await {
            Some((candidate, Some(log))) => (colored, colored_log) = (candidate.into(), log),
            Some((_, None)) if part.len() > 1 => {
                let middle = part.start + part.len() / 2;
                parts.extend([part.start..middle, middle..part.end]);
            }
            _ => {}
        }
    }
    (colored, colored_log)
}

/// The edits that the runs of the input and of the colored one show, and those that are tried with the log.
fn choose<D: Door>(
    turn: &Turn<'_, D>,
    (input, log): (&[u8], &OwnLog),
    (colored, colored_log): (&[u8], &OwnLog),
) -> (Vec<Edit>, VecDeque<Edit>) {
    let (log, colored_log) = (log.view(), colored_log.view());
    let messages = turn.door.fuzzer().mutation.messages;
    let run = Logged { input, log, colored, colored_log, messages };
    let results = &turn.shared.logs.results;
    // A switch is open as long as it has cases.
    let is_left = |place, kind| {
        let is_shown = !log.is_partial() || kind == ComparisonKind::Text;
        let is_left = is_shown || results.edits_without_effect(place) < MOST_FRUITLESS;
        is_left && (kind == ComparisonKind::Switch || results.is_open(place, kind))
    };
    let lengths = turn.shared.lengths_in(&turn.door.fuzzer().corpus, turn.id, input);
    let edits = with_lengths(edits(run, is_left), input, &lengths);
    let is_one_sided = |edit: &&Edit| results.is_one_sided(edit.place.key);
    // Also a case that is known may lead to something new, by what the program remembers of the cases before.
    let is_open = |edit: &&Edit| {
        edit.kind == ComparisonKind::Switch || results.is_open(edit.place, edit.kind)
    };
    let first = edits.iter().filter(is_one_sided);
    let others = edits.iter().filter(|edit| !is_one_sided(edit) && is_open(edit));
    let chosen = first.chain(others).take(MOST_TRIED).cloned().collect();
    (edits, chosen)
}

/// Where copies of operands stand is what decides their comparisons.
fn note_bytes<D: Door>(turn: &mut Turn<'_, D>, input: &[u8], edits: &[Edit]) {
    let (id, Fuzzer { corpus, blockers, .. }) = (turn.id, turn.door.fuzzer_mut());
    if corpus[id].data.as_ref() != input {
        return;
    }
    for Edit { at, removed, place, .. } in edits {
        blockers.note_bytes(place.site, id.0 as usize, *at..at + removed);
    }
}

/// Looks for inputs that bring an open comparison to a new result.
async fn try_with_log<D: Door>(
    ask: &Ask<D>,
    (input, base): (&Rc<[u8]>, &Rc<Base>),
    mut chosen: VecDeque<Edit>,
) -> Vec<Vec<u8>> {
    let (mut flipping, mut extensions) = (Vec::new(), MOST_EXTENSIONS);
    let (mut joint, mut tried): (Vec<Edit>, _) = (Vec::new(), BTreeSet::new());
    while flipping.len() < MOST_FLIPPING && !ask.is_over() {
        let Some(edit) = chosen.pop_front() else { break };
        let (input, base, place) = (input.clone(), base.clone(), edit.place);
        let is_done = joint.iter().any(|done| done.place == place);
        let may_extend = extensions > 0;
        let order = move |turn: &mut Turn<'_, D>| {
            let tried = try_edit(turn, (&input, &base), &edit, (is_done, may_extend))?;
            Ok((edit, tried))
        };
        let (edit, Tried { is_partial, is_extended, flips }) = ask.order(order).await;
        if is_partial {
            tried.insert(place);
        }
        extensions -= usize::from(is_extended);
        if let Some(bytes) = flips {
            flipping.push(bytes);
            joint.push(edit);
        }
    }
    tried.retain(|place| joint.iter().all(|edit| edit.place != *place));
    let all = together(input, &joint).filter(|all| !flipping.contains(all));
    if all.is_none() && tried.is_empty() {
        return flipping;
    }
    let together = ask.order(move |turn| {
        tried.iter().for_each(|place| turn.shared.logs.results.had_no_effect(*place));
        let Some(mut all) = all else { return Ok(None) };
        let origin = origin(turn.id, "joint");
        let (log, ends) = logged_to_end(turn, origin, &mut all, |log| log.own_copy())?;
        turn.shared.logs.results.learn(log.view());
        if ends {
            try_out(turn, Candidate { bytes: all.clone(), origin })?;
        }
        Ok(Some(all).filter(|_| ends))
    });
    flipping.extend(together.await);
    flipping
}

/// What an edit has done.
#[derive(Default)]
struct Tried {
    /// There was a run, whose log may not show what it comes to.
    is_partial: bool,
    /// It was made again with something else that may be needed.
    is_extended: bool,
    /// The input that brings the comparison to a new result.
    flips: Option<Vec<u8>>,
}

/// `is_done`: another edit has flipped the comparison.
fn try_edit<D: Door>(
    turn: &mut Turn<'_, D>,
    (input, base): (&[u8], &Base),
    edit: &Edit,
    (is_done, may_extend): (bool, bool),
) -> Result<Tried, D::Error> {
    let fuzzer = turn.door.fuzzer();
    let is_partial = fuzzer.has_partial_log();
    let lengths = fuzzer.mutation.min_len..=fuzzer.mutation.max_len;
    let was_open = turn.shared.logs.results.is_open(edit.place, edit.kind);
    let mut bytes = Vec::new();
    edit.apply(input, &mut bytes);
    let is_wanted = was_open || edit.kind == ComparisonKind::Switch;
    // What is done would be closed now.
    if !lengths.contains(&bytes.len()) || !is_wanted || is_partial && is_done {
        return Ok(Tried::default());
    }
    turn.door.fuzzer_mut().blockers.note_attempt(edit.place.site);
    let (mut edited, origin) = (bytes.clone(), origin(turn.id, edit.op));
    let own_copy = |log: ComparisonLog<'_>| log.own_copy();
    let (mut log, mut ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
    let is_extended = may_extend && !is_partial && !comes_to(log.view(), edit.place);
    // What was edited stays.
    let pinned = edit.at..edit.at + edit.inserted.len();
    let of = (base, edit.place);
    if is_extended
        && let Some(restored) = restore(turn, of, (&bytes, &log), (&[pinned], 0), edit.op)?
    {
        edited.clone_from(&bytes);
        (bytes, log, ends) = (restored.bytes, restored.log, restored.ends_well);
    } else if is_extended {
        edited.clone_from(&bytes);
        extend(turn, &mut bytes);
        (log, ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
        let is_longer = edit.removed > 0 && lengths.contains(&(input.len() + edit.inserted.len()));
        if is_longer && !comes_to(log.view(), edit.place) {
            // What it replaces may be needed as well.
            edit.insert(input, &mut bytes);
            (log, ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
        }
    }
    let place = (edit.place, edit.kind);
    let shows = is_partial
        && comes_equal(turn, (input, &base.counts), place, (log.view(), &bytes, origin))?;
    let results = &mut turn.shared.logs.results;
    let is_new = results.learn(log.view()) || shows;
    let flips = ends && (is_new || was_open && !results.is_open(edit.place, edit.kind));
    if flips && bytes != edited {
        // The edit alone will not show what it does.
        try_out(turn, Candidate { bytes: bytes.clone(), origin })?;
    }
    Ok(Tried { is_partial, is_extended, flips: flips.then_some(bytes) })
}

/// Runs all edits without the log.
async fn run_all<D: Door>(ask: &Ask<D>, input: &Rc<[u8]>, edits: Vec<Edit>) {
    let mut rest = Some((edits, 0, Duration::ZERO));
    while let Some((edits, done, spent)) = rest {
        let input = input.clone();
        let order = move |turn: &mut Turn<'_, D>, limit: Limit| {
            let before = turn.door.fuzzer().target().spent().whole();
            let mut solutions = Solutions {
                input,
                edits,
                done,
                spent,
                budget: limit.budget,
                left: left(turn.door, Purpose::Comparisons),
                first: done,
                is_paused: false,
            };
            let end = run_producer(turn, &mut solutions)?;
            let Solutions { edits, done, first, is_paused, .. } = solutions;
            let fuzzer = turn.door.fuzzer_mut();
            edits[first..done]
                .iter()
                .for_each(|edit| fuzzer.blockers.note_attempt(edit.place.site));
            let spent = spent + fuzzer.target().spent().whole().saturating_sub(before);
            Ok((is_paused && end == StageEnd::Finished).then_some((edits, done, spent)))
        };
        rest = ask.order_within(order).await;
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

/// Runs the edits of an input.
pub(super) struct Solutions {
    pub(super) input: Rc<[u8]>,
    pub(super) edits: Vec<Edit>,
    pub(super) done: usize,
    pub(super) budget: Budget,
    /// In earlier slices.
    pub(super) spent: Duration,
    pub(super) first: usize,
    /// Of the stage's share, for this slice.
    pub(super) left: Left,
    /// That is used up, and edits are left.
    pub(super) is_paused: bool,
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
