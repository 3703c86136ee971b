//! The command line of `tmin`.

use std::path::PathBuf;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::tool::TargetArgs;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-tmin",
    about = "Make one input smaller and simpler, and keep what it does",
    after_help = "What is kept is seen in a first run: a crash, or else which edges are reached how \
                  often.\n\nExamples:\n  \
                  ffuzz-tmin -i out/crashes/id:000000* -o small -- ./target @@\n  \
                  ffuzz-tmin --dsf mem -i out/queue/id:000007* -o small -- ./target"
)]
pub(super) struct Args {
    /// The input
    #[arg(short, value_name = "FILE")]
    pub(super) input: PathBuf,
    /// File for the result
    #[arg(short, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Edges only, whatever their hit counts
    #[arg(short)]
    pub(super) edges_only: bool,
    /// Every exit code but 0 is a crash
    #[arg(short = 'x')]
    pub(super) exit_is_crash: bool,
    /// The input takes too long, and still has to
    #[arg(short = 'H')]
    pub(super) hang: bool,
    /// Keep the values of a domain, or of the one key with this number: they may not get worse
    #[arg(long, value_name = "NAME|KEY", conflicts_with_all = ["hang", "edges_only"])]
    pub(super) dsf: Option<String>,
    /// File that the target reads, if it is not named by @@
    #[arg(short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Accepted as afl-cmin has it: without effect
    #[arg(short = 'a', hide = true)]
    _any: bool,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.target.check()?;
        if self.output.is_dir() {
            let cause = format!("-o {:?} is a folder", self.output);
            return Err(Failure::new(cause, "name the file that the result is to be"));
        }
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let cause = format!("the folder {folder:?} of -o does not exist");
            return Err(Failure::new(cause, "create it, or name another file"));
        }
        Ok(())
    }
}
