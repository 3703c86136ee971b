//! A file that waits: run again, and put to the bug that it belongs to, which may be a new one.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use super::report::{Crash, State as Outcome, hex};
use super::rerun::{Examined, Rerun};
use super::seen::{Build, Seen};
use super::state::{SAVE, State};
use super::work::Work;
use super::{TriageError, write};
use crate::crash::StableHasher;
use crate::target::MAX_INPUT;

impl Work {
    pub(super) fn examine(&self, rerun: &mut Rerun, path: &Path) -> Result<(), TriageError> {
        let Ok(data) = read(path) else {
            let state = Outcome::Unreadable;
            let mut inside = self.inside();
            inside.note(Crash { path: self.shown(path), state, ..Crash::default() });
            inside.notes.push(format!("cannot read {}", path.display()));
            return Ok(());
        };
        let examined = rerun.examine(&data, self.orders.runs)?;
        let Examined { runs, crashes, hung, seen } = examined;
        let state = match (&seen, hung) {
            (Some(seen), _) if !seen.is_hang => Outcome::Crashes,
            (Some(_), _) | (None, true) => Outcome::TimesOut,
            (None, false) => Outcome::NoCrash,
        };
        let stack = seen.as_ref().map(|seen| hex(seen.key()));
        if let Some(seen) = &seen {
            self.learn(rerun, &data, seen)?;
        }
        let (hash, size) = (hash_of(&data), data.len() as u64);
        let path = self.shown(path);
        let limit_ms = self.orders.limit_ms();
        let crash = Crash { path, hash, size, state, runs, crashes, limit_ms, stack, bug: None };
        self.inside().note(crash);
        Ok(())
    }

    /// Finds the bug that a stack belongs to, if that is not known.
    fn learn(&self, rerun: &mut Rerun, data: &[u8], quick: &Seen) -> Result<(), TriageError> {
        let key = hex(quick.key());
        {
            let mut inside = self.inside();
            if inside.report.stacks.contains_key(&key) {
                return Ok(());
            }
            // Others need not look at it as well.
            inside.report.stacks.insert(key.clone(), String::new());
        }
        let seen = rerun.readable(data, quick);
        let mut inside = self.inside();
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                inside.report.stacks.remove(&key);
                return Err(error.into());
            }
        };
        let found = inside.groups.find(&seen, &self.orders.program).map(str::to_owned);
        let id = match found {
            Some(id) => id,
            None => match self.new_bug(&mut inside, rerun, data, &seen) {
                Ok(id) => id,
                Err(error) => {
                    inside.report.stacks.remove(&key);
                    return Err(error);
                }
            },
        };
        inside.builds.insert(id.clone(), seen.build);
        inside.report.stacks.insert(key, id);
        Ok(())
    }

    /// Its folder first: what cannot be written is not known.
    fn new_bug(
        &self,
        inside: &mut State,
        rerun: &Rerun,
        data: &[u8],
        seen: &Seen,
    ) -> Result<String, TriageError> {
        let mut bug = inside.groups.describe(seen);
        let folder = self.orders.folder.join(&bug.id);
        write::seen(&folder, seen)?;
        write::input(&folder, write::INPUT, data)?;
        let command = rerun.command(seen.build);
        write::script(&folder, command, rerun.input_file(), &self.orders.env)?;
        let has_sanitizer = inside.report.sanitizer_build.is_some();
        bug.only_without_sanitizer = has_sanitizer && seen.build == Build::Target;
        inside.groups.add(&bug);
        let id = bug.id.clone();
        inside.report.bugs.push(bug);
        // Somebody waits for the number of bugs.
        inside.saved = Instant::now().checked_sub(SAVE).unwrap_or(inside.saved);
        Ok(id)
    }
}

/// As much of a file as a target gets.
pub(super) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.take(MAX_INPUT as u64).read_to_end(&mut data)?;
    Ok(data)
}

pub(super) fn hash_of(data: &[u8]) -> String {
    let mut hasher = StableHasher::default();
    data.hash(&mut hasher);
    hex(hasher.finish())
}
