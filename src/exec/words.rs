//! Reads the words that `ffuzz-cc` has collected from a target's files: the program and the libraries it
//! is linked with.

use std::path::{Path, PathBuf};

use super::sites::{self, section};
use ffuzz_engine::mutate::words::{self, Word};

/// The section that `llvm-passes/ffuzz-words.hpp` writes.
const SECTION: &str = ".ffuzz_words";

/// The words of `program`, which runs as `pid`, and of its libraries, each once; and the files whose table is
/// damaged: of these nothing is used.
pub(super) fn read(program: &Path, pid: Option<i32>) -> (Vec<Word>, Vec<PathBuf>) {
    let files = match pid {
        Some(pid) => sites::program_and_libraries(program, pid),
        None => vec![program.to_owned()],
    };
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for file in files {
        let Some(table) = section(&file, SECTION) else { continue };
        match words::parse(&table) {
            Ok(of_file) => found.extend(of_file),
            Err(_) => damaged.push(file),
        }
    }
    words::keep_first(&mut found);
    (found, damaged)
}
