//! Bugs in the forms of services that show them beside the source: SARIF, JUnit, GitLab's code quality, Markdown,
//! annotations of GitHub. Nothing is run, and nothing but a line of a source is read.

mod annotations;
mod code_quality;
mod junit;
mod sarif;
mod summary;

use std::path::{Component, Path, PathBuf};

use crate::triage::FOLDER;
use crate::triage::report::{Bug, TriageReport};

pub use annotations::annotations;
pub use code_quality::code_quality;
pub use junit::junit;
pub use sarif::sarif;
pub use summary::summary;

/// Folders that stand at the root of a source tree.
const MARKS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

const HARNESS: &str = "LLVMFuzzerTestOneInput";

/// Whether somebody knows a bug.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Novelty {
    New,
    /// It is in the list of known bugs, or an earlier run has found it.
    Known,
}

impl Novelty {
    fn in_sarif(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Known => "unchanged",
        }
    }
}

/// A bug of a harness.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'a> {
    pub bug: &'a Bug,
    /// Name of the harness.
    pub harness: &'a str,
    /// Its file.
    pub program: &'a str,
    /// The folder that has the one for triage.
    pub output: &'a Path,
    /// None where nobody asks.
    pub novelty: Option<Novelty>,
}

impl Finding<'_> {
    /// The bug's own folder: its input, its report, `reproduce.sh`.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.output.join(FOLDER).join(&self.bug.id)
    }

    fn is_new(&self) -> bool {
        self.novelty == Some(Novelty::New)
    }
}

/// How a harness fared.
#[derive(Debug)]
pub struct Suite<'a> {
    pub harness: &'a str,
    pub outcome: SuiteOutcome<'a>,
    pub findings: Vec<Finding<'a>>,
    pub seconds: f64,
    pub execs: u64,
    /// Inputs of the corpus before the search, and those that the search has found.
    pub inputs: u64,
    pub found: u64,
    /// Edges reached now, and by the corpus of the last archive.
    pub edges: u64,
    pub edges_before: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SuiteOutcome<'a> {
    /// Its corpus was run, and it was fuzzed.
    Done,
    /// With the reason.
    LeftOut(&'a str),
    /// It does not run, with the cause.
    Failed(&'a str),
}

/// The bugs of one report, of which nobody asks whether they are new.
#[must_use]
pub fn of_report<'a>(report: &'a TriageReport, output: &'a Path) -> Vec<Finding<'a>> {
    let program = report.command.first().map_or("target", String::as_str);
    let finding = |bug| Finding { bug, harness: "", program, output, novelty: None };
    report.bugs.iter().map(finding).collect()
}

/// The root of the source tree around the working folder; the working folder if it is in none.
#[must_use]
pub fn source_root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    here.ancestors().find(is_root).map(Path::to_owned).unwrap_or(here)
}

/// File and line of a bug. One without a place in the source is shown at the program: services refuse a result without
/// one.
fn place<'a>(bug: &'a Bug, program: &'a str) -> (&'a str, u32) {
    let place = bug.place.as_deref().and_then(|place| place.rsplit_once(':'));
    let place = place.and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
    place.filter(|(_, line)| *line > 0).unwrap_or((program, 1))
}

/// The frames of a bug down to the harness; what calls that is the same for all.
fn own_frames(bug: &Bug) -> &[String] {
    let is_harness = |frame: &String| frame.starts_with(HARNESS);
    let end = bug.frames.iter().position(is_harness).map_or(bug.frames.len(), |last| last + 1);
    &bug.frames[..end]
}

/// The file of a bug, relative to the root of the source if it is below that.
fn shown_file(file: &str, root: &Path) -> String {
    below(Path::new(file), root).map_or_else(|| file.to_owned(), |path| path.display().to_string())
}

/// The path as it is below the root. What was built somewhere else is found by the end of its path.
fn below(file: &Path, root: &Path) -> Option<PathBuf> {
    if let Ok(path) = file.strip_prefix(root) {
        return Some(path.to_owned());
    }
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<Component<'_>> = file.components().collect();
    let plain = parts.iter().rposition(|part| !named(part)).map_or(0, |last| last + 1);
    let ends = (plain..parts.len()).map(|first| parts[first..].iter().collect::<PathBuf>());
    let found = ends.clone().find(|path| root.join(path).is_file());
    // A compiler's relative path is one from the root, most often.
    found.or_else(|| ends.clone().next().filter(|_| file.is_relative()))
}

#[cfg(test)]
mod example;
