//! Records of domains: values reached by a campaign that are reported on request, without a crash.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::hang::NON_CRASH;
use ffuzz_disk::output::instances;
use ffuzz_disk::output::state::{self, BestValue, SavedState};

/// Threshold `DOMAIN=VALUE`: values from this one on are reported.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordThreshold {
    domain: String,
    value: u32,
}

impl RecordThreshold {
    /// Parses a threshold; None if it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, value) = text.split_once('=')?;
        let domain = Some(domain.to_owned()).filter(|name| !name.is_empty())?;
        Some(Self { domain, value: value.parse().ok()? })
    }
}

/// A record to report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct DomainRecord {
    /// Equal for every value at the same place.
    pub(super) line: String,
    pub(super) domain: String,
    pub(super) place: String,
    pub(super) value: u32,
    pub(super) input: PathBuf,
    pub(super) data: Vec<u8>,
}

const STATS: &str = "fuzzer_stats";

/// Reads the instances of a campaign at each call.
#[derive(Debug)]
pub struct Records {
    thresholds: Vec<RecordThreshold>,
    /// Lines of the records handed over.
    reported: HashSet<String>,
    /// Instances without new records, and when their files were written.
    known: HashMap<PathBuf, FileTimes>,
}

/// Modification times of `fuzzer_stats` and of the state.
type FileTimes = [Option<SystemTime>; 2];

impl Records {
    #[must_use]
    pub fn new(thresholds: Vec<RecordThreshold>) -> Self {
        Self { thresholds, reported: HashSet::new(), known: HashMap::new() }
    }

    /// Finds records that were not handed over yet. Unreadable instances are retried at the next call.
    #[must_use]
    pub(super) fn look(&mut self, root: &Path) -> Vec<DomainRecord> {
        if self.thresholds.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<DomainRecord> = Vec::new();
        for instance in instances::find(root).unwrap_or_default() {
            let times = times_of(&instance.folder);
            if self.known.get(&instance.folder) == Some(&times) {
                continue;
            }
            let mut found = self.of_instance(&instance);
            if found.is_empty() {
                self.known.insert(instance.folder.clone(), times);
            }
            // Another instance may have reached it, too.
            found.retain(|record| all.iter().all(|other| other.line != record.line));
            all.append(&mut found);
        }
        all
    }

    pub(super) fn handed_over(&mut self, line: String) {
        self.reported.insert(line);
    }

    /// Records of an instance, one for each place that has reached a threshold.
    fn of_instance(&self, instance: &instances::Instance) -> Vec<DomainRecord> {
        let state = SavedState::load(&instance.folder.join(state::NAME)).unwrap_or_default();
        let mut found: Vec<DomainRecord> = Vec::new();
        for index in 0..instance.number("dsf_domains") {
            let text = |name: &str| instance.text(&format!("dsf{index}_{name}"));
            let smaller_is_better = text("reducer") == "MIN";
            let others = state.records.iter().filter(|value| value.domain == text("name"));
            for value in best_of(text).iter().chain(others) {
                let Some(threshold) = self.reached(value, smaller_is_better) else { continue };
                let line = line(threshold, value);
                if found.iter().all(|known| known.line != line) && !self.reported.contains(&line) {
                    found.extend(record(line, value, &instance.folder, &state));
                }
            }
        }
        found
    }

    /// Threshold that a value reaches.
    fn reached(&self, reached: &BestValue, smaller_is_better: bool) -> Option<&RecordThreshold> {
        let is_reached = |threshold: &&RecordThreshold| match smaller_is_better {
            true => reached.value <= threshold.value,
            false => reached.value >= threshold.value,
        };
        self.thresholds
            .iter()
            .filter(|threshold| threshold.domain == reached.domain)
            .find(is_reached)
    }
}

fn times_of(instance: &Path) -> FileTimes {
    [STATS, state::NAME].map(|name| fs::metadata(instance.join(name)).ok()?.modified().ok())
}

/// Best value in `fuzzer_stats`: more recent than the state, which may lack values.
fn best_of<'a>(text: impl Fn(&str) -> &'a str) -> Option<BestValue> {
    Some(BestValue {
        domain: text("name").to_owned(),
        key: text("best_key").parse().ok()?,
        value: text("best").parse().ok()?,
        place: text("best_place").to_owned(),
    })
}

fn place_of(value: &BestValue) -> String {
    match value.place.as_str() {
        "" => format!("key {}", value.key),
        place => place.to_owned(),
    }
}

fn line(threshold: &RecordThreshold, value: &BestValue) -> String {
    format!("{NON_CRASH}{} reaches {} at {}", threshold.domain, threshold.value, place_of(value))
}

