//! A worker with its own target: takes chunks of the input list and records what is new in them.
//!
//! Workers take chunks in the order of preference. So the first input that shows something is always new to the worker
//! that runs it, and is recorded. Duplicates of other workers are removed at the end, so the result does not depend on
//! the number of workers.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::{Chunk, KeptRun};
use super::watch::skipped;
use super::{CminError, TraceListener, TraceStore, trace_lines};
use crate::disk::inputs;
use crate::engine::coverage::{self, Classes};
use crate::engine::domain::{Aggregates, Domain};
use crate::engine::executor::{ExitKind, Observation, RunError, TargetInfo};
use crate::engine::minimize::cover::Trace;
use crate::exec::{Hooked, ReadyOptions};
use crate::mutate::Candidate;
use crate::sys::affinity;
use crate::sys::stop::Stop;

/// Number of inputs per chunk, the maximum of a batch.
pub(super) const CHUNK: usize = 64;

/// State shared by all workers.
pub(super) struct SharedWork<'a> {
    pub(super) inputs: &'a [PathBuf],
    pub(super) sizes: &'a [u64],
    /// Positions of the inputs to run, in the order of preference.
    pub(super) order: Vec<usize>,
    /// Chunks that an earlier run has finished.
    pub(super) finished: Vec<bool>,
    /// Runs before the first unfinished chunk.
    pub(super) known: Vec<KeptRun>,
    pub(super) next: AtomicUsize,
    pub(super) failed: AtomicBool,
    /// True if a snapshot run differed from a fork run, so that inputs may have been rejected wrongly.
    pub(super) doubtful: AtomicBool,
    pub(super) ledger: Mutex<WorkerResults>,
    /// Folder and names of the traces for `AFL_KEEP_TRACES`.
    pub(super) traces: Option<(PathBuf, &'a [OsString])>,
    pub(super) listener: &'a dyn TraceListener,
    /// Set by [`super::watch()`]: a stop request ends the tracing early, and unreadable inputs are skipped.
    pub(super) stop: Option<Stop>,
}

/// Results that workers write.
pub(super) struct WorkerResults {
    pub(super) record: TraceStore,
    pub(super) runs: Vec<KeptRun>,
    pub(super) domains: Vec<Domain>,
}

impl SharedWork<'_> {
    pub(super) fn ledger(&self) -> MutexGuard<'_, WorkerResults> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until no chunk is left or a worker has failed.
    pub(super) fn work(&self, target: &ReadyOptions, core: Option<usize>) -> Result<(), CminError> {
        let done = self.try_work(target, core);
        if done.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        done
    }

    fn try_work(&self, target: &ReadyOptions, core: Option<usize>) -> Result<(), CminError> {
        if let Some(core) = core {
            // Binding only affects speed.
            let _ = affinity::bind(core);
        }
        let mut worker = TraceWorker::new(target.prepare()?.start()?);
        // A process that persists across runs is better interrupted at once.
        if worker.target.info().run_mode().forks_each_run() {
            affinity::wait_patiently();
        }
        worker.target.runner.show_every_run(self.traces.is_some());
        worker.target.runner.stop_on(self.stop.as_ref().map(Stop::request));
        self.ledger().domains = worker.target.info().domains().to_vec();
        for run in &self.known {
            worker.known.of(run.exit).learn(&run.trace);
        }
        worker.teach();
        while !self.is_stopped()
            && ![&self.failed, &self.doubtful].iter().any(|end| end.load(Ordering::Relaxed))
        {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match self.finished.get(number) {
                None => break,
                Some(true) => {}
                Some(false) => {
                    let runs = match worker.run(self, self.positions(number)) {
                        Err(CminError::Run(RunError::Interrupted)) if self.is_stopped() => break,
                        runs => runs?,
                    };
                    if worker.target.info().snapshot_runs().is_some_and(|runs| runs.differences > 0)
                    {
                        self.doubtful.store(true, Ordering::Relaxed);
                    } else {
                        self.note(Chunk { number, runs })?;
                    }
                }
            }
        }
        let messages = worker.target.mutators.take_messages();
        messages.iter().for_each(|message| self.listener.warns(message));
        Ok(())
    }

    /// Discards unreliable traces. Returns true if it did.
    pub(super) fn start_over_if_doubtful(&mut self) -> Result<bool, CminError> {
        if !std::mem::take(self.doubtful.get_mut()) {
            return Ok(false);
        }
        self.order = (0..self.inputs.len()).collect();
        self.finished = vec![false; self.order.len().div_ceil(CHUNK)];
        self.known.clear();
        *self.next.get_mut() = 0;
        let mut ledger = self.ledger();
        ledger.runs.clear();
        ledger.record.clear()?;
        drop(ledger);
        self.listener.starts_over();
        Ok(true)
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::asked)
    }

    fn note(&self, chunk: Chunk) -> Result<(), CminError> {
        let mut ledger = self.ledger();
        let inputs = self.positions(chunk.number);
        ledger.record.append(&chunk, inputs)?;
        ledger.runs.extend(chunk.runs);
        self.listener.traced(inputs.len());
        Ok(())
    }

    /// Positions of the inputs in a chunk.
    fn positions(&self, chunk: usize) -> &[usize] {
        &self.order[chunk * CHUNK..self.order.len().min((chunk + 1) * CHUNK)]
    }

    fn keep_trace(&self, input: usize, edges: &[u8]) -> Result<(), CminError> {
        let Some((folder, names)) = &self.traces else { return Ok(()) };
        let path = folder.join(&names[input]);
        let text = trace_lines(edges, coverage::class_number);
        fs::write(&path, text).map_err(|error| CminError::write(&path, error))
    }
}

