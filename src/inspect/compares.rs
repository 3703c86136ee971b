//! Comparisons in machine code, for the comparison log of a program without instrumentation: `cmp` instructions,
//! exclusive ors used as comparisons, floating-point comparisons, and calls of comparing functions.

use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::blocks::{Blocks, code};
use crate::callees::{Call, Callees};
use crate::comparers::{Comparer, Operands};
use crate::lines::decoder;

/// Size of `struct ffuzz_code_site` (`runtime/native/table.h`).
#[cfg(test)]
const SITE: usize = 32;
/// Number of instructions after a comparison that are searched for a use of its flags.
const NEAR: usize = 8;

/// `enum ffuzz_comparison_kind`.
const EQUAL: u8 = 0;
const UNSIGNED: u8 = 1;
const SIGNED: u8 = 2;
const FLOAT: u8 = 3;
const MEMORY: u8 = 5;
const TEXT: u8 = 6;
const SEARCH: u8 = 7;

/// One comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompareSite {
    pub at: u64,
    length: u8,
    /// Size of an operand; for a call, the method of comparison.
    bytes: u8,
    kind: u8,
    sides: [OperandSide; 2],
}

/// Location of an operand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OperandSide {
    form: u8,
    /// Register numbers, in encoding order.
    base: u8,
    index: u8,
    scale: u8,
    /// The constant, or the displacement; for [`ABSOLUTE`] an address of the file.
    value: i64,
}

/// `enum ffuzz_side`.
const REGISTER: u8 = 0;
const HIGH_REGISTER: u8 = 1;
const CONSTANT: u8 = 2;
const INDIRECT: u8 = 3;
const ABSOLUTE: u8 = 4;
const ADDRESS: u8 = 5;
const VECTOR: u8 = 6;
/// Stands for no register.
const NONE: u8 = 255;
/// `FFUZZ_SITE_XOR`.
const XOR: u8 = 0x80;
/// `FFUZZ_IGNORES_CASE`.
const IGNORES_CASE: u8 = 0x80;

impl CompareSite {
    /// Size in the table of the runtime, with the address first.
    pub const BYTES: usize = 32;

    /// Writes it in the form that the runtime reads.
    pub fn write(&self, byte: u8, out: &mut Vec<u8>) {
        out.extend((self.at as u32).to_le_bytes());
        out.extend([byte, self.length, self.bytes, self.kind]);
        for side in &self.sides {
            out.extend([side.form, side.base, side.index, side.scale]);
        }
        for side in &self.sides {
            out.extend(side.value.to_le_bytes());
        }
    }

    /// Description for users.
    pub fn what(&self) -> String {
        let sign = match self.kind {
            EQUAL => "==",
            UNSIGNED => "unsigned <",
            SIGNED => "<",
            FLOAT => return format!("f{}", 8 * u32::from(self.bytes)),
            MEMORY => return "memory".into(),
            TEXT => return "text".into(),
            _ => return "search".into(),
        };
        format!("i{} {sign}", 8 * u32::from(self.bytes & !XOR))
    }
}

/// Comparisons in the ranges of a file, by address.
pub fn sites(file: &object::File<'_>, blocks: &Blocks) -> Vec<CompareSite> {
    let comparers = Callees::of(file, Comparer::of);
    let mut found = Vec::new();
    let mut instructions = Vec::new();
    for range in &blocks.ranges {
        let Some(code) = code(file, range) else { continue };
        instructions.clear();
        instructions.extend(&mut decoder(code, range.start));
        for (index, instruction) in instructions.iter().enumerate() {
            match instruction.mnemonic() {
                Mnemonic::Cmp => found.extend(compare(instruction, &instructions[index + 1..])),
                Mnemonic::Comiss | Mnemonic::Ucomiss | Mnemonic::Vcomiss | Mnemonic::Vucomiss => {
                    found.extend(numbers(instruction, 4));
                }
                Mnemonic::Comisd | Mnemonic::Ucomisd | Mnemonic::Vcomisd | Mnemonic::Vucomisd => {
                    found.extend(numbers(instruction, 8));
                }
                Mnemonic::Xor if is_compared(instruction, &instructions[index + 1..]) => {
                    found.extend(operands(instruction, EQUAL, XOR));
                }
                Mnemonic::Call | Mnemonic::Jmp => {
                    let call = comparers.called(instruction);
                    found.extend(call.map(|call| CompareSite::call(instruction, call)));
                }
                _ => {}
            }
        }
    }
    found.retain(|site| u32::try_from(site.at).is_ok());
    found.sort_unstable_by_key(|site| site.at);
    found
}

