//! Starting and ending target processes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use super::guard::Guard;
use super::strays::{self, Strays};

/// What to start and with which descriptors and limits.
#[derive(Debug)]
pub struct Launch<'a> {
    pub argv: &'a [OsString],
    /// Added to the environment of this process; None removes the variable.
    pub env: &'a [(OsString, Option<OsString>)],
    pub stdin: Stdio,
    pub output: OutputTo<'a>,
    /// Further descriptors: (number here, number in the target).
    pub fds: &'a [(BorrowedFd<'a>, RawFd)],
    /// Largest address space in bytes.
    pub memory_limit: Option<u64>,
    /// Largest core file in bytes; 0: none.
    pub core_limit: u64,
    /// Its children end together with the fuzzer in any case; for programs that have some.
    pub guarded: bool,
    /// It stops at each of its signals for the thread that started it: see [`super::traced`].
    pub traced: bool,
    /// Ends the processes that it leaves running.
    pub strays: Option<&'a Strays>,
    /// Its memory lies at the same addresses in each process, where that is allowed: some programs take random numbers
    /// from them.
    pub fixed_addresses: bool,
}

/// Where stdout and stderr of a target go.
#[derive(Clone, Copy, Debug)]
pub enum OutputTo<'a> {
    /// To /dev/null.
    Nowhere,
    /// The same as the fuzzer's.
    Shown,
    /// Into a file, at most this many bytes.
    File(&'a File, u64),
    /// To the fuzzer: stdout and stderr separately.
    Pipes(&'a PipeWriter, &'a PipeWriter),
}

impl OutputTo<'_> {
    #[must_use]
    pub fn shown(yes: bool) -> Self {
        if yes { Self::Shown } else { Self::Nowhere }
    }
}

/// A started process; killed and reaped when dropped, together with its process group.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    reaped: bool,
    /// None also on a system without a shell.
    guard: Option<Guard>,
    /// Of its [`Strays`].
    mark: Option<u64>,
}

/// Inherited descriptors are looked for below this number where the kernel cannot mark a range.
const MOST_INHERITED: RawFd = 1024;

/// Starts a program in a session of its own. It gets the descriptors 0, 1, 2 and those of `fds`, and no other.
pub fn launch(launch: Launch<'_>) -> io::Result<Process> {
    let mut command = Command::new(&launch.argv[0]);
    command.args(&launch.argv[1..]).stdin(launch.stdin);
    let mut largest_file = None;
    match launch.output {
        OutputTo::Nowhere => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        OutputTo::Shown => {}
        OutputTo::File(file, most) => {
            command.stdout(file.try_clone()?).stderr(file.try_clone()?);
            largest_file = Some(most);
        }
        OutputTo::Pipes(stdout, stderr) => {
            command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        }
    }
    for (name, value) in launch.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let fds: Vec<(RawFd, RawFd)> =
        launch.fds.iter().map(|(ours, theirs)| (ours.as_raw_fd(), *theirs)).collect();
    let limits = [
        (Resource::RLIMIT_CORE, Some(launch.core_limit)),
        (Resource::RLIMIT_AS, launch.memory_limit),
        (Resource::RLIMIT_FSIZE, largest_file),
    ];
    let (traced, fixed) = (launch.traced, launch.fixed_addresses);
    let parent = nix::unistd::getpid();
    let mark = launch.strays.map(Strays::mark);
    // SAFETY: `prepare` makes only async-signal-safe calls and allocates nothing.
    unsafe { command.pre_exec(move || prepare(&fds, &limits, mark, parent, traced, fixed)) };
    let mut started = strays::started();
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
    started.push(pid);
    drop(started);
    let mut process = Process { pid: Pid::from_raw(pid), reaped: false, guard: None, mark };
    if launch.guarded {
        process.guard = Guard::new().ok();
        process.guard.iter_mut().for_each(|guard| guard.watch(pid, mark));
    }
    Ok(process)
}

