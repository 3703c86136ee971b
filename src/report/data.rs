//! The facts of a report: `--json` writes them, and all other forms are derived from them.

use std::collections::BTreeMap;

use serde::Serialize;

use ffuzz_engine::coverage::frontier::Callers;
use ffuzz_inspect::lines::{CoveredSource, FunctionFacts, LineFacts};

/// Path of Rust's standard library in debug information; its files exist on no other machine.
const STANDARD_LIBRARY: &str = "/rustc/";

/// Version of the JSON's structure. Adding a field does not change it.
pub const VERSION: u32 = 1;

/// Facts about one or more campaigns with one target.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    pub version: u32,
    pub tool: String,
    /// Time of the report in UTC: `2026-11-29T07:46:00Z`.
    pub made: String,
    /// The most important facts in one sentence.
    pub verdict: String,
    /// Notes about missing or misleading numbers.
    pub warnings: Vec<Warning>,
    pub totals: Totals,
    pub campaigns: Vec<Campaign>,
    /// Absent if no line of the target is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Places with the most unreached code behind them; the totals have their number.
    pub stuck: Vec<Stuck>,
    pub never_entered: Vec<NeverEntered>,
    pub domains: Vec<Domain>,
    pub bugs: Vec<Bug>,
    /// Stages, by number of finds.
    pub stages: Vec<Stage>,
    pub corpus: Corpus,
}

/// A note about something that is missing or may mislead.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// Identifier for programs, for example `no-lines`.
    pub code: &'static str,
    pub text: String,
}

/// Sums over all campaigns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    pub runs: u64,
    pub seconds: u64,
    /// Edges that the queue reaches, and all edges of the target.
    pub edges: [u64; 2],
    /// Reached lines, and all lines with code.
    pub lines: [u64; 2],
    /// Entered functions, and all functions.
    pub functions: [u64; 2],
    pub bugs: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub stuck: u64,
    /// Seconds from the last seed with a new edge to the last statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_edge: Option<u64>,
    /// Probability that a million more runs find a new edge, from the finds of the last tenth of the runs. An
    /// estimate, because the runs of a fuzzer are not independent (arXiv 2507.17093).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// A campaign, with the folder of its fuzzer.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Campaign {
    pub out: String,
    pub instances: Vec<String>,
    pub is_running: bool,
    /// Version of the fuzzer.
    pub fuzzer: String,
    /// Command line, quoted for a shell.
    pub command: String,
    pub target: String,
    pub environment: Vec<String>,
    pub runs: u64,
    pub seconds: u64,
    pub edges: u64,
    pub corpus: u64,
    pub crashes: u64,
    pub hangs: u64,
    /// Percentage of edges that are the same in each run of an input.
    pub stability: f64,
    pub series: Series,
}

/// Statistics over time; all lists except `domains` have the same length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    pub seconds: Vec<u64>,
    pub edges: Vec<u64>,
    pub runs: Vec<u64>,
    pub corpus: Vec<u64>,
    pub speed: Vec<u64>,
    /// Seconds and best value of each domain at each change.
    pub domains: BTreeMap<String, Vec<(u64, u32)>>,
}

/// A position in the source; unknown parts are empty or 0.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

/// A place that inputs reach, but from which none continues in some direction.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stuck {
    /// Id of the place, equal in every report of one build.
    pub id: String,
    pub at: Place,
    /// First unreached line behind the place; 0 if unknown.
    pub to: u32,
    /// Outcome that never occurs there.
    pub outcome: String,
    pub behind: Behind,
    /// Number of copies of this place that the compiler generated.
    pub copies: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Input in `queue/` that comes closest, or the smallest one that reaches the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<InputPart>,
    /// Number of inputs that reach the place.
    pub inputs: u64,
    /// Surrounding source: number and text of each line.
    pub excerpt: Vec<(u32, String)>,
}

/// Amount of unreached code behind a place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Behind {
    pub counters: u64,
    /// Number of functions that no input enters, at most 64.
    pub functions: u64,
    pub lines: u64,
}

/// The comparison that decides at a place.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Kind of the comparison, for example `i32 ==`.
    pub kind: String,
    /// Both operands at their closest.
    pub closest: String,
    /// First and last byte of each part of the input that changes the operands.
    pub bytes: Vec<(usize, usize)>,
    /// Number of runs that solvers made to pass it.
    pub attempts: u64,
}

