//! Identity of a bug across campaigns, machines and compilers: the cause of the end, the program's message about it,
//! and its own innermost functions.
//! Sizes, addresses and counts are left out because they depend on the input; machinery because it depends on the
//! machine; spellings of names because they depend on the symbolizer.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use super::class;
use super::hash::StableHasher;
use super::info::{CrashInfo, ReportKind};
use super::lines::{Lazy, capture, found, regex};
use super::names::{canonical, hang, inside_of_hook, is_entry, is_machinery, is_named};

/// Number of functions included. More would separate the same bug by its callers.
const FRAMES: usize = 4;
/// Minimum number of frames of an infinite recursion.
const DEEP: usize = 64;
/// Inverse of the minimum share of frames of a function in the recursion.
const CYCLE: usize = 16;
/// Maximum distance of a stack overflow's address from the stack pointer, bytes.
const GUARD: u64 = 1 << 20;

/// Common part of all crashes of a bug.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// `heap-buffer-overflow WRITE`, `SEGV`, `panic`.
    cause: String,
    /// Location and text of a panic or an assertion.
    said: Option<String>,
    functions: Vec<String>,
}

impl Identity {
    /// Identity of a crash; `ending`: how the process ended, for crashes without a report.
    #[must_use]
    pub(super) fn new(info: &CrashInfo, ending: &str) -> Self {
        let (cause, said) = cause(info, ending);
        Self { functions: functions(info), cause, said }
    }

    #[must_use]
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// `FILE:LINE` and text of a panic or an assertion.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// The program's innermost functions; none if their names are unknown.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Sets places as functions, for a program without names.
    #[must_use]
    pub fn at(self, places: impl Iterator<Item = String>) -> Self {
        Self { functions: places.take(FRAMES).collect(), ..self }
    }

    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hasher = StableHasher::default();
        (&self.cause, &self.said, &self.functions).hash(&mut hasher);
        hasher.finish()
    }
}

fn cause(info: &CrashInfo, ending: &str) -> (String, Option<String>) {
    let class = if info.class.is_empty() { ending } else { &info.class };
    let cause = plain_class(class);
    let Some(message) = info.message.as_ref().filter(|_| is_given_up(&cause, info.kind)) else {
        let is_deep = cause == "SEGV" && is_stack_overflow(info);
        return (if is_deep { "stack-overflow".to_owned() } else { cause }, None);
    };
    let said = message.lines.join("\n");
    let cause = match info.kind {
        ReportKind::Python => cause,
        _ => class::of_message(&message.lines[0]),
    };
    let words = match (&info.place, cause.as_str()) {
        // The C library's text depends on memory contents.
        (_, "double-free" | "heap corruption") => None,
        (Some(place), _) => Some(format!("{place} {}", words(&message.lines, &cause))),
        (None, _) => Some(place_and_words(&said, &message.lines, &cause)),
    };
    (cause, words)
}

/// Removes sizes and details that only a sanitizer detects.
fn plain_class(class: &str) -> String {
    static SIZE: Lazy = Lazy::new(|| regex(r" near null| [0-9]+$"));
    let plain = SIZE.replace_all(class, "").into_owned();
    let plain = plain.strip_prefix("SIG").map_or(plain.clone(), str::to_owned);
    match plain.split(' ').next() {
        Some(first @ ("SEGV" | "BUS" | "stack-overflow")) => first.to_owned(),
        _ => plain,
    }
}

/// True if the program ended itself: its message is the cause.
fn is_given_up(cause: &str, kind: ReportKind) -> bool {
    let first = cause.split(' ').next().unwrap_or_default();
    ["ABRT", "ILL", "TRAP", "deadly", "", "crash", "exit"].contains(&first)
        || !matches!(
            kind,
            ReportKind::Asan
                | ReportKind::Ubsan
                | ReportKind::Lsan
                | ReportKind::Tsan
                | ReportKind::Gdb
                | ReportKind::Msan
        )
}

/// True for an infinite recursion in a debugger's stack.
fn is_stack_overflow(info: &CrashInfo) -> bool {
    let stack = info.registers.get("rsp").or_else(|| info.registers.get("sp"));
    let is_near = |(stack, address): (&u64, u64)| stack.abs_diff(address) < GUARD;
    info.backtrace.len() >= DEEP && stack.zip(info.address).is_some_and(is_near)
}

