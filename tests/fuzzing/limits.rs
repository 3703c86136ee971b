//! `-V` and `-E` take effect soon, whatever code of the user's the campaign waits for.

use crate::common;
use crate::custom::{letters, library, with_libraries};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Finished, Job, TestDir, plain, repository, target};

/// Far more than an end takes on a busy machine, far less than what the campaign would wait for.
const SOON: Duration = Duration::from_secs(60);

fn soon(job: Job) -> Finished {
    let start = Instant::now();
    let done = job.run();
    assert!(start.elapsed() < SOON, "{:?}: {}", start.elapsed(), done.out);
    done
}

#[test]
fn runs_that_are_slower_than_the_limit_of_time() {
    let dir = TestDir::with_seed("A");
    let words = "-V 2 -t 300000 --run-mode fork";
    let done = soon(dir.fuzz(words, &target("sleepy.c", "-DMILLISECONDS=200000"), ""));
    let done = done.expect(0).says("dry run of 1 seeds").says("[!] Time limit was reached");
    done.says("in the dry run, before all seeds were run");
    assert!((2..30).contains(&dir.stat("run_time")), "{}", dir.stat("run_time"));
}

#[test]
fn a_fork_server_that_erases_its_reports_is_not_started_again() {
    for flags in ["", " -DPIPES"] {
        let dir = TestDir::with_seed("A");
        let flags = format!("-I{}{flags}", repository("runtime").display());
        let job = dir.fuzz("-V 2 -t 300000", &plain("erasing.c", &flags), "");
        soon(job.arg(dir.path("starts"))).expect(0).does_not_say("restarted");
        assert_eq!(dir.text("starts"), "s", "{flags}");
    }
}

#[test]
fn seeds_that_take_longer_than_the_limit_of_time() {
    let dir = TestDir::with_seed("A");
    (1..=100).for_each(|n| drop(dir.write(&format!("in/{n}"), vec![b'B'; n])));
    let sleepy = target("sleepy.c", "-DMILLISECONDS=1000");
    let done = soon(dir.fuzz("-V 2 -t 30000", &sleepy, "")).expect(0);
    done.says("in the dry run, before all seeds were run");
    // What was run is not run again.
    let job = dir.ffuzz("-i - -o out -t 30000 -V 2 --").arg(sleepy);
    soon(job).expect(0).says("resumed: 101 queue entries");
}

#[test]
fn a_command_for_crashes_that_does_not_end() {
    let dir = TestDir::with_seed("QUIAAA");
    let job = dir.ffuzz("-i in -o out -t 3000 -V 4 -I").arg("sleep 1000").arg("--");
    let done = soon(job.arg(target("steps.c", ""))).expect(0);
    done.says("the command of -I did not end: killed");
    assert!(dir.stat("saved_crashes") > 0);
}

#[test]
fn a_target_that_does_not_start() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-V 3 -t 300000", Path::new("/bin/sleep"), "1000");
    let done = soon(job.env("AFL_SKIP_BIN_CHECK", "1")).expect(1);
    let done = done.says("the target has not started for 2 seconds");
    done.refused(1, "the time limit (-V) was reached before the target had started", "raise -V");
}

fn with_bad(what: &str, words: &str) -> (TestDir, Job) {
    let dir = TestDir::new();
    library(&dir, "bad.c", &format!("-DWHAT={what}"), "bad.so");
    let job = with_libraries(&dir, "./bad.so", words);
    (dir, job)
}

#[test]
fn a_mutator_that_does_not_return() {
    let (dir, job) = with_bad("STUCK", "-s 1 -z -V 3");
    let done = soon(job).expect(1);
    done.says("bad.so did not return from fuzz").says("resume with -i -");
    // What it had done until then is in the statistics.
    assert!(dir.stat("run_time") >= 3 && dir.stat("execs_done") >= 20, "{:?}", dir.stats());
    dir.ffuzz("-i - -o out -t 3000 -E 1 --").arg(letters()).run().expect(0);
}

