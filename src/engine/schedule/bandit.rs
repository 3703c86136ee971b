//! A choice between several ways whose yield is unknown.

use crate::mutate::{Rng, below};
use rand_core::Rng as _;

/// Effort after which an arm's past counts half, in runs of average length.
const MEMORY: f64 = 32_768.0;
/// Prior of an arm's yield: one find in this number of runs.
const PRIOR_RUNS: f64 = 1024.0;
/// Prior of the length of an arm's turns, in runs.
const PRIOR_TURN: f64 = 256.0;
/// One draw in this number ignores the yield, so that no arm starves.
const FAIR_DRAW: u32 = 4;

/// Draws arms in proportion to their recent yield, in finds per effort (probability matching: the best arm of this hour
/// need not be that of the next). An arm with long turns is drawn less often.
#[derive(Clone, Debug)]
pub(crate) struct Bandit {
    arms: Vec<Arm>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arm {
    finds: f64,
    runs: f64,
    turns: f64,
}

impl Arm {
    fn rate(&self) -> f64 {
        (self.finds + 1.0) / (self.runs + PRIOR_RUNS)
    }

    fn turns_per_run(&self) -> f64 {
        (self.turns + 1.0) / (self.runs + PRIOR_TURN)
    }
}

impl Bandit {
    #[must_use]
    pub(crate) fn new(arms: usize) -> Self {
        Self { arms: vec![Arm::default(); arms] }
    }

    /// Records that a turn of `arm` brought `finds` finds for an effort of `runs` runs of average length.
    pub(crate) fn note(&mut self, arm: usize, runs: f64, finds: u64) {
        let arm = &mut self.arms[arm];
        arm.runs += runs;
        arm.finds += finds as f64;
        arm.turns += 1.0;
        let keep = MEMORY / arm.runs.max(MEMORY);
        arm.runs *= keep;
        arm.finds *= keep;
        arm.turns *= keep;
    }

    /// Draws one of the `open` arms; None if there is none.
    pub(crate) fn draw(&self, rng: &mut Rng, open: impl Fn(usize) -> bool) -> Option<usize> {
        let fair = below(rng, FAIR_DRAW) == 0;
        let weight = |arm: usize| {
            let arm = &self.arms[arm];
            arm.turns_per_run() * if fair { 1.0 } else { arm.rate() }
        };
        let arms = || (0..self.arms.len()).filter(|arm| open(*arm));
        let total: f64 = arms().map(weight).sum();
        let mut left = f64::from(rng.next_u32()) / f64::from(u32::MAX) * total;
        arms().find(|arm| {
            left -= weight(*arm);
            left <= 0.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn shares(bandit: &Bandit, open: impl Fn(usize) -> bool) -> [u32; 3] {
        let mut rng = Rng::seed_from_u64(1);
        let mut shares = [0; 3];
        for _ in 0..3000 {
            if let Some(arm) = bandit.draw(&mut rng, &open) {
                shares[arm] += 1;
            }
        }
        shares
    }

    #[test]
    fn what_pays_is_drawn_and_the_others_do_not_starve() {
        let mut bandit = Bandit::new(3);
        bandit.note(0, 10_000.0, 0);
        bandit.note(1, 10_000.0, 500);
        bandit.note(2, 10_000.0, 5);
        let [none, much, little] = shares(&bandit, |_| true);
        assert!(much > 2000 && little >= 250 && none >= 200, "{none} {much} {little}");
        assert_eq!(shares(&bandit, |arm| arm == 2), [0, 0, 3000]);
        assert_eq!(shares(&bandit, |_| false), [0, 0, 0]);
    }

    #[test]
    fn the_past_fades() {
        let mut bandit = Bandit::new(3);
        bandit.note(0, 30_000.0, 3000);
        bandit.note(0, 300_000.0, 0);
        bandit.note(1, 1000.0, 10);
        let [past, now, _] = shares(&bandit, |arm| arm < 2);
        assert!(now > past, "{past} {now}");
    }
}
