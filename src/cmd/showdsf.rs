//! `ffuzz showdsf`.
use super::exit::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

pub(super) fn run(_program: &str, _args: Vec<OsString>) -> Result<ExitCode, Failure> {
    Err(Failure::new("not built yet", ""))
}
