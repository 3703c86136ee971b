//! `--mutator` and related options: resolves the files and lists the modules.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::args::Args;
use super::values;
use crate::abi::killerbeez::ForeignModule;
use crate::cmd::exit::Failure;
use crate::config::env::Environment;
use crate::config::options::{KillerbeezModule, KillerbeezOptions};
use crate::mutators::find::{self, FindError, MutatorKind};

/// Upstream's ratio of buffer to input.
const RATIO: f64 = 2.0;

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        Self::of(&error)
    }
}

/// Libraries for AFL++, and Killerbeez modules.
pub(super) fn mutators(
    args: &Args,
    env: &Environment,
) -> Result<(Vec<PathBuf>, KillerbeezOptions), Failure> {
    let dir = folder(args, env)?;
    let (mut libraries, mut modules) = (Vec::new(), Vec::new());
    for (word, options) in &args.mutators {
        let path = values::absolute(find::find(word, dir.as_deref())?.as_os_str())?;
        let name = find::short_name(&path);
        match (find::kind(&path)?, options) {
            (MutatorKind::Killerbeez, options) => {
                let options = options.as_deref().map(text).transpose()?;
                modules.push(KillerbeezModule { name, path, options });
            }
            (MutatorKind::Custom, None) => libraries.push(path),
            (MutatorKind::Custom, Some(_)) => {
                let cause = format!("--mutator-options for {name}, which is a library for AFL++");
                return Err(Failure::usage(
                    cause,
                    "libraries for AFL++ take options from environment variables",
                ));
            }
        }
    }
    let state = args.mutator_state.as_deref().map(values::absolute).transpose()?;
    let wanted = KillerbeezOptions {
        modules,
        ratio: ratio(args)?,
        only: args.mutator_only,
        state,
        ..KillerbeezOptions::default()
    };
    check(&wanted)?;
    Ok((libraries, wanted))
}

fn check(wanted: &KillerbeezOptions) -> Result<(), Failure> {
    if wanted.only && wanted.modules.len() != 1 {
        let cause = format!("--mutator-only with {} Killerbeez modules", wanted.modules.len());
        let remedy = "name one with --mutator; libraries for AFL++ have AFL_CUSTOM_MUTATOR_ONLY=1";
        return Err(Failure::usage(cause, remedy));
    }
    if wanted.state.is_some() && !wanted.only {
        let remedy = "add --mutator-only; the states of a campaign are kept in its folder";
        return Err(Failure::usage("--mutator-state without --mutator-only", remedy));
    }
    Ok(())
}

fn folder(args: &Args, env: &Environment) -> Result<Option<PathBuf>, Failure> {
    let word = args.mutator_dir.as_deref().or(env.get("FFUZZ_MUTATOR_DIR"));
    word.map(values::absolute).transpose()
}

fn ratio(args: &Args) -> Result<f64, Failure> {
    let Some(text) = &args.mutator_ratio else { return Ok(RATIO) };
    let number = text.parse().ok().filter(|ratio: &f64| ratio.is_finite() && *ratio > 0.0);
    number.ok_or_else(|| {
        let cause = format!("--mutator-ratio {text}: not a number above 0");
        Failure::usage(cause, "it is the size of a module's buffer relative to its input, as 2.0")
    })
}

/// The options as given, or the content of a file.
fn text(word: &OsStr) -> Result<CString, Failure> {
    let bytes = match word.as_bytes().strip_prefix(b"@") {
        None => word.as_bytes().to_vec(),
        Some(path) => fs::read(OsStr::from_bytes(path)).map_err(|error| {
            let cause = format!("--mutator-options {}: {error}", word.display());
            Failure::new(cause, "check the path after @")
        })?,
    };
    CString::new(bytes).map_err(|_| {
        let cause = format!("--mutator-options {}: holds a zero byte", word.display());
        Failure::new(cause, "options are a text of JSON")
    })
}

/// Runs `--mutator-list`.
pub(super) fn list(args: &Args, env: &Environment) -> Result<(), Failure> {
    let Some(dir) = folder(args, env)? else {
        let remedy = "name the folder with --mutator-dir or FFUZZ_MUTATOR_DIR";
        return Err(Failure::usage("--mutator-list without a folder of modules", remedy));
    };
    let modules = find::modules(&dir).map_err(|error| {
        Failure::new(format!("cannot read {}: {error}", dir.display()), "check --mutator-dir")
    })?;
    let mut out = std::io::stdout().lock();
    for path in modules {
        let text = match ForeignModule::open(&path) {
            Ok(module) => module.help().unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        // A closed pipe (`| head`) is not an error.
        let _ = writeln!(out, "{}\n{}\n", find::short_name(&path), text.trim_end());
    }
    Ok(())
}
