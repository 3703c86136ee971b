//! The address an instruction was about to touch, from its AT&T or ARM64 text and the registers.

use std::collections::BTreeMap;

use super::lines::{Lazy, hex, regex};

type Registers = BTreeMap<String, u64>;

/// `OFF(%base,%index,SCALE)`, of which all but the brackets may be missing.
static MEMORY: Lazy = Lazy::new(|| {
    regex(r"^\*?(-?0x[0-9a-f]+|-?\d+)?\((?:%([a-z0-9]+))?(?:,%([a-z0-9]+)(?:,(\d+))?)?\)$")
});
static ARM_MEMORY: Lazy = Lazy::new(|| regex(r"\[([a-z0-9]+)(?:,\s*#(-?0x[0-9a-f]+|-?\d+))?\]$"));

/// The reference gives up, and its server answers 500.
#[derive(Debug)]
pub(super) struct Unreadable;

/// None if the instruction touches no memory that the registers tell.
pub(super) fn of(instruction: &str, registers: &Registers) -> Result<Option<u64>, Unreadable> {
    let machine = Machine { registers };
    if machine.is_arm64() { machine.arm64(instruction) } else { machine.x86(instruction) }
}

struct Machine<'a> {
    registers: &'a Registers,
}

impl Machine<'_> {
    fn first(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.registers.get(*name).copied())
    }

    fn is_arm64(&self) -> bool {
        self.registers.contains_key("x0")
    }

    fn counter(&self) -> Result<Option<u64>, Unreadable> {
        self.first(&["rip", "eip", "pc"]).map(Some).ok_or(Unreadable)
    }

    fn stack(&self) -> Option<u64> {
        self.first(&["rsp", "esp", "sp"])
    }

    /// A register, or the part of a wider one.
    fn register(&self, name: &str) -> Option<i128> {
        let (wide, shift, bits) = part_of(name);
        let value = self.first(&[name]);
        let cut = |wide: u64| (wide >> shift) & (u64::MAX >> (64 - bits));
        let value = value.or_else(|| wide.iter().find_map(|w| self.first(&[w.as_str()]).map(cut)));
        value.map(|value| self.signed(value))
    }

    /// Addresses are computed with signs, as wide as the machine.
    fn signed(&self, value: u64) -> i128 {
        if self.is_wide() {
            i128::from(value.cast_signed())
        } else {
            i128::from(value as u32 as i32)
        }
    }

    fn wrapped(&self, sum: i128) -> u64 {
        if self.is_wide() { sum as u64 } else { u64::from(sum as u32) }
    }

    fn is_wide(&self) -> bool {
        self.registers.contains_key("rax") || self.is_arm64()
    }

    fn sum(
        &self,
        base: Option<&str>,
        index: Option<&str>,
        scale: i128,
        offset: i128,
    ) -> Option<u64> {
        let value = |name: Option<&str>| name.map_or(Some(0), |name| self.register(name));
        Some(self.wrapped(offset + value(base)? + value(index)? * scale))
    }

    fn x86(&self, instruction: &str) -> Result<Option<u64>, Unreadable> {
        if instruction.is_empty() {
            return self.counter();
        }
        let (name, operands) = match instruction.split_once(char::is_whitespace) {
            Some((name, operands)) => (name, split_operands(operands)),
            None => (instruction, vec![]),
        };
        match operands[..] {
            [] => match name {
                "ret" | "retq" => Ok(self.stack()),
                "ud2" | "(bad)" => self.counter(),
                _ => Err(Unreadable),
            },
            [only] => Ok(self.one(name, only)),
            [first, second] => self.two(first, second),
            _ => Err(Unreadable),
        }
    }

    fn one(&self, name: &str, operand: &str) -> Option<u64> {
        let stem = name.strip_suffix(['l', 'w', 'q']).unwrap_or(name);
        if ["push", "pop", "call", "cal"].contains(&stem) {
            return self.memory(operand).or_else(|| self.stack());
        }
        let has_index = operand.contains(",%") || operand.contains("(,");
        if name.starts_with("set") || has_index { self.memory(operand) } else { None }
    }

    fn two(&self, first: &str, second: &str) -> Result<Option<u64>, Unreadable> {
        match (first.contains('('), second.contains('(')) {
            (true, true) if second.contains(":(") => Ok(None),
            (true, true) => Err(Unreadable),
            (true, false) => Ok(self.memory(first)),
            (false, true) => Ok(self.memory(second)),
            (false, false) => {
                Ok(constant(second).or_else(|| constant(first)).map(|v| self.wrapped(v)))
            }
        }
    }

    fn memory(&self, operand: &str) -> Option<u64> {
        let groups = MEMORY.captures(operand).ok()??;
        let group = |at: usize| groups.get(at).map(|group| group.as_str());
        let offset = group(1).map_or(Some(0), number)?;
        let scale = group(4).map_or(Some(1), number)?;
        self.sum(group(2), group(3), scale, offset)
    }

    fn arm64(&self, instruction: &str) -> Result<Option<u64>, Unreadable> {
        if instruction.is_empty() || instruction.starts_with("brk") {
            return self.counter();
        }
        if instruction.starts_with(".inst") && instruction.ends_with("; undefined") {
            return self.counter();
        }
        if !instruction.starts_with("ldr") && !instruction.starts_with("str") {
            return Ok(None);
        }
        let groups = ARM_MEMORY.captures(instruction).ok().flatten().ok_or(Unreadable)?;
        let group = |at: usize| groups.get(at).map(|group| group.as_str());
        let Some(offset) = group(2).map_or(Some(0), number) else { return Ok(None) };
        Ok(self.sum(group(1), None, 1, offset))
    }
}