/// Innermost functions of the program, or those of an infinite recursion.
fn functions(info: &CrashInfo) -> Vec<String> {
    let names = &info.backtrace[inside_of_hook(&info.backtrace)..];
    let names = names.iter().map(|name| (name, canonical(name)));
    let end = names.clone().position(|(_, name)| is_entry(&name));
    let own = names.take(end.map_or(usize::MAX, |end| end + 1));
    // Python's function names are not compared with C's.
    let is_own =
        |name: &String| is_named(name) && (info.kind == ReportKind::Python || !is_machinery(name));
    let own = own.filter(|(name, _)| is_own(name)).map(|(_, name)| name);
    if info.class.starts_with("stack-overflow") || is_stack_overflow(info) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        own.clone().for_each(|name| *counts.entry(name).or_default() += 1);
        counts.retain(|_, count| *count * CYCLE >= info.backtrace.len());
        if !counts.is_empty() {
            return counts.into_keys().collect();
        }
    }
    let found = first(own);
    if !found.is_empty() {
        return found;
    }
    let modules = info.backtrace.iter().filter(|name| name.contains("+0x"));
    let modules = first(modules.filter(|name| !is_of_system(name)).map(|name| canonical(name)));
    if !modules.is_empty() {
        return modules;
    }
    first(info.backtrace.iter().filter(|name| is_named(name)).map(|name| canonical(name)))
}

/// The first distinct names: recursion depth depends on the input.
fn first(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
        if found.len() == FRAMES {
            break;
        }
    }
    found
}

/// True for libraries whose version depends on the machine, and for those of ffuzz.
#[must_use]
pub fn is_of_system(path: &str) -> bool {
    const NAMES: [&str; 6] =
        ["libffuzz-", "libc.so", "libc-2.", "libpthread", "ld-linux", "ld-musl"];
    let name = path.rsplit('/').next().unwrap_or_default();
    ["/lib/", "/lib64/", "/usr/lib", "[vdso]"].iter().any(|start| path.starts_with(start))
        || NAMES.iter().any(|start| name.starts_with(start))
}

/// `FILE:LINE` without the folder, and the text without parts of the input.
fn place_and_words(said: &str, lines: &[String], cause: &str) -> String {
    static PANIC: Lazy =
        Lazy::new(|| regex(r"panicked at (?:'.*', )?(?:[^\n]*/)?([^/\n:]+:\d+):\d+"));
    static ASSERTION: Lazy = Lazy::new(|| regex(r"(?:^|[ /\(])([^ /:\(]+:\d+): "));
    static THROWN: Lazy = Lazy::new(|| {
        regex(r"(?:an instance of '|uncaught exception of type )([^'\n]+?)(?:'|: |$)")
    });
    if let Some(place) = capture(&PANIC, said) {
        return format!("{place} {}", words(lines, cause));
    }
    if let Some(thrown) = capture(&THROWN, said) {
        return canonical(thrown);
    }
    match capture(&ASSERTION, said) {
        Some(place) => format!("{place} {}", words(lines, cause)),
        None => words(lines, cause),
    }
}

/// The part of a message that does not depend on the input.
fn words(lines: &[String], cause: &str) -> String {
    static CLAIM: Lazy = Lazy::new(|| regex(r#"(?i)assertion [`'"]?(.+?)['"`]? failed"#));
    static QUOTED: Lazy = Lazy::new(|| regex(r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'"#));
    static PATH: Lazy = Lazy::new(|| regex(r#"[^\s'"`(,:]*/"#));
    static NUMBER: Lazy = Lazy::new(|| regex(r"0x[0-9a-fA-F]+|[0-9]+"));
    static HEAD: Lazy = Lazy::new(|| regex(r"^thread .*panicked at|^panicked at [^']"));
    let line = match lines {
        // Since Rust 1.73 the place is on its own line.
        [place, said, ..] if cause == "panic" && found(&HEAD, place) => said,
        [line, ..] => line,
        [] => return String::new(),
    };
    if let Some(claim) = capture(&CLAIM, line) {
        return claim.to_owned();
    }
    if hang(line).is_some() {
        return line.clone();
    }
    let line = QUOTED.replace_all(line, "''");
    let line = PATH.replace_all(&line, "");
    let line = without_lists(&NUMBER.replace_all(&line, "N"));
    // The rest is mostly a value.
    let line = if cause == "panic" { line.split(": ").next().unwrap_or_default() } else { &line };
    line.to_owned()
}

/// Removes the values of lists, whose number depends on the input, also of truncated ones.
fn without_lists(line: &str) -> String {
    let (mut text, mut open) = (String::new(), Vec::new());
    for letter in line.chars() {
        text.push(letter);
        match letter {
            '[' | '{' => open.push(text.len()),
            ']' | '}' => {
                if let Some(start) = open.pop()
                    && is_list(&text[start..text.len() - 1])
                {
                    text.truncate(start);
                    text.push(letter);
                }
            }
            _ => {}
        }
    }
    if let Some(start) = open.first().copied() {
        let end = if text[..start].ends_with('[') { ']' } else { '}' };
        text.truncate(start);
        text.push(end);
    }
    text
}

/// True if the content of brackets is values, not words of the program.
fn is_list(content: &str) -> bool {
    let is_value =
        |word: &str| ["true", "false", "None", "''", "()"].contains(&word) || word.contains('N');
    content.contains([',', '[', '{']) || is_value(content.trim())
}
