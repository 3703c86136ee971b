//! Examination of a waiting file: runs it again, and assigns it to its bug, which may be new.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::time::Instant;

use super::report::{CrashFile, FileOutcome, hex};
use super::rerun::{Examined, RARE_RUNS, Rerun};
use super::seen::{Build, Seen};
use super::state::{SAVE, WorkState};
use super::work::TriageWork;
use super::{TriageError, before, write};
use crate::crash::StableHasher;
use ffuzz_config::net::Side;
use ffuzz_exec::TargetError;
use ffuzz_mutate::MAX_INPUT;
use ffuzz_sys::file;

impl TriageWork {
    pub(super) fn examine(&self, rerun: &mut Rerun, path: &Path) -> Result<(), TriageError> {
        let Ok(data) = read(path) else {
            let state = FileOutcome::Unreadable;
            let mut inside = self.inside();
            inside.note(CrashFile { path: self.shown(path), state, ..CrashFile::default() });
            inside.notes.push(format!("cannot read {}", path.display()));
            return Ok(());
        };
        let mut examined = rerun.examine(&data, self.options.runs)?;
        let mut before = 0;
        if examined.seen.is_none()
            && !examined.hung
            && let Some((inputs, count)) = before::of(path)
        {
            let alone = examined.runs;
            examined = self.run_after(rerun, Some(&inputs), |rerun| rerun.examine(&data, 1))?;
            match examined.seen {
                Some(_) => before = count,
                None => examined.runs += alone,
            }
        }
        self.note(rerun, path, &data, examined, before)
    }

    /// Calls `act` with runs of a process that got `inputs` first.
    pub(super) fn run_after<T>(
        &self,
        rerun: &mut Rerun,
        inputs: Option<&Path>,
        act: impl FnOnce(&mut Rerun) -> Result<T, TargetError>,
    ) -> Result<T, TriageError> {
        rerun.after(inputs);
        let done = act(rerun);
        rerun.after(None);
        Ok(done?)
    }

    fn note(
        &self,
        rerun: &mut Rerun,
        path: &Path,
        data: &[u8],
        examined: Examined,
        before: u32,
    ) -> Result<(), TriageError> {
        let Examined { runs, crashes, hung, seen } = examined;
        let state = match (&seen, hung) {
            (Some(seen), _) if !seen.is_hang => FileOutcome::Crashes,
            (Some(_), _) | (None, true) => FileOutcome::TimesOut,
            (None, false) => FileOutcome::NoCrash,
        };
        let stack = seen.as_ref().map(|seen| hex(seen.key()));
        if let Some(seen) = &seen {
            let inputs = before::of(path).map(|(inputs, _)| inputs).filter(|_| before > 0);
            rerun.after(inputs.as_deref());
            let learnt = self.learn(rerun, data, seen, inputs.as_deref());
            rerun.after(None);
            learnt?;
        }
        let (hash, size) = (hash_of(data), data.len() as u64);
        let shown = self.shown(path);
        let limit_ms = self.options.limit_ms();
        let crash = CrashFile {
            path: shown,
            hash,
            size,
            state,
            runs,
            crashes,
            limit_ms,
            stack,
            before,
            bug: None,
        };
        let mut inside = self.inside();
        if self.is_to_be_counted(&crash, self.options.runs) {
            inside.to_count.push_back(path.to_owned());
        }
        inside.note(crash);
        Ok(())
    }