/// Makes descriptors from 3 on end with exec: what this process has inherited from its own parent is not the
/// program's.
fn close_inherited() {
    // SAFETY: system calls on integers.
    unsafe {
        let flag = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flag) < 0 {
            // Before Linux 5.11. All descriptors of ours are below, and have the flag.
            for number in 3..MOST_INHERITED {
                libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Runs in the child between fork and exec. Async-signal-safe calls only: setsid, prctl, getppid,
/// getrlimit, setrlimit, close_range, fcntl, dup2, signal, personality, ptrace.
fn prepare(
    fds: &[(RawFd, RawFd)],
    limits: &[(Resource, Option<u64>)],
    mark: Option<u64>,
    parent: Pid,
    traced: bool,
    fixed: bool,
) -> io::Result<()> {
    // SAFETY: plain system calls on integers and a local struct; the descriptors are open, the
    // caller owns them. `setsid` fails only for a group leader, which a fresh child is not.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It may have been killed before the line above.
        if libc::getppid() != parent.as_raw() {
            return Err(io::ErrorKind::NotFound.into());
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        raise_open_files(HIGHEST_FD);
        close_inherited();
        for (ours, theirs) in fds {
            if ours == theirs {
                libc::fcntl(*ours, libc::F_SETFD, 0);
            } else if libc::dup2(*ours, *theirs) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        for (what, bytes) in limits {
            if let Some(bytes) = *bytes {
                let _ = setrlimit(*what, bytes, bytes);
            }
        }
        if let Some(mark) = mark
            && let Ok((_, hard)) = getrlimit(Resource::RLIMIT_LOCKS)
        {
            let _ = setrlimit(Resource::RLIMIT_LOCKS, mark, hard);
        }
        if fixed {
            let present = libc::personality(0xffff_ffff);
            libc::personality(libc::c_ulong::from(present.cast_unsigned()) | ADDR_NO_RANDOMIZE);
        }
        if traced && libc::ptrace(libc::PTRACE_TRACEME) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes the process to be started one that takes only what is left of these cores, in a group of its
/// own, which signals of the terminal do not reach.
pub fn in_background(command: &mut Command, cores: &[usize]) {
    on_cores(command, cores);
    // SAFETY: system calls on integers; what the kernel refuses makes the process less modest, no more.
    unsafe {
        command.pre_exec(move || {
            libc::setpriority(libc::PRIO_PROCESS, 0, 19);
            libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_CLASS_IDLE);
            // Not SCHED_IDLE: leaving it at this priority needs a privilege.
            set_policy(0, libc::SCHED_BATCH);
            Ok(())
        })
    };
}

/// The process of a command gets a group of its own, and may use these cores; all that this process may use if there are
/// none.
pub fn on_cores(command: &mut Command, cores: &[usize]) {
    let mut set = nix::sched::CpuSet::new();
    for core in cores {
        // Beyond the largest set there is no core.
        let _ = set.set(*core);
    }
    let bound = !cores.is_empty();
    command.process_group(0);
    // SAFETY: a system call on values that the closure owns; what the kernel refuses changes nothing.
    unsafe {
        command.pre_exec(move || {
            if bound {
                let _ = nix::sched::sched_setaffinity(Pid::from_raw(0), &set);
            }
            Ok(())
        })
    };
}

/// Such a process becomes one like others, with all of its threads; what they start from now on, too.
/// Without a privilege it stays nice: then it interrupts others again, and may use the disk as they do,
/// but gets its small part of a core that they use as well.
pub fn leave_background() {
    for thread in numbers("/proc/self/task") {
        set_policy(thread, libc::SCHED_OTHER);
        // SAFETY: system calls on integers.
        unsafe {
            libc::setpriority(libc::PRIO_PROCESS, thread.cast_unsigned(), 0);
            libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, thread, IOPRIO_CLASS_NONE);
        }
    }
}

/// Of a thread; 0 is the one that calls.
fn set_policy(thread: i32, policy: i32) {
    // SAFETY: the parameter is a local, all zero as both policies require.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(thread, policy, &raw const parameter);
    }
}

/// Of personality(2).
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;

/// Of ioprio_set(2), which has no names in any header. None: as its priority is.
const IOPRIO_WHO_PROCESS: i32 = 1;
const IOPRIO_CLASS_NONE: i32 = 0;
const IOPRIO_CLASS_IDLE: i32 = 3 << 13;

/// Descriptor 199 must be legal: AFL's protocol uses it.
const HIGHEST_FD: u64 = 200;

/// Raises the limit of open files to this number, if the system permits it.
pub fn raise_open_files(count: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a valid local struct.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < count {
            limit.rlim_cur = limit.rlim_max.min(count);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// The limit of this process on its addresses (`ulimit -v`), in bytes; None if there is none.
#[must_use]
pub fn address_limit() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (soft != libc::RLIM_INFINITY).then_some(soft)
}

/// A socket that waits for clients, or of datagrams that is bound to a port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Listening {
    Tcp(u16),
    Udp(u16),
    Unix(String),
}

/// Whether it is blocked in a call that waits for connections or data of a socket; also of one that is
/// traced and stopped there. The inner value is the first of its sockets that waits for clients.
#[must_use]
pub fn awaited_socket(pid: i32) -> Option<Option<Listening>> {
    let waits = |thread| thread_waits_on_socket(pid, thread);
    numbers(&format!("/proc/{pid}/task"))
        .any(waits)
        .then(|| listening_sockets(pid).into_iter().next())
}

/// The sockets of a process that wait for clients, in the order of their descriptors.
fn listening_sockets(pid: i32) -> Vec<Listening> {
    let table = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{name}"));
        text.unwrap_or_default().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut known: Vec<(String, Listening)> = Vec::new();
    for (name, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        for line in table(name) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, local, _, now, _, _, _, _, _, inode, ..] = words[..] else { continue };
            let port =
                local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
            let Some(port) = port.filter(|_| now == state) else { continue };
            let socket = if state == "0A" { Listening::Tcp(port) } else { Listening::Udp(port) };
            known.push((inode.into(), socket));
        }
    }
    for line in table("unix") {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [_, _, _, "00010000", _, _, inode, path] = words[..] {
            known.push((inode.into(), Listening::Unix(path.into())));
        }
    }
    let mut descriptors: Vec<i32> = numbers(&format!("/proc/{pid}/fd")).collect();
    descriptors.sort_unstable();
    let found = descriptors.into_iter().filter_map(|number| {
        let goal = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?;
        let goal = goal.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
        known.iter().find(|(inode, _)| *inode == goal).map(|(_, socket)| socket.clone())
    });
    found.collect()
}

fn thread_waits_on_socket(pid: i32, thread: i32) -> bool {
    #[cfg(target_arch = "x86_64")]
    const OLD_CALLS: &[i64] = &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait];
    #[cfg(not(target_arch = "x86_64"))]
    const OLD_CALLS: &[i64] = &[];
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
    let text = text.unwrap_or_default();
    let mut words = text.split_ascii_whitespace();
    let Some(call) = words.next().and_then(|word| word.parse::<i64>().ok()) else { return false };
    let first = words.next().and_then(|word| u64::from_str_radix(word.get(2..)?, 16).ok());
    let is_socket = |fd: i32| {
        let goal = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
        goal.to_string_lossy().starts_with("socket:")
    };
    match call {
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_recvfrom | libc::SYS_recvmsg => true,
        libc::SYS_read | libc::SYS_readv => first.is_some_and(|fd| is_socket(fd as i32)),
        libc::SYS_ppoll | libc::SYS_pselect6 | libc::SYS_epoll_pwait => {
            numbers(&format!("/proc/{pid}/fd")).any(is_socket)
        }
        call if OLD_CALLS.contains(&call) => numbers(&format!("/proc/{pid}/fd")).any(is_socket),
        _ => false,
    }
}

