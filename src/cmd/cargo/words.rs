//! What comes after the name of a harness: inputs, and then options of `ffuzz` or of libFuzzer, which scripts for
//! cargo-fuzz have.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::cmd::exit::Failure;

/// An option of libFuzzer that `ffuzz` has, too.
struct Known {
    name: &'static str,
    ours: &'static str,
    /// Values that mean the same as without the option.
    usual: &'static [&'static str],
    /// By this the value is multiplied.
    factor: u64,
}

const fn known(name: &'static str, ours: &'static str, usual: &'static [&'static str]) -> Known {
    Known { name, ours, usual, factor: 1 }
}

const KNOWN: [Known; 10] = [
    known("max_total_time", "-V", &["0"]),
    known("runs", "-E", &["-1"]),
    known("max_len", "-G", &["0"]),
    Known { factor: 1000, ..known("timeout", "-t", &["0"]) },
    known("rss_limit_mb", "-m", &["0"]),
    known("dict", "-x", &[]),
    known("seed", "-s", &["0"]),
    // Of several the last one counts.
    known("fork", "-j", &["0"]),
    known("jobs", "-j", &["0"]),
    known("workers", "-j", &["0"]),
];

/// Inputs and options.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Words {
    pub(super) inputs: Vec<PathBuf>,
    pub(super) options: Vec<OsString>,
}

impl Words {
    /// Inputs come first. The options may have `--` in front of them.
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

    /// True if no mutants are wanted: `-runs=0` runs what is there.
    pub(super) fn only_runs(&self) -> bool {
        self.options.iter().any(|word| word == "-runs=0")
    }

    /// The options of `ffuzz`: those of libFuzzer are translated.
    pub(super) fn translated(&self) -> Result<Vec<OsString>, Failure> {
        let mut all: Vec<OsString> = Vec::new();
        for word in &self.options {
            match libfuzzer(word) {
                None => all.push(word.clone()),
                Some((name, value)) => {
                    let [option, value] = match translate(name, value)? {
                        Some(ours) => ours,
                        None => continue,
                    };
                    if let Some(at) = all.iter().position(|word| *word == *option) {
                        all.drain(at..at + 2);
                    }
                    all.extend([option, value]);
                }
            }
        }
        Ok(all)
    }
}

/// Name and value of an option of libFuzzer: `-max_len=4096`. Those of `ffuzz` have one letter or two dashes.
fn libfuzzer(word: &OsStr) -> Option<(&str, &str)> {
    let (name, value) = word.to_str()?.strip_prefix('-')?.split_once('=')?;
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (name.len() > 1 && name.bytes().all(is_letter)).then_some((name, value))
}

/// None if it changes nothing.
fn translate(name: &str, value: &str) -> Result<Option<[OsString; 2]>, Failure> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let cause = format!("-{name} of libFuzzer has no counterpart in ffuzz");
        return Err(Failure::usage(cause, "leave it out; ffuzz --help lists the options"));
    };
    if known.usual.contains(&value) {
        return Ok(None);
    }
    let value = match known.factor {
        1 => value.to_owned(),
        factor => match value.parse::<u64>().ok().and_then(|value| value.checked_mul(factor)) {
            Some(value) => value.to_string(),
            None => {
                let cause = format!("-{name}={value}: not a number, or too large");
                return Err(Failure::usage(cause, format!("for example -{name}=10")));
            }
        },
    };
    Ok(Some([known.ours.into(), value.into()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        Words::split(line.split_whitespace().map(OsString::from).collect())
    }

    fn translated(line: &str) -> String {
        let words = words(line).translated().unwrap();
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn inputs_come_before_options() {
        let Words { inputs, options } = words("corpus/parse other -- -V 30 --no-ui");
        assert_eq!(inputs, [PathBuf::from("corpus/parse"), "other".into()]);
        assert_eq!(options, ["-V", "30", "--no-ui"]);
        assert_eq!(words("-V 30"), words("-- -V 30"));
        assert!(words("a -- -runs=0").only_runs() && !words("a -runs=1").only_runs());
    }

    #[test]
    fn options_of_libfuzzer_are_translated() {
        let line = "-max_total_time=60 -runs=1000 -max_len=4096 -timeout=5 -rss_limit_mb=512 -dict=a.dict -seed=7";
        assert_eq!(translated(line), "-V 60 -E 1000 -G 4096 -t 5000 -m 512 -x a.dict -s 7");
        assert_eq!(translated("-jobs=8 -workers=4 -V 3 -s=1 --x=2"), "-j 4 -V 3 -s=1 --x=2");
        assert_eq!(translated("-runs=-1 -max_total_time=0 -fork=0 -seed=0"), "");
    }

    #[test]
    fn what_ffuzz_does_not_have_is_refused() {
        let refused = |line: &str| words(line).translated().unwrap_err();
        assert!(refused("-entropic=1").cause.contains("-entropic of libFuzzer"));
        assert!(refused("-timeout=soon").cause.contains("-timeout=soon"));
        assert!(refused("-timeout=99999999999999999999").remedy.contains("-timeout=10"));
    }
}
