//! The families of deterministic steps, their names and their order.

use super::super::values::ARITH_MAX;

/// Number of arithmetic steps, of both signs.
pub(super) const ARITH_VARIANTS: usize = 2 * ARITH_MAX as usize;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Bits(usize),
    /// Appends zeros and sets one bit of them: a program that receives less than it reads sees zeros, so this is the
    /// smallest step towards a longer input.
    Append,
    Bytes(usize),
    Arith(usize),
    Interesting(usize),
    UserOverwrite,
    UserInsert,
    AutoOverwrite,
}

/// One family of steps: its name in file names, its name on the screen, and its kind.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) op: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
}

const fn family(op: &'static str, title: &'static str, kind: Kind) -> Family {
    Family { op, title, kind }
}

/// Maximum number of bytes that [`Kind::Append`] adds: two 32-bit fields.
pub(super) const APPENDED: usize = 8;

/// Families in AFL's order, with the bits after the end behind the single bits of the input.
pub(super) static FAMILIES: [Family; 16] = [
    family("flip1", "bitflip 1/1", Kind::Bits(1)),
    family("append", "bit after the end", Kind::Append),
    family("flip2", "bitflip 2/1", Kind::Bits(2)),
    family("flip4", "bitflip 4/1", Kind::Bits(4)),
    family("flip8", "bitflip 8/8", Kind::Bytes(1)),
    family("flip16", "bitflip 16/8", Kind::Bytes(2)),
    family("flip32", "bitflip 32/8", Kind::Bytes(4)),
    family("arith8", "arith 8/8", Kind::Arith(1)),
    family("arith16", "arith 16/8", Kind::Arith(2)),
    family("arith32", "arith 32/8", Kind::Arith(4)),
    family("int8", "interest 8/8", Kind::Interesting(1)),
    family("int16", "interest 16/8", Kind::Interesting(2)),
    family("int32", "interest 32/8", Kind::Interesting(4)),
    family("ext_UO", "user extras (over)", Kind::UserOverwrite),
    family("ext_UI", "user extras (insert)", Kind::UserInsert),
    family("ext_AO", "auto extras (over)", Kind::AutoOverwrite),
];

/// Order for inputs above `WALK_LIMIT`: the byte flips first, as probes.
pub(super) static PROBE_FIRST: [usize; 16] = [4, 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Number of distinct byte orders for a window of `width` bytes.
pub(super) fn orders(width: usize) -> usize {
    if width == 1 { 1 } else { 2 }
}

/// Number of positions at which a family changes the same byte.
pub(super) fn reach(kind: Kind) -> usize {
    match kind {
        Kind::Bits(_) => 8,
        Kind::Bytes(width) | Kind::Arith(width) | Kind::Interesting(width) => width,
        Kind::UserOverwrite | Kind::AutoOverwrite => 1,
        Kind::UserInsert => 2,
        Kind::Append => 8 * APPENDED,
    }
}
