//! A harness that is run by libFuzzer's options, and what is said of an input that fails.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::harnesses::Harnesses;
use super::words::Words;
use super::{ARTIFACTS, cannot_start, cannot_write, own_program};
use crate::cmd::exit::Failure;

/// Runs it, and names the input on which it failed, in cargo-fuzz's words. The exit code is 1 then.
pub(super) fn run(
    harnesses: &Harnesses,
    (harness, program): (&str, &Path),
    Words { inputs, options }: &Words,
    jobs: Option<u32>,
) -> Result<ExitCode, Failure> {
    let artifacts = harnesses.folder.join(ARTIFACTS).join(harness);
    let corpus = harnesses.corpus(harness);
    for folder in [&artifacts, &corpus] {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let mut prefix = OsString::from("-artifact_prefix=");
    prefix.push(artifacts.join(""));
    let mut command = Command::new(program);
    command.arg(prefix).args(jobs.map(|jobs| format!("-fork={jobs}"))).args(options);
    command.args(inputs).env("FFUZZ", own_program()?);
    if inputs.is_empty() {
        command.arg(corpus);
    }
    let before = files(&artifacts);
    let status = command.status().map_err(|error| cannot_start(&error))?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    let new: Vec<PathBuf> = files(&artifacts).difference(&before).cloned().collect();
    let mut err = std::io::stderr().lock();
    for artifact in new {
        let _ = err.write_all(report(harness, program, &artifact).as_bytes());
    }
    let _ = writeln!(err, "Error: Fuzz target exited with {status}");
    Ok(ExitCode::FAILURE)
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// What cargo-fuzz says of one.
fn report(harness: &str, program: &Path, artifact: &Path) -> String {
    let (line, shown) = ("─".repeat(80), artifact.display());
    let argument = super::argument_of(program, artifact).ok();
    let argument = argument.map_or_else(String::new, |text| {
        let text = text.trim_end().replace('\n', "\n\t");
        format!("Output of `std::fmt::Debug`:\n\n\t{text}\n\n")
    });
    format!(
        "\n{line}\n\nFailing input:\n\n\t{shown}\n\n{argument}Reproduce with:\n\n\tcargo ffuzz run {harness} \
         {shown}\n\nMinimize test case with:\n\n\tcargo ffuzz tmin {harness} {shown}\n\n{line}\n\n"
    )
}
