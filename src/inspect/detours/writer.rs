//! Writes the copies of functions.

use std::collections::HashMap;

use iced_x86::{FlowControl, Instruction};

use super::function::{Function, JumpSites, is_call};
use super::{Amount, CountedBy, Detours};
use crate::blocks::Blocks;

const PAGE: usize = 4096;
/// Opcode of `jmp` with a 32-bit distance.
const JUMP: u8 = 0xe9;

/// A distance in the code that is not known yet, to a block's copy or its original.
struct Branch {
    field: usize,
    target: u64,
}

/// A counter by its number: hits of a block or an edge, or executions of a block.
#[derive(Clone, Copy)]
enum Counter {
    Hits(u32),
    Executions(u32),
}

/// A distance to a counter in the code.
struct CounterField {
    at: usize,
    /// Number of bytes of the instruction after the distance.
    after: u8,
    counter: Counter,
}

pub(super) struct Writer<'a> {
    blocks: &'a Blocks,
    /// See [`super::function::arrivals`].
    arrivals: &'a [u32],
    amount: Amount,
    detours: Detours,
    counters: Vec<CounterField>,
    branches: Vec<Branch>,
    /// Offsets of the copies of blocks, and of the code after calls.
    labels: HashMap<u64, u32>,
}

/// How a block or an edge is counted.
#[derive(Clone, Copy)]
enum Count<'a> {
    /// Sets the counter to 1; keeps the flags.
    Once,
    Each,
    /// Counts and keeps the flags. These registers may be overwritten.
    KeepFlags(&'a [u8]),
}

/// Live flags and free registers at each instruction of a function, and at its end.
struct Counting {
    flags: Vec<bool>,
    free: Vec<Vec<u8>>,
}

impl Counting {
    fn of(function: &Function<'_>) -> Self {
        Self { flags: function.live_flags(), free: function.free_registers() }
    }

    fn before(&self, index: usize) -> Count<'_> {
        if self.flags[index] { Count::KeepFlags(&self.free[index]) } else { Count::Each }
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(blocks: &'a Blocks, arrivals: &'a [u32], amount: Amount) -> Self {
        Self {
            blocks,
            arrivals,
            amount,
            detours: Detours {
                counted_by: vec![CountedBy::default(); blocks.starts.len()],
                ..Detours::default()
            },
            counters: Vec::new(),
            branches: Vec::new(),
            labels: HashMap::new(),
        }
    }

