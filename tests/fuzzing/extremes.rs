//! Targets with one edge or with other edges in each run, and corpora of thousands of files: no stall, and no wrong
//! statistics.

use crate::common;
use common::*;

#[test]
fn a_program_with_a_single_edge_is_run_as_any_other() {
    let dir = TestDir::with_seed("xxxx");
    dir.write("one.c", "int main(void) { return 0; }");
    dir.ffuzz("cc -O1 one.c -o one").env("AFL_QUIET", "1").run().expect(0);
    let done = dir.fuzz("-s 1 -E 5000", &dir.path("one"), "").run().expect(0);
    done.says("does not read its standard input");
    let stats = dir.stats();
    assert_eq!((dir.stat("edges_found"), dir.stat("total_edges")), (1, 1), "{stats:#?}");
    assert_eq!((dir.stat("corpus_count"), dir.stat("execs_done")), (1, 5000));
    assert_eq!((&*stats["stability"], &*stats["bitmap_cvg"]), ("100.00%", "100.00%"));
}

/// Each run seems to show something new. What is seen in one run only is no reason to keep an input.
#[test]
fn a_program_that_takes_other_ways_each_time_is_searched_all_the_same() {
    let dir = TestDir::with_seed("xxxx");
    let program = target("unstable.c", "-fsanitize=fuzzer");
    dir.fuzz("-s 1 -E 30000", &program, "").run().expect(0);
    let stats = dir.stats();
    let stability: f64 = stats["stability"].trim_end_matches('%').parse().unwrap();
    assert!(stability < 50.0, "{stats:#?}");
    assert!((1..200).contains(&dir.stat("corpus_count")), "{stats:#?}");
    assert!(dir.stat("corpus_variable") > 0 && dir.stat("saved_crashes") > 0, "{stats:#?}");
}

#[test]
fn thousands_of_seeds_are_run_once_and_none_again() {
    let dir = TestDir::new();
    for number in 0..4000u32 {
        // All are different, and few show anything.
        let letters = (0..8).map(|place| b"()abcdef"[(number >> (place * 3) & 7) as usize]);
        dir.write(&format!("in/{number:04}"), letters.collect::<Vec<u8>>());
    }
    let program = target("letters.c", "");
    dir.fuzz("-s 1 -E 30000", &program, "").run().expect(0);
    let (count, execs) = (dir.stat("corpus_count"), dir.stat("execs_done"));
    // What is begun when the limit is reached takes a few runs.
    assert!((4000..4100).contains(&count), "{:#?}", dir.stats());
    assert!((30_000..30_010).contains(&execs), "{:#?}", dir.stats());
    assert!((1..100).contains(&dir.stat("corpus_favored")));
    let job = dir.ffuzz("-i - -o out -s 2 -E 40000 --").arg(&program);
    let all = format!("{count} queue entries, 0 of them run again");
    job.run().expect(0).says(&all);
    assert!((40_000..40_010).contains(&dir.stat("execs_done")), "{:#?}", dir.stats());
}
