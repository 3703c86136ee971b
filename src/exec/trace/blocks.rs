//! Where the basic blocks of a file's machine code begin.
//!
//! In a program of `ffuzz-cc` these are the places of its counters. In any other one the code is decoded:
//! each range of `.eh_frame` (DWARF, section 6.4, as the System V ABI for x86-64 has it) from its first
//! instruction to its last. A range is used only if the decoding ends exactly at its end and every branch
//! to it, from wherever, meets an instruction: a breakpoint among data would change the program.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{FlowControl, OpKind};
use object::{Architecture, Object, ObjectSection, ObjectSegment, SegmentFlags, elf};

use crate::lines::{decoder, table};

/// The blocks of a file.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Where they begin, ascending; addresses as in the file.
    pub(super) starts: Vec<u64>,
    /// By address: the number of the counter, in a file of `ffuzz-cc`.
    pub(super) counters: Vec<u32>,
    /// Functions as far as `.eh_frame` knows them.
    pub(super) ranges: Vec<Range<u64>>,
}

impl Blocks {
    /// `decode`: also those of a file without counters.
    pub(super) fn read(file: &object::File<'_>, decode: bool) -> Self {
        let is_ours = file.architecture() == Architecture::X86_64 && file.is_64();
        if !is_ours {
            return Self::default();
        }
        match table(file) {
            Some(pcs) => Self::counted(file, &pcs),
            None if decode => Self::decoded(file),
            None => Self::default(),
        }
    }

    /// The compiler drops blocks whose entry in the table then is no address of code.
    fn counted(file: &object::File<'_>, pcs: &[u64]) -> Self {
        let code: Vec<Range<u64>> = executable(file).collect();
        let mut places: Vec<(u64, u32)> = pcs
            .iter()
            .zip(0..)
            .filter(|(pc, _)| code.iter().any(|range| range.contains(pc)))
            .map(|(pc, number)| (*pc, number))
            .collect();
        places.sort_unstable();
        places.dedup_by_key(|(pc, _)| *pc);
        let (starts, counters) = places.into_iter().unzip();
        Self { starts, counters, ranges: Vec::new() }
    }

    fn decoded(file: &object::File<'_>) -> Self {
        let mut swept: Vec<Sweep> = ranges(file)
            .into_iter()
            .filter_map(|range| Sweep::new(code(file, &range)?, range))
            .collect();
        swept.sort_unstable_by_key(|sweep| sweep.range.start);
        swept.dedup_by(|next, sweep| next.range.start < sweep.range.end);
        let mut targets: Vec<u64> =
            swept.iter().flat_map(|sweep| sweep.targets.iter().copied()).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut blocks = Self::default();
        for mut sweep in swept {
            let first = targets.partition_point(|target| *target < sweep.range.start);
            let last = targets.partition_point(|target| *target < sweep.range.end);
            if targets[first..last].iter().all(|target| sweep.knows(*target)) {
                sweep.starts.extend(&targets[first..last]);
                sweep.starts.sort_unstable();
                sweep.starts.dedup();
                blocks.starts.append(&mut sweep.starts);
                blocks.ranges.push(sweep.range);
            }
        }
        blocks
    }
}

/// The segments with code.
fn executable<'a>(file: &'a object::File<'_>) -> impl Iterator<Item = Range<u64>> + 'a {
    file.segments().filter_map(|segment| {
        let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { return None };
        let range = segment.address()..segment.address().saturating_add(segment.size());
        (p_flags.0 & elf::PF_X.0 != 0).then_some(range)
    })
}

/// One range, decoded from its beginning to its end.
struct Sweep {
    range: Range<u64>,
    instructions: Vec<u64>,
    starts: Vec<u64>,
    /// Of branches and calls, also to other ranges.
    targets: Vec<u64>,
}

impl Sweep {
    /// None if it is not code alone.
    fn new(code: &[u8], range: Range<u64>) -> Option<Self> {
        let (mut instructions, mut targets) = (Vec::new(), Vec::new());
        let mut starts = vec![range.start];
        let mut decoder = decoder(code, range.start);
        let mut is_start = false;
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return None;
            }
            let padding = matches!(instruction.mnemonic(), iced_x86::Mnemonic::Nop)
                || instruction.flow_control() == FlowControl::Interrupt;
            if std::mem::take(&mut is_start) {
                // Between two functions, or parts of one; what jumps there says so.
                if padding { is_start = true } else { starts.push(instruction.ip()) }
            }
            instructions.push(instruction.ip());
            let is_near = matches!(
                instruction.op0_kind(),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
            );
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Interrupt | FlowControl::IndirectCall => {}
                FlowControl::Call => targets.push(instruction.near_branch_target()),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                    if is_near {
                        targets.push(instruction.near_branch_target());
                    }
                    is_start = true;
                }
                FlowControl::XbeginXabortXend => {}
                FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {
                    is_start = true;
                }
            }
        }
        let is_whole = decoder.ip() == range.end;
        is_whole.then_some(Self { range, instructions, starts, targets })
    }

    fn knows(&self, address: u64) -> bool {
        self.instructions.binary_search(&address).is_ok()
    }
}

/// Those of `.eh_frame`, without the stubs that the linker made.
fn ranges(file: &object::File<'_>) -> Vec<Range<u64>> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let data = section.data().unwrap_or_default();
    let frame = EhFrame::new(data, LittleEndian);
    let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_eh_frame_hdr(address(".eh_frame_hdr"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut found = Vec::new();
    let mut entries = frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
            && fde.len() > 0
        {
            found.push(fde.initial_address()..fde.initial_address().saturating_add(fde.len()));
        }
    }
    found
}

fn code<'a>(file: &object::File<'a>, range: &Range<u64>) -> Option<&'a [u8]> {
    let section = file.sections().find(|section| {
        let start = section.address();
        start <= range.start && range.end <= start.saturating_add(section.size())
    })?;
    let is_stub = section.name().is_ok_and(|name| name.starts_with(".plt"));
    let data = || section.data_range(range.start, range.end - range.start).ok()?;
    if is_stub { None } else { data() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(code: &[u8]) -> Option<Vec<u64>> {
        Sweep::new(code, 16..16 + code.len() as u64).map(|sweep| sweep.starts)
    }

    #[test]
    fn blocks_begin_after_branches_but_not_with_padding() {
        // test edi, edi; je 23; nop; ret; nop (padding); 23: ret
        let code = [0x85, 0xff, 0x74, 0x03, 0x90, 0xc3, 0x90, 0xc3];
        assert_eq!(starts(&code), Some(vec![16, 21, 23]));
    }

    #[test]
    fn a_range_that_is_not_code_alone_is_refused() {
        // The last instruction is longer than the range; 06 is none in 64 bits.
        assert_eq!(starts(&[0x90, 0xe8, 0x00]), None);
        assert_eq!(starts(&[0x06, 0x90]), None);
    }

    #[test]
    fn a_branch_into_an_instruction_makes_the_range_useless() {
        // jmp 19, which lies in the middle of mov eax, 0x90909090.
        let code = [0xeb, 0x01, 0xb8, 0x90, 0x90, 0x90, 0x90];
        let sweep = Sweep::new(&code, 16..23).unwrap();
        assert!(sweep.targets.iter().any(|target| !sweep.knows(*target)));
    }
}
