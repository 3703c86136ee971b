//! Errors of fleets.

use std::io;
use std::path::PathBuf;

use miette::Diagnostic;

use crate::control::NO_THREAD;

/// Reason why workers cannot start or continue.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum FleetError {
    #[error("cannot start the worker {name}: {source}")]
    #[diagnostic(help("fewer workers (-j) need fewer processes and descriptors"))]
    Start { name: String, source: io::Error },
    #[error("cannot make the folder {path:?}: {source}")]
    #[diagnostic(help("set AFL_TMPDIR to a folder that can be written"))]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot handle signals: {0}")]
    #[diagnostic(help("this is a fault of ffuzz; please report it"))]
    Signals(io::Error),
    #[error("cannot listen to the control socket: {0}")]
    #[diagnostic(help("{}", NO_THREAD))]
    Control(io::Error),
    /// The worker's last lines, with its name in front unless no other worker has run yet.
    #[error("{cause}")]
    Worker {
        cause: String,
        #[help]
        remedy: String,
    },
}
