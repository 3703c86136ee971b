//! Inputs that a process received before the one that crashed it. A campaign saves them next to the crash
//! (`before_crashes/RECORD:000007,cnt:000000` and so on, the last is the crash itself), and a target of `ffuzz-cc` runs
//! them first if `FFUZZ_REPLAY` names them.

use std::fs;
use std::path::{Path, PathBuf};

use super::TriageError;
use super::examine::read;
use super::write;
use ffuzz_engine::corpus::names;
use ffuzz_exec::files_before;

/// Their name in the folder of a bug.
pub(super) const BEFORE: &str = "before";

/// Common prefix of the names of the inputs before a crash file, and their number.
pub(super) fn of(crash: &Path) -> Option<(PathBuf, u32)> {
    let name = names::parse(&crash.file_name()?.to_string_lossy())?;
    let own = read(crash).ok()?;
    let start = names::record_start(name.id.into());
    // Those saved by a campaign, and those of AFL_PERSISTENT_RECORD.
    let apart = crash.parent()?.with_file_name(names::BEFORE_CRASHES).join(&start);
    let places = [apart, crash.with_file_name(&start)];
    places.into_iter().find_map(|start| {
        let files = files_before(&start);
        let (last, before) = files.split_last().filter(|(_, before)| !before.is_empty())?;
        // The last one must be this crash, not another one with its number.
        let is_own = read(last).is_ok_and(|bytes| bytes == own);
        is_own.then(|| (start, u32::try_from(before.len()).unwrap_or(u32::MAX)))
    })
}

/// Copies the inputs into the folder of a bug, without the crash itself; `None` removes earlier copies.
pub(super) fn keep(folder: &Path, inputs: Option<&Path>) -> Result<(), TriageError> {
    let files = inputs.map(files_before).unwrap_or_default();
    for (number, file) in files.iter().enumerate() {
        // A target replays all but the last.
        let is_last = number + 1 == files.len();
        let bytes = if is_last { Vec::new() } else { read(file).unwrap_or_default() };
        write::input(folder, &format!("{BEFORE}{}", names::record_end(number)), &bytes)?;
    }
    let start = format!("{BEFORE},cnt:");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let left = name.strip_prefix(&start).and_then(|digits| digits.parse::<usize>().ok());
        if left.is_some_and(|left| left >= files.len()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
