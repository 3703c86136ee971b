//! `ffuzz-collector`: FuzzManager's client for scripts, with the option names, outputs and exit codes of its
//! `collector`, and additional options.

mod actions;
mod coverage;
mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Parser};

use super::exit::{Failure, USAGE};
use super::{tool, triage};
use crate::config::env::Environment;
use crate::crashes::collector::{CollectorError, IniValues, Settings, Target, Testcase};
use crate::crashes::crash::{self, Output};
use crate::sys::file;

/// Exit code: `--search` found no match, or `--generalize` cannot create one.
const NO_MATCH: u8 = 3;
/// Maximum number of bytes read from a file; a report is never longer.
const MAX_FILE: u64 = 256 << 20;

const EXAMPLES: &str = "\
Server and token come from ~/.fuzzmanagerconf (or the file in FM_CONFIG_PATH):
  [Main]
  serverhost = crashes.example.org
  serverport = 443
  serverauthtokenfile = /etc/fuzzmanager.token
  sigdir = /var/lib/signatures
  tool = ffuzz

Examples:
  ffuzz-collector --show --stderr report.txt
  ffuzz-collector --refresh
  ffuzz-collector --search --stderr report.txt --binary ./target
  ffuzz-collector --submit --stderr report.txt --testcase crashes/id:000000 --binary ./target
  ffuzz-collector --autosubmit --testcase input ./target -v input
  ffuzz-collector --coverage out --repository demo --revision 83038f74 --root /src/demo

Exit codes: 0 good, 1 failed, 2 wrong usage, 3 no signature matches (--search, --generalize)";

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-collector",
    about = "Exchange signatures, crashes and coverage with a FuzzManager server",
    after_help = EXAMPLES,
    group = ArgGroup::new("action").required(true)
)]
pub(super) struct Args {
    /// Download the server's signatures into --sigdir
    #[arg(long, group = "action")]
    refresh: bool,
    /// Print the signature that matches the crash
    #[arg(long, group = "action")]
    search: bool,
    /// Print what the report of the crash contains: kind, short text, address, frames
    #[arg(long, group = "action")]
    show: bool,
    /// Write a signature of the crash into --sigdir
    #[arg(long, group = "action")]
    generate: bool,
    /// Print this signature, changed as little as possible so that it matches the crash, too
    #[arg(long, value_name = "FILE", group = "action")]
    generalize: Option<PathBuf>,
    /// Send the crash to the server
    #[arg(long, group = "action")]
    submit: bool,
    /// Run the command line after the options, and send its crash to the server
    #[arg(long, group = "action", requires = "command")]
    autosubmit: bool,
    /// Write the input of this crash here, as ID.EXT
    #[arg(long, value_name = "ID", group = "action")]
    download: Option<u64>,
    /// Write the inputs of all crashes of this bucket here
    #[arg(long, value_name = "BUCKET", group = "action")]
    download_all: Option<u64>,
    /// Print the name under which this machine reports
    #[arg(long, group = "action")]
    get_clientid: bool,
    /// Send the reports in a campaign's spool, also those refused before
    #[arg(long, value_name = "SPOOL", group = "action")]
    deliver: Option<PathBuf>,
    /// Send source coverage: of a campaign's folder (or any folder of inputs), or of an lcov or Coveralls file
    #[arg(long, value_name = "PATH", group = "action")]
    coverage: Option<PathBuf>,
    #[command(flatten)]
    crash: CrashArgs,
    #[command(flatten)]
    about: AboutArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    source: SourceArgs,
    /// For --autosubmit: the program and its arguments; a --testcase that is not among them is its
    /// standard input. For --coverage: the target, with @@ for the input's file [default: what the
    /// campaign noted in cmdline]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The crash.
#[derive(Debug, clap::Args)]
struct CrashArgs {
    /// What the program wrote to stdout
    #[arg(long, value_name = "FILE")]
    stdout: Option<PathBuf>,
    /// What the program wrote to stderr
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// Output of a debugger or sanitizer, if separate
    #[arg(long, value_name = "FILE")]
    crashdata: Option<PathBuf>,
    /// The input
    #[arg(long, value_name = "FILE")]
    testcase: Option<PathBuf>,
    /// Quality of the input, 0 is the best
    #[arg(long, value_name = "N", default_value_t = 0, alias = "testcase-quality")]
    testcasequality: i64,
    /// Its size, if not the file's
    #[arg(long, value_name = "N")]
    testcasesize: Option<u64>,
    /// Include the crash address in the signature
    #[arg(long)]
    forcecrashaddr: bool,
    /// Include the crash instruction in the signature
    #[arg(long)]
    forcecrashinst: bool,
    /// Number of frames in the signature
    #[arg(long, value_name = "N", default_value_t = 8)]
    numframes: usize,
}

/// The program that crashed.
#[derive(Debug, clap::Args)]
struct AboutArgs {
    /// Program; BINARY.fuzzmanagerconf is read
    #[arg(long)]
    binary: Option<PathBuf>,
    #[arg(long)]
    product: Option<String>,
    #[arg(long, value_name = "VERSION")]
    productversion: Option<String>,
    /// x86, x86-64, arm, …
    #[arg(long)]
    platform: Option<String>,
    /// linux, windows, macosx, …
    #[arg(long)]
    os: Option<String>,
    /// Arguments of the program; a backslash before a letter is removed
    #[arg(long, value_name = "ARG", num_args = 1.., allow_hyphen_values = false)]
    args: Vec<String>,
    /// Environment of the program
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = pair)]
    env: Vec<(String, String)>,
    /// Metadata of the crash
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = pair)]
    metadata: Vec<(String, String)>,
}

