//! The ledger of a search: what its parts may take of the time, and what they have taken.
//!
//! Each part that could take all of it has an [`Account`] with a share. A search whose times must not count, because it
//! is to be reproducible, counts runs instead.

use std::ops::{Index, IndexMut};
use std::time::Duration;

/// Runs, and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    pub runs: u64,
    pub time: Duration,
}

impl Effort {
    /// None.
    pub(crate) const ZERO: Self = Self { runs: 0, time: Duration::ZERO };

    /// What was done since then. A build that was left out takes its runs along.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let runs = self.runs.saturating_sub(before.runs);
        Self { runs, time: self.time.saturating_sub(before.time) }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { runs: self.runs + other.runs, time: self.time + other.time }
    }

    /// In seconds, or in runs.
    pub(crate) fn amount(self, counts_time: bool) -> f64 {
        if counts_time { self.time.as_secs_f64() } else { self.runs as f64 }
    }
}

/// Who has an account.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Solving comparisons, of the target's and the fuzzer's own time.
    Comparisons,
    /// Looking for lengths and offsets, of the same.
    Lengths,
    /// Short blocks in trimming, of the same.
    Trimming,
    /// Second runs of what took too long, of wall time: endless loops look promising, too.
    SecondRuns,
    /// Sanitizer builds (`-w`), as much as the target.
    Sanitizers,
    /// Finds of other fuzzers, of wall time.
    Imports,
}

impl Purpose {
    pub const ALL: [Self; 6] = [
        Self::Comparisons,
        Self::Lengths,
        Self::Trimming,
        Self::SecondRuns,
        Self::Sanitizers,
        Self::Imports,
    ];
}

/// A stage begins with a piece of work that has this time, or these runs, and may take as much beyond its share at
/// first: this number of average runs, but not longer.
pub(crate) const SLICE: Effort = Effort { runs: 5000, time: Duration::from_millis(250) };
const FIRST: Effort = Effort { runs: 5000, time: Duration::from_millis(500) };
/// What new timeouts may take at first.
pub(crate) const FIRST_WAITS: Duration = Duration::from_secs(3);
/// How long inputs of others are taken in at once.
pub const IMPORT_SLICE: Duration = Duration::from_millis(50);

/// What a part of the search may take.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: &'static str,
    /// Of what the search takes.
    pub share: f64,
    /// Beyond it, because a search begins with it: this number of average runs, but not longer than that time.
    first: Effort,
    /// And that in any case.
    slice: Effort,
    /// If times do not count, a run counts as this number of the search's runs, most of which are in batches.
    runs_of_a_run: f64,
    /// More than this is not saved up while nothing is taken, seconds.
    most: f64,
    lost: f64,
    used: Effort,
    /// What the search had taken when the work under way began.
    open: Option<Effort>,
}

/// What may be taken now, in seconds, or in runs if times do not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    amount: f64,
    counts_time: bool,
}

impl Left {
    /// Whether this uses it up.
    pub(crate) fn is_used_by(self, done: Effort) -> bool {
        done.amount(self.counts_time) >= self.amount
    }
}

impl Account {
    fn of_stage(name: &'static str, share: f64) -> Self {
        Self { first: FIRST, slice: SLICE, runs_of_a_run: 4.0, ..Self::new(name, share) }
    }

    fn new(name: &'static str, share: f64) -> Self {
        let (first, slice) = (Effort::ZERO, Effort::ZERO);
        let (most, lost, used) = (f64::INFINITY, 0.0, Effort::ZERO);
        Self { name, share, first, slice, runs_of_a_run: 1.0, most, lost, used, open: None }
    }

    /// What was taken, when the search has taken `all`.
    #[must_use]
    pub fn used(&self, all: Effort) -> Effort {
        self.open.map_or(self.used, |begin| self.used.and(all.since(begin)))
    }

    /// What may be taken, when the search has taken `all`.
    pub(crate) fn left(&self, all: Effort, counts_time: bool) -> Left {
        let average = all.time.as_secs_f64() / all.runs.max(1) as f64;
        let first = match counts_time {
            true => (average * self.first.runs as f64).min(self.first.time.as_secs_f64()),
            false => self.first.runs as f64,
        };
        let first = first + self.slice.amount(counts_time);
        let share = self.share / if counts_time { 1.0 } else { self.runs_of_a_run };
        let granted = first + share * all.amount(counts_time);
        let amount = granted - self.used(all).amount(counts_time) - self.lost;
        Left { amount, counts_time }
    }

    /// Whether it has more than this piece left.
    pub(crate) fn may(&self, all: Effort, counts_time: bool, piece: Effort) -> bool {
        !self.left(all, counts_time).is_used_by(piece)
    }

    /// Whether it has this time left.
    pub(crate) fn has_time(&self, all: Effort, time: Duration) -> bool {
        self.left(all, true).amount >= time.as_secs_f64()
    }

    /// Whether it has anything left, of time.
    #[must_use]
    pub fn has_some(&self, all: Effort) -> bool {
        self.may(all, true, Effort::ZERO)
    }

