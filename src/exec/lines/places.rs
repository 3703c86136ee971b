//! Where each counter of a program stands: function, file and line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, SymbolKind};

use super::{FileCounters, LinesError, Source, with_file};
use ffuzz_engine::domain::Site;
use ffuzz_engine::executor::Module;

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
    /// A file without symbols or lines has counters without names. `counted`: of a file without a table of them.
    pub fn read(path: &Path, counted: Option<FileCounters>) -> Result<Self, LinesError> {
        with_file(path, counted, |file, program| {
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

    /// The place of a counter, by its number within the file. What is unknown is empty or 0; None if there is no such
    /// counter.
    #[must_use]
    pub fn of(&self, counter: usize) -> Option<Site> {
        let pc = self.pcs.get(counter).copied()?;
        let after = self.functions.partition_point(|(start, _, _)| *start <= pc);
        let function = self.functions[..after].last().filter(|(_, end, _)| pc < *end);
        // Code that the compiler has added has no line: that of the next one in the function is near.
        let end = function.map_or(pc + 1, |(_, end, _)| *end);
        let row = self.source.within(&(pc..end)).next();
        let (file, line) = row.map_or_else(Default::default, |(file, line)| (clean(&file), line));
        let name = function.map(|(_, _, name)| name.as_str()).unwrap_or_default();
        let place = Site::of_key("edges", counter as u32, "");
        Some(Site { file: file.into(), line, function: name.into(), ..place })
    }
}

/// The counters of all files of a target.
#[derive(Debug, Default)]
pub(crate) struct CounterPlaces {
    /// None of a file that cannot be read.
    files: HashMap<PathBuf, Option<Places>>,
}

impl CounterPlaces {
    /// The place of a counter of the edge map. `counted`: of a file without a table of its counters.
    pub(crate) fn of(
        &mut self,
        counter: u32,
        modules: &[Module],
        counted: impl FnOnce(&Path) -> Option<FileCounters>,
    ) -> Option<Site> {
        let counter = counter as usize;
        let module = modules.iter().find(|module| module.counters.contains(&counter))?;
        let read = || Places::read(&module.file, counted(&module.file)).ok();
        let places = self.files.entry(module.file.clone()).or_insert_with(read);
        places.as_ref()?.of(counter - module.counters.start)
    }
}

/// Names go to terminals.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}
