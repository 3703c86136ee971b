//! How much is spent on a seed's turn: AFL's performance score and the power schedules of AFLFast
//! (Böhme, Pham, Roychoudhury, CCS 2016) and AFL++.

use super::ScheduleOptions;
use crate::config::options::Schedule;
use crate::engine::corpus::Seed;

/// Energy of an average seed.
const BASE: f64 = 100.0;
/// No seed gets more (AFL++).
const MAX: f64 = 6400.0;
/// What schedule `exploit` multiplies with.
const EXPLOIT: f64 = 32.0;
/// Seeds so close to the deepest one are doubled by schedule `mmopt`.
const DEEP: u32 = 5;

/// Time of the target that one stage of a turn may take, microseconds, or that of this number of runs of an
/// average seed; and the runs that it makes at least. A seed a thousand times slower than the others would
/// keep them waiting for minutes otherwise.
const STAGE_TIME_US: f64 = 250_000.0;
const AVERAGE_RUNS: f64 = 1000.0;
const FEWEST_RUNS: u64 = 16;

/// Sums over the enabled seeds, and what follows from them.
#[derive(Debug, Default)]
pub(super) struct Means {
    seeds: f64,
    exec_us: f64,
    edges: f64,
    max_depth: u32,
    /// Mean of log2 of the path counts; schedule `coe` only.
    pub(super) log_path_count: f64,
    /// Runs that were counted by path.
    pub(super) runs: u64,
}

impl Means {
    /// Takes a new seed in.
    pub(super) fn count(&mut self, seed: &Seed) {
        self.seeds += 1.0;
        self.exec_us += seed.exec_us as f64;
        self.edges += f64::from(seed.edges);
        self.max_depth = self.max_depth.max(seed.depth);
    }

    /// Run time of the seed, 1 for an average one.
    pub(super) fn relative_time(&self, seed: &Seed) -> f64 {
        ratio(seed.exec_us as f64 * self.seeds, self.exec_us)
    }

    /// Runs of the seed that fit into the time of one stage.
    pub(super) fn runs_in_time(&self, seed: &Seed) -> u64 {
        let average = AVERAGE_RUNS * self.exec_us / self.seeds.max(1.0);
        let time = average.max(STAGE_TIME_US);
        ((time / seed.exec_us.max(1) as f64) as u64).max(FEWEST_RUNS)
    }

    /// Edges of the seed, 1 for an average one.
    pub(super) fn relative_edges(&self, seed: &Seed) -> f64 {
        ratio(f64::from(seed.edges) * self.seeds, self.edges)
    }
}

/// What the energy of a seed depends on besides the seed.
pub(super) struct Context<'a> {
    pub(super) options: ScheduleOptions,
    pub(super) means: &'a Means,
    /// The seed owns a domain key, and domains guide.
    pub(super) owner: bool,
    /// Runs that took the seed's path.
    pub(super) path_count: u32,
    /// Edges for which the seed is the best.
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

/// Fast seeds get more. A domain may look for slow inputs, so an owner is not punished for it.
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

/// Seeds that came late catch up.
fn handicap_factor(handicap: u32) -> f64 {
    match handicap {
        0 => 1.0,
        1..4 => 2.0,
        4.. => 4.0,
    }
}

/// What one turn takes off a handicap.
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

/// The rarer the path, the more; reductions spare favourites.
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

/// `part / whole`, and 1 while nothing is known about the whole.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(exec_us: u64, edges: u32) -> Seed {
        Seed { exec_us, edges, ..Seed::default() }
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
    fn a_handicap_is_paid_back_to_zero() {
        let mut handicap: u32 = 11;
        for _ in 0..10 {
            handicap -= handicap_step(handicap);
        }
        assert_eq!(handicap, 0);
    }
}
