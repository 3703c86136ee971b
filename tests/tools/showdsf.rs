//! `ffuzz showdsf`: values, formats and its behaviour as a command.

use crate::common;
use std::fs;
use std::path::PathBuf;

use common::{TestDir, name_of, plain, target, target_with, wait_until};
use nix::sys::signal::Signal;

const SEED: &[u8] = b"0\n0\n";
const FAR: &[u8] = b"\x41\x41\x41\x41\xfe\xca\x01\x10";
const SMALL: &[u8] = b"\x05\x20\x00\x00\xfe\xca\x01\x10";
const LARGEST: &[u8] = b"\xfd\xff\xff\x7f\xfe\xca\x01\x10";
const ABORTS: &[u8] = b"\xfe\xca\x01\x10\xfe\xca\x01\x10";

fn demo(waypoints: &str) -> PathBuf {
    target_with(waypoints, "demo/demo.c", "")
}

fn manual() -> PathBuf {
    target("demo/demo-manual.c", "")
}

/// A folder with the four inputs of the documented examples.
fn inputs() -> TestDir {
    let dir = TestDir::new();
    for (name, input) in [("in/a", FAR), ("in/b", SMALL), ("in/c", LARGEST), ("in/d", ABORTS)] {
        dir.write(name, input);
    }
    dir
}

// --- the documented examples

#[test]
fn the_documented_output_byte_for_byte() {
    let dir = TestDir::new();
    let done = dir.showdsf("", &manual(), "").input(FAR).run().expect(0);
    assert_eq!(
        done.err,
        "[*] Spinning up the fork server...\n\
         [+] All right - fork server is up.\n\
         Receiving 1 domain-specific front-ends..\n\
         [+] 1 domain-specific front-end configs received\n\
         DSF 0: Start=0x000000, End=0x000004, Size=4, Reducer[0]=MAX, Initial=0\n\
         Total DSF map length = 4\n"
    );
    assert_eq!(
        done.out,
        "1094795585, 268552958\n\
         Demo: Reached point A\n\
         Demo: Reached point B\n\
         Demo: Reached point C\n\
         Demo: Reached point E\n\
         dsf[0] = 32\n\
         dsf[1] = 17\n\
         dsf[2] = 1094795585\n"
    );
}

#[test]
fn values_of_the_manual_demo() {
    let dir = inputs();
    let one = |input: &[u8]| dir.showdsf("", &manual(), "").input(input).run().expect(0);
    assert_eq!(one(SEED).values(), ["dsf[0] = 19"]);
    assert_eq!(one(FAR).values(), ["dsf[0] = 32", "dsf[1] = 17", "dsf[2] = 1094795585"]);
    let aborts = one(ABORTS).says("[!] The target crashed by signal 6");
    assert_eq!(aborts.values(), ["dsf[0] = 32", "dsf[1] = 32"]);
    let all = dir.showdsf("-i in", &manual(), "").run().expect(0);
    assert_eq!(all.out, "dsf[0] = 32\ndsf[1] = 32\ndsf[2] = 2147483645\n");
    let all = all.says("[!] The target crashed by signal 6 on in/d");
    all.does_not_say("on in/a");
}

#[test]
fn values_of_the_demo_with_comparisons_and_allocations() {
    let dir = inputs();
    let both = dir.showdsf("-i in", &demo("cmp,mem"), "").run().expect(0);
    assert_eq!(both.sorted_values(), [32, 32, 32, 2_147_483_645]);
    let keys = both.keys();
    assert!(keys[..3].iter().all(|key| *key < 65536), "{keys:?}");
    assert!((65536..66560).contains(&keys[3]), "{keys:?}");
    both.says(
        "DSF 0: Start=0x000000, End=0x010000, Size=65536, Reducer[0]=MAX, Initial=0\n\
         DSF 1: Start=0x010000, End=0x010400, Size=1024, Reducer[0]=MAX, Initial=0\n\
         Total DSF map length = 66560\n",
    );

    let swapped = dir.showdsf("", &demo("mem,cmp"), "").input(SEED).run().expect(0);
    assert_eq!(swapped.sorted_values(), [19, 32]);
    let keys_of_cmp =
        |waypoints| dir.showdsf("", &demo(waypoints), "").input(SEED).run().expect(0).keys();
    let moved: Vec<u32> = keys_of_cmp("cmp,mem").iter().map(|key| key + 1024).collect();
    assert_eq!(swapped.keys(), moved);
    swapped.says(
        "DSF 0: Start=0x000000, End=0x000400, Size=1024, Reducer[0]=MAX, Initial=0\n\
         DSF 1: Start=0x000400, End=0x010400, Size=65536, Reducer[0]=MAX, Initial=0\n",
    );
}

