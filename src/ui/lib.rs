//! What people see: a full screen on a terminal, plain lines elsewhere.
//!
//! Sinks of events; they see [`Snapshot`](ffuzz_event::Snapshot)s and never the campaign. Output
//! that nobody reads any more (a closed pipe) is dropped silently.

mod format;
mod json;
mod metrics;
mod panels;
mod plain;
mod screen;
mod statsd;
mod summary;
mod terminal;

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

pub use json::Json;
pub use metrics::Metrics;
pub use plain::Plain;
pub use screen::Screen;
pub use statsd::Statsd;
pub use summary::summary;

use ffuzz_config::options::{Colors, UiMode};
use ffuzz_event::EventSink;
use ffuzz_sys::stdio;

/// The sink for a mode; None if nothing is to be shown. `log` gets the output of foreign code while
/// the screen is shown.
#[must_use]
pub fn sink(mode: UiMode, colors: Colors, log: Option<PathBuf>) -> Option<Box<dyn EventSink>> {
    let screen = match mode {
        UiMode::Json => return stdio::output().ok().map(|out| Box::new(Json::new(out)) as Box<_>),
        UiMode::Auto => stdout().is_terminal(),
        UiMode::Screen => true,
        UiMode::Lines => false,
        UiMode::Quiet => return None,
    };
    Some(if screen {
        Box::new(Screen::new(Plain::new(stdout()), colors, log))
    } else {
        Box::new(Plain::new(stdout()))
    })
}

#[cfg(test)]
mod tests;
