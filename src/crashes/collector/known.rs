//! Bugs that the server has: its signatures, downloaded regularly while reports are delivered,
//! and how many examples of each were sent since.
//!
//! The owner of the spool's claim fetches them right before a report is sent, so the counts have one owner.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::client::Client;
use super::error::CollectorError;
use super::report::{Report, Testcase};
use super::signatures::{Directory, refresh_if_older, refreshed};
use super::spool::SpoolClaim;
use crate::crash::{self, CrashFacts};

/// The server makes its archive of signatures once an hour.
const FRESH: Duration = Duration::from_secs(3600);
/// Interval between two checks.
const LOOK: Duration = Duration::from_secs(600);
/// Number of reports of a known bug between two refreshes: enough to show that it still exists.
const REPORTS_OF_ONE: u32 = 10;

/// What to do with a crash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DeliveryVerdict {
    /// No signature matches.
    New,
    /// This one does; it may be reported as another example.
    Known(String),
    /// This one matches, and the server needs no more of it for now.
    Enough(String),
}

/// Of one spool, whose claim its owner has.
#[derive(Debug)]
pub(super) struct KnownBugs {
    folder: PathBuf,
    /// None until it could be read.
    directory: Option<Directory>,
    /// When that was fetched.
    fetched: Option<SystemTime>,
    looked: SystemTime,
    /// By the name of the signature.
    sent: HashMap<String, u32>,
    error: Option<CollectorError>,
}

impl KnownBugs {
    #[must_use]
    pub(super) fn new(folder: PathBuf) -> Self {
        let (directory, fetched, sent, error) = (None, None, HashMap::new(), None);
        Self { folder, directory, fetched, looked: UNIX_EPOCH, sent, error }
    }

    /// Fetches signatures that are old. Without any, every bug is news.
    pub(super) fn keep_fresh(&mut self, client: &Client, claim: &SpoolClaim, now: SystemTime) {
        if now.duration_since(self.looked).is_ok_and(|age| age < LOOK) {
            return;
        }
        self.looked = now;
        let refreshed = refresh_if_older(&self.folder, client, FRESH, now);
        let read = self.read(claim);
        self.error = refreshed.and(read).err().filter(|error| {
            // A new server has none.
            !matches!(error, CollectorError::NoSignatures { .. })
        });
    }

    fn read(&mut self, claim: &SpoolClaim) -> Result<(), CollectorError> {
        let fetched = refreshed(&self.folder);
        if self.directory.is_none() || fetched != self.fetched {
            self.directory = Some(Directory::open(&self.folder)?);
            self.fetched = fetched;
            self.sent = claim.sent_since(fetched.unwrap_or(UNIX_EPOCH))?;
        }
        Ok(())
    }

    /// What kept signatures from being fetched or read last.
    #[must_use]
    pub(super) fn error(&self) -> Option<&CollectorError> {
        self.error.as_ref()
    }

    #[must_use]
    pub(super) fn judge(&self, report: &Report) -> DeliveryVerdict {
        let Some(directory) = &self.directory else { return DeliveryVerdict::New };
        let info = crash::beyond::parse(&report.output, &report.program);
        let testcase = report.testcase.as_ref().and_then(Testcase::as_text);
        let (output, program) = (&report.output, &report.program);
        let crash = CrashFacts { info: &info, output, program, testcase };
        let Some(entry) = directory.find(&crash) else { return DeliveryVerdict::New };
        let name = entry.name.clone();
        let is_frequent = entry.metadata.get("frequent") == Some(&Value::Bool(true));
        match self.sent.get(&name) {
            _ if is_frequent => DeliveryVerdict::Enough(name),
            Some(count) if *count >= REPORTS_OF_ONE => DeliveryVerdict::Enough(name),
            _ => DeliveryVerdict::Known(name),
        }
    }

    /// Another example of a known bug was sent.
    pub(super) fn count(&mut self, signature: &str) {
        *self.sent.entry(signature.to_owned()).or_default() += 1;
    }
}