impl Process {
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Whether it sleeps in a call that waits for input from any source.
    #[must_use]
    pub fn waits_for_input(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        const OLD_CALLS: &[i64] = &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait];
        #[cfg(not(target_arch = "x86_64"))]
        const OLD_CALLS: &[i64] = &[];
        let calls = [
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_ppoll,
            libc::SYS_pselect6,
            libc::SYS_epoll_pwait,
        ];
        let text = std::fs::read_to_string(format!("/proc/{}/syscall", self.pid));
        let text = text.unwrap_or_default();
        let call = text.split(' ').next().and_then(|number| number.parse().ok());
        call.is_some_and(|call| calls.contains(&call) || OLD_CALLS.contains(&call))
    }

    /// What it does now, and how long it has been on a core so far.
    #[must_use]
    pub fn doing(&self) -> (Doing, Duration) {
        let stat = stat(&format!("/proc/{}/stat", self.pid));
        (doing(&stat), time(ticks_of(&stat, OWN_TICKS)))
    }

    /// Raw wait status if the process has ended.
    pub fn try_wait(&mut self) -> Option<i32> {
        self.wait_with(WaitPidFlag::WNOHANG)
    }

    /// Waits at most `timeout` for the end; None if it still runs.
    pub fn wait_for(&mut self, timeout: Duration) -> Option<i32> {
        let deadline = Instant::now() + timeout;
        let handle = pidfd(self.pid.as_raw());
        loop {
            if let Some(status) = self.try_wait() {
                return Some(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match &handle {
                Some(fd) => {
                    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
                    let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None);
                }
                // Linux before 5.3.
                None => std::thread::sleep(left.min(Duration::from_millis(1))),
            }
        }
    }

    /// Reaps it, if it has ended, and ends what it left behind: children of a target that nobody
    /// waits for would pile up. The group is killed first, as long as its number cannot be that of
    /// another one.
    pub(super) fn wait_with(&mut self, flags: WaitPidFlag) -> Option<i32> {
        if self.reaped {
            return None;
        }
        let look = flags | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.pid), look) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
            _ => return None,
        }
        let _ = killpg(self.pid, Signal::SIGKILL);
        let status = match waitpid(self.pid, None) {
            Ok(WaitStatus::Exited(_, code)) => code << 8,
            Ok(WaitStatus::Signaled(_, signal, core)) => {
                signal as i32 | if core { 0x80 } else { 0 }
            }
            _ => return None,
        };
        self.reaped = true;
        strays::started().retain(|pid| *pid != self.pid.as_raw());
        self.guard = None;
        Some(status)
    }

    /// Sends `signal`, waits a moment, then kills.
    pub fn stop(&mut self, signal: i32) {
        if self.reaped {
            return;
        }
        send(self.pid.as_raw(), signal);
        // A fork server only has to kill its child and leave; 200 ms is ample for that.
        if self.wait_for(Duration::from_millis(200)).is_none() {
            self.kill();
        }
    }

    /// A tracer of its own keeps it from being reaped: then the tracer is killed first.
    fn kill(&mut self) {
        let _ = killpg(self.pid, Signal::SIGKILL);
        send(self.pid.as_raw(), libc::SIGKILL);
        if self.wait_for(LAST_WAIT).is_none() {
            self.mark.into_iter().for_each(strays::end_all);
            self.wait_for(LAST_WAIT);
        }
    }
}

