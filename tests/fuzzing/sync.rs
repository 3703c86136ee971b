//! Several fuzzers in one output folder: who takes over what from whom.

use crate::common;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use common::{Job, Running, TestDir, need, plain, target_with, wait_until};

fn islands() -> PathBuf {
    target_with("mem", "islands.c", "")
}

/// A folder in which each fuzzer has seeds of its own, `in-NAME`.
fn with_seeds(seeds: &[(&str, &[&str])]) -> TestDir {
    let dir = TestDir::new();
    for (name, inputs) in seeds {
        for (number, input) in inputs.iter().enumerate() {
            dir.write(&format!("in-{name}/{number}"), input);
        }
    }
    dir
}

fn instance(dir: &TestDir, role: &str, name: &str, options: &str, target: &Path) -> Job {
    let words = format!("{options} -i in-{name} -o out {role} {name} -t 3000 --");
    dir.ffuzz(&words).arg(target).env("AFL_NO_UI", "1")
}

/// Names of what `name` has from `peer` (empty: from anyone), with the marks.
fn taken(dir: &TestDir, name: &str, peer: &str) -> Vec<String> {
    if !dir.path(&format!("out/{name}/queue")).exists() {
        return Vec::new();
    }
    let mut entries = dir.entries(&format!("out/{name}/queue"));
    let mark = if peer.is_empty() { ",sync:".to_owned() } else { format!(",sync:{peer},src:") };
    entries.retain(|entry| entry.contains(&mark));
    entries
}

fn has_taken(dir: &TestDir, name: &str, input: &str) -> bool {
    let is_input =
        |entry: &String| dir.read(&format!("out/{name}/queue/{entry}")) == input.as_bytes();
    taken(dir, name, "").iter().any(is_input)
}

fn stop(running: Running) {
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
}

#[test]
fn all_fuzzers_of_a_mixed_campaign_import_from_each_other() {
    need("afl-fuzz");
    let dir = with_seeds(&[("afl", &["alpha"]), ("plain", &["betaa"]), ("domains", &["gamma"])]);
    let target = islands();
    let mut plain = instance(&dir, "-S", "plain", "", &target).start();
    let mut domains = instance(&dir, "-S", "domains", "-p", &target).start();
    plain.wait_for("fuzzing; Ctrl-C stops");
    domains.wait_for("fuzzing; Ctrl-C stops");
    let afl = dir.program("afl-fuzz").words("-M afl -i in-afl -o out -t 3000 --").arg(&target);
    // Else it looks at others once in half an hour, or when it has been through its queue.
    let afl = afl.env("AFL_IMPORT_FIRST", "1").env("AFL_SKIP_CPUFREQ", "1");
    let afl = afl.env("AFL_NO_UI", "1").start();
    // From whom is chance: an input goes on from each who has it.
    for (name, inputs) in [
        ("afl", ["betaa", "gamma"]),
        ("plain", ["alpha", "gamma"]),
        ("domains", ["alpha", "betaa"]),
    ] {
        for input in inputs {
            wait_until(&format!("{name} to import {input}"), || has_taken(&dir, name, input));
        }
    }
    for running in [domains, plain, afl] {
        stop(running);
    }
    // The numbers are AFL's, whoever wrote them.
    for name in ["plain", "domains"] {
        let position = dir.read(&format!("out/{name}/.synced/afl"));
        assert_eq!(position.len(), 4, "{name}");
        let imported = common::stats_of(&dir.text(&format!("out/{name}/fuzzer_stats")));
        assert!(imported["corpus_imported"].parse::<u32>().unwrap() >= 2, "{imported:?}");
    }
}

