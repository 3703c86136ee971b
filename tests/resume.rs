//! A campaign goes on where it stopped, without running its queue once more.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and talk")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use common::{Finished, TestDir, target_with, wait_until};

fn islands() -> PathBuf {
    target_with("mem", "islands.c", "")
}

fn begin(dir: &TestDir, execs: u64, target: &Path) {
    dir.fuzz(&format!("-p -s 5 -E {execs}"), target, "").env("AFL_NO_UI", "1").run().expect(0);
}

fn go_on(dir: &TestDir, options: &str, more: u64, target: &Path) -> Finished {
    let limit = dir.stat("execs_done") + more;
    let words = format!("-i - -o out {options} -t 3000 -s 6 -E {limit} --");
    dir.ffuzz(&words).arg(target).env("AFL_NO_UI", "1").run().expect(0)
}

fn resumed(entries: usize, run: usize) -> String {
    format!("resumed: {entries} queue entries, {run} of them run again")
}

#[test]
fn nothing_known_is_run_again_and_everything_is_as_it_was() {
    let dir = TestDir::with_seed("m1");
    dir.write("in/alpha", "alpha");
    begin(&dir, 6000, &islands());
    let (queue, before) = (dir.queue(), dir.stats());
    assert!(queue.len() > 4, "{queue:?}");
    // One more run, and the campaign ends.
    let finished = go_on(&dir, "-p", 1, &islands()).says(&resumed(queue.len(), 0));
    assert_eq!(dir.queue()[..queue.len()], queue, "{}", finished.out);
    let after = dir.stats();
    for key in ["dsf0_best", "dsf0_keys", "edges_found", "corpus_favored", "last_find", "max_depth"]
    {
        assert_eq!(before[key], after[key], "{key}");
    }
    let execs =
        |stats: &std::collections::BTreeMap<String, String>| stats["execs_done"].parse::<u64>();
    let more = execs(&after).unwrap() - execs(&before).unwrap();
    assert!(more < 300, "{more} runs, {finished:?}", finished = finished.out);
}

#[test]
fn what_the_state_does_not_know_is_run() {
    let dir = TestDir::with_seed("m1");
    begin(&dir, 2000, &islands());
    let entries = dir.queue().len();
    // Changed, new, and missing: the number keeps its place.
    let first = dir.queue()[0].clone();
    dir.write(&format!("out/default/queue/{first}"), "m0m0");
    dir.write(&format!("out/default/queue/id:{:06},src:000000,op:x", entries + 2), "gamma");
    let finished = go_on(&dir, "-p", 1, &islands());
    let finished = finished.says(&resumed(entries + 1, 2));
    finished.says(&format!("seed {entries} is missing in the queue"));
}

#[test]
fn another_target_or_a_damaged_state_means_running_all() {
    let dir = TestDir::with_seed("m1");
    begin(&dir, 2000, &islands());
    let entries = dir.queue().len();
    go_on(&dir, "", 1, &islands())
        .says("the target, or -p, has changed")
        .says(&resumed(entries, entries));
    let entries = dir.queue().len();
    let other = target_with("mem", "islands.c", "-O0 -DOTHER");
    let finished = go_on(&dir, "", 1, &other).says("the target, or -p, has changed");
    finished.says(&resumed(entries, entries));
    let entries = dir.queue().len();
    let state = dir.read("out/default/state.json");
    dir.write("out/default/state.json", &state[..state.len() / 2]);
    let finished = go_on(&dir, "", 1, &other).says("every queue entry is run again");
    finished.says(&resumed(entries, entries)).does_not_say("panicked");
}

#[test]
fn a_killed_campaign_keeps_its_names_and_finds() {
    let dir = TestDir::with_seed("m1");
    let job = dir.fuzz("-p -s 5", &islands(), "").env("AFL_NO_UI", "1");
    // A state each second, and something behind the last.
    let job = job.env("AFL_FUZZER_STATS_UPDATE_INTERVAL", "1");
    let mut running = job.start();
    running.wait_for_campaign(&dir);
    wait_until("a state", || dir.path("out/default/state.json").exists());
    running.signal(Signal::SIGKILL);
    running.finish().expect(128 + 9);
    let queue = dir.queue();
    let finished = go_on(&dir, "-p", 500, &islands());
    assert_eq!(dir.queue()[..queue.len()], queue);
    assert!(finished.out.contains(&format!("resumed: {} queue entries", queue.len())));
}

#[test]
fn crashes_that_are_known_stay_known() {
    let dir = TestDir::with_seed("QUAA");
    let steps = common::target("steps.c", "");
    let job = dir.fuzz("-s 7 -E 400000", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let crashes = dir.crashes();
    assert_eq!(crashes.len(), 1);
    // The same crash again is not a new one, though nobody runs it at the start.
    let copy = dir.read(&format!("out/default/crashes/{}", crashes[0]));
    dir.write("out/default/queue/id:000900,src:000000,op:x", copy);
    go_on(&dir, "", 1, &steps).says("crashes the target");
    assert_eq!(dir.crashes(), crashes);
    assert_eq!(dir.stat("saved_crashes"), 1);
    assert!(fs::metadata(dir.path("out/default/state.json")).unwrap().len() > 100);
}
