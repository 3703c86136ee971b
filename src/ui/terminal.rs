//! The terminal while the full screen is shown, and its way back.
//!
//! Raw mode stays off: Ctrl-C has to stop the campaign as a signal, and no key is read.

use std::io::stdout;
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};

/// Whether the alternate screen is shown; the panic hook has to know.
static SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Shows the alternate screen for as long as it lives.
#[derive(Debug)]
pub(super) struct Guard(());

impl Guard {
    pub(super) fn enter() -> Self {
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The message must not vanish with the alternate screen.
                restore();
                previous(info);
            }));
        });
        SHOWN.store(true, Ordering::SeqCst);
        let _ = execute!(stdout(), EnterAlternateScreen, Hide);
        Self(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    }
}
