//! Which hooks are called, when, and with what.

use super::{letters, library, with_libraries};
use crate::common::{Job, TestDir, need, repository};

/// Calls without their arguments; equal neighbours once.
fn kinds(log: &str) -> Vec<String> {
    let calls = log.lines().filter(|line| !line.contains('='));
    let mut kinds: Vec<String> =
        calls.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    kinds.dedup();
    kinds
}

fn one_seed(job: Job) -> Job {
    job.env("AFL_BENCH_JUST_ONE", "1")
}

/// `calls` so often.
fn times(count: usize, calls: &[&str]) -> Vec<String> {
    vec![calls; count].concat().iter().map(ToString::to_string).collect()
}

#[test]
fn a_library_with_every_hook_sees_afls_order() {
    let dir = TestDir::new();
    library(&dir, "all.c", "-DWITH_POST_RUN -DWITH_INTROSPECTION", "all.so");
    let job = one_seed(with_libraries(&dir, "./all.so", "-s 1 -z")).env("MUTATOR_PEEKS", "1");
    job.run().expect(0);
    let log = dir.text("calls");
    let run = ["post_process", "post_run"];
    let find = |name: &str| [name, "describe", "queue_new_entry"].map(String::from);
    let expected = [
        times(1, &["init", "queue_new_entry"]),
        times(7, &run),
        times(1, &["queue_get", "init_trim"]),
        times(2, &["trim", "post_process", "post_run", "post_trim"]),
        times(1, &["fuzz_count", "fuzz", "post_process"]),
        find("post_run").into(),
        times(7, &run),
        times(1, &["fuzz", "post_process"]),
        find("post_run").into(),
        times(7, &run),
        times(1, &["fuzz", "post_process", "post_run", "describe"]),
        times(1, &["fuzz", "post_process", "post_run", "havoc_mutation_probability"]),
        times(1, &["havoc_mutation", "post_process", "post_run"]),
    ]
    .concat();
    let seen = kinds(&log);
    assert_eq!(seen[..expected.len()], expected);
    assert_eq!(seen[seen.len() - 2..], ["introspection", "deinit"]);
    let havoc = &seen[expected.len()..seen.len() - 2];
    assert!(havoc.chunks(3).all(|turn| turn == ["havoc_mutation", "post_process", "post_run"]));

    let folder = dir.path("out/default").canonicalize().unwrap();
    for line in [
        format!("PROGRAM={}", letters().display()),
        "PROGRAM_ARGV=".into(),
        "PROGRAM_INPUT=unset".into(),
        format!("OUT={}", folder.display()),
        "queue_new_entry id:000000 none".into(),
        "queue_new_entry id:000001 seed".into(),
        "queue_get id:000000 seed".into(),
    ] {
        assert!(log.lines().any(|seen| seen == line), "no {line:?} in {log}");
    }
}

#[test]
fn a_library_in_rust_sees_the_same_as_one_in_c() {
    let calls = |library: &dyn Fn(&TestDir)| {
        let dir = TestDir::new();
        library(&dir);
        one_seed(with_libraries(&dir, "./all.so", "-s 1 -z")).run().expect(0);
        dir.text("calls")
    };
    let rust = calls(&|dir| {
        let source = repository("tests/mutators/all.rs");
        let words = "--edition 2024 --crate-type cdylib -C panic=abort -o all.so";
        dir.program("rustc").words(words).arg(source).run().expect(0);
    });
    let c = calls(&|dir| {
        library(dir, "all.c", "-DWITH_POST_RUN -DWITH_INTROSPECTION", "all.so");
    });
    assert!(rust.lines().count() > 100, "{rust}");
    assert_eq!(rust, c);
}

#[test]
fn afl_fuzz_makes_the_same_calls() {
    need("afl-fuzz");
    let dir = TestDir::new();
    // Version 4.04 does not know post_run. All files are handed over before the first run.
    library(&dir, "all.c", "", "all.so");
    dir.write("in/tail", "xxxx");
    one_seed(with_libraries(&dir, "./all.so", "-s 1 -z")).run().expect(0);
    let ours = kinds(&dir.text("calls"));
    std::fs::remove_file(dir.path("calls")).unwrap();
    let log = dir.path("calls").display().to_string();
    let job = dir.program("afl-fuzz").words("-d -s 1 -i in -o afl -t 3000 --").arg(letters());
    one_seed(job)
        .env("AFL_CUSTOM_MUTATOR_LIBRARY", "./all.so")
        .env("MUTATOR_LOG", &log)
        .env("AFL_NO_UI", "1")
        .env("AFL_SKIP_CPUFREQ", "1")
        .start()
        .wait_for("We're done here");
    let theirs = kinds(&dir.text("calls"));
    // How many runs havoc gets is each fuzzer's own.
    let before_havoc = |calls: &[String]| {
        let end = calls.iter().position(|call| call == "havoc_mutation").unwrap();
        calls[..=end].to_vec()
    };
    assert_eq!(before_havoc(&ours), before_havoc(&theirs));
    assert_eq!(ours.last(), theirs.last());
}

