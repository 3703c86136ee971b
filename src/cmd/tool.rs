//! Shared parts of the tools that run a target on given inputs: their target options, its start, and messages.
//!
//! `showdsf`, `showmap`, `cmin` and `tmin` start a target with [`ReadyOptions`].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::{CANNOT, Failure};
use super::fuzz::args::Args as FuzzArgs;
use super::fuzz::custom::About;
use super::fuzz::{self, resolve};
use crate::config::env::{self, Environment};
use crate::config::options::{CustomOptions, RunMode, TargetOptions};
use crate::disk::inputs::InputError;
use crate::disk::output::{self, OutputError};
use crate::engine::executor::{ExitKind, RunError};
pub(super) use crate::exec::Scratch;
use crate::exec::{Fresh, Hooked, ReadyOptions};
use crate::sys::stdio;

/// Stands for no timeout, the default without `-t`.
pub(super) const NO_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Default time limit for the start of a program.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Signals with which a user ends a tool.
pub(super) const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Options about the target, the same for every tool.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct TargetArgs {
    /// Timeout of a run in ms
    #[arg(short, value_name = "MSEC")]
    pub(super) timeout: Option<String>,
    /// Memory limit in MB, or none (the default)
    #[arg(short, value_name = "MB")]
    pub(super) memory: Option<String>,
    /// Inputs come over this socket of the target, as with ffuzz --net
    #[arg(long, value_name = "SOCKET")]
    pub(super) net: Option<String>,
    /// What mutators get of an input, as with ffuzz --mutator-sees
    #[arg(long, value_name = "WHAT")]
    pub(super) mutator_sees: Option<String>,
    #[command(flatten)]
    modes: Modes,
    /// The target and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "TARGET"
    )]
    pub(super) command: Vec<OsString>,
}

/// A target without instrumentation.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct NativeArgs {
    /// The target is not instrumented: copies of its functions and breakpoints show which edges are reached, or QEMU
    /// where those cannot be (static programs, other processors, Go)
    #[arg(short = 'Q')]
    pub(super) native: bool,
    /// -Q with breakpoints, or not at all
    #[arg(long = "native", conflicts_with = "qemu")]
    pub(super) breakpoints: bool,
    /// -Q in QEMU's user mode emulation (package qemu-user)
    #[arg(long)]
    pub(super) qemu: bool,
    /// With -Q: files whose blocks count, separated by commas or colons, or "all". Default: the program and its
    /// libraries except language runtime libraries
    #[arg(long, value_name = "LIST")]
    pub(super) modules: Option<String>,
    /// Run the target with a heap that makes overflows crash, and reports double frees and writes to freed blocks
    #[arg(long)]
    pub(super) guard_heap: bool,
}

/// Ways of AFL++ to run programs that are not instrumented.
#[derive(Clone, Debug, Default, clap::Args)]
struct Modes {
    #[arg(short = 'O', hide = true)]
    frida: bool,
    #[arg(short = 'U', hide = true)]
    unicorn: bool,
    #[arg(short = 'W', hide = true)]
    wine: bool,
    #[arg(short = 'X', hide = true)]
    nyx: bool,
    #[arg(short = 'Y', hide = true)]
    nyx_distributed: bool,
}

impl TargetArgs {
    /// Options for a command line without further options.
    pub(super) fn of(command: Vec<OsString>) -> Self {
        Self { command, ..Self::default() }
    }

    /// Fails on the first mode in `ways` that is given.
    pub(super) fn refuse(ways: &[(bool, &str)]) -> Result<(), Failure> {
        match ways.iter().find(|(given, _)| *given) {
            Some((_, cause)) => {
                let remedy = "build the target with ffuzz-cc, without this option";
                Err(Failure::new(cause, remedy))
            }
            None => Ok(()),
        }
    }

