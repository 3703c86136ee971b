//! Programs that are hard to look into: their comparisons are solved all the same, or cost no more than their share.

use crate::common;
use common::*;

/// Two numbers, without words of the compiler, from a seed that knows nothing.
#[track_caller]
fn is_solved(flags: &str, options: &str) {
    let dir = TestDir::with_seed("x".repeat(64));
    let program = target("unruly.c", &format!("-fsanitize=fuzzer {flags}"));
    let job = dir.fuzz(options, &program, "").env("AFL_NO_AUTODICT", "1");
    job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    assert_eq!(dir.crashes().len(), 1, "{flags}: {:#?}", dir.stats());
}

#[test]
fn comparisons_are_solved_although_the_log_is_overwritten() {
    is_solved("-DSCRIBBLES", "-s 1 -t 2000 -E 20000");
}

#[test]
fn a_loop_that_never_ends_costs_the_stage_no_time() {
    // A hang takes a second, which is not the stage's.
    is_solved("-DCOMPARES_FOR_EVER", "-V 60");
}

#[test]
fn addresses_and_times_are_no_numbers_of_the_input() {
    is_solved("-DCOMPARES_ADDRESSES", "-s 1 -t 2000 -E 20000");
}

#[test]
fn a_program_that_forks_has_the_log_of_its_parent() {
    is_solved("-DFORKS", "-s 1 -t 2000 -E 20000");
}

#[test]
fn a_library_that_is_unloaded_is_solved() {
    let dir = TestDir::with_seed("x".repeat(64));
    let source = repository("tests/targets/unruly.c").display().to_string();
    let library = dir.path("libpart.so");
    let words = format!("cc -shared -fPIC -O1 -DPART {source} -o {}", library.display());
    dir.ffuzz(&words).run().expect(0);
    let program = target("unruly.c", "-fsanitize=fuzzer -DUNLOADS");
    let job = dir.fuzz("-s 1 -t 2000 -E 20000", &program, "").env("AFL_NO_AUTODICT", "1");
    let job = job.env("AFL_BENCH_UNTIL_CRASH", "1").env("PART", library.to_str().unwrap());
    job.env("AFL_PRELOAD", library.to_str().unwrap()).run().expect(0);
    assert_eq!(dir.crashes().len(), 1, "{:#?}", dir.stats());
}
