//! Writes the copies.

use std::collections::HashMap;

use iced_x86::{FlowControl, Instruction};

use super::Detours;
use super::function::{Function, Sites, is_call};
use crate::blocks::Blocks;

const PAGE: usize = 4096;
/// `jmp` with a distance of 32 bits.
const JUMP: u8 = 0xe9;

/// A place in the code whose distance to a block's copy, or to its original, is not known yet.
struct Branch {
    field: usize,
    target: u64,
}

pub(super) struct Writer<'a> {
    blocks: &'a Blocks,
    /// See [`super::function::arrivals`].
    arrivals: &'a [u32],
    detours: Detours,
    /// Places of the distances to counters, each before the last byte of its instruction, and the counter.
    counters: Vec<(usize, u32)>,
    branches: Vec<Branch>,
    /// Where the copies of blocks, and of what follows a call, begin.
    labels: HashMap<u64, u32>,
}

/// How a block or an edge is counted.
#[derive(Clone, Copy)]
enum Count {
    /// It is seen. The flags stay.
    Once,
    Each {
        keep_flags: bool,
    },
}

impl<'a> Writer<'a> {
    pub(super) fn new(blocks: &'a Blocks, arrivals: &'a [u32]) -> Self {
        Self {
            blocks,
            arrivals,
            detours: Detours { is_counted: vec![false; blocks.starts.len()], ..Detours::default() },
            counters: Vec::new(),
            branches: Vec::new(),
            labels: HashMap::new(),
        }
    }

    pub(super) fn write(&mut self, function: &Function<'_>) {
        let flags = function.live_flags();
        let sites = Sites::of(function);
        // Edges that a branch takes follow the function.
        let mut taken = Vec::new();
        for (index, instruction) in function.instructions.iter().enumerate() {
            let at = instruction.ip();
            let block = function.number(at);
            if block.is_some() || sites.jumps.binary_search(&at).is_ok() {
                self.labels.insert(at, self.detours.code.len() as u32);
            }
            if let Some(number) = block {
                let is_counted = sites.is_covered(at);
                self.detours.is_counted[number as usize] = is_counted;
                let each = Count::Each { keep_flags: flags[index] };
                self.count(number, if is_counted { each } else { Count::Once });
            }
            match instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    taken.extend(self.branch(instruction));
                    if self.is_critical(instruction.next_ip()) {
                        let keep_flags = flags[index + 1];
                        let edge = self.next_edge();
                        self.count(edge, Count::Each { keep_flags });
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
            let keep_flags = function.index_of(target).is_none_or(|index| flags[index]);
            let edge = self.next_edge();
            self.count(edge, Count::Each { keep_flags });
            self.jump(target);
        }
        let place = |at: &u64| (*at as u32, self.labels[at]);
        self.detours.jumps.extend(sites.jumps.iter().map(place));
    }

    /// Returns the branch if its edge is to be counted.
    fn branch(&mut self, instruction: &Instruction) -> Option<Branch> {
        let target = instruction.near_branch_target();
        // Conditions are numbered from 1 on, in the order of their encoding.
        self.detours.code.extend([0x0f, 0x80 | (instruction.condition_code() as u8 - 1)]);
        let branch = Branch { field: self.field(), target };
        if self.is_critical(target) {
            return Some(branch);
        }
        self.branches.push(branch);
        None
    }

    /// Several ways lead to this block, so it says nothing of one of them.
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

    /// The distance to another place in the code, at the end of an instruction.
    fn set_field(&mut self, field: usize, to: usize) {
        let distance = (to as u32).wrapping_sub(field as u32 + 4);
        self.detours.code[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// To a block's copy, or to its original.
    fn jump(&mut self, target: u64) {
        self.detours.code.push(JUMP);
        let field = self.field();
        self.branches.push(Branch { field, target });
    }

    /// The distance to an address of the file; `after` other bytes of the instruction follow.
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

    /// A counter that is not 0 stays so.
    fn count(&mut self, counter: u32, how: Count) {
        let place = |writer: &mut Self, code: [u8; 2], value: u8| {
            writer.detours.code.extend(code);
            let field = writer.field();
            writer.detours.code.push(value);
            writer.counters.push((field, counter));
        };
        match how {
            // mov byte [counter], 1
            Count::Once => place(self, [0xc6, 0x05], 1),
            Count::Each { keep_flags } => {
                if keep_flags {
                    // lea rsp, [rsp - 128], past what a leaf function keeps there; pushfq
                    self.detours.code.extend([0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c]);
                }
                // add byte [counter], 1; adc byte [counter], 0
                place(self, [0x80, 0x05], 1);
                place(self, [0x80, 0x15], 0);
                if keep_flags {
                    // popfq; lea rsp, [rsp + 128]
                    self.detours.code.extend([0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]);
                }
            }
        }
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
        // The counters follow the code, on pages of their own.
        let first = self.detours.code.len().next_multiple_of(PAGE);
        for (field, counter) in &self.counters {
            let distance = (first + *counter as usize - (field + 5)) as u32;
            self.detours.code[*field..field + 4].copy_from_slice(&distance.to_le_bytes());
        }
        self.detours.jumps.sort_unstable();
        self.detours
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

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
        let arrivals = arrivals(&functions, &blocks);
        let mut writer = Writer::new(&blocks, &arrivals);
        writer.write(&functions[0]);
        let detours = writer.finish();
        // The branch past the second block is an edge of its own.
        assert_eq!((detours.edges, &*detours.is_counted), (1, &[true, true, true][..]));
        assert!(detours.jumps.iter().map(|(from, _)| *from).eq([16, 27]));
        let copied: Vec<_> =
            Decoder::with_ip(64, &detours.code, 0, DecoderOptions::NONE).into_iter().collect();
        let loads = copied.iter().find(|instruction| instruction.mnemonic() == Mnemonic::Mov);
        assert_eq!(loads.unwrap().ip_rel_memory_address(), 126);
        let counters: Vec<_> = copied
            .iter()
            .filter(|instruction| instruction.mnemonic() == Mnemonic::Adc)
            .map(|instruction| instruction.ip_rel_memory_address() as usize - PAGE)
            .collect();
        assert_eq!(counters, [0, 1, 2, 3]);
        // The load, and the jump after the last instruction.
        assert_eq!(detours.fields.len(), 2);
    }
}
