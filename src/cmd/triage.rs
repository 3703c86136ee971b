//! `ffuzz triage`: crash files become bugs, each with its stack, its report and a small input.

mod args;
mod follow;
mod prepare;
mod view;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use args::Args;
use prepare::Plan;

use super::exit::Failure;
use super::tool::{self, Scratch, say};
use crate::config::env::Environment;
use crate::crashes::crash::Output;
use crate::crashes::triage::{self, TriageError, Work};
use crate::disk::find;
use crate::sys::affinity;
use crate::sys::file::{self, Locked};

/// For bugs that wait to be delivered; what is left is delivered by the next triage.
const DELIVERY: Duration = Duration::from_secs(60);
/// Held as long as a triage is at work in a folder.
const LOCK: &str = ".lock";

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(ExitCode::SUCCESS) };
    let environment = Environment::read();
    if args.follow {
        return follow::run(&args, &environment);
    }
    triage(&args, &environment)
}

impl From<TriageError> for Failure {
    fn from(error: TriageError) -> Self {
        Self::new(&error, error.remedy())
    }
}

/// A command line as it is, run once with this standard input: what it says if it crashes, in words that
/// people and servers can read.
pub(super) fn once(
    program: &str,
    command: Vec<OsString>,
    stdin: &[u8],
) -> Result<Option<Output>, Failure> {
    let environment = Environment::read();
    let words = std::iter::once("--".into()).chain(command).collect();
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(None) };
    let plan = Plan::new(&args, &environment, &[], PathBuf::new())?;
    let scratch = plan.scratch();
    let mut rerun = plan.rerun(&environment, &scratch)?;
    let examined = rerun.examine(stdin, 1).map_err(tool::failure)?;
    let Some(seen) = examined.seen else { return Ok(None) };
    let seen = rerun.readable(stdin, &seen).map_err(tool::failure)?;
    for message in rerun.take_messages() {
        say(false, &format!("{program}: warning: {message}"));
    }
    Ok(Some(seen.output))
}

fn triage(args: &Args, environment: &Environment) -> Result<ExitCode, Failure> {
    let quiet = environment.flag(&["AFL_QUIET"]);
    let mut records = args.records()?;
    let error_code = args.error_exitcode()?;
    let (sources, root) = args.places()?;
    let folders = folders(&sources, args.report_hangs)?;
    let plan = Plan::new(args, environment, &folders, root)?;
    let files = files(&folders)?;
    let _lock = lock(&plan.orders.folder)?.ok_or_else(|| busy(&plan.orders.folder))?;
    let work = plan.work().deliver_by(plan.courier(args, environment)?);
    let new = work.add(files.iter().cloned());
    let jobs = jobs(args, environment, &plan, new)?;
    let scratch: Vec<Scratch> = (0..jobs).map(|_| plan.scratch()).collect();
    let words = "\n[!] Interrupted: run the same command to continue".to_owned();
    tool::leave_on_signals(&scratch.iter().collect::<Vec<_>>(), Some(words));
    let known = files.len() - new;
    let goes_on = if known > 0 { format!(", {known} of them known") } else { String::new() };
    let (count, targets) = (files.len(), if jobs == 1 { "target" } else { "targets" });
    say(quiet, &format!("[*] {count} crash files{goes_on}; {jobs} {targets} at a time"));
    run_all(&work, &plan, environment, &scratch, quiet)?;
    let report = work.save()?;
    work.deliver_records(&mut records)?;
    if let Some(status) = work.finish_delivery(DELIVERY) {
        say(quiet, &view::delivery(&status));
    }
    if let Some(path) = &args.sarif {
        let root = args.source_root.clone().unwrap_or_else(triage::source_root);
        tool::replace(path, triage::sarif(&report, &plan.orders.root, &root).as_bytes())?;
    }
    let printed = super::print(&view::table(&report, &plan.orders.folder))?;
    Ok(error_code.filter(|_| !report.bugs.is_empty()).map_or(printed, ExitCode::from))
}

/// All with crashes, and with hangs if they are wanted, that belong to the given folders.
fn folders(sources: &[PathBuf], hangs: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    for source in sources {
        let failure = |error| unreadable(source, &error);
        folders.extend(find::folders(source).map_err(failure)?);
        if hangs {
            folders.extend(find::hangs(source).map_err(failure)?);
        }
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

fn files(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for folder in folders {
        files.extend(find::files(folder).map_err(|error| unreadable(folder, &error))?);
    }
    Ok(files)
}

fn unreadable(folder: &Path, error: &std::io::Error) -> Failure {
    let cause = format!("cannot read the folder {}: {error}", folder.display());
    Failure::new(
        cause,
        "name the folder that was given to the fuzzer's -o, or one with crash files",
    )
}

/// Takes the folder for this process, as long as the value lives; None if another one has it.
fn lock(folder: &Path) -> Result<Option<Locked>, Failure> {
    triage::create(folder).map_err(TriageError::from)?;
    let file = File::create(folder.join(LOCK)).map_err(|error| {
        let cause = format!("cannot write to {}: {error}", folder.display());
        Failure::new(cause, "check the permissions of the folder")
    })?;
    match Locked::new(file, false) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if file::is_taken(&error) => Ok(None),
        Err(error) => {
            let cause = format!("cannot lock {}: {error}", folder.display());
            Err(Failure::new(cause, "choose an -o on a file system that has locks"))
        }
    }
}

fn busy(folder: &Path) -> Failure {
    let cause = format!("another triage is at work in {}", folder.display());
    Failure::new(cause, "wait for its end (a campaign that runs has one), or choose another -o")
}

/// As many as there are cores and files; mutators, a file of the user's and core files are for one alone.
fn jobs(
    args: &Args,
    environment: &Environment,
    plan: &Plan,
    files: usize,
) -> Result<usize, Failure> {
    let wanted = args.jobs()?.unwrap_or_else(|| affinity::allowed().len());
    let alone =
        args.file.is_some() || plan.leaves_cores() || plan.mutators(environment)?.touch_runs();
    Ok(if alone { 1 } else { wanted.min(files) }.max(1))
}

fn run_all(
    work: &Work,
    plan: &Plan,
    environment: &Environment,
    scratch: &[Scratch],
    quiet: bool,
) -> Result<(), Failure> {
    let one = |scratch: &Scratch| {
        let done = plan
            .rerun(environment, scratch)
            .and_then(|mut rerun| work.run(&mut rerun).map_err(Failure::from));
        if done.is_err() {
            work.stop();
        }
        done
    };
    let progress = view::Progress::new(work.progress(), quiet);
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> =
            scratch.iter().map(|scratch| scope.spawn(move || one(scratch))).collect();
        progress.show(work, || threads.iter().all(std::thread::ScopedJoinHandle::is_finished));
        let ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.fold(Ok(()), Result::and)
    })
}
