//! Inspecting a process at a fatal signal (ptrace(2)): registers, memory, address.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::listen::{Limit, Listener};
use super::process::{Process, send};

/// Signals of a program that goes wrong.
pub const FATAL: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// A process, or one of its threads, that is stopped before a signal is delivered to it.
#[derive(Debug)]
pub struct TraceStop {
    pub thread: i32,
    pub signal: i32,
    /// The process stops by itself (`raise(SIGSTOP)`), as AFL's persistent loop does after an input.
    pub is_own: bool,
    /// What could not be read, written or executed.
    pub address: Option<u64>,
    /// In the order in which debuggers show them.
    pub registers: Vec<(&'static str, u64)>,
    memory: File,
}

impl TraceStop {
    fn new(thread: i32, signal: i32) -> io::Result<Self> {
        let info = ptrace::getsiginfo(Pid::from_raw(thread))?;
        // Codes above 0 are the kernel's; only its own signals carry an address.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
        let has_address = faults.contains(&signal) && info.si_code > 0 && info.si_code != SI_KERNEL;
        // SAFETY: the field is there for these signals, if the kernel sent them.
        let address = has_address.then(|| unsafe { info.si_addr() } as u64);
        let memory = File::open(format!("/proc/{thread}/mem"))?;
        // SAFETY: the field is there for signals that a process has sent.
        let is_sender = info.si_code == libc::SI_TKILL && unsafe { info.si_pid() } == thread;
        let is_own = is_sender && signal == libc::SIGSTOP;
        Ok(Self { thread, signal, is_own, address, registers: registers(thread)?, memory })
    }

    #[must_use]
    pub fn register(&self, name: &str) -> u64 {
        self.registers.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }

