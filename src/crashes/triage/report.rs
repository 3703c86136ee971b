//! `triage/report.json`: all crashes and bugs. Written whole or not at all, read by users, by scripts, and by the next
//! triage, which does not repeat its runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use ffuzz_disk::output::{OutputError, replace_for_good};

/// Version of the format. Readers of this version accept later additions.
pub const VERSION: u32 = 1;
pub const NAME: &str = "report.json";

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TriageReport {
    pub version: u32,
    /// The program that wrote it.
    pub tool: String,
    /// The target's command line; the input's file is `@@`.
    pub command: Vec<String>,
    /// The program of `-w`.
    pub sanitizer_build: Option<String>,
    /// Changes with the programs and their options: results with another value are not used.
    pub fingerprint: String,
    /// Runs of each file.
    pub runs: u32,
    pub bugs: Vec<TriagedBug>,
    pub crashes: Vec<CrashFile>,
    /// Maps the hash of a stack of addresses to the bug.
    pub stacks: BTreeMap<String, String>,
}

/// A group of equal crashes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TriagedBug {
    /// Name of its folder.
    pub id: String,
    /// One line: the message and the innermost function.
    pub title: String,
    /// Class in a few words, for tables.
    pub class: String,
    /// Source of the report: `asan`, `gdb`, ….
    pub kind: String,
    pub signal: String,
    /// True if the target crashes but the program of `-w` does not.
    pub only_without_sanitizer: bool,
    /// `FILE:LINE` of the innermost function that is not a library's.
    pub place: Option<String>,
    pub stack_hash: String,
    /// Signature in FuzzManager's form.
    pub signature: Option<serde_json::Value>,
    /// The crash's own stack.
    pub frames: Vec<String>,
    /// Further stacks of a sanitizer's report, in its order: where the block was freed, allocated, what the other
    /// thread did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_stacks: Vec<Vec<String>>,
    pub address: Option<String>,
    pub files: u32,
    /// Totals over all its files.
    pub runs: u32,
    pub crashes: u32,
    /// Best of its files: fewest inputs before it, then the smallest.
    pub input: String,
    pub input_size: u64,
    pub input_hash: String,
    /// Hash of the file that `minimized` was made from (None: not finished), and the size of `minimized` in bytes.
    pub minimized_from: Option<String>,
    pub minimized_size: Option<u64>,
    /// Number of inputs that the process needs before this one.
    #[serde(default)]
    pub before: u32,
    /// Value of `before` at the minimization.
    #[serde(default)]
    pub minimized_before: u32,
    /// True if it was handed over for the crash server, by ffuzz or by another tool.
    #[serde(default)]
    pub reported: bool,
}

impl TriagedBug {
    /// True if there is a smaller file than the minimized one, or minimization was not finished.
    #[must_use]
    pub(crate) fn has_smaller_input(&self) -> bool {
        self.minimized_from.as_ref().is_none_or(|from| {
            *from != self.input_hash
                && (self.minimized_before != self.before
                    || self.minimized_size.is_none_or(|size| self.input_size < size))
        })
    }
}

/// A crash file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CrashFile {
    pub path: String,
    pub hash: String,
    pub size: u64,
    pub state: FileOutcome,
    pub runs: u32,
    pub crashes: u32,
    /// Time limit of a run, milliseconds.
    #[serde(default)]
    pub limit_ms: u64,
    /// Number of inputs that a process needs before it crashes on this one.
    #[serde(default)]
    pub before: u32,
    /// See [`TriageReport::stacks`].
    pub stack: Option<String>,
    pub bug: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOutcome {
    Crashes,
    #[default]
    NoCrash,
    TimesOut,
    Unreadable,
}

/// Formats a hash as in the file.
#[must_use]
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