/// For a process that was killed: more than it takes to release a large memory on a busy machine.
const LAST_WAIT: Duration = Duration::from_secs(5);

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}

/// Waits at most `timeout` until a process has ended, which then has to be reaped.
pub fn wait_for_end(pid: i32, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    let Some(fd) = pidfd(pid) else { return };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None) {
            Err(nix::errno::Errno::EINTR) if !left.is_zero() => {}
            _ => return,
        }
    }
}

/// Sends a signal to one process. Ids that would mean a group or everybody are refused: they come
/// from the target.
pub fn send(pid: i32, signal: i32) {
    if pid > 1
        && let Ok(signal) = Signal::try_from(signal)
    {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Kills what is left of the session of a process that has ended: a debugger puts its target into a
/// process group of its own, and releases the target's children.
pub fn end_session(leader: i32) {
    session(leader).for_each(|pid| send(pid, libc::SIGKILL));
}

/// The processes of a session.
fn session(leader: i32) -> impl Iterator<Item = i32> {
    let of_session = move |pid: &i32| {
        nix::unistd::getsid(Some(Pid::from_raw(*pid))) == Ok(Pid::from_raw(leader))
    };
    numbers("/proc").filter(of_session)
}

/// The names in a folder that are numbers: processes, or threads.
pub(super) fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processor time of a session's processes, and whether they need more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Time on cores, that of children that have ended included.
    pub(super) cpu: Duration,
    /// One of their threads runs, waits for a core, or for a disk.
    pub(super) wants: bool,
}

/// What a process does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Doing {
    /// A signal or a tracer holds it.
    Stopped,
    /// It waits for something to happen.
    Sleeps,
    /// It runs, or waits for a core or a disk.
    Works,
    /// It has ended, or never was.
    Ended,
}

/// What the process of that number does.
#[must_use]
pub fn doing_of(pid: i32) -> Doing {
    doing(&stat(&format!("/proc/{pid}/stat")))
}

fn doing(stat: &str) -> Doing {
    match stat.as_bytes().first() {
        None | Some(b'Z' | b'X' | b'x') => Doing::Ended,
        Some(b'T' | b't') => Doing::Stopped,
        Some(b'S' | b'I') => Doing::Sleeps,
        Some(_) => Doing::Works,
    }
}

pub(super) fn time(ticks: u64) -> Duration {
    // SAFETY: the call takes an integer and returns one.
    let rate = u32::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) });
    Duration::from_secs(ticks) / rate.unwrap_or(100).max(1)
}

