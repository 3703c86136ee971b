//! State of the exchange over one connection to the broker.

use std::time::{Duration, Instant};

/// Time without a Start after which the broker is considered to have no target for this client.
pub(super) const NO_START: Duration = Duration::from_secs(10);
/// After a Start the broker sends everything that it has. This is complete after a quiet period, or
/// after a fixed time in any case.
const QUIET: Duration = Duration::from_secs(1);
const LONGEST_POOL: Duration = Duration::from_secs(30);

/// State of the current connection.
#[derive(Debug)]
pub(super) struct Connection {
    since: Instant,
    /// True if the broker has no target for this client, and the warning was given.
    warned: bool,
    started: Option<Instant>,
    /// Time of the broker's last input.
    last_seed: Instant,
}

impl Connection {
    pub(super) fn new() -> Self {
        let since = Instant::now();
        Self { since, warned: false, started: None, last_seed: since }
    }

    /// Returns true once the broker's initial inputs have arrived.
    pub(super) fn is_settled(&self) -> bool {
        let pool = |start: Instant| {
            self.is_quiet() && start.elapsed() > QUIET || start.elapsed() > LONGEST_POOL
        };
        self.started.is_some_and(pool)
    }

    /// Returns true if the broker has sent no input for a while.
    pub(super) fn is_quiet(&self) -> bool {
        self.last_seed.elapsed() > QUIET
    }

    /// Notes a Start over this connection.
    pub(super) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// Notes an input of the broker.
    pub(super) fn receive(&mut self) {
        self.last_seed = Instant::now();
    }

    /// Returns true once if the Start is overdue.
    pub(super) fn takes_warning(&mut self) -> bool {
        let late = self.started.is_none() && self.since.elapsed() >= NO_START;
        late && !std::mem::replace(&mut self.warned, true)
    }
}
