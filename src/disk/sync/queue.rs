//! One folder to import from: another instance's queue, or any folder (`-F`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::inotify::WatchDescriptor;

use super::{Import, Position};
use ffuzz_engine::corpus::names;
use ffuzz_sys::file;

/// Maximum size of an imported input, bytes, as in AFL.
const MOST_BYTES: u64 = 1 << 20;

/// A folder and its read position.
#[derive(Debug)]
pub(super) struct QueueFolder {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    /// True for an instance's queue, ordered by names. Other folders are ordered by times.
    numbered: bool,
    pub(super) position: Position,
    /// True if the position has changed since it was taken.
    pub(super) moved: bool,
    /// Unread files: number or time in nanoseconds, and name.
    waiting: BTreeSet<(u64, String)>,
    /// Last file of a listing. It may have been incomplete, so it is read again when it is closed.
    last_listed: Option<u64>,
    pub(super) watch: Option<WatchDescriptor>,
    /// For an unwatched folder: its modification time at the last listing.
    changed: Option<(i64, i64)>,
    strange: Option<String>,
    /// First link found; empty once reported.
    link: Option<String>,
}

impl QueueFolder {
    pub(super) fn new(
        name: &'static str,
        folder: PathBuf,
        numbered: bool,
        position: Position,
    ) -> Self {
        Self {
            name,
            folder,
            numbered,
            position,
            moved: false,
            waiting: BTreeSet::new(),
            last_listed: None,
            watch: None,
            changed: None,
            strange: None,
            link: None,
        }
    }

    /// Records every file after the position. Costs a full listing, however few are new.
    pub(super) fn list(&mut self) -> io::Result<()> {
        let changed = fs::metadata(&self.folder).ok().map(|data| (data.mtime(), data.mtime_nsec()));
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match self.key(&entry.file_name()) {
                Some((_, name)) if is_link => _ = self.link.get_or_insert(name),
                key => found.extend(key),
            }
        }
        self.changed = changed;
        self.last_listed = found.last().map(|(key, _)| *key);
        let listed = self.last_listed.map_or(0, |last| last + 1);
        if self.numbered && listed < self.position.next.into() {
            // Fewer files than were read: the instance started again, or the position is damaged.
            self.position = Position::default();
        }
        let start = self.start();
        self.waiting.extend(found.into_iter().filter(|(key, _)| *key >= start));
        Ok(())
    }

    /// Lists again if the folder has changed since the last time.
    pub(super) fn list_if_changed(&mut self) -> io::Result<()> {
        let data = fs::metadata(&self.folder)?;
        if self.changed == Some((data.mtime(), data.mtime_nsec())) { Ok(()) } else { self.list() }
    }

    /// Records a new file; if not `complete`, only a name was created.
    pub(super) fn came(&mut self, name: &OsStr, complete: bool) {
        if !complete && !is_linked(&self.folder.join(name)) {
            return;
        }
        let Some((key, name)) = self.key(name) else { return };
        let again = self.last_listed == Some(key);
        if key >= self.start() || again || !self.numbered {
            self.last_listed = self.last_listed.filter(|_| !again);
            self.waiting.insert((key, name));
        }
    }

    /// Takes the next readable input. Skips empty and too large ones, and everything that is no file.
    pub(super) fn take(&mut self) -> Option<Import> {
        while let Some((key, name)) = self.waiting.pop_first() {
            self.moved = true;
            let number = if self.numbered {
                let number = u32::try_from(key).unwrap_or(u32::MAX);
                self.position.next = self.position.next.max(number.saturating_add(1));
                number
            } else {
                self.position.newest = self.position.newest.max(key);
                self.position.next
            };
            let path = self.folder.join(&name);
            let Some(data) = read(&path) else {
                if path.is_symlink() {
                    self.link.get_or_insert(name);
                }
                continue;
            };
            if !self.numbered {
                self.position.next = self.position.next.saturating_add(1);
            }
            return Some(Import { peer: self.name, number, data });
        }
        None
    }

    /// Takes the first name that is not AFL's, once.
    pub(super) fn take_strange(&mut self) -> Option<String> {
        once(&mut self.strange)
    }

    /// Takes the first file skipped because it is a link, once.
    pub(super) fn take_link(&mut self) -> Option<String> {
        once(&mut self.link)
    }

    /// First key that is new.
    fn start(&self) -> u64 {
        match self.numbered {
            true => self.position.next.into(),
            false => self.position.newest + 1,
        }
    }

    fn key(&mut self, name: &OsStr) -> Option<(u64, String)> {
        let name = name.to_str()?;
        if name.starts_with('.') || name == "README.txt" {
            return None;
        }
        if !self.numbered {
            let data = fs::symlink_metadata(self.folder.join(name)).ok()?;
            let nanoseconds =
                i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec());
            return Some((u64::try_from(nanoseconds).unwrap_or(0), name.to_owned()));
        }
        let parsed = names::parse(name);
        if parsed.is_none() && self.strange.is_none() {
            self.strange = Some(name.to_owned());
        }
        Some((parsed?.id.into(), name.to_owned()))
    }
}

/// Takes a name that is to be reported once, and leaves an empty one.
fn once(name: &mut Option<String>) -> Option<String> {
    let taken = name.take().filter(|name| !name.is_empty())?;
    *name = Some(String::new());
    Some(taken)
}

/// True for a hard link, whose file was complete before, or a symbolic link.
fn is_linked(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink() || data.nlink() > 1)
}

/// Reads an input. None for invalid ones and for links: a peer could link to a file that only this user may read.
fn read(path: &Path) -> Option<Vec<u8>> {
    let data = file::read_unlinked(path, MOST_BYTES).ok()?;
    (!data.is_empty()).then_some(data)
}
