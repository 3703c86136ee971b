//! Operands that are calculated from the input: a probe finds the bytes that change them, and solvers that make runs
//! flip the open comparisons (see [`solvers`]).
//!
//! A changed part that affects no open operand costs one run; other parts are halved down to bytes. A range that one
//! kind of change has shown to decide nothing is one part for the next kind. Deciding bytes are recorded with the
//! seed, and its children start with those that still exist. Operands that differ between two runs of the same input
//! are ignored. An operand that no changed byte affects may be the length of a part, so single bytes are inserted as
//! well.
//!
//! An input that nothing flips is tried once more with letters at its end. A comparison that was not solved gets a
//! quarter of the attempts the next time.

use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};

use ffuzz_mutate::{Rng, messages};

use super::ask::{Ask, Ran};
use super::restore::{Kept, Restored, changed_bytes, may_restore, restore};
use super::{Base, MOST_EXTENSIONS, Unprobed, comes_equal, extended};
use crate::log::{Comparison, ComparisonKind, ComparisonLog, Operand};
use crate::results::{Occurrences, Place, Results};
use crate::solvers::{self, Attempts, Change, Dependent, Growth};

/// Maximum runs for the probe of one input. A long part that decides nothing costs one run.
const MOST_PROBES: usize = 2048;
/// Maximum number of comparisons probed in one input.
const MOST_WATCHED: usize = 256;
/// Maximum number of operands of one key and side that depend on the same bytes.
const MOST_ALIKE: usize = 2;
/// Maximum number of flipping inputs kept from one input.
const MOST_FLIPPING: usize = 8;
/// Changes of a byte, as functions of the byte and a salt. Numbers in text only react to digits. The salt is 0 for a
/// byte that is changed alone and varies within a longer part, because two equal changes cancel out in an exclusive
/// or.
const PROBES: [fn(u8, u8) -> u8; 6] = [
    |byte, salt| byte ^ (1 + salt % 15),
    |_, salt| b'0' + (1 + salt % 10) % 10,
    |_, salt| b'0' + (9 + salt % 10) % 10,
    |byte, salt| byte ^ (0x80 | (salt % 16)),
    |_, salt| b'a' + salt % 26,
    |byte, salt| !byte ^ (salt % 8),
];

/// Maximum number of bytes whose bits are flipped one by one, because a change of the byte ends the run before an
/// open comparison: some bits may decide the end of the run, and others the comparison.
const MOST_STOPPING: usize = 32;
/// Number of positions at which a byte is inserted if nothing else affects a comparison: the length of a part may.
const MOST_INSERTIONS: usize = 16;
/// Maximum number of restored probes, and of restored attempts for one comparison: each takes several runs.
const MOST_RESTORED: usize = 128;
/// Minimum length of a copy for restoring, in bytes: single bytes are often equal by chance.
const LEAST_COPY: usize = 2;
/// Maximum number of deciding bytes recorded for a seed.
const MOST_DECIDING: usize = 4096;
/// Length of [`Watch::sites`], which is indexed by a hash of the site.
const SLOTS: usize = 4096;

