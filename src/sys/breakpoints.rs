//! Following a process with everything it starts: it stops at breakpoints (ptrace(2)), in all of its
//! threads and children.
//!
//! A breakpoint that stays is passed by one single step of its thread, with the instruction in place;
//! another thread may run over it unseen meanwhile. Only on x86-64.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::WaitPidFlag;
use nix::unistd::Pid;

use super::listen::{Limit, Listener};
use super::process::{Process, send};

/// This processor's breakpoints are known here.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");
/// Most threads and processes at a time; the process is ended at the next.
pub const MOST_THREADS: usize = 256;

/// For killed processes, until they are gone.
const LAST_WAIT: Duration = Duration::from_secs(1);
const INT3: u8 = 0xcc;
const PAGE: u64 = 4096;
/// Most bytes of code that are read and written at once.
const MOST_PAGES: u64 = 256;

/// Where to stop: an address in the process, and what the watcher calls it.
pub type Place = (u64, u64);

/// What comes after a breakpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    Keep,
    Remove,
    /// It stays, and the watcher looks at the process again: it has loaded code.
    Look,
    /// The process is ended.
    End,
}

/// Says where to stop, and is called at each stop.
pub trait Watcher {
    /// The process runs another program, or has loaded code: all places where it has to stop now.
    fn look(&mut self, pid: i32) -> Vec<Place>;

    /// A thread has reached a place.
    fn hit(&mut self, thread: i32, name: u64) -> Next;
}

/// Why a process was not followed to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Given {
    /// It has more than [`MOST_THREADS`].
    Threads,
    /// The watcher has had enough.
    Enough,
}

/// The end of a process that was followed.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// Its wait status; None if its time was up.
    pub status: Option<i32>,
    pub given_up: Option<Given>,
}

/// Waits for the end of a process that was started with `traced`. To be called by the thread that has
/// started it. What it has started ends with it.
pub fn follow(
    process: &mut Process,
    listener: &mut Listener,
    limit: impl Into<Limit>,
    watcher: &mut dyn Watcher,
) -> Followed {
    let (pid, limit, ended) = (process.pid(), limit.into(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let listens = scope.spawn(|| {
            let has_ended = || ended.load(Ordering::Relaxed);
            listener.attend(pid, limit, has_ended, || {})
        });
        let mut family = ProcessFamily::new(pid);
        family.run(watcher);
        family.end();
        let status = process.wait_with(WaitPidFlag::empty());
        ended.store(true, Ordering::Relaxed);
        let in_time = listens.join().unwrap_or(true);
        Followed { status: status.filter(|_| in_time), given_up: family.given_up }
    })
}

/// A breakpoint.
#[derive(Clone, Copy, Debug)]
struct Armed {
    address: u64,
    name: u64,
    /// The byte that belongs there.
    byte: u8,
    armed: bool,
}

/// The memory of a process.
#[derive(Debug)]
struct Space {
    memory: File,
    /// In the order of the addresses.
    places: Vec<Armed>,
    /// Processes that use it.
    users: usize,
}

