//! Sanitizer reports in a text: where each begins and ends, and which one counts.

use crate::crash::frames;
use crate::crash::info::{Output, ReportKind};
use crate::crash::lines::{Lazy, capture, found, lines, regex};

static SANITIZER: Lazy = Lazy::new(|| regex(r"(?:ERROR|WARNING): (\w*)Sanitizer\b"));
static CHECK: Lazy = Lazy::new(|| regex(r"(\w*)Sanitizer:? CHECK failed"));
static LIBFUZZER: Lazy = Lazy::new(|| regex(r"ERROR: libFuzzer: "));
static RUNTIME_ERROR: Lazy = Lazy::new(|| regex(r":\d+:\d+: runtime error: "));

/// First line of a report.
pub(super) struct Headline {
    pub(super) line: usize,
    pub(super) kind: ReportKind,
    /// Lower ranks end the process, or have more details.
    rank: u8,
}

fn headline(number: usize, line: &str) -> Option<Headline> {
    let (kind, rank) = if let Some(name) = capture(&SANITIZER, line).or(capture(&CHECK, line)) {
        match name {
            "Memory" => (ReportKind::Msan, 0),
            "Leak" => (ReportKind::Lsan, 2),
            "Thread" => (ReportKind::Tsan, 2),
            _ => (ReportKind::Asan, 0),
        }
    } else if found(&LIBFUZZER, line) {
        (ReportKind::LibFuzzer, 1)
    } else if found(&RUNTIME_ERROR, line) {
        (ReportKind::Ubsan, 3)
    } else {
        return None;
    };
    Some(Headline { line: number, kind, rank })
}

/// The report that counts: the first one with the lowest rank.
pub(super) fn chief(lines: &[&str]) -> Option<Headline> {
    let headlines = lines.iter().enumerate().filter_map(|(number, line)| headline(number, line));
    headlines.min_by_key(|headline| headline.rank)
}

/// The first stack after a headline, and the line after it.
pub(super) fn first_stack(lines: &[&str], start: usize) -> (Vec<String>, usize) {
    let mut stack = vec![];
    let mut end = start;
    for (number, line) in lines.iter().enumerate().skip(start) {
        match frames::address_sanitizer(line) {
            Some((depth, name)) if depth == stack.len() => {
                stack.push(name);
                end = number + 1;
            }
            Some(_) => break,
            None if !stack.is_empty() => break,
            None => {}
        }
    }
    (stack, end)
}

/// The chief report, once whole and once up to its first stack.
pub(super) fn cuts(output: &Output) -> Vec<String> {
    let text = if output.crash_data.is_empty() { &output.stderr } else { &output.crash_data };
    let lines = lines(text);
    let Some(chief) = chief(&lines) else { return vec![] };
    let after = lines.iter().enumerate().skip(chief.line + 1);
    let is_end = |number: usize, line: &str| {
        line.starts_with("SUMMARY: ") || headline(number, line).is_some()
    };
    let end = after.clone().find(|(number, line)| is_end(*number, line)).map(|(number, _)| number);
    let whole = &lines[chief.line..end.unwrap_or(lines.len())];
    let short = &lines[chief.line..first_stack(&lines, chief.line).1.max(chief.line + 1)];
    [whole, short].into_iter().map(|lines| lines.join("\n") + "\n").collect()
}
