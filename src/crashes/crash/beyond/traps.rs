//! Checks of UndefinedBehaviorSanitizer that trap (`-fsanitize-trap=undefined`): clang encodes the number of the check
//! in the trapping instruction, `ud1` on x86-64 and `brk` on AArch64.

use crate::crash::lines::{Lazy, capture, found, hex, regex};

/// Finding of each check, by its number in clang's list of handlers (`SanitizerHandler.h`), which only grows at its
/// end.
const CHECKS: [&str; 25] = [
    "integer addition overflow",
    "unreachable code",
    "control flow integrity",
    "division by zero or overflow",
    "wrong dynamic type",
    "float conversion overflow",
    "wrong function type",
    "implicit conversion",
    "invalid builtin argument",
    "invalid cast",
    "invalid bool or enum value",
    "missing return",
    "integer multiplication overflow",
    "integer negation overflow",
    "null argument",
    "null return",
    "null argument",
    "null return",
    "index out of bounds",
    "pointer overflow",
    "shift out of bounds",
    "integer subtraction overflow",
    "null or misaligned pointer",
    "alignment assumption",
    "array bound not positive",
];
/// Upper byte of a sanitizer's `brk` operand; the lower one is the number of the check.
const BRK: u64 = 0x5500;

static UD1: Lazy = Lazy::new(|| regex(r"^ud1l?\s+(?:0x([0-9a-f]+))?\(%eax\),\s*%eax"));
static BREAK: Lazy = Lazy::new(|| regex(r"^brk\s+#0x([0-9a-f]+)"));

/// Finding of the check that executed this instruction, in a debugger's notation. None for another instruction.
pub(super) fn check(instruction: &str) -> Option<&'static str> {
    let number = if found(&UD1, instruction) {
        capture(&UD1, instruction).map_or(Some(0), hex)?
    } else {
        capture(&BREAK, instruction).and_then(hex)?.checked_sub(BRK)?
    };
    CHECKS.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_check_is_in_its_instruction() {
        assert_eq!(check("ud1l   0x12(%eax),%eax"), Some("index out of bounds"));
        assert_eq!(check("ud1    (%eax),%eax"), Some("integer addition overflow"));
        assert_eq!(check("brk\t#0x5514"), Some("shift out of bounds"));
        for other in ["ud2", "brk\t#0x1", "ud1l   0xff(%eax),%eax", "ud1 %ecx,%ebx", "nop"] {
            assert_eq!(check(other), None, "{other}");
        }
    }
}
