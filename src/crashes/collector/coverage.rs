//! Covered source lines for FuzzManager's coverage part: measured, or parsed from lcov or Coveralls; written as the
//! server's tree of folders.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Execution count of each line of each file; None for lines without code.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SourceCoverage {
    pub files: BTreeMap<String, Vec<Option<u64>>>,
    /// Commit named by a Coveralls file.
    pub revision: Option<String>,
    pub branch: Option<String>,
}

/// Maximum number of lines of a source file; guards the memory against broken reports.
const MAX_LINES: usize = 10_000_000;

#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum FormatError {
    #[error("line {0}: neither lcov nor Coveralls")]
    Line(usize),
    #[error("neither lcov nor Coveralls: {0}")]
    Json(String),
    #[error("it names no source file")]
    Empty,
}

impl SourceCoverage {
    /// Parses lcov or Coveralls; makes paths below `root` relative to it.
    pub fn parse(text: &str, root: &Path) -> Result<Self, FormatError> {
        let is_json = text.trim_start().starts_with('{');
        let mut coverage = if is_json { coveralls(text)? } else { lcov(text)? };
        if coverage.files.is_empty() {
            return Err(FormatError::Empty);
        }
        let files = std::mem::take(&mut coverage.files);
        coverage.files =
            files.into_iter().map(|(path, lines)| (below(&path, root), lines)).collect();
        Ok(coverage)
    }

    /// Builds the coverage from the lines with code of each file, each with the number of inputs that reach it.
    #[must_use]
    pub fn of<'a, L>(files: impl Iterator<Item = (&'a str, L)>, root: &Path) -> Self
    where
        L: Iterator<Item = (u32, u64)>,
    {
        let counts = |lines: L| {
            let mut counts = Vec::new();
            for (line, count) in lines {
                let Some(index) = (line as usize).checked_sub(1).filter(|at| *at < MAX_LINES)
                else {
                    continue;
                };
                counts.resize(index, None);
                counts.push(Some(count));
            }
            counts
        };
        let files = files.map(|(path, lines)| (below(path, root), counts(lines)));
        Self { files: files.collect(), ..Self::default() }
    }

    /// Numbers of reached lines and of all lines with code.
    #[must_use]
    pub fn lines(&self) -> (usize, usize) {
        let lines = || self.files.values().flatten().flatten();
        (lines().filter(|count| **count > 0).count(), lines().count())
    }

    /// The server's tree of folders, with sums for each.
    #[must_use]
    pub fn tree(&self) -> Value {
        let mut root = Folder::default();
        for (path, lines) in &self.files {
            let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
            let Some(name) = parts.pop() else { continue };
            let mut folder = &mut root;
            for part in parts {
                folder = folder.folders.entry(part).or_default();
            }
            folder.files.insert(name, lines);
        }
        root.node(None).0
    }
}

#[derive(Default)]
struct Folder<'a> {
    folders: BTreeMap<&'a str, Folder<'a>>,
    files: BTreeMap<&'a str, &'a [Option<u64>]>,
}

impl Folder<'_> {
    /// JSON node of the folder, number of its lines, and number of reached lines.
    fn node(&self, name: Option<&str>) -> (Value, usize, usize) {
        let (mut children, mut total, mut covered) = (serde_json::Map::new(), 0, 0);
        let folders = self.folders.iter().map(|(name, folder)| (*name, folder.node(Some(name))));
        let files = self.files.iter().map(|(name, lines)| (*name, file_node(name, lines)));
        for (name, (node, its_total, its_covered)) in folders.chain(files) {
            children.insert(name.to_owned(), node);
            total += its_total;
            covered += its_covered;
        }
        (with_sums(json!({ "children": children, "name": name }), total, covered), total, covered)
    }
}

fn file_node(name: &str, lines: &[Option<u64>]) -> (Value, usize, usize) {
    let total = lines.iter().flatten().count();
    let covered = lines.iter().flatten().filter(|count| **count > 0).count();
    let counts: Vec<i64> = lines
        .iter()
        .map(|count| count.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)))
        .collect();
    (with_sums(json!({ "coverage": counts, "name": name }), total, covered), total, covered)
}

fn with_sums(mut node: Value, total: usize, covered: usize) -> Value {
    let percent = if total == 0 { 0.0 } else { covered as f64 / total as f64 * 100.0 };
    node["linesTotal"] = total.into();
    node["linesCovered"] = covered.into();
    node["linesMissed"] = (total - covered).into();
    node["coveragePercent"] = ((percent * 100.0).round() / 100.0).into();
    node
}

fn lcov(text: &str) -> Result<SourceCoverage, FormatError> {
    let mut coverage = SourceCoverage::default();
    let mut file = None;
    for (index, line) in text.lines().enumerate() {
        let fault = || FormatError::Line(index + 1);
        match line.split_once(':') {
            Some(("SF", path)) => file = Some(path.to_owned()),
            Some(("DA", data)) => {
                let path = file.clone().ok_or_else(fault)?;
                let (number, count) = line_of(data).ok_or_else(fault)?;
                let lines = coverage.files.entry(path).or_default();
                lines.resize(lines.len().max(number), None);
                let sum = lines[number - 1].unwrap_or(0).saturating_add(count);
                lines[number - 1] = Some(sum);
            }
            _ if line.trim() == "end_of_record" => file = None,
            // Records for functions, branches and sums are ignored.
            Some((word, _)) if word.chars().all(|c| c.is_ascii_uppercase()) => {}
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            _ => return Err(fault()),
        }
    }
    Ok(coverage)
}

