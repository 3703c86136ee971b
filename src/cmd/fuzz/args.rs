//! The command line as given; [`super::resolve`] checks it.

use std::ffi::OsString;

use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser};

use super::words::{self, Valued};
use crate::cmd::exit::Failure;

const EXAMPLES: &str = "\
Examples:
  ffuzz -i seeds -o out ./target @@          the target reads the file whose name replaces @@
  ffuzz -p -i seeds -o out ./target          the target reads stdin; domains guide the search
  ffuzz -i - -o out -V 3600 -- ./target @@   resume the campaign in out, for one hour
  ffuzz -j auto -i seeds -o out ./target @@  on all cores, with one screen
";

/// All options: AFL's letters, FuzzFactory's `-p`, and long names for what is our own.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "ffuzz",
    about = "Coverage-guided fuzzer with domain-specific feedback",
    override_usage = "ffuzz [OPTIONS] -i SEEDS -o OUT [--] TARGET [ARGUMENTS]",
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100
)]
pub struct Args {
    /// Folder or ZIP archive of seeds; - resumes the campaign in OUT
    #[arg(short, value_name = "SEEDS", help_heading = "Required")]
    pub input: Option<OsString>,
    /// Output folder: queue, crashes, hangs and statistics
    #[arg(short, value_name = "OUT", help_heading = "Required")]
    pub output: Option<OsString>,

    /// Guide the search by the target's domains, if it has any (-p NAME of AFL++: see --schedule)
    #[arg(short = 'p', long, help_heading = "Domains")]
    pub domains: bool,
    /// Save inputs that improve a domain, without guiding the search by domains
    #[arg(long, conflicts_with = "domains", help_heading = "Domains")]
    pub dsf_record: bool,

    /// Timeout of a run in milliseconds; with a trailing +, an upper limit [default: from the seeds]
    #[arg(short, value_name = "MS[+]", help_heading = "Target")]
    pub timeout: Option<String>,
    /// Fastest execution mode allowed: pipe, fork, snapshot, persistent or batch [default: batch]
    #[arg(long, value_name = "MODE", help_heading = "Target")]
    pub run_mode: Option<String>,
    /// Memory limit of a run, in MB or with k, M, G, T; none for no limit [default: none]
    #[arg(short, value_name = "MB", help_heading = "Target")]
    pub memory: Option<String>,
    /// File that the target reads, if it is not named by @@
    #[arg(short, value_name = "FILE", help_heading = "Target")]
    pub file: Option<OsString>,
    /// Extension of the input file and of saved files
    #[arg(short, value_name = "EXT", help_heading = "Target")]
    pub extension: Option<String>,
    /// Rewrite the input file for each run instead of replacing it
    #[arg(short = 'N', help_heading = "Target")]
    pub keep_input_file: bool,
    /// The target is not instrumented: start a new process for each run
    #[arg(short, help_heading = "Target")]
    pub non_instrumented: bool,
    /// The target is not instrumented: copies of its functions and breakpoints show which edges are reached, or QEMU
    /// where those cannot be (static programs, other processors, Go)
    #[arg(short = 'Q', help_heading = "Target")]
    pub native: bool,
    /// -Q with breakpoints, or not at all
    #[arg(long = "native", conflicts_with = "qemu", help_heading = "Target")]
    pub breakpoints: bool,
    /// -Q in QEMU's user mode emulation (package qemu-user)
    #[arg(long, help_heading = "Target")]
    pub qemu: bool,
    /// With -Q: files whose blocks count, separated by commas or colons, or "all". Default: the program and its
    /// libraries except language runtime libraries
    #[arg(long, value_name = "LIST", help_heading = "Target")]
    pub modules: Option<String>,
    /// Run the target with a heap that makes overflows crash, and reports double frees and writes to freed blocks;
    /// for targets without a sanitizer
    #[arg(long, help_heading = "Target")]
    pub guard_heap: bool,
    /// The target's inputs come over this socket: tcp:PORT, udp:PORT or unix:PATH of a server, tcp-client or udp-client
    /// of a client
    #[arg(long, value_name = "SOCKET", help_heading = "Target")]
    pub net: Option<String>,
    /// With --net: cut seeds behind each TEXT into messages; \r, \n, \t, \0, \xHH
    #[arg(long, value_name = "TEXT", requires = "net", help_heading = "Target")]
    pub split: Option<String>,
    /// With --net: write a session of the target with a real client or server into FILE, as a seed, and end
    #[arg(long, value_name = "FILE", requires = "net", help_heading = "Target")]
    pub record: Option<OsString>,
    /// With --net and -p: what tells the answers of the target apart, the first group of this regular expression
    /// [default: their status, or their first word]
    #[arg(long, value_name = "RE", requires = "net", help_heading = "Target")]
    pub answers: Option<String>,
    /// Sanitizer build of the target; inputs that take a new path run there, too; can be repeated
    #[arg(short = 'w', value_name = "PROGRAM", help_heading = "Target")]
    pub sanitizer: Vec<OsString>,
    /// CPU core to bind to [default: a free one]
    #[arg(short, value_name = "CORE", help_heading = "Target")]
    pub bind: Option<String>,

