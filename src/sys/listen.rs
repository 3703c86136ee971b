//! The output of a process: the beginning and the end of each stream.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::process::{OutputTo, Process, pidfd, send, session_load};

/// Size of one read: the capacity of a pipe.
const CHUNK: usize = 1 << 16;
/// Number of chunks that are read from the pipes of an ended process. Other processes may still write.
const MOST_LEFT: usize = 16;
/// Interval between two checks of the process where the kernel does not report its end (before 5.3).
const LOOK: Duration = Duration::from_millis(5);
/// Number of stops of a process that has exceeded the timeout.
const LATE_LOOKS: u32 = 30;
/// Interval between two of these checks, and their maximum number.
const PAUSE: Duration = Duration::from_millis(10);
const MOST_PAUSES: u32 = 10;

/// How long a process may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// As long as it runs, or waits for something else than a core.
    pub own: Duration,
    /// In any case: more than `own` if it waits for a core that others have.
    pub wall: Duration,
}

impl From<Duration> for Limit {
    fn from(time: Duration) -> Self {
        Self { own: time, wall: time }
    }
}

impl Limit {
    /// How much longer a process may take, of which this long has passed. Only one that needs a core and
    /// has had it for less than nearly all of its own time waits for others.
    fn more(&self, pid: i32, passed: Duration) -> Option<Duration> {
        let left = self.wall.saturating_sub(passed);
        if left.is_zero() {
            return None;
        }
        let load = session_load(pid);
        (load.wants && load.cpu + self.own / 10 < self.own)
            .then(|| (self.own / 10).max(LOOK).min(left))
    }
}

/// A stream of any length in bounded room.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Bounded {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    lost: u64,
    /// Each of both parts at most.
    part: usize,
}

impl Bounded {
    fn new(part: usize) -> Self {
        Self { part, ..Self::default() }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.part - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a long piece only its end could stay.
        let skipped = rest.len().saturating_sub(self.part);
        self.tail.extend(&rest[skipped..]);
        let over = self.tail.len().saturating_sub(self.part);
        self.tail.drain(..over);
        self.lost += (skipped + over) as u64;
    }

    /// With a line instead of the lost part.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.lost > 0 {
            let line = format!("\n[{} bytes left out]\n", self.lost);
            bytes.extend_from_slice(line.as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

/// Both streams of a process that is about to be started.
#[derive(Debug)]
pub struct Listener {
    /// None once its end was read.
    readers: [Option<PipeReader>; 2],
    /// This side's copies are closed when the process has its own.
    writers: Option<[PipeWriter; 2]>,
    received: [Bounded; 2],
}

impl Listener {
    /// Keeps the first and the last `part` bytes of each stream.
    pub fn new(part: usize) -> io::Result<Self> {
        let ((out, out_writer), (err, err_writer)) = (pipe()?, pipe()?);
        Ok(Self {
            readers: [Some(out), Some(err)],
            writers: Some([out_writer, err_writer]),
            received: [Bounded::new(part), Bounded::new(part)],
        })
    }

    /// For [`super::process::launch`].
    #[must_use]
    pub fn output(&self) -> OutputTo<'_> {
        match &self.writers {
            Some([out, err]) => OutputTo::Pipes(out, err),
            None => OutputTo::Nowhere,
        }
    }

    /// Listens until the process has ended; None if it had to be killed because its time was up.
    pub fn wait(&mut self, process: &mut Process, limit: impl Into<Limit>) -> Option<i32> {
        self.wait_or(process, limit.into(), |_| {})
    }

    /// The same with a last call before it is killed.
    pub(super) fn wait_or(
        &mut self,
        process: &mut Process,
        limit: Limit,
        late: impl FnOnce(&mut Self),
    ) -> Option<i32> {
        self.writers = None;
        let pid = process.pid();
        let in_time = self.listen(pid, limit, || false);
        if !in_time {
            late(self);
            send(pid, libc::SIGKILL);
        }
        let status = process.wait_for(if in_time { limit.own } else { LOOK * 200 });
        self.drain();
        status.filter(|_| in_time)
    }

    /// The same for a process whose end another thread waits for, and notes by `ended`. False if it was
    /// killed, after some calls of `late`.
    pub(super) fn attend(
        &mut self,
        pid: i32,
        limit: Limit,
        mut ended: impl FnMut() -> bool,
        late: impl Fn(),
    ) -> bool {
        self.writers = None;
        let in_time = self.listen(pid, limit, &mut ended);
        if !in_time {
            self.look_late(pid, late, &mut ended);
            send(pid, libc::SIGKILL);
        }
        while !ended() {
            self.poll(None, LOOK);
        }
        self.drain();
        in_time
    }

    /// Calls `late` some times, and listens in between. One that waits for a core would be seen at the same place
    /// each time.
    pub(super) fn look_late(
        &mut self,
        pid: i32,
        mut late: impl FnMut(),
        mut ended: impl FnMut() -> bool,
    ) {
        for _ in 0..LATE_LOOKS {
            late();
            let before = session_load(pid).cpu;
            for _ in 0..MOST_PAUSES {
                let gone = self.listen(pid, PAUSE.into(), &mut ended);
                let load = session_load(pid);
                if gone || !load.wants || load.cpu > before {
                    break;
                }
            }
        }
    }

    /// What was read: stdout, stderr.
    #[must_use]
    pub fn into_output(self) -> [Vec<u8>; 2] {
        self.received.map(Bounded::into_bytes)
    }

    /// True when the process has ended, false when its time is up.
    fn listen(&mut self, pid: i32, limit: Limit, mut ended: impl FnMut() -> bool) -> bool {
        let handle = pidfd(pid);
        let start = Instant::now();
        let mut deadline = start + limit.own;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let pause = if handle.is_some() { left } else { left.min(LOOK) };
            // Also when no time is left: maybe this process got no core.
            let gone = self.poll(handle.as_ref().map(AsFd::as_fd), pause);
            if gone || ended() || (handle.is_none() && !is_running(pid)) {
                return true;
            }
            if left.is_zero() {
                let Some(more) = limit.more(pid, start.elapsed()) else { return false };
                deadline = Instant::now() + more;
            }
        }
    }

