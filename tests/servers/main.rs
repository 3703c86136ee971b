//! Tests with a real server of PyPI, or its absence.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/fuzzmanager.rs"]
mod collecting;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/page.rs"]
mod page;
#[path = "../common/schema.rs"]
mod schema;

mod ci;
mod fuzzmanager;
mod pastis_broker;
mod triage;