    /// Dictionary file or folder, with @N tokens up to level N; up to four times
    #[arg(short = 'x', value_name = "DICT[@N]", help_heading = "Search")]
    pub dictionaries: Vec<OsString>,
    /// Minimum input length in bytes
    #[arg(short = 'g', value_name = "BYTES", help_heading = "Search")]
    pub min_len: Option<String>,
    /// Maximum input length in bytes [default: 1048576]
    #[arg(short = 'G', value_name = "BYTES", help_heading = "Search")]
    pub max_len: Option<String>,
    /// Power schedule: explore, fast, exploit, seek, rare, mmopt, coe, lin or quad
    #[arg(long, value_name = "NAME", help_heading = "Search")]
    pub schedule: Option<String>,
    /// Skip the deterministic stage (the same as -z)
    #[arg(short = 'd', help_heading = "Search")]
    pub quick: bool,
    /// Run the whole deterministic stage of each favored seed [default: as far as it finds more than havoc]
    #[arg(short = 'D', help_heading = "Search")]
    pub deterministic: bool,
    /// Skip the deterministic stage
    #[arg(short = 'z', help_heading = "Search")]
    pub skip_deterministic: bool,
    /// Pick seeds in the order of the queue
    #[arg(short = 'Z', help_heading = "Search")]
    pub sequential: bool,
    /// Crash exploration: start from crashing seeds and look for other crashes
    #[arg(short = 'C', help_heading = "Search")]
    pub crash_mode: bool,
    /// Input type: text, binary or default [default: detected for each input]
    #[arg(short = 'a', value_name = "KIND", help_heading = "Search")]
    pub input_type: Option<String>,
    /// Mutation strategy: explore, exploit, or seconds without a find until exploit [default: explore]
    #[arg(short = 'P', value_name = "NAME", help_heading = "Search")]
    pub strategy: Option<String>,
    /// Seed of the random number generator, for a reproducible campaign
    #[arg(short, value_name = "NUMBER", help_heading = "Search")]
    pub seed: Option<String>,
    /// Coverage state to start from; its content does not count as new (from --save-coverage,
    /// ffuzz-merge or Killerbeez)
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub load_coverage: Option<OsString>,
    /// Write what is known into this file, with the statistics and at the end
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub save_coverage: Option<OsString>,

    /// Mutator, by file or by name: a Killerbeez module or a library for AFL++; can be repeated
    #[arg(long, value_name = "NAME|FILE.so", help_heading = "Mutators")]
    pub mutator: Vec<OsString>,
    /// Options of the preceding --mutator: JSON text, or @FILE
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Mutators")]
    pub mutator_options: Vec<OsString>,
    /// Folder for modules named without a slash
    #[arg(long, value_name = "FOLDER", help_heading = "Mutators")]
    pub mutator_dir: Option<OsString>,
    /// Size of a module's buffer, relative to the input [default: 2.0]
    #[arg(long, value_name = "NUMBER", help_heading = "Mutators")]
    pub mutator_ratio: Option<String>,
    /// With --net: what mutators get of an input, message (one at a time) or session (all) [default: message]
    #[arg(long, value_name = "WHAT", help_heading = "Mutators")]
    pub mutator_sees: Option<String>,
    /// Run only the mutations of one module on one seed, in order, until they are exhausted
    #[arg(long, help_heading = "Mutators")]
    pub mutator_only: bool,
    /// With --mutator-only: resume from this state file, and save the progress to it
    #[arg(long, value_name = "FILE", help_heading = "Mutators")]
    pub mutator_state: Option<OsString>,
    /// List the modules of the folder and their options
    #[arg(long, help_heading = "Mutators")]
    pub mutator_list: bool,

