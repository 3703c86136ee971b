//! Calls that domains count in a program without source: of functions that allocate, and of those that write. The
//! runtime (`runtime/native/`) counts them under keys derived from the return address; this module names the same
//! keys.

use std::collections::HashMap;
use std::path::Path;

use ffuzz_config::options::NativeDomain;
use ffuzz_engine::domain::Site;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use crate::blocks::code;
use crate::callees::Callees;
use crate::code::Code;
use crate::lines::decoder;

/// Variable that tells the runtime which domains to count (`runtime/native/domains.h`).
pub const ENV: &str = "FFUZZ_DOMAINS";

/// A function whose calls are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Counted {
    name: &'static str,
    writes: bool,
}

/// The functions of `runtime/native/allocations.c`.
const ALLOCATIONS: [&str; 21] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "posix_memalign",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
];

/// The functions of `runtime/native/writes.c`.
const WRITES: [&str; 36] = [
    "write",
    "pwrite",
    "pwrite64",
    "writev",
    "pwritev",
    "send",
    "sendto",
    "sendmsg",
    "sendfile",
    "splice",
    "printf",
    "fprintf",
    "dprintf",
    "vprintf",
    "vfprintf",
    "vdprintf",
    "__printf_chk",
    "__fprintf_chk",
    "__dprintf_chk",
    "__vprintf_chk",
    "__vfprintf_chk",
    "__vdprintf_chk",
    "fwrite",
    "fwrite_unlocked",
    "fputs",
    "fputs_unlocked",
    "puts",
    "putc",
    "putc_unlocked",
    "putchar",
    "putchar_unlocked",
    "fputc",
    "_IO_putc",
    "fputc_unlocked",
    "_ZNSo5writeEPKcl",
    "_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l",
];

impl Counted {
    fn of(name: &str) -> Option<Self> {
        let known = |list: &'static [&'static str]| list.iter().find(|known| **known == name);
        let allocates = known(&ALLOCATIONS).map(|name| Self { name, writes: false });
        allocates.or_else(|| known(&WRITES).map(|name| Self { name, writes: true }))
    }

    fn counts_in(self, domain: NativeDomain) -> bool {
        match domain {
            NativeDomain::Mem | NativeDomain::Heap => !self.writes,
            NativeDomain::Out => self.writes,
            NativeDomain::Perf | NativeDomain::Slow => false,
        }
    }

    /// Name for users.
    fn what(self) -> &'static str {
        match self.name {
            name if name.starts_with("_Znwm") => "operator new",
            name if name.starts_with("_Znam") => "operator new[]",
            name if name.starts_with("_ZNSo") || name.starts_with("_ZSt") => "ostream",
            "_IO_putc" => "putc",
            name => name.trim_start_matches("__").trim_end_matches("_chk"),
        }
    }
}

/// Register contents that lead to counted functions: programs call through pointers, such as `xmlMalloc`. Code is
/// read from top to bottom, ignoring jumps: a wrong guess only adds a superfluous name.
#[derive(Debug, Default)]
struct Registers(HashMap<Register, Held>);

/// The address of a function, or of a variable that holds one.
#[derive(Clone, Copy, Debug)]
enum Held {
    Function(Counted),
    Variable(Counted),
}

impl Registers {
    fn called(&self, instruction: &Instruction) -> Option<Counted> {
        if !matches!(instruction.mnemonic(), Mnemonic::Call | Mnemonic::Jmp) {
            return None;
        }
        match (instruction.op0_kind(), self.0.get(&pointer(instruction)?)?) {
            (OpKind::Register, Held::Function(counted)) => Some(*counted),
            (OpKind::Memory, Held::Variable(counted)) => Some(*counted),
            _ => None,
        }
    }

