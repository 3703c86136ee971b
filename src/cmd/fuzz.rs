//! `ffuzz fuzz`: converts words to checked options and runs the campaign.
//!
//! `words` finds the start of the target's command line and resolves ambiguous letters. [`args`] only records options.
//! [`resolve`] checks everything and explains errors.

pub mod args;
pub(super) mod custom;
mod fleet;
pub(super) mod found;
mod handed;
mod mutators;
mod pastis;
mod reports;
pub mod resolve;
mod resume;
mod triage;
pub(super) mod values;
mod words;

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use super::exit::Failure;
use super::record;
use super::screen::Analysis;
use crate::config::env::{self, Environment};
use crate::config::options::{Options, OutputOptions, UiMode};
use crate::disk::output::OutputDir;
use crate::disk::output::hook::CrashCommand;
use crate::disk::output::plot::PlotFile;
use crate::disk::output::stats::StatsFile;
use crate::disk::output::trace::CrashTrace;
use crate::event::EventSink;
use crate::fleet::control::Hello;
use crate::sys::privilege;
use crate::sys::remedy::Remedy;
use crate::sys::stdio::Redirected;
use crate::ui::{Metrics, Statsd, Surroundings};
use args::Args;
use found::FindWatch;

pub(super) fn run(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut command_line = vec![OsString::from(program)];
    command_line.extend(args.iter().cloned());
    let args = Args::from_words(args)?;
    if let Some(text) = information(&args) {
        // A closed pipe (`| head`) is not an error.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let environment = Environment::read();
    if args.mutator_list {
        mutators::list(&args, &environment)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(file), Some(net)) = (&args.record, &args.net) {
        if args.command.is_empty() {
            return Err(Failure::usage(
                "--record needs a target",
                "name it at the end: -- ./server",
            ));
        }
        if args.input.is_some() || args.output.is_some() {
            let remedy =
                "leave out -i and -o, and give the folder of FILE as -i to the campaign after it";
            return Err(Failure::usage("--record makes a seed, and no campaign", remedy));
        }
        return record::run(&args.command, net, file.as_ref(), &environment);
    }
    if let Some(address) = &args.pastis {
        return pastis::run(address, &args, &environment);
    }
    if args.workers.is_some() {
        return fleet::run(program, &args, &environment, command_line);
    }
    let found = FindWatch::new(&args)?;
    let (options, mut warnings) = resolve::resolve(args, &environment, command_line)?;
    if options.ui != UiMode::Json {
        warnings.extend(root_warning());
    }
    print_warnings(program, options.ui, &warnings);
    let statsd = options.statsd.as_ref().map(reports::connect).transpose()?;
    let metrics = options.metrics.map(reports::serve).transpose()?;
    let OutputOptions { root, instance, .. } = &options.output;
    let hello = || Hello::new(root.clone(), Some(instance.clone()), Vec::new());
    let analysis = Analysis::of(root);
    let mut control = reports::open(options.control.as_ref(), hello, &analysis)?;
    let log = (!options.custom.is_empty()).then(|| root.join(instance).join("mutators.log"));
    let around = analysis.surroundings(options.ui, root, log, &mut control);
    let wanted = sinks_for(&options, statsd, metrics, found.sink(), around);
    // Output of mutators and targets must not mix with JSON.
    let prints = !options.custom.is_empty() || options.target.show_output;
    let json = options.ui == UiMode::Json && prints;
    let stderr = std::io::stderr();
    let _redirected = json.then(|| Redirected::to(stderr.as_fd(), stderr.as_fd()));
    let result = crate::campaign::run(options, wanted, control);
    let failed = |cause: &dyn std::fmt::Display, remedy| {
        let failure = Failure::new(cause, remedy);
        Failure { code: found.code().unwrap_or(failure.code), ..failure }
    };
    result.map(|_| found.exit_code()).map_err(|error| failed(&error, error.remedy()))
}

/// Sinks in the order in which they get events: files first, the user interface last.
fn sinks_for(
    options: &Options,
    statsd: Option<Statsd>,
    metrics: Option<Metrics>,
    found: Box<dyn EventSink>,
    around: Surroundings,
) -> impl FnOnce(&OutputDir) -> Vec<Box<dyn EventSink>> + use<> {
    let interval = options.output.stats_interval;
    let command = options.crash_command.clone();
    let (ui, colors) = (options.ui, options.colors);
    let traced = options.findings.traces.then(|| options.target.clone());
    move |output| {
        let instance = output.instance_dir();
        let mut sinks: Vec<Box<dyn EventSink>> =
            vec![Box::new(StatsFile::new(instance, interval)), Box::new(PlotFile::new(instance))];
        // The crash text comes first, so that the user's command finds it.
        sinks.extend(traced.map(|target| Box::new(CrashTrace::new(instance, &target)) as Box<_>));
        let command = command.map(|command| CrashCommand::new(command, ui == UiMode::Json));
        sinks.extend(command.map(|command| Box::new(command) as Box<_>));
        sinks.extend(statsd.map(|statsd| Box::new(statsd) as Box<_>));
        sinks.extend(metrics.map(|metrics| Box::new(metrics) as Box<_>));
        sinks.push(found);
        sinks.extend(crate::ui::sink(ui, colors, || around));
        sinks
    }
}

/// Options that a list of jobs must not contain.
pub(super) fn refused_in_jobs() -> Vec<&'static str> {
    handed::refused_in_jobs()
}

/// Path of the running executable, even if its file was replaced.
pub(super) fn this_program() -> PathBuf {
    let path = std::env::current_exe().ok().filter(|path| path.exists());
    path.unwrap_or_else(|| "/proc/self/exe".into())
}

/// Output of `--help` or `--version`.
fn information(args: &Args) -> Option<String> {
    if args.version {
        return Some(format!("ffuzz {}\n", env!("CARGO_PKG_VERSION")));
    }
    match args.help {
        0 => None,
        1 => Some(args::help(None)),
        _ => Some(format!("{}\n{}", args::help(None), env::help())),
    }
}

/// Warns that a target has root's rights, for example to delete files or send signals.
fn root_warning() -> Option<String> {
    privilege::is_root_of_the_machine().then(|| {
        "the target runs as root, outside of a container: what it deletes or signals is really deleted or signalled; \
         use an account of its own, or a container"
            .to_owned()
    })
}

fn print_warnings(program: &str, ui: UiMode, warnings: &[String]) {
    if ui == UiMode::Quiet {
        return;
    }
    let mut out = std::io::stderr().lock();
    for warning in warnings {
        let _ = writeln!(out, "{program}: warning: {warning}");
    }
}

#[cfg(test)]
mod tests;
