//! An executor with foreign mutators: every run passes their hooks.
//!
//! `post_process` decides what the target gets, `fuzz_send` delivers it, `post_run` follows. Without
//! such hooks calls go straight through.

use std::path::PathBuf;
use std::time::Duration;

use super::record::InputRecord;
use ffuzz_config::options::RunMode;
use ffuzz_engine::coverage::Classes;
use ffuzz_engine::domain::{Domain, Site};
use ffuzz_engine::executor::{
    Executor, ExitKind, Module, Observation, ProcessorTime, RunError, SnapshotRuns, Spent, Wish,
};
use ffuzz_engine::mutate::Candidate;
use ffuzz_engine::mutate::foreign::ForeignMutators;
use ffuzz_engine::mutate::words::Word;
use ffuzz_mutators::{Hook, Mutators, Processed};

/// Owns an executor and the mutators.
pub struct Hooked {
    inner: Box<dyn Executor>,
    pub mutators: Mutators,
    /// `fuzz_send` is called when the child runs.
    late: bool,
    single: Vec<u8>,
    /// The processed batch; which one of the given batch each was; and how far it was run.
    batch: Vec<Candidate>,
    places: Vec<usize>,
    next: usize,
    delivered: Delivered,
    record: InputRecord,
    /// The process whose inputs are recorded.
    recorded: Option<i32>,
    /// Position in the record at which the last runs begin.
    mark: u64,
    /// See [`Executor::note_paths`].
    notes_paths: bool,
}

/// Position of the bytes of the run that was shown last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Delivered {
    AsGiven,
    Single,
    Batch(usize),
}

impl Hooked {
    #[must_use]
    pub fn new(inner: Box<dyn Executor>, mutators: Mutators) -> Self {
        Self {
            inner,
            mutators,
            late: false,
            single: Vec::new(),
            batch: Vec::new(),
            places: Vec::new(),
            next: 0,
            delivered: Delivered::AsGiven,
            record: InputRecord::default(),
            recorded: None,
            mark: 0,
            notes_paths: false,
        }
    }

    /// Records the last `most` inputs from now on.
    pub fn record(&mut self, most: usize) {
        self.record = InputRecord::new(most);
    }

    /// To be called before runs. If the previous runs used a new process, the inputs before them are no
    /// longer needed.
    fn note_process(&mut self) {
        let process = self.inner.process();
        if process != self.recorded {
            self.recorded = process;
            self.record.forget_before(self.mark);
        }
        self.mark = self.record.added();
    }

    /// Those inputs as the target got them, the last run is the last. If a process takes many inputs they
    /// are those of the last run's process.
    pub fn take_record(&mut self) -> Vec<Vec<u8>> {
        self.note_process();
        self.record.take()
    }

    /// `AFL_CUSTOM_MUTATOR_LATE_SEND`.
    #[must_use]
    pub fn send_late(mut self, late: bool) -> Self {
        self.late = late;
        self
    }

    /// Runs what `post_process` made of an input.
    fn execute(&mut self, input: &[u8], processed: Processed) -> Result<Observation<'_>, RunError> {
        self.note_process();
        let changed = processed == Processed::Changed;
        self.delivered = if changed { Delivered::Single } else { Delivered::AsGiven };
        let bytes = if changed { &self.single } else { input };
        let run = if self.mutators.has(Hook::FuzzSend) {
            let mutators = &mut self.mutators;
            self.inner.observe_sent(self.late, &mut || mutators.fuzz_send(bytes))?
        } else {
            self.inner.observe(bytes)?
        };
        self.mutators.post_run();
        self.record.add(bytes);
        Ok(run)
    }

    /// Runs them one by one, and skips dropped ones.
    fn run_singly(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        let mut processed = Processed::Skipped;
        while processed == Processed::Skipped {
            let Some(candidate) = batch.get(*next) else { return Ok(None) };
            *next += 1;
            processed = self.mutators.post_process(&candidate.bytes, &mut self.single);
        }
        let index = *next - 1;
        Ok(Some(Observation { index, ..self.execute(&batch[index].bytes, processed)? }))
    }

    /// The whole batch is processed before its first run.
    fn run_processed(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        if *next == 0 {
            self.process(batch);
        }
        let from = self.next;
        self.note_process();
        let run = self.inner.run(&self.batch[..self.places.len()], &mut self.next)?;
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

    fn process(&mut self, batch: &[Candidate]) {
        self.places.clear();
        self.next = 0;
        if self.batch.len() < batch.len() {
            self.batch.resize_with(batch.len(), Candidate::default);
        }
        for (index, candidate) in batch.iter().enumerate() {
            let out = &mut self.batch[self.places.len()].bytes;
            match self.mutators.post_process(&candidate.bytes, out) {
                Processed::Skipped => continue,
                Processed::Changed => {}
                Processed::AsGiven => out.clone_from(&candidate.bytes),
            }
            self.places.push(index);
        }
    }
}