    /// Fails on options that are not supported here.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Modes { frida, unicorn, wine, nyx, nyx_distributed } = self.modes;
        Self::refuse(&[
            (frida, "-O (FRIDA) is not supported"),
            (unicorn, "-U (unicorn) is not supported"),
            (wine, "-W (wine) is not supported"),
            (nyx, "-X (Nyx) is not supported"),
            (nyx_distributed, "-Y (Nyx, distributed) is not supported"),
        ])?;
        // An option unknown to the parser starts the target's command line.
        match self.command.first().filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
            Some(word) => Err(no_option(word)),
            None => Ok(()),
        }
    }

    /// The timeout of `-t` in ms, at least `least`; `default` without it.
    pub(super) fn timeout(&self, least: u64, default: Duration) -> Result<Duration, Failure> {
        match self.timeout.as_deref() {
            None | Some("none") => Ok(default),
            Some(text) => match text.parse() {
                Ok(ms) if ms >= least => Ok(Duration::from_millis(ms)),
                _ => Err(Failure::new(
                    format!("-t {text} is not a timeout"),
                    format!("give milliseconds, at least {least}"),
                )),
            },
        }
    }

    /// Returns true if `@@` gives the target a file name.
    pub(super) fn names_file(&self) -> bool {
        self.command[1..].iter().any(|word| env::placeholder_in(word).is_some())
    }
}

/// Parses the words of a tool. On help or error, prints the answer and returns the exit code. Usage errors exit with 1,
/// as in AFL's and FuzzFactory's tools.
pub(super) fn parse<A: Parser>(program: &str, words: Vec<OsString>) -> Result<A, ExitCode> {
    if let Some(option) = unknown_option(A::command(), &words) {
        return Err(no_option(&option).report(program));
    }
    let words = std::iter::once(OsString::from(program)).chain(words);
    A::try_parse_from(words).map_err(|error| {
        let _ = error.print();
        ExitCode::from(if error.use_stderr() { CANNOT } else { 0 })
    })
}

fn no_option(word: &OsStr) -> Failure {
    Failure::new(
        format!("{} is not an option of this program", word.display()),
        "--help lists the options; a target whose name begins with - is written as ./-name",
    )
}

/// The first word before the target that starts with `-` and is no option. clap would take it for the target, and
/// report missing options after it.
fn unknown_option(mut command: clap::Command, words: &[OsString]) -> Option<OsString> {
    command.build();
    let takes_value = |arg: &clap::Arg| {
        arg.get_action().takes_values() && arg.get_num_args().is_none_or(|n| n.min_values() > 0)
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_str()?;
        let options = text.strip_prefix('-').filter(|rest| !rest.is_empty() && *rest != "-")?;
        if let Some(long) = options.strip_prefix('-') {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            let is_it = |arg: &&clap::Arg| {
                arg.get_long() == Some(name)
                    || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
            };
            let Some(arg) = command.get_arguments().find(is_it) else { return Some(word.clone()) };
            if value.is_none() && takes_value(arg) {
                words.next();
            }
            continue;
        }
        let mut letters = options.chars();
        while let Some(letter) = letters.next() {
            let is_it = |arg: &&clap::Arg| {
                arg.get_short() == Some(letter)
                    || arg.get_all_short_aliases().is_some_and(|all| all.contains(&letter))
            };
            let Some(arg) = command.get_arguments().find(is_it) else { return Some(word.clone()) };
            if takes_value(arg) {
                if letters.as_str().is_empty() {
                    words.next();
                }
                break;
            }
        }
    }
    None
}

/// Sets the exit code to 1, as in AFL's and FuzzFactory's tools.
pub(super) fn cannot(failure: Failure) -> Failure {
    Failure { code: CANNOT, ..failure }
}

/// Exits at once on a signal, because a run may take arbitrarily long. The target dies with this process.
pub(super) fn exit_on_signals(scratch: &[&Scratch], message: Option<String>) {
    exit_with_on_signals(CANNOT, scratch, message);
}

/// As [`exit_on_signals`], with an exit code.
pub(super) fn exit_with_on_signals(code: u8, scratch: &[&Scratch], message: Option<String>) {
    let Ok(mut signals) = Signals::new(ENDING) else { return };
    let folders: Vec<PathBuf> = scratch.iter().map(|scratch| scratch.folder.clone()).collect();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            for folder in folders {
                let _ = fs::remove_dir_all(folder);
            }
            if let Some(message) = message {
                say(false, &message);
            }
            std::process::exit(code.into());
        }
    });
}

