//! The blocks of the chosen files, in the form that the preloaded runtime reads
//! (`runtime/native/table.h`).

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use ffuzz_inspect::detours::Amount;
use ffuzz_sys::memory;
use object::{Object, ObjectSegment};

use super::entry::NativeEntry;

const MAGIC: u32 = u32::from_le_bytes(*b"FFBK");
/// Bytes of the header.
const HEADER: usize = 16;

/// Identity of a file, in this process and elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) identity: u32,
}

/// A table to which files are added.
#[derive(Debug)]
pub(super) struct NativeTable {
    bytes: Vec<u8>,
    files: u32,
    blocks: usize,
    /// Number of the next comparison site.
    sites: u32,
}

impl Default for NativeTable {
    fn default() -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        Self { bytes, files: 0, blocks: 0, sites: 1 }
    }
}

impl NativeTable {
    /// Creates the table for copies that count this `amount`.
    pub(super) fn counting(amount: Amount) -> Self {
        let mut table = Self::default();
        table.bytes[8] = u8::from(amount == Amount::Executions);
        table
    }

    /// Adds a file, unless it has no blocks. Returns the number of its first site.
    pub(super) fn add(&mut self, entry: &NativeEntry, id: FileId) -> u32 {
        let first = self.sites;
        let [blocks, sites, edges, code, jumps, fields] = entry.head;
        if blocks == 0 {
            return first;
        }
        let head = [blocks, sites, first, id.identity, edges, code, jumps, fields];
        self.bytes.extend([id.device, id.inode].iter().flat_map(|word| word.to_le_bytes()));
        self.bytes.extend(head.iter().flat_map(|word| word.to_le_bytes()));
        self.bytes.extend(&entry.body);
        self.sites += sites;
        self.files += 1;
        self.blocks += blocks as usize;
        self.bytes[4..8].copy_from_slice(&self.files.to_le_bytes());
        first
    }

    /// Number of blocks in all files.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the table into an anonymous file that the target inherits.
    pub(super) fn share(&self) -> io::Result<OwnedFd> {
        let fd = memory::memfd(c"ffuzz-blocks", 0)?;
        let mut file = std::fs::File::from(fd);
        file.write_all(&self.bytes)?;
        Ok(file.into())
    }
}

/// Byte of the file's memory image at this address.
pub(super) fn byte_at(file: &object::File<'_>, address: u64) -> Option<u8> {
    let mut segments = file.segments();
    let segment = segments
        .find(|segment| address.wrapping_sub(segment.address()) < segment.file_range().1)?;
    segment.data_range(address, 1).ok()??.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_inspect::blocks::Blocks;
    use ffuzz_inspect::detours::{CountedBy, Detours};

    #[test]
    fn the_layout_is_that_of_the_header() {
        let header = include_str!("../../../runtime/native/table.h");
        assert!(header.contains(&format!("FFUZZ_BLOCKS_MAGIC {MAGIC:#x}u")));
        assert!(header.contains(&format!("FFUZZ_BLOCKS_ENV {:?}", super::super::TABLE_ENV)));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*own).unwrap();
        let mut table = NativeTable::default();
        let id = FileId { device: 1, inode: 2, identity: 9 };
        table.add(&NativeEntry::of(&file, &Blocks::default(), &[], &Detours::default()), id);
        assert_eq!((table.bytes(), table.blocks()), (&b"FFBK\0\0\0\0\0\0\0\0\0\0\0\0"[..], 0));
        assert_eq!(
            NativeTable::counting(Amount::Executions).bytes()[8..],
            [1, 0, 0, 0, 0, 0, 0, 0]
        );
        let entry = file.entry();
        let starts = vec![entry, entry + 1, entry + 2];
        let detours = Detours {
            code: vec![7; 3],
            jumps: vec![(entry as u32, 1)],
            fields: vec![2],
            edges: 5,
            counted_by: vec![CountedBy::Copy, CountedBy::Breakpoint, CountedBy::Others],
        };
        let blocks = Blocks { starts, ..Blocks::default() };
        let first = table.add(&NativeEntry::of(&file, &blocks, &[], &detours), id);
        assert_eq!(first, 1);
        assert_eq!(table.blocks(), 3);
        let word = |at: usize| u32::from_le_bytes(table.bytes()[at..at + 4].try_into().unwrap());
        let at = |word: usize| HEADER + 4 * word;
        assert_eq!([0, 2, 4, 6, 7].map(at).map(word), [1, 2, 3, 1, 9]);
        assert_eq!([8, 9, 10, 11].map(at).map(word), [5, 3, 1, 1]);
        assert_eq!([12, 15, 16, 17].map(at).map(word), [entry as u32, entry as u32, 1, 2]);
        // Header, one file, three addresses, a jump and a field, then bytes and code without padding.
        assert_eq!(table.bytes().len(), HEADER + 48 + 12 + 12 + 3 + 3 + 3 + 7);
        assert_eq!(table.bytes()[88], byte_at(&file, entry).unwrap());
        assert_eq!(table.bytes()[91..97], [1, 0, 2, 7, 7, 7]);
    }
}
