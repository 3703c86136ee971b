//! Waiting for a word in shared memory to change (futex(2)).

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until the word is woken, but not if it is not `expected` any more, and at most for
/// `timeout`. May also return for no reason: check the word again.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    };
    // SAFETY: the word and the time are valid for the length of the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            expected,
            &raw const timeout,
        );
    }
}

/// Wakes one process that waits for the word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is valid for the length of the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_changed_word_is_not_waited_for_and_a_wake_ends_the_wait() {
        let word = AtomicU32::new(1);
        wait(&word, 0, Duration::from_secs(100));
        wait(&word, 1, Duration::from_millis(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                word.store(2, Ordering::Release);
                wake(&word);
            });
            while word.load(Ordering::Acquire) == 1 {
                wait(&word, 1, Duration::from_secs(100));
            }
        });
    }
}
