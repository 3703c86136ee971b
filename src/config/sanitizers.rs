//! Sanitizer options for the target. A sanitizer must end a faulty run by a signal or a known exit code; otherwise the
//! fuzzer does not see a crash.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use miette::Diagnostic;

use super::env::Environment;

/// For every sanitizer: abort on errors, leave signals to the kernel, no slow report.
const COMMON: &str = "detect_odr_violation=0:abort_on_error=1:symbolize=0:\
    allocator_may_return_null=1:handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:\
    handle_sigill=0:detect_stack_use_after_return=0:check_initialization_order=0:";
const ADDRESS: &str = "detect_leaks=0:malloc_context_size=0:";
const UNDEFINED: &str = "halt_on_error=1:detect_leaks=0:malloc_context_size=0:";
/// The fuzzer recognizes reports of MSan by exit code 86.
const MEMORY: &str = "exit_code=86:msan_track_origins=0:";
/// The fuzzer recognizes reports of LSan by exit code 23.
const LEAK: &str = "exitcode=23:fast_unwind_on_malloc=0:print_suppressions=0:detect_leaks=1:\
    malloc_context_size=30:symbolize=0:";

/// User options that would hide crashes.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{name} does not contain {missing}: crashes would be missed or slow")]
#[diagnostic(help("add {missing} to {name}, or unset it"))]
pub struct SanitizerError {
    pub name: &'static str,
    pub missing: &'static str,
}

/// Returns true if `options` contain `wanted`, in any spelling that sanitizers accept for yes and no.
fn has_option(options: &str, wanted: &str) -> bool {
    let Some((name, setting)) = wanted.split_once('=') else { return false };
    let same: &[&str] = match setting {
        "1" => &["1", "yes", "true"],
        "0" => &["0", "no", "false"],
        other => &[other],
    };
    let is_break = |letter: char| letter == ':' || letter == ',' || letter.is_ascii_whitespace();
    let mut settings = options.split(is_break).filter_map(|option| option.split_once('='));
    // The last setting counts.
    let last = settings.rfind(|(known, _)| *known == name);
    last.is_some_and(|(_, value)| same.contains(&value.trim_matches(['\'', '"'])))
}

/// Options that the fuzzer needs, per sanitizer.
const NEEDED: &[(&str, &[&str])] = &[
    ("ASAN_OPTIONS", &["abort_on_error=1", "symbolize=0"]),
    ("MSAN_OPTIONS", &["exit_code=86", "symbolize=0"]),
    ("LSAN_OPTIONS", &["symbolize=0"]),
];

/// Completes the user's variables with the options that the fuzzer needs. For libFuzzer command lines, where users need
/// not set any. `address` adds options of AddressSanitizer.
#[must_use]
pub fn completed(env: &Environment, address: &[String]) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for &(name, needed) in NEEDED {
        let given = env.get(name).map(|value| value.to_string_lossy().into_owned());
        let more = if name == "ASAN_OPTIONS" { address } else { &[] };
        if given.is_none() && more.is_empty() {
            continue;
        }
        let defaults =
            if name == "ASAN_OPTIONS" { format!("{COMMON}{ADDRESS}") } else { COMMON.into() };
        let parts = [defaults.trim_end_matches(':').to_owned(), given.unwrap_or_default()];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).chain(more.iter().cloned());
        let parts = parts.chain(needed.iter().map(|option| (*option).to_owned()));
        all.push((name, parts.collect::<Vec<_>>().join(":")));
    }
    all
}

