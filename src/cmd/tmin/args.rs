//! The command line of `tmin`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

use crate::cmd::exit::Failure;
use crate::cmd::tool::{NativeArgs, TargetArgs};

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-tmin",
    about = "Minimize one input and keep its behaviour",
    after_help = "The first run decides what is kept: a crash, or else the edges and their hit \
    counts.\n\nExamples:\n  \
                  ffuzz-tmin -i out/crashes/id:000000* -o small -- ./target @@\n  \
                  ffuzz-tmin --dsf mem -i out/queue/id:000007* -o small -- ./target"
)]
pub(in crate::cmd) struct Args {
    /// The input
    #[arg(short, value_name = "FILE")]
    pub(super) input: PathBuf,
    /// File for the result
    #[arg(short, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Compare edges only, without hit counts
    #[arg(short)]
    pub(super) edges_only: bool,
    /// Smallest block that is removed, in bytes: larger is faster
    #[arg(short = 'l', value_name = "BYTES", default_value_t = NonZeroUsize::MIN, hide_default_value = true)]
    pub(super) least_block: NonZeroUsize,
    /// Count every exit code but 0 as a crash
    #[arg(short = 'x')]
    pub(super) exit_is_crash: bool,
    /// Hang mode: the input must exceed the timeout, before and after
    #[arg(short = 'H')]
    pub(super) hang: bool,
    /// Keep the values of a domain, or of the key with this number: none may get worse
    #[arg(long, value_name = "NAME|KEY", conflicts_with_all = ["hang", "edges_only"])]
    pub(super) dsf: Option<String>,
    /// File that the target reads, if it is not named by @@
    #[arg(short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Accepted for afl-cmin's command lines, without effect
    #[arg(short = 'a', hide = true)]
    _any: bool,
    #[arg(short = 'A', hide = true)]
    coresight: bool,
    #[arg(short = 'B', value_name = "FILE", hide = true)]
    bitmap: Option<PathBuf>,
    #[arg(short = 'K', value_name = "DIR", hide = true)]
    gui: Option<PathBuf>,
    #[command(flatten)]
    pub(super) native: NativeArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    pub(super) fn check(&self) -> Result<(), Failure> {
        TargetArgs::refuse(&[(self.coresight, "-A (CoreSight) is not supported")])?;
        if self.bitmap.is_some() {
            return Err(Failure::new("-B (a bitmap as mask) is not supported", "leave -B out"));
        }
        if self.gui.is_some() {
            return Err(Failure::new("-K (GUI mode) is not supported", "leave -K out"));
        }
        self.target.check()?;
        if self.output.is_dir() {
            let cause = format!("-o {:?} is a folder", self.output);
            return Err(Failure::new(cause, "name a file for the result"));
        }
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let cause = format!("the folder {folder:?} of -o does not exist");
            return Err(Failure::new(cause, "create it, or name another file"));
        }
        Ok(())
    }
}
