//! Annotations for GitHub's workflows: lines printed by a step and shown in the changed files.

use std::path::Path;

use super::HarnessBug;

/// Maximum number of annotations of one kind that GitHub shows per step.
const MOST: usize = 10;

/// Error annotations for the new bugs, at most `MOST`.
#[must_use]
pub fn annotations(findings: &[HarnessBug<'_>], root: &Path) -> String {
    let new = findings.iter().filter(|finding| finding.is_new());
    new.take(MOST).map(|finding| line(finding, root)).collect()
}

fn line(finding: &HarnessBug<'_>, root: &Path) -> String {
    let (file, line) = super::place(finding.bug, finding.program);
    let file = property(&super::shown_file(file, root));
    let title = property(&format!("ffuzz: {}", finding.bug.class));
    let harness = finding.harness;
    format!(
        "::error file={file},line={line},title={title}::{} ({harness})\n",
        text(&finding.bug.title)
    )
}

/// Escapes line ends and the escape character.
fn text(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(value: &str) -> String {
    text(value).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::example;

    #[test]
    fn new_bugs_have_lines_without_special_letters() {
        let printed = example::with(|suites| annotations(&suites[0].findings, Path::new("/src")));
        assert_eq!(
            printed,
            "::error file=a%2Cb.c,line=7,title=ffuzz%3A heap-buffer-overflow WRITE 4::100%25 <bad> & \"x\"%0A[@ f] (parse)\n"
        );
    }
}
