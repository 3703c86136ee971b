//! Energy of a seed's turn: AFL's performance score and the power schedules of AFLFast (Böhme, Pham, Roychoudhury, CCS
//! 2016) and AFL++.

use std::time::Duration;

use super::ScheduleOptions;
use crate::corpus::Seed;
use crate::options::Schedule;

/// Energy of an average seed.
const BASE: f64 = 100.0;
/// Maximum energy (AFL++).
const MAX: f64 = 6400.0;
/// Factor of schedule `exploit`.
const EXPLOIT: f64 = 32.0;
/// Distance to the greatest depth below which schedule `mmopt` doubles the energy.
const DEEP: u32 = 5;

/// Runs of a stage at energy 100 (AFL++: 256 · score / 100 / 2.56), and the minimum.
const BASE_RUNS: u64 = 100;
const LEAST_RUNS: u64 = 12;
/// Minimum time of a stage at energy 100, microseconds: at a million runs a second, choosing seeds and setting up
/// stages would take longer than the runs. With 5 ms a campaign reaches too few of its seeds: an XML parser had a third
/// fewer edges after 20 s.
const SHORTEST_STAGE_US: f64 = 200.0;
/// Maximum stage time: this number of microseconds, or of runs of an average seed if that is longer; and the minimum
/// number of runs. Otherwise a seed a thousand times slower than the others would block them for minutes.
const LONGEST_STAGE_US: f64 = 250_000.0;
const AVERAGE_RUNS: f64 = 1000.0;
const FEWEST_RUNS: u64 = 16;
/// A run is cut after the longest of: this number of runs of the usual seed (the geometric mean), of runs of its own
/// seed, and of microseconds. Killing and restarting a process takes about as long.
const USUAL_TIMES: f64 = 10.0;
const SEED_TIMES: f64 = 3.0;
const SHORTEST_LIMIT_US: f64 = 1_000.0;
/// Maximum number of inputs per microsecond of stage time. No target is that fast; only a foreign mutator that drops
/// nearly all inputs exceeds it.
const MOST_RUNS_PER_US: u128 = 10;
/// Maximum multiple of its base to which a stage with finds is extended: new seeds deserve the time more than their
/// parent. AFL uses 64; with that a Markdown parser had a fifth fewer edges after 20 s.
const EXTENSION: u32 = 16;
const LONGEST_EXTENSION: u64 = BASE_RUNS * EXTENSION as u64;

/// Budget of a stage for its seed: a time, or a number of runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    runs: u64,
    /// Overrides `runs`: the time limit now, and after all extensions.
    time: Option<(Duration, Duration)>,
}

impl Budget {
    /// Budget of a number of runs, regardless of their time.
    #[must_use]
    pub fn of_runs(runs: u64) -> Self {
        Self { runs, time: None }
    }

    /// The budget divided by `divisor`.
    #[must_use]
    pub fn part(self, divisor: u32) -> Self {
        let time = self.time.map(|(time, longest)| (time / divisor, longest));
        Self { runs: (self.runs / u64::from(divisor)).max(LEAST_RUNS), time }
    }

    /// The budget after all extensions.
    #[must_use]
    pub fn longest(self) -> Self {
        let time = self.time.map(|(time, longest)| (time.max(longest), longest));
        Self { runs: u64::MAX, time }
    }

    /// The budget with its time, if it has one, multiplied by `factor`.
    #[must_use]
    pub(crate) fn times(self, factor: u32) -> Self {
        let longer = |time: Duration| time.saturating_mul(factor);
        Self { time: self.time.map(|(time, longest)| (longer(time), longer(longest))), ..self }
    }

    /// True if the budget is exhausted after `runs` runs in `time`.
    #[must_use]
    pub(crate) fn is_used(&self, runs: u64, time: Duration) -> bool {
        match self.time {
            // A foreign mutator dropped all inputs.
            Some(_) if time.is_zero() => runs >= self.runs,
            Some((limit, _)) => {
                let beyond = u128::from(runs) >= limit.as_micros() * MOST_RUNS_PER_US;
                beyond || (time >= limit && runs >= FEWEST_RUNS)
            }
            None => runs >= self.runs,
        }
    }

    /// Number of runs allowed if each takes `run`.
    #[must_use]
    pub(crate) fn expected(&self, run: Duration) -> u64 {
        match self.time {
            Some((limit, _)) => (limit.as_nanos() / run.as_nanos().max(1)) as u64,
            None => self.runs,
        }
    }

    /// Expected total number of runs, given `runs` runs in `time` so far.
    #[must_use]
    pub fn planned(&self, runs: u64, time: Duration) -> u64 {
        match self.time {
            Some((limit, _)) if !time.is_zero() => {
                let more = limit.saturating_sub(time).as_secs_f64() / time.as_secs_f64();
                runs + (more * runs as f64) as u64
            }
            Some(_) => runs,
            None => self.runs,
        }
    }

