//! The command line of `showmap`, and incompatible options.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::cmd::coverage::CoverageArgs;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{NativeArgs, TargetArgs};

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-showmap",
    about = "Run inputs and print the edges they reach",
    after_help = "Without -i the target gets stdin. @@ stands for the name of a file with the \
                  input.\nExit code: 2 if a run crashes, 1 if one takes too long or \
                  nothing can be run.\n\nExamples:\n  \
                  ffuzz-showmap -o - -- ./target < input\n  \
                  ffuzz-showmap -i out/queue -o maps -- ./target @@\n  \
                  ffuzz-showmap -C -i out/queue -o edges -- ./target\n  \
                  find seeds -size -4k > list; ffuzz-showmap -I list -o maps -- ./target\n  \
                  ffuzz-showmap -C -i out/queue -o /dev/null --save-coverage state -- ./target\n  \
                  ffuzz-showmap --tokens -o words.dict -- ./target\n  \
                  ffuzz-showmap --comparisons -o - -- ./target < input\n  \
                  ffuzz-showmap --lines -i out/default/queue -- ./target\n  \
                  ffuzz-showmap --lcov -i out/default/queue -o lcov.info -- ./target\n  \
                  ffuzz-showmap --blockers -i out/default/queue -- ./target\n  \
                  ffuzz-showmap --messages --net tcp:80 -- ./server < input\n  \
                  ffuzz-showmap --blocks --modules libxml2.so -- xmllint"
)]
pub(in crate::cmd) struct Args {
    /// File for the edges, one line `index:class` per edge, or - for stdout; with -i a folder
    #[arg(short, value_name = "FILE", required_unless_present_any = ["streams", "tokens", "blockers", "blocks", "messages", "source"])]
    output: Option<PathBuf>,
    /// Run all files of this folder and its subfolders
    #[arg(short, value_name = "DIR")]
    pub(super) input: Option<PathBuf>,
    /// Run all files that this file lists, one per line
    #[arg(short = 'I', value_name = "FILE", conflicts_with = "input")]
    pub(super) list: Option<PathBuf>,
    /// Read inputs from stdin and write their edges to stdout, in the binary protocol of afl-showmap -S
    #[arg(short = 'S', conflicts_with_all = ["output", "input", "list", "at_file"])]
    pub(super) streams: bool,
    /// Print the words that ffuzz-cc has found in the target's sources, as a dictionary for -x
    #[arg(long, conflicts_with_all = ["input", "list", "streams", "at_file"])]
    pub(super) tokens: bool,
    /// Print what the target compares in a run, by places in the source, instead of edges
    #[arg(long, conflicts_with_all = ["input", "list", "streams", "tokens"])]
    pub(super) comparisons: bool,
    /// With -i: print the places that the files reach and do not go on from, those first behind which most
    /// edges lie: what is compared there, in which file it comes closest, and which of its bytes decide it
    #[arg(long, conflicts_with_all = ["streams", "tokens", "comparisons", "at_file", "collect"])]
    pub(super) blockers: bool,
    /// Print the basic blocks of the target's machine code and of its libraries, and the code that is left
    /// out; nothing is run
    #[arg(long, conflicts_with_all = ["input", "list", "streams", "tokens", "comparisons", "blockers", "at_file"])]
    pub(super) blocks: bool,
    /// With -i: print how many lines and functions of each source file are reached, instead of edges; with the end of
    /// a file's path its lines, each with the number of inputs that reach it (~: it follows from other lines)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, group = "source",
          conflicts_with_all = ["streams", "tokens", "comparisons", "blockers", "blocks", "at_file", "collect"])]
    pub(super) lines: Option<Option<String>>,
    /// With -i: print the lines and functions that the files reach in lcov's format, instead of edges
    #[arg(long, group = "source",
          conflicts_with_all = ["streams", "tokens", "comparisons", "blockers", "blocks", "at_file", "collect"])]
    pub(super) lcov: bool,
    /// The same in Cobertura's format
    #[arg(long, group = "source",
          conflicts_with_all = ["streams", "tokens", "comparisons", "blockers", "blocks", "at_file", "collect"])]
    pub(super) cobertura: bool,
    /// With --net: print the messages of a run and the answers, instead of edges
    #[arg(long, conflicts_with_all = ["input", "list", "streams", "tokens", "comparisons", "blockers", "blocks", "source", "collect"])]
    pub(super) messages: bool,
    /// With -i: merge the edges of all files into one output file
    #[arg(short = 'C')]
    pub(super) collect: bool,
    /// Print edges only, without hit counts
    #[arg(short)]
    pub(super) edges_only: bool,
    /// Print raw hit counts instead of their classes
    #[arg(short)]
    pub(super) raw: bool,
    /// The same as -r
    #[arg(short = 's')]
    pub(super) unclassified: bool,
    /// Write the raw map in binary form
    #[arg(short)]
    pub(super) binary: bool,
    /// Print lines of class and index without a colon, and none for crashes and timeouts
    #[arg(short = 'Z')]
    pub(super) cmin: bool,
    /// Add the domain values, in the format of showdsf
    #[arg(long)]
    pub(super) dsf: bool,
    /// Print edges, hit counts and domain values as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// File that replaces @@; without -i it is the input
    #[arg(short = 'H', value_name = "FILE")]
    pub(super) at_file: Option<PathBuf>,
    /// File that the target reads, if it is not named by @@
    #[arg(short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// `AFL_QUIET`, not `-q`.
    #[arg(skip)]
    pub(super) only_summary: bool,
    /// Print neither messages nor the target's output
    #[arg(short)]
    pub(super) quiet: bool,
    /// Accepted for afl-showmap's command lines, without effect
    #[arg(short = 'c', hide = true)]
    _cores: bool,
    #[arg(short = 'A', hide = true)]
    coresight: bool,
    #[command(flatten)]
    pub(super) coverage: CoverageArgs,
    #[command(flatten)]
    pub(super) native: NativeArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