impl Space {
    fn open(pid: i32) -> io::Result<File> {
        File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))
    }

    fn find(&self, address: u64) -> Option<usize> {
        self.places.binary_search_by_key(&address, |place| place.address).ok()
    }

    /// Stops at these places, and at no others.
    fn arm(&mut self, mut wanted: Vec<Place>) {
        wanted.sort_unstable();
        wanted.dedup_by_key(|(address, _)| *address);
        let mut places: Vec<Armed> = Vec::with_capacity(wanted.len());
        let mut fresh = Vec::new();
        for (address, name) in wanted {
            match self.find(address).map(|at| self.places[at]).filter(|known| known.name == name) {
                Some(known) => places.push(known),
                None => {
                    fresh.push(places.len());
                    places.push(Armed { address, name, byte: 0, armed: false });
                }
            }
        }
        self.places = places;
        let mut rest = fresh.as_slice();
        while let Some(first) = rest.first() {
            let start = self.places[*first].address / PAGE * PAGE;
            let near = |at: &usize| self.places[*at].address < start + MOST_PAGES * PAGE;
            let count = rest.partition_point(near);
            self.arm_stretch(&rest[..count]);
            rest = &rest[count..];
        }
    }

    /// Those that lie close together. What cannot be read and written stays as it is.
    fn arm_stretch(&mut self, places: &[usize]) {
        let address = |at: &usize| self.places[*at].address;
        let (Some(first), Some(last)) = (places.first().map(address), places.last().map(address))
        else {
            return;
        };
        let mut code = vec![0; usize::try_from(last - first + 1).unwrap_or_default()];
        if self.memory.read_exact_at(&mut code, first).is_err() {
            // There is a hole in it.
            if let [_, .., _] = places {
                let (left, right) = places.split_at(places.len() / 2);
                self.arm_stretch(left);
                self.arm_stretch(right);
            }
            return;
        }
        for at in places {
            let place = &mut self.places[*at];
            if let Ok(offset) = usize::try_from(place.address - first) {
                place.byte = std::mem::replace(&mut code[offset], INT3);
            }
        }
        let written = self.memory.write_all_at(&code, first).is_ok();
        for at in places {
            self.places[*at].armed = written;
        }
    }

    fn set(&mut self, at: usize, armed: bool) {
        let place = &mut self.places[at];
        let byte = if armed { INT3 } else { place.byte };
        if self.memory.write_all_at(&[byte], place.address).is_ok() {
            place.armed = armed;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    space: usize,
    /// It has made its first stop.
    started: bool,
    /// The breakpoint that it passes by a step.
    passing: Option<u64>,
    /// It comes back to this place without having left it.
    again: Option<u64>,
}

/// A process, its threads and all they have started.
struct ProcessFamily {
    leader: i32,
    threads: HashMap<i32, Thread>,
    spaces: Vec<Option<Space>>,
    /// Stopped, and not announced yet by the thread that has started them.
    early: Vec<i32>,
    given_up: Option<Given>,
}

impl ProcessFamily {
    fn new(leader: i32) -> Self {
        let (threads, spaces) = (HashMap::new(), Vec::new());
        Self { leader, threads, spaces, early: Vec::new(), given_up: None }
    }

    /// Until the first process has ended.
    fn run(&mut self, watcher: &mut dyn Watcher) {
        while let Some((thread, status)) = self.next_stop() {
            if self.given_up.is_some() {
                send(self.leader, libc::SIGKILL);
                resume(thread, false, libc::SIGKILL);
                continue;
            }
            match self.threads.get(&thread) {
                None if thread == self.leader => self.begin(thread, watcher),
                None => self.early.push(thread),
                Some(known) if !known.started => self.start_thread(thread),
                Some(_) => self.stopped(thread, status, watcher),
            }
        }
    }

    /// The program was loaded, and nothing of it has run.
    fn begin(&mut self, pid: i32, watcher: &mut dyn Watcher) {
        let options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        let _ = ptrace::setoptions(Pid::from_raw(pid), options);
        self.loaded(pid, watcher);
        resume(pid, false, 0);
    }

    /// A process with a new program.
    fn loaded(&mut self, pid: i32, watcher: &mut dyn Watcher) {
        self.release(pid);
        let Ok(memory) = Space::open(pid) else { return };
        let mut space = Space { memory, places: Vec::new(), users: 1 };
        space.arm(watcher.look(pid));
        let space = self.add(space);
        self.threads.insert(pid, Thread { space, started: true, passing: None, again: None });
    }

    fn add(&mut self, space: Space) -> usize {
        let free = self.spaces.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.spaces.push(None);
            self.spaces.len() - 1
        });
        self.spaces[at] = Some(space);
        at
    }

    fn release(&mut self, thread: i32) {
        let Some(known) = self.threads.remove(&thread) else { return };
        if let Some(space) = &mut self.spaces[known.space] {
            space.users -= 1;
            if space.users == 0 {
                self.spaces[known.space] = None;
            }
        }
    }

    fn start_thread(&mut self, thread: i32) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.started = true;
        }
        resume(thread, false, 0);
    }

    /// A thread, or a process, was started by another.
    fn started(&mut self, parent: i32, child: i32, shares: bool) {
        let Some(space) = self.threads.get(&parent).map(|parent| parent.space) else { return };
        let copy = self.spaces[space].as_ref().filter(|_| !shares).and_then(|from| {
            let memory = Space::open(child).ok()?;
            Some(Space { memory, places: from.places.clone(), users: 1 })
        });
        let space = match copy {
            Some(copy) => self.add(copy),
            None => {
                self.spaces[space].iter_mut().for_each(|space| space.users += 1);
                space
            }
        };
        let started = self.early.iter().position(|early| *early == child);
        let thread = Thread { space, started: started.is_some(), passing: None, again: None };
        self.threads.insert(child, thread);
        if let Some(at) = started {
            self.early.swap_remove(at);
            resume(child, false, 0);
        }
        if self.threads.len() > MOST_THREADS {
            self.given_up = Some(Given::Threads);
        }
    }

    fn stopped(&mut self, thread: i32, status: i32, watcher: &mut dyn Watcher) {
        let stepped = self.finish_step(thread);
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        match event {
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                let child = ptrace::getevent(Pid::from_raw(thread)).ok();
                if let Some(child) = child.and_then(|child| i32::try_from(child).ok()) {
                    self.started(thread, child, event != libc::PTRACE_EVENT_FORK);
                }
                resume(thread, false, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                // It has the number of its process from now on, and is the only one left of it.
                let former = ptrace::getevent(Pid::from_raw(thread)).ok();
                if let Some(former) = former.and_then(|former| i32::try_from(former).ok()) {
                    self.release(former);
                }
                self.loaded(thread, watcher);
                resume(thread, false, 0);
            }
            0 if signal == libc::SIGTRAP && stepped => resume(thread, false, 0),
            0 if signal == libc::SIGTRAP => match self.reached(thread) {
                Some((at, again)) => self.hit(thread, at, again, watcher),
                None => resume(thread, false, signal),
            },
            0 => resume(thread, false, if stops_group(thread, signal) { 0 } else { signal }),
            _ => resume(thread, false, 0),
        }
    }

    /// Puts back the breakpoint that a thread was to pass by a step, unless another one is still passing it. True if it
    /// was: a signal may have come first, and an instruction that repeats itself makes a step of each round.
    fn finish_step(&mut self, thread: i32) -> bool {
        let Some(known) = self.threads.get_mut(&thread) else { return false };
        let Some(address) = known.passing.take() else { return false };
        known.again = instruction_pointer(thread).filter(|now| *now == address);
        let place = (known.space, Some(address));
        let is_passed = self.threads.values().any(|other| (other.space, other.passing) == place);
        if let Some(space) = self.spaces[place.0].as_mut().filter(|_| !is_passed)
            && let Some(at) = space.find(address)
        {
            space.set(at, true);
        }
        true
    }

    /// The breakpoint that a thread has executed, and whether it has been there before without leaving.
    /// Another thread may have removed it meanwhile.
    fn reached(&mut self, thread: i32) -> Option<(usize, bool)> {
        let address = instruction_pointer(thread)?.checked_sub(1)?;
        let known = self.threads.get_mut(&thread)?;
        let at = self.spaces[known.space].as_ref()?.find(address)?;
        Some((at, known.again.take() == Some(address)))
    }

    fn hit(&mut self, thread: i32, at: usize, again: bool, watcher: &mut dyn Watcher) {
        let Some(known) = self.threads.get(&thread).copied() else { return };
        let Some(space) = &mut self.spaces[known.space] else { return };
        let Armed { address, name, .. } = space.places[at];
        let next = if again { Next::Keep } else { watcher.hit(thread, name) };
        set_instruction_pointer(thread, address);
        space.set(at, false);
        match next {
            Next::Remove => return resume(thread, false, 0),
            Next::Look => space.arm(watcher.look(thread)),
            Next::End => self.given_up = Some(Given::Enough),
            Next::Keep => {}
        }
        if let Some(known) = self.threads.get_mut(&thread) {
            known.passing = Some(address);
        }
        resume(thread, true, 0);
    }

    /// The next thread that has stopped; None when the first process has ended and waits to be reaped.
    fn next_stop(&mut self) -> Option<(i32, i32)> {
        loop {
            // SAFETY: the kernel fills local values; a child of another thread is not touched.
            let (found, ended, status) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let what = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
                let flags = what | libc::__WALL | libc::__WNOTHREAD;
                if libc::waitid(libc::P_ALL, 0, &raw mut info, flags) < 0 {
                    if Errno::last() == Errno::EINTR {
                        continue;
                    }
                    return None;
                }
                let found = info.si_pid();
                let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
                let ended = ends.contains(&info.si_code);
                if found == self.leader && ended {
                    return None;
                }
                let mut status = 0;
                libc::waitpid(found, &raw mut status, libc::__WALL | libc::__WNOTHREAD);
                (found, ended, status)
            };
            if ended {
                self.release(found);
                self.early.retain(|early| *early != found);
            } else if libc::WIFSTOPPED(status) {
                return Some((found, status));
            }
        }
    }

    /// Ends what the first process has left. A process is there as long as one of its threads is.
    fn end(&mut self) {
        let mut left: Vec<i32> = self.threads.keys().chain(&self.early).copied().collect();
        left.retain(|thread| *thread != self.leader);
        left.iter().for_each(|thread| send(*thread, libc::SIGKILL));
        let deadline = Instant::now() + LAST_WAIT;
        while !left.is_empty() && Instant::now() < deadline {
            left.retain(|thread| {
                let flags = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
                let mut status = 0;
                // SAFETY: the kernel fills a local value.
                let found = unsafe { libc::waitpid(*thread, &raw mut status, flags) };
                found == 0 || found > 0 && libc::WIFSTOPPED(status)
            });
            std::thread::sleep(Duration::from_micros(if left.is_empty() { 0 } else { 200 }));
        }
    }
}

