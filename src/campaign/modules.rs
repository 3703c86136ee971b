//! The state of a module that the user named (`--mutator-state`), for the single seed of the sequential mode
//! (`--mutator-only`).

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::CampaignError;
use crate::disk::output::{OutputError, replace_file};
use crate::engine::corpus::SeedId;
use crate::mutators::Mutators;
use crate::mutators::states::{Reached, States};

/// The one seed of the sequential mode.
pub(super) const ONLY: SeedId = SeedId(0);

/// The states of the only module.
pub(super) fn only_states(mutators: &mut Mutators) -> Option<&mut States> {
    mutators.states_mut().next()
}

/// The file with the module's state, if a path was given.
pub(super) struct ModuleFile {
    pub(super) path: Option<PathBuf>,
}

impl ModuleFile {
    /// Passes the state to the module, if the file exists.
    pub(super) fn load(&self, mutators: &mut Mutators) -> Result<(), CampaignError> {
        if let Some(path) = &self.path
            && let Some(text) = read_state(path)?
            && let Some(states) = only_states(mutators)
        {
            states.set(ONLY, Some(Reached::State(text)));
        }
        Ok(())
    }

    pub(super) fn save(&self, mutators: &mut Mutators) -> Result<(), OutputError> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = match only_states(mutators).and_then(|states| states.get(ONLY)) {
            Some(Reached::State(text) | Reached::Exhausted(Some(text))) => text,
            _ => return Ok(()),
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        replace_file(folder, path, text.as_bytes())
    }
}

/// A module's state; None if the file does not exist.
fn read_state(path: &Path) -> Result<Option<CString>, CampaignError> {
    let failed = |source| CampaignError::MutatorState { path: path.into(), source };
    match fs::read(path) {
        Ok(text) => {
            // Files written by hand end with a line feed, C strings with a NUL.
            let text = text.strip_suffix(b"\0").unwrap_or(&text).to_vec();
            CString::new(text).map(Some).map_err(|error| failed(error.into()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
