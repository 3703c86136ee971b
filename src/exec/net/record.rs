//! Records the messages of a session with a real peer (`runtime/net/record.c`).

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_config::net::{NetOptions, Protocol, Side};

/// Descriptors of a recording in the target, and the variable that announces them. Mirrors
/// `runtime/net/kernel.h`.
const REAL_FD: i32 = 176;
const RECORD_FD: i32 = 177;
pub(crate) const RECORD_ENV: &str = "FFUZZ_NET_RECORD";

/// Reason why a session cannot be recorded.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SessionError {
    #[error("{} cannot be written: {source}", path.display())]
    #[diagnostic(help("name another file: --record FILE"))]
    File { path: PathBuf, source: io::Error },
    #[error("clients cannot come to {place}: {source}")]
    #[diagnostic(help("{}", remedy(source)))]
    Socket { place: String, source: io::Error },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::AddrInUse => "end the program that is there, or let the target listen elsewhere",
        ErrorKind::PermissionDenied => "let the target listen on a port from 1024 on",
        _ => "let the target listen elsewhere",
    }
}

/// The file for the messages and, for a server, a kernel socket for its clients: the target's own
/// socket is only memory.
#[derive(Debug)]
pub struct Recording {
    file: File,
    socket: Option<OwnedFd>,
    /// Address for clients; empty if the target is a client.
    place: String,
    /// Path of a local socket, removed with the recording.
    path: Option<PathBuf>,
}

impl Recording {
    /// Creates the file, and opens the socket on the loopback. An existing file is not overwritten.
    pub fn open(net: &NetOptions, path: &Path) -> Result<Self, SessionError> {
        let file = File::create_new(path)
            .map_err(|source| SessionError::File { path: path.into(), source })?;
        let address = (Ipv4Addr::LOCALHOST, net.port.unwrap_or(0));
        let of_port = format!("{}:{}", address.0, address.1);
        let (place, socket) = match (net.side, net.protocol) {
            (Side::Client, _) => (String::new(), Ok(None)),
            (Side::Server, Protocol::Tcp) => {
                (of_port, TcpListener::bind(address).map(|socket| Some(socket.into())))
            }
            (Side::Server, Protocol::Udp) => {
                (of_port, UdpSocket::bind(address).map(|socket| Some(socket.into())))
            }
            (Side::Server, Protocol::Unix) => {
                let socket = UnixListener::bind(&net.path);
                (net.path.clone(), socket.map(|socket| Some(socket.into())))
            }
        };
        let is_local = net.protocol == Protocol::Unix;
        match socket {
            Ok(socket) => {
                let local = is_local.then(|| PathBuf::from(&place));
                Ok(Self { file, socket, place, path: local })
            }
            Err(source) => {
                let _ = fs::remove_file(path);
                Err(SessionError::Socket { place, source })
            }
        }
    }

    /// Address of the target for clients; empty if it is a client itself.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, i32)> {
        let socket = self.socket.iter().map(|socket| (socket.as_fd(), REAL_FD));
        socket.chain([(self.file.as_fd(), RECORD_FD)])
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}
