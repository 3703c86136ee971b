//! Lists where the search is stuck: branches that seeds reach but never take, with their places in the source.

use std::time::{Duration, Instant};

use crate::disk::output::OutputDir;
use crate::engine::corpus::SeedId;
use crate::engine::feedback::Stuck;
use crate::engine::fuzzer::Fuzzer;
use crate::event::BlockedComparison;
use crate::mutators::Mutators;
use crate::report::stuck::{COPIES, TargetPlaces, joined};

/// Number of places on the screen, and the time before the list is refreshed.
const MOST_SHOWN: usize = 6;
const SHOWN_FOR: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Blocked {
    places: TargetPlaces,
    shown: Vec<BlockedComparison>,
    shown_at: Option<Instant>,
}

impl Blocked {
    /// Lists at most `most` places.
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
        joined(fuzzer.stuck(COPIES * most).into_iter().map(entry), most)
    }

    /// The first places that a comparison decides. Finding the places of others costs more than a screen is worth.
    pub(super) fn shown(&mut self, fuzzer: &Fuzzer<Mutators>) -> Vec<BlockedComparison> {
        if self.shown_at.is_none_or(|at| at.elapsed() >= SHOWN_FOR) {
            let stuck = fuzzer.stuck(10 * MOST_SHOWN).into_iter().map(|(stuck, _)| stuck);
            let explained = stuck.filter(|stuck| stuck.comparison.is_some());
            let explained = explained.take(COPIES * MOST_SHOWN);
            self.shown = joined(explained.map(|stuck| self.entry(fuzzer, &stuck)), MOST_SHOWN);
            self.shown_at = Some(Instant::now());
        }
        self.shown.clone()
    }

    fn entry(&self, fuzzer: &Fuzzer<Mutators>, stuck: &Stuck) -> BlockedComparison {
        self.places.entry(stuck, fuzzer.target(), || fuzzer.comparison_sites())
    }
}
