//! Bugs for code-scanning tools: SARIF 2.1.0, <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>.

use std::path::Path;

use serde_json::{Value, json};

use super::HarnessBug;
use crate::triage::report::TriagedBug;
use ffuzz_sys::file;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Name of the base folder of paths, as used by code-scanning tools.
const ROOT: &str = "SRCROOT";
/// Maximum size of a source read for the width of a line, bytes.
const LONGEST: u64 = 16 << 20;
/// Help text for every rule.
const HELP: &str = "Run reproduce.sh in the folder of the bug (the property folder of the result): it \
    runs the target on the smallest input known. The report of the crash and its stack are beside it.";

/// Words of a class, description of the fault, and its CVSS-like score: 7 and above is high, 4 and above medium. The
/// first match counts.
const KINDS: &[(&[&str], &str, &str)] = &[
    (
        &["WRITE"],
        "The program writes to memory outside of an object, or to one that was freed.",
        "8.8",
    ),
    (&["use-after"], "The program uses an object after it was freed or has left its scope.", "8.1"),
    (
        &["double-free", "bad-free", "heap corruption", "mismatch"],
        "The program damages the heap, or gives it memory that it does not own.",
        "8.1",
    ),
    (&["READ"], "The program reads memory outside of an object, or of one that was freed.", "6.5"),
    (&["stack-overflow"], "The program's stack is exhausted: a recursion has no bound.", "5.3"),
    (
        &["integer-overflow", "integer overflow"],
        "The result of an operation is not representable.",
        "5.3",
    ),
    (
        &["overflow", "underflow", "container"],
        "The program uses memory outside of an object.",
        "7.5",
    ),
    (&["near null"], "The program uses a null pointer.", "5.3"),
    (&["SEGV", "BUS"], "The program uses an address that is not mapped or not permitted.", "6.5"),
    (&["uninitialized"], "The program decides by a value that was never set.", "6.5"),
    (
        &["race", "deadlock", "lock-order"],
        "Threads of the program use memory or locks in conflict.",
        "5.3",
    ),
    (&["leak"], "The program loses memory that it has allocated.", "4.3"),
    (
        &["out-of-memory", "allocation-size", "calloc-overflow"],
        "The program asks for more memory than it may have.",
        "5.3",
    ),
    (&["hang", "timeout"], "The program does not end within its limit of time.", "5.3"),
    (
        &["assertion", "panic", "exception", "ABRT", "CHECK"],
        "The program ends itself: one of its own checks failed.",
        "5.3",
    ),
];
/// Description and score of any other class.
const OTHER: (&str, &str) = ("The program ends abnormally on the input.", "5.5");

