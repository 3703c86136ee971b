//! `--watch`: a first pass over all inputs, then runs inputs as they appear.
//!
//! The content of the output folder counts as known, as in a merge, so a restart needs no journal. Files are copied,
//! never linked: rewriting an input in place must not change the kept one.

mod folders;
mod keeper;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) use folders::FoundFile;
use folders::WatchedFolders;
use keeper::Keeper;

use super::journal::WatchMark;
use super::worker::{CHUNK, KnownTraces, TraceWorker};
use super::{
    CminError, CminOptions, InputSet, Minimization, Selection, TraceListener, is_crash, sync_all,
    too_large,
};
use crate::disk::inputs::{self, InputError};
use crate::engine::domain::Domain;
use crate::engine::executor::{ExitKind, RunError};
use crate::engine::minimize::cover::Trace;
use crate::exec::ReadyOptions;
use crate::mutate::Candidate;
use crate::sys::stop::Stop;

/// Minimum time between two scans of the folders.
const PAUSE: Duration = Duration::from_secs(1);
/// Each of the two kinds of scans takes at most 1/`SHARE` of a core's time.
const SHARE: u32 = 20;
/// Time between two checks for a stop request.
const LOOK: Duration = Duration::from_millis(50);

/// Receives progress while folders are watched.
pub trait WatchListener: TraceListener {
    /// The first pass begins: `known` of the `files` are already kept.
    fn begins(&self, files: usize, known: usize, targets: usize);
    /// The first pass is over.
    fn waits(&self);
    /// An input was saved to the output folder as `name`.
    fn keeps(&self, input: &Path, name: &OsStr);
    /// An input crashes or times out, and is not kept.
    fn fails(&self, input: &Path, exit: ExitKind);
}

/// Returns the part of a run's trace that counts.
pub(super) type TraceFilter<'a> = dyn FnMut(ExitKind, &Trace, &[Domain]) -> Trace + 'a;

/// Keeps inputs that appear in `folders` and reach something new, until `stop` is requested. Returns the number of
/// inputs kept.
pub fn watch(
    options: &CminOptions,
    folders: Vec<PathBuf>,
    targets: Vec<ReadyOptions>,
    listener: &dyn WatchListener,
    stop: &Stop,
    beyond: &mut TraceFilter<'_>,
) -> Result<usize, CminError> {
    let mut watched = WatchedFolders::new(folders.clone());
    let known = match options.output.exists() {
        true => inputs::list(&options.output)?,
        false => Vec::new(),
    };
    let found = watched.begin(listener)?;
    let inputs = InputSet::to_watch(known, found)?;
    inputs.too_large.iter().for_each(|path| listener.warns(&too_large(path)));
    let mut target = targets[0].clone();
    // Check the target before creating anything.
    let first_pass = Minimization::merge(options, &inputs, targets, listener, None)?.until(stop);
    let mark = WatchMark::set(&options.output)?;
    listener.begins(inputs.paths.len(), inputs.known, first_pass.workers());
    let choice = first_pass.choose(&mut *beyond)?;
    let mut keeper = Keeper::new(options, folders)?;
    let saved = keep_first(&choice, &inputs, &mut keeper, &mut watched, listener)?;
    // Runs here are not repeated if a snapshot run turns out to differ.
    target.target.snapshots = false;
    let tracer = match stop.asked() {
        true => None,
        false => Some(TraceWorker::new(target.prepare()?.start()?)),
    };
    if let Some(mut tracer) = tracer {
        tracer.target.runner.stop_on(Some(stop.request()));
        let mut reached = KnownTraces::new(tracer.target.info());
        let is_kept =
            |position: usize| position < inputs.known || saved.binary_search(&position).is_ok();
        for run in choice.runs.iter().filter(|run| is_kept(run.input)) {
            tracer.known.of(run.exit).learn(&run.trace);
            reached.learn(&run.trace);
        }
        drop((choice, inputs));
        tracer.teach();
        listener.waits();
        let mut session = WatchSession { options, tracer, reached, keeper, listener, beyond };
        session.go_on(&mut watched, stop)?;
        keeper = session.keeper;
    }
    keeper.sync()?;
    mark.remove()?;
    Ok(keeper.saved())
}

