//! Tables in a file's data that lead to its code. Their content is untrusted: only addresses at which an
//! instruction starts are used (`Sweep::mark`).

use std::ops::Range;

use object::{Object, ObjectSection, RelocationFlags, SectionFlags, elf};

/// Maximum number of entries of a table: a switch of 64 K cases.
const MOST_ENTRIES: usize = 1 << 16;

/// A file's data sections, without its code.
pub(super) struct DataSections<'a> {
    sections: Vec<(Range<u64>, &'a [u8])>,
}

impl<'a> DataSections<'a> {
    pub(super) fn of(file: &object::File<'a>) -> Self {
        let section = |section: object::Section<'a, '_>| {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
            let has = |flag: elf::SectionFlags| (sh_flags & flag).0 != 0;
            let is_data = has(elf::SHF_ALLOC) && !has(elf::SHF_EXECINSTR);
            let data = section.data().ok().filter(|data| is_data && !data.is_empty())?;
            let range = section.address()..section.address().saturating_add(data.len() as u64);
            Some((range, data))
        };
        Self { sections: file.sections().filter_map(section).collect() }
    }

    fn from(&self, address: u64) -> &'a [u8] {
        let section = self.sections.iter().find(|(range, _)| range.contains(&address));
        section.map_or(&[], |(range, data)| &data[(address - range.start) as usize..])
    }

    /// Entries of a jump table in position-independent code: 4 bytes each, relative to the table's address.
    /// `end`: start of the next table.
    pub(super) fn relative_table(
        &self,
        table: u64,
        end: u64,
    ) -> impl Iterator<Item = u64> + use<'a> {
        let most = MOST_ENTRIES.min(((end - table) / 4) as usize);
        let (entries, _) = self.from(table).as_chunks::<4>();
        let target =
            move |entry: &[u8; 4]| table.wrapping_add_signed(i32::from_le_bytes(*entry).into());
        entries.iter().take(most).map(target)
    }

    /// Entries of a jump table in code that is not position-independent.
    pub(super) fn absolute_table(&self, table: u64) -> impl Iterator<Item = u64> + use<'a> {
        let (entries, _) = self.from(table).as_chunks::<8>();
        entries.iter().take(MOST_ENTRIES).map(|entry| u64::from_le_bytes(*entry))
    }
}

/// Addresses that the loader writes into the program's data (`R_X86_64_RELATIVE`).
pub(super) fn pointers<'a>(file: &'a object::File<'_>) -> impl Iterator<Item = u64> + 'a {
    file.dynamic_relocations().into_iter().flatten().filter_map(|(_, relocation)| {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        (r_type == elf::R_X86_64_RELATIVE).then(|| relocation.addend().cast_unsigned())
    })
}

/// Landing pads of a function, from the call sites of its entry in `.gcc_except_table` (Itanium C++ ABI,
/// level II). None if the entry is unreadable.
pub(super) fn landing_pads(
    file: &object::File<'_>,
    at: u64,
    function: &Range<u64>,
) -> Option<Vec<u64>> {
    file.sections().find_map(|section| {
        let end = section.address().checked_add(section.size())?;
        let bytes = section.data_range(at, end.checked_sub(at)?).ok()??;
        landing_pads_of(bytes, function.start)
    })
}

/// Returns None if the entry is damaged, or its landing pads are not relative to the function's start.
fn landing_pads_of(bytes: &[u8], function: u64) -> Option<Vec<u64>> {
    const OMITTED: u8 = 0xff;
    let mut bytes = bytes;
    if byte(&mut bytes)? != OMITTED {
        return None;
    }
    if byte(&mut bytes)? != OMITTED {
        uleb(&mut bytes)?;
    }
    let encoding = byte(&mut bytes)?;
    let length = usize::try_from(uleb(&mut bytes)?).ok()?;
    let mut sites = bytes.get(..length)?;
    let mut pads = Vec::new();
    while !sites.is_empty() {
        let [_, _, pad] = [0; 3].map(|_| number(&mut sites, encoding));
        uleb(&mut sites)?;
        pads.extend(pad.filter(|pad| *pad != 0).map(|pad| function.wrapping_add(pad)));
    }
    Some(pads)
}

/// A number in one of the encodings of DWARF's pointers.
fn number(bytes: &mut &[u8], encoding: u8) -> Option<u64> {
    let size = match encoding & 7 {
        1 => return uleb(bytes),
        2 => 2,
        3 => 4,
        _ => 8,
    };
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes.split_off(..size)?);
    Some(u64::from_le_bytes(word))
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    bytes.split_off_first().copied()
}

fn uleb(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let next = byte(bytes)?;
        value |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landing_pads_are_relative_to_the_function() {
        // No start of its own, no types; call sites: (0, 5, pad 9, action 0), (5, 2, none, 0).
        let table = [0xff, 0xff, 1, 8, 0, 5, 9, 0, 5, 2, 0, 0, 99];
        assert_eq!(landing_pads_of(&table, 0x1000), Some(vec![0x1009]));
        let fixed = [0xff, 0xff, 3, 13, 0, 0, 0, 0, 5, 0, 0, 0, 0x80, 1, 0, 0, 1];
        assert_eq!(landing_pads_of(&fixed, 0x1000), Some(vec![0x1180]));
    }

    #[test]
    fn a_damaged_table_of_exceptions_is_none() {
        assert_eq!(landing_pads_of(&[], 0), None);
        assert_eq!(landing_pads_of(&[0xff, 0xff, 1, 200, 0], 0), None);
        assert_eq!(landing_pads_of(&[0xff, 0xff, 1, 1, 0x80], 0), None);
    }

    #[test]
    fn a_relative_table_ends_with_the_next_one() {
        let bytes = [-16_i32, -8, 4].map(i32::to_le_bytes).concat();
        let data = DataSections { sections: vec![(0x2000..0x200c, &bytes)] };
        assert_eq!(data.relative_table(0x2000, 0x2008).collect::<Vec<_>>(), [0x1ff0, 0x1ff8]);
        assert_eq!(data.relative_table(0x1000, u64::MAX).count(), 0);
    }
}
