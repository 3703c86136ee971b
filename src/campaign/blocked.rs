//! Where the search is stuck: comparisons that seeds come to and do not pass, with their places in the source.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::disk::output::OutputDir;
use crate::engine::comparison::{Blocker, ranges};
use crate::engine::corpus::{Seed, SeedId};
use crate::engine::domain::Site;
use crate::engine::fuzzer::Fuzzer;
use crate::event::BlockedComparison;
use crate::mutators::Mutators;

/// Comparisons that the screen shows, and how long it shows the same ones.
const MOST_SHOWN: usize = 6;
const SHOWN_FOR: Duration = Duration::from_secs(2);

/// The comparisons by their numbers.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// Read from the target's files when the first one is asked for.
    sites: OnceCell<HashMap<u32, Site>>,
    shown: Vec<BlockedComparison>,
    shown_at: Option<Instant>,
}

impl Blocked {
    /// At most `most` of them, as far as they were logged.
    pub(super) fn list(
        &self,
        fuzzer: &Fuzzer<Mutators>,
        output: &OutputDir,
        most: usize,
    ) -> Vec<BlockedComparison> {
        let entry = |blocker: Blocker| {
            let path = closest(fuzzer, &blocker).map(|seed| output.seed_path(&seed.name));
            BlockedComparison { path, ..self.entry(fuzzer, &blocker) }
        };
        fuzzer.blockers(most).into_iter().map(entry).collect()
    }

    /// The first ones.
    pub(super) fn shown(&mut self, fuzzer: &Fuzzer<Mutators>) -> Vec<BlockedComparison> {
        if self.shown_at.is_none_or(|at| at.elapsed() >= SHOWN_FOR) {
            let blockers = fuzzer.blockers(MOST_SHOWN);
            self.shown = blockers.iter().map(|blocker| self.entry(fuzzer, blocker)).collect();
            self.shown_at = Some(Instant::now());
        }
        self.shown.clone()
    }

    fn entry(&self, fuzzer: &Fuzzer<Mutators>, blocker: &Blocker) -> BlockedComparison {
        let read = || fuzzer.comparison_sites().into_iter().map(|site| (site.key, site)).collect();
        let site = self.sites.get_or_init(read).get(&blocker.site);
        BlockedComparison {
            file: site.map(|site| site.file.to_string()).unwrap_or_default(),
            line: site.map_or(0, |site| site.line),
            column: site.map_or(0, |site| site.column),
            function: site.map(|site| site.short_function().to_string()).unwrap_or_default(),
            comparison: site.map(|site| site.what.to_string()).unwrap_or_default(),
            outcome: blocker.outcome().into(),
            seeds: blocker.inputs as u64,
            attempts: blocker.attempts,
            operands: blocker.comparison().to_string(),
            bytes: ranges(blocker.deciding.iter().copied()),
            path: None,
        }
    }
}

/// The seed that was worked on when the operands were closest to each other.
fn closest<'a>(fuzzer: &'a Fuzzer<Mutators>, blocker: &Blocker) -> Option<&'a Seed> {
    let id = SeedId(u32::try_from(blocker.closest).ok()?);
    (id < fuzzer.corpus.next_id()).then(|| &fuzzer.corpus[id])
}
