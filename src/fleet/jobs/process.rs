//! One job as a process of `ffuzz`: its command line, its watch, its end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::results::{self, JobTotals};
use super::{Job, JobsError, Manager, coverage_of, create_folder, remove};
use ffuzz_disk::coverage;
use ffuzz_engine::feedback::Part;
use ffuzz_sys::file::{self, Locked};
use ffuzz_sys::subprocess::{Subprocess, exit_in_words};

/// Names in a job's folder: the campaign, what it prints, its single seed, and states.
pub(super) const OUT: &str = "out";
const LOG: &str = "log";
const SEED: &str = "seed";
pub(super) const COVERAGE: &str = "coverage.json";
/// What was known when the job began.
pub(super) const BEFORE: &str = "before.json";
const MUTATOR: &str = "mutator-state";
/// Seconds between two states of a job: what a kill can make it repeat.
const INTERVAL: &str = "5";
/// What a job may take beyond its seconds: its start, its seeds, the triage of its last crashes.
const GRACE: Duration = Duration::from_secs(60);
/// From the request for an end to the kill. A module that does not return is given up by the job itself
/// after 10 seconds.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(20);
/// Interval between two looks at the statistics.
const GLANCE: Duration = Duration::from_secs(1);
/// With less free space, in bytes, the disk is full.
const LEAST_ROOM: u64 = 64 << 10;
/// The end of a log that is searched for the cause.
const TAIL: u64 = 16 << 10;

/// How a job's process ended.
#[derive(Debug)]
pub(super) enum JobEnd {
    Well,
    Badly { cause: String, remedy: String },
}

#[derive(Debug)]
pub(super) struct RunningJob {
    process: Subprocess,
    pub(super) core: Option<usize>,
    pub(super) base: JobTotals,
    log: PathBuf,
    folder: PathBuf,
    since: Instant,
    seconds: Option<u64>,
    stall: Duration,
    /// Number of runs, and when it changed last.
    execs: (u64, Instant),
    looked_at: Instant,
    /// When it was asked to end, and why.
    asked: Option<(Instant, String)>,
}

/// The folder of a job, which all its rounds share.
pub(super) fn folder(manager: &Manager, job: &Job) -> PathBuf {
    manager.folder.join("jobs").join(job.place())
}

impl RunningJob {
    pub(super) fn start(
        manager: &Manager,
        job: &Job,
        core: Option<usize>,
        base: JobTotals,
        continues: bool,
    ) -> Result<Self, JobsError> {
        let folder = folder(manager, job);
        create_folder(&folder)?;
        if continues {
            // The triage that belongs to it is a process of its own.
            wait_until_left(&folder.join(OUT).join("default"));
            wait_until_left(&folder.join(OUT).join("triage/.lock"));
        }
        let seeds = seeds(job, &folder)?;
        let known = carried(manager, job, &folder, continues)?;
        let log = folder.join(LOG);
        let write = |source| JobsError::Write { path: log.clone(), source };
        let output = file::create(&log).map_err(write)?;
        let argv = command_line(
            manager,
            job,
            core,
            &JobInputs { folder: &folder, seeds: &seeds, known, base: &base },
        );
        let process = launch(&argv, core, manager.at_once, &output);
        let process = process
            .map_err(|source| JobsError::Start { program: manager.program.clone(), source })?;
        let now = Instant::now();
        Ok(Self {
            process,
            core,
            base,
            log,
            folder,
            since: now,
            seconds: job.limits.seconds,
            stall: job.limits.stall,
            execs: (0, now),
            looked_at: now,
            asked: None,
        })
    }