    pub(super) fn write(&mut self, function: &Function<'_>) {
        let counting = Counting::of(function);
        let sites = JumpSites::of(function);
        // The code of taken edges follows the function.
        let mut taken = Vec::new();
        for (index, instruction) in function.instructions.iter().enumerate() {
            let at = instruction.ip();
            let block = function.number(at);
            if block.is_some() || sites.jumps.binary_search(&at).is_ok() {
                self.labels.insert(at, self.detours.code.len() as u32);
            }
            if let Some(number) = block {
                let by = self.counted_by(function, &sites, index);
                self.detours.counted_by[number as usize] = by;
                match by {
                    CountedBy::Breakpoint => self.count(number, Count::Once),
                    CountedBy::Copy => self.count(number, counting.before(index)),
                    CountedBy::Others => {}
                }
                if self.amount == Amount::Executions {
                    self.count_execution(number, counting.before(index));
                }
            }
            match instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    taken.extend(self.branch(instruction));
                    if self.is_critical(instruction.next_ip()) {
                        let edge = self.next_edge();
                        self.count(edge, counting.before(index + 1));
                    }
                }
                FlowControl::UnconditionalBranch => self.jump(instruction.near_branch_target()),
                _ if is_call(instruction) => {
                    self.detours.code.push(JUMP);
                    let field = self.field();
                    self.set_file_field(field, 0, at);
                }
                _ => self.copy(function, index),
            }
        }
        self.jump(function.range.end);
        for Branch { field, target } in taken {
            let here = self.detours.code.len();
            self.set_field(field, here);
            let edge = self.next_edge();
            let index = function.index_of(target);
            self.count(edge, index.map_or(Count::KeepFlags(&[]), |index| counting.before(index)));
            self.jump(target);
        }
        let place = |at: &u64| (*at as u32, self.labels[at]);
        self.detours.jumps.extend(sites.jumps.iter().map(place));
    }

    /// Writes a branch, and returns it if its edge must be counted.
    fn branch(&mut self, instruction: &Instruction) -> Option<Branch> {
        let target = instruction.near_branch_target();
        // Conditions are numbered from 1, in encoding order.
        self.detours.code.extend([0x0f, 0x80 | (instruction.condition_code() as u8 - 1)]);
        let branch = Branch { field: self.field(), target };
        if self.is_critical(target) {
            return Some(branch);
        }
        self.branches.push(branch);
        None
    }

    fn counted_by(&self, function: &Function<'_>, sites: &JumpSites, index: usize) -> CountedBy {
        if !sites.is_covered(function.instructions[index].ip()) {
            CountedBy::Breakpoint
        } else if self.is_implied(function, sites, index) {
            CountedBy::Others
        } else {
            CountedBy::Copy
        }
    }

    /// Returns true if later counters show how often the block that begins at this instruction ran: each way out of
    /// it is a counted edge, or leads to a block with no other predecessor. The block has no call, which may not
    /// return.
    fn is_implied(&self, function: &Function<'_>, sites: &JumpSites, index: usize) -> bool {
        let leads_alone = |target: u64| {
            function.number(target).is_some_and(|number| self.arrivals[number as usize] == 1)
                && self.blocks.indirect.binary_search(&target).is_err()
                && sites.is_covered(target)
        };
        let is_counted = |target: u64| self.is_critical(target) || leads_alone(target);
        for instruction in &function.instructions[index..] {
            let next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next if function.number(next).is_some() => return leads_alone(next),
                FlowControl::Next => {}
                FlowControl::ConditionalBranch => {
                    return is_counted(next) && is_counted(instruction.near_branch_target());
                }
                FlowControl::UnconditionalBranch => {
                    return leads_alone(instruction.near_branch_target());
                }
                _ => return false,
            }
        }
        false
    }

    /// Returns true if several ways lead to this block, so that its counter does not identify an edge.
    fn is_critical(&self, target: u64) -> bool {
        let number = self.blocks.starts.binary_search(&target);
        number.is_ok_and(|number| self.arrivals[number] > 1)
    }

    fn next_edge(&mut self) -> u32 {
        self.detours.edges += 1;
        self.blocks.starts.len() as u32 + self.detours.edges - 1
    }

    fn field(&mut self) -> usize {
        let field = self.detours.code.len();
        self.detours.code.extend([0; 4]);
        field
    }

    /// Sets the distance to another place in the code, at the end of an instruction.
    fn set_field(&mut self, field: usize, to: usize) {
        let distance = (to as u32).wrapping_sub(field as u32 + 4);
        self.detours.code[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Writes a jump to a block's copy, or to its original.
    fn jump(&mut self, target: u64) {
        self.detours.code.push(JUMP);
        let field = self.field();
        self.branches.push(Branch { field, target });
    }

    /// Sets the distance to an address of the file; `after` is the number of bytes that follow in the instruction.
    fn set_file_field(&mut self, field: usize, after: usize, address: u64) {
        let distance = address.wrapping_sub((field + 4 + after) as u64) as u32;
        self.detours.code[field..field + 4].copy_from_slice(&distance.to_le_bytes());
        self.detours.fields.push(field as u32);
    }

    fn copy(&mut self, function: &Function<'_>, index: usize) {
        let instruction = &function.instructions[index];
        let at = self.detours.code.len();
        let first = (instruction.ip() - function.range.start) as usize;
        self.detours.code.extend(&function.bytes[first..first + instruction.len()]);
        let distance = usize::from(function.distances[index]);
        if distance > 0 {
            let after = instruction.len() - distance - 4;
            let address = instruction.ip_rel_memory_address();
            self.set_file_field(at + distance, after, address);
        }
    }

    /// Writes the distance to a counter, and the bytes after it in the instruction.
    fn counter_field(&mut self, counter: Counter, after: &[u8]) {
        let at = self.field();
        self.detours.code.extend(after);
        self.counters.push(CounterField { at, after: after.len() as u8, counter });
    }

    /// Counts a hit; a nonzero counter never returns to 0. The counter is written only once, because the next
    /// iteration of a loop waits for it.
    fn count(&mut self, counter: u32, how: Count<'_>) {
        let counter = Counter::Hits(counter);
        match how {
            // mov byte [counter], 1
            Count::Once => {
                self.detours.code.extend([0xc6, 0x05]);
                self.counter_field(counter, &[1]);
            }
            // cmp byte [counter], 255; sbb byte [counter], -2: 255 becomes 1
            Count::Each => {
                self.detours.code.extend([0x80, 0x3d]);
                self.counter_field(counter, &[255]);
                self.detours.code.extend([0x80, 0x1d]);
                self.counter_field(counter, &[254]);
            }
            Count::KeepFlags(free) => self.count_keeping_flags(counter, free),
        }
    }

    fn count_execution(&mut self, block: u32, how: Count<'_>) {
        let counter = Counter::Executions(block);
        if let Count::KeepFlags(free) = how {
            let register = free.first().copied().unwrap_or(0);
            let saved: &[u8] = if free.is_empty() { &[register] } else { &[] };
            self.save(saved);
            // mov register, [counter]; lea register, [register + 1]; mov [counter], register
            self.detours.code.extend([0x48, 0x8b, 0x05 | register << 3]);
            self.counter_field(counter, &[]);
            self.detours.code.extend([0x48, 0x8d, 0x40 | register << 3 | register, 1]);
            self.detours.code.extend([0x48, 0x89, 0x05 | register << 3]);
            self.counter_field(counter, &[]);
            self.restore(saved);
        } else {
            // add qword [counter], 1
            self.detours.code.extend([0x48, 0x83, 0x05]);
            self.counter_field(counter, &[1]);
        }
    }

    /// Saves registers on the stack, below the red zone of a leaf function.
    fn save(&mut self, registers: &[u8]) {
        let code = &mut self.detours.code;
        if !registers.is_empty() {
            // lea rsp, [rsp - 128]
            code.extend([0x48, 0x8d, 0x64, 0x24, 0x80]);
        }
        // push
        code.extend(registers.iter().map(|register| 0x50 | register));
    }

    fn restore(&mut self, registers: &[u8]) {
        let code = &mut self.detours.code;
        // pop
        code.extend(registers.iter().rev().map(|register| 0x58 | register));
        if !registers.is_empty() {
            // lea rsp, [rsp + 128]
            code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]);
        }
    }

    /// Counts with instructions that keep the flags, which is faster than saving and restoring them.
    fn count_keeping_flags(&mut self, counter: Counter, free: &[u8]) {
        // The first register must have an addressable second byte.
        let named = |register: &&u8| **register <= 2;
        let first = *free.iter().find(named).unwrap_or(&0);
        let others = free.iter().chain(&[0, 1]);
        let second = *others.clone().find(|register| **register != first).expect("two registers");
        let saved: Vec<u8> =
            [first, second].into_iter().filter(|register| !free.contains(register)).collect();
        self.save(&saved);
        // movzx first, byte [counter]
        self.detours.code.extend([0x0f, 0xb6, 0x05 | first << 3]);
        self.counter_field(counter, &[]);
        self.detours.code.extend([
            // lea first, [first + 1]
            0x8d,
            0x40 | first << 3 | first,
            1,
            // movzx second, the second byte of first: 1 if 255 was counted on
            0x0f,
            0xb6,
            0xc4 | second << 3 | first,
            // lea first, [first + second]
            0x8d,
            0x04 | first << 3,
            second << 3 | first,
            // mov byte [counter], first
            0x88,
            0x05 | first << 3,
        ]);
        self.counter_field(counter, &[]);
        self.restore(&saved);
    }

    pub(super) fn finish(mut self) -> Detours {
        for Branch { field, target } in std::mem::take(&mut self.branches) {
            match self.labels.get(&target) {
                Some(label) => {
                    let label = *label as usize;
                    self.set_field(field, label);
                }
                None => self.set_file_field(field, 0, target),
            }
        }
        // The counters follow the code on separate pages; those of executions come last.
        let hits = self.detours.code.len().next_multiple_of(PAGE);
        let counters = self.blocks.starts.len() + self.detours.edges as usize;
        let executions = (hits + counters).next_multiple_of(PAGE);
        for field in &self.counters {
            let end = field.at + 4 + usize::from(field.after);
            let place = match field.counter {
                Counter::Hits(number) => hits + number as usize,
                Counter::Executions(number) => executions + 8 * number as usize,
            };
            let distance = (place - end) as u32;
            self.detours.code[field.at..field.at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        self.detours.jumps.sort_unstable();
        self.detours
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, Register};

    use super::super::function::arrivals;
    use super::*;

    #[test]
    fn a_copy_counts_and_refers_to_its_file() {
        // 16: test edi, edi; 18: je 27; 20: mov eax, [rip + 100]; 26: nop; 27: ret, and padding
        let code =
            &[0x85, 0xff, 0x74, 7, 0x8b, 5, 100, 0, 0, 0, 0x90, 0xc3, 0x90, 0x90, 0x90, 0x90];
        let (starts, entries) = (vec![16, 20, 27], vec![16, 27]);
        let blocks = Blocks { starts, entries, ..Blocks::default() };
        let function = Function::read(code, &(16..32), &blocks).unwrap();
        let functions = [function];
        let arrivals = arrivals(&functions, &[], &blocks);
        let mut writer = Writer::new(&blocks, &arrivals, Amount::Hits);
        writer.write(&functions[0]);
        let detours = writer.finish();
        // The branch past the second block has a counter of its own.
        let counted_by = [CountedBy::Others, CountedBy::Copy, CountedBy::Copy];
        assert_eq!((detours.edges, &*detours.counted_by), (1, &counted_by[..]));
        assert!(detours.jumps.iter().map(|(from, _)| *from).eq([16, 27]));
        let copied: Vec<_> =
            Decoder::with_ip(64, &detours.code, 0, DecoderOptions::NONE).into_iter().collect();
        let loads = copied.iter().find(|instruction| instruction.mnemonic() == Mnemonic::Mov);
        assert_eq!(loads.unwrap().ip_rel_memory_address(), 126);
        let counters: Vec<_> = copied
            .iter()
            .filter(|instruction| instruction.mnemonic() == Mnemonic::Sbb)
            .map(|instruction| instruction.ip_rel_memory_address() as usize - PAGE)
            .collect();
        // The first block leads to the second one, or past it.
        assert_eq!(counters, [1, 2, 3]);
        // The load, and the jump after the last instruction.
        assert_eq!(detours.fields.len(), 2);
    }

    #[test]
    fn executions_of_each_block_are_counted() {
        // 16: test edi, edi; 18: je 27; 20: mov eax, 1; 25: nop; 26: ret; 27: mov eax, 2; 32: ret
        let code = &[0x85, 0xff, 0x74, 7, 0xb8, 1, 0, 0, 0, 0x90, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3];
        let (starts, entries) = (vec![16, 20, 27], vec![16, 27]);
        let blocks = Blocks { starts, entries, indirect: vec![16], ..Blocks::default() };
        let functions = [Function::read(code, &(16..33), &blocks).unwrap()];
        let arrivals = arrivals(&functions, &[], &blocks);
        let mut writer = Writer::new(&blocks, &arrivals, Amount::Executions);
        writer.write(&functions[0]);
        let code = writer.finish().code;
        let counted = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE)
            .into_iter()
            .filter(|instruction| instruction.mnemonic() == Mnemonic::Add)
            .map(|instruction| instruction.ip_rel_memory_address() as usize - 2 * PAGE);
        // The first block has no hit counter.
        assert!(counted.eq([0, 8, 16]));
    }

    /// The blocks that the copy of a function counts, one counter each.
    fn counted(code: &[u8], blocks: &Blocks) -> Vec<usize> {
        let functions = [Function::read(code, &(16..16 + code.len() as u64), blocks).unwrap()];
        let arrivals = arrivals(&functions, &[], blocks);
        let mut writer = Writer::new(blocks, &arrivals, Amount::Hits);
        writer.write(&functions[0]);
        let code = writer.finish().code;
        Decoder::with_ip(64, &code, 0, DecoderOptions::NONE)
            .into_iter()
            .filter(|instruction| instruction.mnemonic() == Mnemonic::Sbb)
            .map(|instruction| instruction.ip_rel_memory_address() as usize - PAGE)
            .filter(|counter| *counter < blocks.starts.len())
            .collect()
    }

    #[test]
    fn blocks_that_others_imply_have_no_counter() {
        let of = |starts: &[u64], entries: &[u64], indirect: &[u64]| Blocks {
            starts: starts.to_vec(),
            entries: entries.to_vec(),
            indirect: indirect.to_vec(),
            ..Blocks::default()
        };
        // 16: test edi, edi; 18: je 27; 20: mov eax, 1; 25: nop; 26: ret; 27: mov eax, 2; 32: ret
        let code = &[0x85, 0xff, 0x74, 7, 0xb8, 1, 0, 0, 0, 0x90, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3];
        assert_eq!(counted(code, &of(&[16, 20, 27], &[16, 27], &[16])), [1, 2]);
        // A table may lead to 27 as well.
        assert_eq!(counted(code, &of(&[16, 20, 27], &[16, 27], &[16, 27])), [0, 1, 2]);
        // 16: mov eax, 1; 21: call 26; 26: test edi, edi; 28: je 35; 30: mov eax, 1; 35: ret, and padding
        let code = &[
            0xb8, 1, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x85, 0xff, 0x74, 5, 0xb8, 1, 0, 0, 0, 0xc3, 0x90,
            0x90, 0x90, 0x90,
        ];
        assert_eq!(counted(code, &of(&[16, 30, 35], &[16, 26, 35], &[16, 26])), [0, 1, 2]);
    }

    /// A counter at live flags changes no flag, and no register that it neither saves nor may overwrite.
    #[test]
    fn a_counter_keeps_flags_and_registers() {
        let blocks = Blocks::default();
        for free in [&[][..], &[0], &[1], &[6], &[0, 1], &[2, 7], &[6, 7], &[0, 1, 2, 6, 7]] {
            let mut writer = Writer::new(&blocks, &[], Amount::Executions);
            writer.count(7, Count::KeepFlags(free));
            writer.count_execution(3, Count::KeepFlags(free));
            let code = writer.finish().code;
            let mut factory = InstructionInfoFactory::new();
            let (mut saved, mut written, mut touched) = (Vec::new(), Vec::new(), Vec::new());
            for instruction in Decoder::with_ip(64, &code, 0, DecoderOptions::NONE) {
                assert_eq!(instruction.rflags_modified(), 0, "{instruction:?}");
                match instruction.mnemonic() {
                    Mnemonic::Push => saved.push(instruction.op0_register()),
                    Mnemonic::Pop => assert_eq!(saved.pop(), Some(instruction.op0_register())),
                    _ if instruction.is_ip_rel_memory_operand() => {
                        touched.push(instruction.ip_rel_memory_address() as usize - PAGE);
                    }
                    _ => {}
                }
                let info = factory.info(&instruction);
                let used = info.used_registers().iter().map(|used| used.register());
                written.extend(used.map(Register::full_register).map(|register| {
                    let is_own = register == Register::RSP
                        || saved.contains(&register)
                        || instruction.mnemonic() == Mnemonic::Pop;
                    is_own || free.contains(&(register.number() as u8))
                }));
            }
            // Without blocks, the execution counters begin where the hit counters do.
            assert_eq!((&*saved, &*touched), (&[][..], &[7, 7, 24, 24][..]), "{free:?}");
            assert!(written.iter().all(|is_own| *is_own), "{free:?}");
        }
    }
}
