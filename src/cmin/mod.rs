//! Corpus minimization: several targets trace all inputs, a set cover selects the few that together show everything,
//! and these are saved to the output folder.
//!
//! A journal in the output folder records the traces, so an interrupted minimization resumes. A merge is a minimization
//! with inputs that are already kept, and with libFuzzer's control file instead of the journal. The selection is in
//! [`crate::engine::minimize::cover`].

mod control;
mod error;
mod inputs;
mod journal;
mod save;
mod watch;
mod worker;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

pub use control::{ControlFile, PastMerge};
pub use error::CminError;
pub use inputs::{InputSet, is_inside};
use journal::{Chunk, Journal, KeptRun, sync_all};
pub use save::hash as content_hash;
pub use watch::{WatchListener, watch};
use worker::{CHUNK, SharedWork, WorkerResults};

use crate::engine::domain::Domain;
use crate::engine::executor::ExitKind;
use crate::engine::minimize::cover::{self, Cover, Trace};
use crate::exec::ReadyOptions;
use crate::sys::affinity;
use crate::sys::stop::Stop;

/// Exit kinds of inputs that may be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Accepted {
    /// Only inputs that end normally; a crash or timeout is an error.
    Good,
    /// Only inputs that end normally; crashes and timeouts are in [`Selection::failing`].
    Passing,
    Any,
    Crashes,
}

impl Accepted {
    fn takes(self, exit: ExitKind) -> bool {
        match self {
            Self::Good | Self::Passing => exit == ExitKind::Ok,
            Self::Any => true,
            Self::Crashes => is_crash(exit),
        }
    }
}

fn is_crash(exit: ExitKind) -> bool {
    matches!(exit, ExitKind::Crash { .. } | ExitKind::Oom)
}

/// Naming of the results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Names {
    /// The names of the inputs.
    Own,
    /// `id:000000,orig:NAME`.
    Queue,
    /// `id:000000,hash:SHA1`.
    QueueOfHashes,
}

/// Options of a minimization, apart from its inputs and targets.
#[derive(Clone, Debug)]
pub struct CminOptions {
    pub output: PathBuf,
    pub accepted: Accepted,
    /// Ignore hit counts.
    pub edges_only: bool,
    /// Save the traces to the output folder, in the format of `afl-showmap -Z`.
    pub keep_traces: bool,
    /// Save crashing inputs there instead of ending the minimization.
    pub crash_folder: Option<PathBuf>,
    pub names: Names,
    /// Bind each worker to a core if there are several.
    pub bind: bool,
    /// Fingerprint of everything that affects the target's behavior.
    pub settings: u64,
}

/// Receives progress from all workers while inputs are traced.
pub trait TraceListener: Sync {
    /// An input is being read.
    fn reads(&self, path: &Path) -> io::Result<()>;
    /// Further inputs were traced.
    fn traced(&self, inputs: usize);
    /// All inputs are traced again: snapshot runs differed from fork runs.
    fn starts_over(&self);
    /// Mutators misbehaved.
    fn warns(&self, text: &str);
}

/// A minimization that is ready to start or resume.
pub struct Minimization<'a> {
    options: &'a CminOptions,
    inputs: &'a InputSet,
    targets: Vec<ReadyOptions>,
    shared: SharedWork<'a>,
    /// Number of inputs that an earlier run has traced.
    pub traced_before: usize,
}

/// The inputs to keep, and what they cover.
pub struct Selection {
    /// Positions of the kept inputs, ascending.
    pub kept: Vec<usize>,
    pub tuples: usize,
    /// Number of covered domain keys; None if the target has no domains.
    pub keys: Option<usize>,
    pub edges: usize,
    /// Tuples covered by inputs that were already kept; part of `tuples`.
    pub known_tuples: usize,
    /// Edges covered by inputs that were already kept; part of `edges`.
    pub known_edges: usize,
    /// Positions of inputs that are not accepted but do not end the minimization.
    pub failing: Vec<(usize, ExitKind)>,
    /// All other runs that showed something new.
    runs: Vec<KeptRun>,
    record: TraceStore,
}

/// Store of traces, which an interrupted minimization resumes from.
enum TraceStore {
    Journal(Journal),
    Control(ControlFile),
    Nowhere,
}

impl TraceStore {
    /// Appends a chunk that consists of `inputs`.
    fn append(&mut self, chunk: &Chunk, inputs: &[usize]) -> Result<(), CminError> {
        match self {
            Self::Journal(journal) => journal.append(chunk),
            Self::Control(file) => file.append(inputs, &chunk.runs),
            Self::Nowhere => Ok(()),
        }
    }

    fn clear(&mut self) -> Result<(), CminError> {
        match self {
            Self::Journal(journal) => journal.clear(),
            Self::Control(file) => file.clear(),
            Self::Nowhere => Ok(()),
        }
    }

    /// Marks the result as saved. `copies`: the output folder contains more than links.
    fn finish(self, copies: bool) -> Result<(), CminError> {
        match self {
            Self::Journal(journal) => journal.finish(copies),
            Self::Control(file) => file.finish(),
            Self::Nowhere => Ok(()),
        }
    }
}

