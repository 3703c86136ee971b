//! ZeroMQ's wire protocol (ZMTP 3.0, no encryption), in the role of a DEALER: greeting, READY, frames.
//!
//! A connection is one TCP stream and ends with it. The caller reconnects, because a broker expects a
//! Hello on each connection.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Maximum size of a message: a broker sends whole programs.
pub(super) const LONGEST_MESSAGE: u64 = 1 << 30;
/// Maximum size of a command (READY, PING and others).
const LONGEST_COMMAND: u64 = 1 << 16;
/// Time limit for greeting and READY together.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time without progress in writing after which the peer is considered gone.
const PATIENCE: Duration = Duration::from_secs(60);

const GREETING: usize = 64;
const MECHANISM: usize = 12;
/// Bits of a frame's first byte.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A received frame.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum ZmtpFrame {
    Message(Vec<u8>),
    /// A message of several parts, which the protocol does not use.
    Parts,
    /// A ping, to be answered with these bytes by [`FrameWriter::pong`].
    Ping(Vec<u8>),
}

/// Reads frames, without a time limit.
#[derive(Debug)]
pub(super) struct FrameReader<R> {
    stream: BufReader<R>,
}

/// Writes frames.
#[derive(Debug)]
pub(super) struct FrameWriter<W> {
    stream: W,
}

/// Exchanges greetings with the peer, and checks its READY.
pub(super) fn open(
    stream: TcpStream,
) -> io::Result<(FrameReader<TcpStream>, FrameWriter<TcpStream>)> {
    let deadline = Instant::now() + HANDSHAKE;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = FrameWriter { stream: stream.try_clone()? };
    writer.stream.write_all(&greeting())?;
    let mut timed = TimedStream { stream: &stream, deadline };
    let mut theirs = [0; GREETING];
    timed.read_exact(&mut theirs)?;
    check_greeting(&theirs)?;
    writer.frame(COMMAND, &ready())?;
    // Unbuffered, because the bytes after READY belong to the reader.
    let (flags, body) = read_frame(&mut timed)?;
    check_ready(flags, &body)?;
    stream.set_read_timeout(None)?;
    Ok((FrameReader { stream: BufReader::new(stream) }, writer))
}

/// A stream with a deadline for reading.
struct TimedStream<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for TimedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        (&mut &*self.stream).read(buffer)
    }
}

fn greeting() -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[0] = 0xff;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[MECHANISM..MECHANISM + 4].copy_from_slice(b"NULL");
    bytes
}

fn check_greeting(theirs: &[u8; GREETING]) -> io::Result<()> {
    if theirs[0] != 0xff || theirs[9] & 1 == 0 {
        return Err(nonsense("the other side does not use ZeroMQ"));
    }
    if theirs[10] < 3 {
        return Err(nonsense("the other side uses an old version of ZeroMQ's protocol"));
    }
    if !theirs[MECHANISM..MECHANISM + 20].starts_with(b"NULL\0") {
        return Err(nonsense("the other side requires encryption or a password"));
    }
    Ok(())
}

fn ready() -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    for (name, value) in [("Socket-Type", "DEALER"), ("Identity", "")] {
        body.push(name.len() as u8);
        body.extend(name.as_bytes());
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(value.as_bytes());
    }
    body
}

fn check_ready(flags: u8, body: &[u8]) -> io::Result<()> {
    if flags & COMMAND == 0 || !body.starts_with(b"\x05READY") {
        return Err(nonsense("the other side refuses the connection"));
    }
    let kind = property(&body[6..], b"Socket-Type").unwrap_or_default();
    if kind == b"ROUTER" {
        return Ok(());
    }
    let kind = String::from_utf8_lossy(&kind[..kind.len().min(20)]);
    Err(nonsense(&format!("the other side is not a broker but a {kind:?} socket")))
}

/// Value of a property of READY.
fn property<'a>(mut rest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    loop {
        let (length, after) = rest.split_first()?;
        let (name, after) = after.split_at_checked(usize::from(*length))?;
        let (length, after) = after.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (value, after) = after.split_at_checked(length)?;
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after;
    }
}

