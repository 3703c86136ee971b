//! Splits the words before the target, as `getopt` does, and resolves letters whose meaning depends on the next word.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::cmd::exit::Failure;
use crate::config::options::Schedule;

/// Values of `-a`.
const INPUT_TYPES: &[&[u8]] = &[b"text", b"binary", b"default"];

/// The options that take a value, from the definition of the arguments.
#[derive(Debug)]
pub(super) struct Valued {
    pub(super) letters: Vec<char>,
    pub(super) names: Vec<String>,
}

/// Words of the fuzzer, and the target with its arguments.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Split {
    /// One entry per option: a letter or a name, and its value.
    pub(super) options: Vec<Vec<OsString>>,
    pub(super) command: Vec<OsString>,
}

/// Splits the words. The target starts at the first word that is neither an option nor a value, or after `--`.
pub(super) fn split(words: &[OsString], valued: &Valued) -> Result<Split, Failure> {
    let mut result = Split::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            result.command = words[at + 1..].to_vec();
            break;
        }
        if !bytes.starts_with(b"-") || bytes == b"-" {
            result.command = words[at..].to_vec();
            break;
        }
        at += 1;
        let takes_next = match bytes.strip_prefix(b"--") {
            Some(name) => {
                result.options.push(vec![word.clone()]);
                valued.names.iter().any(|known| known.as_bytes() == name)
            }
            None => cluster(bytes, &words[at..], valued, &mut result.options)?,
        };
        if takes_next && let (Some(value), Some(last)) = (words.get(at), result.options.last_mut())
        {
            last.push(value.clone());
            at += 1;
        }
    }
    Ok(result)
}

/// Name of an option, without an attached value.
pub(super) fn name(option: &[OsString]) -> String {
    let word = option.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if word.starts_with("--") {
        return word.split('=').next().unwrap_or_default().to_owned();
    }
    word.chars().take(2).collect()
}

/// Splits a word of letters. Returns true if its last letter takes the next word as its value.
fn cluster(
    word: &[u8],
    next: &[OsString],
    valued: &Valued,
    options: &mut Vec<Vec<OsString>>,
) -> Result<bool, Failure> {
    for (index, &letter) in word.iter().enumerate().skip(1) {
        let rest = &word[index + 1..];
        let following = next.first().map(|w| w.as_bytes()).filter(|_| rest.is_empty());
        check_letter(letter, rest, following)?;
        if letter == b'p' && is_schedule(letter, rest, next, valued) {
            let name = (!rest.is_empty()).then(|| OsStr::from_bytes(rest).to_owned());
            options.push([Some("--schedule".into()), name].into_iter().flatten().collect());
            return Ok(rest.is_empty());
        }
        if valued.letters.contains(&char::from(letter)) {
            options.push(vec![OsString::from_vec([b"-", &word[index..]].concat())]);
            return Ok(rest.is_empty());
        }
        if !letter.is_ascii_alphanumeric() {
            options.push(vec![OsStr::from_bytes(word).to_owned()]);
            return Ok(false);
        }
        options.push(vec![OsString::from_vec(vec![b'-', letter])]);
    }
    Ok(false)
}

/// Returns true if `-p` is AFL++'s option: a schedule's name follows, and a target is left after it.
fn is_schedule(letter: u8, rest: &[u8], next: &[OsString], valued: &Valued) -> bool {
    let named = |bytes: &[u8]| Schedule::ALL.iter().any(|known| known.name().as_bytes() == bytes);
    if letter != b'p' || !rest.is_empty() {
        return letter == b'p' && named(rest);
    }
    let Some((name, after)) = next.split_first() else { return false };
    named(name.as_bytes()) && split(after, valued).is_ok_and(|s| !s.command.is_empty())
}

/// Rejects letters with another meaning in an ancestor, and names the option to use.
fn check_letter(letter: u8, rest: &[u8], next: Option<&[u8]>) -> Result<(), Failure> {
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let value = next.unwrap_or(rest);
    let shown = String::from_utf8_lossy(value);
    match letter {
        b'N' if number(value) => Err(Failure::usage(
            "-N takes no number: it keeps the file of the input",
            format!("the largest input is set with -G: write -G {shown}"),
        )),
        b'n' if number(value) => Err(Failure::usage(
            "-n takes no number: it is for targets without instrumentation",
            format!("a number of executions is set with -E: write -E {shown}"),
        )),
        b'a' if !INPUT_TYPES.contains(&value) => Err(Failure::usage(
            "-a needs one of text, binary, default",
            "to record domains without guiding by them, write --dsf-record",
        )),
        _ => Ok(()),
    }
}
