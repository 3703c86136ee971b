//! Which mutator's code is running: for the last message when a foreign mutator ends the process, and for a
//! warning when it takes for ever.
//!
//! A signal handler and an exit handler name the hook that runs; a thread warns when it does not return. A small
//! process, forked before any mutator was loaded, names it if this one ends without either (`_exit`, SIGKILL).

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use super::stop::Stop;
use super::{stdio, terminal};

/// A hook of a mutator, in words that a signal handler can write.
#[derive(Debug)]
pub struct Label {
    pub mutator: String,
    pub hook: &'static str,
    /// Its place on the board, 0 for none.
    place: u32,
}

impl Label {
    /// Kept for ever: a signal may come at any time.
    #[must_use]
    pub fn new(mutator: &str, hook: &'static str) -> &'static Self {
        let place = board().map_or(0, |board| board.enter(mutator, hook));
        Box::leak(Box::new(Self { mutator: mutator.to_owned(), hook, place }))
    }
}

static CURRENT: AtomicPtr<Label> = AtomicPtr::new(std::ptr::null_mut());
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Time after which a call that does not return is reported, and the interval of the checks.
const LONG: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(250);

/// How long a call may continue after a request to stop, or after the limit of time.
const LEAVE: Duration = Duration::from_secs(5);
/// How long the last words of a campaign that is abandoned may take: foreign code may hold any lock.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The source of requests to stop.
static STOP: OnceLock<Stop> = OnceLock::new();

/// What is done before a campaign is abandoned, with the number of its runs.
static LAST: OnceLock<Box<dyn Fn(u64) + Send + Sync>> = OnceLock::new();
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Signals by which code ends its process.
const FATAL: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// A call, from its begin to its end.
#[derive(Debug)]
pub struct Underway(());

impl Underway {
    #[inline]
    pub fn begin(label: &'static Label) -> Self {
        // One thread calls mutators, so there is one writer.
        CALLS.store(CALLS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        CURRENT.store(std::ptr::from_ref(label).cast_mut(), Ordering::Release);
        show(label.place);
        Self(())
    }
}

impl Drop for Underway {
    #[inline]
    fn drop(&mut self) {
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
        show(0);
    }
}

/// What the witness reads after the end of this process: memory that is shared with it.
#[repr(C)]
struct Board {
    /// The entry whose call is underway, counted from 1; 0: none.
    current: AtomicU32,
    entered: AtomicU32,
    entries: [[AtomicU8; ENTRY]; ENTRIES],
}

/// Hooks of a few mutators, and what is shown of each.
const ENTRIES: usize = 256;
const ENTRY: usize = 120;

/// None if there is no memory for it. The witness sees it: shared, but of no file, which memmap2's
/// anonymous mappings are not.
fn board() -> Option<&'static Board> {
    static BOARD: OnceLock<Option<&'static Board>> = OnceLock::new();
    *BOARD.get_or_init(|| {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let length = size_of::<Board>();
        // SAFETY: a new mapping, as long as a board, of zeros, which are a valid one. It is never
        // unmapped.
        unsafe {
            let memory = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
            (memory != libc::MAP_FAILED).then(|| &*memory.cast::<Board>())
        }
    })
}

impl Board {
    /// Stores the text of a label; returns its place, 0 if there is none left.
    fn enter(&self, mutator: &str, hook: &str) -> u32 {
        let place = self.entered.fetch_add(1, Ordering::Relaxed);
        let Some(entry) = self.entries.get(place as usize) else { return 0 };
        // It is not read before the label is current.
        for (to, from) in entry.iter().zip(format!("{mutator} was in {hook}").into_bytes()) {
            to.store(from, Ordering::Relaxed);
        }
        place + 1
    }
}

fn show(place: u32) {
    if let Some(board) = board() {
        board.current.store(place, Ordering::Release);
    }
}

/// Starts a process that waits for the end of this one: after `_exit` or a kill this process cannot print a
/// last message. The witness shares its standard error and nothing else.
fn start_witness() {
    let Some(board) = board() else { return };
    let mut pipe = [0; 2];
    // SAFETY: system calls on integers and a local array. The child calls only what is
    // async-signal-safe, as `witness` promises.
    unsafe {
        if libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return;
        }
        match libc::fork() {
            0 => witness(board, pipe[0]),
            // This end stays open until the process ends.
            pid if pid > 0 => _ = libc::close(pipe[0]),
            _ => _ = (libc::close(pipe[0]), libc::close(pipe[1])),
        }
    }
}

/// Runs in a forked child. Async-signal-safe calls only: signal, setpgid, prctl, dup2, close_range, read,
/// write, _exit.
fn witness(board: &Board, end: i32) -> ! {
    // SAFETY: system calls on integers and on memory that lives as long as the process.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTTOU, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, c"ffuzz-witness".as_ptr());
        libc::dup2(end, 0);
        stdio::keep_error_only();
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        let mut byte = 0_u8;
        while libc::read(0, (&raw mut byte).cast(), 1) < 0
            && *libc::__errno_location() == libc::EINTR
        {}
        let place = board.current.load(Ordering::Acquire) as usize;
        if let Some(entry) = place.checked_sub(1).and_then(|place| board.entries.get(place)) {
            let bytes: [u8; ENTRY] = std::array::from_fn(|at| entry[at].load(Ordering::Relaxed));
            let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(ENTRY);
            let text = std::str::from_utf8(&bytes[..length]).unwrap_or("of an unknown name");
            // The screen may have been opened after the fork.
            terminal::leave_after_the_end();
            stdio::write_error(&[
                "ffuzz: the process ended while the mutator ",
                text,
                "\nffuzz: hint: it called _exit, or the process was killed; what was found is on disk: \
                 resume with -i -\n",
            ]);
        }
        libc::_exit(0)
    }
}