/// Parses `LINE,COUNT[,CHECKSUM]`; some compilers write negative or fractional counts.
fn line_of(data: &str) -> Option<(usize, u64)> {
    let mut parts = data.split(',');
    let number = parts.next()?.trim().parse().ok().filter(|n| (1..=MAX_LINES).contains(n))?;
    let count: f64 = parts.next()?.trim().parse().ok()?;
    Some((number, count.max(0.0) as u64))
}

fn coveralls(text: &str) -> Result<SourceCoverage, FormatError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| FormatError::Json(error.to_string()))?;
    let files = value["source_files"].as_array().ok_or(FormatError::Empty)?;
    let file = |file: &Value| {
        let lines = file["coverage"].as_array()?.iter().map(Value::as_u64).collect();
        Some((file["name"].as_str()?.to_owned(), lines))
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(SourceCoverage {
        files: files.iter().filter_map(file).collect(),
        revision: text(&value["git"]["head"]["id"]),
        branch: text(&value["git"]["branch"]),
    })
}

fn below(path: &str, root: &Path) -> String {
    let relative =
        Path::new(path).strip_prefix(root).map(|path| path.to_string_lossy().into_owned());
    relative.unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LCOV: &str = "TN:\nSF:/src/a/x.c\nFN:1,main\nDA:2,5\nDA:3,0\nDA:3,0\nLF:2\nend_of_record\n\
                        SF:/src/b.c\nDA:1,0,checksum\nDA:2,-1\nDA:3,3\nend_of_record\n";

    #[test]
    fn the_tree_is_that_of_the_reference() {
        let text = r#"{"git":{"branch":"main","head":{"id":"abc123"}},"source_files":[
            {"name":"src/a/x.c","coverage":[null,5,0,null]},{"name":"src/b.c","coverage":[0,0,3]},
            {"name":"top.c","coverage":[null]}]}"#;
        let coverage = SourceCoverage::parse(text, Path::new("/")).expect("Coveralls");
        assert_eq!(coverage.revision.as_deref(), Some("abc123"));
        assert_eq!(coverage.branch.as_deref(), Some("main"));
        // As cov-reporter of FuzzManager 0.9.1 sends it.
        let wanted = r#"{"children":{"src":{"children":{"a":{"children":{"x.c":{"coverage":[-1,5,0,-1],
            "name":"x.c","linesTotal":2,"linesCovered":1,"linesMissed":1,"coveragePercent":50.0}},"name":"a",
            "linesTotal":2,"linesCovered":1,"linesMissed":1,"coveragePercent":50.0},"b.c":{"coverage":[0,0,3],
            "name":"b.c","linesTotal":3,"linesCovered":1,"linesMissed":2,"coveragePercent":33.33}},"name":"src",
            "linesTotal":5,"linesCovered":2,"linesMissed":3,"coveragePercent":40.0},"top.c":{"coverage":[-1],
            "name":"top.c","linesTotal":0,"linesCovered":0,"linesMissed":0,"coveragePercent":0.0}},"name":null,
            "linesTotal":5,"linesCovered":2,"linesMissed":3,"coveragePercent":40.0}"#;
        assert_eq!(coverage.tree(), serde_json::from_str::<Value>(wanted).expect("JSON"));
    }

    #[test]
    fn lcov_counts_per_line_below_the_root() {
        let coverage = SourceCoverage::parse(LCOV, Path::new("/src")).expect("lcov");
        assert_eq!(coverage.files["a/x.c"], [None, Some(5), Some(0)]);
        assert_eq!(coverage.files["b.c"], [Some(0), Some(0), Some(3)]);
    }

    #[test]
    fn what_was_reached_below_the_root_is_kept() {
        let lines = [(0, 1), (2, 5), (4, 0), (u32::MAX, 1)];
        let files = [("/src/a/x.c", lines.into_iter())].into_iter();
        let coverage = SourceCoverage::of(files, Path::new("/src"));
        assert_eq!(coverage.files["a/x.c"], [None, Some(5), None, Some(0)]);
        assert_eq!((coverage.files.len(), coverage.lines()), (1, (1, 2)));
    }

    #[test]
    fn other_texts_are_refused() {
        let parse = |text| SourceCoverage::parse(text, Path::new("/")).expect_err("no coverage");
        assert_eq!(parse(""), FormatError::Empty);
        assert_eq!(parse("hello"), FormatError::Line(1));
        assert_eq!(parse("SF:a\nDA:0,1"), FormatError::Line(2));
        assert_eq!(parse("SF:a\nDA:99999999999,1"), FormatError::Line(2));
        assert!(matches!(parse("{"), FormatError::Json(_)));
    }
}