fn slot(site: u32) -> usize {
    (site.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// An open comparison of two numbers.
#[derive(Debug)]
struct Watched {
    place: Place,
    /// Index among the run's comparisons.
    number: usize,
    /// Offset of the numbers in memory or text.
    part: Option<usize>,
    kind: ComparisonKind,
    bytes: usize,
    operands: [u64; 2],
}

/// The open comparisons of one input.
#[derive(Debug)]
struct Watch {
    all: Vec<Watched>,
    by_place: HashMap<Place, usize>,
    base: Base,
    /// By a hash of the site: true if it may be watched. A quick filter, because most sites are not.
    sites: Vec<bool>,
}

/// Changes of the input that affect the operands of a watched comparison.
#[derive(Clone, Debug, Default)]
struct Moves {
    /// Changed bytes, for each operand.
    changes: [Vec<Change>; 2],
    /// Position at which an inserted byte affects an operand, and the resulting operands.
    growth: Option<(usize, [u64; 2])>,
}

impl Moves {
    fn are_none(&self) -> bool {
        self.growth.is_none() && self.changes.iter().all(Vec::is_empty)
    }
}

/// Effect of a changed input on the watched comparisons.
struct Effect {
    /// Indices of the comparisons whose operands differ, with the new operands.
    moved: Vec<(usize, [u64; 2])>,
    /// The first comparison that the run does not reach.
    missing: Option<Place>,
}

/// Probes an input and solves its open comparisons. Returns the inputs that flipped one; they were run and judged as
/// usual.
pub(super) async fn flip(ask: &Ask, rng: &mut Rng, unprobed: &Unprobed) -> Vec<Vec<u8>> {
    let input = &unprobed.input[..];
    let Some(watch) = Watch::of(ask, unprobed).await else { return Vec::new() };
    let known = ask.deciding(input).await;
    let (mut moves, deciding) = Probe::of(ask, &watch, &known).run().await;
    // Operands that differ when the input runs again depend on a clock or a counter.
    let noisy = watch.effect(ask.logged(input.into(), "copy").await.log.view()).moved;
    noisy.iter().for_each(|(index, _)| moves[*index] = Moves::default());
    let dependents = watch.dependents(moves, &ask.lent().results);
    if let Some(number) = ask.number_of(input) {
        if noisy.is_empty() {
            ask.note_deciding(input, deciding).await;
        }
        let mut lent = ask.lent();
        for dependent in &dependents {
            let movers = dependent.movers().into_iter();
            lent.blockers.note_bytes(dependent.place.site, number, movers);
        }
    }
    solve_all(ask, rng, &watch.base, dependents).await
}

async fn solve_all(
    ask: &Ask,
    rng: &mut Rng,
    base: &Base,
    dependents: Vec<Dependent>,
) -> Vec<Vec<u8>> {
    let mut flipping = Vec::new();
    for dependent in &dependents {
        if flipping.len() >= MOST_FLIPPING || ask.is_over() {
            break;
        }
        let Some(mut trial) = Trial::of(ask, rng, base, dependent) else { continue };
        let _ = solvers::solve(&base.input, dependent, &ask.rules, &mut trial).await;
        match trial.solved {
            Some((bytes, op)) => {
                ask.try_out(bytes.clone(), op).await;
                flipping.push(bytes);
            }
            // The next round has more time.
            None if ask.is_over() => {}
            None => ask.lent().results.failed(dependent.place),
        }
    }
    flipping
}

/// The two numbers of a comparison. For memory and text, the part at offset `part` if everything before it is equal,
/// so that solving the number advances the comparison.
fn numbers(comparison: &Comparison<'_>, part: Option<usize>) -> Option<[u64; 2]> {
    let of = |a: &[u8], b: &[u8], from: usize| {
        (a.get(..from)? == b.get(..from)?)
            .then(|| [a, b].map(|memory| solvers::window(memory, from)))
    };
    match (comparison.a, comparison.b, part) {
        (Operand::Value(a), Operand::Value(b), None) => Some([a, b]),
        (Operand::Value(a), Operand::Value(b), Some(from)) => {
            of(&a.to_le_bytes(), &b.to_le_bytes(), from)
        }
        (Operand::Bytes(a), Operand::Bytes(b), Some(from)) => of(a, b, from),
        _ => None,
    }
}

/// Offset of the first difference of two byte operands; None for numbers.
fn first_difference(comparison: &Comparison<'_>) -> Option<usize> {
    match (comparison.a, comparison.b) {
        (Operand::Bytes(a), Operand::Bytes(b)) => {
            Some(a.iter().zip(b).take_while(|(a, b)| a == b).count())
        }
        _ => None,
    }
}

/// True for comparisons of numbers, and of bytes that can be solved as numbers.
fn is_solved(comparison: &Comparison<'_>) -> bool {
    let is_memory = matches!(comparison.kind, ComparisonKind::Memory | ComparisonKind::Text);
    match (comparison.a, comparison.b) {
        (Operand::Value(_), Operand::Value(_)) => true,
        (Operand::Bytes(_), Operand::Bytes(_)) => is_memory && !comparison.ignores_case,
        _ => false,
    }
}

impl Watch {
    /// The comparisons that are open in the run of an input and equal in two runs. None if there are none.
    async fn of(ask: &Ask, Unprobed { input, colored }: &Unprobed) -> Option<Self> {
        let log = ask.settled(input).await;
        let again = ask.logged(input.clone(), "copy").await.log;
        let results = &mut ask.lent().results;
        results.learn(log.view());
        let (mut all, mut occurrences) = (Vec::new(), Occurrences::default());
        let pairs = log.view().iter().zip(again.view().iter()).enumerate();
        for (number, (comparison, again)) in pairs {
            let place = occurrences.place(&comparison);
            let is_stable = comparison == again && comparison.constant != [true; 2];
            let part = first_difference(&comparison);
            if let Some(operands) = numbers(&comparison, part).filter(|_| is_stable)
                && is_solved(&comparison)
                && results.is_open(place, comparison.kind)
                && !results.was_made_equal(place, input)
                && attempts_left(results.failures(place)) > 0
            {
                let (kind, bytes) = match part {
                    None => (comparison.kind, comparison.bytes),
                    Some(_) => (ComparisonKind::Equal, solvers::WINDOW),
                };
                all.push(Watched { place, number, part, kind, bytes, operands });
            }
        }
        all.sort_by_key(|watched| !results.is_one_sided(watched.place.key));
        all.truncate(MOST_WATCHED);
        let by_place = all.iter().enumerate().map(|(index, watched)| (watched.place, index));
        let (by_place, mut sites) = (by_place.collect(), vec![false; SLOTS]);
        all.iter().for_each(|watched| sites[slot(watched.place.site)] = true);
        let base = Base::of(input, colored.clone(), log);
        (!all.is_empty()).then_some(Self { all, by_place, base, sites })
    }

    fn effect(&self, log: ComparisonLog<'_>) -> Effect {
        let (mut moved, mut is_there) = (Vec::new(), vec![false; self.all.len()]);
        let mut occurrences = Occurrences::default();
        for comparison in log.iter().filter(|comparison| self.sites[slot(comparison.site)]) {
            let place = occurrences.place(&comparison);
            if let Some(&index) = self.by_place.get(&place)
                && let Some(operands) = numbers(&comparison, self.all[index].part)
            {
                is_there[index] = true;
                if self.all[index].operands != operands {
                    moved.push((index, operands));
                }
            }
        }
        let missing = self.all.iter().zip(&is_there).filter(|(_, is_there)| !**is_there);
        let missing = missing.min_by_key(|(watched, _)| watched.number);
        Effect { moved, missing: missing.map(|(watched, _)| watched.place) }
    }

    /// The operands that depend on the input: those of one-sided keys first, then those with few deciding bytes.
    fn dependents(&self, moves: Vec<Moves>, results: &Results) -> Vec<Dependent> {
        let mut dependents = Vec::new();
        for (watched, Moves { changes, growth }) in self.all.iter().zip(moves) {
            let Watched { place, part, kind, bytes, operands, .. } = *watched;
            for (side, changes) in changes.into_iter().enumerate() {
                let growth = growth.map(|(at, seen)| Growth { at, value: seen[side] });
                let growth = growth.filter(|growth| growth.value != operands[side]);
                if !changes.is_empty() || growth.is_some() {
                    dependents.push(Dependent {
                        place,
                        part,
                        kind,
                        bytes,
                        side,
                        operands,
                        changes,
                        growth,
                    });
                }
            }
        }
        let has_failed = |place: Place| results.failures(place) % 2 == 1;
        let is_memory =
            |one: &Dependent| one.is_like_memory() || one.may_be_memory() && has_failed(one.place);
        let mut dependents: Vec<Dependent> = dependents
            .into_iter()
            .map(|one: Dependent| if is_memory(&one) { one.into_memory() } else { one })
            .collect();
        dependents.sort_by_cached_key(|dependent| {
            let is_one_sided = results.is_one_sided(dependent.place.key);
            // Lengths last, because they may make the input long.
            let movers = dependent.movers().len();
            (!is_one_sided, movers == 0, movers, dependent.place)
        });
        let mut alike: HashMap<_, usize> = HashMap::new();
        dependents.retain(|dependent| {
            let count =
                alike.entry((dependent.place.key, dependent.side, dependent.movers())).or_default();
            *count += 1;
            *count <= MOST_ALIKE
        });
        dependents
    }
}

/// The search for bytes that affect the watched comparisons of an input.
struct Probe<'a> {
    ask: &'a Ask,
    input: &'a [u8],
    watch: &'a Watch,
    moves: Vec<Moves>,
    /// Runs left.
    left: usize,
    /// Restores left.
    restores: usize,
    /// Bytes that follow others, see [`restore`]. Only the others are changed.
    follows: Vec<bool>,
    /// Bytes whose change ends the run before an open comparison.
    stops: Vec<bool>,
    /// Stopping bytes and those that affect a watched comparison; initially the known ones.
    deciding: Vec<bool>,
}

impl<'a> Probe<'a> {
    /// `known`: bytes that are known to decide something.
    fn of(ask: &'a Ask, watch: &'a Watch, known: &[u32]) -> Self {
        let input = &watch.base.input[..];
        Self {
            ask,
            input,
            watch,
            moves: vec![Moves::default(); watch.all.len()],
            left: MOST_PROBES,
            restores: MOST_RESTORED,
            follows: vec![false; input.len()],
            stops: vec![false; input.len()],
            deciding: marked(input.len(), known),
        }
    }

    /// Returns the changes that affect each watched comparison, and the deciding bytes.
    async fn run(mut self) -> (Vec<Moves>, Box<[u32]>) {
        self.insert(self.input.len()).await;
        let _ = self.search().await;
        for side in self.moves.iter_mut().flat_map(|moves| &mut moves.changes) {
            side.retain(|change| !self.follows[change.at]);
        }
        let decides = (0..).zip(&self.deciding).filter(|(_, decides)| **decides);
        let deciding = decides.map(|(at, _)| at).take(MOST_DECIDING).collect();
        (self.moves, deciding)
    }

    /// Called before each run; breaks if no run is left.
    fn begin(&mut self) -> ControlFlow<()> {
        if self.left == 0 || self.ask.is_over() {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        ControlFlow::Continue(())
    }

    async fn search(&mut self) -> ControlFlow<()> {
        for change in PROBES {
            let mut parts: VecDeque<_> = parts(&self.deciding).into();
            while let Some(part) = parts.pop_front() {
                self.begin()?;
                let Some(effect) = self.change(part.clone(), change).await else {
                    self.left += 1;
                    continue;
                };
                let ends = effect.missing.is_some();
                let decides = ends || !effect.moved.is_empty();
                if part.len() == 1 {
                    self.stops[part.start] |= ends;
                    self.deciding[part.start] |= decides;
                } else if decides {
                    let middle = part.start + part.len() / 2;
                    parts.extend([part.start..middle, middle..part.end]);
                }
            }
        }
        // Not at the start, where a magic number may stand.
        let len = self.input.len();
        let places = MOST_INSERTIONS.min(len.saturating_sub(1));
        for insertion in 1..=places {
            if !self.moves.iter().any(Moves::are_none) {
                break;
            }
            self.begin()?;
            self.insert(len - insertion * (len - 1) / places).await;
        }
        let stopping: Vec<usize> =
            (0..len).filter(|at| self.stops[*at]).take(MOST_STOPPING).collect();
        for at in stopping {
            for bit in 1..7 {
                self.begin()?;
                self.change(at..at + 1, |byte, _| byte ^ 1 << bit).await;
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs the input with a byte inserted at `at`, and records the effect.
    async fn insert(&mut self, at: usize) {
        let rules = &self.ask.rules;
        let longer = solvers::resized(self.input, at, 1, rules.messages);
        let Some(longer) = longer.filter(|longer| longer.len() <= *rules.lengths.end()) else {
            return;
        };
        let ran = self.ask.logged(longer, "copy").await;
        for (index, operands) in self.watch.effect(ran.log.view()).moved {
            self.moves[index].growth.get_or_insert((at, operands));
        }
    }

    /// Runs the input with a changed part, and records the effect of a single byte. None if nothing was changed.
    async fn change(
        &mut self,
        part: Range<usize>,
        change: impl Fn(u8, u8) -> u8,
    ) -> Option<Effect> {
        let is_single = part.len() == 1;
        if is_single && self.follows[part.start] {
            return None;
        }
        let mut bytes = self.input.to_vec();
        for at in part.clone() {
            let salt = if is_single { 0 } else { (at as u32).wrapping_mul(0x9e37_79b1) >> 24 };
            bytes[at] = change(bytes[at], salt as u8);
        }
        let byte = bytes[part.start];
        if self.ask.rules.messages {
            messages::keep_words(self.input, &mut bytes);
        }
        if bytes == self.input {
            return None;
        }
        let ran = self.ask.logged(bytes, "copy").await;
        let mut effect = self.watch.effect(ran.log.view());
        if is_single && self.restores > 0 {
            effect = self.restored(effect, &ran).await;
        }
        for (index, operands) in effect.moved.iter().filter(|_| is_single) {
            let before = self.watch.all[*index].operands;
            for side in (0..2).filter(|side| operands[*side] != before[*side]) {
                let change = Change { at: part.start, byte, value: operands[side] };
                self.moves[*index].changes[side].push(change);
            }
        }
        Some(effect)
    }

    /// The effect of a changed input after equalities were restored that ended its run early.
    async fn restored(&mut self, effect: Effect, ran: &Ran) -> Effect {
        let base = &self.watch.base;
        let may = |_: &Place| may_restore(base.log.view(), ran.log.view());
        let Some(place) = effect.missing.filter(may) else { return effect };
        self.restores -= 1;
        let edited = changed_bytes(self.input, &ran.bytes);
        let kept = Kept { edited: &edited, least: LEAST_COPY, op: "copy" };
        let restored = restore(self.ask, base, place, ran, kept).await;
        let Some(Restored { ran, followers }) = restored else { return effect };
        if ran.bytes.len() == self.input.len() {
            followers.into_iter().for_each(|follower| self.follows[follower].fill(true));
        }
        Effect { missing: None, ..self.watch.effect(ran.log.view()) }
    }
}

fn marked(len: usize, places: &[u32]) -> Vec<bool> {
    let mut marked = vec![false; len];
    places.iter().for_each(|at| marked[*at as usize] = true);
    marked
}

/// Splits the input into single deciding bytes and the ranges between them.
fn parts(deciding: &[bool]) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (at, decides) in deciding.iter().enumerate() {
        match parts.last_mut() {
            Some(last) if !decides && !deciding[last.start] => last.end = at + 1,
            _ => parts.push(at..at + 1),
        }
    }
    parts
}

/// Attempts left after failures: fewer each time, but not none at once, because another seed may be closer.
fn attempts_left(failures: u32) -> usize {
    solvers::MOST_ATTEMPTS.checked_shr(failures.saturating_mul(2)).unwrap_or(0)
}

/// Runs attempts of the solvers until one flips the comparison.
struct Trial<'a> {
    ask: &'a Ask,
    rng: &'a mut Rng,
    base: &'a Base,
    dependent: &'a Dependent,
    /// Known results of the place.
    known: Vec<u32>,
    left: usize,
    extensions: usize,
    restores: usize,
    /// The input that flips the comparison, and how it was made.
    solved: Option<(Vec<u8>, &'static str)>,
}

impl<'a> Trial<'a> {
    /// None if the comparison is already flipped.
    fn of(
        ask: &'a Ask,
        rng: &'a mut Rng,
        base: &'a Base,
        dependent: &'a Dependent,
    ) -> Option<Self> {
        let (place, lent) = (dependent.place, ask.lent());
        let results = &lent.results;
        let is_made_equal = results.was_made_equal(place, &base.input);
        let is_open = !is_made_equal && results.is_open(place, dependent.kind);
        is_open.then(|| Self {
            ask,
            rng,
            base,
            dependent,
            known: results.of(place).into(),
            left: attempts_left(results.failures(place)),
            extensions: MOST_EXTENSIONS,
            restores: MOST_RESTORED,
            solved: None,
        })
    }

    /// Makes one run, and further runs to restore equalities that it breaks if `may_restore`.
    async fn attempt(&mut self, input: Vec<u8>, op: &'static str, may: bool) -> Seen {
        let (ask, base, dependent) = (self.ask, self.base, self.dependent);
        let place = dependent.place;
        ask.lent().blockers.note_attempt(place.site);
        let ran = ask.logged(input, op).await;
        let mut seen = self.seen(ran);
        let is_undone = seen.operands.is_none()
            && !seen.is_new
            && may_restore(base.log.view(), seen.ran.log.view());
        if may && is_undone {
            self.restores -= 1;
            let edited = changed_bytes(&base.input, &seen.ran.bytes);
            let kept = Kept { edited: &edited, least: LEAST_COPY, op };
            if let Some(restored) = restore(ask, base, place, &seen.ran, kept).await {
                seen = self.seen(restored.ran);
            }
        }
        if seen.is_new {
            ask.lent().results.learn(seen.ran.log.view());
        } else if seen.ran.log.view().is_partial()
            && comes_equal(ask, base, place, dependent.kind, &seen.ran, op).await
        {
            // The operands at the place now are those of another comparison.
            (seen.operands, seen.is_new) = (None, true);
        }
        seen
    }

    fn seen(&self, ran: Ran) -> Seen {
        let (place, part) = (self.dependent.place, self.dependent.part);
        let seen = {
            let log = ran.log.view().iter();
            let mut of_key = log.filter(|comparison| comparison.key() == place.key);
            of_key.nth(place.occurrence as usize)
        };
        let operands = seen.and_then(|comparison| numbers(&comparison, part));
        let is_forward = part.is_some() && operands.is_some_and(|[a, b]| a == b);
        let result = seen.map(|comparison| comparison.result());
        let is_new = is_forward || result.is_some_and(|result| !self.known.contains(&result));
        Seen { operands, is_new, ran }
    }
}

impl Attempts for Trial<'_> {
    async fn run(&mut self, bytes: &[u8], op: &'static str) -> ControlFlow<(), Option<[u64; 2]>> {
        if self.ask.is_over() || self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        let rules = &self.ask.rules;
        if !rules.lengths.contains(&bytes.len()) {
            return ControlFlow::Continue(None);
        }
        let mut seen = self.attempt(bytes.into(), op, self.restores > 0).await;
        let may_extend = self.extensions > 0 && !rules.is_partial;
        if seen.operands.is_none() && !seen.is_new && may_extend {
            self.extensions -= 1;
            let longer = extended(rules, self.rng, &seen.ran.bytes);
            // The operands of a longer input do not apply to this one.
            seen = Seen { operands: None, ..self.attempt(longer, op, false).await };
        }
        if seen.is_new {
            self.solved = Some((seen.ran.bytes, op));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(seen.operands)
    }
}

/// Result of an attempt.
struct Seen {
    ran: Ran,
    /// Operands at the place, if the run reaches it.
    operands: Option<[u64; 2]>,
    /// True if the place has a new result.
    is_new: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_nothing_is_one_part() {
        let all = |known: &[u32]| parts(&marked(9, known));
        assert_eq!(all(&[0]), [0..1, 1..9]);
        assert_eq!(all(&[0, 4, 5]), [0..1, 1..4, 4..5, 5..6, 6..9]);
        assert_eq!(all(&[8]), [0..8, 8..9]);
        assert!(parts(&[]).is_empty());
    }
}
