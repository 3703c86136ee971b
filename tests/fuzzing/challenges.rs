//! Programs of `tests/challenges/`: each crashes behind comparisons that a search without the comparison log does not
//! pass. Solved from a seed that knows nothing, by each of five seeds of the generator, within a number of executions.

use crate::common;
use common::*;

fn solve(source: &str, execs: u64) {
    let dir = TestDir::with_seed("x".repeat(48));
    let compiler = if source.ends_with("cc") { "c++" } else { "cc" };
    let path = repository(&format!("tests/challenges/{source}")).display().to_string();
    let job = dir.ffuzz(&format!("{compiler} -O2 -fsanitize=fuzzer {path} -o t"));
    let job = job.env("XDG_CACHE_HOME", cache().to_str().unwrap());
    job.env("FFUZZ_NO_WORDS", "1").run().expect(0);
    for seed in 1..=5 {
        let options = format!("-s {seed} -E {execs} -o out{seed} -i in");
        let job = dir.ffuzz(&options).arg("--").arg(dir.path("t"));
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        let stats = dir.text(&format!("out{seed}/default/fuzzer_stats"));
        assert!(stats.contains("saved_crashes     : 1"), "{source}, seed {seed}: {stats}");
    }
}

#[test]
fn numbers_of_every_width_and_order() {
    solve("magics.c", 5_000);
}

#[test]
fn eight_numbers_one_behind_the_other() {
    solve("chain.c", 5_000);
}

#[test]
fn fields_bounds_and_switches() {
    solve("fields.c", 20_000);
}

#[test]
fn strings_of_cxx() {
    solve("strings.cc", 20_000);
}

#[test]
fn numbers_in_text() {
    solve("text-numbers.c", 20_000);
}

#[test]
fn calculated_numbers() {
    solve("affine.c", 20_000);
}

#[test]
fn sums_over_a_region() {
    solve("sums.c", 20_000);
}

#[test]
fn keywords_and_a_state_machine() {
    solve("keywords.c", 50_000);
}

#[test]
fn a_checksum_over_a_region_with_a_length() {
    solve("checksum.c", 20_000);
}

#[test]
fn nested_checksums() {
    solve("nested.c", 20_000);
}

#[test]
fn chunks_with_lengths_and_checksums() {
    solve("chunks.c", 200_000);
}

/// `-c -`: as before.
#[test]
fn without_comparisons_they_stay_shut() {
    let dir = TestDir::with_seed("x".repeat(48));
    let path = repository("tests/challenges/chain.c").display().to_string();
    let job = dir.ffuzz(&format!("cc -O2 -fsanitize=fuzzer {path} -o t"));
    let job = job.env("XDG_CACHE_HOME", cache().to_str().unwrap());
    job.env("FFUZZ_NO_WORDS", "1").run().expect(0);
    dir.fuzz("-s 1 -E 200000 -c -", &dir.path("t"), "").run().expect(0);
    assert!(dir.crashes().is_empty());
}
