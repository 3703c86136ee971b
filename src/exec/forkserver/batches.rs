//! Runs ordered through the channel, many at once if the target can.

use std::time::{Duration, Instant};

use super::delay::Delay;
use super::patience::{self, Patience};
use super::soft::SoftLimit;
use super::{ForkServer, GRACE, NoRun, Pass};
use crate::delivery::InputDelivery;
use crate::runs::{BatchState, Child, Look, MOST_CASES, RunChannel};
use crate::{RunEnd, TargetError, exit_kind};
use ffuzz_config::options::RunMode;
use ffuzz_engine::executor::ExitKind;
use ffuzz_mutate::Candidate;
use ffuzz_sys::process::Doing;

/// Target duration of a batch: the hand-over costs a thousandth of it, and the screen stays responsive.
const BATCH_TIME: Duration = Duration::from_millis(2);

/// Number of test cases in a batch whose size must not depend on the clock.
const STEADY_CASES: usize = 64;

/// Duration after which a batch ends early, because its size was planned for faster inputs.
const LONGEST_BATCH: Duration = Duration::from_millis(250);

/// Interval without a report after which the fork server is checked; shorter with a short limit.
const SHORTEST_SLICE: Duration = Duration::from_millis(1);
const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// Interval between two checks whether a killed child has ended.
const LOOK: Duration = Duration::from_micros(200);

/// Time limit for a child's preparation before its first run, in addition to the timeout of a run.
const START_TIME: Duration = Duration::from_secs(2);

/// How a batch ended.
#[derive(Clone, Copy)]
pub(super) enum BatchEnd {
    Stopped {
        finished: usize,
        shown: bool,
    },
    Ended {
        finished: usize,
        status: i32,
    },
    /// The case after the `finished` ones took too long, and the child was killed.
    Hung {
        finished: usize,
    },
    /// The case after the `finished` ones reached the soft limit, and the child was killed.
    Cut {
        finished: usize,
    },
}

impl BatchEnd {
    /// Number of finished cases.
    pub(super) fn done(self) -> usize {
        match self {
            Self::Stopped { finished, .. }
            | Self::Ended { finished, .. }
            | Self::Hung { finished }
            | Self::Cut { finished } => finished,
        }
    }
}

impl ForkServer {
    /// Returns true if a child runs several inputs without a fork.
    pub(super) fn takes_batches(&self) -> bool {
        self.restores() || self.loops_in_batches()
    }

    pub(super) fn loops_in_batches(&self) -> bool {
        self.setup.options.run_mode == RunMode::Batch && self.takes_cases()
    }

    fn takes_cases(&self) -> bool {
        let shared = matches!(self.session.delivery, InputDelivery::Shared { .. });
        self.session.runs.is_some() && shared && self.setup.persistent()
    }

    /// Returns true if every run of a batch is shown, for example because the target cannot hash its path.
    pub(super) fn shows_each(&self) -> bool {
        self.settings.show_every_run || (self.settings.paths.is_some() && !self.hashes_paths())
    }

    fn hashes_paths(&self) -> bool {
        self.session.maps.channel().is_some_and(|channel| channel.hashes_paths)
    }

    fn look(&self, each: bool) -> Look {
        Look {
            each,
            watch: self.settings.watch_domains,
            paths: self.settings.paths.filter(|_| !each),
        }
    }

    /// Records the paths of those runs of a pass that are not shown; `first` is the index of its first run.
    pub(super) fn keep_paths(&mut self, first: usize, pass: &Pass) {
        let (Some(_), Some(runs)) = (self.settings.paths, &self.session.runs) else { return };
        if self.shows_each() {
            return;
        }
        let quiet = pass.done - usize::from(pass.shown.is_some());
        self.quiet.extend((0..quiet).map(|case| (first + case, runs.path(case))));
    }

