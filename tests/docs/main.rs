//! The pages of `docs/`, and what they say of speed; the benchmark `compare`.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/page.rs"]
mod page;

mod compared;
mod measured;
mod pages;
