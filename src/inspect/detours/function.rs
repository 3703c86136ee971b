//! A function that can have a copy, with its analysis.

use std::collections::HashMap;
use std::ops::Range;

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    RflagsBits, UsedRegister,
};

use crate::blocks::Blocks;
use crate::lines::decoder;

/// Size of a jump with a 32-bit distance.
const JUMP: u64 = 5;
/// The flags that arithmetic sets.
const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Registers that a counter may use: those that a function need not preserve. [`NUMBERS`] has their numbers in
/// machine code, in the same order.
const USABLE: [Register; 5] =
    [Register::RAX, Register::RCX, Register::RDX, Register::RSI, Register::RDI];
const NUMBERS: [u8; 5] = [0, 1, 2, 6, 7];
/// One bit for each of the usable registers.
const ALL: u32 = 0b1_1111;

/// A function that can have a copy.
pub(super) struct Function<'a> {
    pub(super) range: Range<u64>,
    pub(super) bytes: &'a [u8],
    pub(super) instructions: Vec<Instruction>,
    /// For each instruction, the offset of its displacement of a relative memory operand, or 0.
    pub(super) distances: Vec<u8>,
    /// Its blocks: address, and number in the file.
    blocks: Vec<(u64, u32)>,
    entries: &'a [u64],
}

fn within<'a>(sorted: &'a [u64], range: &Range<u64>) -> &'a [u64] {
    let first = sorted.partition_point(|at| *at < range.start);
    let end = sorted.partition_point(|at| *at < range.end);
    &sorted[first..end]
}

impl<'a> Function<'a> {
    /// Reads a function; None if it has an instruction that cannot be copied.
    pub(super) fn read(bytes: &'a [u8], range: &Range<u64>, blocks: &'a Blocks) -> Option<Self> {
        let mut decoder = decoder(bytes, range.start);
        let (mut instructions, mut distances) = (Vec::new(), Vec::new());
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if !can_be_copied(&instruction) {
                return None;
            }
            let is_distance = instruction.is_ip_rel_memory_operand();
            let offset = decoder.get_constant_offsets(&instruction).displacement_offset();
            distances.push(if is_distance { offset as u8 } else { 0 });
            instructions.push(instruction);
        }
        let first = blocks.starts.partition_point(|at| *at < range.start);
        let own = within(&blocks.starts, range);
        let blocks_of = own.iter().copied().zip(first as u32..).collect();
        let entries = within(&blocks.entries, range);
        let range = range.clone();
        Some(Self { range, bytes, instructions, distances, blocks: blocks_of, entries })
    }

    /// Number in the file of the block that begins at `address`.
    pub(super) fn number(&self, address: u64) -> Option<u32> {
        let index = self.blocks.binary_search_by_key(&address, |(at, _)| *at).ok()?;
        Some(self.blocks[index].1)
    }

    /// Index of the instruction at this address.
    pub(super) fn index_of(&self, address: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// For each instruction, and the end: numbers of the registers whose content is not read later. Code after a call
    /// or a return may read all.
    pub(super) fn free_registers(&self) -> Vec<Vec<u8>> {
        let mut factory = InstructionInfoFactory::new();
        let live = self.live(ALL, |instruction| match instruction.flow_control() {
            FlowControl::Next => registers(factory.info(instruction).used_registers()),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => Uses::default(),
            _ => Uses { read: ALL, set: 0 },
        });
        let free = |live: &u32| {
            let numbers = NUMBERS.iter().enumerate();
            numbers.filter(|(bit, _)| live >> bit & 1 == 0).map(|(_, number)| *number).collect()
        };
        live.iter().map(free).collect()
    }

    /// For each instruction: true if its flags may be read before they are set again. Neither callers nor called
    /// functions read them.
    pub(super) fn live_flags(&self) -> Vec<bool> {
        let live = self.live(ARITHMETIC, |instruction| {
            let set = match instruction.flow_control() {
                FlowControl::Return | FlowControl::Exception => ARITHMETIC,
                FlowControl::Call | FlowControl::IndirectCall if is_call(instruction) => ARITHMETIC,
                FlowControl::IndirectBranch => return Uses { read: ARITHMETIC, set: 0 },
                _ => sets(instruction),
            };
            Uses { read: instruction.rflags_read() & ARITHMETIC, set }
        });
        live.iter().map(|flags| *flags != 0).collect()
    }

    /// For each instruction, and the end: what may be read later, one bit for each of `all`. Outside the function,
    /// all may be read.
    fn live(&self, all: u32, uses: impl FnMut(&Instruction) -> Uses) -> Vec<u32> {
        let uses: Vec<Uses> = self.instructions.iter().map(uses).collect();
        let count = self.instructions.len();
        let mut live = vec![0; count + 1];
        live[count] = all;
        loop {
            let mut has_changed = false;
            for index in (0..count).rev() {
                let instruction = &self.instructions[index];
                let target = || {
                    let index = self.index_of(instruction.near_branch_target());
                    index.map_or(all, |index| live[index])
                };
                let after = match instruction.flow_control() {
                    FlowControl::ConditionalBranch => target() | live[index + 1],
                    FlowControl::UnconditionalBranch => target(),
                    _ => live[index + 1],
                };
                let Uses { read, set } = uses[index];
                let before = read | after & !set;
                has_changed |= before != live[index];
                live[index] = before;
            }
            if !has_changed {
                return live;
            }
        }
    }
}

