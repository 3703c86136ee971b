//! The table of lines in a program's debug information (DWARF, section 6.2).

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use gimli::{AttributeValue, DwarfSections, EndianSlice, LittleEndian, Unit};
use object::{Object, ObjectSection};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Stretches of code, each of one line.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    files: Vec<String>,
    /// In the order of their addresses.
    rows: Vec<LineRow>,
}

#[derive(Clone, Copy, Debug)]
struct LineRow {
    start: u64,
    end: u64,
    file: usize,
    line: u32,
}

impl Rows {
    /// Unreadable parts are skipped.
    pub(crate) fn read(file: &object::File<'_>) -> Self {
        let section = |id: gimli::SectionId| -> Result<&[u8], gimli::Error> {
            let section = file.section_by_name(id.name());
            Ok(section.and_then(|section| section.data().ok()).unwrap_or_default())
        };
        let Ok(sections) = DwarfSections::load(section) else { return Self::default() };
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut rows = Self::default();
        let mut known = HashMap::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            if let Ok(unit) = dwarf.unit(header) {
                // Rows before damaged data are valid.
                let _ = rows.add(&dwarf, &unit, &mut known);
            }
        }
        rows.rows.sort_unstable_by_key(|row| (row.start, row.end));
        rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Files and lines of a stretch of code.
    pub(crate) fn within(&self, range: &Range<u64>) -> impl Iterator<Item = (&str, u32)> {
        // The previous row may reach into it.
        let first = self.rows.partition_point(|row| row.start < range.start).saturating_sub(1);
        let (start, end) = (range.start, range.end);
        let rows = self.rows[first..].iter().take_while(move |row| row.start < end);
        rows.filter(move |row| row.end > start).map(|row| (self.files[row.file].as_str(), row.line))
    }

    fn add(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'_>>,
        unit: &Unit<Reader<'_>>,
        known: &mut HashMap<String, usize>,
    ) -> Result<(), gimli::Error> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut files: HashMap<u64, usize> = HashMap::new();
        let mut open: Option<LineRow> = None;
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row()? {
            let address = row.address();
            if let Some(last) = open.take()
                && last.line > 0
                && last.start < address
            {
                self.rows.push(LineRow { end: address, ..last });
            }
            if row.end_sequence() {
                continue;
            }
            let file = *files.entry(row.file_index()).or_insert_with(|| {
                let path = row.file(header).and_then(|file| path(dwarf, unit, header, file));
                self.file(path.unwrap_or_default(), known)
            });
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            open = Some(LineRow { start: address, end: address, file, line });
        }
        Ok(())
    }

    fn file(&mut self, path: String, known: &mut HashMap<String, usize>) -> usize {
        *known.entry(path).or_insert_with_key(|path| {
            self.files.push(path.clone());
            self.files.len() - 1
        })
    }
}

/// Folder of the compilation, folder and name of the file; each may be absolute.
fn path(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    header: &gimli::LineProgramHeader<Reader<'_>>,
    file: &gimli::FileEntry<Reader<'_>>,
) -> Option<String> {
    let text = |value: AttributeValue<Reader<'_>>| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let mut path = PathBuf::from(unit.comp_dir?.to_string_lossy().into_owned());
    path.extend(file.directory(header).and_then(text));
    path.push(text(file.path_name())?);
    Some(plain(&path).to_string_lossy().into_owned())
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_stretch_are_those_that_touch_it() {
        let row = |start, end, line| LineRow { start, end, file: 0, line };
        let rows = vec![row(0, 4, 1), row(4, 9, 2), row(9, 10, 3), row(12, 20, 4)];
        let rows = Rows { files: vec!["a".into()], rows };
        let of = |range| rows.within(&range).map(|(_, line)| line).collect::<Vec<_>>();
        assert_eq!(of(0..4), [1]);
        assert_eq!(of(5..13), [2, 3, 4]);
        assert_eq!(of(10..12), [0; 0]);
        assert_eq!(of(30..40), [0; 0]);
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(plain(Path::new("/a/./b/../c.c")), Path::new("/a/c.c"));
    }
}
