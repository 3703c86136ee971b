//! Opening files of unknown kind.
//!
//! A name in a folder may be a FIFO, which blocks on opening, a device that never ends, or a link
//! to a foreign file. A user's file is read through [`read`] and [`read_whole`], a file of our
//! own is opened by [`append`] and [`create`]. Nothing here follows a link in order to write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// A failure that may pass is retried for this long, after this pause each time.
pub const PATIENCE: Duration = Duration::from_secs(5);
pub const RETRY: Duration = Duration::from_millis(100);

/// Opens a regular file for reading, also through a link. Anything else is an error that names it, at
/// once.
pub fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

/// The first `most` bytes of a file.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    open(path)?.take(most).read_to_end(&mut data)?;
    Ok(data)
}

/// A whole file, not through a link: whoever may write to the folder could make one to any file.
pub fn read_unlinked(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(name_link)?;
    whole(regular(file)?, most)
}

/// A whole file; one with more than `most` bytes is an error.
pub fn read_whole(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(open(path)?, most)
}

fn whole(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut data)?;
    if data.len() as u64 > most {
        let text = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(data)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_whole(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Maximum size of a text whose lines are read.
const LARGEST_TEXT: u64 = 16 << 20;

/// At most `most` lines of a text from line `first` on, with their numbers; empty if it cannot be read.
#[must_use]
pub fn lines(path: &Path, first: u32, most: usize) -> Vec<(u32, String)> {
    let Ok(file) = open(path) else { return Vec::new() };
    let lines = BufReader::new(file.take(LARGEST_TEXT)).split(b'\n').map_while(Result::ok);
    let wanted = (1u32..).zip(lines).skip((first as usize).saturating_sub(1)).take(most);
    wanted.map(|(number, line)| (number, String::from_utf8_lossy(&line).into_owned())).collect()
}

/// Opens a file of the fuzzer's own to append to it; creates it if it does not exist.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    regular(file.map_err(name_link)?)
}

/// Creates a file that must not exist yet, readable for its owner only.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Replaces the file, link or FIFO of this name with a new empty file.
pub fn create(path: &Path) -> io::Result<File> {
    create_new(path).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| create_new(path)),
        _ => Err(error),
    })
}

/// Whether the name leads to a regular file. One that cannot be checked may be one.
#[must_use]
pub fn may_be_regular(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(data) => data.is_file(),
        Err(error) => !is_missing(&error),
    }
}

/// The error means that the file does not exist, not that it cannot be reached now.
#[must_use]
pub fn is_missing(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP))
}

/// The error may be over in a moment: too many open files, a disk or a network that hesitates.
#[must_use]
pub fn may_pass(error: &io::Error) -> bool {
    use Errno::{
        EACCES, EINTR, EIO, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EREMOTEIO, ESTALE, ETIMEDOUT,
    };
    matches!(
        errno(error),
        Some(
            EACCES
                | EINTR
                | EIO
                | EMFILE
                | ENFILE
                | ENOBUFS
                | ENOMEM
                | EPERM
                | EREMOTEIO
                | ESTALE
                | ETIMEDOUT
        )
    )
}

/// Reads that fail for a moment are tried again for some seconds. One that may not be read is not such.
pub fn patiently<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match read() {
            Err(error)
                if may_pass(&error)
                    && !matches!(errno(&error), Some(Errno::EACCES | Errno::EPERM))
                    && start.elapsed() < PATIENCE =>
            {
                std::thread::sleep(RETRY);
            }
            result => return result,
        }
    }
}

pub(crate) fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

/// The kernel's message for a link that is not followed mentions levels.
fn name_link(error: io::Error) -> io::Error {
    match errno(&error) {
        Some(Errno::ELOOP) => not_a_file("a link"),
        // A FIFO without a reader.
        Some(Errno::ENXIO) => not_a_file("a FIFO or a socket"),
        _ => error,
    }
}

fn not_a_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))
}

fn regular(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(not_a_file(what))
}

