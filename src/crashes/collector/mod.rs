//! The crash server: its address, its signatures, and the delivery of each report exactly once.
//!
//! The protocol is FuzzManager's. A report is a file in a [`Spool`] before anything is sent, and a
//! [`Worker`] takes it to the server in the background, unless its signature in the [`Directory`] says that
//! the server has enough of it. Nothing here waits for the network but the worker and [`submit`].

mod client;
pub mod coverage;
mod delivery;
mod error;
mod files;
mod ini;
mod known;
mod report;
mod settings;
mod signatures;
mod spool;
mod worker;

pub use client::{Client, download_name};
pub use delivery::{Delivery, submit};
pub use error::CollectorError;
pub use ini::Values;
pub use report::{Report, Testcase};
pub use settings::{Server, Settings, Target, Token, beside};
pub use signatures::{Directory, Refreshed, refresh};
pub use spool::{Added, Claim, Counts, Spool};
pub use worker::{Status, Worker};
