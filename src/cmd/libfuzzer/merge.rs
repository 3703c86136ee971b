//! `-merge=1 CORPUS FOLDER…`: adds to the first folder the inputs of the others that increase its coverage.
//! [`crate::cmin`] does the work: each input runs once, and those of the first folder count first.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::campaign::{INTERRUPTED, report};
use super::eprint_line;
use super::files::{self, files_below};
use super::options::Order;
use crate::cmd::cmin;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, TargetArgs, ToolTarget};
use crate::cmin::{
    Accepted, CminOptions, ControlFile, InputSet, Minimization, Names, PastMerge, TraceListener,
};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::sys::affinity;

pub(super) fn run(harness: &Path, order: &Order) -> Result<ExitCode, Failure> {
    let Some((corpus, others)) = order.folders.split_first().filter(|(_, rest)| !rest.is_empty())
    else {
        eprint_line("INFO: Merge requires two or more corpus dirs");
        return Ok(ExitCode::SUCCESS);
    };
    let first = files_below(corpus).map_err(|error| cannot(&error))?;
    let mut rest = Vec::new();
    for folder in others {
        rest.extend(files_below(folder).map_err(|error| cannot(&error))?);
    }
    let inputs = InputSet::to_merge(first, rest)?;
    let environment = tool::environment(true);
    let target = target(harness, order);
    let options = options(corpus, &target, &environment);
    eprint_line(&format!("INFO: Seed: {}", std::process::id()));
    let control = match order.text("merge_control_file") {
        "" => None,
        path => Some(control(Path::new(path), &inputs, options.settings)?),
    };
    let timeout = target.timeout(1, tool::NO_TIMEOUT)?;
    let workers = affinity::allowed().len().max(1);
    let scratch: Vec<Scratch> = (0..workers).map(|_| Scratch::new("merge", None)).collect();
    let resolve = |scratch| {
        let mut wanted = ToolTarget::new(&target, scratch, timeout);
        wanted.domains = environment.get("WAYPOINTS").is_some();
        wanted.snapshots = true;
        wanted.resolve(&environment)
    };
    let targets = scratch.iter().map(resolve).collect::<Result<_, _>>()?;
    let words =
        control.as_ref().map(|_| "INFO: interrupted: the same command continues".to_owned());
    tool::exit_with_on_signals(INTERRUPTED, &scratch.iter().collect::<Vec<_>>(), words);
    let minimization = Minimization::merge(&options, &inputs, targets, &Quiet, control)?;
    let (total, known) = (inputs.paths.len(), inputs.known);
    let earlier = minimization.traced_before;
    eprint_line(&format!(
        "MERGE-OUTER: {total} files, {known} in the initial corpus, {earlier} processed earlier"
    ));
    eprint_line("MERGE-OUTER: attempt 1");
    let choice = minimization.choose(|_, trace, _| trace.clone())?;
    for (input, exit) in &choice.failing {
        report_failing(harness, order, &inputs.paths[*input], *exit)?;
    }
    for input in &choice.kept {
        let saved =
            fs::read(&inputs.paths[*input]).and_then(|content| files::save_input(corpus, &content));
        saved.map_err(|error| cannot(&error))?;
    }
    let (edges, features) = (choice.edges, choice.tuples);
    let processed = total.max(1);
    eprint_line(&format!("#{processed}\tDONE   cov: {edges} ft: {features} exec/s: 0 rss: 0Mb"));
    eprint_line("MERGE-OUTER: successful in 1 attempt(s)");
    eprint_line(&format!(
        "MERGE-OUTER: {} new files with {} new features added; {} new coverage edges",
        choice.kept.len(),
        features - choice.known_tuples,
        edges - choice.known_edges
    ));
    choice.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn options(corpus: &Path, target: &TargetArgs, environment: &Environment) -> CminOptions {
    CminOptions {
        output: corpus.to_owned(),
        accepted: Accepted::Passing,
        edges_only: false,
        keep_traces: false,
        crash_folder: None,
        names: Names::Own,
        bind: !environment.flag(&["AFL_NO_AFFINITY"]),
        settings: cmin::settings(target, None, environment),
    }
}

fn report_failing(
    harness: &Path,
    order: &Order,
    path: &Path,
    exit: ExitKind,
) -> Result<(), Failure> {
    let content = fs::read(path).map_err(|error| cannot(&error))?;
    let kind = match exit {
        ExitKind::Hang | ExitKind::Cut => "timeout",
        ExitKind::Oom => "oom",
        _ => "crash",
    };
    report(harness, order, kind, path, &content);
    Ok(())
}

fn cannot(error: &io::Error) -> Failure {
    Failure::new(format!("cannot merge: {error}"), "check the folders, and the room on the disk")
}

fn target(harness: &Path, order: &Order) -> TargetArgs {
    let command = std::iter::once(harness.as_os_str().to_owned()).chain(order.rest.iter().cloned());
    let mut target = TargetArgs::of(command.collect());
    let seconds = order.number("timeout").unsigned_abs();
    target.timeout = (seconds > 0).then(|| seconds.saturating_mul(1000).to_string());
    target
}

/// Opens the control file and reports its content.
fn control(
    path: &Path,
    inputs: &InputSet,
    settings: u64,
) -> Result<(ControlFile, PastMerge), Failure> {
    let is_there = fs::metadata(path).is_ok_and(|data| data.len() > 0);
    let opened = ControlFile::open(path, inputs, settings)?;
    if is_there {
        let name = path.display();
        eprint_line(&format!("MERGE-OUTER: non-empty control file provided: '{name}'"));
        eprint_line(match opened.1.is_discarded {
            true => "MERGE-OUTER: its inputs or its build have changed: starting from scratch",
            false => "MERGE-OUTER: control file ok",
        });
    }
    Ok(opened)
}

/// Suppresses progress: libFuzzer shows none.
struct Quiet;

impl TraceListener for Quiet {
    fn reads(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn traced(&self, _: usize) {}

    fn starts_over(&self) {
        eprint_line(
            "INFO: snapshots change the coverage of this harness: repeating all runs with fork",
        );
    }

    fn warns(&self, text: &str) {
        eprint_line(&format!("WARNING: {text}"));
    }
}
