//! `ffuzz showdsf`: runs inputs and prints the domain values they reach, in the format of
//! FuzzFactory's `afl-showdsf`.
//!
//! The lines `dsf[K] = V` go to stdout (or `-o FILE`), everything said about the target to stderr.
//! Unlike the original it reports crashes and timeouts, takes `@@`, and leaves neither a process nor
//! a file behind.

mod args;
mod owners;
mod view;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use args::Args;
use owners::Owners;

use super::exit::{CANNOT, Failure};
use super::fuzz::custom::About;
use super::fuzz::{self, resolve, values};
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, TargetOptions};
use crate::custom::{self, Mutators};
use crate::domain::{self, Aggregates, KeyNames};
use crate::target::{
    Executor, ExitKind, ForkServer, Hooked, Observation, Setup, TargetError, binary,
};

/// Without `-t` a run may take as long as it wants; a day stands for that.
const NO_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Below this a timeout is refused, as the original does.
const MIN_TIMEOUT_MS: u64 = 20;

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let words = std::iter::once(OsString::from(program)).chain(args);
    let mut args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            // Usage errors are 1 here, as in the original.
            return Ok(ExitCode::from(if error.use_stderr() { CANNOT } else { 0 }));
        }
    };
    args.check()?;
    let folders = [args.input.as_slice(), args.diff.as_deref().unwrap_or_default()].concat();
    let folders = folders.iter().map(|dir| list_inputs(dir)).collect::<Result<Vec<_>, _>>()?;
    if let (false, Some(file)) = (args.runs_folders(), &args.at_file) {
        // The user's file is only read: it takes its place in the command as any other word.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        binary::substitute(&mut args.command[1..], &file);
    }
    let scratch = Scratch::new();
    leave_on_signals(&scratch);
    // Usage errors are 1 here, as in the original.
    let mut target =
        start(&args, &scratch).map_err(|failure| Failure { code: CANNOT, ..failure })?;
    let names = names(&target, &args);
    let mut owners = Owners::default();
    let rows = match &folders[..] {
        [] => view::rows(&run_once(&mut target, &args)?, args.top, &owners),
        [a, b] => {
            let a = run_folder(&mut target, a, args.quiet, |_, _, _| {})?;
            let b = run_folder(&mut target, b, args.quiet, |_, _, _| {})?;
            view::differences(&a, &b)
        }
        [inputs, ..] => {
            let note = |path: &Path, input: &[u8], run: &Observation<'_>| {
                if args.best {
                    owners.add(path.into(), input.len(), &run.dsf);
                }
            };
            let aggregates = run_folder(&mut target, inputs, args.quiet, note)?;
            view::rows(&aggregates, args.top, &owners)
        }
    };
    let text = if args.json {
        view::json(&args.command, target.domains(), &rows, &names, args.best)
    } else {
        view::lines(&rows, args.names.then_some(&names), args.best)
    };
    drop(target);
    print(&text, args.output.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// Read from the target's files if somebody wants to see them.
fn names(target: &Hooked, args: &Args) -> KeyNames {
    if !args.names && !args.json {
        return KeyNames::default();
    }
    let names = KeyNames::new(target.domains(), target.sites());
    if names.is_empty() && !target.domains().is_empty() {
        say(args.quiet, "[!] The target has no table of names: keys are shown by number");
    }
    names
}

/// Name of the input file, removed in any case.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!(".ffuzz-showdsf-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A run may take as long as it wants, so a signal does not wait for its end. The target dies with
/// this process.
fn leave_on_signals(scratch: &Scratch) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    let file = scratch.0.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = fs::remove_file(file);
            std::process::exit(CANNOT.into());
        }
    });
}

fn list_inputs(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failure = |error: io::Error| {
        let remedy = "give a folder of inputs, for example out/queue";
        Failure::new(format!("cannot read the folder {dir:?}: {error}"), remedy)
    };
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(failure)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] != b'.'))
        .collect();
    files.sort();
    Ok(files)
}

fn start(args: &Args, scratch: &Scratch) -> Result<Hooked, Failure> {
    let timeout = timeout(args.timeout.as_deref())?;
    let environment = Environment::read();
    let mutators = mutators(&environment, &args.command)?;
    let options = TargetOptions {
        run_mode: mutators.run_mode(),
        search_path: environment.get("PATH").map(Into::into),
        file: None,
        memory_limit: args.memory.as_deref().map_or(Ok(None), values::memory)?,
        show_output: !args.runs_folders(),
        extra_env: resolve::extra_environment(&environment)?,
        skip_binary_check: environment.flag(&["AFL_SKIP_BIN_CHECK"]),
        init_timeout: Some(Duration::from_secs(10)),
        ..TargetOptions::for_command(args.command.clone())
    };
    let input = args.at_file.as_deref().unwrap_or(&scratch.0);
    let mut setup = Setup::new(&options, input, None).map_err(failure)?;
    if !args.runs_folders() && !mutators.touch_runs() {
        setup.inherit_stdin();
    }
    say(args.quiet, "[*] Spinning up the fork server...");
    let target = ForkServer::start(setup, timeout).map_err(failure)?;
    let late = environment.flag(&["AFL_CUSTOM_MUTATOR_LATE_SEND"]);
    let mut target = Hooked::new(Box::new(target), mutators).send_late(late);
    tell(&mut target, args.quiet);
    say(args.quiet, "[+] All right - fork server is up.");
    if !args.quiet {
        let _ = io::stderr().lock().write_all(domain::describe(target.domains()).as_bytes());
    }
    Ok(target)
}

