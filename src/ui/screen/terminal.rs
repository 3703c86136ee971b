//! The alternate screen and its restoration, also after a panic.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::panic;
use std::path::Path;
use std::sync::Once;

use ffuzz_sys::stdio::{self, Redirected};
use ffuzz_sys::terminal;

static HOOK: Once = Once::new();

/// Shows the alternate screen until dropped.
#[derive(Debug)]
pub(super) struct TerminalGuard {
    _redirected: Option<Redirected>,
}

impl TerminalGuard {
    /// Enters the alternate screen. Other output of this process goes to `log`.
    pub(super) fn enter(log: Option<&Path>) -> Self {
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // The message must not vanish with the alternate screen, now or later.
                terminal::leave_for_good();
                stdio::undo();
                previous(info);
            }));
        });
        let redirected = log.and_then(redirect);
        terminal::enter();
        Self { _redirected: redirected }
    }
}

/// Redirects other output to `log`. None on error: the output then disturbs the screen, which is not fatal.
fn redirect(log: &Path) -> Option<Redirected> {
    let file = OpenOptions::new().create(true).append(true).open(log).ok()?;
    Redirected::to(file.as_fd(), file.as_fd()).ok()
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        terminal::leave();
    }
}
