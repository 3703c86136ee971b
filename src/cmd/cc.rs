//! `ffuzz cc`, `ffuzz c++`: see [`crate::compiler`].

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use super::exit::Failure;
use crate::compiler::env::Env;
use crate::compiler::toolchain::Language;

pub(super) fn run_c(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    run(Language::C, program, args)
}

pub(super) fn run_cxx(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    run(Language::Cxx, program, args)
}

fn run(language: Language, program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let note = |text: &str| {
        let _ = writeln!(std::io::stderr(), "{program}: {text}");
    };
    crate::compiler::run(language, args, &Env::read(), note)
        .map_err(|error| Failure::new(&error, error.remedy()))
}
