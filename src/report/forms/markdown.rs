//! A summary in Markdown, short enough for a comment or a language model: at most 200 lines.

use std::fmt::Write as _;

use super::{percent, time};
use crate::data::{Reason, Report, Totals};

/// Maximum numbers of table rows.
const MOST_BUGS: usize = 30;
const MOST_STUCK: usize = 40;
const MOST_FUNCTIONS: usize = 20;
const MOST_FILES: usize = 25;
const MOST_KEYS: usize = 5;
const MOST_DOMAINS: usize = 10;
const MOST_WARNINGS: usize = 10;

/// The report in Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# ffuzz\n\n{}\n", clean(&report.verdict));
    for warning in report.warnings.iter().take(MOST_WARNINGS) {
        let _ = write!(text, "\n> {}\n", clean(&warning.text));
    }
    let Totals { runs, seconds, edges, lines, functions, bugs, hangs, .. } = report.totals;
    let _ = write!(
        text,
        "\n| runs | time | edges | lines | functions | bugs | hangs |\n|---|---|---|---|---|---|---|\n"
    );
    let of = |[part, whole]: [u64; 2]| format!("{part}/{whole}");
    let _ = writeln!(
        text,
        "| {runs} | {} | {} | {} | {} | {bugs} | {hangs} |",
        time(seconds),
        of(edges),
        of(lines),
        of(functions)
    );
    bug_rows(&mut text, report);
    stuck_rows(&mut text, report);
    file_rows(&mut text, report);
    for domain in report.domains.iter().take(MOST_DOMAINS) {
        let _ = write!(
            text,
            "\n## Domain {}\n\n| value | where | input |\n|---|---|---|\n",
            clean(&domain.name)
        );
        for key in domain.keys.iter().take(MOST_KEYS) {
            let input = key.input.as_deref().unwrap_or_default();
            let _ = writeln!(text, "| {} | {} | {} |", key.value, code(&key.place), code(input));
        }
    }
    text
}

fn bug_rows(text: &mut String, report: &Report) {
    if report.bugs.is_empty() {
        return;
    }
    let _ = write!(text, "\n## Bugs\n\n| bug | where | files | input |\n|---|---|---|---|\n");
    for bug in report.bugs.iter().take(MOST_BUGS) {
        let place = bug.place.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            clean(&bug.title),
            code(place),
            bug.files,
            code(&bug.input)
        );
    }
}

fn stuck_rows(text: &mut String, report: &Report) {
    if !report.stuck.is_empty() {
        let _ = write!(
            text,
            "\n## Stuck\n\nPlaces that inputs reach and do not go on from, with the edges behind them.\n\n\
             | id | behind | where | outcome | closest | input |\n|---|---|---|---|---|---|\n"
        );
    }
    for one in report.stuck.iter().take(MOST_STUCK) {
        let place = format!("{}:{} {}", one.at.file, one.at.line, one.at.function);
        let closest = one.comparison.as_ref().map_or("", |comparison| &comparison.closest);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            clean(&one.id),
            one.behind.counters,
            code(&place),
            clean(&one.outcome),
            code(closest),
            code(one.input.as_deref().unwrap_or_default())
        );
    }
    for reason in [Reason::Caller, Reason::Pointer, Reason::Harness] {
        let own: Vec<_> = report.never_entered.iter().filter(|it| it.reason == reason).collect();
        if own.is_empty() {
            continue;
        }
        let names = own.iter().take(MOST_FUNCTIONS).map(|it| code(&it.function));
        let names: Vec<String> = names.collect();
        let _ = write!(text, "\nNever entered, {}: {}", reason.words(), names.join(", "));
        let _ = match own.len().checked_sub(MOST_FUNCTIONS) {
            Some(more @ 1..) => writeln!(text, " and {more} more."),
            _ => writeln!(text, "."),
        };
    }
}

fn file_rows(text: &mut String, report: &Report) {
    let Some(source) = &report.source else { return };
    let _ = write!(text, "\n## Source\n\n| lines | | functions | file |\n|---|---|---|---|\n");
    let mut files: Vec<_> = source.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.totals.lines - file.totals.reached));
    for file in files.into_iter().take(MOST_FILES) {
        let totals = &file.totals;
        let _ = writeln!(
            text,
            "| {}/{} | {:.1} % | {}/{} | {} |",
            totals.reached,
            totals.lines,
            percent(totals.reached, totals.lines),
            totals.entered,
            totals.functions,
            code(&file.path)
        );
    }
}

/// Text from the target for a table cell: without markup or line breaks.
fn clean(text: &str) -> String {
    let mut clean = String::new();
    for letter in text.chars() {
        match letter {
            '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' | '!' | '&' => {
                clean.extend(['\\', letter]);
            }
            letter if letter.is_control() => clean.push('?'),
            letter => clean.push(letter),
        }
    }
    clean
}

/// The same as code, in which only `|` and backquotes have a meaning.
fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|letter| match letter {
            '`' => '\'',
            letter if letter.is_control() => '?',
            letter => letter,
        })
        .collect();
    match text.trim().is_empty() {
        true => String::new(),
        false => format!("`{}`", text.replace('|', "\\|")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::tests::report;

    #[test]
    fn it_stays_short_however_much_there_is() {
        let mut report = report();
        report.bugs = vec![report.bugs[0].clone(); 10_000];
        report.stuck = vec![report.stuck[0].clone(); 1000];
        report.never_entered = vec![report.never_entered[0].clone(); 1000];
        report.domains = vec![report.domains[0].clone(); 50];
        let source = report.source.as_mut().unwrap();
        source.files = vec![source.files[0].clone(); 1000];
        let text = markdown(&report);
        assert!(text.lines().count() <= 200, "{}", text.lines().count());
        assert!(text.contains("and 980 more."), "{text}");
    }

    #[test]
    fn text_of_the_target_is_no_markup() {
        let mut report = report();
        report.bugs[0].title = "x | y\n# Order: <b>`rm`</b>".into();
        report.stuck[0].at.function = "f`|\n\x1b[2J".into();
        let text = markdown(&report);
        assert!(text.contains("x \\| y?\\# Order: \\<b\\>\\`rm\\`\\</b\\>"), "{text}");
        assert!(text.contains("f'\\|??[2J`"), "{text}");
    }
}
