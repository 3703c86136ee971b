//! The facts of a report: what `--json` writes, and what every other form is made from.

use std::collections::BTreeMap;

use serde::Serialize;

use ffuzz_engine::coverage::frontier::Callers;
use ffuzz_exec::lines::{Covered, FunctionFacts, LineFacts};

/// The standard library of Rust, in debug information: its files are on no other machine.
const STANDARD_LIBRARY: &str = "/rustc/";

/// The source of a target, and what of it was reached.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Source {
    pub totals: SourceTotals,
    /// By their paths.
    pub files: Vec<SourceFile>,
}

/// Sums over lines and functions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct SourceTotals {
    /// Lines that the debug information attributes to code.
    pub lines: usize,
    /// Those that an input has reached.
    pub reached: usize,
    /// Those of which a counter in their own block shows that; the others follow from counters around them.
    pub proved: usize,
    pub functions: usize,
    pub entered: usize,
}

/// A file of the source.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct SourceFile {
    pub path: String,
    pub totals: SourceTotals,
    /// Runs of lines in which all is equal.
    pub lines: Vec<LineRun>,
    /// By their first lines.
    pub functions: Vec<Function>,
}

/// Lines from `first` to `last`, all with code.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct LineRun {
    pub first: u32,
    pub last: u32,
    pub state: Reach,
    /// How many inputs have reached each.
    pub inputs: u64,
    /// Number of the first of them in the order of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
}

/// Whether inputs have reached a line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    Unreached,
    /// It follows from the counters of other blocks: an optimised program may have moved the line's code there.
    Derived,
    /// A counter of its own block shows it.
    Proved,
}

/// A function, or a copy of it: of a template, or of a file that is included several times.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Function {
    pub name: String,
    /// As the linker knows it.
    pub symbol: String,
    pub line: u32,
    pub entered: bool,
    /// How many inputs have entered it.
    pub inputs: u64,
    /// How many counters it has, and how many of them were hit.
    pub counters: usize,
    pub hit: usize,
}

/// A function that no input has entered.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct NeverEntered {
    pub function: String,
    /// Where its first counter is; empty and 0 without debug information.
    pub file: String,
    pub line: u32,
    /// How many counters it has.
    pub counters: u32,
    pub reason: Reason,
}

/// Who may call a function that no input has entered.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Code that was reached calls it.
    Caller,
    /// Its address is used.
    Pointer,
    /// Nothing that was reached: another harness may.
    #[default]
    Harness,
}

impl Reason {
    /// In a few words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Caller => "called by code that is reached",
            Self::Pointer => "called by pointer, if at all",
            Self::Harness => "called by nothing that is reached",
        }
    }
}

impl From<Callers> for Reason {
    fn from(callers: Callers) -> Self {
        match callers {
            Callers::Reached => Self::Caller,
            Callers::ByPointer => Self::Pointer,
            Callers::Nobody => Self::Harness,
        }
    }
}

impl Source {
    /// The files that `is_wanted` accepts.
    #[must_use]
    pub fn new(covered: &Covered, is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut functions: BTreeMap<&str, Vec<Function>> = BTreeMap::new();
        for facts in &covered.functions {
            functions.entry(&facts.file).or_default().push(Function::new(facts));
        }
        let wanted = covered
            .files
            .iter()
            .filter(|(path, _)| !path.starts_with(STANDARD_LIBRARY) && is_wanted(path));
        let files: Vec<SourceFile> = wanted
            .map(|(path, lines)| {
                let functions = functions.remove(path.as_str()).unwrap_or_default();
                SourceFile::new(path, lines, functions)
            })
            .collect();
        let mut totals = SourceTotals::default();
        files.iter().for_each(|file| totals.add(&file.totals));
        Self { totals, files }
    }
}

impl SourceTotals {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { lines, reached, proved, functions, entered } = other;
        self.lines += lines;
        self.reached += reached;
        self.proved += proved;
        self.functions += functions;
        self.entered += entered;
    }
}

