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