    /// Doubles the budget, up to its limit: a stage with a find may be near more.
    pub fn extend(&mut self) {
        self.runs = self.runs.saturating_mul(2).min(self.runs.max(LONGEST_EXTENSION));
        if let Some((time, longest)) = &mut self.time {
            *time = (*time * 2).min((*time).max(*longest));
        }
    }
}

/// Sums over the enabled seeds, and values derived from them.
#[derive(Debug, Default)]
pub(super) struct Means {
    seeds: f64,
    exec_us: f64,
    /// Sum of the logarithms of the quickest times: a few slow seeds hardly change the geometric mean.
    log_quickest_us: f64,
    edges: f64,
    max_depth: u32,
    /// Mean of log2 of the path counts; schedule `coe` only.
    pub(super) log_path_count: f64,
    /// Number of runs counted by path.
    pub(super) runs: u64,
}

impl Means {
    /// Adds a new seed.
    pub(super) fn count(&mut self, seed: &Seed) {
        self.seeds += 1.0;
        self.exec_us += seed.exec_us as f64;
        self.log_quickest_us += (seed.quickest_us.max(1) as f64).ln();
        self.edges += f64::from(seed.edges);
        self.max_depth = self.max_depth.max(seed.depth);
    }

    /// Run time of the seed relative to the average.
    pub(super) fn relative_time(&self, seed: &Seed) -> f64 {
        ratio(seed.exec_us as f64 * self.seeds, self.exec_us)
    }

    /// Budget of a stage with this energy: in time if `by_time`, otherwise in runs.
    pub(super) fn budget(&self, seed: &Seed, energy: u32, by_time: bool) -> Budget {
        let runs = (BASE_RUNS * u64::from(energy) / 100).max(LEAST_RUNS);
        if !by_time {
            return Budget::of_runs(runs);
        }
        let average = AVERAGE_RUNS * self.exec_us / self.seeds.max(1.0);
        let longest = average.max(LONGEST_STAGE_US);
        let exec_us = seed.exec_us.max(1) as f64;
        let base = SHORTEST_STAGE_US.max(BASE_RUNS as f64 * exec_us);
        let time = (base * f64::from(energy) / 100.0).min(longest);
        let extended = (base * f64::from(EXTENSION)).min(longest);
        let duration = |us: f64| Duration::from_micros(us as u64);
        Budget { runs, time: Some((duration(time), duration(extended))) }
    }

    /// See [`super::Scheduler::soft_limit`].
    pub(super) fn soft_limit(&self, seed: &Seed) -> Duration {
        let usual = USUAL_TIMES * (self.log_quickest_us / self.seeds.max(1.0)).exp();
        let of_seed = SEED_TIMES * seed.quickest_us as f64;
        Duration::from_micros(usual.max(of_seed).max(SHORTEST_LIMIT_US) as u64)
    }

    /// Number of edges of the seed relative to the average.
    pub(super) fn relative_edges(&self, seed: &Seed) -> f64 {
        ratio(f64::from(seed.edges) * self.seeds, self.edges)
    }
}

/// Inputs of the energy besides the seed.
pub(super) struct Context<'a> {
    pub(super) options: ScheduleOptions,
    pub(super) means: &'a Means,
    /// True if the seed owns a key and the turn is that of a domain that may look for slow inputs.
    pub(super) owner: bool,
    /// Runs that took the seed's path.
    pub(super) path_count: u32,
    /// Number of edges for which the seed is the best.
    pub(super) edges_won: u32,
}

/// Energy of one turn; 0 only under schedule `coe`.
pub(super) fn energy(seed: &Seed, context: &Context<'_>) -> u32 {
    let schedule = schedule_factor(seed, context);
    if schedule == 0.0 {
        return 0;
    }
    let rare = context.options.schedule == Schedule::Rare;
    let bonus = if rare { 10.0 * f64::from(context.edges_won) } else { 0.0 };
    let score = time_score(seed, context)
        * edges_factor(context.means.relative_edges(seed))
        * handicap_factor(seed.handicap)
        * depth_factor(seed.depth);
    ((score + bonus) * schedule).clamp(1.0, MAX) as u32
}

/// Gives fast seeds more. A domain may look for slow inputs, so an owner is not penalized.
fn time_score(seed: &Seed, context: &Context<'_>) -> f64 {
    let options = context.options;
    if options.fixed_seed || matches!(options.schedule, Schedule::Rare | Schedule::Seek) {
        return BASE;
    }
    let score = match context.means.relative_time(seed) {
        time if time > 10.0 => 10.0,
        time if time > 4.0 => 25.0,
        time if time > 2.0 => 50.0,
        time if time > 1.33 => 75.0,
        time if time < 0.25 => 300.0,
        time if time < 0.33 => 200.0,
        time if time < 0.5 => 150.0,
        _ => BASE,
    };
    if context.owner { score.max(BASE) } else { score }
}

