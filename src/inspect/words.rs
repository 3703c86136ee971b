//! Reads the words that `ffuzz-cc` stored in a target's files: the program and its libraries. For files of other
//! compilers, strings are used; rustc stores them without terminators.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, SectionKind};

mod rustc;

use crate::sites::{self, section};
use ffuzz_mutate::words::{self, Word};

/// The section that `llvm-passes/ffuzz-words.hpp` writes.
const SECTION: &str = ".ffuzz_words";
/// Maximum length of a string used as a word, in bytes.
const LONGEST: usize = 24;
/// Maximum ratio of constant bytes to code bytes in a file that is not only tables; its code counts as at least
/// `LEAST_CODE` bytes.
const DATA_PER_CODE: u64 = 64;
const LEAST_CODE: u64 = 4096;

/// The distinct words of `program`, which runs as `pid`, and of its libraries. Also returns the files with a
/// damaged table, which are ignored.
pub fn read(program: &Path, pid: Option<i32>) -> (Vec<Word>, Vec<PathBuf>) {
    let files = match pid {
        Some(pid) => sites::program_and_libraries(program, pid),
        None => vec![program.to_owned()],
    };
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for file in files {
        match section(&file, SECTION).map(|table| words::parse(&table)) {
            Some(Ok(of_file)) => found.extend(of_file),
            Some(Err(_)) => {
                damaged.push(file);
                continue;
            }
            None => {}
        }
        found.extend(rustc::words(&file).unwrap_or_default());
    }
    words::keep_first(&mut found);
    (found, damaged)
}

/// The words that `ffuzz-cc` stored in the program itself.
#[must_use]
pub fn of_program(program: &Path) -> Vec<Word> {
    read(program, None).0
}

/// Strings of files that may be words of a format: short, without spaces, and no `printf` messages.
pub fn strings<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<Word> {
    let mut found: Vec<Word> = files.flat_map(of_file).collect();
    words::keep_first(&mut found);
    found
}

fn word(bytes: &[u8], file: &Path) -> Word {
    let file = file.to_string_lossy().into_owned();
    Word { bytes: bytes.into(), kind: "string".into(), file, line: 0 }
}

fn of_file(path: &Path) -> Vec<Word> {
    let content = fs::read(path).unwrap_or_default();
    let Ok(file) = object::File::parse(&*content) else { return Vec::new() };
    let constants = file.sections().filter(|section| {
        section.name().is_ok_and(|name| name == ".rodata" || name.starts_with(".rodata."))
    });
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let size = |sections: &[object::Section<'_, '_>]| -> u64 {
        sections.iter().map(ObjectSection::size).sum()
    };
    let (constants, code): (Vec<_>, Vec<_>) = (constants.collect(), code.collect());
    if size(&constants) / DATA_PER_CODE > size(&code).max(LEAST_CODE) {
        return Vec::new();
    }
    let data = constants.iter().filter_map(|section| section.data().ok());
    let strings = data.flat_map(|data| data.split(|byte| *byte == 0));
    strings.filter(|bytes| is_word(bytes)).map(|bytes| word(bytes, path)).collect()
}

fn is_word(bytes: &[u8]) -> bool {
    let is_path = bytes.len() > 2 && bytes[0] == b'/';
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (2..=LONGEST).contains(&bytes.len())
        && !is_path
        && (letters == 0 || 2 * letters > bytes.len())
        && bytes.iter().all(u8::is_ascii_graphic)
        && !bytes.windows(2).any(|pair| pair[0] == b'%' && pair[1].is_ascii_alphanumeric())
        // What assertions print.
        && !bytes.windows(3).any(|part| {
            part[0].is_ascii_alphanumeric() && (part.ends_with(b"->") || part.ends_with(b"=="))
        })
        && !["AFL_", "__AFL_", "##SIG_AFL_"].iter().any(|own| bytes.starts_with(own.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_format_are_distinguished_from_messages() {
        for word in ["IF", "<!--", "-->", "==", "CDATA[", "foreign_keys", "</"] {
            assert!(is_word(word.as_bytes()), "{word}");
        }
        for other in [
            "",
            "a",
            "no such file",
            "%s:%d",
            "/etc/passwd",
            "it->next",
            "AFL_DEBUG",
            "caf\u{e9}",
            "x\ny",
        ] {
            assert!(!is_word(other.as_bytes()), "{other}");
        }
    }
}
