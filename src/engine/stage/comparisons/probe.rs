//! Operands that are calculated from the input: a probe finds the bytes that change them, and solvers that make runs
//! flip the open comparisons (see [`depend`]).
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
use std::rc::Rc;

use super::super::Turn;
use super::ask::Ask;
use super::restore::{Restored, changed_bytes, may_restore, restore};
use super::{
    Base, MOST_EXTENSIONS, Unprobed, comes_equal, extend, logged, origin, settled, try_out,
};
use crate::fuzzer::door::Host;
use crate::messages;
use crate::mutate::Candidate;
use ffuzz_comparisons::log::{Comparison, ComparisonKind, ComparisonLog, Operand, OwnLog};
use ffuzz_comparisons::results::{Occurrences, Place, Results};
use ffuzz_comparisons::solvers::{self, Attempts, Change, Dependent, Growth};

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
    base: Rc<Base>,
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
    /// True if the run does not reach all of them.
    ends: bool,
    /// The first comparison not reached, and the log of the run, if restoring may reach it.
    undone: Option<(Place, OwnLog)>,
    /// Bytes that had to follow a change so that the run reaches the comparison.
    followers: Vec<Range<usize>>,
}

/// Probes an input and solves its open comparisons. Returns the inputs that flipped one; they were run and judged as
/// usual.
pub(super) async fn flip<H: Host>(ask: &Ask<H>, unprobed: &Unprobed) -> Vec<Vec<u8>> {
    let Unprobed { input, colored } = unprobed;
    let (of, colored) = (input.clone(), colored.clone());
    let begun = ask.order(move |turn| {
        let watch = Watch::of(turn, &of, colored)?;
        let known = turn.shared.logs.deciding(&turn.door.fuzzer().corpus, turn.id, &of);
        Ok(watch.map(|watch| (Rc::new(watch), known)))
    });
    let Some((watch, known)) = begun.await else { return Vec::new() };
    let (moves, deciding) = Probe::of(ask, input, &watch, &known).run().await;
    let (of, base) = (input.clone(), watch.base.clone());
    let probed = ask.order(move |turn| {
        let mut moves = moves;
        let noisy = noise(turn, &of, &watch)?;
        noisy.iter().for_each(|index| moves[*index] = Moves::default());
        let dependents = watch.dependents(moves, &turn.shared.logs.results);
        let (id, fuzzer) = (turn.id, turn.door.fuzzer_mut());
        if *fuzzer.corpus[id].data == *of {
            if noisy.is_empty() {
                turn.shared.logs.note_deciding(id, &of, deciding);
            }
            for dependent in &dependents {
                let movers = dependent.movers().into_iter();
                fuzzer.blockers.note_bytes(dependent.place.site, id.0 as usize, movers);
            }
        }
        Ok(dependents)
    });
    let dependents = probed.await;
    solve_all(ask, (input, &base), dependents).await
}