/// Keeps the inputs that the first pass chose. Returns the positions of those that could be saved.
fn keep_first(
    choice: &Selection,
    inputs: &InputSet,
    keeper: &mut Keeper,
    watched: &mut WatchedFolders,
    listener: &dyn WatchListener,
) -> Result<Vec<usize>, CminError> {
    for (position, exit) in &choice.failing {
        let input = &inputs.paths[*position];
        if is_crash(*exit) {
            warn_of_unreadable(keeper.save_crash(input, None), listener)?;
        }
        listener.fails(input, *exit);
    }
    let mut saved = Vec::new();
    for position in &choice.kept {
        let input = &inputs.paths[*position];
        if watched.is_current(input)
            && let Some(name) = warn_of_unreadable(keeper.save(input, None), listener)?
        {
            listener.keeps(input, &name);
            saved.push(*position);
        }
    }
    keeper.sync()?;
    if saved.len() < choice.kept.len() {
        // A missing or changed file may have made others look uninteresting.
        watched.forget();
    }
    Ok(saved)
}

/// Turns the error of an unreadable input, for example a deleted one, into a warning.
fn warn_of_unreadable<T>(
    result: Result<T, CminError>,
    listener: &dyn WatchListener,
) -> Result<Option<T>, CminError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CminError::Input(error)) => {
            listener.warns(&skipped(&error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn skipped(error: &InputError) -> String {
    format!("{error}; skipped")
}

/// State after the first pass.
struct WatchSession<'a, 'b> {
    options: &'a CminOptions,
    tracer: TraceWorker,
    /// Everything that the kept inputs reach.
    reached: KnownTraces,
    keeper: Keeper<'a>,
    listener: &'a dyn WatchListener,
    beyond: &'a mut TraceFilter<'b>,
}

impl WatchSession<'_, '_> {
    fn go_on(&mut self, watched: &mut WatchedFolders, stop: &Stop) -> Result<(), CminError> {
        // Time of the last check of all files, and its duration.
        let (mut last, mut effort) = (Instant::now(), Duration::ZERO);
        while !stop.asked() {
            let start = Instant::now();
            let all = last.elapsed() >= effort * SHARE;
            let found = watched.look(all, self.listener);
            let mut pause = PAUSE.max(start.elapsed() * SHARE);
            if all {
                (last, effort) = (Instant::now(), start.elapsed());
                pause = PAUSE;
            }
            let saved = self.keeper.saved();
            for files in found.chunks(CHUNK) {
                match self.take(files) {
                    Err(CminError::Run(RunError::Interrupted)) => return Ok(()),
                    result => result?,
                }
                if stop.asked() {
                    return Ok(());
                }
            }
            if self.keeper.saved() > saved {
                self.keeper.sync()?;
            }
            let start = Instant::now();
            while !stop.asked() && start.elapsed() < pause {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Runs these files and keeps those that reach something new.
    fn take(&mut self, files: &[FoundFile]) -> Result<(), CminError> {
        let (mut paths, mut batch) = (Vec::new(), Vec::new());
        for FoundFile { path, len, .. } in files {
            let mut candidate = Candidate::default();
            match inputs::read_sized(path, *len, &mut candidate.bytes) {
                Err(error) => {
                    self.listener.warns(&skipped(&error));
                    continue;
                }
                // The file was emptied after the check; a later check finds it again.
                Ok(()) if candidate.bytes.is_empty() => continue,
                Ok(()) => {}
            }
            self.listener.reads(path).map_err(CminError::Report)?;
            if inputs::is_too_large(*len) {
                self.listener.warns(&too_large(path));
            }
            paths.push(path);
            batch.push(candidate);
        }
        for (index, exit, trace) in self.tracer.trace(&batch, |_, _| Ok(()))? {
            let (path, bytes) = (paths[index], &batch[index].bytes);
            if !self.options.accepted.takes(exit) {
                if is_crash(exit) {
                    warn_of_unreadable(self.keeper.save_crash(path, Some(bytes)), self.listener)?;
                }
                if self.options.accepted != super::Accepted::Crashes {
                    self.listener.fails(path, exit);
                }
                continue;
            }
            let counted = (self.beyond)(exit, &trace, self.tracer.target.info().domains());
            if !self.reached.would_learn(&counted, self.options.edges_only) {
                continue;
            }
            let name = self.keeper.save(path, Some(bytes));
            if let Some(name) = warn_of_unreadable(name, self.listener)? {
                self.reached.learn(&counted);
                self.listener.keeps(path, &name);
            }
        }
        let messages = self.tracer.target.mutators.take_messages();
        messages.iter().for_each(|message| self.listener.warns(message));
        Ok(())
    }
}
