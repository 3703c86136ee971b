//! Address that an instruction was about to access, from its AT&T or ARM64 text and the registers.
//!
//! The server computes it as well, and signatures match on it: the reference's result is the right one here, even where
//! it is wrong or missing.

use std::collections::BTreeMap;

use super::lines::{Lazy, capture, found, hex, regex, trim};

type RegisterValues = BTreeMap<String, u64>;

/// Beginning of a memory operand; the rest is ignored.
static SIMPLE: Lazy = Lazy::new(|| regex(r"^\*?(-?0x[0-9a-f]+)?\(%([a-z0-9]+)\)"));
static INDEXED: Lazy =
    Lazy::new(|| regex(r"^(-?0x[0-9a-f]+)?\(%([a-z0-9]+),%([a-z0-9]+),([0-9]+)\)"));
static CONSTANT: Lazy = Lazy::new(|| regex(r"^\$?(-?0x[0-9a-f]+)"));
static NAME: Lazy = Lazy::new(|| regex(r"^[a-z.]"));
static STACK: Lazy = Lazy::new(|| regex(r"^(?:push|pop|call)[lwq]?$"));
static ARM_MEMORY: Lazy = Lazy::new(|| regex(r"^\s*\[(.*)\]$"));

/// Registers that only x86 has.
const X86: &str =
    " eax ebx ecx edx esi edi ebp esp eip rax rbx rcx rdx rsi rdi rbp rsp r13 r14 r15 rip ";

/// The reference fails on this, and its server answers 500.
#[derive(Debug)]
pub(super) struct Unreadable;

/// Computes the address. None if the instruction accesses no memory whose address the registers give.
pub(super) fn of(instruction: &str, registers: &RegisterValues) -> Result<Option<u64>, Unreadable> {
    AddressReader { registers }.address(trim(instruction))
}

struct AddressReader<'a> {
    registers: &'a RegisterValues,
}

