//! How an input reaches the target: through its stdin, a file, or shared memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::AT_FDCWD;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

use super::TargetError;
use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::file;
use ffuzz_sys::memory::SharedMap;

/// Access time set on each delivery; unchanged if nobody has read the input.
const UNREAD: TimeSpec = TimeSpec::new(1, 0);

/// A way to deliver inputs.
#[derive(Debug)]
pub(crate) enum InputDelivery {
    /// An anonymous file that is the target's descriptor 0, rewritten in place. A file on disk would cost two
    /// journal entries per run: for the new size and the new access time.
    Stdin { file: File, path: PathBuf, watched: bool },
    /// A file that the target opens, created again for every run unless `keep`. `ours`: the fuzzer wrote the
    /// file, so anything else at this path comes from the target.
    Named { path: PathBuf, keep: bool, ours: Arc<AtomicBool>, watched: bool },
    /// AFL's shared-memory test case: length, then the bytes.
    Shared { map: SharedMap },
    /// Nothing: the target inherits stdin.
    Inherit,
}

impl InputDelivery {
    /// Creates the file for the target's stdin; `path` becomes a link to it, so that users can read
    /// the current input.
    pub(crate) fn stdin(path: &Path) -> Result<Self, TargetError> {
        let error = |source| failed(path, source);
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
        // Created without permission to seal, so a target cannot lock the fuzzer out.
        let file = memfd_create(c"ffuzz-input", MFdFlags::MFD_CLOEXEC);
        let file = File::from(file.map_err(|errno| error(errno.into()))?);
        let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        match std::os::unix::fs::symlink(name, path) {
            Err(source) if !file::has_no_links(&source) => return Err(error(source)),
            _ => {}
        }
        Ok(Self::Stdin { file, path: path.into(), watched: false })
    }

    /// Makes [`Self::was_read`] detect more, at the cost of one system call per delivery.
    pub(crate) fn watch(&mut self, yes: bool) {
        if let Self::Stdin { watched, .. } | Self::Named { watched, .. } = self {
            *watched = yes;
        }
    }

    /// Returns true if the last input was read or mapped into memory. None if unknown: without [`Self::watch`],
    /// on a file system without access times, or if the input is in no file.
    pub(crate) fn was_read(&mut self) -> Option<bool> {
        // The offset is shared with the target.
        if let Self::Stdin { file, .. } = self
            && file.stream_position().ok()? > 0
        {
            return Some(true);
        }
        let (Self::Stdin { watched: true, .. } | Self::Named { watched: true, .. }) = self else {
            return None;
        };
        let path = self.file()?;
        let is_marked = || Some(path.metadata().ok()?.atime() == UNREAD.tv_sec());
        if !is_marked()? {
            return Some(true);
        }
        // The test read must change the access time; otherwise an unchanged one proves nothing.
        File::open(&path).ok()?.read_exact(&mut [0]).ok()?;
        (!is_marked()?).then_some(false)
    }

    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Stdin { file, .. } => Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into()),
            Self::Named { path, .. } => Some(path.clone()),
            Self::Shared { .. } | Self::Inherit => None,
        }
    }

    /// Delivers one input.
    pub(crate) fn deliver(&mut self, input: &[u8]) -> Result<(), TargetError> {
        self.write(input)?;
        if let Self::Stdin { watched: true, .. } | Self::Named { watched: true, .. } = self
            && let Some(path) = self.file()
        {
            let (path, follow) = (&path, UtimensatFlags::FollowSymlink);
            // If this fails, `was_read` draws no conclusion.
            let _ = utimensat(AT_FDCWD, path, &UNREAD, &TimeSpec::UTIME_OMIT, follow);
        }
        Ok(())
    }

    fn write(&mut self, input: &[u8]) -> Result<(), TargetError> {
        match self {
            Self::Stdin { file, path, .. } => {
                write_in_place(file, input).map_err(|source| failed(path, source))
            }
            Self::Named { path, keep, ours, .. } => {
                let was_ours = ours.load(Ordering::Relaxed);
                write_named(path, *keep, was_ours, input).map_err(|source| failed(path, source))?;
                if !was_ours {
                    // If it is a link of the user's, the file that it points to is kept.
                    ours.store(!(*keep && path.is_symlink()), Ordering::Relaxed);
                }
                Ok(())
            }
            Self::Shared { map } => {
                let len = input.len().min(MAX_INPUT);
                let length = &mut map.words_mut(0, 1)[0];
                let before = usize::try_from(*length).unwrap_or(MAX_INPUT).min(MAX_INPUT);
                *length = u32::try_from(len).unwrap_or(u32::MAX);
                let bytes = map.bytes_mut(4, len.max(before));
                bytes[..len].copy_from_slice(&input[..len]);
                // A target that reads past the end must not see the previous input.
                bytes[len..].fill(0);
                Ok(())
            }
            Self::Inherit => Ok(()),
        }
    }
}

