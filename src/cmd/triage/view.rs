//! Progress of a triage, and the table of bugs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cmd::tool::say;
use crate::crashes::collector::{DeliveryStatus, SpoolCounts};
use crate::crashes::triage::TriageWork;
use crate::crashes::triage::report::{FileOutcome, TriageReport, TriagedBug};

const ON_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(5);
/// Interval between checks for the end of the work.
const LOOK: Duration = Duration::from_millis(20);
/// Width of the title column.
const TITLE: usize = 60;

/// Progress line on stderr.
pub(super) struct ProgressLine {
    before: crate::crashes::triage::WorkProgress,
    start: Instant,
    terminal: bool,
    quiet: bool,
}

impl ProgressLine {
    pub(super) fn new(before: crate::crashes::triage::WorkProgress, quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { before, start: Instant::now(), terminal, quiet }
    }

    /// Shows progress until the work is done.
    pub(super) fn show(&self, work: &TriageWork, is_done: impl Fn() -> bool) {
        let mut last = Instant::now();
        let interval = if self.terminal { ON_TERMINAL } else { ELSEWHERE };
        while !is_done() {
            std::thread::park_timeout(LOOK);
            for note in work.take_notes() {
                say(self.quiet, &format!("[!] {note}"));
            }
            if !self.quiet && last.elapsed() >= interval {
                last = Instant::now();
                self.line(work, if self.terminal { "" } else { "\n" });
            }
        }
        for note in work.take_notes() {
            say(self.quiet, &format!("[!] {note}"));
        }
        if self.terminal && !self.quiet {
            self.line(work, "\n");
        }
    }

    fn line(&self, work: &TriageWork, end: &str) {
        let now = work.progress();
        let done = now.done.saturating_sub(self.before.done);
        let speed = done as f64 / self.start.elapsed().as_secs_f64().max(0.001);
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let what = match now.waiting {
            0 => "minimizing inputs".to_owned(),
            waiting => format!("{waiting} files left ({speed:.0}/s)"),
        };
        let mut out = io::stderr().lock();
        let _ = write!(out, "{start}    {} files, {} bugs; {what}{end}", now.done, now.bugs);
        let _ = out.flush();
    }
}

/// State of the reports' delivery.
pub(super) fn delivery(status: &DeliveryStatus) -> String {
    let SpoolCounts { waiting, sent, known, refused } = status.counts;
    let mut text = format!("[*] server: {sent} reports sent, {waiting} waiting, {refused} refused");
    if known > 0 {
        let _ = write!(text, ", {known} skipped as frequent");
    }
    if let Some(trouble) = status.trouble() {
        let _ = write!(text, "\n[!] {trouble}");
    }
    text
}

/// All bugs, those with the most files first.
pub(super) fn table(report: &TriageReport, folder: &Path) -> String {
    let mut text = String::new();
    let (bugs, files) = (report.bugs.len(), report.crashes.len());
    let plural = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let _ = writeln!(text, "{} in {}", plural(bugs, "bug"), plural(files, "crash file"));
    let ends = [
        (FileOutcome::NoCrash, "did not crash again"),
        (FileOutcome::TimesOut, "took too long"),
        (FileOutcome::Unreadable, "could not be read"),
    ];
    for (state, words) in ends {
        let count = report.number(state);
        if count > 0 {
            let _ = writeln!(text, "{} {words}", plural(count, "file"));
        }
    }
    if bugs > 0 {
        let _ = writeln!(text, "\n{:>6} {:>5} {:>13}  bug", "files", "rate", "input");
    }
    let mut sorted: Vec<&TriagedBug> = report.bugs.iter().collect();
    sorted.sort_by_key(|bug| (std::cmp::Reverse(bug.files), &bug.id));
    for bug in sorted {
        text.push_str(&row(bug));
    }
    let _ = writeln!(text, "\nreports and inputs: {}", folder.display());
    text
}

fn row(bug: &TriagedBug) -> String {
    let rate = f64::from(bug.crashes) * 100.0 / f64::from(bug.runs.max(1));
    let size = match bug.minimized_size {
        Some(small) if small < bug.input_size => format!("{} > {small} B", bug.input_size),
        _ => format!("{} B", bug.input_size),
    };
    // Program output may contain terminal escapes.
    let clean = |text: &str| text.replace(char::is_control, "?");
    let title: String = clean(&bug.title).chars().take(TITLE).collect();
    let place = bug.place.as_deref().map(clean).unwrap_or_default();
    let only = if bug.only_without_sanitizer { " (not with -w)" } else { "" };
    let place = if place.is_empty() { place } else { format!("\n{:28}at {place}", "") };
    let needs = match bug.before {
        0 => String::new(),
        1 => format!("\n{:28}needs 1 input before it in the same process", ""),
        count => format!("\n{:28}needs {count} inputs before it in the same process", ""),
    };
    format!(
        "{:>6} {rate:>4.0}% {size:>13}  {title}{only}{place}{needs}\n{:28}{}\n",
        bug.files, "", bug.id
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crashes::triage::report::CrashFile;

    #[test]
    fn the_table_begins_with_the_most_frequent_bug() {
        let bug = |id: &str, files| TriagedBug {
            id: id.into(),
            title: format!("[@ {id}\x1b]"),
            files,
            runs: 3 * files,
            crashes: 2 * files,
            input_size: 40,
            minimized_size: Some(u64::from(files)),
            place: Some("a.c:7".into()),
            ..TriagedBug::default()
        };
        let lost = CrashFile { state: FileOutcome::NoCrash, ..CrashFile::default() };
        let report = TriageReport {
            bugs: vec![bug("rare-1", 1), bug("often-2", 9)],
            crashes: vec![lost; 2],
            ..TriageReport::default()
        };
        insta::assert_snapshot!(table(&report, Path::new("out/triage")));
    }
}
