//! The judge: turns the observation of a run into a verdict.
//!
//! The only writer of virgin maps and domain aggregates. No I/O, no clock.

mod known;
mod stuck;

pub use known::{Beyond, Known, Mismatch, Part};
pub use stuck::{Stuck, stuck};

use std::collections::BTreeSet;

use crate::coverage::{self, Classes, Novelty};
use crate::domain::{Aggregates, Domain, KeyGain};
use crate::executor::{Executor, ExitKind, Observation};
use crate::options::Wanted;
use serde::{Deserialize, Serialize};

/// The judge's result for a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verdict {
    /// New edges or hit counts of a run that can become a seed.
    pub novelty: Novelty,
    /// Domain keys that such a run, or one that timed out, would improve; empty unless domains are watched. They are
    /// recorded only after [`Judge::confirm`] of a second run.
    pub gains: Vec<KeyGain>,
    pub finding: Option<Finding>,
}

/// A run that did not end well. `unique`: its map is new by AFL's rule; for `Lost`, it is the first one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Finding {
    Crash {
        signal: i32,
        unique: bool,
    },
    Hang {
        unique: bool,
    },
    /// The fork server died with the run.
    Lost {
        unique: bool,
    },
    /// Cut at the soft limit, which proves nothing: a unique one is run again in full.
    Cut {
        unique: bool,
    },
}

/// State of a judge that is saved for the next process of the same campaign.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Lessons {
    map_size: usize,
    /// Changed bytes of the virgin maps, each with its index.
    edges: Vec<(u32, u8)>,
    crash_edges: Vec<(u32, u8)>,
    hang_edges: Vec<(u32, u8)>,
    blind_crashes: Vec<i32>,
    /// Edges that differ between runs of one input.
    #[serde(default)]
    ignored: BTreeSet<u32>,
    /// Aggregates that differ from their initial value.
    values: Vec<(u32, u32)>,
    noisy: Vec<u32>,
}

/// Growth of a map allowed beyond twice its size when a target is restarted.
const GROWTH: usize = 1 << 16;
/// Highest signal number of Linux; 0 is accepted as well, for exit codes.
const SIGNALS: i32 = 64;

impl Lessons {
    /// Why these lessons do not fit a target with this number of `edges` and `keys`; None if they fit.
    #[must_use]
    pub fn flaw(&self, edges: usize, keys: usize) -> Option<&'static str> {
        let ascending = |places: &[(u32, u8)]| places.is_sorted_by(|a, b| a.0 < b.0);
        let in_map = |place: u32| (place as usize) < self.map_size;
        let mut maps = [&self.edges, &self.crash_edges, &self.hang_edges].into_iter();
        if self.map_size > 2 * edges + GROWTH {
            return Some("its map is not that of the target");
        }
        let good = |map: &Vec<(u32, u8)>| {
            ascending(map) && map.last().is_none_or(|(place, _)| in_map(*place))
        };
        if !maps.all(good) || !self.ignored.iter().all(|place| in_map(*place)) {
            return Some("it names edges that do not exist");
        }
        let mut named = self.values.iter().map(|(key, _)| key).chain(&self.noisy);
        if named.any(|key| *key as usize >= keys) {
            return Some("it names keys that do not exist");
        }
        let is_signal = |signal: &i32| (LOST..=SIGNALS).contains(signal);
        let signals = &self.blind_crashes;
        (signals.len() > SIGNALS as usize + 2 || !signals.iter().all(is_signal))
            .then_some("it names signals that do not exist")
    }

    /// Number of edges in the map of the judge.
    #[must_use]
    pub fn map_size(&self) -> usize {
        self.map_size
    }
}

fn sparse(virgin: &[u8]) -> Vec<(u32, u8)> {
    (0..).zip(virgin.iter().copied()).filter(|(_, byte)| *byte != 0xff).collect()
}

/// Clears the `known` bits in a virgin map. Skips indices beyond the map: the file may have been edited by hand.
fn fill(virgin: &mut [u8], known: &[(u32, u8)]) {
    for (place, byte) in known {
        if let Some(at) = virgin.get_mut(*place as usize) {
            *at &= *byte;
        }
    }
}