    fn follow(&mut self, instruction: &Instruction, callees: &Callees<'_, Counted>) {
        if instruction.mnemonic() == Mnemonic::Call {
            self.0.retain(|register, _| is_kept_by_calls(*register));
            return;
        }
        let written = instruction.op0_register().full_register();
        if instruction.op0_kind() != OpKind::Register || written == Register::None {
            return;
        }
        match self.loaded(instruction, callees) {
            Some(held) => self.0.insert(written, held),
            None => self.0.remove(&written),
        };
    }

    fn loaded(&self, instruction: &Instruction, callees: &Callees<'_, Counted>) -> Option<Held> {
        let is_load = instruction.op1_kind() == OpKind::Memory;
        match (instruction.mnemonic(), instruction.is_ip_rel_memory_operand()) {
            (Mnemonic::Mov, true) if is_load => {
                let place = instruction.ip_rel_memory_address();
                let variable = || callees.in_variable(place).map(Held::Variable);
                callees.in_slot(place).map(Held::Function).or_else(variable)
            }
            (Mnemonic::Lea, true) => {
                callees.in_slot(instruction.ip_rel_memory_address()).map(Held::Variable)
            }
            (Mnemonic::Mov, false) if is_load => match self.0.get(&pointer(instruction)?)? {
                Held::Variable(counted) => Some(Held::Function(*counted)),
                Held::Function(_) => None,
            },
            (Mnemonic::Mov, _) => self.0.get(&instruction.op1_register()).copied(),
            _ => None,
        }
    }
}

/// The register of an operand that is a register, or memory at that register's address.
fn pointer(instruction: &Instruction) -> Option<Register> {
    let is_plain =
        instruction.memory_index() == Register::None && instruction.memory_displacement64() == 0;
    match instruction.op0_kind() {
        OpKind::Register if instruction.op1_kind() != OpKind::Memory => {
            Some(instruction.op0_register())
        }
        _ => is_plain.then(|| instruction.memory_base()),
    }
}

fn is_kept_by_calls(register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX};
    [RBX, RBP, R12, R13, R14, R15].contains(&register)
}

/// A call: its address, and its return address.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    next: u64,
}

/// The keys of these domains in a file, with their names.
pub fn sites(path: &Path, domains: &[NativeDomain]) -> Vec<Site> {
    let Some(code) = Code::decoded(path) else { return Vec::new() };
    let identity = identity(path);
    let mut sites = Vec::new();
    for (place, counted) in calls(path, &code) {
        let key = key(identity, place.next as u32);
        let counting = domains.iter().filter(|domain| counted.counts_in(**domain));
        sites
            .extend(counting.map(|domain| code.site(domain.name(), key, place.at, counted.what())));
    }
    sites
}

/// Calls of counted functions in a file, including those of wrappers, which end with a jump to a counted function.
fn calls(path: &Path, of: &Code) -> Vec<(Place, Counted)> {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let callees = Callees::of(&file, Counted::of);
    let mut found = Vec::new();
    let mut near = Vec::new();
    let mut jumps = Vec::new();
    let mut wrappers: HashMap<u64, Counted> = HashMap::new();
    if callees.is_empty() {
        return found;
    }
    for range in &of.blocks().ranges {
        let Some(code) = code(&file, range) else { continue };
        let mut registers = Registers::default();
        for instruction in &mut decoder(code, range.start) {
            let place = Place { at: instruction.ip(), next: instruction.next_ip() };
            let called = callees.called(&instruction).map(|call| call.callee);
            let called = called.or_else(|| registers.called(&instruction));
            registers.follow(&instruction, &callees);
            match (instruction.mnemonic(), called) {
                (Mnemonic::Call, Some(counted)) => found.push((place, counted)),
                (Mnemonic::Jmp, Some(counted)) => {
                    wrappers.insert(range.start, counted);
                }
                (Mnemonic::Call, None) if instruction.is_call_near() => {
                    near.push((instruction.near_branch_target(), place));
                }
                (Mnemonic::Jmp, None) if instruction.is_jmp_short_or_near() => {
                    jumps.push((instruction.near_branch_target(), range.start));
                }
                _ => {}
            }
        }
    }
    // Also find wrappers of wrappers.
    loop {
        let new = |(target, start): &(u64, u64)| {
            let counted = wrappers.get(target).filter(|_| !wrappers.contains_key(start))?;
            Some((*start, *counted))
        };
        let new: Vec<_> = jumps.iter().filter_map(new).collect();
        if new.is_empty() {
            break;
        }
        wrappers.extend(new);
    }
    let through = |(target, place): (u64, Place)| Some((place, *wrappers.get(&target)?));
    found.extend(near.into_iter().filter_map(through));
    found
}

