//! What a machine can refuse a fuzzer: each limit is reported with its remedy.

use crate::common;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use common::{Finished, Job, Running, SmallDisk, TestDir, plain, skip, target, wait_until};

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

/// Calls that are named in REFUSED fail with an error that some kernels, sandboxes and file systems give.
const REFUSED: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
static int is_refused(const char *name, int error) {
  const char *names = getenv("REFUSED");
  if (!names || !strstr(names, name)) return 0;
  errno = error;
  return 1;
}
int shmget(int key, size_t size, int flags) {
  if (is_refused("shmget", ENOSYS)) return -1;
  return ((int (*)(int, size_t, int))dlsym(RTLD_NEXT, "shmget"))(key, size, flags);
}
int flock(int fd, int how) {
  if (is_refused("flock", ENOLCK)) return -1;
  return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, how);
}
int symlink(const char *goal, const char *name) {
  if (is_refused("symlink", EPERM)) return -1;
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "symlink"))(goal, name);
}
int fsync(int fd) {
  if (is_refused("fsync", EINVAL)) return -1;
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
"#;

fn refusing(dir: &TestDir, calls: &str, job: Job) -> Finished {
    let source = dir.write("refuses.c", REFUSED);
    let library = plain(source.to_str().unwrap(), "-shared -fPIC -D_GNU_SOURCE -ldl");
    job.env("LD_PRELOAD", library.to_str().unwrap()).env("REFUSED", calls).run()
}

#[test]
fn a_kernel_without_a_call_for_shared_memory_is_named() {
    let dir = TestDir::with_seed("A");
    let done = refusing(&dir, "shmget", dir.fuzz("-E 200", &good(), "none"));
    done.refused(1, "cannot get shared memory", "the sandbox around ffuzz");
}

#[test]
fn a_file_system_without_locks_and_links_is_used_with_a_warning() {
    let dir = TestDir::with_seed("A");
    let done = refusing(&dir, "flock symlink", dir.fuzz("-E 200", &good(), "none"));
    done.expect(0).says("has no locks").says("has no links: read ");
    assert!(dir.path("out/default/fuzzer_stats").exists());
}

#[test]
fn triage_works_on_a_file_system_that_cannot_sync() {
    let dir = TestDir::new();
    dir.write("crashes/a", "Q");
    let job = dir.ffuzz("triage -o out crashes --").arg(good()).words("abort");
    refusing(&dir, "fsync", job).expect(0);
    let report = String::from_utf8(dir.read("out/triage/report.json")).unwrap();
    assert!(report.contains("\"bugs\": [\n    {"), "{report}");
}

#[test]
fn a_limit_on_addresses_is_named_for_a_target_with_a_sanitizer() {
    let dir = TestDir::with_seed("A");
    let job = dir.program("prlimit").arg(format!("--as={}", 8_u64 << 30));
    let job = job.arg(env!("CARGO_BIN_EXE_ffuzz")).words("-i in -o out -t 3000 -E 200 --");
    let done = job.arg(target("outcomes.c", "-fsanitize=address")).words("none").run();
    done.refused(1, "ended before its fork server was up", "ulimit -v allows 8192 MB");
}

#[test]
fn a_system_without_a_null_device_is_named() {
    let dir = TestDir::with_seed("A");
    let Some(done) = prepared(&dir, "-rm", "mount -t tmpfs none /dev") else { return };
    done.refused(1, "there is no /dev/null", "mknod");
}

/// Sets the soft limit of a process on open files.
fn limit_open_files(dir: &TestDir, pid: i32, most: u64) {
    let words = format!("--pid {pid} --nofile={most}:");
    dir.program("prlimit").words(&words).run().expect(0);
}

#[test]
fn a_moment_without_descriptors_while_the_target_starts_again_ends_nothing() {
    let dir = TestDir::with_seed("A");
    let mut running = dir.fuzz("-V 600 --run-mode fork", &good(), "").start();
    running.wait_for_campaign(&dir);
    let pid = running.pid();
    // The oldest process of the target is the fork server.
    let is_target = |process: &i32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        words.starts_with(good().as_os_str().as_encoded_bytes())
    };
    let server = running.processes().into_iter().filter(is_target).min().expect("a fork server");
    limit_open_files(&dir, pid, 3);
    kill(Pid::from_raw(server), Signal::SIGKILL).unwrap();
    running.wait_for("tried again for some seconds");
    limit_open_files(&dir, pid, 4096);
    running.wait_for("target restarted");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
}

