//! `ffuzz tracer`: shows the blocks that an input executes, and where two inputs diverge.

mod args;
mod diff;
mod view;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

pub(super) use args::Args;
use view::{ShownParts, TraceRow};

use super::exit::{Failure, USAGE};
use super::tool::{self, Scratch, ToolTarget, print, say};
use super::traced::{self, Traced};
use crate::config::env::Environment;
use crate::disk::inputs;
use crate::engine::domain::{Aggregates, KeyNames};
use crate::engine::executor::Module;
use crate::exec::trace::TracedRun;
use crate::inspect::choice::Choice;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let parsed = super::parse::<Args>(program, words);
    let parsed = parsed.map_err(|failure| Failure { code: USAGE, ..failure });
    let Some(args) = parsed? else { return Ok(ExitCode::SUCCESS) };
    args.check()?;
    let environment = tool::environment(args.quiet);
    let scratch = Scratch::new("tracer", None);
    tool::exit_on_signals(&[&scratch], None);
    let otherwise = |instrumented| if instrumented { Choice::Counted } else { Choice::Own };
    let choose = |instrumented| traced::choice(args.modules.as_deref(), otherwise(instrumented));
    let target = Traced::open(&args.target, &scratch, &environment, choose, args.most());
    let target = target.map_err(tool::cannot)?;
    match args.diff.as_deref() {
        Some([a, b]) => diff::run(&args, target, a, b),
        _ => trace(&args, target, &environment),
    }
    .map_err(tool::cannot)
}

fn trace(args: &Args, mut target: Traced, environment: &Environment) -> Result<ExitCode, Failure> {
    let input = read(args.input.as_deref())?;
    let mut first = target.run(&input)?;
    let mut shortcoming = target.shortcoming(&first);
    for _ in 1..args.runs {
        let other = target.run(&input)?;
        shortcoming = shortcoming.or(target.shortcoming(&other));
        let places: HashSet<(u32, u32)> = other.steps.iter().map(|step| step.place()).collect();
        first.steps.retain(|step| places.contains(&step.place()));
    }
    for message in target.tracer.take_messages() {
        say(args.quiet, &format!("[!] {message}"));
    }
    tool::report(first.ended.exit, args.input.as_deref(), args.quiet || shortcoming.is_some());
    let observed = match target.has_table && shortcoming.is_none() {
        true => observe(args, environment, &input, target.timeout),
        false => Observed::default(),
    };
    let shown = shown(args, &target, &first, &observed);
    print(view::render(args, &shown)?.as_bytes(), args.output.as_deref())?;
    shortcoming.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Reads the input's file, or stdin unless that is a terminal.
fn read(path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let Some(path) = path else { return tool::stdin("-i") };
    let mut input = Vec::new();
    inputs::read(path, &mut input)?;
    Ok(input)
}

/// Results from the target's own counters and maps.
#[derive(Default)]
struct Observed {
    modules: Vec<Module>,
    /// Edge counters.
    edges: Vec<u8>,
    keys: Vec<(u32, u32)>,
    names: KeyNames,
}

/// Runs the input as showmap and showdsf do. The result is optional; the trace is valid without it.
fn observe(args: &Args, environment: &Environment, input: &[u8], timeout: Duration) -> Observed {
    let scratch = Scratch::new("tracer", None);
    let observed = || -> Result<Observed, Failure> {
        let mut wanted = ToolTarget::new(&args.target, &scratch, timeout);
        wanted.fresh_runs = true;
        let mut target = wanted.start(environment)?;
        let names = KeyNames::new(target.info().domains(), target.info().sites());
        let modules = target.info().modules();
        let mut aggregates = Aggregates::new(target.info().domains());
        let run = target.observe(input).map_err(tool::failure)?;
        aggregates.merge(&run.dsf);
        let edges = run.edges.to_vec();
        Ok(Observed { modules, edges, keys: aggregates.changed().collect(), names })
    };
    observed().unwrap_or_else(|failure| {
        let cause = format!("[!] Edge numbers and domain values are unknown: {}", failure.cause);
        say(args.quiet, &cause);
        Observed::default()
    })
}

fn shown<'a>(
    args: &Args,
    target: &'a Traced,
    run: &'a TracedRun,
    observed: &'a Observed,
) -> ShownParts<'a> {
    let files = target.tracer.files();
    let mut rows: Vec<TraceRow> = Vec::new();
    let mut known: HashMap<(u32, u32), usize> = HashMap::new();
    for step in &run.steps {
        let at = match known.get(&step.place()).filter(|_| !args.steps) {
            Some(at) => *at,
            None => {
                known.insert(step.place(), rows.len());
                rows.push(TraceRow::new(*step));
                rows.len() - 1
            }
        };
        rows[at].count += 1;
    }
    if args.set {
        rows.sort_by_key(|row| row.step.place());
    }
    for row in &mut rows {
        row.is_least = row.count >= args.most();
        let code = &files[row.step.file as usize];
        let module = observed.modules.iter().find(|module| module.file == code.path);
        let number = code.counter(row.step.block as usize).filter(|_| code.is_counted());
        row.edge = module.zip(number).map(|(module, number)| module.counters.start + number);
        let counter = row.edge.and_then(|edge| observed.edges.get(edge)).filter(|it| **it > 0);
        if let Some(counter) = counter.filter(|_| args.most.is_none()) {
            row.join(u32::from(*counter));
        }
    }
    ShownParts { files, rows, run, keys: &observed.keys, names: &observed.names }
}
