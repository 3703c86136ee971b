//! `-j N`: several workers under one command, on real targets.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use common::{
    Running, TestDir, need, need_terminal, plain, repository, skip, stats_of, target, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::Value;

fn steps() -> PathBuf {
    target("steps.c", "")
}

fn stats(dir: &TestDir, worker: &str) -> BTreeMap<String, String> {
    let file = dir.path(&format!("out/{worker}/fuzzer_stats"));
    stats_of(&fs::read_to_string(file).unwrap_or_default())
}

fn number(dir: &TestDir, worker: &str, key: &str) -> u64 {
    let stats = stats(dir, worker);
    stats
        .get(key)
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("{key}: {stats:?}"))
}

/// Waits until a worker fuzzes; returns its process.
fn process_of(dir: &TestDir, worker: &str) -> i32 {
    let pid = || stats(dir, worker).get("fuzzer_pid")?.parse().ok();
    wait_until(&format!("fuzzer_stats of {worker}"), || pid().is_some());
    pid().unwrap()
}

fn start(dir: &TestDir, options: &str) -> Running {
    dir.fuzz(options, &steps(), "").start()
}

#[test]
fn two_workers_are_instances_that_afl_whatsup_sees_and_one_ctrl_c_ends() {
    need("afl-whatsup");
    let dir = TestDir::with_seed("QUAAAA");
    let running = start(&dir, "-j 2");
    let (main, second) = (process_of(&dir, "main"), process_of(&dir, "worker01"));
    assert!(main != second && [main, second].iter().all(|pid| running.processes().contains(pid)));
    assert!(dir.path("out/main/is_main_node").exists());
    let seen = dir.program("afl-whatsup").words("-s out").run().expect(0).out;
    assert!(seen.contains("Fuzzers alive : 2"), "{seen}");
    running.signal(Signal::SIGINT);
    let done = running.finish().expect(0).says("+++ Testing aborted by user +++");
    let done = done.says("[*] fuzzing; Ctrl-C stops").says("worker     : worker01: ");
    assert!(done.err.is_empty(), "{}", done.err);
    let command = &stats(&dir, "worker01")["command_line"];
    assert!(command.contains(" -S worker01 ") && !command.contains(" -j "), "{command}");
    for worker in ["main", "worker01"] {
        assert!(!dir.entries(&format!("out/{worker}/queue")).is_empty());
    }
}

#[test]
fn imports_of_the_main_reach_all_workers() {
    let dir = TestDir::with_seed("gamma");
    // Nobody finds this by chance.
    dir.write("others/1", "alpha");
    let running = dir.fuzz("-j 3 -F others", &target("islands.c", ""), "").start();
    for worker in ["worker01", "worker02"] {
        wait_until(&format!("an import of {worker}"), || {
            let queue = format!("out/{worker}/queue");
            let there = dir.path(&queue).exists();
            there && dir.entries(&queue).iter().any(|name| name.contains(",sync:main,src:"))
        });
    }
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
}

#[test]
fn a_worker_that_is_killed_starts_again_with_its_finds() {
    let dir = TestDir::with_seed("QUAAAA");
    let mut running = start(&dir, "-j 2");
    let pid = process_of(&dir, "worker01");
    wait_until("a find of worker01", || dir.entries("out/worker01/queue").len() > 1);
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    running.wait_for("[worker01] was killed by signal 9; starts again in 1 s");
    let before = dir.entries("out/worker01/queue");
    wait_until("another worker01", || process_of(&dir, "worker01") != pid);
    running.signal(Signal::SIGTERM);
    running.finish().expect(0).says("started again once");
    assert_eq!(dir.entries("out/worker01/queue")[..before.len()], before);
}

#[test]
fn workers_end_with_a_fleet_that_is_killed() {
    let dir = TestDir::with_seed("QUAAAA");
    let running = start(&dir, "-j 3");
    let workers = ["main", "worker01", "worker02"].map(|worker| process_of(&dir, worker));
    assert!(workers.iter().all(|pid| running.processes().contains(pid)));
    running.signal(Signal::SIGKILL);
    // Nothing may be left, which `finish` waits for.
    running.finish().expect(128 + 9);
}

#[test]
fn a_target_that_cannot_start_is_reported_once() {
    let dir = TestDir::with_seed("A");
    let refused = |target: &Path, cause: &str, remedy: &str| {
        dir.fuzz("-j 3", target, "").run().refused(1, cause, remedy);
        assert!(!dir.path("out/worker01").exists());
    };
    refused(&plain("steps.c", "-DPLAIN"), "is not instrumented", "ffuzz-cc");
    refused(Path::new("./missing"), "cannot find the target", "path");
    // Seeds of which none is usable are no fault of the target, but of all workers.
    let dir = TestDir::with_seed("QUIZ");
    let done = dir.fuzz("-j 2", &steps(), "").run().expect(1);
    assert_eq!(done.err.matches("no seed is usable").count(), 1, "{}", done.err);
}

