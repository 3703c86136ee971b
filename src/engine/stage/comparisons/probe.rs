//! Operands that are calculated from the input: a probe shows which bytes move them, and solvers by runs flip what is
//! open (see [`depend`]).

use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};

use super::super::Turn;
use super::work::{Attempts, Probe, ProbePhase, Probing, Solving, Watch, Watched};
use super::{Limit, MOST_EXTENSIONS, Stop, comes_equal, extend, logged, origin, settled, try_out};
use crate::comparison::{
    Comparison, ComparisonKind, ComparisonLog, Occurrences, Operand, Place, SiteCounts,
};
use crate::corpus::SeedId;
use crate::fuzzer::door::Door;
use crate::messages;
use crate::mutate::Candidate;
use crate::mutate::depend::{self, Change, Dependent, Growth};

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
/// Bytes of a seed that are remembered to decide something.
const MOST_DECIDING: usize = 4096;
/// Of [`Watch::sites`]; the numbers of sites are hashes.
const SLOTS: usize = 4096;

fn slot(site: u32) -> usize {
    (site.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// Probes an input and solves what is open. Returns the inputs that flipped a comparison, which have been run and judged
/// like others.
pub(super) fn flip<D: Door>(
    turn: &mut Turn<'_, D>,
    id: SeedId,
    Probe { input, phase }: &mut Probe,
    limit: Limit,
) -> Result<Vec<Vec<u8>>, Stop<D::Error>> {
    loop {
        *phase = match phase {
            ProbePhase::Begun => {
                limit.check(turn)?;
                let watch = Watch::of(turn, (id, input))?;
                let Some(watch) = watch else { return Ok(Vec::new()) };
                let known = turn.shared.logs.deciding(&turn.door.fuzzer().corpus, id, input);
                ProbePhase::Probing(watch, Probing::of(input, &known))
            }
            ProbePhase::Probing(watch, probing) => {
                probe(turn, (id, input), (watch, probing), limit)?;
                let is_noisy = forget_noise(turn, (id, input), watch)?;
                let dependents = VecDeque::from(watch.dependents(turn));
                let fuzzer = turn.door.fuzzer_mut();
                let is_seed = *fuzzer.corpus[id].data == **input;
                if is_seed && !is_noisy {
                    turn.shared.logs.note_deciding(id, input, probing.deciding());
                }
                for dependent in dependents.iter().filter(|_| is_seed) {
                    let movers = dependent.movers().into_iter();
                    fuzzer.blockers.note_bytes(dependent.place.site, id.0 as usize, movers);
                }
                let base = std::mem::take(&mut watch.base);
                let flipping = Vec::new();
                ProbePhase::Solving(Solving { base, dependents, flipping, attempts: None })
            }
            ProbePhase::Solving(solving) => {
                solve_all(turn, (id, input), solving, limit)?;
                return Ok(std::mem::take(&mut solving.flipping));
            }
        };
    }
}

fn solve_all<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    Solving { base, dependents, flipping, attempts }: &mut Solving,
    limit: Limit,
) -> Result<(), Stop<D::Error>> {
    while let Some(dependent) = dependents.front() {
        if flipping.len() >= MOST_FLIPPING || limit.is_reached(turn) {
            break;
        }
        let results = &turn.shared.logs.results;
        let is_known = results.was_made_equal(dependent.place, input);
        if is_known || !results.is_open(dependent.place, dependent.kind) {
            (*attempts, _) = (None, dependents.pop_front());
            continue;
        }
        match solve(turn, (id, input), (dependent, base, attempts), limit)? {
            // The next round has more time.
            Solved::Not if limit.is_reached(turn) => {}
            Solved::Not => turn.shared.logs.results.failed(dependent.place),
            Solved::By { bytes, op } => {
                try_out(turn, Candidate { bytes: bytes.clone(), origin: origin(id, op) })?;
                flipping.push(bytes);
            }
        }
        (*attempts, _) = (None, dependents.pop_front());
    }
    Ok(())
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
        (id, input): (SeedId, &[u8]),
    ) -> Result<Option<Self>, D::Error> {
        let logs = [
            settled(turn, (id, input))?,
            logged(turn, origin(id, "copy"), &mut input.to_vec(), |log| log.own_copy())?,
        ];
        let results = &mut turn.shared.logs.results;
        results.learn(logs[0].view());
        let mut open = Vec::new();
        let mut occurrences = Occurrences::default();
        for (comparison, again) in logs[0].view().iter().zip(logs[1].view().iter()) {
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
                open.push(Watched {
                    place,
                    part,
                    kind,
                    bytes,
                    operands,
                    changes: [vec![], vec![]],
                    growth: None,
                });
            }
        }
        open.sort_by_key(|watched| !results.is_one_sided(watched.place.site));
        open.truncate(MOST_WATCHED);
        let by_place = open.iter().enumerate().map(|(index, watched)| (watched.place, index));
        let base = if logs[0].view().is_partial() {
            SiteCounts::of(logs[0].view())
        } else {
            SiteCounts::default()
        };
        let (by_place, sites) = (by_place.collect(), vec![false; SLOTS]);
        let mut watch = Self { by_place, base, sites, all: open };
        for watched in &watch.all {
            watch.sites[slot(watched.place.site)] = true;
        }
        Ok((!watch.all.is_empty()).then_some(watch))
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
    fn dependents<D: Door>(&mut self, turn: &Turn<'_, D>) -> Vec<Dependent> {
        let mut dependents = Vec::new();
        for Watched { place, part, kind, bytes, operands, changes, growth } in self.all.drain(..) {
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
        let results = &turn.shared.logs.results;
        let has_failed = |place: Place| results.failures(place) % 2 == 1;
        let is_memory =
            |one: &Dependent| one.is_like_memory() || one.may_be_memory() && has_failed(one.place);
        let mut dependents: Vec<Dependent> = dependents
            .into_iter()
            .map(|one: Dependent| if is_memory(&one) { one.into_memory() } else { one })
            .collect();
        dependents.sort_by_cached_key(|dependent| {
            let is_one_sided = results.is_one_sided(dependent.place.site);
            // A length only if no field can be changed: the input may become a long one.
            let movers = dependent.movers().len();
            (!is_one_sided, movers == 0, movers, dependent.place)
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

impl Probing {
    /// `known`: bytes that are known to decide something.
    fn of(input: &[u8], known: &[u32]) -> Self {
        let mut deciding = vec![false; input.len()];
        known.iter().for_each(|at| deciding[*at as usize] = true);
        Self {
            left: MOST_PROBES,
            insertions: 0,
            changes: 0,
            parts: parts(&deciding).into(),
            stops: vec![false; input.len()],
            deciding,
            bits: 0,
        }
    }

    fn deciding(&self) -> Box<[u32]> {
        let all = (0..).zip(&self.deciding).filter(|(_, decides)| **decides);
        all.map(|(at, _)| at).take(MOST_DECIDING).collect()
    }
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

/// Notes which bytes move what is watched.
fn probe<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    (watch, probing): (&mut Watch, &mut Probing),
    limit: Limit,
) -> Result<(), Stop<D::Error>> {
    if probing.insertions == 0 {
        insert(turn, (id, input), watch, input.len())?;
        probing.insertions = 1;
    }
    let Probing { left, insertions, changes, parts, stops, deciding, bits } = probing;
    while let Some(change) = PROBES.get(*changes) {
        while let Some(part) = parts.front().cloned() {
            if *left == 0 || limit.is_reached(turn) {
                return Ok(());
            }
            limit.check(turn)?;
            parts.pop_front();
            let Some(seen) = change_part(turn, (id, input), watch, (&part, change))? else {
                continue;
            };
            *left -= 1;
            if part.len() == 1 {
                stops[part.start] |= seen.ends;
                deciding[part.start] |= seen.ends || seen.moves;
            } else if seen.moves || seen.ends {
                let middle = part.start + part.len() / 2;
                parts.extend([part.start..middle, middle..part.end]);
            }
        }
        *changes += 1;
        parts.extend(self::parts(deciding));
    }
    // Not at the start, where a magic number may be.
    let places = MOST_INSERTIONS.min(input.len().saturating_sub(1));
    while *insertions <= places && watch.all.iter().any(Watched::is_unmoved) {
        if *left == 0 || limit.is_reached(turn) {
            return Ok(());
        }
        limit.check(turn)?;
        *left -= 1;
        insert(turn, (id, input), watch, input.len() - *insertions * (input.len() - 1) / places)?;
        *insertions += 1;
    }
    let stopping = (0..input.len()).filter(|at| stops[*at]).take(MOST_STOPPING);
    let all_bits = stopping.flat_map(|at| (1..7).map(move |bit| (at, bit)));
    for (at, bit) in all_bits.skip(*bits) {
        if *left == 0 || limit.is_reached(turn) {
            return Ok(());
        }
        limit.check(turn)?;
        *left -= 1;
        *bits += 1;
        change_part(turn, (id, input), watch, (&(at..at + 1), |byte, _| byte ^ 1 << bit))?;
    }
    Ok(())
}

/// Forgets what seemed to move operands that are others when the input is run once more: they follow a clock or a
/// counter. True if there were any.
fn forget_noise<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    watch: &mut Watch,
) -> Result<bool, D::Error> {
    let mut noisy = Vec::new();
    logged(turn, origin(id, "copy"), &mut input.to_vec(), |log| {
        noisy.clear();
        watch.look(log, |index, operands| {
            if watch.all[index].operands != operands {
                noisy.push(index);
            }
        });
    })?;
    for index in &noisy {
        let watched = &mut watch.all[*index];
        (watched.changes, watched.growth) = Default::default();
    }
    Ok(!noisy.is_empty())
}

/// Runs the input with one byte more at a place, and notes what that moves.
fn insert<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    watch: &mut Watch,
    at: usize,
) -> Result<(), D::Error> {
    let longer = depend::resized(input, at, 1, turn.door.fuzzer().mutation.messages);
    let Some(mut longer) =
        longer.filter(|longer| longer.len() <= turn.door.fuzzer().mutation.max_len)
    else {
        return Ok(());
    };
    let mut moved = Vec::new();
    logged(turn, origin(id, "copy"), &mut longer, |log| {
        moved.clear();
        watch.look(log, |index, operands| {
            if watch.all[index].operands != operands {
                moved.push((index, operands));
            }
        });
    })?;
    for (index, operands) in moved {
        watch.all[index].growth.get_or_insert((at, operands));
    }
    Ok(())
}

impl Watched {
    fn is_unmoved(&self) -> bool {
        self.growth.is_none() && self.changes.iter().all(Vec::is_empty)
    }
}

/// What the change of a part does to what is watched.
struct Effect {
    moves: bool,
    /// The run does not come to all of it.
    ends: bool,
}

/// Runs the input with a part that is changed, and notes what a single byte moves. None if that is no change.
fn change_part<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    watch: &mut Watch,
    (part, change): (&Range<usize>, impl Fn(u8, u8) -> u8),
) -> Result<Option<Effect>, D::Error> {
    let mut bytes = input.to_vec();
    for at in part.clone() {
        let salt = if part.len() > 1 { (at as u32).wrapping_mul(0x9e37_79b1) >> 24 } else { 0 };
        bytes[at] = change(bytes[at], salt as u8);
    }
    if turn.door.fuzzer().mutation.messages {
        messages::keep_words(input, &mut bytes);
    }
    if bytes == *input {
        return Ok(None);
    }
    let byte = bytes[part.start];
    let mut moved = Vec::new();
    let all = &watch.all;
    let count = logged(turn, origin(id, "copy"), &mut bytes, |log| {
        moved.clear();
        watch.look(log, |index, operands| {
            if all[index].operands != operands {
                moved.push((index, operands));
            }
        })
    })?;
    let effect = Effect { moves: !moved.is_empty(), ends: count < watch.all.len() };
    if part.len() == 1 {
        for (index, operands) in moved {
            let Watched { operands: before, changes, .. } = &mut watch.all[index];
            for side in 0..2 {
                if operands[side] != before[side] {
                    let value = operands[side];
                    changes[side].push(Change { at: part.start, byte, value });
                }
            }
        }
    }
    Ok(Some(effect))
}

enum Solved {
    By { bytes: Vec<u8>, op: &'static str },
    Not,
}

/// What has failed is tried again, because another seed may be nearer, but less.
fn attempts_left(failures: u32) -> usize {
    depend::MOST_ATTEMPTS.checked_shr(failures.saturating_mul(2)).unwrap_or(0)
}

/// Runs attempts of the solvers until one flips the comparison.
fn solve<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, input): (SeedId, &[u8]),
    (dependent, base, attempts): (&Dependent, &SiteCounts, &mut Option<Attempts>),
    limit: Limit,
) -> Result<Solved, Stop<D::Error>> {
    let mutation = &turn.door.fuzzer().mutation;
    let (lengths, max_len) = (mutation.min_len..=mutation.max_len, mutation.max_len);
    let has_messages = mutation.messages;
    let known = turn.shared.logs.results.of(dependent.place).to_vec();
    let is_partial = turn.door.fuzzer().has_partial_log();
    let Attempts { left, extensions, answers } = attempts.get_or_insert_with(|| Attempts {
        left: attempts_left(turn.shared.logs.results.failures(dependent.place)),
        extensions: MOST_EXTENSIONS,
        answers: Vec::new(),
    });
    let (mut asked, mut end) = (0, Ok(Solved::Not));
    let mut run = |bytes: &[u8], op: &'static str| {
        asked += 1;
        if let Some(answer) = answers.get(asked - 1) {
            return ControlFlow::Continue(*answer);
        }
        if limit.is_reached(turn) || *left == 0 {
            return ControlFlow::Break(());
        }
        if let Err(stop) = limit.check(turn) {
            end = Err(stop);
            return ControlFlow::Break(());
        }
        *left -= 1;
        if !lengths.contains(&bytes.len()) {
            answers.push(None);
            return ControlFlow::Continue(None);
        }
        let mut bytes = bytes.to_vec();
        let mut seen = attempt(turn, (id, op), &mut bytes, dependent, (&known, (input, base)));
        if matches!(seen, Ok((None, false))) && *extensions > 0 && !is_partial {
            *extensions -= 1;
            extend(turn, &mut bytes);
            let longer = attempt(turn, (id, op), &mut bytes, dependent, (&known, (input, base)));
            // Operands of a longer input say nothing of this one.
            seen = longer.map(|(_, is_new)| (None, is_new));
        }
        match seen {
            Ok((operands, false)) => {
                answers.push(operands);
                return ControlFlow::Continue(operands);
            }
            Ok((_, true)) => end = Ok(Solved::By { bytes, op }),
            Err(error) => end = Err(error.into()),
        }
        ControlFlow::Break(())
    };
    let _ = depend::solve(input, dependent, (max_len, has_messages), &mut run);
    end
}