#[test]
fn each_domain_alone() {
    let dir = inputs();
    let cmp = dir.showdsf("-i in", &demo("cmp"), "").run().expect(0);
    assert_eq!(cmp.sorted_values(), [32, 32, 32]);
    cmp.says("DSF 0: Start=0x000000, End=0x010000, Size=65536, Reducer[0]=MAX, Initial=0\n");
    let mem = dir.showdsf("-i in", &demo("mem"), "").run().expect(0);
    assert_eq!(mem.sorted_values(), [2_147_483_645]);
    mem.says("DSF 0: Start=0x000000, End=0x000400, Size=1024, Reducer[0]=MAX, Initial=0\n")
        .says("Total DSF map length = 1024\n");
}

#[test]
fn a_manual_map_comes_after_the_built_in_ones() {
    let dir = TestDir::new();
    let mixed = target_with("cmp,mem", "demo/demo-manual.c", "");
    let done = dir.showdsf("", &mixed, "").input(FAR).run().expect(0);
    let manual: Vec<&str> =
        done.values().into_iter().filter(|line| line.starts_with("dsf[6656")).collect();
    assert_eq!(manual, ["dsf[66560] = 32", "dsf[66561] = 17", "dsf[66562] = 1094795585"]);
    done.says("DSF 2: Start=0x010400, End=0x010404, Size=4, Reducer[0]=MAX, Initial=0\n");
}

#[test]
fn a_target_without_domains() {
    let dir = inputs();
    let done = dir.showdsf("-i in", &target("outcomes.c", ""), "none").run().expect(0);
    assert_eq!(done.out, "");
    assert!(done.err.ends_with("No domain-specific front-ends to receive.\n"), "{}", done.err);
}

// --- reducers and maps

#[test]
fn four_maps_with_their_reducers_and_initial_values() {
    let dir = TestDir::new();
    dir.write("in/five", "\x05");
    dir.write("in/three", "\x03");
    let maps = target("maps.c", "");
    let done = dir.showdsf("-i in", &maps, "").run().expect(0);
    assert_eq!(done.out, "dsf[0] = 5\ndsf[2] = 3\ndsf[5] = 40\ndsf[9] = 241\n");
    assert!(
        done.err.ends_with(
            "Receiving 4 domain-specific front-ends..\n\
             [+] 4 domain-specific front-end configs received\n\
             DSF 0: Start=0x000000, End=0x000001, Size=1, Reducer[0]=MAX, Initial=0\n\
             DSF 1: Start=0x000001, End=0x000003, Size=2, Reducer[1]=MIN, Initial=-1\n\
             DSF 2: Start=0x000003, End=0x000006, Size=3, Reducer[3]=BITWISE_UNION, Initial=0\n\
             DSF 3: Start=0x000006, End=0x00000a, Size=4, Reducer[4]=BITWISE_INTERSECTION, \
             Initial=-1\n\
             Total DSF map length = 10\n"
        ),
        "{}",
        done.err
    );
    // What does not differ from the initial value is not shown.
    let nothing = dir.showdsf("", &maps, "").input("").run().expect(0);
    assert_eq!(nothing.out, "");
}

#[test]
fn the_five_reducers_start_from_any_value() {
    let dir = TestDir::new();
    dir.write("in/five", "\x05");
    dir.write("in/more", "\x38");
    let initial = target("initial.c", "");
    let one = dir.showdsf("", &initial, "").input("\x05").run().expect(0);
    // 5 is below 7; 2 + 5 has the highest bit 4; 5 | 1; 0x35 & 0xf0.
    assert_eq!(one.out, "dsf[1] = 5\ndsf[2] = 6\ndsf[3] = 5\ndsf[4] = 48\n");
    let both = dir.showdsf("-i in", &initial, "").run().expect(0);
    assert_eq!(both.out, "dsf[0] = 56\ndsf[1] = 5\ndsf[2] = 38\ndsf[3] = 61\ndsf[4] = 48\n");
    both.says("Reducer[0]=MAX, Initial=7\n")
        .says("Reducer[1]=MIN, Initial=100\n")
        .says("Reducer[2]=LOG_BUCKETING, Initial=2\n")
        .says("Reducer[3]=BITWISE_UNION, Initial=1\n")
        .says("Reducer[4]=BITWISE_INTERSECTION, Initial=240\n");
    let nothing = dir.showdsf("", &initial, "").input("").run().expect(0);
    assert_eq!(nothing.out, "");
}

