//! Syncs queue entries so that they survive a power failure, without slowing down the fuzzing.
//!
//! A renamed file is complete for every reader, but the kernel may keep its bytes in memory for half a minute. Crashes
//! and hangs are few and are synced before they get their name; queue entries are many, and a thread syncs them later.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ffuzz_sys::file;

/// Time for which files are collected before a sync: the second one costs less than the first.
const GATHER: Duration = Duration::from_secs(1);

/// Syncs files in a thread. Dropping it first finishes the queued files.
#[derive(Debug)]
pub(super) struct Settler {
    sender: Option<Sender<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

impl Settler {
    /// Starts the thread; if that fails, the kernel syncs in its own time.
    pub(super) fn new() -> Self {
        let (sender, paths) = channel();
        let thread = thread::Builder::new().name("settle".into()).spawn(move || work(&paths, sync));
        Self { sender: Some(sender), thread: thread.ok() }
    }

    pub(super) fn settle(&self, path: &Path) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(path.to_owned());
        }
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Syncs the received files. Ignores errors: a file may be removed already, and the next write reports a failing disk.
fn work(paths: &Receiver<PathBuf>, sync: impl Fn(&Path) -> io::Result<()>) {
    while let Ok(first) = paths.recv() {
        let mut files = BTreeSet::from([first]);
        let end = Instant::now() + GATHER;
        let closed = loop {
            match paths.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(path) => _ = files.insert(path),
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        for path in files.iter().map(PathBuf::as_path).chain(folders) {
            let _ = sync(path);
        }
        if closed {
            break;
        }
    }
}

/// Waits until a file, or the names in a folder, are on the disk.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    file::settled(options.read(true).custom_flags(libc::O_NONBLOCK).open(path)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn files_and_then_their_folder_are_brought_to_the_disk_before_the_end() {
        let (sender, paths) = channel();
        for name in ["queue/a", "queue/b", "queue/a"] {
            sender.send(PathBuf::from(name)).unwrap();
        }
        drop(sender);
        let synced = RefCell::new(Vec::new());
        work(&paths, |path| {
            synced.borrow_mut().push(path.to_owned());
            Err(io::ErrorKind::NotFound.into())
        });
        assert_eq!(synced.take(), ["queue/a", "queue/b", "queue"].map(PathBuf::from));
    }

    #[test]
    fn dropping_waits_for_what_was_handed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"x").unwrap();
        sync(&path).unwrap();
        sync(dir.path()).unwrap();
        let settler = Settler::new();
        settler.settle(&path);
        drop(settler);
    }
}