    /// Number of workers, one per core (one main, the rest secondaries); auto: all cores
    #[arg(short = 'j', value_name = "NUMBER", help_heading = "Several instances")]
    pub workers: Option<String>,
    /// Main instance of several in OUT
    #[arg(short = 'M', value_name = "NAME", help_heading = "Several instances")]
    pub main: Option<String>,
    /// Secondary instance of several in OUT
    #[arg(short = 'S', value_name = "NAME", help_heading = "Several instances")]
    pub secondary: Option<String>,
    /// Queue folder of another tool; its new files are imported; can be repeated
    #[arg(short = 'F', value_name = "FOLDER", help_heading = "Several instances")]
    pub foreign: Vec<OsString>,
    /// Serve as an engine of this PASTIS broker, which sends the targets; other options are defaults
    #[arg(long, value_name = "HOST:PORT", help_heading = "Several instances")]
    pub pastis: Option<String>,

    /// Stop after this many seconds of fuzzing; the dry run of the seeds has the same limit
    #[arg(short = 'V', value_name = "SECONDS", help_heading = "Stop and report")]
    pub time_limit: Option<String>,
    /// Stop after this many executions
    #[arg(short = 'E', value_name = "NUMBER", help_heading = "Stop and report")]
    pub exec_limit: Option<String>,
    /// Text on the screen and in fuzzer_stats [default: the target]
    #[arg(
        short = 'T',
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Stop and report"
    )]
    pub banner: Option<String>,
    /// Run this shell command for each new crash; $1 is its file
    #[arg(
        short = 'I',
        value_name = "COMMAND",
        allow_hyphen_values = true,
        help_heading = "Stop and report"
    )]
    pub crash_command: Option<OsString>,
    /// Report each bug to the FuzzManager server of FM_CONFIG_PATH, or at this URL
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        help_heading = "Stop and report"
    )]
    pub collector: Option<Option<OsString>>,
    /// Report hangs, too: inputs that exceed 10 s when rerun
    #[arg(long, help_heading = "Stop and report")]
    pub report_hangs: bool,
    /// Report inputs that reach VALUE or better in a domain, even without a crash: DOMAIN=VALUE,…
    #[arg(long, value_name = "LIST", help_heading = "Stop and report")]
    pub report_records: Option<String>,
    /// Exit code if a crash was found (with --report-hangs a hang, too), 1 to 255 [default: 0]
    #[arg(long, value_name = "CODE", help_heading = "Stop and report")]
    pub error_exitcode: Option<String>,
    /// Unix socket for commands and events: inject, pause, set, stop (docs/control.md); - for stdin
    #[arg(long, value_name = "PATH", help_heading = "Stop and report")]
    pub control: Option<OsString>,
    /// Serve metrics for Prometheus over HTTP [default address: 127.0.0.1, port: 9477]
    #[arg(long, value_name = "ADDR[:PORT]", help_heading = "Stop and report")]
    pub metrics: Option<String>,
    /// Print status and events as JSON, one object per line
    #[arg(long, help_heading = "Stop and report")]
    pub json: bool,
    /// Print this help; -hh includes the environment variables
    #[arg(short, long, action = ArgAction::Count, help_heading = "Stop and report")]
    pub help: u8,
    /// Print the version
    #[arg(long, help_heading = "Stop and report")]
    pub version: bool,

    /// MOpt: no effect
    #[arg(short = 'L', value_name = "MINUTES", hide = true)]
    pub mopt: Option<String>,
    /// Program that logs comparisons, which are solved: a build of the target by AFL_LLVM_CMPLOG=1 or ffuzz-cc; 0: the
    /// target itself; -: solve none [default: the target, if it can]
    #[arg(short = 'c', value_name = "PROGRAM", help_heading = "Search")]
    pub cmplog: Option<OsString>,
    /// Level of solving comparisons: what 1, 2, 3, A, T, X and S mean is always done; R has no effect
    #[arg(short = 'l', value_name = "LEVEL", hide = true)]
    pub cmplog_level: Option<OsString>,
    /// Splicing, which is always on
    #[arg(short = 'u', hide = true)]
    pub splicing: bool,
    #[command(flatten)]
    pub unsupported: Unsupported,

    /// Target and its arguments
    #[arg(skip)]
    pub command: Vec<OsString>,
    /// The options as they were written, one each with its value
    #[arg(skip)]
    pub given: Vec<Vec<OsString>>,
    /// Each `--mutator` with the `--mutator-options` after it
    #[arg(skip)]
    pub mutators: Vec<(OsString, Option<OsString>)>,
}