    /// Runs one input; its maps stay in place.
    pub(super) fn run_by_channel(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let pass = self.pass(std::iter::once(input), true)?;
        pass.shown.ok_or_else(nonsense)
    }

    /// Runs inputs until one must be judged. The target clears its maps after each other one.
    pub(super) fn run_batch(&mut self, batch: &[Candidate]) -> Result<Pass, NoRun> {
        let inputs = batch.iter().map(|candidate| candidate.bytes.as_slice());
        self.look_at_doubt()?;
        let restorable = match self.restores() {
            true => inputs.clone().take_while(|input| self.begins_right(input)).count(),
            false => 0,
        };
        match restorable {
            0 => self.pass(inputs, self.shows_each()),
            count => self.run_by_snapshot(inputs.take(count)),
        }
    }

    fn pass<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]>,
        each: bool,
    ) -> Result<Pass, NoRun> {
        self.clear_maps();
        let (cases, look) = (self.takes_cases(), self.look(each));
        if !cases {
            let input = inputs.next().unwrap_or_default();
            let is_sparing = self.setup.way().copied().is_some() && !each && !self.logs;
            let mut end =
                if is_sparing { self.run_sparingly(input)? } else { self.run_once(input)? };
            end.exit = self.end_without_breakpoints(input, end.exit)?;
            return Ok(Pass::one(end));
        }
        let Some(runs) = &mut self.session.runs else { return Err(nonsense()) };
        let start = Instant::now();
        runs.begin(inputs, look, Child::Own);
        let end = self.await_end(start, 1)?;
        Ok(self.conclude(end, start.elapsed()))
    }

    /// Runs one input in a child that ends afterwards.
    pub(super) fn run_once(&mut self, input: &[u8]) -> Result<RunEnd, NoRun> {
        let session = &mut self.session;
        let Some(runs) = &mut session.runs else { return Err(nonsense()) };
        let start = Instant::now();
        session.delivery.deliver(input)?;
        runs.begin_one();
        let end = self.await_end(start, 1)?;
        self.conclude(end, start.elapsed()).shown.ok_or_else(nonsense)
    }

    /// Orders runs from a child that is restored after each of them.
    pub(super) fn order_lasting<'a>(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        each: bool,
    ) -> Result<(BatchEnd, Duration), NoRun> {
        self.clear_maps();
        let look = self.look(each);
        let Some(runs) = &mut self.session.runs else { return Err(nonsense()) };
        let start = Instant::now();
        runs.begin(inputs, look, Child::Lasting);
        let end = self.await_end(start, 0)?;
        Ok((end, start.elapsed()))
    }

    fn clear_maps(&mut self) {
        self.session.maps.clear();
        if self.logs {
            self.session.maps.clear_log();
        }
    }

    /// Ends children that do not fit the settings, because comparison logging and skipped messages require children
    /// of their own: applies [`RunSettings::log_comparisons`](ffuzz_engine::executor::RunSettings::log_comparisons)
    /// and [`RunSettings::beginning`](ffuzz_engine::executor::RunSettings::beginning).
    pub(super) fn switch_children(&mut self) {
        let logs = self.settings.log_comparisons && self.can_log();
        let is_shared = self.settings.beginning.is_some() && !logs && self.shares_beginnings();
        let beginning = self.settings.beginning.as_ref().filter(|_| is_shared);
        if logs == self.logs && beginning == self.beginning.as_ref() {
            return;
        }
        self.beginning = beginning.cloned();
        if logs != self.logs {
            self.end_idle_child(Child::Own);
        }
        self.end_idle_child(Child::Lasting);
        self.note_new_child();
        self.logs = logs;
        let prefix = self.beginning.as_ref().map_or(0, |beginning| beginning.bytes().len());
        if let Some(runs) = &mut self.session.runs {
            runs.set_log(logs);
            runs.set_prefix(prefix);
        }
    }

    /// Returns true if the restored child can run this input.
    pub(super) fn begins_right(&self, input: &[u8]) -> bool {
        self.beginning.as_ref().is_none_or(|beginning| beginning.starts(input))
    }

    pub(super) fn can_log(&self) -> bool {
        let has_channel_log = self.session.runs.is_some()
            && self.session.maps.channel().is_some_and(|channel| channel.can_log());
        has_channel_log || self.session.log.is_some()
    }

    /// Ends a child that is waiting for its next batch.
    pub(super) fn end_idle_child(&mut self, kind: Child) {
        let runs = self.session.runs.as_mut();
        let Some(child) = runs.and_then(|runs| runs.dismiss(kind)) else {
            return;
        };
        self.child = Some(child);
        self.kill_child(libc::SIGKILL);
        self.child = None;
        // The fork server reports the end within a millisecond, without a wake-up, if it gets a core.
        let start = Instant::now();
        let mut patience = None;
        while self.session.runs.as_mut().is_some_and(|runs| !runs.forget(kind)) {
            if start.elapsed() >= GRACE {
                let server = &self.session.process;
                let patience = patience.get_or_insert_with(|| Patience::new(server));
                // A later report does not count as the end of a run.
                if patience.is_over(server, Some(child), &mut self.setup.leave).is_some() {
                    return;
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    pub(super) fn conclude(&mut self, end: BatchEnd, elapsed: Duration) -> Pass {
        let (done, exit) = match end {
            BatchEnd::Stopped { finished, shown } => (finished, shown.then_some(ExitKind::Ok)),
            BatchEnd::Hung { finished } => (finished + 1, Some(ExitKind::Hang)),
            BatchEnd::Cut { finished } => (finished + 1, Some(ExitKind::Cut)),
            BatchEnd::Ended { finished, status } => {
                let exit = exit_kind(status, false, |code| self.is_crash_code(code));
                (finished + 1, Some(exit))
            }
        };
        self.execs += done as u64;
        self.spent.add(elapsed, self.session.runs.as_ref().map(RunChannel::work));
        let duration = elapsed / done.max(1) as u32;
        self.note_child(elapsed);
        self.adapt(duration);
        match exit {
            Some(exit) => self.session.maps.collect(exit == ExitKind::Ok),
            None => self.session.maps.note_clean(),
        }
        Pass { done, shown: exit.map(|exit| RunEnd { exit, duration }) }
    }

    /// Plans longer batches for quick runs, at most twice the last size: a single run proves little.
    fn adapt(&mut self, run: Duration) {
        if self.setup.options.steady_batches {
            self.cases = STEADY_CASES;
            return;
        }
        let fitting = BATCH_TIME.as_nanos() / run.as_nanos().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MOST_CASES);
        self.cases = fitting.clamp(1, (self.cases * 2).min(MOST_CASES));
    }

    /// Waits for the end of a batch. `present`: number of the case that runs from the start; 0 if the child must
    /// prepare first.
    fn await_end(&mut self, start: Instant, present: u32) -> Result<BatchEnd, NoRun> {
        let mut soft = self.soft_limit();
        let interval = soft.map_or(Duration::MAX, |soft| soft.interval());
        let slice = (self.settings.timeout / 4).min(interval).clamp(SHORTEST_SLICE, LONGEST_SLICE);
        // A new process with a loop prepares before its first run; that time is no part of a run.
        let loops = self.setup.persistent() || present == 0;
        let startup = if present == 0 { Duration::ZERO } else { self.startup() };
        // The current case, and the time since when it is known to run.
        let (mut present, mut since) = (present, start);
        let (mut cut, mut delay) = (false, Delay::new(&self.settings));
        loop {
            let progress = self.wait(slice)?;
            if matches!(progress, BatchState::Underway { .. }) && !cut && self.is_too_long(start) {
                self.session.runs.iter_mut().for_each(RunChannel::cut_short);
                cut = true;
            }
            match progress {
                BatchState::Underway { started } if started > present => {
                    (present, since) = (started, Instant::now());
                    soft.iter_mut().for_each(SoftLimit::restart);
                    delay.restart();
                }
                BatchState::Underway { started } => {
                    let is_ready = started > 0 || !loops;
                    if is_ready && soft.as_mut().is_some_and(|soft| soft.is_over(self.child)) {
                        let finished = started.saturating_sub(1) as usize;
                        self.end_slow_child(started.saturating_sub(1))?;
                        return Ok(BatchEnd::Cut { finished });
                    }
                    let limit =
                        self.settings.timeout + if present == 0 { START_TIME } else { startup };
                    if !delay.allows(self.running(), since.elapsed(), limit) {
                        return self.end_slow_child(started.saturating_sub(1));
                    }
                    if self.setup.leave.is_due() {
                        self.end_slow_child(0)?;
                        return Err(TargetError::Interrupted.into());
                    }
                    self.look_at_server()?;
                }
                BatchState::Stopped { finished, shown } => {
                    return Ok(BatchEnd::Stopped { finished: finished as usize, shown });
                }
                BatchState::Ended { finished, status } => {
                    return Ok(BatchEnd::Ended { finished: finished as usize, status });
                }
                BatchState::Late => {
                    let how = "it reported late that a process had ended";
                    return Err(NoRun::Lost(how.into()));
                }
                BatchState::Nonsense => return Err(nonsense()),
            }
        }
    }

    /// Returns true if a batch that began at `start` must stop after its current case.
    fn is_too_long(&self, start: Instant) -> bool {
        let late = !self.setup.options.steady_batches && start.elapsed() >= LONGEST_BATCH;
        self.setup.leave.is_asked() || (late && self.setup.leave.can_be_asked())
    }

    /// Fails if the fork server has ended, or is stopped, because it reports nothing then and nothing resumes it.
    fn look_at_server(&mut self) -> Result<(), NoRun> {
        if let Some(status) = self.session.process.try_wait() {
            return Err(NoRun::Lost(super::describe_end(Some(status))));
        }
        if self.session.process.doing().0 == Doing::Stopped {
            return Err(NoRun::Lost("it was stopped, or is traced".into()));
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<BatchState, NoRun> {
        let runs = self.session.runs.as_mut().ok_or_else(nonsense)?;
        let progress = runs.wait(timeout);
        self.child = Some(runs.child()).filter(|_| runs.is_alive());
        Ok(progress)
    }

    /// Kills the child; with SIGKILL if it ignores the signal that the user chose.
    fn end_slow_child(&mut self, case: u32) -> Result<BatchEnd, NoRun> {
        let hung = BatchEnd::Hung { finished: case as usize };
        let wanted = self.setup.options.kill_signal;
        if wanted != libc::SIGKILL {
            self.kill_child(wanted);
            let start = Instant::now();
            while start.elapsed() < GRACE {
                if self.has_child_ended()? {
                    return Ok(hung);
                }
                self.look_at_server()?;
            }
        }
        let mut patience = None;
        while !self.has_child_ended()? {
            // Repeat: on a busy machine a child may run before the fork server has reported its pid.
            self.kill_child(libc::SIGKILL);
            let server = &self.session.process;
            let patience = patience.get_or_insert_with(|| Patience::new(server));
            if let Some(end) = patience.is_over(server, self.child, &mut self.setup.leave) {
                return Err(end);
            }
        }
        Ok(hung)
    }

    fn has_child_ended(&mut self) -> Result<bool, NoRun> {
        let runs = self.session.runs.as_mut().ok_or_else(nonsense)?;
        let ended = runs.wait_for_end(patience::LOOK);
        self.child = (!ended).then(|| runs.child());
        Ok(ended)
    }
}

pub(super) fn nonsense() -> NoRun {
    NoRun::Lost("its reports make no sense: it may have overwritten shared memory".into())
}
