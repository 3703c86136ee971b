//! `ffuzz report`: coverage, stuck places and finds of a campaign, as a page or as JSON.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Parser, ValueEnum};
use serde::Serialize;

use super::exit::Failure;
use super::fuzz::args::Args as FuzzArgs;
use super::tool::{self, NativeArgs, Scratch, TargetArgs, ToolTarget, print, say};
use crate::config::env::Environment;
use crate::disk::output::setup::RecordedSetup;
use crate::exec::Hooked;
use crate::report::assemble;
use crate::report::campaign::CampaignFolder;
use crate::report::compare::Differences;
use crate::report::data::{Report, Source, Warning};
use crate::report::forms::html::{ShownFiles, page};
use crate::report::forms::markdown::markdown;
use crate::report::survey::Survey;
use crate::sys::file;

/// Timeout of a queue input, as a multiple of the campaign's; a minimum applies.
const TIMES: u32 = 5;
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a source file that is shown.
const LARGEST_SOURCE: u64 = 16 << 20;
const PAGE: &str = "report.html";

#[derive(Debug, Parser)]
#[command(
    name = "ffuzz-report",
    about = "Show what campaigns have covered, where they are stuck and what they have found",
    after_help = "OUT is the folder that was given to the fuzzer's -o (of ffuzz or afl-fuzz), also \
                  while it runs. Several campaigns with one target are shown together. The inputs are run \
                  once, in the target as it is now.\n\nExamples:\n  \
                  ffuzz-report out && xdg-open report.html\n  \
                  ffuzz-report --json out | jq .totals\n  \
                  ffuzz-report --markdown out >> \"$GITHUB_STEP_SUMMARY\"\n  \
                  ffuzz-report -o week.html monday tuesday -- ./target @@\n  \
                  ffuzz-report --compare before after"
)]
pub(super) struct Args {
    /// File for the report; without it a page is report.html, and other forms go to stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the report as JSON (docs/report.schema.json)
    #[arg(long, group = "form")]
    json: bool,
    /// Print a summary of at most 200 lines in Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Print what only one of two campaigns has reached, by file and function
    #[arg(long)]
    compare: bool,
    /// Files that the page shows line by line; without it all, of large programs those that are reached
    #[arg(long, value_name = "FILES")]
    source: Option<SourceChoice>,
    /// Run the inputs in this build of the target as well, and take the source lines from it: a build with -O0 has
    /// them exactly
    #[arg(long, value_name = "PROGRAM")]
    lines: Option<PathBuf>,
    /// Run nothing: show only what the folders say
    #[arg(long, conflicts_with_all = ["compare", "lines"])]
    no_run: bool,
    /// Timeout of a run in ms; without it five times that of the campaign
    #[arg(short, value_name = "MSEC")]
    timeout: Option<String>,
    /// Folders of campaigns
    #[arg(required = true, value_name = "OUT")]
    folders: Vec<PathBuf>,
    /// The target and its arguments; without it those that the fuzzer noted
    #[arg(last = true, value_name = "TARGET")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum SourceChoice {
    All,
    Reached,
    None,
}

