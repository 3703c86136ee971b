//! Compares two inputs: the step at which they diverge, and the blocks that only one of them reaches.
//!
//! Only observed behavior is compared: the end of a run that was cut off is unknown, and blocks that differ between
//! runs of one input are omitted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::args::Args;
use super::view::{line, place};
use crate::cmd::exit::Failure;
use crate::cmd::tool::{print, report, to_json};
use crate::cmd::traced::Traced;
use crate::disk::inputs;
use crate::exec::trace::{TraceStep, TracedRun, Tracer};

/// Version of the JSON format; adding a field does not change it.
const JSON_VERSION: u32 = 1;
/// Number of steps shown of each input after the divergence.
const SHOWN: usize = 3;
/// Minimum number of runs per input. Two runs agree by chance too often; runs are repeated as long as they show new
/// noise.
const LEAST_RUNS: usize = 3;
const MOST_RUNS: usize = 8;
/// Maximum number of differences in order that count as noise, per pair of runs. With more of them, the order is
/// undefined.
const MOST_SWAPS: usize = 32;

/// File and block.
type FileBlock = (u32, u32);

/// The steps of one input.
struct DiffSide<'a> {
    path: &'a Path,
    input: Vec<u8>,
    /// Steps of the first thread in the first run; the timing of other threads varies.
    steps: Vec<TraceStep>,
    /// Blocks reached in any run, by all threads.
    reached: BTreeSet<FileBlock>,
    /// Blocks reached in all runs, by all threads.
    always: BTreeSet<FileBlock>,
    /// The reason why no run was traced to its end.
    cut: Option<Failure>,
    /// Step from which two runs of the input differ.
    unsteady: Option<usize>,
}

pub(super) fn run(
    args: &Args,
    mut target: Traced,
    a: &Path,
    b: &Path,
) -> Result<ExitCode, Failure> {
    let mut noise = Noise::default();
    let mut a = DiffSide::new(args, &mut target, a)?;
    let mut b = DiffSide::new(args, &mut target, b)?;
    for runs in 1..MOST_RUNS {
        let before = noise.0.len();
        for side in [&mut a, &mut b] {
            side.repeat(&mut target, &mut noise)?;
        }
        if runs + 1 >= LEAST_RUNS && noise.0.len() == before {
            break;
        }
    }
    if a.input == b.input && a.cut.is_none() && b.cut.is_none() {
        noise.learn(&a.steps, &b.steps);
    }
    for side in [&mut a, &mut b] {
        side.steps.retain(|step| !noise.holds(step));
        side.always.retain(|block| !noise.0.contains(block));
    }
    let comparison = Comparison::new(&target.tracer, args.most(), &noise, &a, &b);
    let text = match args.json {
        true => to_json(&comparison)?,
        false => comparison.lines(),
    };
    print(text.as_bytes(), args.output.as_deref())?;
    a.cut.or(b.cut).map_or(Ok(ExitCode::SUCCESS), Err)
}

impl<'a> DiffSide<'a> {
    fn new(args: &Args, target: &mut Traced, path: &'a Path) -> Result<Self, Failure> {
        let mut input = Vec::new();
        inputs::read(path, &mut input)?;
        let run = target.run(&input)?;
        let cut = target.shortcoming(&run);
        report(run.ended.exit, Some(path), args.quiet || cut.is_some());
        let (steps, reached) = (first_thread(&run), blocks(&run));
        let always = reached.clone();
        Ok(Self { path, input, steps, reached, always, cut, unsteady: None })
    }

    /// Runs the input once more and compares with the first run. A run that times out is not repeated.
    fn repeat(&mut self, target: &mut Traced, noise: &mut Noise) -> Result<(), Failure> {
        if self.cut.is_some() {
            return Ok(());
        }
        let run = target.run(&self.input)?;
        if target.shortcoming(&run).is_some() {
            return Ok(());
        }
        let unsteady = noise.learn(&self.steps, &first_thread(&run));
        self.unsteady = self.unsteady.into_iter().chain(unsteady).min();
        let blocks = blocks(&run);
        self.always.retain(|block| blocks.contains(block));
        self.reached.extend(blocks);
        Ok(())
    }
}

fn blocks(run: &TracedRun) -> BTreeSet<FileBlock> {
    run.steps.iter().map(|step| step.place()).collect()
}

fn first_thread(run: &TracedRun) -> Vec<TraceStep> {
    run.steps.iter().filter(|step| step.thread == 0).copied().collect()
}

