//! Comparisons: for each favored seed of a target that logs, the stage tries to flip the comparisons of the seed's
//! run. If an operand is a copy of bytes of the seed, the other operand replaces them (copies.rs). If that flips
//! nothing, runs show which bytes decide the open comparisons, and how (probe.rs).

pub(super) mod ask;
mod copies;
mod probe;
mod restore;
mod short;
mod sites;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use self::ask::{Ask, Work};
use self::short::ShortRounds;
use super::repair::run_logged;
use super::share::Stop;
use super::{Kept, Stage, StageEnd, Turn};
use crate::corpus::{BySeed, Origin, Seed, SeedId, Step};
use crate::executor::ExitKind;
use crate::feedback::Verdict;
use crate::fuzzer::Fuzzer;
use crate::fuzzer::admit::Crash;
use crate::fuzzer::door::{Discovery, Door, Host, Part, Run};
use crate::messages;
use crate::mutate::foreign::ForeignMutators;
use crate::mutate::{Candidate, below};
use crate::runner::SLOWER;
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Purpose, SLICE};
use ffuzz_comparisons::log::{ComparisonKind, ComparisonLog, OwnLog};
use ffuzz_comparisons::results::{Missing, Place, SiteCounts};

/// Factor by which the budget of a seed grows with each round. The first round has the budget of a turn, which is
/// milliseconds on a fast target and enough for most seeds. A round ends after its current input.
const LONGER: u32 = 4;
const MOST_ROUNDS: u32 = 6;
/// Marks a seed whose comparisons are done, as its number of rounds.
const COMPARED: u32 = u32::MAX;
/// Work on all favored seeds starts over when at least this much time is left, and at least half of the share; or a
/// slice of runs, if time does not count.
const AGAIN: Duration = Duration::from_millis(250);
/// Maximum bytes of inputs kept for the next round of a seed, and of seeds with such inputs. Other rounds start over
/// with the seed.
const LARGEST_CUT: usize = 1 << 16;
const MOST_CUT: usize = 512;
/// Share of long rounds in the stage's time while there is work for short rounds.
const LONG_PART: f64 = 0.25;
/// Maximum number of seeds scanned before a short round.
const SCANS: u32 = 16;
/// Length of one series of short rounds.
const SHORT_SLICE: Effort = Effort { runs: 2000, time: Duration::from_millis(100) };
/// Minimum number of runs in a slice. A run with the log often needs a new process, and the first run of a slice
/// shows nothing.
const SLICE_RUNS: u32 = 8;
/// Maximum number of inputs in a round, for copies and for the probe.
const MOST_INPUTS: usize = 64;
/// An attempt that no longer reaches its comparison is repeated with a longer input: it may have changed a length or
/// an offset. Maximum number of such repeats for one input or comparison, and the bytes added.
const MOST_EXTENSIONS: usize = 64;
const EXTENSION: usize = 64;
/// Maximum number of inputs in a round that are tried with more bytes at their end if nothing flips: the program may
/// read a field there.
const MOST_LENGTHENED: usize = 2;
/// Maximum time to repeat the inputs before a crash.
const LONGEST_REPLAY: Duration = Duration::from_secs(2);

pub(super) struct Comparisons<H: Host> {
    short: ShortRounds,
    /// Effort of all long rounds.
    long: Effort,
    /// Number of long rounds of each seed, or [`COMPARED`].
    rounds: BySeed<u32>,
    /// The paused round, continued before another seed starts. Only one, because logs are large.
    paused: Option<Round<H>>,
    /// Inputs left over from rounds that reached their limit.
    cut: BySeed<Inputs>,
    /// Number of the choice of favored seeds for which no seed is left.
    idle_since: Option<u64>,
    /// True if all of this state is from logs of another build than the target (`-c`).
    is_foreign: bool,
}

/// A round of a seed.
struct Round<H: Host> {
    id: SeedId,
    /// Effort in earlier slices.
    spent: Effort,
    work: Work<H, Inputs>,
}

impl<H: Host> Default for Comparisons<H> {
    fn default() -> Self {
        Self {
            short: ShortRounds::default(),
            long: Effort::ZERO,
            rounds: BySeed::new(),
            paused: None,
            cut: BySeed::new(),
            idle_since: None,
            is_foreign: false,
        }
    }
}

