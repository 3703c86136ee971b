//! `-I COMMAND`: a shell command that is run for each new crash.

use std::ffi::OsString;
use std::io::stderr;
use std::process::{Command, Stdio};

use crate::event::{Event, EventSink};

/// Runs the command and waits for it, as AFL does: a script that moves the crash away must be
/// done before the next one arrives. The command sees the path of the
/// crash as `$1`.
#[derive(Debug)]
pub struct CrashCommand {
    command: OsString,
    /// Programs read the fuzzer's standard output: the command's output goes to standard error.
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
            // The campaign continues whatever its exit code is.
            let _ = Command::new("/bin/sh")
                .arg("-c")
                .arg(&self.command)
                .arg("ffuzz")
                .arg(path)
                .stdin(Stdio::null())
                .stdout(if self.aside { Stdio::from(stderr()) } else { Stdio::inherit() })
                .status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Source;

    #[test]
    fn command_runs_with_the_path_of_the_crash() {
        let dir = tempfile::tempdir().expect("folder");
        let mark = dir.path().join("mark");
        let mut script = OsString::from("printf %s \"$1\" > ");
        script.push(&mark);
        let mut hook = CrashCommand::new(script, false);
        let source = Source::Own;
        hook.handle(&Event::HangSaved { number: 0, path: "h".into(), source: source.clone() });
        assert!(!mark.exists());
        let path = "crashes/id:000000".into();
        hook.handle(&Event::CrashSaved { number: 0, path, signal: 11, source });
        assert_eq!(std::fs::read_to_string(mark).expect("mark"), "crashes/id:000000");
    }
}