impl Verdict {
    /// True if the input should be kept in the queue.
    #[must_use]
    pub fn is_interesting(&self) -> bool {
        self.novelty != Novelty::None || !self.gains.is_empty()
    }
}

/// Represents [`ExitKind::Lost`] in lists of signals.
const LOST: i32 = -1;

/// State learned from all earlier runs.
#[derive(Debug)]
pub struct Judge {
    virgin: Vec<u8>,
    virgin_crash: Vec<u8>,
    virgin_hang: Vec<u8>,
    /// Virgin map of cut runs. Uses hit counts, because repetition is what makes a run long.
    virgin_cut: Vec<u8>,
    /// Signals of crashes with an empty edge map: without coverage only the first crash of each signal is unique.
    blind_crashes: Vec<i32>,
    /// See [`Judge::ignore_edges`].
    ignored: BTreeSet<u32>,
    aggregates: Aggregates,
    watch_domains: bool,
    wanted: Wanted,
    /// True if the virgin map has changed since the last [`Judge::teach`].
    edges_moved: bool,
    /// See [`Known::unnamed`].
    unnamed: bool,
}

impl Judge {
    /// `watch_domains`: whether to compute gains of domains (`-p`, `--dsf-record`).
    #[must_use]
    pub fn new(map_size: usize, domains: &[Domain], watch_domains: bool) -> Self {
        Self {
            virgin: vec![0xff; map_size],
            virgin_crash: vec![0xff; map_size],
            virgin_hang: vec![0xff; map_size],
            virgin_cut: vec![0xff; map_size],
            blind_crashes: Vec::new(),
            ignored: BTreeSet::new(),
            aggregates: Aggregates::new(domains),
            watch_domains: watch_domains && !domains.is_empty(),
            wanted: Wanted::Good,
            edges_moved: false,
            unnamed: false,
        }
    }

