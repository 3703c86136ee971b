//! `ffuzz jobs`: campaigns from a list, each a process of its own in a folder of its own.
//!
//! `file` reads the list and makes [`Job`]s of it, `journal` remembers which are finished, `process` runs one,
//! and this module hands out the cores and carries coverage states from one job to the next (Killerbeez's
//! manager keeps one per target, and a mutator's state per job).

pub mod file;
mod journal;
mod process;
mod results;

pub use file::{JobFile, Mistake};
pub use results::{JobRow, JobStatus};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::Diagnostic;

use ffuzz_disk::coverage::{self, CoverageError};
use ffuzz_engine::feedback::Known;
use ffuzz_sys::file::{self as sys_file, Locked};
use ffuzz_sys::remedy::{self, Remedy};
use ffuzz_sys::stop::Stop;
use journal::{JobJournal, JournalError};
use process::{JobEnd, RunningJob};

/// Interval between two looks at the processes, unless one of them ends earlier.
const LOOK: Duration = Duration::from_millis(50);

/// One job: a seed, a chain of mutators, a target and its limits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Job {
    pub target: String,
    pub mutators: String,
    pub seed: String,
    /// From 1 on: the same seed, mutators and target again continue where the job before has ended.
    pub round: u32,
    pub limits: JobLimits,
    /// A file or a folder.
    pub seeds: PathBuf,
    /// Options of `ffuzz`, without those that this module gives.
    pub options: Vec<OsString>,
    pub command: Vec<OsString>,
    /// All inputs come from the one module, in order.
    pub only: bool,
    /// It starts with the coverage of earlier jobs of its target.
    pub carry: bool,
    /// Its runs have coverage.
    pub covers: bool,
    /// That of the list, at which relative paths begin.
    pub folder: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JobLimits {
    pub execs: Option<u64>,
    pub seconds: Option<u64>,
    /// A job without a run for so long is ended.
    pub stall: Duration,
}

impl Job {
    /// `TARGET/MUTATORS/SEED`: the folder, which all rounds share.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        [&self.target, &self.mutators, &self.seed].iter().collect()
    }

    /// The name for people.
    #[must_use]
    pub fn name(&self) -> String {
        let place = self.place();
        match self.round {
            1 => place.display().to_string(),
            round => format!("{} round {round}", place.display()),
        }
    }
}

const AGAIN: &str = "finished jobs are kept: run the same command again to continue";

/// Why jobs cannot start or go on.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum JobsError {
    #[error("{}: another ffuzz-jobs runs these jobs", folder.display())]
    #[diagnostic(help("wait until it ends, or set another output in the list"))]
    Busy { folder: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    #[diagnostic(help("{}; {AGAIN}", remedy::of_system(source, "check the folder output")))]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    #[diagnostic(help("{}", how_to_journal(.0)))]
    Journal(#[from] JournalError),
    #[error(transparent)]
    #[diagnostic(help("{}; {AGAIN}", .0.remedy()))]
    Coverage(#[from] CoverageError),
    #[error("cannot handle signals: {0}")]
    #[diagnostic(help("{}", AGAIN))]
    Signals(io::Error),
    #[error("cannot start {}: {source}", program.display())]
    #[diagnostic(help("{}", AGAIN))]
    Start { program: PathBuf, source: io::Error },
}

fn how_to_journal(error: &JournalError) -> String {
    match error {
        JournalError::Damaged { path, .. } => {
            format!("remove {}: all jobs are then resumed", path.display())
        }
        JournalError::Io { source, .. } => {
            format!("{}; {AGAIN}", remedy::of_system(source, "check the folder output"))
        }
    }
}

/// What the jobs are run with.
#[derive(Clone, Debug)]
pub struct Manager {
    /// `ffuzz`.
    pub program: PathBuf,
    pub folder: PathBuf,
    /// Cores for jobs side by side; the system chooses for jobs beyond them.
    pub cores: Vec<usize>,
    pub at_once: usize,
}

/// What is reported on the way.
#[derive(Debug)]
pub enum JobEvent<'a> {
    /// Number of jobs, and of those that are already finished.
    Begins {
        jobs: usize,
        finished: usize,
    },
    Starts {
        job: &'a Job,
    },
    Ends {
        row: &'a JobRow,
    },
}

/// The rows of all jobs, finished or not, as the journal has them. Nothing is run.
pub fn rows(folder: &Path, jobs: &[Job]) -> Result<Vec<JobRow>, JobsError> {
    let known = journal::read(&journal_path(folder))?;
    Ok(jobs.iter().map(|job| known.row(job)).collect())
}

fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// Edges and keys that the jobs of this target know together.
#[must_use]
pub(crate) fn coverage_of(folder: &Path, target: &str) -> PathBuf {
    folder.join("states").join(format!("{target}.json"))
}

struct JobSession<'a> {
    manager: &'a Manager,
    journal: JobJournal,
    running: Vec<(usize, RunningJob)>,
    rows: Vec<JobRow>,
    report: &'a mut dyn FnMut(JobEvent<'_>),
    /// Kept for its lock.
    _lock: Locked,
}

