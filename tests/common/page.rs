//! Does what a page of the documentation says: writes its files, runs its commands, and compares
//! what they print with what the page shows.

use std::path::Path;
use std::process::Command;

use super::common::{Finished, TestDir, repository};

/// The clangs on this machine that can have passes; a message names those that are skipped.
pub(crate) fn clangs() -> Vec<&'static str> {
    let has = |program: String| Command::new(program).arg("--version").output().is_ok();
    let there = |version: &&str| {
        let found = has(format!("clang-{version}")) && has(format!("llvm-config-{version}"));
        if !found {
            eprintln!("skipped: clang-{version} or llvm-{version}-dev is not installed");
        }
        found
    };
    ["14", "15", "16", "19"].into_iter().filter(there).collect()
}

/// A block of a page between two fences.
#[derive(Debug)]
pub(crate) struct Block {
    /// The word behind the opening fence.
    pub(crate) language: String,
    /// Last word in backticks before it: the file that it shows.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// All blocks of `docs/NAME`, those before the heading `end` only.
pub(crate) fn blocks(name: &str, end: &str) -> Vec<Block> {
    let page = std::fs::read_to_string(repository("docs").join(name)).unwrap();
    let page = page.split_once(end).unwrap_or_else(|| panic!("no {end:?} in {name}")).0;
    let mut parts = page.split("```");
    let mut before = parts.next().unwrap();
    let mut found = vec![];
    while let (Some(inside), Some(after)) = (parts.next(), parts.next()) {
        let (language, text) = inside.split_once('\n').unwrap();
        let name = before.rsplit('`').nth(1).unwrap_or_default();
        let (language, name, text) = (language.to_owned(), name.to_owned(), text.to_owned());
        found.push(Block { language, name, text });
        before = after;
    }
    found
}

/// Runs the page in a folder, as a user would who has ffuzz and its links in PATH.
pub(crate) fn follow(dir: &TestDir, blocks: &[Block], clang: &str) {
    install(dir);
    for block in blocks {
        match block.language.as_str() {
            "c" | "cpp" | "toml" => {
                dir.write(&block.name, &block.text);
            }
            "console" => commands(dir, &block.text, clang),
            other => panic!("what is a block of {other:?}?"),
        }
    }
}

fn install(dir: &TestDir) {
    let ffuzz = Path::new(env!("CARGO_BIN_EXE_ffuzz"));
    std::fs::create_dir(dir.path("bin")).unwrap();
    for name in ["ffuzz", "ffuzz-cc", "ffuzz-showdsf"] {
        std::os::unix::fs::symlink(ffuzz, dir.path("bin").join(name)).unwrap();
    }
}

/// A shell line with `clang`, a cache of its own, and the repository in place of `/path/to/ffuzz`.
pub(crate) fn shell(dir: &TestDir, line: &str, clang: &str) -> Finished {
    let line = line.replace("/path/to/ffuzz", &repository("").display().to_string());
    let script = format!("set -o pipefail; PATH={}:$PATH; {line}", dir.path("bin").display());
    let job = dir.program("bash").arg("-c").arg(script).env("FFUZZ_CC", clang);
    let folder = dir.path("").display().to_string();
    job.env("PWD", folder.trim_end_matches('/'))
        .env("FFUZZ", env!("CARGO_BIN_EXE_ffuzz"))
        .env("XDG_CACHE_HOME", &dir.path("cache").display().to_string())
        .run()
}

/// `$ command`, and below it lines that it prints; values of arbitrary keys may come in any order.
fn commands(dir: &TestDir, text: &str, clang: &str) {
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (line, expected) = part.split_once('\n').unwrap_or((part, ""));
        let done = shell(dir, line, clang).expect(0);
        let said = format!("{}{}", done.out, done.err);
        for wanted in expected.lines().filter(|wanted| !wanted.is_empty()) {
            assert!(said.contains(without_key(wanted)), "{line}: no {wanted:?} in {said}");
        }
        let shown = expected.lines().filter(|line| line.starts_with("dsf[")).count();
        assert_eq!(done.values().len(), shown, "{line}: {said}");
    }
}

/// Keys of sites come from the path of the source, so the page's are not the test's.
fn without_key(line: &str) -> &str {
    match line.split_once("] = ") {
        Some((key, _)) if key.starts_with("dsf[") && key.len() > "dsf[00".len() => {
            &line[key.len()..]
        }
        _ => line,
    }
}
