//! Runs controlled by AFL's pipes.

use std::time::Instant;

use super::delay::Delay;
use super::patience::{LOOK, Patience};
use super::soft::SoftLimit;
use super::{ForkServer, GRACE, NoRun};
use crate::cmplog::AflLog;
use crate::delivery::Feed;
use crate::{RunEnd, TargetError, exit_kind};
use ffuzz_engine::executor::ExitKind;
use ffuzz_sys::alarm::Alarm;
use ffuzz_sys::wire::NoWord;

/// Number of looks at a run until its limit, if that allows for a busy machine.
const DELAY_LOOKS: u32 = 2;

/// Why a wait for the end of a run is over.
#[derive(Clone, Copy)]
enum WaitEnd {
    /// It has ended with this wait status.
    Status(u32),
    TimeUp,
    /// It computes for much longer than others.
    Cut,
    /// The campaign ends.
    Left,
}

impl ForkServer {
    pub(super) fn run_by_pipes(&mut self, feed: Feed<'_>) -> Result<RunEnd, NoRun> {
        self.session.maps.clear();
        self.session.log.iter_mut().for_each(AflLog::clear);
        let alarm = match self.alarm.take() {
            Some(alarm) => alarm,
            None => Alarm::new(self.setup.leave.clone())
                .map_err(|source| TargetError::Thread { source })?,
        };
        let outcome = self.order_by_pipes(feed, &alarm);
        alarm.clear();
        self.alarm = Some(alarm);
        self.session.log.iter_mut().for_each(AflLog::collect);
        outcome
    }

    fn order_by_pipes(&mut self, mut feed: Feed<'_>, alarm: &Alarm) -> Result<RunEnd, NoRun> {
        feed.before(&mut self.session.delivery)?;
        let start = Instant::now();
        let word = u32::from(std::mem::take(&mut self.killed));
        if self.session.control.write(word).is_err() {
            return Err(self.lost());
        }
        alarm.set(start, GRACE);
        let pid = match self.session.status.read_until(alarm) {
            Err(NoWord::Timeout) => {
                alarm.clear();
                self.await_word(None)?
            }
            word => word.map_err(|_| self.lost())?,
        }
        .cast_signed();
        if pid <= 1 {
            let what = format!("it reported the process id {pid}");
            return Err(TargetError::Protocol { what }.into());
        }
        // Before its first run a new process with a loop gets ready, which is no part of a run.
        let is_ready = !self.setup.persistent() || self.last == pid;
        (self.child, self.last) = (Some(pid), pid);
        alarm.clear();
        feed.once_started();
        let began = Instant::now();
        let soft = self.soft_limit().filter(|_| is_ready);
        let end = self.wait_for_end(alarm, pid, began, soft)?;
        let status = match end {
            WaitEnd::Status(status) => status,
            WaitEnd::TimeUp | WaitEnd::Cut | WaitEnd::Left => {
                alarm.clear();
                self.killed = true;
                self.end_child()?
            }
        }
        .cast_signed();
        if matches!(end, WaitEnd::Left) {
            self.note_end(status);
            return Err(TargetError::Interrupted.into());
        }
        let duration = start.elapsed();
        self.note_end(status);
        self.note_child(duration);
        self.execs += 1;
        self.spent.add(duration, None);
        let exit = match exit_kind(status, self.killed, |code| self.is_crash_code(code)) {
            ExitKind::Hang if matches!(end, WaitEnd::Cut) => ExitKind::Cut,
            exit => exit,
        };
        self.session.maps.collect(exit == ExitKind::Ok);
        Ok(RunEnd { exit, duration })
    }

    /// Waits until the child `pid`, whose run began at `began`, has ended or is to be ended.
    fn wait_for_end(
        &mut self,
        alarm: &Alarm,
        pid: i32,
        began: Instant,
        mut soft: Option<SoftLimit>,
    ) -> Result<WaitEnd, NoRun> {
        let limit = self.settings.timeout;
        let mut delay = Delay::new(&self.settings);
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let left = if self.settings.allow_for_load { limit / DELAY_LOOKS } else { left };
            alarm.set(Instant::now(), soft.map_or(left, |soft| soft.interval().min(left)));
            match self.session.status.read_until(alarm) {
                Err(NoWord::Timeout) if !delay.allows(pid, began.elapsed(), limit) => {
                    return Ok(WaitEnd::TimeUp);
                }
                Err(NoWord::Timeout) if self.setup.leave.is_asked() => return Ok(WaitEnd::Left),
                Err(NoWord::Timeout) => {
                    if soft.as_mut().is_some_and(|soft| soft.is_over(self.child)) {
                        return Ok(WaitEnd::Cut);
                    }
                }
                Ok(status) => return Ok(WaitEnd::Status(status)),
                Err(_) => return Err(self.lost()),
            }
        }
    }

    fn note_end(&mut self, status: i32) {
        if !libc::WIFSTOPPED(status) {
            self.child = None;
        }
    }

    /// Kills the child, by SIGKILL if it ignores the signal that the user chose; returns its wait
    /// status.
    fn end_child(&mut self) -> Result<u32, NoRun> {
        let wanted = self.setup.options.kill_signal;
        if wanted != libc::SIGKILL {
            self.kill_child(wanted);
            match self.session.status.read(GRACE) {
                Err(NoWord::Timeout) => {}
                result => return result.map_err(|_| self.lost()),
            }
        }
        self.kill_child(libc::SIGKILL);
        self.await_word(self.child)
    }

    /// Reads the next word of the protocol; `child`: the process whose end it has to report.
    fn await_word(&mut self, child: Option<i32>) -> Result<u32, NoRun> {
        let mut patience = None;
        loop {
            match self.session.status.read(LOOK) {
                Err(NoWord::Timeout) => {}
                result => return result.map_err(|_| self.lost()),
            }
            let server = &self.session.process;
            let patience = patience.get_or_insert_with(|| Patience::new(server));
            if let Some(end) = patience.is_over(server, child, &mut self.setup.leave) {
                return Err(end);
            }
        }
    }
}