fn edges_factor(edges: f64) -> f64 {
    match edges {
        edges if edges > 3.33 => 3.0,
        edges if edges > 2.0 => 2.0,
        edges if edges > 1.33 => 1.5,
        edges if edges < 0.33 => 0.25,
        edges if edges < 0.5 => 0.5,
        edges if edges < 0.66 => 0.75,
        _ => 1.0,
    }
}

/// Lets seeds that came late catch up.
fn handicap_factor(handicap: u32) -> f64 {
    match handicap {
        0 => 1.0,
        1..4 => 2.0,
        4.. => 4.0,
    }
}

/// Amount by which one turn reduces a handicap.
pub(super) fn handicap_step(handicap: u32) -> u32 {
    match handicap {
        0 => 0,
        1..4 => 1,
        4.. => 4,
    }
}

fn depth_factor(depth: u32) -> f64 {
    match depth {
        0..4 => 1.0,
        4..8 => 2.0,
        8..14 => 3.0,
        14..26 => 4.0,
        26.. => 5.0,
    }
}

fn schedule_factor(seed: &Seed, context: &Context<'_>) -> f64 {
    let turns = f64::from(seed.fuzzed);
    let count = f64::from(context.path_count);
    match context.options.schedule {
        Schedule::Explore | Schedule::Seek => 1.0,
        Schedule::Exploit => EXPLOIT,
        Schedule::Mmopt if context.means.max_depth.saturating_sub(seed.depth) < DEEP => 2.0,
        Schedule::Mmopt => 1.0,
        Schedule::Lin if seed.fuzzed > 0 => turns / (count + 1.0),
        Schedule::Quad if seed.fuzzed > 0 => turns * turns / (count + 1.0),
        Schedule::Coe if seed.fuzzed > 0 => {
            let common = log2(context.path_count) > context.means.log_path_count;
            if common && !seed.favored { 0.0 } else { fast_factor(seed, context.path_count) }
        }
        Schedule::Fast if seed.fuzzed > 0 => fast_factor(seed, context.path_count),
        Schedule::Rare => 1.0 - ratio(count, context.means.runs as f64).min(0.99),
        Schedule::Lin | Schedule::Quad | Schedule::Coe | Schedule::Fast => 1.0,
    }
}

/// Gives rare paths more; favourites are never reduced.
fn fast_factor(seed: &Seed, path_count: u32) -> f64 {
    let factor: f64 = match path_count.checked_ilog2().unwrap_or(0) {
        0..2 => 4.0,
        2..4 => 3.0,
        4 => 2.0,
        5 => 1.0,
        6 => 0.8,
        7 => 0.6,
        8.. => 0.4,
    };
    if seed.favored { factor.max(1.0) * 1.15 } else { factor }
}

/// log2 of a path count, 0 for none.
pub(super) fn log2(count: u32) -> f64 {
    f64::from(count.max(1)).log2()
}

