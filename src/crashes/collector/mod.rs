//! The crash server: its address, its signatures, and the delivery of each report exactly once.
//!
//! The protocol is FuzzManager's. A report is written to a [`Spool`] before anything is sent. A [`DeliveryWorker`]
//! delivers it in the background, unless its signature in the [`Directory`] shows that the server has enough examples.
//! Only the worker, [`submit`], [`drain()`] and transfers requested by the user wait for the network.

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
pub use ini::IniValues;
pub use report::{CrashReport, Testcase};
pub use settings::{AuthToken, ServerAccount, Settings, Target, beside};
pub use signatures::{Directory, Refreshed, refresh};
pub use spool::{Added, Spool, SpoolClaim, SpoolCounts};
pub use upload::{SourceFacts, upload};
pub use worker::{DeliveryStatus, DeliveryWorker};
