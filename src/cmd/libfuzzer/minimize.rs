//! `-minimize_crash=1` and `-cleanse_crash=1`: shortens or simplifies a crashing input.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::campaign::sanitizer_variables;
use super::files::{self, CampaignFiles};
use super::options::Order;
use super::{WRONG, eprint_line};
use crate::cmd::exit::Failure;

/// Replacement bytes.
const PLAIN: [u8; 2] = [b' ', 0xff];
/// Maximum number of passes over all bytes.
const MOST_ROUNDS: usize = 5;

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what}: {error}"), "check the files, and the room for them")
}

/// The only file on the command line; otherwise prints libFuzzer's line.
fn only_file<'a>(order: &'a Order, line: &str) -> Option<&'a PathBuf> {
    match &*order.folders {
        [file] if file.is_file() => Some(file),
        _ => {
            eprint_line(line);
            None
        }
    }
}

/// Returns true if the harness fails with this file. It exits with 0 otherwise.
fn fails(harness: &Path, order: &Order, file: &Path) -> Result<bool, Failure> {
    let mut command = Command::new(harness);
    command.args(order.limits()).arg(file).args(&order.rest);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|error| failed("start the harness", &error))?;
    Ok(!status.success())
}

/// Shortens the input with `ffuzz tmin`, which keeps the kind of crash.
pub(super) fn shorten(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let line = "ERROR: -minimize_crash should be given one input file";
    let Some(file) = only_file(order, line) else { return Ok(ExitCode::from(WRONG)) };
    let content = fs::read(file).map_err(|error| failed("read the input", &error))?;
    let (shown, length) = (file.display(), content.len());
    eprint_line(&format!("INFO: Seed: {}", std::process::id()));
    eprint_line(&format!("CRASH_MIN: minimizing crash input: '{shown}' ({length} bytes)"));
    if !fails(harness, order, file)? {
        eprint_line(&format!("ERROR: the input {shown} did not crash"));
        return Ok(ExitCode::from(WRONG));
    }
    eprint_line(&format!(
        "CRASH_MIN: '{shown}' ({length} bytes) caused a crash. Will try to minimize it further"
    ));
    let workshop = CampaignFiles::new().map_err(|error| failed("make a folder", &error))?;
    let result = workshop.place("result");
    let mut command = Command::new(crate::cmd::fuzz::this_program());
    command.arg("tmin").arg("-i").arg(file).arg("-o").arg(&result).arg("--").arg(harness);
    command.args(&order.rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(sanitizer_variables(order, false));
    // The exit code is tmin's; only the result matters.
    command.status().map_err(|error| failed("start ffuzz tmin", &error))?;
    let shorter = fs::read(&result).ok().filter(|shorter| shorter.len() < length);
    let shorter = shorter.unwrap_or_else(|| content.clone());
    let name = match order.text("exact_artifact_path") {
        "" => {
            format!("{}minimized-from-{}", order.text("artifact_prefix"), files::hash(&content))
        }
        exact => exact.to_owned(),
    };
    files::write(Path::new(&name), &shorter).map_err(|error| failed("save the result", &error))?;
    super::campaign::show(harness, order, Path::new(&name), &shorter);
    eprint_line(&format!(
        "CRASH_MIN: failed to minimize beyond {name} ({} bytes), exiting",
        shorter.len()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Replaces irrelevant bytes by blanks.
pub(super) fn cleanse(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let line = "ERROR: -cleanse_crash should be given one input file and -exact_artifact_path";
    let Some(file) = only_file(order, line) else { return Ok(ExitCode::from(WRONG)) };
    let exact = order.text("exact_artifact_path");
    if exact.is_empty() {
        eprint_line(line);
        return Ok(ExitCode::from(WRONG));
    }
    let mut content = fs::read(file).map_err(|error| failed("read the input", &error))?;
    eprint_line(&format!("INFO: Seed: {}", std::process::id()));
    let workshop = CampaignFiles::new().map_err(|error| failed("make a folder", &error))?;
    let (trial, mut is_changed) = (workshop.place("trial"), true);
    for round in 0..MOST_ROUNDS {
        if !std::mem::take(&mut is_changed) {
            break;
        }
        for at in 0..content.len() {
            if PLAIN.contains(&content[at]) {
                continue;
            }
            eprint_line(&format!(
                "CLEANSE[{round}]: Trying to replace byte {at} of {}",
                content.len()
            ));
            let before = content[at];
            for byte in PLAIN {
                content[at] = byte;
                fs::write(&trial, &content).map_err(|error| failed("write", &error))?;
                if fails(harness, order, &trial)? {
                    eprint_line(&format!("CLEANSE: Replaced byte {at} with {byte:#x}"));
                    is_changed = true;
                    break;
                }
                content[at] = before;
            }
        }
    }
    files::write(Path::new(exact), &content).map_err(|error| failed("save the result", &error))?;
    Ok(ExitCode::SUCCESS)
}
