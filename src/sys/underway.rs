//! Whose code is running: for the last words when a foreign mutator ends the process, and for a
//! warning when it takes for ever.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::stdio;

/// A hook of a mutator, in words that a signal handler can write.
#[derive(Debug)]
pub struct Label {
    pub mutator: String,
    pub hook: &'static str,
}

impl Label {
    /// Kept for ever: a signal may come at any time.
    #[must_use]
    pub fn new(mutator: &str, hook: &'static str) -> &'static Self {
        Box::leak(Box::new(Self { mutator: mutator.to_owned(), hook }))
    }
}

static CURRENT: AtomicPtr<Label> = AtomicPtr::new(std::ptr::null_mut());
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Time after which the user hears of a call that does not return, and how often it is looked.
const LONG: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(250);

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
        Self(())
    }
}

impl Drop for Underway {
    #[inline]
    fn drop(&mut self) {
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
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
        install_handlers();
        // SAFETY: a plain function that allocates nothing.
        unsafe { libc::atexit(at_exit) };
        std::thread::spawn(look_for_slow_calls);
    });
}

/// Never ends.
fn look_for_slow_calls() {
    let mut warned: Vec<&str> = Vec::new();
    let (mut call, mut since) = (0, Instant::now());
    loop {
        std::thread::sleep(LOOK);
        let now = CALLS.load(Ordering::Relaxed);
        let label = current();
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
            stdio::last_words(&text);
        }
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
        stdio::leave_screen();
        stdio::last_words(&[
            "ffuzz: mutator ",
            &label.mutator,
            " crashed in ",
            label.hook,
            " (signal ",
            number.trim_start_matches('0'),
            ")\nffuzz: hint: what was found is on disk: go on with -i -, without it if need be\n",
        ]);
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
        stdio::leave_screen();
        stdio::last_words(&[
            "ffuzz: mutator ",
            &label.mutator,
            " ended the process in ",
            label.hook,
            "\nffuzz: hint: what it has printed may say why; what was found is on disk\n",
        ]);
    }
}
