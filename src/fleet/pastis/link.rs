//! The connection to the broker, and reconnection when it breaks.
//!
//! A reading thread waits for nothing but the network, because a broker drops what its client does not read
//! in time; another thread writes. Each connection begins with the client's Hello, and messages of the
//! previous one are discarded: a broker may crash on a message from an unknown client.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::messages::{Message, Telemetry};
use super::zmtp::{self, FrameReader, FrameWriter, ZmtpFrame};

/// Pause between two attempts to connect; `CONNECT` limits each attempt.
const PAUSE: Duration = Duration::from_millis(500);
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum number of queued messages; senders handle a full queue.
const MOST_WAITING: usize = 256;
/// Maximum number of received bytes still in use. Beyond it reading stops: the kernel and the broker hold the
/// rest, up to their limits.
const MOST_HELD: usize = 1 << 30;
/// Additional cost per message for its entries in queues and maps, in bytes.
const OVERHEAD: usize = 512;

/// An event of the connection.
#[derive(Debug)]
pub(super) enum BrokerEvent {
    /// Connected, and the Hello was sent.
    Up,
    /// The connection broke or failed, with the reason.
    Down(String),
    /// A message arrived; None if it is invalid.
    Message(Option<Message>, Reservation),
}

/// Connection to the broker; its threads end with the process.
#[derive(Clone, Debug)]
pub(super) struct BrokerLink {
    /// Hello of the next connection.
    hello: Arc<Mutex<Vec<u8>>>,
    outbox: Arc<Outbox>,
    budget: Arc<ByteBudget>,
}

impl BrokerLink {
    /// Reconnects to `address` forever. Calls `send` for each message; false: the receiver is gone.
    pub(super) fn start(
        address: String,
        hello: Vec<u8>,
        news: Sender<impl From<BrokerEvent> + Send + 'static>,
    ) -> io::Result<Self> {
        let hello = Arc::new(Mutex::new(hello));
        let link = Self { hello, outbox: Arc::default(), budget: Arc::default() };
        let own = link.clone();
        let send = move |event: BrokerEvent| news.send(event.into()).is_ok();
        let run = move || while own.connect(&address, &send) {};
        thread::Builder::new().name("pastis-reader".into()).spawn(run)?;
        Ok(link)
    }

    /// Sets the Hello of the next connection.
    pub(super) fn greet_with(&self, hello: Vec<u8>) {
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = hello;
    }

    /// Ends the current connection, so that a new one is made.
    pub(super) fn hang_up(&self) {
        self.outbox.close();
    }

    /// Queues a message; false if there is no connection or no room.
    pub(super) fn send(&self, message: Message) -> bool {
        let mut queue = self.outbox.lock();
        let room = queue.open && queue.waiting.len() < MOST_WAITING;
        if room {
            queue.waiting.push_back(message.to_bytes());
            self.outbox.changed.notify_all();
        }
        room
    }

    /// Replaces statistics that were not sent yet.
    pub(super) fn send_numbers(&self, numbers: Telemetry) {
        let mut queue = self.outbox.lock();
        queue.numbers = queue.open.then(|| Message::Telemetry(numbers).to_bytes());
        self.outbox.changed.notify_all();
    }

