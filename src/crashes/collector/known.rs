//! Known bugs: the server's signatures, downloaded regularly during delivery, and the number of examples of each sent
//! since.
//!
//! The owner of the spool's claim fetches them right before sending a report, so the counts have one owner.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::client::Client;
use super::error::CollectorError;
use super::report::{CrashReport, Testcase};
use super::signatures::{Directory, refresh_if_older, refreshed};
use super::spool::SpoolClaim;
use crate::crash::{self, CrashFacts};

/// Age at which signatures are refreshed: the server builds its archive once an hour.
const FRESH: Duration = Duration::from_secs(3600);
/// Interval between checks.
const LOOK: Duration = Duration::from_secs(600);
/// Maximum number of reports of a known bug between refreshes: enough to show that it still exists.
const REPORTS_OF_ONE: u32 = 10;

/// Decision about a report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DeliveryVerdict {
    /// No signature matches.
    New,
    /// This signature matches; the crash may be sent as another example.
    Known(String),
    /// This signature matches, and the server needs no more examples for now.
    Enough(String),
}

/// Known bugs for one claimed spool.
#[derive(Debug)]
pub(super) struct KnownBugs {
    folder: PathBuf,
    /// None until the folder could be read.
    directory: Option<Directory>,
    /// Time at which `directory` was fetched.
    fetched: Option<SystemTime>,
    looked: SystemTime,
    /// Number of reports sent, by signature name.
    sent: HashMap<String, u32>,
    error: Option<CollectorError>,
}

impl KnownBugs {
    #[must_use]
    pub(super) fn new(folder: PathBuf) -> Self {
        let (directory, fetched, sent, error) = (None, None, HashMap::new(), None);
        Self { folder, directory, fetched, looked: UNIX_EPOCH, sent, error }
    }

    /// Refreshes old signatures. Without any, every bug counts as new.
    pub(super) fn keep_fresh(&mut self, client: &Client, claim: &SpoolClaim, now: SystemTime) {
        if now.duration_since(self.looked).is_ok_and(|age| age < LOOK) {
            return;
        }
        self.looked = now;
        let refreshed = refresh_if_older(&self.folder, client, FRESH, now);
        let read = self.read(claim);
        self.error = refreshed.and(read).err().filter(|error| {
            // A new server has no signatures.
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

    /// Error of the last refresh.
    #[must_use]
    pub(super) fn error(&self) -> Option<&CollectorError> {
        self.error.as_ref()
    }

    #[must_use]
    pub(super) fn judge(&self, report: &CrashReport) -> DeliveryVerdict {
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

    /// Counts a sent example of a known bug.
    pub(super) fn count(&mut self, signature: &str) {
        *self.sent.entry(signature.to_owned()).or_default() += 1;
    }
}
