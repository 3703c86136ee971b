//! Libraries that are no good, and mutators that misbehave: reported once, and the campaign goes on.

use std::process::Command;

use super::{letters, library, with_libraries};
use crate::common::{TestDir, repository};

/// The start is refused with this cause and remedy.
#[track_caller]
fn refused(flags: &str, cause: &str, remedy: &str) {
    let dir = TestDir::new();
    library(&dir, "bad.c", flags, "bad.so");
    with_libraries(&dir, "./bad.so", "-E 100").run().refused(1, cause, remedy);
}

#[test]
fn libraries_that_cannot_be_used_are_refused_in_two_lines() {
    refused("-DWHAT=NO_HOOK", "bad.so has no function that could be called", "ffuzz-mutator.h");
    refused("-DWHAT=LONGER -DNO_INIT", "bad.so has no function afl_custom_init", "extern \"C\"");
    refused("-DWHAT=NULL_INIT", "afl_custom_init of mutator library", "may show the reason");
    refused("-DWHAT=SYMBOL", "needs the symbol rand_next, which is not defined", "afl-fuzz itself");
}

#[test]
fn files_that_are_no_libraries_are_refused_in_two_lines() {
    let dir = TestDir::new();
    let bad = |name: &str, cause: &str| {
        with_libraries(&dir, name, "-E 100").run().refused(1, cause, "");
    };
    bad("./missing.so", "missing.so does not exist");
    dir.write("text.so", "no library");
    bad("./text.so", "text.so: file too short");
    // The same library for another machine: the loader looks at two bytes of the header.
    let good = library(&dir, "all.c", "", "all.so");
    let mut image = std::fs::read(good).unwrap();
    image[18..20].copy_from_slice(&183u16.to_le_bytes());
    dir.write("arm.so", image);
    bad("./arm.so", "cannot load the mutator library");
}

#[test]
fn requests_that_no_mutator_can_serve_are_refused() {
    let dir = TestDir::new();
    library(&dir, "checksum.c", "", "checksum.so");
    let job = || with_libraries(&dir, "./checksum.so", "-E 100");
    let only = job().env("AFL_CUSTOM_MUTATOR_ONLY", "1").run();
    only.refused(1, "no mutator makes inputs", "AFL_CUSTOM_MUTATOR_ONLY");
    let late = job().env("AFL_CUSTOM_MUTATOR_LATE_SEND", "1").run();
    late.refused(1, "but 0 mutators have fuzz_send", "unset");
    let none = with_libraries(&dir, "", "-E 100").env("AFL_CUSTOM_MUTATOR_ONLY", "1").run();
    none.refused(1, "no mutator makes inputs", "AFL_CUSTOM_MUTATOR_ONLY");
}

/// A campaign of 3000 runs gets to its end and says this, once.
#[track_caller]
fn survives(what: &str, warning: &str, failures: bool) -> String {
    let dir = TestDir::new();
    library(&dir, "bad.c", &format!("-DWHAT={what}"), "bad.so");
    let done = with_libraries(&dir, "./bad.so", "-s 1 -z -E 3000 -G 4096").run().expect(0);
    let said = format!("{}{}", done.out, done.err);
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    assert_eq!(dir.stat("mutator0_failures") > 0, failures);
    assert!(dir.stat("execs_done") >= 3000);
    said
}

#[test]
fn impossible_results_are_reported_once_and_switch_off() {
    const OFF: &str = "mutator bad.so: fuzz failed 100 times in a row and is switched off";
    survives("LONGER", "mutator bad.so: fuzz returned more than 4096 bytes: cut", true);
    let said = survives("WILD", "mutator bad.so: fuzz: returned an impossible length", true);
    assert!(said.contains(OFF), "{said}");
    let said = survives("OWN", "mutator bad.so: fuzz: returned more bytes of its input than", true);
    assert!(said.contains(OFF), "{said}");
    let said = survives("NONE", "mutator bad.so: fuzz: returned no buffer (NULL)", true);
    assert!(said.contains(OFF), "{said}");
    survives("HALF_TRIM", "mutator bad.so: it has some of init_trim, trim and post_trim", false);
}

#[test]
fn a_mutator_that_drops_everything_ends_the_campaign_with_words() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=DROPS", "bad.so");
    let done = with_libraries(&dir, "./bad.so", "-s 1 -z -E 3000").run();
    assert!(
        done.out.contains("bad.so: post_process dropped the last 10000 inputs"),
        "{}",
        done.out
    );
    done.refused(1, "no input reached the target", "post_process");
}