#[test]
fn json_lines_name_the_worker_and_report_the_whole() {
    let dir = TestDir::with_seed("QUAAAA");
    let done = dir.fuzz("-j 2 --json -E 3001", &steps(), "").run().expect(0);
    let lines: Vec<Value> =
        done.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for worker in ["main", "worker01"] {
        let of = |line: &&Value| line["worker"] == worker;
        let last = lines.iter().rfind(of).unwrap();
        assert_eq!((&last["event"], &last["reason"]), (&"stopped".into(), &"execlimit".into()));
        assert!(number(&dir, worker, "execs_done") >= 1500);
        assert!(lines.iter().filter(of).any(|line| line["event"] == "seed_saved"), "{worker}");
    }
    let last = lines.last().unwrap();
    assert!(last["worker"].is_null() && last["event"] == "stopped", "{last}");
    assert_eq!(last["workers"].as_array().unwrap().len(), 2);
    let parts = ["main", "worker01"].map(|worker| number(&dir, worker, "execs_done"));
    assert_eq!(last["execs"], parts.iter().sum::<u64>());
}

#[test]
fn what_targets_print_does_not_mix_with_json() {
    let prints = target("output.c", "");
    for (options, error) in [("--json -E 200", true), ("-j 2 --json -E 200", false)] {
        let dir = TestDir::with_seed("3");
        let job = dir.fuzz(options, &prints, "").env("AFL_DEBUG_CHILD", "1");
        let done = job.run().expect(0);
        for line in done.out.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{options}: {line}");
        }
        let all = if error { done.err } else { done.out };
        assert!(all.contains("0123456789"), "{options}: {all}");
    }
}

#[test]
fn what_the_command_for_crashes_prints_does_not_mix_with_json() {
    for workers in ["", "-j 2"] {
        let dir = TestDir::with_seed("QUIAAA");
        let job = dir.ffuzz("-i in -o out -t 3000 --json").words(workers);
        // Without an end of line, so that an object would be behind it.
        let job = job.arg("-I").arg("printf 'said by %s' \"$0\"").arg("--").arg(steps());
        let done = job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        let lines = done.out.lines().map(|line| serde_json::from_str(line).expect(line));
        let lines: Vec<Value> = lines.collect();
        assert!(lines.iter().any(|line| line["event"] == "crash_saved"), "{workers}: {}", done.out);
        done.says("said by ffuzz");
    }
}