/// Flags or registers that an instruction may read, and those that it sets, one bit each.
#[derive(Clone, Copy, Default)]
struct Uses {
    read: u32,
    set: u32,
}

/// Uses of the [`USABLE`] registers.
fn registers(used: &[UsedRegister]) -> Uses {
    let Uses { mut read, mut set } = Uses::default();
    for of in used {
        let register = of.register().full_register();
        let Some(index) = USABLE.iter().position(|usable| *usable == register) else { continue };
        match of.access() {
            // Writing part of a register keeps the rest; writing 32 bits does not.
            OpAccess::Write if of.register().size() >= 4 => set |= 1 << index,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::None => {}
            _ => read |= 1 << index,
        }
    }
    Uses { read, set }
}

/// Returns false for instructions that have only a short branch form or depend on their own address.
fn can_be_copied(instruction: &Instruction) -> bool {
    let is_short_only = instruction.is_jcx_short()
        || instruction.is_loop()
        || instruction.is_loopcc()
        || matches!(instruction.flow_control(), FlowControl::XbeginXabortXend);
    let is_branch = instruction.is_jcc_short_or_near()
        || instruction.is_jmp_short_or_near()
        || instruction.is_call_near();
    let is_odd = matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32);
    let is_near = instruction.op0_kind() == OpKind::NearBranch64;
    !is_short_only && !is_odd && is_near == is_branch && instruction.memory_base() != Register::EIP
}

