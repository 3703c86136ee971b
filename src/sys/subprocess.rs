//! Processes of `ffuzz` that another one starts and watches: the workers of a fleet, the fuzzer of a broker's
//! session, jobs, and the triage beside a campaign. Why and when one is stopped is the business of its owner.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::process::Stdio;
use std::time::Duration;

use super::process::{self, Launch, OutputTo, Process};

/// Pause after the first early end,
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// and the longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A started process of `ffuzz`. It ends with this one, and is killed and reaped when dropped, together
/// with its process group.
#[derive(Debug)]
pub struct Subprocess(Process);

impl Subprocess {
    /// Starts `argv` in a session of its own, so that Ctrl-C at the terminal is for this process alone. `env`
    /// is added to the environment of this process; None removes a variable. Its output goes to `stdout` and
    /// `stderr`. Fails if the program cannot be started.
    pub fn start(
        argv: &[OsString],
        env: &[(OsString, Option<OsString>)],
        stdin: Stdio,
        stdout: BorrowedFd<'_>,
        stderr: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        let launched = process::launch(Launch {
            argv,
            env,
            stdin,
            output: OutputTo::Shown,
            fds: &[(stdout, 1), (stderr, 2)],
            memory_limit: None,
            core_limit: 0,
            guarded: false,
            traced: false,
            strays: None,
            fixed_addresses: false,
        });
        launched.map(Self)
    }

    /// Sends a signal. Does nothing for a number that is no signal.
    pub fn signal(&self, signal: i32) {
        process::send(self.0.pid(), signal);
    }

    /// Raw wait status if it has ended, once: it is reaped by this call.
    pub fn try_wait(&mut self) -> Option<i32> {
        self.0.try_wait()
    }

    /// Waits at most `timeout` for its end, which [`Subprocess::try_wait`] then returns.
    pub fn wait(&self, timeout: Duration) {
        process::wait_for_end(self.0.pid(), timeout);
    }
}

/// How a process has ended, from its raw wait status: the rest of a sentence that begins with its name.
#[must_use]
pub fn exit_in_words(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        format!("was killed by signal {}", libc::WTERMSIG(status))
    } else {
        format!("ended with exit code {}", libc::WEXITSTATUS(status))
    }
}

/// Pauses before a process is started again: a second after the first early end, doubled with each further
/// one, at most a minute.
#[derive(Debug, Default)]
pub struct Restarts {
    early_ends: u32,
}

impl Restarts {
    /// A process that has worked this long did not end because of its start: its end is not early.
    pub const A_WHILE: Duration = Duration::from_secs(60);

    /// The process has ended soon after its start.
    pub fn note_early_end(&mut self) {
        self.early_ends = self.early_ends.saturating_add(1);
    }

    /// The process has worked for a while: the next pause is the first again.
    pub fn reset(&mut self) {
        self.early_ends = 0;
    }

    /// The pause before the next start.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE * (1 << self.early_ends.saturating_sub(1).min(6));
        doubled.min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;
    use crate::wire;

    /// Longer than any wait of these tests on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    fn start(script: &str, stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> Subprocess {
        let argv = ["/bin/sh", "-c", script].map(OsString::from);
        let env = [("FFUZZ_WORD".into(), Some("here".into())), ("HOME".into(), None)];
        Subprocess::start(&argv, &env, Stdio::null(), stdout, stderr).unwrap()
    }

    #[test]
    fn both_outputs_the_environment_and_the_status_are_its_own() {
        let ((out, out_theirs), (err, err_theirs)) = (wire::pipe().unwrap(), wire::pipe().unwrap());
        let script = "echo $FFUZZ_WORD; echo ${HOME-gone} >&2; exit 3";
        let mut process = start(script, out_theirs.as_fd(), err_theirs.as_fd());
        drop((out_theirs, err_theirs));
        process.wait(LONG);
        assert_eq!(process.try_wait(), Some(3 << 8));
        assert_eq!(process.try_wait(), None);
        let texts = [out, err].map(|pipe| {
            let mut text = String::new();
            File::from(pipe).read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(texts, ["here\n", "gone\n"]);
    }

    #[test]
    fn a_signal_ends_it_and_a_wait_has_a_limit() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let mut process = start("exec sleep 1000", null.as_fd(), null.as_fd());
        process.wait(Duration::from_millis(1));
        assert_eq!(process.try_wait(), None);
        process.signal(libc::SIGKILL);
        process.wait(LONG);
        assert_eq!(process.try_wait(), Some(libc::SIGKILL));
    }

    #[test]
    fn an_end_in_words_has_its_signal_or_code() {
        assert_eq!(exit_in_words(libc::SIGSEGV), "was killed by signal 11");
        assert_eq!(exit_in_words(0x80 | libc::SIGABRT), "was killed by signal 6");
        assert_eq!(exit_in_words(101 << 8), "ended with exit code 101");
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let null = File::options().write(true).open("/dev/null").unwrap();
        let argv = ["/proc/none/ffuzz".into()];
        let error = Subprocess::start(&argv, &[], Stdio::null(), null.as_fd(), null.as_fd());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_again() {
        let mut restarts = Restarts::default();
        let mut seconds = Vec::new();
        for _ in 0..9 {
            restarts.note_early_end();
            seconds.push(restarts.pause().as_secs());
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        restarts.reset();
        assert_eq!(restarts.pause(), FIRST_PAUSE);
    }
}
