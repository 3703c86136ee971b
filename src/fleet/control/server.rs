//! The clients of a socket. Each has a thread that reads commands and one that writes lines, so no client
//! can block the campaign.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::commands::{Command, LONGEST_LINE};
use super::events::Hello;
use super::mailbox::Mailbox;
use super::questions::Questions;
use super::refused::Refused;
use super::socket::Socket;
use super::{Deliver, Incoming, Order};
use ffuzz_event::{Event, EventSink, Reply};

/// Maximum number of clients: each costs two threads.
const MOST_CLIENTS: usize = 64;
/// Time for clients to read remaining lines at the end.
const LAST_READS: Duration = Duration::from_secs(3);
/// Pause after a connection could not be accepted, perhaps for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct ServerState {
    /// Number and mailbox of each client.
    clients: Vec<(u64, Arc<Mailbox>)>,
    /// Number of clients so far.
    count: u64,
    /// Line for new clients after the greeting: fuzzing has begun.
    started: Option<Arc<str>>,
    /// True if no more clients are accepted.
    over: bool,
    refused: Refused,
}

#[derive(Debug, Default)]
struct Clients {
    state: Mutex<ServerState>,
    left: Condvar,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a client and queues its first line.
    fn add(&self, hello: &str) -> Result<(u64, Arc<Mailbox>), String> {
        let mut state = self.lock();
        if state.over {
            return Err("the campaign has ended".into());
        }
        if state.clients.len() >= MOST_CLIENTS {
            return Err(format!("{MOST_CLIENTS} clients are connected already"));
        }
        state.count += 1;
        let mailbox = Arc::new(Mailbox::default());
        mailbox.put(hello.into());
        state.started.iter().for_each(|line| mailbox.put(line.clone()));
        let number = state.count;
        state.clients.push((number, Arc::clone(&mailbox)));
        Ok((number, mailbox))
    }

    fn remove(&self, number: u64) {
        self.lock().clients.retain(|(other, _)| *other != number);
        self.left.notify_all();
    }

    /// Sends a line to all clients, including later ones.
    fn start(&self, line: Arc<str>) {
        let mut state = self.lock();
        state.clients.iter().for_each(|(_, mailbox)| mailbox.put(line.clone()));
        state.started = Some(line);
    }

    /// Logs a refusal, unless one was logged a moment ago.
    fn refuse(&self, cause: &str, deliver: &Deliver) {
        let line = self.lock().refused.note(cause, Instant::now());
        if let Some(line) = line {
            deliver(Incoming::Refused(line));
        }
    }

    fn each(&self, act: impl Fn(&Mailbox)) {
        self.lock().clients.iter().for_each(|(_, mailbox)| act(mailbox));
    }
}

/// Puts events into the clients' mailboxes. When dropped, it lets clients read remaining lines, closes all
/// connections and removes the socket.
#[derive(Debug)]
pub(super) struct ClientSink {
    clients: Arc<Clients>,
    hello: Hello,
    /// Unix second of the last reported state.
    last_stats: u64,
    socket: Option<Socket>,
    questions: Arc<Questions>,
}

impl ClientSink {
    /// Accepts clients and passes their commands to `deliver`.
    pub(super) fn serve(
        socket: Socket,
        hello: Hello,
        questions: Arc<Questions>,
        deliver: Deliver,
    ) -> io::Result<Self> {
        let clients = Arc::new(Clients::default());
        let (listener, first, theirs) = (socket.listener()?, hello.line(), Arc::clone(&clients));
        let receiver = Receiver { deliver, questions: Arc::clone(&questions) };
        spawn("control", move || accept(&listener, &first, &theirs, &receiver))?;
        Ok(Self { clients, hello, last_stats: 0, socket: Some(socket), questions })
    }

    fn publish(&mut self, event: &Event, worker: Option<&str>) {
        // Skip formatting without clients.
        if self.clients.lock().clients.is_empty() && !matches!(event, Event::Started) {
            return;
        }
        match event {
            Event::Tick(snapshot) if snapshot.times.now == self.last_stats => return,
            Event::Tick(snapshot) if worker.is_none() => self.last_stats = snapshot.times.now,
            _ => {}
        }
        for line in self.hello.lines(event, worker) {
            let line: Arc<str> = line.into();
            match event {
                Event::Started => self.clients.start(line),
                Event::Reply(reply) => self.answer(reply.client, line),
                Event::Tick(_) => self.clients.each(|mailbox| mailbox.put_stats(line.clone())),
                _ => self.clients.each(|mailbox| mailbox.put(line.clone())),
            }
        }
        if matches!(event, Event::Stopped { .. }) && worker.is_none() {
            self.close();
        }
    }

