//! Takes reports from the spool to the server, each once, however often one of the two goes away.
//!
//! A request whose answer was lost may have been stored. So every try but the first searches the server
//! first, by the id in the report's metadata.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::{Client, LONGEST_PAUSE};
use super::error::CollectorError;
use super::known::{DeliveryVerdict, KnownBugs};
use super::report::Report;
use super::spool::{SpoolClaim, SpoolItem, Tries};
use crate::crash::{self, Output};

/// Waits between tries double from here,
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// to this if the server has trouble,
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// and to this if it has trouble with one report only.
const LONGEST_FOR_ONE: Duration = Duration::from_secs(3600);
/// A request whose sender was killed is stored after this time, or never.
const SETTLED: Duration = Duration::from_secs(10);
/// A server that gave no answer in time may still store the request: within this multiple of that time.
const OVERDUE: u32 = 10;
/// Failures of the server on a report after which it is sent in another form: one is no proof that the
/// text is to blame.
const PLAIN_TRIES: u32 = 2;
/// Tries of a report that is in no spool: 2, 4, 8, 16, 32 and 64 s apart, as the reference's.
const TRIES_AT_ONCE: u32 = 7;

/// The holder of a spool's claim, with a server.
#[derive(Debug)]
pub struct Delivery {
    claim: SpoolClaim,
    client: Client,
    known: KnownBugs,
    not_before: SystemTime,
    /// Requests in a row that the server did not answer as it should.
    failures: u32,
    last: Option<CollectorError>,
}

impl Delivery {
    /// `signatures`: the folder of those that the server has.
    #[must_use]
    pub fn new(claim: SpoolClaim, client: Client, signatures: PathBuf) -> Self {
        let known = KnownBugs::new(signatures);
        Self { claim, client, known, not_before: UNIX_EPOCH, failures: 0, last: None }
    }

    /// Sends what is due, the oldest first, as long as `go_on` holds. An error is one of this machine
    /// disk; those of the server are in [`Self::last_error`] and wait for another try.
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

    /// The server's last error, unless it accepted a report since.
    #[must_use]
    pub fn last_error(&self) -> Option<&CollectorError> {
        self.last.as_ref().or_else(|| self.known.error())
    }

    /// Nothing will arrive until the user corrects a setting.
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
            // The attempt may have taken longer than any wait.
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
                // Others need not wait for it.
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

/// Sends a report that is in no spool, and waits between tries. Returns its number there.
pub fn submit(
    client: &Client,
    report: Report,
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

/// What a try was about when it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TryStep {
    /// The question whether the server has the report.
    Asking,
    /// It has not, and may still be at work on it.
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

/// One try. What an earlier one has stored is found, and not stored again; what it may still store is
/// waited for.
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
        // The server failed on the text: send only the parsed facts, in the form
        // that every server supports. If it fails on that as well, the text was not the cause.
        sent.crash_data = crash::for_server(&Output::default(), &info);
    }
    let number = client.submit(&report.fields(&item.id, client.server(), &sent));
    number.map_err(|error| Failed { error, step: TryStep::Sending })
}

/// How long to wait before a query whether the server has the report: it may have been given the
/// request, and not be done with it.
fn settling(error: &CollectorError, client: &Client) -> Option<Duration> {
    error.leaves_request_open().then(|| client.server().patience)
}

/// The server's parser fails on some texts with this.
fn is_about_the_report(error: &CollectorError) -> bool {
    matches!(error, CollectorError::Failing { status: 500, .. })
}

/// No later try can succeed.
fn is_final(error: &CollectorError) -> bool {
    matches!(error, CollectorError::Refused { status: 400 | 413 | 414 | 415 | 422, .. })
}

fn wait(failures: u32, longest: Duration, error: &CollectorError) -> Duration {
    let doubled = FIRST_WAIT * 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    doubled.min(longest).max(error.retry_after().unwrap_or_default())
}

/// Nothing waits longer than the longest pause: a time beyond is from a clock that was wrong.
fn is_early(now: SystemTime, not_before: f64) -> bool {
    let left = not_before - unix(now);
    left > 0.0 && left <= LONGEST_PAUSE.as_secs_f64()
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
