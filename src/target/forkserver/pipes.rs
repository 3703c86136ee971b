//! Runs ordered by AFL's pipes.

use std::time::Instant;

use super::{ForkServer, GRACE, NoRun, PATIENCE};
use crate::sys::alarm::Alarm;
use crate::sys::wire::NoWord;
use crate::target::delivery::Feed;
use crate::target::{ExitKind, Outcome, TargetError, exit_kind};
use std::time::Duration;

impl ForkServer {
    pub(super) fn run_by_pipes(&mut self, feed: Feed<'_>) -> Result<Outcome, NoRun> {
        self.session.maps.clear();
        let alarm = match self.alarm.take() {
            Some(alarm) => alarm,
            None => Alarm::new().map_err(|source| TargetError::Thread { source })?,
        };
        let outcome = self.order_by_pipes(feed, &alarm);
        alarm.clear();
        self.alarm = Some(alarm);
        outcome
    }

    fn order_by_pipes(&mut self, mut feed: Feed<'_>, alarm: &Alarm) -> Result<Outcome, NoRun> {
        feed.before(&mut self.session.delivery)?;
        let start = Instant::now();
        let word = u32::from(std::mem::take(&mut self.killed));
        if self.session.control.write(word).is_err() {
            return Err(self.lost());
        }
        alarm.set(start, PATIENCE);
        let pid = self.session.status.read_until(alarm).map_err(|_| self.lost())?.cast_signed();
        if pid <= 1 {
            let what = format!("it reported the process id {pid}");
            return Err(TargetError::Protocol { what }.into());
        }
        (self.child, self.last) = (Some(pid), pid);
        alarm.clear();
        feed.once_started();
        alarm.set(Instant::now(), self.timeout);
        let status = match self.session.status.read_until(alarm) {
            Ok(status) => status,
            Err(NoWord::Timeout) => {
                alarm.clear();
                self.killed = true;
                self.end_child()?
            }
            Err(_) => return Err(self.lost()),
        }
        .cast_signed();
        let duration = start.elapsed();
        if !libc::WIFSTOPPED(status) {
            self.child = None;
        }
        self.execs += 1;
        self.spent.add(duration, None);
        let exit = exit_kind(status, self.killed, |code| self.is_crash_code(code));
        self.session.maps.collect(exit == ExitKind::Ok);
        Ok(Outcome { exit, duration })
    }

    /// Kills the child, by SIGKILL if the signal of the user's choice is ignored; returns its wait
    /// status.
    fn end_child(&mut self) -> Result<u32, NoRun> {
        self.kill_child(self.setup.options.kill_signal);
        match self.session.status.read(GRACE) {
            Err(NoWord::Timeout) => self.kill_child(libc::SIGKILL),
            result => return result.map_err(|_| self.lost()),
        }
        self.read_word(PATIENCE)
    }

    fn read_word(&mut self, timeout: Duration) -> Result<u32, NoRun> {
        self.session.status.read(timeout).map_err(|_| self.lost())
    }
}
