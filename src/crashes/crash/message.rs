//! Messages of the program (an assertion, a panic, an exception) and of sanitizers. The last one counts.

use super::info::MessageSource;
use super::lines::{Lazy, found, regex, trim};
use super::reports::QUOTED_PANIC;

static PID: Lazy = Lazy::new(|| regex(r"^\[\d+\]\s+"));
static SHELL_ASSERTION: Lazy = Lazy::new(|| regex(r"^ASSERTION \d+: \(.+\)"));
static RUST_END: Lazy = Lazy::new(|| regex(r"\.rs(:\d+)+$"));
static MOZ_CRASH: Lazy = Lazy::new(|| regex(r"Hit MOZ_CRASH\([^)]"));
static MOZ_CRASH_END: Lazy = Lazy::new(|| regex(r"\) at .+:\d+$"));
static RSS_SIZES: Lazy = Lazy::new(|| regex(r"\s*\(\d+Mb vs \d+Mb\)"));
static PROCESS: Lazy = Lazy::new(|| regex(r"^==\d+==\s*"));
static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r":\d+:\d+: runtime error: "));
static RACE_ACCESS: Lazy =
    Lazy::new(|| regex(r"^\s*(?:[Pp]revious )?(?:[Aa]tomic )?(?:[Rr]ead|[Ww]rite) of size"));
static ASAN_NUMBERS: Lazy = Lazy::new(|| {
    regex(concat!(
        r"^==\d+==\s*|on address 0x[0-9a-f]+|\(?(?:at )?pc 0x[0-9a-f]+|bp 0x[0-9a-f]+",
        r"|sp 0x[0-9a-f]+|T\d+\)|\(thread T\d+\)"
    ))
});
static TSAN_PID: Lazy = Lazy::new(|| regex(r" \(pid=\d+\)"));

/// Searches stderr, then crash data.
pub(super) fn first<T>(
    find: impl Fn(&[&str]) -> Option<T>,
    stderr: &[&str],
    crash_data: &[&str],
) -> Option<(MessageSource, T)> {
    let places = [(MessageSource::Stderr, stderr), (MessageSource::CrashData, crash_data)];
    places.into_iter().find_map(|(source, lines)| Some((source, find(lines)?)))
}

/// Maximum lines of a message, or of a headline with its accesses: longer output adds nothing.
const MOST_LINES: usize = 16;

/// A message that continues until a line ends it.
struct OpenMessage {
    end: &'static Lazy,
    lines: Vec<String>,
}

#[derive(Default)]
struct ProgramLines {
    last: Vec<String>,
    open: Option<OpenMessage>,
    takes_next: bool,
    is_self_hosted: bool,
    /// Ignores a later `MOZ_CRASH`.
    is_said: bool,
}

/// The program's own message.
pub(super) fn program(lines: &[&str]) -> Option<Vec<String>> {
    let mut state = ProgramLines::default();
    for line in lines {
        let start = PID.find(line).ok().flatten().map_or(0, |found| found.end());
        state.next(&line[start..]);
    }
    if let Some(open) = state.open {
        state.last = open.lines;
    }
    (!state.last.is_empty()).then_some(state.last)
}

impl ProgramLines {
    fn next(&mut self, line: &str) {
        if self.takes_next {
            self.takes_next = false;
            self.last.push(line.to_owned());
        } else if let Some(open) = &mut self.open {
            if open.lines.len() < MOST_LINES {
                open.lines.push(line.to_owned());
            }
            if found(open.end, line) {
                self.last = std::mem::take(&mut open.lines);
                self.open = None;
            }
        } else {
            self.fresh(line);
        }
    }

