//! `state.json`: what a restarted campaign goes on from, beside the queue itself.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::custom::states::Stored;

pub(super) const NAME: &str = "state.json";

/// The content of the file. A part that is missing is empty.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct State {
    /// How far mutators are with each seed.
    pub mutators: Vec<Stored>,
}

impl State {
    /// Without a file the state is empty.
    pub(super) fn load(path: &Path) -> Result<Self, OutputError> {
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