/// Source of a run's input.
pub(super) enum Feed<'a> {
    Input(&'a [u8]),
    /// A mutator sends it: before the run, or after the process has started if `late`.
    Sent {
        late: bool,
        send: &'a mut dyn FnMut(),
    },
}

impl Feed<'_> {
    /// Delivers or sends the input; call it before the run is ordered.
    pub(super) fn before(&mut self, delivery: &mut InputDelivery) -> Result<(), TargetError> {
        match self {
            Self::Input(input) => return delivery.deliver(input),
            Self::Sent { late: false, send } => send(),
            Self::Sent { late: true, .. } => {}
        }
        Ok(())
    }

    /// Sends a late input; call it when the process of the run has started.
    pub(super) fn once_started(&mut self) {
        if let Self::Sent { late: true, send } = self {
            send();
        }
    }
}

/// Rewrites an open file and rewinds it: the offset is shared with the target.
fn write_in_place(file: &mut File, input: &[u8]) -> io::Result<()> {
    file.write_all_at(input, 0)?;
    // Always truncate: the target can write to its stdin and may have extended it.
    file.set_len(input.len() as u64)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> TargetError {
    let path = path.into();
    match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => TargetError::Full { path },
        _ => TargetError::Deliver { path, source },
    }
}

/// Maximum number of attempts at creating the file: a process that the target left running may block the path
/// again.
const ATTEMPTS: usize = 8;

fn write_named(path: &Path, keep: bool, ours: bool, input: &[u8]) -> io::Result<()> {
    if keep && let Some(mut file) = open_kept(path, ours)? {
        file.set_len(0)?;
        return file.write_all(input);
    }
    let mut made = clear(path, ours).and_then(|()| make(path));
    for _ in 1..ATTEMPTS {
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                made = clear(path, ours).and_then(|()| make(path));
            }
            result => return result?.write_all(input),
        }
    }
    made?.write_all(input)
}

fn make(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens the file that is kept between runs; None if it does not exist or the target replaced it. Links made by
/// the target are not followed, and opening a pipe does not block.
fn open_kept(path: &Path, ours: bool) -> io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | if ours { libc::O_NOFOLLOW } else { 0 };
    let opened = OpenOptions::new().write(true).create(!ours).custom_flags(flags).open(path);
    match opened {
        Ok(file) if !ours || file.metadata()?.is_file() => Ok(Some(file)),
        Err(error) if !ours => Err(error),
        _ => Ok(None),
    }
}

/// Removes the entry at this path; a folder only if the target created it (`ours`).
fn clear(path: &Path, ours: bool) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) if ours && path.symlink_metadata().is_ok_and(|data| data.is_dir()) => {
            std::fs::remove_dir_all(path)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn stdin_file_holds_exactly_the_last_input() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".cur_input");
        let mut delivery = InputDelivery::stdin(&path).unwrap();
        for input in [b"long input".as_slice(), b"short", b"", b"longer than all before"] {
            delivery.deliver(input).unwrap();
            let InputDelivery::Stdin { file, .. } = &mut delivery else { panic!("stdin") };
            let mut seen = Vec::new();
            file.read_to_end(&mut seen).unwrap();
            assert_eq!(seen, input);
            assert_eq!(std::fs::read(&path).unwrap(), input);
        }
    }

    fn named(path: &Path, keep: bool) -> InputDelivery {
        InputDelivery::Named { path: path.into(), keep, ours: Arc::default(), watched: false }
    }

    #[test]
    fn what_the_target_puts_in_place_of_the_file_is_removed() {
        for keep in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (path, victim) = (dir.path().join("input"), dir.path().join("victim"));
            std::fs::write(&victim, "safe").unwrap();
            let mut delivery = named(&path, keep);
            delivery.deliver(b"one").unwrap();
            let harm: [&dyn Fn(); 5] = [
                &|| {
                    std::fs::create_dir(&path).unwrap();
                    std::fs::write(path.join("inside"), "x").unwrap();
                },
                &|| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
                &|| std::os::unix::fs::symlink(&victim, &path).unwrap(),
                &|| std::os::unix::fs::symlink("nowhere", &path).unwrap(),
                &|| {},
            ];
            for (index, harm) in harm.into_iter().enumerate() {
                std::fs::remove_file(&path).unwrap();
                harm();
                delivery.deliver(b"two").unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), b"two", "{index}");
                assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
                assert_eq!(std::fs::read(&victim).unwrap(), b"safe");
            }
        }
    }

    #[test]
    fn a_folder_of_the_users_is_left_alone() {
        for keep in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            assert!(named(dir.path(), keep).deliver(b"one").is_err());
            assert!(dir.path().is_dir());
        }
    }

    #[test]
    fn named_file_is_replaced_even_if_the_target_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("input");
        let mut delivery = named(&path, false);
        delivery.deliver(b"one").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        delivery.deliver(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
    }
}