fn compare(instruction: &Instruction, after: &[Instruction]) -> Option<CompareSite> {
    operands(instruction, kind(after)?, 0)
}

/// Returns true if the xor is a comparison: its result is tested for zero, or or-ed with those of other xors, as
/// compilers compare short blocks of memory.
fn is_compared(xor: &Instruction, after: &[Instruction]) -> bool {
    let result = xor.op0_register();
    if xor.op0_kind() != OpKind::Register || result == xor.op1_register() {
        return false;
    }
    for instruction in after.iter().take(NEAR) {
        let is_joined = instruction.mnemonic() == Mnemonic::Or
            && [instruction.op0_register(), instruction.op1_register()]
                .iter()
                .any(|register| register.full_register() == result.full_register());
        let asks = matches!(instruction.condition_code(), ConditionCode::e | ConditionCode::ne);
        if is_joined || asks {
            return true;
        }
        let overwrites = instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == result.full_register();
        if overwrites || instruction.flow_control() != FlowControl::Next {
            return false;
        }
    }
    false
}

fn operands(instruction: &Instruction, kind: u8, flags: u8) -> Option<CompareSite> {
    let bytes = match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        OpKind::Memory => instruction.memory_size().size(),
        _ => return None,
    };
    let sides = [side(instruction, 0)?, side(instruction, 1)?];
    Some(CompareSite {
        at: instruction.ip(),
        length: instruction.len() as u8,
        bytes: bytes as u8 | flags,
        kind,
        sides,
    })
}

/// A floating-point comparison. One of a number with itself only tests for NaN, and is left out.
fn numbers(instruction: &Instruction, bytes: u8) -> Option<CompareSite> {
    let side = |operand| match instruction.op_kind(operand) {
        OpKind::Register => {
            let number = instruction.op_register(operand) as u32 - Register::XMM0 as u32;
            let base = u8::try_from(number).ok().filter(|number| *number < 16)?;
            Some(OperandSide { form: VECTOR, base, index: NONE, scale: 0, value: 0 })
        }
        _ => memory(instruction),
    };
    let sides = [side(0)?, side(1)?];
    let site = CompareSite {
        at: instruction.ip(),
        length: instruction.len() as u8,
        bytes,
        kind: FLOAT,
        sides,
    };
    (sides[0] != sides[1]).then_some(site)
}

/// Kind of comparison, from the conditions that read the flags; None if none does.
fn kind(after: &[Instruction]) -> Option<u8> {
    let mut kind = None;
    for instruction in after.iter().take(NEAR) {
        let asked = match instruction.condition_code() {
            ConditionCode::None => None,
            ConditionCode::e | ConditionCode::ne => Some(EQUAL),
            ConditionCode::a | ConditionCode::ae | ConditionCode::b | ConditionCode::be => {
                Some(UNSIGNED)
            }
            _ => Some(SIGNED),
        };
        // If both are used, the order tells more.
        kind = kind.max(asked);
        let reads_carry = matches!(instruction.mnemonic(), Mnemonic::Sbb | Mnemonic::Adc);
        if reads_carry {
            kind = kind.max(Some(UNSIGNED));
        }
        let is_jump = instruction.is_jmp_short_or_near()
            || instruction.is_jmp_near_indirect()
            || instruction.mnemonic() == Mnemonic::Ret;
        if is_jump || instruction.rflags_modified() != 0 {
            break;
        }
    }
    kind
}