#[test]
fn a_mutator_that_does_not_return_from_its_last_call() {
    let (dir, job) = with_bad("STUCK_AT_END", "-s 1 -z -E 3000");
    soon(job).expect(1).says("bad.so did not return from deinit").says("+++");
    assert!(dir.stat("execs_done") >= 3000);
}

#[test]
fn a_mutator_that_does_not_return_from_its_first_call() {
    let (_dir, job) = with_bad("STUCK_AT_INIT", "-s 1 -V 1");
    soon(job).expect(1).says("bad.so did not return from init");
}

#[test]
fn a_limit_of_runs_holds_in_the_dry_run() {
    let dir = TestDir::with_seed("A");
    (1..=30).for_each(|n| drop(dir.write(&format!("in/{n}"), vec![b'B'; n])));
    let sleepy = target("sleepy.c", "-DMILLISECONDS=1");
    let done = dir.fuzz("-E 3 -t 30000", &sleepy, "").run().expect(0);
    done.says("the execution limit was reached in the dry run, before all seeds were run");
    // One seed, with its calibration.
    assert!((3..20).contains(&dir.stat("execs_done")), "{}", dir.stat("execs_done"));
    let job = dir.ffuzz("-i - -o out -t 30000 -E 400 --").arg(sleepy);
    job.run().expect(0).says("resumed: 31 queue entries");
    assert!(dir.stat("execs_done") >= 400);
}

#[test]
fn a_post_processor_that_does_not_return() {
    let (dir, job) = with_bad("STUCK_AFTER", "-s 1 -z -V 3");
    soon(job).expect(1).says("bad.so did not return from post_process");
    assert!(dir.stat("run_time") >= 3 && dir.stat("execs_done") >= 50, "{:?}", dir.stats());
}

#[test]
#[cfg(feature = "python")]
fn a_function_of_python_that_does_not_return() {
    let source = "import time\ncalls = 0\ndef init(seed):\n    pass\n\
        def fuzz(buf, add_buf, max_size):\n    global calls\n    calls += 1\n\
        \x20   while calls >= 100:\n        time.sleep(1)\n    return buf\n";
    let dir = TestDir::with_seed("A");
    dir.write("stuck.py", source);
    let path = dir.path("").display().to_string();
    let job = dir.fuzz("-s 1 -z -V 3", letters(), "").env("AFL_PYTHON_MODULE", "stuck");
    soon(job.env("PYTHONPATH", &path)).expect(1).says("stuck did not return from fuzz");
    assert!(dir.stat("run_time") >= 3 && dir.stat("execs_done") >= 20, "{:?}", dir.stats());
}

#[test]
fn workers_whose_mutators_do_not_return() {
    let (_dir, job) = with_bad("STUCK", "-s 1 -z -V 3 -j 2");
    soon(job).expect(1).says("bad.so did not return from fuzz");
}

#[test]
fn a_server_that_does_not_answer() {
    // It takes connections, and that is all.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let dir = TestDir::with_seed("QUIAAA");
    dir.write("sigdir/empty", "");
    let (host, rest) =
        ("serverproto = http\nserverhost = 127.0.0.1", "serverauthtoken = token\ntool = limits");
    let folder = dir.path("sigdir").display().to_string();
    let text = format!("[Main]\n{host}\nserverport = {port}\n{rest}\nsigdir = {folder}\n");
    let config = dir.write("fm.conf", text).display().to_string();
    let job =
        dir.ffuzz_and_triage("-i in -o out -t 3000 -V 3 --collector --").arg(target("steps.c", ""));
    let job = job.env("FM_CONFIG_PATH", &config);
    let start = Instant::now();
    soon(job).expect(0);
    // A wait for the server, of ten seconds, is no time of the search.
    let whole = start.elapsed().as_secs();
    assert!(
        dir.stat("saved_crashes") > 0 && dir.stat("run_time") <= 12,
        "{whole} s: {:?}",
        dir.stats()
    );
}