impl<'a> Minimization<'a> {
    /// Checks the first target, then creates the output folder or resumes an interrupted run. Each worker uses one
    /// target, as long as there is work.
    pub fn open(
        options: &'a CminOptions,
        inputs: &'a InputSet,
        mut targets: Vec<ReadyOptions>,
        listener: &'a dyn TraceListener,
    ) -> Result<Self, CminError> {
        // Saved traces must come from fresh processes.
        for target in &mut targets {
            target.target.snapshots &= !options.keep_traces;
        }
        // Check the target before creating anything.
        let alone = targets[0].prepare()?.has_hooks();
        let (journal, chunks) =
            Journal::open(&options.output, inputs.fingerprint(options.settings))?;
        let order = (0..inputs.paths.len()).collect();
        let mut shared = SharedWork::new(inputs, order, TraceStore::Journal(journal), listener);
        shared.traces = trace_folder(options)?.map(|folder| (folder, inputs.names.as_slice()));
        let done = shared.take_over(chunks);
        let left = (shared.finished.len() - done).max(1);
        // Mutators are not thread-safe.
        targets.truncate(if alone { 1 } else { left });
        let traced_before = (done * CHUNK).min(inputs.paths.len());
        Ok(Self { options, inputs, targets, shared, traced_before })
    }

    /// Prepares a merge: the known inputs are kept and count first. Inputs with results in `control` are not traced
    /// again.
    pub fn merge(
        options: &'a CminOptions,
        inputs: &'a InputSet,
        mut targets: Vec<ReadyOptions>,
        listener: &'a dyn TraceListener,
        control: Option<(ControlFile, PastMerge)>,
    ) -> Result<Self, CminError> {
        let alone = targets[0].prepare()?.has_hooks();
        let (record, order, runs) = match control {
            Some((file, earlier)) => (TraceStore::Control(file), earlier.left, earlier.runs),
            None => (TraceStore::Nowhere, (0..inputs.paths.len()).collect(), Vec::new()),
        };
        let traced_before = inputs.paths.len() - order.len();
        // A later input must not make an earlier one look uninteresting, above all a kept one.
        let first = order.first().copied().unwrap_or(usize::MAX);
        let mut shared = SharedWork::new(inputs, order, record, listener);
        targets.truncate(if alone { 1 } else { shared.finished.len().max(1) });
        shared.known = runs.iter().filter(|run| run.input < first).cloned().collect();
        shared.ledger().runs = runs;
        Ok(Self { options, inputs, targets, shared, traced_before })
    }

    /// Lets `stop` end the tracing early; unreadable inputs are then reported and skipped.
    fn until(mut self, stop: &Stop) -> Self {
        self.shared.stop = Some(stop.clone());
        self
    }

    /// Number of targets that run at the same time.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.targets.len()
    }

    /// Traces all inputs and chooses those to keep. `beyond` returns the part of a run's trace that counts.
    pub fn choose(
        mut self,
        mut beyond: impl FnMut(ExitKind, &Trace, &[Domain]) -> Trace,
    ) -> Result<Selection, CminError> {
        let cores = cores(self.options.bind && self.targets.len() > 1);
        self.shared.run(&self.targets, &cores)?;
        if self.shared.start_over_if_doubtful()? {
            self.targets.iter_mut().for_each(|target| target.target.snapshots = false);
            self.shared.run(&self.targets, &cores)?;
        }
        let ledger = self.shared.ledger.into_inner();
        let mut ledger = ledger.unwrap_or_else(std::sync::PoisonError::into_inner);
        ledger.runs.sort_by_key(|run| run.input);
        let accepted = self.options.accepted;
        let is_set_aside = |exit| match accepted {
            Accepted::Passing => exit != ExitKind::Ok,
            _ => self.options.crash_folder.is_some() && is_crash(exit),
        };
        let failing = ledger.runs.extract_if(.., |run| is_set_aside(run.exit));
        let failing = failing.map(|run| (run.input, run.exit)).collect();
        if accepted == Accepted::Good {
            refuse_bad(&ledger.runs, &self.inputs.paths)?;
        }
        let runs: Vec<&KeptRun> =
            ledger.runs.iter().filter(|run| accepted.takes(run.exit)).collect();
        let traces: Vec<Trace> =
            runs.iter().map(|run| beyond(run.exit, &run.trace, &ledger.domains)).collect();
        let traces: Vec<&Trace> = traces.iter().collect();
        let known = runs.partition_point(|run| run.input < self.inputs.known);
        let Cover { kept, tuples, keys, edges, known_tuples, known_edges } =
            cover::cover(&traces, &ledger.domains, self.options.edges_only, known);
        let kept = kept.into_iter().map(|kept| runs[kept].input).collect();
        Ok(Selection {
            kept,
            tuples,
            keys: (!ledger.domains.is_empty()).then_some(keys),
            edges,
            known_tuples,
            known_edges,
            failing,
            runs: ledger.runs,
            record: ledger.record,
        })
    }
}

