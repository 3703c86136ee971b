//! `cmin --watch`: option checks and output lines.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::args::Args;
use super::progress::TraceProgress;
use crate::cmd::coverage::CoverageStates;
use crate::cmd::exit::Failure;
use crate::cmd::tool::{self, say};
use crate::cmin::{self, Accepted, CminOptions, InputSet, TraceListener, WatchListener};
use crate::config::env::Environment;
use crate::engine::executor::ExitKind;
use crate::exec::ReadyOptions;
use crate::sys::stop::Stop;

/// Keeps new inputs in the input folders until a signal.
pub(super) fn run(
    args: &Args,
    environment: &Environment,
    options: CminOptions,
    targets: Vec<ReadyOptions>,
    mut states: CoverageStates,
) -> Result<(), Failure> {
    let folders = InputSet::folders(&args.input, &args.output)?;
    refuse_inside("--crash-dir", args.crash_folder.as_deref(), &folders)?;
    refuse_inside("-f", args.file.as_deref(), &folders)?;
    // No input ends the command.
    let options = match options.accepted {
        Accepted::Good => CminOptions { accepted: Accepted::Passing, ..options },
        _ => options,
    };
    let stop = Stop::on_signals().map_err(|error| {
        Failure::new(
            format!("cannot receive signals: {error}"),
            "raise the limits of this shell (ulimit -a), or omit --watch",
        )
    })?;
    let quiet = environment.flag(&["AFL_QUIET"]);
    let listener = WatchLines {
        progress: TraceProgress::new(quiet, environment.flag(&["AFL_PRINT_FILENAMES"])),
        folders: folders.clone(),
        output: args.output.clone(),
        quiet,
    };
    let mut beyond = |exit, trace: &_, domains: &_| states.beyond_trace(exit, trace, domains);
    let kept = cmin::watch(&options, folders, targets, &listener, &stop, &mut beyond)?;
    states.save()?;
    say(quiet, &format!("[+] Added {kept} files to '{}'.", args.output.display()));
    Ok(())
}

/// Checks that do not depend on folders.
pub(super) fn check(environment: &Environment) -> Result<(), Failure> {
    match environment.flag(&["AFL_KEEP_TRACES"]) {
        true => Err(Failure::new(
            "AFL_KEEP_TRACES cannot be used with --watch",
            "unset AFL_KEEP_TRACES, and run ffuzz-showmap -Z on the output folder",
        )),
        false => Ok(()),
    }
}

/// Fails if a file written for each input or crash is inside a watched folder: it would be the next input.
fn refuse_inside(option: &str, path: Option<&Path>, folders: &[PathBuf]) -> Result<(), Failure> {
    match path {
        Some(path) if folders.iter().any(|folder| cmin::is_inside(path, folder)) => {
            Err(Failure::new(
                format!("{option} {} is inside of the input folder", path.display()),
                format!("choose another {option}: with --watch it would be an input"),
            ))
        }
        _ => Ok(()),
    }
}

struct WatchLines {
    progress: TraceProgress,
    folders: Vec<PathBuf>,
    output: PathBuf,
    quiet: bool,
}

impl TraceListener for WatchLines {
    fn reads(&self, path: &Path) -> io::Result<()> {
        self.progress.reads(path)
    }

    fn traced(&self, inputs: usize) {
        self.progress.traced(inputs);
    }

    fn starts_over(&self) {
        self.progress.starts_over();
    }

    fn warns(&self, text: &str) {
        self.progress.warns(text);
    }
}

impl WatchListener for WatchLines {
    fn begins(&self, files: usize, known: usize, targets: usize) {
        super::announce(files - known, &self.folders, targets, self.quiet);
        if known > 0 {
            let folder = self.output.display();
            say(self.quiet, &format!("[*] '{folder}' has {known} files, which are kept."));
        }
        self.progress.begin(files, 0);
    }

    fn waits(&self) {
        self.progress.end();
        say(self.quiet, "[*] Watching for new inputs; Ctrl-C ends.");
    }

    fn keeps(&self, input: &Path, name: &OsStr) {
        let kept = self.output.join(name);
        say(self.quiet, &format!("[+] Kept {} as {}", input.display(), kept.display()));
    }

    fn fails(&self, input: &Path, exit: ExitKind) {
        tool::report(exit, Some(input), false);
    }
}
