//! Keys of the terminal, from bytes and escape sequences.
//!
//! The terminal is opened a second time so that a read never blocks: Ctrl-Z may hand it to a shell between `poll` and
//! `read`.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use ffuzz_sys::terminal;

/// Maximum number of bytes read at once.
const MOST: usize = 256;
/// Maximum pause inside an escape sequence.
const SEQUENCE: Duration = Duration::from_millis(30);
const ESCAPE: u8 = 0x1b;

pub(super) type KeyPress = (KeyCode, KeyModifiers);

#[derive(Debug)]
pub(super) struct Keys(File);

impl Keys {
    /// Opens the controlling terminal.
    pub(super) fn open() -> io::Result<Self> {
        terminal::open().map(Self)
    }

    /// Waits up to `longest` for keys. Fails if the terminal is gone or belongs to another process.
    pub(super) fn read(&mut self, longest: Duration) -> io::Result<Vec<KeyPress>> {
        let mut bytes = Vec::new();
        if terminal::has_input(&self.0, longest) {
            self.append(&mut bytes)?;
        }
        if bytes.last() == Some(&ESCAPE) && terminal::has_input(&self.0, SEQUENCE) {
            self.append(&mut bytes)?;
        }
        Ok(parse(&bytes))
    }

    fn append(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut read = [0; MOST];
        match self.0.read(&mut read) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes.extend_from_slice(&read[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn parse(mut bytes: &[u8]) -> Vec<KeyPress> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        bytes = rest;
        let (code, modifiers) = match first {
            ESCAPE => (sequence(&mut bytes), KeyModifiers::NONE),
            b'\r' | b'\n' => (Some(KeyCode::Enter), KeyModifiers::NONE),
            b'\t' => (Some(KeyCode::Tab), KeyModifiers::NONE),
            0x08 | 0x7f => (Some(KeyCode::Backspace), KeyModifiers::NONE),
            1..0x1b => {
                let letter = char::from(first - 1 + b'a');
                (Some(KeyCode::Char(letter)), KeyModifiers::CONTROL)
            }
            b' '..=b'~' => (Some(KeyCode::Char(char::from(first))), KeyModifiers::NONE),
            _ => (None, KeyModifiers::NONE),
        };
        keys.extend(code.map(|code| (code, modifiers)));
    }
    keys
}

/// Parses the rest of an escape sequence (ECMA-48 and xterm): `[` or `O`, numbers, a letter or `~`. None for unused
/// keys.
fn sequence(bytes: &mut &[u8]) -> Option<KeyCode> {
    let start = match bytes {
        [b'[' | b'O', rest @ ..] => rest,
        _ => return Some(KeyCode::Esc),
    };
    let end = start.iter().position(|byte| (b'@'..=b'~').contains(byte));
    let Some(end) = end else {
        *bytes = &[];
        return None;
    };
    *bytes = &start[end + 1..];
    let numbers = &start[..end];
    match (start[end], numbers.split(|byte| *byte == b';').next().unwrap_or_default()) {
        (b'A', _) => Some(KeyCode::Up),
        (b'B', _) => Some(KeyCode::Down),
        (b'C', _) => Some(KeyCode::Right),
        (b'D', _) => Some(KeyCode::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(KeyCode::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(KeyCode::End),
        (b'Z', _) => Some(KeyCode::BackTab),
        (b'~', b"5") => Some(KeyCode::PageUp),
        (b'~', b"6") => Some(KeyCode::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_sequences_are_keys_and_nothing_else_is() {
        let plain = |codes: &[KeyCode]| -> Vec<KeyPress> {
            codes.iter().map(|code| (*code, KeyModifiers::NONE)).collect()
        };
        for (bytes, keys) in [
            (&b"q1?"[..], &[KeyCode::Char('q'), KeyCode::Char('1'), KeyCode::Char('?')][..]),
            (b"\x1b", &[KeyCode::Esc]),
            (b"\x1bq", &[KeyCode::Esc, KeyCode::Char('q')]),
            (
                b"\x1b[A\x1bOB\x1b[1;5C\x1b[D",
                &[KeyCode::Up, KeyCode::Down, KeyCode::Right, KeyCode::Left],
            ),
            (
                b"\x1b[5~\x1b[6~\x1b[Z\t\r",
                &[
                    KeyCode::PageUp,
                    KeyCode::PageDown,
                    KeyCode::BackTab,
                    KeyCode::Tab,
                    KeyCode::Enter,
                ],
            ),
            (b"\x1b[H\x1b[4~\x7f", &[KeyCode::Home, KeyCode::End, KeyCode::Backspace]),
            (b"\x1b[15~\x1b[?1;2c\xc3\xa4\x00j", &[KeyCode::Char('j')]),
            (b"\x1b[200", &[]),
        ] {
            assert_eq!(parse(bytes), plain(keys), "{bytes:?}");
        }
        assert_eq!(parse(b"\x0c"), [(KeyCode::Char('l'), KeyModifiers::CONTROL)]);
    }
}
