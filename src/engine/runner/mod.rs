//! Layer between a search and its executor: every run passes the hooks of the foreign mutators, and the last inputs are
//! recorded.
//!
//! `post_process` changes the input, `send` delivers it, `post_run` follows. Without hooks, calls go straight to the
//! executor.

mod record;

/// Factor for the timeout of another build of the target.
pub const SLOWER: u32 = 5;

use self::record::InputRecord;
use crate::executor::{Executor, Observation, RunError, RunSettings, StopRequest, TargetInfo};
use crate::mutate::foreign::{ForeignMutators, Processed};
use crate::mutate::{self, Candidate};

/// A runner with the mutators whose hooks apply to its runs.
pub struct Runs<'a> {
    pub runner: &'a mut Runner,
    pub mutators: &'a mut dyn ForeignMutators,
}

impl Runs<'_> {
    /// See [`Runner::observe`].
    pub fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        self.runner.observe(self.mutators, input)
    }
}

/// Owns an executor.
pub struct Runner {
    executor: Box<dyn Executor>,
    /// Another build of the target, which logs comparisons.
    logger: Option<Box<dyn Executor>>,
    /// Calls `send` while the child runs.
    late: bool,
    /// See [`Runner::show_every_run`].
    shows_every_run: bool,
    single: Vec<u8>,
    /// Processed batch; position of each of its candidates in the given batch; number of candidates run.
    batch: Vec<Candidate>,
    places: Vec<usize>,
    next: usize,
    delivered: Delivered,
    record: InputRecord,
    /// Process whose inputs are recorded.
    recorded: Option<i32>,
    /// Position in the record where the last runs begin.
    mark: u64,
}

/// Location of the bytes of the run that was shown last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Delivered {
    AsGiven,
    Single,
    Batch(usize),
}

impl Runner {
    #[must_use]
    pub fn new(executor: Box<dyn Executor>) -> Self {
        Self {
            executor,
            logger: None,
            late: false,
            shows_every_run: false,
            single: Vec::new(),
            batch: Vec::new(),
            places: Vec::new(),
            next: 0,
            delivered: Delivered::AsGiven,
            record: InputRecord::default(),
            recorded: None,
            mark: 0,
        }
    }

    /// Records the last `most` inputs.
    #[must_use]
    pub fn recording(mut self, most: usize) -> Self {
        self.record = InputRecord::new(most);
        self
    }

    /// `AFL_CUSTOM_MUTATOR_LATE_SEND`.
    #[must_use]
    pub fn send_late(mut self, late: bool) -> Self {
        self.late = late;
        self
    }

    #[must_use]
    pub fn info(&self) -> &dyn TargetInfo {
        self.executor.info()
    }

    /// Sets another build of the target to log comparisons; None: the target itself does.
    pub fn log_by(&mut self, logger: Option<Box<dyn Executor>>) {
        self.logger = logger;
    }

    /// The build that logs comparisons; None if the target itself does.
    #[must_use]
    pub fn logger(&self) -> Option<&dyn TargetInfo> {
        self.logger.as_ref().map(|logger| logger.info())
    }