    fn answer(&self, client: u64, line: Arc<str>) {
        let state = self.clients.lock();
        let its = state.clients.iter().find(|(number, _)| *number == client);
        its.into_iter().for_each(|(_, mailbox)| mailbox.answer(line.clone()));
    }

    fn close(&self) {
        self.clients.lock().over = true;
        self.clients.each(Mailbox::close);
    }
}

impl EventSink for ClientSink {
    fn handle(&mut self, event: &Event) {
        self.publish(event, None);
    }

    fn handle_of(&mut self, worker: &str, event: &Event) {
        self.publish(event, Some(worker));
    }
}

impl Drop for ClientSink {
    fn drop(&mut self) {
        self.close();
        self.questions.stop();
        self.socket = None;
        let deadline = Instant::now() + LAST_READS;
        let mut state = self.clients.lock();
        while !state.clients.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.clients.left.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Destination of clients' commands.
#[derive(Clone)]
struct Receiver {
    deliver: Deliver,
    questions: Arc<Questions>,
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

fn accept(listener: &UnixListener, hello: &str, clients: &Arc<Clients>, receiver: &Receiver) {
    while !clients.lock().over {
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, hello, clients, receiver),
            Err(_) => thread::park_timeout(PAUSE),
        }
    }
}

fn welcome(mut stream: UnixStream, hello: &str, clients: &Arc<Clients>, receiver: &Receiver) {
    let (number, mailbox) = match clients.add(hello) {
        Ok(client) => client,
        Err(error) => {
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(refusal(&error).as_bytes());
            return clients.refuse(&error, &receiver.deliver);
        }
    };
    let started = start(stream, number, &mailbox, clients, receiver);
    if started.is_err() {
        mailbox.abandon();
        clients.remove(number);
    }
}

fn start(
    stream: UnixStream,
    number: u64,
    mailbox: &Arc<Mailbox>,
    clients: &Arc<Clients>,
    receiver: &Receiver,
) -> io::Result<()> {
    let (theirs, all) = (Arc::clone(mailbox), Arc::clone(clients));
    let mut writer = stream.try_clone()?;
    spawn("control-out", move || {
        theirs.deliver(|line| writer.write_all(line.as_bytes()).is_ok());
        // Signals the end to every reader of the stream, including the reading thread.
        let _ = writer.shutdown(std::net::Shutdown::Both);
        all.remove(number);
    })?;
    let (theirs, all) = (Arc::clone(mailbox), Arc::clone(clients));
    let Receiver { deliver, questions } = receiver.clone();
    let take = {
        let (all, deliver) = (Arc::clone(&all), Arc::clone(&deliver));
        let asked = Arc::clone(mailbox);
        move |order: Order| {
            if let Ok(Command::Ask(question)) = &order.command {
                asked.answer(questions.answer(question).into());
                return true;
            }
            order.command.as_ref().err().into_iter().for_each(|error| all.refuse(error, &deliver));
            deliver(order.into())
        }
    };
    spawn("control-in", move || match listen(&stream, number, take, |bytes| theirs.admit(bytes)) {
        ConnectionEnd::TooLong => {
            let error =
                format!("a line is longer than {LONGEST_LINE} bytes: the connection is closed");
            theirs.put(refusal(&error).into());
            theirs.close();
            all.refuse(&error, &deliver);
        }
        ConnectionEnd::Closed if hung_up(&stream) => theirs.abandon(),
        ConnectionEnd::Closed => {}
    })
}

/// Last line for a client whose commands are no longer read.
fn refusal(error: &str) -> String {
    let reply = Event::Reply(Reply { error: Some(error.into()), ..Reply::default() });
    Hello::default().lines(&reply, None).concat()
}

/// Returns true if the client has closed both directions, not only its sending one.
fn hung_up(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let _ = poll(&mut fds, PollTimeout::ZERO);
    fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

/// Reason why reading ended.
pub(super) enum ConnectionEnd {
    Closed,
    TooLong,
}

/// Passes the input on line by line. `admit` returns true if a command of this size is accepted.
pub(super) fn listen(
    from: impl Read,
    client: u64,
    deliver: impl Fn(Order) -> bool,
    admit: impl Fn(usize) -> bool,
) -> ConnectionEnd {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = LONGEST_LINE as u64 + 1;
        match reader.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") => {}
            Ok(_) if line.len() > LONGEST_LINE => return ConnectionEnd::TooLong,
            // An incomplete line is ignored.
            _ => return ConnectionEnd::Closed,
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, command) = Command::parse(&line);
        if !admit(line.len()) || !deliver(Order { client, id, command }) {
            return ConnectionEnd::Closed;
        }
    }
}
