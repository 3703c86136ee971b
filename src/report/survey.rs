//! Coverage of inputs, each of which is run once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use miette::Diagnostic;

use crate::campaign::CampaignFolder;
use crate::data::{NeverEntered, Source};
use crate::owners::Owners;
use crate::stuck::{COPIES, Listed, TargetPlaces, deciding, joined};
use ffuzz_comparisons::blockers::{Blocker, Blockers, ranges};
use ffuzz_disk::inputs::{self, InputError};
use ffuzz_engine::coverage::flow::Flow;
use ffuzz_engine::coverage::frontier::{Fork, Frontier, Unentered};
use ffuzz_engine::coverage::{self, Classes};
use ffuzz_engine::domain::{Aggregates, Site};
use ffuzz_engine::executor::{ExitKind, Module, RunError, TargetInfo};
use ffuzz_engine::feedback::{Stuck, stuck};
use ffuzz_event::BlockedComparison;
use ffuzz_exec::Hooked;
use ffuzz_inspect::lines::{CoveredSource, FileCounters, LineMap, LinesError, written};

/// Reason why the inputs cannot be analyzed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SurveyError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Lines(#[from] LinesError),
    #[error("{} has no source lines of its edges", .0.display())]
    #[diagnostic(help("build it with ffuzz-cc -g, or give an lcov file"))]
    NoLines(PathBuf),
    #[error("none of the {files} source files is below {}", root.display())]
    #[diagnostic(help("name the folder of the sources with --root"))]
    Elsewhere { files: usize, root: PathBuf },
}

/// Coverage of the inputs that were run.
#[derive(Debug)]
pub struct Survey {
    parts: Vec<Part>,
    files: Vec<PathBuf>,
    /// Facts of each counter of the edge map.
    pub counters: Vec<CounterFacts>,
    virgin: Vec<u8>,
    /// Unreached branches of the inputs that were run.
    pub frontier: Frontier,
    blockers: Blockers,
    /// Numbers of the inputs whose comparisons were logged.
    logged: BTreeSet<usize>,
    /// The best values of the domains' keys.
    pub aggregates: Aggregates,
    /// Inputs that reach the aggregates.
    pub owners: Owners,
    /// For each domain, the inputs that changed its best value, with the new value.
    pub moves: Vec<Vec<(usize, u32)>>,
    /// Number of inputs that did not end well.
    pub failed: usize,
}

/// Facts of a counter of the edge map.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CounterFacts {
    /// Number of inputs that hit it.
    pub inputs: u32,
    /// Size and number of the smallest such input.
    pub smallest: Option<(usize, usize)>,
    /// Number of the first such input.
    pub first: Option<usize>,
}

/// A place from which no input continues.
#[derive(Clone, Debug, Default)]
pub struct StuckPlace {
    pub place: BlockedComparison,
    /// Number of the closest input, or of the smallest one that reaches the place.
    pub input: Option<usize>,
    /// None if the target's control flow is unknown.
    pub fork: Option<Fork>,
    /// Counter hit only by inputs that reach the place.
    pub counter: Option<u32>,
    pub comparison: Option<Blocker>,
}

impl Listed for StuckPlace {
    fn place(&self) -> &BlockedComparison {
        &self.place
    }

    fn place_mut(&mut self) -> &mut BlockedComparison {
        &mut self.place
    }
}

/// A file of the target.
#[derive(Debug)]
struct Part {
    module: Module,
    /// Source lines, or the reason why they are unknown.
    lines: Result<LineMap, LinesError>,
}

impl Survey {
    /// Creates an empty survey: reads the debug information of the target's files.
    #[must_use]
    pub fn new(target: &dyn TargetInfo) -> Self {
        let part = |module: Module| {
            let counters = target.counter_addresses(&module.file);
            let counted =
                counters.map(|counters| FileCounters { counters, ..FileCounters::default() });
            let lines = LineMap::read(&module.file, counted).and_then(LineMap::with_lines);
            Part { module, lines }
        };
        let parts = target.modules().into_iter().map(part).collect();
        Self { parts, ..Self::without_lines(target) }
    }

