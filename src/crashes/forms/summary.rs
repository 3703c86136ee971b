//! Markdown page for a pull request.

use std::fmt::Write as _;
use std::path::Path;

use super::{HarnessBug, Suite, SuiteOutcome};

/// Maximum number of bugs shown with their stacks; a GitHub page has at most 1 MiB.
const MOST_BUGS: usize = 30;
const MOST_FRAMES: usize = 8;
/// Maximum letters of a text from the target.
const LONGEST: usize = 200;

/// The page: one sentence, a table of harnesses with `notes` below it, new bugs with their stacks, known ones in a
/// list.
#[must_use]
pub fn summary(suites: &[Suite<'_>], notes: &[String], root: &Path) -> String {
    let findings: Vec<&HarnessBug<'_>> = suites.iter().flat_map(|suite| &suite.findings).collect();
    let (new, known): (Vec<&HarnessBug<'_>>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.is_new());
    let failed =
        suites.iter().filter(|suite| matches!(suite.outcome, SuiteOutcome::Failed(_))).count();
    let mut text = String::from("## Fuzzing\n\n");
    let bugs = |count: usize, kind: &str| match count {
        0 => format!("no {kind} bug"),
        1 => format!("**1 {kind} bug**"),
        count => format!("**{count} {kind} bugs**"),
    };
    let _ = write!(text, "{} harnesses: {}", suites.len(), bugs(new.len(), "new"));
    if !known.is_empty() {
        let _ = write!(text, ", {} known", known.len());
    }
    if failed > 0 {
        let _ = write!(text, ", {failed} that do not run");
    }
    text.push_str(
        ".\n\n| harness | runs | seconds | edges | corpus | bugs |\n|---|---|---|---|---|---|\n",
    );
    suites.iter().for_each(|suite| row(&mut text, suite));
    for note in notes {
        let _ = write!(text, "\n{}\n", plain(note));
    }
    if !new.is_empty() {
        text.push_str("\n### New\n");
        new.iter().take(MOST_BUGS).for_each(|finding| bug(&mut text, finding, root));
    }
    if new.len() > MOST_BUGS {
        let _ = write!(text, "\n… and {} more.\n", new.len() - MOST_BUGS);
    }
    if !known.is_empty() {
        text.push_str("\n### Known\n\n");
        for finding in known {
            let (title, harness) = (plain(&finding.bug.title), plain(finding.harness));
            let _ = writeln!(text, "- {title} — `{}` ({harness})", finding.bug.id);
        }
    }
    text
}

fn row(text: &mut String, suite: &Suite<'_>) {
    let name = plain(suite.harness);
    let _ = match suite.outcome {
        SuiteOutcome::LeftOut(reason) => {
            writeln!(text, "| {name} | | | | | left out: {} |", plain(reason))
        }
        SuiteOutcome::Failed(cause) => {
            writeln!(text, "| {name} | | | | | does not run: {} |", plain(cause))
        }
        SuiteOutcome::Done => {
            let new = suite.findings.iter().filter(|finding| finding.is_new()).count();
            let known = suite.findings.len() - new;
            let bugs = match (new, known) {
                (0, 0) => String::new(),
                (new, 0) => format!("{new} new"),
                (0, known) => format!("{known} known"),
                (new, known) => format!("{new} new, {known} known"),
            };
            let before = suite.edges_before.map(|before| suite.edges as i128 - before as i128);
            let change = before.map_or_else(String::new, |change| format!(" ({change:+})"));
            writeln!(
                text,
                "| {name} | {} | {:.0} | {}{change} | {} (+{}) | {bugs} |",
                suite.execs, suite.seconds, suite.edges, suite.inputs, suite.found
            )
        }
    };
}

fn bug(text: &mut String, finding: &HarnessBug<'_>, root: &Path) {
    let (file, line) = super::place(finding.bug, finding.program);
    let (bug, file) = (finding.bug, super::shown_file(file, root));
    let _ = write!(
        text,
        "\n#### {}\n\n`{file}:{line}`, harness {}, `{}`\n\n```\n",
        plain(&bug.title),
        plain(finding.harness),
        bug.id
    );
    for frame in super::own_frames(bug).iter().take(MOST_FRAMES) {
        let _ = writeln!(text, "{}", shortened(frame).replace("```", "'''"));
    }
    text.push_str("```\n");
    if let Some(size) = bug.minimized_size {
        let _ = write!(
            text,
            "\nThe smallest input has {size} bytes: `{}`\n",
            finding.folder().join("minimized").display()
        );
    }
}

fn shortened(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(LONGEST)
        .collect()
}

/// Escapes text of the target so that Markdown shows it literally.
fn plain(text: &str) -> String {
    let mut safe = String::new();
    for letter in shortened(text).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' | '@' => {
                safe.extend(['\\', letter])
            }
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::example;

    #[test]
    fn a_page_has_the_harnesses_and_the_new_bugs() {
        let notes = vec!["Ended early.".to_owned()];
        let text = example::with(|suites| summary(suites, &notes, Path::new("/src")));
        assert_eq!(
            text,
            "## Fuzzing\n\n3 harnesses: **1 new bug**, 1 known, 1 that do not run.\n\n\
             | harness | runs | seconds | edges | corpus | bugs |\n|---|---|---|---|---|---|\n\
             | parse | 1000 | 12 | 50 (+8) | 3 (+2) | 1 new, 1 known |\n\
             | lex | | | | | does not run: no fork server |\n\
             | other | | | | | left out: nothing changed |\n\
             \nEnded early.\n\
             \n### New\n\n#### 100% &lt;bad&gt; &amp; \"x\" \\[\\@ f\\]\n\n`a,b.c:7`, harness parse, `overflow-f-00ff`\n\n\
             ```\nf\n'''main\nLLVMFuzzerTestOneInput\n```\n\nThe smallest input has 4 bytes: `/o/parse/triage/overflow-f-00ff/minimized`\n\
             \n### Known\n\n-  \\[m — `abort-1` (parse)\n"
        );
    }
}