    fn fresh(&mut self, line: &str) {
        if line.starts_with("Assertion failure") {
            if !(self.is_self_hosted && line.contains("false")) {
                self.is_said = true;
                self.last = vec![line.to_owned()];
            }
        } else if line.contains("panicked at") && found(&QUOTED_PANIC, line) {
            self.is_said = true;
            self.begin(line, &RUST_END);
        } else if line.starts_with("# Fatal error in") {
            self.is_said = true;
            self.takes_next = true;
            self.last = vec![line.to_owned()];
        } else if line.contains("Assertion") && line.contains("failed") {
            self.last = vec![line.to_owned()];
        } else if is_assertion(line) {
            self.is_said = true;
            self.last = vec![line.to_owned()];
        } else if line.contains("Hit MOZ_CRASH(") && !self.is_said && found(&MOZ_CRASH, line) {
            self.is_said = true;
            self.begin(line, &MOZ_CRASH_END);
        } else if line.contains("Self-hosted JavaScript assertion info") {
            self.is_self_hosted = true;
            self.is_said = true;
            self.last = vec![line.to_owned()];
        } else if line.contains("terminate called after throwing an instance of") {
            self.is_said = true;
            self.last = vec![line.to_owned()];
        } else if line.starts_with("[Non-crash bug] ") {
            self.last = vec![line.to_owned()];
        } else if line.contains("Sanitizer: hard rss limit exhausted") {
            self.is_said = true;
            let line = RSS_SIZES.replace(line, "");
            self.last = vec![PROCESS.replace(&line, "").into_owned()];
        }
    }

    fn begin(&mut self, line: &str, end: &'static Lazy) {
        let lines = vec![line.to_owned()];
        if found(end, line) {
            self.last = lines;
        } else {
            self.open = Some(OpenMessage { end, lines });
        }
    }
}

fn is_assertion(line: &str) -> bool {
    line.contains(": failed assertion")
        || line.contains(": fatal error: \"assert")
        || found(&SHELL_ASSERTION, line)
}

/// Message of a sanitizer.
#[derive(Default)]
pub(super) struct Said {
    /// The headline and its line about the access.
    pub(super) lines: Vec<String>,
    /// True after an access where none is expected.
    is_odd: bool,
    expects_access: bool,
    is_race: bool,
}

/// A sanitizer's headline, and its line about the access.
pub(super) fn sanitizer(lines: &[&str]) -> Option<Said> {
    let mut said = Said::default();
    for line in lines {
        said.next(line);
    }
    (!said.lines.is_empty() || said.is_odd()).then_some(said)
}

impl Said {
    /// True if the reference fails on it in an ASan report: it has one access too many, or is a race without one.
    pub(super) fn is_odd(&self) -> bool {
        self.is_odd || (self.is_race && self.lines.len() == 1)
    }

    fn next(&mut self, line: &str) {
        if line.contains("ERROR: AddressSanitizer") {
            if line.contains("failed to allocate") {
                self.begin(line.split_once(": ").map_or(line, |(_, text)| text));
            } else if !is_plain_segv(line) {
                self.begin(trim(&ASAN_NUMBERS.replace_all(line, "")));
                self.expects_access = true;
            }
        } else if line.contains("WRITE of size")
            || (self.expects_access && line.contains("READ of size"))
        {
            self.access(line);
        } else if line.contains("WARNING: ThreadSanitizer:") {
            self.begin(&TSAN_PID.replace(line, ""));
            self.is_race = line.contains("data race");
        } else if self.is_race && found(&RACE_ACCESS, line) {
            if self.lines.len() < MOST_LINES {
                self.lines.push(trim(line).to_owned());
            }
        } else if line.contains("glibc detected") || found(&RUNTIME_ERROR, line) {
            self.begin(line);
        }
    }

    fn begin(&mut self, headline: &str) {
        self.lines = vec![headline.to_owned()];
        self.is_odd = false;
        self.is_race = false;
    }

    fn access(&mut self, line: &str) {
        self.expects_access = false;
        if self.lines.len() == 1 && !self.is_odd {
            self.lines.push(line.to_owned());
        } else {
            self.is_odd = true;
        }
    }
}

fn is_plain_segv(line: &str) -> bool {
    ["SEGV on unknown address", "access-violation on unknown address"]
        .iter()
        .any(|words| line.contains(words))
}
