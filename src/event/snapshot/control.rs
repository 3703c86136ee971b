//! Effects of external commands.

use serde::{Deserialize, Serialize};

use super::join::{All, Join};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Control {
    /// True while a command (`--control`) has paused the campaign.
    #[serde(default)]
    pub paused: bool,
    /// Inputs injected by commands.
    #[serde(default, skip_serializing_if = "Injected::is_none")]
    pub injected: Injected,
}

/// The leader's values are the fleet's own, since clients connect to the fleet.
impl Join for Control {
    fn join(all: &All<'_, Self>) -> Self {
        Self { paused: all.leading(|c| &c.paused), injected: all.leading(|c| &c.injected) }
    }
}

/// Injected inputs, counted separately at each step, so that lost or unanswered inputs show.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Injected {
    /// Inputs received from clients.
    pub received: u64,
    /// Inputs forwarded to workers; 0 for a single instance.
    #[serde(default)]
    pub forwarded: u64,
    /// Inputs run and judged; in a fleet, as reported by workers.
    pub run: u64,
    /// Inputs with a reply of any kind.
    pub answered: u64,
}

impl Injected {
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