/// Programs that compute without an end on one core; they end when dropped.
struct Rivals(Vec<Child>);

impl Rivals {
    fn start(core: usize, count: usize) -> Self {
        let mut set = CpuSet::new();
        set.set(core).unwrap();
        let start = |_| {
            let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            sched_setaffinity(Pid::from_raw(child.id().cast_signed()), &set).unwrap();
            child
        };
        Self((0..count).map(start).collect())
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        for rival in &mut self.0 {
            let _ = rival.kill();
            let _ = rival.wait();
        }
    }
}

fn first_core() -> usize {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).find(|core| set.is_set(*core).unwrap()).unwrap()
}

/// Runs of 10 ms on a core with eight rivals from the end of the dry run on; the share of them that was cut.
fn cut_share(mode: &str, flags: &str) -> f64 {
    let dir = TestDir::with_seed("A");
    let core = first_core();
    let job = dir.ffuzz(&format!("-i in -o out -s 1 -E 60 -b {core} --run-mode {mode} --"));
    let job = job.without_env("AFL_NO_AFFINITY").arg(target("busy.c", flags)).arg("10");
    let mut running = job.start();
    running.wait_for("fuzzing; Ctrl-C stops");
    let rivals = Rivals::start(core, 8);
    running.finish().expect(0);
    drop(rivals);
    dir.stat("total_tmout") as f64 / dir.stat("execs_done") as f64
}

#[test]
fn a_run_that_waits_for_a_core_is_not_slow() {
    for (mode, flags) in [("fork", ""), ("pipe", ""), ("persistent", "-DLOOP")] {
        let share = cut_share(mode, flags);
        assert!(share < 0.2, "{mode}: {share}");
    }
}

#[test]
fn a_run_that_sleeps_is_cut_at_a_limit_that_was_derived() {
    let dir = TestDir::with_seed("A");
    dir.write("in/slow", "L");
    let job = dir.ffuzz("-i in -o out -s 1 -E 60 --").arg(target("busy.c", "")).arg("0");
    let done = job.run().expect(0);
    done.says("takes longer than the timeout");
    assert!(dir.stat("total_tmout") > 0 && dir.stat("run_time") < 60, "{:?}", dir.stats());
}

#[test]
fn a_limit_that_cuts_most_runs_is_reported() {
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-s 1 -E 300 -t 20", &target("busy.c", "-DSHY"), "").run().expect(0);
    done.says("runs were cut by the time limit of 20 ms; set a longer one (-t 100)");
}

#[test]
fn what_a_killed_fuzzer_has_left_ends_with_the_next_start() {
    let state = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let dir = TestDir::with_seed("A");
    let target = target("stopping.c", "");
    let options = "-t 300000 --run-mode fork --";
    let start = |input: &str, dir: &TestDir| {
        dir.ffuzz(&format!("-i {input} -o out -V 100 {options}")).arg(target.clone()).start()
    };
    let stopped = |run: &Running| {
        wait_until("a stopped child", || run.processes().iter().any(|pid| state(pid) == Some('T')));
        run.processes().into_iter().find(|pid| state(pid) == Some('T')).unwrap()
    };
    // Another folder has nothing to do with it.
    let elsewhere = TestDir::with_seed("A");
    let (mut first, mut other) = (start("in", &dir), start("in", &elsewhere));
    let (left, others) = (stopped(&first), stopped(&other));
    first.kill_with_guards();
    other.kill_with_guards();
    assert_eq!([state(&left), state(&others)], [Some('T'); 2], "it is left");
    let again = start("-", &dir);
    wait_until("the end of what was left", || matches!(state(&left), None | Some('Z')));
    assert_eq!(state(&others), Some('T'));
    drop(again);
}
