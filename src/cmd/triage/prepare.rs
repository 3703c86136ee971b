//! Converts the command line to a triage plan.

use std::ffi::OsString;
use std::path::PathBuf;

use super::args::Args;
use crate::cmd::exit::Failure;
use crate::cmd::fuzz::args::Args as FuzzArgs;
use crate::cmd::fuzz::custom::{self, About};
use crate::cmd::fuzz::resolve;
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, NativeEngine, NativeOptions, TargetOptions};
use crate::crashes::collector::IniValues;
use crate::crashes::triage::{PlanOptions, TriagePlan};
use crate::disk::find;
use crate::disk::output::setup::RecordedSetup;
use crate::inspect::binary;

/// Adds the options and variables with which the campaign ran its target. The user's options for this triage have
/// precedence; a target command line of the user's excludes the recorded ones.
pub(super) fn with_recorded(
    args: &Args,
    environment: &Environment,
    folders: &[PathBuf],
) -> (Args, Environment) {
    let (mut args, mut environment) = (args.clone(), environment.clone());
    let setup = args.command.is_empty().then(|| find::setup(folders)).flatten();
    let Some(RecordedSetup { variables, words }) = setup else { return (args, environment) };
    environment = environment.with_defaults(variables);
    // A command line that cannot be parsed belongs to another fuzzer.
    if let Ok(used) = FuzzArgs::from_words(words.into_iter().skip(1).collect()) {
        args.file = args.file.or(used.file);
        args.extension = args.extension.or(used.extension);
        args.memory = args.memory.or(used.memory);
        args.guard_heap |= used.guard_heap;
        args.net = args.net.or(used.net);
        args.mutator_sees = args.mutator_sees.or(used.mutator_sees);
        args.sanitizer = args.sanitizer.or(used.sanitizer.into_iter().next());
    }
    (args, environment)
}

/// `folders` contain the crashes; `triage` is written in `root`.
pub(super) fn plan(
    args: &Args,
    environment: &Environment,
    folders: &[PathBuf],
    root: PathBuf,
) -> Result<TriagePlan, Failure> {
    let (runs, timeout, minimize) = (args.runs()?, args.timeout()?, args.minimize()?);
    let target = target(args, environment, command(args, folders)?)?;
    let about = About { command: &target.command, file: target.file.as_deref(), out: None };
    // Mutators that only make inputs are not called here.
    let by_message = custom::by_message(args.net.as_deref(), args.mutator_sees.as_deref())?;
    let mutators =
        CustomOptions { only: false, by_message, ..custom::options(environment, &about) };
    let url = args.collector.as_ref();
    let options = PlanOptions {
        sanitizer: args.sanitizer.clone(),
        mutators,
        target,
        root,
        runs,
        timeout,
        minimize,
        hangs: args.report_hangs,
        beside: args.follow,
        extension: args.extension()?,
        server: url.map(|url| address(url.as_deref())).transpose()?,
    };
    Ok(TriagePlan::new(options, environment)?)
}

/// Host and port of `http://HOST:PORT`, as named in the configuration file.
fn address(url: Option<&str>) -> Result<IniValues, Failure> {
    let Some(url) = url else { return Ok(IniValues::new()) };
    let parts = url.split_once("://").map(|(proto, rest)| (proto, rest.trim_end_matches('/')));
    let Some((proto, rest)) = parts.filter(|(_, rest)| !rest.is_empty()) else {
        let cause = format!("--collector={url} is not an address");
        return Err(Failure::usage(cause, "write it as https://HOST:PORT"));
    };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let values = [("serverproto", Some(proto)), ("serverhost", Some(host)), ("serverport", port)];
    let given = values.into_iter().filter_map(|(key, value)| Some((key.into(), value?.into())));
    Ok(given.collect())
}

/// The given command line, or the one that the fuzzer recorded.
fn command(args: &Args, folders: &[PathBuf]) -> Result<Vec<OsString>, Failure> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    find::command(folders).ok_or_else(|| {
        let cause = "no command line: there is no file cmdline next to the crashes";
        Failure::new(cause, "give the target after --, for example: -- ./target @@")
    })
}

fn target(
    args: &Args,
    environment: &Environment,
    command: Vec<OsString>,
) -> Result<TargetOptions, Failure> {
    let fuzz = FuzzArgs {
        command,
        file: args.file.clone(),
        memory: args.memory.clone(),
        guard_heap: args.guard_heap,
        net: args.net.clone(),
        ..FuzzArgs::default()
    };
    // Reports are needed here; the user's settings for reports may not suit a fuzzer.
    let mut options = resolve::target_options(&fuzz, &environment.without("SAN_OPTIONS"))?;
    let users = environment.ending_with("SAN_OPTIONS");
    options.extra_env.retain(|(name, _)| !users.iter().any(|(known, _)| known == name));
    options.extra_env.splice(0..0, users);
    let program = binary::locate(&options.command[0], options.search_path.as_deref());
    let program = program.map_err(|error| Failure::of(&error))?;
    if binary::runs_elsewhere(&program) {
        options.native =
            Some(NativeOptions { engine: NativeEngine::Emulator, ..NativeOptions::default() });
    }
    options.command[0] = program.into_os_string();
    Ok(options)
}
