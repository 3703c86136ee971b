//! AFL's run loop, the fuzzer's side.

use std::time::{Duration, Instant};

use super::delivery::Delivery;
use super::launcher::{Session, Setup, describe_end};
use super::{Executor, ExitKind, Observation, Outcome, TargetError, exit_kind, sites};
use crate::domain::{Domain, Site};
use crate::sys::process;
use crate::sys::wire::NoWord;

/// How long a fork server may take to fork, or to report a child that was killed: far beyond any
/// load, so that only a dead or hostile one gets there.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a child may take to obey a signal that it can catch.
const GRACE: Duration = Duration::from_secs(1);

/// Exit codes of MemorySanitizer and LeakSanitizer that AFL sets (see `config::env`).
const SANITIZER_CODES: [u8; 2] = [86, 23];

/// A target with a fork server.
#[derive(Debug)]
pub struct ForkServer {
    setup: Setup,
    session: Session,
    timeout: Duration,
    /// The last child, if it may still exist: running, or stopped between two runs.
    child: Option<i32>,
    /// The last child was killed by us, which the protocol wants to know.
    killed: bool,
    execs: u64,
    restart: Option<String>,
}

/// Why a run has no outcome.
enum NoRun {
    /// The fork server is gone.
    Lost(String),
    Error(TargetError),
}

impl From<TargetError> for NoRun {
    fn from(error: TargetError) -> Self {
        Self::Error(error)
    }
}

impl ForkServer {
    /// Starts the target and waits for its hello.
    pub fn start(setup: Setup, timeout: Duration) -> Result<Self, TargetError> {
        let session = Session::start(&setup, timeout)?;
        let child = None;
        Ok(Self { setup, session, timeout, child, killed: false, execs: 0, restart: None })
    }

    /// True if the target's linker did not let us share its counters in place (gold).
    #[must_use]
    pub fn counters_are_copied(&self) -> bool {
        self.session.maps.counters_are_copied()
    }

    fn execute(&mut self, input: &[u8]) -> Result<Outcome, NoRun> {
        self.session.maps.clear();
        self.session.delivery.deliver(input)?;
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

    fn is_crash_code(&self, code: u8) -> bool {
        let sanitizer = self.setup.traits.sanitizer && SANITIZER_CODES.contains(&code);
        sanitizer || self.setup.options.crash_exit_code == Some(code)
    }

    fn lost(&mut self) -> NoRun {
        NoRun::Lost(describe_end(self.session.process.wait_for(Duration::from_millis(200))))
    }

    /// Starts the target anew after its fork server died. Its maps must be the same as before.
    fn start_again(&mut self, how: String) -> Result<(), TargetError> {
        self.kill_child(libc::SIGKILL);
        self.child = None;
        self.killed = false;
        let session = Session::start(&self.setup, self.timeout)?;
        let (before, now) = (self.session.maps.layout(), session.maps.layout());
        self.session = session;
        self.restart = Some(how);
        if before == now { Ok(()) } else { Err(TargetError::Changed { before, now }) }
    }

    /// Kills the last child if it is one of this fork server: its number came from the target.
    fn kill_child(&mut self, signal: i32) {
        let server = self.session.process.pid();
        if let Some(pid) = self.child.filter(|pid| process::descends_from(*pid, server)) {
            process::send(pid, signal);
        }
    }
}

impl Executor for ForkServer {
    fn observe(&mut self, input: &[u8]) -> Result<Observation<'_>, TargetError> {
        let outcome = match self.execute(input) {
            Ok(outcome) => outcome,
            Err(NoRun::Error(error)) => return Err(error),
            Err(NoRun::Lost(how)) => {
                self.start_again(how)?;
                self.execute(input).map_err(|failure| match failure {
                    NoRun::Error(error) => error,
                    NoRun::Lost(how) => TargetError::Lost { how },
                })?
            }
        };
        let Outcome { exit, duration } = outcome;
        let maps = &self.session.maps;
        Ok(Observation { index: 0, exit, duration, edges: maps.edges(), dsf: maps.dsf() })
    }

    fn map_size(&self) -> usize {
        self.session.maps.edges().len()
    }

    fn sites(&self) -> Vec<Site> {
        sites::read(self.setup.program(), self.session.process.pid())
    }

    fn domains(&self) -> &[Domain] {
        self.session.maps.domains()
    }

    fn execs(&self) -> u64 {
        self.execs
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn mode(&self) -> String {
        let shared = matches!(self.session.delivery, Delivery::Shared { .. });
        let words = [
            (shared, "shmem_testcase"),
            (self.setup.persistent(), "persistent"),
            (self.setup.deferred(), "deferred"),
        ];
        let words: Vec<_> =
            words.iter().filter(|(applies, _)| *applies).map(|(_, word)| *word).collect();
        if words.is_empty() { "default".into() } else { words.join(" ") }
    }

    fn take_dictionary(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.session.dictionary)
    }

    fn take_restart(&mut self) -> Option<String> {
        self.restart.take()
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // A stopped persistent child outlives its fork server for ever: kill it first.
        self.kill_child(libc::SIGKILL);
        self.session.process.stop(self.setup.options.fork_server_kill_signal);
    }
}
