//! Runs a harness with libFuzzer's options, and reports failing inputs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::words::CargoWords;
use super::{BuiltHarness, cannot_start, cannot_write, own_program};
use crate::cmd::exit::Failure;
use crate::inspect::binary;

/// Separator between reports.
const LINE: &str =
    "────────────────────────────────────────────────────────────────────────────────";

/// Runs the harness and reports the failing input as cargo-fuzz does. The exit code is 1 after a failure.
pub(super) fn run(
    built: &BuiltHarness,
    words: &CargoWords,
    jobs: Option<u32>,
) -> Result<ExitCode, Failure> {
    let BuiltHarness { name: harness, program, .. } = built;
    if !binary::has_driver(program) {
        return run_by_stdin(built, words);
    }
    let CargoWords { inputs, options } = words;
    let artifacts = built.artifacts();
    let corpus = built.corpus();
    for folder in [&artifacts, &corpus] {
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let mut command = Command::new(program);
    command.arg(prefix(&artifacts)).args(jobs.map(|jobs| format!("-fork={jobs}"))).args(options);
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
        let text = report("Failing input", built, &artifact);
        let shown = artifact.display();
        let next = format!("Minimize test case with:\n\n\tcargo ffuzz tmin {harness} {shown}\n\n");
        let _ = write!(err, "{text}{next}{LINE}\n\n");
    }
    let _ = writeln!(err, "Error: Fuzz target exited with {status}");
    Ok(ExitCode::FAILURE)
}

/// Runs files with a harness of afl.rs (`fuzz!`), which reads standard input. The exit code is 1 if one fails.
fn run_by_stdin(built: &BuiltHarness, words: &CargoWords) -> Result<ExitCode, Failure> {
    let BuiltHarness { name: harness, program, .. } = built;
    let CargoWords { inputs, options } = words;
    if let Some(option) = options.first() {
        let cause = format!("{harness} has a main of its own, and no {}", option.display());
        return Err(Failure::usage(
            cause,
            "libFuzzer's options are for harnesses of fuzz_target!; use those of ffuzz",
        ));
    }
    let mut code = ExitCode::SUCCESS;
    for input in inputs {
        let remedy = "check its name and permissions";
        let file = fs::File::open(input).map_err(Failure::cannot_read(input, remedy))?;
        let status = Command::new(program).stdin(file).status();
        let status = status.map_err(|error| cannot_start(&error))?;
        let mut err = std::io::stderr().lock();
        let _ = writeln!(err, "Executed {}: {status}", input.display());
        if !status.success() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Minimizes a failing input as libFuzzer's `-minimize_crash=1` does, and prints the path of the result.
pub(super) fn minimize(
    built: &BuiltHarness,
    input: &Path,
    runs: Option<u32>,
    options: &[OsString],
) -> Result<ExitCode, Failure> {
    let BuiltHarness { name: harness, program, .. } = built;
    if !binary::has_driver(program) {
        let cause = format!("{harness} has a main of its own, and no -minimize_crash");
        return Err(Failure::usage(
            cause,
            "leave out -r and libFuzzer's options: ffuzz-tmin minimizes it",
        ));
    }
    let artifacts = built.artifacts();
    fs::create_dir_all(&artifacts).map_err(|error| cannot_write(&artifacts, &error))?;
    let before = files(&artifacts);
    let mut command = Command::new(program);
    command.arg(prefix(&artifacts)).arg("-minimize_crash=1");
    command.args(runs.map(|runs| format!("-runs={runs}"))).args(options).arg(input);
    let status = command.env("FFUZZ", own_program()?).status();
    let status = status.map_err(|error| cannot_start(&error))?;
    let mut err = std::io::stderr().lock();
    if !status.success() {
        let _ = writeln!(err, "Error: Test case minimization failed: exited with {status}");
        return Ok(ExitCode::FAILURE);
    }
    let new = files(&artifacts).difference(&before).last().cloned();
    // The result of an earlier call has the same name.
    let written = |file: &PathBuf| fs::metadata(file).and_then(|data| data.modified()).ok();
    match new.or_else(|| files(&artifacts).into_iter().max_by_key(written)) {
        Some(small) => {
            let _ = write!(err, "{}{LINE}\n\n", report("Minimized artifact", built, &small));
            crate::cmd::print(&format!("{}\n", small.display()))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// libFuzzer's option for the folder of failing inputs.
pub(super) fn prefix(artifacts: &Path) -> OsString {
    let mut prefix = OsString::from("-artifact_prefix=");
    prefix.push(artifacts.join(""));
    prefix
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// cargo-fuzz's report of a failing input.
fn report(title: &str, built: &BuiltHarness, artifact: &Path) -> String {
    let BuiltHarness { name: harness, program, .. } = built;
    let shown = artifact.display();
    let argument = super::argument_of(program, artifact).ok();
    let argument = argument.map_or_else(String::new, |text| {
        let text = text.trim_end().replace('\n', "\n\t");
        format!("Output of `std::fmt::Debug`:\n\n\t{text}\n\n")
    });
    format!(
        "\n{LINE}\n\n{title}:\n\n\t{shown}\n\n{argument}Reproduce with:\n\n\tcargo ffuzz run {harness} \
         {shown}\n\n"
    )
}
