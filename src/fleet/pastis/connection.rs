//! How far the exchange over one connection to the broker is.

use std::time::{Duration, Instant};

/// A broker without a target for this client sends nothing.
pub(super) const NO_START: Duration = Duration::from_secs(10);
/// After a Start comes everything that the broker has. What the broker does not have is known when
/// nothing came for so long, or after a while in any case.
const QUIET: Duration = Duration::from_secs(1);
const LONGEST_POOL: Duration = Duration::from_secs(30);

/// State of the current connection.
#[derive(Debug)]
pub(super) struct Connection {
    since: Instant,
    /// The broker has no target for this client, and the warning was given.
    warned: bool,
    started: Option<Instant>,
    /// The last input that it sent.
    last_seed: Instant,
}

impl Connection {
    pub(super) fn new() -> Self {
        let since = Instant::now();
        Self { since, warned: false, started: None, last_seed: since }
    }

    /// What the broker has is known.
    pub(super) fn is_settled(&self) -> bool {
        let pool = |start: Instant| {
            self.is_quiet() && start.elapsed() > QUIET || start.elapsed() > LONGEST_POOL
        };
        self.started.is_some_and(pool)
    }

    /// The broker has sent no input for a while.
    pub(super) fn is_quiet(&self) -> bool {
        self.last_seed.elapsed() > QUIET
    }

    /// The broker has started a target over it.
    pub(super) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// An input of the broker came.
    pub(super) fn receive(&mut self) {
        self.last_seed = Instant::now();
    }

    /// True once, if there was no Start for too long.
    pub(super) fn takes_warning(&mut self) -> bool {
        let late = self.started.is_none() && self.since.elapsed() >= NO_START;
        late && !std::mem::replace(&mut self.warned, true)
    }
}
