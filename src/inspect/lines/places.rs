//! Source position of each counter of a program: function, file and line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, SymbolKind};

use super::{DebugInfo, FileCounters, LinesError, with_file};
use ffuzz_engine::domain::Site;
use ffuzz_engine::executor::Module;

/// The counters of one file.
#[derive(Debug)]
pub struct Places {
    /// Address of each counter, by its number.
    pcs: Vec<u64>,
    /// Start, end and name of each function, by start.
    functions: Vec<(u64, u64, String)>,
    source: DebugInfo,
}

impl Places {
    /// Reads a file. Without symbols or lines its counters have no names. `counted` has the counters of a file
    /// without a table.
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
            Ok(Self { pcs: program.pcs, functions, source: DebugInfo::read(file) })
        })
    }

    /// Position of a counter, by its number in the file. Unknown parts are empty or 0; None if there is no such
    /// counter.
    #[must_use]
    pub fn of(&self, counter: usize) -> Option<Site> {
        let pc = self.pcs.get(counter).copied()?;
        let after = self.functions.partition_point(|(start, _, _)| *start <= pc);
        let function = self.functions[..after].last().filter(|(_, end, _)| pc < *end);
        // Code that the compiler added has no line; the next line in the function is close.
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
pub struct CounterPlaces {
    /// Maps a file that cannot be read to None.
    files: HashMap<PathBuf, Option<Places>>,
}

impl CounterPlaces {
    /// Position of a counter of the edge map. `counted` has the counters of a file without a table.
    pub fn of(
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

/// Removes control characters, because names are shown in terminals.
fn clean(text: &str) -> String {
    text.replace(char::is_control, "?")
}
