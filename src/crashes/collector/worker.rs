//! Background delivery: a thread that never blocks callers that add reports.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::client::Client;
use super::delivery::Delivery;
use super::error::CollectorError;
use super::settings::Settings;
use super::spool::{Spool, SpoolCounts};
use ffuzz_sys::remedy::Remedy;

/// Interval of the checks for reports of other processes and for the end of a wait.
const INTERVAL: Duration = Duration::from_millis(500);

/// State of the delivery.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeliveryStatus {
    #[serde(flatten)]
    pub counts: SpoolCounts,
    /// Cause and remedy of the problem that delays reports.
    pub error: Option<(String, String)>,
}

impl DeliveryStatus {
    /// One line about the problem that delays reports.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.error.as_ref().map(|(cause, remedy)| format!("{cause} ({remedy})"))
    }
}

#[derive(Debug, Default)]
struct DeliveryShared {
    stop: AtomicBool,
    /// True if a report was added since the last check.
    added: Mutex<bool>,
    wake: Condvar,
    status: Mutex<DeliveryStatus>,
}

/// Delivery thread. Dropping it ends it after the current request.
#[derive(Debug)]
pub struct DeliveryWorker {
    shared: Arc<DeliveryShared>,
    thread: Option<JoinHandle<()>>,
}

impl DeliveryWorker {
    /// Starts delivery of a folder's reports. While another process delivers them, waits for its turn.
    pub fn start(folder: &Path, settings: &Settings) -> Result<Self, CollectorError> {
        let (spool, client) = (Spool::open(folder)?, Client::new(settings.server()?)?);
        let signatures = settings.signatures_for(folder);
        let shared = Arc::new(DeliveryShared::default());
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("collector".into());
        let thread = thread.spawn(move || {
            let _guard = PanicGuard(&its);
            run(&spool, (client, signatures), &its);
        });
        let thread = thread.map_err(|error| CollectorError::write(folder, error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Signals that there is something to deliver.
    pub fn wake(&self) {
        *lock(&self.shared.added) = true;
        self.shared.wake.notify_all();
    }

    #[must_use]
    pub fn status(&self) -> DeliveryStatus {
        lock(&self.shared.status).clone()
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until no report waits, at most `patience`, and ends the thread.
    #[must_use]
    pub fn finish(self, patience: Duration) -> DeliveryStatus {
        let start = Instant::now();
        self.wake();
        let is_done =
            || lock(&self.shared.status).counts.waiting == 0 && !*lock(&self.shared.added);
        while start.elapsed() < patience && !is_done() && !self.has_ended() {
            thread::park_timeout(INTERVAL / 20);
        }
        let shared = Arc::clone(&self.shared);
        drop(self);
        lock(&shared.status).clone()
    }
}

impl Drop for DeliveryWorker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reports a panic of the thread in the status.
struct PanicGuard<'a>(&'a DeliveryShared);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let cause = "the delivery of reports has ended because of an internal error".to_owned();
            let remedy = "send the rest with ffuzz-collector --deliver OUT/triage/spool".to_owned();
            lock(&self.0.status).error = Some((cause, remedy));
        }
    }
}

/// Client and signature folder of the delivery.
type Outfit = (Client, PathBuf);

fn run(spool: &Spool, outfit: Outfit, shared: &DeliveryShared) {
    let mut outfit = Some(outfit);
    let mut delivery = None;
    while !shared.stop.load(Ordering::Relaxed) {
        let was_added = *lock(&shared.added);
        let done = turn(spool, &mut outfit, &mut delivery, shared);
        let error = match &done {
            Err(error) => Some(error),
            Ok(()) => delivery.as_ref().and_then(Delivery::last_error),
        };
        let error = error.map(|error| (error.to_string(), error.remedy()));
        let counts = spool.counts().unwrap_or_default();
        *lock(&shared.status) = DeliveryStatus { counts, error };
        let mut added = lock(&shared.added);
        if was_added {
            *added = false;
        }
        if !*added && !shared.stop.load(Ordering::Relaxed) {
            drop(shared.wake.wait_timeout(added, INTERVAL));
        }
    }
}

/// Claims the spool if no other process has it, and delivers.
fn turn(
    spool: &Spool,
    outfit: &mut Option<Outfit>,
    delivery: &mut Option<Delivery>,
    shared: &DeliveryShared,
) -> Result<(), CollectorError> {
    if outfit.is_some()
        && let Some(claim) = spool.claim()?
    {
        let start = |(client, signatures)| Delivery::new(claim, client, signatures);
        *delivery = outfit.take().map(start);
    }
    let Some(delivery) = delivery else { return Ok(()) };
    delivery.deliver_due(SystemTime::now, || !shared.stop.load(Ordering::Relaxed))
}

/// Locks a mutex, ignoring poisoning: a panic leaves no partial state behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_dies_is_reported() {
        let shared = Arc::new(DeliveryShared::default());
        lock(&shared.status).counts.waiting = 1;
        let its = Arc::clone(&shared);
        let dies = move || {
            let _guard = PanicGuard(&its);
            // No text for the log of the tests.
            std::panic::resume_unwind(Box::new(()));
        };
        let worker = DeliveryWorker { shared, thread: Some(thread::spawn(dies)) };
        // It does not wait for reports that will not be sent.
        let status = worker.finish(Duration::from_secs(600));
        assert_eq!(status.counts.waiting, 1);
        let trouble = status.trouble().expect("an error is shown");
        assert!(trouble.contains("has ended") && trouble.contains("--deliver"), "{trouble}");
    }
}
