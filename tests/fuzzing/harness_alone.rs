//! A harness that is started by hand fuzzes, merges and minimizes, with libFuzzer's lines, files and exit codes.

use std::path::PathBuf;

use crate::common;
use common::*;
use nix::sys::signal::Signal;

fn harness() -> PathBuf {
    target("brackets.c", "-O1 -fsanitize=fuzzer")
}

/// In this folder, by the ffuzz that has linked it.
fn alone(dir: &TestDir, words: &str) -> Job {
    dir.program(harness().to_str().unwrap()).words(words).without_env("FFUZZ")
}

fn is_hash(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[test]
fn new_inputs_are_in_the_first_folder_and_the_lines_are_libfuzzers() {
    let dir = TestDir::with_seed("(");
    let done = alone(&dir, "-runs=20000 -seed=1 -ignore_crashes=1 -print_final_stats=1 in")
        .run()
        .expect(0);
    done.says("INFO: Seed: ")
        .says("INFO:        1 files found in in")
        .says("INFO: seed corpus: files: 1 min: 1b max: 1b total: 1b")
        .says("INITED cov: ")
        .says("Done 20000 runs in ")
        .says("stat::number_of_executed_units: 20000");
    let names = dir.names("in");
    assert!(names.iter().filter(|name| is_hash(name)).count() >= 2, "{names:?}");
}

/// AddressSanitizer gets libFuzzer's limits as options; those of the user need nothing of ours in them.
#[test]
fn a_harness_with_a_sanitizer_fuzzes_whatever_options_it_has() {
    let dir = TestDir::with_seed("(");
    let harness = target("brackets.c", "-O1 -fsanitize=fuzzer,address");
    let alone = || dir.program(harness.to_str().unwrap());
    alone().words("-runs=4 -seed=1 in").run().expect(0).says("Done 4 runs in ");
    let done = alone().words("-max_total_time=60 -artifact_prefix=made- in");
    let done = done.env("ASAN_OPTIONS", "detect_leaks=1:exitcode=5").run().expect(77);
    done.says("Test unit written to made-crash-");
}

#[test]
fn a_crash_ends_it_with_77_and_an_artifact() {
    let dir = TestDir::with_seed("(");
    std::fs::create_dir(dir.path("made")).unwrap();
    let done = alone(&dir, "-max_total_time=60 -artifact_prefix=made/x- in").run().expect(77);
    done.says("ERROR: libFuzzer: deadly signal")
        .says("SUMMARY: libFuzzer: deadly signal")
        .says("artifact_prefix='made/x-'; Test unit written to made/x-crash-")
        .says("Base64: QlVHI");
    let made = dir.names("made");
    assert!(made.len() == 1 && dir.read(&format!("made/{}", made[0])).starts_with(b"BUG!"));
    // Behind the crash it goes on if that is wanted; a known code is kept.
    alone(&dir, "-runs=2000 -ignore_crashes=1 -artifact_prefix=made/ in").run().expect(0);
    alone(&dir, "-max_total_time=60 -error_exitcode=5 -exact_artifact_path=one in").run().expect(5);
    assert!(dir.read("one").starts_with(b"BUG!"));
}

#[test]
fn a_signal_ends_it_with_72_and_another_one_with_0() {
    for (signal, code) in [(Signal::SIGTERM, 72), (Signal::SIGUSR1, 0)] {
        let dir = TestDir::with_seed("(");
        let mut running = alone(&dir, "-ignore_crashes=1 in").start();
        running.wait_for("INITED");
        running.signal(signal);
        let done = running.finish().expect(code);
        if code == 72 {
            done.says("libFuzzer: run interrupted; exiting");
        }
    }
}

#[test]
fn jobs_have_logs_and_campaigns_side_by_side_one_status() {
    let dir = TestDir::with_seed("(");
    let words = "-jobs=2 -workers=2 -runs=500 -ignore_crashes=1 in";
    alone(&dir, words).run().expect(0).says("Job 0 exited with exit code 0").says("Job 1 exited");
    assert!(dir.text("fuzz-1.log").contains(" runs in "));
    let sound = target("brackets.c", "-O1 -fsanitize=fuzzer -DSOUND");
    let job = dir.program(sound.to_str().unwrap()).words("-fork=2 -max_total_time=2 in");
    let done = job.run().expect(0).says("INFO: exiting: 0 time: ");
    done.says("INFO: -fork=2: fuzzing in separate process(s)").says("oom/timeout/crash: ");
}

#[test]
fn folders_are_merged_and_inputs_minimized() {
    let dir = TestDir::with_seed("(");
    for (name, content) in
        [("more/a", "((("), ("more/b", "["), ("more/c", "BUG!x"), ("more/d", "(((")]
    {
        dir.write(name, content);
    }
    let done = alone(&dir, "-merge=1 in more").run().expect(0);
    done.says("MERGE-OUTER: 5 files, 1 in the initial corpus")
        .says("Test unit written to ./crash-")
        .says("MERGE-OUTER: 2 new files with ");
    assert_eq!(dir.names("in").len(), 3);
    let done = alone(&dir, "-minimize_crash=1 -exact_artifact_path=short more/c").run().expect(0);
    done.says("CRASH_MIN: minimizing crash input: 'more/c' (5 bytes)");
    assert_eq!(dir.read("short"), b"BUG!");
    let done = alone(&dir, "-minimize_crash=1 more/a").run().expect(1);
    done.says("ERROR: the input more/a did not crash");
    alone(&dir, "-cleanse_crash=1 -exact_artifact_path=plain more/c").run().expect(0);
    assert_eq!(dir.read("plain"), b"BUG! ");
}

#[test]
fn what_is_wrong_ends_it_with_1_and_nothing_is_swallowed() {
    let dir = TestDir::with_seed("(");
    dir.write("bad.dict", "a=\"b\"\nfoo\n");
    for (words, text) in [
        ("-runs=5 nowhere", "ERROR: The required directory \"nowhere\" does not exist"),
        (
            "-runs=5 -artifact_prefix=nowhere/ in",
            "The required directory \"nowhere/\" does not exist",
        ),
        ("-runs=5 -dict=none in", "ParseDictionaryFile: file does not exist or is empty"),
        ("-runs=5 -dict=bad.dict in", "ParseDictionaryFile: error in line 2"),
        ("-analyze_dict=1 in", "the option -analyze_dict is not supported here"),
    ] {
        alone(&dir, words).run().expect(1).says(text);
    }
    let done = alone(&dir, "-runs=50 -nonsense=1 -focus_function=f in").run().expect(0);
    done.says("WARNING: unrecognized flag '-nonsense=1'").says("-focus_function is not supported");
    let done = alone(&dir, "-runs=5 in").env("FFUZZ", "/not/there/ffuzz").run().expect(1);
    done.says("cannot start /not/there/ffuzz").says("set FFUZZ to its path");
}
