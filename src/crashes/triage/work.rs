//! The work of a triage: files to examine, bugs to minimize, and its threads.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::examine::{hash_of, read};
use super::paths::to_text;
use super::report::{CrashFile, FileOutcome, TriageReport};
use super::rerun::{RARE_RUNS, Rerun};
use super::state::{SAVE, WorkState};
use super::{BugDelivery, Records, TriageError};
use crate::collector::DeliveryStatus;
use crate::crash::ProgramInfo;

/// Options of the work.
#[derive(Clone, Debug)]
pub struct WorkOptions {
    /// `…/triage`.
    pub folder: PathBuf,
    /// Base folder of paths in the report.
    pub root: PathBuf,
    pub runs: u32,
    /// Timeout of one run.
    pub timeout: Duration,
    /// Time limit for minimizing one input; zero: off.
    pub minimize: Duration,
    /// True beside a running campaign, which has priority.
    pub beside: bool,
    pub program: ProgramInfo,
    /// For `reproduce.sh`: variables, true if the user named the target's file (`-f`), extension of an input.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub names_file: bool,
    pub extension: Option<String>,
}

impl WorkOptions {
    pub(super) fn limit_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// True for a file that never crashed but may do so rarely.
    pub(super) fn is_worth_another_look(&self, crash: &CrashFile) -> bool {
        crash.state == FileOutcome::NoCrash && crash.runs < RARE_RUNS
    }

    /// True if more or longer runs could change the outcome.
    fn may_show_more(&self, crash: &CrashFile) -> bool {
        match crash.state {
            FileOutcome::Crashes => false,
            FileOutcome::NoCrash => crash.runs < self.runs,
            FileOutcome::TimesOut => crash.limit_ms < self.limit_ms(),
            FileOutcome::Unreadable => true,
        }
    }
}

/// Data shared by the threads.
#[derive(Debug)]
pub struct TriageWork {
    pub(super) options: WorkOptions,
    /// Delivers bugs, if a server is set.
    pub(super) delivery: Option<BugDelivery>,
    inside: Mutex<WorkState>,
    changed: Condvar,
}

/// A job, the most urgent first. Bugs are given by their index.
enum TriageJob {
    /// A new bug that is not reported yet.
    Report(usize),
    Examine(PathBuf),
    /// Measure its crash rate, or find out if it crashes at all.
    Count(PathBuf),
    Finish(usize),
}

/// Progress of the work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkProgress {
    pub done: usize,
    pub waiting: usize,
    pub bugs: usize,
}

impl TriageWork {
    /// Continues the `earlier` report if it is about the same programs.
    #[must_use]
    pub fn new(
        options: WorkOptions,
        mut report: TriageReport,
        earlier: Option<TriageReport>,
    ) -> Self {
        if let Some(earlier) = earlier.filter(|it| it.fingerprint == report.fingerprint) {
            report = earlier;
        }
        let inside = WorkState::new(report);
        Self { options, delivery: None, inside: Mutex::new(inside), changed: Condvar::new() }
    }

    /// Hands every bug to `delivery` once, and marks its files.
    #[must_use]
    pub(crate) fn deliver_by(mut self, delivery: Option<BugDelivery>) -> Self {
        self.delivery = delivery;
        self
    }

    /// Hands over the current records.
    pub fn deliver_records(&self, records: &mut Records) -> Result<(), TriageError> {
        let take = |delivery: &BugDelivery| delivery.take_records(records, &self.options.root);
        Ok(self.delivery.as_ref().map(take).transpose().map(drop)?)
    }

    /// Problem that delays reports.
    #[must_use]
    pub(crate) fn delivery_trouble(&self) -> Option<String> {
        self.delivery.as_ref()?.status()?.trouble()
    }

    /// Waits for the delivery, with a time limit; None if there is no delivery.
    pub fn finish_delivery(&self, patience: Duration) -> Option<DeliveryStatus> {
        self.delivery.as_ref().and_then(|delivery| delivery.finish(patience))
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, WorkState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds files to examine; skips files in the report with the same name and content. Returns the number of new
    /// files.
    pub fn add(&self, files: impl IntoIterator<Item = PathBuf>) -> usize {
        let mut inside = self.inside();
        let before = inside.waiting.len();
        let files: Vec<PathBuf> =
            files.into_iter().filter(|path| !inside.known.contains(path)).collect();
        if files.is_empty() {
            return 0;
        }
        for path in files {
            if !inside.known.insert(path.clone()) {
                continue;
            }
            let known = inside.crash(&self.shown(&path)).filter(|crash| {
                let is_same = || read(&path).is_ok_and(|data| hash_of(&data) == crash.hash);
                !self.options.may_show_more(crash) && is_same()
            });
            let most = self.options.runs.min(inside.report.runs);
            match known {
                Some(crash) if self.is_to_be_counted(crash, most) => {
                    inside.to_count.push_back(path);
                }
                Some(_) => {}
                // Its bug must not be reported before it is known.
                None if self.was_delivered_before(&path) => {
                    inside.delivered.insert(path.clone());
                    inside.waiting.push_front(path);
                }
                None => inside.waiting.push_back(path),
            }
        }
        let added = inside.waiting.len() - before;
        drop(inside);
        self.changed.notify_all();
        added
    }

    /// True if the first runs were made and others are left.
    pub(super) fn is_to_be_counted(&self, crash: &CrashFile, most: u32) -> bool {
        (crash.state == FileOutcome::Crashes && crash.runs < most)
            || self.options.is_worth_another_look(crash)
    }

    fn was_delivered_before(&self, path: &Path) -> bool {
        self.delivery.as_ref().is_some_and(|delivery| delivery.was_delivered_before(path))
    }

    /// Path in the report.
    pub(super) fn shown(&self, path: &Path) -> String {
        to_text(path.strip_prefix(&self.options.root).unwrap_or(path))
    }

    #[must_use]
    pub fn progress(&self) -> WorkProgress {
        let inside = self.inside();
        let waiting = inside.waiting.len() + inside.to_count.len() + inside.under_way;
        let done = inside.report.crashes.len();
        WorkProgress { done, waiting, bugs: inside.report.bugs.len() }
    }

    /// Stops all threads after their current job.
    pub fn stop(&self) {
        self.inside().stop = true;
        self.changed.notify_all();
    }

    /// Signals that no more files will come and time is short.
    pub(crate) fn hurry(&self) {
        self.inside().hurry = true;
        self.changed.notify_all();
    }

    /// False once the work should end.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        let inside = self.inside();
        !inside.stop && !inside.hurry
    }

