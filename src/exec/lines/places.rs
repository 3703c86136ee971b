//! Where each counter of a program stands: function, file and line.

use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use super::{LinesError, Source, with_program};

/// The place of a counter. What is unknown is empty or 0.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// The counters of one file.
#[derive(Debug)]
pub struct Places {
    /// By number of the counter.
    pcs: Vec<u64>,
    /// Start, end, name; in the order of their starts.
    functions: Vec<(u64, u64, String)>,
    source: Source,
}

impl Places {
    /// A file without symbols or lines has counters without names.
    pub fn read(path: &Path) -> Result<Self, LinesError> {
        with_program(path, |file, program| {
            let mut functions: Vec<(u64, u64, String)> = file
                .symbols()
                .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
                .filter_map(|symbol| {
                    let end = symbol.address().saturating_add(symbol.size());
                    Some((symbol.address(), end, clean(symbol.name().ok()?)))
                })
                .collect();
            functions.sort_unstable();
            Ok(Self { pcs: program.pcs, functions, source: Source::read(file) })
        })
    }

    /// The place of a counter, by its number within the file.
    #[must_use]
    pub fn of(&self, counter: usize) -> Place {
        let Some(pc) = self.pcs.get(counter).copied() else { return Place::default() };
        let after = self.functions.partition_point(|(start, _, _)| *start <= pc);
        let function = self.functions[..after].last().filter(|(_, end, _)| pc < *end);
        // Code that the compiler has added has no line: that of the next one in the function is near.
        let end = function.map_or(pc + 1, |(_, end, _)| *end);
        let row = self.source.within(&(pc..end)).next();
        let (file, line) = row.map_or_else(Default::default, |(file, line)| (clean(&file), line));
        Place { function: function.map(|it| it.2.clone()).unwrap_or_default(), file, line }
    }
}

/// Names go to terminals.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}
