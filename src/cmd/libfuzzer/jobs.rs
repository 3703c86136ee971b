//! `-jobs=N -workers=M`: N campaigns, M at a time, each with its own log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use super::eprint_line;
use super::options::Order;
use crate::cmd::exit::Failure;

/// Interval between checks for ended jobs.
const LOOK: Duration = Duration::from_millis(50);

/// Runs all jobs. The exit code is 1 if one failed, as in libFuzzer.
pub(super) fn run(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let jobs = usize::try_from(order.number("jobs")).unwrap_or(1);
    let workers = match usize::try_from(order.number("workers")) {
        Ok(workers) if workers > 0 => workers,
        _ => std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
    };
    let mut words = order.words_without(&["jobs", "workers"]);
    words.insert(0, harness.into());
    let (mut next, mut running, mut has_failed) = (0, Vec::new(), false);
    while next < jobs || !running.is_empty() {
        while next < jobs && running.len() < workers.min(jobs) {
            let job = start(&words, next);
            running.push(job.map_err(|error| {
                let cause = format!("cannot start job {next}: {error}");
                Failure::new(cause, "the current folder needs room for fuzz-N.log")
            })?);
            next += 1;
        }
        let (mut ended, mut rest) = (Vec::new(), Vec::new());
        for mut job in running {
            match job.child.try_wait() {
                Ok(None) => rest.push(job),
                status => ended.push((job, status.ok().flatten().and_then(|status| status.code()))),
            }
        }
        running = rest;
        if ended.is_empty() {
            std::thread::sleep(LOOK);
        }
        for (job, code) in ended {
            let code = code.unwrap_or(1);
            has_failed |= code != 0;
            let line = "=".repeat(18);
            eprint_line(&format!(
                "{line} Job {} exited with exit code {code} ============",
                job.number
            ));
            eprint_line(&String::from_utf8_lossy(&fs::read(&job.log).unwrap_or_default()));
        }
    }
    Ok(ExitCode::from(u8::from(has_failed)))
}

struct Job {
    number: usize,
    log: PathBuf,
    child: Child,
}

fn start(words: &[std::ffi::OsString], number: usize) -> std::io::Result<Job> {
    let log = PathBuf::from(format!("fuzz-{number}.log"));
    let file = File::create(&log)?;
    let child = Command::new(crate::cmd::fuzz::this_program())
        .arg("libfuzzer")
        .args(words)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    Ok(Job { number, log, child })
}
