//! The part of an ELF file that describes its counters: their addresses, and the functions that
//! hold them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use crate::blocks;
use object::elf::{self, RelocationType};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};

/// Section with an address and a flag for each counter, in counter order.
const TABLE: &str = "__sancov_pcs";
/// Relocations that store an address.
const ADDRESSES: [RelocationType; 4] =
    [elf::R_X86_64_64, elf::R_X86_64_RELATIVE, elf::R_AARCH64_ABS64, elf::R_AARCH64_RELATIVE];

/// Library functions that do not return.
const LAST: &str = " exit _exit _Exit quick_exit abort __assert_fail __assert_perror_fail __cxa_throw __cxa_rethrow \
    __cxa_bad_cast __cxa_throw_bad_array_new_length _Unwind_Resume longjmp _longjmp siglongjmp __longjmp_chk \
    __stack_chk_fail __chk_fail __fortify_fail err errx verr verrx pthread_exit _ZSt9terminatev ";
/// Maximum number of instructions from a stub's entry to its jump: some processors need a mark there.
const STUB: usize = 3;

/// The parts of a program that concern its counters.
#[derive(Debug)]
pub(super) struct ElfProgram<'a> {
    /// Address of each counter, by its number.
    pub(super) pcs: Vec<u64>,
    /// Functions, by address.
    pub(super) functions: Vec<Function<'a>>,
    pub(super) is_x86: bool,
    pub(super) last: Last,
}

/// See `llvm-passes/ffuzz-log.hpp`.
const LOG_FLAG: &str = "_ffuzz_log_on";

/// Callees that do not return: functions of the file, stubs of those in other files, and the slots that hold their
/// addresses.
#[derive(Debug, Default)]
pub(super) struct Last {
    entries: HashSet<u64>,
    slots: HashSet<u64>,
    /// The byte that leads a function to its version that logs; 0 if there is none.
    log_flag: u64,
}

impl Last {
    /// Returns true if the call does not return.
    pub(super) fn ends(&self, call: &Instruction) -> bool {
        match call.flow_control() {
            FlowControl::Call => self.entries.contains(&call.near_branch_target()),
            FlowControl::IndirectCall => self.is_slot(call),
            _ => false,
        }
    }

    /// Returns true if the instruction reads the flag of the comparison log: the next conditional branch leaves the
    /// function's own code.
    pub(super) fn reads_log_flag(&self, instruction: &Instruction) -> bool {
        self.log_flag != 0
            && instruction.is_ip_rel_memory_operand()
            && instruction.ip_rel_memory_address() == self.log_flag
    }

    fn is_slot(&self, instruction: &Instruction) -> bool {
        instruction.is_ip_rel_memory_operand()
            && self.slots.contains(&instruction.ip_rel_memory_address())
    }

    fn read(file: &object::File<'_>, functions: &[Function<'_>]) -> Self {
        let name_of =
            |symbol: &object::Symbol<'_, '_>| symbol.name().unwrap_or_default().to_owned();
        let names: HashMap<_, _> =
            file.dynamic_symbols().map(|symbol| (symbol.index(), name_of(&symbol))).collect();
        let is_last = |name: &str| {
            LAST.contains(&format!(" {name} "))
                || name.starts_with("__asan_report_")
                || name.starts_with("_ZSt") && name.contains("__throw_")
                || name.starts_with("__ubsan_handle_") && name.ends_with("_abort")
        };
        let mut last = Self::default();
        for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
            if let RelocationTarget::Symbol(index) = relocation.target()
                && names.get(&index).is_some_and(|name| is_last(name))
            {
                last.slots.insert(address);
            }
        }
        let linked = file.symbols().filter(|symbol| is_last(&name_of(symbol)));
        last.entries.extend(linked.map(|symbol| symbol.address()).filter(|address| *address > 0));
        let flag = file.symbols().find(|symbol| symbol.name() == Ok(LOG_FLAG));
        last.log_flag = flag.map_or(0, |symbol| symbol.address());
        let without = functions.iter().filter(|function| function.counters.is_empty());
        last.entries.extend(without.map(|function| function.range.start));
        let stubs =
            file.sections().filter(|it| it.name().is_ok_and(|name| name.starts_with(".plt")));
        for section in stubs {
            last.add_stubs(section.data().unwrap_or_default(), section.address());
        }
        last
    }

    fn add_stubs(&mut self, code: &[u8], start: u64) {
        let mut before = Vec::new();
        for instruction in decoder(code, start).iter() {
            before.push(instruction.ip());
            if instruction.flow_control() == FlowControl::IndirectBranch {
                let first = before.len().saturating_sub(STUB);
                if self.is_slot(&instruction) {
                    self.entries.extend(&before[first..]);
                }
                before.clear();
            } else if instruction.flow_control() == FlowControl::UnconditionalBranch {
                before.clear();
            }
        }
    }
}

