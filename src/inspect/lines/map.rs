//! The lines and functions of one file of a target, with the inputs that reached them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, SymbolKind};

use super::flow::Stretch;
use super::source::LineRow;
use super::{DebugInfo, FileCounters, LinesError, stretches, with_file, written};

/// Coverage of inputs in one or more files of a target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CoveredSource {
    /// Lines to which the debug information attributes code, by source file and line.
    pub files: BTreeMap<String, BTreeMap<u32, LineFacts>>,
    /// In address order; copies of templates and of included files are separate entries.
    pub functions: Vec<FunctionFacts>,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LineFacts {
    /// Number of inputs that reached it, and the number of the first one (`first`).
    pub inputs: u64,
    pub first: Option<usize>,
    /// True if a counter of the line's own block shows that. Otherwise it follows from counters of neighbouring
    /// blocks, and an optimised program may have moved the line's code there.
    pub is_proved: bool,
}

/// What is known of a function.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FunctionFacts {
    /// Symbol of the function, empty in a stripped file; `name` has its form in the source.
    pub symbol: String,
    pub name: String,
    /// Source file and line of its beginning; empty and 0 without debug information.
    pub file: String,
    pub line: u32,
    /// Range of the edge map that contains its counters.
    pub places: Range<usize>,
    /// Number of its counters; `hit` has the number of those hit.
    pub counters: usize,
    pub hit: usize,
    /// Number of inputs that entered it, and the number of the first one (`first`).
    pub inputs: u64,
    pub first: Option<usize>,
}

/// File, line and column.
type SourcePlace = (String, u32, u32);

/// The lines of one program or shared library, with the number of inputs that reached each.
#[derive(Debug)]
pub struct LineMap {
    path: PathBuf,
    /// Number of counters that a process of it reports.
    counters: CounterCount,
    functions: Vec<FunctionLines>,
    source: DebugInfo,
}

#[derive(Clone, Copy, Debug)]
enum CounterCount {
    /// Size of the file's own table.
    Table(usize),
    /// Lower bound: more counters may follow the last one that has a block.
    AtLeast(usize),
}

#[derive(Debug)]
struct FunctionLines {
    start: u64,
    symbol: String,
    /// Range that contains all of its counters.
    between: Range<usize>,
    /// Its counters, each with true if it was hit.
    counters: Vec<(usize, bool)>,
    stretches: Vec<(Stretch, LineFacts)>,
}

impl LineMap {
    /// Reads debug information and code of a file. `counted` has the counters of a file without a table.
    pub fn read(path: &Path, counted: Option<FileCounters>) -> Result<Self, LinesError> {
        let is_counted = counted.is_some();
        with_file(path, counted, |file, program| {
            let is_code = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text;
            let named = |symbol: object::Symbol<'_, '_>| {
                Some((symbol.address(), symbol.name().ok()?.replace(char::is_control, "?")))
            };
            let names: BTreeMap<u64, String> =
                file.symbols().filter(is_code).filter_map(named).collect();
            let function = |(function, stretches): (_, Vec<Stretch>)| {
                let function: &super::program::Function<'_> = function;
                let start = function.range.start;
                let numbers = stretches.iter().flat_map(|stretch| stretch.counters.iter().copied());
                let between =
                    numbers.clone().min().unwrap_or(0)..numbers.max().map_or(0, |n| n + 1);
                FunctionLines {
                    start,
                    symbol: names.get(&start).cloned().unwrap_or_default(),
                    between,
                    counters: function
                        .counters
                        .iter()
                        .map(|(_, number)| (*number, false))
                        .collect(),
                    stretches: stretches.into_iter().map(|it| (it, LineFacts::default())).collect(),
                }
            };
            let functions = program.functions.iter().zip(stretches(&program)).map(function);
            let functions = functions.collect();
            let counters = match is_counted {
                true => CounterCount::AtLeast(program.pcs.len()),
                false => CounterCount::Table(program.pcs.len()),
            };
            Ok(Self { path: path.to_owned(), counters, functions, source: DebugInfo::read(file) })
        })
    }