    /// Waits until there may be something to do; false at the end.
    #[must_use]
    pub fn wait(&self) -> bool {
        let mut inside = self.inside();
        let has_work =
            |inside: &WorkState| !inside.waiting.is_empty() || !inside.to_count.is_empty();
        while !has_work(&inside) && !inside.stop && !inside.hurry {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        !inside.stop && has_work(&inside)
    }

    /// Messages for the user since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.inside().notes)
    }

    /// Does the waiting work until there is no more.
    pub fn run(&self, rerun: &mut Rerun) -> Result<(), TriageError> {
        let result = self.jobs(rerun);
        self.inside().notes.extend(rerun.take_messages());
        result
    }

    fn jobs(&self, rerun: &mut Rerun) -> Result<(), TriageError> {
        while let Some(job) = self.next() {
            match job {
                TriageJob::Examine(path) => {
                    let result = self.examine(rerun, &path);
                    let mut inside = self.inside();
                    inside.under_way -= 1;
                    match result {
                        Ok(()) => drop(inside.delivered.remove(&path)),
                        Err(_) => inside.waiting.push_front(path),
                    }
                    drop(inside);
                    self.changed.notify_all();
                    result?;
                }
                TriageJob::Count(path) => {
                    let result = self.count(rerun, &path);
                    let mut inside = self.inside();
                    inside.under_way -= 1;
                    if result.is_err() {
                        inside.to_count.push_front(path);
                    }
                    drop(inside);
                    self.changed.notify_all();
                    result?;
                }
                TriageJob::Report(index) => self.with_bug(index, |work| work.report(index))?,
                TriageJob::Finish(index) => {
                    self.with_bug(index, |work| work.finish(rerun, index))?
                }
            }
            self.save_if_due()?;
        }
        Ok(())
    }

    /// Calls `act` with a taken bug, then releases it.
    fn with_bug(
        &self,
        index: usize,
        act: impl FnOnce(&Self) -> Result<(), TriageError>,
    ) -> Result<(), TriageError> {
        let result = act(self);
        let mut inside = self.inside();
        let id = inside.report.bugs[index].id.clone();
        inside.taken.remove(&id);
        drop(inside);
        self.changed.notify_all();
        result
    }

    /// Takes the next job. Reports come first. While a file is examined, a bug may still get a smaller input.
    fn next(&self) -> Option<TriageJob> {
        let mut inside = self.inside();
        loop {
            if inside.stop {
                return None;
            }
            if self.delivery.is_some()
                && let Some(index) = inside.unreported()
            {
                return Some(TriageJob::Report(index));
            }
            if let Some(path) = inside.waiting.pop_front() {
                inside.under_way += 1;
                return Some(TriageJob::Examine(path));
            }
            if inside.hurry {
                inside.to_count.clear();
            }
            if let Some(path) = inside.to_count.pop_front() {
                inside.under_way += 1;
                return Some(TriageJob::Count(path));
            }
            if inside.under_way == 0 {
                return inside.unfinished(self.delivery.is_some()).map(TriageJob::Finish);
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn save_if_due(&self) -> Result<(), TriageError> {
        let mut inside = self.inside();
        let waits = !inside.waiting.is_empty() || !inside.to_count.is_empty();
        let idle = !waits && inside.under_way == 0;
        if inside.dirty && (idle || inside.saved.elapsed() >= SAVE) {
            inside.save(&self.options.folder)?;
            self.mark(&mut inside);
        }
        Ok(())
    }

    /// Writes the report if it has changed, and returns it.
    pub fn save(&self) -> Result<TriageReport, TriageError> {
        let mut inside = self.inside();
        if inside.dirty {
            inside.save(&self.options.folder)?;
        }
        self.mark(&mut inside);
        Ok(inside.report.clone())
    }
}
