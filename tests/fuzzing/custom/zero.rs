//! Mutators of AFL++ that look into afl-fuzz's state: those that only draw random numbers get some by
//! descriptor 0, and the user's standard input goes where it did; the others are refused by name.

use super::{letters, library, with_libraries};
use crate::common::{Job, TestDir, need_terminal, target};

fn drawing(dir: &TestDir, options: &str) -> Job {
    library(dir, "zero.c", "", "zero.so");
    with_libraries(dir, "./zero.so", options)
}

/// The random numbers that the library has drawn, line by line.
fn drawn(seed: u32) -> Vec<String> {
    let dir = TestDir::new();
    // Standard input is /dev/null, which has nothing for anybody.
    drawing(&dir, &format!("-s {seed} -z -E 2000")).run().expect(0);
    dir.text("calls").lines().map(str::to_owned).collect()
}

#[test]
fn descriptor_0_is_random_and_repeats_with_the_seed() {
    let (first, again, other) = (drawn(7), drawn(7), drawn(8));
    assert!(first.len() > 20, "{first:?}");
    assert_eq!(first, again);
    assert_ne!(first, other);
    let mut different = first.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), first.len(), "a number came twice: {first:?}");
}

#[test]
fn a_terminal_as_standard_input_does_not_stop_the_campaign() {
    need_terminal();
    let dir = TestDir::new();
    library(&dir, "zero.c", "", "zero.so");
    dir.write("in/seed", "xxxxxxxx");
    let campaign = format!(
        "{} -i in -o out -t 3000 -s 1 -z -E 2000 -- {}",
        env!("CARGO_BIN_EXE_ffuzz"),
        letters().display()
    );
    let job = dir.program("script").words("-q -e -c").arg(campaign).arg("/dev/null");
    job.env("AFL_CUSTOM_MUTATOR_LIBRARY", "./zero.so").env("TERM", "xterm").run().expect(0);
    assert!(dir.stat("execs_done") >= 2000);
}

#[test]
fn the_users_input_goes_to_the_target_as_without_the_library() {
    let maps = target("maps.c", "");
    let dir = TestDir::new();
    library(&dir, "zero.c", "", "zero.so");
    library(&dir, "letter.c", "-DLETTER='A'", "letter.so");
    let values = |words: &str, libraries: &str, input: &str| {
        let job = dir.showdsf("", &maps, words).input(input);
        job.env("AFL_CUSTOM_MUTATOR_LIBRARY", libraries).run().expect(0).out
    };
    for words in ["", "@@"] {
        let plain = values(words, "", "\x05");
        assert!(plain.contains("dsf["), "{plain}");
        assert_eq!(values(words, "./zero.so", "\x05"), plain);
        // Also where we read it ourselves, because a library changes it.
        assert_eq!(values(words, "./letter.so", "\x05"), values(words, "", "\x05A"));
    }
    let map = |libraries: &str| {
        let job = dir.tool("showmap -o map", letters(), "").input("Axxxxxxx");
        job.env("AFL_CUSTOM_MUTATOR_LIBRARY", libraries).run().expect(0);
        dir.text("map")
    };
    assert_eq!(map(""), map("./zero.so"));
}

#[test]
fn commands_by_standard_input_arrive_beside_a_library() {
    let dir = TestDir::new();
    let job = drawing(&dir, "--json --control -");
    let mut running = job.input("{\"cmd\":\"pause\",\"id\":6}\n").start();
    running.wait_for("\"id\":6");
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.finish().expect(0);
}

#[test]
fn a_fleet_commands_workers_that_have_a_library() {
    let dir = TestDir::new();
    drawing(&dir, "-j 2 -z -E 4000").run().expect(0);
    assert!(dir.text("calls").lines().count() > 20);
}

#[test]
fn mutators_that_need_afl_fuzz_are_refused_by_name() {
    for (variable, cause) in [
        ("AUTOTOKENS_LEARN_DICT", "needs.so is AFL++'s autotokens, which reads the queue"),
        ("SYMCC_TARGET", "needs.so is AFL++'s symcc, which reads out_dir"),
        ("SYMQEMU_ALL", "needs.so is AFL++'s symqemu, which reads the current queue entry"),
    ] {
        let dir = TestDir::new();
        library(&dir, "needs.c", &format!("-DREADS={variable}"), "needs.so");
        let job = with_libraries(&dir, "./needs.so", "-E 100");
        job.run().refused(1, cause, "use it with afl-fuzz of its own release");
    }
}