    /// Creates an empty survey without lines, which take a moment to read.
    #[must_use]
    pub fn without_lines(target: &dyn TargetInfo) -> Self {
        let size = target.map_size();
        Self {
            parts: Vec::new(),
            files: Vec::new(),
            counters: vec![CounterFacts::default(); size],
            virgin: vec![0xff; size],
            frontier: Frontier::new(Flow::new(&target.flow().0)),
            blockers: Blockers::default(),
            logged: BTreeSet::new(),
            aggregates: Aggregates::new(target.domains()),
            owners: Owners::default(),
            moves: vec![Vec::new(); target.domains().len()],
            failed: 0,
        }
    }

    /// Refuses a target without any known line. `program` is its file.
    pub fn check_lines(&mut self, program: &Path) -> Result<(), SurveyError> {
        if self.parts.iter().any(|part| part.lines.is_ok()) {
            return Ok(());
        }
        let reason = self.parts.drain(..).find_map(|part| part.lines.err());
        Err(reason.map_or_else(|| SurveyError::NoLines(program.to_owned()), Into::into))
    }

    /// Runs files. `ended` is called after each run.
    pub fn run(
        &mut self,
        target: &mut Hooked,
        files: &[PathBuf],
        ended: impl Fn(&Path, ExitKind),
    ) -> Result<(), SurveyError> {
        let mut input = Vec::new();
        for path in files {
            inputs::read(path, &mut input)?;
            let run = target.observe(&input)?;
            ended(path, run.exit);
            let number = self.files.len();
            for Part { module, lines } in &mut self.parts {
                let edges = run.edges.get(module.counters.clone()).unwrap_or_default();
                if let Ok(map) = lines
                    && let Err(error) = map.add(number, edges)
                {
                    *lines = Err(error);
                }
            }
            self.failed += usize::from(run.exit != ExitKind::Ok);
            if !self.moves.is_empty() {
                let gains = self.aggregates.merge(&run.dsf);
                self.owners.add(path.clone(), input.len(), &run.dsf);
                let domains = self.moves.iter_mut().zip(self.aggregates.domains());
                for (moves, domain) in domains {
                    if !gains.iter().any(|gain| domain.holds(gain.key)) {
                        continue;
                    }
                    let best = self.aggregates.best_in(domain).map(|(_, value)| value);
                    if best != moves.last().map(|(_, value)| *value) {
                        moves.extend(best.map(|best| (number, best)));
                    }
                }
            }
            // A restarted target may have another map.
            if run.edges.len() == self.virgin.len() {
                coverage::merge(run.edges, &mut self.virgin, Classes::Binary);
                for counter in coverage::trace(run.edges) {
                    let facts = &mut self.counters[counter as usize];
                    facts.inputs += 1;
                    facts.first.get_or_insert(number);
                    let own = (input.len(), number);
                    facts.smallest = Some(facts.smallest.map_or(own, |known| known.min(own)));
                }
            }
            self.files.push(path.clone());
        }
        self.frontier.update(&self.virgin);
        Ok(())
    }

    /// Logs the comparisons of the inputs that were run, for at most `limit`; the smallest inputs of their counters
    /// come first. Returns the number of logged inputs.
    pub fn log(&mut self, target: &mut Hooked, limit: Duration) -> Result<usize, SurveyError> {
        if !target.info().logs_comparisons() {
            return Ok(0);
        }
        let smallest: BTreeSet<usize> =
            self.counters.iter().filter_map(|facts| Some(facts.smallest?.1)).collect();
        let others = (0..self.files.len()).filter(|number| !smallest.contains(number));
        let (begin, mut input) = (Instant::now(), Vec::new());
        for number in smallest.iter().copied().chain(others) {
            if begin.elapsed() > limit {
                break;
            }
            if self.logged.contains(&number) {
                continue;
            }
            inputs::read(&self.files[number], &mut input)?;
            let run = target.observe_logged(&input)?;
            self.blockers.add(number, &input, run.comparisons);
            self.logged.insert(number);
        }
        Ok(self.logged.len())
    }