/// For each block, the number of branches and preceding instructions that lead to it. The first block of a function
/// is also called. `others` are branch targets in functions without a copy.
pub(super) fn arrivals(functions: &[Function<'_>], others: &[u64], blocks: &Blocks) -> Vec<u32> {
    let mut counts = vec![0; blocks.starts.len()];
    let mut branched = HashMap::new();
    for target in others {
        *branched.entry(*target).or_insert(0) += 1;
    }
    for function in functions {
        for instruction in &function.instructions {
            if instruction.op0_kind() == OpKind::NearBranch64 && !instruction.is_call_near() {
                *branched.entry(instruction.near_branch_target()).or_insert(0) += 1;
            }
            let falls = !matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
            if let Some(number) = function.number(instruction.next_ip()).filter(|_| falls) {
                counts[number as usize] += 1;
            }
        }
    }
    for (start, count) in blocks.starts.iter().zip(&mut counts) {
        *count += branched.get(start).copied().unwrap_or_default();
    }
    for function in functions {
        let first = function.number(function.range.start);
        first.into_iter().for_each(|number| counts[number as usize] += 1);
    }
    counts
}

/// Flags that an instruction sets whatever its operands are.
fn sets(instruction: &Instruction) -> u32 {
    let may_do_nothing = instruction.has_rep_prefix()
        || instruction.has_repne_prefix()
        || instruction.op1_register() == Register::CL;
    if may_do_nothing { 0 } else { instruction.rflags_modified() }
}

/// Returns true for calls, but not for system calls.
pub(super) fn is_call(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Call
}

/// Places where the original of a function jumps to its copy.
pub(super) struct JumpSites {
    /// Addresses of jumps, ascending.
    pub(super) jumps: Vec<u64>,
    /// Blocks that may be reached in the original and have no room for a jump.
    exposed: Vec<u64>,
}

impl JumpSites {
    /// Chooses the jumps. A jump must not cover anything that is reached other than through it, nor a call, which
    /// stays in the original.
    pub(super) fn of(function: &Function<'_>) -> Self {
        let mut sites = Self { jumps: Vec::new(), exposed: Vec::new() };
        let calls: Vec<Range<u64>> = function
            .instructions
            .iter()
            .filter(|instruction| is_call(instruction))
            .map(|instruction| instruction.ip()..instruction.next_ip())
            .collect();
        let starts = function.blocks.iter().map(|(at, _)| *at);
        let mut places: Vec<u64> = starts.chain(function.entries.iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        for at in places {
            let end = at + JUMP;
            // The jump before covers this place, to which nothing else leads.
            if sites.jumps.last().is_some_and(|jump| at < jump + JUMP) {
                continue;
            }
            let next = function.entries.partition_point(|entry| *entry <= at);
            let is_free = function.entries.get(next).is_none_or(|entry| *entry >= end);
            let call = calls.partition_point(|call| call.end <= at);
            let has_no_call = calls.get(call).is_none_or(|call| call.start >= end);
            if is_free && has_no_call && end <= function.range.end {
                sites.jumps.push(at);
            } else if function.number(at).is_some() {
                sites.exposed.push(at);
            }
        }
        sites
    }

    /// Returns true if the block needs no breakpoint.
    pub(super) fn is_covered(&self, block: u64) -> bool {
        self.exposed.binary_search(&block).is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function at address 16 with these blocks.
    fn function(code: &'static [u8], blocks: &'static Blocks) -> Function<'static> {
        Function::read(code, &(16..16 + code.len() as u64), blocks).unwrap()
    }

    fn blocks(starts: &[u64], entries: &[u64]) -> &'static Blocks {
        let (starts, entries) = (starts.to_vec(), entries.to_vec());
        Box::leak(Box::new(Blocks { starts, entries, ..Blocks::default() }))
    }

    #[test]
    fn a_jump_covers_no_entry_and_no_call() {
        // 16: test edi, edi; 18: je 25; 20: mov eax, 1; 25: ret; 26: nop (five bytes); 31: ret
        let code = &[0x85, 0xff, 0x74, 5, 0xb8, 1, 0, 0, 0, 0xc3, 0x0f, 0x1f, 0x44, 0, 0, 0xc3];
        let sites = JumpSites::of(&function(code, blocks(&[16, 20, 25], &[16, 25])));
        // The block at 20 is reached only through 16, whose jump covers its first byte.
        assert_eq!((&*sites.jumps, &*sites.exposed), (&[16, 25][..], &[][..]));
        let sites = JumpSites::of(&function(code, blocks(&[16, 20, 25, 26], &[16, 20, 25, 26])));
        assert_eq!((&*sites.jumps, &*sites.exposed), (&[20, 26][..], &[16, 25][..]));
        // 16: mov edi, eax; 18: call 23; 23: mov eax, 1; 28: ret
        let code = &[0x89, 0xc7, 0xe8, 0, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3];
        let sites = JumpSites::of(&function(code, blocks(&[16], &[16, 23])));
        assert_eq!((&*sites.jumps, &*sites.exposed), (&[23][..], &[16][..]));
        assert!(!sites.is_covered(16));
    }

    #[test]
    fn flags_are_live_until_nothing_reads_them() {
        // 16: cmp edi, 3; 19: mov eax, 1; 24: je 27; 26: nop; 27: setb al; 30: add eax, 1; 33: ret
        let code = &[
            0x83, 0xff, 3, 0xb8, 1, 0, 0, 0, 0x74, 1, 0x90, 0x0f, 0x92, 0xc0, 0x83, 0xc0, 1, 0xc3,
        ];
        let live = function(code, blocks(&[16, 26, 27], &[16, 27])).live_flags();
        assert_eq!(live, [false, true, true, true, true, false, false, true]);
        // 16: shl eax, cl (which may shift by nothing); 18: jb 20; 20: ret
        let live =
            function(&[0xd3, 0xe0, 0x72, 0, 0xc3], blocks(&[16, 20], &[16, 20])).live_flags();
        assert_eq!(live, [true, true, false, true]);
    }

    #[test]
    fn registers_are_free_until_what_they_hold_is_read() {
        // 16: mov eax, edi; 18: mov cl, 1; 20: je 27; 22: mov edx, 1; 27: mov edx, eax; 29: xor esi, esi; 31: ret
        let code = &[0x89, 0xf8, 0xb1, 1, 0x74, 5, 0xba, 1, 0, 0, 0, 0x89, 0xc2, 0x31, 0xf6, 0xc3];
        let free = function(code, blocks(&[16, 22, 27], &[16, 27])).free_registers();
        let expected: [&[u8]; 8] = [&[0, 2, 6], &[2, 6], &[2, 6], &[2, 6], &[2, 6], &[6], &[], &[]];
        assert_eq!(free, expected);
        // 16: mov eax, 1; 21: syscall; 23: mov eax, 1; 28: ret
        let code = &[0xb8, 1, 0, 0, 0, 0x0f, 5, 0xb8, 1, 0, 0, 0, 0xc3];
        let free = function(code, blocks(&[16], &[16])).free_registers();
        assert_eq!(free, [&[0][..], &[], &[0], &[], &[]]);
        // A loop that reads what the previous iteration set. 16: mov eax, ecx; 18: mov ecx, 1; 23: jmp 16
        let code = &[0x89, 0xc8, 0xb9, 1, 0, 0, 0, 0xeb, 0xf7];
        let free = function(code, blocks(&[16], &[16])).free_registers();
        assert_eq!(free, [&[0, 2, 6, 7][..], &[0, 1, 2, 6, 7], &[0, 2, 6, 7], &[]]);
    }

    #[test]
    fn what_has_a_short_branch_alone_is_not_copied() {
        // jrcxz 18; ret
        let blocks = blocks(&[16, 18], &[16, 18]);
        assert!(Function::read(&[0xe3, 0, 0xc3], &(16..19), blocks).is_none());
    }

    #[test]
    fn several_ways_to_a_block_are_counted() {
        // 16: test edi, edi; 18: je 21; 20: nop; 21: ret
        let blocks = blocks(&[16, 20, 21], &[16, 21]);
        let functions = [function(&[0x85, 0xff, 0x74, 1, 0x90, 0xc3], blocks)];
        assert_eq!(arrivals(&functions, &[], blocks), [1, 1, 2]);
        assert_eq!(arrivals(&functions, &[20, 99], blocks), [1, 2, 2]);
    }
}
