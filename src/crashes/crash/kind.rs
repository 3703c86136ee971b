//! Detection of the tool that wrote a report, from the first line with a sign of it.

use super::info::ReportKind;
use super::lines::{Lazy, found, regex};
use super::valgrind;

pub(super) static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r"^.+?:\d+:\d+: runtime error:\s+.+"));

/// Strong signs, tried in this order on each line.
const SIGNS: &[(ReportKind, &[&str])] = &[
    (
        ReportKind::Asan,
        &[
            "ERROR: AddressSanitizer",
            "Sanitizer: hard rss limit exhausted",
            "ERROR: UndefinedBehaviorSanitizer",
            "ERROR: ThreadSanitizer:",
        ],
    ),
    (ReportKind::Lsan, &["ERROR: LeakSanitizer:"]),
    (ReportKind::Tsan, &["WARNING: ThreadSanitizer:"]),
    (ReportKind::Apple, &["Mac OS X"]),
    (ReportKind::Cdb, &["Microsoft (R) Windows Debugger"]),
    (ReportKind::Gdb, &["received signal SIG", "Program terminated with signal "]),
];

/// Detects the tool; crash data come before stderr.
pub(super) fn of(crash_data: &[&str], stderr: &[&str]) -> ReportKind {
    let mut state = LineScan::default();
    let mut all = crash_data.iter().chain(stderr);
    all.find_map(|line| state.next(line)).unwrap_or(state.weak)
}

#[derive(Default)]
struct LineScan {
    after_os: bool,
    after_panic: bool,
    /// Result if no stronger sign follows.
    weak: ReportKind,
}

impl LineScan {
    fn next(&mut self, line: &str) -> Option<ReportKind> {
        if line.contains("runtime error:") && found(&RUNTIME_ERROR, line) {
            return Some(ReportKind::Ubsan);
        }
        let minidump = line.starts_with("OS|");
        for (kind, signs) in SIGNS {
            let excepted = *kind == ReportKind::Apple && minidump;
            if !excepted && signs.iter().any(|sign| line.contains(sign)) {
                return Some(*kind);
            }
        }
        if line.contains("panicked at") {
            self.after_panic = true;
        } else if self.after_panic && line.contains("stack backtrace:") {
            self.weak = ReportKind::Rust;
        }
        if self.after_os && line.contains("CPU|") {
            return Some(ReportKind::Minidump);
        }
        self.after_os = line.contains("OS|");
        valgrind::is_message(line).then_some(ReportKind::Valgrind)
    }
}
