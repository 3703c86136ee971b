//! Parsers of option values: numbers, sizes, times, names. Each error is one line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cmd::exit::Failure;
use crate::config::net::NetOptions;
use crate::config::options::{RunMode, Schedule, Strategy, TimeoutSpec};
use crate::crashes::triage::RecordThreshold;
use crate::sys::regular;

/// Minimum feasible timeout in milliseconds (AFL's limit).
const MIN_TIMEOUT_MS: u64 = 5;
/// Minimum memory with which a program can start (AFL's limit).
const MIN_MEMORY: u64 = 5 << 20;
/// Maximum length of an instance name (AFL's limit).
const MAX_NAME: usize = 50;
/// Maximum length of an extension; whole file names have at most 255 bytes.
const MAX_EXTENSION: usize = 32;
/// Names that OUT or AFL's tools reserve.
const RESERVED: &[&str] = &["addseeds", "queue", "crashes", "hangs", "perf_inputs"];

pub(crate) fn number(option: &str, text: &str, min: u64, max: u64) -> Result<u64, Failure> {
    match text.parse::<u64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ if max == u64::MAX => Err(bad(option, text, &format!("a number of at least {min}"))),
        _ => Err(bad(option, text, &format!("a number from {min} to {max}"))),
    }
}

pub(super) fn bad(option: &str, text: &str, expected: &str) -> Failure {
    Failure::usage(format!("{option} {text} is not {expected}"), "ffuzz --help lists the options")
}

/// Parses `-t 50` or `-t 50+`.
pub(super) fn timeout(text: &str) -> Result<TimeoutSpec, Failure> {
    let (digits, upto) = match text.strip_suffix('+') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let ms = number("-t", digits, MIN_TIMEOUT_MS, u64::from(u32::MAX))?;
    let time = Duration::from_millis(ms);
    Ok(if upto { TimeoutSpec::Upto(time) } else { TimeoutSpec::Fixed(time) })
}

/// Parses `--net`, with the expression of `--answers`.
pub(super) fn net(text: &str, answers: Option<&str>) -> Result<NetOptions, Failure> {
    let net: NetOptions = text.parse().map_err(|error| {
        Failure::usage(
            format!("--net {text}: {error}"),
            "give tcp:PORT, udp:PORT, unix:PATH, tcp-client[:PORT] or udp-client[:PORT]",
        )
    })?;
    if let Some((expression, error)) =
        answers.and_then(|text| Some((text, regular::check(text).err()?)))
    {
        return Err(Failure::usage(
            format!("--answers {expression}: {error}"),
            "give an extended regular expression of POSIX, for example '^[0-9]{3}'",
        ));
    }
    Ok(NetOptions { answers: answers.map(Into::into), ..net })
}

/// Parses a text with C escapes.
pub(super) fn separator(text: &str) -> Result<Vec<u8>, Failure> {
    let bad = || bad("--split", text, "a text, with \\r, \\n, \\t, \\0, \\\\ and \\xHH");
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (kind, after) = rest.split_first().ok_or_else(bad)?;
        rest = after;
        bytes.push(match kind {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'0' => 0,
            b'\\' => b'\\',
            b'x' => {
                let (digits, after) = rest.split_at_checked(2).ok_or_else(bad)?;
                rest = after;
                let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
                u8::from_str_radix(digits, 16).map_err(|_| bad())?
            }
            _ => return Err(bad()),
        });
    }
    if bytes.is_empty() { Err(bad()) } else { Ok(bytes) }
}

/// Parses `-a`; None: detect the type from the input.
pub(super) fn input_type(text: &str) -> Result<Option<bool>, Failure> {
    match text {
        "text" | "ascii" => Ok(Some(true)),
        "binary" => Ok(Some(false)),
        "default" => Ok(None),
        _ => Err(bad("-a", text, "text, binary or default")),
    }
}

/// Parses `-P`.
pub(super) fn strategy(text: &str) -> Result<Strategy, Failure> {
    match (text, text.parse()) {
        ("explore", _) => Ok(Strategy::Explore),
        ("exploit", _) => Ok(Strategy::Exploit),
        (_, Ok(seconds)) => Ok(Strategy::Alternate(Duration::from_secs(seconds))),
        _ => Err(bad("-P", text, "explore, exploit or a number of seconds")),
    }
}

/// Parses `-m none`, `-m 50` (MB), `-m 200M`, `-m 1G`; 0 is no limit, as in AFL.
pub(crate) fn memory(text: &str) -> Result<Option<u64>, Failure> {
    let expected = "none, or a size such as 50 (MB), 200M or 1G, of at least 5 MB";
    if text == "none" {
        return Ok(None);
    }
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M')) => (&text[..at], 1 << 20),
        Some((at, 'G')) => (&text[..at], 1 << 30),
        Some((at, 'T')) => (&text[..at], 1 << 40),
        _ => (text, 1 << 20),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    match bytes {
        Some(0) => Ok(None),
        Some(bytes) if bytes >= MIN_MEMORY => Ok(Some(bytes)),
        _ => Err(bad("-m", text, expected)),
    }
}

pub(super) fn run_mode(name: &str) -> Result<RunMode, Failure> {
    Ok(match name {
        "pipe" => RunMode::Pipe,
        "fork" => RunMode::Fork,
        "snapshot" => RunMode::Snapshot,
        "persistent" => RunMode::Persistent,
        "batch" => RunMode::Batch,
        _ => return Err(bad("--run-mode", name, "pipe, fork, snapshot, persistent or batch")),
    })
}

