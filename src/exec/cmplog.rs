//! The comparison log of AFL++ ("cmplog map"): a segment in which a build with `AFL_LLVM_CMPLOG=1` records its
//! comparisons, as a table of sites and the last operands of each.
//!
//! The target writes the segment, so every number in it is bounds-checked.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use object::{Architecture, Object, ObjectSection, ObjectSymbol, SectionKind};

use super::TargetError;
use super::handshake::Runtime;
use ffuzz_comparisons::log::{ComparisonKind, ComparisonLog, OwnLog};
use ffuzz_inspect::binary;
use ffuzz_inspect::objects::Objects;
use ffuzz_sys::memory::SharedMap;

/// Variable that holds the number of the segment.
pub(super) const ENV: &str = "__AFL_CMPLOG_SHM_ID";
/// Variable that AFL++ sets for such a build only.
pub(super) const MARK: &str = "___AFL_EINS_ZWEI_POLIZEI___";

/// Size of the largest layout in bytes. Untouched pages use no memory.
pub(super) const BYTES: usize = V422.len();
/// Number of sites, by a hash of their addresses.
const KEYS: usize = 1 << 16;
/// Maximum number of comparisons read per run.
const MOST: usize = 1 << 16;
/// Flag in the length of a routine's operand: the operand is text.
const TEXT: u8 = 0x80;

/// Layout of the log in one runtime version; lengths and offsets in bytes.
#[derive(Debug)]
struct Layout {
    header: usize,
    /// Size of the operands of one key.
    area: usize,
    integers: usize,
    routines: usize,
    /// Number of routine slots per key; integers have [`INTEGER_SLOTS`].
    routine_slots: usize,
    /// Offsets in an integer record: the lower halves of both operands, then the upper halves.
    halves: [usize; 4],
    /// Offsets of the operands in a routine record; `lengths` has those of their lengths.
    operands: [usize; 2],
    lengths: [usize; 2],
    longest: usize,
    read: fn(u64) -> Option<Header>,
}

const INTEGER_SLOTS: usize = 32;

/// AFL++ up to 4.10.
const V314: Layout = Layout {
    header: 8,
    area: 1024,
    integers: 32,
    routines: 64,
    routine_slots: 8,
    halves: [0, 8, 16, 24],
    operands: [0, 32],
    lengths: [31, 63],
    longest: 31,
    read: read_wide,
};

/// AFL++ 4.20 and 4.21.
const V420: Layout = Layout {
    header: 2,
    area: 1344,
    integers: 42,
    routines: 66,
    routine_slots: 16,
    halves: [0, 8, 16, 24],
    operands: [0, 33],
    lengths: [32, 65],
    longest: 32,
    read: read_narrow,
};

/// AFL++ from 4.22 on.
const V422: Layout = Layout {
    header: 2,
    area: 2304,
    integers: 72,
    routines: 72,
    routine_slots: 16,
    halves: [0, 32, 8, 40],
    operands: [0, 32],
    lengths: [64, 65],
    longest: 32,
    read: read_narrow,
};

impl Layout {
    const fn len(&self) -> usize {
        KEYS * (self.header + self.area)
    }

    /// Chooses the layout by the hello and, for newer runtimes, by the version in the program's file.
    fn of(runtime: Runtime, program: &Path) -> Result<&'static Self, TargetError> {
        match runtime {
            Runtime::Other => Err(TargetError::LogLayout),
            Runtime::Old => Ok(&V314),
            Runtime::Versioned => {
                let content = fs::read(program).unwrap_or_default();
                Ok(if matches!(minor_version(&content), Some(20 | 21)) { &V420 } else { &V422 })
            }
        }
    }
}

/// Minor version of AFL++ 4 that the file names.
fn minor_version(content: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"afl-compiler-rt++4.";
    let at = content.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let digits = content[at..].iter().take_while(|byte| byte.is_ascii_digit()).take(3);
    digits.fold(None, |number, digit| Some(number.unwrap_or(0) * 10 + u32::from(digit - b'0')))
}

/// Table entry of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Header {
    /// Number of comparisons, modulo a power of two.
    hits: usize,
    /// Size of the largest comparison.
    bytes: usize,
    is_routine: bool,
    /// Bits: equal, greater, less, floating-point.
    attribute: u8,
}

