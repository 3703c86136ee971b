//! Bugs on their way to the crash server: each is put into the spool once, when its folder is complete,
//! and goes to the server in the background.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::report::Bug;
use super::write::{INPUT, MINIMIZED};
use crate::collector::{CollectorError, Report, Settings, Spool, Status, Target, Testcase, Worker};
use crate::crash::{self, Output};

/// Folder of the spool, in that of the report.
const SPOOL: &str = "spool";
/// FuzzManager's numbers: reduced, and not reduced yet.
const REDUCED: i64 = 0;
const AS_FOUND: i64 = 5;
/// Behind the name of a crash, as other tools have it.
const SUBMITTED: &str = "submitted";
const FAILED: &str = "failed";

/// Who delivers.
#[derive(Debug)]
pub struct Courier {
    spool: Spool,
    worker: Mutex<Option<Worker>>,
    target: Target,
    /// The target's arguments, as FuzzManager has them.
    args: Vec<String>,
}

impl Courier {
    /// `folder` is that of the report.
    pub fn start(
        folder: &Path,
        settings: &Settings,
        target: Target,
        args: Vec<String>,
    ) -> Result<Self, CollectorError> {
        let folder = folder.join(SPOOL);
        let spool = Spool::open(&folder)?;
        let worker = Worker::start(&folder, settings)?;
        Ok(Self { spool, worker: Mutex::new(Some(worker)), target, args })
    }

    /// Takes over a bug whose folder is complete.
    pub(super) fn take(&self, bug: &Bug, folder: &Path) -> Result<(), CollectorError> {
        self.spool.add(&self.report(bug, folder))?;
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        worker.iter().for_each(Worker::wake);
        Ok(())
    }

    fn report(&self, bug: &Bug, folder: &Path) -> Report {
        let text = |name: &str| {
            let bytes = fs::read(folder.join(name)).unwrap_or_default();
            crash::text(&bytes)
        };
        let minimized = fs::read(folder.join(MINIMIZED)).ok();
        let input = fs::read(folder.join(INPUT)).unwrap_or_default();
        let quality = match &minimized {
            Some(small) if small.len() < input.len() => REDUCED,
            _ => AS_FOUND,
        };
        let testcase = Testcase {
            bytes: minimized.unwrap_or(input),
            extension: Testcase::extension_of(Path::new(&bug.input)),
            quality,
            size: None,
        };
        let mut metadata = self.target.metadata.clone();
        metadata.insert("fuzzer".into(), format!("ffuzz {}", env!("CARGO_PKG_VERSION")));
        metadata.insert("reproduced".into(), format!("{} of {}", bug.crashes, bug.runs));
        metadata.insert("signal".into(), bug.signal.clone());
        Report {
            key: bug.id.clone(),
            program: self.target.program.clone(),
            output: Output {
                stdout: text("stdout.txt"),
                stderr: text("stderr.txt"),
                crash_data: text("debugger.txt"),
            },
            testcase: Some(testcase),
            args: self.args.clone(),
            metadata,
            ..Report::default()
        }
    }

    /// Waits until all is delivered, at most so long.
    pub fn finish(&self, patience: Duration) -> Option<Status> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        worker.map(|worker| worker.finish(patience))
    }
}

/// Marks a crash file for other tools: its bug was handed over, or it cannot be.
pub(super) fn mark(crash: &Path, good: bool) {
    let mut name = crash.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(if good { SUBMITTED } else { FAILED });
    let path: PathBuf = crash.with_file_name(name);
    // Somebody else's folder may be read-only: the spool knows as well.
    let _ = OpenOptions::new().write(true).create_new(true).open(path);
}
