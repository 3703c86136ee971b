//! Input and output types: texts of a run, the program they belong to, and the facts found in them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::identity::Identity;
use super::names;

use serde::{Deserialize, Serialize};

/// Output of a run: valid text without NUL, see `text`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// A debugger's or sanitizer's text that was kept apart; if not empty, frames are parsed from it instead of stderr.
    pub crash_data: String,
}

/// The program, in the terms of a signature's `products`, `platforms`, `operatingSystems`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ProgramInfo {
    pub product: String,
    pub product_version: String,
    pub platform: String,
    pub os: String,
}

/// Decodes output as text: replaces invalid UTF-8, and NUL (which no server accepts), by U+FFFD.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Tool that wrote the report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReportKind {
    #[default]
    None,
    Asan,
    Ubsan,
    Lsan,
    Tsan,
    Apple,
    Cdb,
    Gdb,
    Rust,
    Minidump,
    Valgrind,
    /// Kinds from here on are parsed by `beyond` only.
    Msan,
    LibFuzzer,
    Glibc,
    Python,
    Go,
}

impl ReportKind {
    /// The reference's name, or one of the same form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReportKind::None => "no",
            ReportKind::Asan => "asan",
            ReportKind::Ubsan => "ubsan",
            ReportKind::Lsan => "lsan",
            ReportKind::Tsan => "tsan",
            ReportKind::Apple => "apple",
            ReportKind::Cdb => "cdb",
            ReportKind::Gdb => "gdb",
            ReportKind::Rust => "rust",
            ReportKind::Minidump => "minidump",
            ReportKind::Valgrind => "valgrind",
            ReportKind::Msan => "msan",
            ReportKind::LibFuzzer => "libfuzzer",
            ReportKind::Glibc => "glibc",
            ReportKind::Python => "python",
            ReportKind::Go => "go",
        }
    }
}

/// The stream of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageSource {
    Stderr,
    CrashData,
}

/// Message of the program or a sanitizer, one entry per line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CrashMessage {
    pub source: MessageSource,
    pub lines: Vec<String>,
}

/// The facts of one crash.
#[derive(Clone, Debug, Default)]
pub struct CrashInfo {
    pub kind: ReportKind,
    /// Names of functions, the innermost first.
    pub backtrace: Vec<String>,
    /// Positions in the backtrace where further stacks begin: of another thread, of the freeing or the allocation of a
    /// block.
    pub(super) further_stacks: Vec<usize>,
    pub address: Option<u64>,
    pub instruction: Option<String>,
    pub registers: BTreeMap<String, u64>,
    /// Assertion, panic or exception, as printed by the program.
    pub message: Option<CrashMessage>,
    /// A sanitizer's headline.
    pub auxiliary: Option<CrashMessage>,
    /// `FILE:LINE` of a panic or an exception, if the message does not contain it.
    pub(super) place: Option<String>,
    /// Reason why the reference's parser fails on this output; its server would answer 500.
    pub refused: Option<String>,
    /// Innermost functions of all stacks, if a report has several.
    pub(super) tops: Vec<String>,
    /// True if the reference creates no signature because it fails on a sanitizer's text.
    pub(super) odd_auxiliary: bool,
    pub(super) short: String,
    pub(super) class: String,
}

impl CrashInfo {
    /// One-line description: message and innermost function.
    #[must_use]
    pub fn short_text(&self) -> String {
        self.short.clone()
    }

    /// Identity of the bug, common to all its crashes; `ending`: how the process ended, for crashes without a report.
    #[must_use]
    pub fn identity(&self, ending: &str) -> Identity {
        Identity::new(self, ending)
    }

    /// Ranges of the report's stacks in the backtrace, the crash's own first. At least one, which may be empty.
    #[must_use]
    pub fn stacks(&self) -> Vec<Range<usize>> {
        let ends = self.further_stacks.iter().copied().chain([self.backtrace.len()]);
        let mut start = 0;
        ends.map(|end| std::mem::replace(&mut start, end)..end).collect()
    }

    /// Innermost of the program's own functions.
    #[must_use]
    pub fn own_function(&self) -> Option<&str> {
        let first = self.first_own()?;
        self.backtrace.get(first).map(String::as_str)
    }

    /// Position of the frame of [`CrashInfo::own_function`].
    #[must_use]
    pub(crate) fn first_own(&self) -> Option<usize> {
        let hook = names::inside_of_hook(&self.backtrace);
        let is_own = |name: &String| {
            names::is_named(name) && (self.kind == ReportKind::Python || !names::is_machinery(name))
        };
        self.backtrace[hook..].iter().position(is_own).map(|first| hook + first)
    }

    /// Class in two or three words: `heap-buffer-overflow WRITE 4`, `SEGV near null READ`.
    /// Empty if there was no crash.
    #[must_use]
    pub fn class(&self) -> &str {
        &self.class
    }

    /// True if the output shows a crash.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        self.kind != ReportKind::None || self.message.is_some() || self.auxiliary.is_some()
    }
}