impl<H: Host> Stage<H> for Comparisons<H> {
    fn name(&self) -> &'static str {
        "comparisons"
    }

    fn wants(&mut self, turn: &mut Turn<'_, H>) -> bool {
        let fuzzer = turn.door.fuzzer();
        if fuzzer.has_logger() != self.is_foreign {
            *self = Self { is_foreign: fuzzer.has_logger(), ..Self::default() };
        }
        if !are_solved(fuzzer) || !has_share(&turn.door) {
            return false;
        }
        self.short.note_new(&fuzzer.corpus, fuzzer.compares_from);
        let is_idle = self.is_idle(fuzzer) && self.paused.is_none();
        !is_idle || may_begin_again(&turn.door) || self.has_short_work(fuzzer)
    }

    /// Works on inputs that flip a comparison as well, even if they do not become seeds: the compiler may have merged
    /// several comparisons into one branch. The stage chooses its seeds itself, whatever seed has the turn: it
    /// continues paused work, then takes the favored seed with the fewest rounds.
    fn run(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        if self.is_idle(turn.door.fuzzer()) && may_begin_again(&turn.door) {
            self.begin_again(turn);
        }
        if self.paused.is_none() && self.is_short_due(&turn.door) {
            turn.door.open(Purpose::Comparisons);
            let end = turn.timed(Part::Comparisons, |turn| self.run_short(turn));
            turn.door.close(Purpose::Comparisons);
            match end? {
                Short::Over => return Ok(StageEnd::TurnOver),
                Short::Done => return Ok(StageEnd::Finished),
                Short::NoneLeft if self.is_idle(turn.door.fuzzer()) => {
                    return Ok(StageEnd::Finished);
                }
                Short::NoneLeft => {}
            }
        }
        let before = turn.door.taken();
        let end = self.run_long(turn);
        self.long = self.long.and(turn.door.taken().since(before));
        end
    }

    fn save(&self, fuzzer: &Fuzzer<H::Mutators>) -> Option<Value> {
        let saved = serde_json::to_value((&self.rounds, &self.short));
        (!fuzzer.has_logger()).then(|| saved.ok()).flatten()
    }

    fn load(&mut self, saved: Value, kept: Kept<'_>) -> bool {
        let Ok((mut rounds, mut short)) = serde_json::from_value(saved) else { return false };
        kept.retain(&mut rounds);
        ShortRounds::retain(&mut short, |id| kept.has(id));
        (self.rounds, self.short) = (rounds, short);
        true
    }
}

/// How a series of short rounds ended.
enum Short {
    /// The turn is to end.
    Over,
    Done,
    /// No site is left for a short round.
    NoneLeft,
}

impl<H: Host> Comparisons<H> {
    /// True if short rounds have work. Never with logs that omit equal integers: they do not show that a site was
    /// passed.
    fn has_short_work(&self, fuzzer: &Fuzzer<H::Mutators>) -> bool {
        !fuzzer.has_partial_log() && self.short.has_work()
    }

    /// True if a short round comes next: long rounds have used up [`LONG_PART`] of the stage's time.
    fn is_short_due(&self, door: &Door<'_, H>) -> bool {
        let counts_time = door.fuzzer().counts_time();
        let [long, all] = [self.long, used(door)].map(|effort| effort.amount(counts_time));
        let is_long_due = long < all * LONG_PART;
        self.has_short_work(door.fuzzer()) && !is_long_due
    }

    fn run_short(&mut self, turn: &mut Turn<'_, H>) -> Result<Short, H::Error> {
        let (begin, mut scans) = (turn.door.taken(), 0);
        loop {
            if scans < SCANS && self.short.scan_next(turn)? {
                scans += 1;
            } else {
                scans = 0;
                if !self.short.solve_next(turn)? {
                    return Ok(Short::NoneLeft);
                }
            }
            let done = turn.door.taken().since(begin);
            self.short.note_new(&turn.door.fuzzer().corpus, turn.door.fuzzer().compares_from);
            if turn.door.between_batches()? {
                return Ok(Short::Over);
            }
            let counts_time = turn.door.fuzzer().counts_time();
            if done.amount(counts_time) >= SHORT_SLICE.amount(counts_time)
                || !turn.door.may(Purpose::Comparisons, Effort::ZERO)
            {
                return Ok(Short::Done);
            }
        }
    }

