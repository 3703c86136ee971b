//! Processes that a target leaves running: they outlive their run in sessions of their own.
//!
//! A mark that a target's processes inherit says whose they are, and a parent without it that they are orphans. The
//! mark is the soft limit of file locks (`RLIMIT_LOCKS`), which Linux keeps and shows to everybody
//! (`/proc/PID/limits`), but has not applied since 2.4.25: it stays when a program replaces its environment, its
//! title, its session or its executable, and no descriptor or variable of the target changes. This process does not
//! adopt orphans itself (`PR_SET_CHILD_SUBREAPER`): a program that signals its parent after that one has ended would
//! signal the fuzzer. There is no search during a run: only now and then, and at the end.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getsid};

use super::process::{Doing, doing_of, numbers, pidfd, send, stat, wait_for_end};

/// Begins the line of `/proc/PID/limits` with the mark, also in the script of the guard.
pub(super) const MARKED_LINE: &str = "Max file locks";

/// Interval between two searches if nothing was found, and if something was.
const CALM: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_millis(20);
/// A search takes at most one part in this many of the time, in both cases.
const CALM_SHARE: u32 = 200;
const BUSY_SHARE: u32 = 20;
/// From this number of processes in one search on, that share does not count: a target that starts them faster than
/// a twentieth of the time can end them would fill the machine with them.
const MANY: usize = 64;
/// Number of searches at the end: a killed process leaves children of its own to the next search.
const LAST_LOOKS: usize = 64;
/// And their time: a process that the kernel does not let go is left to itself.
const LAST_LOOKS_END: Duration = Duration::from_secs(3);
/// For the processes that a search killed, until they are gone.
const END: Duration = Duration::from_secs(1);

/// Links in `/proc/PID` of processes for which paths and process ids mean the same.
const SAME_PLACE: [&str; 3] = ["ns/pid", "ns/mnt", "root"];

/// Processes that the fuzzer started and has not reaped yet.
static STARTED: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// While it is held no process is started and no search runs.
pub(super) fn started() -> MutexGuard<'static, Vec<i32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that the starts of one target leave running; they end with it.
#[derive(Debug)]
pub struct Strays {
    mark: u64,
    next: Instant,
}

impl Default for Strays {
    fn default() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let mark = u64::from(std::process::id()) << 32 | u64::from(number);
        Self { mark, next: Instant::now() + CALM }
    }
}

impl Strays {
    /// The soft limit that the target's processes inherit; no other target on this machine has it.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Ends those that exist, if it is time for a search; to be called between two runs. Those that were
    /// started at a moment that is `spared`, as time since the machine's start, are left alone. The search ends early
    /// once `is_over`.
    pub fn sweep_if_due(
        &mut self,
        now: Instant,
        spared: impl Fn(Duration) -> bool,
        is_over: impl Fn() -> bool,
    ) {
        if now < self.next {
            return;
        }
        let found = sweep(Some(self.mark), spared, is_over);
        let pause = match found {
            0 => CALM.max(now.elapsed() * CALM_SHARE),
            1..MANY => BUSY.max(now.elapsed() * BUSY_SHARE),
            _ => BUSY,
        };
        self.next = Instant::now() + pause;
    }

    /// Ends all.
    pub fn clear(&self) {
        end_all(self.mark);
    }
}