/// Identity of a file, from its name (FNV-1a), so that keys are the same elsewhere.
pub fn identity(path: &Path) -> u32 {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// `ffuzz_place_key` of `runtime/native/callers.c`.
pub fn key(identity: u32, address: u32) -> u32 {
    let key = identity.wrapping_add(address.wrapping_mul(0x9e37_79b1));
    let key = (key ^ key >> 16).wrapping_mul(0x85eb_ca6b);
    let key = (key ^ key >> 13).wrapping_mul(0xc2b2_ae35);
    let key = key ^ key >> 16;
    if key & 0xffff == 0 { 1 } else { key }
}

/// Keys of `perf`: the blocks of a file whose executions are counted in copies. Functions without a copy have none.
pub fn block_sites(path: &Path) -> Vec<Site> {
    let Some(code) = Code::decoded(path) else { return Vec::new() };
    let (identity, blocks) = (identity(path), code.blocks());
    let closed = blocks.ranges.iter().zip(&blocks.is_closed).filter(|(_, is_closed)| **is_closed);
    let starts = closed.flat_map(|(range, _)| {
        let first = blocks.starts.partition_point(|at| *at < range.start);
        blocks.starts[first..].iter().take_while(|at| **at < range.end)
    });
    let domain = NativeDomain::Perf.name();
    let site = |at: &u64| code.site(domain, key(identity, *at as u32), *at, "block");
    starts.map(site).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_those_of_the_runtime_and_of_the_passes() {
        let allocations = include_str!("../../runtime/native/allocations.c");
        let writes = include_str!("../../runtime/native/writes.c");
        for name in ALLOCATIONS {
            let named = [format!("C({name})"), format!("DO({name})"), format!("{{\"{name}\"")];
            assert!(named.iter().any(|text| allocations.contains(text)), "{name}");
        }
        for name in WRITES {
            let named = [format!("C({name})"), format!("{{\"{name}\"")];
            assert!(named.iter().any(|text| writes.contains(text)), "{name}");
        }
        let pass = include_str!("../../llvm-passes/waypoints-out-pass.cc");
        let list = pass.split("StringSwitch<Kind>(Name)").nth(1).unwrap();
        let list = list.split(".Default(").next().unwrap();
        for name in list.split('"').skip(1).step_by(2) {
            assert!(Counted::of(name).is_some_and(|counted| counted.writes), "{name}");
        }
    }

    #[test]
    fn names_are_those_that_people_know() {
        let what = |name| Counted::of(name).unwrap().what();
        assert_eq!((what("__printf_chk"), what("__strdup")), ("printf", "strdup"));
        assert_eq!(
            (what("_Znwm"), what("_ZnamSt11align_val_t")),
            ("operator new", "operator new[]")
        );
        assert_eq!(what("_ZNSo5writeEPKcl"), "ostream");
    }

    #[test]
    fn no_key_is_that_of_the_whole_program() {
        assert!((0..1 << 20).all(|address| !key(7, address).is_multiple_of(65536)));
        assert_ne!(key(identity(Path::new("/a/t")), 1), key(identity(Path::new("/a/u")), 1));
        assert_eq!(identity(Path::new("/a/t")), identity(Path::new("/b/t")));
    }
}
