//! Operands that are calculated from the input: a probe shows which bytes move them, and solvers by runs flip what is
//! open (see [`depend`]).
//!
//! A changed part that moves no open operand costs one run, others are halved down to bytes. What one kind of change
//! has shown to decide nothing is one part for the next kind. Deciding bytes stay with the seed, and its children begin
//! with those that the mutation has not moved. What moves operands that another run of the same input shows to move by
//! themselves is forgotten. What no changed byte moves may be the length of a part, so single bytes are inserted as
//! well.
//!
//! An input that nothing flips is tried once more with letters at its end. What it fails at gets a quarter of the
//! attempts the next time.

use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use super::super::Turn;
use super::ask::Ask;
use super::restore::{Restored, changed_bytes, may_restore, restore};
use super::{
    Base, MOST_EXTENSIONS, Unprobed, comes_equal, extend, logged, origin, settled, try_out,
};
use crate::comparison::{
    Comparison, ComparisonKind, ComparisonLog, Occurrences, Operand, OwnLog, Place, Results,
};
use crate::fuzzer::door::Door;
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::depend::{self, Attempts, Change, Dependent, Growth};

/// Runs for the probe of one input. It goes by halves, so that a long part that decides nothing costs one run.
const MOST_PROBES: usize = 2048;
/// Comparisons of one input that are probed.
const MOST_WATCHED: usize = 256;
/// Operands that the same bytes move, of one site.
const MOST_ALIKE: usize = 2;
/// Inputs that flip something and are worked on, of one input.
const MOST_FLIPPING: usize = 8;
/// What a byte is changed to. Numbers in text show themselves by digits only. The second parameter is 0 for a byte that is
/// changed alone. In a longer part it is not the same for all bytes: two equal changes leave an exclusive or as it is.
const PROBES: [fn(u8, u8) -> u8; 6] = [
    |byte, salt| byte ^ (1 + salt % 15),
    |_, salt| b'0' + (1 + salt % 10) % 10,
    |_, salt| b'0' + (9 + salt % 10) % 10,
    |byte, salt| byte ^ (0x80 | (salt % 16)),
    |_, salt| b'a' + salt % 26,
    |byte, salt| !byte ^ (salt % 8),
];

/// Bytes of one input of which each bit is changed, because a change ends the run before something open: some of their
/// bits may decide that, and others what is open.
const MOST_STOPPING: usize = 32;
/// Places at which one byte is inserted, for a comparison that nothing else moves: the length of a part may.
const MOST_INSERTIONS: usize = 16;
/// Probes, and attempts for one comparison, that are restored: they take several runs each.
const MOST_RESTORED: usize = 128;
/// Bytes of a copy that such a change needs: single ones are equal by chance, and others than those may be meant.
const LEAST_COPY: usize = 2;
/// Bytes of a seed that are remembered to decide something.
const MOST_DECIDING: usize = 4096;
/// Of [`Watch::sites`]; the numbers of sites are hashes.
const SLOTS: usize = 4096;

