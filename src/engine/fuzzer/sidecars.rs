//! Sanitizer builds beside the target: `-w`.
//!
//! The target has no sanitizer and is fast; what it runs on a path of its own is run in the sanitizer builds as well.
//! So nearly all bugs of the slow builds are found at the speed of the fast one (SAND: Kong, Li, Huang, Su, ICSE 2025).
//!
//! ```text
//! run shown ────────── its edges ─► map_hash ─┐
//! run of a batch, not shown: the target ──────┴─► path new? ─► Door::inspect ─► each build, one run ─► its judge
//!   hashes its edges (ffuzz_edges_hash)                                                      ─► crashes/…,+san
//! ```
//!
//! A path is the set of edges that a run hits, as one number; both sides compute the same. The target writes that of
//! each run it does not show into the channel, so a batch stops for finds only. The fuzzer owns the builds, the set of
//! paths, and a judge for the crashes of each build; only the door runs them.
//!
//! The builds get at most half of the time, or with `-s` an eighth of the runs: a path that comes while there is none
//! left stays new. Seeds and imports are always run there. A build that cannot be started any more is left out.
//! The triage beside a campaign gets the first build as its own `-w`.

use std::time::Duration;

use crate::coverage::{self, Classes, map_hash};
use crate::executor::{Executor, ExitKind, Observation, RunError};
use crate::feedback::{Finding, Judge};
use crate::options::Inspected;
use crate::runner::SLOWER;
use crate::schedule::ledger::{Account, Effort};

/// The builds, and which paths they have seen.
pub struct Sidecars {
    builds: Vec<Sidecar>,
    inspected: Inspected,
    seen: Seen,
}

struct Sidecar {
    executor: Box<dyn Executor>,
    /// Of its crashes.
    judge: Judge,
}

/// What an input did in a build.
pub(super) enum Inspection {
    /// It ended, or took too long, which is no finding here.
    Fine,
    /// It crashed.
    Judged(Option<Finding>),
    /// It crashed, and the build counts no edges by which crashes are distinguished.
    Uncounted(ExitKind),
}

/// A set of paths. One of a thousand new paths is taken for a known one after 600 000, one of ten after six million
/// (a Bloom filter with two bits for each).
struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    const BITS: u64 = 1 << 25;

    fn new() -> Self {
        Self { bits: vec![0; (Self::BITS / 64) as usize] }
    }

    /// True if it was not there.
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
    /// `builds` take the same inputs as the target.
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

    /// What counts as a path; None if only seeds are run.
    pub(super) fn paths(&self) -> Option<Classes> {
        match self.inspected {
            Inspected::Edges => Some(Classes::Binary),
            Inspected::Counts => Some(Classes::Counts),
            Inspected::Seeds => None,
        }
    }

    /// The path of a run; None if no build has to run its input.
    pub(super) fn path_of(&self, run: &Observation<'_>) -> Option<u64> {
        let classes = self.paths().filter(|_| run.exit == ExitKind::Ok)?;
        Some(map_hash(run.edges, classes))
    }

    /// Whether the builds have not seen this path; from now on they have.
    pub(super) fn is_new(&mut self, path: u64) -> bool {
        self.seen.insert(path)
    }

    /// What all builds have done.
    fn effort(&self) -> Effort {
        let of = |build: &Sidecar| build.executor.info().spent().whole();
        Effort { runs: self.execs(), time: self.builds.iter().map(of).sum() }
    }

    /// Runs an input in one of the builds, which `account` pays. `timeout` is that of the target.
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

    /// The finding of an input that ended so in one of the builds, by the edges that it hits in the target.
    pub(super) fn judge_by(
        &mut self,
        build: usize,
        exit: ExitKind,
        target: Observation<'_>,
    ) -> Option<Finding> {
        self.builds[build].judge.judge(&Observation { exit, ..target }).finding
    }

    /// Leaves a build out from now on.
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
