//! Where the basic blocks of a file's machine code begin.
//!
//! In a program of `ffuzz-cc` a block begins at each counter. Other code is decoded: each range of
//! `.eh_frame` (DWARF, section 6.4, in the form of the System V ABI for x86-64) from its first instruction
//! to its last. A range is used only if decoding ends exactly at its end and every direct branch to and from
//! it meets the start of an instruction: a breakpoint within data would change the program. Tables of
//! addresses (jump tables, landing pads of exceptions, pointers) only mark instruction starts that decoding
//! has found.
//!
//! Decoding takes 10 to 20 ms per megabyte of code.

mod sweep;
mod tables;

use std::fmt;
use std::ops::{AddAssign, Range};

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, Pointer, UnwindSection};
use object::{Architecture, Object, ObjectKind, ObjectSection, ObjectSegment, SegmentFlags, elf};

use crate::lines::table;
use sweep::Sweep;

/// Sections that the linker creates, or whose code runs before and after everything else.
const NOT_OURS: [&str; 2] = [".init", ".fini"];

/// The blocks of a file.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Start addresses as in the file, ascending.
    pub starts: Vec<u64>,
    /// Number of each block's counter, in the order of `starts`; empty without counters of `ffuzz-cc`.
    pub counters: Vec<u32>,
    /// Functions listed in `.eh_frame`, without the refused ones.
    pub ranges: Vec<Range<u64>>,
    /// For each range: true if everything that leads into it is known.
    pub is_closed: Vec<bool>,
    /// Addresses with another predecessor than the instruction before, ascending.
    pub entries: Vec<u64>,
    /// The `entries` that calls, returns, tables or pointers may lead to, not only branches; ascending.
    pub indirect: Vec<u64>,
    /// Refused code with the reason.
    pub refused: Vec<(Range<u64>, CodeRefusal)>,
}

/// Why the code of a range is not used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CodeRefusal {
    /// There is no instruction at this address.
    Invalid(u64),
    /// The last instruction ends here, which is not the end of the range.
    Overrun(u64),
    /// A branch from it or to it leads here, into the middle of an instruction.
    Branch(u64),
}

impl fmt::Display for CodeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(at) => write!(f, "no instruction at {at:#x}"),
            Self::Overrun(at) => write!(f, "its last instruction ends at {at:#x}"),
            Self::Branch(at) => {
                write!(f, "a branch leads to {at:#x}, into the middle of an instruction")
            }
        }
    }
}

impl Blocks {
    /// Reads the blocks of a file; `decode`: also of a file without counters.
    pub fn read(file: &object::File<'_>, decode: bool) -> Self {
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

    /// Blocks at the counters. The compiler drops some blocks; their table entry is then no code address.
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
        Self { starts, counters, ..Self::default() }
    }

    /// Blocks found by decoding the machine code, also in a file with counters.
    #[must_use]
    pub fn decoded(file: &object::File<'_>) -> Self {
        let mut blocks = Self::default();
        if file.architecture() != Architecture::X86_64 || !file.is_64() {
            return blocks;
        }
        let mut frames = frames(file);
        frames.sort_unstable_by_key(|frame| frame.range.start);
        frames.dedup_by(|next, frame| next.range.start < frame.range.end);
        let mut swept = Vec::with_capacity(frames.len());
        // Branch targets of refused ranges.
        let mut stray = Vec::new();
        for frame in frames {
            let Some(code) = code(file, &frame.range) else { continue };
            match Sweep::new(code, frame.range.clone()) {
                Ok(mut sweep) => {
                    if let Some(at) = frame.exceptions {
                        let pads = tables::landing_pads(file, at, &sweep.range);
                        sweep.is_open |= pads.is_none();
                        sweep.labels.extend(pads.into_iter().flatten());
                    }
                    swept.push(sweep);
                }
                Err(why) => {
                    stray.extend(sweep::branches(code, frame.range.start));
                    blocks.refused.push((frame.range, why));
                }
            }
        }
        let mut code = DecodedCode { swept };
        code.refuse_contradictions(&mut blocks.refused, &mut stray);
        code.add_targets(file);
        for target in stray {
            code.open(target);
        }
        for sweep in code.swept {
            blocks.starts.extend(sweep.starts());
            blocks.entries.extend(sweep.entries());
            blocks.indirect.extend(sweep.indirect());
            blocks.is_closed.push(!sweep.is_open);
            blocks.ranges.push(sweep.range);
        }
        blocks.refused.sort_unstable_by_key(|(range, _)| range.start);
        blocks
    }

