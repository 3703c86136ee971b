//! `ffuzz-merge`: joins coverage states, or shows the difference of two.

mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use super::exit::Failure;
use crate::disk::coverage::{self, CoverageError};
use crate::engine::feedback::Known;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-merge",
    about = "Merge coverage states, or show what one has that another lacks",
    override_usage = "ffuzz-merge -o OUT STATE...\n       ffuzz-merge --only-new A B",
    after_help = "States are written by --save-coverage (ffuzz, ffuzz-showmap) and, for maps of 65536 \
                  edges, by Killerbeez (fuzzer -j, merger afl), which can also read those of \
                  ffuzz.\nThe order of the states does not matter, and duplicates have no \
                  effect.\n\nExamples:\n  \
                  ffuzz-merge -o all a.json b.json c.json\n  \
                  ffuzz -i seeds -o out --load-coverage all -- ./target @@\n  \
                  ffuzz-merge --only-new yesterday today"
)]
pub(super) struct Args {
    /// File for the merged state; it may replace one of the inputs
    #[arg(short, value_name = "OUT", required_unless_present = "only_new")]
    output: Option<PathBuf>,
    /// Show the edges and keys of state B that A lacks, with function and line
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["output", "states"])]
    only_new: Vec<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Coverage states of the same program
    #[arg(value_name = "STATE", required_unless_present = "only_new")]
    states: Vec<PathBuf>,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    if let [known, other] = &args.only_new[..] {
        return only_new(program, known, other, args.json);
    }
    let known = joined(program, &args.states)?;
    if let Some(output) = &args.output {
        coverage::write(output, &known)?;
    }
    let counts = known.counts();
    let count = args.states.len();
    super::print(&if args.json {
        view::counts_json(count, counts)
    } else {
        view::counts(count, counts)
    })
}

/// Joins all states. A state that does not name its program is joined with a warning; the warning repeats wherever the
/// result is loaded.
fn joined(program: &str, paths: &[PathBuf]) -> Result<Known, Failure> {
    let mut all: Option<Known> = None;
    let mut unnamed: Vec<String> = Vec::new();
    for path in paths {
        let state = coverage::read(path)?;
        if state.unnamed {
            unnamed.push(path.display().to_string());
        }
        match &mut all {
            None => all = Some(state),
            Some(all) => all
                .join(&state)
                .map_err(|source| CoverageError::Mismatch { path: path.clone(), source })?,
        }
    }
    let all = all.ok_or_else(|| Failure::new("no state is given", "name the files to merge"))?;
    if !unnamed.is_empty() && !all.parts.is_empty() {
        let names = unnamed.join(", ");
        let warning = format!("{names}: cannot check that this belongs to the same program");
        super::tool::say(false, &format!("{program}: warning: {warning}"));
    }
    Ok(all)
}

fn only_new(program: &str, known: &Path, other: &Path, json: bool) -> Result<ExitCode, Failure> {
    let known = coverage::read(known)?;
    let state = coverage::read(other)?;
    let mismatch = |source| CoverageError::Mismatch { path: other.to_owned(), source };
    known.check(&state).map_err(mismatch)?;
    let beyond = state.beyond(&known).map_err(mismatch)?;
    let mut named = state;
    if named.parts.is_empty() {
        named.parts = known.parts;
    }
    let names = view::EdgeNames::read(&named);
    for note in &names.notes {
        super::tool::say(false, &format!("{program}: {note}"));
    }
    super::print(&if json { names.json(&beyond) } else { names.text(&beyond) })
}
