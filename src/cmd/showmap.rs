//! `ffuzz showmap`: runs inputs and prints the edges they reach, as `afl-showmap` does.
//!
//! Hit-count classes follow AFL's technical details. Debian's afl-showmap 4.04c omits edges whose count is not the
//! first of its class; here all are shown.

mod args;
mod blockers;
mod blocks;
mod comparisons;
mod lines;
mod messages;
mod stream;
mod tokens;
pub(super) mod view;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) use args::Args;
use view::{MapView, ShownMaps};

use super::coverage::CoverageStates;
use super::exit::{CANNOT, Failure};
use super::tool::{self, Scratch, ToolTarget, print, print_messages, report, say};
use crate::config::env::{self, Environment};
use crate::disk::inputs;
use crate::engine::coverage;
use crate::engine::domain::Aggregates;
use crate::engine::executor::{ExitKind, Observation};
use crate::exec::Hooked;

/// Minimum timeout, as in AFL.
const MIN_TIMEOUT_MS: u64 = 10;
/// Exit code: the run timed out or crashed.
const TIMED_OUT: u8 = 1;
const CRASHED: u8 = 2;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut args = match tool::parse::<Args>(program, words) {
        Ok(args) => args,
        Err(code) => return Ok(code),
    };
    args.check()?;
    let environment = tool::environment(args.quiet);
    // As in AFL++, `AFL_QUIET` keeps the summary.
    args.only_summary = !args.quiet && environment.flag(&["AFL_QUIET"]);
    args.quiet |= args.only_summary;
    let code = match () {
        () if args.streams => stream::run(&args, &environment),
        () if args.tokens => tokens::run(&args, &environment),
        () if args.comparisons => comparisons::run(&mut args, &environment),
        () if args.blocks => blocks::run(&args, &environment),
        () if args.messages => messages::run(&mut args, &environment),
        () if args.shows_source() => lines::run(&args, &environment),
        () if args.blockers => blockers::run(&args, &environment),
        () if args.runs_files() => run_all(&args, &environment),
        () => run_once(&mut args, &environment),
    };
    code.map(ExitCode::from).map_err(tool::cannot)
}

fn start(args: &Args, environment: &Environment, scratch: &Scratch) -> Result<Hooked, Failure> {
    tool::exit_on_signals(&[scratch], None);
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, tool::NO_TIMEOUT)?;
    let mut wanted = ToolTarget::new(&args.target, scratch, timeout);
    wanted.native = Some(&args.native);
    wanted.domains = args.dsf || args.json;
    wanted.file = args.file.as_deref();
    if let (Some(file), true) = (&args.at_file, args.runs_files()) {
        wanted.scratch = file;
    }
    let once = !args.runs_files() && !args.streams && !args.tokens;
    wanted.show_output = once && !args.quiet;
    wanted.start_aloud(environment, args.quiet || once)
}

/// Reads stdin or the file of `-H`. The target reads that file itself if its arguments name it.
fn input(args: &mut Args) -> Result<Vec<u8>, Failure> {
    let Some(file) = &args.at_file else { return tool::stdin("-H") };
    let path = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    if env::substitute(&mut args.target.command[1..], &path) {
        return Ok(Vec::new());
    }
    fs::read(file).map_err(|error| {
        let cause = format!("cannot read the input {}: {error}", file.display());
        Failure::new(cause, "give -H a file that exists")
    })
}

