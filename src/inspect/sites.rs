//! Reads the tables of key names from a target's files: the program and its libraries. The content
//! is untrusted, so every size is checked before reading.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSection, ReadCache};

use crate::callbacks;
use ffuzz_engine::domain::Site;

/// Section written by `llvm-passes/ffuzz-domain.hpp`, and that of `ffuzz-log.hpp`.
const SECTION: &str = ".ffuzz_keys";
pub const LOG_SECTION: &str = ".ffuzz_log";
/// Maximum table size: a program with some two million sites.
const MAX_TABLE: u64 = 128 << 20;

/// The sites of `program`, which runs as `pid`, and of its libraries.
pub fn read(program: &Path, pid: i32) -> Vec<Site> {
    of_files(&program_and_libraries(program, pid))
}

/// The comparison sites of the same files.
pub fn of_comparisons(program: &Path, pid: i32) -> Vec<Site> {
    let files = program_and_libraries(program, pid);
    let tables = files.iter().filter_map(|file| section(file, LOG_SECTION));
    let mut sites: Vec<Site> = tables.flat_map(|table| Site::parse(&table)).collect();
    let called = files.iter().map(|file| callbacks::of_file(file, file == program));
    sites.extend(called.flatten());
    sites
}

/// The files of `program`, which runs as `pid`.
pub fn program_and_libraries(program: &Path, pid: i32) -> Vec<PathBuf> {
    let mut files = files_of(pid);
    if !files.iter().any(|file| file == program) {
        files.push(program.to_owned());
    }
    files
}

/// The sites of these files.
#[must_use]
pub fn of_files(files: &[impl AsRef<Path>]) -> Vec<Site> {
    files.iter().flat_map(|file| of_file(file.as_ref())).collect()
}

/// The files whose code is mapped in a process.
pub fn files_of(pid: i32) -> Vec<PathBuf> {
    mapped(pid, b'x')
}

/// The files that are mapped in a process, as code or data.
pub fn mapped_files(pid: i32) -> Vec<PathBuf> {
    mapped(pid, b'r')
}

fn mapped(pid: i32, right: u8) -> Vec<PathBuf> {
    listed(&fs::read(format!("/proc/{pid}/maps")).unwrap_or_default(), right)
}

/// Files mapped with this `right`, from the kernel's lines: `from-to r-xp offset device inode
/// path`.
fn listed(maps: &[u8], right: u8) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(at) = line.iter().position(|byte| *byte == b'/') else { continue };
        let (head, path) = line.split_at(at);
        let rights = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let path = Path::new(std::ffi::OsStr::from_bytes(path)).to_owned();
        if rights.contains(&right) && !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// The sites of a file; empty if it has no table or is not an ELF file.
fn of_file(path: &Path) -> Vec<Site> {
    section(path, SECTION).map(|table| Site::parse(&table)).unwrap_or_default()
}

/// Content of a section; None if it is missing or has an impossible size.
pub fn section(path: &Path, name: &str) -> Option<Vec<u8>> {
    // A pipe would block; devices are excluded too.
    let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let section = file.section_by_name(name)?;
    let size = section.size();
    if size > data.len().min(MAX_TABLE) {
        return None;
    }
    Some(section.data().ok()?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_of_files() {
        let maps = b"55e0-55e1 r--p 00000000 08:01 7 /bin/a b\n\
            55e1-55e2 r-xp 00001000 08:01 7 /bin/a b\n\
            7f00-7f01 r-xp 00000000 08:01 9 /lib/x.so\n\
            7f01-7f02 r-xp 00000000 08:01 9 /lib/x.so\n\
            7f02-7f03 rw-p 00000000 00:00 0\n7ffd-7ffe r-xp 00000000 00:00 0 [vdso]\n\n";
        assert_eq!(listed(maps, b'x'), [Path::new("/bin/a b"), Path::new("/lib/x.so")]);
    }

    #[test]
    fn files_without_a_table_have_no_sites() {
        let dir = tempfile::tempdir().unwrap();
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let put = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        for path in [
            put("empty", b""),
            put("text", b"#!/bin/sh\n"),
            put("head", b"\x7fELF\x02\x01\x01"),
            put("cut", &own[..own.len() / 2]),
            dir.path().join("missing"),
            dir.path().into(),
        ] {
            assert_eq!(of_file(&path), [], "{path:?}");
        }
    }

    /// An ELF file of two sections; the table claims to be `size` bytes long.
    fn elf(table: &[u8], size: u64) -> Vec<u8> {
        let names = b"\0.ffuzz_keys\0.shstrtab\0";
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put =
            |at: usize, value: u16| file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        for (at, value) in
            [(16, 2), (18, 62), (20, 1), (40, 64), (52, 64), (58, 64), (60, 3), (62, 2)]
        {
            put(at, value);
        }
        let data_at = 64 * 4;
        for (name, kind, at, size) in [
            (0u32, 0u32, 0, 0),
            (1, 1, data_at, size),
            (13, 3, data_at + table.len() as u64, names.len() as u64),
        ] {
            file.extend_from_slice(&name.to_le_bytes());
            file.extend_from_slice(&kind.to_le_bytes());
            for word in [0, 0, at, size, 0, 1, 0] {
                file.extend_from_slice(&word.to_le_bytes());
            }
        }
        [&file, table, names].concat()
    }

    #[test]
    fn a_table_that_claims_too_much_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let table = b"mem\t1\t/a.c\t1\t1\tf\tmalloc\n";
        for (size, sites) in [(table.len() as u64, 1), (1 << 40, 0), (u64::MAX, 0), (4096, 0)] {
            fs::write(&path, elf(table, size)).unwrap();
            assert_eq!(of_file(&path).len(), sites, "{size}");
        }
    }
}
