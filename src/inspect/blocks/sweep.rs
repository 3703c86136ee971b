//! One range of code, decoded from its beginning to its end.

use std::ops::Range;

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::CodeRefusal;
use crate::lines::decoder;

/// Facts from the instructions of a range.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) range: Range<u64>,
    /// One bit per byte: set at the first byte of an instruction.
    instructions: Bits,
    /// One bit per byte: set at the start of a block.
    blocks: Bits,
    /// One bit per byte: set at addresses with another predecessor than the instruction before.
    entries: Bits,
    /// The entries that calls, returns, tables or pointers may lead to.
    indirect: Bits,
    /// Branch targets, also in other ranges.
    pub(super) branches: Vec<u64>,
    pub(super) calls: Vec<u64>,
    /// Addresses that the code computes: of tables, functions and labels.
    pub(super) labels: Vec<u64>,
    /// Address tables that it jumps through.
    pub(super) absolute_tables: Vec<u64>,
    /// True if it jumps to a computed address.
    pub(super) jumps_indirectly: bool,
    /// True if such an address is computed from a table entry.
    pub(super) jumps_by_table: bool,
    /// True if it jumps to an address read from memory, which may be a label's.
    pub(super) jumps_by_pointer: bool,
    /// True if unknown code may lead into its middle.
    pub(super) is_open: bool,
}

impl Sweep {
    pub(super) fn new(code: &[u8], range: Range<u64>) -> Result<Self, CodeRefusal> {
        let mut sweep = Self {
            instructions: Bits::new(code.len()),
            blocks: Bits::new(code.len()),
            entries: Bits::new(code.len()),
            indirect: Bits::new(code.len()),
            branches: Vec::new(),
            calls: Vec::new(),
            labels: Vec::new(),
            absolute_tables: Vec::new(),
            jumps_indirectly: false,
            jumps_by_table: false,
            jumps_by_pointer: false,
            is_open: false,
            range,
        };
        let mut writers = Writers::default();
        let mut decoder = decoder(code, sweep.range.start);
        let mut instruction = Instruction::default();
        sweep.mark_entry(sweep.range.start);
        sweep.indirect.set(0);
        let mut after = After::Nothing;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                return Err(CodeRefusal::Invalid(instruction.ip()));
            }
            let at = instruction.ip() - sweep.range.start;
            sweep.instructions.set(at);
            // Padding lies between functions or their parts, and is a block only if something jumps
            // to it.
            let is_gap = matches!(after, After::Branch | After::End) && is_padding(&instruction);
            match after {
                _ if is_gap => {}
                After::Nothing => {}
                After::Call => {
                    sweep.entries.set(at);
                    sweep.indirect.set(at);
                }
                After::Branch => sweep.blocks.set(at),
                After::End => sweep.mark_entry(instruction.ip()),
            }
            let next = sweep.note(&instruction, &writers);
            after = if is_gap && next == After::Nothing { after } else { next };
            writers.note(&instruction);
        }
        if decoder.ip() == sweep.range.end {
            Ok(sweep)
        } else {
            Err(CodeRefusal::Overrun(decoder.ip()))
        }
    }

    fn note(&mut self, instruction: &Instruction, writers: &Writers) -> After {
        if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
            self.labels.push(instruction.ip_rel_memory_address());
        }
        let is_near = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
                After::Nothing
            }
            FlowControl::IndirectCall => After::Call,
            FlowControl::Call => {
                self.calls.extend(is_near.then(|| instruction.near_branch_target()));
                After::Call
            }
            FlowControl::ConditionalBranch => {
                self.branches.extend(is_near.then(|| instruction.near_branch_target()));
                After::Branch
            }
            FlowControl::UnconditionalBranch => {
                self.branches.extend(is_near.then(|| instruction.near_branch_target()));
                After::End
            }
            FlowControl::IndirectBranch => {
                self.jumps_indirectly = true;
                let is_table = instruction.op0_kind() == OpKind::Memory
                    && instruction.memory_base() == Register::None
                    && instruction.memory_index() != Register::None
                    && instruction.memory_displacement64() != 0;
                self.absolute_tables.extend(is_table.then(|| instruction.memory_displacement64()));
                let is_calculated = instruction.op0_kind() == OpKind::Register
                    && writers.calculated(instruction.op0_register());
                self.jumps_by_table |= is_calculated;
                self.jumps_by_pointer |=
                    !(is_table || is_calculated || instruction.is_ip_rel_memory_operand());
                After::End
            }
            FlowControl::Return | FlowControl::Exception => After::End,
        }
    }

    fn mark_entry(&mut self, address: u64) {
        self.blocks.set(address - self.range.start);
        self.entries.set(address - self.range.start);
    }

    /// True if an instruction of this range begins there.
    pub(super) fn knows(&self, address: u64) -> bool {
        self.range.contains(&address) && self.instructions.get(address - self.range.start)
    }

    /// Marks the start of a block; returns false, and marks nothing, if no instruction begins
    /// there.
    pub(super) fn mark(&mut self, address: u64) -> bool {
        let is_known = self.knows(address);
        if is_known {
            self.mark_entry(address);
        }
        is_known
    }

    /// Like [`Self::mark`], for an address that more than branches lead to.
    pub(super) fn mark_indirect(&mut self, address: u64) -> bool {
        let is_known = self.mark(address);
        if is_known {
            self.indirect.set(address - self.range.start);
        }
        is_known
    }

    /// Starts of the blocks, ascending.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().map(|offset| self.range.start + offset)
    }

    /// Addresses with another predecessor than the instruction before, ascending.
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().map(|offset| self.range.start + offset)
    }

    /// The entries that not only branches lead to, ascending.
    pub(super) fn indirect(&self) -> impl Iterator<Item = u64> + '_ {
        self.indirect.iter().map(|offset| self.range.start + offset)
    }
}