/// Options that are known and refused; parsed so that their values are not taken for the target.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Unsupported {
    #[arg(short = 'B', value_name = "FILE", hide = true)]
    pub bitmap: Option<OsString>,
    #[arg(short = 'O', hide = true)]
    pub frida: bool,
    #[arg(short = 'U', hide = true)]
    pub unicorn: bool,
    #[arg(short = 'W', hide = true)]
    pub wine: bool,
    #[arg(short = 'X', hide = true)]
    pub nyx: bool,
    #[arg(short = 'Y', hide = true)]
    pub nyx_distributed: bool,
    #[arg(short = 'A', hide = true)]
    pub coresight: bool,
    #[arg(short = 'R', hide = true)]
    pub radamsa: bool,
    #[arg(short = 'k', hide = true)]
    pub k: bool,
    #[arg(short = 'r', hide = true)]
    pub value_profile: bool,
}

/// A known but unsupported option.
#[derive(Clone, Copy, Debug)]
pub struct RefusedOption {
    pub given: bool,
    pub option: &'static str,
    pub meaning: &'static str,
    /// True if support is planned.
    pub planned: bool,
}

impl RefusedOption {
    #[must_use]
    pub fn state(&self) -> &'static str {
        if self.planned { "not supported yet" } else { "not supported" }
    }
}

impl Unsupported {
    /// All unsupported options.
    #[must_use]
    pub fn rows(&self) -> Vec<RefusedOption> {
        let row = |planned| {
            move |given, option, meaning| RefusedOption { given, option, meaning, planned }
        };
        let (later, never) = (row(true), row(false));
        vec![
            later(self.bitmap.is_some(), "-B", "start from a bitmap"),
            later(self.value_profile, "-r", "value profile"),
            never(self.frida, "-O", "FRIDA"),
            never(self.unicorn, "-U", "unicorn"),
            never(self.wine, "-W", "wine"),
            never(self.nyx, "-X", "Nyx"),
            never(self.nyx_distributed, "-Y", "Nyx, distributed"),
            never(self.coresight, "-A", "CoreSight"),
            never(self.radamsa, "-R", "radamsa"),
            never(self.k, "-k", "unknown to AFL++"),
        ]
    }
}

impl Args {
    /// Parses the words after the program's name.
    pub fn from_words(words: Vec<OsString>) -> Result<Self, Failure> {
        let split = words::split(&words, &valued())?;
        let program = std::iter::once(OsString::from("ffuzz"));
        let words = split.options.iter().flatten().cloned();
        let matches = Self::command().try_get_matches_from(program.chain(words));
        let matches = matches.map_err(usage)?;
        let mut args = Self::from_arg_matches(&matches).map_err(usage)?;
        args.command = split.command;
        args.given = split.options;
        args.mutators = mutators(&matches)?;
        Ok(args)
    }
}

/// The command's options, for its manual page.
pub(in crate::cmd) fn manual() -> clap::Command {
    Args::command().after_help(EXAMPLES)
}

/// The help text, as wide as the terminal (at most 100 columns) or of the given width.
#[must_use]
pub fn help(width: Option<usize>) -> String {
    let command = Args::command();
    let mut command = match width {
        Some(width) => command.term_width(width),
        None => command,
    };
    let options = command.render_help();
    format!("{options}\n{EXAMPLES}\nCommands (ffuzz NAME --help):\n{}", crate::cmd::overview())
}

fn valued() -> Valued {
    let command = Args::command();
    let valued = || command.get_arguments().filter(|arg| arg.get_action().takes_values());
    Valued {
        letters: valued().filter_map(clap::Arg::get_short).collect(),
        names: valued()
            .filter(|arg| !arg.is_require_equals_set())
            .filter_map(|arg| arg.get_long().map(str::to_owned))
            .collect(),
    }
}

/// Assigns options to the mutator before them, by clap's word positions.
fn mutators(matches: &ArgMatches) -> Result<Vec<(OsString, Option<OsString>)>, Failure> {
    let placed = |name| {
        let places = matches.indices_of(name).into_iter().flatten();
        places.zip(matches.get_many::<OsString>(name).into_iter().flatten().cloned())
    };
    let (places, words): (Vec<usize>, Vec<_>) = placed("mutator").unzip();
    let mut found: Vec<_> = words.into_iter().map(|word| (word, None)).collect();
    for (place, options) in placed("mutator_options") {
        let before = places.partition_point(|mutator| *mutator < place);
        let Some((_, given)) = before.checked_sub(1).and_then(|index| found.get_mut(index)) else {
            let remedy = "write it after the --mutator that it is for";
            return Err(Failure::usage("--mutator-options stands before any mutator", remedy));
        };
        *given = Some(options);
    }
    Ok(found)
}

fn usage(error: clap::Error) -> Failure {
    let (cause, similar) = crate::cmd::explain(&error);
    let remedy = "ffuzz --help lists the options; the target's own come after it";
    Failure::usage(cause, similar.unwrap_or_else(|| remedy.to_owned()))
}