    /// Runs one slice of a long round.
    fn run_long(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
        let fuzzer = turn.door.fuzzer_mut();
        let paused = self.paused.take().filter(|round| !fuzzer.corpus[round.id].disabled);
        let Some(mut round) = paused.or_else(|| self.next_round(fuzzer)) else {
            self.idle_since = Some(fuzzer.scheduler.choices());
            return Ok(StageEnd::Finished);
        };
        let id = round.id;
        let rounds = self.rounds.get(&id).copied().unwrap_or(0);
        let after = if rounds < MOST_ROUNDS { rounds + 1 } else { COMPARED };
        let Some(budget) = fuzzer.budget(id) else {
            self.rounds.insert(id, after);
            return Ok(StageEnd::Finished);
        };
        fuzzer.limit_mutants_of(id);
        let budget = budget.longest().times(LONGER.saturating_pow(rounds));
        let (before, begin) = (round.spent, fuzzer.effort());
        let limit = Limit { budget, before, begin };
        turn.door.open(Purpose::Comparisons);
        let turn = &mut turn.of(id);
        let end = turn.timed(Part::Comparisons, |turn| {
            if let Some(input) = round.work.paused_at() {
                // Warm up the process, see `settled`.
                logged(turn, origin(id, "copy"), &mut input.to_vec(), |_| ())?;
            }
            round.work.go_on(turn, limit)
        });
        turn.door.close(Purpose::Comparisons);
        match end {
            Ok(left) => {
                let is_cut = limit.is_reached(turn);
                self.rounds.insert(id, if is_cut { after } else { COMPARED });
                if is_cut && left.are_small() && self.cut.len() < MOST_CUT {
                    self.cut.insert(id, left);
                }
            }
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Spent | Stop::TurnOver) => {
                round.spent = round.spent.and(turn.door.fuzzer().effort().since(limit.begin));
                self.paused = Some(round);
            }
        }
        Ok(if turn.door.is_over() { StageEnd::TurnOver } else { StageEnd::Finished })
    }

    fn is_idle<M>(&self, fuzzer: &Fuzzer<M>) -> bool {
        self.idle_since == Some(fuzzer.scheduler.choices())
    }

    fn next_round<M>(&mut self, fuzzer: &Fuzzer<M>) -> Option<Round<H>> {
        let id = self.next_seed(fuzzer)?;
        let inputs = self.cut.remove(&id).unwrap_or_else(|| Inputs {
            fresh: vec![fuzzer.corpus[id].data.to_vec()],
            unprobed: VecDeque::new(),
        });
        let work = Work::new(|ask| solve(ask, inputs));
        Some(Round { id, spent: Effort::default(), work })
    }

    /// The favored seed with the fewest rounds. Seeds with inputs left over from a round also qualify, after favored
    /// ones: the seed that replaced them lacks these inputs. Ties go to the seed with most ahead, then to the oldest.
    fn next_seed<M>(&self, fuzzer: &Fuzzer<M>) -> Option<SeedId> {
        let is_wanted = |seed: &Seed| seed.favored || self.cut.contains_key(&seed.id);
        let seeds = fuzzer.corpus.iter().skip(fuzzer.compares_from.index());
        let open = seeds.filter(|seed| is_wanted(seed) && !seed.disabled);
        let rounds = |seed: &Seed| self.rounds.get(&seed.id).copied().unwrap_or(0);
        let ahead = |seed: &Seed| Reverse(fuzzer.scheduler.ahead_of(seed.id).to_bits());
        let open = open.map(|seed| (rounds(seed), !seed.favored, ahead(seed), seed.id));
        open.filter(|(rounds, ..)| *rounds < COMPARED).min().map(|(.., id)| id)
    }

    fn begin_again(&mut self, turn: &mut Turn<'_, H>) {
        self.idle_since = None;
        turn.shared.logs.results.forget_failures();
        self.short.begin_again();
        self.rounds.retain(|_, rounds| *rounds != COMPARED);
    }
}

/// True if half of the stage's share is unspent, and no less than [`AGAIN`]: other random choices may succeed.
fn may_begin_again<H: Host>(door: &Door<'_, H>) -> bool {
    let again = Effort { runs: SLICE.runs, time: used(door).time.max(AGAIN) };
    door.may(Purpose::Comparisons, again)
}