fn record(
    line: String,
    value: &BestValue,
    instance: &Path,
    state: &SavedState,
) -> Option<DomainRecord> {
    let input = owner(instance, state, value.key)?;
    let data = fs::read(&input).ok()?;
    let (domain, place) = (value.domain.clone(), place_of(value));
    Some(DomainRecord { line, domain, place, value: value.value, input, data })
}

/// Queue entry that owns a key.
fn owner(instance: &Path, state: &SavedState, key: u32) -> Option<PathBuf> {
    let owns = |keys: &[(u32, u32)]| keys.iter().any(|(owned, _)| *owned == key);
    let seed = state.seeds.iter().find(|seed| owns(&seed.keys))?;
    let name = Path::new(&seed.name).file_name()?;
    Some(instance.join("queue").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_disk::output::state::KnownSeed;

    #[test]
    fn a_threshold_is_a_name_and_a_value() {
        let threshold =
            |domain: &str, value| Some(RecordThreshold { domain: domain.into(), value });
        assert_eq!(RecordThreshold::parse("mem=1000000"), threshold("mem", 1_000_000));
        for text in ["mem", "=1", "mem=", "mem=x", "mem=-1", "mem=99999999999"] {
            assert_eq!(RecordThreshold::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_place_is_reported_with_its_input() {
        let dir = tempfile::tempdir().unwrap();
        let instance = dir.path().join("default");
        fs::create_dir_all(instance.join("queue")).unwrap();
        let value = |key, value, place: &str| BestValue {
            domain: "mem".into(),
            key,
            value,
            place: place.into(),
        };
        let records =
            vec![value(7, 4000, "a.c:16"), value(9, 3000, "a.c:30"), value(11, 999, "a.c:40")];
        let seed = |name: &str, key| {
            fs::write(instance.join("queue").join(name), name).unwrap();
            KnownSeed { name: name.into(), keys: vec![(key, 0)], ..KnownSeed::default() }
        };
        let seeds = vec![seed("id:000003", 7), seed("id:000004", 9), seed("id:000005", 11)];
        let state = SavedState { seeds, records, ..SavedState::default() };
        fs::write(instance.join("state.json"), serde_json::to_vec(&state).unwrap()).unwrap();
        let text = "dsf_domains : 1\ndsf0_name : mem\ndsf0_reducer : MAX\ndsf0_best_key : 7\n\
                    dsf0_best : 4000\ndsf0_best_place : a.c:16\n";
        fs::write(instance.join("fuzzer_stats"), text).unwrap();
        let mut records = Records::new(vec![RecordThreshold::parse("mem=1000").unwrap()]);
        let found = records.look(dir.path());
        let reported: Vec<(&str, u32, &[u8])> =
            found.iter().map(|it| (&*it.line, it.value, &*it.data)).collect();
        let line = |place: &str| format!("[Non-crash bug] mem reaches 1000 at {place}");
        let (first, second) = (line("a.c:16"), line("a.c:30"));
        assert_eq!(reported, [(&*first, 4000, &b"id:000003"[..]), (&*second, 3000, b"id:000004")]);
        records.handed_over(first);
        assert_eq!(records.look(dir.path()).len(), 1);
    }

    #[test]
    fn a_value_that_is_reached_is_reported_once_with_its_input() {
        let dir = tempfile::tempdir().unwrap();
        let instance = dir.path().join("default");
        fs::create_dir_all(instance.join("queue")).unwrap();
        fs::write(instance.join("queue/id:000003,x"), "input").unwrap();
        let keys = vec![(7, 0)];
        let seed = KnownSeed { name: "id:000003,x".into(), keys, ..KnownSeed::default() };
        let state = SavedState { seeds: vec![KnownSeed::default(), seed], ..SavedState::default() };
        fs::write(instance.join("state.json"), serde_json::to_vec(&state).unwrap()).unwrap();
        let stats = |best: u32| {
            let text = format!(
                "dsf_domains : 1\ndsf0_name : mem\ndsf0_reducer : MAX\ndsf0_best_key : 7\n\
                 dsf0_best : {best}\ndsf0_best_place : a.c:16\n"
            );
            fs::write(instance.join("fuzzer_stats"), text).unwrap();
        };
        let mut records = Records::new(vec![RecordThreshold::parse("mem=1000").unwrap()]);
        stats(999);
        assert_eq!(records.look(dir.path()), []);
        stats(4000);
        let found = records.look(dir.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, "[Non-crash bug] mem reaches 1000 at a.c:16");
        assert_eq!((found[0].value, found[0].data.as_slice()), (4000, &b"input"[..]));
        records.handed_over(found[0].line.clone());
        stats(5000);
        assert_eq!(records.look(dir.path()), []);
        assert_eq!(
            Records::new(vec![RecordThreshold::parse("heap=1").unwrap()]).look(dir.path()),
            []
        );
    }
}
