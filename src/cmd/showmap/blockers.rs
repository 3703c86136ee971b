//! Comparisons that no input of a folder passes, by places in the source.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::Args;
use super::comparisons::{check_log, place};
use super::{inputs_of, start, to_file};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, Scratch, print, print_messages, say};
use crate::config::env::Environment;
use crate::disk::inputs;
use crate::engine::comparison::{Blocker, Blockers, ComparisonLog, ranges};
use crate::engine::domain::Site;
use crate::exec::Hooked;

/// Bytes of the closest inputs that are changed to see what they decide, and runs for that.
const MOST_PROBED: usize = 4096;
const MOST_RUNS: usize = 50_000;

/// Prints them; returns the exit code.
pub(super) fn run(args: &Args, environment: &Environment) -> Result<u8, Failure> {
    let inputs = inputs_of(args)?;
    let scratch = Scratch::new("showmap", None);
    let mut target = start(args, environment, &scratch)?;
    check_log(&target)?;
    let sites = target.info().comparison_sites();
    let mut blockers = Blockers::default();
    for (number, path) in inputs.iter().enumerate() {
        let bytes = read(path)?;
        let run = target.observe_logged(&bytes).map_err(tool::failure)?;
        blockers.add(number, run.comparisons);
    }
    let passed = blockers.sites();
    let all = blockers.list(usize::MAX);
    let passed = passed - all.len();
    let deciding = deciding(&mut target, &all, &inputs)?;
    print_messages(&mut target, args.quiet);
    let known: HashMap<u32, &Site> = sites.iter().map(|site| (site.key, site)).collect();
    // What no byte of the inputs moves says nothing of the inputs.
    let (moved, fixed): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|one| one.varies || deciding.get(&one.site).is_some_and(|at| !at.is_empty()));
    let entries = moved.iter().map(|blocker| {
        let bytes = deciding.get(&blocker.site).map(Vec::as_slice).unwrap_or_default();
        Entry::new(blocker, known.get(&blocker.site).copied(), &inputs[blocker.closest], bytes)
    });
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by_key(|entry| entry.bytes.is_empty());
    let text = match args.json {
        true => json(&entries)?,
        false => text(&entries, inputs.len()),
    };
    print(text.as_bytes(), to_file(args.output()))?;
    let (moved, fixed) = (moved.len(), fixed.len());
    let total = moved + fixed + passed;
    say(
        args.quiet,
        &format!(
            "[+] {total} comparisons: {passed} are passed, {moved} are not, {fixed} do not depend on the inputs"
        ),
    );
    Ok(0)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    inputs::read(path, &mut bytes)?;
    Ok(bytes)
}

/// A blocker as it is printed.
#[derive(Serialize)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    line: u32,
    column: u32,
    function: String,
    comparison: String,
    outcome: &'static str,
    /// How many inputs came to it.
    inputs: usize,
    operands: String,
    closest: PathBuf,
    /// First and last byte of each part of the closest input that moves the operands.
    bytes: Vec<(usize, usize)>,
    #[serde(skip)]
    place: String,
}

impl Entry {
    fn new(blocker: &Blocker, site: Option<&Site>, closest: &Path, bytes: &[usize]) -> Self {
        Self {
            file: site.map(|site| site.file.to_string()),
            line: site.map_or(0, |site| site.line),
            column: site.map_or(0, |site| site.column),
            function: site.map(Site::short_function).unwrap_or_default().to_string(),
            comparison: site.map(|site| site.what.to_string()).unwrap_or_default(),
            outcome: blocker.outcome(),
            inputs: blocker.inputs,
            operands: blocker.comparison().to_string(),
            closest: closest.into(),
            bytes: ranges(bytes.iter().copied()),
            place: place(site, blocker.site),
        }
    }
}

fn json(entries: &[Entry]) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(entries);
    text.map(|text| text + "\n")
        .map_err(|error| Failure::new(format!("cannot print JSON: {error}"), "omit --json"))
}

fn text(entries: &[Entry], inputs: usize) -> String {
    let mut text = String::new();
    for Entry { place, outcome, inputs: count, operands, closest, bytes, .. } in entries {
        let name = closest.file_name().unwrap_or_default().display();
        let _ = writeln!(text, "{place}, {outcome} in {count} of {inputs} inputs");
        let _ = write!(text, "    {operands} in {name}");
        let parts = bytes.iter().map(|(first, last)| match first == last {
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

/// The bytes of each blocker's closest input that move its operands, as far as they are among the first ones.
fn deciding(
    target: &mut Hooked,
    blockers: &[Blocker],
    inputs: &[PathBuf],
) -> Result<HashMap<u32, Vec<usize>>, Failure> {
    let mut by_input: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for blocker in blockers {
        by_input.entry(blocker.closest).or_default().push(blocker.site);
    }
    let (mut deciding, mut runs) = (HashMap::<u32, Vec<usize>>::new(), 0);
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
                    deciding.entry(site).or_default().push(at);
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