    /// Refuses a file without debug information about lines.
    pub fn with_lines(self) -> Result<Self, LinesError> {
        match self.source.is_empty() {
            true => Err(LinesError::NoLines { path: self.path }),
            false => Ok(self),
        }
    }

    /// Number of the file's counters.
    #[must_use]
    pub fn counters(&self) -> usize {
        match self.counters {
            CounterCount::Table(count) | CounterCount::AtLeast(count) => count,
        }
    }

    /// Adds a run of input `number`; `edges` are the file's counters after it.
    pub fn add(&mut self, number: usize, edges: &[u8]) -> Result<(), LinesError> {
        let (expected, is_other) = match self.counters {
            CounterCount::Table(count) => (count, edges.len() != count),
            CounterCount::AtLeast(count) => (count, edges.len() < count),
        };
        if is_other {
            let (found, expected) = (expected, edges.len());
            return Err(LinesError::Changed { path: self.path.clone(), found, expected });
        }
        for function in &mut self.functions {
            if edges[function.between.clone()].iter().all(|count| *count == 0) {
                continue;
            }
            for (counter, is_hit) in &mut function.counters {
                *is_hit |= edges[*counter] > 0;
            }
            for (stretch, facts) in &mut function.stretches {
                if stretch.counters.iter().any(|counter| edges[*counter] > 0) {
                    facts.inputs += 1;
                    facts.first.get_or_insert(number);
                    facts.is_proved |= stretch.counter.is_some_and(|counter| edges[counter] > 0);
                }
            }
        }
        Ok(())
    }

    /// Adds the file's lines and functions to `covered`. `first` is the place of its first counter in the edge map. A
    /// line with several stretches has the count of the most frequent one.
    pub fn collect(&self, first: usize, covered: &mut CoveredSource) {
        let inlined = self.inlined();
        for function in &self.functions {
            let own = function.facts();
            let elsewhere = inlined.get(&function.symbol).filter(|_| !own.is_reached());
            let facts = elsewhere.copied().unwrap_or(own);
            let function_facts = self.function(function, first, facts);
            if elsewhere.is_some() {
                // Only the start of an uncalled copy counts: its own lines cannot run.
                covered.add(&function_facts.file, function_facts.line, facts);
            } else {
                for (stretch, facts) in &function.stretches {
                    for (file, line) in self.source.within(&stretch.range) {
                        covered.add(&file, line, *facts);
                    }
                }
            }
            covered.functions.push(function_facts);
        }
    }

    /// Adds the lines that one run reaches to `lines`; `edges` are the file's counters after it.
    pub fn lines_of_run(&self, edges: &[u8], lines: &mut BTreeSet<(String, u32)>) {
        let is_hit = |counter: &usize| edges.get(*counter).is_some_and(|count| *count > 0);
        for (stretch, _) in self.functions.iter().flat_map(|function| &function.stretches) {
            if stretch.counters.iter().any(is_hit) {
                let rows = self.source.within(&stretch.range);
                lines.extend(rows.map(|(file, line)| (file.into_owned(), line)));
            }
        }
    }

    /// Counters that show whether a line is reached. `file` is the end of its path.
    #[must_use]
    pub fn counters_of_line(&self, file: &Path, line: u32) -> BTreeSet<usize> {
        let is_it = |(path, number): &(Cow<'_, str>, u32)| {
            *number == line && Path::new(&**path).ends_with(file)
        };
        let mut counters = BTreeSet::new();
        for (stretch, _) in self.functions.iter().flat_map(|function| &function.stretches) {
            if self.source.within(&stretch.range).any(|row| is_it(&row)) {
                counters.extend(&stretch.counters);
            }
        }
        counters
    }

