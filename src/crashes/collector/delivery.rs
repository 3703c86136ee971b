//! Delivers reports from the spool to the server, each exactly once, even if the server or the fuzzer is interrupted.
//!
//! A request whose answer was lost may have been stored. So every try but the first begins with a search for the id in
//! the report's metadata.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::{Client, LONGEST_PAUSE};
use super::error::CollectorError;
use super::known::{DeliveryVerdict, KnownBugs};
use super::report::CrashReport;
use super::spool::{SpoolClaim, SpoolItem, Tries};
use crate::crash::{self, Output};

/// First wait between tries; each further one doubles.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest wait if the server fails.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Longest wait for a single report that the server fails on.
const LONGEST_FOR_ONE: Duration = Duration::from_secs(3600);
/// Time after which a request whose sender was killed has been stored, or never will be.
const SETTLED: Duration = Duration::from_secs(10);
/// Multiple of the timeout within which the server may still store an unanswered request.
const OVERDUE: u32 = 10;
/// Number of server failures on a report after which it is sent in a reduced form: one failure does not prove that the
/// text is the cause.
const PLAIN_TRIES: u32 = 2;
/// Number of tries of a report outside a spool: 2, 4, 8, 16, 32 and 64 s apart, as in the reference.
const TRIES_AT_ONCE: u32 = 7;

/// Delivery from a claimed spool to a server.
#[derive(Debug)]
pub struct Delivery {
    claim: SpoolClaim,
    client: Client,
    known: KnownBugs,
    not_before: SystemTime,
    /// Number of consecutive failed requests.
    failures: u32,
    last: Option<CollectorError>,
}

impl Delivery {
    /// `signatures`: folder of the server's signatures.
    #[must_use]
    pub fn new(claim: SpoolClaim, client: Client, signatures: PathBuf) -> Self {
        let known = KnownBugs::new(signatures);
        Self { claim, client, known, not_before: UNIX_EPOCH, failures: 0, last: None }
    }

    /// Sends the due reports, the oldest first, while `go_on` returns true. Returns local errors only; those of the
    /// server are in [`Self::last_error`], and their reports are retried later.
    pub fn deliver_due(
        &mut self,
        now: impl Fn() -> SystemTime,
        go_on: impl Fn() -> bool,
    ) -> Result<(), CollectorError> {
        let waiting = self.claim.waiting()?;
        if !waiting.is_empty() && !is_early(now(), unix(self.not_before)) {
            self.known.keep_fresh(&self.client, &self.claim, now());
        }
        for name in waiting {
            if !go_on() || is_early(now(), unix(self.not_before)) {
                break;
            }
            self.deliver(&name, &now)?;
        }
        Ok(())
    }

    /// Last error of the server, unless it has accepted a report since.
    #[must_use]
    pub fn last_error(&self) -> Option<&CollectorError> {
        self.last.as_ref().or_else(|| self.known.error())
    }

    /// True if delivery fails until the user corrects a setting.
    #[must_use]
    pub(crate) fn is_blocked(&self) -> bool {
        self.last.as_ref().is_some_and(|error| !error.is_passing() && !is_final(error))
    }

    #[must_use]
    pub fn claim(&self) -> &SpoolClaim {
        &self.claim
    }

    fn deliver(&mut self, name: &str, now: &impl Fn() -> SystemTime) -> Result<(), CollectorError> {
        let tries = self.claim.tries(name)?;
        if is_early(now(), tries.not_before) {
            return Ok(());
        }
        let Some(item) = self.claim.take(name)? else { return Ok(()) };
        let signature = match self.known.judge(&item.report) {
            DeliveryVerdict::Enough(signature) => {
                return self.claim.leave_out(name, &item, signature);
            }
            DeliveryVerdict::Known(signature) => Some(signature),
            DeliveryVerdict::New => None,
        };
        let not_before = unix(now() + SETTLED);
        let begun = Tries { count: tries.count + 1, not_before, ..tries.clone() };
        self.claim.note(name, &begun)?;
        match attempt(&self.client, &item, &tries, now()) {
            Ok(number) => {
                (self.failures, self.last) = (0, None);
                signature.iter().for_each(|signature| self.known.count(signature));
                self.claim.done(name, &item, number, signature)
            }
            // Reads the clock again: the attempt may have taken longer than any wait.
            Err(failed) => self.failed(name, begun, failed, now()),
        }
    }

