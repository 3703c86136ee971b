//! Bugs for code-scanning tools: SARIF 2.1.0, <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>.

use std::path::Path;

use serde_json::{Value, json};

use super::report::{Bug, Report};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The whole file. Places in the source are those of the first function that is the program's.
#[must_use]
pub fn sarif(report: &Report, root: &Path) -> String {
    let mut rules: Vec<&str> = report.bugs.iter().map(rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> =
        rules.into_iter().map(|id| json!({"id": id, "shortDescription": {"text": id}})).collect();
    let results: Vec<Value> = report.bugs.iter().map(|bug| result(bug, root)).collect();
    let driver = json!({
        "name": "ffuzz",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    let file = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    });
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// What kind of fault it is: the words of the class without numbers.
fn rule(bug: &Bug) -> &str {
    let words = bug.class.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if words.is_empty() { "crash" } else { words }
}

fn result(bug: &Bug, root: &Path) -> Value {
    let folder = root.join(super::FOLDER).join(&bug.id);
    let mut result = json!({
        "ruleId": rule(bug),
        "level": "error",
        "message": {"text": bug.title},
        "partialFingerprints": {"stackHash/v1": bug.stack_hash},
        "properties": {
            "files": bug.files,
            "runs": bug.runs,
            "crashes": bug.crashes,
            "folder": folder.to_string_lossy(),
        },
        "stacks": [{"frames": bug.frames.iter().map(|name| {
            json!({"location": {"logicalLocations": [{"fullyQualifiedName": name}]}})
        }).collect::<Vec<_>>()}],
    });
    let place = bug.place.as_deref().and_then(|place| place.rsplit_once(':'));
    if let Some((file, line)) = place
        && let Ok(line) = line.parse::<u32>()
        && line > 0
    {
        result["locations"] = json!([{"physicalLocation": {
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": line},
        }}]);
    }
    result
}

/// A path as a URI: absolute ones with a scheme, relative ones as they are.
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

    #[test]
    fn a_bug_is_a_result_at_its_place() {
        let bug = |class: &str, place: Option<&str>| Bug {
            id: "id".into(),
            class: class.into(),
            title: "heap-buffer-overflow [@ f]".into(),
            place: place.map(Into::into),
            frames: vec!["f".into()],
            ..Bug::default()
        };
        let bugs = vec![bug("heap-buffer-overflow READ 4", Some("/a b/c.c:7")), bug("", None)];
        let report = Report { bugs, ..Report::default() };
        let file: Value = serde_json::from_str(&sarif(&report, Path::new("/out"))).unwrap();
        let results = &file["runs"][0]["results"];
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "file:///a%20b/c.c");
        assert_eq!(place["region"]["startLine"], 7);
        assert_eq!(results[0]["ruleId"], "heap-buffer-overflow READ");
        assert!(results[1].get("locations").is_none() && results[1]["ruleId"] == "crash");
        assert_eq!(results[0]["properties"]["folder"], "/out/triage/id");
        assert_eq!(file["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
    }
}
