//! The source lines that inputs reach: `--lines`, `--lcov` and `--cobertura`.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::args::Args;
use super::{CRASHED, inputs_of, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{Scratch, print, print_messages, report, say};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::report::data::Source;
use crate::report::forms::{cobertura, lcov, listing};
use crate::report::survey::Survey;
use crate::sys::remedy::Remedy;

/// Prints the lines; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    let crashed = Cell::new(false);
    let ended = |path: &Path, exit| {
        crashed.set(crashed.get() || matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom));
        report(exit, Some(path), args.quiet);
    };
    let mut survey = Survey::new(target.info());
    survey.check_lines(Path::new(&args.target.command[0]))?;
    survey.run(&mut target, &inputs, ended)?;
    print_messages(&mut target, args.quiet);
    drop(target);
    for error in survey.skipped() {
        say(args.quiet, &format!("[!] Skipped: {error} ({})", error.remedy()));
    }
    let source = survey.source_below(Path::new(""))?;
    print(text(args, &source)?.as_bytes(), to_file(args.output()))?;
    let (totals, files, inputs) = (&source.totals, source.files.len(), inputs.len());
    let reached = format!("{} of {} lines in {files} files", totals.reached, totals.lines);
    say(args.quiet, &format!("[+] {inputs} inputs reach {reached}"));
    let derived = totals.reached - totals.proved;
    if derived > 0 {
        let text = format!("[*] {derived} of these lines have no counter: it follows from others");
        say(args.quiet, &text);
    }
    Ok(if crashed.get() { CRASHED } else { 0 })
}

fn text(args: &Args, source: &Source) -> Result<String, Failure> {
    if args.lcov {
        return Ok(lcov::lcov(source));
    }
    if args.cobertura {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        return Ok(cobertura::cobertura(source, since.unwrap_or_default().as_secs()));
    }
    match args.lines.as_ref().and_then(|name| name.as_deref()) {
        Some(name) => annotated(source, name),
        None if args.json => serde_json::to_string(source)
            .map(|text| text + "\n")
            .map_err(|error| Failure::new(format!("cannot print JSON: {error}"), "omit --json")),
        None => Ok(listing::table(source)),
    }
}

/// Annotates the files whose path ends with `name`.
fn annotated(source: &Source, name: &str) -> Result<String, Failure> {
    let files = source.files.iter().filter(|file| Path::new(&file.path).ends_with(name));
    let mut text = String::new();
    for file in files {
        let remedy = "run where the target was built, or omit the name of the file";
        let path = Path::new(&file.path);
        let code = fs::read(path).map_err(Failure::cannot_read(path, remedy))?;
        text += &listing::annotated(file, &String::from_utf8_lossy(&code));
    }
    match text.is_empty() {
        true => {
            let cause = format!("no source file of the target is {name}");
            Err(Failure::new(cause, "--lines without a name lists them"))
        }
        false => Ok(text),
    }
}
