//! Control of a triage: its folders and files, the lock of its folder, and its threads.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{TriageError, TriagePlan, TriageWork, create};
use ffuzz_disk::find;
use ffuzz_exec::Scratch;
use ffuzz_sys::file::{self, Locked};

/// Lock file held while a triage works in a folder.
const LOCK: &str = ".lock";

/// All folders with crashes (and hangs, if `hangs`) below `sources`.
pub fn folders(sources: &[PathBuf], hangs: bool) -> Result<Vec<PathBuf>, TriageError> {
    let mut folders = Vec::new();
    for source in sources {
        let failure = |error| unreadable(source, error);
        folders.extend(find::folders(source).map_err(failure)?);
        if hangs {
            folders.extend(find::hangs(source).map_err(failure)?);
        }
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Crash files in `folders`.
pub fn files(folders: &[PathBuf]) -> Result<Vec<PathBuf>, TriageError> {
    let mut files = Vec::new();
    for folder in folders {
        files.extend(find::files(folder).map_err(|error| unreadable(folder, error))?);
    }
    Ok(files)
}

fn unreadable(folder: &Path, source: std::io::Error) -> TriageError {
    TriageError::Folder { folder: folder.to_owned(), source }
}

/// Locks the folder for this process until the value is dropped; None if another process has it.
pub fn lock(folder: &Path) -> Result<Option<Locked>, TriageError> {
    create(folder)?;
    let owned = folder.to_owned();
    let file = match File::create(folder.join(LOCK)) {
        Ok(file) => file,
        Err(source) => return Err(TriageError::Write { folder: owned, source }),
    };
    match Locked::new(file, false) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if file::is_taken(&error) => Ok(None),
        Err(source) => Err(TriageError::Lock { folder: owned, source }),
    }
}

/// Does all work, with one target for each entry of `scratch`. `watch` shows the progress until its parameter returns
/// true: all threads have ended.
pub fn run_all(
    work: &TriageWork,
    plan: &TriagePlan,
    scratch: &[Scratch],
    watch: impl FnOnce(&dyn Fn() -> bool),
) -> Result<(), TriageError> {
    let one = |scratch: &Scratch| {
        let done = plan.rerun(scratch).and_then(|mut rerun| work.run(&mut rerun));
        if done.is_err() {
            work.stop();
        }
        done
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> =
            scratch.iter().map(|scratch| scope.spawn(move || one(scratch))).collect();
        watch(&|| threads.iter().all(std::thread::ScopedJoinHandle::is_finished));
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.fold(Ok(()), Result::and)
    })
}