    /// Reads what is there, or waits for it; true if `end` has become readable.
    fn poll(&mut self, end: Option<BorrowedFd<'_>>, pause: Duration) -> bool {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(3);
        let open: Vec<usize> = (0..2).filter(|index| self.readers[*index].is_some()).collect();
        let readers = self.readers.iter().flatten().map(AsFd::as_fd);
        fds.extend(readers.chain(end).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        if ppoll(&mut fds, Some(TimeSpec::from_duration(pause)), None).unwrap_or(0) <= 0 {
            return false;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        for (index, ready) in open.iter().zip(&ready) {
            if *ready {
                self.read(*index);
            }
        }
        ready.get(open.len()).copied().unwrap_or(false)
    }

    /// Reads one chunk.
    fn read(&mut self, index: usize) {
        let mut chunk = [0; CHUNK];
        let Some(reader) = &mut self.readers[index] else { return };
        match reader.read(&mut chunk) {
            Ok(0) => self.readers[index] = None,
            Ok(count) => self.received[index].add(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.readers[index] = None,
        }
    }

    /// What the process has left.
    fn drain(&mut self) {
        for index in 0..2 {
            for _ in 0..MOST_LEFT {
                let Some(reader) = &self.readers[index] else { break };
                let mut fds = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
                let none = Some(TimeSpec::from_duration(Duration::ZERO));
                if ppoll(&mut fds, none, None).unwrap_or(0) <= 0 {
                    break;
                }
                self.read(index);
            }
        }
    }
}

/// A process that waits to be reaped does not run.
fn is_running(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = state.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !after_name.is_empty() && !after_name.starts_with(['Z', 'X'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{shell, start};

    fn run(script: &str, part: usize, timeout: Duration) -> (Option<i32>, [Vec<u8>; 2]) {
        let mut listener = Listener::new(part).unwrap();
        let mut process = shell(script, listener.output(), false);
        let status = listener.wait(&mut process, timeout);
        (status, listener.into_output())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn both_streams_are_read_to_their_end() {
        let (status, [out, err]) = run("echo one; echo two >&2; exit 3", 100, LONG);
        assert_eq!((status, out, err), (Some(0x300), b"one\n".into(), b"two\n".into()));
    }

    #[test]
    fn a_stream_without_end_takes_bounded_room() {
        let script = "echo begin; head -c 50000000 /dev/zero; echo end; exec >&- 2>&-; /bin/true";
        let (status, [out, _]) = run(script, 1000, LONG);
        assert_eq!(status, Some(0));
        assert!(out.starts_with(b"begin\n\0") && out.ends_with(b"\0end\n"));
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\n[49998010 bytes left out]\n"), "{}", text.len());
    }

    #[test]
    fn a_process_whose_time_is_up_is_killed_with_what_it_started() {
        let (status, [out, _]) = run("echo up; sleep 1000 & wait", 10, Duration::from_millis(200));
        assert_eq!((status, out), (None, b"up\n".into()));
    }

    /// Aborts after 300 ms on a core.
    const BUSY: &str = "while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ < /proc/$$/stat; do \
        [ $((user + system)) -ge 30 ] && kill -ABRT $$; done";

    #[test]
    fn to_wait_for_a_core_is_not_to_take_long() {
        let core = crate::affinity::allowed()[0].to_string();
        let on_core = |script: &str| {
            let words = ["taskset", "-c", &core, "/bin/sh", "-c", script];
            let listener = Listener::new(10).unwrap();
            (start(&words, listener.output(), false).unwrap(), listener)
        };
        let others: Vec<_> = (0..4).map(|_| on_core("while :; do :; done")).collect();
        let run = |script: &str, limit: Limit| {
            let (mut process, mut listener) = on_core(script);
            listener.wait(&mut process, limit)
        };
        let own = Duration::from_millis(400);
        assert_eq!(run(BUSY, own.into()), None);
        // The start of the programs costs time on a core, too.
        let limit = Limit { own: own * 4, wall: LONG };
        assert_eq!(run(BUSY, limit).map(|status| status & 0x7f), Some(libc::SIGABRT));
        // One that sleeps has no use for a core.
        let begin = Instant::now();
        assert_eq!(run("exec sleep 1000", limit), None);
        assert!(begin.elapsed() < LONG / 2, "{:?}", begin.elapsed());
        drop(others);
        let begin = Instant::now();
        assert_eq!(run("while :; do :; done", limit), None);
        assert!(begin.elapsed() < LONG / 2, "{:?}", begin.elapsed());
    }
}
