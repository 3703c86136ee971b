//! `ffuzz ci`: fuzzes the harnesses of a repository within a time limit, and reports bugs in the formats of CI
//! services.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use super::exit::{CANNOT, Failure};
use super::fuzz::values;
use super::tool::{replace, say};
use crate::config::env::Environment;
use crate::crashes::forms::{self, Suite};
use crate::fleet::ci::{self, CiError, CiResults, CiSettings};
use crate::harness::check;
use crate::sys::stop::Stop;
use crate::sys::{affinity, file};

/// Exit code for a new bug, the same as libFuzzer's for a failing input.
const NEW_BUGS: u8 = 77;
/// File with the known bugs at the root of a repository.
const KNOWN: &str = ".ffuzz-known";
const LONGEST_LIST: u64 = 16 << 20;
const LONGEST_TIME: u64 = 30 * 24 * 3600;

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-ci",
    about = "Fuzz all harnesses of a repository for a while, and report the bugs that are new",
    after_help = "Known crashes and the corpus are run first; the time is for the search after that, and goes to the \
                  harnesses that find most. A folder stands for all harnesses in it. Seeds and words that OSS-Fuzz keeps \
                  beside a harness are used.\nExit code: 77 if there is a new bug, 1 if a harness does not run, else \
                  0.\n\nExamples:\n  \
                  ffuzz-ci --time 60 ./parse_fuzzer\n  \
                  ffuzz-ci --time 300 --base origin/main --archive state.zip --sarif bugs.sarif out/\n  \
                  ffuzz-ci --time 3600 --archive state.zip --save state.zip out/      the nightly job"
)]
pub(super) struct Args {
    /// Programs with a harness, or folders of them
    #[arg(required = true, value_name = "HARNESS|FOLDER")]
    harnesses: Vec<PathBuf>,
    /// Seconds for the search of all harnesses together
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    time: String,
    /// Leave out harnesses that no change since this revision reaches
    #[arg(long, value_name = "REVISION")]
    base: Option<String>,
    /// Inputs: FOLDER/NAME of each harness, or FOLDER of the only one; can be repeated
    #[arg(long, value_name = "FOLDER")]
    corpus: Vec<PathBuf>,
    /// Begin with the corpora and crashes that an earlier run has saved; its bugs are known
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
    /// Save corpora and crashes for later runs
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// List of known bugs: an id at the start of each line [default: .ffuzz-known at the root of the repository]
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Add new bugs to the list of known ones
    #[arg(long)]
    accept: bool,
    /// Folder of the results; those of an earlier run are replaced
    #[arg(short, long, value_name = "FOLDER", default_value = "ffuzz-ci")]
    output: PathBuf,
    /// Number of cores [default: the available ones]
    #[arg(short, long, value_name = "N")]
    jobs: Option<String>,
    /// Report hangs, too
    #[arg(long)]
    report_hangs: bool,
    /// Write the bugs as SARIF 2.1.0, which GitHub shows
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the results as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the bugs as GitLab's report of code quality
    #[arg(long, value_name = "FILE")]
    code_quality: Option<PathBuf>,
    /// Write a page in Markdown; it is added to $GITHUB_STEP_SUMMARY as well
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

impl From<CiError> for Failure {
    fn from(error: CiError) -> Self {
        Self::of(&error)
    }
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let environment = Environment::read();
    let settings = settings(&args)?;
    let results = ci::run(&settings, &mut |line| say(false, &format!("[*] {line}")))?;
    let suites = results.suites();
    write_forms(&args, &suites, &results, &settings.root, &environment)?;
    print_bugs(&suites, &results)?;
    if args.accept {
        accept(&settings, &results)?;
    }
    Ok(match (results.new_bugs().is_empty(), results.has_failed()) {
        (false, _) => ExitCode::from(NEW_BUGS),
        (true, true) => ExitCode::from(CANNOT),
        (true, false) => ExitCode::SUCCESS,
    })
}

fn settings(args: &Args) -> Result<CiSettings, Failure> {
    let mut harnesses = Vec::new();
    for path in &args.harnesses {
        if !path.is_dir() {
            let remedy = "name a program with a harness, or a folder of them";
            fs::metadata(path).map_err(Failure::cannot_read(path, remedy))?;
            harnesses.push(path.clone());
            continue;
        }
        let found = check::harnesses(path);
        if found.is_empty() {
            let cause = format!("{} has no harness", path.display());
            let remedy = "name the folder where programs with LLVMFuzzerTestOneInput are: ffuzz-oss/out, or $OUT";
            return Err(Failure::new(cause, remedy));
        }
        harnesses.extend(found);
    }
    for folder in &args.corpus {
        if !folder.is_dir() {
            let cause = format!("--corpus {} is no folder", folder.display());
            return Err(Failure::usage(cause, "name a folder of inputs, or of folders of them"));
        }
    }
    let root = forms::source_root();
    let cores = match &args.jobs {
        Some(text) => usize::try_from(values::number("-j", text, 1, 1024)?).unwrap_or(1),
        None => affinity::allowed().len().max(1),
    };
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Ok(CiSettings {
        program: super::fuzz::this_program(),
        folder: absolute(&args.output),
        time: Duration::from_secs(values::number("--time", &args.time, 1, LONGEST_TIME)?),
        cores,
        harnesses,
        corpora: args.corpus.iter().map(absolute).collect(),
        archive: args.archive.clone(),
        save: args.save.clone(),
        base: args.base.clone(),
        known: args.known.clone().unwrap_or_else(|| root.join(KNOWN)),
        root,
        report_hangs: args.report_hangs,
        stop: Stop::on_signals().map_err(|error| Failure::new(error, "try again"))?,
    })
}

fn write_forms(
    args: &Args,
    suites: &[Suite<'_>],
    results: &CiResults,
    root: &Path,
    environment: &Environment,
) -> Result<(), Failure> {
    let findings: Vec<_> = suites.iter().flat_map(|suite| suite.findings.iter().copied()).collect();
    let page = forms::summary(suites, &results.notes, root);
    let write = |file: &Option<PathBuf>, text: &dyn Fn() -> String| match file {
        Some(file) => replace(file, text().as_bytes()),
        None => Ok(()),
    };
    write(&args.sarif, &|| forms::sarif(&findings, root))?;
    write(&args.junit, &|| forms::junit(suites, root))?;
    write(&args.code_quality, &|| forms::code_quality(&findings, root))?;
    write(&args.summary, &|| page.clone())?;
    if let Some(file) = environment.get("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) {
        let path = Path::new(file);
        let added = file::append(path).and_then(|mut file| file.write_all(page.as_bytes()));
        if let Err(error) = added {
            say(false, &format!("[!] Cannot write to {}: {error}", path.display()));
        }
    }
    if environment.flag(&["GITHUB_ACTIONS"]) {
        super::print(&forms::annotations(&findings, root))?;
    }
    Ok(())
}

/// Prints one line per bug, and a summary.
fn print_bugs(suites: &[Suite<'_>], results: &CiResults) -> Result<(), Failure> {
    let mut text = String::new();
    let new = results.new_bugs();
    for finding in suites.iter().flat_map(|suite| &suite.findings) {
        let is_new = new.contains_key(&*finding.bug.id);
        let (kind, bug) = (if is_new { "new" } else { "known" }, finding.bug);
        let title: String =
            bug.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.push_str(&format!("{kind}  {}  {title}  ({})\n", bug.id, finding.harness));
    }
    super::print(&text)?;
    for note in &results.notes {
        say(false, &format!("[*] {note}"));
    }
    let known = suites.iter().map(|suite| suite.findings.len()).sum::<usize>();
    say(false, &format!("[+] {} new bugs, {} known", new.len(), known.saturating_sub(new.len())));
    Ok(())
}

/// Adds the new bugs to the list of known bugs.
fn accept(settings: &CiSettings, results: &CiResults) -> Result<(), Failure> {
    if results.new_bugs().is_empty() {
        return Ok(());
    }
    let path = &settings.known;
    let remedy = "check its permissions, or name another list with --known";
    let before = match file::read_text(path, LONGEST_LIST) {
        Err(error) if file::is_missing(&error) => String::new(),
        text => text.map_err(Failure::cannot_read(path, remedy))?,
    };
    replace(path, results.known_list(&before).as_bytes())
}
