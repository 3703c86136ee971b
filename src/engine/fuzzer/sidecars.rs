//! Sanitizer builds beside the target: `-w`.
//!
//! The target has no sanitizer and is fast; inputs with a new path also run in the sanitizer builds. This finds
//! nearly all bugs of the slow builds at the speed of the fast one (SAND: Kong, Li, Huang, Su, ICSE 2025).
//!
//! ```text
//! run shown ────────── its edges ─► map_hash ─┐
//! run of a batch, not shown: the target ──────┴─► path new? ─► Door::inspect ─► each build, one run ─► its judge
//!   hashes its edges (ffuzz_edges_hash)                                                      ─► crashes/…,+san
//! ```
//!
//! A path is a hash of the set of edges that a run hits; target and fuzzer compute the same hash. For runs that are
//! not shown, the target writes the path into the channel, so a batch stops for finds only. The fuzzer owns the
//! builds, the set of paths, and a judge for the crashes of each build; only the door runs them.
//!
//! The builds get at most half of the time, or with `-s` an eighth of the runs; a path found while the share is used
//! up remains new. Seeds and imports always run in the builds. A build that can no longer start is removed. The
//! triage beside a campaign gets the first build as its own `-w`.

use std::time::Duration;

use crate::coverage::{self, Classes, map_hash};
use crate::executor::{Executor, ExitKind, Observation, RunError};
use crate::feedback::{Finding, Judge};
use crate::options::Inspected;
use crate::runner::SLOWER;
use crate::schedule::ledger::{Account, Effort};

/// The builds, and the paths they have run.
pub struct Sidecars {
    builds: Vec<Sidecar>,
    inspected: Inspected,
    seen: Seen,
}

struct Sidecar {
    executor: Box<dyn Executor>,
    /// Judges the crashes of this build.
    judge: Judge,
}

/// Outcome of an input in a build.
pub(super) enum Inspection {
    /// No crash; a timeout is not a finding here.
    Fine,
    /// A crash, judged by the edges of the build.
    Judged(Option<Finding>),
    /// A crash in a build that counts no edges, so crashes cannot be distinguished.
    Uncounted(ExitKind),
}

/// A set of paths: a Bloom filter with two bits per path. The rate of new paths mistaken for known ones is 1 in 1000
/// after 600 000 paths and 1 in 10 after six million.
struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    const BITS: u64 = 1 << 25;

    fn new() -> Self {
        Self { bits: vec![0; (Self::BITS / 64) as usize] }
    }

    /// Returns true if the path was not in the set.
    fn insert(&mut self, path: u64) -> bool {
        let mut is_new = false;
        for place in [path % Self::BITS, (path >> 32) % Self::BITS] {
            let word = &mut self.bits[(place / 64) as usize];
            let bit = 1 << (place % 64);
            is_new |= *word & bit == 0;
            *word |= bit;
        }
        is_new
    }
}

impl Sidecars {
    /// `builds` must accept the same inputs as the target.
    #[must_use]
    pub fn new(builds: Vec<Box<dyn Executor>>, inspected: Inspected) -> Self {
        let build = |executor: Box<dyn Executor>| {
            let judge = Judge::new(executor.info().map_size(), &[], false);
            Sidecar { executor, judge }
        };
        let builds = builds.into_iter().map(build).collect();
        Self { builds, inspected, seen: Seen::new() }
    }

    /// Number of builds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.builds.len()
    }

    /// Runs of all builds.
    #[must_use]
    pub fn execs(&self) -> u64 {
        self.builds.iter().map(|build| build.executor.info().execs()).sum()
    }

    /// The classes of hit counts that make a path; None if only seeds are run.
    pub(super) fn paths(&self) -> Option<Classes> {
        match self.inspected {
            Inspected::Edges => Some(Classes::Binary),
            Inspected::Counts => Some(Classes::Counts),
            Inspected::Seeds => None,
        }
    }

    /// The path of a run; None if the builds need not run its input.
    pub(super) fn path_of(&self, run: &Observation<'_>) -> Option<u64> {
        let classes = self.paths().filter(|_| run.exit == ExitKind::Ok)?;
        Some(map_hash(run.edges, classes))
    }

    /// Adds a path; returns true if it was new.
    pub(super) fn is_new(&mut self, path: u64) -> bool {
        self.seen.insert(path)
    }

    /// Runs and time of all builds.
    fn effort(&self) -> Effort {
        let of = |build: &Sidecar| build.executor.info().spent().whole();
        Effort { runs: self.execs(), time: self.builds.iter().map(of).sum() }
    }

    /// Runs an input in one of the builds and charges `account`. `timeout` is that of the target.
    pub(super) fn run(
        &mut self,
        build: usize,
        input: &[u8],
        timeout: Duration,
        account: &mut Account,
    ) -> Result<Inspection, RunError> {
        let before = self.effort();
        let result = self.inspect(build, input, timeout);
        account.spend(self.effort().since(before));
        result
    }

    fn inspect(
        &mut self,
        build: usize,
        input: &[u8],
        timeout: Duration,
    ) -> Result<Inspection, RunError> {
        let Sidecar { executor, judge } = &mut self.builds[build];
        executor.settings_mut().timeout = timeout * SLOWER;
        let run = executor.observe(input)?;
        Ok(match run.exit {
            ExitKind::Ok | ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => Inspection::Fine,
            exit if coverage::count(run.edges) == 0 => Inspection::Uncounted(exit),
            _ => Inspection::Judged(judge.judge(&run).finding),
        })
    }

    /// Judges an input that ended with `exit` in one of the builds, by the edges that it hits in the `target`.
    pub(super) fn judge_by(
        &mut self,
        build: usize,
        exit: ExitKind,
        target: Observation<'_>,
    ) -> Option<Finding> {
        self.builds[build].judge.judge(&Observation { exit, ..target }).finding
    }

    /// Removes a build.
    pub(super) fn remove(&mut self, build: usize) {
        self.builds.remove(build);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_new_once() {
        let mut seen = Seen::new();
        let paths: Vec<u64> = (0..10_000).map(coverage::mix).collect();
        let new = paths.iter().filter(|path| seen.insert(**path)).count();
        assert!(new > 9_990, "{new}");
        assert!(!paths.iter().any(|path| seen.insert(*path)));
    }
}
