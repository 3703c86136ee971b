//! Exit codes and message format: one line with the cause, one with the remedy.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | good |
//! | 1 | cannot start, or cannot go on |
//! | 2 | wrong usage |
//! | 101 | a fault of our own (panic) |
//!
//! A command whose AFL or FuzzFactory ancestor defines its own codes keeps them.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use miette::Diagnostic;

use crate::sys::remedy::Remedy;

/// Exit code: cannot start or continue.
pub const CANNOT: u8 = 1;
/// Exit code: wrong usage.
pub const USAGE: u8 = 2;

/// Failure of a command.
#[derive(Debug)]
pub struct Failure {
    pub cause: String,
    pub remedy: String,
    pub code: u8,
}

impl Failure {
    pub fn new(cause: impl Display, remedy: impl Display) -> Self {
        Self { cause: cause.to_string(), remedy: remedy.to_string(), code: CANNOT }
    }

    /// Converts an error to cause and remedy.
    pub fn of(error: &impl Diagnostic) -> Self {
        Self::new(error, error.remedy())
    }

    /// Converts an error of reading a file or a folder.
    pub fn cannot_read(path: &Path, remedy: &str) -> impl Fn(io::Error) -> Self {
        move |error| Self::new(format!("cannot read {}: {error}", path.display()), remedy)
    }

    /// Converts an error of reading the output folder of a campaign.
    pub fn cannot_read_output(folder: &Path) -> impl Fn(io::Error) -> Self {
        let remedy = "name the folder that was given to the fuzzer's -o";
        move |error| {
            Self::new(format!("cannot read the folder {}: {error}", folder.display()), remedy)
        }
    }

    pub fn usage(cause: impl Display, remedy: impl Display) -> Self {
        Self { code: USAGE, ..Self::new(cause, remedy) }
    }

    /// Prints both lines and returns the exit code. Ignores a closed stderr.
    #[must_use]
    pub fn report(&self, program: &str) -> ExitCode {
        let mut out = io::stderr().lock();
        let _ = writeln!(out, "{program}: {}", self.cause);
        if !self.remedy.is_empty() {
            let _ = writeln!(out, "{program}: hint: {}", self.remedy);
        }
        ExitCode::from(self.code)
    }
}
