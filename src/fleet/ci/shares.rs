//! Sharing of time among harnesses by what they still bring.

use std::time::Duration;

/// A harness is not started for less.
const LEAST: Duration = Duration::from_secs(1);
/// Part of a round that all harnesses share equally, so that none is given up after one bad turn.
const EQUAL: f64 = 0.3;
/// A harness brings nothing more if nothing was found for so long, and for so many times as long as it took to find
/// the last input.
const SILENCE: Duration = Duration::from_secs(30);
const SILENT_TIMES: u32 = 3;

/// What the turns of a harness brought so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Yield {
    /// Time of all turns, and until the last find in them.
    pub(super) spent: Duration,
    pub(super) last_find: Duration,
    /// The last turn: its time, and what it found.
    pub(super) turn: Duration,
    pub(super) found: u64,
}

impl Yield {
    /// Notes a turn: its time, the number of its finds, and when the last of them was.
    pub(super) fn add(&mut self, turn: Duration, found: u64, last_find: Option<Duration>) {
        if let Some(last) = last_find.filter(|_| found > 0) {
            self.last_find = self.spent + last.min(turn);
        }
        self.spent += turn;
        (self.turn, self.found) = (turn, found);
    }

    /// Whether further turns will bring nothing, as far as can be foreseen.
    pub(super) fn is_exhausted(&self) -> bool {
        let silent = self.spent.saturating_sub(self.last_find);
        silent >= SILENCE && silent >= self.last_find * SILENT_TIMES
    }

    fn rate(&self) -> f64 {
        self.found as f64 / self.turn.as_secs_f64().max(1.0)
    }
}

/// The turns of one round: seconds for each harness, 0 for none. `left` is what is left of the time for all, `slots` how
/// many run at once. The first round is half of the time and equal for all; each later one is half of what is left, by
/// what the last turns brought per second. A rest that is too short to be halved is one round.
pub(super) fn round(yields: &[Yield], left: Duration, slots: usize) -> Vec<u64> {
    let all = left * u32::try_from(slots).unwrap_or(1);
    let count = yields.len().max(1);
    let least = LEAST * u32::try_from(count).unwrap_or(u32::MAX);
    let total = if all / 2 < least * 2 { all } else { all / 2 };
    let rates: f64 = yields.iter().map(Yield::rate).sum();
    let share = |it: &Yield| {
        let equal = 1.0 / count as f64;
        if rates > 0.0 { EQUAL * equal + (1.0 - EQUAL) * it.rate() / rates } else { equal }
    };
    // One harness has one slot: its turn is not longer than what is left.
    let turn = |it: &Yield| (total.as_secs_f64() * share(it)).min(left.as_secs_f64());
    // What the start has taken of the first second does not count.
    let turns = yields.iter().map(turn).map(|turn| (turn + 0.1) as u64);
    turns.map(|turn| if turn < LEAST.as_secs() { 0 } else { turn }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn after(turn: u64, found: u64) -> Yield {
        let mut it = Yield::default();
        it.add(seconds(turn), found, Some(seconds(turn)));
        it
    }

    #[test]
    fn the_first_round_is_equal_and_later_ones_follow_the_finds() {
        assert_eq!(round(&[Yield::default(); 3], seconds(60), 2), [20, 20, 20]);
        let later = round(&[after(10, 100), after(10, 0), after(10, 100)], seconds(40), 1);
        assert_eq!(later, [9, 2, 9]);
        // One harness gets all that is left of the time, and a short rest is one round.
        assert_eq!(round(&[Yield::default()], seconds(60), 2), [60]);
        assert_eq!(round(&[after(9, 1), after(9, 1)], seconds(5), 1), [2, 2]);
        assert_eq!(round(&[after(9, 1), after(9, 1)], seconds(1), 1), [0, 0]);
        // Ten harnesses within the time of a few.
        assert_eq!(round(&[Yield::default(); 10], seconds(8), 1).iter().sum::<u64>(), 0);
        assert_eq!(round(&[Yield::default(); 10], seconds(30), 1), [3; 10]);
    }

    #[test]
    fn a_silent_harness_is_given_up_after_a_multiple_of_its_last_find() {
        let mut it = after(5, 3);
        assert!(!it.is_exhausted());
        it.add(seconds(29), 0, None);
        assert!(!it.is_exhausted());
        it.add(seconds(1), 0, None);
        assert!(it.is_exhausted());
        it.add(seconds(20), 1, Some(seconds(20)));
        it.add(seconds(100), 0, None);
        assert!(!it.is_exhausted(), "the last find was in second 55");
    }
}
