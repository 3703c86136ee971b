//! Operands that are copies of bytes of the input (input-to-state correspondence, see [`edits`]).
//!
//! Bytes that decide nothing are replaced by others of their kind, as long as the path through the comparisons stays
//! the same. The value of an operand in this colored run locates its copy; the other operand of the plain run
//! replaces it, in every width, byte order and spelling. All edits run as usual; those for open comparisons run with
//! a log as well.

use std::collections::{BTreeSet, VecDeque};
use std::slice::from_ref;

use ffuzz_mutate::length::Length;
use ffuzz_mutate::{Rng, messages};

use super::ask::{Ask, Ran};
use super::restore::{Kept, comes_to, restore};
use super::{Base, MOST_EXTENSIONS, comes_equal, extended, fields};
use crate::adjust::with_lengths;
use crate::input_to_state::{Edit, Logged, colorize, edits};
use crate::log::{ComparisonKind, OwnLog};

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
pub(super) async fn flip(ask: &Ask, rng: &mut Rng, input: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let log = ask.settled(input).await;
    note_run(ask, input, &log);
    fields::learn(ask, input, log.view()).await;
    let (colored, colored_log) = color(ask, rng, input, &log).await;
    let lengths = ask.lengths(input).await;
    let run = Logged {
        input,
        log: log.view(),
        colored: &colored,
        colored_log: colored_log.view(),
        messages: ask.rules.messages,
    };
    let (edits, chosen) = choose(ask, run, &lengths);
    note_bytes(ask, input, &edits);
    let base = Base::of(input, colored, log);
    let flipping = Trying { ask, rng, base: &base, extensions: MOST_EXTENSIONS }.all(chosen).await;
    ask.run_edits(input, edits).await;
    (flipping, base.colored)
}

/// Records the results of a run, and where it is stuck if the input is the seed: blockers refer to files.
fn note_run(ask: &Ask, input: &[u8], log: &OwnLog) {
    let mut lent = ask.lent();
    lent.results.learn(log.view());
    if let Some(number) = ask.number_of(input).filter(|_| !log.view().is_partial()) {
        lent.blockers.add(number, input, log.view());
    }
}

/// Colors an input as far as its path stays the same. Returns the colored input and its log.
async fn color(ask: &Ask, rng: &mut Rng, input: &[u8], log: &OwnLog) -> (Vec<u8>, OwnLog) {
    let path = log.view().path();
    let (mut colored, mut colored_log) = (input.to_vec(), log.clone());
    let mut parts = VecDeque::from_iter(std::iter::once(0..input.len()));
    for _ in 0..MOST_COLORIZATIONS {
        let Some(part) = parts.pop_front().filter(|_| !ask.is_over()) else { break };
        let mut candidate = colored.clone();
        colorize(&mut candidate[part.clone()], rng);
        if ask.rules.messages {
            messages::keep_words(&colored, &mut candidate);
        }
        if candidate == colored {
            continue;
        }
        let Ran { bytes, log, .. } = ask.logged(candidate, "copy").await;
        if log.view().path() == path {
            (colored, colored_log) = (bytes, log);
        } else if part.len() > 1 {
            let middle = part.start + part.len() / 2;
            parts.extend([part.start..middle, middle..part.end]);
        }
    }
    (colored, colored_log)
}

/// All edits derived from the two runs, and those to try with the log.
fn choose(ask: &Ask, run: Logged<'_>, lengths: &[Length]) -> (Vec<Edit>, VecDeque<Edit>) {
    let lent = ask.lent();
    let results = &lent.results;
    // A switch remains open while it has cases.
    let is_left = |place, kind| {
        let is_shown = !run.log.is_partial() || kind == ComparisonKind::Text;
        let is_left = is_shown || results.edits_without_effect(place) < MOST_FRUITLESS;
        is_left && (kind == ComparisonKind::Switch || results.is_open(place, kind))
    };
    let edits = with_lengths(edits(run, is_left), run.input, lengths);
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
fn note_bytes(ask: &Ask, input: &[u8], edits: &[Edit]) {
    let Some(number) = ask.number_of(input) else { return };
    let mut lent = ask.lent();
    for Edit { at, removed, place, .. } in edits {
        lent.blockers.note_bytes(place.site, number, *at..at + removed);
    }
}

/// Tries edits with the log.
struct Trying<'a> {
    ask: &'a Ask,
    rng: &'a mut Rng,
    base: &'a Base,
    /// Edits that may still be repeated with further changes.
    extensions: usize,
}

