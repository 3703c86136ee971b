//! `state.json`: the state from which a restarted campaign continues, besides the queue.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::OutputError;
use ffuzz_comparisons::blockers::Blockers;
use ffuzz_engine::feedback::Lessons;
use ffuzz_engine::stage::Saved;
use ffuzz_event::StageYield;
use ffuzz_mutators::states::StoredStates;
use ffuzz_sys::file;

pub const NAME: &str = "state.json";

/// Maximum file size, bytes; larger than for any corpus that fits into memory.
const LARGEST: u64 = 4 << 30;
/// Maximum of a counter; larger than any real one, and far from an overflow.
const MOST: u64 = 1 << 48;
/// Maximum run time, microseconds: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Maximum number of turns and of missed cycles of a seed.
const MOST_TURNS: u32 = 1 << 30;
const MOST_STAGES: usize = 256;
const LONGEST_NAME: usize = 64;

/// End of the file: a hash of everything before it.
const CHECK: &[u8] = b",\"check\":\"";
const CHECK_END: &[u8] = b"\"}\n";
const DIGITS: usize = 16;

/// Content of the file. A missing part is empty.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct SavedState {
    /// State of the mutators for each seed.
    pub mutators: Vec<StoredStates>,
    /// Hash of the program, its arguments and its maps. The rest is not used for another target.
    pub target: u64,
    pub judge: Lessons,
    pub counters: Counters,
    pub seeds: Vec<KnownSeed>,
    /// Comparisons that the seeds do not pass.
    pub blockers: Blockers,
    /// Saved data of the stages, by name.
    pub stages: Saved,
    /// Best values of each domain, for reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<BestValue>,
}

/// Best value of a key.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct BestValue {
    /// Name of its domain.
    pub domain: String,
    pub key: u32,
    pub value: u32,
    /// `FILE:LINE`; empty if it is unknown.
    pub place: String,
}

/// Statistics that are not in `fuzzer_stats`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Counters {
    pub total_crashes: u64,
    pub total_timeouts: u64,
    pub cut_runs: u64,
    pub lost_runs: u64,
    pub sanitizer_runs: u64,
    pub sanitizer_crashes: u64,
    pub saved_crashes: u64,
    pub saved_hangs: u64,
    pub cycles_without_finds: u64,
    pub longest_without_finds_s: u64,
    /// Seconds since 1970, 0 for never.
    pub last_find_at: u64,
    pub last_crash_at: u64,
    pub last_hang_at: u64,
    pub execs_at_crash: u64,
    pub slowest_us: u64,
    pub stages: Vec<StageYield>,
    /// Number of waypoints of each domain.
    pub waypoints: Vec<u64>,
}

/// Saved data of a queue entry.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct KnownSeed {
    pub name: String,
    /// Hash of the content; a changed file is run again.
    pub hash: u64,
    pub exec_us: u64,
    pub path_hash: u64,
    pub edges: u32,
    /// Empty unless the seed was the best for an edge.
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    pub trace: Box<[u32]>,
    /// Owned keys with their bits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(u32, u32)>,
    pub changed_at: u32,
    pub handicap: u32,
    pub fuzzed: u32,
    pub variable: bool,
    pub trimmed: bool,
    pub disabled: bool,
}

impl SavedState {
    /// Loads the state; empty without a file.
    pub fn load(path: &Path) -> Result<Self, OutputError> {
        let failed = |error| OutputError::read(path, error);
        let text = match file::patiently(|| file::read_whole(path, LARGEST)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(failed)?,
        };
        if !is_as_written(&text) {
            let damaged =
                io::Error::new(io::ErrorKind::InvalidData, "it was changed or is damaged");
            return Err(failed(damaged));
        }
        let state: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        match state.flaw() {
            Some(flaw) => Err(failed(io::Error::new(io::ErrorKind::InvalidData, flaw))),
            None => Ok(state),
        }
    }

    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        if text.pop() == Some(b'}') {
            let check = hash_of(&text);
            text.extend_from_slice(CHECK);
            text.extend_from_slice(format!("{check:016x}").as_bytes());
            text.extend_from_slice(CHECK_END);
        }
        text
    }

    /// Reason why the state is impossible for any campaign.
    fn flaw(&self) -> Option<&'static str> {
        let mut names = HashSet::new();
        let named = self.seeds.iter().filter(|seed| !seed.name.is_empty());
        if !named.map(|seed| seed.name.as_str()).all(|name| names.insert(name)) {
            return Some("it names an entry twice");
        }
        if !self.seeds.is_empty() && self.seeds.iter().all(|seed| seed.disabled) {
            return Some("it has no entry that can be used");
        }
        let seeds = self.seeds.len();
        if seeds > 0 && !self.mutators.iter().all(|stored| stored.is_within(seeds)) {
            return Some("its mutators have states of seeds that do not exist");
        }
        if !self.blockers.is_possible() {
            return Some("what it says of comparisons is impossible");
        }
        self.counters.flaw()
    }

    /// Reason why the state is impossible for a target with this number of edges and keys.
    #[must_use]
    pub fn flaw_for(&self, edges: usize, keys: usize) -> Option<&'static str> {
        let of_seeds = || self.seeds.iter().find_map(|seed| seed.flaw(self.judge.map_size(), keys));
        self.judge.flaw(edges, keys).or_else(of_seeds)
    }
}

