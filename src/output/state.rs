//! `state.json`: what a restarted campaign goes on from, beside the queue itself.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::custom::states::Stored;
use crate::event::StageYield;
use crate::feedback::Lessons;

pub const NAME: &str = "state.json";

/// The content of the file. A part that is missing is empty.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct State {
    /// How far mutators are with each seed.
    pub mutators: Vec<Stored>,
    /// What the rest was learned of: the program, its arguments and its maps. Of another target
    /// nothing is used.
    pub target: u64,
    pub judge: Lessons,
    pub counters: Counters,
    pub seeds: Vec<KnownSeed>,
}

/// Statistics that `fuzzer_stats` does not have.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Counters {
    pub total_crashes: u64,
    pub total_timeouts: u64,
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
}

/// What is known of a queue entry.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct KnownSeed {
    pub name: String,
    /// Of its bytes: a file that was changed is run anew.
    pub hash: u64,
    pub exec_us: u64,
    pub path_hash: u64,
    pub edges: u32,
    /// Empty unless the seed was the best for an edge.
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    pub trace: Box<[u32]>,
    /// Keys and bits that it owns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(u32, u32)>,
    pub changed_at: u32,
    pub handicap: u32,
    pub fuzzed: u32,
    pub variable: bool,
    pub trimmed: bool,
    pub disabled: bool,
}

impl State {
    /// Without a file the state is empty.
    pub fn load(path: &Path) -> Result<Self, OutputError> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(|error| OutputError::read(path, error))?,
        };
        serde_json::from_slice(&text).map_err(|error| OutputError::read(path, error.into()))
    }

    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_and_damage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(State::load(&path).unwrap(), State::default());
        let keys = vec![(7, 0), (8, 4)];
        let seed =
            KnownSeed { name: "id:000000,x".into(), hash: u64::MAX, keys, ..KnownSeed::default() };
        let known = State { target: 7, seeds: vec![seed], ..State::default() };
        fs::write(&path, known.text()).unwrap();
        assert_eq!(State::load(&path).unwrap(), known);
        let text =
            r#"{"mutators":[{"mutator":"flip","options":null,"seeds":{"3":"x"}}],"later":1}"#;
        fs::write(&path, text).unwrap();
        let state = State::load(&path).unwrap();
        assert_eq!(state.mutators.len(), 1);
        fs::write(&path, state.text()).unwrap();
        assert_eq!(State::load(&path).unwrap(), state);
        fs::write(&path, &text[..20]).unwrap();
        assert!(matches!(State::load(&path), Err(OutputError::Read { .. })));
    }
}
