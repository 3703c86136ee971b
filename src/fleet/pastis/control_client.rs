//! Client side of the fuzzer's control socket: sends inputs and receives finds.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use serde::Deserialize;

use super::ClientEvent;
use super::imports::{BrokerInput, ImportQueue};
use crate::control::Command;

/// Maximum line length: an event with thousands of domains takes some hundred kilobytes.
const LONGEST_LINE: u64 = 16 << 20;
/// The socket's name for the source of an input that the fuzzer generated.
pub(super) const OWN: &str = "own";

/// The events of the fuzzer that are used here; `docs/control.md` describes all.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum FuzzerEvent {
    Started,
    Seed {
        path: PathBuf,
        origin: String,
    },
    Crash {
        path: PathBuf,
        origin: String,
    },
    Hang {
        path: PathBuf,
        origin: String,
    },
    Warning {
        message: String,
    },
    Reply {
        id: Option<u64>,
        ok: bool,
    },
    /// The connection has ended.
    #[serde(skip)]
    Gone,
    #[serde(other)]
    Other,
}

/// A connection, closed when dropped.
#[derive(Debug)]
pub(super) struct ControlClient {
    number: u32,
    stream: UnixStream,
    imports: Arc<ImportQueue>,
}

impl ControlClient {
    /// Sends inputs to the fuzzer at this socket, and forwards its events.
    pub(super) fn open(
        socket: &Path,
        number: u32,
        imports: &Arc<ImportQueue>,
        events: Sender<ClientEvent>,
    ) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        let client = Self { number, stream, imports: Arc::clone(imports) };
        imports.open(number);
        let (reader, inputs) = (client.stream.try_clone()?, Arc::clone(imports));
        thread::Builder::new().name("pastis-finds".into()).spawn(move || {
            listen(reader, &inputs, |event| {
                events.send(ClientEvent::Fuzzer(number, event)).is_ok()
            });
            inputs.close(number);
            let _ = events.send(ClientEvent::Fuzzer(number, FuzzerEvent::Gone));
        })?;
        let (writer, imports) = (client.stream.try_clone()?, Arc::clone(imports));
        thread::Builder::new()
            .name("pastis-inject".into())
            .spawn(move || write(writer, &imports, number))?;
        Ok(client)
    }

    #[must_use]
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        self.imports.close(self.number);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn listen(stream: UnixStream, imports: &ImportQueue, send: impl Fn(FuzzerEvent) -> bool) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let goes_on = match serde_json::from_slice(&line) {
            Ok(FuzzerEvent::Reply { id: Some(id), ok }) => {
                imports.answered(id, ok);
                true
            }
            Ok(FuzzerEvent::Reply { id: None, .. } | FuzzerEvent::Other) | Err(_) => true,
            Ok(event) => send(event),
        };
        if !goes_on {
            return;
        }
    }
}

fn write(mut stream: UnixStream, imports: &ImportQueue, client: u32) {
    while let Some(line) = imports.next(client, inject) {
        if stream.write_all(line.as_bytes()).is_err() {
            // Ends the reader as well.
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn inject(id: u64, input: &BrokerInput) -> String {
    Command::Inject(input.bytes.clone()).to_line(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_socket_says_is_understood() {
        let event = |line: &str| serde_json::from_str::<FuzzerEvent>(line).unwrap();
        assert_eq!(
            event(r#"{"event":"crash","path":"/o/c","input_id":0,"signal":6,"origin":"own"}"#),
            FuzzerEvent::Crash { path: "/o/c".into(), origin: OWN.into() }
        );
        assert_eq!(event(r#"{"event":"hello","version":1,"pid":1}"#), FuzzerEvent::Other);
        assert_eq!(
            event(r#"{"event":"reply","id":3,"ok":true,"kept":false}"#),
            FuzzerEvent::Reply { id: Some(3), ok: true }
        );
        assert_eq!(event(r#"{"event":"waypoint","keys":1}"#), FuzzerEvent::Other);
        assert_eq!(event(r#"{"event":"started"}"#), FuzzerEvent::Started);
    }
}