/// Decoder of the code that starts at this address.
pub fn decoder(code: &[u8], start: u64) -> Decoder<'_> {
    Decoder::with_ip(64, code, start, DecoderOptions::NONE)
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) range: Range<u64>,
    pub(super) code: &'a [u8],
    /// Address and number of its counters, by address. Empty if its first block ends with a call that does not
    /// return.
    pub(super) counters: Vec<(u64, usize)>,
}

impl Function<'_> {
    /// Returns true if the function ends only by calls that do not return.
    fn never_returns(&self) -> bool {
        let mut ends_by_call = false;
        for instruction in decoder(self.code, self.range.start).iter() {
            match instruction.flow_control() {
                FlowControl::Return | FlowControl::IndirectBranch => return false,
                FlowControl::UnconditionalBranch
                    if !self.range.contains(&instruction.near_branch_target()) =>
                {
                    return false;
                }
                FlowControl::Call | FlowControl::IndirectCall => ends_by_call = true,
                FlowControl::Exception | FlowControl::Interrupt => {}
                _ if instruction.is_invalid() => return false,
                _ => ends_by_call = false,
            }
        }
        ends_by_call
    }
}

impl<'a> ElfProgram<'a> {
    /// Reads the file; None if it has no table, or one for another kind of processor.
    pub(super) fn read(file: &object::File<'a>) -> Option<Self> {
        if !file.is_64() || !file.is_little_endian() {
            return None;
        }
        let pcs = table(file)?;
        let mut counters: Vec<(u64, usize)> =
            pcs.iter().enumerate().map(|(index, pc)| (*pc, index)).collect();
        counters.sort_unstable();
        Some(Self { pcs, ..Self::of(file, ranges(file), &counters) })
    }

    /// Describes an x86-64 file by given counters: address and number of each, ascending.
    pub(super) fn counted(file: &object::File<'a>, counters: &[(u64, usize)]) -> Option<Self> {
        let is_x86 = file.is_64() && file.architecture() == object::Architecture::X86_64;
        let count = counters.iter().map(|(_, number)| number + 1).max().unwrap_or(0);
        let mut pcs = vec![0; count];
        counters.iter().for_each(|(address, number)| pcs[*number] = *address);
        is_x86.then(|| Self { pcs, ..Self::of(file, blocks::ranges(file), counters) })
    }

    fn of(file: &object::File<'a>, ranges: Vec<Range<u64>>, counters: &[(u64, usize)]) -> Self {
        let is_x86 = file.architecture() == object::Architecture::X86_64;
        let functions = functions(file, ranges, counters, is_x86);
        let last = if is_x86 { Last::read(file, &functions) } else { Last::default() };
        Self { pcs: Vec::new(), functions, is_x86, last }
    }
}

/// Addresses of a file's counters. In a position-independent program the table is filled at load time.
pub fn table(file: &object::File<'_>) -> Option<Vec<u64>> {
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

/// The functions that symbols name, ascending and disjoint.
fn ranges(file: &object::File<'_>) -> Vec<Range<u64>> {
    let is_code =
        |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && symbol.size() > 0;
    let mut ranges: Vec<Range<u64>> = file
        .symbols()
        .filter(is_code)
        .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
        .collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    // A second name of a function, or of a part of it.
    let mut end = 0;
    ranges.retain(|range| {
        let is_new = range.start >= end;
        end = end.max(range.end);
        is_new
    });
    ranges
}

fn functions<'a>(
    file: &object::File<'a>,
    ranges: Vec<Range<u64>>,
    counters: &[(u64, usize)],
    is_x86: bool,
) -> Vec<Function<'a>> {
    let function = |range: Range<u64>| {
        let first = counters.partition_point(|(pc, _)| *pc < range.start);
        let last = counters.partition_point(|(pc, _)| *pc < range.end);
        let counters = counters[first..last].to_vec();
        let function = Function { code: code(file, &range)?, range, counters };
        let is_of_use = !function.counters.is_empty() || is_x86 && function.never_returns();
        is_of_use.then_some(function)
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
