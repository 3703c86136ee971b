//! The terminal while the full screen is shown. No keys are read: what is typed is not echoed, and is
//! thrown away with the screen, so that no shell runs it. Keys that are signals stay signals.
//!
//! Leaving is for signal handlers, too: all of it is async-signal-safe.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossterm::Command;
use crossterm::cursor::Hide;
use crossterm::terminal::EnterAlternateScreen;

use super::stdio;

/// The screen is shown.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// The process was stopped and continues: another one may have used the terminal.
static CONTINUED: AtomicBool = AtomicBool::new(false);
/// Modes (`c_lflag`) that were switched off with the screen.
static SILENCED: AtomicU32 = AtomicU32::new(0);

/// What shows typed letters.
const ECHOES: libc::tcflag_t = libc::ECHO | libc::ECHONL;
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
            SILENCED.store(modes & ECHOES, Ordering::SeqCst);
            modes & !ECHOES
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
        let silenced = SILENCED.swap(0, Ordering::SeqCst);
        change_modes(|modes| modes | silenced);
    }
    stdio::write_out(LEAVE);
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
        change_modes(|modes| modes | libc::ECHO);
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
