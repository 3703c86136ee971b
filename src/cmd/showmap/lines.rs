//! The source lines that inputs reach, for tools that read lcov's files.

use std::cell::Cell;
use std::path::Path;

use super::args::Args;
use super::{CRASHED, inputs_of, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{Scratch, print, print_messages, report, say};
use crate::config::env::Environment;
use crate::crashes::collector;
use crate::engine::executor::ExitKind;
use crate::sys::remedy::Remedy;

/// Prints them; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    let crashed = Cell::new(false);
    let ended = |path: &Path, exit| {
        crashed.set(crashed.get() || matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom));
        report(exit, Some(path), args.quiet);
    };
    let program = Path::new(&args.target.command[0]);
    let measured = collector::measure(&mut target, program, &inputs, ended)?;
    print_messages(&mut target, args.quiet);
    drop(target);
    for error in &measured.skipped {
        say(args.quiet, &format!("[!] Skipped: {error} ({})", error.remedy()));
    }
    let mut coverage = measured.below(Path::new(""))?;
    // The standard library of Rust names files that are on no machine but its own.
    coverage.files.retain(|path, _| !path.starts_with("/rustc/"));
    print(coverage.lcov().as_bytes(), to_file(args.output()))?;
    let (files, (lines, all), inputs) = (coverage.files.len(), coverage.lines(), inputs.len());
    say(args.quiet, &format!("[+] {inputs} inputs reach {lines} of {all} lines in {files} files"));
    Ok(if crashed.get() { CRASHED } else { 0 })
}