    /// Waits until everything is sent, for at most `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let queue = self.outbox.lock();
        let busy = |queue: &mut SendQueue| queue.open && !(queue.is_empty() && queue.idle);
        drop(self.outbox.changed.wait_timeout_while(queue, patience, busy));
    }

    /// Handles one connection from start to end. Returns false if the receiver is gone.
    fn connect(&self, address: &str, send: &impl Fn(BrokerEvent) -> bool) -> bool {
        let result = dial(address).and_then(|stream| {
            let (mut reader, mut writer) = zmtp::open(stream.try_clone()?)?;
            let hello = self.hello.lock().unwrap_or_else(PoisonError::into_inner).clone();
            writer.message(&hello)?;
            self.outbox.open();
            let outbox = Arc::clone(&self.outbox);
            let write = move || outbox.drain(writer, &stream);
            let writing = thread::Builder::new().name("pastis-writer".into()).spawn(write);
            let received = writing.and_then(|writing| {
                let received = self.receive(&mut reader, send);
                self.outbox.close();
                // The writer ends with the queue.
                let _ = writing.join();
                received
            });
            self.outbox.close();
            received
        });
        match result {
            Ok(()) => false,
            Err(error) => {
                let goes_on = send(BrokerEvent::Down(cause(&error)));
                thread::sleep(PAUSE);
                goes_on
            }
        }
    }

    fn receive(
        &self,
        reader: &mut FrameReader<TcpStream>,
        send: &impl Fn(BrokerEvent) -> bool,
    ) -> io::Result<()> {
        if !send(BrokerEvent::Up) {
            return Ok(());
        }
        loop {
            let bytes = match reader.frame()? {
                ZmtpFrame::Message(bytes) => bytes,
                // Messages of several parts are invalid.
                ZmtpFrame::Parts => Vec::new(),
                ZmtpFrame::Ping(context) => {
                    self.outbox.lock().pong = Some(context);
                    self.outbox.changed.notify_all();
                    continue;
                }
            };
            let held = Reservation::new(&self.budget, bytes.len() + OVERHEAD);
            if !send(BrokerEvent::Message(Message::from_bytes(&bytes), held)) {
                return Ok(());
            }
        }
    }
}

fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the broker has closed it".into(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no answer in time".into(),
        _ => error.to_string(),
    }
}

/// Connects to the first address that answers.
fn dial(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                ffuzz_sys::network::notice_death(&stream);
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Messages to send over the current connection.
#[derive(Debug, Default)]
struct Outbox {
    queue: Mutex<SendQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SendQueue {
    open: bool,
    waiting: VecDeque<Vec<u8>>,
    numbers: Option<Vec<u8>>,
    pong: Option<Vec<u8>>,
    /// True if the writer has written everything that it took.
    idle: bool,
}

enum NextFrame {
    Message(Vec<u8>),
    Pong(Vec<u8>),
}

impl SendQueue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.numbers.is_none() && self.pong.is_none()
    }

    fn next(&mut self) -> Option<NextFrame> {
        if let Some(context) = self.pong.take() {
            return Some(NextFrame::Pong(context));
        }
        let message = self.waiting.pop_front().or_else(|| self.numbers.take());
        message.map(NextFrame::Message)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, SendQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) {
        *self.lock() = SendQueue { open: true, ..SendQueue::default() };
    }

    fn close(&self) {
        *self.lock() = SendQueue::default();
        self.changed.notify_all();
    }

    /// Waits for the next item to write; None at the end of the connection.
    fn take(&self) -> Option<NextFrame> {
        let mut queue = self.lock();
        while queue.open && queue.is_empty() {
            queue.idle = true;
            self.changed.notify_all();
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.idle = false;
        queue.open.then(|| queue.next()).flatten()
    }

    /// Writes until the connection ends, then wakes the reader.
    fn drain(&self, mut writer: FrameWriter<TcpStream>, stream: &TcpStream) {
        while let Some(next) = self.take() {
            let written = match next {
                NextFrame::Message(bytes) => writer.message(&bytes),
                NextFrame::Pong(context) => writer.pong(&context),
            };
            if written.is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Number of received bytes in use.
#[derive(Debug, Default)]
struct ByteBudget {
    held: Mutex<usize>,
    less: Condvar,
}

/// A share of the budget, returned when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl Reservation {
    /// Waits for room; a single message fits whatever its size.
    fn new(budget: &Arc<ByteBudget>, bytes: usize) -> Self {
        let held = budget.held.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |held: &mut usize| *held > 0 && *held + bytes > MOST_HELD;
        let mut held = budget.less.wait_while(held, full).unwrap_or_else(PoisonError::into_inner);
        *held += bytes;
        Self { budget: Arc::clone(budget), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.budget.held.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.less.notify_one();
    }
}
