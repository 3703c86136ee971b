//! The user interface: a full screen on a terminal, plain lines elsewhere.
//!
//! Event sinks; they see [`Snapshot`](ffuzz_event::Snapshot)s and never the campaign. Output to a closed pipe is
//! dropped silently.

mod format;
mod json;
mod metrics;
mod pages;
mod plain;
mod screen;
mod statsd;
mod summary;

use std::io::{IsTerminal, stdout};

pub use json::Json;
pub use metrics::Metrics;
pub use plain::Plain;
pub use screen::{QueryHandler, Surroundings, Wish};
pub use statsd::Statsd;
pub use summary::summary;

use ffuzz_config::options::{Colors, UiMode};
use ffuzz_event::EventSink;
use ffuzz_sys::stdio;

/// Returns true if `mode` shows the full screen here.
#[must_use]
pub fn is_screen(mode: UiMode) -> bool {
    match mode {
        UiMode::Auto => stdout().is_terminal(),
        UiMode::Screen => true,
        UiMode::Json | UiMode::Lines | UiMode::Quiet => false,
    }
}

/// The sink for `mode`; None for quiet output. `around` is only called for the full screen.
#[must_use]
pub fn sink(
    mode: UiMode,
    colors: Colors,
    around: impl FnOnce() -> Surroundings,
) -> Option<Box<dyn EventSink>> {
    match mode {
        UiMode::Json => stdio::output().ok().map(|out| Box::new(Json::new(out)) as Box<_>),
        UiMode::Quiet => None,
        _ if is_screen(mode) => Some(Box::new(screen::Screen::new(colors, around()))),
        _ => Some(Box::new(Plain::new(stdout()))),
    }
}

#[cfg(test)]
mod tests;
