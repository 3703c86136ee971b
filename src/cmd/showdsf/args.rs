//! The command line of `showdsf`, and incompatible options.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::coverage::CoverageArgs;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{NativeArgs, TargetArgs};

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-showdsf",
    about = "Run inputs and print the domain values they reach",
    arg_required_else_help = true,
    after_help = "Without -i the target runs once and inherits stdin and stdout. @@ stands for \
                  the name of a file with the input.\n\nExamples:\n  \
                  ffuzz-showdsf -- ./target < input\n  \
                  ffuzz-showdsf -i out/queue --names --top 5 -- ./target @@\n  \
                  ffuzz-showdsf --diff monday/queue tuesday/queue -- ./target"
)]
pub(in crate::cmd) struct Args {
    /// Run every file of this folder
    #[arg(short, value_name = "DIR")]
    pub(super) input: Option<PathBuf>,
    /// Write the dsf lines to this file instead of stdout
    #[arg(short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the source location of each key
    #[arg(long)]
    pub(super) names: bool,
    /// Print only the N best keys of each domain, the best one first
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,
    /// Print the file that reaches the value of each key, the smallest if there are several
    #[arg(long)]
    pub(super) best: bool,
    /// Run the files of two folders and print the keys that differ
    #[arg(long, num_args = 2, value_names = ["DIR_A", "DIR_B"])]
    pub(super) diff: Option<Vec<PathBuf>>,
    /// Print JSON, with names
    #[arg(long)]
    pub(super) json: bool,
    /// With --net: what tells the answers of the target apart, as with ffuzz --answers
    #[arg(long, value_name = "RE", requires = "net")]
    pub(super) answers: Option<String>,
    /// File that replaces @@; with -i every input is written to it
    #[arg(short = 'A', value_name = "FILE")]
    pub(super) at_file: Option<PathBuf>,
    /// Print only the dsf lines
    #[arg(short)]
    pub(super) quiet: bool,
    /// Accepted for FuzzFactory's command lines, without effect
    #[arg(short = 'e', hide = true)]
    _edges: bool,
    /// Accepted for FuzzFactory's command lines, without effect
    #[arg(short = 'c', hide = true)]
    _cores: bool,
    #[command(flatten)]
    pub(super) coverage: CoverageArgs,
    #[command(flatten)]
    pub(super) native: NativeArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    /// Rejects incompatible options.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        let refuse = |cause: &str, remedy: &str| Err(Failure::new(cause, remedy));
        if self.top == Some(0) {
            return refuse("--top 0 would show nothing", "give a number from 1 on");
        }
        if self.diff.is_some() {
            if self.input.is_some() {
                return refuse("--diff and -i both name folders", "omit -i: --diff DIR_A DIR_B");
            }
            if self.coverage.is_given() {
                return refuse(
                    "--diff compares two folders, a coverage state is about one",
                    "omit --load-coverage and --save-coverage",
                );
            }
            if self.top.is_some() || self.best {
                return refuse(
                    "--diff compares all keys of two folders: --top and --best are about one",
                    "omit them, or run showdsf -i for each folder",
                );
            }
        } else if self.best && self.input.is_none() {
            return refuse("--best has no files to choose from", "name their folder with -i");
        }
        if self.json && !self.runs_folders() && self.output.is_none() {
            return refuse(
                "--json would be mixed with what the target prints",
                "add -o FILE, or write the input into a folder and name it with -i",
            );
        }
        Ok(())
    }

    /// Returns true if inputs come from folders instead of our stdin.
    pub(super) fn runs_folders(&self) -> bool {
        self.input.is_some() || self.diff.is_some()
    }
}
