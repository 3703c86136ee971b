//! Runs ordered by AFL's pipes.

use std::time::Instant;

use super::{ForkServer, GRACE, NoRun, PATIENCE};
use crate::sys::wire::NoWord;
use crate::target::delivery::Feed;
use crate::target::{ExitKind, Outcome, TargetError, exit_kind};
use std::time::Duration;

impl ForkServer {
    pub(super) fn run_by_pipes(&mut self, mut feed: Feed<'_>) -> Result<Outcome, NoRun> {
        self.session.maps.clear();
        feed.before(&mut self.session.delivery)?;
        let start = Instant::now();
        let word = u32::from(std::mem::take(&mut self.killed));
        if self.session.control.write(word).is_err() {
            return Err(self.lost());
        }
        let pid = self.read_word(PATIENCE)?.cast_signed();
        if pid <= 1 {
            let what = format!("it reported the process id {pid}");
            return Err(TargetError::Protocol { what }.into());
        }
        self.child = Some(pid);
        feed.once_started();
        let status = match self.session.status.read(self.timeout) {
            Ok(status) => status,
            Err(NoWord::Timeout) => {
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
