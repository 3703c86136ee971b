//! Runs ordered through the channel, many at once if the target can.

use std::time::{Duration, Instant};

use super::{ForkServer, GRACE, NoRun, PATIENCE, Pass};
use crate::config::options::RunMode;
use crate::mutate::Candidate;
use crate::target::delivery::Delivery;
use crate::target::runs::{Child, MOST_CASES, Progress, Runs};
use crate::target::{ExitKind, Outcome, exit_kind};

/// What a batch may take: the hand-over is a thousandth of it, and the screen stays awake.
const BATCH_TIME: Duration = Duration::from_millis(2);

/// After so long without a report it is looked whether the fork server still lives.
const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// Between two looks whether a child that was killed is gone.
const LOOK: Duration = Duration::from_micros(200);

/// How long a child may take until it is ready for its first run, beyond the time of a run.
const START_TIME: Duration = Duration::from_secs(2);

/// How a batch ended.
#[derive(Clone, Copy)]
pub(super) enum End {
    Stopped {
        finished: usize,
        shown: bool,
    },
    Ended {
        finished: usize,
        status: i32,
    },
    /// The case behind those took too long, and the child was killed.
    Hung {
        finished: usize,
    },
}

impl End {
    /// Cases that were finished.
    pub(super) fn done(self) -> usize {
        match self {
            Self::Stopped { finished, .. }
            | Self::Ended { finished, .. }
            | Self::Hung { finished } => finished,
        }
    }
}

impl ForkServer {
    /// True if a child takes one input after the other by itself.
    pub(super) fn takes_batches(&self) -> bool {
        self.puts_back() || self.loops_in_batches()
    }

    pub(super) fn loops_in_batches(&self) -> bool {
        self.setup.options.run_mode == RunMode::Batch && self.takes_cases()
    }

    fn takes_cases(&self) -> bool {
        let shared = matches!(self.session.delivery, Delivery::Shared { .. });
        self.session.runs.is_some() && shared && self.setup.persistent()
    }

    /// Runs one input; its maps stay in place.
    pub(super) fn run_by_channel(&mut self, input: &[u8]) -> Result<Outcome, NoRun> {
        let pass = self.pass(std::iter::once(input), true)?;
        pass.shown.ok_or_else(nonsense)
    }

    /// Runs inputs until one has to be judged. The target clears its maps behind the others.
    pub(super) fn run_batch(&mut self, batch: &[Candidate]) -> Result<Pass, NoRun> {
        let inputs = batch.iter().map(|candidate| candidate.bytes.as_slice());
        if self.puts_back() {
            self.run_by_snapshot(inputs)
        } else {
            self.pass(inputs, self.every_run)
        }
    }

