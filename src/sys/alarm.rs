//! A deadline for a read that has none of its own: a second thread interrupts it.
//!
//! Polling before each read costs two microseconds a run, which is one twentieth of what AFL's
//! persistent mode takes. Setting a deadline here costs no system call.

use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stop::Leave;

/// Interval of the second thread's checks, as a part of the timeout, and its limits.
const LOOKS: u32 = 4;
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// Interrupts system calls of the thread that made it once a deadline is over, again and again until
/// [`Alarm::clear`].
#[derive(Debug)]
pub struct Alarm {
    shared: Arc<SharedAlarm>,
    thread: Option<JoinHandle<()>>,
    /// It stays in the thread that it interrupts.
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct SharedAlarm {
    state: Mutex<AlarmState>,
    ended: Condvar,
}

#[derive(Debug)]
struct AlarmState {
    deadline: Option<Instant>,
    /// Brings the deadline forward.
    leave: Leave,
    /// Set for the shortest timeout so far.
    look: Duration,
    over: bool,
}

impl Alarm {
    /// An alarm for the calling thread, which also comes soon after a request to stop.
    pub fn new(leave: Leave) -> std::io::Result<Self> {
        install_handler();
        // SAFETY: no precondition.
        let sleeper = unsafe { libc::pthread_self() };
        let state = AlarmState { deadline: None, leave, look: LONGEST_LOOK, over: false };
        let shared = Arc::new(SharedAlarm { state: Mutex::new(state), ended: Condvar::new() });
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("alarm".into())
            .spawn(move || watched.watch(|| interrupt(sleeper)))?;
        Ok(Self { shared, thread: Some(thread), not_send: PhantomData })
    }

    /// Calls are interrupted from `start` + `timeout` on, and at most a quarter of `timeout` later (but
    /// not within less than 2 ms).
    pub fn set(&self, start: Instant, timeout: Duration) {
        let mut state = self.shared.lock();
        state.deadline = start.checked_add(timeout);
        state.look = (timeout / LOOKS).clamp(SHORTEST_LOOK, state.look);
    }

    /// Nothing is interrupted any more.
    pub fn clear(&self) {
        self.shared.lock().deadline = None;
    }

    /// True if the deadline is over.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.shared.lock().is_due()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.ended.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl AlarmState {
    fn is_due(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl SharedAlarm {
    fn lock(&self) -> MutexGuard<'_, AlarmState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is held while the signal is sent: none comes after [`Alarm::clear`].
    fn watch(&self, interrupt: impl Fn()) {
        let mut state = self.lock();
        while !state.over {
            if state.deadline.is_some() && state.leave.is_due() {
                state.deadline = Some(Instant::now());
            }
            if state.is_due() {
                interrupt();
            }
            let look = state.look;
            let woken = self.ended.wait_timeout(state, look);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 8
}

extern "C" fn do_nothing(_signal: libc::c_int) {}

/// Without SA_RESTART: that the call ends is the point.
fn install_handler() {
    // SAFETY: the handler does nothing; the action is a zeroed local with that handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(signal(), &raw const action, std::ptr::null_mut());
    }
}

fn interrupt(thread: libc::pthread_t) {
    // SAFETY: an `Alarm` cannot leave its thread and ends this one in `drop`, so `thread` is alive.
    unsafe { libc::pthread_kill(thread, signal()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read};

    #[test]
    fn a_read_without_deadline_is_interrupted_and_none_after_that() {
        let (ours, _theirs) = crate::wire::pipe().unwrap();
        let mut pipe = std::fs::File::from(ours);
        let alarm = Alarm::new(Leave::default()).unwrap();
        let start = Instant::now();
        alarm.set(start, Duration::from_millis(20));
        assert!(!alarm.is_due());
        let end = pipe.read(&mut [0]).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::Interrupted);
        assert!(alarm.is_due() && start.elapsed() >= Duration::from_millis(20));
        alarm.clear();
        assert!(!alarm.is_due());
    }
}
