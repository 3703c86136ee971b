//! The terminal while the full screen is shown, and its way back.
//!
//! Raw mode stays off: Ctrl-C has to stop the campaign as a signal, and no key is read.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::panic;
use std::path::Path;
use std::sync::Once;

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};

use crate::sys::stdio::{self, Redirected};

static HOOK: Once = Once::new();

/// Shows the alternate screen for as long as it lives.
#[derive(Debug)]
pub(super) struct Guard {
    _redirected: Option<Redirected>,
}

impl Guard {
    /// What this process prints by other ways goes to `log`.
    pub(super) fn enter(log: Option<&Path>) -> Self {
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The message must not vanish with the alternate screen.
                restore();
                stdio::undo();
                previous(info);
            }));
        });
        let redirected = log.and_then(redirect);
        stdio::set_screen(true);
        if let Ok(mut out) = stdio::output() {
            let _ = execute!(out, EnterAlternateScreen, Hide);
        }
        Self { _redirected: redirected }
    }
}

/// Without a log the prints stay on the screen: ugly, but no reason to stop.
fn redirect(log: &Path) -> Option<Redirected> {
    let file = OpenOptions::new().create(true).append(true).open(log).ok()?;
    Redirected::to(file.as_fd(), file.as_fd()).ok()
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if stdio::set_screen(false)
        && let Ok(mut out) = stdio::output()
    {
        let _ = execute!(out, Show, LeaveAlternateScreen);
    }
}