impl Drop for Strays {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Orphans of other fuzzers, such as the workers of a fleet, which end them. If this process is the first one of a
/// container, it adopts them, and nobody else can reap them.
#[derive(Debug)]
pub struct Adopted {
    next: Instant,
}

impl Default for Adopted {
    fn default() -> Self {
        Self { next: Instant::now() + CALM }
    }
}

impl Adopted {
    /// Reaps those that have ended, if it is time for a search.
    pub fn reap_if_due(&mut self) {
        if std::process::id() == 1 && Instant::now() >= self.next {
            sweep(None, |_| true, || false);
            self.next = Instant::now() + CALM;
        }
    }
}

pub(super) fn end_all(mark: u64) {
    let deadline = Instant::now() + LAST_LOOKS_END;
    let is_over = || Instant::now() > deadline;
    for _ in 0..LAST_LOOKS {
        if sweep(Some(mark), |_| false, is_over) == 0 || is_over() {
            break;
        }
    }
}

/// Kills orphans of this mark, if one is given. Those that this process has adopted, because it is the first one of a container, are
/// reaped. Returns how many were killed. Asks `is_over` before each process: a search can take seconds if thousands
/// of them share the cores.
fn sweep(
    mark: Option<u64>,
    spared: impl Fn(Duration) -> bool,
    is_over: impl Fn() -> bool,
) -> usize {
    let started = started();
    let (own, session) = (std::process::id().cast_signed(), getsid(None).map_or(0, Pid::as_raw));
    let mut killed = Vec::new();
    for pid in numbers("/proc").take_while(|_| !is_over()) {
        let Some(process) = Orphan::read(pid) else { continue };
        if process.session == session || started.contains(&pid) {
            continue;
        }
        let adopted = process.parent == own;
        if process.has_ended {
            if adopted {
                reap(pid);
            }
        } else if !spared(process.since)
            && mark.is_some_and(|mark| {
                belongs(pid, mark) && (adopted || !belongs(process.parent, mark))
            })
        {
            send(pid, libc::SIGKILL);
            killed.push(pid);
        }
    }
    let deadline = Instant::now() + END;
    for pid in &killed {
        if !is_over() {
            wait_for_end(*pid, deadline.saturating_duration_since(Instant::now()));
        }
        reap(*pid);
    }
    killed.len()
}

fn belongs(pid: i32, mark: u64) -> bool {
    mark_of(pid) == Some(mark)
}

fn mark_of(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(MARKED_LINE))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Kills what is left of a fuzzer that was killed together with its guard: processes with the mark of a fuzzer that no
/// longer exists, and with `variable` in their environment. The kernel destroys a shared memory segment with the last of
/// them. Processes that see other files or other process ids are left alone: their values may mean something else.
/// Returns how many were killed.
pub fn end_abandoned(variable: &str, value: &OsStr) -> usize {
    let wanted = [variable.as_bytes(), b"=", value.as_bytes()].concat();
    let is_abandoned = |pid: i32| {
        let fuzzer = mark_of(pid).and_then(|mark| i32::try_from(mark >> 32).ok());
        let environment = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_same = |link: &&str| {
            let [theirs, ours] = [pid.to_string(), "self".into()]
                .map(|process| fs::read_link(format!("/proc/{process}/{link}")).ok());
            theirs.is_some() && theirs == ours
        };
        fuzzer.is_some_and(|fuzzer| fuzzer > 0 && doing_of(fuzzer) == Doing::Ended)
            && SAME_PLACE.iter().all(is_same)
            && environment().split(|byte| *byte == 0).any(|entry| entry == wanted)
    };
    // The descriptor comes first: it stays with the process that was checked.
    let open = |pid| pidfd(pid).filter(|_| is_abandoned(pid)).map(|process| (pid, process));
    let found: Vec<_> = numbers("/proc").filter_map(open).collect();
    for (_, process) in &found {
        // SAFETY: the descriptor is open; a null pointer stands for the usual information of a signal.
        unsafe {
            let none = std::ptr::null::<libc::siginfo_t>();
            let fd = process.as_raw_fd();
            libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, none, 0);
        }
    }
    let deadline = Instant::now() + END;
    for (pid, _) in &found {
        wait_for_end(*pid, deadline.saturating_duration_since(Instant::now()));
    }
    found.len()
}

fn reap(pid: i32) {
    // SAFETY: the call takes integers; no other code waits for this process.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// The part of the kernel's data about a process that is needed here.
struct Orphan {
    has_ended: bool,
    parent: i32,
    session: i32,
    since: Duration,
}

impl Orphan {
    fn read(pid: i32) -> Option<Self> {
        let stat = stat(&format!("/proc/{pid}/stat"));
        let mut fields = stat.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        // Field 22 of proc(5); the session was field 6.
        let since = super::process::time(fields.nth(15)?.parse().ok()?);
        Some(Self { has_ended: state.starts_with(['Z', 'X']), parent, session, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::since_boot;
    use crate::process::OutputTo;
    use crate::tests::start_marked;

    /// A shell that starts a process in a session of its own and without a variable; its number.
    fn daemon(strays: &Strays) -> i32 {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "(setsid env -i /bin/sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' &) ; while [ ! -e {0} ]; do :; done",
            file.display()
        );
        let mut shell =
            start_marked(&["/bin/sh", "-c", &script], OutputTo::Nowhere, Some(strays)).unwrap();
        assert_eq!(shell.wait_for(Duration::from_secs(100)), Some(0));
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    fn lives(pid: i32) -> bool {
        Orphan::read(pid).is_some_and(|process| !process.has_ended)
    }

    #[test]
    fn only_those_of_the_target_end() {
        let (mut one, other) = (Strays::default(), Strays::default());
        let before = since_boot();
        let (first, second) = (daemon(&one), daemon(&other));
        // It may send its parent a signal.
        let parent = Orphan::read(first).unwrap().parent;
        assert_ne!(parent, std::process::id().cast_signed());
        one.sweep_if_due(one.next - Duration::from_millis(1), |_| false, || false);
        assert!(lives(first), "it is not time yet");
        one.next = Instant::now();
        let is_spared = |since| since + Duration::from_millis(20) >= before;
        one.sweep_if_due(Instant::now(), is_spared, || false);
        assert!(lives(first), "spared");
        one.next = Instant::now();
        one.sweep_if_due(Instant::now(), |_| false, || true);
        assert!(lives(first), "the search was left");
        one.clear();
        assert!(!lives(first) && lives(second));
        drop(other);
        assert!(!lives(second));
    }
}