/// Whether the remaining share is worth a slice. The first slice needs none.
fn has_share<H: Host>(door: &Door<'_, H>) -> bool {
    let used = used(door);
    let average = used.time.div_f64(used.runs.max(1) as f64);
    let time = SLICE.time.max(average * SLICE_RUNS);
    used.runs == 0 || door.may(Purpose::Comparisons, Effort { time, ..SLICE })
}

fn used<H: Host>(door: &Door<'_, H>) -> Effort {
    door.fuzzer().ledger[Purpose::Comparisons].used(door.taken())
}

/// Whether the search solves comparisons. Not if hooks rewrite inputs: positions in an input then mean nothing.
pub(super) fn are_solved<M: ForeignMutators>(fuzzer: &Fuzzer<M>) -> bool {
    let is_possible = !fuzzer.foreign_only && !fuzzer.mutators.touch_runs();
    is_possible && fuzzer.mutation.solves_comparisons && fuzzer.logs_comparisons()
}

/// The current input and the log of its run.
#[derive(Debug)]
struct Base {
    input: Rc<[u8]>,
    /// The input with other bytes where they decide nothing, see [`Logged`](ffuzz_comparisons::input_to_state::Logged).
    colored: Rc<[u8]>,
    counts: SiteCounts,
    log: OwnLog,
}

impl Base {
    fn of(input: &Rc<[u8]>, colored: Rc<[u8]>, log: OwnLog) -> Self {
        Self { input: input.clone(), colored, counts: SiteCounts::of(log.view()), log }
    }

    /// Applies the changes of `changed` to the colored input. Returns `changed` itself if its length differs.
    fn colored_like(&self, changed: &[u8]) -> Vec<u8> {
        if changed.len() != self.input.len() {
            return changed.to_vec();
        }
        let bytes = changed.iter().zip(&*self.input).zip(&*self.colored);
        bytes.map(|((new, old), colored)| if new == old { *colored } else { *new }).collect()
    }
}

/// Decides when the work on a seed ends, see [`Budget::longest`], and when it pauses.
#[derive(Clone, Copy)]
struct Limit {
    budget: Budget,
    /// Spent on the seed before this slice.
    before: Effort,
    begin: Effort,
}

impl Limit {
    /// True if the budget is used up, or if comparisons can no longer be logged.
    fn is_reached<H: Host>(&self, turn: &Turn<'_, H>) -> bool {
        let done = self.before.and(turn.door.fuzzer().effort().since(self.begin));
        let is_used = self.budget.is_used(done.runs, done.time);
        is_used || !turn.door.fuzzer().logs_comparisons()
    }

    /// Checks whether to continue; called before each run that can wait.
    fn check<H: Host>(&self, turn: &mut Turn<'_, H>) -> Result<(), Stop<H::Error>> {
        if turn.door.between_batches()? {
            return Err(Stop::TurnOver);
        }
        match turn.door.may(Purpose::Comparisons, Effort::ZERO) {
            true => Ok(()),
            false => Err(Stop::Spent),
        }
    }
}

/// Inputs of one seed still to be solved.
#[derive(Debug)]
struct Inputs {
    /// Inputs whose copies are tried next, the last one first.
    fresh: Vec<Vec<u8>>,
    unprobed: VecDeque<Unprobed>,
}

/// An input whose copies were tried and that is to be probed.
#[derive(Debug)]
struct Unprobed {
    input: Rc<[u8]>,
    /// See [`Base`].
    colored: Rc<[u8]>,
}

impl Inputs {
    /// True if the inputs can be kept until the next round.
    fn are_small(&self) -> bool {
        let fresh = self.fresh.iter().map(Vec::len);
        let unprobed = self.unprobed.iter().map(|one| one.input.len() * 2);
        (1..=LARGEST_CUT).contains(&fresh.chain(unprobed).sum())
    }
}

