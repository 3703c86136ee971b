//! `cargo ffuzz coverage`: the source lines that a corpus reaches.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use super::minimize::queues;
use super::{BuiltHarness, cannot_start, cannot_write, own_program};
use crate::cmd::exit::Failure;

/// Folder of coverage files, below the folder of the harnesses.
const COVERAGE: &str = "coverage";
const LINES: &str = "lcov.info";
const INPUTS: &str = "inputs";

/// Runs the inputs and prints the path of the file.
pub(super) fn run(built: &BuiltHarness, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let BuiltHarness { harnesses, name: harness, program } = built;
    let folder = harnesses.folder.join(COVERAGE).join(harness);
    fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, &error))?;
    let own = std::iter::once(built.corpus()).chain(queues(&built.output()));
    let own: Vec<PathBuf> = own.filter(|folder| folder.is_dir()).collect();
    let folders = if folders.is_empty() { &own } else { folders };
    let mut inputs = OsString::new();
    for folder in folders {
        let files = crate::disk::inputs::list_below(folder)?;
        inputs.extend(files.into_iter().flat_map(|file| [file.into_os_string(), "\n".into()]));
    }
    if inputs.is_empty() {
        let given = folders.iter().map(|folder| folder.display().to_string());
        let cause = format!("no inputs in {}", given.collect::<Vec<_>>().join(", "));
        return Err(Failure::new(cause, format!("make some: cargo ffuzz run {harness}")));
    }
    let list = folder.join(INPUTS);
    fs::write(&list, inputs.as_bytes()).map_err(|error| cannot_write(&list, &error))?;
    let file = folder.join(LINES);
    let _ = fs::remove_file(&file);
    let mut command = Command::new(own_program()?);
    command.args(["showmap", "--lcov", "-I"]).arg(&list).arg("-o").arg(&file);
    let status = command.arg("--").arg(program).status().map_err(|error| cannot_start(&error))?;
    match status.code() {
        // Inputs may crash or time out.
        Some(0..=2) if file.exists() => crate::cmd::print(&format!("{}\n", file.display())),
        code => Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}
