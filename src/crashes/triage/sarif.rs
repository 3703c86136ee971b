//! Bugs for code-scanning tools: SARIF 2.1.0, <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::report::{Bug, TriageReport};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Name of the folder that paths are relative to, as code-scanning tools have it.
const ROOT: &str = "SRCROOT";
/// Folders that stand at the root of a source tree.
const MARKS: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// The root of the source tree around the working folder; the working folder if it is in none.
#[must_use]
pub fn source_root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let is_root = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    here.ancestors().find(is_root).map(Path::to_owned).unwrap_or(here)
}

/// The whole file. Places in the source are those of the first function that is the program's, relative
/// to the root of the source. `output` is the folder that has the one for triage.
#[must_use]
pub fn sarif(report: &TriageReport, output: &Path, root: &Path) -> String {
    let mut rules: Vec<&str> = report.bugs.iter().map(rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> =
        rules.into_iter().map(|id| json!({"id": id, "shortDescription": {"text": id}})).collect();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let results: Vec<Value> = report.bugs.iter().map(|bug| result(bug, output, &root)).collect();
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
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// The kind of fault: the class without numbers.
fn rule(bug: &Bug) -> &str {
    let words = bug.class.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if words.is_empty() { "crash" } else { words }
}

fn result(bug: &Bug, output: &Path, root: &Path) -> Value {
    let folder = output.join(super::FOLDER).join(&bug.id);
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
        let artifact = match below(Path::new(file), root) {
            Some(path) => json!({"uri": uri(&path.to_string_lossy()), "uriBaseId": ROOT}),
            None => json!({"uri": uri(file)}),
        };
        result["locations"] = json!([{"physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": line},
        }}]);
    }
    result
}

/// The path as it is below the root. What was built somewhere else is found by the end of its path.
fn below(file: &Path, root: &Path) -> Option<PathBuf> {
    if let Ok(path) = file.strip_prefix(root) {
        return Some(path.to_owned());
    }
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<Component<'_>> = file.components().collect();
    let plain = parts.iter().rposition(|part| !named(part)).map_or(0, |last| last + 1);
    let ends = (plain..parts.len()).map(|first| parts[first..].iter().collect::<PathBuf>());
    let found = ends.clone().find(|path| root.join(path).is_file());
    // A compiler's relative path is one from the root, most often.
    found.or_else(|| ends.clone().next().filter(|_| file.is_relative()))
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
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a b")).unwrap();
        std::fs::write(root.path().join("a b/c.c"), "").unwrap();
        let inside = format!("{}/d.c:9", root.path().canonicalize().unwrap().display());
        let places = ["/else/where/a b/c.c:7", &inside, "/else/e.c:1", "./src/main.rs:3"];
        let bugs = places.map(|place| bug("heap-buffer-overflow READ 4", Some(place)));
        let bugs = bugs.into_iter().chain([bug("", None)]).collect();
        let report = TriageReport { bugs, ..TriageReport::default() };
        let text = sarif(&report, Path::new("/out"), root.path());
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
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
        assert_eq!(results[0]["ruleId"], "heap-buffer-overflow READ");
        assert!(results[4].get("locations").is_none() && results[4]["ruleId"] == "crash");
        assert_eq!(results[0]["properties"]["folder"], "/out/triage/id");
        assert_eq!(file["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
    }
}
