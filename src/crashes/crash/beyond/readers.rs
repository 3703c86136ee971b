//! Readers for output that the reference cannot read. Each reads one text.

use super::reports;
use crate::crash::class;
use crate::crash::frames::{clean, without_hash};
use crate::crash::info::{CrashMessage, MessageSource, ReportKind};
use crate::crash::lines::{Lazy, capture, found, hex, regex, trim};
use crate::crash::names::is_machinery;

/// Findings from one text.
pub(super) struct Reading {
    pub(super) kind: ReportKind,
    pub(super) backtrace: Vec<String>,
    pub(super) address: Option<u64>,
    pub(super) said: CrashMessage,
    pub(super) class: String,
    /// `FILE:LINE`, if the message does not contain it.
    pub(super) place: Option<String>,
}

/// Result of the first reader that finds something; crash data take precedence over stderr.
pub(super) fn find(stderr: &[&str], crash_data: &[&str]) -> Option<Reading> {
    read(&[sanitizer, rust, go, python, abort], stderr, crash_data)
}

/// Reason why a program ended itself, from its message.
pub(super) fn own_message(stderr: &[&str], crash_data: &[&str]) -> Option<Reading> {
    read(&[rust, go, python, abort], stderr, crash_data)
}

type MessageReader = fn(MessageSource, &[&str]) -> Option<Reading>;

fn read(readers: &[MessageReader], stderr: &[&str], crash_data: &[&str]) -> Option<Reading> {
    let places = [(MessageSource::CrashData, crash_data), (MessageSource::Stderr, stderr)];
    let mut readings = places
        .into_iter()
        .flat_map(|(source, lines)| readers.iter().map(move |read| read(source, lines)));
    readings.find_map(|found| found)
}

/// Formats a name as gdb does, so that the server can parse it: a space before a bracket would end the name.
pub(super) fn gdb_name(name: &str) -> String {
    match without_hash(trim(name).replace(" (", "(")) {
        name if name.is_empty() => "??".to_owned(),
        name => name,
    }
}

static ADDRESS: Lazy = Lazy::new(|| regex(r"on (?:unknown )?(?:address )?0x([0-9a-f]+)"));
static NOISE: Lazy = Lazy::new(|| {
    regex(
        r"^.*?(?:==\d+==\s*|^)(?:ERROR: )?| \(pc 0x.*$| on (?:unknown )?address 0x.*$| on 0x[0-9a-f]+.*$",
    )
});
/// Frames of the reporting tools.
static FUZZER: Lazy =
    Lazy::new(|| regex("^(?:__sanitizer_print_|__sanitizer::|__asan::|__msan::|fuzzer::)"));

fn sanitizer(source: MessageSource, lines: &[&str]) -> Option<Reading> {
    let chief = reports::chief(lines)?;
    let headline = lines[chief.line];
    let (stack, _) = reports::first_stack(lines, chief.line);
    let own = own_frames(&stack);
    let said = trim(&NOISE.replace_all(headline, "")).to_owned();
    Some(Reading {
        kind: chief.kind,
        backtrace: stack[own..].iter().map(|frame| gdb_name(frame)).collect(),
        address: capture(&ADDRESS, headline).and_then(hex),
        said: CrashMessage { source, lines: vec![said] },
        class: class::of_text(headline).unwrap_or_else(|| "sanitizer report".to_owned()),
        place: None,
    })
}

/// Number of top frames of the fuzzer's signal handler, including the kernel's call of it.
fn own_frames(stack: &[String]) -> usize {
    let own = stack.iter().take_while(|frame| found(&FUZZER, frame)).count();
    let call = stack.get(own).is_some_and(|frame| own > 0 && frame.contains("+0x"));
    let own = own + usize::from(call);
    if own < stack.len() { own } else { 0 }
}

static PANIC: Lazy = Lazy::new(|| regex(r"^(?:.*\s)?(panicked at .+:\d+:\d+:)$"));
static RUST_FRAME: Lazy = Lazy::new(|| regex(r"^ +\d+: +(?:0x[0-9a-f]+ - )?(.+)$"));
/// Build hash of a crate, in full backtraces.
static CRATE: Lazy = Lazy::new(|| regex(r"\[[0-9a-f]{16}\]"));

/// Parses a panic as printed since Rust 1.73: the place, and the message on the next lines. A hook of the program may
/// print something before it.
fn rust(source: MessageSource, lines: &[&str]) -> Option<Reading> {
    let start = lines.iter().position(|line| found(&PANIC, line))?;
    let mut said = vec![capture(&PANIC, lines[start])?.to_owned()];
    let is_end =
        |line: &str| line.starts_with("note: ") || line == "stack backtrace:" || line.is_empty();
    let message = lines[start + 1..].iter().take_while(|line| !is_end(line));
    said.extend(message.take(MOST_LINES).map(|line| (*line).to_owned()));
    let stack = lines[start..].iter().skip_while(|line| **line != "stack backtrace:").skip(1);
    let stack = stack.take_while(|line| line.starts_with(' '));
    let stack: Vec<&str> = stack.filter_map(|line| capture(&RUST_FRAME, line)).collect();
    let library = stack.iter().take_while(|frame| is_machinery(frame)).count();
    let library = if library == stack.len() { 0 } else { library };
    Some(Reading {
        kind: ReportKind::Rust,
        backtrace: stack[library..]
            .iter()
            .map(|frame| gdb_name(&CRATE.replace_all(frame, "")))
            .collect(),
        address: None,
        said: CrashMessage { source, lines: said },
        class: "panic".to_owned(),
        place: None,
    })
}

