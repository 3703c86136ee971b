//! Which tool wrote the report: the first line that gives it away decides.

use super::info::Kind;
use super::lines::{Lazy, found, regex};
use super::valgrind;

pub(super) static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r"^.+?:\d+:\d+: runtime error:\s+.+"));

/// Strong signs, tried in this order on each line.
const SIGNS: &[(Kind, &[&str])] = &[
    (
        Kind::Asan,
        &[
            "ERROR: AddressSanitizer",
            "Sanitizer: hard rss limit exhausted",
            "ERROR: UndefinedBehaviorSanitizer",
            "ERROR: ThreadSanitizer:",
        ],
    ),
    (Kind::Lsan, &["ERROR: LeakSanitizer:"]),
    (Kind::Tsan, &["WARNING: ThreadSanitizer:"]),
    (Kind::Apple, &["Mac OS X"]),
    (Kind::Cdb, &["Microsoft (R) Windows Debugger"]),
    (Kind::Gdb, &["received signal SIG", "Program terminated with signal "]),
];

/// Crash data come before stderr.
pub(super) fn of(crash_data: &[&str], stderr: &[&str]) -> Kind {
    let mut state = State::default();
    let mut all = crash_data.iter().chain(stderr);
    all.find_map(|line| state.next(line)).unwrap_or(state.weak)
}

#[derive(Default)]
struct State {
    after_os: bool,
    after_panic: bool,
    /// Holds if nothing better comes.
    weak: Kind,
}

impl State {
    fn next(&mut self, line: &str) -> Option<Kind> {
        if line.contains("runtime error:") && found(&RUNTIME_ERROR, line) {
            return Some(Kind::Ubsan);
        }
        let minidump = line.starts_with("OS|");
        for (kind, signs) in SIGNS {
            let excepted = *kind == Kind::Apple && minidump;
            if !excepted && signs.iter().any(|sign| line.contains(sign)) {
                return Some(*kind);
            }
        }
        if line.contains("panicked at") {
            self.after_panic = true;
        } else if self.after_panic && line.contains("stack backtrace:") {
            self.weak = Kind::Rust;
        }
        if self.after_os && line.contains("CPU|") {
            return Some(Kind::Minidump);
        }
        self.after_os = line.contains("OS|");
        valgrind::is_message(line).then_some(Kind::Valgrind)
    }
}
