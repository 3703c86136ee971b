//! Places in the source that no input of a folder passes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::args::Args;
use super::comparisons::check_log;
use super::{inputs_of, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{Scratch, print, print_messages, say};
use crate::config::env::Environment;
use crate::engine::coverage::frontier::{self, Frontier};
use crate::event::BlockedComparison;
use crate::report::data::NeverEntered;
use crate::report::survey::{StuckPlace, Survey};

/// Maximum number of places printed as text; `--json` has all.
const MOST_PRINTED: usize = 50;

/// Maximum number of functions printed as text.
const MOST_FUNCTIONS: usize = 20;

/// Time limit to log the comparisons of many inputs.
const LOG_TIME: Duration = Duration::from_secs(60);

/// Prints the places; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    let mut survey = Survey::new(target.info());
    if !survey.frontier.is_known() {
        check_log(&target)?;
    }
    survey.run(&mut target, &inputs, |_, _| {})?;
    survey.log(&mut target, LOG_TIME)?;
    let most = if args.json { usize::MAX } else { MOST_PRINTED };
    let entries = survey.stuck(&mut target, most)?;
    print_messages(&mut target, args.quiet);
    let entries = entries.into_iter().map(|StuckPlace { place, input, .. }| BlockerEntry {
        place,
        closest: input.map(|number| inputs[number].clone()),
    });
    let entries: Vec<BlockerEntry> = entries.collect();
    let text = match args.json {
        true => json(&entries)?,
        false => text(&entries, inputs.len()) + &unentered(&survey.never_entered(target.info())),
    };
    print(text.as_bytes(), to_file(args.output()))?;
    say(args.quiet, &summary(&survey.frontier, entries.len()));
    Ok(0)
}

fn summary(frontier: &Frontier, printed: usize) -> String {
    if !frontier.is_known() {
        return format!("[+] {printed} comparisons that depend on the inputs are never passed");
    }
    let frontier::NeverEntered { called, by_pointer, uncalled, counters } =
        frontier.never_entered();
    let (forks, functions) = (frontier.forks().len(), called + by_pointer + uncalled);
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    };
    let mut text = format!("[+] {} with ways that are never taken", count(forks, "place"));
    if printed < forks {
        let _ = write!(text, ", {printed} are printed");
    }
    if functions > 0 {
        let functions = count(functions as usize, "function");
        let edges = count(counters as usize, "edge");
        let _ = write!(
            text,
            "; never entered: {functions} with {edges}, of which {called} are called by code that is reached, \
             {by_pointer} may be called by pointer, and {uncalled} by nothing that is known"
        );
    }
    text
}

/// A place for the output.
struct BlockerEntry {
    place: BlockedComparison,
    /// The input that comes closest, or the smallest one that reaches the place.
    closest: Option<PathBuf>,
}

/// JSON form of [`BlockerEntry`].
#[derive(Serialize)]
struct JsonEntry<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    line: u32,
    column: u32,
    function: &'a str,
    to: u32,
    copies: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    functions: u64,
    comparison: &'a str,
    outcome: &'a str,
    /// Number of inputs that reach the comparison.
    inputs: u64,
    operands: &'a str,
    closest: Option<&'a Path>,
    /// First and last byte of each part of the closest input that affects the operands.
    bytes: &'a [(usize, usize)],
}

fn json(entries: &[BlockerEntry]) -> Result<String, Failure> {
    let entry = |BlockerEntry { place, closest }: &'_ BlockerEntry| -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(JsonEntry {
            id: &place.id,
            file: &place.file,
            line: place.line,
            column: place.column,
            function: &place.function,
            to: place.to,
            copies: place.copies,
            behind: place.behind,
            functions: place.functions,
            comparison: &place.comparison,
            outcome: &place.outcome,
            inputs: place.seeds,
            operands: &place.operands,
            closest: closest.as_deref(),
            bytes: &place.bytes,
        })
    };
    let entries: Result<Vec<_>, _> = entries.iter().map(entry).collect();
    let text = entries.and_then(|entries| serde_json::to_string_pretty(&entries));
    text.map(|text| text + "\n")
        .map_err(|error| Failure::new(format!("cannot print JSON: {error}"), "omit --json"))
}

fn text(entries: &[BlockerEntry], inputs: usize) -> String {
    let mut text = String::new();
    for BlockerEntry { place, closest } in entries {
        let _ = write!(text, "{}, {}", described(place), place.outcome);
        if !place.operands.is_empty() {
            let _ = write!(text, " in {} of {inputs} inputs", place.seeds);
        }
        let _ = match place.behind {
            Some(1) => write!(text, "; 1 edge behind it"),
            Some(behind) => write!(text, "; {behind} edges behind it"),
            None => Ok(()),
        };
        let _ = match place.copies {
            0 | 1 => writeln!(text),
            copies => writeln!(text, ", {copies} copies"),
        };
        let name = closest.as_ref().and_then(|closest| closest.file_name()).unwrap_or_default();
        let name = name.display();
        let _ = match place.operands.is_empty() {
            true => write!(text, "    reached by {name}"),
            false => write!(text, "    {} in {name}", place.operands),
        };
        let parts = place.bytes.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let parts: Vec<String> = parts.collect();
        let _ = match parts.is_empty() {
            true => writeln!(text),
            false => writeln!(text, ": bytes {}", parts.join(", ")),
        };
    }
    text
}

/// The largest functions that no input enters.
fn unentered(functions: &[NeverEntered]) -> String {
    let mut text = String::new();
    for function in functions.iter().take(MOST_FUNCTIONS) {
        let NeverEntered { file, line, counters, reason, .. } = function;
        let name =
            if function.function.is_empty() { "an unknown function" } else { &function.function };
        let at = if file.is_empty() { String::new() } else { format!("{file}:{line}: ") };
        let edges = if *counters == 1 { "edge" } else { "edges" };
        let _ =
            writeln!(text, "{at}{name} is never entered, {counters} {edges}; {}", reason.words());
    }
    text
}

/// Place and comparison as text.
fn described(place: &BlockedComparison) -> String {
    let BlockedComparison { file, line, column, function, comparison, .. } = place;
    let at = match (line, column) {
        _ if file.is_empty() => String::new(),
        (0, _) => format!("{file}: "),
        (line, 0) => format!("{file}:{line}: "),
        (line, column) => format!("{file}:{line}:{column}: "),
    };
    let function = if function.is_empty() { "an unknown function" } else { function };
    match comparison.is_empty() {
        true => format!("{at}{function}"),
        false => format!("{at}{function}: {comparison}"),
    }
}
