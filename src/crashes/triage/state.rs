//! State shared by the worker threads: the growing report, the waiting work, and its assignment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::TriageError;
use super::group::Groups;
use super::report::{CrashFile, TriageReport, TriagedBug};
use super::seen::Build;
use crate::collector::CollectorError;

/// Interval of saving the report while there is work.
pub(super) const SAVE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct WorkState {
    pub(super) report: TriageReport,
    /// Position of each file in the report's list.
    places: HashMap<String, usize>,
    pub(super) groups: Groups,
    pub(super) waiting: VecDeque<PathBuf>,
    /// Files whose bug is found, but which have not had all requested runs.
    pub(super) to_count: VecDeque<PathBuf>,
    /// Files delivered by another tool whose bug is still unknown.
    pub(super) delivered: HashSet<PathBuf>,
    /// All files added, including those of earlier runs.
    pub(super) known: HashSet<PathBuf>,
    /// Number of files being examined.
    pub(super) under_way: usize,
    /// Bugs assigned to a thread.
    pub(super) taken: HashSet<String>,
    /// Build in which each bug crashes, from this run.
    pub(super) builds: HashMap<String, Build>,
    /// Bugs that cannot be delivered.
    withheld: HashSet<String>,
    pub(super) stop: bool,
    /// True if an end was requested: nothing more is minimized.
    pub(super) hurry: bool,
    pub(super) dirty: bool,
    pub(super) saved: Instant,
    pub(super) notes: Vec<String>,
    /// Crash files that are marked, good or bad.
    pub(super) marked: HashSet<(String, bool)>,
}

impl WorkState {
    #[must_use]
    pub(super) fn new(report: TriageReport) -> Self {
        let paths = report.crashes.iter().map(|crash| crash.path.clone());
        Self {
            places: paths.zip(0..).collect(),
            groups: Groups::of(&report.bugs),
            report,
            waiting: VecDeque::new(),
            to_count: VecDeque::new(),
            delivered: HashSet::new(),
            known: HashSet::new(),
            under_way: 0,
            taken: HashSet::new(),
            builds: HashMap::new(),
            withheld: HashSet::new(),
            stop: false,
            hurry: false,
            dirty: true,
            saved: Instant::now(),
            notes: Vec::new(),
            marked: HashSet::new(),
        }
    }

    /// Results of a file.
    #[must_use]
    pub(super) fn crash(&self, path: &str) -> Option<&CrashFile> {
        self.places.get(path).map(|place| &self.report.crashes[*place])
    }

    pub(super) fn note(&mut self, crash: CrashFile) {
        self.dirty = true;
        match self.places.get(&crash.path) {
            Some(place) => self.report.crashes[*place] = crash,
            None => {
                self.places.insert(crash.path.clone(), self.report.crashes.len());
                self.report.crashes.push(crash);
            }
        }
    }

    /// Takes a bug to report.
    pub(super) fn unreported(&mut self) -> Option<usize> {
        if !self.delivered.is_empty() {
            return None;
        }
        let (taken, withheld) = (&self.taken, &self.withheld);
        let is_open = |bug: &TriagedBug| !bug.reported && !withheld.contains(&bug.id);
        if !self.report.bugs.iter().any(is_open) {
            return None;
        }
        self.report.count();
        let waits = |bug: &TriagedBug| is_open(bug) && bug.files > 0 && !taken.contains(&bug.id);
        let index = self.report.bugs.iter().position(waits)?;
        self.taken.insert(self.report.bugs[index].id.clone());
        Some(index)
    }

    /// Takes a bug whose best input is not minimized, or that is not delivered. In a hurry, only if its folder is
    /// incomplete or it must be delivered.
    pub(super) fn unfinished(&mut self, delivers: bool) -> Option<usize> {
        self.report.count();
        let (taken, withheld, hurry) = (&self.taken, &self.withheld, self.hurry);
        let waits = |bug: &TriagedBug| {
            let is_open = bug.has_smaller_input() && (!hurry || bug.minimized_size.is_none());
            let wanted = is_open || (delivers && !bug.reported && !withheld.contains(&bug.id));
            bug.files > 0 && wanted && !taken.contains(&bug.id)
        };
        let index = self.report.bugs.iter().position(waits)?;
        self.taken.insert(self.report.bugs[index].id.clone());
        Some(index)
    }

    /// Build in which a bug crashes.
    #[must_use]
    pub(super) fn build_of(&self, bug: &TriagedBug) -> Build {
        let other = match self.report.sanitizer_build {
            Some(_) if !bug.only_without_sanitizer => Build::Sanitizer,
            _ => Build::Target,
        };
        self.builds.get(&bug.id).copied().unwrap_or(other)
    }

    /// Leaves a bug to another triage.
    pub(super) fn withhold(&mut self, id: &str, error: &CollectorError) {
        let remedy =
            "remove triage/report.json, then `ffuzz-triage -o OUT` creates all folders again";
        self.notes.push(format!("a bug is not reported: {error} ({remedy})"));
        self.withheld.insert(id.to_owned());
    }

    /// Writes the report.
    pub(super) fn save(&mut self, folder: &Path) -> Result<(), TriageError> {
        let mut written = self.report.clone();
        // Omits unfinished files, so that they are examined again.
        written.stacks.retain(|_, bug| !bug.is_empty());
        let stacks = &written.stacks;
        let known =
            |crash: &CrashFile| crash.stack.as_ref().is_none_or(|key| stacks.contains_key(key));
        written.crashes.retain(|crash| known(crash));
        written.save(folder)?;
        self.report.count();
        (self.dirty, self.saved) = (false, Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_noted_once() {
        let crash =
            |path: &str, size| CrashFile { path: path.into(), size, ..CrashFile::default() };
        let crashes = vec![crash("a", 1), crash("b", 2)];
        let mut state = WorkState::new(TriageReport { crashes, ..TriageReport::default() });
        for (path, size) in [("b", 3), ("c", 4), ("a", 5), ("c", 6)] {
            state.note(crash(path, size));
        }
        let sizes: Vec<u64> = state.report.crashes.iter().map(|crash| crash.size).collect();
        assert_eq!(sizes, [5, 3, 6]);
        assert_eq!(state.crash("b").map(|crash| crash.size), Some(3));
        assert!(state.crash("d").is_none());
    }
}
