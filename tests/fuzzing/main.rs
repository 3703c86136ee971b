//! Campaigns of `ffuzz` on real processes.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/control.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/page.rs"]
mod page;
#[path = "../common/server.rs"]
mod server;

mod bad_input;
mod challenges;
mod cmplog;
mod comparisons;
mod counted;
mod custom;
mod domains;
mod emulator;
mod extremes;
mod frontier;
mod fuzz;
mod harness_alone;
mod harness_mutators;
mod harnesses;
mod killerbeez;
mod lengths;
mod limits;
mod machine;
mod metrics;
mod modes;
mod native;
mod network;
mod obstacles;
mod options;
mod peers;
mod python;
mod resume;
mod sanitizers;
mod screen;
mod snapshot;
mod surroundings;
mod sync;
mod uncommon;
mod unruly;
mod watching;
mod words;
