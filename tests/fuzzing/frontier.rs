//! What is shut for a corpus: `ffuzz-showmap --blockers`, by the table of `ffuzz-cc` and by machine code.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common;
use common::*;

/// Lines of tests/targets/forks.c: the gate of two functions, the switch, the gate of a call by pointer.
const GATE: u64 = 25;
const SWITCH: u64 = 26;
const POINTER: u64 = 33;

/// The places that the inputs of the folder do not go on from.
fn listed(dir: &TestDir, program: &Path) -> (Vec<Value>, Finished) {
    let done = dir.tool("showmap --blockers --json -i in", program, "").run().expect(0);
    (serde_json::from_str(&done.out).unwrap(), done)
}

fn at(list: &[Value], line: u64) -> &Value {
    list.iter().find(|one| one["line"] == line).unwrap_or_else(|| panic!("line {line}: {list:#?}"))
}

#[test]
fn what_lies_behind_a_fork_comes_first() {
    for (clang, level) in clangs().into_iter().flat_map(|clang| [(clang, "-O0"), (clang, "-O2")]) {
        let dir = TestDir::new();
        dir.write("in/a", "....");
        let target =
            target_by(&[("FFUZZ_CC", clang)], "forks.c", &format!("-g {level} -fsanitize=fuzzer"));
        let (list, done) = listed(&dir, &target);
        let what = format!("{clang} {level}: {list:#?}");
        let gate = at(&list, GATE);
        assert_eq!(
            (&gate["operands"], &gate["outcome"]),
            (&"0x2e '.' and 0x58 'X' (constant)".into(), &"never equal".into()),
            "{what}"
        );
        let switch = at(&list, SWITCH);
        assert!(switch["comparison"].as_str().unwrap().starts_with("switch"), "{what}");
        for first in [gate, switch] {
            assert!(first["behind"].as_u64() > at(&list, POINTER)["behind"].as_u64(), "{what}");
        }
        if level == "-O0" {
            assert_eq!(
                (&gate["functions"], &switch["functions"]),
                (&2.into(), &1.into()),
                "{what}"
            );
            let done = done.says("never entered: 4 functions with 9 edges");
            done.says("2 are called by code that is reached, 1 may be called by pointer, and 1 by");
        }
        // One of them is open.
        dir.write("in/b", "X...");
        let (list, _) = listed(&dir, &target);
        assert!(list.iter().all(|one| one["line"] != GATE), "{clang} {level}: {list:#?}");
    }
}

#[test]
fn machine_code_is_read_where_there_is_no_table() {
    let dir = TestDir::new();
    dir.write("in/a", "....");
    let with_table = target("forks.c", "-g -O1 -fsanitize=fuzzer");
    let dropped = Command::new("objcopy")
        .args(["-R", ".ffuzz_flow"])
        .args([&with_table, &dir.path("t")])
        .status();
    assert!(dropped.unwrap().success());
    let (list, _) = listed(&dir, &dir.path("t"));
    let (expected, _) = listed(&dir, &with_table);
    let behind =
        |list: &[Value]| -> Vec<Value> { list.iter().map(|one| one["behind"].clone()).collect() };
    let expected: Vec<Value> = expected.into_iter().filter(|one| one["line"] != SWITCH).collect();
    assert_eq!(behind(&list), behind(&expected), "{list:#?}");
    assert_eq!(list.len(), 3, "{list:#?}");
    at(&list, POINTER);
}

#[test]
fn a_damaged_table_is_named_and_the_campaign_goes_on() {
    let dir = TestDir::with_seed("....");
    dir.write("table", [0xff; 40]);
    let copied = Command::new("objcopy")
        .arg("--update-section")
        .arg(format!(".ffuzz_flow={}", dir.path("table").display()))
        .args([&target("forks.c", "-g -O1 -fsanitize=fuzzer"), &dir.path("t")])
        .status();
    assert!(copied.unwrap().success());
    let done = dir.fuzz("-E 1000", &dir.path("t"), "").run().expect(0);
    done.says("control flow of").says("is damaged: its machine code is read instead");
    assert!(dir.stat("edges_found") > 2);
}
