//! From the campaign's command line to that of the triage beside it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::args::Args;
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, OutputOptions, TargetOptions, TriageOptions};
use crate::triage::FOLDER;

/// None if the user does not want it.
pub(super) fn options(
    args: &Args,
    env: &Environment,
    output: &OutputOptions,
    target: &TargetOptions,
    custom: &CustomOptions,
) -> Option<TriageOptions> {
    if env.flag(&["FFUZZ_NO_TRIAGE"]) {
        return None;
    }
    let mut argv: Vec<OsString> = vec![super::this_program().into(), "triage".into()];
    let mut add = |option: &str, value: Option<&OsStr>| {
        argv.extend(value.map(|value| [option.into(), value.to_owned()]).into_iter().flatten());
    };
    add("-o", Some(output.root.as_os_str()));
    add("-m", args.memory.as_deref().map(OsStr::new));
    add("-f", target.file.as_deref().map(Path::as_os_str));
    add("-e", output.extension.as_deref().map(OsStr::new));
    argv.extend(["--follow".into(), "--".into()]);
    argv.extend(target.command.iter().cloned());
    // Those that the command line names (--mutator) may change what the target gets, too.
    let libraries: Vec<&OsStr> = custom.libraries.iter().map(|path| path.as_os_str()).collect();
    let mut env = Vec::new();
    if !libraries.is_empty() {
        env.push(("AFL_CUSTOM_MUTATOR_LIBRARY".into(), libraries.join(OsStr::new(";"))));
    }
    Some(TriageOptions { argv, env, folder: output.root.join(FOLDER) })
}
