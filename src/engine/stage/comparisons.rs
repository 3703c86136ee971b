//! Comparisons: where the run of a seed compared a copy of the seed's bytes with something else, that takes their
//! place. Once for each favored seed of a target that logs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::batches::run_producer;
use super::produce::{Materials, Producer, Tools};
use super::{Stage, StageEnd};
use crate::comparison::ComparisonLog;
use crate::corpus::{Origin, SeedId, Step};
use crate::executor::ExitKind;
use crate::feedback::Verdict;
use crate::fuzzer::admit::Crash;
use crate::fuzzer::door::{Door, Run};
use crate::mutate::Candidate;
use crate::mutate::foreign::{ForeignMutators, Made};
use crate::mutate::solve::{Edit, Logged, colorize, edits};
use crate::schedule::Budget;

/// Runs in which a part of the seed is colored. Halves of what decides something are tried again, so this is enough
/// for some forty bytes that do.
const MOST_COLORIZATIONS: usize = 512;
/// Part of all runs that the stage may take, in runs of average length, beyond the first ones.
const SHARE: f64 = 8.0;
const FIRST_RUNS: f64 = 5000.0;
/// Inputs that one turn works on.
const MOST_INPUTS: usize = 32;
/// What it may take to repeat the inputs that came before a crash.
const LONGEST_REPLAY: Duration = Duration::from_secs(2);

pub(super) struct Comparisons;

impl<D: Door> Stage<D> for Comparisons {
    fn name(&self) -> &'static str {
        "comparisons"
    }

    fn wants(&self, door: &mut D, id: SeedId) -> bool {
        let fuzzer = door.fuzzer();
        let seed = &fuzzer.corpus[id];
        let is_open = seed.favored && !seed.compared && !fuzzer.foreign_only;
        // Of what hooks make of an input, places in the input say nothing.
        let is_open = is_open && !fuzzer.mutators.touch_runs();
        let share = FIRST_RUNS + fuzzer.target().execs() as f64 / SHARE;
        is_open
            && fuzzer.mutation.solves_comparisons
            && fuzzer.target().logs_comparisons()
            && fuzzer.comparing <= share
    }

    /// An input that turns a comparison is worked on as well, also if it shows nothing that makes it a seed: the
    /// compiler may have made one branch of several comparisons.
    fn run(&self, door: &mut D, id: SeedId) -> Result<StageEnd, D::Error> {
        let Some(budget) = door.fuzzer().budget(id) else { return Ok(StageEnd::TurnOver) };
        let limit = Limit::new(door, budget.longest());
        door.fuzzer_mut().corpus[id].compared = true;
        let before = door.fuzzer().effort();
        let end = solve(door, id, limit);
        let fuzzer = door.fuzzer_mut();
        fuzzer.comparing += fuzzer.cost_since(before);
        end
    }
}

/// When the work on a seed is over, see [`Budget::longest`].
#[derive(Clone, Copy)]
struct Limit {
    budget: Budget,
    execs: u64,
    spent: Duration,
}

impl Limit {
    fn new<D: Door>(door: &D, budget: Budget) -> Self {
        let target = door.fuzzer().target();
        Self { budget, execs: target.execs(), spent: target.spent().whole() }
    }

    fn is_reached<D: Door>(&self, door: &D) -> bool {
        let target = door.fuzzer().target();
        self.budget.is_used(target.execs() - self.execs, target.spent().whole() - self.spent)
    }
}

fn solve<D: Door>(door: &mut D, id: SeedId, limit: Limit) -> Result<StageEnd, D::Error> {
    let mut inputs = VecDeque::from([door.fuzzer().corpus[id].data.to_vec()]);
    for _ in 0..MOST_INPUTS {
        let Some(input) = inputs.pop_front() else { break };
        let Some(edits) = solutions(door, (id, &input), limit)? else {
            return Ok(StageEnd::TurnOver);
        };
        let room = MOST_INPUTS.saturating_sub(inputs.len());
        let turning = turning(door, (id, &input), &edits, (room, limit))?;
        let Some(turning) = turning else { return Ok(StageEnd::TurnOver) };
        inputs.extend(turning);
        let mut solutions = Solutions { input, edits, done: 0, budget: limit.budget };
        if run_producer(door, id, &mut solutions)? == StageEnd::TurnOver {
            return Ok(StageEnd::TurnOver);
        }
        if limit.is_reached(door) {
            break;
        }
    }
    Ok(StageEnd::Finished)
}