pub(super) fn run(program: &str, words: Vec<OsString>) -> Result<ExitCode, Failure> {
    let Some(args) = super::parse::<Args>(program, words)? else { return Ok(ExitCode::SUCCESS) };
    if args.compare && args.folders.len() != 2 {
        let cause = format!("--compare takes two folders, and {} are given", args.folders.len());
        return Err(Failure::new(cause, "name two campaigns with one target"));
    }
    if args.compare && args.markdown {
        return Err(Failure::new("--compare prints text or --json", "omit --markdown"));
    }
    let campaigns = args.folders.iter().map(|folder| campaign(folder));
    let campaigns: Vec<CampaignFolder> = campaigns.collect::<Result<_, _>>()?;
    match args.compare {
        true => compare(&args, &campaigns),
        false => report(program, &args, &campaigns),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the folder of a fuzzer.
pub(super) fn campaign(folder: &Path) -> Result<CampaignFolder, Failure> {
    let remedy = "name the folder that was given to the fuzzer's -o";
    let campaign = CampaignFolder::read(folder).map_err(Failure::cannot_read_output(folder))?;
    match campaign.instances.is_empty() {
        true => Err(Failure::new(format!("no fuzzer has used {}", folder.display()), remedy)),
        false => Ok(campaign),
    }
}

fn report(program: &str, args: &Args, campaigns: &[CampaignFolder]) -> Result<(), Failure> {
    let mut report = assemble::of_folders(campaigns, SystemTime::now());
    if !args.no_run
        && let Err(failure) = survey(args, campaigns, &mut report)
    {
        say(false, &format!("{program}: warning: {} ({})", failure.cause, failure.remedy));
        let text = format!("nothing was run: {} ({})", failure.cause, failure.remedy);
        report.warnings.push(Warning { code: "no-runs", text });
    }
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if args.json || args.markdown {
        let text = if args.json { json(&report)? } else { markdown(&report) };
        return print(text.as_bytes(), output);
    }
    let shown = match args.source {
        None => ShownFiles::Fitting,
        Some(SourceChoice::All) => ShownFiles::All,
        Some(SourceChoice::Reached) => ShownFiles::Reached,
        Some(SourceChoice::None) => ShownFiles::None,
    };
    let text = page(&report, shown, source_text);
    if args.output.as_deref() == Some(Path::new("-")) {
        return print(text.as_bytes(), None);
    }
    let path = output.unwrap_or(Path::new(PAGE));
    tool::replace(path, text.as_bytes())?;
    say(false, &format!("{program}: {}", report.verdict));
    print(format!("{}\n", path.display()).as_bytes(), None)
}

/// Content of a source file as text; None if it is missing or not text.
fn source_text(path: &str) -> Option<String> {
    let bytes = file::read_whole(Path::new(path), LARGEST_SOURCE).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n")
        .map_err(|error| Failure::new(format!("cannot print JSON: {error}"), "omit --json"))
}

/// Runs the queues and adds the results to the report.
fn survey(args: &Args, campaigns: &[CampaignFolder], report: &mut Report) -> Result<(), Failure> {
    let (finds, paths) = assemble::order(campaigns);
    let scratch = Scratch::new("report", None);
    tool::exit_on_signals(&[&scratch], None);
    let started = Started::of(campaigns, &args.command, args.timeout.as_deref())?;
    let mut target = started.start(&scratch, None)?;
    let mut survey = Survey::new(target.info());
    survey.run(&mut target, &paths, |_, _| {})?;
    assemble::add_survey(report, &mut survey, &mut target, campaigns, &finds)?;
    tool::print_messages(&mut target, false);
    drop(target);
    if let Some(program) = &args.lines {
        let source = lines_of(&started, &scratch, &paths, Some(program))?;
        assemble::use_source(report, source);
    }
    Ok(())
}

/// The source lines, from the target or another build of it.
fn lines_of(
    started: &Started,
    scratch: &Scratch,
    paths: &[PathBuf],
    program: Option<&Path>,
) -> Result<Source, Failure> {
    let mut target = started.start(scratch, program)?;
    let mut survey = Survey::new(target.info());
    survey.check_lines(program.unwrap_or(Path::new(&started.target.command[0])))?;
    survey.run(&mut target, paths, |_, _| {})?;
    Ok(survey.source_below(Path::new(""))?)
}

fn compare(args: &Args, campaigns: &[CampaignFolder]) -> Result<(), Failure> {
    let scratch = Scratch::new("report", None);
    tool::exit_on_signals(&[&scratch], None);
    let started = Started::of(campaigns, &args.command, args.timeout.as_deref())?;
    let side = |campaign: &CampaignFolder| {
        let paths: Vec<PathBuf> = campaign.queue().iter().map(|find| find.path.clone()).collect();
        lines_of(&started, &scratch, &paths, args.lines.as_deref())
    };
    let (a, b) = (side(&campaigns[0])?, side(&campaigns[1])?);
    let names = [0, 1].map(|number: usize| campaigns[number].root.display().to_string());
    let differences = Differences::new(names, [&a, &b]);
    let text = if args.json { json(&differences)? } else { differences.text() };
    print(text.as_bytes(), args.output.as_deref().filter(|path| *path != Path::new("-")))
}

/// Command and settings with which a campaign has run its target.
pub(super) struct Started {
    target: TargetArgs,
    native: NativeArgs,
    file: Option<PathBuf>,
    timeout: Duration,
    environment: Environment,
}

impl Started {
    /// `command` replaces the recorded one.
    pub(super) fn of(
        campaigns: &[CampaignFolder],
        command: &[OsString],
        timeout: Option<&str>,
    ) -> Result<Self, Failure> {
        let noted = || campaigns.iter().find_map(CampaignFolder::command);
        let given = (!command.is_empty()).then(|| command.to_vec());
        let command = given.or_else(noted).ok_or_else(|| {
            let cause = "no command line: there is no file cmdline next to the queue";
            Failure::new(cause, "give the target after --, for example: -- ./target @@")
        })?;
        let instances = || campaigns.iter().flat_map(|campaign| &campaign.instances);
        let setup = instances().find_map(|instance| instance.setup.clone());
        let RecordedSetup { variables, words } = setup.unwrap_or_default();
        // A command line that cannot be parsed belongs to another fuzzer.
        let used = FuzzArgs::from_words(words.into_iter().skip(1).collect()).unwrap_or_default();
        let mut target = TargetArgs::of(command);
        target.timeout = timeout.map(str::to_owned);
        (target.memory, target.net, target.mutator_sees) =
            (used.memory, used.net, used.mutator_sees);
        let native = NativeArgs {
            native: used.native,
            breakpoints: used.breakpoints,
            qemu: used.qemu,
            modules: used.modules,
            guard_heap: used.guard_heap,
        };
        let usual = instances().map(|instance| instance.instance.number("exec_timeout")).max();
        let usual = TIMES * Duration::from_millis(usual.unwrap_or(0));
        let timeout = target.timeout(1, usual.max(LEAST_TIMEOUT))?;
        let environment = tool::environment(false).with_defaults(variables);
        Ok(Self { target, native, file: used.file.map(PathBuf::from), timeout, environment })
    }

    /// `program` is another build of the target.
    pub(super) fn start(
        &self,
        scratch: &Scratch,
        program: Option<&Path>,
    ) -> Result<Hooked, Failure> {
        let mut args = self.target.clone();
        if let Some(program) = program {
            args.command[0] = program.as_os_str().to_owned();
        }
        let mut wanted = ToolTarget::new(&args, scratch, self.timeout);
        wanted.native = Some(&self.native);
        wanted.domains = true;
        wanted.file = self.file.as_deref();
        wanted.start(&self.environment)
    }
}

/// The page of `ffuzz-plot`, without any run.
pub(super) fn course(instance: &Path) -> Result<String, Failure> {
    let campaigns = [campaign(instance)?];
    let report = assemble::of_folders(&campaigns, SystemTime::now());
    if campaigns[0].instances.iter().all(|it| it.rows.len() < 2) {
        let file = instance.join("plot_data");
        let cause = match fs::metadata(&file) {
            Ok(_) => format!("{} has too few lines for a chart", file.display()),
            Err(error) => format!("cannot read {}: {error}", file.display()),
        };
        return Err(Failure::new(cause, "let the fuzzer run longer"));
    }
    Ok(page(&report, ShownFiles::None, |_| None))
}