#[test]
fn two_libraries_are_chained_in_order() {
    for sign in [";", ":", ","] {
        let dir = TestDir::new();
        library(&dir, "all.c", "-DTAG=\"1.\"", "one.so");
        library(&dir, "all.c", "-DTAG=\"2.\"", "two.so");
        let list = format!("./one.so{sign}{sign}./two.so");
        one_seed(with_libraries(&dir, &list, "-s 1 -z")).run().expect(0);
        let seen = kinds(&dir.text("calls"));
        let start = ["1.init", "2.init", "1.queue_new_entry", "2.queue_new_entry"];
        assert_eq!(seen[..4], start);
        let pairs = seen.windows(2).filter(|pair| pair[0] == "1.post_process");
        assert!(pairs.clone().count() > 100);
        pairs.for_each(|pair| assert_eq!(pair[1], "2.post_process"));
        let place = |call: &str| seen.iter().position(|seen| seen == call).unwrap();
        assert!(place("1.fuzz_count") < place("2.fuzz_count"));
        assert!(place("2.fuzz_count") < place("1.havoc_mutation"));
        assert_eq!(dir.stat("mutators"), 2);
        assert!(dir.stat("mutator0_calls") > 100 && dir.stat("mutator1_calls") > 100);
    }
}

#[test]
fn what_a_mutator_did_is_reported_everywhere() {
    let dir = TestDir::new();
    library(&dir, "all.c", "-DWITH_INTROSPECTION", "all.so");
    let done = one_seed(with_libraries(&dir, "./all.so", "-s 1 -z --json")).run().expect(0);
    let objects: Vec<serde_json::Value> =
        done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = &objects.last().unwrap()["mutators"][0];
    assert_eq!((last["name"].as_str(), last["failures"].as_u64()), (Some("all.so"), Some(0)));
    let stats = dir.stats();
    assert_eq!(stats["mutator0_name"], "all.so");
    // Two seeds and a crash came from its fuzz, and the names carry its words.
    assert_eq!((stats["mutator0_finds"].as_str(), last["finds"].as_u64()), ("3", Some(3)));
    assert_eq!(stats["mutator0_says"], "all_is _well_");
    assert!(stats["mutator0_time"].ends_with('%'));
    assert!(dir.stat("mutator0_calls") > 300);
    assert!(dir.queue()[1].ends_with(",letter,of:all,+cov"), "{:?}", dir.queue());
    assert!(dir.crashes()[0].ends_with(",letter,of:all"), "{:?}", dir.crashes());
}

#[test]
fn a_library_can_deliver_inputs_itself() {
    for late in ["", "1"] {
        let dir = TestDir::new();
        library(&dir, "all.c", "-DWITH_SEND", "all.so");
        let file = dir.path("sent").display().to_string();
        dir.write("in/seed", "xxxxxxxx");
        if !late.is_empty() {
            // The target waits at its end of it for whoever sends.
            nix::unistd::mkfifo(&dir.path("sent"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let reader = crate::common::target("sent.c", "");
        let log = dir.path("calls").display().to_string();
        let job = one_seed(dir.fuzz("-s 1 -z", &reader, &file));
        job.env("AFL_CUSTOM_MUTATOR_LIBRARY", "./all.so")
            .env("AFL_CUSTOM_MUTATOR_LATE_SEND", late)
            .env("MUTATOR_LOG", &log)
            .env("SEND_TO", &file)
            .run()
            .expect(0);
        assert_eq!(dir.crashes().len(), 1, "late: {late:?}");
        assert_eq!(dir.stats()["run_mode"], "pipe");
        let seen = kinds(&dir.text("calls"));
        let sent = seen.windows(2).filter(|pair| pair[0] == "post_process");
        sent.for_each(|pair| assert_eq!(pair[1], "fuzz_send"));
    }
}

#[test]
fn showdsf_runs_what_post_processing_makes() {
    let dir = TestDir::new();
    library(&dir, "checksum.c", "", "checksum.so");
    let target = crate::common::target_with("mem", "checked.c", "");
    dir.write("in/seed", "xabc");
    let values = |library: &str| {
        let once = dir.showdsf("-q", &target, "").input("xabc");
        let folder = dir.showdsf("-q -i in", &target, "");
        [once, folder].map(|job| {
            job.env("AFL_CUSTOM_MUTATOR_LIBRARY", library).run().expect(0).sorted_values()
        })
    };
    assert_eq!(values(""), [[], []] as [[u32; 0]; 2]);
    assert_eq!(values("./checksum.so"), [[4000], [4000]]);
    let refused = dir.showdsf("-q", &target, "").env("AFL_CUSTOM_MUTATOR_LIBRARY", "no.so");
    refused.run().refused(1, "no.so does not exist", "AFL_CUSTOM_MUTATOR_LIBRARY");
}

#[test]
fn only_mutators_make_inputs_if_the_user_says_so() {
    let dir = TestDir::new();
    library(&dir, "all.c", "", "all.so");
    let job = one_seed(with_libraries(&dir, "./all.so", "-s 1"));
    job.env("AFL_CUSTOM_MUTATOR_ONLY", "1").run().expect(0);
    let seen = kinds(&dir.text("calls"));
    assert!(seen.iter().any(|call| call == "fuzz"));
    assert!(!seen.iter().any(|call| call == "havoc_mutation"));
    // Import, two proposals of trimming, and four inputs, of which two are new: seven runs each to calibrate.
    assert_eq!(dir.stat("execs_done"), 7 + 2 + 4 + 14);
}

#[test]
fn debugging_logs_the_steps_of_trimming() {
    let dir = TestDir::new();
    library(&dir, "all.c", "", "all.so");
    let job = one_seed(with_libraries(&dir, "./all.so", "-s 1 -z"));
    job.env("AFL_DEBUG", "1")
        .run()
        .expect(0)
        .says("mutator all.so: trim step 0 of 2: 8 to 4 bytes, taken")
        .says("mutator all.so: trim step 1 of 2: 4 to 4 bytes, taken");
}
