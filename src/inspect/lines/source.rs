//! Places in the source, from the debug information of a program (DWARF).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};

type DwarfReader = EndianArcSlice<LittleEndian>;

/// Path of Rust's standard library in debug information; results there are of no interest.
const STANDARD_LIBRARY: &str = "/rustc/";
/// Length of the end of a Rust name: `::h` and a hash.
const HASH: usize = 19;

/// The debug information of a program or library. Unreadable parts count as missing.
#[derive(Default)]
pub struct DebugInfo {
    context: Option<Context<DwarfReader>>,
}

/// A row of the line table.
pub struct LineRow<'a> {
    pub address: u64,
    pub file: Cow<'a, str>,
    pub line: u32,
    pub column: u32,
}

/// A place in the source.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl DebugInfo {
    pub fn read(file: &object::File<'_>) -> Self {
        let load = |id: SectionId| -> Result<DwarfReader, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(DwarfReader::new(Arc::from(data), LittleEndian))
        };
        let has_lines = file.section_by_name(SectionId::DebugLine.name()).is_some();
        let dwarf = has_lines.then(|| Dwarf::load(load).ok()).flatten();
        Self { context: dwarf.and_then(|dwarf| Context::from_dwarf(dwarf).ok()) }
    }

    pub fn is_empty(&self) -> bool {
        self.context.is_none()
    }

    /// Files and lines of a range of code, in code order.
    pub fn within(&self, range: &Range<u64>) -> impl Iterator<Item = (Cow<'_, str>, u32)> {
        self.rows(range).map(|row| (row.file, row.line))
    }

    /// Like [`Self::within`], with columns and the address of each row's code.
    pub fn rows(&self, range: &Range<u64>) -> impl Iterator<Item = LineRow<'_>> {
        let context = self.context.as_ref();
        let rows = context
            .and_then(|context| context.find_location_range(range.start, range.end).ok())
            .into_iter()
            .flatten();
        rows.filter_map(|(address, _, location)| {
            let line = location.line.filter(|line| *line > 0)?;
            let column = location.column.unwrap_or(0);
            Some(LineRow { address, file: plain(location.file?), line, column })
        })
    }

    /// Symbols of the functions inlined at this address.
    pub fn inlined(&self, address: u64) -> Vec<String> {
        let frames = self.context.as_ref().map(|context| context.find_frames(address));
        let Some(mut frames) = frames.and_then(|frames| frames.skip_all_loads().ok()) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            names.push(name.unwrap_or_default().into_owned());
        }
        // The last one is the enclosing function.
        names.pop();
        names
    }

    /// Source position of an instruction: the innermost function outside the standard library, inlined or not. None
    /// if nothing is known.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        let frames = self.context.as_ref()?.find_frames(address);
        let mut frames = frames.skip_all_loads().ok()?;
        let mut innermost = None;
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file).unwrap_or_default();
            let place = || {
                let function = frame.function.as_ref();
                let name = function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
                Frame {
                    function: without_hash(&name.unwrap_or_default()).to_owned(),
                    file: plain(file).into_owned(),
                    line: location.and_then(|location| location.line).unwrap_or(0),
                    column: location.and_then(|location| location.column).unwrap_or(0),
                }
            };
            if !file.is_empty() && !file.starts_with(STANDARD_LIBRARY) {
                return Some(place());
            }
            innermost.get_or_insert_with(place);
        }
        innermost
    }
}

impl fmt::Debug for DebugInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugInfo").field("is_empty", &self.is_empty()).finish()
    }
}

/// Name of a function as written in the source, from its symbol.
#[must_use]
pub fn written(symbol: &str) -> String {
    without_hash(&addr2line::demangle_auto(symbol.into(), None)).to_owned()
}

/// Removes the hash from the name of a Rust function.
fn without_hash(name: &str) -> &str {
    let Some(split) = name.len().checked_sub(HASH) else { return name };
    let is_hash = |end: &str| {
        let hash = end.strip_prefix("::h");
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match name.get(split..) {
        Some(end) if is_hash(end) => &name[..split],
        _ => name,
    }
}

/// Removes `.` and `..` from a path.
fn plain(path: &str) -> Cow<'_, str> {
    if !path.contains("/.") {
        return Cow::Borrowed(path);
    }
    let mut plain = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Cow::Owned(plain.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain() {
        assert_eq!(plain("/a/./b/../c.c"), "/a/c.c");
        assert_eq!(plain("/a/b.c"), "/a/b.c");
    }

    #[test]
    fn names_of_rust_lose_their_hash() {
        assert_eq!(without_hash("h::check::h0c47d132e04e36c9"), "h::check");
        assert_eq!(without_hash("h::check::hello"), "h::check::hello");
        assert_eq!(written("_ZN6parser5parse17hd04a4e5149fb8fedE"), "parser::parse");
        assert_eq!((&*written("_Z5parsePKc"), &*written("main")), ("parse(char const*)", "main"));
        assert_eq!((without_hash("a"), without_hash("é::h0c47d132e04e36c9")), ("a", "é"));
    }

    #[test]
    fn a_function_is_found_in_its_own_program() {
        use object::{ObjectSymbol, SymbolKind};

        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let name = "a_function_is_found_in_its_own_program";
        let mut symbols = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        let symbol = symbols.find(|symbol| symbol.name().is_ok_and(|it| it.contains(name)));
        let start = symbol.unwrap().address();
        let source = DebugInfo::read(&file);
        let frame = source.frame(start).unwrap();
        assert!(frame.file.ends_with("source.rs") && frame.line > 0, "{frame:?}");
        assert!(frame.function.contains(name), "{frame:?}");
        let rows: Vec<_> = source.within(&(start..start + 1)).collect();
        assert_eq!(rows, [(Cow::Borrowed(&*frame.file), frame.line)]);
        assert_eq!(
            (DebugInfo::default().is_empty(), DebugInfo::default().frame(start)),
            (true, None)
        );
    }
}
