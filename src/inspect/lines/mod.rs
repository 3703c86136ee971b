//! Source lines that a run reached, from the program's counters and its debug information.
//!
//! The compiler counts only the blocks that imply the others. `flow` finds the implied blocks in the machine code, so
//! that lines without a counter are neither reported as reached nor skipped.
//!
//! `Executor::modules` gives the file of each part of the edge map. [`LineMap`] reads the counters of runs and
//! returns the number of runs that reached each line. The file's content is untrusted.

mod flow;
mod map;
mod places;
mod program;
mod source;

pub use map::{CoveredSource, FunctionFacts, LineFacts, LineMap};
pub use places::CounterPlaces;
pub use places::Places;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use ffuzz_engine::coverage::flow::FunctionFlow;
use flow::Stretch;
use program::ElfProgram;
pub use program::{decoder, table};
pub use source::written;
pub use source::{DebugInfo, Frame};

/// Reason why the lines of a program are unknown.
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

/// Stretches of each function. A function without a counter was reached if a stretch that calls it was.
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
    // Uncounted functions may call one another; one round per function is enough.
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

/// Control flow of a file's functions, from x86-64 machine code only. `counted` has the counters of a file without a
/// table, `counters` their range in the edge map.
pub fn functions_of(
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

/// Counters and comparisons of a file that no compiler instrumented.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Address and number of each counter, ascending.
    pub counters: Vec<(u64, usize)>,
    /// Address and site of each comparison, ascending.
    pub compared: Vec<(u64, u32)>,
}

/// Reads a file with its counters: `counted`, or else the table that a compiler wrote.
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
