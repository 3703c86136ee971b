//! Number of havoc steps between two calls of a mutator, drawn at once instead of a coin toss per step.

use rand_core::Rng as _;

use ffuzz_mutate::Rng;

/// Size of the table of pauses. A longer pause is this many steps plus another pause.
const LOOKED_UP: usize = 64;

/// Draws the number of misses before a hit by inversion with a guide table (Chen, Asau: On Generating Random Variates
/// from an Empirical Distribution, 1974). The distribution is memoryless, so draws beyond the table start again.
#[derive(Clone)]
pub(super) struct Pauses {
    /// Number of draws, of 2³² equally probable ones, with a pause longer than the index.
    longer: [u32; LOOKED_UP],
    /// Shortest pause for draws with this first byte.
    guide: [u8; 256],
    never: bool,
}

impl Pauses {
    /// `percent` is the share of steps with a hit; values above 100 count as 100.
    pub(super) fn new(percent: u8) -> Self {
        let miss = 1.0 - f64::from(percent.min(100)) / 100.0;
        let mut odds = 1.0;
        let longer = std::array::from_fn(|_| {
            odds *= miss;
            (odds * 2f64.powi(32)) as u32
        });
        let shortest = |byte: usize| {
            let largest = (byte as u32) << 24 | 0x00ff_ffff;
            longer.iter().take_while(|&&longer| largest < longer).count() as u8
        };
        Self { longer, guide: std::array::from_fn(shortest), never: percent == 0 }
    }

    /// Draws a pause. `u32::MAX` if there is never a hit.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        if self.never {
            return u64::from(u32::MAX);
        }
        let mut before = 0;
        loop {
            let draw = rng.next_u32();
            let mut pause = usize::from(self.guide[(draw >> 24) as usize]);
            while pause < LOOKED_UP && draw < self.longer[pause] {
                pause += 1;
            }
            before += pause as u64;
            if pause < LOOKED_UP {
                return before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn pauses_have_the_lengths_that_coins_would_give() {
        for percent in [1u8, 6, 50, 99] {
            let (pauses, mut rng) = (Pauses::new(percent), Rng::seed_from_u64(1));
            let draws = 200_000;
            let mut counted = [0u32; 400];
            let mut sum = 0;
            for _ in 0..draws {
                let pause = pauses.draw(&mut rng);
                sum += pause;
                counted[(pause as usize).min(399)] += 1;
            }
            let hit = f64::from(percent) / 100.0;
            let mean = sum as f64 / f64::from(draws);
            let wanted = (1.0 - hit) / hit;
            assert!((mean - wanted).abs() < wanted * 0.02 + 0.001, "{percent} %: {mean}");
            // In the table, at its end and after it.
            for length in [0, 1, 5, 63, 64, 65, 130] {
                let wanted = (1.0 - hit).powi(length) * hit * f64::from(draws);
                let got = f64::from(counted[length as usize]);
                let limit = 5.0 * wanted.sqrt() + 5.0;
                assert!((got - wanted).abs() < limit, "{percent} %: {length} {got} times");
            }
        }
    }

    #[test]
    fn always_and_never_are_exact() {
        let mut rng = Rng::seed_from_u64(1);
        for percent in [100, 200] {
            assert!((0..1000).all(|_| Pauses::new(percent).draw(&mut rng) == 0));
        }
        assert_eq!(Pauses::new(0).draw(&mut rng), u64::from(u32::MAX));
    }
}
