//! A small process that ends a target when its fuzzer was killed.
//!
//! A fork server sees the end of its fuzzer only while it reads from it, and the persistent runtimes
//! of AFL leave their child stopped for ever: neither a closed pipe nor a death signal reaches it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Each line names the process group to watch, `-` or 0 none, and the mark of what it may leave behind; the
/// end of its input means that the fuzzer is gone. The group's leader leads a session as well: a debugger puts
/// the target into a group of its own there. Marked processes may be anywhere, and start more at any time. A
/// shell, and not a fork of the fuzzer, which would hold its shared memory.
const WATCH: &str = r#"group=- mark=
while read -r next its; do group=$next mark=$its; done
[ "$group" = - ] && exit
if [ "$group" != 0 ]; then
    kill -s KILL -- "-$group"
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        pid=${line%% *}
        set -- ${line##*) }
        [ "$4" = "$group" ] && kill -s KILL "$pid"
    done
fi
[ "$mark" ] && for round in 1 2 3; do
    for found in $(grep -ls "^Max file locks *$mark " /proc/[0-9]*/limits); do
        found=${found#/proc/}
        kill -s KILL "${found%/limits}"
    done
done"#;

/// Watches over one process group after the other.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Watches no process yet.
    pub fn new() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCH, "ffuzz-guard"]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// From now on the process group `group`, unless it is 0, and all processes with this mark (see
    /// [`super::strays`]) are killed when this process ends without a further word.
    pub fn watch(&mut self, group: i32, mark: Option<u64>) {
        self.send(&format!("{group} {}", mark.map_or_else(String::new, |mark| mark.to_string())));
    }

    /// The group's leader was reaped: from now on nothing is killed.
    pub fn rest(&mut self) {
        self.send("-");
    }

    fn send(&mut self, word: &str) {
        // A guard that was killed guards nothing.
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::process::OutputTo;
    use crate::tests::start;

    fn group() -> (Child, i32) {
        let child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = child.id().cast_signed();
        (child, pid)
    }

    #[test]
    fn a_fuzzer_that_vanishes_takes_the_group_along() {
        let (mut child, pid) = group();
        let mut guard = Guard::new().unwrap();
        guard.watch(pid, None);
        // What the kernel does when the fuzzer is killed.
        drop(guard.0.stdin.take());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_group_of_its_own_in_the_same_session_ends_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script =
            format!("set -m; sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait", file.display());
        let mut leader = start(&["/bin/bash", "-c", &script], OutputTo::Nowhere, false).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !file.exists() {
            assert!(Instant::now() < deadline, "no child");
            std::thread::yield_now();
        }
        let mut guard = Guard::new().unwrap();
        guard.watch(leader.pid(), None);
        drop(guard.0.stdin.take());
        assert!(guard.0.wait().is_ok());
        let pid = std::fs::read_to_string(file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        while state().is_ok_and(|state| !state.contains(") Z")) {
            assert!(Instant::now() < deadline, "the child lives");
            std::thread::yield_now();
        }
        assert_eq!(leader.wait_for(Duration::from_secs(60)), Some(libc::SIGKILL));
    }

    #[test]
    fn a_guard_that_is_closed_kills_nothing() {
        let (mut child, pid) = group();
        let mut guard = Guard::new().unwrap();
        guard.watch(pid, None);
        drop(guard);
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
