//! Why a fleet cannot start or go on.

use std::io;
use std::path::PathBuf;

use crate::control::NO_THREAD;

/// Display is the cause, [`FleetError::remedy`] the remedy.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("cannot start the worker {name}: {source}")]
    Start { name: String, source: io::Error },
    #[error("cannot make the folder {path:?}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot listen to the control socket: {0}")]
    Control(io::Error),
    /// The worker's last lines, with its name in front unless no other worker has run yet.
    #[error("{cause}")]
    Worker { cause: String, remedy: String },
}

impl FleetError {
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Start { .. } => "fewer workers (-j) need fewer processes and descriptors".into(),
            Self::Folder { .. } => "set AFL_TMPDIR to a folder that can be written".into(),
            Self::Control(_) => NO_THREAD.into(),
            Self::Signals(_) => "this is a fault of ffuzz; please report it".into(),
            Self::Worker { remedy, .. } => remedy.clone(),
        }
    }
}