/// The whole file. The place of a bug is that of the first function of the program, relative to the root of the source.
#[must_use]
pub fn sarif(findings: &[HarnessBug<'_>], root: &Path) -> String {
    let mut rules: Vec<&str> = findings.iter().map(|finding| rule(finding.bug)).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.into_iter().map(described).collect();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let results: Vec<Value> = findings.iter().map(|finding| result(finding, &root)).collect();
    let driver = json!({
        "name": "ffuzz",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    let mut base = uri(&root.to_string_lossy());
    base.push_str(if base.ends_with('/') { "" } else { "/" });
    let file = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
            "originalUriBaseIds": {ROOT: {"uri": base}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// Kind of fault: the class without numbers.
pub(super) fn rule(bug: &TriagedBug) -> &str {
    let words = bug.class.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if words.is_empty() { "crash" } else { words }
}

/// Description of a kind of fault, and its CVSS-like score.
pub(super) fn kind(id: &str) -> (&'static str, &'static str) {
    let holds = |words: &&[&str]| words.iter().any(|word| id.contains(word));
    let known = KINDS.iter().find(|(words, ..)| holds(words));
    known.map_or(OTHER, |(_, what, severity)| (*what, *severity))
}

/// A rule, with all texts and properties that code-scanning services show.
fn described(id: &str) -> Value {
    let (what, severity) = kind(id);
    json!({
        "id": id,
        "shortDescription": {"text": id},
        "fullDescription": {"text": what},
        "help": {"text": format!("{what} {HELP}")},
        "defaultConfiguration": {"level": "error"},
        "properties": {
            "tags": ["security"],
            "precision": "very-high",
            "security-severity": severity,
        },
    })
}

/// Result for one bug; one without a source place is shown at the program, because services refuse a result without
/// one.
fn result(finding: &HarnessBug<'_>, root: &Path) -> Value {
    let HarnessBug { bug, program, .. } = finding;
    let mut result = json!({
        "ruleId": rule(bug),
        "level": "error",
        "message": {"text": bug.title},
        "locations": [{"physicalLocation": location(bug, program, root)}],
        "partialFingerprints": {
            // The only fingerprint that GitHub reads. It omits the line, which moves with edits.
            "primaryLocationLineHash": format!("{}:1", bug.stack_hash),
            "stackHash/v1": bug.stack_hash,
        },
        "properties": {
            "files": bug.files,
            "runs": bug.runs,
            "crashes": bug.crashes,
            "folder": finding.folder().to_string_lossy(),
        },
        "stacks": [{"frames": bug.frames.iter().map(|name| {
            json!({"location": {"logicalLocations": [{"fullyQualifiedName": name}]}})
        }).collect::<Vec<_>>()}],
    });
    if let Some(novelty) = finding.novelty {
        result["baselineState"] = novelty.in_sarif().into();
        result["properties"]["harness"] = finding.harness.into();
    }
    result
}

fn location(bug: &TriagedBug, program: &str, root: &Path) -> Value {
    let (file, line) = super::place(bug, program);
    let below = super::below(Path::new(file), root);
    let end = below.as_ref().and_then(|path| width(&root.join(path), line)).unwrap_or(0) + 1;
    let artifact = match below {
        Some(path) => json!({"uri": uri(&path.to_string_lossy()), "uriBaseId": ROOT}),
        None => json!({"uri": uri(file)}),
    };
    // The end is after the last letter; a region has at least one letter.
    let region =
        json!({"startLine": line, "startColumn": 1, "endLine": line, "endColumn": end.max(2)});
    json!({"artifactLocation": artifact, "region": region})
}

/// Number of letters of a source line; None if the file is no text.
fn width(path: &Path, line: u32) -> Option<usize> {
    let text = file::read(path, LONGEST).ok()?;
    let text = String::from_utf8(text).ok()?;
    text.lines().nth(line as usize - 1).map(|line| line.chars().count())
}

/// Converts a path to a URI: absolute ones with a scheme, relative ones without.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triage::report::TriageReport;

    #[test]
    fn a_bug_is_a_result_at_its_place() {
        let bug = |class: &str, place: Option<&str>| TriagedBug {
            id: "id".into(),
            class: class.into(),
            title: "heap-buffer-overflow [@ f]".into(),
            place: place.map(Into::into),
            stack_hash: "00ff".into(),
            frames: vec!["f".into()],
            ..TriagedBug::default()
        };
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a b")).unwrap();
        std::fs::write(root.path().join("a b/c.c"), "\n".repeat(6) + "a[7] = ä;\n").unwrap();
        let inside = format!("{}/d.c:9", root.path().canonicalize().unwrap().display());
        let places = ["/else/where/a b/c.c:7", &inside, "/else/e.c:1", "./src/main.rs:3"];
        let bugs = places.map(|place| bug("heap-buffer-overflow READ 4", Some(place)));
        let bugs = bugs.into_iter().chain([bug("", None)]).collect();
        let command = vec!["./build/target".into()];
        let report = TriageReport { bugs, command, ..TriageReport::default() };
        let findings = crate::forms::of_report(&report, Path::new("/out"));
        let text = sarif(&findings, root.path());
        let file: Value = serde_json::from_str(&text).unwrap();
        let results = &file["runs"][0]["results"];
        let artifact = |at: usize| {
            let place = &results[at]["locations"][0]["physicalLocation"]["artifactLocation"];
            (place["uri"].as_str().unwrap().to_owned(), place.get("uriBaseId").is_some())
        };
        let is = |uri: &str, is_relative| (uri.to_owned(), is_relative);
        assert_eq!(artifact(0), is("a%20b/c.c", true));
        assert_eq!(artifact(1), is("d.c", true));
        assert_eq!(artifact(2), is("file:///else/e.c", false));
        assert_eq!(artifact(3), is("src/main.rs", true));
        let region = |at: usize| {
            let region = &results[at]["locations"][0]["physicalLocation"]["region"];
            ["startLine", "startColumn", "endLine", "endColumn"].map(|name| region[name].clone())
        };
        assert_eq!(region(0), [7, 1, 7, 10]);
        assert_eq!(region(2), [1, 1, 1, 2]);
        let hash = &results[0]["partialFingerprints"]["primaryLocationLineHash"];
        assert_eq!(hash, "00ff:1");
        assert_eq!(results[0]["ruleId"], "heap-buffer-overflow READ");
        assert_eq!(
            (artifact(4), region(4)),
            (is("build/target", true), [1, 1, 1, 2].map(Into::into))
        );
        assert_eq!(results[4]["ruleId"], "crash");
        assert_eq!(results[0]["properties"]["folder"], "/out/triage/id");
        let rules = file["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 2);
    }

    #[test]
    fn a_rule_has_every_text_and_a_severity() {
        for (id, severity) in [
            ("heap-buffer-overflow WRITE", "8.8"),
            ("heap-buffer-overflow READ", "6.5"),
            ("stack-overflow", "5.3"),
            ("signed integer overflow", "5.3"),
            ("SIGSEGV near null", "5.3"),
            ("double-free", "8.1"),
            ("crash", "5.5"),
        ] {
            let rule = described(id);
            for text in ["shortDescription", "fullDescription", "help"] {
                assert!(rule[text]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
            }
            assert_eq!(rule["properties"]["security-severity"], severity, "{id}");
        }
    }
}
