//! Files of watched folders, found by repeated listing.
//!
//! inotify(7) would need a watch per folder, misses events in new folders, and does not work on network file systems. A
//! file counts as complete when its size and change time are equal in two successive scans.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{TraceListener, WatchListener, skipped};
use crate::disk::inputs::{self, InputError};
use crate::sys::file;

/// A complete file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::cmin) struct FoundFile {
    pub(in crate::cmin) path: PathBuf,
    pub(in crate::cmin) len: u64,
    pub(in crate::cmin) changed: (i64, i64),
}

/// Attributes that differ between two contents of one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    len: u64,
    changed: (i64, i64),
    place: (u64, u64),
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Self {
        Self {
            len: data.len(),
            changed: (data.mtime(), data.mtime_nsec()),
            place: (data.dev(), data.ino()),
        }
    }
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    is_taken: bool,
    /// Number of the last scan that saw the file.
    look: u64,
}

#[derive(Debug)]
pub(super) struct WatchedFolders {
    roots: Vec<PathBuf>,
    files: HashMap<PathBuf, Seen>,
    look: u64,
    /// Unreadable paths that were already reported.
    named: HashSet<PathBuf>,
}

impl WatchedFolders {
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, files: HashMap::new(), look: 0, named: HashSet::new() }
    }

    /// Takes all files present at the start. A file that is still being written changes, and is found again.
    pub(super) fn begin(
        &mut self,
        listener: &dyn WatchListener,
    ) -> Result<Vec<FoundFile>, InputError> {
        for root in &self.roots {
            inputs::check_folder(root)?;
        }
        self.look(true, listener);
        let mut found = Vec::new();
        for (path, seen) in self.files.iter_mut().filter(|(_, seen)| seen.stamp.len > 0) {
            seen.is_taken = true;
            found.push(seen.found(path));
        }
        Ok(found)
    }

    /// Takes the files that have become complete since the last scan, smallest first. `all` also checks taken files for
    /// new content, which costs a system call per file.
    pub(super) fn look(&mut self, all: bool, listener: &dyn TraceListener) -> Vec<FoundFile> {
        self.look += 1;
        let mut found = Vec::new();
        let mut folders = self.roots.clone();
        while let Some(folder) = folders.pop() {
            if let Err(error) = self.list(&folder, all, &mut folders, &mut found, listener) {
                // A subfolder may just have been removed.
                if !file::is_missing(&error) || self.roots.contains(&folder) {
                    self.name_once(
                        InputError::Folder { folder: folder.clone(), source: error },
                        &folder,
                        listener,
                    );
                }
            }
        }
        let look = self.look;
        self.files.retain(|_, seen| seen.look == look);
        found.sort_by(|a, b| (a.len, a.path.as_os_str()).cmp(&(b.len, b.path.as_os_str())));
        found
    }

    fn list(
        &mut self,
        folder: &Path,
        all: bool,
        folders: &mut Vec<PathBuf>,
        found: &mut Vec<FoundFile>,
        listener: &dyn TraceListener,
    ) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            if !all && let Some(seen) = self.files.get_mut(&path).filter(|seen| seen.is_taken) {
                seen.look = self.look;
                continue;
            }
            match fs::metadata(&path) {
                Ok(data) if data.is_file() => found.extend(self.see(path, &data)),
                Ok(_) => {}
                // The file has vanished, or is a dangling link.
                Err(error) if file::is_missing(&error) => {}
                Err(error) => self.name_once(InputError::file(&path, error), &path, listener),
            }
        }
        Ok(())
    }

    /// Returns the file if it is complete and was not taken before.
    fn see(&mut self, path: PathBuf, data: &fs::Metadata) -> Option<FoundFile> {
        let stamp = Stamp::of(data);
        let look = self.look;
        match self.files.get_mut(&path) {
            Some(seen) if seen.stamp == stamp => {
                seen.look = look;
                if seen.is_taken || stamp.len == 0 {
                    return None;
                }
                seen.is_taken = true;
                Some(seen.found(&path))
            }
            Some(seen) => {
                *seen = Seen { stamp, is_taken: false, look };
                None
            }
            None => {
                self.files.insert(path, Seen { stamp, is_taken: false, look });
                None
            }
        }
    }

    /// Returns true if a file is unchanged since the last scan.
    pub(super) fn is_current(&self, path: &Path) -> bool {
        let now = fs::metadata(path).ok().map(|data| Stamp::of(&data));
        self.files.get(path).is_some_and(|seen| Some(seen.stamp) == now)
    }

    fn name_once(&mut self, error: InputError, path: &Path, listener: &dyn TraceListener) {
        if self.named.insert(path.to_owned()) {
            listener.warns(&skipped(&error));
        }
    }

    /// Takes all files once more.
    pub(super) fn forget(&mut self) {
        self.files.values_mut().for_each(|seen| seen.is_taken = false);
    }
}

impl Seen {
    fn found(&self, path: &Path) -> FoundFile {
        FoundFile { path: path.to_owned(), len: self.stamp.len, changed: self.stamp.changed }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Warnings(Mutex<Vec<String>>);

    impl TraceListener for Warnings {
        fn reads(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }
        fn traced(&self, _: usize) {}
        fn starts_over(&self) {}
        fn warns(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn a_file_is_taken_once_it_has_stopped_changing() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let warnings = Warnings::default();
        let watched = RefCell::new(WatchedFolders::new(vec![dir.path().to_owned()]));
        let look = || {
            let found = watched.borrow_mut().look(true, &warnings);
            let name = |file: FoundFile| file.path.strip_prefix(dir.path()).unwrap().to_owned();
            found.into_iter().map(|file| name(file).display().to_string()).collect::<Vec<_>>()
        };
        fs::write(path("a"), "1").unwrap();
        fs::write(path(".hidden"), "1").unwrap();
        fs::write(path("empty"), "").unwrap();
        assert!(look().is_empty());
        fs::write(path("a"), "12").unwrap();
        assert!(look().is_empty());
        assert_eq!(look(), ["a"]);
        assert!(look().is_empty());
        // Moved into a new folder and written again.
        fs::create_dir_all(path("x/y")).unwrap();
        fs::rename(path(".hidden"), path("x/y/b")).unwrap();
        fs::write(path("a"), "123").unwrap();
        assert!(look().is_empty());
        assert_eq!(look(), ["x/y/b", "a"]);
        // Another file with the same name and size.
        fs::write(path("x/y/c"), "456").unwrap();
        fs::rename(path("x/y/c"), path("a")).unwrap();
        assert!(look().is_empty());
        fs::write(path("empty"), "no longer").unwrap();
        assert_eq!(look(), ["a"]);
        assert_eq!(look(), ["empty"]);
        fs::remove_dir_all(path("x")).unwrap();
        assert!(look().is_empty());
        // Only a scan of all files detects the change.
        fs::write(path("a"), "another one").unwrap();
        assert!((0..3).all(|_| watched.borrow_mut().look(false, &warnings).is_empty()));
        assert!(look().is_empty());
        assert_eq!(look(), ["a"]);
        watched.borrow_mut().forget();
        assert_eq!(look(), ["empty", "a"]);
        assert!(warnings.0.lock().unwrap().is_empty());
        // A missing folder is reported once.
        fs::remove_dir_all(dir.path()).unwrap();
        for _ in 0..2 {
            assert!(look().is_empty());
        }
        let warnings = warnings.0.lock().unwrap();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("cannot read the folder"), "{warnings:?}");
    }
}
