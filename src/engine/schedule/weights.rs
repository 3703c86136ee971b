//! Weighted random choice of seeds.

use rand_core::Rng as _;

use super::energy::Means;
use crate::corpus::{Seed, SeedId};
use crate::mutate::{Rng, below};
use crate::options::Schedule;

/// Factor for a seed that was never fuzzed (AFL++).
const NEVER_FUZZED: f64 = 2.5;
/// Factor for a seed that is not favoured (AFL++).
const REDUNDANT: f64 = 0.75;
/// Factor of schedule `mmopt` for the newest seeds, and the number of these (AFL++).
const NEW_UNDER_MMOPT: f64 = 2.0;
pub(super) const NEWEST: usize = 5;
/// Bounds of the factors for run time and edges: a mild preference, because energy also depends on them.
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;

/// Inputs of the weight besides the seed.
pub(super) struct Context<'a> {
    pub(super) schedule: Schedule,
    pub(super) means: &'a Means,
    /// True under a fixed random seed (`-s`).
    pub(super) ignore_time: bool,
    /// Runs that took the seed's path.
    pub(super) path_count: u32,
    /// True for the [`NEWEST`] seeds.
    pub(super) newest: bool,
}

/// Weight of a seed in the draw; positive.
///
/// AFL++ 4.22 multiplies step functions of run time, length and edges. They are not adopted: the one for run time rises
/// and falls six times (0.2 for a seed just above the mean, 1.1 for one just below) and was fitted to the queues of one
/// experiment; that for edges divides a count by a mean of logarithms, so nearly every seed gets the same; that for
/// length stays within 15 % except for very short seeds. Two monotone factors keep their intent: quick seeds and seeds
/// with many edges are preferred up to twofold.
pub(super) fn weight(seed: &Seed, context: &Context<'_>) -> f64 {
    let mut weight = context.means.relative_edges(seed).clamp(LEAST, MOST);
    if !context.ignore_time {
        weight /= context.means.relative_time(seed).clamp(LEAST, MOST);
    }
    if matches!(context.schedule, Schedule::Fast | Schedule::Coe | Schedule::Lin | Schedule::Quad) {
        weight /= f64::from(context.path_count.max(1)).log10() + 1.0;
    }
    if context.schedule == Schedule::Mmopt && context.newest {
        weight *= NEW_UNDER_MMOPT;
    }
    if seed.fuzzed == 0 {
        weight *= NEVER_FUZZED;
    }
    if !seed.favored {
        weight *= REDUNDANT;
    }
    weight
}

/// Table for drawing by weight in constant time (Walker 1977; building by Vose, IEEE TSE 1991).
#[derive(Clone, Debug, Default)]
pub(super) struct AliasTable {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    own: SeedId,
    other: SeedId,
    /// Odds of `own` in this column, out of 2^32.
    odds: u64,
}

impl AliasTable {
    pub(super) fn new(weights: impl Iterator<Item = (SeedId, f64)>) -> Self {
        let (ids, mut weights): (Vec<_>, Vec<_>) = weights.unzip();
        let sum: f64 = weights.iter().sum();
        let scale = if sum > 0.0 { ids.len() as f64 / sum } else { 0.0 };
        weights.iter_mut().for_each(|weight| *weight *= scale);
        let full = |&own: &SeedId| Column { own, other: own, odds: 1 << 32 };
        let mut columns: Vec<_> = ids.iter().map(full).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..ids.len()).partition(|&column| weights[column] < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            columns[low].odds = (weights[low] * (1u64 << 32) as f64) as u64;
            columns[low].other = ids[high];
            weights[high] -= 1.0 - weights[low];
            if weights[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { columns }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Draws an id by weight; None if the table is empty.
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<SeedId> {
        let column = self.columns.get(below(rng, self.columns.len() as u32) as usize)?;
        let own = u64::from(rng.next_u32()) < column.odds;
        Some(if own { column.own } else { column.other })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng as _;

    use super::*;
    use crate::mutate::Rng;

    #[test]
    fn an_empty_table_draws_nothing() {
        assert_eq!(AliasTable::default().draw(&mut Rng::seed_from_u64(0)), None);
    }

    #[test]
    fn rare_paths_and_new_seeds_weigh_more() {
        let means = Means::default();
        let weigh = |seed: &Seed, schedule, path_count| {
            let newest = true;
            let context =
                Context { schedule, means: &means, ignore_time: false, path_count, newest };
            weight(seed, &context)
        };
        let (new, old) = (Seed::default(), Seed { fuzzed: 1, ..Seed::default() });
        assert!(weigh(&new, Schedule::Explore, 0) > weigh(&old, Schedule::Explore, 0));
        assert!(weigh(&new, Schedule::Fast, 1) > weigh(&new, Schedule::Fast, 1000));
        assert!(weigh(&new, Schedule::Mmopt, 1) > weigh(&new, Schedule::Explore, 1));
    }

    proptest! {
        #[test]
        fn draws_follow_the_weights(
            weights in proptest::collection::vec(0.01f64..10.0, 1..12),
            state in any::<u64>(),
        ) {
            const DRAWS: u32 = 20_000;
            let mut rng = Rng::seed_from_u64(state);
            let ids = (0..).map(SeedId);
            let table = AliasTable::new(ids.zip(weights.iter().copied()));
            let mut counts = vec![0u32; weights.len()];
            for _ in 0..DRAWS {
                counts[table.draw(&mut rng).unwrap().index()] += 1;
            }
            let sum: f64 = weights.iter().sum();
            for (&count, weight) in counts.iter().zip(&weights) {
                // Five standard deviations at most: sqrt(0.25 / 20000) * 5 = 0.018.
                let share = f64::from(count) / f64::from(DRAWS);
                prop_assert!((share - weight / sum).abs() < 0.018);
            }
        }
    }
}