/// Length of the common prefix.
fn common(a: &[TraceStep], b: &[TraceStep]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Blocks whose executions differ between runs of one input.
#[derive(Default)]
struct Noise(HashSet<FileBlock>);

impl Noise {
    fn holds(&self, step: &TraceStep) -> bool {
        self.0.contains(&step.place())
    }

    /// Compares two runs of one input: first the executions of each block, then the order. Returns the step from which
    /// they differ nevertheless.
    fn learn(&mut self, first: &[TraceStep], again: &[TraceStep]) -> Option<usize> {
        let mut counts: HashMap<FileBlock, i64> = HashMap::new();
        for (steps, sign) in [(first, 1), (again, -1)] {
            steps.iter().for_each(|step| *counts.entry(step.place()).or_default() += sign);
        }
        self.0.extend(counts.into_iter().filter(|(_, count)| *count != 0).map(|(block, _)| block));
        let (mut first, mut again) = (first.to_vec(), again.to_vec());
        for _ in 0..MOST_SWAPS {
            first.retain(|step| !self.holds(step));
            again.retain(|step| !self.holds(step));
            let same = common(&first, &again);
            let (Some(a), Some(b)) = (first.get(same), again.get(same)) else { return None };
            self.0.extend([a.place(), b.place()]);
        }
        Some(common(&first, &again))
    }
}

/// A step as text.
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
    fn new(tracer: &Tracer, step: TraceStep) -> Self {
        let code = tracer.code(step);
        let spot = code.spot(step.block as usize);
        let (place, short) = (place(code, &spot), line(&spot));
        Self { place, function: spot.function, file: spot.file, line: spot.line, short }
    }

    fn text(&self) -> String {
        format!("{:<32}  {:<32}  {}", self.place, self.function, self.short).trim_end().to_owned()
    }
}

/// Blocks that only this input reaches.
#[derive(Serialize)]
struct Only {
    input: String,
    steps: usize,
    /// The reason why its run was not traced to its end.
    cut: Option<String>,
    /// Step from which its own runs differ.
    unsteady: Option<usize>,
    blocks: usize,
    functions: BTreeSet<String>,
    /// Lines by file.
    lines: BTreeMap<String, BTreeSet<u32>>,
    /// The first steps after the divergence.
    next: Vec<Place>,
}

#[derive(Serialize)]
struct Comparison {
    version: u32,
    /// Number of common steps; null if no difference was observed.
    diverged_after: Option<usize>,
    last_common: Option<Place>,
    /// Recorded executions per block, if a block exceeded them; further ones were not compared.
    bound: Option<u32>,
    /// Number of omitted blocks: they differ between runs of one input.
    noisy: usize,
    a: Only,
    b: Only,
}

impl Comparison {
    fn new(tracer: &Tracer, most: u32, noise: &Noise, a: &DiffSide<'_>, b: &DiffSide<'_>) -> Self {
        let common = common(&a.steps, &b.steps);
        // The end of a run that was cut off cannot be compared.
        let goes_on = |side: &DiffSide<'_>| side.steps.len() > common || side.cut.is_none();
        let differ = common < a.steps.len().max(b.steps.len()) && goes_on(a) && goes_on(b);
        let last = common.checked_sub(1).filter(|_| differ);
        Self {
            version: JSON_VERSION,
            diverged_after: differ.then_some(common),
            last_common: last.map(|at| Place::new(tracer, a.steps[at])),
            bound: Some(most)
                .filter(|most| is_reached(&a.steps, *most) || is_reached(&b.steps, *most)),
            noisy: noise.0.len(),
            a: Only::new(tracer, a, b, common),
            b: Only::new(tracer, b, a, common),
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        let is_cut = [&self.a, &self.b].iter().any(|only| only.cut.is_some());
        match self.diverged_after {
            Some(diverged_after) => {
                let _ = writeln!(text, "They diverge after {diverged_after} common steps.");
            }
            None if is_cut => {
                let steps = self.a.steps.min(self.b.steps);
                let _ = writeln!(text, "No difference was seen in {steps} steps.");
            }
            None => {
                let _ = writeln!(text, "Both make the same {} steps.", self.a.steps);
            }
        }
        self.restrictions(&mut text);
        if self.diverged_after.is_some() {
            self.steps(&mut text);
        }
        if self.diverged_after.is_some() || is_cut {
            self.a.describe("A", &self.b, &mut text);
            self.b.describe("B", &self.a, &mut text);
        }
        text
    }

    /// Lists what was not compared.
    fn restrictions(&self, text: &mut String) {
        for only in [&self.a, &self.b] {
            let input = &only.input;
            if let Some(cut) = &only.cut {
                let _ = writeln!(text, "{input} was cut off ({cut}): the rest of it is unknown.");
            }
            let before = |step: &usize| {
                self.diverged_after.is_none_or(|diverged_after| *step <= diverged_after)
            };
            if let Some(unsteady) = only.unsteady.filter(before) {
                let _ = writeln!(
                    text,
                    "Two runs of {input} diverge after {unsteady} steps: this may be chance."
                );
            }
        }
        if let Some(bound) = self.bound {
            let _ = writeln!(
                text,
                "Of each block the first {bound} executions are compared; --most 0 compares all."
            );
        }
        if self.noisy > 0 {
            let _ = writeln!(
                text,
                "{} blocks that differ between runs of the same input are left out.",
                self.noisy
            );
        }
    }

    fn steps(&self, text: &mut String) {
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
    }
}

/// Returns true if a block reached the limit of recorded executions.
fn is_reached(steps: &[TraceStep], most: u32) -> bool {
    let mut counts: HashMap<FileBlock, u32> = HashMap::new();
    steps.iter().any(|step| {
        let count = counts.entry(step.place()).or_default();
        *count += 1;
        *count >= most
    })
}

impl Only {
    fn new(tracer: &Tracer, side: &DiffSide<'_>, other: &DiffSide<'_>, common: usize) -> Self {
        let (own, foreign) = (&side.always, &other.reached);
        let functions = |blocks: &BTreeSet<(u32, u32)>| -> BTreeSet<String> {
            let spot = |(file, block): &(u32, u32)| {
                let code = &tracer.files()[*file as usize];
                code.function_of(*block as usize)
            };
            blocks.iter().map(spot).filter(|name| !name.is_empty()).collect()
        };
        let only = own.difference(foreign);
        let next = side.steps.iter().skip(common).take(SHOWN);
        Self {
            input: side.path.display().to_string(),
            steps: side.steps.len(),
            cut: side.cut.as_ref().map(|failure| failure.cause.clone()),
            unsteady: side.unsteady,
            blocks: only.count(),
            functions: functions(own).difference(&functions(foreign)).cloned().collect(),
            lines: lines(tracer, own, foreign),
            next: next.map(|step| Place::new(tracer, *step)).collect(),
        }
    }