    /// The range that holds this address.
    pub fn range_at(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        self.ranges[..after].last().filter(|range| address < range.end)
    }
}

/// All code of a file that could be decoded, by address.
struct DecodedCode {
    swept: Vec<Sweep>,
}

impl DecodedCode {
    /// Index of the range that contains this address.
    fn at(&self, address: u64) -> Option<usize> {
        let after = self.swept.partition_point(|sweep| sweep.range.start <= address);
        after.checked_sub(1).filter(|index| address < self.swept[*index].range.end)
    }

    /// Refuses both ends of a branch into the middle of an instruction: either may be data. Adds the branch
    /// targets of refused ranges to `stray`.
    fn refuse_contradictions(
        &mut self,
        refused: &mut Vec<(Range<u64>, CodeRefusal)>,
        stray: &mut Vec<u64>,
    ) {
        let mut why = vec![None; self.swept.len()];
        for (from, sweep) in self.swept.iter().enumerate() {
            for target in sweep.branches.iter().chain(&sweep.calls) {
                let to = self.at(*target);
                if let Some(to) = to.filter(|to| !self.swept[*to].knows(*target)) {
                    why[from] = Some(CodeRefusal::Branch(*target));
                    why[to] = Some(CodeRefusal::Branch(*target));
                }
            }
        }
        let mut why = why.into_iter();
        self.swept.retain(|sweep| {
            let why = why.next().flatten();
            refused.extend(why.map(|why| (sweep.range.clone(), why)));
            stray.extend(why.iter().flat_map(|_| &sweep.branches));
            why.is_none()
        });
    }

    /// Marks the range at `address` as open: code that was not decoded may lead into it.
    fn open(&mut self, address: u64) {
        if let Some(index) = self.at(address) {
            let sweep = &mut self.swept[index];
            sweep.is_open |= address != sweep.range.start;
        }
    }

    fn mark_indirect(&mut self, address: u64) -> bool {
        let Some(index) = self.at(address) else { return false };
        self.swept[index].mark_indirect(address)
    }

    /// Marks the targets of branches, tables and pointers.
    fn add_targets(&mut self, file: &object::File<'_>) {
        let mut branches: Vec<u64> = Vec::new();
        let mut targets: Vec<u64> = Vec::new();
        let mut labels: Vec<u64> = Vec::new();
        for sweep in &mut self.swept {
            branches.append(&mut sweep.branches);
            targets.append(&mut sweep.calls);
            labels.extend(&sweep.labels);
        }
        targets.extend(&labels);
        targets.extend(tables::pointers(file));
        for target in branches {
            if let Some(index) = self.at(target) {
                self.swept[index].mark(target);
            }
        }
        for target in targets {
            self.mark_indirect(target);
        }
        labels.sort_unstable();
        labels.dedup();
        let data = tables::DataSections::of(file);
        let has_relocations = file.kind() == ObjectKind::Dynamic;
        for index in 0..self.swept.len() {
            let sweep = &mut self.swept[index];
            let absolute = std::mem::take(&mut sweep.absolute_tables);
            let relative = if sweep.jumps_indirectly { sweep.labels.clone() } else { Vec::new() };
            // A label may be a table's address or anything else; only some are known to be tables.
            let mut found = 0;
            let mut is_whole = true;
            for table in relative {
                // A table ends where the next one begins.
                let next = labels.partition_point(|label| *label <= table);
                let end = labels.get(next).copied().unwrap_or(u64::MAX);
                let entries = data.relative_table(table, end);
                let marked = entries.take_while(|target| self.mark_indirect(*target));
                found += usize::from(marked.count() > 0);
            }
            for table in absolute {
                let entries = data.absolute_table(table);
                is_whole &= entries.take_while(|target| self.mark_indirect(*target)).count() > 0;
            }
            let sweep = &mut self.swept[index];
            is_whole &= !sweep.jumps_by_table || found > 0;
            // Without relocations the places of label addresses are unknown.
            sweep.is_open |= !is_whole || (sweep.jumps_by_pointer && !has_relocations);
        }
    }
}

