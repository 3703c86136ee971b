//! The facts of a report: what `--json` writes, and what every other form is made from.

use std::collections::BTreeMap;

use serde::Serialize;

use ffuzz_engine::coverage::frontier::Callers;
use ffuzz_exec::lines::{Covered, FunctionFacts, LineFacts};

/// The standard library of Rust, in debug information: its files are on no other machine.
const STANDARD_LIBRARY: &str = "/rustc/";

/// The version of the JSON's shape. A field may be added under the same number.
pub const VERSION: u32 = 1;

/// All that is known of one or more campaigns with one target.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    pub version: u32,
    pub tool: String,
    /// When it was made, in UTC: `2026-11-29T07:46:00Z`.
    pub made: String,
    /// The most important facts in one sentence.
    pub verdict: String,
    /// What a reader should know about the numbers.
    pub warnings: Vec<Warning>,
    pub totals: Totals,
    pub campaigns: Vec<Campaign>,
    /// Missing if no line of the target is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The places behind which most lies; how many there are stands in the totals.
    pub stuck: Vec<Stuck>,
    pub never_entered: Vec<NeverEntered>,
    pub domains: Vec<Domain>,
    pub bugs: Vec<Bug>,
    /// By their finds.
    pub stages: Vec<Stage>,
    pub corpus: Corpus,
}

/// Something that is missing or might mislead.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// For programs, for example `no-lines`.
    pub code: &'static str,
    pub text: String,
}

/// Sums over all campaigns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    pub runs: u64,
    pub seconds: u64,
    /// Edges that the queue reaches, and all of the target.
    pub edges: [u64; 2],
    /// Reached, and all with code.
    pub lines: [u64; 2],
    /// Entered, and all.
    pub functions: [u64; 2],
    pub bugs: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub stuck: u64,
    /// Seconds since the last seed with a new edge, when the statistics were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_edge: Option<u64>,
    /// Probability that a million runs more find a new edge, from the finds of the last tenth of the runs. An estimate:
    /// the runs of a fuzzer are not independent of each other (arXiv 2507.17093).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// A folder of a fuzzer.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Campaign {
    pub out: String,
    pub instances: Vec<String>,
    pub is_running: bool,
    /// The fuzzer's version.
    pub fuzzer: String,
    /// As a shell would read them back.
    pub command: String,
    pub target: String,
    pub environment: Vec<String>,
    pub runs: u64,
    pub seconds: u64,
    pub edges: u64,
    pub corpus: u64,
    pub crashes: u64,
    pub hangs: u64,
    /// Percent of the edges that are the same in each run of an input.
    pub stability: f64,
    pub series: Series,
}

/// The course of a campaign; the lists of all but the domains have one length.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    pub seconds: Vec<u64>,
    pub edges: Vec<u64>,
    pub runs: Vec<u64>,
    pub corpus: Vec<u64>,
    pub speed: Vec<u64>,
    /// Seconds and best value of each domain whenever it moved.
    pub domains: BTreeMap<String, Vec<(u64, u32)>>,
}

/// A place in the source; what is unknown is empty or 0.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

/// A place that inputs reach, and from which none goes on in some way.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stuck {
    /// The same in every report of one build.
    pub id: String,
    pub at: Place,
    /// The first line behind it that no input reaches; 0 if it is unknown.
    pub to: u32,
    /// What never happens there.
    pub outcome: String,
    pub behind: Behind,
    /// How often the compiler has made this place of the source.
    pub copies: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The input in `queue/` that comes closest, or the smallest one that comes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<InputPart>,
    /// How many inputs come there.
    pub inputs: u64,
    /// The source around it: number and text of each line.
    pub excerpt: Vec<(u32, String)>,
}

/// How much no input reaches behind a place.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Behind {
    pub counters: u64,
    /// Functions that no input enters, at most 64.
    pub functions: u64,
    pub lines: u64,
}

/// The comparison that decides at a place.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// For example `i32 ==`.
    pub kind: String,
    /// Both operands where they were closest to each other.
    pub closest: String,
    /// First and last of each part of the input that moves them.
    pub bytes: Vec<(usize, usize)>,
    /// Runs that solvers have made to pass it.
    pub attempts: u64,
}

/// Bytes of an input.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InputPart {
    /// Where they begin, and how long the whole input is.
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
    /// How many keys have a value.
    pub count: usize,
    /// The most remarkable ones.
    pub keys: Vec<Key>,
}

/// A key of a domain.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Key {
    pub key: u32,
    pub value: u32,
    /// What it stands for; empty if the target does not say.
    pub place: String,
    /// The input in `queue/` that has the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Seconds from the start to that input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<u64>,
}

/// A bug, or a crash that nobody has triaged.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bug {
    pub id: String,
    pub title: String,
    pub class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How many crash files have it.
    pub files: u32,
    /// Seconds and runs from the start to the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<[u64; 2]>,
    /// The smallest input, its path and its beginning.
    pub input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<InputPart>,
    pub stacks: Stacks,
    /// A script that repeats the crash.
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
    /// What is neither, for example of another thread.
    pub others: Vec<Vec<String>>,
}

/// What a stage of the search, or a mutator, has brought.
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
    /// Those with a new edge, and those that improve a domain.
    pub edges: usize,
    pub waypoints: usize,
    /// Those that came from other fuzzers.
    pub imported: usize,
}

/// The source of a target, and what of it was reached.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Source {
    pub totals: SourceTotals,
    /// By their paths.
    pub files: Vec<SourceFile>,
}

/// Sums over lines and functions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

    /// The schema is a page; `FFUZZ_TEST_WRITE_DOCS=1` writes it.
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
