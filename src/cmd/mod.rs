//! Commands. `ffuzz NAME …` and a link `ffuzz-NAME` are equivalent; without a name `ffuzz` fuzzes.

pub mod addseeds;
pub mod cargo;
pub mod cc;
pub mod ci;
pub mod cmin;
pub mod collector;
#[cfg(test)]
#[path = "tests/compatibility.rs"]
mod compatibility;
mod coverage;
pub mod domains;
pub mod exit;
pub mod fuzz;
pub mod jobs;
pub mod libfuzzer;
mod manuals;
mod mcp;
pub mod merge;
pub mod oss_build;
pub mod picker;
pub mod plot;
pub mod record;
mod report;
mod screen;
mod showdsf;
pub mod showmap;
pub mod tmin;
mod tool;
mod traced;
pub mod tracer;
pub mod triage;
mod watch;
pub mod whatsup;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config::env;
use exit::Failure;

type RunCommand = fn(&str, Vec<OsString>) -> Result<ExitCode, Failure>;

/// Name, function (takes the program name for messages and the arguments after it), and one line of help.
const COMMANDS: &[(&str, RunCommand, &str)] = &[
    ("fuzz", fuzz::run, "fuzz a target (the default)"),
    ("cc", cc::run_c, "C compiler that instruments the target"),
    ("c++", cc::run_cxx, "C++ compiler that instruments the target"),
    ("libfuzzer", libfuzzer::run, "fuzz a harness by libFuzzer's command line"),
    ("cargo", cargo::run, "build and fuzz harnesses of cargo-fuzz (also: cargo ffuzz)"),
    ("ci", ci::run, "fuzz the harnesses of a repository for a while, and report new bugs"),
    ("oss-build", oss_build::run, "build a project of OSS-Fuzz by its build.sh"),
    ("domains", domains::run, "list the domains of the compilers, or build some"),
    ("showdsf", showdsf::run, "run inputs and print their domain values"),
    ("whatsup", whatsup::run, "show the state of the instances of an output folder"),
    ("watch", watch::run, "show the screen of a campaign that runs elsewhere or has ended"),
    ("report", report::run, "show what was covered, what blocks and what was found, as one page"),
    ("mcp", mcp::run, "answer an agent's questions about a campaign"),
    ("plot", plot::run, "draw charts of a campaign"),
    ("addseeds", addseeds::run, "add seeds to a running campaign"),
    ("cmin", cmin::run, "keep the smallest inputs that reach everything"),
    ("merge", merge::run, "join coverage states, or show what one has beyond another"),
    ("jobs", jobs::run, "run the campaigns of a list, and show their results in one table"),
    ("tmin", tmin::run, "minimize one input, and keep its behaviour"),
    ("collector", collector::run, "exchange signatures, crashes and coverage with FuzzManager"),
    ("triage", triage::run, "rerun crashes, and group, minimize and report them"),
    ("showmap", showmap::run, "run inputs and print the edges they reach"),
    ("picker", picker::run, "find the modules that are worth instrumenting"),
    ("tracer", tracer::run, "show what one input executes, or where two inputs diverge"),
];

/// LLVM programs that builds expect next to the compiler. Omitted from the help, because users do not call them.
const LLVM_TOOLS: &[&str] = &["llvm-ar", "llvm-ranlib"];

/// Option that prints the names of links that `make` creates, one per line.
const LIST: &str = "--commands";

/// Finds the command in the program's name or the first argument, and runs it.
#[must_use]
pub fn main(args: Vec<OsString>) -> ExitCode {
    let mut words = args.into_iter();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut rest: Vec<OsString> = words.collect();
    if rest.len() == 1 && rest[0] == LIST {
        return list();
    }
    if let [word, share] = &rest[..]
        && word == manuals::WRITE
    {
        return manuals::write(Path::new(share)).unwrap_or_else(|failure| failure.report("ffuzz"));
    }
    let found = match (name.strip_prefix("ffuzz-").and_then(command), name.strip_prefix("afl-")) {
        (Some(found), _) => Ok(found),
        (None, None) if matches!(&*name, "cargo-ffuzz" | cargo::FUZZ) => {
            Ok(("cargo", cargo::run as RunCommand))
        }
        (None, None | Some("fuzz")) => by_first_word(&mut rest),
        (None, Some(tool)) => command(counterpart(tool)).ok_or_else(|| no_counterpart(&name)),
    };
    let (command, run) = match found {
        Ok(found) => found,
        Err(failure) => return failure.report("ffuzz"),
    };
    let shown = match command {
        "fuzz" => "ffuzz".to_owned(),
        "cargo" if name == cargo::FUZZ => name.clone(),
        "cargo" => cargo::NAME.to_owned(),
        command => format!("ffuzz-{command}"),
    };
    match run(&shown, rest) {
        Ok(code) => code,
        Err(failure) => failure.report(&shown),
    }
}

