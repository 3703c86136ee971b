//! Two inputs compared: the step at which they part, and what only one of them reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::args::Args;
use super::view::{line, place, to_json};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{print, report};
use crate::cmd::traced::Traced;
use crate::disk::inputs;
use crate::exec::trace::{Run, Step, Tracer};

/// Version of the JSON's shape: a field may be added under the same number.
const JSON_VERSION: u32 = 1;
/// Steps that are shown of each after they have parted.
const SHOWN: usize = 3;

/// The steps of one input.
struct Side<'a> {
    path: &'a Path,
    run: Run,
    /// Of the first thread: others run when they like.
    steps: Vec<Step>,
    /// From this step on two runs of the input differ.
    unsteady: Option<usize>,
}

pub(super) fn run(
    args: &Args,
    mut target: Traced,
    a: &Path,
    b: &Path,
) -> Result<ExitCode, Failure> {
    let a = Side::new(args, &mut target, a)?;
    let b = Side::new(args, &mut target, b)?;
    let shortcoming = target.shortcoming(&a.run).or(target.shortcoming(&b.run));
    let comparison = Comparison::new(&target.tracer, &a, &b);
    let text = match args.json {
        true => to_json(&comparison)?,
        false => comparison.lines(),
    };
    print(text.as_bytes(), args.output.as_deref())?;
    shortcoming.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl<'a> Side<'a> {
    /// Two runs: what differs between them is chance.
    fn new(args: &Args, target: &mut Traced, path: &'a Path) -> Result<Self, Failure> {
        let mut input = Vec::new();
        inputs::read(path, &mut input)?;
        let run = target.run(&input)?;
        let steps = first_thread(&run);
        let again = first_thread(&target.run(&input)?);
        let common = common(&steps, &again);
        let unsteady = (common < steps.len().max(again.len())).then_some(common);
        let is_late = target.shortcoming(&run).is_some();
        report(run.ended.exit, Some(path), args.quiet || is_late);
        Ok(Self { path, run, steps, unsteady: unsteady.filter(|_| !is_late) })
    }

    fn blocks(&self) -> BTreeSet<(u32, u32)> {
        self.run.steps.iter().map(|step| step.place()).collect()
    }
}

fn first_thread(run: &Run) -> Vec<Step> {
    run.steps.iter().filter(|step| step.thread == 0).copied().collect()
}

/// Number of steps at the beginning that are the same.
fn common(a: &[Step], b: &[Step]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A step in words.
#[derive(Serialize)]
struct Place {
    place: String,
    function: String,
    file: String,
    line: u32,
    #[serde(skip)]
    short: String,
}

impl Place {
    fn new(tracer: &Tracer, step: Step) -> Self {
        let code = tracer.code(step);
        let spot = code.spot(step.block as usize);
        let (place, short) = (place(code, &spot), line(&spot));
        Self { place, function: spot.function, file: spot.file, line: spot.line, short }
    }

    fn text(&self) -> String {
        format!("{:<32}  {:<32}  {}", self.place, self.function, self.short).trim_end().to_owned()
    }
}

/// What one of them reaches, and the other does not.
#[derive(Serialize)]
struct Only {
    input: String,
    steps: usize,
    /// Its own runs differ from this step on.
    unsteady: Option<usize>,
    blocks: usize,
    functions: BTreeSet<String>,
    /// By file.
    lines: BTreeMap<String, BTreeSet<u32>>,
    /// The first steps after they have parted.
    next: Vec<Place>,
}

#[derive(Serialize)]
struct Comparison {
    version: u32,
    /// Number of steps that both make; null: they make the same ones.
    parted: Option<usize>,
    last_common: Option<Place>,
    a: Only,
    b: Only,
}

impl Comparison {
    fn new(tracer: &Tracer, a: &Side<'_>, b: &Side<'_>) -> Self {
        let common = common(&a.steps, &b.steps);
        let parted = (common < a.steps.len().max(b.steps.len())).then_some(common);
        let last = common.checked_sub(1).filter(|_| parted.is_some());
        Self {
            version: JSON_VERSION,
            parted,
            last_common: last.map(|at| Place::new(tracer, a.steps[at])),
            a: Only::new(tracer, a, b, common),
            b: Only::new(tracer, b, a, common),
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        let Some(parted) = self.parted else {
            let _ = writeln!(text, "Both make the same {} steps.", self.a.steps);
            return text;
        };
        let _ = writeln!(text, "They part after {parted} common steps.");
        for only in [&self.a, &self.b] {
            if let Some(unsteady) = only.unsteady.filter(|step| *step <= parted) {
                let input = &only.input;
                let _ = writeln!(
                    text,
                    "Two runs of {input} part after {unsteady} steps: this may be chance."
                );
            }
        }
        let last = self.last_common.as_ref().map_or_else(String::new, Place::text);
        let _ = writeln!(text, "  both  {last}");
        for (name, only) in [("A", &self.a), ("B", &self.b)] {
            if only.next.is_empty() {
                let _ = writeln!(text, "  {name}     ends here");
            }
            for place in &only.next {
                let _ = writeln!(text, "  {name}     {}", place.text());
            }
        }
        self.a.describe("A", &mut text);
        self.b.describe("B", &mut text);
        text
    }
}

impl Only {
    fn new(tracer: &Tracer, side: &Side<'_>, other: &Side<'_>, common: usize) -> Self {
        let (own, foreign) = (side.blocks(), other.blocks());
        let functions = |blocks: &BTreeSet<(u32, u32)>| -> BTreeSet<String> {
            let spot = |(file, block): &(u32, u32)| {
                let code = &tracer.files()[*file as usize];
                code.function_of(*block as usize)
            };
            blocks.iter().map(spot).filter(|name| !name.is_empty()).collect()
        };
        let only = own.difference(&foreign);
        let next = side.steps.iter().skip(common).take(SHOWN);
        Self {
            input: side.path.display().to_string(),
            steps: side.steps.len(),
            unsteady: side.unsteady,
            blocks: only.count(),
            functions: functions(&own).difference(&functions(&foreign)).cloned().collect(),
            lines: lines(tracer, &own, &foreign),
            next: next.map(|step| Place::new(tracer, *step)).collect(),
        }
    }

    fn describe(&self, name: &str, text: &mut String) {
        let count = self.lines.values().map(BTreeSet::len).sum::<usize>();
        let (input, blocks) = (&self.input, self.blocks);
        let _ = writeln!(text, "\nOnly {name} ({input}) reaches {blocks} blocks, {count} lines");
        if !self.functions.is_empty() {
            let names: Vec<&str> = self.functions.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  functions: {}", names.join(", "));
        }
        for (file, lines) in &self.lines {
            let _ = writeln!(text, "  {file}: {}", ranges(lines));
        }
    }
}

/// Lines of the blocks of one that no block of the other has.
fn lines(
    tracer: &Tracer,
    own: &BTreeSet<(u32, u32)>,
    foreign: &BTreeSet<(u32, u32)>,
) -> BTreeMap<String, BTreeSet<u32>> {
    let mut found: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (number, code) in (0..).zip(tracer.files()) {
        let of_file = |blocks: &BTreeSet<(u32, u32)>| -> BTreeSet<u32> {
            blocks.range((number, 0)..=(number, u32::MAX)).map(|(_, block)| *block).collect()
        };
        let (own, foreign) = (of_file(own), of_file(foreign));
        if own.is_subset(&foreign) {
            continue;
        }
        let foreign = code.lines(&foreign);
        for (file, line) in code.lines(&own) {
            if line > 0 && !foreign.contains(&(file.clone(), line)) {
                found.entry(file).or_default().insert(line);
            }
        }
    }
    found
}

/// `3-5, 9`.
fn ranges(lines: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_a_row_are_a_range() {
        assert_eq!(ranges(&[3, 4, 5, 9].into()), "3-5, 9");
        assert_eq!(ranges(&BTreeSet::new()), "");
    }

    #[test]
    fn the_common_steps_end_at_the_first_difference() {
        let steps = |blocks: &[u32]| -> Vec<Step> {
            blocks.iter().map(|block| Step { file: 0, block: *block, thread: 0 }).collect()
        };
        assert_eq!(common(&steps(&[1, 2, 3]), &steps(&[1, 2, 4])), 2);
        assert_eq!(common(&steps(&[1, 2]), &steps(&[1, 2, 4])), 2);
    }
}