    /// Describes the blocks. A run that was cut off may reach more.
    fn describe(&self, name: &str, other: &Self, text: &mut String) {
        let count = self.lines.values().map(BTreeSet::len).sum::<usize>();
        let (input, blocks) = (&self.input, self.blocks);
        let limit = match (&self.cut, &other.cut) {
            (Some(_), Some(_)) => ", as far as both were seen".to_owned(),
            (Some(_), None) => ", as far as it was seen".to_owned(),
            (None, Some(_)) => format!(", as far as {} was seen", other.input),
            (None, None) => String::new(),
        };
        let _ =
            writeln!(text, "\nOnly {name} ({input}) reaches {blocks} blocks, {count} lines{limit}");
        if !self.functions.is_empty() {
            let names: Vec<&str> = self.functions.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  functions: {}", names.join(", "));
        }
        for (file, lines) in &self.lines {
            let _ = writeln!(text, "  {file}: {}", ranges(lines));
        }
    }
}

/// Lines of the blocks in `only` that no block of the other input has.
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

/// Formats line numbers as `3-5, 9`.
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
        assert_eq!(common(&steps(&[1, 2, 3]), &steps(&[1, 2, 4])), 2);
        assert_eq!(common(&steps(&[1, 2]), &steps(&[1, 2, 4])), 2);
    }

    fn steps(blocks: &[u32]) -> Vec<TraceStep> {
        blocks.iter().map(|block| TraceStep { file: 0, block: *block, thread: 0 }).collect()
    }

    #[test]
    fn what_differs_between_runs_of_an_input_is_noise() {
        let learned = |first: &[u32], again: &[u32]| {
            let mut noise = Noise::default();
            let unsteady = noise.learn(&steps(first), &steps(again));
            let mut blocks: Vec<u32> = noise.0.into_iter().map(|(_, block)| block).collect();
            blocks.sort_unstable();
            (blocks, unsteady)
        };
        assert_eq!(learned(&[1, 2, 3], &[1, 2, 3]), (vec![], None));
        // Executed in one run only, or more often.
        assert_eq!(learned(&[1, 2, 3], &[1, 3]), (vec![2], None));
        assert_eq!(learned(&[1, 2, 2, 3], &[1, 2, 3]), (vec![2], None));
        // Another order.
        assert_eq!(learned(&[1, 2, 3, 4], &[1, 3, 2, 4]), (vec![2, 3], None));
    }

    #[test]
    fn a_bound_is_reported_as_soon_as_a_block_meets_it() {
        assert!(is_reached(&steps(&[1, 2, 1]), 2));
        assert!(!is_reached(&steps(&[1, 2, 1]), 3));
    }
}