#[test]
fn a_mutator_may_print() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=PRINTS", "bad.so");
    let job = || with_libraries(&dir, "./bad.so", "-s 1 -z -E 500");
    let screen = job().env("AFL_FORCE_UI", "1").run().expect(0);
    assert!(screen.out.contains("\u{1b}[?1049h"), "no screen");
    assert!(!screen.out.contains("printed by fuzz") && screen.out.contains("Testing aborted"));
    assert!(dir.text("out/default/mutators.log").contains("printed by fuzz"));
    std::fs::remove_dir_all(dir.path("out")).unwrap();
    // Nothing has to be kept apart from plain lines.
    assert!(job().run().expect(0).out.contains("printed by fuzz"));
}

#[test]
fn prints_are_kept_out_of_json() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=PRINTS", "bad.so");
    let done = with_libraries(&dir, "./bad.so", "-s 1 -z -E 500 --json").run().expect(0);
    assert!(done.out.lines().all(|line| line.starts_with('{')), "{}", done.out);
    assert!(done.err.contains("printed by init") && done.err.contains("printed by fuzz"));
}

#[test]
fn a_slow_hook_is_named_once_and_counted() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=SLOW", "bad.so");
    let mut running = with_libraries(&dir, "./bad.so", "-s 1 -z -E 500").start();
    running.wait_for("mutator bad.so is still busy in fuzz after 5 seconds");
    let done = running.finish().expect(0);
    assert_eq!(done.err.matches("is still busy").count(), 1);
    let time: f64 = dir.stats()["mutator0_time"].trim_end_matches('%').parse().unwrap();
    assert!(time > 50.0, "{time}");
}

#[test]
fn a_crash_names_the_mutator_and_the_work_goes_on() {
    for (what, signal) in [("CRASHES", 11), ("ABORTS", 6)] {
        let dir = TestDir::new();
        library(&dir, "bad.c", &format!("-DWHAT={what}"), "bad.so");
        let done = with_libraries(&dir, "./bad.so", "-s 1 -z -E 3000").run().expect(128 + signal);
        let words = format!("ffuzz: mutator bad.so crashed in fuzz (signal {signal})");
        let at = done.err.find(&words).unwrap_or_else(|| panic!("{}", done.err));
        assert!(done.err[at..].contains("hint: what was found is on disk"), "{}", done.err);
        let queue = dir.queue();
        assert!(!queue.is_empty());
        let again = dir.ffuzz("-i - -o out -E 3000 -t 3000 --").arg(letters()).run().expect(0);
        assert!(again.out.contains("fuzzing; Ctrl-C stops"));
        assert_eq!(dir.queue()[..queue.len()], queue);
    }
}

#[test]
fn a_crash_leaves_the_terminal_as_it_was() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=CRASHES", "bad.so");
    let job = with_libraries(&dir, "./bad.so", "-s 1 -z -E 3000").env("AFL_FORCE_UI", "1");
    let done = job.run().expect(128 + 11);
    assert!(done.out.contains("\u{1b}[?1049h") && done.out.ends_with("\u{1b}[?1049l"));
    assert!(done.err.contains("mutator bad.so crashed in fuzz"), "{}", done.err);
}

#[test]
fn a_library_that_ends_the_process_is_named() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=ENDS", "bad.so");
    let done = with_libraries(&dir, "./bad.so", "-E 100").run();
    done.refused(7, "mutator bad.so ended the process in init", "may show the reason");
}

#[test]
fn a_mutator_that_leaves_without_a_word_is_named() {
    let dir = TestDir::new();
    library(&dir, "bad.c", "-DWHAT=LEAVES", "bad.so");
    let done = with_libraries(&dir, "./bad.so", "-s 1 -z -E 3000").run();
    assert_eq!(done.code(), 0, "its own code");
    let words = "ffuzz: the process ended while the mutator bad.so was in fuzz";
    assert_eq!(done.err.matches(words).count(), 1, "{}", done.err);
    assert!(done.err.contains("hint: it called _exit, or the process was killed"), "{}", done.err);
    // Whoever ends well is not talked about.
    library(&dir, "bad.c", "-DWHAT=PRINTS", "good.so");
    let good = dir.ffuzz("-i - -o out -E 3000 -t 3000 --").arg(letters());
    let done = good.env("AFL_CUSTOM_MUTATOR_LIBRARY", "./good.so").run().expect(0);
    assert!(!done.err.contains("the process ended"), "{}", done.err);
}

#[test]
fn the_header_is_good_c_and_cpp() {
    let header = repository("include/ffuzz-mutator.h");
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", language]);
        let output = command.arg(&header).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