    /// A word of its memory.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// The content of `/proc/PID/maps`.
    #[must_use]
    pub fn maps(&self) -> String {
        let maps = std::fs::read(format!("/proc/{}/maps", self.thread)).unwrap_or_default();
        String::from_utf8_lossy(&maps).into_owned()
    }
}

/// A signal that the kernel sent without an address (a general protection fault).
const SI_KERNEL: i32 = 0x80;

/// Stops a process that has exceeded its timeout, to inspect it; never delivered.
pub const LATE: i32 = libc::SIGSTOP;

/// Waits for the end of a process that was started with `traced`, and shows it at each signal that may
/// be its last, and several times when its time is up. To be called by the thread that has started it.
/// None if its time was up.
pub fn wait(
    process: &mut Process,
    listener: &mut Listener,
    limit: impl Into<Limit>,
    look: impl FnMut(&TraceStop),
) -> Option<i32> {
    follow_to_end(process, listener, limit.into(), Options::empty(), look, |_, _| {})
}

/// The same for a fork server that starts one process, which stops by itself after each input. Its wait status
/// is returned, and the server is ended with it.
pub fn wait_served(
    process: &mut Process,
    listener: &mut Listener,
    limit: impl Into<Limit>,
    mut look: impl FnMut(&TraceStop),
) -> Option<i32> {
    let (server, limit) = (process.pid(), limit.into());
    let (own, last) = (Cell::new(0), Cell::new(None));
    let look = |stop: &TraceStop| {
        if stop.is_own && own.get() == 0 {
            own.set(stop.thread);
        }
        look(stop);
    };
    let ended = |pid, status| {
        if pid == own.get() {
            last.set(Some(status));
            // It would wait for orders.
            send(server, libc::SIGKILL);
        }
    };
    let options = Options::PTRACE_O_TRACEFORK;
    let status = follow_to_end(process, listener, limit, options, look, ended);
    if own.get() != 0 && last.get().is_none() {
        send(own.get(), libc::SIGKILL);
    }
    status.map(|status| last.get().unwrap_or(status))
}

/// `ended_too` gets each other process or thread that ends.
fn follow_to_end(
    process: &mut Process,
    listener: &mut Listener,
    limit: Limit,
    options: Options,
    mut look: impl FnMut(&TraceStop),
    mut ended_too: impl FnMut(i32, i32),
) -> Option<i32> {
    let (pid, ended) = (process.pid(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let listens = scope.spawn(|| {
            let has_ended = || ended.load(Ordering::Relaxed);
            listener.attend(pid, limit, has_ended, || send(pid, LATE))
        });
        follow(pid, options, &mut look, &mut ended_too);
        let status = process.wait_with(WaitPidFlag::empty());
        ended.store(true, Ordering::Relaxed);
        let in_time = listens.join().unwrap_or(true);
        status.filter(|_| in_time)
    })
}

/// Time within which a process stops for an inspection, unless the kernel is busy with it.
/// On a busy machine it waits for a core first.
const STOPPING: Duration = Duration::from_secs(1);

/// The same for an untraced process: it is shown only when it exceeds the timeout, and behaves until
/// then as it always does.
pub fn wait_untraced(
    process: &mut Process,
    listener: &mut Listener,
    limit: impl Into<Limit>,
    mut look: impl FnMut(&TraceStop),
) -> Option<i32> {
    let pid = process.pid();
    listener.wait_or(process, limit.into(), |listener| {
        listener.look_late(pid, || look_at(pid, &mut look), || false);
    })
}

/// Stops a process, shows it and lets it continue. Where that is forbidden nothing is shown.
fn look_at(pid: i32, look: &mut impl FnMut(&TraceStop)) {
    let process = Pid::from_raw(pid);
    if ptrace::seize(process, Options::empty()).and_then(|()| ptrace::interrupt(process)).is_err() {
        return;
    }
    let deadline = Instant::now() + STOPPING;
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
    while Instant::now() < deadline {
        match waitid(Id::Pid(process), flags) {
            Ok(WaitStatus::PtraceEvent(_, signal, event)) => {
                if let Ok(stop) = TraceStop::new(pid, LATE) {
                    look(&stop);
                }
                // It is stopped before a signal of its own, or by the fuzzer.
                let _ = ptrace::detach(process, Some(signal).filter(|_| event == 0));
                return;
            }
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return,
        }
    }
}

/// Continues it after every stop until it has ended; `others`: what is traced apart from its threads.
fn follow(
    pid: i32,
    others: Options,
    look: &mut impl FnMut(&TraceStop),
    ended: &mut impl FnMut(i32, i32),
) {
    let mut known: Vec<i32> = Vec::new();
    while let Some((thread, status)) = next_stop(pid, ended) {
        let mut deliver = 0;
        if !known.contains(&thread) {
            // The first stop is that of its start.
            known.push(thread);
            let options = others
                | Options::PTRACE_O_EXITKILL
                | Options::PTRACE_O_TRACECLONE
                | Options::PTRACE_O_TRACEEXEC;
            let _ = ptrace::setoptions(Pid::from_raw(thread), options);
        } else if status >> 16 == 0 {
            deliver = libc::WSTOPSIG(status);
            if (deliver == LATE || FATAL.contains(&deliver))
                && let Ok(stop) = TraceStop::new(thread, deliver)
            {
                look(&stop);
            }
            // Only a tracer can continue it.
            deliver = if deliver == LATE { 0 } else { deliver };
        }
        // SAFETY: the thread is stopped and traced by this one; both last arguments are integers.
        unsafe {
            libc::ptrace(libc::PTRACE_CONT, thread, 0usize, deliver as usize);
        }
    }
}

/// The next thread that has stopped; None when the process has ended and waits to be reaped.
fn next_stop(pid: i32, other_ended: &mut impl FnMut(i32, i32)) -> Option<(i32, i32)> {
    loop {
        // SAFETY: the kernel fills local values; a child of another thread is not touched.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let what = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
            let flags = what | libc::__WALL | libc::__WNOTHREAD;
            if libc::waitid(libc::P_ALL, 0, &raw mut info, flags) < 0 {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return None;
            }
            let found = info.si_pid();
            let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
            let ended = ends.contains(&info.si_code);
            if found == pid && ended {
                return None;
            }
            let mut status = 0;
            let reaped = libc::waitpid(found, &raw mut status, libc::__WALL | libc::__WNOTHREAD);
            if reaped == found && libc::WIFSTOPPED(status) {
                return Some((found, status));
            }
            if reaped == found {
                other_ended(found, status);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(thread: i32) -> io::Result<Vec<(&'static str, u64)>> {
    let r = ptrace::getregs(Pid::from_raw(thread))?;
    Ok(vec![
        ("rax", r.rax),
        ("rbx", r.rbx),
        ("rcx", r.rcx),
        ("rdx", r.rdx),
        ("rsi", r.rsi),
        ("rdi", r.rdi),
        ("rbp", r.rbp),
        ("rsp", r.rsp),
        ("r8", r.r8),
        ("r9", r.r9),
        ("r10", r.r10),
        ("r11", r.r11),
        ("r12", r.r12),
        ("r13", r.r13),
        ("r14", r.r14),
        ("r15", r.r15),
        ("rip", r.rip),
    ])
}

#[cfg(target_arch = "aarch64")]
fn registers(thread: i32) -> io::Result<Vec<(&'static str, u64)>> {
    const NAMES: [&str; 31] = [
        "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
        "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
        "x27", "x28", "x29", "x30",
    ];
    let thread = Pid::from_raw(thread);
    let r = ptrace::getregset::<ptrace::regset::NT_PRSTATUS>(thread)?;
    let general = NAMES.into_iter().zip(r.regs);
    Ok(general.chain([("sp", r.sp), ("pc", r.pc)]).collect())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: i32) -> io::Result<Vec<(&'static str, u64)>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::shell;

    fn signals(script: &str, timeout: Duration) -> (Option<i32>, Vec<i32>) {
        let mut listener = Listener::new(100).unwrap();
        let mut process = shell(script, listener.output(), true);
        let mut seen = Vec::new();
        let status = wait(&mut process, &mut listener, timeout, |stop| {
            let sp = stop.registers.iter().find(|(name, _)| ["rsp", "sp"].contains(name));
            assert!(stop.word(sp.unwrap().1).is_some() && stop.maps().contains("[stack]"));
            seen.push(stop.signal);
        });
        (status, seen)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_fatal_signal_is_seen_and_delivered() {
        assert_eq!(signals("kill -SEGV $$", LONG), (Some(11), vec![11]));
        assert_eq!(signals("trap 'exit 5' ABRT; kill -ABRT $$", LONG), (Some(0x500), vec![6]));
        assert_eq!(signals("kill -TERM $$", LONG), (Some(15), vec![]));
        assert_eq!(signals("/bin/true; exec /bin/sh -c 'exit 4'", LONG), (Some(0x400), vec![]));
    }

    #[test]
    fn a_process_that_nobody_traces_is_looked_at_when_its_time_is_up() {
        let run = |script: &str, timeout| {
            let mut listener = Listener::new(100).unwrap();
            let mut process = shell(script, listener.output(), false);
            let mut looks = 0;
            let status = wait_untraced(&mut process, &mut listener, timeout, |stop| {
                assert!(stop.maps().contains("[stack]") && stop.signal == LATE);
                looks += 1;
            });
            (status, looks)
        };
        for script in ["exec sleep 1000", "while :; do :; done"] {
            let (status, looks) = run(script, Duration::from_millis(100));
            assert!(status.is_none() && looks > 1, "{script}: {looks}");
        }
        assert_eq!(run("exec grep -q 'TracerPid:.0$' /proc/self/status", LONG), (Some(0), 0));
    }

    #[test]
    fn a_traced_process_has_no_more_time_than_another() {
        for script in ["sleep 1000", "while :; do :; done"] {
            let (status, seen) = signals(script, Duration::from_millis(100));
            assert!(status.is_none() && !seen.is_empty(), "{script}");
            assert!(seen.iter().all(|signal| *signal == LATE), "{seen:?}");
        }
    }
}
