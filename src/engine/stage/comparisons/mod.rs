//! Comparisons: for each favored seed of a target that logs, the stage tries to flip the comparisons of the seed's
//! run. Which inputs to run is decided by [`ffuzz_comparisons::work`]; this module decides when, and runs them.

mod edits;
pub(super) mod runs;
mod short;

use std::cmp::Reverse;
use std::time::Duration;

use rand_core::{Rng as _, SeedableRng as _};
use serde_json::Value;

use self::runs::{carry_out, lend, logged};
use self::short::ShortRounds;
use super::share::Stop;
use super::{Kept, Stage, StageEnd, Turn};
use crate::corpus::{BySeed, Seed, SeedId};
use crate::fuzzer::Fuzzer;
use crate::fuzzer::door::{Door, Host, Part};
use crate::mutate::Rng;
use crate::mutate::foreign::ForeignMutators;
use crate::schedule::Budget;
use crate::schedule::ledger::{Effort, Purpose, SLICE};
use ffuzz_comparisons::InputRules;
use ffuzz_comparisons::work::{Inputs, SeedInput, Work, work_on};

/// Factor by which the budget of a seed grows with each round. The first round has the budget of a turn, which is
/// milliseconds on a fast target and enough for most seeds. A round ends after its current input.
const LONGER: u32 = 4;
const MOST_ROUNDS: u32 = 6;
/// Marks a seed whose comparisons are done, as its number of rounds.
const COMPARED: u32 = u32::MAX;
/// Work on all favored seeds starts over when at least this much time is left, and at least half of the share; or a
/// slice of runs, if time does not count.
const AGAIN: Duration = Duration::from_millis(250);
/// Maximum number of seeds whose inputs are kept for their next round. Other rounds start over with the seed.
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

#[derive(Default)]
pub(super) struct Comparisons {
    short: ShortRounds,
    /// Effort of all long rounds.
    long: Effort,
    /// Number of long rounds of each seed, or [`COMPARED`].
    rounds: BySeed<u32>,
    /// The paused round, continued before another seed starts. Only one, because logs are large.
    paused: Option<Round>,
    /// Inputs left over from rounds that reached their limit.
    cut: BySeed<Inputs>,
    /// Number of the choice of favored seeds for which no seed is left.
    idle_since: Option<u64>,
    /// True if all of this state is from logs of another build than the target (`-c`).
    is_foreign: bool,
}

/// A round of a seed.
struct Round {
    id: SeedId,
    /// Effort in earlier slices.
    spent: Effort,
    work: Work<Inputs>,
}

impl<H: Host> Stage<H> for Comparisons {
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

impl Comparisons {
    /// True if short rounds have work. Never with logs that omit equal integers: they do not show that a site was
    /// passed.
    fn has_short_work<M: ForeignMutators>(&self, fuzzer: &Fuzzer<M>) -> bool {
        !fuzzer.has_partial_log() && self.short.has_work()
    }

    /// True if a short round comes next: long rounds have used up [`LONG_PART`] of the stage's time.
    fn is_short_due<H: Host>(&self, door: &Door<'_, H>) -> bool {
        let counts_time = door.fuzzer().counts_time();
        let [long, all] = [self.long, used(door)].map(|effort| effort.amount(counts_time));
        let is_long_due = long < all * LONG_PART;
        self.has_short_work(door.fuzzer()) && !is_long_due
    }

    fn run_short<H: Host>(&mut self, turn: &mut Turn<'_, H>) -> Result<Short, H::Error> {
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
    fn run_long<H: Host>(&mut self, turn: &mut Turn<'_, H>) -> Result<StageEnd, H::Error> {
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
                // Warm up the process: its first run may take another path.
                logged(turn, input, "copy")?;
            }
            round.go_on(turn, limit)
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

    fn next_round<M: ForeignMutators>(&mut self, fuzzer: &mut Fuzzer<M>) -> Option<Round> {
        let id = self.next_seed(fuzzer)?;
        let data = &fuzzer.corpus[id].data;
        let inputs = self.cut.remove(&id).unwrap_or_else(|| Inputs::of(data));
        let seed = SeedInput { number: id.index(), bytes: data.to_vec() };
        let rng = Rng::seed_from_u64(fuzzer.rng.next_u64());
        let work = work_on(seed, inputs, input_rules(fuzzer), rng);
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

    fn begin_again<H: Host>(&mut self, turn: &mut Turn<'_, H>) {
        self.idle_since = None;
        turn.shared.logs.results.forget_failures();
        self.short.begin_again();
        self.rounds.retain(|_, rounds| *rounds != COMPARED);
    }
}

/// What the work may make.
fn input_rules<M: ForeignMutators>(fuzzer: &Fuzzer<M>) -> InputRules {
    let mutation = &fuzzer.mutation;
    InputRules {
        lengths: mutation.min_len..=mutation.max_len,
        messages: mutation.messages,
        is_partial: fuzzer.has_partial_log(),
    }
}

impl Round {
    /// Carries out orders of the work until it is done, or until the time is over. The work must not go on after an
    /// error of the search.
    fn go_on<H: Host>(
        &mut self,
        turn: &mut Turn<'_, H>,
        limit: Limit,
    ) -> Result<Inputs, Stop<H::Error>> {
        let Self { work, .. } = self;
        work.set_seed(&turn.door.fuzzer().corpus[turn.id].data);
        loop {
            if work.is_waiting() {
                limit.check(turn)?;
            }
            if let Some(order) = work.take_order()
                && let Some(rest) = carry_out(turn, order, limit.budget)?
            {
                work.put_back(rest);
                continue;
            }
            let is_over = limit.is_reached(turn);
            if let Some(left) = lend(turn, |lent| work.go_on(lent, is_over)) {
                return Ok(left);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use ffuzz_comparisons::log::{ComparisonKind, OwnLog};

    use super::*;
    use crate::corpus::Origin;
    use crate::executor::ExitKind;
    use crate::fake::FakeExecutor;
    use crate::fuzzer::door::Run;
    use crate::mutate::Candidate;
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
