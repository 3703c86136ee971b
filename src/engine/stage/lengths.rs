//! Lengths and offsets: finds the numbers of a seed that count other bytes of it, once for each favored seed, by the
//! edges of runs (see [`length`](crate::mutate::length)). Havoc keeps them consistent from then on.
//!
//! Text seeds are skipped. Record shapes of common formats come first (`mutate::records`): records that tile the
//! input without a gap are a guess, which runs verify by growing a record together with all its parents. Then single
//! numbers are tried, those with the farthest end first. Numbers found are kept consistent in later runs, so tables
//! of offsets and nested parts are found from the outside in. For each batch of such a seed a bandit draws whether
//! lengths are updated or left alone; `state.json` saves them for the next process.

use std::collections::HashMap;

use super::share::Stop;
use super::{Stage, StageEnd, Turn};
use crate::corpus::{Length, Origin, Step};
use crate::fuzzer::door::{Door, Host, Run};
use crate::messages;
use crate::mutate::buffer::Buffer;
use crate::mutate::foreign::ForeignMutators;
use crate::mutate::length::suspects;
use crate::mutate::records::{Record, guesses};
use crate::mutate::{Candidate, is_text};
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Purpose, SLICE};

/// Widths of numbers, bytes.
const WIDTHS: [usize; 4] = [8, 4, 2, 1];
/// Maximum length of a searched input, bytes.
const LONGEST: usize = 1 << 16;
/// Maximum number of runs for one seed.
const MOST_RUNS: u64 = 8192;
/// Additional runs for a width, beyond [`MOST_RUNS`], for each number of that width found: most formats use one or
/// two widths, and single bytes cost most.
const RUNS_FOR_ONE: u64 = 1024;
/// Maximum number of lengths recorded for a seed.
const MOST_LENGTHS: usize = 64;
/// Number of bytes inserted in a test: a multiple of common sizes of table entries and samples.
const INSERTED: usize = 24;
/// Number of bytes inserted to verify a find.
const INSERTED_NEXT: usize = 48;
/// A seed with fewer edges of its own, beyond those of the [`TRIVIAL`] input, is not searched for single numbers.
const FEWEST_EDGES: usize = 8;
const TRIVIAL: &[u8] = b"a";
/// A wrong number must lose at least 1/20 of the seed's own edges, and at least two edges.
const LOSS_ONE_OF: usize = 20;
const LEAST_LOSS: usize = 2;
/// With the inserted bytes, at least 1/5 of the lost edges must come back.
const GAIN_ONE_OF: usize = 5;
/// Maximum number of records verified in a guess, and the bytes by which each grows.
const MOST_VERIFIED: usize = 32;
const GROWN: usize = 4;
/// Distances by which the counted part may end later than the number says: a type before the data, or a checksum
/// after.
const BEYOND: [usize; 4] = [2, 4, 8, 12];

#[derive(Default)]
pub(super) struct Lengths {
    /// Runs made and numbers found, for each of [`WIDTHS`].
    by_width: [(u64, u64); WIDTHS.len()],
}

impl<H: Host> Stage<H> for Lengths {
    fn name(&self) -> &'static str {
        "lengths"
    }

    fn wants(&mut self, Turn { door, id, shared }: &mut Turn<'_, H>) -> bool {
        let fuzzer = door.fuzzer();
        let seed = &fuzzer.corpus[*id];
        // If hooks rewrite inputs, positions in an input mean nothing.
        let is_possible = !fuzzer.foreign_only && !fuzzer.mutators.touch_runs();
        let is_text = fuzzer.mutation.text.unwrap_or_else(|| is_text(&seed.data));
        seed.favored
            && !shared.lengths.contains_key(id)
            && is_possible
            && !is_text
            && seed.data.len() <= LONGEST
            && fuzzer.mutation.length_share > 0.0
            && door.may(Purpose::Lengths, SLICE)
    }

    fn run(&mut self, Turn { door, id, shared }: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let id = *id;
        let fuzzer = door.fuzzer_mut();
        let Some(budget) = fuzzer.budget(id) else { return Ok(StageEnd::TurnOver) };
        fuzzer.limit_mutants_of(id);
        let (begin, execs) = (fuzzer.effort(), fuzzer.target().execs());
        let input = fuzzer.corpus[id].data.to_vec();
        let step = Step::Stacked { op: "lengths", count: 1 };
        let origin = Origin { parent: id, other: None, step, by: 0 };
        let candidate = Candidate { bytes: Vec::new(), origin };
        let edges = fuzzer.corpus[id].trace.to_vec();
        let budget = budget.longest();
        door.open(Purpose::Lengths);
        let mut trial = Trial { door: door.reborrow(), candidate, edges, runs: 0, begin, budget };
        // The framing of messages is updated as well, and not searched.
        let has_messages = trial.door.fuzzer().mutation.messages;
        let mut found: Vec<Length> =
            messages::framing(&input).take_while(|_| has_messages).collect();
        let end = measure(&mut trial, &input, &mut self.by_width, &mut found);
        door.close(Purpose::Lengths);
        let fuzzer = door.fuzzer_mut();
        found.retain(|length| !messages::is_framing(length));
        // After a stop, the finds so far are kept.
        shared.note_lengths(id, found.into());
        fuzzer.progress.yield_of("lengths").execs += fuzzer.target().execs() - execs;
        match end {
            Ok(()) | Err(Stop::Spent) => Ok(StageEnd::Finished),
            Err(Stop::TurnOver) => Ok(StageEnd::TurnOver),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}

/// Runs changed inputs and measures the loss of the seed's own edges.
struct Trial<'a, H> {
    door: Door<'a, H>,
    candidate: Candidate,
    edges: Vec<u32>,
    runs: u64,
    begin: Effort,
    budget: Budget,
}

