//! What ends a minimization before its end.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::inputs::InputError;
use crate::engine::executor::RunError;

#[derive(Debug, thiserror::Error)]
pub enum CminError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("no inputs in {0:?}")]
    NoInputs(PathBuf),
    #[error("the output folder {0:?} is inside of the input folder")]
    OutputInside(PathBuf),
    #[error("the output folder {0:?} is not empty")]
    NotEmpty(PathBuf),
    #[error("another cmin works in {0:?}")]
    Busy(PathBuf),
    #[error("{0:?} holds the unfinished work of another cmin command")]
    OtherWork(PathBuf),
    #[error("cannot write {path:?}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot write to \"stdout\": {0}")]
    Report(io::Error),
    /// `others` more do the same.
    #[error("{} crashes the target{}", path.display(), more(*others))]
    Crashes { path: PathBuf, others: usize },
    #[error("{} takes too long{}", path.display(), more(*others))]
    Hangs { path: PathBuf, others: usize },
}

impl CminError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    /// What the user can do, one line.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Input(error) => error.remedy(),
            Self::Run(error) => return error.remedy(),
            Self::NoInputs(_) => {
                "give a folder with at least one file that is not empty, for example out/queue"
            }
            Self::OutputInside(_) => "choose another -o",
            Self::NotEmpty(_) => "choose another -o, or empty it",
            Self::Busy(_) => "wait for its end, or choose another -o",
            Self::OtherWork(_) => {
                "give the same inputs, target and options again, or remove the folder"
            }
            Self::Write { .. } => "check that the folder is writable and the disk has room",
            Self::Report(_) => "check the disk and the path",
            Self::Crashes { .. } | Self::Hangs { .. } => {
                "add -A to keep such inputs, too, or -C to keep only those that crash; the traces so \
                 far are kept"
            }
        }
        .into()
    }
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more") }
}
