//! Where no input of a folder goes on, by places in the source.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::Args;
use super::comparisons::check_log;
use super::{inputs_of, start, to_file};
use crate::campaign::TargetPlaces;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, print, print_messages, say};
use crate::config::env::Environment;
use crate::disk::inputs;
use crate::engine::comparison::{Blocker, Blockers, ComparisonLog};
use crate::engine::coverage::flow::Flow;
use crate::engine::coverage::frontier::{Frontier, NeverEntered};
use crate::engine::coverage::{self, Classes};
use crate::engine::feedback::stuck;
use crate::event::BlockedComparison;
use crate::exec::Hooked;

/// Places that are printed as text: `--json` has all.
const MOST_PRINTED: usize = 50;

/// Bytes of the closest inputs that are changed to see what they decide, and runs for that.
const MOST_PROBED: usize = 4096;
const MOST_RUNS: usize = 50_000;

/// Prints them; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    let logs = target.info().logs_comparisons();
    let frontier = Frontier::new(Flow::new(&target.info().flow().0));
    if !frontier.is_known() {
        check_log(&target)?;
    }
    let mut blockers = Blockers::default();
    for (number, path) in inputs.iter().enumerate().filter(|_| logs) {
        let bytes = read(path)?;
        let run = target.observe_logged(&bytes).map_err(tool::failure)?;
        blockers.add((number, &bytes), run.comparisons);
    }
    let (frontier, nearest) = reached(frontier, &mut target, &inputs)?;
    let most = if args.json { usize::MAX } else { MOST_PRINTED };
    let mut stuck = stuck(&frontier, &blockers, most);
    let all = stuck.iter().filter_map(|stuck| stuck.comparison.as_ref());
    let deciding = deciding(&mut target, all, &inputs)?;
    print_messages(&mut target, args.quiet);
    for comparison in stuck.iter_mut().filter_map(|stuck| stuck.comparison.as_mut()) {
        comparison.deciding = deciding.get(&comparison.site).cloned().unwrap_or_default();
    }
    // By its comparisons alone, what no byte of the inputs moves says nothing of the inputs.
    let is_moved = |one: &Blocker| one.varies || !one.deciding.is_empty();
    stuck.retain(|one| one.fork.is_some() || one.comparison.as_ref().is_some_and(is_moved));
    let (places, info) = (TargetPlaces::default(), target.info());
    let entries = stuck.iter().map(|one| {
        let of_counter = one.counter.and_then(|counter| nearest.get(counter as usize).copied());
        let number = one.comparison.as_ref().map(|comparison| comparison.closest).or(of_counter);
        Entry {
            place: places.entry(one, info, || info.comparison_sites()),
            closest: number.and_then(|number| inputs.get(number)).cloned(),
        }
    });
    let entries: Vec<Entry> = entries.collect();
    let text = match args.json {
        true => json(&entries)?,
        false => text(&entries, inputs.len()),
    };
    print(text.as_bytes(), to_file(args.output()))?;
    say(args.quiet, &summary(&frontier, entries.len()));
    Ok(0)
}

/// What is shut for the runs of these inputs, and for each counter the number of the smallest input that hits it.
fn reached(
    mut frontier: Frontier,
    target: &mut Hooked,
    inputs: &[PathBuf],
) -> Result<(Frontier, Vec<usize>), Failure> {
    if !frontier.is_known() {
        return Ok((frontier, Vec::new()));
    }
    let size = target.info().map_size();
    let (mut virgin, mut nearest) = (vec![0xff; size], vec![(usize::MAX, usize::MAX); size]);
    for (number, path) in inputs.iter().enumerate() {
        let bytes = read(path)?;
        let run = target.observe(&bytes).map_err(tool::failure)?;
        if run.edges.len() == size {
            coverage::merge(run.edges, &mut virgin, Classes::Binary);
            for counter in coverage::trace(run.edges) {
                let known = &mut nearest[counter as usize];
                *known = (bytes.len(), number).min(*known);
            }
        }
    }
    frontier.update(&virgin);
    Ok((frontier, nearest.into_iter().map(|(_, number)| number).collect()))
}