/// Bytes of an input.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InputPart {
    /// Offset of the bytes, and size of the whole input (`size`).
    pub from: usize,
    pub size: usize,
    pub hex: String,
}

/// A domain and its best keys.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Domain {
    pub name: String,
    pub reducer: String,
    /// Number of keys with a value.
    pub count: usize,
    /// The most notable keys.
    pub keys: Vec<Key>,
}

/// A key of a domain.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Key {
    pub key: u32,
    pub value: u32,
    /// Source position of the key; empty if unknown.
    pub place: String,
    /// Input in `queue/` with this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Seconds from the start to that input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<u64>,
}

/// A bug, or a crash without triage.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bug {
    pub id: String,
    pub title: String,
    pub class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Number of its crash files.
    pub files: u32,
    /// Seconds and runs from the start to the first of these files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<[u64; 2]>,
    /// Path of the smallest input; `bytes` has its beginning.
    pub input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<InputPart>,
    pub stacks: Stacks,
    /// Path of a script that reproduces the crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// The stacks of a report.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stacks {
    pub crash: Vec<String>,
    pub allocation: Vec<String>,
    pub free: Vec<String>,
    /// Other stacks, for example of another thread.
    pub others: Vec<Vec<String>>,
}

/// Results of a stage of the search, or of a mutator.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stage {
    pub name: String,
    pub finds: u64,
    pub runs: u64,
}

/// The inputs of the queues.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Corpus {
    pub files: usize,
    pub bytes: u64,
    pub smallest: u64,
    pub median: u64,
    pub largest: u64,
    /// Inputs with a new edge; `waypoints` counts those that improve a domain.
    pub edges: usize,
    pub waypoints: usize,
    /// Inputs from other fuzzers.
    pub imported: usize,
}

/// The source of a target with its coverage.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Source {
    pub totals: SourceTotals,
    /// Source files, by path.
    pub files: Vec<SourceFile>,
}

/// Sums over lines and functions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceTotals {
    /// Lines that the debug information attributes to code.
    pub lines: usize,
    /// Lines that an input reached.
    pub reached: usize,
    /// Reached lines shown by a counter in their own block; the others follow from neighbouring counters.
    pub proved: usize,
    pub functions: usize,
    pub entered: usize,
}

/// A file of the source.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceFile {
    pub path: String,
    pub totals: SourceTotals,
    /// Ranges of lines with equal facts.
    pub lines: Vec<LineRun>,
    /// Functions, by first line.
    pub functions: Vec<Function>,
}

/// Lines from `first` to `last`, all with code.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineRun {
    pub first: u32,
    pub last: u32,
    pub state: Reach,
    /// Number of inputs that reached each line.
    pub inputs: u64,
    /// Number of the first of these inputs, in the order of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
}

/// Coverage of a line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    Unreached,
    /// Reached according to counters of other blocks: an optimised program may have moved the line's code there.
    Derived,
    /// Reached according to a counter of its own block.
    Proved,
}

/// A function, or a copy of it: of a template, or of a file included several times.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Function {
    pub name: String,
    /// Symbol of the function.
    pub symbol: String,
    pub line: u32,
    pub entered: bool,
    /// Number of inputs that entered it.
    pub inputs: u64,
    /// Number of its counters; `hit` has the number of those hit.
    pub counters: usize,
    pub hit: usize,
}

/// A function that no input has entered.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NeverEntered {
    pub function: String,
    /// Source file of its first counter; empty, and `line` 0, without debug information.
    pub file: String,
    pub line: u32,
    /// Number of its counters.
    pub counters: u32,
    pub reason: Reason,
}

/// Possible callers of a function that no input has entered.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Reached code calls it.
    Caller,
    /// Its address is used.
    Pointer,
    /// Reached code does not refer to it: another harness may call it.
    #[default]
    Harness,
}

impl Reason {
    /// Short description.
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
    /// Collects the files that `is_wanted` accepts.
    #[must_use]
    pub fn new(covered: &CoveredSource, is_wanted: impl Fn(&str) -> bool) -> Self {
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

    /// All lines, each with its range.
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

    /// Compares the schema page; `FFUZZ_TEST_WRITE_DOCS=1` writes it.
    #[test]
    fn the_schema_in_the_docs_is_that_of_the_types() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Report)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
        if std::env::var_os("FFUZZ_TEST_WRITE_DOCS").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), schema);
    }

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
        let covered = CoveredSource {
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
