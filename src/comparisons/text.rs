//! Operands of comparisons as text.

use std::fmt;

use crate::log::{Comparison, ComparisonKind, Operand};

/// Maximum number of `switch` cases shown.
const MOST_CASES: usize = 16;

/// Formats both operands for display.
impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |operand: &Operand<'_>, constant: bool| {
            let text = match operand {
                Operand::Value(value) => number(*value, self),
                Operand::Bytes(bytes) if self.kind == ComparisonKind::Switch => cases(bytes),
                Operand::Bytes(bytes) if self.bytes > 8 => wide(bytes),
                Operand::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
            };
            if constant { format!("{text} (constant)") } else { text }
        };
        let [a, b] = self.constant;
        write!(f, "{} {} {}", side(&self.a, a), between(self), side(&self.b, b))
    }
}

fn between(comparison: &Comparison<'_>) -> &'static str {
    match comparison.kind {
        ComparisonKind::Switch => "among",
        ComparisonKind::Search => "searched for",
        _ => "and",
    }
}

/// Formats a number in hex, followed by its bytes as text if they are printable; floats in decimal.
fn number(value: u64, comparison: &Comparison<'_>) -> String {
    match (comparison.kind, comparison.bytes) {
        (ComparisonKind::Float, 4) => format!("{:?}", f32::from_bits(value as u32)),
        (ComparisonKind::Float, _) => format!("{:?}", f64::from_bits(value)),
        (_, bytes) => {
            let all = value.to_le_bytes();
            let letters: Vec<u8> =
                all[..bytes.min(8)].iter().copied().take_while(|byte| *byte != 0).collect();
            let is_text = !letters.is_empty()
                && value >> (8 * letters.len().min(7)) <= 0xff
                && letters.iter().all(u8::is_ascii_graphic);
            let text =
                if is_text { format!(" '{}'", letters.escape_ascii()) } else { String::new() };
            format!("{value:#x}{text}")
        }
    }
}

fn wide(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0x0".into() } else { format!("0x{digits}") }
}

fn cases(bytes: &[u8]) -> String {
    let all: Vec<String> = bytes
        .chunks_exact(8)
        .filter_map(|case| case.try_into().ok().map(u64::from_le_bytes))
        .map(|case| format!("{case:#x}"))
        .collect();
    match all.len() {
        0..=MOST_CASES => all.join(" "),
        count => format!("{} … ({count} cases)", all[..MOST_CASES].join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(kind: ComparisonKind, bytes: usize) -> Comparison<'static> {
        let value = Operand::Value(0);
        let constant = [false, true];
        Comparison {
            site: 1,
            kind,
            bytes,
            constant,
            ignores_case: false,
            is_guess: false,
            a: value,
            b: value,
        }
    }

    #[test]
    fn operands_are_shown_as_what_they_are() {
        let equal = comparison(ComparisonKind::Equal, 4);
        let of = |a, b| Comparison { a: Operand::Value(a), b: Operand::Value(b), ..equal };
        assert_eq!(of(0x4947_414d, 7).to_string(), "0x4947414d 'MAGI' and 0x7 (constant)");
        assert_eq!(of(0x41, 0).to_string(), "0x41 'A' and 0x0 (constant)");
        assert_eq!(of(0x0041_0041, 0).to_string(), "0x410041 and 0x0 (constant)");
        let double = Comparison {
            a: Operand::Value(1.5f64.to_bits()),
            b: Operand::Value(0),
            ..comparison(ComparisonKind::Float, 8)
        };
        assert_eq!(double.to_string(), "1.5 and 0.0 (constant)");
        let switch = Comparison {
            a: Operand::Value(3),
            b: Operand::Bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]),
            constant: [false; 2],
            ..comparison(ComparisonKind::Switch, 1)
        };
        assert_eq!(switch.to_string(), "0x3 among 0x1 0x2");
        let text = Comparison {
            a: Operand::Bytes(b"a\x01"),
            b: Operand::Bytes(b"key"),
            constant: [false; 2],
            ..comparison(ComparisonKind::Text, 0)
        };
        assert_eq!(text.to_string(), "\"a\\x01\" and \"key\"");
        let mut big = [0; 16];
        big[8] = 1;
        let wide = Comparison {
            a: Operand::Bytes(&big),
            b: Operand::Bytes(&[0; 16]),
            ..comparison(ComparisonKind::Equal, 16)
        };
        assert_eq!(wide.to_string(), "0x10000000000000000 and 0x0 (constant)");
    }
}
