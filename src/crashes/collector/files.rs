//! Atomic and durable file writes: a file is complete or absent, even after a power loss.
//!
//! A report may hold secrets of the target: folders are 0700 and files 0600.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::error::CollectorError;
use ffuzz_sys::file::{self, Locked};

/// Age after which a temporary file counts as abandoned.
const FORGOTTEN: Duration = Duration::from_secs(3600);
const TEMPORARY: &str = ".new-";

pub(super) fn create_dir(path: &Path) -> Result<(), CollectorError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| CollectorError::write(path, error))
}

/// Writes a file, replacing an existing one.
pub(super) fn replace(path: &Path, data: &[u8]) -> Result<(), CollectorError> {
    publish(path, data, |temporary| rename(temporary, path)).map(drop)
}

/// Like [`replace`], without waiting for the disk; for data that can be restored.
pub(super) fn replace_quickly(path: &Path, data: &[u8]) -> Result<(), CollectorError> {
    let temporary = temporary(path);
    let written = write(&temporary, data).and_then(|_| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        CollectorError::write(path, error)
    })
}

/// Writes a file unless it exists; returns whether it did. Of several concurrent callers one succeeds.
pub(super) fn create(path: &Path, data: &[u8]) -> Result<bool, CollectorError> {
    publish(path, data, |temporary| {
        let linked = fs::hard_link(temporary, path);
        fs::remove_file(temporary)?;
        linked.and_then(|()| sync(path))
    })
}

fn publish(
    path: &Path,
    data: &[u8],
    name: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<bool, CollectorError> {
    let temporary = temporary(path);
    let written = write(&temporary, data).and_then(|file| file::settled(file.sync_all()));
    let written = written.and_then(|()| name(&temporary));
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(CollectorError::write(path, error))
        }
    }
}

/// A unique name in the same folder.
fn temporary(path: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!("{TEMPORARY}{}-{number}", std::process::id()))
}

fn write(path: &Path, data: &[u8]) -> io::Result<File> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(data)?;
    Ok(file)
}

/// A lock that is held as long as the value lives; None while another process has it.
pub(super) fn lock(path: &Path) -> Result<Option<Locked>, CollectorError> {
    let file = File::create(path).map_err(|error| CollectorError::write(path, error))?;
    match Locked::new(file, false) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if file::is_taken(&error) => Ok(None),
        Err(error) => Err(CollectorError::write(path, error)),
    }
}

/// Syncs the folder of a file, which holds the file's name.
fn sync(path: &Path) -> io::Result<()> {
    file::settled(File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all())
}

/// Moves a file within or between folders of the spool.
pub(super) fn relocate(from: &Path, to: &Path) -> Result<(), CollectorError> {
    rename(from, to).map_err(|error| CollectorError::write(to, error))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).and_then(|()| sync(to))
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> Result<(), CollectorError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CollectorError::write(path, error))
        }
        _ => Ok(()),
    }
}

/// Removes temporary files of killed writers.
pub(super) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let modified = entry.metadata().and_then(|data| data.modified());
        let age = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if is_temporary && age.is_some_and(|age| age > FORGOTTEN) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
