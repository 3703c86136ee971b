//! What tests of several modules share.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use super::process::{Launch, Output, Process, launch};

/// A shell that runs a script.
pub(super) fn shell(script: &str, output: Output<'_>, traced: bool) -> Process {
    start(&["/bin/sh", "-c", script], output, traced).unwrap()
}

pub(super) fn start(argv: &[&str], output: Output<'_>, traced: bool) -> io::Result<Process> {
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
    })
}