fn side(instruction: &Instruction, operand: u32) -> Option<OperandSide> {
    match instruction.op_kind(operand) {
        OpKind::Register => register(instruction.op_register(operand)),
        OpKind::Memory => memory(instruction),
        _ => {
            let value = instruction.try_immediate(operand).ok()?.cast_signed();
            Some(OperandSide { form: CONSTANT, value, base: NONE, index: NONE, scale: 0 })
        }
    }
}

fn register(register: Register) -> Option<OperandSide> {
    if !register.is_gpr() {
        return None;
    }
    let form = match register {
        Register::AH | Register::BH | Register::CH | Register::DH => HIGH_REGISTER,
        _ => REGISTER,
    };
    Some(OperandSide { form, base: number(register)?, index: NONE, scale: 0, value: 0 })
}

/// A memory operand; None if it uses a segment or 32-bit addressing.
fn memory(instruction: &Instruction) -> Option<OperandSide> {
    if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        let value = instruction.ip_rel_memory_address().cast_signed();
        return Some(OperandSide { form: ABSOLUTE, base: NONE, index: NONE, scale: 0, value });
    }
    let part = |register: Register| match register {
        Register::None => Some(NONE),
        register if register.is_gpr64() => number(register),
        _ => None,
    };
    Some(OperandSide {
        form: INDIRECT,
        base: part(instruction.memory_base())?,
        index: part(instruction.memory_index())?,
        scale: instruction.memory_index_scale() as u8,
        value: instruction.memory_displacement64().cast_signed(),
    })
}

/// Number of a register in encoding order: rax, rcx, rdx, rbx, rsp …
fn number(register: Register) -> Option<u8> {
    u8::try_from(register.full_register() as u32 - Register::RAX as u32).ok()
}

