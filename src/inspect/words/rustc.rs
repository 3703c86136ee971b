//! Words of a program built by rustc: texts to which instrumented code or data points.
//!
//! The texts are adjacent and have no terminators: each ends at the next address that anything points to.
//! Code without counters (the standard library) only shows where texts begin.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use iced_x86::{Instruction, Mnemonic};
use object::elf::{R_AARCH64_RELATIVE, R_X86_64_RELATIVE, RelocationType};
use object::{
    Architecture, File, Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionKind,
    SymbolKind,
};

use super::{LONGEST, Word, is_word, section, word};
use crate::lines::decoder;

/// Section that names the compilers of a file's parts.
const COMPILERS: &str = ".comment";
const NAME: &[u8] = b"rustc version";
/// Counters of `-fsanitize-coverage`, only present in the user's crates.
const COUNTERS: &str = "__sancov_cntrs";
/// Relocations that store an address of the file.
const RELATIVE: [RelocationType; 2] = [R_X86_64_RELATIVE, R_AARCH64_RELATIVE];

/// Reads the words; None if rustc built no part of the file.
pub(super) fn words(path: &Path) -> Option<Vec<Word>> {
    section(path, COMPILERS)?.windows(NAME.len()).find(|part| *part == NAME)?;
    let content = fs::read(path).ok()?;
    let file = File::parse(&*content).ok()?;
    let mut texts = Texts::of(&file);
    texts.add_data(&file);
    if file.architecture() == Architecture::X86_64 {
        texts.add_code(&file);
    }
    Some(texts.found().map(|bytes| word(bytes, path)).collect())
}

#[derive(Debug, Default)]
struct Texts<'a> {
    /// Sections of constants, by address.
    constants: Vec<(u64, &'a [u8])>,
    /// Addresses to which code or data points.
    begins: BTreeSet<u64>,
    /// Addresses in data, each with the length that follows the pointer.
    slices: Vec<(u64, u64)>,
    /// Addresses in code with counters.
    of_code: BTreeSet<u64>,
}

impl<'a> Texts<'a> {
    fn of(file: &File<'a>) -> Self {
        let is_constant =
            |kind| matches!(kind, SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
        let constants = file.sections().filter(|section| is_constant(section.kind()));
        let bytes = |section: object::Section<'a, '_>| {
            (section.address(), section.data().unwrap_or_default())
        };
        Self { constants: constants.map(bytes).collect(), ..Self::default() }
    }

    fn bytes_from(&self, address: u64) -> Option<&'a [u8]> {
        bytes_at(&self.constants, address)
    }

    fn add_data(&mut self, file: &File<'a>) {
        let is_data = |kind| matches!(kind, SectionKind::ReadOnlyDataWithRel | SectionKind::Data);
        let sections = file.sections().filter(|section| is_data(section.kind()));
        let data: Vec<_> = sections
            .map(|section| (section.address(), section.data().unwrap_or_default()))
            .collect();
        for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let address = relocation.addend().cast_unsigned();
            if !RELATIVE.contains(&r_type) || self.bytes_from(address).is_none() {
                continue;
            }
            self.begins.insert(address);
            let length = place.checked_add(8).and_then(|next| bytes_at(&data, next)?.first_chunk());
            self.slices.extend(length.map(|length| (address, u64::from_le_bytes(*length))));
        }
    }

    fn add_code(&mut self, file: &File<'a>) {
        let counters = file.section_by_name(COUNTERS);
        let counters = counters.map_or(0..0, |it| it.address()..it.address() + it.size());
        let sections = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let code: Vec<_> = sections
            .map(|section| (section.address(), section.data().unwrap_or_default()))
            .collect();
        for function in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
            let size = usize::try_from(function.size()).unwrap_or(0);
            let code = bytes_at(&code, function.address()).and_then(|code| code.get(..size));
            self.add_function(code.unwrap_or_default(), function.address(), &counters);
        }
    }

    fn add_function(&mut self, code: &[u8], start: u64, counters: &Range<u64>) {
        let (mut texts, mut counts) = (Vec::new(), false);
        let mut instruction = Instruction::default();
        let mut decoder = decoder(code, start);
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if !instruction.is_ip_rel_memory_operand() {
                continue;
            }
            let address = instruction.ip_rel_memory_address();
            counts |= counters.contains(&address);
            if instruction.mnemonic() == Mnemonic::Lea && self.bytes_from(address).is_some() {
                texts.push(address);
            }
        }
        self.begins.extend(&texts);
        if counts {
            self.of_code.extend(texts);
        }
    }

    fn found(&self) -> impl Iterator<Item = &'a [u8]> {
        let of_code = self.of_code.iter().filter_map(|begin| {
            let length = self.length_of(*begin)?;
            self.bytes_from(*begin)?.get(..length)
        });
        let slices = self.slices.iter().filter(|(begin, _)| !self.of_code.contains(begin));
        let texts = slices.filter_map(|(begin, length)| self.slice(*begin, *length)).chain(of_code);
        texts.filter(|text| is_word(text) && !text.ends_with(b".rs".as_slice()))
    }

    /// The text of this length, unless the length is only a number after a pointer to a C text, which has a
    /// NUL at both ends.
    fn slice(&self, begin: u64, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST)?;
        let text = self.bytes_from(begin)?;
        let before = begin.checked_sub(1).and_then(|address| self.bytes_from(address)?.first());
        let ends = [before, text.get(length)];
        let is_one = self.length_of(begin) == Some(length)
            || ends.iter().all(|end| end.is_some_and(|byte| *byte != 0));
        text.get(..length).filter(|_| is_one)
    }

    /// Length of the text that begins there, if it is no longer than a word.
    fn length_of(&self, begin: u64) -> Option<usize> {
        let next = self.begins.range(begin + 1..).next()?;
        usize::try_from(next - begin).ok().filter(|length| *length <= LONGEST)
    }
}

/// The bytes from an address to the end of its section.
fn bytes_at<'a>(sections: &[(u64, &'a [u8])], address: u64) -> Option<&'a [u8]> {
    sections.iter().find_map(|(start, data)| {
        data.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
            .filter(|rest| !rest.is_empty())
    })
}