    /// Files and lines that a run reaches.
    #[must_use]
    pub fn lines_of_run(&self, edges: &[u8]) -> BTreeSet<(String, u32)> {
        let mut lines = BTreeSet::new();
        for Part { module, lines: map } in &self.parts {
            if let (Ok(map), Some(edges)) = (map, edges.get(module.counters.clone())) {
                map.lines_of_run(edges, &mut lines);
            }
        }
        lines
    }

    /// Counters of the edge map that show whether a line is reached. `file` is the end of its path.
    #[must_use]
    pub fn counters_of_line(&self, file: &str, line: u32) -> Vec<u32> {
        let mut counters = Vec::new();
        for Part { module, lines: map } in &self.parts {
            if let Ok(map) = map {
                let own = map.counters_of_line(Path::new(file), line).into_iter();
                counters.extend(own.map(|counter| (module.counters.start + counter) as u32));
            }
        }
        counters
    }

    /// Numbers of the smallest inputs that hit one of these counters, at most `most`. Runs files again, smallest
    /// first, for at most `limit`.
    pub fn inputs_hitting(
        &self,
        target: &mut Hooked,
        counters: &[u32],
        most: usize,
        limit: Duration,
    ) -> Result<Vec<usize>, SurveyError> {
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(u64::MAX, |data| data.len());
        let mut numbers: Vec<usize> = (0..self.files.len()).collect();
        numbers.sort_by_cached_key(|number| size(&self.files[*number]));
        let (begin, mut input, mut found) = (Instant::now(), Vec::new(), Vec::new());
        for number in numbers {
            if found.len() >= most || begin.elapsed() > limit {
                break;
            }
            inputs::read(&self.files[number], &mut input)?;
            let run = target.observe(&input)?;
            let is_hit = |counter: &u32| run.edges.get(*counter as usize).is_some_and(|it| *it > 0);
            if counters.iter().any(is_hit) {
                found.push(number);
            }
        }
        Ok(found)
    }

    /// Counters that a run hits and no earlier input has hit.
    #[must_use]
    pub fn new_counters(&self, edges: &[u8]) -> Vec<u32> {
        let counters = coverage::trace(edges).into_vec().into_iter();
        let is_new = |counter: &u32| {
            self.counters.get(*counter as usize).is_none_or(|facts| facts.inputs == 0)
        };
        counters.filter(is_new).collect()
    }

    /// The files that were run; their indices are the numbers of inputs.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Adds the solvers' attempts that campaigns have counted.
    pub fn note_attempts(&mut self, campaigns: &[CampaignFolder]) {
        let instances = campaigns.iter().flat_map(|campaign| &campaign.instances);
        let known: Vec<&Blockers> = instances.map(|it| &it.state.blockers).collect();
        self.blockers.take_attempts(&known);
    }

    /// Number of source lines in the blocks of these counters.
    #[must_use]
    pub fn lines_of(&self, counters: &[u32]) -> usize {
        let mut lines = BTreeSet::new();
        for Part { module, lines: map } in &self.parts {
            if let Ok(map) = map {
                let own = counters.iter().map(|counter| *counter as usize);
                let own = own.filter(|counter| module.counters.contains(counter));
                map.lines_of(own.map(|counter| counter - module.counters.start), &mut lines);
            }
        }
        lines.len()
    }

    /// Unreached counters whose block was reached in another copy: of a template, or of an inlined function. Empty
    /// for a survey without lines.
    fn reached_elsewhere(&self) -> HashSet<u32> {
        let mut all = HashSet::new();
        for Part { module, lines } in &self.parts {
            if let Ok(lines) = lines {
                let own = lines.reached_elsewhere();
                all.extend(own.into_iter().map(|counter| (module.counters.start + counter) as u32));
            }
        }
        all
    }

