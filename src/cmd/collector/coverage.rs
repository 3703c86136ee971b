//! `--coverage`: sends the lines that a campaign or a coverage file covers to the server.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::{Failure, SourceArgs, read, say};
use crate::cmd::tool::{self, Scratch, TargetArgs, ToolTarget};
use crate::crashes::collector::coverage::SourceCoverage;
use crate::crashes::collector::{self, Settings, SourceFacts};
use crate::disk::{find, inputs};
use crate::report::survey::{Survey, SurveyError};
use crate::sys::remedy::Remedy;

/// Timeout of a run; queue entries were faster in the campaign.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `command` is the target's command line for a folder of inputs; by default the campaign's.
pub(super) fn send(
    program: &str,
    settings: &Settings,
    path: &Path,
    source: &SourceArgs,
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    let root = fs::canonicalize(&source.root).unwrap_or_else(|_| source.root.clone());
    let measure = || measured(program, path, &root, command);
    let coverage = if path.is_dir() { measure()? } else { parsed(path, &root)? };
    let facts = SourceFacts {
        repository: source.repository.clone(),
        revision: source.revision.clone(),
        branch: source.branch.clone(),
        description: source.description.clone(),
    };
    collector::upload(settings, &facts, &coverage)?;
    Ok(ExitCode::SUCCESS)
}

impl From<SurveyError> for Failure {
    fn from(error: SurveyError) -> Self {
        Self::of(&error)
    }
}

/// Parses an lcov or Coveralls file.
fn parsed(path: &Path, root: &Path) -> Result<SourceCoverage, Failure> {
    let bytes = read(path)?;
    SourceCoverage::parse(&String::from_utf8_lossy(&bytes), root).map_err(|error| {
        let cause = format!("{}: {error}", path.display());
        Failure::new(
            cause,
            "give a campaign's folder, an lcov file (llvm-cov export -format=lcov) or a Coveralls file",
        )
    })
}

/// Measures the coverage of a campaign's queue or of any folder of inputs.
fn measured(
    program: &str,
    folder: &Path,
    root: &Path,
    command: &[OsString],
) -> Result<SourceCoverage, Failure> {
    let (inputs, command) = given(folder, command)?;
    let args = TargetArgs::of(command);
    let scratch = Scratch::new("collector", None);
    tool::exit_on_signals(&[&scratch], None);
    let mut target = ToolTarget::new(&args, &scratch, TIMEOUT).start(&tool::environment(false))?;
    let ended = |path: &Path, exit| tool::report(exit, Some(path), false);
    let mut survey = Survey::new(target.info());
    survey.check_lines(Path::new(&args.command[0]))?;
    survey.run(&mut target, &inputs, ended)?;
    tool::print_messages(&mut target, false);
    for error in survey.skipped() {
        say(program, &format!("warning: skipped: {error} ({})", error.remedy()));
    }
    let source = survey.source_below(root)?;
    let files = source.files.iter().map(|file| {
        let lines = file.each_line().map(|(line, run)| (line, run.inputs));
        (file.path.as_str(), lines)
    });
    let coverage = SourceCoverage::of(files, root);
    let (files, (lines, all), inputs) = (coverage.files.len(), coverage.lines(), inputs.len());
    say(program, &format!("{inputs} inputs reach {lines} of {all} lines in {files} files"));
    Ok(coverage)
}

/// The inputs of a campaign's folder or of any folder, and the target's command line.
fn given(folder: &Path, command: &[OsString]) -> Result<(Vec<PathBuf>, Vec<OsString>), Failure> {
    let queues = find::queues(folder).map_err(Failure::cannot_read_output(folder))?;
    let mut inputs = Vec::new();
    for queue in &queues {
        inputs.extend(inputs::list(queue)?);
    }
    if inputs.is_empty() {
        let cause = format!("no inputs in {}", folder.display());
        return Err(Failure::new(cause, "name the folder that was given to the fuzzer's -o"));
    }
    let given = (!command.is_empty()).then(|| command.to_vec());
    let command = given.or_else(|| find::command(&queues)).ok_or_else(|| {
        let cause = "no command line: there is no file cmdline next to the queue";
        Failure::new(cause, "give the target after --, for example: -- ./target @@")
    })?;
    Ok((inputs, command))
}
