//! Which lines of the source a run has reached: from the counters of a program to the lines that its
//! debug information names.
//!
//! The compiler counts only the blocks from which the others follow. `flow` finds those others in the
//! machine code, so that lines without a counter are neither reported as reached nor skipped.

mod flow;
mod places;
mod program;
mod source;

pub(super) use places::CounterPlaces;
pub use places::Places;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_engine::coverage::flow::FunctionFlow;
use flow::Stretch;
use program::ElfProgram;
pub(super) use program::{decoder, table};
pub(super) use source::{Frame, Source, written};

/// How many inputs have reached each line of each file, 0 included.
pub type Reached = BTreeMap<String, BTreeMap<u32, u64>>;

/// Why the lines of a program are unknown.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LinesError {
    #[error("cannot read {}: {source}", path.display())]
    #[diagnostic(help("check its name and permissions"))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no ELF program: {reason}", path.display())]
    #[diagnostic(help("build it with ffuzz-cc"))]
    Format { path: PathBuf, reason: String },
    #[error("{} has no table of its counters", path.display())]
    #[diagnostic(help("build it with ffuzz-cc"))]
    NoTable { path: PathBuf },
    #[error("{} has no debug information about lines", path.display())]
    #[diagnostic(help("build it with -g (not -gz, not stripped)"))]
    NoLines { path: PathBuf },
    #[error("{} has {found} counters, and the process that was started from it {expected}",
            path.display())]
    #[diagnostic(help("do not rebuild it during the run"))]
    Changed { path: PathBuf, found: usize, expected: usize },
}

/// Those of each function. One without a counter was reached if a stretch that calls it was.
fn stretches(program: &ElfProgram<'_>) -> Vec<Vec<Stretch>> {
    let of = |function| flow::stretches(function, program.is_x86, &program.last);
    let mut all: Vec<Vec<Stretch>> = program.functions.iter().map(of).collect();
    let without = program.functions.iter().enumerate().filter(|(_, it)| it.counters.is_empty());
    let without: HashMap<u64, usize> = without.map(|(at, it)| (it.range.start, at)).collect();
    if without.is_empty() {
        return all;
    }
    let mut callers: Vec<((usize, usize), usize)> = Vec::new();
    for (caller, function) in program.functions.iter().enumerate() {
        for (place, target) in flow::calls(function) {
            let stretch = all[caller].iter().position(|stretch| stretch.range.contains(&place));
            let called = without.get(&target).filter(|called| **called != caller);
            callers
                .extend(stretch.zip(called).map(|(stretch, called)| ((caller, stretch), *called)));
        }
    }
    // One may call another; a round for each is enough.
    for _ in 0..without.len() {
        let mut changed = false;
        for ((caller, stretch), called) in &callers {
            let known = all[*called][0].counters.len();
            let mut counters = all[*caller][*stretch].counters.clone();
            counters.extend(&all[*called][0].counters);
            counters.sort_unstable();
            counters.dedup();
            changed |= counters.len() != known;
            all[*called][0].counters = counters;
        }
        if !changed {
            break;
        }
    }
    all
}

/// The control flow of a file's functions by its machine code, as far as that is that of x86-64. `counted` has the
/// counters of a file without a table of them; `counters` are the places of its counters in the edge map.
pub(super) fn functions_of(
    file: &object::File<'_>,
    counted: Option<&FileCounters>,
    counters: &Range<usize>,
) -> Vec<FunctionFlow> {
    let program = match counted {
        Some(counted) => ElfProgram::counted(file, &counted.counters),
        None => ElfProgram::read(file),
    };
    let Some(program) = program.filter(|program| program.is_x86) else { return Vec::new() };
    let functions = program.functions.iter().filter(|function| !function.counters.is_empty());
    let is_known = |function: &&program::Function<'_>| {
        function.counters.iter().all(|(_, number)| *number < counters.len())
    };
    let compared = counted.map(|counted| &*counted.compared).unwrap_or_default();
    let flow = |function| flow::function_flow(function, &program.last, counters, compared);
    functions.filter(is_known).map(flow).collect()
}

/// The lines of one program or shared library, and how many inputs have reached each.
#[derive(Debug)]
pub struct LineMap {
    path: PathBuf,
    counters: usize,
    functions: Vec<FunctionLines>,
    source: Source,
}

#[derive(Debug)]
struct FunctionLines {
    /// All of its counters lie in between.
    counters: Range<usize>,
    stretches: Vec<(Stretch, u64)>,
}

/// What is known of the counters of a file that no compiler has given any.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Address and number of each, ascending.
    pub counters: Vec<(u64, usize)>,
    /// Address and site of each comparison, ascending.
    pub compared: Vec<(u64, u32)>,
}

/// Reads a file and its table of counters; without `counted`, that of a compiler.
fn with_file<T>(
    path: &Path,
    counted: Option<FileCounters>,
    read: impl FnOnce(&object::File<'_>, ElfProgram<'_>) -> Result<T, LinesError>,
) -> Result<T, LinesError> {
    let bytes =
        std::fs::read(path).map_err(|source| LinesError::Read { path: path.to_owned(), source })?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| LinesError::Format { path: path.to_owned(), reason: error.to_string() })?;
    let program = match &counted {
        Some(counted) => ElfProgram::counted(&file, &counted.counters),
        None => ElfProgram::read(&file),
    };
    match program {
        Some(program) => read(&file, program),
        None => Err(LinesError::NoTable { path: path.to_owned() }),
    }
}

impl LineMap {
    pub fn read(path: &Path) -> Result<Self, LinesError> {
        with_file(path, None, |file, program| {
            let source = Source::read(file);
            if source.is_empty() {
                return Err(LinesError::NoLines { path: path.to_owned() });
            }
            let functions = stretches(&program).into_iter().map(|stretches| {
                let numbers = stretches.iter().flat_map(|stretch| stretch.counters.iter().copied());
                let counters =
                    numbers.clone().min().unwrap_or(0)..numbers.max().map_or(0, |n| n + 1);
                FunctionLines {
                    counters,
                    stretches: stretches.into_iter().map(|it| (it, 0)).collect(),
                }
            });
            Ok(Self {
                path: path.to_owned(),
                counters: program.pcs.len(),
                functions: functions.collect(),
                source,
            })
        })
    }

    /// Number of its counters.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.counters
    }

    /// Adds a run: `edges` are the program's counters after it.
    pub fn add(&mut self, edges: &[u8]) -> Result<(), LinesError> {
        if edges.len() != self.counters {
            let (found, expected) = (self.counters, edges.len());
            return Err(LinesError::Changed { path: self.path.clone(), found, expected });
        }
        for function in &mut self.functions {
            if edges[function.counters.clone()].iter().all(|count| *count == 0) {
                continue;
            }
            for (stretch, count) in &mut function.stretches {
                *count += u64::from(stretch.counters.iter().any(|number| edges[*number] > 0));
            }
        }
        Ok(())
    }

    /// Adds its lines; a line of several stretches has the count of the most frequent one.
    pub fn collect(&self, reached: &mut Reached) {
        for (stretch, count) in self.functions.iter().flat_map(|function| &function.stretches) {
            for (file, line) in self.source.within(&stretch.range) {
                if !reached.contains_key(&*file) {
                    reached.insert(file.clone().into_owned(), BTreeMap::new());
                }
                if let Some(lines) = reached.get_mut(&*file) {
                    let known = lines.entry(line).or_default();
                    *known = *count.max(known);
                }
            }
        }
    }
}