#[test]
fn a_waypoint_is_imported_by_instances_with_domains() {
    // One path, and three sizes; the largest is with the others.
    let dir = with_seeds(&[("one", &["m5", "mA", "mz"]), ("two", &["m0"]), ("three", &["m0"])]);
    let target = islands();
    stop_after(instance(&dir, "-M", "one", "-z -E 300", &target));
    let options = "-p -z -s 1 -E 3000";
    stop_after(instance(&dir, "-S", "two", options, &target).env("AFL_IMPORT_FIRST", "1"));
    stop_after(instance(&dir, "-S", "three", "-z -E 300", &target).env("AFL_IMPORT_FIRST", "1"));
    let marked = taken(&dir, "two", "one").iter().filter(|name| name.ends_with(",+dsf")).count();
    assert!(marked >= 1, "{:?}", taken(&dir, "two", "one"));
    assert!(!taken(&dir, "three", "one").iter().any(|name| name.contains("+dsf")));
}

fn stop_after(job: Job) {
    job.run().expect(0);
}

#[test]
fn a_find_arrives_while_a_turn_lasts_and_nothing_is_read_twice() {
    let dir = with_seeds(&[("one", &["xxxxx"])]);
    let running = instance(&dir, "-S", "one", "", &islands()).start();
    let mut running = running;
    running.wait_for("fuzzing; Ctrl-C stops");
    // A tool that is no fuzzer writes a queue, piece by piece.
    dir.write("out/tool/queue/.part", "alpha");
    let put = |from: &str, to: &str| fs::rename(dir.path(from), dir.path(to)).unwrap();
    put("out/tool/queue/.part", "out/tool/queue/id:000004,any");
    wait_until("the first", || taken(&dir, "one", "tool").len() == 1);
    dir.write("out/tool/queue/.part", "betaa");
    put("out/tool/queue/.part", "out/tool/queue/id:000009,any");
    wait_until("the second", || taken(&dir, "one", "tool").len() == 2);
    // It starts over, with numbers that were there before.
    fs::remove_dir_all(dir.path("out/tool")).unwrap();
    dir.write("out/.part", "gamma");
    let position = || dir.read("out/one/.synced/tool");
    wait_until("the position", || position() == [10, 0, 0, 0]);
    fs::create_dir_all(dir.path("out/tool/queue")).unwrap();
    put("out/.part", "out/tool/queue/id:000000,any");
    wait_until("the third", || taken(&dir, "one", "tool").len() == 3);
    stop(running);
    assert_eq!(position(), [1, 0, 0, 0]);
    let names = taken(&dir, "one", "tool");
    for (name, number) in names.iter().zip([4, 9, 0]) {
        assert!(name.contains(&format!(",sync:tool,src:{number:06},+cov")), "{names:?}");
    }
}

#[test]
fn stray_files_in_a_peers_queue_do_no_harm() {
    let dir = with_seeds(&[("one", &["xxxxx"])]);
    dir.write("out/tool/queue/id:000000,empty", "");
    dir.write("out/tool/queue/id:000001,large", vec![b'x'; (1 << 20) + 1]);
    dir.write("out/tool/queue/id:99999999999999999999,x", "huge number");
    dir.write("out/tool/queue/core.1234", "not a number");
    let fifo = dir.path("out/tool/queue/id:000002,fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", dir.path("out/tool/queue/id:000003,zero")).unwrap();
    symlink("nowhere", dir.path("out/tool/queue/id:000004,broken")).unwrap();
    // Whoever writes to the queue need not be allowed to read that file.
    let secret = dir.write("secret", "alpha");
    symlink(secret, dir.path("out/tool/queue/id:000005,secret")).unwrap();
    symlink(dir.path("out/tool"), dir.path("out/linked")).unwrap();
    dir.write("elsewhere/id:000000,secret", "alpha");
    std::fs::create_dir(dir.path("out/hollow")).unwrap();
    symlink(dir.path("elsewhere"), dir.path("out/hollow/queue")).unwrap();
    dir.write("out/tool/queue/id:000700,good", "alpha");
    dir.write("out/file", "no folder");
    dir.write("out/empty/nothing", "no queue");
    let job = instance(&dir, "-M", "one", "-E 300", &islands()).env("AFL_IMPORT_FIRST", "1");
    let finished = job.run().expect(0);
    let finished = finished.says("has no number: such files are not imported");
    let finished = finished.says("is a link: links are not imported");
    for name in ["tool", "linked"] {
        let said = format!("out/{name}/queue has no number");
        assert_eq!(finished.out.matches(&said).count(), 1, "{}", finished.out);
    }
    let names = [taken(&dir, "one", "tool"), taken(&dir, "one", "linked")].concat();
    assert!(names.len() == 1 && names[0].contains(",src:000700"), "{names:?}");
    assert!(taken(&dir, "one", "hollow").is_empty());
}

