//! Does what a page of the documentation says: writes its files, runs its commands, and compares
//! what they print with what the page shows.

#![allow(dead_code, reason = "no file of tests needs all of it")]

use std::fs;
use std::path::Path;
use std::process::Command;

use super::common::{Finished, TestDir, cache, repository};

/// A block of a page between two fences.
#[derive(Debug)]
pub(crate) struct Block {
    /// The word behind the opening fence.
    pub(crate) language: String,
    /// Last word in backticks before it: the file that it shows.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// All blocks of `docs/NAME`.
pub(crate) fn blocks(name: &str) -> Vec<Block> {
    let page = fs::read_to_string(repository("docs").join(name)).unwrap();
    parse(&page)
}

/// Those before the heading `end` only.
pub(crate) fn blocks_before(name: &str, end: &str) -> Vec<Block> {
    let page = fs::read_to_string(repository("docs").join(name)).unwrap();
    parse(page.split_once(end).unwrap_or_else(|| panic!("no {end:?} in {name}")).0)
}

/// Those of the section with this heading.
pub(crate) fn blocks_of(name: &str, heading: &str) -> Vec<Block> {
    let page = fs::read_to_string(repository("docs").join(name)).unwrap();
    let heading = format!("\n## {heading}\n");
    let (_, section) =
        page.split_once(&heading).unwrap_or_else(|| panic!("no {heading:?} in {name}"));
    parse(section.split("\n## ").next().unwrap())
}

fn parse(page: &str) -> Vec<Block> {
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
            "c" | "cpp" | "go" | "python" | "rust" | "sh" | "toml" => {
                dir.write(&block.name, &block.text);
            }
            "console" => commands(dir, &block.text, clang),
            "text" => {}
            other => panic!("what is a block of {other:?}?"),
        }
    }
}

fn install(dir: &TestDir) {
    let ffuzz = Path::new(env!("CARGO_BIN_EXE_ffuzz"));
    fs::create_dir(dir.path("bin")).unwrap();
    let commands = Command::new(ffuzz).arg("--commands").output().unwrap();
    let commands = String::from_utf8(commands.stdout).unwrap();
    let links = commands.lines().map(|command| format!("ffuzz-{command}"));
    let names = ["ffuzz".to_owned(), "cargo-ffuzz".to_owned()];
    for name in names.into_iter().chain(links) {
        std::os::unix::fs::symlink(ffuzz, dir.path("bin").join(name)).unwrap();
    }
}

/// Makes a cache of its own, `NAME` in the folder, with all that was compiled for other tests.
pub(crate) fn own_cache(dir: &TestDir, name: &str) -> String {
    let own = dir.path(name);
    for version in fs::read_dir(cache().join("ffuzz")).unwrap().flatten() {
        for llvm in fs::read_dir(version.path()).into_iter().flatten().flatten() {
            let folder = own.join("ffuzz").join(version.file_name()).join(llvm.file_name());
            for file in fs::read_dir(llvm.path()).into_iter().flatten().flatten() {
                let extension = file.path().extension().map(ToOwned::to_owned).unwrap_or_default();
                if ["so", "o", "pch"].iter().any(|made| extension == *made) {
                    fs::create_dir_all(&folder).unwrap();
                    let to = folder.join(file.file_name());
                    // On another file system it is a copy.
                    fs::hard_link(file.path(), &to)
                        .or_else(|_| fs::copy(file.path(), &to).map(drop))
                        .unwrap();
                }
            }
        }
    }
    own.display().to_string()
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
    let mut fuzzed = false;
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (line, expected) = part.split_once('\n').unwrap_or((part, ""));
        let done = shell(dir, line, clang).expect(0);
        fuzzed |= line.contains("ffuzz -p");
        let said: Vec<&str> = done.out.lines().chain(done.err.lines()).collect();
        for wanted in expected.lines().filter(|wanted| !wanted.is_empty()) {
            let comparable = if is_of_a_site(wanted) { without_key } else { in_one_width };
            let wanted = comparable(wanted);
            let found = said
                .iter()
                .map(|line| comparable(line))
                .any(|line| is_shown(&line, &wanted) || (fuzzed && is_as_good(&line, &wanted)));
            assert!(found, "{line}: no {wanted:?} in {said:#?}");
        }
        let shown = expected.lines().filter(|line| line.starts_with("dsf[")).count();
        assert_eq!(done.values().len(), shown, "{line}: {said:#?}");
    }
}

/// Whether the line contains what the page shows, in which `…` stands for anything.
fn is_shown(line: &str, wanted: &str) -> bool {
    let mut rest = Some(line);
    for part in wanted.split('…') {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some()
}

/// Keys of sites come from the path of the source: the page's are not the test's, which may be of
/// any number of digits. The pages show none of few digits; keys of few digits are no sites there.
fn is_of_a_site(wanted: &str) -> bool {
    let key = wanted.strip_prefix("dsf[").and_then(|rest| rest.split_once(']'));
    key.is_some_and(|(key, _)| key.len() > 2)
}

/// The width of columns comes from the keys.
fn in_one_width(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_key(line: &str) -> String {
    let line = in_one_width(line);
    match line.split_once("] = ") {
        Some((key, value)) if key.starts_with("dsf[") => format!("dsf[] = {value}"),
        _ => line,
    }
}

/// The value that a campaign has reached: chance has a part in it, and the path of the source.
fn is_as_good(line: &str, wanted: &str) -> bool {
    let parts = |line: &str| {
        let (key, rest) = line.split_once(" = ")?;
        let (value, name) = rest.split_once(' ').unwrap_or((rest, ""));
        Some((key.to_owned(), value.parse::<u64>().ok()?, name.to_owned()))
    };
    let (Some((key, value, name)), Some((wanted_key, least, wanted_name))) =
        (parts(line), parts(wanted))
    else {
        return false;
    };
    key == wanted_key && name == wanted_name && value >= least / 4 * 3
}
