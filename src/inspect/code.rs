//! Code of a file that is mapped in a process: its blocks, and the function and line of each.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::elf::PF_X;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};

use crate::blocks::Blocks;
use crate::lines::{CoveredSource, DebugInfo, LineFacts, LineMap};
use ffuzz_engine::domain::Site;

/// Function that the loader calls before and after it loads code (its interface for debuggers).
const LOADED: &str = "_dl_debug_state";
/// Maximum size of a file.
const LARGEST: u64 = 2 << 30;

/// A program or a shared library.
#[derive(Debug)]
pub struct Code {
    pub path: PathBuf,
    /// File name without the path.
    pub name: String,
    /// Address of `_dl_debug_state`, if the file is the loader.
    pub notice: Option<u64>,
    segments: Vec<Segment>,
    /// Lowest address of the file.
    lowest: u64,
    pub blocks: Blocks,
    functions: Vec<(Range<u64>, String)>,
    source: OnceCell<DebugInfo>,
}

/// Blocks of a file to trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WantedBlocks {
    Nothing,
    /// The blocks with counters of `ffuzz-cc`, if there are any.
    Counters,
    Blocks,
}

/// A segment with code.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// Readable description of a block.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Spot {
    /// Offset from the beginning of the mapped file.
    pub offset: u64,
    /// Function name; `sub_OFFSET` if no symbol covers it, empty if unknown.
    pub function: String,
    /// Source file; empty without debug information, and `line` is 0.
    pub file: String,
    pub line: u32,
}

impl Code {
    /// Reads a file; None if it is not an ELF file for this machine.
    pub fn read(path: &Path, wanted: impl FnOnce(&Self) -> WantedBlocks) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        if !data.is_file() || data.len() > LARGEST {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = segments(&file);
        let lowest = file.segments().map(|segment| segment.address()).min()? & !0xfff;
        let mut code = Self {
            path: path.to_owned(),
            name: path.file_name()?.to_string_lossy().into_owned(),
            notice: notice(&file),
            segments,
            lowest,
            blocks: Blocks::default(),
            functions: Vec::new(),
            source: OnceCell::new(),
        };
        let wanted = wanted(&code);
        if wanted != WantedBlocks::Nothing {
            code.blocks = Blocks::read(&file, wanted == WantedBlocks::Blocks);
        }
        if code.size() > 0 {
            code.functions = functions(&file);
        }
        Some(code)
    }

    /// Finds the blocks by decoding the machine code, ignoring counters. None if the file is not ELF.
    #[must_use]
    pub fn decoded(path: &Path) -> Option<Self> {
        let mut code = Self::read(path, |_| WantedBlocks::Nothing)?;
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        code.blocks = Blocks::decoded(&file);
        code.functions = functions(&file);
        Some(code)
    }

    /// See [`Blocks::ranges`] and [`Blocks::refused`].
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Returns true if the file is a dynamic loader.
    #[must_use]
    pub fn is_loader(&self) -> bool {
        self.notice.is_some()
    }

