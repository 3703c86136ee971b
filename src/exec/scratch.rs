//! A temporary place for a target's input file, outside every campaign.
//!
//! It is a separate folder with an unpredictable name and a lock: the next process removes what a
//! killed one leaves behind.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ffuzz_sys::file::Locked;

/// Prefix of the folder's name.
const PREFIX: &str = ".ffuzz-";
/// Minimum age for removal: a younger folder may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Temporary folder, removed with its content when dropped.
#[derive(Debug)]
pub struct Scratch {
    /// Path of the target's input file.
    pub file: PathBuf,
    pub folder: PathBuf,
    _lock: Option<Locked>,
}

impl Scratch {
    /// Creates the folder. `tool` is part of its name; `extension` is that of the file.
    #[must_use]
    pub fn new(tool: &str, extension: Option<&str>) -> Self {
        let around = std::env::temp_dir();
        sweep(&around);
        let template = around.join(format!("{PREFIX}{tool}-XXXXXX"));
        // If no folder can be created, writing the file reports the error.
        let folder = nix::unistd::mkdtemp(&template).unwrap_or(template);
        let lock = File::open(&folder).and_then(|folder| Locked::new(folder, false)).ok();
        let name = extension.map_or("input".to_owned(), |extension| format!("input.{extension}"));
        Self { file: folder.join(name), folder, _lock: lock }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes folders of processes that have ended.
fn sweep(around: &Path) {
    let own = nix::unistd::geteuid().as_raw();
    for entry in fs::read_dir(around).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        let Some(data) = entry.metadata().ok().filter(|data| is_ours && data.is_dir()) else {
            continue;
        };
        let age = data.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if data.uid() != own || age.is_none_or(|age| age < YOUNG) {
            continue;
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY);
        let lock = options.open(entry.path()).and_then(|folder| Locked::new(folder, false));
        if lock.is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("input"), "x").unwrap();
            let folder = File::open(folder).unwrap();
            folder.set_modified(SystemTime::now() - YOUNG * 2).unwrap();
            folder
        };
        make(".ffuzz-triage-left");
        make("mine");
        let _lock = Locked::new(make(".ffuzz-triage-used"), false).unwrap();
        sweep(dir.path());
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".ffuzz-triage-used", "mine"]);
    }
}