impl Args {
    /// Output of the edges; `-` is stdout.
    pub(super) fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("-"))
    }

    /// Returns true if inputs are files instead of stdin.
    pub(super) fn runs_files(&self) -> bool {
        self.input.is_some() || self.list.is_some()
    }

    /// Returns true if the output is source instead of edges.
    pub(super) fn shows_source(&self) -> bool {
        self.lines.is_some() || self.lcov || self.cobertura
    }

    /// Rejects incompatible options.
    pub(super) fn check(&self) -> Result<(), Failure> {
        TargetArgs::refuse(&[(self.coresight, "-A (CoreSight) is not supported")])?;
        self.target.check()?;
        if self.edges_only && (self.raw || self.unclassified) {
            let cause = "-e omits hit counts, -r prints them: they exclude each other";
            return Err(Failure::new(cause, "leave one of them out"));
        }
        if self.collect && !self.runs_files() {
            let remedy = "name the folder with -i, or omit -C";
            return Err(Failure::new(
                "-C collects the edges of a folder, and none is given",
                remedy,
            ));
        }
        if self.blockers && !self.runs_files() {
            let cause = "--blockers compares the runs of many inputs, and none are given";
            return Err(Failure::new(cause, "name their folder with -i, or a list with -I"));
        }
        if self.shows_source() && !self.runs_files() {
            let cause =
                "--lines, --lcov and --cobertura show which lines files reach, and none are given";
            return Err(Failure::new(cause, "name their folder with -i, or a list with -I"));
        }
        if self.shows_source() && self.json && self.lines != Some(None) {
            let cause = "--json is a form of --lines without a file";
            return Err(Failure::new(cause, "--lines --json has the lines of all files"));
        }
        let forms = [self.binary, self.cmin, self.json].into_iter().filter(|form| *form);
        if forms.count() > 1 || (self.dsf && (self.binary || self.cmin)) {
            let cause = "-b, -Z and --json are different forms of output";
            return Err(Failure::new(cause, "choose one; --json includes the domain values"));
        }
        Ok(())
    }
}
