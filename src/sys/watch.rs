//! News of folders from the kernel (inotify(7)).

use std::ffi::OsString;
use std::path::Path;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// What happened in a watched folder.
#[derive(Debug, Eq, PartialEq)]
pub enum News {
    /// A file is complete: closed by its writer, or put there under this name.
    File { folder: WatchDescriptor, name: OsString },
    /// A name has appeared. It may be a link to a complete file, or a file that is being written.
    Name { folder: WatchDescriptor, name: OsString },
    /// The folder is not there any more.
    Gone { folder: WatchDescriptor },
    /// More happened than the kernel could note.
    Lost,
}

/// Watched folders.
#[derive(Debug)]
pub struct FolderWatch {
    kernel: Inotify,
}

impl FolderWatch {
    /// None if the kernel has no room for one more watcher.
    pub fn new() -> Option<Self> {
        let flags = InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC;
        Some(Self { kernel: Inotify::init(flags).ok()? })
    }

    pub fn add(&self, folder: &Path) -> Option<WatchDescriptor> {
        let flags = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        self.kernel.add_watch(folder, flags).ok()
    }

    pub fn forget(&self, folder: WatchDescriptor) {
        let _ = self.kernel.rm_watch(folder);
    }

    /// Becomes readable with the next news.
    #[must_use]
    pub fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.kernel)
    }

    /// All that has happened since the last call.
    pub fn news(&self) -> Vec<News> {
        let mut news = Vec::new();
        while let Ok(events) = self.kernel.read_events() {
            news.extend(events.into_iter().filter_map(|event| {
                let (folder, mask) = (event.wd, event.mask);
                if mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    return Some(News::Lost);
                }
                let gone = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
                if mask.intersects(gone | AddWatchFlags::IN_UNMOUNT) {
                    return Some(News::Gone { folder });
                }
                let name = event.name?;
                if mask.contains(AddWatchFlags::IN_CREATE) {
                    return Some(News::Name { folder, name });
                }
                Some(News::File { folder, name })
            }));
        }
        news
    }
}
