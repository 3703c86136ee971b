//! The socket's file: created with mode 0600, it replaces one that a killed fuzzer has left, and is
//! removed at the end.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::sys::stat::{Mode, fchmod};

/// Maximum path length of a Unix socket in bytes: the kernel's `sockaddr_un` has 108 with the NUL.
const LONGEST_PATH: usize = 107;
/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 64;

/// Reason why there is no socket.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ControlError {
    #[error(
        "the path of the control socket has {length} bytes, and the kernel takes {LONGEST_PATH}"
    )]
    #[diagnostic(help("name a shorter one with --control, a relative path will do"))]
    TooLong { length: usize },
    #[error("the control socket {path:?} belongs to a running fuzzer")]
    #[diagnostic(help("name another one with --control, or stop that fuzzer"))]
    InUse { path: PathBuf },
    #[error("{path:?} exists and is not a socket")]
    #[diagnostic(help("name another path with --control"))]
    NoSocket { path: PathBuf },
    #[error("cannot create the control socket {path:?}: {source}")]
    #[diagnostic(help("with --control, name a path in a folder where you can write"))]
    Make { path: PathBuf, source: io::Error },
}

/// A listening socket. Dropping it removes its file, unless another process has replaced it.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
}

impl Socket {
    pub fn bind(path: &Path) -> Result<Self, ControlError> {
        let length = path.as_os_str().len();
        if length > LONGEST_PATH {
            return Err(ControlError::TooLong { length });
        }
        let listener = match listener(path) {
            Err(Errno::EADDRINUSE) => {
                remove_stale(path)?;
                listener(path)
            }
            result => result,
        };
        let make = |source: Errno| ControlError::Make { path: path.into(), source: source.into() };
        let listener = listener.map_err(make)?;
        Ok(Self { path: path.into(), listener, file: identity(path) })
    }

    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Ends a wait for a connection.
        let how = nix::sys::socket::Shutdown::Both;
        let _ = nix::sys::socket::shutdown(self.listener.as_raw_fd(), how);
        if self.file.is_some() && self.file == identity(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let data = fs::symlink_metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

/// Creates the listener. The mode is set before the file exists, so others can never connect.
fn listener(path: &Path) -> nix::Result<UnixListener> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(UnixListener::from(socket))
}

/// Removes the socket of a dead process, which has no listener.
fn remove_stale(path: &Path) -> Result<(), ControlError> {
    let made = |source| ControlError::Make { path: path.into(), source };
    if !fs::symlink_metadata(path).map_err(made)?.file_type().is_socket() {
        return Err(ControlError::NoSocket { path: path.into() });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ControlError::InUse { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(made)
        }
        Err(error) => Err(made(error)),
    }
}

#[cfg(test)]
mod tests {
    use ffuzz_sys::remedy::Remedy;

    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_private_and_goes_with_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let socket = Socket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = Socket::bind(&path).unwrap_err();
        assert!(matches!(error, ControlError::InUse { .. }), "{error}");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let old = Socket::bind(&path).unwrap();
        // Another socket exists by then, and stays.
        fs::remove_file(&path).unwrap();
        let new = Socket::bind(&path).unwrap();
        drop(old);
        assert!(UnixStream::connect(&path).is_ok());
        drop(new);
        fs::write(&path, "mine").unwrap();
        let error = Socket::bind(&path).unwrap_err();
        assert!(matches!(error, ControlError::NoSocket { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn what_cannot_be_bound_is_reported() {
        let error = Socket::bind(Path::new(&format!("/tmp/{}", "x".repeat(103)))).unwrap_err();
        assert!(error.to_string().contains("has 108 bytes"), "{error}");
        let error = Socket::bind(Path::new("/proc/none/s")).unwrap_err();
        assert!(error.to_string().contains("/proc/none/s") && !error.remedy().is_empty());
    }
}
