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
    after_help = "Runs every seed several times, and looks which code of the program and of its shared \
                  libraries depends on the input. No build is needed. A module is worth \
                  instrumenting if blocks of it are executed with some seeds and not with others, \
                  or another number of times, in the same way in every run of a seed. Without @@ \
                  the target reads stdin.\n\nVerdicts:\n  \
                  varies with input  instrument it\n  \
                  single path        the same for all seeds: instrumenting it costs time and shows nothing\n  \
                  noisy only         differs between runs of one seed: instrumenting it disturbs\n\n\
                  Examples:\n  \
                  ffuzz-picker -i seeds -- ./target @@\n  \
                  ffuzz-picker -i seeds -n 4 -o noisy.txt -- ./target\n  \
                  ffuzz-picker -i seeds --json -- ./target @@"
)]
pub(super) struct Args {
    /// Folder of seeds
    #[arg(short, value_name = "DIR")]
    pub(super) input: PathBuf,
    /// Run each seed N times, at least twice: what differs between them is noise. As long as there is more of it
    /// each seed is run again, up to 8 times
    #[arg(short = 'n', value_name = "N", default_value_t = 2)]
    pub(super) runs: u32,
    /// Write the noisy blocks to this file, a line `module+0xOFFSET` for each
    #[arg(short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Look at these files only: names with colons between them. By default at all but the loader
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
    /// Refuses what has no meaning.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        if self.runs < 2 {
            let cause = format!("-n {}: noise cannot be told from input by one run", self.runs);
            return Err(Failure::usage(cause, "give a number from 2 on"));
        }
        Ok(())
    }
}