/// Effect of an instruction on the role of the next one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum After {
    Nothing,
    /// The next instruction is a return address.
    Call,
    /// The next instruction begins a block.
    Branch,
    /// The next instruction is reached from elsewhere, or never.
    End,
}

/// For each register, the instruction that wrote it last.
#[derive(Default)]
struct Writers([Option<Mnemonic>; 16]);

impl Writers {
    fn note(&mut self, instruction: &Instruction) {
        let register = instruction.op0_register().full_register();
        let only_reads = matches!(
            instruction.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Call | Mnemonic::Bt
        );
        if instruction.op0_kind() == OpKind::Register && register.is_gpr64() && !only_reads {
            self.0[register.number()] = Some(instruction.mnemonic());
        }
    }

    /// Returns true if the register holds the result of arithmetic, or nothing is known about it.
    fn calculated(&self, register: Register) -> bool {
        let number = register.full_register().number() & 15;
        !matches!(
            self.0[number],
            Some(Mnemonic::Mov | Mnemonic::Pop | Mnemonic::Cmovne | Mnemonic::Cmove)
        )
    }
}

/// Targets of the branches in possible code.
pub(super) fn branches(code: &[u8], start: u64) -> Vec<u64> {
    let branch = |instruction: Instruction| {
        let is_branch = instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near();
        is_branch.then(|| instruction.near_branch_target())
    };
    decoder(code, start).into_iter().filter_map(branch).collect()
}

fn is_padding(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop
        || instruction.flow_control() == FlowControl::Interrupt
        || instruction.mnemonic() == Mnemonic::Xchg && instruction.len() <= 2
}

/// A set of small numbers.
#[derive(Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, number: u64) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    fn get(&self, number: u64) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let bits = |(word, bits): (usize, &u64)| {
            let mut rest = *bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| u64::from(rest.trailing_zeros()))?;
                rest &= rest - 1;
                Some(word as u64 * 64 + bit)
            })
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(code: &[u8]) -> Result<Vec<u64>, CodeRefusal> {
        Sweep::new(code, 16..16 + code.len() as u64).map(|sweep| sweep.starts().collect())
    }

    #[test]
    fn blocks_begin_after_branches_but_not_with_padding() {
        // test edi, edi; je 23; nop; ret; nop (padding); 23: ret
        let code = [0x85, 0xff, 0x74, 0x03, 0x90, 0xc3, 0x90, 0xc3];
        assert_eq!(starts(&code), Ok(vec![16, 21, 23]));
    }

    #[test]
    fn a_range_that_is_not_code_alone_is_refused() {
        // The last instruction extends past the range; 06 is invalid in 64-bit code.
        assert_eq!(starts(&[0x90, 0xe8, 0x00]), Err(CodeRefusal::Invalid(17)));
        assert_eq!(starts(&[0x06, 0x90]), Err(CodeRefusal::Invalid(16)));
    }

    #[test]
    fn only_instructions_can_be_marked() {
        // mov eax, 1; ret
        let mut sweep = Sweep::new(&[0xb8, 1, 0, 0, 0, 0xc3], 16..22).unwrap();
        assert_eq!(
            [15, 16, 17, 21, 22].map(|at| sweep.mark(at)),
            [false, true, false, true, false]
        );
        assert_eq!(sweep.starts().collect::<Vec<_>>(), [16, 21]);
    }
}