/// Those whose hooks change what the target gets; the others are not called here.
fn mutators(environment: &Environment, command: &[OsString]) -> Result<Mutators, Failure> {
    let about = About { command, file: None, out: None };
    let options = CustomOptions { only: false, ..fuzz::custom::options(environment, &about) };
    custom::load(&options, 0).map_err(|error| Failure::new(&error, error.remedy()))
}

fn failure(error: TargetError) -> Failure {
    Failure::new(&error, error.remedy())
}

fn timeout(text: Option<&str>) -> Result<Duration, Failure> {
    let Some(text) = text else { return Ok(NO_TIMEOUT) };
    match text.parse() {
        Ok(ms) if ms >= MIN_TIMEOUT_MS => Ok(Duration::from_millis(ms)),
        _ => Err(Failure::new(
            format!("-t {text} is no timeout"),
            format!("give milliseconds, at least {MIN_TIMEOUT_MS}"),
        )),
    }
}

fn say(quiet: bool, line: &str) {
    if !quiet {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// One run with our stdin; with `@@` its content becomes the file.
fn run_once(target: &mut Hooked, args: &Args) -> Result<Aggregates, Failure> {
    let mut aggregates = Aggregates::new(target.domains());
    let mut input = Vec::new();
    let uses_file = args.command[1..]
        .iter()
        .any(|word| word.as_encoded_bytes().windows(2).any(|pair| pair == b"@@"));
    if uses_file || target.mutators.touch_runs() {
        io::stdin().lock().read_to_end(&mut input).map_err(|error| {
            Failure::new(format!("cannot read the input: {error}"), "give it by stdin or -A FILE")
        })?;
    }
    let run = target.observe(&input).map_err(failure)?;
    report(run.exit, None, args.quiet);
    aggregates.merge(&run.dsf);
    tell(target, args.quiet);
    Ok(aggregates)
}

fn run_folder(
    target: &mut Hooked,
    inputs: &[PathBuf],
    quiet: bool,
    mut note: impl FnMut(&Path, &[u8], &Observation<'_>),
) -> Result<Aggregates, Failure> {
    let mut aggregates = Aggregates::new(target.domains());
    for path in inputs {
        let input = fs::read(path).map_err(|error| {
            let remedy = "check its permissions, or take it out of the folder";
            Failure::new(format!("cannot read {path:?}: {error}"), remedy)
        })?;
        let run = target.observe(&input).map_err(failure)?;
        report(run.exit, Some(path), quiet);
        note(path, &input, &run);
        aggregates.merge(&run.dsf);
    }
    tell(target, quiet);
    Ok(aggregates)
}

/// What mutators did wrong.
fn tell(target: &mut Hooked, quiet: bool) {
    for message in target.mutators.take_messages() {
        say(quiet, &format!("[!] {message}"));
    }
}

fn report(exit: ExitKind, input: Option<&Path>, quiet: bool) {
    let what = match exit {
        ExitKind::Ok => return,
        ExitKind::Crash { signal: 0 } => "crashed by exit code".to_owned(),
        ExitKind::Crash { signal } => format!("crashed by signal {signal}"),
        ExitKind::Hang => "was stopped: its time was up".to_owned(),
        ExitKind::Oom => "was killed (signal 9): out of memory?".to_owned(),
    };
    let input = input.map_or_else(String::new, |path| format!(" on {}", path.display()));
    say(quiet, &format!("[!] The target {what}{input}"));
}

fn print(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let written = match file {
        Some(path) => fs::write(path, text),
        None => match io::stdout().lock().write_all(text.as_bytes()) {
            // A reader that has seen enough is no failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        },
    };
    written.map_err(|error| {
        let to = file.unwrap_or(Path::new("stdout"));
        Failure::new(format!("cannot write to {to:?}: {error}"), "check the disk and the path")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_below_twenty_are_refused() {
        assert!(timeout(Some("19")).is_err() && timeout(Some("x")).is_err());
        assert_eq!(timeout(Some("20")).unwrap().as_millis(), 20);
    }
}