#[test]
fn wide_maps_wrap_keys_and_sums() {
    let dir = TestDir::new();
    let done = dir.showdsf("", &target("wide.c", ""), "").input("x").run().expect(0);
    // Bucket of 5; 2^32 - 1 + 8; 10 + 3.
    assert_eq!(done.out, "dsf[4464] = 4\ndsf[131071] = 7\ndsf[131072] = 13\n");
    done.says("Reducer[2]=LOG_BUCKETING").says("Total DSF map length = 131073\n");
}

#[test]
fn legacy_targets_are_read_as_they_are() {
    let dir = TestDir::new();
    dir.write("in/five", "\x05");
    dir.write("in/three", "\x03");
    let legacy = plain("legacy.c", "");
    let values = ["dsf[0] = 1", "dsf[2] = 3", "dsf[5] = 40", "dsf[9] = 241"];
    for count in 2..=4 {
        let done = dir.showdsf("-i in", &legacy, &format!("dsf{count}")).run().expect(0);
        assert_eq!(done.values(), values[..count], "{count} domains");
        done.says(&format!("[+] {count} domain-specific front-end configs received\n"));
    }
    let one = dir.showdsf("", &legacy, "dsf1").input("QUIY").run().expect(0);
    assert_eq!(one.values(), ["dsf[0] = 30"]);
    let done = dir.showdsf("-i in", &legacy, "classic").run().expect(0);
    done.says("No domain-specific front-ends to receive.\n");
}

#[test]
fn persistent_iterations_begin_with_the_initial_values() {
    let dir = TestDir::new();
    // Of these, "b" leaves the program and "c" aborts; the loop ends after three.
    for (at, input) in ["aa", "aaa", "aaaa", "bb", "ccc", "aaaa", "x"].iter().enumerate() {
        dir.write(&format!("in/{at}"), input);
    }
    for flags in ["", "-DSHARED_INPUT"] {
        let done = dir.showdsf("-i in", &target("persistent.c", flags), "").run().expect(0);
        assert_eq!(done.values(), ["dsf[0] = 1", "dsf[1] = 5", "dsf[8] = 1"], "{flags}");
    }
}

// --- options

#[test]
fn inputs_are_given_by_file_as_well() {
    let dir = TestDir::new();
    dir.write("in/five", "\x05");
    dir.write("in/three", "\x03");
    dir.write("in/.hidden", "\x1f");
    dir.write("in/folder/deep", "\x1f");
    let maps = target("maps.c", "");
    let expected = "dsf[0] = 5\ndsf[2] = 3\ndsf[5] = 40\ndsf[9] = 241\n";
    assert_eq!(dir.showdsf("-i in", &maps, "@@").run().expect(0).out, expected);
    let one = "dsf[0] = 5\ndsf[2] = 5\ndsf[5] = 32\ndsf[9] = 245\n";
    assert_eq!(dir.showdsf("", &maps, "@@").input("\x05").run().expect(0).out, one);
    assert_eq!(dir.showdsf("-A in/five", &maps, "@@").run().expect(0).out, one);
    assert_eq!(dir.read("in/five"), b"\x05");
}

#[test]
fn values_go_to_a_file_and_messages_can_be_silenced() {
    let dir = inputs();
    let done = dir.showdsf("-q -i in -o values", &manual(), "").run().expect(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""));
    assert_eq!(dir.text("values"), "dsf[0] = 32\ndsf[1] = 32\ndsf[2] = 2147483645\n");
}

#[test]
fn a_timeout_is_reported() {
    let dir = TestDir::new();
    dir.write("in/a", "A");
    dir.write("in/q", "Q");
    let outcomes = target("outcomes.c", "");
    let done = dir.showdsf("-t 100", &outcomes, "hang").input("Q").run().expect(0);
    assert!(
        done.err.ends_with("[!] The target was stopped: it exceeded the timeout\n"),
        "{}",
        done.err
    );
    let done = dir.showdsf("-t 100 -i in", &outcomes, "hang").run().expect(0);
    done.says("it exceeded the timeout on in/q").does_not_say("on in/a");
}