/// A tool's requirements for its target.
#[derive(Clone, Debug)]
pub(super) struct ToolTarget<'a> {
    pub(super) args: &'a TargetArgs,
    /// Folder for input files that the tool creates.
    pub(super) scratch: &'a Path,
    /// `-f`: the file that the target reads without `@@`.
    pub(super) file: Option<&'a Path>,
    pub(super) timeout: Duration,
    /// Show the target's output to the user.
    pub(super) show_output: bool,
    /// Inherit our stdin, unless a mutator changes what the target reads there.
    pub(super) inherit_stdin: bool,
    /// Treat every exit code except 0 as a crash.
    pub(super) exit_is_crash: bool,
    /// Run every input in a fresh process, even if the target has a loop.
    pub(super) fresh_runs: bool,
    /// Allow restored processes to skip uninteresting runs.
    pub(super) snapshots: bool,
    /// Accept a target without instrumentation.
    pub(super) any_program: bool,
    /// `-Q`.
    pub(super) native: Option<&'a NativeArgs>,
    /// Use domains of a target without source.
    pub(super) domains: bool,
    /// Pattern that distinguishes the answers of a target with a socket, see `--answers`.
    pub(super) answers: Option<&'a str>,
}

impl<'a> ToolTarget<'a> {
    pub(super) fn new(args: &'a TargetArgs, scratch: &'a Scratch, timeout: Duration) -> Self {
        Self {
            args,
            scratch: &scratch.file,
            file: None,
            timeout,
            show_output: false,
            inherit_stdin: false,
            exit_is_crash: false,
            fresh_runs: false,
            snapshots: false,
            any_program: false,
            native: None,
            domains: false,
            answers: None,
        }
    }

    /// Options for the target and for the mutators that change its input.
    pub(super) fn resolve(&self, environment: &Environment) -> Result<ReadyOptions, Failure> {
        let (command, file) = (&self.args.command, self.file);
        let about = About { command, file, out: None };
        let (net, sees) = (self.args.net.as_deref(), self.args.mutator_sees.as_deref());
        Ok(ReadyOptions {
            target: self.target(environment)?,
            // Mutators that only make inputs are not called here.
            mutators: CustomOptions {
                only: false,
                by_message: fuzz::custom::by_message(net, sees)?,
                ..fuzz::custom::options(environment, &about)
            },
            scratch: self.scratch.to_owned(),
            timeout: self.timeout,
            inherit_stdin: self.inherit_stdin,
        })
    }

    fn target(&self, environment: &Environment) -> Result<TargetOptions, Failure> {
        let fuzz = FuzzArgs {
            command: self.args.command.clone(),
            file: self.file.map(Into::into),
            memory: self.args.memory.clone(),
            net: self.args.net.clone(),
            answers: self.answers.map(Into::into),
            native: self.native.is_some_and(|args| args.native),
            breakpoints: self.native.is_some_and(|args| args.breakpoints),
            qemu: self.native.is_some_and(|args| args.qemu),
            modules: self.native.and_then(|args| args.modules.clone()),
            guard_heap: self.native.is_some_and(|args| args.guard_heap),
            domains: self.domains,
            ..FuzzArgs::default()
        };
        let options = resolve::target_options(&fuzz, environment)?;
        Ok(TargetOptions {
            run_mode: if self.fresh_runs { RunMode::Fork } else { RunMode::default() },
            show_output: self.show_output || options.show_output,
            init_timeout: options.init_timeout.or(Some(INIT_TIMEOUT)),
            exit_is_crash: self.exit_is_crash,
            non_instrumented: self.any_program || options.non_instrumented,
            snapshots: self.snapshots && !environment.flag(&["FFUZZ_NO_SNAPSHOT"]),
            ..options
        })
    }

    /// Finds, checks and starts the target.
    pub(super) fn start(&self, environment: &Environment) -> Result<Hooked, Failure> {
        let ready = self.resolve(environment)?.prepare().map_err(failure)?;
        ready.start().map_err(failure)
    }

    /// As [`Self::start`], with a fresh process for each input. True: the target has counters.
    pub(super) fn start_fresh(&self, environment: &Environment) -> Result<(bool, Fresh), Failure> {
        let ready = self.resolve(environment)?.prepare().map_err(failure)?;
        ready.fresh().map_err(failure)
    }

    /// As [`Self::start`], with the messages of AFL's tools.
    pub(super) fn start_aloud(
        &self,
        environment: &Environment,
        quiet: bool,
    ) -> Result<Hooked, Failure> {
        let ready = self.resolve(environment)?.prepare().map_err(failure)?;
        say(quiet, "[*] Spinning up the fork server...");
        let mut target = ready.start().map_err(failure)?;
        print_messages(&mut target, quiet);
        say(quiet, "[+] All right - fork server is up.");
        Ok(target)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::of(&error)
    }
}

pub(super) fn failure(error: impl Into<RunError>) -> Failure {
    let error = error.into();
    Failure::of(&error)
}

