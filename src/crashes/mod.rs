//! Crashes: what a program says when it dies, the bugs behind it, and the server they are reported to.

pub mod collector;
pub mod crash;
pub mod triage;
