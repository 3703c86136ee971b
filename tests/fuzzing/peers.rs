//! Fork servers of others under ffuzz, and our targets under the tools of others.

use crate::common;
use std::path::Path;

use common::{TestDir, afl_target, need, plain, stats_of, target, target_with};

/// Fuzzes until the crash behind "QUIZ" is found.
fn finds_the_crash(dir: &TestDir, target: &Path, words: &str, options: &str) {
    let options = format!("-s 7 -E 400000 {options}");
    let job = dir.fuzz(&options, target, words).env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let crashes = dir.crashes();
    assert_eq!(crashes.len(), 1, "{words}: {:?}", dir.queue());
    assert!(crashes[0].contains("sig:06"), "{words}: {crashes:?}");
}

fn legacy() -> std::path::PathBuf {
    plain("legacy.c", "")
}

// --- dialects of the fork server

#[test]
fn every_protocol_version_finds_the_crash() {
    for (kind, mode, edges) in [
        ("classic", "default", 65536),
        ("old", "default", 1000),
        ("old-shared", "shmem_testcase", 1000),
        ("v1", "default", 1000),
        ("deaf", "default", 65536),
    ] {
        let dir = TestDir::with_seed("QUAAAA");
        finds_the_crash(&dir, &legacy(), kind, "");
        assert_eq!(dir.stats()["target_mode"], mode, "{kind}");
        assert_eq!(dir.stat("total_edges"), edges, "{kind}");
        let crash = dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
        assert!(crash.starts_with(b"QUIZ"), "{kind}: {crash:?}");
    }
}

#[test]
fn a_map_that_is_larger_than_offered_is_seen_whole() {
    // Its edges lie at the very end of 12 million.
    let dir = TestDir::with_seed("QUIAA");
    finds_the_crash(&dir, &legacy(), "v1-large", "");
    assert_eq!(dir.stat("total_edges"), 12_000_001);
}

