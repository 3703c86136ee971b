//! The command line of `picker`.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::tool::TargetArgs;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-picker",
    about = "Find the modules of a program that are worth instrumenting",
    arg_required_else_help = true,
    after_help = "Runs every seed several times and finds the code of the program and its shared libraries \
                  that depends on the input. No special build is needed. A module is worth instrumenting \
                  if some of its blocks are executed with some seeds only, or a different number of times, \
                  and alike in every run of a seed. Without @@ the target reads stdin.\n\nVerdicts:\n  \
                  varies with input  instrument it\n  \
                  single path        the same for all seeds: instrumentation costs time and adds nothing\n  \
                  noisy only         differs between runs of a seed: instrumentation adds noise\n  \
                  not executed       loaded but not used\n\n\
                  Examples:\n  \
                  ffuzz-picker -i seeds -- ./target @@\n  \
                  ffuzz-picker -i seeds -n 4 -- ./target\n  \
                  ffuzz-picker -i seeds --json -- ./target @@"
)]
pub(in crate::cmd) struct Args {
    /// Folder of seeds
    #[arg(short, value_name = "DIR")]
    pub(super) input: PathBuf,
    /// Runs of each seed, at least 2: what differs between them is noise. Further runs, up to 8, are added while
    /// they show new noise
    #[arg(short = 'n', value_name = "N", default_value_t = 2)]
    pub(super) runs: u32,
    /// Files to look at, separated by commas or colons. Default: all but the loader
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
    /// Rejects invalid options.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        if self.runs < 2 {
            let cause = format!("-n {}: one run of a seed cannot show noise", self.runs);
            return Err(Failure::usage(cause, "give a number of at least 2"));
        }
        Ok(())
    }
}
