//! `ffuzz showdsf`: runs inputs and prints the domain values they reach, in the format of FuzzFactory's `afl-showdsf`.
//!
//! The lines `dsf[K] = V` go to stdout (or `-o FILE`), messages about the target to stderr. Unlike the original it
//! reports crashes and timeouts, supports `@@`, and leaves no processes or files behind.

mod args;
mod view;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) use args::Args;

use super::coverage::CoverageStates;
use super::exit::Failure;
use super::tool::{self, Scratch, ToolTarget, print, print_messages, report, say};
use crate::config::env::{self, Environment};
use crate::disk::inputs;
use crate::engine::domain::{self, Aggregates, KeyNames, Site};
use crate::engine::executor::Observation;
use crate::exec::{FreshOptions, Hooked};
use crate::report::owners::Owners;
use crate::sys::stdio;

/// Minimum timeout, as in the original.
const MIN_TIMEOUT_MS: u64 = 20;

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut args = match tool::parse::<Args>(program, args) {
        Ok(args) => args,
        Err(code) => return Ok(code),
    };
    args.check()?;
    let folders = [args.input.as_slice(), args.diff.as_deref().unwrap_or_default()].concat();
    let folders = folders.iter().map(|dir| inputs::list(dir)).collect::<Result<Vec<_>, _>>()?;
    if let (false, Some(file)) = (args.runs_folders(), &args.at_file) {
        // The user's file is only read, so its path is an ordinary argument.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        env::substitute(&mut args.target.command[1..], &file);
    }
    let scratch = Scratch::new("showdsf", None);
    tool::exit_on_signals(&[&scratch], None);
    let environment = tool::environment(args.quiet);
    let mut target = start(&args, &environment, &scratch).map_err(tool::cannot)?;
    let given = given(&args, target.mutators.touch_runs())?;
    let names =
        names(&target, &args, answers(&args, &environment, &scratch, &given, &folders.concat())?);
    let mut states = CoverageStates::open(&args.coverage, &target, &args.target, &environment)?;
    let mut owners = Owners::default();
    let rows = match &folders[..] {
        [] => {
            let aggregates = run_once(&mut target, &args, &given, &mut states)?;
            view::rows(&aggregates, &states, args.top, &owners)
        }
        [a, b] => {
            let a = run_folder(&mut target, a, args.quiet, |_, _, _| {})?;
            let b = run_folder(&mut target, b, args.quiet, |_, _, _| {})?;
            view::differences(&a, &b)
        }
        [inputs, ..] => {
            let note = |path: &Path, input: &[u8], run: &Observation<'_>| {
                states.add(run);
                if args.best {
                    owners.add(path.into(), input.len(), &run.dsf);
                }
            };
            let aggregates = run_folder(&mut target, inputs, args.quiet, note)?;
            view::rows(&aggregates, &states, args.top, &owners)
        }
    };
    states.save()?;
    let text = if args.json {
        view::json(&args.target.command, target.info().domains(), &rows, &names, args.best)
    } else {
        view::lines(&rows, args.names.then_some(&names), args.best)
    };
    drop(target);
    print(text.as_bytes(), args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the output shows the answers of a target with a socket.
fn shows_answers(args: &Args) -> bool {
    args.target.net.is_some() && (args.names || args.json)
}

/// The input of a single run, unless the target reads it itself.
fn given(args: &Args, is_touched: bool) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    let is_read = args.target.names_file() || is_touched || shows_answers(args);
    if !args.runs_folders() && is_read {
        let read = stdio::input().and_then(|mut stdin| stdin.read_to_end(&mut input));
        read.map_err(|error| {
            Failure::new(format!("cannot read the input: {error}"), "give it by stdin or -A FILE")
        })?;
    }
    Ok(input)
}

/// Names the keys of the answer domain, which takes another run of each input in a fresh process.
fn answers(
    args: &Args,
    environment: &Environment,
    scratch: &Scratch,
    given: &[u8],
    files: &[PathBuf],
) -> Result<Vec<Site>, Failure> {
    let mut sites = BTreeSet::new();
    if !shows_answers(args) {
        return Ok(Vec::new());
    }
    let wanted = wanted(args, scratch)?;
    let (_, mut target) = wanted.start_fresh(environment)?;
    let mut add = |input: &[u8]| {
        let ended =
            target.run(input, FreshOptions::within(wanted.timeout)).map_err(tool::failure)?;
        let session = ended.session.unwrap_or_default();
        sites.extend(
            session.answer_pairs().map(|(key, pair)| Site::of_key("answers", key.into(), pair)),
        );
        Ok::<_, Failure>(())
    };
    if !args.runs_folders() {
        add(given)?;
    }
    let mut input = Vec::new();
    for path in files {
        inputs::read(path, &mut input)?;
        add(&input)?;
    }
    Ok(sites.into_iter().collect())
}

/// Reads the names from the target's files if the output shows them.
fn names(target: &Hooked, args: &Args, answers: Vec<Site>) -> KeyNames {
    if !args.names && !args.json {
        return KeyNames::default();
    }
    let sites = [target.info().sites(), answers].concat();
    let names = KeyNames::new(target.info().domains(), sites);
    if names.is_empty() && !target.info().domains().is_empty() {
        say(args.quiet, "[!] The target has no table of names: keys are shown as numbers");
    }
    names
}

/// The target with its domains.
fn wanted<'a>(args: &'a Args, scratch: &'a Scratch) -> Result<ToolTarget<'a>, Failure> {
    let timeout = args.target.timeout(MIN_TIMEOUT_MS, tool::NO_TIMEOUT)?;
    let mut wanted = ToolTarget::new(&args.target, scratch, timeout);
    wanted.domains = true;
    wanted.answers = args.answers.as_deref();
    Ok(wanted)
}

fn start(args: &Args, environment: &Environment, scratch: &Scratch) -> Result<Hooked, Failure> {
    let mut wanted = wanted(args, scratch)?;
    wanted.native = Some(&args.native);
    if let (Some(file), true) = (&args.at_file, args.runs_folders()) {
        wanted.scratch = file;
    }
    wanted.show_output = !args.runs_folders();
    wanted.inherit_stdin = !args.runs_folders() && !shows_answers(args);
    let target = wanted.start_aloud(environment, args.quiet)?;
    if !args.quiet {
        let _ = io::stderr().lock().write_all(domain::describe(target.info().domains()).as_bytes());
    }
    Ok(target)
}

/// Runs the target once with our stdin; with `@@` its content becomes the file.
fn run_once(
    target: &mut Hooked,
    args: &Args,
    input: &[u8],
    states: &mut CoverageStates,
) -> Result<Aggregates, Failure> {
    let mut aggregates = Aggregates::new(target.info().domains());
    let run = target.observe(input).map_err(tool::failure)?;
    report(run.exit, None, args.quiet);
    states.add(&run);
    aggregates.merge(&run.dsf);
    print_messages(target, args.quiet);
    Ok(aggregates)
}

fn run_folder(
    target: &mut Hooked,
    inputs: &[PathBuf],
    quiet: bool,
    mut note: impl FnMut(&Path, &[u8], &Observation<'_>),
) -> Result<Aggregates, Failure> {
    let mut aggregates = Aggregates::new(target.info().domains());
    let mut input = Vec::new();
    for path in inputs {
        inputs::read(path, &mut input)?;
        let run = target.observe(&input).map_err(tool::failure)?;
        report(run.exit, Some(path), quiet);
        note(path, &input, &run);
        aggregates.merge(&run.dsf);
    }
    print_messages(target, quiet);
    Ok(aggregates)
}
