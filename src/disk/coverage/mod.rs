//! Coverage state files: results of runs of a program, for other campaigns and machines.
//!
//! The format is a superset of the dumps of Killerbeez's instrumentation `afl`; see [`form`].

pub mod form;

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use super::output::{OutputError, check_user_file, replace_user_file};
use ffuzz_engine::feedback::{Known, Mismatch};
use ffuzz_sys::file;
use ffuzz_sys::remedy::{self, Remedy};
use form::FormError;

/// Maximum file size, bytes; larger than the state of any program.
const LARGEST: u64 = 4 << 30;

/// Reason why a state cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CoverageError {
    #[error("cannot read the coverage state {}: {source}", path.display())]
    #[diagnostic(help("{}", remedy::of_system(source, "check the path")))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no coverage state: {source}", path.display())]
    #[diagnostic(forward(source))]
    Form { path: PathBuf, source: FormError },
    #[error("the coverage state {} does not fit: {source}", path.display())]
    #[diagnostic(help("{}", how_to_fit(source)))]
    Mismatch { path: PathBuf, source: Mismatch },
    #[error(transparent)]
    #[diagnostic(help("{}", how_to_write(.0)))]
    Write(#[from] OutputError),
    #[error("the target has no edges, so there is no coverage to save or to load")]
    #[diagnostic(help("build the target with ffuzz-cc, or leave the option out"))]
    NoEdges,
}

fn how_to_fit(mismatch: &Mismatch) -> &'static str {
    match mismatch {
        Mismatch::MapSize { .. } => {
            "states are valid for one program; Killerbeez's need a map of 65536 edges"
        }
        _ => "states are valid for one build: make another with ffuzz-showmap -C --save-coverage",
    }
}

fn how_to_write(error: &OutputError) -> String {
    match error {
        OutputError::Write { source, .. } => {
            remedy::of_system(source, "check the path given to --save-coverage").into()
        }
        error => error.remedy(),
    }
}

/// Reads a state of any program.
pub fn read(path: &Path) -> Result<Known, CoverageError> {
    let failed = |source| CoverageError::Read { path: path.into(), source };
    let text = file::patiently(|| file::read_whole(path, LARGEST)).map_err(failed)?;
    form::parse(&text).map_err(|source| CoverageError::Form { path: path.into(), source })
}

/// Reads a state that can be joined with `own`. Drops the parts of one that contains data of an unnamed program, as if
/// it named none.
pub fn read_for(path: &Path, own: &Known) -> Result<Known, CoverageError> {
    let mut known = read(path)?;
    let fits = own.check(&known);
    fits.map_err(|source| CoverageError::Mismatch { path: path.into(), source })?;
    if known.unnamed {
        known.parts.clear();
    }
    Ok(known)
}

/// Checks that a state can be written to `path`, before a long campaign relies on it.
pub fn check_place(path: &Path) -> Result<(), CoverageError> {
    Ok(check_user_file(path)?)
}

/// Writes a state whole or not at all.
pub fn write(path: &Path, known: &Known) -> Result<(), CoverageError> {
    Ok(replace_user_file(path, &form::text(known))?)
}
