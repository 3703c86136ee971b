//! The command line of `tracer`, and incompatible options.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::tool::TargetArgs;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-tracer",
    about = "Show what one input executes, block by block, or where two inputs diverge",
    arg_required_else_help = true,
    after_help = "For a program built by ffuzz-cc the trace has its edges, as showmap numbers them, and its \
                  domain values; for any other program, those built by AFL's compilers included, the basic \
                  blocks of its code and its libraries. No special build is needed. Without -i the input is \
                  read from stdin. @@ stands for the name of a file with the input.\n\nExamples:\n  \
                  ffuzz-tracer -i crash -- ./target @@          what is executed, in order\n  \
                  ffuzz-tracer --diff good bad -- ./target @@   where two inputs diverge\n  \
                  ffuzz-tracer --steps -i crash -- ./target     every step, to the last one\n  \
                  ffuzz-tracer --modules libpng16.so.16 -i a.png -- pngfix @@"
)]
pub(in crate::cmd) struct Args {
    /// The input
    #[arg(short, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Compare two inputs: the step at which they diverge, and the lines that only one reaches
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(super) diff: Option<Vec<PathBuf>>,
    /// Write to this file instead of stdout
    #[arg(short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print every step, instead of each block once
    #[arg(long)]
    pub(super) steps: bool,
    /// Sort the blocks by address instead of first execution
    #[arg(long)]
    pub(super) set: bool,
    /// Record at most N executions of each block; 0: all of them. Default: 8, with --steps all
    #[arg(long, value_name = "N")]
    pub(super) most: Option<u32>,
    /// Run the input N times and show only what all runs execute
    #[arg(short = 'n', value_name = "N", default_value_t = 1)]
    pub(super) runs: u32,
    /// Files to trace, separated by commas or colons, or "all". Default: the files with edges; if there are none, the
    /// program and its libraries except language runtime libraries
    #[arg(long, value_name = "LIST")]
    pub(super) modules: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print no messages
    #[arg(short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    /// Rejects incompatible options.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        let refuse = |cause: &str, remedy: &str| Err(Failure::usage(cause, remedy));
        if self.runs == 0 {
            return refuse("-n 0 would run nothing", "give a number from 1 on");
        }
        if self.diff.is_some() && self.input.is_some() {
            return refuse("--diff and -i both name inputs", "omit -i: --diff A B");
        }
        if self.diff.is_some() && (self.steps || self.set) {
            let cause = "--steps and --set are output formats for one input, not for --diff";
            return refuse(cause, "omit them, or run tracer -i for each input");
        }
        if self.steps && (self.json || self.set) {
            let cause = "--steps cannot be combined with --json or --set";
            return refuse(cause, "choose one; --set also sorts what --json prints");
        }
        if self.steps && self.runs > 1 {
            return refuse("--steps shows one run", "omit -n");
        }
        Ok(())
    }

    /// Maximum number of recorded executions per block.
    pub(super) fn most(&self) -> u32 {
        match self.most {
            Some(0) => u32::MAX,
            Some(most) => most,
            None if self.steps => u32::MAX,
            None => MOST,
        }
    }
}

/// Lower bound of AFL's fifth hit-count class.
const MOST: u32 = 8;
