//! `ffuzz triage`: groups crash files into bugs, each with its stack, its report and a small input.

mod args;
mod prepare;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(super) use args::Args;

use super::exit::Failure;
use super::tool::{self, Scratch, say};
use crate::config::env::Environment;
use crate::crashes::crash::Output;
use crate::crashes::forms;
use crate::crashes::triage::{self, FOLDER, FollowCallbacks, TriageError};

/// Time limit to deliver pending reports; the next triage delivers the rest.
const DELIVERY: Duration = Duration::from_secs(60);

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(ExitCode::SUCCESS) };
    let environment = Environment::read();
    if args.follow {
        return follow(&args, &environment);
    }
    triage(&args, &environment)
}

impl From<TriageError> for Failure {
    fn from(error: TriageError) -> Self {
        Self::of(&error)
    }
}

/// Runs a command line once with this standard input; on a crash, returns the report in a form for users and servers.
pub(super) fn once(
    program: &str,
    command: Vec<OsString>,
    stdin: &[u8],
) -> Result<Option<Output>, Failure> {
    let environment = Environment::read();
    let words = std::iter::once("--".into()).chain(command).collect();
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(None) };
    let plan = prepare::plan(&args, &environment, &[], PathBuf::new())?;
    let Some((output, messages)) = plan.once(stdin)? else { return Ok(None) };
    for message in messages {
        say(false, &format!("{program}: warning: {message}"));
    }
    Ok(Some(output))
}

fn triage(args: &Args, environment: &Environment) -> Result<ExitCode, Failure> {
    let quiet = environment.flag(&["AFL_QUIET"]);
    let mut records = args.records()?;
    let error_code = args.error_exitcode()?;
    let (sources, root) = args.places()?;
    let folders = triage::folders(&sources, args.report_hangs)?;
    let (args, environment) = &prepare::with_recorded(args, environment, &folders);
    let plan = prepare::plan(args, environment, &folders, root)?;
    let files = triage::files(&folders)?;
    let folder = &plan.options.folder;
    let _lock = triage::lock(folder)?.ok_or_else(|| TriageError::Busy(folder.clone()))?;
    let work = plan.work(environment, warn)?;
    let new = work.add(files.iter().cloned());
    let jobs = plan.jobs(args.jobs()?, new)?;
    let scratch: Vec<Scratch> = (0..jobs).map(|_| plan.scratch()).collect();
    let words = "\n[!] Interrupted: run the same command to continue".to_owned();
    tool::exit_on_signals(&scratch.iter().collect::<Vec<_>>(), Some(words));
    let known = files.len() - new;
    let goes_on = if known > 0 { format!(", {known} of them known") } else { String::new() };
    let (count, targets) = (files.len(), if jobs == 1 { "target" } else { "targets" });
    say(quiet, &format!("[*] {count} crash files{goes_on}; {jobs} {targets} at a time"));
    let progress = view::ProgressLine::new(work.progress(), quiet);
    triage::run_all(&work, &plan, &scratch, |is_done| progress.show(&work, is_done))?;
    let report = work.save()?;
    work.deliver_records(&mut records)?;
    if let Some(status) = work.finish_delivery(DELIVERY) {
        say(quiet, &view::delivery(&status));
    }
    if let Some(path) = &args.sarif {
        let root = args.source_root.clone().unwrap_or_else(forms::source_root);
        let findings = forms::of_report(&report, &plan.options.root);
        tool::replace(path, forms::sarif(&findings, &root).as_bytes())?;
    }
    let printed = super::print(&view::table(&report, &plan.options.folder))?;
    Ok(error_code.filter(|_| !report.bugs.is_empty()).map_or(printed, ExitCode::from))
}

/// Runs `--follow`.
fn follow(args: &Args, environment: &Environment) -> Result<ExitCode, Failure> {
    let (sources, root) = args.places()?;
    let mut records = args.records()?;
    let Some(_lock) = triage::wait_for_lock(&root.join(FOLDER))? else {
        return Ok(ExitCode::SUCCESS);
    };
    let folders = triage::folders(&sources, args.report_hangs)?;
    let plan = prepare::plan(args, environment, &folders, root)?;
    let work = plan.work(environment, warn)?;
    let scratch = plan.scratch();
    tool::exit_on_signals(&[&scratch], None);
    let callbacks =
        FollowCallbacks { print: |line| say(false, line), exit: || std::process::exit(0) };
    triage::follow(&plan, &work, &sources, &mut records, &scratch, callbacks)?;
    Ok(ExitCode::SUCCESS)
}

fn warn(warning: &str) {
    say(false, &format!("[!] {warning}"));
}