impl<H: Host> Trial<'_, H> {
    /// Checks all limits; called before each run.
    fn check(&mut self) -> Result<(), Stop<H::Error>> {
        if self.door.between_batches()? {
            return Err(Stop::TurnOver);
        }
        let done = self.door.fuzzer().effort().since(self.begin);
        let is_spent = self.runs >= MOST_RUNS
            || self.budget.is_used(done.runs, done.time)
            || !self.door.may(Purpose::Lengths, Effort::ZERO);
        self.runs += 1;
        if is_spent { Err(Stop::Spent) } else { Ok(()) }
    }

    /// Runs an input, judged as usual, and returns which of the seed's own edges it hits.
    fn hit(&mut self, input: Vec<u8>) -> Result<Vec<u32>, Stop<H::Error>> {
        self.check()?;
        self.candidate.bytes = input;
        let run = Run { edges: &self.edges, ..Run::judged(&self.candidate.bytes) };
        let seen = self.door.run(run)?;
        self.door.keep_if_deserved(&self.candidate, seen.verdict.unwrap_or_default())?;
        Ok(seen.hit)
    }

    fn lost(&mut self, input: Vec<u8>) -> Result<usize, Stop<H::Error>> {
        Ok(self.edges.len() - self.hit(input)?.len())
    }

    /// Number of edges lost by an input with `count` bytes inserted at the end of the counted part. None if they do
    /// not fit.
    fn lost_with_bytes(
        &mut self,
        input: &[u8],
        length: Length,
        others: &[Length],
        beyond: usize,
        count: usize,
    ) -> Result<Option<usize>, Stop<H::Error>> {
        let end = length.end(input) + beyond;
        let fits = input.len() + count <= self.door.fuzzer().mutation.max_len;
        if end > input.len() || !fits {
            return Ok(None);
        }
        let length = Length { from: length.from + beyond, ..length };
        let all = [others, &[length]].concat();
        let mut buffer = Buffer::new(input, &all);
        let filler = input[end.saturating_sub(1)];
        buffer.open_gap(end, count);
        buffer[end..end + count].fill(filler);
        self.lost(buffer.into_bytes()).map(Some)
    }
}

fn measure<H: Host>(
    trial: &mut Trial<'_, H>,
    input: &[u8],
    by_width: &mut [(u64, u64)],
    found: &mut Vec<Length>,
) -> Result<(), Stop<H::Error>> {
    trial.check()?;
    let trivial = trial.door.run(Run { edges: &trial.edges, ..Run::of(TRIVIAL) })?.hit;
    trial.edges.retain(|edge| trivial.binary_search(edge).is_err());
    for _ in 0..2 {
        trial.edges = trial.hit(input.to_vec())?;
    }
    if !trial.edges.is_empty() && input.len() + GROWN <= trial.door.fuzzer().mutation.max_len {
        for records in guesses(input) {
            verify(trial, input, &records, found)?;
        }
    }
    if trial.edges.len() < FEWEST_EDGES {
        return Ok(());
    }
    for (width, (runs, count)) in WIDTHS.into_iter().zip(by_width) {
        if *runs > MOST_RUNS + RUNS_FOR_ONE * *count {
            continue;
        }
        let before = (trial.runs, found.len());
        let end = search(trial, input, width, found);
        *runs += trial.runs - before.0;
        *count += (found.len() - before.1) as u64;
        end?;
    }
    Ok(())
}

