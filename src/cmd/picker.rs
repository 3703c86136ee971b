//! `ffuzz picker`: finds the modules of a program that execute input-dependent code.

mod args;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::exec::evidence::{Counts, Evidence, MOST};
pub(super) use args::Args;
use view::{ModuleRow, PickerReport};

use super::exit::{Failure, USAGE};
use super::tool::{self, Scratch, print, say};
use super::traced::{self, Traced};
use crate::disk::inputs;
use crate::exec::trace::TracedRun;
use crate::inspect::choice::{Choice, is_runtime};

/// Maximum number of rounds. A round is repeated as long as it shows new noise.
const MOST_ROUNDS: u32 = 8;

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let parsed = super::parse::<Args>(program, words);
    let parsed = parsed.map_err(|failure| Failure { code: USAGE, ..failure });
    let Some(args) = parsed? else { return Ok(ExitCode::SUCCESS) };
    args.check()?;
    pick(&args).map_err(tool::cannot)
}

fn pick(args: &Args) -> Result<ExitCode, Failure> {
    let seeds = inputs::list(&args.input)?;
    if seeds.len() < 2 {
        let cause = format!(
            "{} inputs in {:?}: at least two are needed to compare",
            seeds.len(),
            args.input
        );
        let remedy = "give a folder with inputs of different kinds, for example out/queue";
        return Err(Failure::new(cause, remedy));
    }
    let environment = tool::environment(args.quiet);
    let scratch = Scratch::new("picker", None);
    tool::exit_on_signals(&[&scratch], None);
    let choose = |_| traced::choice(args.modules.as_deref(), Choice::All);
    let mut target = Traced::open(&args.target, &scratch, &environment, choose, MOST)?;
    let start = Instant::now();
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut rounds = 0;
    let mut is_noisy = false;
    while rounds < args.runs || is_noisy && rounds < MOST_ROUNDS {
        is_noisy = round(args, &mut target, &seeds, rounds == 0, &mut evidence)?;
        rounds += 1;
    }
    for message in target.tracer.take_messages() {
        say(args.quiet, &format!("[!] {message}"));
    }
    let runs = u64::from(rounds) * seeds.len() as u64;
    let files = target.tracer.files().iter().zip(&evidence).filter(|(code, _)| code.size() > 0);
    let rows = files.map(|(code, evidence)| ModuleRow::new(code, evidence, runs)).collect();
    let report = PickerReport::new(rows, [seeds.len(), rounds as usize], start.elapsed());
    let text = if args.json { tool::to_json(&report)? } else { report.lines() };
    print(text.as_bytes(), None)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs each seed once. Returns true if a selectable module shows new noise.
fn round(
    args: &Args,
    target: &mut Traced,
    seeds: &[PathBuf],
    is_first: bool,
    evidence: &mut Vec<Evidence>,
) -> Result<bool, Failure> {
    let (mut input, mut is_noisy) = (Vec::new(), false);
    for (number, seed) in seeds.iter().enumerate() {
        inputs::read(seed, &mut input)?;
        let run = target.run(&input)?;
        if let Some(failure) = target.shortcoming(&run) {
            let cause = format!("{} on {}", failure.cause, seed.display());
            return Err(Failure { cause, ..failure });
        }
        tool::report(run.ended.exit, Some(seed), args.quiet || !is_first);
        let counts = counts(&run, target.tracer.files().len());
        evidence.resize_with(counts.len(), Evidence::default);
        let files = target.tracer.files().iter().zip(evidence.iter_mut());
        for ((code, evidence), counts) in files.zip(counts) {
            // Only selectable modules count.
            is_noisy |= evidence.add(number, is_first, counts) && !is_runtime(&code.name);
        }
    }
    Ok(is_noisy)
}

/// Executions of each block, per file.
fn counts(run: &TracedRun, files: usize) -> Vec<Counts> {
    let mut counts = vec![Counts::new(); files];
    for step in &run.steps {
        let count = counts[step.file as usize].entry(step.block).or_default();
        *count = count.saturating_add(1);
    }
    counts
}