/// Reads the input from stdin unless that is a terminal. `option`: the one that names a file instead.
pub(super) fn stdin(option: &str) -> Result<Vec<u8>, Failure> {
    let mut input = Vec::new();
    let read = stdio::input().and_then(|mut stdin| match stdin.is_terminal() {
        true => Ok(0),
        false => stdin.read_to_end(&mut input),
    });
    match read {
        Ok(_) => Ok(input),
        Err(error) => Err(Failure::new(
            format!("cannot read the input: {error}"),
            format!("give it by stdin or {option} FILE"),
        )),
    }
}

pub(super) fn say(quiet: bool, line: &str) {
    if !quiet {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Reads a tool's variables; warns about those without effect.
pub(super) fn environment(quiet: bool) -> Environment {
    let environment = Environment::read();
    let quiet = quiet || environment.flag(&["AFL_QUIET"]);
    for warning in environment.warnings() {
        say(quiet, &format!("[!] WARNING: {warning}"));
    }
    environment
}

/// Prints the mutators' messages.
pub(super) fn print_messages(target: &mut Hooked, quiet: bool) {
    for message in target.mutators.take_messages() {
        say(quiet, &format!("[!] {message}"));
    }
}

/// The name of an end and its signal, in JSON.
pub(super) fn exit_name(exit: ExitKind) -> (&'static str, Option<i32>) {
    match exit {
        ExitKind::Ok => ("ok", None),
        ExitKind::Crash { signal } => ("crash", Some(signal)),
        ExitKind::Hang | ExitKind::Cut => ("hang", None),
        ExitKind::Lost => ("lost", None),
        ExitKind::Oom => ("oom", Some(libc::SIGKILL)),
    }
}

pub(super) fn to_json(document: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(document);
    let failure = |error| Failure::new(format!("cannot write JSON: {error}"), "omit --json");
    text.map(|text| text + "\n").map_err(failure)
}

/// Reports the end of a run, unless it is normal.
pub(super) fn report(exit: ExitKind, input: Option<&Path>, quiet: bool) {
    let what = match exit {
        ExitKind::Ok => return,
        ExitKind::Crash { signal: 0 } => "crashed by exit code".to_owned(),
        ExitKind::Crash { signal } => format!("crashed by signal {signal}"),
        ExitKind::Hang | ExitKind::Cut => "was stopped: it exceeded the timeout".to_owned(),
        ExitKind::Lost => "took its fork server along".to_owned(),
        ExitKind::Oom => "was killed (signal 9): out of memory?".to_owned(),
    };
    let input = input.map_or_else(String::new, |path| format!(" on {}", path.display()));
    say(quiet, &format!("[!] The target {what}{input}"));
}

/// Writes a result to a file or stdout.
pub(super) fn print(text: &[u8], file: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = file else {
        return match io::stdout().lock().write_all(text) {
            // A closed pipe is not an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(cannot_write(Path::new("stdout"), &error))
            }
            _ => Ok(()),
        };
    };
    replace(path, text)
}

/// Writes a file that the user names, see [`output::replace_user_file`].
pub(super) fn replace(path: &Path, data: &[u8]) -> Result<(), Failure> {
    output::replace_user_file(path, data).map_err(|error| match error {
        OutputError::Write { path, source } => cannot_write(&path, &source),
        error => Failure::of(&error),
    })
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write to {path:?}: {error}"), "check the disk and the path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        target: TargetArgs,
    }

    fn args(words: &[&str]) -> TargetArgs {
        let words = ["tool"].iter().chain(words).chain(&["./target"]);
        Words::try_parse_from(words).unwrap().target
    }

    #[test]
    fn timeouts_below_the_least_are_refused() {
        let timeout = |text| args(&["-t", text]).timeout(20, NO_TIMEOUT);
        assert!(timeout("19").is_err() && timeout("x").is_err());
        assert_eq!(timeout("20").unwrap().as_millis(), 20);
        assert_eq!(timeout("none").unwrap(), NO_TIMEOUT);
    }

    #[test]
    fn only_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        for path in [&file, &link] {
            fs::write(&file, "longer than what follows").unwrap();
            replace(path, b"new").unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"new");
        }
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn modes_for_foreign_programs_are_refused_by_name() {
        for letter in ["-O", "-Q", "-U", "-W", "-X"] {
            assert!(args(&[letter]).check().unwrap_err().cause.starts_with(letter));
        }
        args(&["-m", "50"]).check().unwrap();
    }
}
