//! `AFL_CRASH_TRACES`: the target's output on a crash, in `traces/` next to `crashes/`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ffuzz_config::env;
use ffuzz_config::options::TargetOptions;
use ffuzz_event::{Event, EventSink};
use ffuzz_sys::file;
use ffuzz_sys::process::{self, Launch, OutputTo};

/// Time limit, so that a crash that does not reproduce does not delay the campaign for long.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of the output, bytes; the rest is cut off.
const MOST: u64 = 1 << 20;
/// Sanitizer options for a readable run: the campaign's own runs are quick, without symbols.
const READABLE: &str = ":symbolize=1:handle_segv=1:handle_sigbus=1:handle_abort=1:handle_sigfpe=1:\
    handle_sigill=1";

/// Runs the target once more for each new crash.
#[derive(Debug)]
pub struct CrashTrace {
    folder: PathBuf,
    command: Vec<OsString>,
    file: Option<PathBuf>,
    env: Vec<(OsString, Option<OsString>)>,
    memory_limit: Option<u64>,
}

impl CrashTrace {
    #[must_use]
    pub fn new(instance: &Path, target: &TargetOptions) -> Self {
        let readable = |(name, value): &(OsString, OsString)| {
            let mut value = value.clone();
            if name.to_string_lossy().ends_with("SAN_OPTIONS") {
                value.push(READABLE);
            }
            (name.clone(), Some(value))
        };
        Self {
            folder: instance.join("traces"),
            command: target.command.clone(),
            file: target.file.clone(),
            env: target.extra_env.iter().map(readable).collect(),
            memory_limit: target.memory_limit,
        }
    }

    fn trace(&self, crash: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let name = format!("{}.txt", crash.file_name().unwrap_or_default().to_string_lossy());
        let text = file::create(&self.folder.join(name))?;
        let mut argv = self.command.clone();
        if let Some(file) = &self.file {
            fs::copy(crash, file)?;
        }
        env::substitute(&mut argv[1..], self.file.as_deref().unwrap_or(crash));
        let mut process = process::launch(Launch {
            argv: &argv,
            env: &self.env,
            stdin: Stdio::from(File::open(crash)?),
            output: OutputTo::File(&text, MOST),
            fds: &[],
            memory_limit: self.memory_limit,
            core_limit: 0,
            guarded: false,
            traced: false,
            strays: None,
            fixed_addresses: false,
        })?;
        process.wait_for(PATIENCE);
        Ok(())
    }
}

impl EventSink for CrashTrace {
    fn handle(&mut self, event: &Event) {
        if let Event::CrashSaved { path, .. } = event {
            // The crash itself is saved; a failed trace is no reason to stop.
            let _ = self.trace(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::InputOrigin;

    #[test]
    fn the_words_of_a_crash_are_kept_and_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let crash = dir.path().join("id:000000,sig:06");
        fs::write(&crash, "input").unwrap();
        let script = "cat; echo \" $0\"; echo error >&2; while :; do printf %1000s; done";
        let command = ["/bin/sh", "-c", script, "@@"].map(OsString::from).into();
        let mut sink = CrashTrace::new(dir.path(), &TargetOptions::for_command(command));
        let (path, source) = (crash.clone(), InputOrigin::Own);
        sink.handle(&Event::CrashSaved { number: 0, path, signal: 6, source });
        let text = dir.path().join("traces/id:000000,sig:06.txt");
        let said = fs::read_to_string(text).unwrap();
        assert!(said.starts_with(&format!("input {}\nerror\n", crash.display())), "{said:.100}");
        assert_eq!(said.len() as u64, MOST);
    }
}