/// Mean of the values, 0 for none.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// `part / whole`, or 1 while `whole` is unknown.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(exec_us: u64, edges: u32) -> Seed {
        Seed { exec_us, quickest_us: exec_us, edges, ..Seed::default() }
    }

    /// Two average seeds, then the energy of `seed` beside them.
    fn beside_average(seed: &Seed, schedule: Schedule, change: impl Fn(&mut Context<'_>)) -> u32 {
        let mut means = Means { runs: 1000, ..Means::default() };
        (0..1000).for_each(|_| means.count(&self::seed(1000, 100)));
        let mut context = Context {
            options: ScheduleOptions { schedule, ..ScheduleOptions::default() },
            means: &means,
            owner: false,
            path_count: 1,
            edges_won: 0,
        };
        change(&mut context);
        energy(seed, &context)
    }

    fn explored(seed: &Seed) -> u32 {
        beside_average(seed, Schedule::Explore, |_| ())
    }

    #[test]
    fn fast_seeds_with_many_edges_get_more() {
        assert_eq!(explored(&seed(1000, 100)), 100);
        assert_eq!(explored(&seed(100, 100)), 300);
        assert_eq!(explored(&seed(11_000, 100)), 10);
        assert_eq!(explored(&seed(1000, 400)), 300);
        assert_eq!(explored(&seed(1000, 10)), 25);
    }

    #[test]
    fn late_and_deep_seeds_get_more_up_to_the_cap() {
        assert_eq!(explored(&Seed { handicap: 4, ..seed(1000, 100) }), 400);
        assert_eq!(explored(&Seed { depth: 30, ..seed(1000, 100) }), 500);
        assert_eq!(explored(&Seed { handicap: 9, depth: 30, ..seed(100, 400) }), 6400);
    }

    #[test]
    fn an_owner_of_a_key_is_not_punished_for_slowness() {
        let slow = seed(20_000, 100);
        assert_eq!(beside_average(&slow, Schedule::Explore, |context| context.owner = true), 100);
    }

    #[test]
    fn run_times_count_for_nothing_under_a_fixed_seed() {
        let fixed = |context: &mut Context<'_>| context.options.fixed_seed = true;
        assert_eq!(beside_average(&seed(20_000, 100), Schedule::Explore, fixed), 100);
    }

    #[test]
    fn each_schedule_has_its_factor() {
        let fuzzed = Seed { fuzzed: 2, ..seed(1000, 100) };
        let with = |schedule, path_count| {
            beside_average(&fuzzed, schedule, |context| context.path_count = path_count)
        };
        assert_eq!(with(Schedule::Exploit, 1), 3200);
        assert_eq!(with(Schedule::Seek, 1), 100);
        assert_eq!(with(Schedule::Mmopt, 1), 200);
        assert_eq!((with(Schedule::Fast, 1), with(Schedule::Fast, 300)), (400, 40));
        assert_eq!((with(Schedule::Coe, 1), with(Schedule::Coe, 300)), (400, 0));
        assert_eq!((with(Schedule::Lin, 1), with(Schedule::Quad, 1)), (100, 200));
        assert_eq!((with(Schedule::Rare, 500), with(Schedule::Rare, 1000)), (50, 1));
    }

    #[test]
    fn a_stage_has_a_time_and_a_slow_seed_some_runs() {
        let mut means = Means::default();
        (0..1000).for_each(|_| means.count(&seed(10, 100)));
        let ms = Duration::from_millis;
        let quick = means.budget(&seed(1, 100), 1000, true);
        assert!(!quick.is_used(10_000, ms(1)) && quick.is_used(16, ms(2)));
        assert!(!quick.is_used(15, ms(2)), "a few runs in any case");
        assert_eq!(quick.planned(1000, ms(1)), 2000);
        assert!(quick.part(2).is_used(16, ms(1)));
        let dropped = quick.is_used(1000, Duration::ZERO) && quick.is_used(20_000, ms(1));
        assert!(dropped, "few of them reach the target");
        // 100 runs of the seed, but never more than the longest stage.
        let slow = means.budget(&seed(1000, 100), 100, true);
        assert!(!slow.is_used(99, ms(99)) && slow.is_used(100, ms(100)));
        let slowest = means.budget(&seed(1_000_000, 100), 100, true);
        assert!(slowest.is_used(16, ms(250)));
        let mut extended = quick;
        (0..20).for_each(|_| extended.extend());
        assert!(!extended.is_used(1000, ms(3)) && extended.is_used(1000, ms(4)));
    }

    #[test]
    fn the_soft_limit_follows_the_seed_and_the_usual_one() {
        let mut means = Means::default();
        (0..1000).for_each(|_| means.count(&seed(10, 100)));
        let limit = |exec_us| means.soft_limit(&seed(exec_us, 100));
        assert_eq!(limit(10), Duration::from_millis(1));
        assert_eq!(limit(5000), Duration::from_millis(15));
        // One slow seed of ten changes nothing for the others.
        let mut mixed = Means::default();
        (0..9).for_each(|_| mixed.count(&seed(10, 100)));
        mixed.count(&seed(20_000, 100));
        assert_eq!(mixed.soft_limit(&seed(10, 100)), Duration::from_millis(1));
        let mut slow = Means::default();
        slow.count(&seed(2000, 100));
        assert!(slow.soft_limit(&seed(10, 100)).as_millis().abs_diff(20) < 2);
    }

    #[test]
    fn under_a_fixed_seed_only_runs_count() {
        let runs = |energy| Means::default().budget(&seed(10, 100), energy, false);
        let hour = Duration::from_secs(3600);
        assert!(!runs(100).is_used(99, hour) && runs(100).is_used(100, Duration::ZERO));
        assert!(runs(1).is_used(12, hour) && !runs(1).is_used(11, hour));
        let mut extended = runs(100);
        (0..20).for_each(|_| extended.extend());
        assert_eq!(extended.planned(0, hour), LONGEST_EXTENSION);
    }

    #[test]
    fn a_handicap_is_paid_back_to_zero() {
        let mut handicap: u32 = 11;
        for _ in 0..10 {
            handicap -= handicap_step(handicap);
        }
        assert_eq!(handicap, 0);
    }
}