impl Trying<'_> {
    /// Returns the inputs with which a comparison has a new result.
    async fn all(mut self, mut chosen: VecDeque<Edit>) -> Vec<Vec<u8>> {
        let (mut flipping, mut joint) = (Vec::new(), Vec::<Edit>::new());
        let mut fruitless = BTreeSet::new();
        while flipping.len() < MOST_FLIPPING && !self.ask.is_over() {
            let Some(edit) = chosen.pop_front() else { break };
            let place = edit.place;
            let is_done = joint.iter().any(|done| done.place == place);
            // With a log that omits equal integers, a flipped comparison needs no further edits.
            let edited = edit.applied(&self.base.input);
            if !self.is_wanted(&edit, &edited) || self.ask.rules.is_partial && is_done {
                continue;
            }
            if self.ask.rules.is_partial {
                fruitless.insert(place);
            }
            if let Some(bytes) = self.one(&edit, edited).await {
                flipping.push(bytes);
                joint.push(edit);
            }
        }
        let Self { ask, base, .. } = self;
        fruitless.retain(|place| joint.iter().all(|edit| edit.place != *place));
        fruitless.iter().for_each(|place| ask.lent().results.had_no_effect(*place));
        let all = together(&base.input, &joint).filter(|all| !flipping.contains(all));
        if let Some(all) = all {
            let ran = ask.logged(all, "joint").await;
            ask.lent().results.learn(ran.log.view());
            if ran.ends_well {
                ask.try_out(ran.bytes.clone(), "joint").await;
                flipping.push(ran.bytes);
            }
        }
        flipping
    }

    /// Whether to try an edit: its comparison is open, and the input has an allowed length.
    fn is_wanted(&self, edit: &Edit, edited: &[u8]) -> bool {
        let Edit { place, kind, .. } = *edit;
        let is_open = self.ask.lent().results.is_open(place, kind);
        let fits = self.ask.rules.lengths.contains(&edited.len());
        (is_open || kind == ComparisonKind::Switch) && fits
    }

    /// Tries an edit, and repeats it with further changes if the run no longer reaches its comparison. Returns the
    /// input if a comparison has a new result.
    async fn one(&mut self, edit: &Edit, mut edited: Vec<u8>) -> Option<Vec<u8>> {
        let Self { ask, rng, base, extensions } = self;
        let (rules, place) = (&ask.rules, edit.place);
        let was_open = ask.lent().results.is_open(place, edit.kind);
        ask.lent().blockers.note_attempt(place.site);
        let mut ran = ask.logged(edited.clone(), edit.op).await;
        if *extensions > 0 && !rules.is_partial && !comes_to(ran.log.view(), place) {
            *extensions -= 1;
            edited.clone_from(&ran.bytes);
            let pinned = edit.at..edit.at + edit.inserted.len();
            let kept = Kept { edited: from_ref(&pinned), least: 0, op: edit.op };
            if let Some(restored) = restore(ask, base, place, &ran, kept).await {
                ran = restored.ran;
            } else {
                ran = ask.logged(extended(rules, rng, &ran.bytes), edit.op).await;
                let longest = base.input.len() + edit.inserted.len();
                let may_grow = edit.removed > 0 && rules.lengths.contains(&longest);
                if may_grow && !comes_to(ran.log.view(), place) {
                    // The replaced bytes may be needed as well.
                    ran = ask.logged(edit.inserted_into(&base.input), edit.op).await;
                }
            }
        }
        let shows =
            rules.is_partial && comes_equal(ask, base, place, edit.kind, &ran, edit.op).await;
        let is_new = ask.lent().results.learn(ran.log.view()) || shows;
        let is_open = ask.lent().results.is_open(place, edit.kind);
        let flips = ran.ends_well && (is_new || was_open && !is_open);
        if flips && ran.bytes != edited {
            // The usual run of the edit alone would not show the effect.
            ask.try_out(ran.bytes.clone(), edit.op).await;
        }
        flips.then_some(ran.bytes)
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