pub(super) fn schedule(name: &str) -> Result<Schedule, Failure> {
    let names = || Schedule::ALL.map(Schedule::name).join(", ");
    Schedule::named(name).ok_or_else(|| bad("--schedule", name, &names()))
}

/// Parses an instance name; removes the `:n/m` of `-M`.
pub(super) fn instance(option: &str, text: &str) -> Result<String, Failure> {
    let name = if option == "-M" { text.split(':').next().unwrap_or_default() } else { text };
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('-') || !name.chars().all(good)
    {
        return Err(bad(option, text, "a name of at most 50 letters, digits, _ and -"));
    }
    if RESERVED.contains(&name) {
        let cause = format!("{option} {name}: the name is used for something else");
        return Err(Failure::usage(cause, "choose another name"));
    }
    Ok(name.to_owned())
}

/// Parses an extension; removes the dot.
pub(crate) fn extension(text: &str) -> Result<String, Failure> {
    let name = text.strip_prefix('.').unwrap_or(text);
    let bad_char = |c: char| c == '/' || c == ',' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > MAX_EXTENSION || name.contains(bad_char) {
        return Err(bad("-e", text, "a file extension"));
    }
    Ok(name.to_owned())
}

/// Parses `FILE` or `FILE@LEVEL`; an existing file whose name ends like a level has precedence.
pub(super) fn dictionary(word: &OsStr) -> Result<(PathBuf, u32), Failure> {
    let missing = |path: &Path| {
        Failure::new(
            format!("dictionary {} does not exist", path.display()),
            "check the path given to -x",
        )
    };
    let whole = Path::new(word);
    if whole.exists() {
        return Ok((absolute(word)?, 0));
    }
    let bytes = word.as_bytes();
    let at = bytes.iter().rposition(|&b| b == b'@').ok_or_else(|| missing(whole))?;
    let level = std::str::from_utf8(&bytes[at + 1..]).ok().and_then(|t| t.parse().ok());
    let path = OsStr::from_bytes(&bytes[..at]);
    match level {
        Some(level) if Path::new(path).exists() => Ok((absolute(path)?, level)),
        Some(_) => Err(missing(Path::new(path))),
        None => Err(missing(whole)),
    }
}

pub(super) fn absolute(path: &OsStr) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        let shown = path.to_string_lossy();
        Failure::usage(format!("path '{shown}' cannot be used: {error}"), "check the path")
    })
}

/// Parses `AFL_TARGET_ENV`: `A=1 B="x y"`, quoted as in a shell.
pub(super) fn assignments(text: &str) -> Result<Vec<(OsString, OsString)>, Failure> {
    let failed = |cause: &str| {
        Failure::new(
            format!("AFL_TARGET_ENV: {cause}"),
            "write it as in a shell: NAME=value NAME2=\"value with blanks\"",
        )
    };
    let mut result = Vec::new();
    for word in shell_words(text).ok_or_else(|| failed("a quote is not closed"))? {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => result.push((name.into(), value.into())),
            _ => return Err(failed(&format!("'{word}' is not NAME=value"))),
        }
    }
    Ok(result)
}

/// Splits a shell line into words; None if a quote is not closed.
pub(super) fn shell_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Parses `--report-records`, which needs a receiver of reports.
pub(in crate::cmd) fn records(
    list: Option<&str>,
    reports: bool,
) -> Result<Vec<RecordThreshold>, Failure> {
    if list.is_some() && !reports {
        let cause = "--report-records needs a crash server";
        return Err(Failure::usage(cause, "add --collector, or --collector=URL"));
    }
    let threshold = |text: &str| {
        RecordThreshold::parse(text).ok_or_else(|| {
            let cause = format!("--report-records: {text} is not of the form DOMAIN=VALUE");
            Failure::usage(cause, "name a domain and a number, for example mem=1000000")
        })
    };
    list.into_iter().flat_map(|list| list.split(',')).map(threshold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_units_of_afl() {
        let mb = |text: &str| memory(text).ok();
        assert_eq!(mb("50"), Some(Some(50 << 20)));
        assert_eq!(mb("200M"), Some(Some(200 << 20)));
        assert_eq!(mb("1G"), Some(Some(1 << 30)));
        assert_eq!(mb("8000k"), Some(Some(8000 << 10)));
        assert_eq!((mb("none"), mb("0")), (Some(None), Some(None)));
        for text in ["", "4", "x", "1P", "-1", "ä", "99999999999999999T"] {
            assert_eq!(mb(text), None, "{text}");
        }
    }

    #[test]
    fn target_variables_are_quoted_as_in_a_shell() {
        let pairs = assignments(r#"A=1 B="x y"  C='"' D=a\ b E="#).expect("words");
        let shown: Vec<String> =
            pairs.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        assert_eq!(shown, ["A=1", "B=x y", "C=\"", "D=a b", "E="]);
        assert!(assignments("A='").is_err());
        assert!(assignments("A").is_err());
    }

    #[test]
    fn instance_names_are_those_of_afl() {
        assert_eq!(instance("-M", "main:1/4").ok().as_deref(), Some("main"));
        for text in ["", "-a", "a/b", "a:b", "queue", &"x".repeat(51)] {
            assert!(instance("-S", text).is_err(), "{text}");
        }
    }
}