impl CompareSite {
    /// A call of, or a jump to, a comparing function.
    fn call(instruction: &Instruction, call: Call<Comparer>) -> Self {
        let Call { callee: comparer, target, is_slot } = call;
        let form = if is_slot { ABSOLUTE } else { ADDRESS };
        let is_jump = instruction.mnemonic() == Mnemonic::Jmp;
        let leads = OperandSide { form, value: target.cast_signed(), ..OperandSide::default() };
        let how = OperandSide { value: is_jump.into(), ..OperandSide::default() };
        let kind = match comparer.form {
            Operands::Memory => MEMORY,
            Operands::Search | Operands::SearchInLength | Operands::SearchOfLengths => SEARCH,
            _ => TEXT,
        };
        Self {
            at: instruction.ip(),
            length: instruction.len() as u8,
            bytes: comparer.form as u8 | if comparer.ignores_case { IGNORES_CASE } else { 0 },
            kind,
            sides: [leads, how],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(code: &[u8]) -> Option<CompareSite> {
        let instructions: Vec<_> = decoder(code, 0x1000).into_iter().collect();
        compare(&instructions[0], &instructions[1..])
    }

    #[test]
    fn operands_are_registers_constants_and_memory() {
        // cmp ah, 7; je
        let site = first(&[0x80, 0xfc, 0x07, 0x74, 0x00]).unwrap();
        assert_eq!((site.length, site.bytes, site.kind), (3, 1, EQUAL));
        assert_eq!((site.sides[0].form, site.sides[0].base), (HIGH_REGISTER, 0));
        assert_eq!((site.sides[1].form, site.sides[1].value), (CONSTANT, 7));
        // cmp qword [rbx + r9*4 - 8], -1; jl
        let site = first(&[0x4a, 0x83, 0x7c, 0x8b, 0xf8, 0xff, 0x7c, 0x00]).unwrap();
        assert_eq!((site.bytes, site.kind), (8, SIGNED));
        let memory = OperandSide { form: INDIRECT, base: 3, index: 9, scale: 4, value: -8 };
        assert_eq!((site.sides[0], site.sides[1].value), (memory, -1));
        // cmp eax, [rip + 0x10]; ja
        let site = first(&[0x3b, 0x05, 0x10, 0, 0, 0, 0x77, 0x00]).unwrap();
        assert_eq!((site.sides[1].form, site.sides[1].value), (ABSOLUTE, 0x1016));
        assert_eq!((site.kind, site.bytes), (UNSIGNED, 4));
    }

    #[test]
    fn floating_point_numbers_are_in_vector_registers_and_memory() {
        let numbers = |code: &[u8], bytes| numbers(&decoder(code, 0x1000).decode(), bytes);
        // comisd xmm9, [rip + 0x10]
        let site = numbers(&[0x66, 0x44, 0x0f, 0x2f, 0x0d, 0x10, 0, 0, 0], 8).unwrap();
        assert_eq!((site.sides[0].form, site.sides[0].base), (VECTOR, 9));
        assert_eq!((site.sides[1].form, site.sides[1].value), (ABSOLUTE, 0x1019));
        assert_eq!((site.length, site.what()), (9, "f64".into()));
        // vucomiss xmm1, xmm2; ucomiss xmm0, xmm0; vucomiss xmm16, xmm2
        let site = numbers(&[0xc5, 0xf8, 0x2e, 0xca], 4).unwrap();
        assert_eq!((site.sides[0].base, site.sides[1].base, site.what()), (1, 2, "f32".into()));
        assert_eq!(numbers(&[0x0f, 0x2e, 0xc0], 4), None);
        assert_eq!(numbers(&[0x62, 0xe1, 0x7c, 0x08, 0x2e, 0xc2], 4), None);
    }

    #[test]
    fn the_order_counts_if_both_are_asked_and_nothing_if_none_is() {
        // cmp edi, esi; je; jg
        let site = first(&[0x39, 0xf7, 0x74, 0x02, 0x7f, 0x00]).unwrap();
        assert_eq!(site.kind, SIGNED);
        // cmp edi, esi; xor eax, eax; je
        assert_eq!(first(&[0x39, 0xf7, 0x31, 0xc0, 0x74, 0x00]), None);
        // cmp fs:[0x28], rax; jne
        assert_eq!(first(&[0x64, 0x48, 0x39, 0x04, 0x25, 0x28, 0, 0, 0, 0x75, 0]), None);
    }

    #[test]
    fn an_exclusive_or_whose_result_is_joined_compares() {
        // xor ecx, 0x5958; xor edx, 0x5a; or edx, ecx; jne
        let code = [0x81, 0xf1, 0x58, 0x59, 0, 0, 0x83, 0xf2, 0x5a, 0x09, 0xca, 0x75, 0x00];
        let instructions: Vec<_> = decoder(&code, 0x1000).into_iter().collect();
        assert!(is_compared(&instructions[0], &instructions[1..]));
        assert!(is_compared(&instructions[1], &instructions[2..]));
        // xor ecx, ecx; jne; xor ecx, edx; mov ecx, 0; jne
        let code = [0x31, 0xc9, 0x75, 0, 0x31, 0xd1, 0xb9, 0, 0, 0, 0, 0x75, 0];
        let instructions: Vec<_> = decoder(&code, 0x1000).into_iter().collect();
        assert!(!is_compared(&instructions[0], &instructions[1..]));
        assert!(!is_compared(&instructions[2], &instructions[3..]));
    }

    #[test]
    fn a_site_has_the_size_of_the_header() {
        let mut out = Vec::new();
        first(&[0x39, 0xf7, 0x74, 0x02]).unwrap().write(0x39, &mut out);
        assert_eq!((out.len(), out[4], out[5], out[6]), (SITE, 0x39, 2, 4));
    }
}
