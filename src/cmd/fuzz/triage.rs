//! Converts the campaign's command line to that of its triage.

use std::ffi::{OsStr, OsString};

use super::args::Args;
use super::handed::{self, HandedOptions};
use crate::cmd::exit::Failure;
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, OutputOptions, TargetOptions, TriageOptions};
use crate::crashes::collector::{CollectorError, IniValues, Settings, beside};
use crate::crashes::triage::FOLDER;
use crate::inspect::binary;

/// The triage options; None if the user disabled triage.
pub(super) fn options(
    args: &Args,
    env: &Environment,
    output: &OutputOptions,
    target: &TargetOptions,
    custom: &CustomOptions,
) -> Result<Option<TriageOptions>, Failure> {
    if env.flag(&["FFUZZ_NO_TRIAGE"]) {
        let option = if args.report_hangs { "--report-hangs" } else { "--collector" };
        let records = args.report_records.as_deref();
        super::values::records(records, args.collector.is_some())?;
        return match args.collector.is_some() || args.report_hangs {
            false => Ok(None),
            true => Err(Failure::usage(
                format!("{option} is about what triage finds, and FFUZZ_NO_TRIAGE is set"),
                format!("unset it, or leave out {option}"),
            )),
        };
    }
    let mut argv: Vec<OsString> = vec![super::this_program().into(), "triage".into()];
    let collector = collector(args, env, target)?;
    super::values::records(args.report_records.as_deref(), collector.is_some())?;
    argv.extend(handed::to_triage(&HandedOptions { args, output, target, collector }));
    argv.extend(["--follow".into(), "--".into()]);
    argv.extend(target.command.iter().cloned());
    // Libraries of `--mutator` may also change the target's input.
    let libraries: Vec<&OsStr> = custom.libraries.iter().map(|path| path.as_os_str()).collect();
    let mut env = Vec::new();
    if !libraries.is_empty() {
        env.push(("AFL_CUSTOM_MUTATOR_LIBRARY".into(), libraries.join(OsStr::new(";"))));
    }
    Ok(Some(TriageOptions {
        argv,
        env,
        folder: output.root.join(FOLDER),
        hangs: args.report_hangs,
        records: args.report_records.is_some(),
    }))
}

/// The collector options if requested, or if both of FuzzManager's files exist.
fn collector(
    args: &Args,
    env: &Environment,
    target: &TargetOptions,
) -> Result<Option<OsString>, Failure> {
    let failure = |error: CollectorError| Failure::of(&error);
    let mut word = OsString::from("--collector");
    if let Some(url) = &args.collector {
        match url {
            Some(url) => {
                word.push("=");
                word.push(url);
            }
            // An error in the file is reported before the campaign begins.
            None => drop(
                Settings::read(env, IniValues::new()).and_then(|s| s.server()).map_err(failure)?,
            ),
        }
        return Ok(Some(word));
    }
    let Some(program) = target.command.first() else { return Ok(None) };
    let program = binary::locate(program, target.search_path.as_deref()).unwrap_or_default();
    let there = beside(&program).exists();
    let server = there && Settings::read(env, IniValues::new()).is_ok_and(|s| s.has_server());
    Ok(server.then_some(word))
}
