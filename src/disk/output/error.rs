//! Errors of the output folder, and their remedies.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use nix::errno::Errno;

use ffuzz_sys::file;
use ffuzz_sys::remedy;

/// Error of an operation on a path. [`OutputError::Full`] is separate because the campaign waits for space and
/// continues; the others end it.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum OutputError {
    #[error("output folder {} belongs to a fuzzer that is running", path.display())]
    #[diagnostic(help("choose another -o, or another name with -S"))]
    Busy { path: PathBuf },
    #[error("output folder {} already holds work", path.display())]
    #[diagnostic(help(
        "resume with -i -{}, or choose another -o",
        if *autoresume { "" } else { " (or AFL_AUTORESUME=1)" }
    ))]
    HoldsWork { path: PathBuf, autoresume: bool },
    #[error("nothing to resume: no queue entries in {}", path.display())]
    #[diagnostic(help("start with -i SEEDS"))]
    NothingToResume { path: PathBuf },
    #[error("{} exists and is not a link into the instance folder", path.display())]
    #[diagnostic(help("choose another -o, or move {} away", path.display()))]
    InTheWay { path: PathBuf },
    #[error("{} exists; another fuzzer may be using it", path.display())]
    #[diagnostic(help("set AFL_TMPDIR to another folder, or remove {}", path.display()))]
    InputTaken { path: PathBuf },
    #[error("{} was removed or replaced while the campaign ran", path.display())]
    #[diagnostic(help("start again with -i SEEDS, or with another -o"))]
    Replaced { path: PathBuf },
    #[error("cannot write {}: it is a folder", path.display())]
    #[diagnostic(help("give the name of a file, for example {}", path.join("result").display()))]
    IsFolder { path: PathBuf },
    #[error("no room left to write {}", path.display())]
    #[diagnostic(help("free some space"))]
    Full { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    #[diagnostic(help("{}", how_to_reach(path, source)))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("{}", how_to_reach(path, source)))]
    Read { path: PathBuf, source: io::Error },
}

impl OutputError {
    #[must_use]
    pub fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOSPC | Errno::EDQUOT) => Self::Full { path },
            _ => Self::Write { path, source },
        }
    }

    /// Converts to a system error.
    pub(super) fn into_source(self) -> io::Error {
        match self {
            Self::Write { source, .. } | Self::Read { source, .. } => source,
            Self::Full { .. } => Errno::ENOSPC.into(),
            other => io::Error::other(other.to_string()),
        }
    }

    /// True if the error may be temporary.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Write { source, .. } | Self::Read { source, .. } if file::may_pass(source))
    }

    /// True if a file or a folder is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Write { source, .. } | Self::Read { source, .. } if file::is_missing(source))
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}

fn how_to_reach(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => format!("move {} away", path.display()),
        _ => remedy::of_system(error, "check the folder given to -o").to_owned(),
    }
}
