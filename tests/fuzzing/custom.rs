//! Foreign mutators with the real libraries: C libraries good and bad, and a Rust one.

mod bad;
mod order;
mod zero;

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{Job, TestDir, repository, target};

/// A library from `tests/mutators`.
pub(crate) fn library(dir: &TestDir, source: &str, flags: &str, name: &str) -> PathBuf {
    let path = dir.path(name);
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-unused", "-o"])
        .arg(&path)
        .arg(repository("tests/mutators").join(source))
        .args(flags.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Two letters are new edges, a third one a crash.
pub(crate) fn letters() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| target("letters.c", ""))
}

/// A campaign with these libraries; one seed of eight letters.
pub(crate) fn with_libraries(dir: &TestDir, libraries: &str, options: &str) -> Job {
    dir.write("in/seed", "xxxxxxxx");
    let log = dir.path("calls").display().to_string();
    dir.fuzz(options, letters(), "")
        .env("AFL_CUSTOM_MUTATOR_LIBRARY", libraries)
        .env("MUTATOR_LOG", &log)
}

/// What a mutator makes does not pass a checksum; no other mutation makes that text.
#[test]
fn mutants_of_a_library_are_repaired() {
    const TEXT: &str = "a text that no other mutation makes";
    let hash = TEXT.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let dir = TestDir::with_seed("....some other text");
    library(&dir, "text.c", &format!("-DTEXT=\"{}\"", TEXT.replace(' ', "\\x20")), "text.so");
    let sealed = target("sealed.c", &format!("-fsanitize=fuzzer -DWANTED={hash:#x}"));
    let campaign = |options: &str| {
        let job = dir.fuzz(&format!("-s 1 {options}"), &sealed, "");
        job.env("AFL_CUSTOM_MUTATOR_LIBRARY", "./text.so").env("AFL_BENCH_UNTIL_CRASH", "1")
    };
    campaign("-E 20000 -c -").run().expect(0);
    assert_eq!(dir.crashes(), Vec::<String>::new(), "without the log nothing is repaired");
    std::fs::remove_dir_all(dir.path("out")).unwrap();
    campaign("-E 200000").run().expect(0);
    let crash = dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
    assert_eq!(&crash[4..], TEXT.as_bytes());
}
