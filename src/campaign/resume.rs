//! Going on where an earlier process of the campaign stopped, without running the queue once more.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::seeds::Start;
use super::{Campaign, CampaignError};
use crate::config::options::TargetOptions;
use crate::disk::output::state::{BestValue, KnownSeed, State};
use crate::engine::corpus::{Seed, SeedId};
use crate::engine::domain::Domain;
use crate::engine::executor::TargetInfo;
use crate::exec::binary;

/// Number of values of a domain that are stored with their places.
const MOST_RECORDS: usize = 256;

/// Queue entries that need not be run, by name.
pub(super) type Known = HashMap<String, KnownSeed>;

/// What results of runs depend on: the program's bytes, its arguments and variables, its maps.
/// `watched`: domains are judged.
pub(super) fn fingerprint(options: &TargetOptions, target: &dyn TargetInfo, watched: bool) -> u64 {
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

/// Entries that the state knows, and that are not in the queue as they were.
fn lost_entries(state: &State, queue: &[Start]) -> usize {
    let there: HashSet<&str> =
        queue.iter().filter(|start| !start.is_empty()).map(|start| &*start.name).collect();
    let known = state.seeds.iter().filter(|seed| !seed.name.is_empty());
    known.filter(|seed| !there.contains(&*seed.name)).count()
}

impl Campaign {
    /// What the next process needs to know, beside the queue.
    pub(super) fn state(&mut self) -> State {
        let claims = self.fuzzer.scheduler.claims();
        let seed = |seed: &Seed| KnownSeed {
            name: seed.name.clone(),
            // One that was not calibrated, because the end came, is run again.
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
        State {
            mutators: self.fuzzer.mutators.stored(),
            target: self.fingerprint,
            judge: self.fuzzer.judge().lessons(),
            counters: self.statistics.counters(&self.fuzzer.progress, self.fuzzer.sidecars()),
            seeds: self.fuzzer.corpus.iter().map(seed).collect(),
            records: self.records(),
        }
    }

    /// The best values of each domain with their places.
    fn records(&self) -> Vec<BestValue> {
        let domains = self.fuzzer.judge().aggregates().domains().iter().enumerate();
        domains.flat_map(|(index, domain)| self.records_of(index, domain)).collect()
    }

    fn records_of(&self, index: usize, domain: &Domain) -> Vec<BestValue> {
        let changed = self.fuzzer.judge().aggregates().changed_in(domain);
        let mut keys: Vec<(u32, u32)> = changed.collect();
        keys.sort_by_key(|(_, value)| std::cmp::Reverse(domain.reducer.merit(*value)));
        let best = keys.into_iter().take(MOST_RECORDS);
        let value = |(key, value)| BestValue {
            domain: domain.label(index),
            key,
            value,
            place: self.names().place(key).unwrap_or_default(),
        };
        best.map(value).collect()
    }

    /// Writes queue entries again that somebody has deleted while the campaign ran: they are all in
    /// memory, and the next process needs them.
    pub(super) fn restore_queue(&mut self) -> Result<(), CampaignError> {
        let there = self.output.queue_names()?;
        let gone = |seed: &&Seed| !seed.name.is_empty() && !there.contains(&seed.name);
        let gone: Vec<SeedId> =
            self.fuzzer.corpus.iter().filter(gone).map(|seed| seed.id).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let (count, queue) = (gone.len(), self.output.seed_path(""));
        self.warn(format!("{count} files of {} are gone: they are written again", queue.display()));
        for id in gone {
            let seed = &self.fuzzer.corpus[id];
            self.output.save_seed(&seed.name, &seed.data)?;
        }
        Ok(())
    }

    /// Takes up the state of an earlier process; what it knew of single seeds is returned. What it learned from
    /// entries that are gone is not known any more: they have to be found again.
    pub(super) fn take_up(&mut self, state: State, queue: &[Start]) -> Known {
        self.statistics.recall(&state.counters, &mut self.fuzzer.progress);
        // The time limit follows from it.
        let slowest = std::mem::take(&mut self.fuzzer.progress.slowest);
        if state.target != self.fingerprint {
            if state.target != 0 {
                self.warn("the target, or -p, has changed: every queue entry is run again".into());
            }
            return Known::new();
        }
        let lost = lost_entries(&state, queue);
        if lost > 0 {
            self.warn(format!("{lost} queue entries are gone or empty: all others are run again"));
            return Known::new();
        }
        self.fuzzer.progress.slowest = slowest;
        self.fuzzer.recall(&state.judge);
        // Numbers from here on are those of findings that the state has not seen.
        self.statistics.saved_crashes = state.counters.saved_crashes;
        self.statistics.saved_hangs = state.counters.saved_hangs;
        state.seeds.into_iter().map(|seed| (seed.name.clone(), seed)).collect()
    }

    /// Puts a seed into the corpus as it was. False if it is not the one that was known.
    pub(super) fn adopt(&mut self, seed: &Seed, known: &KnownSeed) -> bool {
        if known.hash != hash_of(&seed.data) {
            return false;
        }
        let id = seed.id;
        let len = u32::try_from(seed.data.len()).unwrap_or(u32::MAX);
        self.fuzzer.corpus.add(Seed {
            exec_us: known.exec_us,
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
        self.fuzzer.scheduler.added(&mut self.fuzzer.corpus, id);
        self.fuzzer.scheduler.gives_back(&self.fuzzer.corpus, id, &known.keys);
        true
    }
}
