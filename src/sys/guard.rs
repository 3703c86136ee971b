//! A small process that ends a target when its fuzzer was killed.
//!
//! A fork server sees the end of its fuzzer only while it reads from it, and the persistent runtimes
//! of AFL leave their child stopped for ever: neither a closed pipe nor a death signal reaches it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Each line names the process group to watch, `-` none; the end of its input means that the fuzzer is
/// gone. A shell, and not a fork of ours, which would hold our shared memory.
const WATCH: &str = "group=-; while read -r next; do group=$next; done; \
                     [ \"$group\" = - ] || kill -s KILL -- \"-$group\"";

/// Watches over one process group after the other.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Watches over nobody yet.
    pub fn new() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCH, "ffuzz-guard"]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// From now on the process group `group` is killed when this process ends without a further word.
    pub fn watch(&mut self, group: i32) {
        self.tell(&group.to_string());
    }

    /// The group's leader was reaped: from now on nobody is killed.
    pub fn rest(&mut self) {
        self.tell("-");
    }

    fn tell(&mut self, word: &str) {
        // A guard that was killed guards nobody.
        let _ = self.0.stdin.as_mut().map(|line| line.write_all(format!("{word}\n").as_bytes()));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.rest();
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn group() -> (Child, i32) {
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = child.id().cast_signed();
        (child, pid)
    }

    #[test]
    fn a_fuzzer_that_vanishes_takes_the_group_along() {
        let (mut child, pid) = group();
        let mut guard = Guard::new().unwrap();
        guard.watch(pid);
        // What the kernel does when the fuzzer is killed.
        drop(guard.0.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_guard_that_is_dismissed_ends_nobody() {
        let (mut child, pid) = group();
        let mut guard = Guard::new().unwrap();
        guard.watch(pid);
        drop(guard);
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
