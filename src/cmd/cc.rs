//! `ffuzz cc`, `ffuzz c++`.
use super::exit::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

pub(super) fn run_c(_program: &str, _args: Vec<OsString>) -> Result<ExitCode, Failure> {
    Err(Failure::new("not built yet", ""))
}

pub(super) fn run_cxx(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    run_c(program, args)
}
