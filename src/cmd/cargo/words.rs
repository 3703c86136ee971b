//! The words after the name of a harness: inputs, then options of `ffuzz` or of libFuzzer; scripts for cargo-fuzz use
//! the latter.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::cmd::exit::Failure;

/// Inputs and options.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct CargoWords {
    pub(super) inputs: Vec<PathBuf>,
    pub(super) options: Vec<OsString>,
}

impl CargoWords {
    /// Splits the words: inputs first, then options, optionally after `--`.
    pub(super) fn split(words: Vec<OsString>) -> Self {
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let inputs = words.iter().position(is_option).unwrap_or(words.len());
        let mut words = words.into_iter();
        let inputs = words.by_ref().take(inputs).map(PathBuf::from).collect();
        let mut options: Vec<_> = words.collect();
        if options.first().is_some_and(|word| word == "--") {
            options.remove(0);
        }
        Self { inputs, options }
    }

    /// Returns true for `-runs=0`, which runs the inputs without fuzzing.
    pub(super) fn only_runs(&self) -> bool {
        self.options.iter().any(|word| word == "-runs=0")
    }

    /// Returns true if the options are libFuzzer's. Fails if both kinds are mixed.
    pub(super) fn are_libfuzzers(&self) -> Result<bool, Failure> {
        let (theirs, ours): (Vec<_>, Vec<_>) =
            self.options.iter().partition(|word| is_libfuzzers(word));
        let ours = ours.iter().find(|word| word.as_encoded_bytes().starts_with(b"-"));
        match (theirs.first(), ours) {
            (Some(theirs), Some(ours)) => {
                let (theirs, ours) = (theirs.display(), ours.display());
                let cause = format!("{theirs} is an option of libFuzzer, {ours} one of ffuzz");
                Err(Failure::usage(cause, "give options of one of them"))
            }
            (theirs, _) => Ok(theirs.is_some()),
        }
    }
}

/// Returns true for an option of libFuzzer, such as `-max_len=4096`. Options of `ffuzz` have one letter or two dashes.
fn is_libfuzzers(word: &OsStr) -> bool {
    let option = word.to_str().and_then(|word| word.strip_prefix('-')?.split_once('='));
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    option.is_some_and(|(name, _)| name.len() > 1 && name.bytes().all(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> CargoWords {
        CargoWords::split(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn inputs_come_before_options() {
        let CargoWords { inputs, options } = words("corpus/parse other -- -V 30 --no-ui");
        assert_eq!(inputs, [PathBuf::from("corpus/parse"), "other".into()]);
        assert_eq!(options, ["-V", "30", "--no-ui"]);
        assert_eq!(words("-V 30"), words("-- -V 30"));
        assert!(words("a -- -runs=0").only_runs() && !words("a -runs=1").only_runs());
    }

    #[test]
    fn options_are_libfuzzers_or_ours() {
        let libfuzzers = |line: &str| words(line).are_libfuzzers();
        assert!(libfuzzers("a -- -max_total_time=60 -handle_usr1=0").unwrap());
        assert!(!libfuzzers("-V 60 -s 1 --x=2").unwrap() && !libfuzzers("a").unwrap());
        let refused = libfuzzers("-runs=5 -V 60").unwrap_err();
        assert!(refused.cause.contains("-runs=5 is an option of libFuzzer, -V one of ffuzz"));
    }
}