/// Maximum lines of a message; more would only narrow the signature.
const MOST_LINES: usize = 3;

static GOROUTINE: Lazy = Lazy::new(|| regex(r"^goroutine \d+ .*\[running.*\]:$"));
static GO_PLACE: Lazy =
    Lazy::new(|| regex(r"^\t(?:.*/)?([^/]+:\d+)(?: \+0x[0-9a-f]+)?(?: fp=.*)?$"));

/// Parses a Go panic: each frame has a line with its name and one with its place.
fn go(source: MessageSource, lines: &[&str]) -> Option<Reading> {
    let start = lines.iter().position(|line| found(&GOROUTINE, line))?;
    let is_said = |line: &&&str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    let said = lines[..start].iter().rev().find(is_said)?;
    let stack = lines[start + 1..].iter().take_while(|line| !line.is_empty());
    let stack = stack.take_while(|line| !line.starts_with("created by "));
    let stack: Vec<&str> = stack.copied().collect();
    let (frames, _) = stack.as_chunks::<2>();
    let name = |frame: &[&str; 2]| clean(frame[0]);
    let own = frames.iter().position(|frame| !is_machinery(&name(frame))).unwrap_or(0);
    Some(Reading {
        kind: ReportKind::Go,
        backtrace: frames[own..].iter().map(|frame| gdb_name(&name(frame))).collect(),
        address: None,
        place: frames.get(own).and_then(|[_, place]| capture(&GO_PLACE, place)).map(str::to_owned),
        said: CrashMessage { source, lines: vec![(*said).to_owned()] },
        class: "panic".to_owned(),
    })
}

static PYTHON_FRAME: Lazy = Lazy::new(|| regex(r#"^  File ".*", line \d+, in (.+)$"#));
static PYTHON_PLACE: Lazy = Lazy::new(|| regex(r#"^  File "(?:.*/)?([^/"]+)", line (\d+), in "#));

/// True for a module of Python itself.
fn is_of_python(frame: &str) -> bool {
    frame.starts_with("  File \"<frozen ")
        || frame.contains("/lib/python") && !frame.contains("-packages/")
}

/// Parses the last traceback; its frames are in reverse order.
fn python(source: MessageSource, lines: &[&str]) -> Option<Reading> {
    let start = lines.iter().rposition(|line| *line == "Traceback (most recent call last):")?;
    let report = &lines[start + 1..];
    let end = report.iter().position(|line| !line.starts_with(' ')).unwrap_or(report.len());
    let frames = report[..end].iter().rev().filter(|line| found(&PYTHON_FRAME, line));
    let frames: Vec<&str> = frames.copied().collect();
    let own = frames.iter().position(|frame| !is_of_python(frame)).unwrap_or(0);
    let frames = &frames[own..];
    let place = frames.first().and_then(|frame| PYTHON_PLACE.captures(frame).ok()?);
    let group = |at: usize| Some(place.as_ref()?.get(at)?.as_str());
    let said = report.get(end)?;
    Some(Reading {
        kind: ReportKind::Python,
        backtrace: frames
            .iter()
            .filter_map(|line| capture(&PYTHON_FRAME, line))
            .map(gdb_name)
            .collect(),
        address: None,
        place: group(1).zip(group(2)).map(|(file, line)| format!("{file}:{line}")),
        said: CrashMessage { source, lines: vec![(*said).to_owned()] },
        class: said.split(':').next().unwrap_or_default().to_owned(),
    })
}

static ABORT: Lazy = Lazy::new(|| {
    regex(concat!(
        r"^(?:.*: )?(?:(?:free|realloc|calloc|malloc|munmap_chunk|malloc_consolidate|_int_\w+)\(\): \w",
        r"|double free or corruption|corrupted (?:size|double-linked list|unsorted)|Fatal glibc error: ",
        r"|break adjusted to free malloc space|invalid fastbin entry)",
        r"|^\*\*\* .* \*\*\*(?:: |$)",
        r"|^libc\+\+abi: terminat|^fatal runtime error: |^memory allocation of \d+ bytes failed|has overflowed its stack$",
    ))
});

/// Parses a message of the C library or of Rust before it ends the process.
fn abort(source: MessageSource, lines: &[&str]) -> Option<Reading> {
    let line = lines.iter().rfind(|line| found(&ABORT, line))?;
    Some(Reading {
        kind: ReportKind::Glibc,
        backtrace: vec![],
        address: None,
        said: CrashMessage { source, lines: vec![(*line).to_owned()] },
        class: class::of_message(line),
        place: None,
    })
}