/// Variables for the target: each sanitizer's options unless the user set them, and no backtraces.
pub fn target_environment(
    env: &Environment,
) -> Result<Vec<(&'static str, String)>, SanitizerError> {
    let given = |name| env.get(name).map(|v| v.to_string_lossy().into_owned());
    for &(name, options) in NEEDED {
        let Some(value) = given(name) else { continue };
        if let Some(missing) = options.iter().find(|option| !has_option(&value, option)) {
            return Err(SanitizerError { name, missing });
        }
    }
    let leaks = given("ASAN_OPTIONS").is_some_and(|v| !v.contains("detect_leaks=0"));
    let defaults = [
        ("ASAN_OPTIONS", format!("{COMMON}{ADDRESS}")),
        ("UBSAN_OPTIONS", format!("{COMMON}{UNDEFINED}")),
        ("MSAN_OPTIONS", format!("{COMMON}{MEMORY}")),
        ("LSAN_OPTIONS", if leaks { LEAK.to_owned() } else { COMMON.to_owned() }),
    ];
    let defaults = defaults.into_iter().filter(|(name, _)| given(name).is_none());
    // Resolving the names of a backtrace takes longer than the run: a panic would time out. Triage enables them.
    Ok(defaults.chain([("RUST_BACKTRACE", "0".to_owned())]).collect())
}

/// For runs whose report is read: the sanitizer also reports signals, and ends the run with one.
const REPORTING: &str = "abort_on_error=1:halt_on_error=1:handle_segv=1:handle_sigbus=1:\
    handle_abort=1:handle_sigfpe=1:handle_sigill=1:print_stacktrace=1:";
/// Without names, a report takes a tenth of the time.
const RAW: &str = "symbolize=0:malloc_context_size=0";
const READABLE: &str = "symbolize=1:malloc_context_size=30";
/// For a core file of the fault itself, which ASan disables by default.
const BARE: &str = "abort_on_error=1:halt_on_error=1:handle_segv=0:handle_sigbus=0:handle_abort=0:\
    handle_sigfpe=0:handle_sigill=0:disable_coredump=0:symbolize=0";
/// Variable of each sanitizer's options.
pub const SANITIZER_VARIABLES: [&str; 5] =
    ["ASAN_OPTIONS", "UBSAN_OPTIONS", "MSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"];

/// Form of the report.
#[derive(Clone, Copy, Debug)]
pub enum ReportStyle<'a> {
    /// Modules and offsets.
    Raw,
    /// Functions and lines, resolved by this symbolizer or the one that the sanitizer finds.
    Readable(Option<&'a Path>),
    /// Only errors that only a sanitizer detects; the kernel handles signals.
    Bare,
}

/// Adds a list of options. Of several values of one option only the last is kept, which is the one that sanitizers use.
fn add_options(options: &mut Vec<Vec<u8>>, list: &[u8]) {
    let mut quote = None;
    let ends = |byte: &u8| {
        match (*byte, quote) {
            (b'\'' | b'"', None) => quote = Some(*byte),
            (byte, Some(open)) if byte == open => quote = None,
            _ => {}
        }
        quote.is_none() && matches!(byte, b':' | b',' | b' ' | b'\n' | b'\t' | b'\r')
    };
    for option in list.split(ends).filter(|option| !option.is_empty()) {
        let name = |option: &[u8]| option.split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
        options.retain(|known| name(known) != name(option));
        options.push(option.to_vec());
    }
}

