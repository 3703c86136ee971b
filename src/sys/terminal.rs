//! The terminal while the full screen is shown. Keys arrive one by one and are not echoed; those that nobody has read are
//! thrown away with the screen, so that no shell runs them. Keys that are signals stay signals.
//!
//! Leaving is for signal handlers, too: all of it is async-signal-safe.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crossterm::Command;
use crossterm::cursor::Hide;
use crossterm::terminal::EnterAlternateScreen;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::stdio;

/// The screen is shown.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// The process was stopped and continues: another one may have used the terminal.
static CONTINUED: AtomicBool = AtomicBool::new(false);
/// It is not shown again.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Modes (`c_lflag`) that were switched off with the screen.
static CHANGED: AtomicU32 = AtomicU32::new(0);

/// What shows typed letters, and keeps them until the end of the line.
const TYPING: libc::tcflag_t = libc::ECHO | libc::ECHONL | libc::ICANON;
/// Shows the cursor and leaves the alternate screen: what crossterm's commands write, as a constant for
/// signal handlers.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Shows the alternate screen.
pub fn enter() {
    if SHOWN.swap(true, Ordering::SeqCst) {
        return;
    }
    CONTINUED.store(false, Ordering::SeqCst);
    if is_foreground() {
        change_modes(|modes| {
            CHANGED.store(modes & TYPING, Ordering::SeqCst);
            modes & !TYPING
        });
    }
    stdio::write_out(&(ansi(EnterAlternateScreen) + &ansi(Hide)));
}

/// Leaves it, if it is shown, with the modes that were there before.
pub fn leave() {
    if !SHOWN.swap(false, Ordering::SeqCst) {
        return;
    }
    // A process in the background would be stopped if it did this; its shell has done it.
    if is_foreground() {
        // SAFETY: a call without memory; what is no terminal gives an error.
        unsafe { libc::tcflush(stdio::out(), libc::TCIFLUSH) };
        let changed = CHANGED.swap(0, Ordering::SeqCst);
        change_modes(|modes| modes | changed);
    }
    stdio::write_out(LEAVE);
}

/// Leaves it, and does not enter it any more: what is printed from now on stays.
pub fn leave_for_good() {
    CLOSED.store(true, Ordering::SeqCst);
    leave();
}

/// Whether the screen may be entered now.
#[must_use]
pub fn may_enter() -> bool {
    !CLOSED.load(Ordering::SeqCst) && is_foreground()
}

/// Whether the screen is shown.
#[must_use]
pub fn is_shown() -> bool {
    SHOWN.load(Ordering::SeqCst)
}

/// Opens the terminal that controls this process, for reading that never waits.
pub fn open() -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open("/dev/tty")
}

/// Waits until a file has something to read.
#[must_use]
pub fn has_input(file: &File, longest: Duration) -> bool {
    let timeout = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
}

/// For the thread that reads keys: no signal is handled there, and reading in the background gives an error instead of
/// stopping the process.
pub fn block_signals() {
    // SAFETY: the set is plain data, filled in before it is used; only this thread's mask changes.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, null_mut());
    }
}

/// Whether the screen is still what was drawn.
#[must_use]
pub fn is_intact() -> bool {
    !CONTINUED.swap(false, Ordering::SeqCst) && SHOWN.load(Ordering::SeqCst)
}

/// Whether this process may draw on the terminal; also true for anything that is no terminal.
#[must_use]
pub fn is_foreground() -> bool {
    // SAFETY: two calls without memory.
    let (owner, own) = unsafe { (libc::tcgetpgrp(stdio::out()), libc::getpgrp()) };
    owner < 0 || owner == own
}

/// For a process that outlives the one with the screen, and ignores SIGTTOU: the terminal as a shell
/// expects it, if standard output is one.
pub(super) fn leave_after_the_end() {
    // SAFETY: two calls without memory; what is no terminal gives an error.
    let there = unsafe { libc::isatty(stdio::out()) == 1 };
    if there {
        change_modes(|modes| modes | libc::ECHO | libc::ICANON);
        // SAFETY: as above.
        unsafe { libc::tcflush(stdio::out(), libc::TCIFLUSH) };
        stdio::write_out(LEAVE);
    }
}

/// What a command writes to the terminal.
fn ansi(command: impl Command) -> String {
    let mut text = String::new();
    // A string takes everything.
    let _ = command.write_ansi(&mut text);
    text
}

fn change_modes(change: impl FnOnce(libc::tcflag_t) -> libc::tcflag_t) {
    // SAFETY: the struct is plain data, valid as zeros, and filled in before it is used.
    unsafe {
        let mut modes: libc::termios = zeroed();
        if libc::tcgetattr(stdio::out(), &raw mut modes) == 0 {
            modes.c_lflag = change(modes.c_lflag);
            libc::tcsetattr(stdio::out(), libc::TCSANOW, &raw const modes);
        }
    }
}

/// For the handler of SIGCONT.
pub(super) fn note_continued() {
    CONTINUED.store(true, Ordering::SeqCst);
}

/// Whether the parent has disabled stopping this process by keys.
pub(super) fn ignores_stop() -> bool {
    // SAFETY: the struct is plain data, valid as zeros; nothing is set.
    unsafe {
        let mut now: libc::sigaction = zeroed();
        libc::sigaction(libc::SIGTSTP, std::ptr::null(), &raw mut now);
        now.sa_sigaction == libc::SIG_IGN
    }
}

/// Does what Ctrl-Z does without a handler: stops the process until SIGCONT comes. Where nobody could
/// send that (an orphaned process group), the kernel leaves it running.
pub(super) fn stop_process() {
    leave();
    // SAFETY: all calls are async-signal-safe and get valid local structs, for which zeros are the default
    // action and no flags. The signal is blocked if this is its handler: it is unblocked for the
    // moment in which it has its default action.
    unsafe {
        let default: libc::sigaction = zeroed();
        let (mut handler, mut before): (libc::sigaction, libc::sigset_t) = (zeroed(), zeroed());
        let mut only: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, libc::SIGTSTP);
        libc::sigaction(libc::SIGTSTP, &raw const default, &raw mut handler);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, &raw mut before);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        libc::sigaction(libc::SIGTSTP, &raw const handler, null_mut());
    }
}

#[cfg(test)]
mod tests {
    use crossterm::cursor::Show;
    use crossterm::terminal::LeaveAlternateScreen;

    use super::*;

    #[test]
    fn the_constant_of_signal_handlers_is_what_crossterm_writes() {
        assert_eq!(ansi(Show) + &ansi(LeaveAlternateScreen), LEAVE);
    }
}
