//! A client of the control socket.

#![allow(dead_code, unreachable_pub, reason = "no file of tests needs all of it")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::common::{DEADLINE, wait_until};

/// A connection. What it reads is in order; nothing is read in the background.
pub struct Client {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    id: u64,
    /// Read while an answer was waited for.
    pub events: Vec<Value>,
}

impl Client {
    /// Waits until the socket is there, and for the first line.
    pub fn connect(path: &Path) -> Self {
        let mut stream = None;
        wait_until(&format!("a socket at {path:?}"), || {
            stream = UnixStream::connect(path).ok();
            stream.is_some()
        });
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut client = Self { stream, lines, id: 0, events: Vec::new() };
        let hello = client.read().unwrap();
        assert_eq!((&hello["event"], &hello["version"]), (&json!("hello"), &json!(1)), "{hello}");
        client.events.push(hello);
        client
    }

    /// The next object; None at the end.
    pub fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.lines.read_line(&mut line).expect("a line in time");
        (length > 0).then(|| serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")))
    }

    /// Reads until an event of this name for which `right` holds, and returns it.
    #[track_caller]
    pub fn wait_for(&mut self, name: &str, right: impl Fn(&Value) -> bool) -> Value {
        if let Some(known) = self.events.iter().find(|e| e["event"] == name && right(e)) {
            return known.clone();
        }
        loop {
            let event = self.read().unwrap_or_else(|| panic!("the end before {name}"));
            self.events.push(event.clone());
            if event["event"] == name && right(&event) {
                return event;
            }
        }
    }

    /// Everything up to the end.
    pub fn read_all(&mut self) {
        while let Some(event) = self.read() {
            self.events.push(event);
        }
    }

    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a command; returns its number.
    pub fn send(&mut self, mut command: Value) -> u64 {
        self.id += 1;
        command["id"] = self.id.into();
        self.write(format!("{command}\n"));
        self.id
    }

    /// Sends a command and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.wait_for("reply", |reply| reply["id"] == id)
    }

    /// The same for one that has to work.
    #[track_caller]
    pub fn order(&mut self, command: Value) -> Value {
        let reply = self.ask(command.clone());
        assert_eq!(reply["ok"], true, "{command}: {reply}");
        reply
    }

    #[track_caller]
    pub fn inject(&mut self, data: impl AsRef<[u8]>) -> Value {
        self.order(injection(data))
    }

    #[track_caller]
    pub fn stats(&mut self) -> Value {
        self.order(json!({"cmd": "stats"}))["stats"].clone()
    }

    /// Events of this name so far.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["event"] == name).collect()
    }
}

pub fn injection(data: impl AsRef<[u8]>) -> Value {
    json!({"cmd": "inject", "type": "input", "data": BASE64_STANDARD.encode(data)})
}
