//! The short text of a crash: message and innermost function in one line.

use fancy_regex::Captures;

use super::info::{CrashInfo, CrashMessage, ReportKind};
use super::lines::{Lazy, regex};
use super::names::is_machinery;
use super::{sanitizers, valgrind};

static UNPRINTABLE: Lazy = Lazy::new(|| regex(r"[\p{Cc}\p{So}]"));
static ASAN_PLACES: Lazy = Lazy::new(|| {
    regex(concat!(
        r"^ERROR: | in thread T\d+.*$|(malloc\(\)-ed): 0x[0-9a-f]+",
        r"|(-param-overlap: memory ranges) \[.*\) and \[.*\)",
        r"|(requested allocation size) 0x[0-9a-f]+ \(0x[0-9a-f]+ after adjustments.*\)",
        r"|(exceeds maximum supported size) of 0x[0-9a-f]+.*",
    ))
});
static ACCESS_PLACE: Lazy = Lazy::new(|| regex(r" at 0x[0-9a-f]+ thread .*$"));

/// Maximum number of letters; longer text is not meant for users.
const LONGEST: usize = 300;
const NO_WARNING: &str = "No TSan warning detected";
const NOTHING: &str = "No crash detected";

/// Short text; Err with ffuzz's own text and the reason if the reference has none.
pub(super) fn text(info: &CrashInfo, lines: &[&str]) -> Result<String, (String, String)> {
    let message = info.message.as_ref().map(joined);
    let uses_auxiliary = match info.kind {
        ReportKind::Asan => message.is_none(),
        ReportKind::Ubsan | ReportKind::Lsan => true,
        _ => false,
    };
    let text = match (info.kind, message) {
        (ReportKind::Asan, Some(message)) => message,
        (ReportKind::Asan, None) => asan(info),
        (ReportKind::Ubsan, _) => plain_sanitizer("UndefinedBehaviorSanitizer", info),
        (ReportKind::Lsan, _) => plain_sanitizer("LeakSanitizer", info),
        (ReportKind::Tsan, _) => return tsan(info, lines).map(|text| printable(&text)),
        (ReportKind::Valgrind, _) => match (valgrind::message(lines), info.backtrace.is_empty()) {
            (None, _) => NOTHING.to_owned(),
            (Some(said), true) => format!("Valgrind: {said}"),
            (Some(said), false) => format!("Valgrind: {said} {}", at(&info.backtrace)),
        },
        (_, Some(message)) => message,
        (_, None) if info.backtrace.is_empty() => NOTHING.to_owned(),
        (_, None) => at(&info.backtrace),
    };
    if uses_auxiliary && info.odd_auxiliary {
        let reason = "the server misreads an access that is no sanitizer's".to_owned();
        return Err((printable(&text), reason));
    }
    Ok(printable(&text))
}

/// Short text for reports that the reference cannot read: the message and the innermost function.
pub(super) fn beyond(info: &CrashInfo) -> String {
    let said = info.message.as_ref().or(info.auxiliary.as_ref()).map(joined).unwrap_or_default();
    let said = said.trim_start_matches("ERROR: ").trim_start_matches("WARNING: ");
    let text = match (said, info.backtrace.is_empty()) {
        ("", true) => NOTHING.to_owned(),
        ("", false) => at(&info.backtrace),
        (said, true) => said.to_owned(),
        (said, false) => {
            let is_own = |name: &String| info.kind == ReportKind::Python || !is_machinery(name);
            let own = info.backtrace.iter().position(is_own).unwrap_or(0);
            format!("{said} {}", at(&info.backtrace[own..]))
        }
    };
    printable(&text)
}

fn joined(message: &CrashMessage) -> String {
    message.lines.join(" ")
}

/// Escapes unprintable letters and limits the length.
fn printable(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    let escape = |letter: &Captures<'_, str>| {
        let letter = letter.get(0).and_then(|found| found.as_str().chars().next());
        format!("\\u{{{:x}}}", letter.map_or(0, u32::from))
    };
    UNPRINTABLE.replace_all(&text[..end], escape).into_owned()
}

fn at(backtrace: &[String]) -> String {
    let frame = backtrace.first().map_or("??", String::as_str);
    format!("[@ {frame}]")
}

fn asan(info: &CrashInfo) -> String {
    let Some(auxiliary) = &info.auxiliary else {
        return match (info.backtrace.is_empty(), info.address) {
            (true, None) => NOTHING.to_owned(),
            _ => at(&info.backtrace),
        };
    };
    let mut text = ASAN_PLACES.replace_all(&auxiliary.lines[0], "$1$2$3$4").into_owned();
    if !info.backtrace.is_empty() {
        text = format!("{text} {}", at(&info.backtrace));
    }
    if let Some(access) = auxiliary.lines.get(1) {
        text = format!("{text} with {}", ACCESS_PLACE.replace(access, ""));
    }
    text
}

fn plain_sanitizer(name: &str, info: &CrashInfo) -> String {
    match &info.auxiliary {
        Some(auxiliary) => format!("{name}: {}", joined(auxiliary)),
        None if info.backtrace.is_empty() => NOTHING.to_owned(),
        None => format!("{name}: {}", at(&info.backtrace)),
    }
}

fn tsan(info: &CrashInfo, lines: &[&str]) -> Result<String, (String, String)> {
    let Some(warning) = sanitizers::tsan_warning(lines) else { return Ok(NO_WARNING.to_owned()) };
    let says = |words: &[&str]| words.iter().any(|word| warning.contains(word));
    let frame = if says(&["data race"]) {
        match &info.tops[..] {
            [first, second, ..] => {
                return Ok(format!("{warning} [@ {first}] vs. [@ {second}]"));
            }
            _ => info.backtrace.first(),
        }
    } else if says(&["mutex", "deadlock"]) {
        info.backtrace.iter().find(|frame| !frame.contains("mutex"))
    } else {
        info.backtrace.first()
    };
    let text = frame.map_or(warning.clone(), |frame| format!("{warning} [@ {frame}]"));
    let is_known =
        says(&["data race", "mutex", "deadlock", "thread leak", "signal", "use-after-free"]);
    if is_known {
        Ok(text)
    } else {
        Err((text, format!("the server has no rule for \"{warning}\"")))
    }
}