    fn pass<'a>(
        &mut self,
        mut inputs: impl Iterator<Item = &'a [u8]>,
        each: bool,
    ) -> Result<Pass, NoRun> {
        self.session.maps.clear();
        let (cases, watch) = (self.takes_cases(), self.watch);
        let session = &mut self.session;
        let Some(runs) = &mut session.runs else { return Err(nonsense()) };
        let start = Instant::now();
        if cases {
            runs.begin(inputs, (each, watch), Child::Own);
        } else {
            session.delivery.deliver(inputs.next().unwrap_or_default())?;
            runs.begin_one();
        }
        let end = self.await_end(start, 1)?;
        Ok(self.conclude(end, start.elapsed()))
    }

    /// The same by a child that is put back after each run.
    pub(super) fn order_lasting<'a>(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        each: bool,
    ) -> Result<(End, Duration), NoRun> {
        self.session.maps.clear();
        let Some(runs) = &mut self.session.runs else { return Err(nonsense()) };
        let start = Instant::now();
        runs.begin(inputs, (each, self.watch), Child::Lasting);
        let end = self.await_end(start, 0)?;
        Ok((end, start.elapsed()))
    }

    /// Ends a child that is put back, between two batches. Should it not be gone when the next one is
    /// ordered, that one is reported as ended.
    pub(super) fn drop_lasting_child(&mut self) {
        let Some(runs) = &mut self.session.runs else { return };
        self.child = runs.lasting_child();
        self.kill_child(libc::SIGKILL);
        self.child = None;
    }

    /// Ends a child that waits for its next batch.
    pub(super) fn end_idle_child(&mut self) {
        let Some(child) = self.session.runs.as_mut().and_then(Runs::own_child) else { return };
        self.child = Some(child);
        self.kill_child(libc::SIGKILL);
        self.child = None;
        let deadline = Instant::now() + GRACE;
        // The fork server reports it within a millisecond; nothing wakes us then.
        while Instant::now() < deadline && !self.session.runs.as_mut().is_none_or(Runs::forget_own)
        {
            std::thread::sleep(LOOK);
        }
    }

    pub(super) fn conclude(&mut self, end: End, elapsed: Duration) -> Pass {
        let (done, exit) = match end {
            End::Stopped { finished, shown } => (finished, shown.then_some(ExitKind::Ok)),
            End::Hung { finished } => (finished + 1, Some(ExitKind::Hang)),
            End::Ended { finished, status } => {
                let exit = exit_kind(status, false, |code| self.is_crash_code(code));
                (finished + 1, Some(exit))
            }
        };
        self.execs += done as u64;
        self.spent.add(elapsed, self.session.runs.as_ref().map(Runs::work));
        let duration = elapsed / done.max(1) as u32;
        self.adapt(duration);
        match exit {
            Some(exit) => self.session.maps.collect(exit == ExitKind::Ok),
            None => self.session.maps.note_clean(),
        }
        Pass { done, shown: exit.map(|exit| Outcome { exit, duration }) }
    }

    /// Longer batches while runs are quick, at most twice as long as the last: one slow run says little.
    fn adapt(&mut self, run: Duration) {
        if self.setup.options.steady_batches {
            self.cases = MOST_CASES;
            return;
        }
        let fitting = BATCH_TIME.as_nanos() / run.as_nanos().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MOST_CASES);
        self.cases = fitting.clamp(1, (self.cases * 2).min(MOST_CASES));
    }

    /// `present`: the number of the case that is under way from the start on; 0 if the child has to get
    /// ready first.
    fn await_end(&mut self, start: Instant, present: u32) -> Result<End, NoRun> {
        let slice = (self.timeout / 4).clamp(Duration::from_millis(1), LONGEST_SLICE);
        // The present case, and since when it is known to be under way.
        let (mut present, mut since) = (present, start);
        loop {
            match self.wait(slice)? {
                Progress::Underway { started } if started > present => {
                    (present, since) = (started, Instant::now());
                }
                Progress::Underway { started } => {
                    let limit =
                        self.timeout + if present == 0 { START_TIME } else { Duration::ZERO };
                    if since.elapsed() >= limit {
                        return self.end_slow_child(started.saturating_sub(1));
                    }
                    if let Some(status) = self.session.process.try_wait() {
                        return Err(NoRun::Lost(super::describe_end(Some(status))));
                    }
                }
                Progress::Stopped { finished, shown } => {
                    return Ok(End::Stopped { finished: finished as usize, shown });
                }
                Progress::Ended { finished, status } => {
                    return Ok(End::Ended { finished: finished as usize, status });
                }
                Progress::Nonsense => return Err(nonsense()),
            }
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<Progress, NoRun> {
        let runs = self.session.runs.as_mut().ok_or_else(nonsense)?;
        let progress = runs.wait(timeout);
        self.child = Some(runs.child()).filter(|_| runs.is_alive());
        Ok(progress)
    }

    /// Kills the child, by SIGKILL if the signal of the user's choice is ignored.
    fn end_slow_child(&mut self, case: u32) -> Result<End, NoRun> {
        for (signal, patience) in
            [(self.setup.options.kill_signal, GRACE), (libc::SIGKILL, PATIENCE)]
        {
            self.kill_child(signal);
            let deadline = Instant::now() + patience;
            while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                self.wait(left)?;
                if self.child.is_none() {
                    return Ok(End::Hung { finished: case as usize });
                }
            }
        }
        Err(NoRun::Lost("it does not report the end of a child that was killed".into()))
    }
}

pub(super) fn nonsense() -> NoRun {
    NoRun::Lost("its reports make no sense".into())
}