/// What the configuration file may hold as well.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// Folder of signatures
    #[arg(long, value_name = "DIR")]
    sigdir: Option<String>,
    #[arg(long, value_name = "HOST")]
    serverhost: Option<String>,
    #[arg(long, value_name = "PORT")]
    serverport: Option<String>,
    /// https (the default) or http
    #[arg(long, value_name = "PROTO")]
    serverproto: Option<String>,
    /// File with the token of the account
    #[arg(long, value_name = "FILE")]
    serverauthtokenfile: Option<String>,
    /// Certificate of your own authority (PEM)
    #[arg(long, value_name = "FILE")]
    servercafile: Option<String>,
    /// Name under which this machine reports
    #[arg(long, value_name = "ID")]
    clientid: Option<String>,
    /// Name of the fuzzer
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
}

/// For --coverage.
#[derive(Debug, clap::Args)]
struct SourceArgs {
    /// Name of the repository at the server
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Commit that was measured, unless the file names it
    #[arg(long)]
    revision: Option<String>,
    #[arg(long)]
    branch: Option<String>,
    /// A line of description
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Folder of the sources: paths below it become relative
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let parsed = super::parse::<Args>(program, words);
    let parsed = parsed.map_err(|failure| Failure { code: USAGE, ..failure });
    let Some(args) = parsed? else { return Ok(ExitCode::SUCCESS) };
    let settings = args.server.settings()?;
    warn(program, &settings.warnings);
    if args.refresh {
        return server::refresh(program, &settings);
    }
    if args.get_clientid {
        return super::print(&format!("{}\n", settings.client()));
    }
    if let Some(number) = args.download {
        return server::download(&settings, number);
    }
    if let Some(bucket) = args.download_all {
        return server::download_all(&settings, bucket);
    }
    if let Some(spool) = &args.deliver {
        return server::deliver(program, &settings, spool);
    }
    if let Some(file) = &args.coverage {
        return coverage::send(program, &settings, file, &args.source, &args.command);
    }
    if args.show {
        return actions::show(&args);
    }
    let target = args.about.target(args.command.first())?;
    warn(program, &target.warnings);
    let output = if args.autosubmit { rerun(program, &args)? } else { args.crash.output()? };
    let crash = actions::GivenCrash::read(&args, target, output)?;
    if args.search {
        return crash.search(program, &settings);
    }
    if let Some(path) = &args.generalize {
        return crash.generalize(path);
    }
    if args.generate {
        return crash.generate(&settings);
    }
    crash.submit(program, &settings)
}