/// The error means that the file system has no symbolic links (FAT, some of FUSE).
#[must_use]
pub fn has_no_links(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS))
}

/// The result of fsync, without the errors of file systems that cannot say when a file, or a name, is on the
/// disk (vboxsf, some of FUSE).
pub fn settled(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| match errno(&error) {
        Some(Errno::EINVAL | Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        _ => Err(error),
    })
}

/// An open file with a lock that ends with this value, or with the process. A network file system may
/// fail to release it: closing the file does that as well. One without locks locks nothing.
#[derive(Debug)]
pub struct Locked {
    file: File,
    is_held: bool,
}

impl Locked {
    /// Takes the lock; with `wait` unset it fails immediately if another process has it, see [`is_taken`].
    pub fn new(file: File, wait: bool) -> io::Result<Self> {
        let how = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
        loop {
            // SAFETY: a system call on integers; the descriptor is open as long as `file` lives.
            if unsafe { libc::flock(file.as_raw_fd(), how) } == 0 {
                return Ok(Self { file, is_held: true });
            }
            let error = io::Error::last_os_error();
            match errno(&error) {
                Some(Errno::EINTR) => {}
                Some(Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                    return Ok(Self { file, is_held: false });
                }
                _ => return Err(error),
            }
        }
    }

    /// False: the file system has no locks, so another process can take it, too.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held
    }
}

/// The lock could not be taken because another process has it.
#[must_use]
pub fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: as above. A child between fork and exec may have the descriptor too, so that closing
        // alone could leave the lock for a moment.
        unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_regular_file_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, link, file) = (dir.path().join("f"), dir.path().join("l"), dir.path().join("x"));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let said = |error: io::Error| error.to_string();
        assert!(said(open(&fifo).unwrap_err()).contains("a FIFO"));
        assert!(said(append(&fifo).unwrap_err()).contains("a FIFO"));
        assert!(said(open(Path::new("/dev/zero")).unwrap_err()).contains("a device"));
        assert!(said(open(dir.path()).unwrap_err()).contains("a folder"));
        symlink(&file, &link).unwrap();
        assert!(!may_be_regular(&link));
        assert!(said(append(&link).unwrap_err()).contains("a link"));
        fs::write(&file, "mine").unwrap();
        assert_eq!(read(&link, 3).unwrap(), b"min");
        assert!(may_be_regular(&link) && !may_be_regular(&fifo));
        assert_eq!(said(read_whole(&file, 3).unwrap_err()), "it is larger than 0 MiB");
        // What is written under the name of a link or a FIFO leaves what it leads to alone.
        for name in [&link, &fifo] {
            create(name).unwrap().write_all(b"ours").unwrap();
            assert!(fs::symlink_metadata(name).unwrap().is_file());
        }
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let mut left = 3;
        let result = patiently(|| {
            left -= 1;
            if left > 0 { Err(io::Error::from_raw_os_error(libc::EMFILE)) } else { Ok(left) }
        });
        assert_eq!(result.unwrap(), 0);
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        assert!(may_pass(&denied()));
        let start = Instant::now();
        patiently::<()>(|| Err(denied())).unwrap_err();
        assert!(start.elapsed() < PATIENCE);
    }

    #[test]
    fn a_file_system_without_an_answer_is_trusted() {
        // This one cannot.
        let proc = File::open("/proc/self").unwrap().sync_all();
        assert_eq!(proc.as_ref().unwrap_err().raw_os_error(), Some(libc::EINVAL));
        settled(proc).unwrap();
        settled(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))).unwrap();
        settled(Err(io::Error::from_raw_os_error(libc::EIO))).unwrap_err();
        settled(Err(io::Error::from_raw_os_error(libc::ENOSPC))).unwrap_err();
    }

    #[test]
    fn a_lock_is_for_one_and_ends_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let lock = Locked::new(open(), false).unwrap();
        assert!(is_taken(&Locked::new(open(), false).unwrap_err()));
        drop(lock);
        Locked::new(open(), false).unwrap();
    }
}
