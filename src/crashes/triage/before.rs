//! Inputs that a process got before the one that crashed it. A campaign has written them next to the crash
//! (`before_crashes/RECORD:000007,cnt:000000` and so on, the last is the crash itself), and a target of
//! `ffuzz-cc` takes them first if `FFUZZ_REPLAY` names them.

use std::fs;
use std::path::{Path, PathBuf};

use super::TriageError;
use super::examine::read;
use super::write;
use crate::engine::corpus::names;

/// The variable with their path (`runtime/replay.c`).
pub(super) const REPLAY: &str = "FFUZZ_REPLAY";
/// What they are called in the folder of a bug.
pub(super) const BEFORE: &str = "before";
/// Maximum number that is searched.
const MOST: usize = 1 << 16;

/// Of a crash file: what the names of these inputs begin with, and how many there are.
pub(super) fn of(crash: &Path) -> Option<(PathBuf, u32)> {
    let name = names::parse(&crash.file_name()?.to_string_lossy())?;
    let own = read(crash).ok()?;
    let start = names::record_start(name.id.into());
    // A campaign's own ones, and those of AFL_PERSISTENT_RECORD.
    let apart = crash.parent()?.with_file_name(names::BEFORE_CRASHES).join(&start);
    let places = [apart, crash.with_file_name(&start)];
    places.into_iter().find_map(|start| {
        let files = (0..MOST).take_while(|number| named(&start, *number).exists()).count();
        let last = files.checked_sub(1).filter(|last| *last > 0)?;
        // It is the crash itself: of this file, and not of another one with its number.
        let is_own = read(&named(&start, last)).is_ok_and(|bytes| bytes == own);
        is_own.then(|| (start, u32::try_from(last).unwrap_or(u32::MAX)))
    })
}

fn named(start: &Path, number: usize) -> PathBuf {
    let mut name = start.as_os_str().to_owned();
    name.push(names::record_end(number));
    name.into()
}

/// Copies them into the folder of a bug, without the crash itself; `None` removes what is there.
pub(super) fn keep(folder: &Path, inputs: Option<&Path>) -> Result<(), TriageError> {
    let mut number = 0;
    if let Some(start) = inputs {
        while named(start, number + 1).exists() {
            let bytes = read(&named(start, number)).unwrap_or_default();
            let name = format!("{BEFORE}{}", names::record_end(number));
            write::input(folder, &name, &bytes)?;
            number += 1;
        }
        // A target takes all but the last.
        write::input(folder, &format!("{BEFORE}{}", names::record_end(number)), b"")?;
        number += 1;
    }
    let start = format!("{BEFORE},cnt:");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let left = name.strip_prefix(&start).and_then(|digits| digits.parse::<usize>().ok());
        if left.is_some_and(|left| left >= number) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
