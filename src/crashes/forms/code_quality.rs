//! GitLab's code quality report: a JSON list in Code Climate's format.

use std::path::Path;

use serde_json::json;

use super::{HarnessBug, sarif};

/// Report of all bugs. The fingerprint omits the line, which moves with edits.
#[must_use]
pub fn code_quality(findings: &[HarnessBug<'_>], root: &Path) -> String {
    let entry = |finding: &HarnessBug<'_>| {
        let bug = finding.bug;
        let (file, line) = super::place(bug, finding.program);
        let rule = sarif::rule(bug);
        let score: f64 = sarif::kind(rule).1.parse().unwrap_or_default();
        let severity = match score {
            score if score >= 9.0 => "blocker",
            score if score >= 7.0 => "critical",
            _ => "major",
        };
        json!({
            "description": format!("{} ({})", bug.title, finding.harness),
            "check_name": rule,
            "fingerprint": format!("{}-{}", bug.stack_hash, finding.harness),
            "severity": severity,
            "location": {"path": super::shown_file(file, root), "lines": {"begin": line}},
        })
    };
    let entries: Vec<_> = findings.iter().map(entry).collect();
    serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::forms::example;

    #[test]
    fn an_entry_has_its_place_and_a_fingerprint_without_the_line() {
        let text = example::with(|suites| code_quality(&suites[0].findings, Path::new("/src")));
        let entries: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            entries[0],
            json!({
                "description": "100% <bad> & \"x\"\n[@ f] (parse)",
                "check_name": "heap-buffer-overflow WRITE",
                "fingerprint": "00ff-parse",
                "severity": "critical",
                "location": {"path": "a,b.c", "lines": {"begin": 7}},
            })
        );
        assert_eq!(entries[1]["location"]["path"], "/bin/parse");
        assert_eq!(entries[1]["severity"], "major");
    }
}