/// The command that replaces an AFL++ program; `tool` is its name without `afl-`.
fn counterpart(tool: &str) -> &str {
    match tool {
        "cc" | "clang" | "clang-fast" | "clang-lto" | "lto" | "gcc" | "gcc-fast" => "cc",
        "c++" | "clang++" | "clang-fast++" | "clang-lto++" | "lto++" | "g++" | "g++-fast" => "c++",
        "cmin.bash" | "cmin.py" | "cmin.awk" => "cmin",
        same => same,
    }
}

fn no_counterpart(name: &str) -> Failure {
    let cause = format!("ffuzz has no counterpart of {name}");
    Failure::usage(cause, "docs/afl-compatibility.md lists the programs that it can stand for")
}

/// Removes the first word and returns the command that it names. Converts `help` and `version` to options. Without a
/// command it is `fuzz`, which needs options before the target: any other first word is an error.
fn by_first_word(words: &mut Vec<OsString>) -> Result<(&'static str, RunCommand), Failure> {
    let fuzz = Ok(("fuzz", fuzz::run as RunCommand));
    let Some(first) = words.first().and_then(|word| word.to_str()) else { return fuzz };
    if let Some(found) = command(first) {
        words.remove(0);
        return Ok(found);
    }
    match first {
        "version" => words[0] = "--version".into(),
        "help" => {
            words[0] = "--help".into();
            if words.len() > 1 {
                words.swap(0, 1);
                return by_first_word(words);
            }
        }
        _ if first.starts_with('-') || first.contains('/') || first.is_empty() => {}
        _ => return Err(no_command(first)),
    }
    fuzz
}

fn no_command(word: &str) -> Failure {
    let cause = format!("'{word}' is not a command of ffuzz");
    let names = COMMANDS.iter().map(|(name, _, _)| *name).chain(["help", "version"]);
    match env::similar(word, names) {
        Some(name) => Failure::usage(cause, format!("did you mean: ffuzz {name}")),
        None => Failure::usage(
            cause,
            "ffuzz help lists the commands; a target comes after the options: \
             ffuzz -i SEEDS -o OUT ./target",
        ),
    }
}

fn list() -> ExitCode {
    let names = COMMANDS.iter().map(|(name, _, _)| *name).filter(|name| *name != "fuzz");
    let names = names.chain(LLVM_TOOLS.iter().copied());
    let lines: String = names.map(|name| format!("{name}\n")).collect();
    match std::io::stdout().lock().write_all(lines.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::CANNOT),
    }
}

/// Parses the words of a command; prints help and returns None if requested. Usage errors exit with 1, as in AFL's
/// tools.
fn parse<A: clap::Parser>(program: &str, words: Vec<OsString>) -> Result<Option<A>, Failure> {
    let name = std::iter::once(OsString::from(program));
    match A::try_parse_from(name.chain(words)) {
        Ok(args) => Ok(Some(args)),
        Err(error) if error.use_stderr() => {
            let (cause, similar) = explain(&error);
            let remedy = similar.unwrap_or_else(|| format!("{program} --help lists the options"));
            Err(Failure::new(cause, remedy))
        }
        Err(error) => print(&error.to_string()).map(|_| None),
    }
}

/// One line for clap's error, and one for a similar option if there is one.
fn explain(error: &clap::Error) -> (String, Option<String>) {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => vec![name.clone()],
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let cause = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            format!("missing: {}", named(ContextKind::InvalidArg).join(", "))
        }
        _ => line.strip_prefix("error: ").unwrap_or(line).to_owned(),
    };
    let similar = named(ContextKind::SuggestedArg).into_iter().next();
    (cause, similar.map(|option| format!("did you mean {option}?")))
}

/// Prints a result. Ignores a closed pipe (`| head`).
fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write: {error}"), "check standard output"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn command(name: &str) -> Option<(&'static str, RunCommand)> {
    let own = COMMANDS.iter().find(|(known, _, _)| *known == name);
    let tool = || LLVM_TOOLS.iter().find(|known| **known == name);
    own.map(|(known, run, _)| (*known, *run))
        .or_else(|| tool().map(|known| (*known, cc::run_tool as RunCommand)))
}

/// All commands with their purposes, one per line, for `ffuzz --help`.
#[must_use]
pub fn overview() -> String {
    COMMANDS.iter().map(|(name, _, help)| format!("  {name:<10} {help}\n")).collect()
}