fn summary(frontier: &Frontier, printed: usize) -> String {
    if !frontier.is_known() {
        return format!("[+] {printed} comparisons that depend on the inputs are never passed");
    }
    let NeverEntered { called, by_pointer, uncalled, counters } = frontier.never_entered();
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

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    inputs::read(path, &mut bytes)?;
    Ok(bytes)
}

/// A place as it is printed.
struct Entry {
    place: BlockedComparison,
    /// The input that comes closest, or the smallest one that comes there.
    closest: Option<PathBuf>,
}

/// The same for programs.
#[derive(Serialize)]
struct JsonEntry<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    line: u32,
    column: u32,
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    functions: u64,
    comparison: &'a str,
    outcome: &'a str,
    /// How many inputs came to the comparison.
    inputs: u64,
    operands: &'a str,
    closest: Option<&'a Path>,
    /// First and last byte of each part of the closest input that moves the operands.
    bytes: &'a [(usize, usize)],
}

fn json(entries: &[Entry]) -> Result<String, Failure> {
    let entry = |Entry { place, closest }: &'_ Entry| -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(JsonEntry {
            file: &place.file,
            line: place.line,
            column: place.column,
            function: &place.function,
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

fn text(entries: &[Entry], inputs: usize) -> String {
    let mut text = String::new();
    for Entry { place, closest } in entries {
        let _ = write!(text, "{}, {}", described(place), place.outcome);
        if !place.operands.is_empty() {
            let _ = write!(text, " in {} of {inputs} inputs", place.seeds);
        }
        let _ = match place.behind {
            Some(1) => writeln!(text, "; 1 edge behind it"),
            Some(behind) => writeln!(text, "; {behind} edges behind it"),
            None => writeln!(text),
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

/// Where it is, and what is compared there.
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

/// The bytes of each blocker's closest input that move its operands, as far as they are among the first ones.
fn deciding<'a>(
    target: &mut Hooked,
    blockers: impl Iterator<Item = &'a Blocker>,
    inputs: &[PathBuf],
) -> Result<HashMap<u32, BTreeSet<usize>>, Failure> {
    let mut by_input: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for blocker in blockers {
        by_input.entry(blocker.closest).or_default().push(blocker.site);
    }
    let (mut deciding, mut runs) = (HashMap::<u32, BTreeSet<usize>>::new(), 0);
    for (number, sites) in by_input {
        let mut bytes = read(&inputs[number])?;
        let usual = operands(target, &bytes, &sites)?;
        for at in 0..bytes.len().min(MOST_PROBED) {
            if runs >= MOST_RUNS {
                return Ok(deciding);
            }
            let byte = bytes[at];
            // Of numbers in text, another digit shows more than another bit.
            let other =
                if byte.is_ascii_digit() { b'0' + (byte - b'0' + 1) % 10 } else { byte ^ 1 };
            bytes[at] = other;
            let changed = operands(target, &bytes, &sites)?;
            bytes[at] = byte;
            runs += 1;
            for (site, hash) in changed {
                if usual.get(&site).is_some_and(|usual| *usual != hash) {
                    deciding.entry(site).or_default().insert(at);
                }
            }
        }
    }
    Ok(deciding)
}

/// A hash of the first operands of each of these sites, if the run comes to it.
fn operands(
    target: &mut Hooked,
    bytes: &[u8],
    sites: &[u32],
) -> Result<HashMap<u32, u64>, Failure> {
    let run = target.observe_logged(bytes).map_err(tool::failure)?;
    Ok(hashes(run.comparisons, sites))
}

fn hashes(log: ComparisonLog<'_>, sites: &[u32]) -> HashMap<u32, u64> {
    let mut hashes = HashMap::new();
    for comparison in log.iter().filter(|comparison| sites.contains(&comparison.site)) {
        hashes.entry(comparison.site).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            (comparison.a, comparison.b).hash(&mut hasher);
            hasher.finish()
        });
    }
    hashes
}
