//! What commands from outside have done.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Control {
    /// By a command (`--control`).
    #[serde(default)]
    pub paused: bool,
    /// Inputs that commands have brought.
    #[serde(default, skip_serializing_if = "Injected::is_none")]
    pub injected: Injected,
}

/// A fleet knows both itself, because its clients talk to it.
impl Join for Control {
    fn join(all: &All<'_, Self>) -> Self {
        Self { paused: all.leading(|c| &c.paused), injected: all.leading(|c| &c.injected) }
    }
}

/// Inputs that commands have brought to this process, counted at each step of their way: none may be
/// lost or stay unanswered. Each number is that of the step, not made from the others.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Injected {
    /// Taken from the threads that read from clients.
    pub received: u64,
    /// Given to workers; an instance alone gives none.
    #[serde(default)]
    pub forwarded: u64,
    /// Run and judged; in a fleet those of which a worker has answered that.
    pub run: u64,
    /// Answered, whatever the answer.
    pub answered: u64,
}

impl Injected {
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
