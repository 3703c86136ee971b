//! The interface of a libFuzzer harness: its own mutator and crossover make inputs, in a process of its own.

use crate::common;
use common::*;

const NOTE: &str = "the harness makes inputs, too: LLVMFuzzerCustomMutator";

fn harness(flags: &str) -> std::path::PathBuf {
    target("sealed.cc", &format!("-fsanitize=fuzzer {flags}"))
}

/// Neither havoc nor the comparison log makes the sum of a changed body.
#[test]
fn the_mutator_of_a_harness_opens_what_it_seals() {
    for only in [false, true] {
        let dir = TestDir::with_seed("12345678");
        let mut job = dir.fuzz("-s 1 -V 60", &harness(""), "").env("AFL_BENCH_UNTIL_CRASH", "1");
        if only {
            job = job.env("AFL_CUSTOM_MUTATOR_ONLY", "1");
        }
        job.run().expect(0).says(NOTE).does_not_say("CustomCrossOver");
        let crashes = dir.crashes();
        assert!(!crashes.is_empty() && crashes[0].contains("op:libfuzzer"), "{crashes:?}");
        let found = dir.queue().iter().filter(|name| name.contains("op:libfuzzer")).count();
        assert!(found >= 3, "{:?}", dir.queue());
    }
}

#[test]
fn a_crossover_is_called_with_another_seed() {
    let flags = "-DCROSSOVER -DCROSSOVER_ONLY";
    let dir = TestDir::with_seed("12345678");
    dir.write("in/b", "876543210");
    let job = dir.fuzz("-s 1 -E 20000", &harness(flags), "");
    job.run().expect(0).says("the harness makes inputs, too: LLVMFuzzerCustomCrossOver");
    // The sum is right in what it makes alone.
    let found = dir.queue().iter().filter(|name| name.contains("op:libfuzzer")).count();
    assert!(found >= 1, "{:?}", dir.queue());
}

/// What a mutator does wrong costs inputs, and is said once.
#[test]
fn a_mutator_that_fails_is_named_and_the_campaign_goes_on() {
    let ended = "mutator libfuzzer: fuzz: ended its process (killed by signal 6)";
    for (flags, text) in [
        ("-DCRASHES", ended),
        ("-DOVERFLOWS -fsanitize=address", ended),
        ("-DTOO_MUCH", ""),
        ("-DNOTHING", ""),
    ] {
        let dir = TestDir::with_seed("12345678");
        let job = dir.fuzz("-s 1 -V 60", &harness(flags), "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0).says(NOTE).says(text);
        assert!(dir.crashes()[0].contains("op:libfuzzer"), "{flags}: {:?}", dir.crashes());
    }
    let dir = TestDir::with_seed("12345678");
    let done = dir.fuzz("-s 1 -V 8", &harness("-DHANGS"), "").run().expect(0);
    done.says("mutator libfuzzer: fuzz: did not return within 2 seconds")
        .says("fuzz failed 100 times in a row and is switched off");
    assert!(dir.stat("execs_done") > 1_000);
}

#[test]
fn without_any_mutator_nothing_makes_inputs() {
    let dir = TestDir::with_seed("a");
    let job = dir.fuzz("", &target("startup.c", ""), "").env("AFL_CUSTOM_MUTATOR_ONLY", "1");
    job.run().refused(1, "no mutator makes inputs", "name a mutator with a fuzz function");
}
