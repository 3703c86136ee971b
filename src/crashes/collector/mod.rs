//! The crash server: its address, its signatures, and the delivery of each report exactly once.
//!
//! The protocol is FuzzManager's. A report is a file in a [`Spool`] before anything is sent, and a
//! [`DeliveryWorker`] takes it to the server in the background, unless its signature in the [`Directory`] says that
//! the server has enough of it. Only the worker, [`submit`], [`drain()`] and the transfers that a user asks
//! for wait for the network.

mod client;
pub mod coverage;
mod delivery;
mod drain;
mod error;
mod files;
mod ini;
mod known;
mod report;
mod settings;
mod signatures;
mod spool;
mod upload;
mod worker;

pub use client::{Client, download_name};
pub use delivery::{Delivery, submit};
pub use drain::{DrainError, drain};
pub use error::CollectorError;
pub use ini::Values;
pub use report::{Report, Testcase};
pub use settings::{AuthToken, ServerAccount, Settings, Target, beside};
pub use signatures::{Directory, Refreshed, refresh};
pub use spool::{Added, Counts, Spool, SpoolClaim};
pub use upload::{SourceFacts, upload};
pub use worker::{DeliveryStatus, DeliveryWorker};