    fn failed(
        &mut self,
        name: &str,
        mut tries: Tries,
        failed: Failed,
        now: SystemTime,
    ) -> Result<(), CollectorError> {
        failed.note(&mut tries, &self.client, now);
        let Failed { error, step } = failed;
        let pause = settling(&error, &self.client);
        tries.not_before = pause.map_or(0.0, |pause| unix(now + pause));
        if is_final(&error) {
            self.claim.refuse(name, &tries.error)?;
        } else {
            if step == TryStep::Sending && is_about_the_report(&error) {
                tries.not_before = unix(now + wait(tries.failed, LONGEST_FOR_ONE, &error));
            } else if step == TryStep::Waiting {
                // Does not delay other reports.
            } else {
                self.failures += 1;
                self.not_before = now + wait(self.failures, LONGEST_WAIT, &error);
            }
            self.claim.note(name, &tries)?;
        }
        self.last = Some(error);
        Ok(())
    }
}

/// Sends a report without a spool, with pauses between tries. Returns its number at the server.
pub fn submit(
    client: &Client,
    report: CrashReport,
    mut pause: impl FnMut(Duration, &CollectorError),
) -> Result<u64, CollectorError> {
    let item = SpoolItem::new(report);
    let mut tries = Tries::default();
    loop {
        let failed = match attempt(client, &item, &tries, SystemTime::now()) {
            Err(failed) if failed.error.is_passing() && tries.count + 1 < TRIES_AT_ONCE => failed,
            answer => return answer.map_err(|failed| failed.error),
        };
        tries.count += 1;
        failed.note(&mut tries, client, SystemTime::now());
        let error = failed.error;
        let settling = settling(&error, client).unwrap_or_default();
        pause(wait(tries.count, LONGEST_WAIT, &error).max(settling), &error);
    }
}

/// Step at which a try failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TryStep {
    /// Searching the server for the report.
    Asking,
    /// Waiting because the server may still be storing it.
    Waiting,
    Sending,
}

/// A try that failed.
#[derive(Debug)]
struct Failed {
    error: CollectorError,
    step: TryStep,
}

impl Failed {
    fn note(&self, tries: &mut Tries, client: &Client, now: SystemTime) {
        tries.error = self.error.to_string();
        if self.step != TryStep::Sending {
            return;
        }
        tries.failed += u32::from(is_about_the_report(&self.error));
        if let Some(pause) = settling(&self.error, client) {
            let times = if self.error.is_overdue() { OVERDUE } else { 1 };
            tries.open_until = unix(now + pause * times);
        }
    }
}

/// Makes one try. Does not submit a report again that an earlier try has stored, or may still store.
fn attempt(
    client: &Client,
    item: &SpoolItem,
    earlier: &Tries,
    now: SystemTime,
) -> Result<u64, Failed> {
    if earlier.count > 0 {
        let found = client.find(&item.id);
        if let Some(number) = found.map_err(|error| Failed { error, step: TryStep::Asking })? {
            return Ok(number);
        }
    }
    if is_early(now, earlier.open_until) {
        let error = CollectorError::Slow { url: client.server().url.clone() };
        return Err(Failed { error, step: TryStep::Waiting });
    }
    let report = &item.report;
    let info = crash::beyond::parse(&report.output, &report.program);
    let mut sent = crash::beyond::to_send(&report.output, &info);
    if earlier.failed >= PLAIN_TRIES && earlier.failed.is_multiple_of(2) {
        // The server failed on the text: send only the parsed facts, in the form that every server supports. If it
        // fails on that as well, the text was not the cause.
        sent.crash_data = crash::for_server(&Output::default(), &info);
    }
    let number = client.submit(&report.fields(&item.id, client.server(), &sent));
    number.map_err(|error| Failed { error, step: TryStep::Sending })
}

/// Wait before the next search for the report, if the server may still be processing the request.
fn settling(error: &CollectorError, client: &Client) -> Option<Duration> {
    error.leaves_request_open().then(|| client.server().patience)
}

/// True for a failure that the server's parser produces on some texts.
fn is_about_the_report(error: &CollectorError) -> bool {
    matches!(error, CollectorError::Failing { status: 500, .. })
}

/// True if no later try can succeed.
fn is_final(error: &CollectorError) -> bool {
    matches!(error, CollectorError::Refused { status: 400 | 413 | 414 | 415 | 422, .. })
}

fn wait(failures: u32, longest: Duration, error: &CollectorError) -> Duration {
    let doubled = FIRST_WAIT * 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    doubled.min(longest).max(error.retry_after().unwrap_or_default())
}

/// True before `not_before`, unless it is further away than the longest pause: then it comes from a wrong clock.
fn is_early(now: SystemTime, not_before: f64) -> bool {
    let left = not_before - unix(now);
    left > 0.0 && left <= LONGEST_PAUSE.as_secs_f64()
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
