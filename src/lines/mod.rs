//! Which lines of the source a run has reached: from the counters of a program to the lines that its
//! debug information names.
//!
//! The compiler counts only the blocks from which the others follow. `flow` finds those others in the
//! machine code, so that a line is neither taken for reached nor left out because it has no counter.

mod dwarf;
mod flow;
mod program;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use dwarf::Rows;
use flow::Stretch;
use program::Program;

/// How many inputs have reached each line of each file, 0 included.
pub type Reached = BTreeMap<String, BTreeMap<u32, u64>>;

/// What keeps a program's lines from being known.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no ELF program: {reason}", path.display())]
    Format { path: PathBuf, reason: String },
    #[error("{} has no table of its counters", path.display())]
    NoTable { path: PathBuf },
    #[error("{} has no debug information about lines", path.display())]
    NoLines { path: PathBuf },
    #[error("{} has {found} counters, and the process that was started from it {expected}",
            path.display())]
    Changed { path: PathBuf, found: usize, expected: usize },
}

impl LinesError {
    /// One line: what the user can do.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check its name and permissions",
            Self::Format { .. } | Self::NoTable { .. } => "build it with ffuzz-cc",
            Self::NoLines { .. } => "build it with -g (not -gz, not stripped)",
            Self::Changed { .. } => "do not build it anew meanwhile",
        }
    }
}

/// The lines of one program or shared library, and how many inputs have reached each.
#[derive(Debug)]
pub struct LineMap {
    path: PathBuf,
    counters: usize,
    functions: Vec<Function>,
    rows: Rows,
}

#[derive(Debug)]
struct Function {
    /// All of its counters lie in between.
    counters: Range<usize>,
    stretches: Vec<(Stretch, u64)>,
}

impl LineMap {
    pub fn read(path: &Path) -> Result<Self, LinesError> {
        let path = path.to_owned();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(LinesError::Read { path, source }),
        };
        let file = match object::File::parse(&*bytes) {
            Ok(file) => file,
            Err(error) => return Err(LinesError::Format { path, reason: error.to_string() }),
        };
        let Some(program) = Program::read(&file) else { return Err(LinesError::NoTable { path }) };
        let rows = Rows::read(&file);
        if rows.is_empty() {
            return Err(LinesError::NoLines { path });
        }
        let functions = program.functions.iter().map(|function| {
            let numbers = function.counters.iter().map(|(_, number)| *number);
            let counters = numbers.clone().min().unwrap_or(0)..numbers.max().map_or(0, |n| n + 1);
            let stretches = flow::stretches(function, program.is_x86).into_iter();
            Function { counters, stretches: stretches.map(|stretch| (stretch, 0)).collect() }
        });
        Ok(Self { path, counters: program.pcs.len(), functions: functions.collect(), rows })
    }

    /// Another input has been run: `edges` are the program's counters behind it.
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

    /// Adds its lines; one that belongs to several stretches counts as the most frequent of them.
    pub fn collect(&self, reached: &mut Reached) {
        for (stretch, count) in self.functions.iter().flat_map(|function| &function.stretches) {
            for (file, line) in self.rows.within(&stretch.range) {
                if !reached.contains_key(file) {
                    reached.insert(file.to_owned(), BTreeMap::new());
                }
                if let Some(lines) = reached.get_mut(file) {
                    let known = lines.entry(line).or_default();
                    *known = *count.max(known);
                }
            }
        }
    }
}