/// Everything that the runs of one kind have shown so far.
#[derive(Default)]
pub(super) struct KnownTraces {
    virgin: Vec<u8>,
    aggregates: Aggregates,
    moved: bool,
}

impl KnownTraces {
    pub(super) fn new(target: &dyn TargetInfo) -> Self {
        let virgin = vec![0xff; target.map_size()];
        Self { virgin, aggregates: Aggregates::new(target.domains()), moved: true }
    }

    fn has_all_of(&mut self, run: &Observation<'_>) -> bool {
        // A restarted target may have a larger map.
        self.virgin.resize(self.virgin.len().max(run.edges.len()), 0xff);
        let virgin = &self.virgin[..run.edges.len()];
        !coverage::is_new(run.edges, virgin, Classes::Counts)
            && !self.aggregates.would_gain(&run.dsf)
    }

    /// Returns true if a trace has something new. `edges_only`: ignore hit counts.
    pub(super) fn would_learn(&self, trace: &Trace, edges_only: bool) -> bool {
        let is_new = |tuple: &u32| {
            let virgin = self.virgin.get((tuple >> 3) as usize).copied().unwrap_or(0xff);
            if edges_only { virgin == 0xff } else { virgin & (1 << (tuple & 7)) != 0 }
        };
        trace.edges.iter().any(is_new)
            || trace.keys.iter().any(|(key, value)| self.aggregates.would_move(*key, *value))
    }

    pub(super) fn learn(&mut self, trace: &Trace) {
        // A restarted target may have a larger map.
        let size = trace.edges.iter().map(|tuple| (tuple >> 3) as usize + 1).max().unwrap_or(0);
        self.virgin.resize(self.virgin.len().max(size), 0xff);
        for tuple in &trace.edges {
            if let Some(virgin) = self.virgin.get_mut((tuple >> 3) as usize) {
                *virgin &= !(1 << (tuple & 7));
            }
        }
        for (key, value) in &trace.keys {
            self.aggregates.merge_value(*key, *value);
        }
        self.moved |= !trace.edges.is_empty();
    }
}

pub(super) struct TraceWorker {
    pub(super) target: Hooked,
    batch: Vec<Candidate>,
    pub(super) known: Kinds,
}

/// Separate records per exit kind: an excluded run must not hide what a wanted run shows later.
pub(super) struct Kinds {
    ordinary: KnownTraces,
    crashes: KnownTraces,
    hangs: KnownTraces,
}

impl Kinds {
    pub(super) fn of(&mut self, exit: ExitKind) -> &mut KnownTraces {
        match exit {
            ExitKind::Ok => &mut self.ordinary,
            ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => &mut self.hangs,
            ExitKind::Crash { .. } | ExitKind::Oom => &mut self.crashes,
        }
    }
}

impl TraceWorker {
    pub(super) fn new(mut target: Hooked) -> Self {
        target.runner.settings_mut().watch_domains = true;
        let [ordinary, crashes, hangs] = [(); 3].map(|()| KnownTraces::new(target.info()));
        Self { batch: Vec::new(), known: Kinds { ordinary, crashes, hangs }, target }
    }

    /// Runs the inputs at these positions.
    fn run(
        &mut self,
        shared: &SharedWork<'_>,
        inputs: &[usize],
    ) -> Result<Vec<KeptRun>, CminError> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.resize_with(inputs.len(), Candidate::default);
        let mut readable = Vec::with_capacity(inputs.len());
        for input in inputs {
            let (path, candidate) = (&shared.inputs[*input], &mut batch[readable.len()]);
            match inputs::read_sized(path, shared.sizes[*input], &mut candidate.bytes) {
                Ok(()) => readable.push(*input),
                Err(error) if shared.stop.is_some() => {
                    shared.listener.warns(&skipped(&error));
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            shared.listener.reads(path).map_err(CminError::Report)?;
        }
        batch.truncate(readable.len());
        let runs = self.trace(&batch, |index, edges| shared.keep_trace(readable[index], edges));
        self.batch = batch;
        let run = |(index, exit, trace)| KeptRun { input: readable[index], exit, trace };
        Ok(runs?.into_iter().map(run).collect())
    }

    /// Runs a batch. Returns position, exit and trace of the runs that failed or showed something new. `see` gets the
    /// position and the counters of each run.
    pub(super) fn trace(
        &mut self,
        batch: &[Candidate],
        see: impl Fn(usize, &[u8]) -> Result<(), CminError>,
    ) -> Result<Vec<(usize, ExitKind, Trace)>, CminError> {
        let (mut runs, mut next) = (Vec::new(), 0);
        while let Some(run) = self.target.run(batch, &mut next)? {
            let (index, exit) = (run.index, run.exit);
            let known = self.known.of(exit);
            let trace = match known.has_all_of(&run) {
                true => Trace::default(),
                false => Trace::of(run.edges, &run.dsf),
            };
            see(index, run.edges)?;
            known.learn(&trace);
            if exit != ExitKind::Ok || trace != Trace::default() {
                runs.push((index, exit, trace));
            }
            self.teach();
        }
        Ok(runs)
    }

    /// Updates the executor's record of known edges and values, for which it need not stop again.
    pub(super) fn teach(&mut self) {
        let (ordinary, executor) = (&mut self.known.ordinary, self.target.runner.executor_mut());
        if std::mem::take(&mut ordinary.moved) {
            executor.learn_edges(&ordinary.virgin);
        }
        for key in ordinary.aggregates.take_moved() {
            executor.learn_key(key, ordinary.aggregates.threshold(key));
        }
    }
}
