//! Suites for the tests of the forms.

use std::path::Path;

use super::{BugNovelty, HarnessBug, Suite, SuiteOutcome};
use crate::triage::report::TriagedBug;

/// Calls `shown` with three suites: one with a new and a known bug, one that does not run, one that was skipped.
pub(super) fn with<T>(shown: impl FnOnce(&[Suite<'_>]) -> T) -> T {
    let new = TriagedBug {
        id: "overflow-f-00ff".into(),
        title: "100% <bad> & \"x\"\n[@ f]".into(),
        class: "heap-buffer-overflow WRITE 4".into(),
        place: Some("/src/a,b.c:7".into()),
        stack_hash: "00ff".into(),
        frames: ["f", "```main", "LLVMFuzzerTestOneInput", "driver"].map(Into::into).into(),
        minimized_size: Some(4),
        ..TriagedBug::default()
    };
    let known = TriagedBug {
        id: "abort-1".into(),
        title: "\u{1b}[m".into(),
        class: "ABRT".into(),
        ..TriagedBug::default()
    };
    let finding = |bug, novelty| HarnessBug {
        bug,
        harness: "parse",
        program: "/bin/parse",
        output: Path::new("/o/parse"),
        novelty: Some(novelty),
    };
    let findings = vec![finding(&new, BugNovelty::New), finding(&known, BugNovelty::Known)];
    let suite = |harness, outcome, findings| Suite {
        harness,
        outcome,
        findings,
        seconds: 12.46,
        execs: 1000,
        inputs: 3,
        found: 2,
        edges: 50,
        edges_before: Some(42),
    };
    shown(&[
        suite("parse", SuiteOutcome::Done, findings),
        suite("lex", SuiteOutcome::Failed("no fork server"), Vec::new()),
        suite("other", SuiteOutcome::LeftOut("nothing changed"), Vec::new()),
    ])
}