/// Returns None if nothing was compared.
fn read_narrow(bits: u64) -> Option<Header> {
    let hits = (bits & 0x3f) as usize;
    (hits > 0).then_some(Header {
        hits,
        bytes: (bits >> 6 & 0x1f) as usize + 1,
        is_routine: bits >> 11 & 1 == 1,
        attribute: (bits >> 12 & 0xf) as u8,
    })
}

fn read_wide(bits: u64) -> Option<Header> {
    let (hits, kind) = ((bits & 0xff_ffff) as usize, bits >> 53 & 3);
    (hits > 0 && (1..=2).contains(&kind)).then_some(Header {
        hits,
        bytes: (bits >> 48 & 0x1f) as usize + 1,
        is_routine: kind == 2,
        attribute: (bits >> 55 & 0xf) as u8,
    })
}

/// Segment of a target, and the comparisons of its last run.
#[derive(Debug)]
pub(super) struct AflLog {
    map: SharedMap,
    layout: &'static Layout,
    log: OwnLog,
}

impl AflLog {
    /// Creates the log in `map`, [`BYTES`] bytes that the program was offered; `runtime` is from its hello.
    pub(super) fn new(
        map: SharedMap,
        runtime: Runtime,
        program: &Path,
    ) -> Result<Self, TargetError> {
        Ok(Self { map, layout: Layout::of(runtime, program)?, log: OwnLog::partial() })
    }

    /// Clears the headers; call it before a run. Operands without a header are ignored.
    pub(super) fn clear(&mut self) {
        self.map.bytes_mut(0, KEYS * self.layout.header).fill(0);
    }

    /// Reads the comparisons of a run, by key, then by slot.
    pub(super) fn collect(&mut self) {
        self.log.clear();
        read(self.map.bytes(0, self.layout.len()), self.layout, &mut self.log);
    }

    pub(super) fn view(&self) -> ComparisonLog<'_> {
        self.log.view()
    }
}

