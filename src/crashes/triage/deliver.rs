//! Delivery of bugs to the crash server: each is put into the spool once and sent in the background.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::paths::from_text;
use super::records::{DomainRecord, Records};
use super::report::TriagedBug;
use super::write::{INPUT, MINIMIZED};
use crate::collector::{
    CollectorError, CrashReport, DeliveryStatus, DeliveryWorker, IniValues, Settings, Spool,
    Target, Testcase,
};
use crate::crash::{self, Output};

/// Name of the spool in the folder of the report.
const SPOOL: &str = "spool";
/// FuzzManager's qualities: reduced, and not reduced yet.
const REDUCED: i64 = 0;
const AS_FOUND: i64 = 5;
/// Suffixes of marks beside a crash, as used by other tools.
const SUBMITTED: &str = "submitted";
const FAILED: &str = "failed";

/// Spool of a report's folder.
#[must_use]
pub(super) fn spool(folder: &Path) -> PathBuf {
    folder.join(SPOOL)
}

/// Number of waiting reports in the spool.
#[must_use]
pub(super) fn waiting(folder: &Path) -> u64 {
    Spool::waiting_in(&spool(folder)).unwrap_or(0) as u64
}

/// The delivery of bugs.
#[derive(Debug)]
pub struct BugDelivery {
    spool: Spool,
    worker: Mutex<Option<DeliveryWorker>>,
    target: Target,
    /// Arguments of the target, in FuzzManager's form.
    args: Vec<String>,
    /// Environment variables set for the target.
    env: IniValues,
}

impl BugDelivery {
    /// Starts the delivery; `folder` is that of the report.
    pub fn start(
        folder: &Path,
        settings: &Settings,
        target: Target,
        args: Vec<String>,
        env: IniValues,
    ) -> Result<Self, CollectorError> {
        let folder = spool(folder);
        let spool = Spool::open(&folder)?;
        let worker = DeliveryWorker::start(&folder, settings)?;
        Ok(Self { spool, worker: Mutex::new(Some(worker)), target, args, env })
    }

    /// Queues the report of a bug.
    pub(super) fn take(&self, report: &CrashReport) -> Result<(), CollectorError> {
        self.spool.add(report)?;
        self.wake();
        Ok(())
    }

    /// Replaces the waiting report of a bug by a better one, unless it was sent.
    pub(super) fn improve(&self, report: &CrashReport) -> Result<(), CollectorError> {
        self.spool.improve(report)
    }

    /// True if another tool marked this crash as delivered before this spool existed.
    pub(super) fn was_delivered_before(&self, crash: &Path) -> bool {
        let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        let marked = changed(&mark_of(crash, SUBMITTED));
        // A file written after its mark is another crash.
        marked >= changed(crash) && marked.is_some_and(|time| time < self.spool.began())
    }

    /// Queues the records that the campaign below `root` has reached since the last call, once per place.
    pub(crate) fn take_records(
        &self,
        records: &mut Records,
        root: &Path,
    ) -> Result<(), CollectorError> {
        for record in records.look(root) {
            let line = record.line.clone();
            self.spool.add(&self.report_of_record(record))?;
            records.handed_over(line);
            self.wake();
        }
        Ok(())
    }

    fn report_of_record(&self, record: DomainRecord) -> CrashReport {
        let DomainRecord { line, domain, place, value, input, data } = record;
        let mut metadata = self.metadata();
        metadata.insert("domain".into(), domain);
        metadata.insert("place".into(), place);
        metadata.insert("value".into(), value.to_string());
        let extension = Testcase::extension_of(&input);
        CrashReport {
            key: line.clone(),
            program: self.target.program.clone(),
            output: Output { stderr: line + "\n", ..Output::default() },
            testcase: Some(Testcase { bytes: data, extension, quality: AS_FOUND, size: None }),
            args: self.args.clone(),
            env: self.env.clone(),
            metadata,
        }
    }

    fn metadata(&self) -> IniValues {
        let mut metadata = self.target.metadata.clone();
        metadata.insert("fuzzer".into(), format!("ffuzz {}", env!("CARGO_PKG_VERSION")));
        metadata
    }

    fn wake(&self) {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        worker.iter().for_each(DeliveryWorker::wake);
    }

    /// Report of a bug whose folder is complete.
    pub(super) fn report(
        &self,
        bug: &TriagedBug,
        folder: &Path,
    ) -> Result<CrashReport, CollectorError> {
        let text = |name: &str| {
            let bytes = fs::read(folder.join(name)).unwrap_or_default();
            crash::text(&bytes)
        };
        let minimized = fs::read(folder.join(MINIMIZED)).ok();
        let path = folder.join(INPUT);
        let input = fs::read(&path).map_err(|source| CollectorError::Read { path, source })?;
        let quality = match &minimized {
            Some(small) if small.len() < input.len() => REDUCED,
            _ => AS_FOUND,
        };
        let input_file = from_text(&bug.input);
        let testcase = Testcase {
            bytes: minimized.unwrap_or(input),
            extension: Testcase::extension_of(&input_file),
            quality,
            size: None,
        };
        let mut metadata = self.metadata();
        metadata.insert("reproduced".into(), format!("{} of {}", bug.crashes, bug.runs));
        metadata.insert("signal".into(), bug.signal.clone());
        if bug.before > 0 {
            let words = format!("{} inputs before it in the same process", bug.before);
            metadata.insert("needs".into(), words);
        }
        // AFL's names contain parent, time, executions and mutation.
        let file = input_file.file_name().unwrap_or_default();
        metadata.insert("file".into(), file.to_string_lossy().into_owned());
        Ok(CrashReport {
            key: bug.id.clone(),
            program: self.target.program.clone(),
            output: Output {
                stdout: text("stdout.txt"),
                stderr: text("stderr.txt"),
                crash_data: text("debugger.txt"),
            },
            testcase: Some(testcase),
            args: self.args.clone(),
            env: self.env.clone(),
            metadata,
        })
    }

    /// State of the delivery; None once it has ended.
    pub(super) fn status(&self) -> Option<DeliveryStatus> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        worker.as_ref().map(DeliveryWorker::status)
    }

    /// Waits until everything is delivered, at most `patience`.
    pub fn finish(&self, patience: Duration) -> Option<DeliveryStatus> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        worker.map(|worker| worker.finish(patience))
    }
}

/// Marks a crash file for other tools: its bug was handed over, or could not be. A good mark replaces a bad one.
pub(super) fn mark(crash: &Path, good: bool) {
    let path = mark_of(crash, if good { SUBMITTED } else { FAILED });
    // A foreign folder may be read-only; the spool has the mark as well.
    let _ = OpenOptions::new().write(true).create_new(true).open(path);
    if good {
        let _ = fs::remove_file(mark_of(crash, FAILED));
    }
}

fn mark_of(crash: &Path, word: &str) -> PathBuf {
    let mut name = crash.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(word);
    crash.with_file_name(name)
}
