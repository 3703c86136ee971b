//! Delivery of a spool in the foreground, until no report waits or the server is unavailable.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use miette::Diagnostic;

use super::{Client, CollectorError, Delivery, Settings, Spool, SpoolCounts};
use ffuzz_sys::remedy::Remedy;

/// Time limit: a server that is unavailable for this long will not return while the user waits.
const PATIENCE: Duration = Duration::from_secs(130);
const INTERVAL: Duration = Duration::from_millis(100);

/// Reasons for undelivered reports.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DrainError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Collector(#[from] CollectorError),
    #[error("{} is not a spool", .0.display())]
    #[diagnostic(help("name the folder OUT/triage/spool of a campaign"))]
    NoSpool(PathBuf),
    #[error("another process delivers the reports in {}", .0.display())]
    #[diagnostic(help("wait for it, or stop it first"))]
    Claimed(PathBuf),
    #[error("{count} reports were refused")]
    #[diagnostic(help(
        "see {}/refused/*.txt for the reasons; correct them, then run it again",
        spool.display()
    ))]
    Refused { count: usize, spool: PathBuf },
    #[error("{count} reports are left{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Left {
        count: usize,
        reason: Option<String>,
        #[help]
        remedy: String,
    },
}

/// Delivers all reports of the spool in `folder`, including those refused before; calls `delayed` with each new reason
/// to wait.
pub fn drain(
    folder: &Path,
    settings: &Settings,
    delayed: impl Fn(&str),
) -> Result<SpoolCounts, DrainError> {
    if !folder.is_dir() {
        return Err(DrainError::NoSpool(folder.to_owned()));
    }
    let spool = Spool::open(folder)?;
    let Some(claim) = spool.claim()? else {
        return Err(DrainError::Claimed(folder.to_owned()));
    };
    let client = Client::new(settings.server()?)?;
    claim.retry_refused()?;
    let mut delivery = Delivery::new(claim, client, settings.signatures_for(folder));
    let start = Instant::now();
    let mut reason = String::new();
    loop {
        delivery.deliver_due(SystemTime::now, || true)?;
        let counts = spool.counts()?;
        match (counts.waiting, counts.refused) {
            (0, 0) => return Ok(counts),
            (0, count) => return Err(DrainError::Refused { count, spool: folder.to_owned() }),
            (waiting, refused) if start.elapsed() > PATIENCE || delivery.is_blocked() => {
                return Err(left(&delivery, waiting + refused));
            }
            _ => {}
        }
        let error = delivery.last_error().map(ToString::to_string).unwrap_or_default();
        if !error.is_empty() && error != reason {
            delayed(&error);
            reason = error;
        }
        thread::sleep(INTERVAL);
    }
}

fn left(delivery: &Delivery, count: usize) -> DrainError {
    let error = delivery.last_error();
    DrainError::Left {
        count,
        reason: error.map(ToString::to_string),
        remedy: error.map_or_else(|| "try again later".into(), Remedy::remedy),
    }
}