impl TriageReport {
    /// Loads the report of an earlier run; None if there is none of this version.
    #[must_use]
    pub fn load(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(NAME)).ok()?;
        let report: Self = serde_json::from_slice(&text).ok()?;
        (report.version == VERSION).then_some(report)
    }

    /// Updates the totals of all bugs and writes the file.
    pub fn save(&mut self, folder: &Path) -> Result<(), OutputError> {
        self.count();
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        replace_for_good(folder, &folder.join(NAME), &text)
    }

    /// Updates files, runs, crashes and best file of each bug.
    pub fn count(&mut self) {
        let places: BTreeMap<String, usize> =
            self.bugs.iter().enumerate().map(|(index, bug)| (bug.id.clone(), index)).collect();
        for bug in &mut self.bugs {
            (bug.files, bug.runs, bug.crashes) = (0, 0, 0);
        }
        for crash in &mut self.crashes {
            crash.bug = crash.stack.as_ref().and_then(|stack| self.stacks.get(stack)).cloned();
            let Some(index) = crash.bug.as_ref().and_then(|bug| places.get(bug)) else { continue };
            let bug = &mut self.bugs[*index];
            bug.files += 1;
            bug.runs += crash.runs;
            bug.crashes += crash.crashes;
            // A file that crashes alone is better, whatever its size.
            let rank = (crash.before, crash.size, &crash.path);
            if bug.input.is_empty() || rank < (bug.before, bug.input_size, &bug.input) {
                bug.before = crash.before;
                bug.input.clone_from(&crash.path);
                bug.input_hash.clone_from(&crash.hash);
                bug.input_size = crash.size;
            }
        }
    }

    /// Paths of a bug's files.
    #[must_use]
    pub fn files(&self, bug: &str) -> Vec<String> {
        let own = self.crashes.iter().filter(|crash| crash.bug.as_deref() == Some(bug));
        own.map(|crash| crash.path.clone()).collect()
    }

    /// Number of files with this outcome.
    #[must_use]
    pub fn number(&self, state: FileOutcome) -> usize {
        self.crashes.iter().filter(|crash| crash.state == state).count()
    }
}

/// Number of bugs in a report, read quickly; None without a report.
#[must_use]
pub(crate) fn number_of_bugs(folder: &Path) -> Option<u64> {
    #[derive(Deserialize)]
    struct BugCount {
        bugs: Vec<serde::de::IgnoredAny>,
    }
    let text = fs::read(folder.join(NAME)).ok()?;
    serde_json::from_slice::<BugCount>(&text).ok().map(|report| report.bugs.len() as u64)
}

/// Number of bugs not yet handed over for the crash server.
#[must_use]
pub(crate) fn unreported_bugs(folder: &Path) -> u64 {
    #[derive(Deserialize)]
    struct HandedBugs {
        bugs: Vec<Handed>,
    }
    #[derive(Deserialize)]
    struct Handed {
        #[serde(default)]
        reported: bool,
    }
    let text = fs::read(folder.join(NAME)).unwrap_or_default();
    let bugs = serde_json::from_slice::<HandedBugs>(&text).map(|report| report.bugs);
    bugs.unwrap_or_default().iter().filter(|bug| !bug.reported).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(path: &str, size: u64, stack: &str) -> CrashFile {
        let (path, stack) = (path.to_owned(), Some(stack.to_owned()));
        CrashFile { path, size, stack, runs: 3, crashes: 2, ..CrashFile::default() }
    }

    #[test]
    fn an_input_is_made_small_until_that_is_done() {
        let bug = |from: Option<&str>, size| TriagedBug {
            input_hash: "a".into(),
            input_size: 7,
            minimized_from: from.map(Into::into),
            minimized_size: size,
            ..TriagedBug::default()
        };
        assert!(bug(None, None).has_smaller_input() && bug(None, Some(5)).has_smaller_input());
        assert!(bug(Some("b"), Some(8)).has_smaller_input());
        assert!(!bug(Some("b"), Some(5)).has_smaller_input());
        assert!(!bug(Some("a"), Some(8)).has_smaller_input());
    }

    #[test]
    fn a_bug_has_the_sums_of_its_files_and_the_smallest() {
        let bug = |id: &str| TriagedBug { id: id.into(), ..TriagedBug::default() };
        let stacks = [("1", "a"), ("2", "b"), ("3", "a")].map(|(k, v)| (k.into(), v.into()));
        let mut report = TriageReport {
            version: VERSION,
            bugs: vec![bug("a"), bug("b")],
            crashes: vec![crash("x", 9, "1"), crash("y", 5, "3"), crash("z", 1, "7")],
            stacks: stacks.into(),
            ..TriageReport::default()
        };
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(number_of_bugs(dir.path()), None);
        report.save(dir.path()).unwrap();
        let read = TriageReport::load(dir.path()).unwrap();
        let a = &read.bugs[0];
        assert_eq!((a.files, a.runs, a.crashes, a.input.as_str()), (2, 6, 4, "y"));
        assert_eq!((read.bugs[1].files, read.files("a")), (0, vec!["x".into(), "y".into()]));
        assert_eq!(read.crashes[2].bug, None);
        assert_eq!(number_of_bugs(dir.path()), Some(2));
        fs::write(dir.path().join(NAME), "{").unwrap();
        assert!(TriageReport::load(dir.path()).is_none());
    }
}
