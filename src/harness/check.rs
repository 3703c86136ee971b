//! Harnesses in `$OUT`, checked by the rules of OSS-Fuzz's `bad_build_check`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::beside::Beside;

/// Minimum number of counters of an instrumented harness.
const LEAST_COUNTERS: u64 = 100;
/// Time limit for a few inputs.
const LIMIT: Duration = Duration::from_secs(60);

/// Programs in a folder that contain a harness, by name.
pub fn harnesses(folder: &Path) -> Vec<PathBuf> {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_harness = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_executable = fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
        let text = b"LLVMFuzzerTestOneInput";
        is_executable
            && name.iter().all(is_name_byte)
            && fs::read(path).is_ok_and(|content| memchr::memmem::find(&content, text).is_some())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_harness).collect();
    found.sort();
    found
}

/// Runs a few inputs. Returns a line about the harness, or its defect.
pub fn check(harness: &Path) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT.as_secs().to_string()).arg(harness).args(["-seed=1337", "-runs=4"]);
    command.current_dir(harness.parent().unwrap_or(Path::new("/")));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot start it: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counters = said.lines().find_map(|line| {
        let line = line.strip_prefix("INFO: Loaded ")?.split_once("counters): ")?;
        line.1.split(' ').next()?.parse::<u64>().ok()
    });
    let last = said.lines().last().unwrap_or("it says nothing");
    match counters {
        None => Err(format!("no counters ({last}): link it with $LIB_FUZZING_ENGINE")),
        Some(count) if count < LEAST_COUNTERS => {
            Err(format!("{count} counters only: compile the library with $CC and $CFLAGS, too"))
        }
        Some(_) if !said.contains("Done 4 runs") => Err(format!("it does not run: {last}")),
        Some(count) => Ok(format!("{count} counters{}", Files(&Beside::find(harness)))),
    }
}

/// Displays the files next to a harness.
struct Files<'a>(&'a Beside);

impl std::fmt::Display for Files<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(Beside { seeds, dictionary, .. }) = self;
        f.write_str(if seeds.is_some() { ", seeds" } else { "" })?;
        f.write_str(if dictionary.is_some() { ", dictionary" } else { "" })
    }
}