impl AddressReader<'_> {
    fn first(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.registers.get(*name).copied())
    }

    fn is_x86(&self) -> bool {
        self.registers.keys().any(|name| X86.contains(&format!(" {name} ")))
    }

    fn counter(&self) -> Result<Option<u64>, Unreadable> {
        self.first(&["rip", "eip", "pc"]).map(Some).ok_or(Unreadable)
    }

    fn stack(&self) -> Result<Option<u64>, Unreadable> {
        self.first(&["rsp", "esp", "sp"]).map(Some).ok_or(Unreadable)
    }

    /// Value of a register, or of a part of a wider one.
    fn register(&self, name: &str) -> Option<u64> {
        let wide = |name: String| self.registers.get(&name).copied();
        let of = |stem: &str| wide(format!("e{stem}x")).or_else(|| wide(format!("r{stem}x")));
        let part = || match name.as_bytes() {
            [b'e', ..] => wide(format!("r{}", &name[1..])).map(|value| value & 0xffff_ffff),
            [b'w', ..] => wide(format!("x{}", &name[1..])).map(|value| value & 0xffff_ffff),
            [_, b'x'] => of(&name[..1]).map(|value| value & 0xffff),
            [_, b'h'] => of(&name[..1]).map(|value| value >> 8 & 0xff),
            [_, b'l'] => of(&name[..1]).map(|value| value & 0xff),
            _ => None,
        };
        self.first(&[name]).or_else(part)
    }

    /// Truncates to the register width of the machine.
    fn wrapped(&self, sum: u64) -> u64 {
        let is_wide = self.first(&["rax", "x0"]).is_some();
        if is_wide { sum } else { sum & 0xffff_ffff }
    }

    fn address(&self, instruction: &str) -> Result<Option<u64>, Unreadable> {
        if instruction.is_empty() {
            return self.counter();
        }
        let Some((name, operands)) = instruction.split_once(char::is_whitespace) else {
            return match instruction {
                "ret" | "retq" => self.stack(),
                "ud2" | "(bad)" => self.counter(),
                _ => Err(Unreadable),
            };
        };
        if !found(&NAME, name) {
            return Err(Unreadable);
        }
        // Splits at the commas inside brackets as well.
        let parts: Vec<&str> = operands.trim_start().split(',').collect();
        if self.is_x86() { self.x86(name, &parts) } else { self.arm64(name, &parts) }
    }

    fn x86(&self, name: &str, parts: &[&str]) -> Result<Option<u64>, Unreadable> {
        match *parts {
            [only] if found(&STACK, name) => match is_memory(only) {
                true => Ok(self.simple(only)),
                false => self.stack(),
            },
            [only] => Ok(if name.starts_with("set") { self.simple(only) } else { None }),
            [first, second] => self.two(first, second),
            [first, _, third] => match first.contains('(') && third.contains(')') {
                true => Ok(self.indexed(&parts.join(","))),
                false => Err(Unreadable),
            },
            [first, ..] if parts.len() > 4 || first.contains(')') => Err(Unreadable),
            [first, ..] if first.contains('(') => Ok(self.indexed(&parts[..3].join(","))),
            _ => Ok(self.indexed(&parts[1..].join(","))),
        }
    }

    fn two(&self, first: &str, second: &str) -> Result<Option<u64>, Unreadable> {
        match (is_memory(first), is_memory(second)) {
            (true, true) if second.contains(":(") => Ok(None),
            (true, true) => Err(Unreadable),
            (true, false) => Ok(self.simple(first)),
            (false, true) => Ok(self.simple(second)),
            (false, false) => {
                let constant = |operand| number(capture(&CONSTANT, operand)?);
                let value = constant(second).or_else(|| constant(first));
                Ok(value.map(|value| self.wrapped(value)))
            }
        }
    }

    /// `OFF(%base)`.
    fn simple(&self, operand: &str) -> Option<u64> {
        let groups = SIMPLE.captures(operand).ok()??;
        let group = |at: usize| groups.get(at).map(|group| group.as_str());
        let offset = group(1).map_or(Some(0), number)?;
        Some(self.wrapped(self.register(group(2)?)?.wrapping_add(offset)))
    }

    /// `OFF(%base,%index,SCALE)`.
    fn indexed(&self, operand: &str) -> Option<u64> {
        let groups = INDEXED.captures(operand).ok()??;
        let group = |at: usize| groups.get(at).map(|group| group.as_str());
        let offset = group(1).map_or(Some(0), number)?;
        let index = self.register(group(3)?)?.wrapping_mul(hex(group(4)?)?);
        Some(self.wrapped(self.register(group(2)?)?.wrapping_add(index).wrapping_add(offset)))
    }

    fn arm64(&self, name: &str, parts: &[&str]) -> Result<Option<u64>, Unreadable> {
        let parts = joined(parts);
        match &parts[..] {
            [only] if name == ".inst" && only.ends_with("; undefined") => self.counter(),
            [_] if name == "brk" => self.counter(),
            [_, place] if name.starts_with("ldr") || name.starts_with("str") => {
                let Some(place) = capture(&ARM_MEMORY, place) else { return Ok(None) };
                let (base, offset) = match place.split(',').collect::<Vec<_>>()[..] {
                    [base] => (base, 0),
                    [base, offset] => (base, arm_number(offset).ok_or(Unreadable)?),
                    _ => return Ok(None),
                };
                let base = self.register(base);
                Ok(base.map(|base| self.wrapped(base.wrapping_add(offset))))
            }
            _ => Ok(None),
        }
    }
}

fn is_memory(operand: &str) -> bool {
    operand.contains('(') && operand.contains(')')
}

/// Joins two parts enclosed by one pair of square brackets.
fn joined(parts: &[&str]) -> Vec<String> {
    let mut joined: Vec<String> = vec![];
    for part in parts {
        match joined.last_mut() {
            Some(last)
                if last.contains('[')
                    && !last.contains(']')
                    && part.contains(']')
                    && !part.contains('[') =>
            {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => joined.push((*part).to_owned()),
        }
    }
    joined
}

fn arm_number(text: &str) -> Option<u64> {
    let text = text.replace('#', "");
    let text = trim(&text);
    if text.starts_with("0x") { number(text) } else { text.parse().ok().map(i64::cast_unsigned) }
}

/// Parses `0x10`, and `-0x10` with wraparound.
fn number(text: &str) -> Option<u64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = hex(digits.strip_prefix("0x")?)?;
    Some(if is_negative { value.wrapping_neg() } else { value })
}
