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

#[test]
fn files_are_run_by_each_job_and_without_a_fork() {
    let dir = TestDir::with_seed("(");
    dir.write("bad", "BUG!");
    dir.write("good", "[");
    alone(&dir, "-jobs=2 good in/seed").run().expect(0).says("Job 1 exited with exit code 0");
    assert!(dir.text("fuzz-0.log").contains("Running: good"));
    alone(&dir, "-jobs=1 bad").run().expect(1).says("Job 0 exited with exit code 77");
    alone(&dir, "-fork=1 bad").run().expect(77).says("Running: bad");
    let done = alone(&dir, "-max_total_time=60 in").run().expect(77);
    assert!(!done.err.contains("Running: "), "{}", done.err);
}

#[test]
fn a_seed_that_hangs_ends_it_with_70_and_an_artifact() {
    let dir = TestDir::with_seed("A");
    dir.write("in/slow", "hang");
    let text = "#include <stdint.h>\n#include <string.h>\n\
                int LLVMFuzzerTestOneInput(const uint8_t *d, unsigned long n) {\n\
                if (n > 3 && !memcmp(d, \"hang\", 4)) for (volatile int i = 0;; i++) {}\nreturn 0; }\n";
    dir.write("slow.c", text);
    dir.ffuzz("cc -g -fsanitize=fuzzer slow.c -o slow").run().expect(0);
    std::fs::create_dir(dir.path("made")).unwrap();
    let harness = dir.path("slow").display().to_string();
    let done = dir.program(&harness).words("-timeout=1 -artifact_prefix=made/ in").run().expect(70);
    done.says("SUMMARY: libFuzzer: timeout");
    assert!(dir.names("made")[0].starts_with("timeout-"), "{:?}", dir.names("made"));
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
        .says("MERGE-OUTER: 2 new files with ")
        .says(" new coverage edges")
        .says("DONE   cov: ");
    assert_eq!(dir.names("in").len(), 3);
    // The corpus has all of it now.
    alone(&dir, "-merge=1 in more")
        .run()
        .expect(0)
        .says("MERGE-OUTER: 0 new files with 0 new features");
    let done = alone(&dir, "-minimize_crash=1 -exact_artifact_path=short more/c").run().expect(0);
    done.says("CRASH_MIN: minimizing crash input: 'more/c' (5 bytes)");
    assert_eq!(dir.read("short"), b"BUG!");
    let done = alone(&dir, "-minimize_crash=1 more/a").run().expect(1);
    done.says("ERROR: the input more/a did not crash");
    alone(&dir, "-cleanse_crash=1 -exact_artifact_path=plain more/c").run().expect(0);
    assert_eq!(dir.read("plain"), b"BUG! ");
}

/// A folder with 130 inputs, and one that makes the harness wait as long as there is a file `hang`.
fn inputs_that_wait() -> (TestDir, PathBuf) {
    let dir = TestDir::with_seed([1, 1]);
    for number in 0..130u8 {
        dir.write(&format!("more/{number:03}"), [number % 40 + 1, 1, number]);
    }
    dir.write("more/waits", [b'Q', 1, 1, 1]);
    dir.write("hang", "");
    (dir, target("counts.c", "-O1 -DHARNESS -fsanitize=fuzzer"))
}

#[test]
fn an_interrupted_merge_resumes_and_the_next_one_goes_on_from_it() {
    let (dir, harness) = inputs_that_wait();
    let words = "-merge=1 -merge_control_file=control in more";
    let merge = || dir.program(harness.to_str().unwrap()).words(words);
    let mut running = merge().start();
    running.wait_for("MERGE-OUTER: 132 files, 1 in the initial corpus, 0 processed earlier");
    let results = || dir.text("control").matches("\nSTARTED ").count();
    wait_until("all inputs before it have results", || {
        dir.path("hung").exists() && dir.path("control").exists() && results() == 128
    });
    merge().run().expect(1).says("another merge uses the control file");
    running.signal(Signal::SIGTERM);
    running.finish().expect(72).says("interrupted: the same command continues");
    std::fs::remove_file(dir.path("hang")).unwrap();
    let done = merge().run().expect(0);
    done.says("MERGE-OUTER: control file ok")
        .says("1 in the initial corpus, 128 processed earlier");
    let text = dir.text("control");
    assert!(text.starts_with("132\n1 ffuzz ") && text.contains("\nFT 0 "), "{text}");
    assert!(results() == 132 && text.lines().last().unwrap().starts_with("COV 131"), "{text}");
    let kept = dir.names("in");
    assert!((5..12).contains(&kept.len()), "{kept:?}");
    // The new files of the corpus are all that is run.
    let left = kept.len() - 1;
    let done = merge().run().expect(0).says("132 processed earlier");
    done.says(&format!("MERGE-OUTER: {} files, {} in the initial", 132 + left, kept.len()))
        .says("MERGE-OUTER: 0 new files with 0 new features added; 0 new coverage edges");
    // A result of an input that has changed is not believed.
    dir.write("more/000", [1, 1, 1, 1, 1]);
    merge()
        .run()
        .expect(0)
        .says("have changed: starting from scratch")
        .says(" 0 processed earlier");
}

#[test]
fn a_merge_goes_on_after_inputs_that_take_too_long() {
    let (dir, harness) = inputs_that_wait();
    dir.write("more/dies", [b'Z']);
    dir.write("more/last", [1, 1, 1, 1, 1]);
    let words = "-merge=1 -timeout=1 -merge_control_file=control in more";
    let merge = || dir.program(harness.to_str().unwrap()).words(words).run().expect(0);
    let once = merge().says("MERGE-OUTER: successful");
    once.says("Test unit written to ./timeout-").says("Test unit written to ./crash-");
    // They are not run again by the merge, only by the report.
    merge().says("134 processed earlier").says("./timeout-").says("./crash-");
}

#[test]
fn only_a_merge_control_file_is_replaced() {
    let dir = TestDir::with_seed("(");
    dir.write("more/a", "[");
    dir.write("text", "mine");
    dir.write("foreign", "2\n1\nin/seed\nmore/a\nSTARTED 0 1\nFT 0 8\nCOV 0 1\n");
    nix::unistd::mkfifo(&dir.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (name, cause) in [
        ("text", "is no merge control file"),
        ("pipe", "is no merge control file"),
        ("foreign", "is the control file of a harness that libFuzzer has built"),
    ] {
        let words = format!("-merge=1 -merge_control_file={name} in more");
        let done = alone(&dir, &words).run().expect(1);
        done.says(cause).says("give another -merge_control_file, or remove this one");
    }
    assert_eq!((dir.text("text").as_str(), dir.names("in").len()), ("mine", 1));
    dir.write("more/a\nb", "[");
    alone(&dir, "-merge=1 -merge_control_file=new in more")
        .run()
        .expect(1)
        .says("has a line break");
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
