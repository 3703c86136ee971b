//! The commands beside `ffuzz`.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/mod.rs"]
mod common;

mod afl_suite;
mod blocks;
mod cmin;
mod lines;
mod outputs;
mod picker;
mod showdsf;
mod showmap;
mod states;
mod tmin;
mod tracer;
mod watch;
