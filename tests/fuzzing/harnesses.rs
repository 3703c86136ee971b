//! libFuzzer harnesses in campaigns: inputs that they reject, the empty one, and one that is overwritten.

use std::fs;
use std::path::PathBuf;

use crate::common;
use common::*;

const FUZZER: &str = "-O1 -fsanitize=fuzzer";
const MODES: &str = "pipe fork snapshot persistent batch";

fn rejects() -> PathBuf {
    target_with("heap,perf", "rejects.c", FUZZER)
}

fn queue(dir: &TestDir) -> Vec<Vec<u8>> {
    dir.queue().iter().map(|name| dir.read(&format!("out/default/queue/{name}"))).collect()
}

#[test]
fn a_rejected_input_is_never_a_queue_entry_in_any_mode() {
    for mode in MODES.split(' ') {
        let dir = TestDir::with_seed("kb");
        let options = format!("-p -s 1 -E 4000 --run-mode {mode}");
        dir.fuzz(&options, &rejects(), "").run().expect(0);
        // A loop is not restored.
        assert_eq!(dir.stats()["run_mode"], mode.replace("snapshot", "fork"));
        let queue = queue(&dir);
        assert!(queue.len() > 1 && queue.iter().all(|entry| entry[0] == b'k'), "{mode} {queue:?}");
        // A crash is one all the same.
        assert!(dir.crashes().len() <= 1);
    }
}

#[test]
fn a_crash_of_a_harness_that_rejects_is_a_find() {
    let dir = TestDir::with_seed("ka");
    dir.write("in/b", "!w");
    let job = dir.fuzz("-s 1 -E 200000", &rejects(), "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
}

#[test]
fn rejected_seeds_are_left_out_and_counted_in_one_line() {
    let dir = TestDir::new();
    for (name, seed) in [("a", "x"), ("b", "kb"), ("c", "y"), ("d", "ka")] {
        dir.write(&format!("in/{name}"), seed);
    }
    let done = dir.fuzz("-s 1 -E 100", &rejects(), "").run().expect(0);
    let done = done.says("2 seeds left out: LLVMFuzzerTestOneInput rejects them");
    assert_eq!(done.err.matches("left out").count() + done.out.matches("left out").count(), 1);
    assert!(queue(&dir).iter().all(|entry| entry[0] == b'k'));
    assert_eq!(fs::read(dir.path("in/a")).unwrap(), b"x");
    // Their numbers stay free, which is no fault.
    let resumed = dir.ffuzz("-i - -o out -s 1 -E 200 --").arg(rejects()).run().expect(0);
    let said = format!("{}{}", resumed.out, resumed.err);
    assert!(!said.contains("missing") && !said.contains("left out"), "{said}");
}

#[test]
fn a_harness_that_rejects_all_seeds_is_an_error() {
    let dir = TestDir::with_seed("x");
    let done = dir.fuzz("-E 100", &rejects(), "").run();
    let done = done.refused(1, "no seed is usable: the harness rejects 1", "it returns -1");
    assert!(!done.err.contains("instrument"), "{}", done.err);
}

#[test]
fn tools_show_nothing_of_a_rejected_input() {
    let dir = TestDir::new();
    dir.write("in/good", "kb");
    dir.write("in/bad", "x");
    let showmap = |input: &str| dir.tool("showmap -o -", &rejects(), "").input(input);
    let shown = showmap("x").run().expect(0).says("The harness rejects this input");
    assert!(!shown.out.contains(':'), "{}", shown.out);
    assert!(showmap("kb").run().expect(0).out.contains(':'));
    // Without a fork server AFL's map has a single edge: an empty one has another meaning there.
    let alone = showmap("x").env("AFL_NO_FORKSRV", "1").run().expect(0);
    assert_eq!(alone.out.lines().filter(|line| line.contains(':')).count(), 1, "{}", alone.out);
    dir.tool("cmin -i in -o less", &rejects(), "").run().expect(0);
    assert_eq!(dir.names("less"), ["good"]);
    let tmin = |input: &str| dir.tool(&format!("tmin -i in/{input} -o small"), &rejects(), "");
    tmin("bad").run().expect(1).says("harness rejects this input").says("one that crashes");
    tmin("good").run().expect(0);
}

#[test]
fn a_crash_on_the_empty_input_is_found_whatever_the_seeds_are() {
    let hollow = target("hollow.c", FUZZER);
    for mode in MODES.split(' ') {
        let dir = TestDir::with_seed("seed");
        let options = format!("-s 1 -E 50 -V 60 --run-mode {mode}");
        dir.fuzz(&options, &hollow, "").run().expect(0);
        let crashes = dir.crashes();
        assert_eq!(crashes.len(), 1, "{mode}");
        assert_eq!(dir.read(&format!("out/default/crashes/{}", crashes[0])), b"");
        assert!(queue(&dir).iter().all(|entry| !entry.is_empty()));
    }
    // It is a bug as others: triage shows where it is.
    let dir = TestDir::with_seed("seed");
    dir.fuzz("-s 1 -E 50", &hollow, "").run().expect(0);
    dir.ffuzz("triage out").run().expect(0).says("LLVMFuzzerTestOneInput");
}

#[test]
fn a_harness_that_overwrites_its_input_crashes() {
    let target = target("overwrites.c", FUZZER);
    let dir = TestDir::with_seed("xbc");
    dir.write("in/b", "Wbc");
    let job = dir.fuzz("-s 1 -E 100000", &target, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
    dir.ffuzz("triage out").run().expect(0).says("overwrites");
    // By hand as with libFuzzer.
    let crash = dir.path(&format!("out/default/crashes/{}", dir.crashes()[0]));
    let program = target.to_str().unwrap();
    for from in [crash, dir.path("out/default/crashes")] {
        let done = dir.program(program).arg(from).run().expect(77);
        let done = done.says("ERROR: libFuzzer: fuzz target overwrites its const input\n");
        done.says("SUMMARY: libFuzzer: overwrites-const-input\n");
    }
    dir.program(program)
        .words("-error_exitcode=5")
        .arg(dir.path("out/default/crashes"))
        .run()
        .expect(5);
    dir.program(program).arg(dir.path("in/a")).run();
}