fn run_once(args: &mut Args, environment: &Environment) -> Result<u8, Failure> {
    let input = input(args)?;
    let quiet = args.quiet;
    say(quiet, &format!("[*] Executing '{}'...", args.target.command[0].display()));
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    let mut states = CoverageStates::open(&args.coverage, &target, &args.target, environment)?;
    let view = MapView::of(args);
    say(quiet, "-- Program output begins --");
    let rejected_before = target.info().rejected_runs();
    let run = target.observe(&input).map_err(tool::failure)?;
    say(quiet, "-- Program output ends --");
    match run.exit {
        ExitKind::Ok => {}
        ExitKind::Hang | ExitKind::Cut => say(quiet, "\n+++ Program timed off +++"),
        ExitKind::Crash { signal: 0 } => say(quiet, "\n+++ Program crashed by its exit code +++"),
        ExitKind::Crash { signal } => {
            say(quiet, &format!("\n+++ Program killed by signal {signal} +++"));
        }
        ExitKind::Oom => say(quiet, "\n+++ Program killed by signal 9 +++"),
        ExitKind::Lost => say(quiet, "\n+++ Program took its fork server along +++"),
    }
    let exit = run.exit;
    states.add(&run);
    let text =
        if is_wanted(view, exit, environment) { rendered(view, &run, &states) } else { Vec::new() };
    let hash = coverage::path_hash(run.edges);
    let beyond = states.beyond(&run);
    let edges = beyond.as_deref().unwrap_or(run.edges);
    let summary = view.summary(edges, &args.output().to_string_lossy());
    print_messages(&mut target, quiet);
    if exit == ExitKind::Ok && target.info().rejected_runs() != rejected_before {
        say(quiet, "[!] The harness rejects this input (it returns -1): it shows nothing");
    }
    drop(target);
    print(&text, to_file(args.output()))?;
    states.save()?;
    say(quiet, &format!("[+] Hash of coverage map: {hash:016x}"));
    say(quiet && !args.only_summary, &summary);
    Ok(match exit {
        ExitKind::Ok => 0,
        ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => TIMED_OUT,
        ExitKind::Crash { .. } | ExitKind::Oom => CRASHED,
    })
}

fn to_file(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| *path != Path::new("-"))
}

fn rendered(view: MapView, run: &Observation<'_>, states: &CoverageStates) -> Vec<u8> {
    let mut aggregates = Aggregates::default();
    if view.domains {
        aggregates = Aggregates::new(run.dsf.domains);
        aggregates.merge(&run.dsf);
    }
    let keys = states.better(aggregates.changed());
    let beyond = states.beyond(run);
    let edges = beyond.as_deref().unwrap_or(run.edges);
    view.render(&ShownMaps { exit: Some(run.exit), edges, keys: &keys })
}

/// Returns true if the edges of a run with this exit kind are written (`-Z`).
fn is_wanted(view: MapView, exit: ExitKind, environment: &Environment) -> bool {
    if !view.is_for_cmin() {
        return true;
    }
    let only_crashes = environment.flag(&["AFL_CMIN_CRASHES_ONLY"]);
    match exit {
        ExitKind::Ok => !only_crashes,
        ExitKind::Crash { .. } | ExitKind::Oom if only_crashes => true,
        _ => environment.flag(&["AFL_CMIN_ALLOW_ANY"]),
    }
}

/// Totals over the runs of a folder.
#[derive(Default)]
struct Total {
    edges: Vec<u8>,
    aggregates: Aggregates,
    runs: usize,
    crashed: bool,
    timed_out: bool,
}

impl Total {
    fn add(&mut self, run: &Observation<'_>, states: &mut CoverageStates) {
        states.add(run);
        let beyond = states.beyond(run);
        let edges = beyond.as_deref().unwrap_or(run.edges);
        // A restarted target may have a larger map.
        self.edges.resize(self.edges.len().max(run.edges.len()), 0);
        for (all, count) in self.edges.iter_mut().zip(edges) {
            *all |= u8::from(*count != 0);
        }
        self.aggregates.merge(&run.dsf);
        self.runs += 1;
        self.timed_out |= run.exit == ExitKind::Hang;
        self.crashed |= matches!(run.exit, ExitKind::Crash { .. } | ExitKind::Oom);
    }
}