impl SourceFile {
    fn new(path: &str, lines: &BTreeMap<u32, LineFacts>, mut functions: Vec<Function>) -> Self {
        functions.sort_by(|a, b| (a.line, &a.symbol).cmp(&(b.line, &b.symbol)));
        let count = |is_one: fn(&LineFacts) -> bool| lines.values().filter(|it| is_one(it)).count();
        let totals = SourceTotals {
            lines: lines.len(),
            reached: count(LineFacts::is_reached),
            proved: count(|line| line.is_proved),
            functions: functions.len(),
            entered: functions.iter().filter(|function| function.entered).count(),
        };
        let mut runs: Vec<LineRun> = Vec::new();
        for (&line, facts) in lines {
            let run = LineRun::new(line, facts);
            match runs.last_mut() {
                Some(last) if last.goes_on_with(&run) => last.last = line,
                _ => runs.push(run),
            }
        }
        Self { path: path.to_owned(), totals, lines: runs, functions }
    }

    /// Each line with its run.
    pub fn each_line(&self) -> impl Iterator<Item = (u32, &LineRun)> {
        self.lines.iter().flat_map(|run| (run.first..=run.last).map(move |line| (line, run)))
    }
}

impl LineRun {
    fn new(line: u32, facts: &LineFacts) -> Self {
        let state = match (facts.is_reached(), facts.is_proved) {
            (false, _) => Reach::Unreached,
            (true, false) => Reach::Derived,
            (true, true) => Reach::Proved,
        };
        Self { first: line, last: line, state, inputs: facts.inputs, input: facts.first }
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        self.last + 1 == next.first
            && (self.state, self.inputs, self.input) == (next.state, next.inputs, next.input)
    }
}

impl Function {
    fn new(facts: &FunctionFacts) -> Self {
        Self {
            name: facts.name.clone(),
            symbol: facts.symbol.clone(),
            line: facts.line,
            entered: facts.inputs > 0,
            inputs: facts.inputs,
            counters: facts.counters,
            hit: facts.hit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_equal_state_are_joined_and_counted() {
        let facts = |inputs, is_proved| LineFacts { inputs, first: Some(3), is_proved };
        let not = LineFacts::default();
        let lines =
            [(2, facts(5, true)), (3, facts(5, true)), (4, facts(5, false)), (5, not), (7, not)];
        let function = |name: &str, file: &str, line, inputs| FunctionFacts {
            symbol: format!("_{name}"),
            name: name.into(),
            file: file.into(),
            line,
            inputs,
            counters: 4,
            hit: usize::from(inputs > 0),
            ..FunctionFacts::default()
        };
        let covered = Covered {
            files: [
                ("/a.c".to_owned(), BTreeMap::from(lines)),
                ("/rustc/1/b.rs".to_owned(), BTreeMap::from(lines)),
                ("/c.c".to_owned(), BTreeMap::from([(1, not)])),
            ]
            .into(),
            functions: vec![function("g", "/a.c", 5, 0), function("f", "/a.c", 1, 5)],
        };
        let source = Source::new(&covered, |path| path != "/c.c");
        let [file] = &source.files[..] else { panic!("{source:?}") };
        let runs: Vec<_> = file.lines.iter().map(|run| (run.first, run.last, run.state)).collect();
        let expected = [(2, 3, Reach::Proved), (4, 4, Reach::Derived), (5, 5, Reach::Unreached)];
        assert_eq!(runs[..3], expected);
        assert_eq!(runs[3..], [(7, 7, Reach::Unreached)]);
        assert_eq!(file.each_line().map(|(line, _)| line).collect::<Vec<_>>(), [2, 3, 4, 5, 7]);
        let names: Vec<_> = file.functions.iter().map(|it| (&*it.name, it.entered)).collect();
        assert_eq!(names, [("f", true), ("g", false)]);
        let totals = SourceTotals { lines: 5, reached: 3, proved: 2, functions: 2, entered: 1 };
        assert_eq!((source.totals, file.totals), (totals, totals));
    }
}