#[test]
fn a_memory_limit_is_kept() {
    let dir = TestDir::new();
    dir.write("in/q", "Q");
    let outcomes = target("outcomes.c", "");
    let run = |options: &str| dir.showdsf(options, &outcomes, "memory").run().expect(0);
    run("-i in -m 200").says("crashed by signal 6");
    run("-i in -m none").does_not_say("crashed");
    run("-i in").does_not_say("crashed");
}

// --- behaviour as a command

#[test]
fn without_arguments_it_shows_its_usage() {
    let done = TestDir::new().ffuzz("showdsf").run();
    assert_ne!(done.code(), 0);
    done.says("Run inputs and print the domain values they reach")
        .says("ffuzz-showdsf -- ./target < input")
        .says("--names");
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let dir = inputs();
    let done = dir.showdsf("-i in", &manual(), "").run_unread();
    assert_eq!(done.code(), 0, "{}", done.err);
    let done = dir.showdsf("", &manual(), "").input(SEED).run_unread();
    assert_eq!(done.code(), 0, "{}", done.err);
}

#[test]
fn nothing_is_left_behind() {
    // That no process is left and the outputs are closed is checked at the end of every run.
    let dir = inputs();
    dir.showdsf("-i in", &manual(), "").run().expect(0);
    dir.showdsf("", &manual(), "").input(SEED).run().expect(0);
    dir.showdsf("", &target("maps.c", ""), "@@").input("x").run().expect(0);
    dir.showdsf("-i in", &target("persistent.c", ""), "").run().expect(0);
    dir.showdsf("-i in -t 50", &target("outcomes.c", ""), "segv").run().expect(0);
    let names: Vec<String> =
        fs::read_dir(dir.path("")).unwrap().map(|e| name_of(&e.unwrap().path())).collect();
    assert_eq!(names, ["in"]);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let dir = TestDir::new();
        dir.write("in/q", "Q");
        let mut running = dir.showdsf("-i in", &target("outcomes.c", ""), "hang").start();
        running.wait_for("No domain-specific front-ends");
        wait_until("fork server, guard and run", || running.processes().len() == 4);
        running.signal(signal);
        assert_ne!(running.finish().code(), 0);
        let left: Vec<String> =
            fs::read_dir(dir.path("")).unwrap().map(|e| name_of(&e.unwrap().path())).collect();
        if signal != Signal::SIGKILL {
            assert_eq!(left, ["in"]);
        }
    }
}

#[test]
fn failures_end_with_1() {
    let dir = inputs();
    let manual = manual();
    dir.ffuzz("showdsf").run().expect(1);
    dir.ffuzz("showdsf --help").run().expect(0).says("-i");
    dir.showdsf("-i nowhere", &manual, "").run().refused(1, "nowhere", "folder");
    dir.showdsf("-i in/a", &manual, "").run().refused(1, "in/a", "folder");
    dir.showdsf("-t 19", &manual, "").run().refused(1, "-t 19", "at least 20");
    dir.showdsf("-m x", &manual, "").run().expect(1);
    dir.showdsf("", &dir.path("missing"), "").run().refused(1, "cannot find the target", "path");
    let plain_one = plain("outcomes.c", "");
    dir.showdsf("", &plain_one, "none").run().refused(1, "is not instrumented", "ffuzz-cc");
    let lost = dir.showdsf("-i in -o no/such/folder", &manual, "").run();
    lost.says("no/such/folder").expect(1);
}

#[test]
fn bad_records_are_refused() {
    let dir = TestDir::new();
    let legacy = plain("legacy.c", "");
    for kind in ["range", "gap", "order", "reducer"] {
        let done = dir.showdsf("", &legacy, kind).run().expect(1);
        done.says("domain records are unusable").says("hint: rebuild the target");
    }
}

#[test]
fn too_many_or_too_large_maps_are_reported_by_the_target() {
    let dir = TestDir::new();
    let job = dir.showdsf("", &target("wide.c", "-DLAST=0"), "").env("AFL_DEBUG_CHILD", "1");
    job.run().expect(1).says("[-] ERROR: Invalid domain-specific map size: 0");
}