    /// Sets which runs can become seeds.
    #[must_use]
    pub fn wants(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    /// Whether a run with this exit can become a seed.
    #[must_use]
    pub fn accepts(&self, exit: ExitKind) -> bool {
        match exit {
            ExitKind::Ok => self.wanted != Wanted::Crashing,
            ExitKind::Hang => self.wanted == Wanted::GoodOrSlow,
            ExitKind::Cut | ExitKind::Lost => false,
            ExitKind::Crash { .. } | ExitKind::Oom => self.wanted == Wanted::Crashing,
        }
    }

    /// Judges a run and updates the maps. Allocates nothing if the run shows nothing new.
    pub fn judge(&mut self, run: &Observation<'_>) -> Verdict {
        self.make_room(run.edges.len());
        let finding = match run.exit {
            ExitKind::Ok => None,
            ExitKind::Hang => Some(self.judge_hang(run)),
            ExitKind::Cut => Some(self.judge_cut(run)),
            ExitKind::Crash { signal } => Some(self.judge_crash(run, signal)),
            ExitKind::Oom => Some(self.judge_crash(run, libc::SIGKILL)),
            ExitKind::Lost => Some(Finding::Lost { unique: self.is_new_end(LOST) }),
        };
        let accepted = self.accepts(run.exit);
        let novelty = if accepted { self.novelty(run) } else { Novelty::None };
        // A slow run may be worth another one with more time.
        let may_gain = accepted || run.exit == ExitKind::Hang;
        let gains = if may_gain { self.gains(run) } else { Vec::new() };
        Verdict { novelty, gains, finding }
    }

    /// Grows the virgin maps: a restarted target may have a larger map. They never shrink.
    fn make_room(&mut self, edges: usize) {
        if edges > self.virgin.len() {
            let maps = [
                &mut self.virgin,
                &mut self.virgin_crash,
                &mut self.virgin_hang,
                &mut self.virgin_cut,
            ];
            for map in maps {
                map.resize(edges, 0xff);
            }
        }
    }

    fn novelty(&mut self, run: &Observation<'_>) -> Novelty {
        let virgin = &mut self.virgin[..run.edges.len()];
        if !coverage::is_new(run.edges, virgin, Classes::Counts) {
            return Novelty::None;
        }
        self.edges_moved = true;
        coverage::merge(run.edges, virgin, Classes::Counts)
    }

    /// Whether a run would improve a domain. Records nothing.
    #[must_use]
    pub fn would_gain(&self, run: &Observation<'_>) -> bool {
        self.watch_domains && self.aggregates.would_gain(&run.dsf)
    }

    fn gains(&self, run: &Observation<'_>) -> Vec<KeyGain> {
        if self.would_gain(run) { self.aggregates.gains(&run.dsf) } else { Vec::new() }
    }

    /// Records and returns those `gains` of an input's first run that the second run shows as well.
    pub fn confirm(&mut self, gains: &[KeyGain], second: &Observation<'_>) -> Vec<KeyGain> {
        if gains.is_empty() || !self.accepts(second.exit) {
            return Vec::new();
        }
        self.aggregates.confirm(gains, &second.dsf)
    }

    fn judge_crash(&mut self, run: &Observation<'_>, signal: i32) -> Finding {
        let unique = if run.edges.is_empty() {
            // Crashes cannot be distinguished without coverage (`-n`): keep all rather than lose one.
            true
        } else if coverage::count(run.edges) == 0 {
            self.is_new_end(signal)
        } else {
            let virgin = &mut self.virgin_crash[..run.edges.len()];
            coverage::merge(run.edges, virgin, Classes::Binary) != Novelty::None
        };
        Finding::Crash { signal, unique }
    }

    /// Returns true on the first call for each signal, for runs without coverage.
    fn is_new_end(&mut self, signal: i32) -> bool {
        let new = !self.blind_crashes.contains(&signal);
        if new {
            self.blind_crashes.push(signal);
        }
        new
    }

    fn judge_hang(&mut self, run: &Observation<'_>) -> Finding {
        let virgin = &mut self.virgin_hang[..run.edges.len()];
        let unique = run.edges.is_empty()
            || coverage::merge(run.edges, virgin, Classes::Binary) != Novelty::None;
        Finding::Hang { unique }
    }

    fn judge_cut(&mut self, run: &Observation<'_>) -> Finding {
        let virgin = &mut self.virgin_cut[..run.edges.len()];
        let unique = run.edges.is_empty()
            || coverage::merge(run.edges, virgin, Classes::Counts) != Novelty::None;
        Finding::Cut { unique }
    }

    /// Marks the keys of `gains` as noisy: a further run of the same seed would still improve them.
    pub(crate) fn note_noise(&mut self, gains: &[KeyGain]) {
        self.aggregates.note_noise(gains.iter().map(|gain| gain.key));
    }

    /// Keys at which a run reaches the aggregate, see [`Aggregates::reached`]; none unless domains are watched.
    #[must_use]
    pub fn reached(&self, run: &Observation<'_>) -> Vec<(u32, u32)> {
        if self.watch_domains { self.aggregates.reached(&run.dsf) } else { Vec::new() }
    }

    /// Excludes edges that differ between runs of one input: they are never new again.
    pub(crate) fn ignore_edges(&mut self, edges: &[u32]) {
        for edge in edges {
            self.virgin[*edge as usize] = 0;
        }
        self.ignored.extend(edges);
        self.edges_moved |= !edges.is_empty();
    }

    /// Passes changes of the virgin map and of the aggregates to an executor, which need not report known runs.
    pub fn teach(&mut self, executor: &mut dyn Executor) {
        if std::mem::take(&mut self.edges_moved) {
            executor.learn_edges(&self.virgin);
        }
        for key in self.aggregates.take_moved() {
            executor.learn_key(key, self.aggregates.threshold(key));
        }
    }

    /// The state to save for a restart.
    #[must_use]
    pub fn lessons(&self) -> Lessons {
        Lessons {
            map_size: self.virgin.len(),
            edges: sparse(&self.virgin),
            crash_edges: sparse(&self.virgin_crash),
            hang_edges: sparse(&self.virgin_hang),
            blind_crashes: self.blind_crashes.clone(),
            ignored: self.ignored.clone(),
            values: self.aggregates.changed().collect(),
            noisy: self.aggregates.noisy().iter().copied().collect(),
        }
    }

    /// Restores the state saved by an earlier judge of the same target.
    pub fn recall(&mut self, lessons: &Lessons) {
        self.make_room(lessons.map_size);
        fill(&mut self.virgin, &lessons.edges);
        fill(&mut self.virgin_crash, &lessons.crash_edges);
        fill(&mut self.virgin_hang, &lessons.hang_edges);
        self.blind_crashes.clone_from(&lessons.blind_crashes);
        self.ignored.clone_from(&lessons.ignored);
        self.aggregates.recall(&lessons.values, &lessons.noisy);
        self.edges_moved = true;
    }

    #[must_use]
    pub fn virgin(&self) -> &[u8] {
        &self.virgin
    }

    /// Edges that differ between runs of one input.
    #[must_use]
    pub fn ignored_edges(&self) -> usize {
        self.ignored.len()
    }

    #[must_use]
    pub fn aggregates(&self) -> &Aggregates {
        &self.aggregates
    }

    #[must_use]
    pub fn watches_domains(&self) -> bool {
        self.watch_domains
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{DsfView, Reducer};
    use std::time::Duration;

    fn run<'a>(exit: ExitKind, edges: &'a [u8], dsf: DsfView<'a>) -> Observation<'a> {
        Observation {
            index: 0,
            exit,
            duration: Duration::ZERO,
            edges,
            dsf,
            comparisons: Default::default(),
        }
    }

    fn max_domain() -> Vec<Domain> {
        let name = "m".to_owned();
        vec![Domain { name, start: 0, size: 2, reducer: Reducer::Max, initial: 0 }]
    }

    #[test]
    fn a_gain_without_new_coverage_is_interesting() {
        let domains = max_domain();
        let mut judge = Judge::new(8, &domains, true);
        let edges = [1, 0, 0, 0, 0, 0, 0, 0];
        let view = |values| DsfView { domains: &domains, values, touched: None };
        let first = judge.judge(&run(ExitKind::Ok, &edges, view(&[0, 3])));
        assert_eq!((first.novelty, first.gains.len()), (Novelty::Edge, 1));
        assert_eq!(judge.confirm(&first.gains, &run(ExitKind::Ok, &edges, view(&[0, 3]))).len(), 1);
        let second = judge.judge(&run(ExitKind::Ok, &edges, view(&[0, 4])));
        assert_eq!((second.novelty, second.gains[0].before), (Novelty::None, 3));
        assert!(second.is_interesting());
        // A second run with another exit confirms nothing.
        assert_eq!(judge.confirm(&second.gains, &run(ExitKind::Hang, &edges, view(&[0, 4]))), []);
        judge.confirm(&second.gains, &run(ExitKind::Ok, &edges, view(&[0, 4])));
        assert!(!judge.judge(&run(ExitKind::Ok, &edges, view(&[0, 4]))).is_interesting());
    }

    #[test]
    fn crashes_touch_neither_coverage_nor_aggregates() {
        let domains = max_domain();
        let mut judge = Judge::new(8, &domains, true);
        let view = DsfView { domains: &domains, values: &[9, 9], touched: None };
        let crash = ExitKind::Crash { signal: 11 };
        let verdict = judge.judge(&run(crash, &[1, 1, 0, 0, 0, 0, 0, 0], view));
        assert_eq!(verdict.finding, Some(Finding::Crash { signal: 11, unique: true }));
        assert!(!verdict.is_interesting());
        assert_eq!(coverage::found(judge.virgin()), (0, 0));
        assert_eq!(judge.aggregates().changed().count(), 0);
        let again = judge.judge(&run(crash, &[9, 1, 0, 0, 0, 0, 0, 0], view));
        assert_eq!(again.finding, Some(Finding::Crash { signal: 11, unique: false }));
    }

    #[test]
    fn a_crash_with_an_empty_map_counts_once_a_signal() {
        let mut judge = Judge::new(8, &[], false);
        let mut crash = |signal| {
            let exit = ExitKind::Crash { signal };
            judge.judge(&run(exit, &[0; 8], DsfView::default())).finding
        };
        assert_eq!(crash(11), Some(Finding::Crash { signal: 11, unique: true }));
        assert_eq!(crash(11), Some(Finding::Crash { signal: 11, unique: false }));
        assert_eq!(crash(6), Some(Finding::Crash { signal: 6, unique: true }));
    }

    #[test]
    fn an_edge_with_all_hit_counts_is_not_an_unsteady_one() {
        let mut judge = Judge::new(2, &[], false);
        for count in [1, 2, 3, 4, 8, 16, 32, 128] {
            judge.judge(&run(ExitKind::Ok, &[count, 1], DsfView::default()));
        }
        assert_eq!((judge.virgin()[0], judge.ignored_edges()), (0, 0));
        judge.ignore_edges(&[1]);
        let mut next = Judge::new(2, &[], false);
        next.recall(&judge.lessons());
        assert_eq!(next.ignored_edges(), 1);
    }

    #[test]
    fn without_coverage_every_crash_is_kept() {
        let mut judge = Judge::new(0, &[], false);
        for _ in 0..2 {
            let exit = ExitKind::Crash { signal: 6 };
            let finding = judge.judge(&run(exit, &[], DsfView::default())).finding;
            assert_eq!(finding, Some(Finding::Crash { signal: 6, unique: true }));
        }
    }

    #[test]
    fn other_ends_of_runs_can_be_wanted() {
        let (crash, edges) = (ExitKind::Crash { signal: 6 }, [1, 0, 0, 0, 0, 0, 0, 0]);
        let judged = |wanted, exit| {
            let mut judge = Judge::new(8, &[], false).wants(wanted);
            judge.judge(&run(exit, &edges, DsfView::default())).is_interesting()
        };
        let seen = |wanted| [ExitKind::Ok, ExitKind::Hang, crash].map(|exit| judged(wanted, exit));
        assert_eq!(seen(Wanted::Good), [true, false, false]);
        assert_eq!(seen(Wanted::GoodOrSlow), [true, true, false]);
        assert_eq!(seen(Wanted::Crashing), [false, false, true]);
    }

    #[test]
    fn what_one_judge_learned_another_one_knows() {
        let domains = max_domain();
        let mut judge = Judge::new(8, &domains, true);
        let view = |values| DsfView { domains: &domains, values, touched: None };
        let edges = [1, 0, 9, 0, 0, 0, 0, 0];
        let good = run(ExitKind::Ok, &edges, view(&[0, 3]));
        let gains = judge.judge(&good).gains;
        judge.confirm(&gains, &good);
        let crash = ExitKind::Crash { signal: 6 };
        judge.judge(&run(crash, &edges, view(&[0, 0])));
        judge.judge(&run(ExitKind::Hang, &edges, view(&[0, 0])));
        judge.judge(&run(ExitKind::Lost, &[0; 8], view(&[0, 0])));
        let lessons = judge.lessons();
        assert_eq!(lessons.flaw(8, 2), None);
        let text = serde_json::to_string(&lessons).unwrap();
        let mut later = Judge::new(8, &domains, true);
        later.recall(&serde_json::from_str(&text).unwrap());
        assert_eq!(later.lessons(), lessons);
        assert!(!later.judge(&good).is_interesting());
        let again = later.judge(&run(crash, &edges, view(&[0, 0]))).finding;
        assert_eq!(again, Some(Finding::Crash { signal: 6, unique: false }));
        // Lessons from a larger map, with invalid indices.
        let strange = r#"{"map_size":4,"edges":[[900,1]],"crash_edges":[],"hang_edges":[],
            "blind_crashes":[],"values":[[77,1]],"noisy":[78]}"#;
        Judge::new(2, &domains, true).recall(&serde_json::from_str(strange).unwrap());
    }

    #[test]
    fn ignored_edges_are_never_new() {
        let mut judge = Judge::new(8, &[], false);
        judge.ignore_edges(&[3]);
        let edges = [0, 0, 0, 9, 0, 0, 0, 0];
        let verdict = judge.judge(&run(ExitKind::Ok, &edges, DsfView::default()));
        assert!(!verdict.is_interesting());
    }
}