#[test]
fn the_first_crash_can_end_all() {
    let dir = TestDir::with_seed("QUIAAA");
    let job = dir.fuzz("-j 2", &steps(), "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0).says("crash /").says("+++ Testing aborted programmatically +++");
}

#[test]
fn a_time_limit_ends_all_workers() {
    let dir = TestDir::with_seed("QUAAAA");
    dir.fuzz("-j 2 -V 1", &steps(), "").run().expect(0).says("[!] Time limit was reached");
    // Only one of them may have had a run that could not be restored.
    let keys = |worker| {
        let keys = stats(&dir, worker).into_keys();
        keys.filter(|key| key != "snapshot_why").collect::<Vec<_>>()
    };
    assert_eq!(keys("main"), keys("worker01"));
}

#[test]
fn a_fleet_can_be_resumed_with_more_workers() {
    let dir = TestDir::with_seed("QUAAAA");
    let fleet =
        |options: &str| dir.ffuzz(&format!("-o out -t 3000 {options} --")).arg(steps()).run();
    fleet("-i - -j 2").refused(1, "out/main", "-i SEEDS");
    fleet("-i in -j 2 -E 2000").expect(0);
    let names = ["main", "worker01"];
    let before = names.map(|name| dir.entries(&format!("out/{name}/queue")));
    fleet("-i in -j 3").refused(1, "already holds work", "-i -");
    fleet("-i - -j 3 -V 1").expect(0);
    for (name, before) in names.iter().zip(before) {
        let after = dir.entries(&format!("out/{name}/queue"));
        assert_eq!(after[..before.len()], before, "{name}");
    }
    let again = "-i in -o out -j 2 -t 3000 -V 1 --";
    dir.ffuzz(again).arg(steps()).env("AFL_AUTORESUME", "1").run().expect(0);
    // The new one has begun with what the main had found.
    assert!(dir.entries("out/worker02/queue").len() > 1);
    fleet("-i - -j 1 -V 1").expect(0).says("worker01 and later ones are not continued: -j 3");
}

#[test]
fn options_that_workers_cannot_share_are_refused() {
    let dir = TestDir::with_seed("A");
    let refused = |options: &str, cause: &str, remedy: &str| {
        dir.fuzz(options, &steps(), "").run().refused(2, cause, remedy);
        assert!(!dir.path("out").exists());
    };
    refused("-j 2 -M a", "-j names its workers itself", "leave out -M and -S");
    refused("-S a -j 2", "-j names its workers itself", "leave out -M and -S");
    refused("-j 2 -f x", "-f names one file", "@@");
    refused("-j 2 -b 0", "-b names one core", "leave out -b");
    refused("-j x", "-j x is not a number", "auto");
    refused("-j 2 --mutator-only", "--mutator-only", "leave out -j");
    refused("-j 2 -t x", "-t x is not a number", "--help");
}

#[test]
fn a_folder_for_inputs_is_divided() {
    let dir = TestDir::with_seed("QUAAAA");
    fs::create_dir(dir.path("tmp")).unwrap();
    let job = dir.fuzz("-j 2", &steps(), "").env("AFL_TMPDIR", "tmp");
    let running = job.start();
    let pid = process_of(&dir, "worker01");
    process_of(&dir, "main");
    // Its input file stays behind and must not keep it from starting.
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    wait_until("another worker01", || process_of(&dir, "worker01") != pid);
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    assert_eq!(fs::read_dir(dir.path("tmp")).unwrap().count(), 0);
}

#[test]
fn the_fleet_ends_when_no_worker_can_start() {
    let dir = TestDir::with_seed("QUAAAA");
    let program = dir.path("steps");
    fs::copy(steps(), &program).unwrap();
    let mut running = dir.fuzz("-j 2", &program, "").start();
    let (main, second) = (process_of(&dir, "main"), process_of(&dir, "worker01"));
    fs::remove_file(&program).unwrap();
    kill(Pid::from_raw(second), Signal::SIGKILL).unwrap();
    // The main fuzzes: three false starts of another are no reason to end.
    running.wait_for("cannot find the target");
    running.wait_for("starts again in 8 s");
    kill(Pid::from_raw(main), Signal::SIGKILL).unwrap();
    let done = running.finish();
    let done = done.refused(1, "main cannot start any more: cannot find the target", "path");
    done.says("[main] was killed by signal 9").says("+++ Testing aborted by an error +++");
}

#[test]
fn a_worker_that_does_not_end_is_killed() {
    let dir = TestDir::with_seed("QUAAAA");
    let running = start(&dir, "-j 2");
    let pid = Pid::from_raw(process_of(&dir, "worker01"));
    kill(pid, Signal::SIGSTOP).unwrap();
    running.signal(Signal::SIGINT);
    running.finish().expect(0).says("[worker01] was silent for 15 s and did not end: killed");
}

#[test]
fn two_hangups_end_the_fleet_cleanly() {
    let dir = TestDir::with_seed("QUAAAA");
    let running = start(&dir, "-j 2");
    let (main, second) = (process_of(&dir, "main"), process_of(&dir, "worker01"));
    kill(Pid::from_raw(second), Signal::SIGSTOP).unwrap();
    for _ in 0..2 {
        running.signal(Signal::SIGHUP);
        wait_until("an end of main", || !running.processes().contains(&main));
    }
    kill(Pid::from_raw(second), Signal::SIGCONT).unwrap();
    running.finish().expect(0).says("+++ Testing aborted by user +++");
}

/// `ffuzz -j 2` on a terminal, and the file that takes its keys.
fn on_terminal(dir: &TestDir) -> (Running, fs::File) {
    need_terminal();
    mkfifo(&dir.path("keys"), Mode::S_IRWXU).unwrap();
    let (ffuzz, target) = (env!("CARGO_BIN_EXE_ffuzz"), steps());
    let line = format!("stty rows 24 cols 80; exec {ffuzz} -j 2 -i in -o out -t 3000");
    let line = format!("{line} {}", target.display());
    let script = "exec script -qec \"$0\" /dev/null < keys";
    let mut running = dir.program("sh").words("-c").arg(script).arg(line).start();
    let keys = fs::OpenOptions::new().write(true).open(dir.path("keys")).unwrap();
    for worker in ["main", "worker01"] {
        process_of(dir, worker);
    }
    for text in ["\u{1b}[?1049h", "all workers", "worker01"] {
        running.wait_for(text);
    }
    (running, keys)
}

#[test]
fn a_folder_for_inputs_that_cannot_be_divided_is_named() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-j 2", &steps(), "").env("AFL_TMPDIR", "/proc");
    job.run().refused(1, "cannot make the folder \"/proc/ffuzz-", "AFL_TMPDIR");
}