/// Solves a seed and the inputs that flipped something, the newest first: behind a comparison comes another one.
/// Probes cost more and come after all copies. Returns the inputs that are left.
async fn solve<H: Host>(ask: Ask<H>, mut inputs: Inputs) -> Inputs {
    let mut lengthened = 0;
    for _ in 0..MOST_INPUTS {
        let flipping = if let Some(input) = inputs.fresh.pop() {
            let of: Rc<[u8]> = Rc::from(&*input);
            ask.begin(Rc::clone(&of));
            let (flipping, colored) = copies::flip(&ask, &of).await;
            let tried = Unprobed { input: of, colored };
            if ask.is_over() {
                inputs.fresh.push(input);
            } else if flipping.is_empty() {
                inputs.unprobed.push_back(tried);
            } else {
                // The inputs that flipped it are probed first.
                inputs.unprobed.push_front(tried);
            }
            flipping
        } else if let Some(unprobed) = inputs.unprobed.pop_back() {
            ask.begin(Rc::clone(&unprobed.input));
            let flipping = probe::flip(&ask, &unprobed).await;
            if ask.is_over() {
                inputs.unprobed.push_back(unprobed);
            } else if flipping.is_empty() && lengthened < MOST_LENGTHENED {
                lengthened += 1;
                let longer = ask.order(move |turn| {
                    let mut input = unprobed.input.to_vec();
                    extend(turn, &mut input);
                    logged(turn, origin(turn.id, "length"), &mut input, |_| ())?;
                    Ok(input)
                });
                inputs.fresh.push(longer.await);
            }
            flipping
        } else {
            break;
        };
        // The first flipped input comes next: most remains behind it.
        inputs.fresh.extend(flipping.into_iter().rev());
        if ask.is_over() {
            break;
        }
    }
    inputs
}

/// Adds random letters at the end, so that repair can locate a field that is read from there, see [`run_logged`].
fn extend<H: Host>(turn: &mut Turn<'_, H>, bytes: &mut Vec<u8>) {
    let fuzzer = turn.door.fuzzer_mut();
    let count = EXTENSION.min(fuzzer.mutation.max_len.saturating_sub(bytes.len()));
    let more: Vec<u8> = (0..count).map(|_| b'a' + below(&mut fuzzer.rng, 26) as u8).collect();
    add_at_end(fuzzer.mutation.messages, bytes, &more);
}

/// Adds bytes at the end of an input: to its last message if it is a list of them.
pub(super) fn add_at_end(has_messages: bool, bytes: &mut Vec<u8>, more: &[u8]) {
    let mut longer = Vec::new();
    match has_messages && messages::edit(bytes, (bytes.len(), 0), more, &mut longer) {
        true => *bytes = longer,
        false => bytes.extend_from_slice(more),
    }
}

/// The origin of an input that a solver made from the seed.
pub(super) fn origin(id: SeedId, op: &'static str) -> Origin {
    Origin { parent: id, other: None, step: Step::Stacked { op, count: 1 }, by: 0 }
}

