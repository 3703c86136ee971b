//! Errors that end a minimization early.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use crate::disk::inputs::InputError;
use crate::disk::output::OutputError;
use crate::engine::executor::RunError;

#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CminError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error("no inputs in {0:?}")]
    #[diagnostic(help(
        "give a folder with at least one file that is not empty, for example out/queue"
    ))]
    NoInputs(PathBuf),
    #[error("the output folder {0:?} is inside of the input folder")]
    #[diagnostic(help("choose another -o"))]
    OutputInside(PathBuf),
    #[error("the output folder {0:?} is not empty")]
    #[diagnostic(help("choose another -o, or empty it"))]
    NotEmpty(PathBuf),
    #[error("another cmin is running in {0:?}")]
    #[diagnostic(help("wait for its end, or choose another -o"))]
    Busy(PathBuf),
    #[error("{0:?} holds the unfinished work of another cmin command")]
    #[diagnostic(help("give the same inputs, target and options again, or remove the folder"))]
    OtherWork(PathBuf),
    #[error("cannot write {path:?}: {source}")]
    #[diagnostic(help("check that the folder is writable and the disk has room"))]
    Write { path: PathBuf, source: io::Error },
    #[error("{0:?} is no merge control file")]
    #[diagnostic(help("give another -merge_control_file, or remove this one"))]
    NoControlFile(PathBuf),
    #[error("{0:?} is the control file of a harness that libFuzzer has built")]
    #[diagnostic(help(
        "its results are of no use for this build: give another -merge_control_file, or remove this one"
    ))]
    ForeignControlFile(PathBuf),
    #[error("another merge uses the control file {0:?}")]
    #[diagnostic(help("wait for its end, or give another -merge_control_file"))]
    ControlBusy(PathBuf),
    #[error("the name {0:?} has a line break, which a merge control file cannot hold")]
    #[diagnostic(help("rename the file, or omit -merge_control_file"))]
    LineBreak(PathBuf),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Control(OutputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    #[error("cannot write to \"stdout\": {0}")]
    #[diagnostic(help("check the disk and the path"))]
    Report(io::Error),
    /// `others` more do the same.
    #[error("{} crashes the target{}", path.display(), more(*others))]
    #[diagnostic(help(
        "add -A to keep such inputs, too, or -C to keep only those that crash; the traces so far \
         are kept"
    ))]
    Crashes { path: PathBuf, others: usize },
    #[error("{} takes too long{}", path.display(), more(*others))]
    #[diagnostic(help(
        "add -A to keep such inputs, too, or -C to keep only those that crash; the traces so far \
         are kept"
    ))]
    Hangs { path: PathBuf, others: usize },
}

impl CminError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more") }
}