/// Adds the lengths of records that runs confirm. A record can only grow together with its parents, so no record is
/// confirmed alone. Records that tile the input are consistent, so a loss of one edge is enough evidence.
fn verify<H: Host>(
    trial: &mut Trial<'_, H>,
    input: &[u8],
    records: &[Record],
    found: &mut Vec<Length>,
) -> Result<(), Stop<H::Error>> {
    let leaves: Vec<&Record> = records.iter().filter(|record| record.is_leaf).collect();
    let step = leaves.len().div_ceil(MOST_VERIFIED).max(1);
    for leaf in leaves.into_iter().step_by(step) {
        let mut wrong = input.to_vec();
        if !leaf.length.add(&mut wrong, GROWN) {
            continue;
        }
        let loss = trial.lost(wrong)?;
        if loss == 0 {
            continue;
        }
        let parents = std::iter::successors(Some(leaf), |record| Some(&records[record.parent?]));
        let lengths: Vec<Length> = parents.map(|record| record.length).collect();
        let mut buffer = Buffer::new(input, &lengths);
        let end = leaf.length.end(input);
        let filler = input[end - 1];
        buffer.open_gap_within(end, GROWN, leaf.length.from);
        buffer[end..end + GROWN].fill(filler);
        if trial.lost(buffer.into_bytes())? >= loss {
            continue;
        }
        for length in lengths {
            let is_full = found.len() >= MOST_LENGTHS;
            if !is_full && !found.iter().any(|other| other.overlaps(length)) {
                found.push(length);
            }
        }
    }
    Ok(())
}

