//! `-I COMMAND`: a shell command executed for each new crash.

use std::ffi::OsString;
use std::io::stderr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use ffuzz_event::{Event, EventSink};
use ffuzz_sys::{stdio, underway};

/// Interval of checks for the end of the command.
const LOOK: Duration = Duration::from_millis(5);
/// Time that the command may continue after the campaign's end.
const GRACE: Duration = Duration::from_secs(2);
/// Time after which a command that does not end is reported.
const LONG: Duration = Duration::from_secs(10);

/// Runs the command and waits for it, as AFL does: a script that moves the crash away must finish before the next one
/// arrives. The command gets the path of the crash as `$1`. One that outlives the campaign is killed.
#[derive(Debug)]
pub struct CrashCommand {
    command: OsString,
    /// Sends the command's output to standard error, because programs read the fuzzer's standard output.
    aside: bool,
}

impl CrashCommand {
    #[must_use]
    pub fn new(command: OsString, aside: bool) -> Self {
        Self { command, aside }
    }
}

impl EventSink for CrashCommand {
    fn handle(&mut self, event: &Event) {
        if let Event::CrashSaved { path, .. } = event {
            let started = Command::new("/bin/sh")
                .arg("-c")
                .arg(&self.command)
                .arg("ffuzz")
                .arg(path)
                .stdin(Stdio::null())
                .stdout(if self.aside { Stdio::from(stderr()) } else { Stdio::inherit() })
                .process_group(0)
                .spawn();
            // The exit code is ignored.
            if let Ok(child) = started {
                wait(child);
            }
        }
    }
}

fn wait(mut child: Child) {
    let (start, mut over, mut is_reported) = (Instant::now(), None, false);
    while matches!(child.try_wait(), Ok(None)) {
        if underway::is_over() && over.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            stdio::write_error(&["ffuzz: warning: the command of -I did not end: killed\n"]);
            let group = child.id().try_into().unwrap_or(i32::MAX);
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
            let _ = child.wait();
            return;
        }
        if !is_reported && start.elapsed() >= LONG {
            is_reported = true;
            stdio::write_error(&[
                "ffuzz: warning: the command of -I still runs after 10 seconds; the campaign waits\n",
            ]);
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::InputOrigin;

    #[test]
    fn command_runs_with_the_path_of_the_crash() {
        let dir = tempfile::tempdir().expect("folder");
        let mark = dir.path().join("mark");
        let mut script = OsString::from("printf %s \"$1\" > ");
        script.push(&mark);
        let mut hook = CrashCommand::new(script, false);
        let source = InputOrigin::Own;
        hook.handle(&Event::HangSaved { number: 0, path: "h".into(), source: source.clone() });
        assert!(!mark.exists());
        let path = "crashes/id:000000".into();
        hook.handle(&Event::CrashSaved { number: 0, path, signal: 11, source });
        assert_eq!(std::fs::read_to_string(mark).expect("mark"), "crashes/id:000000");
    }
}