pub(super) fn session_load(leader: i32) -> Load {
    let (mut ticks, mut wants) = (0, false);
    for pid in session(leader) {
        ticks += ticks_of(&stat(&format!("/proc/{pid}/stat")), ALL_TICKS);
        let threads = format!("/proc/{pid}/task");
        wants = wants
            || numbers(&threads)
                .any(|thread| stat(&format!("{threads}/{thread}/stat")).starts_with(['R', 'D']));
    }
    Load { cpu: time(ticks), wants }
}

/// The part after the name, which may hold anything: the state first.
pub(super) fn stat(path: &str) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(") ").map_or_else(String::new, |(_, rest)| rest.to_owned())
}

/// Number of values to sum of utime, stime, cutime and cstime: those of a process itself, or all.
const OWN_TICKS: usize = 2;
const ALL_TICKS: usize = 4;

fn ticks_of(stat: &str, fields: usize) -> u64 {
    stat.split(' ').skip(11).take(fields).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// True if `pid` belongs to the session that `ancestor` leads, or is its child.
#[must_use]
pub fn descends_from(pid: i32, ancestor: i32) -> bool {
    if pid <= 1 || pid == ancestor {
        return false;
    }
    let session = nix::unistd::getsid(Some(Pid::from_raw(pid)));
    session == Ok(Pid::from_raw(ancestor)) || parent_of(pid) == Some(ancestor)
}

fn parent_of(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Largest resident set so far of a process and of those of its children that run now, MiB.
#[must_use]
pub fn peak_rss_mb(pid: i32) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let pids = children.split_whitespace().filter_map(|child| child.parse().ok()).chain([pid]);
    pids.map(peak_of).max().unwrap_or(0) >> 10
}

/// In KiB.
fn peak_of(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Largest resident set of all children that have ended, MiB.
#[must_use]
pub fn peak_child_rss_mb() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or(0) >> 10)
}

/// A descriptor that becomes readable when the process ends.
pub(super) fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: the call takes integers; a descriptor it returns is fresh and owned here (close-on-exec).
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        i32::try_from(fd).ok().filter(|fd| *fd >= 0).map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{shell, start};

    #[test]
    fn exit_status_is_raw_and_a_running_process_is_none() {
        let mut quick = shell("exit 5", OutputTo::Nowhere, false);
        assert_eq!(quick.wait_for(Duration::from_secs(10)), Some(0x500));
        let mut slow = shell("exec sleep 1000", OutputTo::Nowhere, false);
        assert_eq!(slow.wait_for(Duration::from_millis(5)), None);
        send(slow.pid(), libc::SIGTERM);
        assert_eq!(slow.wait_for(Duration::from_secs(10)), Some(libc::SIGTERM));
    }

    #[test]
    fn what_a_process_leaves_behind_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}", file.display());
        let mut parent = shell(&script, OutputTo::Nowhere, false);
        assert_eq!(parent.wait_for(Duration::from_secs(10)), Some(0));
        let pid = std::fs::read_to_string(file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let deadline = Instant::now() + Duration::from_secs(10);
        while state().is_ok_and(|state| !state.contains(") Z")) {
            assert!(Instant::now() < deadline, "the child lives");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_missing_program_is_an_error_of_the_start() {
        let error = start(&["/proc/none"], OutputTo::Nowhere, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_started_in_the_background_is_nice() {
        let mut command = Command::new("/bin/cat");
        in_background(command.arg("/proc/self/stat"), &[]);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let fields: Vec<&str> = said.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Field 19 of proc(5), and field 41; the state is the third.
        assert_eq!((fields[16], fields[38]), ("19", libc::SCHED_BATCH.to_string().as_str()));
    }

    #[test]
    fn all_threads_leave_the_background() {
        let (ask, asked) = std::sync::mpsc::channel();
        set_policy(0, libc::SCHED_BATCH);
        // It has the policy of the process that starts it.
        let other = std::thread::spawn(move || {
            asked.recv().unwrap();
            // SAFETY: the call takes an integer and returns one.
            unsafe { libc::sched_getscheduler(0) }
        });
        leave_background();
        ask.send(()).unwrap();
        assert_eq!(other.join().unwrap(), libc::SCHED_OTHER);
    }

    #[test]
    fn dangerous_process_ids_get_no_signal() {
        // -1 would be every process; this test is still alive afterwards.
        for pid in [-1, 0, 1] {
            send(pid, libc::SIGKILL);
        }
    }
}
