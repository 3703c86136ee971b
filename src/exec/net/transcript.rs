//! The transcript of a session, as the library in the target writes it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::session::{NetEvent, Session};
use ffuzz_config::net::Protocol;

/// Descriptor of the transcript in the target, and the variable that announces it. Mirrors
/// `runtime/net/kernel.h`.
pub(crate) const TRANSCRIPT_FD: i32 = 179;
pub(crate) const TRANSCRIPT_ENV: &str = "FFUZZ_NET_TRANSCRIPT";

/// Maximum number of bytes read from a transcript.
const MOST: usize = 16 << 20;
/// Size of a record's header (`struct net_record` of `runtime/net/transcript.h`).
const HEAD: usize = 8;

/// Transcript of one run.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
}

impl Transcript {
    /// Creates the file for one run.
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create(c"ffuzz-transcript", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self { file: file.into() })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Parses the transcript. The content is untrusted: the target can write to it.
    pub(crate) fn session(&self) -> Session {
        let length = self.file.metadata().map_or(0, |data| data.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(MOST).min(MOST)];
        if self.file.read_exact_at(&mut bytes, 0).is_err() {
            bytes.clear();
        }
        Session { events: parse(&bytes) }
    }
}

fn parse(mut bytes: &[u8]) -> Vec<NetEvent> {
    let mut events = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let [l0, l1, l2, l3, kind, connection, p0, p1] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let Some((text, rest)) = rest.split_at_checked(length) else { break };
        let port = u16::from_le_bytes([p0, p1]);
        events.extend(event(kind, connection, port, text));
        bytes = rest;
    }
    events
}

/// Decodes `enum net_event`; None for an unknown kind.
fn event(kind: u8, connection: u8, port: u16, text: &[u8]) -> Option<NetEvent> {
    let word = || String::from_utf8_lossy(text).escape_debug().to_string();
    let protocol = || match connection {
        0 => Protocol::Tcp,
        1 => Protocol::Udp,
        _ => Protocol::Unix,
    };
    Some(match kind {
        1 => NetEvent::Listens { protocol: protocol(), port, path: word() },
        2 => NetEvent::Accepted { connection },
        3 => NetEvent::Connects { protocol: protocol(), port, path: word() },
        4 => NetEvent::Opened { connection, port },
        5 => NetEvent::Taken { connection, bytes: text.into() },
        6 => NetEvent::Answer { connection, bytes: text.into() },
        7 => NetEvent::EndSeen { connection },
        8 => NetEvent::Closed { connection },
        9 => NetEvent::Refused { what: word() },
        10 => NetEvent::RunEnds { call: word() },
        11 => NetEvent::Answers { key: port, pair: word() },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_make_no_sense_end_it_or_are_left_out() {
        let mut bytes =
            b"\0\0\0\0\x02\x01\0\0\x01\0\0\0\x63\0\0\0x\x04\0\0\0\x09\0\0\0r\x1b[w".to_vec();
        let whole =
            [NetEvent::Accepted { connection: 1 }, NetEvent::Refused { what: "r\\u{1b}[w".into() }];
        assert_eq!(parse(&bytes), whole);
        bytes.extend(b"\xff\xff\0\0\x05\0\0\0cut");
        assert_eq!(parse(&bytes), whole);
    }
}