impl Selection {
    /// Saves the kept inputs, which completes the output folder.
    pub fn save(self, options: &CminOptions, inputs: &InputSet) -> Result<(), CminError> {
        if let Some(folder) = &options.crash_folder {
            for (crash, _) in self.failing {
                save::save_by_hash(&inputs.paths[crash], folder)?;
            }
        }
        let mut copies = false;
        for (number, kept) in self.kept.into_iter().enumerate() {
            let path = &inputs.paths[kept];
            let name = match options.names {
                Names::Own => inputs.names[kept].clone(),
                Names::Queue => save::queue_name(number, "orig", &inputs.names[kept]),
                Names::QueueOfHashes => {
                    save::queue_name(number, "hash", save::hash(path)?.as_ref())
                }
            };
            copies |= save::save(path, &options.output, &name)?;
        }
        self.record.finish(copies)
    }

    /// Flushes the record of a merge whose result the caller has saved.
    pub fn finish(self) -> Result<(), CminError> {
        self.record.finish(false)
    }
}

/// One core per worker; None for each if workers are not bound.
fn cores(bind: bool) -> Vec<Option<usize>> {
    affinity::allowed().into_iter().map(|core| Some(core).filter(|_| bind)).collect()
}

fn trace_folder(options: &CminOptions) -> Result<Option<PathBuf>, CminError> {
    if !options.keep_traces {
        return Ok(None);
    }
    let folder = options.output.join(".traces");
    fs::create_dir_all(&folder).map_err(|error| CminError::write(&folder, error))?;
    Ok(Some(folder))
}

/// Fails if inputs crash or time out, as in AFL, unless the user accepts them.
fn refuse_bad(runs: &[KeptRun], paths: &[PathBuf]) -> Result<(), CminError> {
    let all = |wanted: fn(ExitKind) -> bool| {
        let found: Vec<usize> =
            runs.iter().filter(|run| wanted(run.exit)).map(|run| run.input).collect();
        let path = paths[*found.first()?].clone();
        Some((path, found.len() - 1))
    };
    if let Some((path, others)) = all(is_crash) {
        return Err(CminError::Crashes { path, others });
    }
    match all(|exit| exit == ExitKind::Hang) {
        Some((path, others)) => Err(CminError::Hangs { path, others }),
        None => Ok(()),
    }
}

/// Warning about a file of which the target gets only the first part.
#[must_use]
pub fn too_large(path: &Path) -> String {
    format!("{} is larger than 1 MiB: the target gets the first MiB", path.display())
}

/// Formats a trace for `afl-cmin`: one line per non-zero counter.
pub fn trace_lines(edges: &[u8], value: impl Fn(u8) -> u8) -> String {
    let hit = edges.iter().enumerate().filter(|(_, count)| **count != 0);
    hit.map(|(index, count)| format!("{}{index}\n", value(*count))).collect()
}

impl<'a> SharedWork<'a> {
    fn new(
        inputs: &'a InputSet,
        order: Vec<usize>,
        record: TraceStore,
        listener: &'a dyn TraceListener,
    ) -> Self {
        Self {
            inputs: &inputs.paths,
            sizes: &inputs.sizes,
            finished: vec![false; order.len().div_ceil(CHUNK)],
            order,
            known: Vec::new(),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            ledger: Mutex::new(WorkerResults { record, runs: Vec::new(), domains: Vec::new() }),
            traces: None,
            listener,
            stop: None,
        }
    }

    /// Takes over the chunks of an earlier run; returns the number of finished chunks.
    fn take_over(&mut self, chunks: Vec<Chunk>) -> usize {
        let mut runs: Vec<KeptRun> = Vec::new();
        for chunk in chunks {
            let inputs = chunk.number * CHUNK..self.inputs.len().min((chunk.number + 1) * CHUNK);
            let fits = chunk.runs.iter().all(|run| inputs.contains(&run.input));
            if let Some(finished) = self.finished.get_mut(chunk.number).filter(|_| fits) {
                *finished = true;
                runs.extend(chunk.runs);
            }
        }
        let done = self.finished.iter().filter(|finished| **finished).count();
        let prefix = self.finished.iter().take_while(|finished| **finished).count() * CHUNK;
        self.known = runs.iter().filter(|run| run.input < prefix).cloned().collect();
        self.ledger().runs = runs;
        done
    }

    /// Runs all workers until no chunk is left.
    fn run(&self, targets: &[ReadyOptions], cores: &[Option<usize>]) -> Result<(), CminError> {
        let cores = cores.iter().copied().cycle();
        std::thread::scope(|scope| {
            let threads: Vec<_> = targets
                .iter()
                .zip(cores)
                .map(|(target, core)| scope.spawn(move || self.work(target, core)))
                .collect();
            let ends = threads.into_iter().map(|thread| match thread.join() {
                Ok(end) => end,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ends.fold(Ok(()), Result::and)
        })
    }
}