    /// Makes the less urgent runs of a file: those for its crash rate, and those of a file that did not crash.
    pub(super) fn count(&self, rerun: &mut Rerun, path: &Path) -> Result<(), TriageError> {
        let Some(crash) = self.inside().crash(&self.shown(path)).cloned() else { return Ok(()) };
        let data = read(path).unwrap_or_default();
        if hash_of(&data) != crash.hash {
            return Ok(());
        }
        if crash.state == FileOutcome::NoCrash {
            let mut examined = rerun.examine_rare(&data)?;
            examined.runs += crash.runs;
            // More runs of an unchanged file would give the same result.
            examined.runs = examined.runs.max(RARE_RUNS);
            return self.note(rerun, path, &data, examined, 0);
        }
        let build = {
            let inside = self.inside();
            let bug = crash.stack.as_ref().and_then(|stack| inside.report.stacks.get(stack));
            let bug = inside.report.bugs.iter().find(|known| Some(&known.id) == bug);
            bug.map_or(Build::Target, |bug| inside.build_of(bug))
        };
        let inputs = before::of(path).map(|(inputs, _)| inputs).filter(|_| crash.before > 0);
        let left = self.options.runs.saturating_sub(crash.runs);
        let count = |rerun: &mut Rerun| rerun.count(build, &data, left);
        let (runs, crashes) = self.run_after(rerun, inputs.as_deref(), count)?;
        let counted =
            CrashFile { runs: crash.runs + runs, crashes: crash.crashes + crashes, ..crash };
        self.inside().note(counted);
        Ok(())
    }

    /// Finds the bug of a stack, if it is unknown.
    fn learn(
        &self,
        rerun: &mut Rerun,
        data: &[u8],
        quick: &Seen,
        before: Option<&Path>,
    ) -> Result<(), TriageError> {
        let key = hex(quick.key());
        {
            let mut inside = self.inside();
            if inside.report.stacks.contains_key(&key) {
                return Ok(());
            }
            // Keeps other threads from examining it as well.
            inside.report.stacks.insert(key.clone(), String::new());
        }
        let seen = rerun.look_again(data, quick).and_then(|shown| {
            let quick = shown.as_ref().unwrap_or(quick);
            rerun.readable(data, quick)
        });
        let mut inside = self.inside();
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                inside.report.stacks.remove(&key);
                return Err(error.into());
            }
        };
        let found = inside.groups.find(&seen).map(str::to_owned);
        let id = match found {
            Some(id) => id,
            None => match self.new_bug(&mut inside, rerun, data, &seen, before) {
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

    /// Adds a bug. Writes its folder first: every bug in the report has a folder.
    fn new_bug(
        &self,
        inside: &mut WorkState,
        rerun: &Rerun,
        data: &[u8],
        seen: &Seen,
        before: Option<&Path>,
    ) -> Result<String, TriageError> {
        let mut bug = inside.groups.describe(seen);
        let folder = self.options.folder.join(&bug.id);
        write::seen(&folder, seen)?;
        write::input(&folder, write::INPUT, data)?;
        before::keep(&folder, before)?;
        let command = rerun.command(seen.build);
        let replay = rerun.replay(seen.build);
        let net = rerun.net();
        let server = net.as_ref().filter(|(net, _)| net.side == Side::Server);
        let server = server.map(|(net, _)| net.to_string());
        let given = write::ScriptInput {
            name: rerun.input_file(),
            is_users: self.options.names_file,
            extension: self.options.extension.as_deref(),
            replay,
            server: server.as_deref(),
        };
        let mut env = self.options.env.clone();
        env.extend(net.into_iter().flat_map(|(_, variables)| variables));
        write::script(&folder, command, given, &env)?;
        let has_sanitizer = inside.report.sanitizer_build.is_some();
        bug.only_without_sanitizer = has_sanitizer && seen.build == Build::Target;
        inside.groups.add(&bug);
        let id = bug.id.clone();
        inside.report.bugs.push(bug);
        // Saves the report soon: a reader may wait for the number of bugs.
        inside.saved = Instant::now().checked_sub(SAVE).unwrap_or(inside.saved);
        Ok(id)
    }
}

/// Reads a file up to the maximum size of an input.
pub(super) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    file::read(path, MAX_INPUT as u64)
}

pub(super) fn hash_of(data: &[u8]) -> String {
    let mut hasher = StableHasher::default();
    data.hash(&mut hasher);
    hex(hasher.finish())
}
