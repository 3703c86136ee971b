//! `ffuzz jobs`: runs the campaigns of a list and shows their results.

mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use super::exit::{CANNOT, Failure};
use super::tool::say;
use crate::config::env::Environment;
use crate::fleet::jobs::{self, JobEvent, JobFile, JobRow, JobStatus, JobsError, Manager};
use crate::sys::{affinity, file};

/// Maximum size of a list; enough for a hundred thousand seeds.
const LARGEST: u64 = 64 << 20;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-jobs",
    about = "Run a list of campaigns and show their results in one table",
    after_help = "The list defines targets, mutator chains and jobs; each [[job]] table stands for every \
                  combination of its targets, mutators and seeds:\n\n  \
                  output = \"results\"\n  \
                  [[target]]\n  \
                  name = \"png\"\n  \
                  command = [\"./png\", \"@@\"]\n  \
                  [[mutators]]\n  \
                  name = \"bits\"\n  \
                  chain = [{ module = \"./libbit_flip_mutator.so\" }]\n  \
                  [[job]]\n  \
                  seeds = [\"seeds/a.png\", \"seeds/b.png\"]\n  \
                  execs = 100000\n\n\
                  Each job has its own folder below output/jobs. With carry_coverage = true a job starts \
                  with the coverage of the earlier jobs of its target. A repeated combination (rounds = 2) \
                  resumes its campaign with the state of its mutators.\nAfter an interruption, run the \
                  same command again: finished jobs are not repeated.\nExit code: 1 if a job \
                  failed.\n\nExamples:\n  \
                  ffuzz-jobs list.toml\n  ffuzz-jobs --table list.toml\n  \
                  ffuzz-jobs --json list.toml | jq .jobs[].bugs"
)]
pub(super) struct Args {
    /// The list; see docs/jobs.md
    #[arg(value_name = "FILE.toml")]
    list: PathBuf,
    /// Show the current table without running anything
    #[arg(long)]
    table: bool,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    let remedy = "name the list of jobs; ffuzz-jobs --help has an example";
    let text =
        file::read_text(&args.list, LARGEST).map_err(Failure::cannot_read(&args.list, remedy))?;
    let list = JobFile::parse(&args.list, &text, &super::fuzz::refused_in_jobs())
        .map_err(|mistake| Failure::new(&mistake, &mistake.remedy))?;
    let rows = match args.table {
        true => jobs::rows(&list.output, &list.jobs)?,
        false => jobs::run(&manager(&list, &Environment::read()), &list.jobs, &mut |event| {
            print_event(program, &event)
        })?,
    };
    let edges = jobs::edges_by_target(&list.output, &rows);
    super::print(&if args.json { view::json(&rows, &edges) } else { view::table(&rows, &edges) })?;
    if args.table { Ok(ExitCode::SUCCESS) } else { verdict(&rows) }
}

fn manager(list: &JobFile, environment: &Environment) -> Manager {
    let allowed = affinity::allowed();
    let at_once = list.at_once.unwrap_or(allowed.len()).max(1);
    // Two jobs on one core would slow each other down.
    let bound = at_once <= allowed.len() && !environment.flag(&["AFL_NO_AFFINITY"]);
    let cores = if bound { affinity::free_cores() } else { Vec::new() };
    let cores = if cores.len() >= at_once { cores } else { Vec::new() };
    Manager { program: super::fuzz::this_program(), folder: list.output.clone(), cores, at_once }
}

impl From<JobsError> for Failure {
    fn from(error: JobsError) -> Self {
        Self::of(&error)
    }
}

fn print_event(program: &str, event: &JobEvent<'_>) {
    let line = match event {
        JobEvent::Begins { jobs, finished: 0 } => format!("{jobs} jobs"),
        JobEvent::Begins { jobs, finished } => format!("{jobs} jobs, {finished} already finished"),
        JobEvent::Starts { job } => format!("starts {}", job.name()),
        JobEvent::Ends { row } => view::line(row),
    };
    say(false, &format!("{program}: {line}"));
}

fn verdict(rows: &[JobRow]) -> Result<ExitCode, Failure> {
    let count = |status| rows.iter().filter(|row| row.status == status).count();
    let (waiting, failed, all) = (count(JobStatus::Waiting), count(JobStatus::Failed), rows.len());
    if waiting > 0 {
        let cause = format!("interrupted: {waiting} of {all} jobs are not finished");
        return Err(Failure::new(cause, "run the same command again to continue"));
    }
    Ok(if failed > 0 { ExitCode::from(CANNOT) } else { ExitCode::SUCCESS })
}