/// Size of a file's code in bytes, and the part that `.eh_frame` lists.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CodeSize {
    code: u64,
    known: u64,
}

impl CodeSize {
    pub fn of(file: &object::File<'_>, blocks: &Blocks) -> Self {
        let bytes = |range: &Range<u64>| range.end - range.start;
        let refused = blocks.refused.iter().map(|(range, _)| range);
        let known = blocks.ranges.iter().chain(refused).map(bytes).sum();
        Self { code: executable(file).map(|range| bytes(&range)).sum(), known }
    }

    pub fn words(self) -> [u64; 2] {
        [self.code, self.known]
    }

    pub fn from_words([code, known]: [u64; 2]) -> Self {
        Self { code, known }
    }

    /// Returns true if `.eh_frame` lists less than an eighth of the code, whatever the compiler's start-up
    /// code adds.
    pub fn is_little(self) -> bool {
        self.known < self.code / 8
    }
}

impl AddAssign for CodeSize {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.known += other.known;
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

/// An entry of `.eh_frame`.
struct UnwindEntry {
    range: Range<u64>,
    /// Address of its exception table.
    exceptions: Option<u64>,
}

/// The functions that `.eh_frame` lists, ascending and disjoint.
pub fn ranges(file: &object::File<'_>) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = frames(file).into_iter().map(|frame| frame.range).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| next.start < range.end);
    ranges
}

/// The entries of `.eh_frame`, without the return trampolines of signal handlers.
fn frames(file: &object::File<'_>) -> Vec<UnwindEntry> {
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
            && !fde.is_signal_trampoline()
        {
            let exceptions = match fde.lsda() {
                Some(Pointer::Direct(at)) => Some(at),
                _ => None,
            };
            let range = fde.initial_address()..fde.initial_address().saturating_add(fde.len());
            found.push(UnwindEntry { range, exceptions });
        }
    }
    found
}

/// Targets of the branches in a range.
pub fn branches(code: &[u8], start: u64) -> Vec<u64> {
    sweep::branches(code, start)
}

pub fn code<'a>(file: &object::File<'a>, range: &Range<u64>) -> Option<&'a [u8]> {
    let section = file.sections().find(|section| {
        let start = section.address();
        start <= range.start && range.end <= start.saturating_add(section.size())
    })?;
    let is_not_ours =
        section.name().is_ok_and(|name| name.starts_with(".plt") || NOT_OURS.contains(&name));
    let data = || section.data_range(range.start, range.end - range.start).ok()?;
    if is_not_ours { None } else { data() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decoded parts of code, placed one after the other from address 16.
    fn swept(parts: &[&[u8]]) -> DecodedCode {
        let mut start = 16;
        let sweep = |code: &&[u8]| {
            let range = start..start + code.len() as u64;
            start = range.end;
            Sweep::new(code, range).unwrap()
        };
        DecodedCode { swept: parts.iter().map(sweep).collect() }
    }

    #[test]
    fn a_branch_into_an_instruction_makes_both_ends_useless() {
        // jmp 19, which lies in the middle of mov eax, 0x90909090; and ret.
        let mut code = swept(&[&[0xeb, 0x01], &[0xb8, 0x90, 0x90, 0x90, 0x90], &[0xc3]]);
        let mut refused = Vec::new();
        let mut stray = Vec::new();
        code.refuse_contradictions(&mut refused, &mut stray);
        assert_eq!(stray, [19]);
        assert_eq!(refused, [(16..18, CodeRefusal::Branch(19)), (18..23, CodeRefusal::Branch(19))]);
        assert!(code.swept.iter().map(|sweep| &sweep.range).eq([&(23..24)]));
    }
}
