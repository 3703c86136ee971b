//! Observed results of one run, and comparison of runs.

use std::hash::{Hash, Hasher};

use super::frames::StackTrace;
use super::named;
use super::symbols::Symbolizer;
use crate::crash::{self, CrashInfo, Output, ProgramInfo, ReportKind, StableHasher};
use ffuzz_engine::executor::ExitKind;
use ffuzz_exec::Ended;

/// Number of innermost frames that distinguish crashes.
const FRAMES: usize = 32;

/// The program that was run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Build {
    /// The build of `-w`.
    Sanitizer,
    Target,
}

/// Observed results of one run.
#[derive(Clone, Debug)]
pub struct Seen {
    pub build: Build,
    pub exit: ExitKind,
    pub output: Output,
    pub info: CrashInfo,
    /// True for a hang that counts as a bug; `output` then contains ffuzz's line about it.
    pub is_hang: bool,
    pub(super) trace: Option<StackTrace>,
    /// Messages received and sent by a target with a socket; else empty.
    pub(super) session: String,
}

impl Seen {
    pub(super) fn new(
        build: Build,
        ended: Ended,
        trace: Option<StackTrace>,
        program: &ProgramInfo,
    ) -> Self {
        let (stdout, stderr) = (crash::text(&ended.stdout), crash::text(&ended.stderr));
        let output = Output { stdout, stderr, crash_data: String::new() };
        let info = crash::beyond::parse(&output, program);
        let session = ended.session.map(|session| session.to_string()).unwrap_or_default();
        Self { build, exit: ended.exit, output, info, is_hang: false, trace, session }
    }

    /// The crash with a debugger's report.
    pub(super) fn debugged(&self, crash_data: String, program: &ProgramInfo) -> Self {
        let output = Output { crash_data, ..self.output.clone() };
        let info = crash::beyond::parse(&output, program);
        Self { output, info, ..self.clone() }
    }

    /// The report with names; None if there are none.
    pub(super) fn named(&self, symbolizer: &Symbolizer, program: &ProgramInfo) -> Option<Self> {
        let stderr = named::report(&self.output.stderr, symbolizer)?;
        let output = Output { stderr, ..self.output.clone() };
        let info = crash::beyond::parse(&output, program);
        Some(Self { output, info, ..self.clone() })
    }

    #[must_use]
    pub fn crashed(&self) -> bool {
        matches!(self.exit, ExitKind::Crash { .. } | ExitKind::Oom)
            || (self.exit == ExitKind::Ok && is_report(self.info.kind))
            || self.is_hang
    }

    /// True if more than its signal is known.
    pub(super) fn has_place(&self) -> bool {
        !self.info.backtrace.is_empty() || self.trace.is_some()
    }

    pub(super) fn hangs(&mut self, line: &str, program: &ProgramInfo) {
        let stderr = &mut self.output.stderr;
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(&format!("{line}\n"));
        self.info = crash::beyond::parse(&self.output, program);
        self.is_hang = true;
    }

    /// The signal that ended it, or 0.
    #[must_use]
    pub fn signal(&self) -> i32 {
        match self.exit {
            ExitKind::Crash { signal } => signal,
            ExitKind::Oom => libc::SIGKILL,
            ExitKind::Ok | ExitKind::Hang | ExitKind::Cut | ExitKind::Lost => 0,
        }
    }

    /// Signal named by a sanitizer's report, else the one that ended the process: a sanitizer that caught a signal ends
    /// by SIGABRT.
    #[must_use]
    pub(crate) fn reported_signal(&self) -> i32 {
        let [stderr, crash_data] = [&self.output.stderr, &self.output.crash_data];
        let mut lines = stderr.lines().chain(crash_data.lines());
        lines.find_map(caught_signal).unwrap_or_else(|| self.signal())
    }

    /// Equal for crashes at the same place, in this build of the program.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut hasher = StableHasher::default();
        (self.build == Build::Target, self.signal(), self.info.kind.name()).hash(&mut hasher);
        let names = &self.info.backtrace;
        match &self.trace {
            _ if names.iter().any(|name| name != "??") => {
                names.iter().take(FRAMES).for_each(|name| name.hash(&mut hasher));
            }
            Some(trace) if !trace.frames.is_empty() => {
                trace.frames.iter().take(FRAMES).for_each(|frame| frame.place.hash(&mut hasher));
            }
            _ => self.info.short_text().hash(&mut hasher),
        }
        // A panic in a library function may have many reasons.
        self.info.identity("").said().hash(&mut hasher);
        hasher.finish()
    }
}

/// Signal in a line like `ERROR: AddressSanitizer: FPE on unknown address`.
fn caught_signal(line: &str) -> Option<i32> {
    let (_, said) = line.split_once("Sanitizer: ").filter(|(who, _)| who.contains("ERROR: "))?;
    let (word, _) = said.split_once(" on ")?;
    Some(match word {
        "SEGV" | "stack-overflow" => libc::SIGSEGV,
        "BUS" => libc::SIGBUS,
        "FPE" => libc::SIGFPE,
        "ILL" => libc::SIGILL,
        "TRAP" => libc::SIGTRAP,
        _ => return None,
    })
}

/// True for sanitizers that may report and let the program end normally.
fn is_report(kind: ReportKind) -> bool {
    matches!(
        kind,
        ReportKind::Asan
            | ReportKind::Ubsan
            | ReportKind::Lsan
            | ReportKind::Tsan
            | ReportKind::Msan
    )
}
