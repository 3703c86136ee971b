//! A small process that ends a target when its fuzzer was killed.
//!
//! A fork server sees the end of its fuzzer only while it reads from it, and the persistent runtimes
//! of AFL leave their child stopped for ever: neither a closed pipe nor a death signal reaches it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::unistd::Pid;

/// A line means that all is well, the end of its input that the fuzzer is gone. A shell, and not a
/// fork of ours, which would hold our shared memory.
const WATCH: &str = "read -r line || kill -s KILL -- \"-$1\"";

/// Watches over one process group. Dropped once the group's leader was reaped: the guard leaves and
/// ends nobody.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    /// Kills the process group `group` when this process ends without dropping the guard.
    pub(super) fn over(group: Pid) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCH, "ffuzz-guard"]).arg(group.to_string()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.stdin.take().map(|mut line| line.write_all(b"done\n"));
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn group() -> (Child, Pid) {
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        (child, pid)
    }

    #[test]
    fn a_fuzzer_that_vanishes_takes_the_group_along() {
        let (mut child, pid) = group();
        let mut guard = Guard::over(pid).unwrap();
        // What the kernel does when the fuzzer is killed.
        drop(guard.0.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_guard_that_is_dismissed_ends_nobody() {
        let (mut child, pid) = group();
        drop(Guard::over(pid).unwrap());
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