/// One run: the operands at the place, and whether it came to a new result.
fn attempt<D: Door>(
    turn: &mut Turn<'_, D>,
    (id, op): (SeedId, &'static str),
    bytes: &mut Vec<u8>,
    dependent: &Dependent,
    (known, base): (&[u32], (&[u8], &SiteCounts)),
) -> Result<(Option<[u64; 2]>, bool), D::Error> {
    let Dependent { place, part, .. } = *dependent;
    turn.door.fuzzer_mut().blockers.note_attempt(place.site);
    let (seen, log) = logged(turn, origin(id, op), bytes, |log| {
        let mut of_site = log.iter().filter(|comparison| comparison.site == place.site);
        let seen = of_site.nth(place.occurrence as usize);
        let operands = seen.and_then(|comparison| numbers(&comparison, part));
        let is_new = seen.is_some_and(|comparison| {
            let is_forward = part.is_some() && operands.is_some_and(|[a, b]| a == b);
            is_forward || !known.contains(&comparison.result())
        });
        let is_shown = is_new || log.is_partial();
        ((operands, is_new), is_shown.then(|| log.own_copy()))
    })?;
    let (operands, is_new) = seen;
    let Some(log) = log else { return Ok((operands, false)) };
    if is_new {
        turn.shared.logs.results.learn(log.view());
        return Ok((operands, true));
    }
    let place = (place, dependent.kind);
    let is_equal = comes_equal(turn, base, place, (log.view(), bytes, origin(id, op)))?;
    // What is there now is another one.
    Ok((operands.filter(|_| !is_equal), is_equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_nothing_is_one_part() {
        let all = |known: &[u32]| Probing::of(&[0; 9], known).parts;
        assert_eq!(all(&[0]), [0..1, 1..9]);
        assert_eq!(all(&[0, 4, 5]), [0..1, 1..4, 4..5, 5..6, 6..9]);
        assert_eq!(all(&[8]), [0..8, 8..9]);
        assert!(Probing::of(&[], &[]).parts.is_empty());
        assert_eq!(*Probing::of(&[0; 9], &[3, 7]).deciding(), [3, 7]);
    }
}