/// Runs an input with its log, and colored as far as it takes the same path. None if the turn is to end.
fn solutions<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    limit: Limit,
) -> Result<Option<Vec<Edit>>, D::Error> {
    let log = logged(door, id, input, |log| log.to_own())?;
    door.fuzzer_mut().results.learn(log.view());
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
        let other = logged(door, id, &candidate, same)?;
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
    Ok(Some(edits(Logged { input, log, colored: &colored, colored_log })))
}

/// A run with its log. One that crashes or takes too long is no seed's path, but it is a find: it is run again without
/// the log, which shows its edges.
fn logged<D: Door, T>(
    door: &mut D,
    id: SeedId,
    input: &[u8],
    look: impl FnOnce(ComparisonLog<'_>) -> T,
) -> Result<T, D::Error> {
    let mut last = None;
    let (exit, seen) = door.logged(input, |log| {
        last = log.iter().last().map(|comparison| comparison.site);
        look(log)
    })?;
    if exit == ExitKind::Ok {
        return Ok(seen);
    }
    let step = Step::Stacked { op: "copy", count: 1 };
    let origin = Origin { parent: id, other: None, step, by: 0 };
    let candidate = Candidate { bytes: input.to_vec(), origin };
    match exit {
        ExitKind::Ok => {}
        ExitKind::Hang | ExitKind::Cut => door.fuzzer_mut().admission.put_off(&candidate, true),
        ExitKind::Crash { signal } => repeat(door, &candidate, signal, last)?,
        ExitKind::Oom => repeat(door, &candidate, libc::SIGKILL, last)?,
    }
    Ok(seen)
}

/// Repeats a crash without the log: alone, and after the inputs that its process got before. If it does not crash
/// again, the comparison that it made last tells it from others.
fn repeat<D: Door>(
    door: &mut D,
    candidate: &Candidate,
    signal: i32,
    last: Option<u32>,
) -> Result<(), D::Error> {
    let record = door.fuzzer_mut().take_record();
    let alone = door.run(Run::judged(&candidate.bytes))?;
    door.keep_if_deserved(candidate, alone.verdict.unwrap_or_default())?;
    if crashes(alone.exit) {
        return Ok(());
    }
    let unique = door.fuzzer_mut().unrepeated.insert(last);
    if unique && let Some(after) = replay(door, &record)? {
        door.keep_if_deserved(candidate, after)?;
    } else {
        door.crashed(candidate, Crash::of_target(signal, unique))?;
    }
    Ok(())
}

/// Gives a new process the recorded inputs. The verdict on the last one, if that crashes.
fn replay<D: Door>(door: &mut D, record: &[Vec<u8>]) -> Result<Option<Verdict>, D::Error> {
    let Some((last, before)) = record.split_last() else { return Ok(None) };
    door.fuzzer_mut().end_process();
    let begin = Instant::now();
    for input in before {
        let seen = door.run(Run { is_delivered: true, ..Run::of(input) })?;
        if seen.exit != ExitKind::Ok || begin.elapsed() > LONGEST_REPLAY || door.is_over() {
            return Ok(None);
        }
    }
    let seen = door.run(Run { is_delivered: true, ..Run::judged(last) })?;
    Ok(seen.verdict.filter(|_| crashes(seen.exit)))
}

fn crashes(exit: ExitKind) -> bool {
    matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom)
}