    /// Counters that no input hit, although the same block was hit in another copy of the code (of a template, or of
    /// an inlined function). Copies are blocks of different functions at one place in the source. A macro has several
    /// blocks at a place; they are matched by their order.
    #[must_use]
    pub fn reached_elsewhere(&self) -> HashSet<usize> {
        let mut places: HashMap<SourcePlace, BTreeMap<u64, Vec<(usize, bool)>>> = HashMap::new();
        for function in &self.functions {
            for (stretch, facts) in &function.stretches {
                let Some(counter) = stretch.counter else { continue };
                let place = self.source.rows(&stretch.range).find(|row| row.column > 0);
                if let Some(LineRow { file, line, column, .. }) = place {
                    let copies = places.entry((file.into_owned(), line, column)).or_default();
                    copies.entry(function.start).or_default().push((counter, facts.is_proved));
                }
            }
        }
        let mut found = HashSet::new();
        for copies in places.values().filter(|copies| copies.len() > 1) {
            let reached: HashSet<(usize, usize)> = copies
                .values()
                .flat_map(|blocks| {
                    blocks.iter().enumerate().map(|(at, it)| (blocks.len(), at, it.1))
                })
                .filter_map(|(count, at, is_reached)| is_reached.then_some((count, at)))
                .collect();
            // A copy that was reached completely leaves nothing open in the others.
            let is_whole = |blocks: &Vec<(usize, bool)>| blocks.iter().all(|(_, it)| *it);
            let has_whole = copies.values().any(is_whole);
            for blocks in copies.values() {
                let shut = blocks.iter().enumerate().filter(|(_, (_, is_reached))| !is_reached);
                let shut =
                    shut.filter(|(at, _)| has_whole || reached.contains(&(blocks.len(), *at)));
                found.extend(shut.map(|(_, (counter, _))| *counter));
            }
        }
        found
    }

    /// Adds the lines of the blocks of these counters to `lines`.
    pub fn lines_of(
        &self,
        counters: impl Iterator<Item = usize>,
        lines: &mut BTreeSet<(String, u32)>,
    ) {
        let wanted: HashSet<usize> = counters.collect();
        for function in &self.functions {
            for (stretch, _) in &function.stretches {
                if stretch.counter.is_some_and(|counter| wanted.contains(&counter)) {
                    let rows = self.source.within(&stretch.range);
                    lines.extend(rows.map(|(file, line)| (file.into_owned(), line)));
                }
            }
        }
    }

    /// Facts of functions that were reached where they are inlined, by symbol. An optimised program often also has a
    /// separate copy that nothing calls.
    fn inlined(&self) -> HashMap<String, LineFacts> {
        let mut inlined: HashMap<String, LineFacts> = HashMap::new();
        for (stretch, facts) in self.functions.iter().flat_map(|function| &function.stretches) {
            if facts.is_reached() {
                for row in self.source.rows(&stretch.range) {
                    for symbol in self.source.inlined(row.address) {
                        let facts = LineFacts { is_proved: false, ..*facts };
                        inlined.entry(symbol).or_default().join(facts);
                    }
                }
            }
        }
        inlined
    }

    fn function(&self, function: &FunctionLines, first: usize, all: LineFacts) -> FunctionFacts {
        let row = self.source.within(&(function.start..function.start + 1)).next();
        let (file, line) = row.map_or((String::new(), 0), |(file, line)| (file.into(), line));
        FunctionFacts {
            symbol: function.symbol.clone(),
            name: written(&function.symbol),
            file,
            line,
            places: first + function.between.start..first + function.between.end,
            counters: function.counters.len(),
            hit: function.counters.iter().filter(|(_, is_hit)| *is_hit).count(),
            inputs: all.inputs,
            first: all.first,
        }
    }
}

impl FunctionLines {
    /// Joins the facts of all its code.
    fn facts(&self) -> LineFacts {
        let mut all = LineFacts::default();
        self.stretches.iter().for_each(|(_, facts)| all.join(*facts));
        all
    }
}

impl CoveredSource {
    fn add(&mut self, file: &str, line: u32, facts: LineFacts) {
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), BTreeMap::new());
        }
        if let Some(lines) = self.files.get_mut(file) {
            lines.entry(line).or_default().join(facts);
        }
    }
}

impl LineFacts {
    /// Adds the facts of another copy or part of the line.
    pub fn join(&mut self, other: Self) {
        self.inputs = self.inputs.max(other.inputs);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.is_proved |= other.is_proved;
    }

    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.inputs > 0
    }
}
