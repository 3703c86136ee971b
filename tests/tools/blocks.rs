//! `ffuzz showmap --blocks`: where the blocks of a program without instrumentation begin.

use std::collections::BTreeSet;

use crate::common;
use common::{TestDir, repository};

const TABLE_READER: &str = "llvm-readobj-19";

/// Block starts of the program itself.
fn listed(dir: &TestDir, program: &str) -> BTreeSet<u64> {
    let target = dir.path(program);
    let job = dir.tool(&format!("showmap --blocks --modules {program} -o list"), &target, "");
    job.run().expect(0);
    let prefix = format!("{program}+0x");
    let text = dir.text("list");
    let offset = |line: &str| {
        let offset = line.strip_prefix(&prefix)?.split(' ').next()?.to_owned();
        Some(u64::from_str_radix(&offset, 16).unwrap())
    };
    text.lines().filter_map(offset).collect()
}

/// Those that clang has written beside the code: all, and those that nothing falls into.
fn by_clang(dir: &TestDir, program: &str) -> [BTreeSet<u64>; 2] {
    let table = dir.program(TABLE_READER).words("--bb-addr-map").arg(dir.path(program)).run();
    let (mut base, mut start, mut falls) = (0, 0, false);
    let [mut all, mut entered] = [BTreeSet::new(), BTreeSet::new()];
    for line in table.expect(0).out.lines().map(str::trim) {
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        match line.split_once(": ") {
            Some(("Base Address", at)) => (base, falls) = (number(at), false),
            Some(("Offset", offset)) => {
                start = base + number(offset);
                all.insert(start);
                entered.extend((!falls).then_some(start));
            }
            Some(("IsEHPad", "Yes")) => drop(entered.insert(start)),
            Some(("CanFallThrough", answer)) => falls = answer == "Yes",
            _ => {}
        }
    }
    [all, entered]
}

#[test]
fn the_blocks_of_a_stripped_program_are_those_of_the_compiler() {
    if !common::has(TABLE_READER) {
        return common::skip("llvm-readobj-19 is missing");
    }
    let dir = TestDir::new();
    let source = repository("tests/targets/blocks.cc").display().to_string();
    for level in ["-O1", "-O2", "-O2 -fcf-protection=none -fno-pie -no-pie"] {
        let build = dir.program("clang++-19").words(level).words("-fbasic-block-address-map");
        build.arg(&source).words("-o whole").run().expect(0);
        dir.program("strip").words("-o stripped whole").run().expect(0);
        let lowest = if level.contains("no-pie") { 0x40_0000 } else { 0 };
        let to_offsets = |starts: BTreeSet<u64>| starts.iter().map(|at| at - lowest).collect();
        let [all, entered]: [BTreeSet<u64>; 2] = by_clang(&dir, "whole").map(to_offsets);
        let found = listed(&dir, "stripped");
        assert!(entered.len() > 30 && all.len() > 100, "{level}: {} {}", entered.len(), all.len());
        let missing: Vec<_> = entered.difference(&found).map(|at| format!("{at:x}")).collect();
        assert!(missing.is_empty(), "{level}: {missing:?}");
        // A block that is only fallen into, by a call that may throw, is none for a breakpoint.
        let fallen = all.difference(&found).count();
        assert!(fallen * 10 < all.len(), "{level}: {fallen} of {} are missing", all.len());
        // What the compiler does not list begins after a branch all the same, or is called.
        let more = found.difference(&all).count();
        assert!(more * 10 < all.len(), "{level}: {more} beside {}", all.len());
    }
}

#[test]
fn modules_choose_among_the_files_that_the_loader_loads() {
    let dir = TestDir::new();
    let job = dir.ffuzz("showmap --blocks --modules libc.so -o list -- sh");
    job.run().expect(0);
    let text = dir.text("list");
    assert!(text.contains("/libc.so.6: ") && text.contains("libc.so.6+0x"), "{:.200}", text);
    assert!(!text.contains("sh+0x"));
    // With the variables that -Q has: all files, also those that are preloaded.
    let library =
        common::plain("tests/targets/lookalikes-lib.c", "-shared -fPIC").display().to_string();
    let job = dir.ffuzz("showmap --blocks -o list -- sh").env("AFL_PRELOAD", &library);
    job.env("AFL_INST_LIBS", "1").run().expect(0);
    let text = dir.text("list");
    assert!(text.contains("sh+0x") && text.contains("libc.so.6+0x"), "{text:.200}");
    assert!(text.contains(&format!("# {library}: ")), "{text:.200}");
    let run = dir.ffuzz("showmap --blocks --modules nothing.so -- sh").run().expect(1);
    assert!(run.err.contains("--modules names none of the target's files"), "{}", run.err);
    assert!(run.err.contains("they are "), "{}", run.err);
}