impl ServerArgs {
    fn settings(&self) -> Result<Settings, Failure> {
        let given = [
            ("sigdir", &self.sigdir),
            ("serverhost", &self.serverhost),
            ("serverport", &self.serverport),
            ("serverproto", &self.serverproto),
            ("serverauthtokenfile", &self.serverauthtokenfile),
            ("servercafile", &self.servercafile),
            ("clientid", &self.clientid),
            ("tool", &self.tool),
        ];
        Ok(Settings::read(&Environment::read(), given_of(&given))?)
    }
}

impl AboutArgs {
    /// The target of `--binary`, or of the program that is run.
    fn target(&self, run: Option<&OsString>) -> Result<Target, Failure> {
        let binary = self.binary.as_deref().or(run.map(Path::new));
        let given = [
            ("product", &self.product),
            ("product_version", &self.productversion),
            ("platform", &self.platform),
            ("os", &self.os),
        ];
        Ok(Target::read(binary, given_of(&given))?)
    }
}

impl Args {
    /// Arguments of the program. Removes backslashes that protect arguments from the caller's shell, as the reference
    /// does.
    fn words(&self) -> Vec<String> {
        let given = &self.about.args;
        if !given.is_empty() || self.command.is_empty() {
            return given.iter().map(|word| word.replace('\\', "")).collect();
        }
        let mut words = &self.command[1..];
        // By convention, a final input argument is omitted.
        if words.last().is_some_and(|word| self.is_input(word)) {
            words = &words[..words.len() - 1];
        }
        let shown = |word: &OsString| match self.is_input(word) {
            true => "TESTFILE".to_owned(),
            false => word.to_string_lossy().into_owned(),
        };
        words.iter().map(shown).collect()
    }

    fn is_input(&self, word: &OsString) -> bool {
        self.crash.testcase.as_ref().is_some_and(|path| path == word)
    }
}

/// Runs the command and returns its output. If its arguments do not name the input, the input is its standard input.
fn rerun(program: &str, args: &Args) -> Result<Output, Failure> {
    let stdin = match &args.crash.testcase {
        Some(path) if !args.command.iter().any(|word| args.is_input(word)) => read(path)?,
        _ => Vec::new(),
    };
    triage::once(program, args.command.clone(), &stdin)?.ok_or_else(|| {
        let name = args.command[0].to_string_lossy();
        Failure::new(
            format!("{name} does not crash"),
            "give the command line with which it does, for example: --autosubmit ./target input",
        )
    })
}

impl CrashArgs {
    fn output(&self) -> Result<Output, Failure> {
        let text = |path: &Option<PathBuf>| match path {
            Some(path) => read(path).map(|bytes| crash::text(&bytes)),
            None => Ok(String::new()),
        };
        Ok(Output {
            stdout: text(&self.stdout)?,
            stderr: text(&self.stderr)?,
            crash_data: text(&self.crashdata)?,
        })
    }

    fn testcase(&self) -> Result<Option<Testcase>, Failure> {
        let Some(path) = &self.testcase else { return Ok(None) };
        Ok(Some(Testcase {
            bytes: read(path)?,
            extension: Testcase::extension_of(path),
            quality: self.testcasequality,
            size: self.testcasesize,
        }))
    }
}

impl From<CollectorError> for Failure {
    /// Missing items on the command line or in a file are usage errors, as in the reference.
    fn from(error: CollectorError) -> Self {
        let failure = Failure::of(&error);
        match error {
            CollectorError::Missing { .. } | CollectorError::Invalid { .. } => {
                Failure { code: USAGE, ..failure }
            }
            _ => failure,
        }
    }
}

fn given_of(pairs: &[(&str, &Option<String>)]) -> IniValues {
    let given = pairs.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    given.map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let remedy = "check the name and the permissions";
    file::read_whole(path, MAX_FILE).map_err(Failure::cannot_read(path, remedy))
}

fn say(program: &str, text: &str) {
    tool::say(false, &format!("{program}: {text}"));
}

fn warn(program: &str, warnings: &[String]) {
    for warning in warnings {
        say(program, &format!("warning: {warning}"));
    }
}