#[test]
fn folders_of_other_tools_are_imported_and_the_final_sync_is_complete() {
    let dir = with_seeds(&[("one", &["xxxxx"])]);
    dir.write("theirs/5f2a", "alpha");
    dir.write("theirs/README.txt", "not an input");
    let target = islands();
    let options = "-F theirs -E 300";
    let job = || instance(&dir, "-M", "one", options, &target).env("AFL_FINAL_SYNC", "1");
    job().run().expect(0);
    assert_eq!(taken(&dir, "one", "theirs_0").len(), 1);
    dir.write("theirs/77aa", "betaa");
    job().env("AFL_AUTORESUME", "1").words("").run().expect(0);
    let taken = taken(&dir, "one", "theirs_0");
    assert_eq!(taken.len(), 2, "{taken:?}");
    let job = dir.ffuzz("-i in-one -o other -F missing --").arg(&target);
    job.run().refused(1, "-F: ", "create it, or leave -F out");
}

#[test]
fn syncing_can_be_disabled() {
    let dir = with_seeds(&[("one", &["xxxxx"])]);
    dir.write("out/tool/queue/id:000000,x", "alpha");
    let job = instance(&dir, "-M", "one", "-E 300", &islands()).env("AFL_IMPORT_FIRST", "1");
    job.env("AFL_NO_SYNC", "1").run().expect(0);
    assert_eq!(taken(&dir, "one", "tool"), Vec::<String>::new());
    // And without a name it has no peers.
    let job = dir.ffuzz("-i in-one -o out -E 300 --").arg(islands()).env("AFL_IMPORT_FIRST", "1");
    job.run().expect(0);
    assert_eq!(taken(&dir, "default", "tool"), Vec::<String>::new());
}

#[test]
fn an_unreadable_folder_is_reported_once_and_when_readable_again() {
    let dir = with_seeds(&[("main", &["alpha"])]);
    dir.write("closed/1", "betaa");
    dir.write("open/0", "gamma");
    let (library, closed) = (plain("closed.c", "-shared -fPIC"), dir.path("closed"));
    let mark = dir.write("closed.mark", "");
    let options = format!("-F {} -F {}", closed.display(), dir.path("open").display());
    let job = instance(&dir, "-M", "main", &options, &islands());
    let job = job.env("LD_PRELOAD", library.to_str().unwrap());
    let mut running = job.env("CLOSED", closed.to_str().unwrap()).start();
    let warning = format!("cannot read {}: ", closed.display());
    running.wait_for(&warning);
    // How far a folder was read is written with the next look.
    let read = || fs::read(dir.path("out/main/.synced/open_1")).map_or(0, |bytes| bytes[0]);
    for number in 1..=5 {
        wait_until(&format!("input {number} read"), || read() == number);
        let name = number.to_string();
        dir.write("new", [number]);
        fs::rename(dir.path("new"), dir.path("open").join(name)).unwrap();
    }
    let count = |running: &Running, text: &str| running.said().matches(text).count();
    assert_eq!(count(&running, &warning), 1, "{}", running.said());
    fs::remove_file(mark).unwrap();
    running.wait_for("closed can be read again");
    wait_until("the input in it", || has_taken(&dir, "main", "betaa"));
    assert_eq!(count(&running, &warning), 1, "{}", running.said());
    stop(running);
}