fn read(map: &[u8], layout: &Layout, log: &mut OwnLog) {
    let (headers, areas) = map.split_at(KEYS * layout.header);
    let mut left = MOST;
    // Nearly all headers are 0.
    for (block, bytes) in headers.chunks_exact(8).enumerate() {
        if bytes == [0; 8] {
            continue;
        }
        for (index, bytes) in bytes.chunks_exact(layout.header).enumerate() {
            let mut bits = [0; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            let Some(header) = (layout.read)(u64::from_le_bytes(bits)) else { continue };
            let key = block * (8 / layout.header) + index;
            let area = &areas[key * layout.area..][..layout.area];
            let (record, slots) = match header.is_routine {
                true => (layout.routines, layout.routine_slots),
                false => (layout.integers, INTEGER_SLOTS),
            };
            for record in area.chunks_exact(record).take(slots.min(header.hits)) {
                if left == 0 {
                    log.cut();
                    return;
                }
                left -= 1;
                match header.is_routine {
                    true => add_routine(log, key as u32, layout, record),
                    false => add_integers(log, key as u32, layout, header, record),
                }
            }
        }
    }
}

fn add_integers(log: &mut OwnLog, key: u32, layout: &Layout, header: Header, record: &[u8]) {
    let half = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let [a, b, upper_a, upper_b] = layout.halves.map(half);
    // Only 16 bytes of a longer operand are logged.
    let bytes = header.bytes.min(16);
    let is_float = header.attribute & 8 != 0;
    let kind = match header.attribute & 7 {
        _ if is_float && matches!(bytes, 4 | 8) => ComparisonKind::Float,
        _ if is_float => ComparisonKind::Equal,
        1 => ComparisonKind::Equal,
        // The log has no signedness, and nothing at all for attribute 0.
        _ => ComparisonKind::Unsigned,
    };
    if bytes <= 8 {
        log.add_variables(key, kind, bytes as u8, a, b);
    } else {
        let whole = |low: u64, high: u64| [low.to_le_bytes(), high.to_le_bytes()].concat();
        let (a, b) = (whole(a, upper_a), whole(b, upper_b));
        log.add_long_integers(key, kind, bytes as u8, [&a[..bytes], &b[..bytes]]);
    }
}

fn add_routine(log: &mut OwnLog, key: u32, layout: &Layout, record: &[u8]) {
    let lengths = layout.lengths.map(|at| record[at]);
    let [mut a, mut b] = [0, 1].map(|side: usize| {
        let length = usize::from(lengths[side] & !TEXT).min(layout.longest);
        &record[layout.operands[side]..][..length]
    });
    if lengths[0] & TEXT == 0 {
        if !a.is_empty() && !b.is_empty() {
            log.add_bytes(key, ComparisonKind::Memory, a, b);
        }
        return;
    }
    let end = |text: &[u8]| text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let last = a.len().saturating_sub(1);
    let is_limited = a.len() == b.len() && a.len() < layout.longest && last > 0;
    if is_limited && (end(a), end(b)) != (last, last) {
        // A length-limited comparison logs two bytes too many.
        (a, b) = (&a[..last - 1], &b[..last - 1]);
    }
    log.add_bytes(key, ComparisonKind::Text, &a[..end(a)], &b[..end(b)]);
}

/// Checks that a program can log comparisons: `ffuzz-cc` built it, or it calls functions of AFL++'s log. Accepts it
/// if that cannot be determined.
pub(super) fn check(program: &Path, env: &[(OsString, OsString)]) -> Result<(), TargetError> {
    let content = fs::read(program).unwrap_or_default();
    let Ok(file) = object::File::parse(&*content) else { return Ok(()) };
    if binary::takes_channel(&content) || calls_log(&file).unwrap_or(true) {
        return Ok(());
    }
    let objects = Objects::of(program, env).map(|objects| objects.files).unwrap_or_default();
    if objects.iter().skip(1).any(|library| imports_log(library)) {
        return Ok(());
    }
    Err(TargetError::NotLogging)
}

fn is_of_log(name: &[u8]) -> bool {
    let callbacks = [&b"__sanitizer_cov_trace_cmp"[..], b"__sanitizer_cov_trace_const_cmp"];
    name.starts_with(b"__cmplog_")
        || name == b"__sanitizer_cov_trace_switch"
        || callbacks.iter().any(|start| name.starts_with(start))
}

/// Returns true if code outside the runtime, which is contiguous, calls the program's log functions. None if it has
/// no such functions or is for another processor.
fn calls_log(file: &object::File<'_>) -> Option<bool> {
    if !matches!(file.architecture(), Architecture::X86_64 | Architecture::I386) {
        return None;
    }
    let symbols = file.dynamic_symbols().chain(file.symbols());
    let own = symbols.filter(|symbol| symbol.is_definition() && symbol.address() != 0);
    let functions = own.filter(|symbol| symbol.name_bytes().is_ok_and(is_of_log));
    let functions: HashSet<u64> = functions.map(|symbol| symbol.address()).collect();
    // A stripped program names only some of them.
    let is_stripped = file.symbols().next().is_none();
    let runtime = *functions.iter().min()?..=*functions.iter().max()?;
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let is_function =
        |callee| functions.contains(&callee) || (is_stripped && runtime.contains(&callee));
    let called = |section: object::Section<'_, '_>| {
        let (start, code) = (section.address(), section.data().unwrap_or_default());
        // Opcode 0xe8 is a call, followed by the distance.
        code.windows(5).enumerate().filter(|(_, bytes)| bytes[0] == 0xe8).any(|(at, bytes)| {
            let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            let at = start + at as u64;
            let callee = (at + 5).wrapping_add_signed(distance.into());
            is_function(callee) && !runtime.contains(&at)
        })
    };
    Some(code.into_iter().any(called))
}

fn imports_log(library: &Path) -> bool {
    let content = fs::read(library).unwrap_or_default();
    let Ok(file) = object::File::parse(&*content) else { return false };
    let is_imported = |symbol: object::Symbol<'_, '_>| {
        symbol.is_undefined() && symbol.name_bytes().is_ok_and(is_of_log)
    };
    file.dynamic_symbols().any(is_imported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_comparisons::log::Operand;

    const LAYOUTS: [&Layout; 3] = [&V314, &V420, &V422];

    fn at(layout: &Layout, key: usize, record: usize, slot: usize) -> usize {
        KEYS * layout.header + key * layout.area + slot * record
    }

    fn put(map: &mut [u8], at: usize, bytes: &[u8]) {
        map[at..at + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn layouts_have_the_sizes_of_the_runtimes() {
        assert_eq!(LAYOUTS.map(Layout::len), [67_633_152, 88_211_456, 151_126_016]);
        assert!(LAYOUTS.iter().all(|layout| layout.len() <= BYTES));
        assert_eq!(minor_version(b"xx AFL++ afl-compiler-rt++4.21a\0"), Some(21));
        assert_eq!((minor_version(b"afl-compiler-rt++4."), minor_version(b"")), (None, None));
    }

    #[test]
    fn integers_texts_and_memory_are_read() {
        let layout = &V422;
        let mut map = vec![0; layout.len()];
        let header = |hits: u16, bytes: u16, routine: u16, attribute: u16| {
            (hits | (bytes - 1) << 6 | routine << 11 | attribute << 12).to_le_bytes()
        };
        put(&mut map, 2 * 7, &header(2, 4, 0, 1));
        for (slot, value) in [5_u64, 6].into_iter().enumerate() {
            put(&mut map, at(layout, 7, 72, slot), &value.to_le_bytes());
            put(&mut map, at(layout, 7, 72, slot) + 32, &[9]);
        }
        put(&mut map, 2 * 8, &header(1, 8, 0, 10));
        put(&mut map, 2 * 9, &header(1, 16, 0, 5));
        put(&mut map, at(layout, 9, 72, 0) + 8, &[3]);
        put(&mut map, 2 * 10, &header(1, 8, 1, 0));
        put(&mut map, at(layout, 10, 72, 0), b"abc\0????");
        put(&mut map, at(layout, 10, 72, 0) + 32, b"keyword\0");
        put(&mut map, at(layout, 10, 72, 0) + 64, &[TEXT + 4, TEXT + 8]);
        put(&mut map, 2 * 11, &header(1, 32, 1, 0));
        put(&mut map, at(layout, 11, 72, 0) + 64, &[32, 32]);
        put(&mut map, 2 * 12, &header(1, 6, 1, 0));
        put(&mut map, at(layout, 12, 72, 0), b"abc1xx");
        put(&mut map, at(layout, 12, 72, 0) + 32, b"abcd\0y");
        put(&mut map, at(layout, 12, 72, 0) + 64, &[TEXT + 6, TEXT + 6]);
        let mut log = OwnLog::partial();
        read(&map, layout, &mut log);
        let seen: Vec<_> = log.view().iter().collect();
        let what: Vec<_> = seen.iter().map(|one| (one.site, one.kind, one.bytes)).collect();
        use ComparisonKind::{Equal, Float, Memory, Text, Unsigned};
        let expected = [
            (7, Equal, 4),
            (7, Equal, 4),
            (8, Float, 8),
            (9, Unsigned, 16),
            (10, Text, 0),
            (11, Memory, 0),
            (12, Text, 0),
        ];
        assert_eq!(what, expected);
        assert_eq!((seen[1].a, seen[1].b), (Operand::Value(6), Operand::Value(9)));
        let Operand::Bytes(wide) = seen[3].a else { panic!("{:?}", seen[3]) };
        assert_eq!((wide.len(), wide[8]), (16, 3));
        assert_eq!((seen[4].a, seen[4].b), (Operand::Bytes(b"abc"), Operand::Bytes(b"keyword")));
        // strncmp of 4 bytes.
        assert_eq!((seen[6].a, seen[6].b), (Operand::Bytes(b"abc1"), Operand::Bytes(b"abcd")));
        assert!(log.view().is_partial() && !log.view().is_cut());
    }

    #[test]
    fn a_table_that_is_scribbled_over_is_cut() {
        for layout in LAYOUTS {
            let mut log = OwnLog::partial();
            read(&vec![0xff; layout.len()], layout, &mut log);
            // In the wide table, kind 3 does not exist.
            let expected = if layout.header == V314.header { 0 } else { MOST };
            assert_eq!(log.view().len(), expected);
            assert_eq!(log.view().is_cut(), expected > 0);
        }
    }

    #[test]
    fn any_map_is_read() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for layout in LAYOUTS {
            let mut map = vec![0; layout.len()];
            for _ in 0..8 {
                let key = random() as usize % (KEYS - 64);
                let (header, area) = (key * layout.header, at(layout, key, 0, 0));
                for start in [header, area] {
                    for byte in &mut map[start..start + 64 * layout.header] {
                        *byte = random() as u8;
                    }
                }
                for byte in &mut map[area..area + layout.area] {
                    *byte = random() as u8;
                }
                let mut log = OwnLog::partial();
                read(&map, layout, &mut log);
                let log = log.view();
                assert!(!log.is_empty() && log.iter().count() <= log.len());
                let is_bounded = |side: Operand<'_>| match side {
                    Operand::Value(_) => true,
                    Operand::Bytes(bytes) => bytes.len() <= layout.longest,
                };
                assert!(log.iter().all(|one| is_bounded(one.a) && is_bounded(one.b)));
            }
        }
    }
}
