//! Saves what the next process needs to continue the campaign without running the queue again, and restores it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::Campaign;
use super::coverage_files::CoverageFiles;
use super::modules::ModuleFile;
use super::outside::Outside;
use super::seeds::Start;
use crate::config::options::{Options, TargetOptions};
use crate::disk::output::state::{BestValue, KnownSeed, SavedState};
use crate::engine::corpus::{Seed, SeedId};
use crate::engine::domain::Domain;
use crate::engine::executor::TargetInfo;
use crate::engine::fuzzer::Fuzzer;
use crate::engine::stage::{Kept, Saved, Stages};
use crate::inspect::binary;
use crate::mutators::Mutators;

/// Maximum number of values of a domain that are stored with their places.
const MOST_RECORDS: usize = 256;

/// Queue entries that need not be run, by name.
pub(super) type KnownEntries = HashMap<String, KnownSeed>;

/// Hash of everything that determines the results of runs: the program's content, its arguments and variables, its
/// maps. `watched`: domains are judged.
fn fingerprint(options: &TargetOptions, target: &dyn TargetInfo, watched: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    let program = options.command.first().map(OsString::as_os_str).unwrap_or_default();
    let program = binary::locate(program, options.search_path.as_deref());
    program.ok().and_then(|path| fs::read(path).ok()).hash(&mut hasher);
    (&options.command, &options.extra_env, target.map_size(), watched).hash(&mut hasher);
    for Domain { name, start, size, reducer, initial } in target.domains() {
        (name, start, size, reducer.name(), initial).hash(&mut hasher);
    }
    hasher.finish()
}