/// At commas outside brackets.
fn split_operands(text: &str) -> Vec<&str> {
    let mut depth = 0_i64;
    let at_comma = move |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0
    };
    text.trim().split(at_comma).map(str::trim).collect()
}

/// `0x10`, `-0x10`, `$0x10`.
fn constant(operand: &str) -> Option<i128> {
    let text = operand.strip_prefix('$').unwrap_or(operand);
    text.strip_prefix('-').unwrap_or(text).starts_with("0x").then(|| number(text))?
}

fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => hex(digits)?,
        None => digits.parse().ok()?,
    };
    Some(sign * i128::from(value))
}

/// The wide registers that hold it, and which of their bits it is.
fn part_of(name: &str) -> (Vec<String>, u32, u32) {
    const LETTERS: &[&str] = &["a", "b", "c", "d"];
    const LONG: &[&str] = &["si", "di", "bp", "sp", "ip"];
    let wide = |stem: &str| vec![format!("r{stem}"), format!("e{stem}")];
    if let Some(number) = name.strip_prefix('w') {
        return (vec![format!("x{number}")], 0, 32);
    }
    if let Some(number) =
        name.strip_prefix('r').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        let digits = number.trim_end_matches(['d', 'w', 'b', 'l']);
        let bits = match &number[digits.len()..] {
            "d" => 32,
            "w" => 16,
            "b" | "l" => 8,
            _ => 64,
        };
        return (vec![format!("r{digits}")], 0, bits);
    }
    if let Some(stem) = name.strip_prefix('e') {
        return (vec![format!("r{stem}")], 0, 32);
    }
    for letter in LETTERS {
        match name.strip_prefix(letter) {
            Some("x") => return (wide(name), 0, 16),
            Some("l") => return (wide(&format!("{letter}x")), 0, 8),
            Some("h") => return (wide(&format!("{letter}x")), 8, 8),
            _ => {}
        }
    }
    match name.strip_suffix('l') {
        Some(stem) if LONG.contains(&stem) => (wide(stem), 0, 8),
        _ if LONG.contains(&name) => (wide(name), 0, 16),
        _ => (vec![], 0, 64),
    }
}
