//! Bug reports for services that show them beside the source: SARIF, JUnit, GitLab's code quality, Markdown, GitHub
//! annotations. Runs nothing; of other files it reads only source lines.

mod annotations;
mod code_quality;
mod junit;
mod sarif;
mod summary;

use std::path::{Component, Path, PathBuf};

use crate::triage::FOLDER;
use crate::triage::report::{TriageReport, TriagedBug};

pub use annotations::annotations;
pub use code_quality::code_quality;
pub use junit::junit;
pub use sarif::sarif;
pub use summary::summary;

/// Folders found at the root of a source tree.
const MARKS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

const HARNESS: &str = "LLVMFuzzerTestOneInput";

/// Novelty of a bug.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BugNovelty {
    New,
    /// In the list of known bugs, or found by an earlier run.
    Known,
}

impl BugNovelty {
    fn in_sarif(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Known => "unchanged",
        }
    }
}

/// A bug of a harness.
#[derive(Clone, Copy, Debug)]
pub struct HarnessBug<'a> {
    pub bug: &'a TriagedBug,
    /// Name of the harness.
    pub harness: &'a str,
    /// File of the harness.
    pub program: &'a str,
    /// Output folder, which contains the triage folder.
    pub output: &'a Path,
    /// None if it does not matter.
    pub novelty: Option<BugNovelty>,
}

impl HarnessBug<'_> {
    /// Folder of the bug: its input, its report, `reproduce.sh`.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.output.join(FOLDER).join(&self.bug.id)
    }

    fn is_new(&self) -> bool {
        self.novelty == Some(BugNovelty::New)
    }
}

/// Results of a harness.
#[derive(Debug)]
pub struct Suite<'a> {
    pub harness: &'a str,
    pub outcome: SuiteOutcome<'a>,
    pub findings: Vec<HarnessBug<'a>>,
    pub seconds: f64,
    pub execs: u64,
    /// Number of inputs in the corpus before the search, and of those found by it.
    pub inputs: u64,
    pub found: u64,
    /// Number of edges reached now, and by the corpus of the last archive.
    pub edges: u64,
    pub edges_before: Option<u64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SuiteOutcome<'a> {
    /// Its corpus was run, then it was fuzzed.
    Done,
    /// Skipped, with the reason.
    LeftOut(&'a str),
    /// Cannot be run, with the cause.
    Failed(&'a str),
}

/// Bugs of one report, without their novelty.
#[must_use]
pub fn of_report<'a>(report: &'a TriageReport, output: &'a Path) -> Vec<HarnessBug<'a>> {
    let program = report.command.first().map_or("target", String::as_str);
    let finding = |bug| HarnessBug { bug, harness: "", program, output, novelty: None };
    report.bugs.iter().map(finding).collect()
}

/// Root of the source tree around the working folder; the working folder if there is none.
#[must_use]
pub fn source_root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    here.ancestors().find(is_root).map(Path::to_owned).unwrap_or(here)
}

/// File and line of a bug; the program if the place is unknown, because services refuse a result without one.
fn place<'a>(bug: &'a TriagedBug, program: &'a str) -> (&'a str, u32) {
    let place = bug.place.as_deref().and_then(|place| place.rsplit_once(':'));
    let place = place.and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
    place.filter(|(_, line)| *line > 0).unwrap_or((program, 1))
}

/// Frames of a bug down to the harness, whose callers are the same for all.
fn own_frames(bug: &TriagedBug) -> &[String] {
    let is_harness = |frame: &String| frame.starts_with(HARNESS);
    let end = bug.frames.iter().position(is_harness).map_or(bug.frames.len(), |last| last + 1);
    &bug.frames[..end]
}

/// File of a bug, relative to the root of the source if it is below it.
fn shown_file(file: &str, root: &Path) -> String {
    below(Path::new(file), root).map_or_else(|| file.to_owned(), |path| path.display().to_string())
}

/// Path below the root. A file built elsewhere is found by the end of its path.
fn below(file: &Path, root: &Path) -> Option<PathBuf> {
    if let Ok(path) = file.strip_prefix(root) {
        return Some(path.to_owned());
    }
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<Component<'_>> = file.components().collect();
    let plain = parts.iter().rposition(|part| !named(part)).map_or(0, |last| last + 1);
    let ends = (plain..parts.len()).map(|first| parts[first..].iter().collect::<PathBuf>());
    let found = ends.clone().find(|path| root.join(path).is_file());
    // A compiler's relative path mostly starts at the root.
    found.or_else(|| ends.clone().next().filter(|_| file.is_relative()))
}

#[cfg(test)]
mod example;
