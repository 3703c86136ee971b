//! `ffuzz tmin`: what is kept, and that the results are as small as `afl-tmin`'s.

use crate::common;
use std::path::{Path, PathBuf};

use common::{Finished, TestDir, afl_target, need, target};

const CRASH: &[u8] = b"QUIZyyyyyyyyyyyyyyyyyyZZZ123abc";
const NO_CRASH: &[u8] = b"QUIAyyyyyyyyyyyyyyyyyyZZZ123abc";

fn tmin(dir: &TestDir, options: &str, target: &Path, words: &str) -> Finished {
    dir.tool(&format!("tmin -t 3000 -i input -o small {options}"), target, words).run()
}

fn minimized(input: &[u8], options: &str, target: &Path, words: &str) -> (Vec<u8>, Finished) {
    let dir = TestDir::new();
    dir.write("input", input);
    let done = tmin(&dir, options, target, words).expect(0);
    (dir.read("small"), done)
}

/// The same program in every form of delivery.
fn all_steps() -> Vec<PathBuf> {
    let mut targets: Vec<PathBuf> = ["", "-DPERSISTENT", "-DSHARED"]
        .iter()
        .flat_map(|flags| [target("steps.c", flags), afl_target("steps.c", flags)])
        .collect();
    targets.sort();
    targets
}

#[test]
fn a_crash_becomes_as_small_as_by_afl_tmin() {
    need("afl-tmin");
    let theirs = TestDir::new();
    theirs.write("input", CRASH);
    let job = theirs.program("afl-tmin").words("-i input -o small --");
    job.arg(afl_target("steps.c", "")).run().expect(0);
    for target in all_steps() {
        let (small, done) = minimized(CRASH, "", &target, "");
        assert_eq!(small, theirs.read("small"), "{target:?}");
        done.says("minimizing in crash mode.")
            .says("[+] Block normalization complete, 27 bytes replaced.")
            .says("[+] Block removal complete, 27 bytes deleted.")
            .says("File size reduced by : 87.10% (to 4 bytes)");
    }
}

#[test]
fn edges_are_kept_where_nothing_crashes() {
    for target in all_steps() {
        let (small, done) = minimized(NO_CRASH, "", &target, "");
        assert_eq!(small, b"QUI0", "{target:?}");
        done.says("minimizing in instrumented mode.").does_not_say("differs");
    }
}

#[test]
fn hit_counts_matter_by_default() {
    let counts = target("counts.c", "-O0");
    let mut input = b"9\x01".to_vec();
    input.extend([7; 40]);
    // 32 to 127 hits are one class, and '0' is 48; the second byte has to be odd.
    assert_eq!(minimized(&input, "", &counts, "").0, b"0\x01");
    assert_eq!(minimized(b"\x05\x01...", "", &counts, "").0, b"\x05\x01");
    assert_eq!(minimized(b"\x05\x01...", "-e", &counts, "").0, b"0\x01");
}

#[test]
fn an_exact_crash_keeps_its_edges() {
    // Two ways to the same signal, distinguished by the second byte.
    let (dir, words) = (TestDir::new(), "sites");
    dir.write("input", b"QQabcdefgh");
    let outcomes = target("outcomes.c", "");
    tmin(&dir, "", &outcomes, words).expect(0);
    assert_eq!(dir.read("small"), b"Q");
    let job = dir.tool("tmin -i input -o small", &outcomes, words).env("AFL_TMIN_EXACT", "1");
    job.run().expect(0).says("minimizing in EXACT crash mode.");
    assert_eq!(dir.read("small"), b"QQ");
    for target in all_steps() {
        dir.write("input", CRASH);
        let job = dir.tool("tmin -i input -o small", &target, "").env("AFL_TMIN_EXACT", "1");
        job.run().expect(0);
        assert_eq!(dir.read("small"), b"QUIZ", "{target:?}");
    }
}

