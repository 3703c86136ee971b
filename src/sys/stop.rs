//! Wishes of the user, as signals bring them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level};

use super::stdio;

/// What the user has asked for, set by signal handlers.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    skip: Arc<AtomicBool>,
}

impl Stop {
    /// SIGINT, SIGTERM, SIGHUP ask for a clean end, a second one ends at once; SIGUSR1 skips the
    /// seed at work.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let asked = Arc::clone(&stop.asked);
            let ask = move || {
                if asked.swap(true, Ordering::Relaxed) {
                    stdio::leave_screen();
                    low_level::exit(1);
                }
            };
            // SAFETY: the handler only swaps a flag, writes to the terminal and leaves by `_exit`,
            // all of which are async-signal-safe.
            unsafe { low_level::register(signal, ask) }?;
        }
        flag::register(SIGUSR1, Arc::clone(&stop.skip))?;
        Ok(stop)
    }

    /// Asks for a clean end, as SIGINT does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// An end was asked for.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// True once after every SIGUSR1.
    #[must_use]
    pub fn skip(&self) -> bool {
        self.skip.load(Ordering::Relaxed) && self.skip.swap(false, Ordering::Relaxed)
    }
}
