//! Imports of other fuzzers' finds: existing instances, new files, read positions.
//!
//! Instances in the same output folder are found by listing `*/queue`; each is read from the number in `.synced/NAME`
//! (AFL's file), and the kernel reports later files. So only new files cost work. Writes nothing.

mod queue;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::queue::QueueFolder;
use ffuzz_sys::watch::{FolderWatch, News};

/// Maximum time by which another machine's clock may be ahead.
const SKEW: Duration = Duration::from_secs(86_400);

/// An input of another fuzzer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Import {
    /// The instance's name, or one made from the folder's.
    pub peer: &'static str,
    /// Its number there.
    pub number: u32,
    pub data: Vec<u8>,
}

/// Read position in a folder.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Position {
    /// Next number.
    pub next: u32,
    /// For a folder without numbers: time of the newest file, nanoseconds since 1970.
    pub newest: u64,
}

impl Position {
    /// Parses a file of `.synced`: AFL's 4 bytes, and ffuzz's after them. None for invalid content: a wrong length, or
    /// a time in the future.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (next, newest) = bytes.split_first_chunk()?;
        let newest = match newest.first_chunk() {
            Some(word) if newest.len() == size_of_val(word) => u64::from_le_bytes(*word),
            None if newest.is_empty() => 0,
            _ => return None,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + SKEW;
        let plausible = u128::from(newest) <= now.as_nanos();
        plausible.then_some(Self { next: u32::from_le_bytes(*next), newest })
    }

    /// Formats a file of `.synced`.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.next.to_le_bytes().to_vec();
        if self.newest > 0 {
            bytes.extend(self.newest.to_le_bytes());
        }
        bytes
    }
}

/// Folders to read.
#[derive(Clone, Debug, Default)]
pub struct SyncFolders {
    /// Folder whose subfolders are instances, and the one to skip: the fuzzer's own.
    pub instances: Option<(PathBuf, String)>,
    /// Folders of other tools (`-F`).
    pub folders: Vec<PathBuf>,
    /// Time between two listings of all folders: some file systems do not report what others write.
    pub relist: Duration,
}

/// All other fuzzers.
#[derive(Debug)]
pub struct Peers {
    places: SyncFolders,
    queues: Vec<QueueFolder>,
    /// Names are leaked: the origins of seeds refer to them.
    names: BTreeMap<String, &'static str>,
    watch: Option<FolderWatch>,
    listed: Instant,
    /// Unreadable folders and the cause: reported once, and again when the cause changes.
    unreadable: BTreeMap<PathBuf, String>,
    notes: Vec<String>,
}