    /// Waits for its end, but no longer than this.
    pub(super) fn wait(&mut self, timeout: Duration) {
        // The status is taken by `ended`.
        self.process.wait(timeout);
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<JobEnd> {
        let Some(status) = self.process.try_wait() else {
            self.watch();
            return None;
        };
        if let Some((_, cause)) = &self.asked {
            let remedy =
                format!("see {}; run the same command again to resume it", self.log.display());
            return Some(JobEnd::Badly { cause: cause.clone(), remedy });
        }
        Some(if status == 0 { JobEnd::Well } else { self.explain(status) })
    }

    /// Asks it to end.
    pub(super) fn ask(&mut self) {
        self.process.signal(libc::SIGTERM);
    }

    /// Ends it when it does not get on.
    fn watch(&mut self) {
        if let Some((asked, _)) = &self.asked {
            if asked.elapsed() > STOP_GRACE {
                self.process.signal(libc::SIGKILL);
            }
            return;
        }
        if self.looked_at.elapsed() < GLANCE {
            return;
        }
        self.looked_at = Instant::now();
        let execs = results::totals(&self.folder).execs;
        if execs != self.execs.0 {
            self.execs = (execs, self.looked_at);
        }
        let (stall, late) = (self.stall.as_secs(), self.seconds.map(Duration::from_secs));
        let cause = if self.execs.1.elapsed() > self.stall {
            format!(
                "no run for {stall} seconds: a module or the target does not return, or the disk is full"
            )
        } else if late.is_some_and(|seconds| self.since.elapsed() > seconds + GRACE) {
            "it did not end at its time limit".to_owned()
        } else {
            return;
        };
        self.asked = Some((self.looked_at, cause));
        self.ask();
    }

    /// The cause and the remedy that it has printed last.
    fn explain(&self, status: i32) -> JobEnd {
        let text = tail(&self.log);
        let mut lines: VecDeque<&str> = text.lines().rev().collect();
        let mut next = |wanted: &str| {
            let at = lines.iter().position(|line| line.starts_with(wanted))?;
            lines.drain(..=at).next_back().map(|line| line[wanted.len()..].to_owned())
        };
        let remedy = next("ffuzz: hint: ");
        let cause = next("ffuzz: ").filter(|_| remedy.is_some());
        // Then it could not write its last words either.
        if cause.is_none() && is_full(&self.folder) {
            let cause = format!("no room left in {}", self.folder.display());
            let remedy = "free some space, then run the same command again".to_owned();
            return JobEnd::Badly { cause, remedy };
        }
        let see = || format!("see {}", self.log.display());
        JobEnd::Badly {
            cause: cause.unwrap_or_else(|| format!("it {}", exit_in_words(status))),
            remedy: remedy.unwrap_or_else(see),
        }
    }
}

/// The campaign of a manager that was killed ends with it, but not in the same moment.
fn wait_until_left(locked: &Path) {
    let start = Instant::now();
    let is_taken = || {
        let lock = File::open(locked).and_then(|file| Locked::new(file, false));
        lock.is_err_and(|error| file::is_taken(&error))
    };
    while is_taken() && start.elapsed() < file::PATIENCE {
        std::thread::sleep(file::RETRY);
    }
}

/// The folder for `-i`: the user's, or one with the single seed.
fn seeds(job: &Job, folder: &Path) -> Result<PathBuf, JobsError> {
    if job.seeds.is_dir() {
        return Ok(job.seeds.clone());
    }
    let own = folder.join(SEED);
    create_folder(&own)?;
    let copy = own.join(job.seeds.file_name().unwrap_or_default());
    let copied = fs::copy(&job.seeds, &copy);
    copied.map_err(|source| JobsError::Write { path: copy, source })?;
    Ok(own)
}

/// The state of the target as it is now, under a name of its own: it is replaced while the job runs. A job
/// that goes on keeps the one it had.
fn carried(
    manager: &Manager,
    job: &Job,
    folder: &Path,
    continues: bool,
) -> Result<Option<PathBuf>, JobsError> {
    let known = coverage_of(&manager.folder, &job.target);
    if !job.carry || !is_current(&known) {
        return Ok(None);
    }
    let before = folder.join(BEFORE);
    if continues && is_current(&before) {
        return Ok(Some(before));
    }
    remove(&before);
    fs::hard_link(&known, &before)
        .or_else(|_| fs::copy(&known, &before).map(|_| ()))
        .map_err(|source| JobsError::Write { path: before.clone(), source })?;
    Ok(Some(before))
}

/// A state of files that were rebuilt since is of no use.
fn is_current(path: &Path) -> bool {
    let is_same = |part: &Part| {
        let build = ffuzz_inspect::parts::build_of(Path::new(&part.file));
        build.is_none_or(|build| build == part.build)
    };
    coverage::read(path).is_ok_and(|known| known.parts.iter().all(is_same))
}

struct JobInputs<'a> {
    folder: &'a Path,
    seeds: &'a Path,
    known: Option<PathBuf>,
    base: &'a JobTotals,
}

fn command_line(
    manager: &Manager,
    job: &Job,
    core: Option<usize>,
    inputs: &JobInputs<'_>,
) -> Vec<OsString> {
    let JobInputs { folder, seeds, known, base } = inputs;
    let mut words: Vec<OsString> = vec![manager.program.clone().into(), "-i".into()];
    words.push(seeds.into());
    let mut add = |option: &str, value: OsString| words.extend([option.into(), value]);
    add("-o", folder.join(OUT).into());
    if let Some(core) = core {
        add("-b", core.to_string().into());
    }
    // Limits of all runs of the campaign, earlier rounds and interrupted starts included.
    if let Some(execs) = job.limits.execs {
        add("-E", (base.execs + execs).to_string().into());
    }
    if let Some(seconds) = job.limits.seconds {
        let spent = results::totals(folder).seconds.saturating_sub(base.seconds);
        add("-V", seconds.saturating_sub(spent).max(1).to_string().into());
    }
    if let Some(known) = known {
        add("--load-coverage", known.into());
    }
    if job.covers {
        add("--save-coverage", folder.join(COVERAGE).into());
    }
    if job.only {
        add("--mutator-state", folder.join(MUTATOR).into());
        words.push("--mutator-only".into());
    }
    words.extend(job.options.iter().cloned());
    words.push("--".into());
    words.extend(job.command.iter().cloned());
    words
}

fn launch(
    argv: &[OsString],
    core: Option<usize>,
    at_once: usize,
    log: &File,
) -> std::io::Result<Subprocess> {
    let set = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
    let mut env = vec![
        // What is there already goes on.
        set("AFL_AUTORESUME", "1"),
        set("AFL_NO_UI", "1"),
        ("AFL_FORCE_UI".into(), None),
        set("AFL_FUZZER_STATS_UPDATE_INTERVAL", INTERVAL),
    ];
    match core {
        Some(_) => env.push(("AFL_NO_AFFINITY".into(), None)),
        // More jobs than cores: the system shares them.
        None if at_once > 1 => env.push(set("AFL_NO_AFFINITY", "1")),
        None => {}
    }
    Subprocess::start(argv, &env, Stdio::null(), log.as_fd(), log.as_fd())
}

fn is_full(folder: &Path) -> bool {
    let room = nix::sys::statvfs::statvfs(folder);
    room.is_ok_and(|room| room.blocks_available() * room.fragment_size() < LEAST_ROOM)
}

fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = file::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // It goes to the terminal.
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    text.replace(|letter: char| letter.is_control() && letter != '\n', " ")
}