/// Whether a comparison missing in the log of the changed input is now equal, for logs that omit equal integers. If
/// the log is ambiguous, a usual run decides: it must make a seed.
fn comes_equal<H: Host>(
    turn: &mut Turn<'_, H>,
    (input, base): (&[u8], &SiteCounts),
    (place, kind): (Place, ComparisonKind),
    (log, bytes, origin): (ComparisonLog<'_>, &[u8], Origin),
) -> Result<bool, H::Error> {
    let missing = base.missing(&SiteCounts::of(log), place.site);
    let is_flipped = match missing {
        Missing::Not => false,
        Missing::Equal => true,
        Missing::EqualOrUnreached | Missing::Unknown => {
            let seeds = turn.door.fuzzer().corpus.next_id();
            try_out(turn, Candidate { bytes: bytes.to_vec(), origin })?;
            turn.door.fuzzer().corpus.next_id() != seeds
        }
    };
    if is_flipped && missing != Missing::Unknown {
        turn.shared.logs.results.learn_equal(place, kind, input);
    }
    Ok(is_flipped)
}

/// Log of the second of two runs: the first run of a process may initialize tables and take another path.
fn settled<H: Host>(turn: &mut Turn<'_, H>, input: &[u8]) -> Result<OwnLog, H::Error> {
    let origin = origin(turn.id, "copy");
    logged(turn, origin, &mut input.to_vec(), |_| ())?;
    logged(turn, origin, &mut input.to_vec(), |log| log.own_copy())
}

/// Runs an input with its log and repairs its fields. If the run crashes or times out, the input is run again without
/// the log, which shows its edges.
pub(super) fn logged<H: Host, T>(
    turn: &mut Turn<'_, H>,
    origin: Origin,
    input: &mut Vec<u8>,
    look: impl FnMut(ComparisonLog<'_>) -> T,
) -> Result<T, H::Error> {
    logged_to_end(turn, origin, input, look).map(|(seen, _)| seen)
}

/// As [`logged`]; also returns whether the run ended well.
fn logged_to_end<H: Host, T>(
    turn: &mut Turn<'_, H>,
    origin: Origin,
    input: &mut Vec<u8>,
    mut look: impl FnMut(ComparisonLog<'_>) -> T,
) -> Result<(T, bool), H::Error> {
    let mut last = None;
    let (exit, seen) = run_logged(turn, input, |log| {
        last = log.iter().last().map(|comparison| comparison.site);
        look(log)
    })?;
    if exit == ExitKind::Ok {
        return Ok((seen, true));
    }
    let candidate = Candidate { bytes: input.clone(), origin };
    match exit {
        // The next fork server would die as well.
        ExitKind::Ok | ExitKind::Lost => {}
        ExitKind::Hang | ExitKind::Cut => {
            turn.door.fuzzer_mut().admission.put_off(&candidate, true)
        }
        ExitKind::Crash { signal } => repeat(turn, &candidate, signal, last)?,
        ExitKind::Oom => repeat(turn, &candidate, libc::SIGKILL, last)?,
    }
    Ok((seen, false))
}

/// Runs a logged input as a usual mutant; a run over the soft limit is cut.
pub(super) fn try_out<H: Host>(
    turn: &mut Turn<'_, H>,
    candidate: Candidate,
) -> Result<(), H::Error> {
    turn.door.run_batch(&[candidate], None).map(drop)
}

/// Repeats a crash without the log: alone, then after the earlier inputs of its process. If it does not recur, its
/// last comparison distinguishes it from other crashes.
fn repeat<H: Host>(
    turn: &mut Turn<'_, H>,
    candidate: &Candidate,
    signal: i32,
    last: Option<u32>,
) -> Result<(), H::Error> {
    // A crash of another build need not be one of the target.
    let is_own = !turn.door.fuzzer().has_logger();
    let record = if is_own { turn.door.fuzzer_mut().take_record() } else { Vec::new() };
    // On a busy machine a crash may take longer than any seed.
    let timeout = Some(turn.door.fuzzer().timeout() * SLOWER);
    let alone = turn.door.run(Run { timeout, ..Run::judged(&candidate.bytes) })?;
    turn.door.keep_if_deserved(candidate, alone.verdict.unwrap_or_default())?;
    if crashes(alone.exit) || !is_own {
        return Ok(());
    }
    let unique = turn.shared.logs.unrepeated.insert(last);
    if unique && let Some(after) = replay(turn, &record)? {
        turn.door.keep_if_deserved(candidate, after)?;
    } else {
        let crash = Crash::of_target(signal, unique);
        turn.door.store(candidate, Discovery::Crash(crash))?;
    }
    Ok(())
}

/// Runs the recorded inputs in a new process. Returns the verdict on the last one if it crashes.
fn replay<H: Host>(
    turn: &mut Turn<'_, H>,
    record: &[Vec<u8>],
) -> Result<Option<Verdict>, H::Error> {
    let Some((last, before)) = record.split_last() else { return Ok(None) };
    turn.door.fuzzer_mut().end_process();
    let begin = turn.door.elapsed();
    for input in before {
        let seen = turn.door.run(Run { is_delivered: true, ..Run::of(input) })?;
        if seen.exit != ExitKind::Ok
            || turn.door.elapsed() - begin > LONGEST_REPLAY
            || turn.door.is_over()
        {
            return Ok(None);
        }
    }
    let seen = turn.door.run(Run { is_delivered: true, ..Run::judged(last) })?;
    Ok(seen.verdict.filter(|_| crashes(seen.exit)))
}

fn crashes(exit: ExitKind) -> bool {
    matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::corpus::Origin;
    use crate::fake::FakeExecutor;
    use crate::schedule::{ScheduleOptions, Scheduler};
    use crate::stage::fake::Search;

    /// A chain of gates, each a comparison. The last ones compare calculated values.
    fn gates(input: &[u8], mut log: impl FnMut(u32, u8, u64, u64)) -> usize {
        if input.len() < 40 {
            return 0;
        }
        let part = |at: usize, count: usize| {
            let mut bytes = [0; 8];
            bytes[..count].copy_from_slice(&input[at..at + count]);
            u64::from_le_bytes(bytes)
        };
        let digits = input[36..].iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        let gates = [
            (2, part(0, 2), 0xbeef),
            (4, u64::from((part(3, 4) as u32).swap_bytes()), 0xcafe_f00d),
            (8, part(8, 8).swap_bytes(), 0x1122_3344_5566_7788),
            (4, part(20, 1), 0x51),
            (4, part(24, 4), part(30, 4) + 7),
            (4, (part(43, 4) * 7) & 0xffff_ffff, 0x1234_5678),
            (8, number, 86_421),
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

    #[test]
    fn so_they_are_if_another_program_logs_only_what_differs() {
        let logger = FakeExecutor::new(8, vec![], |_, _, _| ExitKind::Ok);
        let logger = logger.logging_partially(|input, log: &mut OwnLog| {
            gates(input, |site, bytes, a, b| {
                if a != b {
                    log.add_variables(site, ComparisonKind::Equal, bytes, a, b);
                }
            });
        });
        let mut search = Search::of(gated(ExitKind::Crash { signal: 6 }));
        search.0.log_by(Box::new(logger));
        run_until_found(&mut search);
        assert!(search.0.effort().runs < 3000, "{:?}", search.0.effort());
        // Without that build, nothing logs.
        search.0.lose_logger();
        assert!(!search.0.logs_comparisons());
    }

    /// Site numbers are specific to a build.
    #[test]
    fn what_the_logs_of_another_build_have_shown_is_forgotten() {
        let mut search = Search::of(gated(ExitKind::Ok).logging(|_, _| {}));
        let (bytes, origin) = (vec![b'x'; 48], Origin::injected(0));
        search.door().try_out(&Candidate { bytes, origin }).unwrap();
        let mut stage = Comparisons::default();
        stage.rounds.insert(SeedId(0), COMPARED);
        search.turn(SeedId(0), |turn| stage.wants(turn));
        assert_eq!(stage.rounds.len(), 1);
        let logger = FakeExecutor::new(8, vec![], |_, _, _| ExitKind::Ok).logging(|_, _| {});
        search.0.log_by(Box::new(logger));
        search.turn(SeedId(0), |turn| stage.wants(turn));
        assert!(stage.rounds.is_empty());
    }

    /// Crashes or hangs behind the gates.
    fn gated(exit: ExitKind) -> FakeExecutor {
        FakeExecutor::new(8, vec![], move |input, edges, _| {
            let passed = gates(input, |_, _, _, _| {});
            edges[..=passed].fill(1);
            if passed == 7 { exit } else { ExitKind::Ok }
        })
    }

    fn passes_gates(exit: ExitKind) {
        let executor = gated(exit).logging(|input, log: &mut OwnLog| {
            gates(input, |site, bytes, a, b| {
                log.add_integers(site, ComparisonKind::Equal, bytes, a, b)
            });
        });
        let mut search = Search::of(executor);
        run_until_found(&mut search);
        assert!(search.0.target().execs() < 2000, "{}", search.0.target().execs());
    }

    /// Hundreds of seeds, each due for a long round, come before the one that reaches the gate.
    #[test]
    fn a_gate_that_only_the_newest_seed_comes_to_is_passed_at_once() {
        const SEEDS: u8 = 200;
        let part = |input: &[u8]| input[4..8].try_into().map(u32::from_be_bytes).unwrap_or(0);
        let executor = FakeExecutor::new(256, vec![], move |input, edges, _| {
            edges[usize::from(input[0])] = 1;
            let passes = input[0] == SEEDS && part(input) == 0xcafe_f00d;
            if passes { ExitKind::Crash { signal: 6 } } else { ExitKind::Ok }
        });
        let mut search = Search::of(executor.logging(move |input, log: &mut OwnLog| {
            for byte in &input[1..] {
                log.add_integers(1, ComparisonKind::Equal, 1, (*byte).into(), 200);
            }
            if input[0] == SEEDS {
                log.add_integers(2, ComparisonKind::Equal, 4, part(input).into(), 0xcafe_f00d);
            }
        }));
        for first in 1..=SEEDS {
            let mut bytes = vec![b'a' + first % 20; 24];
            bytes[0] = first;
            search.door().try_out(&Candidate { bytes, origin: Origin::injected(0) }).unwrap();
        }
        let (before, mut stage) = (search.0.target().execs(), Comparisons::default());
        let id = search.0.pick().unwrap();
        assert!(search.turn(id, |turn| stage.wants(turn)));
        search.turn(id, |turn| stage.run(turn)).unwrap();
        search.door().look_around().unwrap();
        assert_eq!(search.1.len(), 1, "the gate is shut");
        let runs = search.0.target().execs() - before;
        assert!(runs < 2500, "{runs}");
    }

    /// Runs with a log may take much longer than others: their time counts, not their number.
    #[test]
    fn the_stage_has_its_part_of_the_time() {
        let clock = Rc::new(Cell::new(Duration::from_millis(10)));
        let executor = gated(ExitKind::Ok).timed_by(&clock).logging(|_, _| {});
        let mut search = Search::of(executor);
        search.0.scheduler = Scheduler::new(ScheduleOptions::default(), 8, &[]);
        for _ in 0..100 {
            search.door().run(Run::judged(&[0; 48])).unwrap();
        }
        assert_eq!(search.0.effort().time, Duration::from_secs(1));
        for (milliseconds, expected) in [(0, true), (595, true), (605, false)] {
            let spent = Effort { runs: 100, time: Duration::from_millis(milliseconds) };
            let mut other = search.0.ledger[Purpose::Comparisons].clone();
            std::mem::swap(&mut other, &mut search.0.ledger[Purpose::Comparisons]);
            search.0.ledger[Purpose::Comparisons].spend(spent);
            assert_eq!(has_share(&search.door()), expected, "{milliseconds} ms");
            search.0.ledger[Purpose::Comparisons] = other;
        }
    }

    /// Paused work on a seed continues where it stopped.
    #[test]
    fn slow_runs_with_a_log_take_no_more_than_their_part() {
        let clock = Rc::new(Cell::new(Duration::ZERO));
        let (usual, logged) = (clock.clone(), clock.clone());
        let executor = FakeExecutor::new(8, vec![], move |input, edges, _| {
            usual.set(Duration::from_millis(100));
            let passed = gates(input, |_, _, _, _| {});
            edges[..=passed].fill(1);
            if passed == 7 { ExitKind::Crash { signal: 6 } } else { ExitKind::Ok }
        });
        let executor = executor.timed_by(&clock).logging(move |input, log: &mut OwnLog| {
            logged.set(Duration::from_millis(100));
            gates(input, |site, bytes, a, b| {
                log.add_integers(site, ComparisonKind::Equal, bytes, a, b)
            });
        });
        let mut search = Search::of(executor);
        search.0.scheduler = Scheduler::new(ScheduleOptions::default(), 8, &[]);
        search
            .door()
            .try_out(&Candidate { bytes: vec![b'x'; 48], origin: Origin::injected(0) })
            .unwrap();
        let (mut stage, mut pauses) = (Comparisons::default(), 0);
        while search.1.is_empty() {
            for _ in 0..100 {
                search.door().run(Run::judged(&[0; 48])).unwrap();
            }
            search.0.pick();
            let id = SeedId(search.0.corpus.next_id().0 - 1);
            if search.turn(id, |turn| stage.wants(turn)) {
                search.turn(id, |turn| stage.run(turn)).unwrap();
                pauses += u32::from(stage.paused.is_some());
            }
            let (used, all) = (used(&search.door()), search.0.effort());
            // Some runs cannot wait, such as the second of a pair.
            let slice = SLICE.time + SLICE_RUNS * Duration::from_millis(100);
            let most = all.time.mul_f64(0.1) + Duration::from_millis(500) + slice;
            assert!(used.time < most, "{used:?} of {all:?}");
            assert!(all.time < Duration::from_secs(10_000), "{used:?} of {all:?}, {pauses} pauses");
        }
        let used = used(&search.door());
        assert!(pauses > 10 && used.runs < 4000, "{pauses} pauses, {used:?}");
    }

    fn run_until_found(search: &mut Search) {
        let bytes = vec![b'x'; 48];
        search.door().try_out(&Candidate { bytes, origin: Origin::injected(0) }).unwrap();
        let mut stage = Comparisons::default();
        for _ in 0..8 {
            let id = SeedId(search.0.corpus.next_id().0 - 1);
            search.0.pick();
            assert!(search.turn(id, |turn| stage.wants(turn)), "{id:?}");
            search.turn(id, |turn| stage.run(turn)).unwrap();
            search.door().look_around().unwrap();
            if !search.1.is_empty() {
                break;
            }
        }
        assert_eq!(
            search.1.len(),
            1,
            "{:?}",
            search.0.corpus.iter().map(|s| s.data.clone()).collect::<Vec<_>>()
        );
    }
}