/// State and parent of a process.
fn parent_of(pid: &str) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Numbers of the children of a process that are in one of these states.
fn children_of(parent: i32, states: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| parent_of(name).is_some_and(|(s, p)| p == parent && states.contains(s)))
        .filter_map(|name| name.parse().ok())
        .collect()
}

#[test]
fn the_first_process_of_a_container_reaps_what_targets_leave() {
    let dir = TestDir::with_seed("A");
    dir.write("in/2", "Q");
    let unshare = || dir.program("unshare").words("--pid --fork --mount-proc");
    if unshare().arg("true").run().code() != 0 {
        skip("unshare --pid is not allowed");
        return;
    }
    let job = unshare().arg(env!("CARGO_BIN_EXE_ffuzz")).words("-j 2 -i in -o out -t 5000 --");
    let job = job.arg(target("hostile.c", "")).arg("daemon").arg(dir.path("pids"));
    let mut running = job.start();
    running.wait_for("fuzzing; Ctrl-C stops");
    let daemons = || fs::read_to_string(dir.path("pids")).unwrap_or_default().lines().count();
    let first = children_of(running.pid(), "SRD")[0];
    wait_until("daemons of two seconds", || daemons() > 500);
    // Their killers are the workers; once a second they are gone for good.
    wait_until("an end of most of them", || children_of(first, "Z").len() * 20 < daemons());
    kill(Pid::from_raw(first), Signal::SIGINT).unwrap();
    running.finish().expect(0);
}

#[test]
fn on_a_terminal_there_is_one_screen_and_ctrl_c_is_a_key() {
    let dir = TestDir::with_seed("QUAAAA");
    let (running, mut keys) = on_terminal(&dir);
    keys.write_all(b"\x03").unwrap();
    let done = running.finish().expect(0);
    done.says("+++ Testing aborted by user +++").says("\u{1b}[?1049l");
}

#[test]
fn a_second_ctrl_c_exits_immediately_and_restores_the_terminal() {
    let dir = TestDir::with_seed("QUAAAA");
    let (running, mut keys) = on_terminal(&dir);
    let (main, second) = (process_of(&dir, "main"), process_of(&dir, "worker01"));
    kill(Pid::from_raw(second), Signal::SIGSTOP).unwrap();
    keys.write_all(b"\x03").unwrap();
    wait_until("an end of main", || !running.processes().contains(&main));
    // One that comes at once is the same request.
    wait_until("an end of worker01", || {
        let _ = keys.write_all(b"\x03");
        !running.processes().contains(&second)
    });
    running.finish().expect(1).says("\u{1b}[?1049l").does_not_say("Testing aborted");
}

/// What somebody at a terminal sees of Ctrl-Z and `fg`: `tests/data/terminal/keys.py` looks at its bytes and
/// modes. The job is stopped for longer than it may fuzz.
fn stop_and_continue(dir: &TestDir, end: i32, text: &str, options: &str) {
    need("dash");
    need_terminal();
    let line = format!(
        "{} -V 9 {options} -i in -o out -t 3000 -- {}",
        env!("CARGO_BIN_EXE_ffuzz"),
        steps().display()
    );
    let job = dir.program("python3").arg(repository("tests/data/terminal/keys.py"));
    let job = job.arg(end.to_string()).arg(text).arg("10").arg(line);
    job.run().expect(0).says("as it should be");
}

#[test]
fn ctrl_z_restores_the_terminal_and_fg_the_screen() {
    let dir = TestDir::with_seed("QUAAAA");
    stop_and_continue(&dir, libc::SIGTERM, "overall results", "");
    let stats = dir.stats();
    assert!(dir.stat("run_time") < 10, "{stats:?}");
    assert_eq!(dir.stat("saved_hangs"), 0, "{stats:?}");
}

#[test]
fn ctrl_z_pauses_the_workers_too() {
    let dir = TestDir::with_seed("QUAAAA");
    stop_and_continue(&dir, 3, "all workers", "-j 2");
    for worker in ["main", "worker01"] {
        assert_eq!(number(&dir, worker, "saved_hangs"), 0);
        assert!(number(&dir, worker, "run_time") < 10, "{:?}", stats(&dir, worker));
    }
}
