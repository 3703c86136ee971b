//! Where the search is stuck: what seeds reach and do not go on from, with the places in the source.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::disk::output::OutputDir;
use crate::engine::comparison::ranges;
use crate::engine::corpus::SeedId;
use crate::engine::domain::Site;
use crate::engine::executor::TargetInfo;
use crate::engine::feedback::Stuck;
use crate::engine::fuzzer::Fuzzer;
use crate::event::BlockedComparison;
use crate::mutators::Mutators;

/// Places that the screen shows, and how long it shows the same ones.
const MOST_SHOWN: usize = 6;
const SHOWN_FOR: Duration = Duration::from_secs(2);

/// Names the places where a target is stuck. Its comparisons, by their numbers, are read when the first one is asked for.
#[derive(Debug, Default)]
pub struct TargetPlaces(OnceCell<HashMap<u32, Site>>);

impl TargetPlaces {
    /// What is known of a place without the seeds. `sites`: the comparisons of what logs them.
    pub fn entry(
        &self,
        stuck: &Stuck,
        target: &dyn TargetInfo,
        sites: impl FnOnce() -> Vec<Site>,
    ) -> BlockedComparison {
        let by_number = || sites().into_iter().map(|site| (site.key, site)).collect();
        let sites = self.0.get_or_init(by_number);
        let of_counter = || target.place_of_counter(stuck.behind.or(stuck.counter)?);
        let site = stuck.site.and_then(|site| sites.get(&site)).cloned().or_else(of_counter);
        let named = |site: Site| BlockedComparison {
            file: site.file.to_string(),
            line: site.line,
            column: site.column,
            function: match &*site.function {
                "" => String::new(),
                _ => site.short_function().to_string(),
            },
            comparison: site.what.to_string(),
            ..BlockedComparison::default()
        };
        let mut entry = site.map(named).unwrap_or_default();
        if let Some(fork) = stuck.fork {
            entry.behind = Some(fork.behind.into());
            entry.functions = fork.functions.into();
            entry.outcome = match fork.ways {
                2 => "one way is never taken".into(),
                ways => format!("{} of {ways} ways are never taken", fork.shut),
            };
        }
        if let Some(blocker) = &stuck.comparison {
            entry.outcome = blocker.outcome().into();
            entry.seeds = blocker.inputs as u64;
            entry.attempts = blocker.attempts;
            entry.operands = blocker.comparison().to_string();
            entry.bytes = ranges(blocker.deciding.iter().copied());
        }
        entry
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocked {
    places: TargetPlaces,
    shown: Vec<BlockedComparison>,
    shown_at: Option<Instant>,
}

impl Blocked {
    /// At most `most` places.
    pub(super) fn list(
        &self,
        fuzzer: &mut Fuzzer<Mutators>,
        output: &OutputDir,
        most: usize,
    ) -> Vec<BlockedComparison> {
        fuzzer.frontier();
        let entry = |(stuck, seed): (Stuck, Option<SeedId>)| {
            let name = seed.map(|id| &fuzzer.corpus[id].name);
            let path = name.map(|name| output.seed_path(name));
            BlockedComparison { path, ..self.entry(fuzzer, &stuck) }
        };
        fuzzer.stuck(most).into_iter().map(entry).collect()
    }

    /// The first ones that comparisons decide: to find the places of others costs more than to look at the screen is worth.
    pub(super) fn shown(&mut self, fuzzer: &Fuzzer<Mutators>) -> Vec<BlockedComparison> {
        if self.shown_at.is_none_or(|at| at.elapsed() >= SHOWN_FOR) {
            let stuck = fuzzer.stuck(10 * MOST_SHOWN).into_iter().map(|(stuck, _)| stuck);
            let explained = stuck.filter(|stuck| stuck.comparison.is_some()).take(MOST_SHOWN);
            self.shown = explained.map(|stuck| self.entry(fuzzer, &stuck)).collect();
            self.shown_at = Some(Instant::now());
        }
        self.shown.clone()
    }

    fn entry(&self, fuzzer: &Fuzzer<Mutators>, stuck: &Stuck) -> BlockedComparison {
        self.places.entry(stuck, fuzzer.target(), || fuzzer.comparison_sites())
    }
}
