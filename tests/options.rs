//! Options and variables of AFL++ on real processes: what each changes.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and talk")]

mod common;

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;

use common::{TestDir, afl_target, plain, target};

fn outcomes() -> PathBuf {
    target("outcomes.c", "")
}

/// A target that may find the letter "Q" quickly.
fn with_q(dir: &TestDir) {
    dir.write("words", "\"Q\"\n");
}

#[test]
fn a_statsd_server_hears_of_the_campaign() {
    let dir = TestDir::with_seed("A");
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(common::DEADLINE)).unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let job = dir.fuzz("-s 1 -E 2000 -T me", &outcomes(), "none").env("AFL_STATSD", "1");
    let job = job.env("AFL_STATSD_PORT", &port).env("AFL_STATSD_TAGS_FLAVOR", "dogstatsd");
    job.run().expect(0);
    let mut buffer = [0; 4096];
    let mut last = String::new();
    // The last datagram is that of the end.
    while !last.contains(&format!("execs_done:{}|", dir.stat("execs_done"))) {
        let length = server.recv(&mut buffer).unwrap();
        last = String::from_utf8(buffer[..length].to_vec()).unwrap();
        assert!(last.starts_with("fuzzing.cycle_done:"), "{last}");
        assert!(last.contains("|g|#banner:me,afl_version:ffuzz-"), "{last}");
    }
    let job = dir.fuzz("", &outcomes(), "none").env("AFL_STATSD", "1");
    let job = job.env("AFL_STATSD_HOST", "no-such-host.invalid");
    job.run().refused(1, "cannot reach the StatsD server", "AFL_STATSD_HOST");
}

#[test]
fn what_the_target_says_when_it_crashes_is_kept() {
    let dir = TestDir::with_seed("A");
    with_q(&dir);
    let job = dir.fuzz("-s 1 -E 5000 -x words", &outcomes(), "sites @@");
    let job = job.env("AFL_CRASH_TRACES", "1").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let crash = dir.crashes().pop().unwrap();
    let told = dir.text(&format!("out/default/traces/{crash}.txt"));
    let input = dir.read(&format!("out/default/crashes/{crash}"));
    let expected = if input.get(1) == Some(&b'Q') { "" } else { "the other site\n" };
    assert_eq!(told, expected);
}

#[test]
fn the_inputs_before_a_crash_are_kept() {
    for steps in [target("steps.c", "-DSHARED"), target("steps.c", "-DPERSISTENT")] {
        let dir = TestDir::with_seed("QUIA");
        let job = dir.fuzz("-s 7 -E 400000", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.env("AFL_PERSISTENT_RECORD", "5").run().expect(0);
        let crash = dir.crashes().pop().unwrap();
        let record = |number| format!("out/default/crashes/RECORD:000000,cnt:{number:06}");
        assert_eq!(
            dir.read(&record(4)),
            dir.read(&format!("out/default/crashes/{crash}")),
            "the last is the crash"
        );
        for number in 0..4 {
            assert!(!dir.read(&record(number)).starts_with(b"QUIZ"));
        }
        assert!(!dir.path(&record(5)).exists());
        // They are no crashes of their own.
        let limit = dir.stat("execs_done") + 100;
        let resume = dir.ffuzz(&format!("-i - -o out -t 3000 -E {limit} --")).arg(&steps);
        resume.run().expect(0);
        assert_eq!(dir.stat("saved_crashes"), 1);
    }
}

#[test]
fn timeouts_are_ignored_or_kept_as_the_user_says() {
    let hangs = |variable: &str| {
        let dir = TestDir::with_seed("A");
        with_q(&dir);
        let job = dir.fuzz("-s 1 -E 1500 -t 20 -x words", &outcomes(), "hang");
        job.env("AFL_HANG_TMOUT", "20").env(variable, "1").run().expect(0);
        dir
    };
    let dir = hangs("AFL_QUIET");
    assert!(!dir.hangs().is_empty());
    assert!(!dir.queue().iter().any(|name| name.contains("+tout")));
    let dir = hangs("AFL_IGNORE_TIMEOUTS");
    assert_eq!(dir.hangs(), Vec::<String>::new());
    assert!(!dir.queue().iter().any(|name| name.contains("+tout")));
    let dir = hangs("AFL_KEEP_TIMEOUTS");
    let kept = dir.queue().into_iter().find(|name| name.contains(",+tout,+cov"));
    let kept = kept.unwrap_or_else(|| panic!("{:?}", dir.queue()));
    assert!(dir.read(&format!("out/default/queue/{kept}")).starts_with(b"Q"));
    assert!(!dir.hangs().is_empty());
}

#[test]
fn crash_exploration_starts_from_crashes_and_keeps_crashes() {
    let crashing = TestDir::with_seed("QUIZ");
    let done = crashing.fuzz("-C -s 1 -E 3000", &target("crashing.c", ""), "").run();
    done.expect(0);
    let mode = crashing.stats()["target_mode"].clone();
    assert_eq!(mode, "crash");
    // All that joins the queue crashes, too.
    let queue = crashing.queue();
    assert!(queue.len() > 1, "{queue:?}");
    for name in &queue {
        let input = crashing.read(&format!("out/default/queue/{name}"));
        assert!(input.starts_with(b"Q"), "{name}");
    }
    assert!(!crashing.crashes().is_empty());
    // Others are passed over, unless there is nothing else.
    let dir = TestDir::with_seed("QUIZ");
    dir.write("in/calm", "A");
    let done = dir.fuzz("-C -s 1 -E 300", &target("crashing.c", ""), "").run();
    done.expect(0).says("does not crash, as -C wants it");
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-C -s 1 -E 300", &target("crashing.c", ""), "").run();
    done.refused(1, "no seed crashes the target", "leave -C out");
}

#[test]
fn a_fork_server_serves_without_coverage() {
    for program in [afl_target("steps.c", ""), target("steps.c", ""), plain("legacy.c", "")] {
        let dir = TestDir::with_seed("QUIA");
        let job = dir.fuzz("-n -s 1 -E 500", &program, "").env("AFL_DUMB_FORKSRV", "1");
        job.run().expect(0);
        let stats = dir.stats();
        assert_eq!((stats["run_mode"].as_str(), stats["total_edges"].as_str()), ("pipe", "0"));
        assert!(stats["target_mode"].starts_with("non_instrumented"), "{stats:?}");
        assert_eq!(dir.queue().len(), 1);
    }
}

#[test]
fn starting_seeds_run_once_if_asked() {
    let runs = |variable: &str| {
        let dir = TestDir::with_seed("A");
        let job = dir.fuzz("-s 1 -E 1", &outcomes(), "none").env(variable, "1");
        job.run().expect(0);
        dir.stat("execs_done")
    };
    let (usual, fast, once) =
        (runs("AFL_QUIET"), runs("AFL_CAL_FAST"), runs("AFL_NO_STARTUP_CALIBRATION"));
    assert_eq!((usual, fast, once), (7, 3, 2));
}

#[test]
fn comparison_logging_is_told_to_be_absent() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-c 0 -l 2 -s 1 -E 100", &outcomes(), "none");
    let done = job.env("AFL_CMPLOG_ONLY_NEW", "1").run().expect(0);
    let warnings: Vec<&str> =
        done.err.lines().filter(|line| line.contains("WAYPOINTS=cmp")).collect();
    assert_eq!(warnings.len(), 2, "{}", done.err);
    assert!(fs::metadata(dir.path("out/default/queue")).is_ok());
}