/// Runs all jobs that are not finished; the rows of all of them, in the order of the list. `report` gets what
/// happens on the way.
///
/// A failed job has a row with its cause, and does not end the others. An end requested by a signal ends the
/// processes in good order, and leaves their jobs unfinished.
pub fn run(
    manager: &Manager,
    jobs: &[Job],
    report: &mut dyn FnMut(JobEvent<'_>),
) -> Result<Vec<JobRow>, JobsError> {
    let folder = &manager.folder;
    for path in [folder.clone(), folder.join("states")] {
        create_folder(&path)?;
    }
    let lock = lock(folder)?;
    let stop = Stop::on_signals().map_err(JobsError::Signals)?;
    let journal = JobJournal::open(&journal_path(folder))?;
    let rows: Vec<JobRow> = jobs.iter().map(|job| journal.known.row(job)).collect();
    let mut waiting: VecDeque<usize> =
        (0..jobs.len()).filter(|index| rows[*index].status != JobStatus::Done).collect();
    report(JobEvent::Begins { jobs: jobs.len(), finished: jobs.len() - waiting.len() });
    let mut session =
        JobSession { manager, journal, running: Vec::new(), rows, report, _lock: lock };
    while !(stop.asked() || waiting.is_empty() && session.running.is_empty()) {
        session.start_next(jobs, &mut waiting)?;
        session.look(jobs)?;
    }
    Ok(std::mem::take(&mut session.rows))
}

impl JobSession<'_> {
    /// Starts jobs as long as there is room. Rounds of one place come one after the other.
    fn start_next(&mut self, jobs: &[Job], waiting: &mut VecDeque<usize>) -> Result<(), JobsError> {
        while self.running.len() < self.manager.at_once {
            let place = |index: usize| jobs[index].place();
            let is_free = |index: &usize| {
                self.running.iter().all(|(running, _)| place(*running) != place(*index))
            };
            let Some(at) = waiting.iter().position(is_free) else { return Ok(()) };
            let Some(index) = waiting.remove(at) else { return Ok(()) };
            let job = &jobs[index];
            let known = self.journal.known.base(job).cloned();
            let continues = known.is_some();
            let base = match known {
                Some(base) => base,
                None => {
                    let base = results::totals(&self.folder_of(job));
                    self.journal.starts(job, &base)?;
                    base
                }
            };
            let core = self.free_core();
            (self.report)(JobEvent::Starts { job });
            match RunningJob::start(self.manager, job, core, base, continues) {
                Ok(running) => self.running.push((index, running)),
                Err(error) => {
                    self.ended(index, job, JobRow::failed(job, &error, error.remedy()))?
                }
            }
        }
        Ok(())
    }

    /// One that no running job has; None: the system chooses.
    fn free_core(&self) -> Option<usize> {
        let taken = |core: &&usize| self.running.iter().any(|(_, it)| it.core == Some(**core));
        let free = self.manager.cores.iter().find(|core| !taken(core));
        free.copied().filter(|_| self.manager.at_once > 1)
    }

    fn folder_of(&self, job: &Job) -> PathBuf {
        process::folder(self.manager, job)
    }

    /// Waits a moment, and takes in the jobs that have ended.
    fn look(&mut self, jobs: &[Job]) -> Result<(), JobsError> {
        if let Some((_, first)) = self.running.first_mut() {
            first.wait(LOOK);
        }
        let mut at = 0;
        while at < self.running.len() {
            let (index, running) = &mut self.running[at];
            let (index, Some(ended)) = (*index, running.ended()) else {
                at += 1;
                continue;
            };
            let (_, running) = self.running.remove(at);
            let job = &jobs[index];
            let row = self.row_of(index, job, &running, ended)?;
            self.ended(index, job, row)?;
        }
        Ok(())
    }

    fn row_of(
        &self,
        index: usize,
        job: &Job,
        running: &RunningJob,
        ended: JobEnd,
    ) -> Result<JobRow, JobsError> {
        let folder = self.folder_of(job);
        let mut row = JobRow::of(job, &running.base, &results::totals(&folder));
        if let JobEnd::Badly { cause, remedy } = ended {
            row = JobRow { status: JobStatus::Failed, cause, remedy, ..row };
        }
        // A failed one may have found something before.
        let state = folder.join(process::COVERAGE);
        if job.covers && state.exists() {
            match coverage::read(&state) {
                Ok(own) => {
                    row.edges = own.counts()[0] as u64;
                    // It failed before, and what it had found then was taken in.
                    let failed =
                        Some(&self.rows[index]).filter(|row| row.status == JobStatus::Failed);
                    row.new_edges = failed.map_or(0, |row| row.new_edges) + self.carry(job, own)?;
                }
                Err(error) if row.status != JobStatus::Failed => {
                    row = JobRow {
                        status: JobStatus::Failed,
                        cause: error.to_string(),
                        remedy: format!("remove {}", state.display()),
                        ..row
                    };
                }
                Err(_) => {}
            }
        }
        Ok(row)
    }

    /// What a job knows is known to the later ones of its target. The number of edges that no job before it has
    /// ended with: jobs side by side may find the same ones.
    fn carry(&self, job: &Job, mut own: Known) -> Result<u64, JobsError> {
        let path = coverage_of(&self.manager.folder, &job.target);
        let mut new = own.counts()[0];
        // That of an earlier build of the target has no value any more.
        if let Ok(known) = coverage::read(&path)
            && let Ok(beyond) = own.beyond(&known)
        {
            new = beyond.edges.len();
            let _ = own.join(&known);
        }
        coverage::write(&path, &own)?;
        Ok(new as u64)
    }

    fn ended(&mut self, index: usize, job: &Job, row: JobRow) -> Result<(), JobsError> {
        self.journal.ends(job, &row)?;
        (self.report)(JobEvent::Ends { row: &row });
        self.rows[index] = row;
        Ok(())
    }

    /// All are asked to end, then it waits for all; what is left is killed.
    fn end_all(&mut self) {
        self.running.iter_mut().for_each(|(_, running)| running.ask());
        for (_, running) in &mut self.running {
            running.wait(process::STOP_GRACE);
        }
        self.running.clear();
    }
}

impl Drop for JobSession<'_> {
    /// Also after an error: the jobs store what they have.
    fn drop(&mut self) {
        self.end_all();
    }
}

fn create_folder(path: &Path) -> Result<(), JobsError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|source| JobsError::Write { path: path.to_owned(), source })
}

fn lock(folder: &Path) -> Result<Locked, JobsError> {
    let opened = File::open(folder).and_then(|file| Locked::new(file, false));
    opened.map_err(|source| match sys_file::is_taken(&source) {
        true => JobsError::Busy { folder: folder.to_owned() },
        false => JobsError::Write { path: folder.to_owned(), source },
    })
}

/// Sums of the rows by target, with what is known of it together.
#[must_use]
pub fn edges_by_target(folder: &Path, rows: &[JobRow]) -> BTreeMap<String, u64> {
    let targets = rows.iter().map(|row| row.target.clone());
    let known = |target: String| {
        let known = coverage::read(&coverage_of(folder, &target)).ok()?;
        Some((target, known.counts()[0] as u64))
    };
    targets.collect::<BTreeSet<_>>().into_iter().filter_map(known).collect()
}

/// Removes what is there under a name that is to be created.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
