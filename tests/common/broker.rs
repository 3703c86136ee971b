//! A broker that stands in for PASTIS': what it receives from an engine is noted, what it says is up to
//! the test. Each connection is a client of its own, as with a ROUTER socket.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, unreachable_pub, reason = "no file of tests needs all of it")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ffuzz::fleet::pastis::engines::VERSION;
use ffuzz::fleet::pastis::messages::{
    EngineMessage, HelloMessage, Log, Message, SeedKind, SeedLocation, SeedMessage, StartMessage,
    StopMessage, Telemetry,
};

use super::common::{DEADLINE, wait_until};

/// Waits for connections.
pub struct Broker {
    pub port: u16,
    clients: Receiver<TcpStream>,
}

impl Broker {
    pub fn start() -> Self {
        Self::at(0)
    }

    /// On a port of which one was stopped before.
    pub fn at(port: u16) -> Self {
        let mut listener = TcpListener::bind(("127.0.0.1", port));
        wait_until("the port", || {
            if listener.is_err() {
                listener = TcpListener::bind(("127.0.0.1", port));
            }
            listener.is_ok()
        });
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, clients) = channel();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { port, clients }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The next connection, which is not greeted yet.
    pub fn stream(&self) -> TcpStream {
        self.clients.recv_timeout(DEADLINE).expect("no connection")
    }

    /// The next engine that greets us; the greeting has to be its first message.
    pub fn client(&self) -> Client {
        Client::greet(self.stream())
    }
}

/// A connected engine.
pub struct Client {
    pub hello: HelloMessage,
    stream: TcpStream,
    received: Arc<Mutex<Vec<Message>>>,
}

impl Client {
    fn greet(mut stream: TcpStream) -> Self {
        // An engine that does not read is noticed.
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let mut theirs = [0; 64];
        let mut ours = [0; 64];
        (ours[0], ours[9], ours[10], ours[11]) = (0xff, 0x7f, 3, 1);
        ours[12..16].copy_from_slice(b"NULL");
        stream.write_all(&ours).unwrap();
        stream.read_exact(&mut theirs).unwrap();
        assert_eq!((theirs[0], theirs[9], theirs[10]), (0xff, 0x7f, 3));
        let ready = b"\x05READY\x0bSocket-Type\0\0\0\x06ROUTER\x08Identity\0\0\0\0";
        stream.write_all(&[&[4, ready.len() as u8], &ready[..]].concat()).unwrap();
        let (flags, body) = frame(&mut stream).unwrap();
        assert!(flags == 4 && body.starts_with(b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER"));
        let Some(Message::Hello(hello)) = message(&mut stream) else {
            panic!("the first message is no Hello")
        };
        let received = Arc::<Mutex<Vec<Message>>>::default();
        let (mut reader, sink) = (stream.try_clone().unwrap(), Arc::clone(&received));
        std::thread::spawn(move || {
            while let Some(message) = message(&mut reader) {
                sink.lock().unwrap().push(message);
            }
        });
        Self { hello, stream, received }
    }

    pub fn send(&mut self, message: Message) {
        self.send_frame(0, &message.to_bytes());
    }

    /// A frame of any kind.
    pub fn send_frame(&mut self, flags: u8, body: &[u8]) {
        let mut head = vec![flags | 2];
        head.extend((body.len() as u64).to_be_bytes());
        self.send_bytes(&[&head, body].concat());
    }

    /// What may be no frame at all. An engine that has left is no fault here.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    pub fn seed(&mut self, kind: SeedKind, bytes: &[u8]) {
        self.send(Message::Seed(SeedMessage { bytes: bytes.to_vec(), kind: kind as i32 }));
    }

    pub fn start(&mut self, start: StartMessage) {
        self.send(Message::Start(Box::new(start)));
    }

    pub fn stop(&mut self) {
        self.send(Message::Stop(StopMessage {}));
    }

    /// Ends the connection, as the death of a broker does.
    pub fn hang_up(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Everything so far.
    pub fn received(&self) -> Vec<Message> {
        self.received.lock().unwrap().clone()
    }

    pub fn seeds(&self) -> Vec<(SeedKind, Vec<u8>)> {
        let seeds = self.received().into_iter().filter_map(|message| match message {
            Message::Seed(seed) => Some((seed.kind(), seed.bytes)),
            _ => None,
        });
        seeds.collect()
    }

    pub fn logs(&self) -> Vec<(i32, String)> {
        let logs = self.received().into_iter().filter_map(|message| match message {
            Message::Log(Log { message, level }) => Some((level, message)),
            _ => None,
        });
        logs.collect()
    }

    pub fn numbers(&self) -> Vec<Telemetry> {
        let numbers = self.received().into_iter().filter_map(|message| match message {
            Message::Telemetry(numbers) => Some(numbers),
            _ => None,
        });
        numbers.collect()
    }

    /// Waits for a line of the log of this level.
    pub fn wait_for_log(&self, level: i32, text: &str) {
        wait_until(&format!("{text:?} in the log"), || {
            self.logs().iter().any(|(l, line)| *l == level && line.contains(text))
        });
    }

    /// Waits until the engine's fuzzer has run this many.
    pub fn wait_for_execs(&self, count: u64) {
        wait_until("executions", || self.numbers().iter().any(|n| n.execs >= count));
    }

    pub fn wait_for_seed(&self, what: &str, wanted: impl Fn(SeedKind, &[u8]) -> bool) {
        wait_until(what, || self.seeds().iter().any(|(kind, bytes)| wanted(*kind, bytes)));
    }
}

/// A Start for a program that reads standard input.
pub fn start_for(program: &Path) -> StartMessage {
    let engine =
        EngineMessage { name: "FFUZZ".into(), version: VERSION.into(), module: String::new() };
    StartMessage {
        file_name: "target".into(),
        package: std::fs::read(program).unwrap(),
        engine: Some(engine),
        coverage_mode: "edge".into(),
        seed_location: SeedLocation::Stdin as i32,
        ..StartMessage::default()
    }
}

/// Flags and body; None at the end.
fn frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    stream.set_read_timeout(Some(Duration::from_secs(3600))).ok()?;
    let mut flags = [0];
    stream.read_exact(&mut flags).ok()?;
    let mut length = [0; 8];
    let width = if flags[0] & 2 == 0 { 1 } else { 8 };
    stream.read_exact(&mut length[8 - width..]).ok()?;
    let mut body = vec![0; usize::try_from(u64::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut body).ok()?;
    Some((flags[0] & !2, body))
}

fn message(stream: &mut TcpStream) -> Option<Message> {
    let (flags, body) = frame(stream)?;
    assert_eq!(flags, 0, "a message of several parts, or a command");
    Some(Message::from_bytes(&body).expect("no message"))
}