/// Inputs that bring a comparison to a result that no run has shown. None if the turn is to end.
fn turning<D: Door>(
    door: &mut D,
    (id, input): (SeedId, &[u8]),
    edits: &[Edit],
    (most, limit): (usize, Limit),
) -> Result<Option<Vec<Vec<u8>>>, D::Error> {
    let (mut turning, mut bytes) = (Vec::new(), Vec::new());
    let fuzzer = door.fuzzer();
    let lengths = fuzzer.mutation.min_len..=fuzzer.mutation.max_len;
    let open = edits.iter().filter(|edit| fuzzer.results.is_one_sided(edit.site));
    for edit in open.take(MOST_COLORIZATIONS).cloned().collect::<Vec<_>>() {
        if turning.len() >= most || limit.is_reached(door) {
            break;
        }
        if door.between_batches()? {
            return Ok(None);
        }
        edit.apply(input, &mut bytes);
        if !lengths.contains(&bytes.len()) || !door.fuzzer().results.is_one_sided(edit.site) {
            continue;
        }
        let log = logged(door, id, &bytes, |log| log.to_own())?;
        if door.fuzzer_mut().results.learn(log.view()) {
            turning.push(bytes.clone());
        }
    }
    Ok(Some(turning))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{ComparisonKind, OwnLog};
    use crate::corpus::Origin;
    use crate::executor::RunError;
    use crate::fake::FakeExecutor;
    use crate::fuzzer::admit::Stored;
    use crate::fuzzer::{AdmissionOptions, Fuzzer, Plan};
    use crate::mutate::dictionary::Dictionary;
    use crate::mutate::foreign::NoMutators;
    use crate::options::{MutationOptions, Wanted};
    use crate::runner::Runner;
    use crate::schedule::ScheduleOptions;

    struct Search(Fuzzer<NoMutators>, Vec<Vec<u8>>);

    impl Door for Search {
        type Mutators = NoMutators;
        type Error = RunError;

        fn fuzzer(&self) -> &Fuzzer<NoMutators> {
            &self.0
        }

        fn fuzzer_mut(&mut self) -> &mut Fuzzer<NoMutators> {
            &mut self.0
        }

        fn crashed(
            &mut self,
            candidate: &Candidate,
            crash: Crash,
        ) -> Result<Option<Stored>, RunError> {
            self.1.extend(crash.unique.then(|| candidate.bytes.clone()));
            Ok(None)
        }

        fn hung(&mut self, candidate: &Candidate) -> Result<Option<Stored>, RunError> {
            self.1.push(candidate.bytes.clone());
            Ok(None)
        }
    }

    /// Gates one behind the other, each a comparison.
    fn gates(input: &[u8], mut log: impl FnMut(u32, u8, u64, u64)) -> usize {
        if input.len() < 40 {
            return 0;
        }
        let part = |at: usize, count: usize| {
            let mut bytes = [0; 8];
            bytes[..count].copy_from_slice(&input[at..at + count]);
            u64::from_le_bytes(bytes)
        };
        let gates = [
            (2, part(0, 2), 0xbeef),
            (4, u64::from((part(3, 4) as u32).swap_bytes()), 0xcafe_f00d),
            (8, part(8, 8).swap_bytes(), 0x1122_3344_5566_7788),
            (4, part(20, 1), 0x51),
            (4, part(24, 4), part(30, 4) + 7),
        ];
        for (number, (bytes, value, wanted)) in gates.iter().enumerate() {
            log(number as u32, *bytes, *value, *wanted);
            if value != wanted {
                return number;
            }
        }
        gates.len()
    }

    #[test]
    fn gates_one_behind_the_other_are_passed() {
        for exit in [ExitKind::Crash { signal: 6 }, ExitKind::Hang] {
            passes_gates(exit);
        }
    }

    fn passes_gates(exit: ExitKind) {
        let executor = FakeExecutor::new(8, vec![], move |input, edges, _| {
            let passed = gates(input, |_, _, _, _| {});
            edges[..=passed].fill(1);
            if passed == 5 { exit } else { ExitKind::Ok }
        });
        let executor = executor.logging(|input, log: &mut OwnLog| {
            gates(input, |site, bytes, a, b| {
                log.add_integers(site, ComparisonKind::Equal, bytes, a, b)
            });
        });
        let plan = Plan {
            mutation: MutationOptions::default(),
            foreign_only: false,
            schedule: ScheduleOptions { fixed_seed: true, ..Default::default() },
            watch_domains: false,
            wanted: Wanted::default(),
            admission: AdmissionOptions::default(),
            rng_seed: 1,
        };
        let runner = Runner::new(Box::new(executor));
        let mut search =
            Search(Fuzzer::new(runner, NoMutators, Dictionary::default(), plan), vec![]);
        let bytes = vec![b'x'; 48];
        search.try_out(&Candidate { bytes, origin: Origin::injected(0) }).unwrap();
        for _ in 0..6 {
            let id = SeedId(search.0.corpus.next_id().0 - 1);
            search.0.pick();
            assert!(Stage::<Search>::wants(&Comparisons, &mut search, id), "{id:?}");
            Comparisons.run(&mut search, id).unwrap();
            search.look_around().unwrap();
            if !search.1.is_empty() {
                break;
            }
        }
        assert!(search.0.target().execs() < 1000, "{}", search.0.target().execs());
        assert_eq!(
            search.1.len(),
            1,
            "{:?}",
            search.0.corpus.iter().map(|s| s.data.clone()).collect::<Vec<_>>()
        );
    }
}