    /// Returns true if the blocks are those of counters.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !self.blocks.counters.is_empty()
    }

    /// Number of blocks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.blocks.starts.len()
    }

    /// Number of the block's counter among those of the file.
    #[must_use]
    pub fn counter(&self, block: usize) -> Option<usize> {
        self.blocks.counters.get(block).map(|number| *number as usize)
    }

    /// Difference between mapped addresses and those of the file, for a mapping at `start` of this file `offset`.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            segment.offset & !0xfff <= offset && offset < segment.offset + segment.size
        };
        let segment = self.segments.iter().find(holds)?;
        let address = segment.address.wrapping_sub(segment.offset).wrapping_add(offset);
        Some(start.wrapping_sub(address))
    }

    /// Address of a block, as in the file.
    #[must_use]
    pub fn address(&self, block: usize) -> u64 {
        self.blocks.starts.get(block).copied().unwrap_or_default()
    }

    /// See [`Spot::offset`].
    #[must_use]
    pub fn offset(&self, block: usize) -> u64 {
        self.offset_of(self.address(block))
    }

    /// Offset of any address of the file, see [`Spot::offset`].
    #[must_use]
    pub fn offset_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.lowest)
    }

    /// Describes a block. The first call reads the debug information.
    #[must_use]
    pub fn spot(&self, block: usize) -> Spot {
        let address = self.address(block);
        let (file, line) = self.line(address).unwrap_or_default();
        Spot { offset: self.offset(block), function: self.function(address), file, line }
    }

    /// Names a key that stands for an address: by file and line, or without debug information by `NAME+0xOFFSET`.
    #[must_use]
    pub fn site(&self, domain: &str, key: u32, address: u64, what: &str) -> Site {
        let offset = || format!("{}+{:#x}", self.name, self.offset_of(address));
        let (file, line) = self.line(address).unwrap_or_else(|| (offset(), 0));
        Site {
            domain: domain.into(),
            key,
            count: 1,
            file: file.into(),
            line,
            column: 0,
            function: self.function(address).into(),
            what: what.into(),
        }
    }

    /// Lines that these blocks reach, with full file names.
    #[must_use]
    pub fn lines(&self, blocks: &BTreeSet<u32>) -> BTreeSet<(String, u32)> {
        if self.is_counted() {
            return self.counted_lines(blocks).unwrap_or_default();
        }
        let lines = |block: &u32| {
            let range = self.range(*block as usize);
            let rows = self.source().within(&range);
            let rows = rows.map(|(file, line)| (file.into_owned(), line));
            rows.collect::<Vec<_>>()
        };
        blocks.iter().flat_map(lines).collect()
    }

    /// Lines reached by counted blocks, whose counters also imply those of other blocks.
    fn counted_lines(&self, blocks: &BTreeSet<u32>) -> Option<BTreeSet<(String, u32)>> {
        let mut map = LineMap::read(&self.path, None).and_then(LineMap::with_lines).ok()?;
        let mut counters = vec![0; map.counters()];
        for number in blocks.iter().filter_map(|block| self.counter(*block as usize)) {
            *counters.get_mut(number)? = 1;
        }
        map.add(0, &counters).ok()?;
        let mut covered = CoveredSource::default();
        map.collect(0, &mut covered);
        let of_file = |(file, lines): (String, BTreeMap<u32, LineFacts>)| {
            let lines = lines.into_iter().filter(|(_, facts)| facts.is_reached());
            lines.map(move |(line, _)| (file.clone(), line))
        };
        Some(covered.files.into_iter().flat_map(of_file).collect())
    }

    /// Address range of a block, which ends where the next one or the end of its function comes first.
    fn range(&self, block: usize) -> Range<u64> {
        let start = self.address(block);
        let function = self.function_at(start).map_or(u64::MAX, |(range, _)| range.end);
        let next = self.blocks.starts.get(block + 1).copied().unwrap_or(u64::MAX);
        start..next.min(function)
    }

    fn line(&self, address: u64) -> Option<(String, u32)> {
        let (file, line) = self.source().within(&(address..address + 1)).last()?;
        Some((file.into_owned(), line))
    }

    fn source(&self) -> &DebugInfo {
        self.source.get_or_init(|| {
            let bytes = fs::read(&self.path).unwrap_or_default();
            object::File::parse(&*bytes).map(|file| DebugInfo::read(&file)).unwrap_or_default()
        })
    }

    fn function_at(&self, address: u64) -> Option<&(Range<u64>, String)> {
        let after = self.functions.partition_point(|(range, _)| range.start <= address);
        self.functions[..after].last().filter(|(range, _)| address < range.end)
    }

    /// See [`Spot::function`].
    #[must_use]
    pub fn function_of(&self, block: usize) -> String {
        self.function(self.address(block))
    }

    pub fn function(&self, address: u64) -> String {
        if let Some((_, name)) = self.function_at(address) {
            return name.clone();
        }
        let range = self.blocks.range_at(address);
        range.map_or_else(String::new, |range| {
            format!("sub_{:x}", range.start.wrapping_sub(self.lowest))
        })
    }
}

fn segments(file: &object::File<'_>) -> Vec<Segment> {
    file.segments()
        .filter_map(|segment| {
            let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { return None };
            let (offset, size) = segment.file_range();
            (p_flags.0 & PF_X.0 != 0).then_some(Segment {
                offset,
                address: segment.address(),
                size,
            })
        })
        .collect()
}

fn notice(file: &object::File<'_>) -> Option<u64> {
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(LOADED))?;
    Some(symbol.address()).filter(|address| *address > 0)
}

/// Functions from the symbol table, or from the exports of a stripped file.
fn functions(file: &object::File<'_>) -> Vec<(Range<u64>, String)> {
    let named = |symbol: object::Symbol<'_, '_>| {
        let range = symbol.address()..symbol.address().checked_add(symbol.size())?;
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        let is_code = symbol.kind() == SymbolKind::Text && !range.is_empty();
        is_code.then(|| (range, clean(name)))
    };
    let mut found: Vec<_> =
        file.symbols().chain(file.dynamic_symbols()).filter_map(named).collect();
    // Sorted, so that the first name of a function is kept.
    found.sort_unstable_by(|(a, one), (b, other)| (a.start, one).cmp(&(b.start, other)));
    found.dedup_by_key(|(range, _)| range.start);
    found
}

/// Removes control characters, because names come from the target.
fn clean(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).collect()
}