    /// What the search takes from now on is taken by this part.
    pub fn open(&mut self, all: Effort) {
        self.lost += (self.left(all, true).amount - self.most).max(0.0);
        self.open = Some(all);
    }

    /// The work that was under way has ended.
    pub fn close(&mut self, all: Effort) {
        self.used = self.used(all);
        self.open = None;
    }

    /// This was taken.
    pub(crate) fn spend(&mut self, done: Effort) {
        self.used = self.used.and(done);
    }
}

/// All accounts.
#[derive(Clone, Debug)]
pub struct Ledger([Account; Purpose::ALL.len()]);

impl Ledger {
    /// `lengths`: the share of [`Purpose::Lengths`].
    pub(crate) fn new(lengths: f64) -> Self {
        let at_first = |time| Effort { runs: 0, time };
        Self([
            Account::of_stage("comparisons", 0.1),
            Account::of_stage("lengths", lengths),
            // Without a limit short blocks were two thirds of a campaign's first minutes if seeds had 10 KiB or more.
            Account::of_stage("trimming", 0.15),
            Account { slice: at_first(FIRST_WAITS), ..Account::new("second_runs", 0.1) },
            // The first runs: a search begins with many new paths.
            Account {
                first: Effort { runs: 100, time: Duration::ZERO },
                runs_of_a_run: 8.0,
                ..Account::new("sanitizers", 1.0)
            },
            Account {
                slice: at_first(IMPORT_SLICE),
                most: IMPORT_SLICE.as_secs_f64(),
                ..Account::new("imports", 0.25)
            },
        ])
    }
}

impl Index<Purpose> for Ledger {
    type Output = Account;
    fn index(&self, purpose: Purpose) -> &Account {
        &self.0[purpose as usize]
    }
}

impl IndexMut<Purpose> for Ledger {
    fn index_mut(&mut self, purpose: Purpose) -> &mut Account {
        &mut self.0[purpose as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(time: f64) -> Effort {
        Effort { runs: 0, time: Duration::from_secs_f64(time) }
    }

    #[test]
    fn a_part_has_its_share_and_something_at_first() {
        let mut account = Account::of_stage("x", 0.1);
        let all = Effort { runs: 1000, time: Duration::from_secs(10) };
        assert!(account.may(all, true, seconds(1.74)) && !account.may(all, true, seconds(1.76)));
        account.spend(seconds(1.0));
        assert!(account.may(all, true, seconds(0.74)) && !account.may(all, true, seconds(0.76)));
        // Runs of a microsecond: at first these are few milliseconds.
        let quick = Effort { runs: 1_000_000, time: Duration::from_secs(1) };
        let account = Account::of_stage("x", 0.1);
        assert!(
            account.may(quick, true, seconds(0.354)) && !account.may(quick, true, seconds(0.356))
        );
        // Runs, if times do not count.
        let runs = |runs| Effort { runs, ..Effort::ZERO };
        assert!(account.may(runs(40_000), false, runs(10_999)));
        assert!(!account.may(runs(40_000), false, runs(11_000)));
    }

    #[test]
    fn work_under_way_counts() {
        let mut account = Account::of_stage("x", 0.5);
        account.open(seconds(1.0));
        assert_eq!(account.used(seconds(3.0)).time, Duration::from_secs(2));
        account.close(seconds(3.0));
        assert_eq!(account.used(seconds(9.0)).time, Duration::from_secs(2));
    }

    #[test]
    fn imports_are_a_quarter_of_the_time_also_after_an_hour_without_any() {
        let ledger = Ledger::new(0.1);
        let mut account = ledger[Purpose::Imports].clone();
        let (mut now, mut imported) = (3600.0, 0.0);
        while now < 3610.0 {
            now += 0.01;
            if account.may(seconds(now), true, Effort::ZERO) {
                account.open(seconds(now));
                (now, imported) = (now + 0.05, imported + 0.05);
                account.close(seconds(now));
            }
        }
        assert!((2.0..2.7).contains(&imported), "{imported}");
    }

    /// An executor may not measure time.
    #[test]
    fn second_runs_are_made_where_no_time_passes() {
        let ledger = Ledger::new(0.1);
        let account = &ledger[Purpose::SecondRuns];
        assert!(account.has_time(Effort::ZERO, Duration::ZERO));
        assert!(account.has_time(Effort::ZERO, FIRST_WAITS));
        let mut used = account.clone();
        used.spend(seconds(0.5));
        assert!(used.has_time(Effort::ZERO, Duration::ZERO));
        assert!(
            !used.has_time(seconds(4.9), FIRST_WAITS) && used.has_time(seconds(5.1), FIRST_WAITS)
        );
    }

    #[test]
    fn names_are_those_of_the_purposes() {
        let ledger = Ledger::new(0.1);
        let names = Purpose::ALL.map(|purpose| ledger[purpose].name);
        let wanted = ["comparisons", "lengths", "trimming", "second_runs", "sanitizers", "imports"];
        assert_eq!(names, wanted);
    }
}