#[test]
fn offered_dictionaries_are_used() {
    for kind in ["old-dict", "old-both", "v1-all"] {
        let dir = TestDir::with_seed("xxxxxxxxxx");
        finds_the_crash(&dir, &legacy(), kind, "");
        let crash = dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
        assert!(crash.windows(7).any(|bytes| bytes == b"needle!"), "{kind}: {crash:?}");
        // And only then: nothing but the token leads there.
        let dir = TestDir::with_seed("xxxxxxxxxx");
        let job = dir.fuzz("-s 7 -E 2000", &legacy(), kind).env("AFL_NO_AUTODICT", "1");
        job.run().expect(0);
        assert_eq!(dir.crashes(), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn answers_to_a_dictionary_do_not_shift_the_runs() {
    // One run behind, the crash would be blamed on the input that follows it.
    for kind in ["old-dict", "old-both", "v1-all"] {
        let dir = TestDir::with_seed("A");
        dir.write("in/crash", "QUIZ");
        dir.write("in/last", "B");
        let job = dir.fuzz("-s 1 -E 100", &legacy(), kind);
        let job = job.env("AFL_CRASHING_SEEDS_AS_NEW_CRASH", "1");
        job.run().expect(0).says("in/crash\" crashes the target").does_not_say("in/last\" crashes");
    }
}

#[test]
fn other_fork_servers_are_refused() {
    let dir = TestDir::with_seed("A");
    let refused = |kind: &str, cause: &str, remedy: &str| {
        dir.fuzz("", &legacy(), kind).run().refused(1, cause, remedy);
    };
    refused("killerbeez", "Killerbeez", "AFL_NO_FORKSRV=1");
    for kind in ["old-error", "v1-error"] {
        let refused = |code: u32, cause, remedy| refused(&format!("{kind} {code}"), cause, remedy);
        refused(1, "the map offered is too small", "AFL_MAP_SIZE");
        refused(2, "the fixed address of its map is taken", "AFL_LLVM_MAP_DYNAMIC");
        refused(4, "cannot open a shared memory object", "ffuzz-cc");
        refused(8, "cannot attach the shared memory segment", "-m none");
        refused(16, "cannot map shared memory", "-m none");
        refused(32, "its comparison log has another layout", "ffuzz-cc");
        refused(64, "comparison log for QEMU has another layout", "ffuzz-cc");
        refused(512, "no memory for the maps of its domains", "-m");
        refused(3, "code 3, which is unknown", "ffuzz-cc");
    }
    refused("v1-version", "unknown version 2", "ffuzz-cc");
    refused("v1-end", "handshake ended with", "ffuzz-cc");
    refused("dict-length", "a dictionary of 16777216 bytes", "ffuzz-cc");
}

// --- targets of Debian's afl-clang-fast

#[test]
fn targets_of_afl_clang_fast_are_fuzzed_in_every_form() {
    for (flags, mode) in
        [("", "default"), ("-DPERSISTENT", "persistent"), ("-DSHARED", "shmem_testcase")]
    {
        let dir = TestDir::with_seed("ABCDE");
        finds_the_crash(&dir, &afl_target("steps.c", flags), "", "");
        let found = dir.stats()["target_mode"].clone();
        assert!(found.split(' ').any(|word| word == mode), "{flags}: {found}");
        let crash = dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
        assert!(crash.starts_with(b"QUIZ"), "{flags}");
    }
}

#[test]
fn a_killed_fuzzer_leaves_no_stopped_child_of_afls_runtime() {
    for flags in ["", "-DPERSISTENT", "-DSHARED"] {
        let dir = TestDir::with_seed("A");
        let mut running = dir.fuzz("-s 1", &afl_target("steps.c", flags), "").start();
        running.wait_for_campaign(&dir);
        running.signal(nix::sys::signal::Signal::SIGKILL);
        running.finish().expect(128 + 9);
    }
}

// --- our targets under Debian's afl++

fn under_afl_fuzz(dir: &TestDir, target: &Path) -> std::collections::BTreeMap<String, String> {
    need("afl-fuzz");
    let job = dir.program("afl-fuzz").words("-i in -o out -s 7 -V 5 -t 2000 --").arg(target);
    let job = job.env("AFL_SKIP_CPUFREQ", "1").env("AFL_NO_UI", "1");
    job.run().expect(0);
    stats_of(&dir.text("out/default/fuzzer_stats"))
}

#[test]
fn our_targets_run_under_afl_fuzz() {
    for (flags, mode) in [("", "default"), ("-DSHARED", "shmem_testcase")] {
        let dir = TestDir::with_seed("QUAAA");
        let stats = under_afl_fuzz(&dir, &target("steps.c", flags));
        let number = |key: &str| stats[key].parse::<u64>().unwrap();
        assert!(number("execs_done") > 500, "{flags}: {stats:?}");
        assert!(number("edges_found") >= 3, "{flags}: {stats:?}");
        assert!(number("corpus_found") >= 1, "{flags}: {stats:?}");
        assert!(stats["target_mode"].contains(mode), "{flags}: {stats:?}");
    }
}

#[test]
fn a_queue_moves_from_afl_fuzz_to_ffuzz_and_back() {
    let dir = TestDir::with_seed("QUAAA");
    let steps = target("steps.c", "");
    under_afl_fuzz(&dir, &steps);
    let theirs = dir.queue();
    let limit = dir.stat("execs_done") + 1000;
    let job = dir.ffuzz(&format!("-i - -o out -t 3000 -s 8 -E {limit} --")).arg(&steps);
    job.run().expect(0);
    assert_eq!(dir.queue()[..theirs.len()], theirs);
    // And our folder is a seed folder for them.
    let back = TestDir::new();
    for (at, name) in dir.queue().iter().enumerate() {
        back.write(&format!("in/{at}"), dir.read(&format!("out/default/queue/{name}")));
    }
    let stats = under_afl_fuzz(&back, &steps);
    assert!(stats["corpus_count"].parse::<usize>().unwrap() >= 1);
}

#[test]
fn our_targets_run_under_afl_showmap() {
    need("afl-showmap");
    let both = target_with("cmp,mem", "steps.c", "");
    let shared = target("steps.c", "-DSHARED");
    for steps in [target("steps.c", ""), both, shared] {
        let dir = TestDir::new();
        let map = |input: &str, code: i32| {
            let job = dir.program("afl-showmap").words("-o map --").arg(&steps).input(input);
            job.run().expect(code);
            dir.text("map")
        };
        let (nothing, some, most) = (map("AAAA", 0), map("QUAA", 0), map("QUIZ", 2));
        assert!(nothing.lines().count() >= 1, "{nothing}");
        assert!(nothing != some && some != most && nothing != most, "{nothing}{some}{most}");
        assert_eq!(map("AAAA", 0), nothing);
    }
}