impl Peers {
    /// Creates the list without reading a folder.
    #[must_use]
    pub fn new(places: SyncFolders) -> Self {
        Self {
            places,
            queues: Vec::new(),
            names: BTreeMap::new(),
            watch: FolderWatch::new(),
            listed: Instant::now(),
            unreadable: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Lists the instances and their new files. `known` returns the read position of a folder.
    pub fn look(&mut self, known: impl Fn(&str) -> Position) {
        self.find_instances(&known);
        self.find_folders(&known);
        self.receive();
        let all = self.listed.elapsed() >= self.places.relist;
        if all {
            self.listed = Instant::now();
        }
        let mut results = Vec::new();
        for queue in &mut self.queues {
            let result = match (all, queue.watch) {
                (true, _) => queue.list(),
                (false, None) => queue.list_if_changed(),
                (false, Some(_)) => continue,
            };
            if result.is_err() {
                queue.watch = None;
            }
            results.push((queue.folder.clone(), result));
        }
        self.drop_missing();
        for (folder, result) in results {
            self.note_reading(&folder, &result);
        }
        self.note_strange();
    }

    /// Takes the next input, from the instances in turn.
    pub fn take(&mut self) -> Option<Import> {
        for _ in 0..self.queues.len() {
            let found = self.queues[0].take();
            self.queues.rotate_left(1);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Positions that have moved since the last call.
    pub fn moved(&mut self) -> Vec<(&'static str, Position)> {
        let moved = |queue: &mut QueueFolder| std::mem::take(&mut queue.moved);
        let queues = self.queues.iter_mut();
        queues.filter_map(|queue| moved(queue).then_some((queue.name, queue.position))).collect()
    }

    /// Messages for the user.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn find_instances(&mut self, known: &impl Fn(&str) -> Position) {
        let Some((root, own)) = &self.places.instances else { return };
        let Ok(entries) = fs::read_dir(root) else { return };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let there = self.queues.iter().any(|queue| queue.name == name);
            let folder = entry.path().join("queue");
            let is_folder = fs::symlink_metadata(&folder).is_ok_and(|data| data.is_dir());
            if name != *own && !name.starts_with('.') && !there && is_folder {
                found.push((name, folder));
            }
        }
        found.sort();
        for (name, folder) in found {
            self.add(&name, folder, true, known);
        }
    }

    fn find_folders(&mut self, known: &impl Fn(&str) -> Position) {
        for (index, folder) in self.places.folders.clone().into_iter().enumerate() {
            if !self.queues.iter().any(|queue| queue.folder == folder) && folder.is_dir() {
                self.add(&folder_name(&folder, index), folder, false, known);
            }
        }
    }

    /// Adds a folder. Watches before listing: files in between are reported twice, not missed.
    fn add(
        &mut self,
        name: &str,
        folder: PathBuf,
        numbered: bool,
        known: &impl Fn(&str) -> Position,
    ) {
        let name =
            *self.names.entry(name.to_owned()).or_insert_with_key(|name| name.clone().leak());
        let mut queue = QueueFolder::new(name, folder, numbered, known(name));
        queue.watch = self.watch.as_ref().and_then(|watch| watch.add(&queue.folder));
        let result = queue.list();
        self.note_reading(&queue.folder, &result);
        if result.is_ok() {
            self.queues.push(queue);
        } else if let (Some(watch), Some(folder)) = (&self.watch, queue.watch) {
            watch.forget(folder);
        }
    }

    /// Reports a folder that cannot be read, and when it can be read again. Ignores a removed one.
    fn note_reading(&mut self, folder: &Path, result: &io::Result<()>) {
        let shown = folder.display();
        match result {
            Ok(()) => {
                if self.unreadable.remove(folder).is_some() {
                    self.notes.push(format!("{shown} can be read again"));
                }
            }
            Err(_) if !folder.is_dir() => {
                self.unreadable.remove(folder);
            }
            Err(error) => {
                let cause = error.to_string();
                let before = self.unreadable.insert(folder.to_owned(), cause.clone());
                if before.as_ref() != Some(&cause) {
                    let remedy = "the fuzzer tries again; allow this user to list it (chmod +rx)";
                    self.notes.push(format!("cannot read {shown}: {cause}; {remedy}"));
                }
            }
        }
    }

    fn receive(&mut self) {
        let Some(watch) = &self.watch else { return };
        for news in watch.news() {
            let of = |folder| move |queue: &&mut QueueFolder| queue.watch == Some(folder);
            let mut queues = self.queues.iter_mut();
            match news {
                News::File { folder, name } => {
                    queues.find(of(folder)).into_iter().for_each(|queue| queue.came(&name, true));
                }
                News::Name { folder, name } => {
                    queues.find(of(folder)).into_iter().for_each(|queue| queue.came(&name, false));
                }
                News::Gone { folder } => {
                    queues.find(of(folder)).into_iter().for_each(|queue| queue.watch = None);
                }
                News::Lost => queues.for_each(|queue| {
                    let _ = queue.list();
                }),
            }
        }
    }

    /// Drops removed folders, as if they had never existed.
    fn drop_missing(&mut self) {
        let watch = self.watch.as_ref();
        self.queues.retain(|queue| {
            let there = queue.folder.is_dir();
            if let (false, Some(watch), Some(folder)) = (there, watch, queue.watch) {
                watch.forget(folder);
            }
            there
        });
    }

    fn note_strange(&mut self) {
        for queue in &mut self.queues {
            if let Some(name) = queue.take_strange() {
                let folder = queue.folder.display();
                self.notes.push(format!(
                    "{name:?} in {folder} has no number: such files are not imported (-F takes any name)"
                ));
            }
            if let Some(name) = queue.take_link() {
                let folder = queue.folder.display();
                self.notes.push(format!(
                    "{name:?} in {folder} is a link: links are not imported; copy the files"
                ));
            }
        }
    }
}

/// AFL's names for folders that are no instances.
fn folder_name(folder: &Path, index: usize) -> String {
    let last = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    match last.as_deref() {
        None | Some("queue" | "out" | "default") => format!("foreign_{index}"),
        Some(name) => format!("{name}_{index}"),
    }
}

#[cfg(test)]
mod tests;