#[test]
fn hangs_and_exit_codes_can_be_kept() {
    let outcomes = target("outcomes.c", "");
    let dir = TestDir::new();
    dir.write("input", b"Qabcdef");
    let job = dir.tool("tmin -H -t 200 -i input -o small", &outcomes, "hang");
    job.run().expect(0).says("minimizing in hang mode.");
    assert_eq!(dir.read("small"), b"Q");
    assert_eq!(minimized(b"Qabc", "-x", &outcomes, "exit").0, b"Q");
    minimized(b"Qabc", "-x", &outcomes, "exit").1.says("minimizing in crash mode.");
    minimized(b"Qabc", "", &outcomes, "exit").1.says("minimizing in instrumented mode.");
    let code =
        dir.tool("tmin -i input -o small", &outcomes, "exit").env("AFL_CRASH_EXITCODE", "77");
    code.run().expect(0).says("minimizing in crash mode.");
    let dir = TestDir::new();
    dir.write("input", b"Qabcdef");
    let job = dir.tool("tmin -t 200 -i input -o small", &outcomes, "hang");
    job.run().says("takes too long").says("-H").expect(1);
    tmin(&dir, "-H", &outcomes, "none").says("does not take too long").expect(1);
}

#[test]
fn the_value_of_a_domain_is_kept() {
    let maps = target("maps.c", "");
    let reached = |input: &[u8]| {
        let dir = TestDir::new();
        dir.showdsf("-q", &maps, "").input(input).run().expect(0).out
    };
    let input = b"\x35!!!!####";
    assert!(reached(input).contains("dsf[0] = 53"), "{}", reached(input));
    for which in ["0", "most"] {
        let (small, done) = minimized(input, &format!("--dsf {which}"), &maps, "");
        // The value may grow, not fall: '0' is 48.
        assert_eq!(small, b"\x35", "{which}");
        done.says("Keeping the values of 1 domain keys.");
    }
    let (small, _) = minimized(input, "--dsf least", &maps, "");
    assert_eq!(small, b"0");
    let dir = TestDir::new();
    dir.write("input", input);
    tmin(&dir, "--dsf 77", &maps, "").says("reaches no value of 77").expect(1);
    tmin(&dir, "--dsf peak", &maps, "").says("most, least, seen, common").expect(1);
    let plain = target("steps.c", "");
    tmin(&dir, "--dsf 0", &plain, "").says("registers no domain").expect(1);
}

#[test]
fn files_are_read_and_written_whole() {
    let dir = TestDir::new();
    let outcomes = target("outcomes.c", "");
    dir.write("input", b"Qabcdef");
    tmin(&dir, "", &outcomes, "abort @@").expect(0);
    assert_eq!(dir.read("small"), b"Q");
    tmin(&dir, "-f here", &outcomes, "abort here").expect(0);
    assert_eq!(dir.read("small"), b"Q");
    let shown = dir.tool("tmin -i input -o /dev/stdout", &outcomes, "abort").run().expect(0);
    assert_eq!(shown.out, "Q");
    assert_eq!(dir.read("input"), b"Qabcdef");
    let mut large = b"QUIZ".to_vec();
    large.resize((1 << 20) + 7, b'x');
    dir.write("input", large);
    tmin(&dir, "", &target("steps.c", "-DSHARED"), "").expect(0).says("larger than 1 MiB");
    assert_eq!(dir.read("small"), b"QUIZ");
}

#[test]
fn wrong_inputs_and_options_are_refused() {
    let dir = TestDir::new();
    let steps = target("steps.c", "");
    let refused = |options: &str, cause: &str, remedy: &str| {
        let done = dir.tool(&format!("tmin {options}"), &steps, "").env("AFL_QUIET", "1").run();
        done.refused(1, cause, remedy);
    };
    refused("-i nowhere -o small", "cannot read \"nowhere\"", "");
    dir.write("empty", "");
    refused("-i empty -o small", "empty is empty", "byte");
    dir.write("input", CRASH);
    refused("-i input -o in", "is a folder", "file");
    refused("-i input -o no/small", "does not exist", "create it");
    refused("-i input -o small -Q", "is instrumented", "leave -Q out");
    refused("-i input -o small -A", "-A (CoreSight)", "ffuzz-cc");
    refused("-i input -o small -B mask", "-B (a bitmap as mask)", "leave -B out");
    refused("-i input -o small -K folder", "-K (GUI mode)", "leave -K out");
    refused("-i input -o small -t 1", "-t 1", "at least 10");
    refused("-z -i input -o small", "-z is not an option of this program", "--help");
    assert_eq!(dir.names(""), ["empty", "in", "input"]);
    dir.ffuzz("tmin").run().expect(1);
    dir.ffuzz("tmin --help").run().expect(0).says("Examples:");
}