/// The files of `-i` or `-I`.
fn inputs_of(args: &Args) -> Result<Vec<PathBuf>, Failure> {
    let (from, inputs) = match (&args.input, &args.list) {
        (Some(folder), _) => (folder, inputs::list_below(folder)?),
        (None, Some(list)) => (list, inputs::listed(list)?),
        (None, None) => unreachable!("there are files"),
    };
    if inputs.is_empty() {
        let remedy = "give a folder with at least one file, for example out/queue";
        return Err(Failure::new(format!("no inputs in {from:?}"), remedy));
    }
    let kind = if args.input.is_some() { "directory" } else { "list" };
    say(args.quiet, &format!("[*] Reading from {kind} '{}'...", from.display()));
    Ok(inputs)
}

fn run_all(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let into = (!args.collect).then_some(args.output());
    if let Some(into) = into {
        fs::create_dir_all(into).map_err(|error| {
            let remedy = "with -i and -I, -o names a folder; -C writes one file";
            Failure::new(format!("cannot create the folder {into:?}: {error}"), remedy)
        })?;
    }
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    say(args.quiet, &format!("[*] Target map size: {}", target.info().map_size()));
    let mut states = CoverageStates::open(&args.coverage, &target, &args.target, environment)?;
    let total = run_files(args, &mut target, &inputs, &mut states, environment)?;
    drop(target);
    let view = MapView::of(args);
    if args.collect {
        let keys = states.better(total.aggregates.changed());
        let shown = ShownMaps { exit: None, edges: &total.edges, keys: &keys };
        print(&view.render(&shown), to_file(args.output()))?;
    }
    states.save()?;
    say_total(args, &total, view);
    let quiet_crash = view.is_for_cmin() && environment.flag(&["AFL_CMIN_CRASHES_ONLY"]);
    Ok(match (total.crashed && !quiet_crash, total.timed_out) {
        (true, _) => CRASHED,
        (false, true) => CANNOT,
        (false, false) => 0,
    })
}

fn run_files(
    args: &Args,
    target: &mut Hooked,
    inputs: &[PathBuf],
    states: &mut CoverageStates,
    environment: &Environment,
) -> Result<Total, Failure> {
    let view = MapView::of(args);
    let mut total = Total {
        edges: vec![0; target.info().map_size()],
        aggregates: Aggregates::new(target.info().domains()),
        ..Total::default()
    };
    let names = inputs::flat_names(args.input.as_slice(), inputs);
    let mut input = Vec::new();
    for (path, name) in inputs.iter().zip(names) {
        inputs::read(path, &mut input)?;
        if environment.flag(&["AFL_PRINT_FILENAMES"]) {
            print(format!("Processing {}\n", path.display()).as_bytes(), None)?;
        }
        let run = target.observe(&input).map_err(tool::failure)?;
        report(run.exit, Some(path), args.quiet);
        total.add(&run, states);
        if !args.collect {
            let wanted = is_wanted(view, run.exit, environment);
            let text = if wanted { rendered(view, &run, states) } else { Vec::new() };
            let path = args.output().join(name);
            fs::write(&path, &text).map_err(|error| tool::cannot_write(&path, &error))?;
        }
    }
    print_messages(target, args.quiet);
    Ok(total)
}

fn say_total(args: &Args, total: &Total, view: MapView) {
    let summary = view.summary(&total.edges, &args.output().to_string_lossy());
    if !args.collect {
        say(args.quiet, &format!("[+] Processed {} input files.", total.runs));
        return say(args.quiet && !args.only_summary, &summary);
    }
    let (hit, all) = (coverage::count(&total.edges), total.edges.len());
    let share = hit as f64 * 100.0 / all.max(1) as f64;
    say(args.quiet && !args.only_summary, &summary);
    let inputs = total.runs;
    let text = format!(
        "[+] A coverage of {hit} edges were achieved out of {all} existing ({share:.2}%) with \
         {inputs} input files."
    );
    say(args.quiet, &text);
}
