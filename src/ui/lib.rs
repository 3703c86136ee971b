//! What people see: a full screen on a terminal, plain lines elsewhere.
//!
//! Sinks of events; they see [`Snapshot`](ffuzz_event::Snapshot)s and never the campaign. Output
//! that nobody reads any more (a closed pipe) is dropped silently.

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
pub use screen::{Ask, Surroundings, Wish};
pub use statsd::Statsd;
pub use summary::summary;

use ffuzz_config::options::{Colors, UiMode};
use ffuzz_event::EventSink;
use ffuzz_sys::stdio;

/// Whether a mode shows the screen here.
#[must_use]
pub fn is_screen(mode: UiMode) -> bool {
    match mode {
        UiMode::Auto => stdout().is_terminal(),
        UiMode::Screen => true,
        UiMode::Json | UiMode::Lines | UiMode::Quiet => false,
    }
}

/// The sink for a mode; None if nothing is to be shown. `around`: what the screen has beside events, if it is one.
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
