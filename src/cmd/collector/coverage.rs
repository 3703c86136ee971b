//! `--coverage`: the lines that a campaign has reached, or those of somebody's report, to the server.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;

use super::{Failure, SourceArgs, read, say};
use crate::cmd::tool::{self, Scratch, TargetArgs, Wanted};
use crate::crashes::collector::coverage::Coverage;
use crate::crashes::collector::{Client, CollectorError, Settings};
use crate::disk::{find, inputs};
use crate::engine::executor::{Executor, Module};
use crate::exec::Hooked;
use crate::exec::lines::{LineMap, LinesError, Reached};

/// Entries of a queue were quicker once.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `command`: of the target, if `path` is a folder of inputs; else that of the campaign.
pub(super) fn send(
    program: &str,
    settings: &Settings,
    path: &Path,
    source: &SourceArgs,
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    let root = fs::canonicalize(&source.root).unwrap_or_else(|_| source.root.clone());
    let measure = || measured(program, path, &root, command);
    let coverage = if path.is_dir() { measure()? } else { parsed(path, &root)? };
    let need = |given: &Option<String>, found: &Option<String>, key| {
        given.clone().or_else(|| found.clone()).ok_or(CollectorError::Missing { key })
    };
    let server = settings.server()?;
    let fields = json!({
        "repository": need(&source.repository, &None, "repository")?,
        "revision": need(&source.revision, &coverage.revision, "revision")?,
        "branch": source.branch.clone().or(coverage.branch.clone()).unwrap_or_default(),
        "tools": server.tool,
        "client": server.client,
        "description": source.description,
        "coverage": coverage.tree().to_string(),
    });
    Client::new(server)?.coverage(&fields)?;
    Ok(ExitCode::SUCCESS)
}

/// An lcov or a Coveralls file.
fn parsed(path: &Path, root: &Path) -> Result<Coverage, Failure> {
    let bytes = read(path)?;
    Coverage::parse(&String::from_utf8_lossy(&bytes), root).map_err(|error| {
        let cause = format!("{}: {error}", path.display());
        Failure::new(
            cause,
            "give a campaign's folder, an lcov file (llvm-cov export -format=lcov) or a Coveralls file",
        )
    })
}

/// What the queue of a campaign reaches, or the inputs of any folder.
fn measured(
    program: &str,
    folder: &Path,
    root: &Path,
    command: &[OsString],
) -> Result<Coverage, Failure> {
    let queues = find::queues(folder).map_err(|error| {
        let cause = format!("cannot read the folder {}: {error}", folder.display());
        Failure::new(cause, "name the folder that was given to the fuzzer's -o")
    })?;
    let mut inputs = Vec::new();
    for queue in &queues {
        inputs.extend(inputs::list(queue)?);
    }
    if inputs.is_empty() {
        let cause = format!("no inputs in {}", folder.display());
        return Err(Failure::new(cause, "name the folder that was given to the fuzzer's -o"));
    }
    let given = (!command.is_empty()).then(|| command.to_vec());
    let command = given.or_else(|| find::command(&queues)).ok_or_else(|| {
        let cause = "no command line: there is no file cmdline next to the queue";
        Failure::new(cause, "give the target after --, for example: -- ./target @@")
    })?;
    let reached = reached(program, &inputs, command)?;
    let coverage = Coverage::of(&reached, root);
    let (files, (lines, all)) = (coverage.files.len(), coverage.lines());
    if files == 0 {
        let cause =
            format!("none of the {} source files is below {}", reached.len(), root.display());
        return Err(Failure::new(cause, "name the folder of the sources with --root"));
    }
    let inputs = inputs.len();
    say(program, &format!("{inputs} inputs reach {lines} of {all} lines in {files} files"));
    Ok(coverage)
}

/// Runs all inputs.
fn reached(program: &str, inputs: &[PathBuf], command: Vec<OsString>) -> Result<Reached, Failure> {
    let args = TargetArgs::of(command);
    let scratch = Scratch::new("collector", None);
    tool::leave_on_signals(&[&scratch], None);
    let wanted = Wanted::new(&args, &scratch, TIMEOUT);
    let mut target = wanted.start(&tool::environment(false))?;
    let mut maps = Vec::new();
    for Module { file, counters } in target.modules() {
        maps.push((LineMap::read(&file), counters));
    }
    if !maps.iter().any(|(map, _)| map.is_ok()) {
        return Err(maps.into_iter().find_map(|(map, _)| map.err()).map_or_else(
            || {
                let name = args.command[0].display();
                let cause = format!("{name} has no source lines of its edges");
                Failure::new(cause, "build it with ffuzz-cc -g, or give an lcov file")
            },
            |error| Failure::new(&error, error.remedy()),
        ));
    }
    run_all(&mut target, inputs, &mut maps)?;
    tool::tell(&mut target, false);
    let mut reached = Reached::new();
    for (map, _) in maps {
        match map {
            Ok(map) => map.collect(&mut reached),
            Err(error) => {
                say(program, &format!("warning: skipped: {error} ({})", error.remedy()));
            }
        }
    }
    Ok(reached)
}

/// A file's lines, and its part of the edge map.
type Part = (Result<LineMap, LinesError>, Range<usize>);

fn run_all(target: &mut Hooked, inputs: &[PathBuf], parts: &mut [Part]) -> Result<(), Failure> {
    let mut input = Vec::new();
    for path in inputs {
        inputs::read(path, &mut input)?;
        let run = target.observe(&input).map_err(tool::failure)?;
        tool::report(run.exit, Some(path), false);
        for (map, counters) in parts.iter_mut() {
            let edges = run.edges.get(counters.clone()).unwrap_or_default();
            let added = map.as_mut().map_or(Ok(()), |map| map.add(edges));
            if let Err(error) = added {
                *map = Err(error);
            }
        }
    }
    Ok(())
}
