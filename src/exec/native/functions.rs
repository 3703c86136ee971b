//! Functions that compare, and the calls of them: by their names in the file's tables for the loader.

use std::collections::HashMap;

use iced_x86::{Instruction, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use super::compares::CompareSite;
use crate::lines::decoder;

/// `enum ffuzz_comparer`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Memory,
    Text,
    TextOfLength,
    Search,
    SearchInLength,
    SearchOfLengths,
    StringText,
    Strings,
}

/// How a function compares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Comparer {
    pub(super) form: Form,
    pub(super) ignores_case: bool,
}

/// The functions of `llvm-passes/ffuzz-log.hpp`.
const NAMES: [(Form, &[&str]); 8] = [
    (
        Form::Memory,
        &[
            "memcmp",
            "bcmp",
            "__memcmpeq",
            "CRYPTO_memcmp",
            "OPENSSL_memcmp",
            "memcmp_const_time",
            "memcmpct",
            "timingsafe_memcmp",
            "timingsafe_bcmp",
            "consttime_memequal",
        ],
    ),
    (
        Form::Text,
        &[
            "strcmp",
            "xmlStrcmp",
            "xmlStrEqual",
            "g_strcmp0",
            "g_str_equal",
            "curl_strequal",
            "strcsequal",
            "strcasecmp",
            "stricmp",
            "_stricmp",
            "ap_cstr_casecmp",
            "OPENSSL_strcasecmp",
            "xmlStrcasecmp",
            "g_strcasecmp",
            "g_ascii_strcasecmp",
            "Curl_strcasecompare",
            "Curl_safe_strcasecompare",
            "cmsstrcasecmp",
            "sqlite3_stricmp",
            "sqlite3StrICmp",
            "strcasecmp_l",
        ],
    ),
    (
        Form::TextOfLength,
        &[
            "strncmp",
            "strncasecmp",
            "strnicmp",
            "_strnicmp",
            "ap_cstr_casecmpn",
            "OPENSSL_strncasecmp",
            "xmlStrncmp",
            "xmlStrncasecmp",
            "g_ascii_strncasecmp",
            "g_strncasecmp",
            "Curl_strncasecompare",
            "curl_strnequal",
            "sqlite3_strnicmp",
        ],
    ),
    (Form::Search, &["strstr", "strcasestr", "xmlStrstr", "xmlStrcasestr", "ap_strcasestr"]),
    (Form::SearchInLength, &["g_strstr_len"]),
    (Form::SearchOfLengths, &["memmem"]),
    (Form::StringText, &["_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc"]),
    (Form::Strings, &["_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_"]),
];

impl Comparer {
    fn of(name: &str) -> Option<Self> {
        let form = NAMES.iter().find(|(_, names)| names.contains(&name))?.0;
        let lower = name.to_ascii_lowercase();
        let marks = ["case", "icmp", "curl_str", "strcsequal"];
        Some(Self { form, ignores_case: marks.iter().any(|mark| lower.contains(mark)) })
    }
}

/// Those of a file, and how it calls those of others.
pub(super) struct Functions<'a> {
    /// By the place where the loader puts the function's address.
    slots: HashMap<u64, Comparer>,
    /// By the address of its own, as far as they are exported.
    own: HashMap<u64, Comparer>,
    /// Code of the linker's stubs, with their addresses.
    stubs: Vec<(u64, &'a [u8])>,
}

impl<'a> Functions<'a> {
    pub(super) fn of(file: &object::File<'a>) -> Self {
        let named = |symbol: object::Symbol<'_, '_>| {
            let comparer = Comparer::of(symbol.name().ok()?)?;
            (symbol.address() != 0).then_some((symbol.address(), comparer))
        };
        let own = file.dynamic_symbols().chain(file.symbols()).filter_map(named).collect();
        let mut slots = HashMap::new();
        let table = file.dynamic_symbol_table();
        for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
            let name = symbol.as_ref().and_then(|symbol| symbol.name().ok());
            if let Some(comparer) = name.and_then(Comparer::of) {
                slots.insert(address, comparer);
            }
        }
        let is_stub = |section: &object::Section<'a, '_>| {
            section.name().is_ok_and(|name| name.starts_with(".plt"))
        };
        let stubs = file.sections().filter(is_stub);
        let stubs = stubs.filter_map(|section| Some((section.address(), section.data().ok()?)));
        Self { slots, own, stubs: stubs.collect() }
    }

    /// The site, if this calls a function that compares.
    pub(super) fn call(&self, instruction: &Instruction) -> Option<CompareSite> {
        if instruction.is_ip_rel_memory_operand() {
            let slot = instruction.ip_rel_memory_address();
            let comparer = *self.slots.get(&slot)?;
            return Some(CompareSite::call(instruction, comparer, slot, true));
        }
        let is_near = instruction.is_call_near() || instruction.is_jmp_short_or_near();
        let target = is_near.then(|| instruction.near_branch_target())?;
        let comparer = self.own.get(&target).copied().or_else(|| self.behind_stub(target))?;
        Some(CompareSite::call(instruction, comparer, target, false))
    }

    /// A stub jumps to the address in a slot.
    fn behind_stub(&self, address: u64) -> Option<Comparer> {
        let code = self.stubs.iter().find_map(|(start, code)| {
            code.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
        })?;
        let mut decoder = decoder(code, address);
        let first = decoder.decode();
        let jump = if first.mnemonic() == Mnemonic::Endbr64 { decoder.decode() } else { first };
        let is_jump = jump.mnemonic() == Mnemonic::Jmp && jump.is_ip_rel_memory_operand();
        is_jump.then(|| self.slots.get(&jump.ip_rel_memory_address()).copied())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_pass() {
        let pass = include_str!("../../../llvm-passes/ffuzz-log.hpp");
        let list = pass.split("StringSwitch<Comparer>(Name)").nth(1).unwrap();
        let list = list.split(".Default(").next().unwrap();
        for name in list.split('"').skip(1).step_by(2) {
            assert!(Comparer::of(name).is_some(), "{name}");
        }
        let of = |name| Comparer::of(name).unwrap();
        assert_eq!((of("strcasecmp").ignores_case, of("memcmp").ignores_case), (true, false));
        assert_eq!(
            of("sqlite3_strnicmp"),
            Comparer { form: Form::TextOfLength, ignores_case: true }
        );
        assert_eq!(Comparer::of("strlen"), None);
    }
}
