//! `ffuzz-whatsup`: the state of all instances below an output folder, in the format of `afl-whatsup` or as JSON.

mod view;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use super::exit::Failure;
use crate::disk::output::instances::{self, Instance, InstanceState};

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-whatsup",
    about = "Show the state of the fuzzers of an output folder",
    after_help = "The folder may be from ffuzz, from afl-fuzz, or shared by both.\n\nExamples:\n  \
                  ffuzz-whatsup -s out\n  watch ffuzz-whatsup out\n  \
                  ffuzz-whatsup --json out | jq .summary.execs_done"
)]
pub(super) struct Args {
    /// Print only the summary
    #[arg(short)]
    summary: bool,
    /// Also count instances that are dead or run on another machine
    #[arg(short)]
    dead: bool,
    /// Print one line per instance
    #[arg(short)]
    minimal: bool,
    /// Print no colours (no effect: there are none)
    #[arg(short = 'n')]
    _no_color: bool,
    /// Print JSON: every instance, and the sums of the counted ones
    #[arg(long)]
    json: bool,
    /// The folder given to -o
    #[arg(value_name = "OUT")]
    folder: PathBuf,
}

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, args)? else { return Ok(ExitCode::SUCCESS) };
    let remedy = "name the folder that was given to -o";
    let found =
        instances::find(&args.folder).map_err(Failure::cannot_read(&args.folder, remedy))?;
    let counts = |instance: &Instance| {
        instance.state == InstanceState::Alive
            || (args.dead && instance.state == InstanceState::Dead && !instance.stats.is_empty())
    };
    let counted: Vec<&Instance> = found.iter().filter(|instance| counts(instance)).collect();
    let text = match args.json {
        true => view::json(&found, &counted),
        false => text(&args, &found, &counted, counts),
    };
    super::print(&text)
}

fn text(
    args: &Args,
    found: &[Instance],
    counted: &[&Instance],
    counts: impl Fn(&Instance) -> bool,
) -> String {
    let mut text = String::new();
    if !args.summary {
        let details = found.iter().map(|instance| match args.minimal {
            true => view::line(instance),
            false => view::details(instance, counts(instance)),
        });
        text += "Individual fuzzers\n==================\n\n";
        text.extend(details);
        text += if args.minimal { "\n" } else { "" };
    }
    text + &view::summary(found, counted, args.dead)
}
