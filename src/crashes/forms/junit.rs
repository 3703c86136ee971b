//! JUnit's XML, which most services accept as test results.

use std::fmt::Write as _;
use std::path::Path;

use super::{HarnessBug, Suite, SuiteOutcome};

/// Report with a suite for each harness, with one case for its corpus and one per bug. A new bug is a failure, a known
/// one is skipped.
#[must_use]
pub fn junit(suites: &[Suite<'_>], root: &Path) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ffuzz\">\n");
    for suite in suites {
        let failures = suite.findings.iter().filter(|finding| finding.is_new()).count();
        let errors = usize::from(matches!(suite.outcome, SuiteOutcome::Failed(_)));
        let left_out = usize::from(matches!(suite.outcome, SuiteOutcome::LeftOut(_)));
        let skipped = suite.findings.len() - failures + left_out;
        let (name, tests) = (escaped(suite.harness), suite.findings.len() + 1);
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
             skipped=\"{skipped}\" time=\"{:.1}\">",
            suite.seconds
        );
        let _ = write!(
            text,
            "    <testcase classname=\"{name}\" name=\"corpus\" time=\"{:.1}\"",
            suite.seconds
        );
        let _ = match suite.outcome {
            SuiteOutcome::Done => writeln!(text, "/>"),
            SuiteOutcome::LeftOut(reason) => {
                writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(reason))
            }
            SuiteOutcome::Failed(cause) => {
                let cause = escaped(cause);
                writeln!(
                    text,
                    "><error message=\"{cause}\" type=\"start\">{cause}</error></testcase>"
                )
            }
        };
        suite.findings.iter().for_each(|finding| case(&mut text, finding, root));
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

fn case(text: &mut String, finding: &HarnessBug<'_>, root: &Path) {
    let (bug, harness) = (finding.bug, escaped(finding.harness));
    let (file, line) = super::place(bug, finding.program);
    let file = escaped(&super::shown_file(file, root));
    let title = escaped(&bug.title);
    let _ = write!(
        text,
        "    <testcase classname=\"{harness}\" name=\"{}\" file=\"{file}\">",
        escaped(&bug.id)
    );
    let _ = if finding.is_new() {
        let stack: String =
            super::own_frames(bug).iter().map(|frame| escaped(frame) + "\n").collect();
        let (class, folder) = (escaped(&bug.class), escaped(&finding.folder().to_string_lossy()));
        writeln!(
            text,
            "<failure message=\"{title}\" type=\"{class}\">{file}:{line}\n{stack}{folder}</failure></testcase>"
        )
    } else {
        writeln!(text, "<skipped message=\"known: {title}\"/></testcase>")
    };
}

/// Escapes text for XML 1.0, which has only three control characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push_str(&format!("&#{};", letter as u32)),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter if letter < ' ' => safe.push('\u{fffd}'),
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
    fn suites_count_new_bugs_as_failures() {
        let text = example::with(|suites| junit(suites, Path::new("/src")));
        for line in [
            "  <testsuite name=\"parse\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"12.5\">\n",
            "    <testcase classname=\"parse\" name=\"corpus\" time=\"12.5\"/>\n",
            "<failure message=\"100% &lt;bad&gt; &amp; &quot;x&quot;&#10;[@ f]\" type=\"heap-buffer-overflow WRITE 4\">a,b.c:7\n",
            "<skipped message=\"known: \u{fffd}[m\"/></testcase>\n",
            "<error message=\"no fork server\" type=\"start\">no fork server</error></testcase>\n",
            "<skipped message=\"nothing changed\"/></testcase>\n",
        ] {
            assert!(text.contains(line), "no {line:?} in {text}");
        }
    }
}
