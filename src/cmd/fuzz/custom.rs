//! Foreign mutators: converts variables to [`CustomOptions`] for every command that runs a target.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::cmd::exit::Failure;
use crate::config::env::Environment;
use crate::config::options::{CustomOptions, KillerbeezOptions, PythonOptions};

/// Facts about the target for `AFL_CUSTOM_INFO_*`.
pub(crate) struct About<'a> {
    pub(crate) command: &'a [OsString],
    /// `-f`.
    pub(crate) file: Option<&'a Path>,
    /// The instance folder.
    pub(crate) out: Option<&'a Path>,
}

pub(crate) fn options(env: &Environment, about: &About<'_>) -> CustomOptions {
    CustomOptions {
        python: env.get("AFL_PYTHON_MODULE").map(|module| PythonOptions {
            module: module.to_string_lossy().into_owned(),
            virtual_env: env.get("VIRTUAL_ENV").map(Into::into),
        }),
        killerbeez: KillerbeezOptions::default(),
        libraries: env.get("AFL_CUSTOM_MUTATOR_LIBRARY").map(libraries).unwrap_or_default(),
        only: env.flag(&["AFL_CUSTOM_MUTATOR_ONLY"]),
        late_send: env.flag(&["AFL_CUSTOM_MUTATOR_LATE_SEND"]),
        keep_original: env.flag(&["AFL_POST_PROCESS_KEEP_ORIGINAL"]),
        debug: env.flag(&["AFL_DEBUG"]),
        by_message: false,
        info: info(env, about),
    }
}

/// Returns true if mutators get one message of an input at a time, by `--net` and `--mutator-sees`.
pub(crate) fn by_message(net: Option<&str>, sees: Option<&str>) -> Result<bool, Failure> {
    match (net, sees) {
        (None, Some(_)) => {
            let remedy = "leave it out, or name the socket of the target, for example --net tcp:80";
            Err(Failure::usage("--mutator-sees without --net: inputs are no messages", remedy))
        }
        (_, Some("session")) => Ok(false),
        (net, None | Some("message")) => Ok(net.is_some()),
        (_, Some(other)) => {
            let cause = format!("--mutator-sees {other} is not known");
            Err(Failure::usage(cause, "write --mutator-sees message or --mutator-sees session"))
        }
    }
}

/// Splits names at any of three characters; ignores empty parts.
fn libraries(list: &OsStr) -> Vec<PathBuf> {
    let parts = list.as_bytes().split(|byte| b";:,".contains(byte));
    parts.filter(|part| !part.is_empty()).map(|part| OsStr::from_bytes(part).into()).collect()
}

/// Variables about the campaign for mutators, unless the user has set them.
fn info(env: &Environment, about: &About<'_>) -> Vec<(String, OsString)> {
    let (program, arguments) = about.command.split_first().unzip();
    let arguments = arguments.map(|words| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        OsString::from_vec(words.join(&b' '))
    });
    let values = [
        ("PROGRAM", program.cloned()),
        ("PROGRAM_ARGV", arguments),
        ("PROGRAM_INPUT", about.file.map(Into::into)),
        ("OUT", about.out.map(Into::into)),
    ];
    let named = values.into_iter().filter_map(|(name, value)| {
        let name = format!("AFL_CUSTOM_INFO_{name}");
        value.filter(|_| env.get(&name).is_none()).map(|value| (name, value))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(pairs: &[(&str, &str)]) -> CustomOptions {
        let command = ["./t", "-a", "@@"].map(OsString::from);
        let about =
            About { command: &command, file: Some(Path::new("/f")), out: Some(Path::new("/o/x")) };
        options(&Environment::from_pairs(pairs), &about)
    }

    #[test]
    fn names_are_split_at_three_signs() {
        let list = [("AFL_CUSTOM_MUTATOR_LIBRARY", ";a.so;;b.so:/c/d.so,e.so:")];
        let names: Vec<_> = ["a.so", "b.so", "/c/d.so", "e.so"].map(PathBuf::from).into();
        assert_eq!(resolved(&list).libraries, names);
        assert!(resolved(&[]).is_empty());
    }

    #[test]
    fn mutators_learn_about_the_target_unless_the_user_says_otherwise() {
        let info = resolved(&[("AFL_CUSTOM_INFO_OUT", "/mine")]).info;
        let pair = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
        assert_eq!(
            info,
            [
                pair("AFL_CUSTOM_INFO_PROGRAM", "./t"),
                pair("AFL_CUSTOM_INFO_PROGRAM_ARGV", "-a @@"),
                pair("AFL_CUSTOM_INFO_PROGRAM_INPUT", "/f"),
            ]
        );
    }
}
