//! What is said of a crash, and to whom.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/fuzzmanager.rs"]
mod collecting;
#[path = "../common/mod.rs"]
mod common;

mod collector;
mod crash;
mod crash_beyond;
mod report;
