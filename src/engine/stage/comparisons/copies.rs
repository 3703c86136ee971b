//! Operands that are copies of bytes of the input (input-to-state correspondence, see [`edits`]).
//!
//! Bytes that decide nothing are replaced by others of their kind, as long as the path through the comparisons stays
//! the same. The value of an operand in this colored run locates its copy; the other operand of the plain run
//! replaces it, in every width, byte order and spelling. All edits run as usual; those for open comparisons run with
//! a log as well.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::super::batches::run_producer;
use super::super::produce::{Materials, Producer, Tools};
use super::super::repair;
use super::super::{StageEnd, Turn};
use super::ask::Ask;
use super::restore::{comes_to, restore};
use super::{
    Base, Limit, MOST_EXTENSIONS, comes_equal, extend, logged, logged_to_end, origin, settled,
    try_out,
};
use crate::corpus::{Origin, Step};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::Host;
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::foreign::Made;
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Left, Purpose};
use ffuzz_comparisons::input_to_state::{Edit, Logged, colorize, edits};
use ffuzz_comparisons::lengths::with_lengths;
use ffuzz_comparisons::log::{ComparisonKind, ComparisonLog, OwnLog};

/// Maximum number of runs for coloring. A part that decides something is halved, so this is enough for some forty
/// deciding bytes.
const MOST_COLORIZATIONS: usize = 512;
/// Maximum number of edits of one input tried with the log.
const MOST_TRIED: usize = 512;
/// Maximum number of flipping inputs kept from one input.
const MOST_FLIPPING: usize = 16;
/// Maximum number of inputs edited for one comparison without effect, if the log does not show all results.
const MOST_FRUITLESS: u32 = 8;

