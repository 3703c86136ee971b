//! Ledger of a search: the share of time that its parts may take, and what they have taken.
//!
//! Each part that could take all of the time has an [`Account`] with a share. A reproducible search counts runs
//! instead, because times vary.

use std::ops::{Index, IndexMut};
use std::time::Duration;

/// Number of runs, and their time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    pub runs: u64,
    pub time: Duration,
}

impl Effort {
    /// No effort.
    pub(crate) const ZERO: Self = Self { runs: 0, time: Duration::ZERO };

    /// Effort since `before`, at least zero: a removed build takes its runs along.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let runs = self.runs.saturating_sub(before.runs);
        Self { runs, time: self.time.saturating_sub(before.time) }
    }

    /// Sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { runs: self.runs + other.runs, time: self.time + other.time }
    }

    /// Seconds, or runs if times do not count.
    pub(crate) fn amount(self, counts_time: bool) -> f64 {
        if counts_time { self.time.as_secs_f64() } else { self.runs as f64 }
    }
}

/// Parts of the search with an account.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Solving comparisons; a share of the target's and the fuzzer's own time.
    Comparisons,
    /// Finding lengths and offsets; a share of the same time.
    Lengths,
    /// Short blocks in trimming; a share of the same time.
    Trimming,
    /// Second runs of inputs that took too long; a share of wall time. Endless loops look promising, too.
    SecondRuns,
    /// Sanitizer builds (`-w`); as much time as the target.
    Sanitizers,
    /// Imports of other fuzzers' finds; a share of wall time.
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

/// Initial allowance of a stage beyond its share: one piece of work (`SLICE`: a time, or runs if times do not count),
/// plus `FIRST`: a number of average runs, limited by a time.
pub(crate) const SLICE: Effort = Effort { runs: 5000, time: Duration::from_millis(250) };
const FIRST: Effort = Effort { runs: 5000, time: Duration::from_millis(500) };
/// Initial allowance for second runs after timeouts.
pub(crate) const FIRST_WAITS: Duration = Duration::from_secs(3);
/// Maximum time of one import.
pub const IMPORT_SLICE: Duration = Duration::from_millis(50);

/// Account of a part of the search.
#[derive(Clone, Debug)]
pub struct Account {
    pub name: &'static str,
    /// Share of the search's effort.
    pub share: f64,
    /// Initial allowance beyond the share: a number of average runs, limited by a time.
    first: Effort,
    /// Further initial allowance, always granted in full.
    slice: Effort,
    /// Weight of a run if times do not count: one equals this number of the search's runs, most of which are in
    /// batches.
    runs_of_a_run: f64,
    /// Maximum amount saved up while idle, seconds; `lost` is the forfeited rest.
    most: f64,
    lost: f64,
    used: Effort,
    /// Effort of the search when the current work began.
    open: Option<Effort>,
}

/// Remaining allowance, in seconds, or in runs if times do not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    amount: f64,
    counts_time: bool,
}

impl Left {
    /// True if `done` exhausts it.
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

    /// Effort taken so far; `all` is the effort of the search.
    #[must_use]
    pub fn used(&self, all: Effort) -> Effort {
        self.open.map_or(self.used, |begin| self.used.and(all.since(begin)))
    }

    /// Remaining allowance; `all` is the effort of the search.
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

    /// True if more than `piece` remains.
    pub(crate) fn may(&self, all: Effort, counts_time: bool, piece: Effort) -> bool {
        !self.left(all, counts_time).is_used_by(piece)
    }

    /// True if at least `time` remains.
    pub(crate) fn has_time(&self, all: Effort, time: Duration) -> bool {
        self.left(all, true).amount >= time.as_secs_f64()
    }

    /// True if any time remains.
    #[must_use]
    pub fn has_some(&self, all: Effort) -> bool {
        self.may(all, true, Effort::ZERO)
    }

    /// Begins work: the search's effort from now on is charged to this account.
    pub fn open(&mut self, all: Effort) {
        self.lost += (self.left(all, true).amount - self.most).max(0.0);
        self.open = Some(all);
    }

    /// Ends the current work.
    pub fn close(&mut self, all: Effort) {
        self.used = self.used(all);
        self.open = None;
    }

    /// Charges `done`.
    pub(crate) fn spend(&mut self, done: Effort) {
        self.used = self.used.and(done);
    }
}

/// All accounts.
#[derive(Clone, Debug)]
pub struct Ledger([Account; Purpose::ALL.len()]);

impl Ledger {
    /// Creates all accounts; `lengths` is the share of [`Purpose::Lengths`].
    pub(crate) fn new(lengths: f64) -> Self {
        let at_first = |time| Effort { runs: 0, time };
        Self([
            Account::of_stage("comparisons", 0.1),
            Account::of_stage("lengths", lengths),
            // Without a limit, short blocks took two thirds of a campaign's first minutes for seeds of 10 KiB or more.
            Account::of_stage("trimming", 0.15),
            Account { slice: at_first(FIRST_WAITS), ..Account::new("second_runs", 0.1) },
            // An initial allowance, because a search begins with many new paths.
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
