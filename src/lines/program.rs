//! The part of an ELF file that says where its counters are: their addresses, and the functions that
//! hold them.

use std::collections::HashMap;
use std::ops::Range;

use object::elf::{self, RelocationType};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};

/// Pairs of an address and a flag, one for each counter, in their order.
const TABLE: &str = "__sancov_pcs";
/// Relocations that put an address into place.
const ADDRESSES: [RelocationType; 4] =
    [elf::R_X86_64_64, elf::R_X86_64_RELATIVE, elf::R_AARCH64_ABS64, elf::R_AARCH64_RELATIVE];

/// A program as far as its counters go.
#[derive(Debug)]
pub(super) struct Program<'a> {
    /// By the number of the counter.
    pub(super) pcs: Vec<u64>,
    /// Those with a counter, in the order of their addresses.
    pub(super) functions: Vec<Function<'a>>,
    pub(super) is_x86: bool,
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) range: Range<u64>,
    pub(super) code: &'a [u8],
    /// Address and number of its counters, in the order of the addresses.
    pub(super) counters: Vec<(u64, usize)>,
}

impl<'a> Program<'a> {
    /// None if there is no table, or one for another kind of processor.
    pub(super) fn read(file: &object::File<'a>) -> Option<Self> {
        if !file.is_64() || !file.is_little_endian() {
            return None;
        }
        let pcs = table(file)?;
        let functions = functions(file, &pcs);
        let is_x86 = file.architecture() == object::Architecture::X86_64;
        Some(Self { pcs, functions, is_x86 })
    }
}

/// In a program that may lie anywhere the table is filled when it is loaded.
fn table(file: &object::File<'_>) -> Option<Vec<u64>> {
    let section = file.section_by_name(TABLE)?;
    let (data, start) = (section.data().ok()?, section.address());
    let (words, _) = data.as_chunks::<8>();
    let mut pcs: Vec<u64> = words.iter().step_by(2).map(|word| u64::from_le_bytes(*word)).collect();
    let symbols: HashMap<_, _> =
        file.dynamic_symbols().map(|symbol| (symbol.index(), symbol.address())).collect();
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let place = address.wrapping_sub(start);
        let pc = usize::try_from(place / 16).ok().and_then(|index| pcs.get_mut(index));
        let Some(pc) = pc.filter(|_| place.is_multiple_of(16) && ADDRESSES.contains(&r_type))
        else {
            continue;
        };
        let base = match relocation.target() {
            RelocationTarget::Symbol(index) => symbols.get(&index).copied().unwrap_or_default(),
            _ => 0,
        };
        *pc = base.wrapping_add_signed(relocation.addend());
    }
    Some(pcs)
}

fn functions<'a>(file: &object::File<'a>, pcs: &[u64]) -> Vec<Function<'a>> {
    let mut counters: Vec<(u64, usize)> =
        pcs.iter().enumerate().map(|(index, pc)| (*pc, index)).collect();
    counters.sort_unstable();
    let is_code =
        |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && symbol.size() > 0;
    let mut ranges: Vec<Range<u64>> = file
        .symbols()
        .filter(is_code)
        .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
        .collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    // Two names of one function, or a name for a part of it.
    let mut end = 0;
    ranges.retain(|range| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
    let function = |range: Range<u64>| {
        let first = counters.partition_point(|(pc, _)| *pc < range.start);
        let last = counters.partition_point(|(pc, _)| *pc < range.end);
        let counters = counters[first..last].to_vec();
        let code = if counters.is_empty() { None } else { code(file, &range) };
        Some(Function { code: code?, range, counters })
    };
    ranges.into_iter().filter_map(function).collect()
}

fn code<'a>(file: &object::File<'a>, range: &Range<u64>) -> Option<&'a [u8]> {
    let holds = |section: &object::Section<'a, '_>| {
        let start = section.address();
        start <= range.start && range.end <= start.saturating_add(section.size())
    };
    let section = file.sections().find(holds)?;
    section.data_range(range.start, range.end - range.start).ok()?
}