/// Runs all edits of an input. Returns the inputs that flip a comparison, even if they do not become seeds: the
/// compiler may have merged several comparisons into one branch. Also returns the colored input, see [`Base`].
pub(super) async fn flip<H: Host>(ask: &Ask<H>, input: &Rc<[u8]>) -> (Vec<Vec<u8>>, Rc<[u8]>) {
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

/// Runs an input with its log. Returns the log and the possible fields to repair.
fn begin<H: Host>(
    turn: &mut Turn<'_, H>,
    input: &[u8],
) -> Result<(OwnLog, repair::Suspects), H::Error> {
    let log = settled(turn, input)?;
    turn.shared.logs.results.learn(log.view());
    let (id, fuzzer) = (turn.id, turn.door.fuzzer_mut());
    // Blockers refer to the files of seeds; other inputs, such as a longer one, have none.
    if !log.view().is_partial() && *fuzzer.corpus[id].data == *input {
        fuzzer.blockers.add((id.0 as usize, input), log.view());
    }
    let suspects = repair::suspects(turn, input, log.view());
    Ok((log, suspects))
}

/// Colors an input as far as its path stays the same. Returns the colored input and its log.
async fn color<H: Host>(ask: &Ask<H>, input: &[u8], log: &OwnLog) -> (Rc<[u8]>, OwnLog) {
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

/// All edits derived from the two runs, and those to try with the log.
fn choose<H: Host>(
    turn: &Turn<'_, H>,
    (input, log): (&[u8], &OwnLog),
    (colored, colored_log): (&[u8], &OwnLog),
) -> (Vec<Edit>, VecDeque<Edit>) {
    let (log, colored_log) = (log.view(), colored_log.view());
    let messages = turn.door.fuzzer().mutation.messages;
    let run = Logged { input, log, colored, colored_log, messages };
    let results = &turn.shared.logs.results;
    // A switch remains open while it has cases.
    let is_left = |place, kind| {
        let is_shown = !log.is_partial() || kind == ComparisonKind::Text;
        let is_left = is_shown || results.edits_without_effect(place) < MOST_FRUITLESS;
        is_left && (kind == ComparisonKind::Switch || results.is_open(place, kind))
    };
    let lengths = turn.shared.lengths_in(&turn.door.fuzzer().corpus, turn.id, input);
    let edits = with_lengths(edits(run, is_left), input, &lengths);
    let is_one_sided = |edit: &&Edit| results.is_one_sided(edit.place.key);
    // A known case may also lead to new code, depending on the cases before it.
    let is_open = |edit: &&Edit| {
        edit.kind == ComparisonKind::Switch || results.is_open(edit.place, edit.kind)
    };
    let first = edits.iter().filter(is_one_sided);
    let others = edits.iter().filter(|edit| !is_one_sided(edit) && is_open(edit));
    let chosen = first.chain(others).take(MOST_TRIED).cloned().collect();
    (edits, chosen)
}

/// Records the positions of copies of operands as deciding bytes.
fn note_bytes<H: Host>(turn: &mut Turn<'_, H>, input: &[u8], edits: &[Edit]) {
    let (id, Fuzzer { corpus, blockers, .. }) = (turn.id, turn.door.fuzzer_mut());
    if corpus[id].data.as_ref() != input {
        return;
    }
    for Edit { at, removed, place, .. } in edits {
        blockers.note_bytes(place.site, id.0 as usize, *at..at + removed);
    }
}

/// Tries edits with the log. Returns the inputs with which a comparison has a new result.
async fn try_with_log<H: Host>(
    ask: &Ask<H>,
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
        let order = move |turn: &mut Turn<'_, H>| {
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

/// Result of an edit.
#[derive(Default)]
struct Tried {
    /// True if the edit was run with a log that omits equal integers.
    is_partial: bool,
    /// True if the edit was repeated with further changes.
    is_extended: bool,
    /// The input with a new result of a comparison.
    flips: Option<Vec<u8>>,
}

/// Tries an edit with the log. `is_done`: another edit has already flipped the comparison.
fn try_edit<H: Host>(
    turn: &mut Turn<'_, H>,
    (input, base): (&[u8], &Base),
    edit: &Edit,
    (is_done, may_extend): (bool, bool),
) -> Result<Tried, H::Error> {
    let fuzzer = turn.door.fuzzer();
    let is_partial = fuzzer.has_partial_log();
    let lengths = fuzzer.mutation.min_len..=fuzzer.mutation.max_len;
    let was_open = turn.shared.logs.results.is_open(edit.place, edit.kind);
    let mut bytes = Vec::new();
    edit.apply(input, &mut bytes);
    let is_wanted = was_open || edit.kind == ComparisonKind::Switch;
    // With a partial log, a flipped comparison needs no further edits.
    if !lengths.contains(&bytes.len()) || !is_wanted || is_partial && is_done {
        return Ok(Tried::default());
    }
    turn.door.fuzzer_mut().blockers.note_attempt(edit.place.site);
    let (mut edited, origin) = (bytes.clone(), origin(turn.id, edit.op));
    let own_copy = |log: ComparisonLog<'_>| log.own_copy();
    let (mut log, mut ends) = logged_to_end(turn, origin, &mut bytes, own_copy)?;
    let is_extended = may_extend && !is_partial && !comes_to(log.view(), edit.place);
    // Keep the edited range.
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
            // The replaced bytes may be needed as well.
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
        // The usual run of the edit alone would not show the effect.
        try_out(turn, Candidate { bytes: bytes.clone(), origin })?;
    }
    Ok(Tried { is_partial, is_extended, flips: flips.then_some(bytes) })
}

/// Runs all edits without the log.
async fn run_all<H: Host>(ask: &Ask<H>, input: &Rc<[u8]>, edits: Vec<Edit>) {
    let mut rest = Some((edits, 0, Duration::ZERO));
    while let Some((edits, done, spent)) = rest {
        let input = input.clone();
        let order = move |turn: &mut Turn<'_, H>, limit: Limit| {
            let before = turn.door.fuzzer().target().spent().whole();
            let mut solutions = Solutions {
                input,
                edits,
                done,
                spent,
                budget: limit.budget,
                left: turn.door.left(Purpose::Comparisons),
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

/// The input with all edits that keep its length. Compilers merge comparisons that have to flip at the same time,
/// such as the parts of a short block of memory. None if there are fewer than two edits.
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
    /// Time spent in earlier slices.
    pub(super) spent: Duration,
    pub(super) first: usize,
    /// Share of the stage left for this slice.
    pub(super) left: Left,
    /// True if the share was used up before the last edit.
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