async fn solve_all<H: Host>(
    ask: &Ask<H>,
    (input, base): (&Rc<[u8]>, &Rc<Base>),
    dependents: Vec<Dependent>,
) -> Vec<Vec<u8>> {
    let mut flipping = Vec::new();
    for dependent in dependents.into_iter().map(Rc::new) {
        if flipping.len() >= MOST_FLIPPING || ask.is_over() {
            break;
        }
        let Some(mut trial) = Trial::of(ask, (input, base), &dependent).await else { continue };
        let lengths = (trial.max_len, trial.has_messages);
        let _ = solvers::solve(input, &dependent, lengths, &mut trial).await;
        match trial.solved {
            Some((bytes, op)) => {
                let candidate = bytes.clone();
                let order = move |turn: &mut Turn<'_, H>| {
                    try_out(turn, Candidate { bytes: candidate, origin: origin(turn.id, op) })
                };
                ask.order(order).await;
                flipping.push(bytes);
            }
            // The next round has more time.
            None if ask.is_over() => {}
            None => {
                let place = dependent.place;
                ask.order(move |turn| {
                    turn.shared.logs.results.failed(place);
                    Ok(())
                })
                .await;
            }
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
    fn of<H: Host>(
        turn: &mut Turn<'_, H>,
        input: &Rc<[u8]>,
        colored: Rc<[u8]>,
    ) -> Result<Option<Self>, H::Error> {
        let origin = origin(turn.id, "copy");
        let logs = [
            settled(turn, input)?,
            logged(turn, origin, &mut input.to_vec(), |log| log.own_copy())?,
        ];
        let results = &mut turn.shared.logs.results;
        results.learn(logs[0].view());
        let mut all = Vec::new();
        let mut occurrences = Occurrences::default();
        let pairs = logs[0].view().iter().zip(logs[1].view().iter()).enumerate();
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
        let [log, _] = logs;
        let base = Rc::new(Base::of(input, colored, log));
        Ok((!all.is_empty()).then_some(Self { all, by_place, base, sites }))
    }

    /// Runs another input with its log.
    fn run<H: Host>(
        &self,
        turn: &mut Turn<'_, H>,
        bytes: &mut Vec<u8>,
    ) -> Result<Effect, H::Error> {
        logged(turn, origin(turn.id, "copy"), bytes, |log| self.effect(log))
    }

    /// Runs a changed input; if the run ends early at an equality, tries to restore it. Returns true if that was
    /// tried.
    fn run_restored<H: Host>(
        &self,
        turn: &mut Turn<'_, H>,
        (input, changed): (&[u8], &mut Vec<u8>),
    ) -> Result<(Effect, bool), H::Error> {
        let effect = self.run(turn, changed)?;
        let Some((place, log)) = &effect.undone else { return Ok((effect, false)) };
        let pinned = changed_bytes(input, changed);
        let restored =
            restore(turn, (&self.base, *place), (changed, log), (&pinned, LEAST_COPY), "copy")?;
        let effect = match restored {
            Some(Restored { bytes, log, followers, .. }) => {
                let keeps_places = bytes.len() == input.len();
                let followers = if keeps_places { followers } else { Vec::new() };
                Effect { ends: false, followers, ..self.effect(log.view()) }
            }
            None => effect,
        };
        Ok((effect, true))
    }

    fn effect(&self, log: ComparisonLog<'_>) -> Effect {
        let (mut moved, mut is_there) = (Vec::new(), vec![false; self.all.len()]);
        let count = self.look(log, |index, operands| {
            is_there[index] = true;
            if self.all[index].operands != operands {
                moved.push((index, operands));
            }
        });
        let ends = count < self.all.len();
        let undone = || {
            let missing = self.all.iter().zip(&is_there).filter(|(_, is_there)| !**is_there);
            let (first, _) = missing.min_by_key(|(watched, _)| watched.number)?;
            may_restore(self.base.log.view(), log).then(|| (first.place, log.own_copy()))
        };
        Effect { undone: ends.then(undone).flatten(), moved, ends, followers: Vec::new() }
    }

    /// Calls `see` with each watched comparison of a run and its operands. Returns their number.
    fn look(&self, log: ComparisonLog<'_>, mut see: impl FnMut(usize, [u64; 2])) -> usize {
        let (mut count, mut occurrences) = (0, Occurrences::default());
        for comparison in log.iter() {
            if !self.sites[slot(comparison.site)] {
                continue;
            }
            let place = occurrences.place(&comparison);
            if let Some(index) = self.by_place.get(&place)
                && let Some(operands) = numbers(&comparison, self.all[*index].part)
            {
                count += 1;
                see(*index, operands);
            }
        }
        count
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
struct Probe<'a, H: Host> {
    ask: &'a Ask<H>,
    input: &'a Rc<[u8]>,
    watch: &'a Rc<Watch>,
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

impl<'a, H: Host> Probe<'a, H> {
    /// `known`: bytes that are known to decide something.
    fn of(ask: &'a Ask<H>, input: &'a Rc<[u8]>, watch: &'a Rc<Watch>, known: &[u32]) -> Self {
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
                let Some(effect) = self.change(&part, change).await else {
                    self.left += 1;
                    continue;
                };
                let decides = effect.ends || !effect.moved.is_empty();
                if part.len() == 1 {
                    self.stops[part.start] |= effect.ends;
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
                self.change(&(at..at + 1), move |byte, _| byte ^ 1 << bit).await;
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs the input with a byte inserted at `at`, and records the effect.
    async fn insert(&mut self, at: usize) {
        let (input, watch) = (self.input.clone(), self.watch.clone());
        let order = self.ask.order(move |turn| {
            let mutation = &turn.door.fuzzer().mutation;
            let longer = solvers::resized(&input, at, 1, mutation.messages);
            let Some(mut longer) = longer.filter(|longer| longer.len() <= mutation.max_len) else {
                return Ok(Vec::new());
            };
            watch.run(turn, &mut longer).map(|effect| effect.moved)
        });
        for (index, operands) in order.await {
            self.moves[index].growth.get_or_insert((at, operands));
        }
    }

    /// Runs the input with a changed part, and records the effect of a single byte. None if nothing was changed.
    async fn change(
        &mut self,
        part: &Range<usize>,
        change: impl Fn(u8, u8) -> u8,
    ) -> Option<Effect> {
        if part.len() == 1 && self.follows[part.start] {
            return None;
        }
        let mut bytes = self.input.to_vec();
        for at in part.clone() {
            let salt = if part.len() > 1 { (at as u32).wrapping_mul(0x9e37_79b1) >> 24 } else { 0 };
            bytes[at] = change(bytes[at], salt as u8);
        }
        let byte = bytes[part.start];
        let may_restore = part.len() == 1 && self.restores > 0;
        let (input, watch) = (self.input.clone(), self.watch.clone());
        let order = self.ask.order(move |turn| {
            if turn.door.fuzzer().mutation.messages {
                messages::keep_words(&input, &mut bytes);
            }
            if bytes == *input {
                return Ok(None);
            }
            let seen = match may_restore {
                true => watch.run_restored(turn, (&input, &mut bytes))?,
                false => (watch.run(turn, &mut bytes)?, false),
            };
            Ok(Some(seen))
        });
        let (effect, is_restored) = order.await?;
        self.restores -= usize::from(is_restored);
        for follower in &effect.followers {
            self.follows[follower.clone()].fill(true);
        }
        for (index, operands) in effect.moved.iter().filter(|_| part.len() == 1) {
            let before = self.watch.all[*index].operands;
            for side in (0..2).filter(|side| operands[*side] != before[*side]) {
                let change = Change { at: part.start, byte, value: operands[side] };
                self.moves[*index].changes[side].push(change);
            }
        }
        Some(effect)
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

/// Watched comparisons whose operands differ when the input runs again: they depend on a clock or a counter.
fn noise<H: Host>(
    turn: &mut Turn<'_, H>,
    input: &[u8],
    watch: &Watch,
) -> Result<Vec<usize>, H::Error> {
    let effect = watch.run(turn, &mut input.to_vec())?;
    Ok(effect.moved.into_iter().map(|(index, _)| index).collect())
}

/// Attempts left after failures: fewer each time, but not none at once, because another seed may be closer.
fn attempts_left(failures: u32) -> usize {
    solvers::MOST_ATTEMPTS.checked_shr(failures.saturating_mul(2)).unwrap_or(0)
}

/// Runs attempts of the solvers until one flips the comparison.
struct Trial<'a, H: Host> {
    ask: &'a Ask<H>,
    input: &'a Rc<[u8]>,
    base: &'a Rc<Base>,
    dependent: &'a Rc<Dependent>,
    /// Known results of the place.
    known: Rc<[u32]>,
    min_len: usize,
    max_len: usize,
    has_messages: bool,
    is_partial: bool,
    left: usize,
    extensions: usize,
    restores: usize,
    /// The input that flips the comparison, and how it was made.
    solved: Option<(Vec<u8>, &'static str)>,
}

impl<'a, H: Host> Trial<'a, H> {
    /// None if the comparison is already flipped.
    async fn of(
        ask: &'a Ask<H>,
        (input, base): (&'a Rc<[u8]>, &'a Rc<Base>),
        dependent: &'a Rc<Dependent>,
    ) -> Option<Self> {
        let (of, place, kind) = (input.clone(), dependent.place, dependent.kind);
        let order = ask.order(move |turn| {
            let (results, fuzzer) = (&turn.shared.logs.results, turn.door.fuzzer());
            let is_open = !results.was_made_equal(place, &of) && results.is_open(place, kind);
            let left = attempts_left(results.failures(place));
            let known: Rc<[u32]> = results.of(place).into();
            let mutation = &fuzzer.mutation;
            let lengths = (mutation.min_len, mutation.max_len, mutation.messages);
            Ok(is_open.then(|| (known, left, lengths, fuzzer.has_partial_log())))
        });
        let (known, left, (min_len, max_len, has_messages), is_partial) = order.await?;
        let (extensions, restores, solved) = (MOST_EXTENSIONS, MOST_RESTORED, None);
        Some(Self {
            ask,
            input,
            base,
            dependent,
            known,
            min_len,
            max_len,
            has_messages,
            is_partial,
            left,
            extensions,
            restores,
            solved,
        })
    }
}

impl<H: Host> Attempts for Trial<'_, H> {
    async fn run(&mut self, bytes: &[u8], op: &'static str) -> ControlFlow<(), Option<[u64; 2]>> {
        if self.ask.is_over() || self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        if !(self.min_len..=self.max_len).contains(&bytes.len()) {
            return ControlFlow::Continue(None);
        }
        let (input, base, known) = (self.input.clone(), self.base.clone(), self.known.clone());
        let (dependent, mut bytes) = (self.dependent.clone(), bytes.to_vec());
        let may_extend = self.extensions > 0 && !self.is_partial;
        let may_restore = self.restores > 0;
        let order = self.ask.order(move |turn| {
            let run = |turn: &mut Turn<'_, H>, bytes: &mut Vec<u8>, may_restore| {
                let of = (&*input, &*base, may_restore);
                attempt(turn, op, bytes, &dependent, (&known, of))
            };
            let mut seen = run(turn, &mut bytes, may_restore)?;
            let is_extended = seen.operands.is_none() && !seen.is_new && may_extend;
            if is_extended {
                extend(turn, &mut bytes);
                // The operands of a longer input do not apply to this one.
                seen = Seen { operands: None, ..run(turn, &mut bytes, false)? };
            }
            Ok((seen.operands, seen.is_new.then_some(bytes), is_extended, seen.is_restored))
        });
        let (operands, solved, is_extended, is_restored) = order.await;
        self.extensions -= usize::from(is_extended);
        self.restores -= usize::from(is_restored);
        if let Some(bytes) = solved {
            self.solved = Some((bytes, op));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(operands)
    }
}

/// Result of an attempt.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Operands at the place, if the run reaches it.
    operands: Option<[u64; 2]>,
    /// True if the place has a new result.
    is_new: bool,
    /// True if restoring was tried.
    is_restored: bool,
}

impl Seen {
    fn of(dependent: &Dependent, known: &[u32], log: ComparisonLog<'_>) -> Self {
        let (place, part) = (dependent.place, dependent.part);
        let mut of_key = log.iter().filter(|comparison| comparison.key() == place.key);
        let seen = of_key.nth(place.occurrence as usize);
        let operands = seen.and_then(|comparison| numbers(&comparison, part));
        let is_new = seen.is_some_and(|comparison| {
            let is_forward = part.is_some() && operands.is_some_and(|[a, b]| a == b);
            is_forward || !known.contains(&comparison.result())
        });
        Self { operands, is_new, is_restored: false }
    }
}

/// Makes one run, and further runs to restore equalities that it breaks.
fn attempt<H: Host>(
    turn: &mut Turn<'_, H>,
    op: &'static str,
    bytes: &mut Vec<u8>,
    dependent: &Dependent,
    (known, (input, base, may)): (&[u32], (&[u8], &Base, bool)),
) -> Result<Seen, H::Error> {
    let (place, origin) = (dependent.place, origin(turn.id, op));
    turn.door.fuzzer_mut().blockers.note_attempt(place.site);
    let (mut seen, log) = logged(turn, origin, bytes, |log| {
        let seen = Seen::of(dependent, known, log);
        let is_undone = may && seen.operands.is_none() && may_restore(base.log.view(), log);
        let is_shown = seen.is_new || log.is_partial() || is_undone;
        (seen, is_shown.then(|| log.own_copy()))
    })?;
    let Some(mut log) = log else { return Ok(seen) };
    if may && seen.operands.is_none() && !seen.is_new {
        let pinned = changed_bytes(input, bytes);
        let restored = restore(turn, (base, place), (bytes, &log), (&pinned, LEAST_COPY), op)?;
        seen.is_restored = true;
        if let Some(restored) = restored {
            seen = Seen { is_restored: true, ..Seen::of(dependent, known, restored.log.view()) };
            (*bytes, log) = (restored.bytes, restored.log);
        }
    }
    if seen.is_new {
        turn.shared.logs.results.learn(log.view());
        return Ok(seen);
    }
    let place = (place, dependent.kind);
    let is_equal = log.view().is_partial()
        && comes_equal(turn, (input, &base.counts), place, (log.view(), bytes, origin))?;
    // The operands at the place now are those of another comparison.
    Ok(Seen { operands: seen.operands.filter(|_| !is_equal), is_new: is_equal, ..seen })
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
