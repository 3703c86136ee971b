//! Class of a bug in two or three words, for tables and reports.

use super::info::{CrashInfo, ReportKind};
use super::lines::{Lazy, capture, found, regex};
use super::valgrind;

/// Size of the first page, where nothing is mapped.
const FIRST_PAGE: u64 = 0x1000;

/// Words of a headline, and the class. The first match counts.
const CLASSES: &[(&str, &str)] = &[
    ("double-free", "double-free"),
    ("which was not malloc()-ed", "bad-free"),
    ("which is not owned", "bad-malloc_usable_size"),
    ("requested allocation size", "allocation-size-too-big"),
    ("out of memory", "out-of-memory"),
    ("out-of-memory", "out-of-memory"),
    ("failed to allocate", "out-of-memory"),
    ("rss limit exhausted", "out-of-memory"),
    ("calloc parameters overflow", "calloc-overflow"),
    ("CHECK failed", "sanitizer CHECK failed"),
    ("detected memory leaks", "memory leak"),
    ("data race", "data race"),
    ("lock-order-inversion", "deadlock"),
    ("deadly signal", "deadly signal"),
    ("overwrites its const input", "overwrites-const-input"),
    ("stack smashing", "stack-buffer-overflow"),
    ("buffer overflow detected", "buffer-overflow"),
    ("double free", "double-free"),
    ("overflowed its stack", "stack-overflow"),
    ("stack overflow", "stack-overflow"),
    ("memory allocation of", "out-of-memory"),
];
/// glibc's checks of its heap: a function of the allocator and its finding, or a text without a function. The line of
/// an assertion also contains a name with brackets.
static ALLOCATOR: Lazy = Lazy::new(|| {
    regex(concat!(
        r"(?:^|: )(?:free|realloc|calloc|malloc|munmap_chunk|malloc_consolidate|_int_\w+)\(\): \w",
        r"|corrupted (?:size|double-linked list|unsorted)|break adjusted to free malloc space",
        r"|invalid fastbin entry",
    ))
});
static ASSERTION: Lazy = Lazy::new(|| regex(r"(?i)\bassertion\b.* failed"));
static HEADLINE: Lazy =
    Lazy::new(|| regex(r"(?:ERROR|WARNING): (?:\w*Sanitizer|libFuzzer): ([a-zA-Z][\w-]*)"));
static THREADS: Lazy = Lazy::new(|| regex(r"WARNING: ThreadSanitizer: (.+?)(?: \(|$)"));
static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r":\d+:\d+: runtime error: ([^:0-9']*[a-z])"));
static ACCESS: Lazy =
    Lazy::new(|| regex(r"^\s*(?:READ|WRITE) of size \d+|caused by a (?:READ|WRITE) memory"));
static ACCESS_WORDS: Lazy = Lazy::new(|| regex(r"(READ|WRITE)(?: of size (\d+))?"));
static SIGNAL: Lazy =
    Lazy::new(|| regex(r"(?: signal |^Exception Type:.*\(|^Crash\|)(SIG[A-Z0-9]+)"));

/// Class of a report, from its lines and parsed facts.
pub(super) fn of(lines: &[&str], info: &CrashInfo) -> String {
    let class = lines.iter().find_map(|line| of_text(line)).unwrap_or_else(|| match info.kind {
        ReportKind::None if info.message.is_none() => String::new(),
        ReportKind::Valgrind => {
            let said = valgrind::message(lines).unwrap_or("memory error");
            said.split(" of size ").next().unwrap_or(said).to_owned()
        }
        ReportKind::Cdb => "exception".to_owned(),
        ReportKind::Rust => "panic".to_owned(),
        _ => info
            .message
            .as_ref()
            .map_or_else(|| "crash".to_owned(), |said| of_message(&said.lines[0])),
    });
    with_access(class, lines, info)
}

/// Class in a headline, or in a line that names a signal.
pub(super) fn of_text(line: &str) -> Option<String> {
    if let Some(words) = capture(&RUNTIME_ERROR, line) {
        return Some(words.to_owned());
    }
    if line.contains("Sanitizer") || line.contains("libFuzzer") || line.contains("glibc") {
        let listed = listed(line).map(str::to_owned);
        let said = || capture(&THREADS, line).or_else(|| capture(&HEADLINE, line));
        return listed.or_else(|| said().map(str::to_owned));
    }
    capture(&SIGNAL, line).map(str::to_owned)
}

/// Class of a message of the program or its library.
pub(super) fn of_message(line: &str) -> String {
    if line.contains("panicked at") || line.starts_with("panic: ") {
        return "panic".to_owned();
    }
    if line.contains("terminate called after throwing") || line.contains("uncaught exception") {
        return "uncaught exception".to_owned();
    }
    if line.starts_with("[Non-crash bug]") {
        return "no crash".to_owned();
    }
    if found(&ASSERTION, line) {
        return "assertion".to_owned();
    }
    listed(line).unwrap_or("assertion").to_owned()
}

fn listed(line: &str) -> Option<&'static str> {
    let known = CLASSES.iter().find(|(words, _)| line.contains(words));
    known.map(|(_, class)| *class).or_else(|| found(&ALLOCATOR, line).then_some("heap corruption"))
}

fn with_access(mut class: String, lines: &[&str], info: &CrashInfo) -> String {
    let is_fault = ["SEGV", "SIGSEGV", "BUS", "SIGBUS"].contains(&class.as_str());
    if is_fault && info.address.is_some_and(|address| address < FIRST_PAGE) {
        class.push_str(" near null");
    }
    let access = lines.iter().find(|line| found(&ACCESS, line));
    if let Some(Ok(Some(words))) = access.map(|line| ACCESS_WORDS.captures(line)) {
        for word in words.iter().skip(1).flatten() {
            class.push(' ');
            class.push_str(word.as_str());
        }
    }
    class
}
