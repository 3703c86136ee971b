//! `ffuzz-cc`, its passes, and what they leave in a target.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/cc.rs"]
mod compiling;
#[path = "../common/page.rs"]
mod page;

mod cargo;
mod cc;
mod declared;
mod extension;
mod libraries;
mod names;
mod oss_build;
mod passes;