/// Searches for numbers of one width.
fn search<H: Host>(
    trial: &mut Trial<'_, H>,
    input: &[u8],
    width: usize,
    found: &mut Vec<Length>,
) -> Result<(), Stop<H::Error>> {
    let least = (trial.edges.len() / LOSS_ONE_OF).max(LEAST_LOSS);
    let mut losses = HashMap::new();
    for length in suspects(input, width) {
        if found.iter().filter(|length| !messages::is_framing(length)).count() >= MOST_LENGTHS {
            break;
        }
        if found.iter().any(|other| other.overlaps(length)) {
            continue;
        }
        let loss = match losses.get(&(length.at, length.is_big)) {
            Some(loss) => *loss,
            None => {
                let mut wrong = input.to_vec();
                let loss = match length.add(&mut wrong, INSERTED) {
                    true => trial.lost(wrong)?,
                    false => 0,
                };
                *losses.entry((length.at, length.is_big)).or_insert(loss)
            }
        };
        if loss < least {
            continue;
        }
        let gains = |lost: usize| (loss - loss.min(lost)) * GAIN_ONE_OF >= loss;
        let lost = trial.lost_with_bytes(input, length, found, 0, INSERTED)?;
        let Some(mut lost) = lost.filter(|lost| gains(*lost)) else { continue };
        let next = trial.lost_with_bytes(input, length, found, 0, INSERTED_NEXT)?;
        if !next.is_none_or(gains) {
            continue;
        }
        let mut best = 0;
        for beyond in BEYOND {
            match trial.lost_with_bytes(input, length, found, beyond, INSERTED)? {
                Some(other) if other <= lost => (best, lost) = (beyond, other),
                _ => {}
            }
        }
        found.push(Length { from: length.from + best, ..length });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::fake::Search;
    use super::super::havoc::Havoc;
    use super::super::trim::Trimming;
    use super::*;
    use crate::corpus::SeedId;
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;

    /// A file: its size, the offset of a trailer, then chunks of a type, a length, data and a check byte.
    fn file(data: [usize; 3]) -> Vec<u8> {
        let mut chunks = Vec::new();
        for (kind, len) in (1..).zip(data) {
            chunks.extend([kind, 0, len as u8]);
            chunks.extend(vec![0xcc; len]);
            chunks.push(0xee);
        }
        let trailer = 8 + chunks.len();
        let size = trailer as u32;
        [&size.to_be_bytes()[..], &size.to_le_bytes(), &chunks, b"\xff\xfe\xfd\xfc"].concat()
    }

    /// Hits edges 10 to 19 for the size, 20 to 29 for the trailer, and ten more for each chunk, up to the first error.
    fn parse(input: &[u8], edges: &mut [u8]) {
        edges[0] = 1;
        let number = |at: usize| input.get(at..at + 4)?.first_chunk::<4>();
        let (Some(size), Some(offset)) = (number(0), number(4)) else { return };
        if u32::from_be_bytes(*size) as usize + 4 != input.len() {
            return;
        }
        edges[10..20].fill(1);
        let trailer = u32::from_le_bytes(*offset) as usize;
        if input.get(trailer..) != Some(b"\xff\xfe\xfd\xfc") {
            return;
        }
        edges[20..30].fill(1);
        let mut at = 8;
        while at < trailer {
            let [kind @ 1..=3, high, low] = input[at..at + 3] else { return };
            at += 3 + usize::from(u16::from_be_bytes([high, low]));
            if at >= trailer || input[at] != 0xee {
                return;
            }
            at += 1;
            edges[20 + 10 * usize::from(kind)..][..10].fill(1);
        }
    }

    fn search(run: impl Fn(&[u8], &mut [u8]) + 'static) -> Search {
        Search::of(FakeExecutor::new(64, vec![], move |input, edges, _| {
            run(input, edges);
            ExitKind::Ok
        }))
    }

    fn found(search: &mut Search, input: Vec<u8>) -> Vec<Length> {
        let candidate = Candidate { bytes: input, origin: Origin::injected(0) };
        search.door().try_out(&candidate).unwrap();
        let id = search.0.pick().unwrap();
        let mut stage = Lengths::default();
        assert!(search.turn(id, |turn| stage.wants(turn)));
        assert_eq!(search.turn(id, |turn| stage.run(turn)).unwrap(), StageEnd::Finished);
        assert!(!search.turn(id, |turn| stage.wants(turn)));
        let used = search.0.ledger[Purpose::Lengths].used(Effort::ZERO);
        assert!(used.runs < 1000, "{used:?}");
        search.2.lengths[&id].to_vec()
    }

    /// Three chunks of which only the types matter: trimming removes their data, as far as blocks fit, and updates
    /// every number.
    #[test]
    fn trimming_keeps_lengths_right() {
        let mut search = search(parse);
        let input = file([30, 40, 50]);
        let lengths = found(&mut search, input.clone());
        let id = search.0.pick().unwrap();
        search.0.corpus[id].trimmed = false;
        search.turn(id, |turn| Trimming.run(turn)).unwrap();
        let seed = search.0.corpus[id].clone();
        assert!(seed.data.len() < 60 && input.len() > 140, "{} bytes", seed.data.len());
        let mut edges = [0; 64];
        parse(&seed.data, &mut edges);
        assert!(edges[50..60].iter().all(|count| *count == 1));
        let kept = &search.2.lengths[&id];
        assert_eq!(kept.len(), lengths.len());
        assert!(kept.iter().all(|length| length.end(&seed.data) <= seed.data.len()));
    }

    #[test]
    fn sizes_offsets_and_lengths_are_found() {
        let mut search = search(parse);
        let input = file([30, 40, 50]);
        let mut found = found(&mut search, input.clone());
        found.sort_by_key(|length| length.at);
        let places: Vec<_> = found.iter().map(|of| (of.at, of.width, of.is_big)).collect();
        let chunks = [9, 9 + 34, 9 + 34 + 44];
        let expected = [(0, 4, true), (4, 4, false)];
        let lengths = chunks.map(|at| (at, 2, true));
        assert_eq!(places, [&expected[..], &lengths].concat());
        // Lengths are updated: one byte more in each chunk, and two fewer.
        for (number, at) in chunks.iter().enumerate() {
            for grows in [true, false] {
                let mut buffer = Buffer::new(&input, &found);
                let mut data = [30, 40, 50];
                if grows {
                    buffer.open_gap(at + 10, 1);
                    buffer[at + 10] = 0xcc;
                    data[number] += 1;
                } else {
                    buffer.close_gap(at + 10, 2);
                    data[number] -= 2;
                }
                assert_eq!(buffer.into_bytes(), file(data), "chunk {number}, {grows}");
            }
        }
    }

    #[test]
    fn an_input_whose_numbers_decide_nothing_has_none() {
        let mut search = search(|input, edges| edges[..usize::from(input[0]) % 64].fill(1));
        assert!(found(&mut search, (40..63).chain(180..250).collect()).is_empty());
    }

    #[test]
    fn havoc_keeps_them_right() {
        let input = file([30, 40, 50]);
        // Inputs with a new length, and those of them whose size field agrees.
        let counts = Rc::new(Cell::new((0u32, 0u32)));
        let (seen, len) = (counts.clone(), input.len());
        let mut search = search(move |input, edges| {
            parse(input, edges);
            let size = input.first_chunk::<4>().map(|size| u32::from_be_bytes(*size) as usize + 4);
            let (other, right) = seen.get();
            let is_other = input.len() != len;
            let is_right = is_other && size == Some(input.len());
            seen.set((other + u32::from(is_other), right + u32::from(is_right)));
        });
        found(&mut search, input);
        let mut share = |lengths: &[Length]| {
            search.2.lengths.insert(SeedId(0), lengths.into());
            counts.set((0, 0));
            let mut stage = Havoc::default();
            for _ in 0..20 {
                search.turn(SeedId(0), |turn| stage.run(turn)).unwrap();
            }
            let (other, right) = counts.get();
            assert!(other > 1000, "{other}");
            f64::from(right) / f64::from(other)
        };
        let lengths = [Length { at: 0, width: 4, is_big: true, from: 4 }];
        let (with, without) = (share(&lengths), share(&[]));
        assert!(with > 0.1 && without < 0.01, "{with} {without}");
    }
}