fn slot(site: u32) -> usize {
    (site.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// An open comparison of two numbers.
#[derive(Debug)]
struct Watched {
    place: Place,
    /// Of the run's comparisons.
    number: usize,
    /// Where the numbers begin, of memory or text.
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
    /// By a hash of the site: whether there may be one of it. Most sites of a log are not watched.
    sites: Vec<bool>,
}

/// What moves the operands of a watched comparison.
#[derive(Clone, Debug, Default)]
struct Moves {
    /// Changed bytes, for each operand.
    changes: [Vec<Change>; 2],
    /// Where an inserted byte moves one of them, and what they are then.
    growth: Option<(usize, [u64; 2])>,
}

impl Moves {
    fn are_none(&self) -> bool {
        self.growth.is_none() && self.changes.iter().all(Vec::is_empty)
    }
}

/// What another input does to what is watched.
struct Effect {
    /// Which of them have other operands.
    moved: Vec<(usize, [u64; 2])>,
    /// The run does not come to all of it.
    ends: bool,
    /// The first that it does not come to, and its log, if it can be made to.
    undone: Option<(Place, OwnLog)>,
    /// Bytes that had to follow a change, so that the run comes to it.
    followers: Vec<Range<usize>>,
}

/// Probes an input and solves what is open. Returns the inputs that flipped a comparison, which have been run and judged
/// like others.
pub(super) async fn flip<D: Door>(ask: &Ask<D>, unprobed: &Unprobed) -> Vec<Vec<u8>> {
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

async fn solve_all<D: Door>(
    ask: &Ask<D>,
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
        let _ = depend::solve(input, &dependent, lengths, &mut trial).await;
        match trial.solved {
            Some((bytes, op)) => {
                let candidate = bytes.clone();
                let order = move |turn: &mut Turn<'_, D>| {
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

/// The two numbers of a comparison. Of memory and texts a part that stands after equal ones, so that a number that is
/// right brings the comparison forward.
fn numbers(comparison: &Comparison<'_>, part: Option<usize>) -> Option<[u64; 2]> {
    let of = |a: &[u8], b: &[u8], from: usize| {
        (a.get(..from)? == b.get(..from)?)
            .then(|| [a, b].map(|memory| depend::window(memory, from)))
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

/// Where two operands begin to differ, if these are memory or texts that are to be equal.
fn first_difference(comparison: &Comparison<'_>) -> Option<usize> {
    match (comparison.a, comparison.b) {
        (Operand::Bytes(a), Operand::Bytes(b)) => {
            Some(a.iter().zip(b).take_while(|(a, b)| a == b).count())
        }
        _ => None,
    }
}

/// Numbers, or bytes of which numbers can be made.
fn is_solved(comparison: &Comparison<'_>) -> bool {
    let is_memory = matches!(comparison.kind, ComparisonKind::Memory | ComparisonKind::Text);
    match (comparison.a, comparison.b) {
        (Operand::Value(_), Operand::Value(_)) => true,
        (Operand::Bytes(_), Operand::Bytes(_)) => is_memory && !comparison.ignores_case,
        _ => false,
    }
}

impl Watch {
    /// What is open in the run of an input, and the same in two runs. None if that is nothing.
    fn of<D: Door>(
        turn: &mut Turn<'_, D>,
        input: &Rc<[u8]>,
        colored: Rc<[u8]>,
    ) -> Result<Option<Self>, D::Error> {
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
                    Some(_) => (ComparisonKind::Equal, depend::WINDOW),
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
    fn run<D: Door>(
        &self,
        turn: &mut Turn<'_, D>,
        bytes: &mut Vec<u8>,
    ) -> Result<Effect, D::Error> {
        logged(turn, origin(turn.id, "copy"), bytes, |log| self.effect(log))
    }

    /// The same for a change of the input that is made good where an equality ends the run. True if that was tried.
    fn run_restored<D: Door>(
        &self,
        turn: &mut Turn<'_, D>,
        (input, changed): (&[u8], &mut Vec<u8>),
    ) -> Result<(Effect, bool), D::Error> {
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

    /// Calls `see` for each watched comparison of a run with its operands. Returns how many there were.
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

    /// The operands that something moves: those of open sites first, then those that few bytes move.
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
            // A length only if no field can be changed: the input may become a long one.
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

/// The search for what moves the watched comparisons of an input.
struct Probe<'a, D: Door> {
    ask: &'a Ask<D>,
    input: &'a Rc<[u8]>,
    watch: &'a Rc<Watch>,
    moves: Vec<Moves>,
    /// Runs.
    left: usize,
    /// Changes that may be restored.
    restores: usize,
    /// Bytes that follow others, see [`restore`]. Those are changed in their place.
    follows: Vec<bool>,
    /// Bytes whose change ends the run before something open.
    stops: Vec<bool>,
    /// These, and those that move what is watched; at first those that are known of the input.
    deciding: Vec<bool>,
}

impl<'a, D: Door> Probe<'a, D> {
    /// `known`: bytes that are known to decide something.
    fn of(ask: &'a Ask<D>, input: &'a Rc<[u8]>, watch: &'a Rc<Watch>, known: &[u32]) -> Self {
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

    /// Returns what moves each watched comparison, and the bytes that decide something.
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

    /// Before each run: breaks if there is to be no other one.
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
        // Not at the start, where a magic number may be.
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

    /// Runs the input with one byte more at a place, and notes what that moves.
    async fn insert(&mut self, at: usize) {
        let (input, watch) = (self.input.clone(), self.watch.clone());
        let order = self.ask.order(move |turn| {
            let mutation = &turn.door.fuzzer().mutation;
            let longer = depend::resized(&input, at, 1, mutation.messages);
            let Some(mut longer) = longer.filter(|longer| longer.len() <= mutation.max_len) else {
                return Ok(Vec::new());
            };
            watch.run(turn, &mut longer).map(|effect| effect.moved)
        });
        for (index, operands) in order.await {
            self.moves[index].growth.get_or_insert((at, operands));
        }
    }

    /// Runs the input with a part that is changed, and notes what a single byte moves. None if that is no change.
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

/// Each byte that decides something, and what lies between them: a part that decides nothing costs one run.
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

/// Watched comparisons whose operands are others when the input is run once more: they follow a clock or a counter.
fn noise<D: Door>(
    turn: &mut Turn<'_, D>,
    input: &[u8],
    watch: &Watch,
) -> Result<Vec<usize>, D::Error> {
    let effect = watch.run(turn, &mut input.to_vec())?;
    Ok(effect.moved.into_iter().map(|(index, _)| index).collect())
}

/// What has failed is tried again, because another seed may be nearer, but less.
fn attempts_left(failures: u32) -> usize {
    depend::MOST_ATTEMPTS.checked_shr(failures.saturating_mul(2)).unwrap_or(0)
}

/// Runs attempts of the solvers until one flips the comparison.
struct Trial<'a, D: Door> {
    ask: &'a Ask<D>,
    input: &'a Rc<[u8]>,
    base: &'a Rc<Base>,
    dependent: &'a Rc<Dependent>,
    /// What the place came to.
    known: Rc<[u32]>,
    min_len: usize,
    max_len: usize,
    has_messages: bool,
    is_partial: bool,
    left: usize,
    extensions: usize,
    restores: usize,
    /// The input that flips it, and how that was made.
    solved: Option<(Vec<u8>, &'static str)>,
}

impl<'a, D: Door> Trial<'a, D> {
    /// None if it is flipped already.
    async fn of(
        ask: &'a Ask<D>,
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

impl<D: Door> Attempts for Trial<'_, D> {
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
            let run = |turn: &mut Turn<'_, D>, bytes: &mut Vec<u8>, may_restore| {
                let of = (&*input, &*base, may_restore);
                attempt(turn, op, bytes, &dependent, (&known, of))
            };
            let mut seen = run(turn, &mut bytes, may_restore)?;
            let is_extended = seen.operands.is_none() && !seen.is_new && may_extend;
            if is_extended {
                extend(turn, &mut bytes);
                // Operands of a longer input say nothing of this one.
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

/// What an attempt came to.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// At the place.
    operands: Option<[u64; 2]>,
    /// It came to a new result there.
    is_new: bool,
    /// It was restored, or that was tried.
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

/// One run, and those that restore what it undoes.
fn attempt<D: Door>(
    turn: &mut Turn<'_, D>,
    op: &'static str,
    bytes: &mut Vec<u8>,
    dependent: &Dependent,
    (known, (input, base, may)): (&[u32], (&[u8], &Base, bool)),
) -> Result<Seen, D::Error> {
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
    // What is there now is another one.
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
