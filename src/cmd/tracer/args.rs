//! The command line of `tracer`, and which options make no sense together.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::tool::TargetArgs;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-tracer",
    about = "Show what one input executes, block by block, or where two inputs part",
    arg_required_else_help = true,
    after_help = "A program of ffuzz-cc shows its edges, as showmap numbers them, and its domain values. \
                  Any other program shows the basic blocks of its code and that of its libraries; no \
                  build is needed. Without -i the input comes from stdin. @@ stands for the name of a \
                  file with the input.\n\nExamples:\n  \
                  ffuzz-tracer -i crash -- ./target @@          what is executed, in order\n  \
                  ffuzz-tracer --diff good bad -- ./target @@   where two inputs part\n  \
                  ffuzz-tracer --steps -i crash -- ./target     every step, to the last one\n  \
                  ffuzz-tracer --modules libpng16.so.16 -i a.png -- pngfix @@"
)]
pub(super) struct Args {
    /// The input
    #[arg(short, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Compare two inputs: the step at which they part, and the lines that only one reaches
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub(super) diff: Option<Vec<PathBuf>>,
    /// Write to this file instead of stdout
    #[arg(short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print every step, instead of each block once
    #[arg(long)]
    pub(super) steps: bool,
    /// Print the blocks by their place, instead of in the order of their first execution
    #[arg(long)]
    pub(super) set: bool,
    /// Record each block N times at most; 0: always. By default 8, always with --steps, --diff and --upstream; once
    /// in a program of ffuzz-cc, whose counters give the number of executions modulo 256
    #[arg(long, value_name = "N")]
    pub(super) most: Option<u32>,
    /// Run the input N times, and show what all of these runs execute
    #[arg(short = 'n', value_name = "N", default_value_t = 1)]
    pub(super) runs: u32,
    /// Trace these files: names with colons between them, or all. By default the files with edges; without
    /// any, the program and its libraries but those of the language
    #[arg(long, value_name = "LIST")]
    pub(super) modules: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print edges as Killerbeez's tracer: two addresses of 16 digits with a colon
    #[arg(long)]
    pub(super) upstream: bool,
    /// With --upstream: binary, two 64-bit numbers for each edge
    #[arg(short)]
    pub(super) binary: bool,
    /// With --upstream: a file for each module, named after -o
    #[arg(short)]
    pub(super) per_module: bool,
    /// Print no messages
    #[arg(short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    /// Refuses combinations that have no meaning.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        let refuse = |cause: &str, remedy: &str| Err(Failure::usage(cause, remedy));
        if self.runs == 0 {
            return refuse("-n 0 would run nothing", "give a number from 1 on");
        }
        if self.diff.is_some() && self.input.is_some() {
            return refuse("--diff and -i both name inputs", "omit -i: --diff A B");
        }
        if self.diff.is_some() && (self.steps || self.set || self.upstream) {
            let cause =
                "--diff has a form of its own: --steps, --set and --upstream are about one input";
            return refuse(cause, "omit them, or run tracer -i for each input");
        }
        if [self.json, self.upstream, self.steps].into_iter().filter(|form| *form).count() > 1
            || (self.set && (self.steps || self.upstream))
        {
            let cause = "--json, --upstream, --steps and --set are different forms of output";
            return refuse(cause, "choose one; --set also sorts what --json prints");
        }
        if (self.binary || self.per_module) && !self.upstream {
            return refuse("-b and -p are about --upstream", "add --upstream");
        }
        if self.per_module && self.output.is_none() {
            return refuse("-p writes files, and their name is not given", "add -o NAME");
        }
        if self.steps && self.runs > 1 {
            return refuse("--steps shows one run", "omit -n");
        }
        Ok(())
    }

    /// How often a block is recorded.
    pub(super) fn most(&self, instrumented: bool) -> u32 {
        let all = self.steps || self.diff.is_some() || self.upstream;
        match self.most {
            Some(0) => u32::MAX,
            Some(most) => most,
            None if all => u32::MAX,
            None if instrumented => 1,
            None => MOST,
        }
    }
}

/// The class of hit counts that AFL has for more than its first four.
const MOST: u32 = 8;