impl Counters {
    fn flaw(&self) -> Option<&'static str> {
        let numbers = [
            self.total_crashes,
            self.total_timeouts,
            self.cut_runs,
            self.lost_runs,
            self.sanitizer_runs,
            self.sanitizer_crashes,
            self.saved_crashes,
            self.saved_hangs,
            self.cycles_without_finds,
            self.longest_without_finds_s,
            self.last_find_at,
            self.last_crash_at,
            self.last_hang_at,
            self.execs_at_crash,
            self.slowest_us,
        ];
        let stages = self.stages.iter().flat_map(|stage| [stage.finds, stage.execs]);
        let is_name = |stage: &StageYield| {
            stage.name.len() <= LONGEST_NAME && !stage.name.contains(char::is_control)
        };
        let good = numbers.into_iter().chain(stages).all(|number| number <= MOST)
            && self.stages.len() <= MOST_STAGES
            && self.stages.iter().all(is_name);
        (!good).then_some("its counters are impossible")
    }
}

impl KnownSeed {
    fn flaw(&self, edges: usize, keys: usize) -> Option<&'static str> {
        let hit = |edge: &u32| (*edge as usize) < edges;
        if self.edges as usize > edges
            || !self.trace.is_sorted_by(|a, b| a < b)
            || !self.trace.last().is_none_or(hit)
        {
            return Some("an entry has edges that do not exist");
        }
        if !self.keys.iter().all(|(key, _)| (*key as usize) < keys) {
            return Some("an entry has keys that do not exist");
        }
        let turns = self.handicap.max(self.fuzzed);
        (self.exec_us > LONGEST_US || turns > MOST_TURNS).then_some("an entry has impossible times")
    }
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// True if the hash is correct or missing: older versions wrote none, and users may edit it.
fn is_as_written(text: &[u8]) -> bool {
    let hash = text.strip_suffix(CHECK_END).and_then(|text| text.split_last_chunk::<DIGITS>());
    let Some((text, hash)) = hash else { return true };
    match (text.strip_suffix(CHECK), std::str::from_utf8(hash)) {
        (Some(text), Ok(hash)) => u64::from_str_radix(hash, 16) == Ok(hash_of(text)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_state_is_read_and_damage_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(SavedState::load(&path).unwrap(), SavedState::default());
        let keys = vec![(7, 0), (8, 4)];
        let seed =
            KnownSeed { name: "id:000000,x".into(), hash: u64::MAX, keys, ..KnownSeed::default() };
        let stages = [("comparisons".into(), serde_json::json!({"0": 1}))].into();
        let known = SavedState { target: 7, seeds: vec![seed], stages, ..SavedState::default() };
        fs::write(&path, known.text()).unwrap();
        assert_eq!(SavedState::load(&path).unwrap(), known);
        let text =
            r#"{"mutators":[{"mutator":"flip","options":null,"seeds":{"3":"x"}}],"later":1}"#;
        fs::write(&path, text).unwrap();
        let state = SavedState::load(&path).unwrap();
        assert_eq!(state.mutators.len(), 1);
        fs::write(&path, state.text()).unwrap();
        assert_eq!(SavedState::load(&path).unwrap(), state);
        fs::write(&path, &text[..20]).unwrap();
        assert!(matches!(SavedState::load(&path), Err(OutputError::Read { .. })));
    }

    #[test]
    fn a_changed_digit_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let state = SavedState { target: 7777, ..SavedState::default() };
        let text = String::from_utf8(state.text()).unwrap();
        fs::write(&path, text.replace("7777", "7778")).unwrap();
        let error = SavedState::load(&path).unwrap_err().to_string();
        assert!(error.contains("it was changed or is damaged"), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let seed = |name: &str| KnownSeed { name: name.into(), edges: 1, ..KnownSeed::default() };
        let with = |seed: KnownSeed| SavedState { seeds: vec![seed], ..SavedState::default() };
        let judge: Lessons = serde_json::from_str(
            r#"{"map_size":8,"edges":[],"crash_edges":[],"hang_edges":[],"blind_crashes":[],
                "values":[],"noisy":[]}"#,
        )
        .unwrap();
        let good = SavedState { judge, ..with(seed("a")) };
        assert_eq!((good.flaw(), good.flaw_for(8, 0)), (None, None));
        let traced = |trace: &[u32]| SavedState {
            judge: good.judge.clone(),
            ..with(KnownSeed { trace: trace.into(), ..seed("a") })
        };
        assert_eq!(traced(&[0, 7]).flaw_for(8, 0), None);
        for bad in [&[u32::MAX][..], &[8], &[3, 3], &[4, 2]] {
            assert!(traced(bad).flaw_for(8, 0).is_some(), "{bad:?}");
        }
        let keyed = with(KnownSeed { keys: vec![(3, 0)], edges: 0, ..seed("a") });
        assert_eq!((keyed.flaw_for(0, 4), keyed.flaw_for(0, 3).is_some()), (None, true));
        let twice = SavedState { seeds: vec![seed("a"), seed("a")], ..SavedState::default() };
        let none = with(KnownSeed { disabled: true, ..seed("a") });
        let counters = Counters { execs_at_crash: u64::MAX, ..Counters::default() };
        for bad in [twice, none, SavedState { counters, ..SavedState::default() }] {
            assert!(bad.flaw().is_some(), "{bad:?}");
        }
    }
}