/// Variables for runs whose report is read: the options in `given`, with the values needed for the report.
#[must_use]
pub fn report_environment(
    given: &[(OsString, OsString)],
    report: ReportStyle<'_>,
) -> Vec<(OsString, OsString)> {
    let option = |name: &str| {
        let before = given.iter().rev().find(|(known, _)| known == OsStr::new(name));
        let before = before.map(|(_, value)| value.as_bytes()).unwrap_or_default();
        let mut options = Vec::new();
        add_options(&mut options, before);
        match report {
            ReportStyle::Bare => add_options(&mut options, BARE.as_bytes()),
            ReportStyle::Raw => add_options(&mut options, [REPORTING, RAW].concat().as_bytes()),
            ReportStyle::Readable(symbolizer) => {
                add_options(&mut options, [REPORTING, READABLE].concat().as_bytes());
                if let Some(path) = symbolizer {
                    let path = path.as_os_str().as_bytes();
                    let option = [b"external_symbolizer_path='", path, b"'"].concat();
                    add_options(&mut options, &option);
                }
            }
        }
        (OsString::from(name), OsString::from_vec(options.join(&b':')))
    };
    let backtrace = if matches!(report, ReportStyle::Readable(_)) { "1" } else { "0" };
    SANITIZER_VARIABLES
        .into_iter()
        .map(option)
        .chain([("RUST_BACKTRACE".into(), backtrace.into())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_user_left_open_is_set() {
        let names = |pairs: &[(&str, &str)]| -> Vec<&str> {
            let set = target_environment(&Environment::from_pairs(pairs)).expect("good options");
            set.into_iter().map(|(name, _)| name).collect()
        };
        let all =
            ["ASAN_OPTIONS", "UBSAN_OPTIONS", "MSAN_OPTIONS", "LSAN_OPTIONS", "RUST_BACKTRACE"];
        assert_eq!(names(&[("RUST_BACKTRACE", "1")]), all);
        assert_eq!(names(&[("ASAN_OPTIONS", "abort_on_error=1:symbolize=0")]), all[1..]);
    }

    #[test]
    fn options_that_hide_crashes_are_refused() {
        let env = Environment::from_pairs(&[("ASAN_OPTIONS", "symbolize=0")]);
        let error = target_environment(&env).expect_err("no abort");
        let help = error.help().map(|help| help.to_string());
        assert_eq!(help.as_deref(), Some("add abort_on_error=1 to ASAN_OPTIONS, or unset it"));
        let overridden = "abort_on_error=1:symbolize=0:abort_on_error=0";
        let env = Environment::from_pairs(&[("ASAN_OPTIONS", overridden)]);
        target_environment(&env).expect_err("the last one counts");
    }

    #[test]
    fn words_for_yes_and_no_are_taken_like_numbers() {
        for options in [
            "abort_on_error=true:symbolize=false",
            "abort_on_error=yes symbolize=no",
            "abort_on_error=0,abort_on_error='1',symbolize=0",
        ] {
            let env = Environment::from_pairs(&[("ASAN_OPTIONS", options)]);
            target_environment(&env).expect(options);
        }
    }

    #[test]
    fn leaks_asked_for_are_reported_by_exit_code() {
        let env = Environment::from_pairs(&[("ASAN_OPTIONS", "abort_on_error=1:symbolize=0")]);
        let set = target_environment(&env).expect("good options");
        assert!(set.iter().any(|(name, v)| *name == "LSAN_OPTIONS" && v.contains("exitcode=23")));
    }

    #[test]
    fn a_report_that_is_read_has_the_last_word() {
        let given =
            [("ASAN_OPTIONS", "symbolize=0:detect_leaks=1")].map(|(n, v)| (n.into(), v.into()));
        let value = |report| report_environment(&given, report)[0].1.clone().into_string().unwrap();
        let raw = value(ReportStyle::Raw);
        assert!(raw.starts_with("detect_leaks=1:abort_on_error=1:"), "{raw}");
        assert!(raw.ends_with(":symbolize=0:malloc_context_size=0"), "{raw}");
        assert_eq!(raw.matches("symbolize=").count(), 1, "{raw}");
        let bare = value(ReportStyle::Bare);
        assert!(bare.contains(":handle_segv=0:") && bare.contains(":disable_coredump=0"), "{bare}");
        let readable = value(ReportStyle::Readable(Some(Path::new("/a b"))));
        assert!(readable.contains(":symbolize=1:"), "{readable}");
        assert!(readable.ends_with(":external_symbolizer_path='/a b'"), "{readable}");
        assert!(readable.contains(":symbolize=1:") && !readable.contains("symbolize=0"));
    }

    #[test]
    fn an_option_keeps_its_last_value_and_a_quoted_one_its_separators() {
        let mut options = Vec::new();
        add_options(&mut options, b"a=1:b='x:y z',c=3 a=2::d");
        add_options(&mut options, b"c=\"4:5\"");
        assert_eq!(options.join(&b'|'), b"b='x:y z'|a=2|d|c=\"4:5\"");
    }
}
