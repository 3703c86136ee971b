//! Many processes: workers, the control socket, a broker.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/broker.rs"]
mod broker;
#[path = "../common/control.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;

mod control;
mod fleet;
mod jobs;
mod mcp;
mod pastis;
