//! The command line of `cmin`.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::coverage::CoverageArgs;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{NativeArgs, TargetArgs};

#[derive(Debug, Parser)]
#[command(
    mut_arg("load_coverage", |arg| arg.help(
        "Keep only inputs that go beyond this coverage state (from --save-coverage, ffuzz-merge or Killerbeez)"
    )),
    name = "ffuzz-cmin",
    about = "Minimize a corpus: keep the smallest inputs that reach every edge and every best domain value",
    after_help = "After an interruption, the same command continues. Without -A and -C, an input \
    that crashes\nor takes too long ends the command (exit code 2 and 1).\n\n\
                  Examples:\n  \
                  ffuzz-cmin -i out/queue -o seeds -- ./target @@\n  \
                  ffuzz-cmin -C -i out/crashes -o crashes -- ./target"
)]
pub(in crate::cmd) struct Args {
    /// Folder with inputs, or with a queue of inputs; can be repeated
    #[arg(short, value_name = "DIR", required = true)]
    pub(super) input: Vec<PathBuf>,
    /// Folder for the inputs that are kept, new or empty
    #[arg(short, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Compare edges only, without hit counts
    #[arg(short)]
    pub(super) edges_only: bool,
    /// Process inputs that crash or take too long like others
    #[arg(short = 'A')]
    pub(super) allow_any: bool,
    /// Keep only inputs that crash
    #[arg(short = 'C', conflicts_with = "allow_any")]
    pub(super) crashes_only: bool,
    /// Folder for inputs that crash, each under its SHA-1 hash; they do not end the command
    #[arg(long = "crash-dir", value_name = "DIR", conflicts_with_all = ["allow_any", "crashes_only"])]
    pub(super) crash_folder: Option<PathBuf>,
    /// Name the kept inputs id:NUMBER,hash:SHA1 as in a queue (with --no-dedup id:NUMBER,orig:NAME)
    #[arg(long = "as_queue", alias = "as-queue")]
    pub(super) as_queue: bool,
    /// Names of --as_queue; otherwise without effect, because no content is kept twice
    #[arg(long = "no-dedup", hide_short_help = true)]
    pub(super) no_dedup: bool,
    /// Stay and run inputs that appear in the input folders, until Ctrl-C; the files in -o count as kept
    #[arg(long)]
    pub(super) watch: bool,
    /// Show what the target prints
    #[arg(long)]
    pub(super) debug: bool,
    /// Number of targets at the same time, or all: one per core [default: all]
    #[arg(short = 'T', value_name = "N")]
    pub(super) workers: Option<String>,
    /// File that the target reads, if it is not named by @@; limits -T to 1
    #[arg(short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) coverage: CoverageArgs,
    #[command(flatten)]
    pub(super) native: NativeArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        self.workers(1).map(|_| ())
    }

    /// Number of targets to start on this number of cores.
    pub(super) fn workers(&self, cores: usize) -> Result<usize, Failure> {
        match self.workers.as_deref() {
            _ if self.file.is_some() => Ok(1),
            None | Some("all") => Ok(cores.max(1)),
            Some(text) => match text.parse() {
                Ok(number @ 1..=1024) => Ok(number),
                _ => Err(Failure::new(
                    format!("-T {text} is not a number of workers"),
                    "give a number from 1 to 1024, or all",
                )),
            },
        }
    }
}