fn hash_of(data: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

/// Number of entries that the state knows and that are missing or empty in the queue.
fn lost_entries(state: &SavedState, queue: &[Start]) -> usize {
    let there: HashSet<&str> =
        queue.iter().filter(|start| !start.is_empty()).map(|start| &*start.name).collect();
    let known = state.seeds.iter().filter(|seed| !seed.name.is_empty());
    known.filter(|seed| !there.contains(&*seed.name)).count()
}

/// The files for the next process: `state.json`, and those that the user has named.
pub(super) struct StateFiles {
    /// Hash of what determines the results of runs, see [`fingerprint`].
    fingerprint: u64,
    /// True if all starting seeds are in the corpus.
    pub(super) is_complete: bool,
    /// True if all seed data of an earlier process is in the corpus: the state may be saved, although other seeds
    /// have not run yet.
    pub(super) has_known: bool,
    last_saved: Instant,
    /// Minimum interval between two saves.
    interval: Duration,
    pub(super) coverage: CoverageFiles,
    pub(super) module: ModuleFile,
    /// State of the stages: that of the earlier process until they have restored it, then that of the end of a turn,
    /// because the file may be written while a stage is working.
    stages: Saved,
    noted: Instant,
}

impl StateFiles {
    pub(super) fn new(options: &Options, fuzzer: &Fuzzer<Mutators>) -> Self {
        let watched = fuzzer.judge().watches_domains();
        Self {
            fingerprint: fingerprint(&options.target, fuzzer.target(), watched),
            is_complete: false,
            has_known: false,
            last_saved: Instant::now(),
            interval: options.output.stats_interval,
            coverage: CoverageFiles::new(options),
            module: ModuleFile { path: options.custom.killerbeez.state.clone() },
            stages: Saved::new(),
            noted: Instant::now(),
        }
    }

    /// Notes the state of the stages for the next save; call it between two turns.
    pub(super) fn note_stages(&mut self, stages: &Stages<Campaign>, fuzzer: &Fuzzer<Mutators>) {
        self.noted = Instant::now();
        self.stages = stages.save(fuzzer);
    }

    /// Calls [`Self::note_stages`] if it is due.
    pub(super) fn note_stages_if_due(
        &mut self,
        stages: &Stages<Campaign>,
        fuzzer: &Fuzzer<Mutators>,
    ) {
        if self.noted.elapsed() >= self.interval {
            self.note_stages(stages, fuzzer);
        }
    }

    /// Restores the stages from an earlier process; `ids` are the unchanged seeds.
    pub(super) fn restore_stages(
        &mut self,
        stages: &mut Stages<Campaign>,
        fuzzer: &Fuzzer<Mutators>,
        ids: &BTreeSet<SeedId>,
        outside: &mut Outside,
    ) {
        let saved = std::mem::take(&mut self.stages);
        for name in stages.load(saved, Kept { corpus: &fuzzer.corpus, ids }) {
            outside.warn(format!(
                "cannot use all of state.json: what it says of {name} is impossible; that is found out again"
            ));
        }
        self.note_stages(stages, fuzzer);
    }

    /// Loads the state of an earlier process. A damaged file costs time, but no finds: the queue has them all.
    pub(super) fn load(&self, fuzzer: &Fuzzer<Mutators>, outside: &mut Outside) -> SavedState {
        let edges = fuzzer.target().map_size();
        let keys = fuzzer.judge().aggregates().values().len();
        let flaw = match outside.output.load_state() {
            // For another target only the statistics are used.
            Ok(state) if state.target != self.fingerprint => return state,
            Ok(state) => match state.flaw_for(edges, keys) {
                None => return state,
                Some(flaw) => format!("cannot use state.json: {flaw}"),
            },
            Err(error) => error.to_string(),
        };
        outside.warn(format!("{flaw}; every queue entry is run again, mutators start over"));
        SavedState::default()
    }

    /// Restores the state of an earlier process, and returns its data about single seeds. Coverage of entries that
    /// are gone is dropped, because they have to be found again.
    pub(super) fn take_up(
        &mut self,
        state: SavedState,
        queue: &[Start],
        fuzzer: &mut Fuzzer<Mutators>,
        outside: &mut Outside,
    ) -> KnownEntries {
        outside.statistics.recall(&state.counters, &mut fuzzer.progress);
        // The time limit is derived from it.
        let slowest = std::mem::take(&mut fuzzer.progress.slowest);
        if state.target != self.fingerprint {
            if state.target != 0 {
                let message = "the target, or -p, has changed: every queue entry is run again";
                outside.warn(message.into());
            }
            return KnownEntries::new();
        }
        let lost = lost_entries(&state, queue);
        if lost > 0 {
            let message = "queue entries are gone or empty: all others are run again";
            outside.warn(format!("{lost} {message}"));
            return KnownEntries::new();
        }
        fuzzer.progress.slowest = slowest;
        fuzzer.recall(&state.judge);
        fuzzer.recall_blockers(state.blockers);
        self.stages = state.stages;
        // Larger numbers belong to findings that the state does not contain.
        outside.statistics.saved_crashes = state.counters.saved_crashes;
        outside.statistics.saved_hangs = state.counters.saved_hangs;
        state.seeds.into_iter().map(|seed| (seed.name.clone(), seed)).collect()
    }

    /// Saves the state if it is due; call it between two batches, when every generated input has run.
    pub(super) fn save_if_due(&mut self, fuzzer: &mut Fuzzer<Mutators>, outside: &mut Outside) {
        if self.last_saved.elapsed() >= self.interval {
            self.save(fuzzer, outside);
        }
    }

    pub(super) fn save(&mut self, fuzzer: &mut Fuzzer<Mutators>, outside: &mut Outside) {
        self.last_saved = Instant::now();
        self.coverage.save(fuzzer, outside);
        // Until then, the file of the earlier process is more complete.
        if self.is_complete || self.has_known {
            if let Err(error) = outside.restore_queue(fuzzer) {
                outside.warn(error.to_string());
            }
            let state = self.state(fuzzer, outside);
            if let Err(error) = outside.output.save_state(&state) {
                outside.warn(error.to_string());
            }
        }
        if let Err(error) = self.module.save(&mut fuzzer.mutators) {
            outside.warn(error.to_string());
        }
    }

    /// The state for the next process, in addition to the queue.
    fn state(&self, fuzzer: &mut Fuzzer<Mutators>, outside: &Outside) -> SavedState {
        let claims = fuzzer.scheduler.claims();
        let seed = |seed: &Seed| KnownSeed {
            name: seed.name.clone(),
            // A seed that was not calibrated, because the campaign ended, is run again.
            hash: if seed.exec_us > 0 || seed.disabled { hash_of(&seed.data) } else { 0 },
            exec_us: seed.exec_us,
            path_hash: seed.path_hash,
            edges: seed.edges,
            trace: seed.trace.clone(),
            keys: claims.get(&seed.id).cloned().unwrap_or_default(),
            changed_at: seed.changed_at,
            handicap: seed.handicap,
            fuzzed: seed.fuzzed,
            variable: seed.variable,
            trimmed: seed.trimmed,
            disabled: seed.disabled,
        };
        SavedState {
            mutators: fuzzer.mutators.stored(),
            target: self.fingerprint,
            judge: fuzzer.judge().lessons(),
            counters: outside.statistics.counters(&fuzzer.progress, fuzzer.sidecars()),
            seeds: fuzzer.corpus.iter().map(seed).collect(),
            blockers: fuzzer.own_blockers().cloned().unwrap_or_default(),
            stages: self.stages.clone(),
            records: records(fuzzer, outside),
        }
    }
}

/// Best values of each domain with their places.
fn records(fuzzer: &Fuzzer<Mutators>, outside: &Outside) -> Vec<BestValue> {
    let aggregates = fuzzer.judge().aggregates();
    let of_domain = |(index, domain): (usize, &Domain)| {
        let mut keys: Vec<(u32, u32)> = aggregates.changed_in(domain).collect();
        keys.sort_by_key(|(_, value)| std::cmp::Reverse(domain.reducer.merit(*value)));
        keys.truncate(MOST_RECORDS);
        let label = domain.label(index);
        let value = move |(key, value)| BestValue {
            domain: label.clone(),
            key,
            value,
            place: outside.reports.place(fuzzer, key),
        };
        keys.into_iter().map(value)
    };
    aggregates.domains().iter().enumerate().flat_map(of_domain).collect()
}

/// Adds a seed to the corpus with its known data; false if its content has changed.
pub(super) fn adopt(fuzzer: &mut Fuzzer<Mutators>, seed: &Seed, known: &KnownSeed) -> bool {
    if known.hash != hash_of(&seed.data) {
        return false;
    }
    let id = seed.id;
    let len = u32::try_from(seed.data.len()).unwrap_or(u32::MAX);
    fuzzer.corpus.add(Seed {
        exec_us: known.exec_us,
        // The state only contains the mean.
        quickest_us: known.exec_us,
        path_hash: known.path_hash,
        edges: known.edges,
        trace: known.trace.clone(),
        changed_at: if known.changed_at < len { known.changed_at } else { 0 },
        handicap: known.handicap,
        fuzzed: known.fuzzed,
        variable: known.variable,
        trimmed: known.trimmed,
        disabled: known.disabled,
        ..seed.clone()
    });
    fuzzer.scheduler.added(&mut fuzzer.corpus, id);
    fuzzer.scheduler.gives_back(&fuzzer.corpus, id, &known.keys);
    true
}
