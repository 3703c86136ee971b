//! What a machine can refuse a fuzzer: each limit is reported with its remedy.

use crate::common;
use std::path::PathBuf;

use common::{Finished, Job, SmallDisk, TestDir, skip, target};

fn good() -> PathBuf {
    target("outcomes.c", "")
}

/// `ffuzz` behind another program that sets the limits.
fn limited(dir: &TestDir, by: &str) -> Job {
    let (program, words) = by.split_once(' ').unwrap();
    let job = dir.program(program).words(words).arg(env!("CARGO_BIN_EXE_ffuzz"));
    job.words("-i in -o out -t 3000 -E 200 --").arg(good()).words("none")
}

/// The same with a namespace of its own, in which `script` prepares the machine; None for somebody
/// who may not have one.
fn prepared(dir: &TestDir, kind: &str, script: &str) -> Option<Finished> {
    let unshare = || dir.program("unshare").words(kind);
    if unshare().arg("true").run().code() != 0 {
        skip(&format!("unshare {kind} is not allowed"));
        return None;
    }
    let fuzz = format!(
        "{script} && exec {} -i in -o out -t 3000 -E 200 -- {} none",
        env!("CARGO_BIN_EXE_ffuzz"),
        good().display()
    );
    let job = unshare().words("sh -c").arg(fuzz);
    Some(job.without_env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES").run())
}

#[test]
fn crashes_that_go_to_a_helper() {
    let dir = TestDir::with_seed("A");
    dir.write("pattern", "|/usr/share/helper %p");
    let bind = "mount --bind pattern /proc/sys/kernel/core_pattern";
    let Some(done) = prepared(&dir, "-rm", bind) else { return };
    done.refused(1, "crashes go to a helper program", "echo core | sudo tee");
    assert!(!dir.path("out").exists());
}

#[test]
fn shared_memory_beyond_the_limits_of_the_system() {
    let dir = TestDir::with_seed("A");
    let lower = "echo 4096 > /proc/sys/kernel/shmmax";
    let Some(done) = prepared(&dir, "-i", lower) else { return };
    done.refused(1, "cannot get shared memory of 8388608 bytes", "kernel.shmmax");
    let none = "echo 0 > /proc/sys/kernel/shmmni";
    let Some(done) = prepared(&dir, "-i", none) else { return };
    done.refused(1, "cannot get shared memory", "kernel.shmmni");
}

#[test]
fn shared_memory_beyond_a_limit_of_the_process() {
    let dir = TestDir::with_seed("A");
    // The program itself needs about 40 MB of addresses.
    for megabytes in (20..200).step_by(4) {
        let done = limited(&dir, &format!("prlimit --as={}", megabytes << 20)).run();
        if done.err.contains("cannot get shared memory") {
            done.refused(1, "Cannot allocate memory", "ulimit -v");
            return;
        }
        let is_reported = done.code() == 0 || done.err.contains("hint: ") || done.out.is_empty();
        assert!(is_reported, "{megabytes} MB: {}{}", done.out, done.err);
        std::fs::remove_dir_all(dir.path("out")).unwrap_or_default();
    }
    panic!("no limit was reported");
}

#[test]
fn too_few_open_files() {
    let dir = TestDir::with_seed("A");
    let done = limited(&dir, "prlimit --nofile=100:100").run();
    done.refused(1, "needs the file descriptors up to 199", "ulimit -n 200");
    // The soft limit alone is no obstacle.
    limited(&dir, "prlimit --nofile=100:4000").run().expect(0);
}

#[test]
fn a_core_that_this_process_may_not_use() {
    let dir = TestDir::with_seed("A");
    for core in ["1000", "5000"] {
        let job = dir.fuzz(&format!("-b {core}"), &good(), "none");
        let job = job.without_env("AFL_NO_AFFINITY");
        job.run().refused(1, &format!("cannot bind to core {core}"), "leave -b out");
    }
    let job = dir.fuzz("-E 100", &good(), "none").without_env("AFL_NO_AFFINITY");
    job.run().expect(0);
}

#[test]
fn a_disk_without_room_for_a_start() {
    let dir = TestDir::with_seed("A");
    let Some(_disk) = SmallDisk::mount(dir.path("disk"), "size=1m,nr_inodes=2") else { return };
    let job = dir.ffuzz("-i in -o disk/out --").arg(good()).words("none");
    job.run().refused(1, "no room left to write", "free some space");
}

#[test]
fn a_disk_that_is_read_only() {
    let dir = TestDir::with_seed("A");
    let Some(disk) = SmallDisk::mount(dir.path("disk"), "size=1m") else { return };
    dir.write("disk/in/seed", "A");
    disk.make_read_only();
    let job = dir.ffuzz("-i in -o disk/out --").arg(good()).words("none");
    job.run().refused(1, "Read-only file system", "a place that is writable");
    // As a source of seeds it is as good as any.
    let job = dir.ffuzz("-i disk/in -o out -s 1 -E 100 --").arg(good()).words("none");
    job.run().expect(0);
}

#[test]
fn a_file_that_may_not_grow() {
    let dir = TestDir::with_seed(vec![b'A'; 100_000]);
    let done = limited(&dir, "prlimit --fsize=50000").run();
    done.refused(1, "the limit on file sizes", "ulimit -f unlimited");
}