    /// Places where no input continues, at most `most`. Leaves out a place that an input passes in another copy of
    /// the code. Changes bytes of inputs to see which ones decide.
    pub fn stuck(&self, target: &mut Hooked, most: usize) -> Result<Vec<StuckPlace>, SurveyError> {
        let (places, info) = (TargetPlaces::default(), target.info());
        let entry = |one: Stuck| {
            let of_counter = one.counter.and_then(|it| self.counters.get(it as usize)?.smallest);
            let closest = one.comparison.as_ref().map(|comparison| comparison.closest);
            StuckPlace {
                place: places.entry(&one, info, || info.comparison_sites()),
                input: closest.or(of_counter.map(|(_, number)| number)),
                fork: one.fork,
                counter: one.counter,
                comparison: one.comparison,
            }
        };
        let copies = self.reached_elsewhere();
        let is_open = |one: &Stuck| {
            one.fork.is_some_and(|fork| {
                let ways = self.frontier.shut_ways(&fork);
                !ways.is_empty() && ways.iter().all(|counter| copies.contains(counter))
            })
        };
        let mut all = stuck(&self.frontier, &self.blockers, most.saturating_mul(COPIES));
        all.retain(|one| !is_open(one));
        let mut all = joined(all.into_iter().map(entry), most);
        let comparisons = all.iter().filter_map(|one| one.comparison.as_ref());
        let deciding = deciding(target, comparisons, &self.files)?;
        for StuckPlace { place, comparison, .. } in &mut all {
            let bytes = comparison.as_ref().and_then(|comparison| deciding.get(&comparison.site));
            place.bytes = bytes.map(|bytes| ranges(bytes.iter().copied())).unwrap_or_default();
        }
        // A place known only by its comparison is dropped if its operands never vary and no byte
        // of the inputs affects them.
        all.retain(|StuckPlace { place, comparison, .. }| {
            let varies = comparison.as_ref().is_some_and(|comparison| comparison.varies);
            place.behind.is_some() || varies || !place.bytes.is_empty()
        });
        Ok(all)
    }

    /// Functions that no input enters, those with most counters first.
    #[must_use]
    pub fn never_entered(&self, target: &dyn TargetInfo) -> Vec<NeverEntered> {
        let named = |one: Unentered| {
            let place = target.place_of_counter(one.counter);
            let place = place.unwrap_or_else(|| Site::of_key("edges", one.counter, ""));
            NeverEntered {
                function: written(&place.function),
                file: place.file.to_string(),
                line: place.line,
                counters: one.counters,
                reason: one.callers.into(),
            }
        };
        let mut all: Vec<NeverEntered> = self.frontier.unentered().into_iter().map(named).collect();
        all.sort_by_key(|one| Reverse(one.counters));
        all
    }

    /// Lines and functions of all files of the target.
    #[must_use]
    pub fn covered(&self) -> CoveredSource {
        let mut covered = CoveredSource::default();
        for Part { module, lines } in &self.parts {
            if let Ok(lines) = lines {
                lines.collect(module.counters.start, &mut covered);
            }
        }
        covered
    }

    /// The source files below a folder.
    pub fn source_below(&self, root: &Path) -> Result<Source, SurveyError> {
        let covered = self.covered();
        let source = Source::new(&covered, |path| Path::new(path).starts_with(root));
        match source.files.is_empty() {
            true => {
                Err(SurveyError::Elsewhere { files: covered.files.len(), root: root.to_owned() })
            }
            false => Ok(source),
        }
    }

    /// Reasons why the lines of some files are unknown.
    pub fn skipped(&self) -> impl Iterator<Item = &LinesError> {
        self.parts.iter().filter_map(|part| part.lines.as_ref().err())
    }
}
