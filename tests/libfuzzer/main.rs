//! Command lines of harnesses, and what libFuzzer did with each: exit code, new files, lines.

#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "a test may panic and talk")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/cc.rs"]
#[allow(unused_imports, reason = "for all groups that compile")]
mod compiling;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{repository, skip};
use compiling::{Bench, has};
use fancy_regex::Regex;
use serde_json::Value;

/// Rows that do not agree, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "replay segv",
        "77: without a sanitizer, libFuzzer's runtime has a part of UBSan, which ends with 1",
    ),
    ("handle_segv=0", "the signal itself, for the same reason"),
    ("runs=0 oom dir", "71 with the file oom-SHA1: libFuzzer hangs"),
    ("minimize_crash", "libFuzzer was still running"),
    ("fuzz -max_len=8", "words of the program are often too long: no recommended dictionary"),
    ("fuzz -only_ascii=1", "refused: mutants are not filtered"),
    ("fuzz -data_flow_trace=dft", "refused before any line, with exit code 1 as there"),
    ("analyze_dict", "refused: words have no values"),
];
/// Rows that need a signal at the right time, or another user.
const NOT_RUN: &[&str] = &["SIGTERM", "SIGUSR1", "no args at all", "unreadable file"];
/// Beginnings of the names of rows without a campaign.
const QUICK: &[&str] = &[
    "replay",
    "runs=0",
    "print_",
    "close_fd",
    "verbosity",
    "-help",
    "--",
    "bad number",
    "handle_",
    "error_exitcode",
    "missing file",
    "dir+file",
    "artifact_prefix",
    "report_slow",
    "Initialize",
    "ignore_remaining",
    "unreadable in dir",
];
/// Seconds for a row.
const LIMIT: &str = "60";

fn fixture() -> Option<PathBuf> {
    let folder = repository("../shared/fixtures/libfuzzer");
    let is_there = folder.join("commands.json").exists();
    if !is_there {
        skip("no folder ../shared/fixtures/libfuzzer beside the repository");
    }
    (is_there && has("python3")).then_some(folder)
}

fn harnesses(bench: &Bench, fixture: &Path) {
    let source = |name: &str| fixture.join(name).display().to_string();
    for (name, language, file, more) in [
        ("c", "cc", "c.c", ""),
        ("ca", "cc", "c.c", ",address"),
        ("n", "cc", "n.c", ""),
        ("x", "c++", "x.cc", ""),
        ("m", "c++", "m.cc", ""),
    ] {
        let line = format!("-g -O1 -fsanitize=fuzzer{more} {} -o {name}", source(file));
        let output = bench.compiler(language, &line).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn texts(row: &Value, key: &str) -> Vec<String> {
    row[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// All files below a folder, by their names in it.
fn files(top: &Path) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![top.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(top).unwrap().display().to_string());
            }
        }
    }
    found
}

/// What differs; None: nothing.
fn difference(bench: &Bench, fixture: &Path, row: &Value) -> Option<String> {
    let (folder, hash) = (bench.path("run"), Regex::new("[0-9a-f]{40}").unwrap());
    let made = Command::new("python3").arg(fixture.join("tree.py")).arg(&folder).status().unwrap();
    assert!(made.success());
    let before = files(&folder);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", LIMIT]).arg(bench.path(row["harness"].as_str().unwrap()));
    command.args(texts(row, "arguments")).current_dir(&folder).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().or(output.status.signal().map(|signal| -signal));
    let new: BTreeSet<String> = files(&folder)
        .difference(&before)
        .map(|name| hash.replace_all(name, "<sha1>").into_owned())
        .collect();
    let wanted: BTreeSet<String> = texts(row, "new_files").into_iter().collect();
    let is_missing = |line: &String| !Regex::new(line).unwrap().is_match(&*said).unwrap();
    // The hint about it is libFuzzer's own.
    let lines = texts(row, "lines").into_iter().filter(|line| line != "AddressSanitizer");
    let missing: Vec<String> = lines.filter(is_missing).collect();
    let is_same_code = row["exit"].as_i64() == code.map(i64::from);
    let is_same = is_same_code && new == wanted && missing.is_empty();
    (!is_same).then(|| {
        format!("exit {code:?}, not {}; files {new:?}, not {wanted:?}; no {missing:?}", row["exit"])
    })
}

/// Runs the rows, prints a table, and returns the names of those that differ without being in the list.
fn disagreeing(is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(fixture) = fixture() else { return vec![] };
    let bench = Bench::new();
    harnesses(&bench, &fixture);
    let text = fs::read(fixture.join("commands.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let (mut agreeing, mut all, mut wrong) = (0, 0, vec![]);
    for row in &rows {
        let name = row["name"].as_str().unwrap();
        if NOT_RUN.contains(&name) || !is_wanted(name) {
            continue;
        }
        all += 1;
        let reason = DIFFERENT.iter().find(|(different, _)| *different == name);
        match (difference(&bench, &fixture, row), reason) {
            (None, _) => agreeing += 1,
            (Some(_), Some((_, reason))) => eprintln!("{name:<40} differs: {reason}"),
            (Some(how), None) => {
                eprintln!("{name:<40} DIFFERS: {how}");
                wrong.push(name.to_owned());
            }
        }
    }
    eprintln!("{agreeing} of {all} rows agree");
    wrong
}

fn is_quick(name: &str) -> bool {
    QUICK.iter().any(|start| name.starts_with(start))
}

#[test]
fn rows_that_run_inputs_agree_with_libfuzzer() {
    assert_eq!(disagreeing(is_quick), [""; 0]);
}

#[test]
fn rows_with_a_campaign_agree_with_libfuzzer() {
    assert_eq!(disagreeing(|name| !is_quick(name)), [""; 0]);
}
