//! What tests of several modules share.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use super::process::{Launch, OutputTo, Process, launch};
use super::strays::Strays;

/// A shell that runs a script.
pub(super) fn shell(script: &str, output: OutputTo<'_>, traced: bool) -> Process {
    start(&["/bin/sh", "-c", script], output, traced).unwrap()
}

pub(super) fn start(argv: &[&str], output: OutputTo<'_>, traced: bool) -> io::Result<Process> {
    start_with(argv, output, traced, None)
}

pub(super) fn start_marked(
    argv: &[&str],
    output: OutputTo<'_>,
    strays: Option<&Strays>,
) -> io::Result<Process> {
    start_with(argv, output, false, strays)
}

fn start_with(
    argv: &[&str],
    output: OutputTo<'_>,
    traced: bool,
    strays: Option<&Strays>,
) -> io::Result<Process> {
    let argv: Vec<OsString> = argv.iter().map(Into::into).collect();
    launch(Launch {
        argv: &argv,
        env: &[],
        stdin: Stdio::null(),
        output,
        fds: &[],
        memory_limit: None,
        core_limit: 0,
        guarded: false,
        traced,
        strays,
        fixed_addresses: false,
    })
}
