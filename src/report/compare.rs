//! Compares two campaigns with one target: coverage that only one of them has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use crate::data::{Reach, Source, SourceFile};
use crate::forms::listing::clean;
use ffuzz_comparisons::blockers::ranges;

/// Maximum number of functions per side in the text.
const MOST_FUNCTIONS: usize = 100;

/// Two campaigns side by side.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Differences {
    /// Folders of the campaigns.
    pub names: [String; 2],
    pub files: Vec<FileDifferences>,
}

/// A source file in which the campaigns reached different parts.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct FileDifferences {
    pub path: String,
    /// Number of lines that both reached.
    pub both: usize,
    /// First and last line of each range that only one reached.
    pub only: [Vec<(usize, usize)>; 2],
    /// Functions that only one entered.
    pub functions: [Vec<String>; 2],
}

impl Differences {
    /// Compares the files, and leaves out those without a difference.
    #[must_use]
    pub fn new(names: [String; 2], sources: [&Source; 2]) -> Self {
        let by_path = sources.map(|source| {
            source.files.iter().map(|file| (file.path.as_str(), file)).collect::<BTreeMap<_, _>>()
        });
        let paths: BTreeSet<&str> =
            by_path.iter().flat_map(|files| files.keys().copied()).collect();
        let difference = |path: &str| {
            let files = [0, 1].map(|side| by_path[side].get(path).copied());
            let lines = files.map(|file| file.map(lines).unwrap_or_default());
            let functions = files.map(|file| file.map(entered).unwrap_or_default());
            let only = |side: usize| {
                let own = lines[side].difference(&lines[1 - side]).map(|line| *line as usize);
                ranges(own)
            };
            let names = |side: usize| {
                let own = functions[side].difference(&functions[1 - side]);
                own.map(|name| (*name).to_owned()).collect::<Vec<_>>()
            };
            FileDifferences {
                path: path.to_owned(),
                both: lines[0].intersection(&lines[1]).count(),
                only: [only(0), only(1)],
                functions: [names(0), names(1)],
            }
        };
        let files = paths.into_iter().map(difference).filter(|file| {
            file.only.iter().any(|only| !only.is_empty())
                || file.functions.iter().any(|names| !names.is_empty())
        });
        Self { names, files: files.collect() }
    }

    /// Formats a table of files, and the functions of each side.
    #[must_use]
    pub fn text(&self) -> String {
        let [a, b] = &self.names;
        let mut text = format!("lines reached only by A = {a}, only by B = {b}, by both:\n");
        let count = |only: &[(usize, usize)]| {
            only.iter().map(|(first, last)| last - first + 1).sum::<usize>()
        };
        for file in &self.files {
            let [a, b] = [0, 1].map(|side| count(&file.only[side]));
            let _ = writeln!(text, "{a:>7} {b:>7} {:>7}  {}", file.both, clean(&file.path));
        }
        for (side, name) in ["A", "B"].into_iter().enumerate() {
            let all = self.files.iter().flat_map(|file| &file.functions[side]);
            let all: Vec<&String> = all.collect();
            if !all.is_empty() {
                let _ = writeln!(text, "functions entered only by {name}: {}", all.len());
            }
            for function in all.iter().take(MOST_FUNCTIONS) {
                let _ = writeln!(text, "    {}", clean(function));
            }
        }
        if self.files.is_empty() {
            text = format!("{a} and {b} have reached the same lines\n");
        }
        text
    }
}

fn lines(file: &SourceFile) -> BTreeSet<u32> {
    let reached = file.each_line().filter(|(_, run)| run.state != Reach::Unreached);
    reached.map(|(line, _)| line).collect()
}

fn entered(file: &SourceFile) -> BTreeSet<&str> {
    let entered = file.functions.iter().filter(|function| function.entered);
    entered.map(|it| if it.name.is_empty() { &*it.symbol } else { &*it.name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Function, LineRun};

    #[test]
    fn each_side_has_its_own_lines_and_functions() {
        let file = |runs: &[(u32, u32, Reach)], functions: &[&str]| {
            let run = |(first, last, state): &(u32, u32, Reach)| LineRun {
                first: *first,
                last: *last,
                state: *state,
                inputs: 1,
                input: None,
            };
            let function = |name: &&str| Function {
                name: (*name).into(),
                entered: true,
                ..Function::default()
            };
            SourceFile {
                path: "/a.c".into(),
                lines: runs.iter().map(run).collect(),
                functions: functions.iter().map(function).collect(),
                ..SourceFile::default()
            }
        };
        let source = |file| Source { files: vec![file], ..Source::default() };
        let a = source(file(&[(1, 4, Reach::Proved), (6, 6, Reach::Unreached)], &["f", "g"]));
        let b = source(file(&[(3, 4, Reach::Derived), (6, 7, Reach::Proved)], &["f"]));
        let names = || ["x".to_owned(), "y".to_owned()];
        let all = Differences::new(names(), [&a, &b]);
        let expected = FileDifferences {
            path: "/a.c".into(),
            both: 2,
            only: [vec![(1, 2)], vec![(6, 7)]],
            functions: [vec!["g".into()], vec![]],
        };
        assert_eq!(all.files, [expected]);
        assert!(all.text().contains("      2       2       2  /a.c\n"), "{}", all.text());
        assert!(all.text().contains("entered only by A: 1\n    g\n"), "{}", all.text());
        assert_eq!(
            Differences::new(names(), [&a, &a]).text(),
            "x and y have reached the same lines\n"
        );
    }
}