/// The thread is stopped as a part of its whole process, by a signal that it has been given.
fn stops_group(thread: i32, signal: i32) -> bool {
    [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
        && ptrace::getsiginfo(Pid::from_raw(thread)) == Err(Errno::EINVAL)
}

/// Lets it run, or make one step.
fn resume(thread: i32, step: bool, signal: i32) {
    let how = if step { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
    // SAFETY: the thread is traced by this one; both last arguments are integers.
    unsafe {
        libc::ptrace(how, thread, 0usize, usize::try_from(signal).unwrap_or_default());
    }
}

#[cfg(target_arch = "x86_64")]
const INSTRUCTION_POINTER: usize = std::mem::offset_of!(libc::user_regs_struct, rip);
/// No place is armed where this is not known.
#[cfg(not(target_arch = "x86_64"))]
const INSTRUCTION_POINTER: usize = 0;

fn instruction_pointer(thread: i32) -> Option<u64> {
    Errno::clear();
    // SAFETY: the thread is stopped and traced by this one; the offset is that of a register.
    let word = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, thread, INSTRUCTION_POINTER, 0usize) };
    (Errno::last_raw() == 0).then(|| word.cast_unsigned())
}

fn set_instruction_pointer(thread: i32, address: u64) {
    // SAFETY: as above; the address is that of code of the thread.
    unsafe {
        libc::ptrace(libc::PTRACE_POKEUSER, thread, INSTRUCTION_POINTER, address);
    }
}