fn nonsense(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Reads flags and body. Memory grows with the received bytes, not with the announced size.
fn read_frame(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut flags = [0];
    stream.read_exact(&mut flags)?;
    let flags = flags[0];
    let length = if flags & LONG == 0 {
        let mut length = [0];
        stream.read_exact(&mut length)?;
        u64::from(length[0])
    } else {
        let mut length = [0; 8];
        stream.read_exact(&mut length)?;
        u64::from_be_bytes(length)
    };
    let most = if flags & COMMAND == 0 { LONGEST_MESSAGE } else { LONGEST_COMMAND };
    if flags & !(MORE | LONG | COMMAND) != 0 || length > most {
        return Err(nonsense("an impossible frame"));
    }
    let mut body = Vec::new();
    if stream.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((flags, body))
}

impl<R: Read> FrameReader<R> {
    /// Reads the next message or ping; skips other commands.
    pub(super) fn frame(&mut self) -> io::Result<ZmtpFrame> {
        let mut parts = false;
        loop {
            let (flags, body) = read_frame(&mut self.stream)?;
            if flags & COMMAND != 0 {
                // Two bytes of time, then the text to send back.
                if let Some(rest) = body.strip_prefix(b"\x04PING") {
                    return Ok(ZmtpFrame::Ping(rest.get(2..).unwrap_or_default().to_vec()));
                }
                continue;
            }
            parts |= flags & MORE != 0;
            if flags & MORE == 0 {
                return Ok(if parts { ZmtpFrame::Parts } else { ZmtpFrame::Message(body) });
            }
        }
    }
}

impl<W: Write> FrameWriter<W> {
    /// Writes a message of one part.
    pub(super) fn message(&mut self, body: &[u8]) -> io::Result<()> {
        self.frame(0, body)
    }

    pub(super) fn pong(&mut self, context: &[u8]) -> io::Result<()> {
        self.frame(COMMAND, &[b"\x04PONG", context].concat())
    }

    fn frame(&mut self, flags: u8, body: &[u8]) -> io::Result<()> {
        let mut head = match u8::try_from(body.len()) {
            Ok(length) => vec![flags, length],
            Err(_) => {
                let mut head = vec![flags | LONG];
                head.extend((body.len() as u64).to_be_bytes());
                head
            }
        };
        // Short messages are sent in one packet.
        if body.len() <= 1 << 14 {
            head.extend(body);
            return self.stream.write_all(&head);
        }
        self.stream.write_all(&head)?;
        self.stream.write_all(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> FrameReader<&[u8]> {
        FrameReader { stream: BufReader::new(bytes) }
    }

    #[test]
    fn frames_round_trip() {
        let mut writer = FrameWriter { stream: vec![] };
        for length in [0, 255, 256, 1 << 15] {
            writer.message(&vec![7; length]).unwrap();
        }
        let mut reader = reader(&writer.stream);
        for length in [0, 255, 256, 1 << 15] {
            assert_eq!(reader.frame().unwrap(), ZmtpFrame::Message(vec![7; length]));
        }
        assert_eq!(reader.frame().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn commands_are_answered_or_skipped() {
        let mut reader = reader(b"\x04\x09\x05ERRORabc\x04\x09\x04PING\0\x0axy\0\x01m");
        assert_eq!(reader.frame().unwrap(), ZmtpFrame::Ping(b"xy".to_vec()));
        assert_eq!(reader.frame().unwrap(), ZmtpFrame::Message(b"m".to_vec()));
        let mut writer = FrameWriter { stream: vec![] };
        writer.pong(b"xy").unwrap();
        assert_eq!(writer.stream, b"\x04\x07\x04PONGxy");
    }

    #[test]
    fn a_message_of_parts_is_one_frame() {
        let mut reader = reader(b"\x01\x01a\x01\x01b\x00\x01c\x00\x01d");
        assert_eq!(reader.frame().unwrap(), ZmtpFrame::Parts);
        assert_eq!(reader.frame().unwrap(), ZmtpFrame::Message(b"d".to_vec()));
    }

    #[test]
    fn lengths_are_not_believed() {
        // 2^60 bytes, and a gigabyte of which only one byte arrives.
        for head in [&[2, 16, 0, 0, 0, 0, 0, 0, 0][..], &[2, 0, 0, 0, 0, 64, 0, 0, 0, 1], &[255, 1]]
        {
            assert!(reader(head).frame().is_err(), "{head:?}");
        }
    }

    #[test]
    fn other_kinds_of_peers_are_named() {
        let refusal = |body: &[u8]| check_ready(COMMAND, body).unwrap_err().to_string();
        assert!(refusal(b"\x05READY\x0bSocket-Type\0\0\0\x03PUB").contains("\"PUB\""));
        assert!(refusal(b"\x05READY\x0bSocket-Type\0\0\xff\xffPUB").contains("not a broker"));
        assert!(refusal(b"\x05ERROR\x03no!").contains("refuses"));
        check_ready(COMMAND, b"\x05READY\x08Identity\0\0\0\0\x0bSocket-Type\0\0\0\x06ROUTER")
            .unwrap();
        let mut theirs = greeting();
        check_greeting(&theirs).unwrap();
        theirs[MECHANISM..MECHANISM + 5].copy_from_slice(b"PLAIN");
        assert!(check_greeting(&theirs).unwrap_err().to_string().contains("password"));
        let mut http = [b'0'; GREETING];
        http[..8].copy_from_slice(b"HTTP/1.1");
        assert!(check_greeting(&http).is_err());
    }
}