fn current() -> Option<&'static Label> {
    // SAFETY: only labels are stored, which live for ever.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// From now on a mutator that crashes, ends the process or does not return is named.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        start_witness();
        install_handlers();
        // SAFETY: a plain function that allocates nothing.
        unsafe { libc::atexit(at_exit) };
        // Without it a call that does not return is not named.
        let watcher = std::thread::Builder::new().name("calls".into());
        let _ = watcher.spawn(look_for_slow_calls);
    });
}

/// From now on a call that does not return after a request to stop is named, and ends the process after a
/// while.
pub fn stop_on(stop: &Stop) {
    // There is one campaign in a process.
    let _ = STOP.set(stop.clone());
}

/// Does this, in another thread, before a campaign is abandoned because of a call that does not return.
/// `act` gets the number that was noted last.
pub fn at_last(act: impl Fn(u64) + Send + Sync + 'static) {
    let _ = LAST.set(Box::new(act));
}

/// The campaign has made this number of runs.
pub fn note_runs(runs: u64) {
    RUNS.store(runs, Ordering::Relaxed);
}

/// Whether the campaign of this process is to end. Code that waits for a program of the user's asks this.
#[must_use]
pub fn is_over() -> bool {
    STOP.get().is_some_and(Stop::is_over)
}

/// Never ends.
fn look_for_slow_calls() {
    let mut warned: Vec<&str> = Vec::new();
    let (mut call, mut since) = (0, Instant::now());
    let mut asked: Option<Instant> = None;
    loop {
        std::thread::sleep(LOOK);
        let now = CALLS.load(Ordering::Relaxed);
        let label = current();
        match label.filter(|_| now == call && is_over()) {
            Some(label) => abandon(label, &mut asked),
            None => asked = None,
        }
        if now != call || label.is_none() {
            (call, since) = (now, Instant::now());
        } else if let Some(label) = label.filter(|_| since.elapsed() >= LONG)
            && !warned.contains(&label.mutator.as_str())
        {
            warned.push(&label.mutator);
            let text = [
                "ffuzz: warning: mutator ",
                &label.mutator,
                " is still busy in ",
                label.hook,
                " after 5 seconds\n",
            ];
            stdio::write_error(&text);
        }
    }
}

/// An end was requested, then or now, and this call blocks it.
fn abandon(label: &Label, asked: &mut Option<Instant>) {
    let Some(since) = *asked else {
        *asked = Some(Instant::now());
        let (mutator, hook) = (&label.mutator, label.hook);
        stdio::write_error(&[
            "ffuzz: mutator ",
            mutator,
            " has not returned from ",
            hook,
            ": the campaign ends when it does, or in 5 seconds; a second Ctrl-C ends it immediately\n",
        ]);
        return;
    };
    if since.elapsed() >= LEAVE {
        terminal::leave();
        stdio::write_error(&[
            "ffuzz: mutator ",
            &label.mutator,
            " did not return from ",
            label.hook,
            "\nffuzz: hint: what was found is on disk: resume with -i -, without the mutator if necessary\n",
        ]);
        if let Some(last) = LAST.get() {
            let (done, wait) = std::sync::mpsc::channel();
            // It may hang, because foreign code may hold any lock.
            let act = std::thread::Builder::new().spawn(move || {
                last(RUNS.load(Ordering::Relaxed));
                let _ = done.send(());
            });
            if act.is_ok() {
                let _ = wait.recv_timeout(LAST_WORDS);
            }
        }
        forget();
        // SAFETY: no precondition. Foreign code may hold any lock: nothing else is run on the way out.
        unsafe { libc::_exit(1) };
    }
}

/// The end that comes now is not the mutator's doing. Async-signal-safe.
pub(super) fn forget() {
    // A label that is set has opened the board.
    if !CURRENT.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
        show(0);
    }
}

fn install_handlers() {
    for signal in FATAL {
        let mut action = empty_action();
        action.sa_sigaction = on_crash as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // SAFETY: a handler that only calls async-signal-safe functions; the signal exists.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

fn empty_action() -> libc::sigaction {
    // SAFETY: all zeros is a valid sigaction: the default action, no flags, nothing blocked.
    unsafe { std::mem::zeroed() }
}

/// Async-signal-safe: writes, sets a default action, raises.
extern "C" fn on_crash(signal: i32) {
    if let Some(label) = current() {
        let digits = [b'0' + (signal / 10) as u8, b'0' + (signal % 10) as u8];
        let number = std::str::from_utf8(&digits).unwrap_or_default();
        terminal::leave();
        stdio::write_error(&[
            "ffuzz: mutator ",
            &label.mutator,
            " crashed in ",
            label.hook,
            " (signal ",
            number.trim_start_matches('0'),
            ")\nffuzz: hint: what was found is on disk: resume with -i -, without the mutator if necessary\n",
        ]);
        show(0);
    }
    let action = empty_action();
    // SAFETY: both are async-signal-safe. The signal is blocked until the handler returns.
    unsafe {
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        libc::raise(signal);
    }
}

extern "C" fn at_exit() {
    if let Some(label) = current() {
        terminal::leave();
        stdio::write_error(&[
            "ffuzz: mutator ",
            &label.mutator,
            " ended the process in ",
            label.hook,
            "\nffuzz: hint: its output may show the reason; what was found is on disk\n",
        ]);
        show(0);
    }
}