impl Executor for Hooked {
    /// An input that `post_process` drops is run unchanged, because the caller needs an observation.
    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, RunError> {
        let processed = self.mutators.post_process(input, &mut self.single);
        self.execute(input, processed)
    }

    fn run(
        &mut self,
        batch: &[Candidate],
        next: &mut usize,
    ) -> Result<Option<Observation<'_>>, RunError> {
        if !self.mutators.touch_runs() {
            self.delivered = Delivered::AsGiven;
            let from = *next;
            self.note_process();
            let run = self.inner.run(batch, next)?;
            let done = run.as_ref().map_or(*next, |run| run.index + 1);
            self.record.add_all(&batch[from..done]);
            Ok(run)
        } else if self.mutators.need_single_runs() {
            self.run_singly(batch, next)
        } else {
            self.run_processed(batch, next)
        }
    }

    fn replay(&mut self, input: &[u8]) -> Result<ExitKind, RunError> {
        self.note_process();
        let exit = if self.mutators.has(Hook::FuzzSend) {
            let mutators = &mut self.mutators;
            self.inner.observe_sent(self.late, &mut || mutators.fuzz_send(input))?.exit
        } else {
            self.inner.observe(input)?.exit
        };
        self.mutators.post_run();
        self.record.add(input);
        Ok(exit)
    }

    fn mutators(&mut self) -> &mut dyn ForeignMutators {
        &mut self.mutators
    }

    fn reads_input(&mut self, input: &[u8]) -> Result<Option<bool>, RunError> {
        self.inner.reads_input(input)
    }

    fn observe_sent(
        &mut self,
        late: bool,
        send: &mut dyn FnMut(),
    ) -> Result<Observation<'_>, RunError> {
        self.inner.observe_sent(late, send)
    }

    fn delivered(&self) -> Option<&[u8]> {
        match self.delivered {
            Delivered::AsGiven => None,
            Delivered::Single => Some(&self.single),
            Delivered::Batch(index) => Some(&self.batch[index].bytes),
        }
    }

    fn batch_size(&self) -> usize {
        if self.mutators.need_single_runs() { 1 } else { self.inner.batch_size() }
    }

    fn show_every_run(&mut self, every: bool) {
        // What the target got is known of runs that are shown.
        self.inner.show_every_run(every || (self.notes_paths && self.mutators.touch_runs()));
    }

    fn note_paths(&mut self, of: Option<Classes>) {
        self.notes_paths = of.is_some();
        self.inner.note_paths(of);
    }

    fn quiet_paths(&self) -> &[(usize, u64)] {
        self.inner.quiet_paths()
    }

    fn watch_domains(&mut self) {
        self.inner.watch_domains();
    }

    fn learn_edges(&mut self, virgin: &[u8]) {
        self.inner.learn_edges(virgin);
    }

    fn learn_key(&mut self, key: u32, threshold: u32) {
        self.inner.learn_key(key, threshold);
    }

    fn map_size(&self) -> usize {
        self.inner.map_size()
    }

    fn domains(&self) -> &[Domain] {
        self.inner.domains()
    }

    fn modules(&self) -> Vec<Module> {
        self.inner.modules()
    }

    fn sites(&self) -> Vec<Site> {
        self.inner.sites()
    }

    fn words(&self) -> (Vec<Word>, Vec<PathBuf>) {
        self.inner.words()
    }

    fn server(&self) -> Option<i32> {
        self.inner.server()
    }

    fn execs(&self) -> u64 {
        self.inner.execs()
    }

    fn spent(&self) -> Spent {
        self.inner.spent()
    }

    fn processor_time(&self) -> Option<ProcessorTime> {
        self.inner.processor_time()
    }

    fn timeout(&self) -> Duration {
        self.inner.timeout()
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.inner.set_timeout(timeout);
    }

    fn set_soft_limit(&mut self, limit: Option<Duration>) {
        self.inner.set_soft_limit(limit);
    }

    fn target_mode(&self) -> String {
        self.inner.target_mode()
    }

    fn run_mode(&self) -> RunMode {
        self.inner.run_mode()
    }

    fn snapshot_runs(&self) -> Option<SnapshotRuns> {
        self.inner.snapshot_runs()
    }

    fn take_notes(&mut self) -> Vec<String> {
        let mut notes = self.mutators.take_messages();
        notes.extend(self.inner.take_notes());
        notes
    }

    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        self.inner.take_dictionary()
    }

    fn process(&self) -> Option<i32> {
        self.inner.process()
    }

    fn end_process(&mut self) {
        self.inner.end_process();
    }

    fn take_restart(&mut self) -> Option<String> {
        self.inner.take_restart()
    }

    fn restarts(&self) -> u64 {
        self.inner.restarts()
    }

    fn heed(&mut self, end: Option<Wish>) {
        self.inner.heed(end);
    }

    fn is_hurried(&self) -> bool {
        self.inner.is_hurried()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::fake::FakeExecutor;
    use ffuzz_mutators::fake::{Calls, FakeMutator};
    use ffuzz_mutators::{HookError, Made, Mutator};

    /// Records its runs together with the calls of the mutators.
    fn executor(calls: &Calls) -> Box<dyn Executor> {
        let calls = calls.clone();
        Box::new(FakeExecutor::new(8, vec![], move |input, edges, _| {
            edges[0] = 1;
            calls.add(format!("run {}", String::from_utf8_lossy(input)));
            ExitKind::Ok
        }))
    }

    /// A fake whose post_process doubles the input and drops those with an x.
    fn doubler(hooks: &[Hook], calls: &Calls) -> Box<dyn Mutator> {
        Box::new(FakeMutator::new(hooks, calls, |input, out| {
            out.extend_from_slice(input);
            out.extend_from_slice(input);
            Ok(if input.contains(&b'x') { Made::Nothing } else { Made::Input })
        }))
    }

    fn batch(inputs: &[&str]) -> Vec<Candidate> {
        let candidate =
            |text: &&str| Candidate { bytes: text.as_bytes().to_vec(), ..Candidate::default() };
        inputs.iter().map(candidate).collect()
    }

    fn run_all(hooked: &mut Hooked, inputs: &[&str]) -> Vec<(usize, Option<Vec<u8>>)> {
        let (batch, mut next, mut seen) = (batch(inputs), 0, Vec::new());
        while let Some(run) = hooked.run(&batch, &mut next).unwrap() {
            let index = run.index;
            seen.push((index, hooked.delivered().map(<[u8]>::to_vec)));
        }
        assert_eq!(next, batch.len());
        seen
    }

    #[test]
    fn without_hooks_nothing_is_between() {
        let calls = Calls::default();
        let mut hooked = Hooked::new(executor(&calls), Mutators::default());
        assert_eq!(run_all(&mut hooked, &["a", "b"]), [(0, None), (1, None)]);
        assert_eq!(calls.take(), ["run a", "run b"]);
    }

    #[test]
    fn a_batch_is_processed_and_dropped_inputs_are_not_run() {
        let calls = Calls::default();
        let mutators = Mutators::new(vec![doubler(&[Hook::PostProcess], &calls)], 1);
        let mut hooked = Hooked::new(executor(&calls), mutators);
        let seen = run_all(&mut hooked, &["a", "x", "b"]);
        assert_eq!(seen, [(0, Some(b"aa".to_vec())), (2, Some(b"bb".to_vec()))]);
        let before = ["post_process a", "post_process x", "post_process b", "run aa", "run bb"];
        assert_eq!(calls.take(), before);
        assert!(run_all(&mut hooked, &["x", "x"]).is_empty());
        // An input that must be observed is run.
        hooked.observe(b"x").unwrap();
        assert_eq!(hooked.delivered(), None);
        assert_eq!(calls.take().last().unwrap(), "run x");
    }

    #[test]
    fn two_mutators_are_chained_and_every_run_is_framed() {
        let calls = Calls::default();
        let hooks = [Hook::PostProcess, Hook::PostRun];
        let mutators = vec![doubler(&hooks, &calls), doubler(&[Hook::PostProcess], &calls)];
        let mut hooked = Hooked::new(executor(&calls), Mutators::new(mutators, 1));
        assert_eq!(hooked.batch_size(), 1);
        run_all(&mut hooked, &["a", "b"]);
        let one = ["post_process a", "post_process aa", "run aaaa", "post_run"];
        let two = ["post_process b", "post_process bb", "run bbbb", "post_run"];
        assert_eq!(calls.take(), [one, two].concat());
    }

    #[test]
    fn a_sender_replaces_the_delivery() {
        let calls = Calls::default();
        let hooks = [Hook::PostProcess, Hook::FuzzSend, Hook::PostRun];
        let mutators = Mutators::new(vec![doubler(&hooks, &calls)], 1);
        let mut hooked = Hooked::new(executor(&calls), mutators);
        run_all(&mut hooked, &["a"]);
        assert_eq!(calls.take(), ["post_process a", "fuzz_send aa", "run ", "post_run"]);
    }

    #[test]
    fn a_hook_that_only_fails_is_switched_off_and_named() {
        let calls = Calls::default();
        let failing =
            FakeMutator::new(&[Hook::PostProcess], &calls, |_, _| Err(HookError("no idea".into())));
        let mut hooked = Hooked::new(executor(&calls), Mutators::new(vec![Box::new(failing)], 1));
        let inputs = ["a"; 150];
        assert_eq!(run_all(&mut hooked, &inputs).len(), 50);
        assert_eq!(
            hooked.mutators.take_messages(),
            [
                "mutator fake: post_process: no idea",
                "mutator fake: post_process failed 100 times in a row and is switched off"
            ]
        );
    }
}