    /// See [`Executor::stop_on`].
    pub fn stop_on(&mut self, request: Option<StopRequest>) {
        if let Some(logger) = &mut self.logger {
            logger.stop_on(request.clone());
        }
        self.executor.stop_on(request);
    }

    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        self.executor.settings()
    }

    /// Settings of the executor. [`RunSettings::show_every_run`] is overwritten, see [`Runner::show_every_run`].
    pub fn settings_mut(&mut self) -> &mut RunSettings {
        self.executor.settings_mut()
    }

    /// Makes [`Runner::run`] show every run, uninteresting ones as well.
    pub fn show_every_run(&mut self, every: bool) {
        self.shows_every_run = every;
    }

    /// The executor, without the hooks.
    pub fn executor_mut(&mut self) -> &mut dyn Executor {
        &mut *self.executor
    }

    /// Call it before runs. If the previous runs used a new process, discards the inputs before them.
    fn note_process(&mut self) {
        let process = self.info().process();
        if process != self.recorded {
            self.recorded = process;
            self.record.forget_before(self.mark);
        }
        self.mark = self.record.added();
    }

    /// Takes the recorded inputs as delivered, the last run last. If a process takes many inputs, only those of the
    /// last run's process.
    pub fn take_record(&mut self) -> Vec<Vec<u8>> {
        self.note_process();
        self.record.take()
    }

    /// Input as delivered in the run shown last; None if it was delivered as given.
    #[must_use]
    pub fn delivered(&self) -> Option<&[u8]> {
        match self.delivered {
            Delivered::AsGiven => None,
            Delivered::Single => Some(&self.single),
            Delivered::Batch(index) => Some(&self.batch[index].bytes),
        }
    }

    /// Largest useful batch now.
    #[must_use]
    pub fn batch_size(&self, hooks: &dyn ForeignMutators) -> usize {
        if hooks.need_single_runs() { 1 } else { self.info().batch_size() }
    }

    /// Runs one input and always returns its observation. An input that `post_process` drops is run unchanged, because
    /// the caller needs an observation.
    pub fn observe<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        input: &[u8],
    ) -> Result<Observation<'a>, RunError> {
        let processed = hooks.post_process(input, &mut self.single);
        self.execute(hooks, input, processed, false)
    }

    /// Like [`Runner::observe`], with a log of comparisons, see [`RunSettings::log_comparisons`]. Each switch between
    /// the two kinds of runs costs a new process, so group them.
    pub fn observe_logged<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        input: &[u8],
    ) -> Result<Observation<'a>, RunError> {
        let processed = hooks.post_process(input, &mut self.single);
        if self.logger.is_none() {
            return self.execute(hooks, input, processed, true);
        }
        let timeout = self.executor.settings().timeout * SLOWER;
        let logger = self.logger.as_mut().unwrap_or(&mut self.executor);
        let settings = logger.settings_mut();
        settings.timeout = timeout;
        settings.log_comparisons = true;
        let bytes = if processed == Processed::Changed { &self.single } else { input };
        logger.observe(bytes)
    }

    /// Runs an input as delivered in an earlier run, without `post_process`.
    pub fn replay<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        input: &[u8],
    ) -> Result<Observation<'a>, RunError> {
        self.execute(hooks, input, Processed::AsGiven, false)
    }

    /// Runs an input after `post_process`.
    fn execute<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        input: &[u8],
        processed: Processed,
        logs: bool,
    ) -> Result<Observation<'a>, RunError> {
        self.executor.settings_mut().log_comparisons = logs;
        self.note_process();
        let changed = processed == Processed::Changed;
        self.delivered = if changed { Delivered::Single } else { Delivered::AsGiven };
        let bytes = if changed { &self.single } else { input };
        let run = if hooks.sends() {
            self.executor.observe_sent(self.late, &mut || hooks.send(bytes))?
        } else {
            self.executor.observe(bytes)?
        };
        hooks.post_run();
        self.record.add(bytes);
        Ok(run)
    }

    /// Like [`Executor::run`], with the candidates after the hooks.
    pub fn run<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'a>>, RunError> {
        let touched = hooks.touch_runs();
        let settings = self.executor.settings_mut();
        // The delivered bytes are known only for runs that are shown.
        settings.log_comparisons = false;
        settings.show_every_run = self.shows_every_run || (settings.paths.is_some() && touched);
        if !touched {
            self.delivered = Delivered::AsGiven;
            let from = *next;
            self.note_process();
            let run = self.executor.run(batch, next)?;
            let done = run.as_ref().map_or(*next, |run| run.index + 1);
            self.record.add_all(&batch[from..done]);
            Ok(run)
        } else if hooks.need_single_runs() {
            self.run_singly(hooks, batch, next)
        } else {
            self.run_processed(hooks, batch, next)
        }
    }

    /// Runs the candidates one by one, skipping dropped ones.
    fn run_singly<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'a>>, RunError> {
        let mut processed = Processed::Skipped;
        while processed == Processed::Skipped {
            let Some(candidate) = batch.get(*next) else { return Ok(None) };
            *next += 1;
            processed = hooks.post_process(&candidate.bytes, &mut self.single);
        }
        let index = *next - 1;
        Ok(Some(Observation {
            index,
            ..self.execute(hooks, &batch[index].bytes, processed, false)?
        }))
    }

    /// Processes the whole batch before its first run.
    fn run_processed<'a>(
        &'a mut self,
        hooks: &mut dyn ForeignMutators,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'a>>, RunError> {
        if *next == 0 {
            self.process(hooks, batch);
        }
        let from = self.next;
        self.note_process();
        let run = self.executor.run(&self.batch[..self.places.len()], &mut self.next)?;
        let done = run.as_ref().map_or(self.next.min(self.places.len()), |run| run.index + 1);
        self.record.add_all(&self.batch[from..done]);
        let Some(run) = run else {
            *next = self.places.get(self.next).copied().unwrap_or(batch.len());
            return Ok(None);
        };
        self.delivered = Delivered::Batch(run.index);
        let index = self.places[run.index];
        *next = index + 1;
        Ok(Some(Observation { index, ..run }))
    }

    fn process(&mut self, hooks: &mut dyn ForeignMutators, batch: &[Candidate]) {
        self.places.clear();
        self.next = 0;
        if self.batch.len() < batch.len() {
            self.batch.resize_with(batch.len(), Candidate::default);
        }
        for (index, candidate) in batch.iter().enumerate() {
            let out = &mut self.batch[self.places.len()].bytes;
            match hooks.post_process(&candidate.bytes, out) {
                Processed::Skipped => continue,
                Processed::Changed => {}
                Processed::AsGiven => out.clone_from(&candidate.bytes),
            }
            self.places.push(index);
        }
    }

    /// Frees buffers far larger than processed inputs of `len` bytes, see [`mutate::release`].
    pub fn release_buffers(&mut self, len: usize) {
        mutate::release(&mut self.batch, len);
    }

    /// Returns true if the target reads its input, see [`Executor::reads_input`].
    pub fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, RunError> {
        self.executor.reads_input(input)
    }
}
