//! What can go wrong with the output folder, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use ffuzz_sys::file;

/// Each names the path. [`OutputError::Full`] is apart because the campaign waits for room and
/// continues; the others end it.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("output folder {} belongs to a fuzzer that is running", path.display())]
    Busy { path: PathBuf },
    #[error("output folder {} already holds work", path.display())]
    HoldsWork { path: PathBuf, autoresume: bool },
    #[error("nothing to resume: no queue entries in {}", path.display())]
    NothingToResume { path: PathBuf },
    #[error("{} exists and is not a link into the instance folder", path.display())]
    InTheWay { path: PathBuf },
    #[error("{} exists; another fuzzer may be using it", path.display())]
    InputTaken { path: PathBuf },
    #[error("{} was removed or replaced while the campaign ran", path.display())]
    Replaced { path: PathBuf },
    #[error("no room left to write {}", path.display())]
    Full { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
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

    /// The system's error.
    pub(super) fn into_source(self) -> io::Error {
        match self {
            Self::Write { source, .. } | Self::Read { source, .. } => source,
            Self::Full { .. } => Errno::ENOSPC.into(),
            other => io::Error::other(other.to_string()),
        }
    }

    /// It may be over in a moment.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Write { source, .. } | Self::Read { source, .. } if file::may_pass(source))
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    /// One line: what the user can do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Busy { .. } => "choose another -o, or another name with -S".to_owned(),
            Self::HoldsWork { autoresume: true, .. } => {
                "resume with -i -, or choose another -o".to_owned()
            }
            Self::HoldsWork { autoresume: false, .. } => {
                "resume with -i - (or AFL_AUTORESUME=1), or choose another -o".to_owned()
            }
            Self::NothingToResume { .. } => "start with -i SEEDS".to_owned(),
            Self::InTheWay { path } => {
                format!("choose another -o, or move {} away", path.display())
            }
            Self::InputTaken { path } => {
                format!("set AFL_TMPDIR to another folder, or remove {}", path.display())
            }
            Self::Full { .. } => "free some space".to_owned(),
            Self::Replaced { .. } => "start again with -i SEEDS, or with another -o".to_owned(),
            Self::Write { path, source } | Self::Read { path, source } => {
                if source.kind() == io::ErrorKind::InvalidInput {
                    return format!("move {} away", path.display());
                }
                file::remedy(source).unwrap_or("check the folder given to -o").to_owned()
            }
        }
    }
}
