//! A campaign goes on where it stopped, without running its queue once more.

use crate::common;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use common::{Finished, Job, TestDir, plain, target, target_with, wait_until};

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
fn known_seeds_are_not_run_again_and_the_state_is_restored() {
    let dir = TestDir::with_seed("m1");
    dir.write("in/alpha", "alpha");
    // The first thousands of runs may go to comparisons.
    begin(&dir, 30_000, &islands());
    let (queue, before) = (dir.queue(), dir.stats());
    assert!(queue.len() > 3, "{queue:?}");
    // One more run, and the campaign ends.
    let finished = go_on(&dir, "-p", 1, &islands()).says(&resumed(queue.len(), 0));
    assert_eq!(dir.queue()[..queue.len()], queue, "{}", finished.out);
    let after = dir.stats();
    let kept =
        ["dsf0_best", "dsf0_keys", "edges_found", "corpus_favored", "last_find", "max_depth"];
    for key in kept.into_iter().chain(["dsf0_waypoints"]) {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_ne!(after["dsf0_waypoints"], "0");
    let execs =
        |stats: &std::collections::BTreeMap<String, String>| stats["execs_done"].parse::<u64>();
    let more = execs(&after).unwrap() - execs(&before).unwrap();
    assert!(more < 300, "{more} runs, {finished:?}", finished = finished.out);
}

#[test]
fn what_was_learned_of_comparisons_is_restored() {
    let dir = TestDir::with_seed(".".repeat(48));
    let program = target("tests/challenges/nested.c", "-O2 -fsanitize=fuzzer");
    begin(&dir, 200_000, &program);
    let state = || -> Value { serde_json::from_str(&dir.text("out/default/state.json")).unwrap() };
    let before = state();
    let stages = &before["stages"];
    assert_ne!(stages["comparisons"], json!({}), "{stages}");
    let (shared, logs) = (&stages["inputs"], &stages["inputs"]["logs"]);
    assert_ne!(shared["deciding"], json!({}), "{shared}");
    let mut fields = logs["fields"].as_object().unwrap().values();
    assert!(fields.any(|checked| checked["has_fields"] == true), "{logs}");
    assert_ne!(logs["repairs"]["fields"], json!({}), "{logs}");
    assert_ne!(logs["results"]["places"], json!([]), "{logs}");
    assert_ne!(before["blockers"]["sites"], json!({}), "{before}");
    // Nothing is solved that would change it.
    go_on(&dir, "-p -c -", 1, &program);
    let after = state();
    assert_eq!(&after["stages"], stages);
    assert_eq!(after["blockers"], before["blockers"]);
}

#[test]
fn seeds_missing_from_the_state_are_run() {
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

fn resume(dir: &TestDir) -> Job {
    dir.ffuzz("-i - -o out -p -t 3000 -s 6 -E 1 --").arg(islands()).env("AFL_NO_UI", "1")
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[test]
fn the_state_is_there_as_soon_as_the_seeds_are_taken_in() {
    let dir = TestDir::with_seed("m1");
    let mut running = dir.fuzz("-p -s 5", &islands(), "").env("AFL_NO_UI", "1").start();
    running.wait_for("fuzzing; Ctrl-C stops");
    // It is written again after a minute only.
    assert!(dir.text("out/default/state.json").contains("orig:seed"));
    running.signal(Signal::SIGKILL);
    running.finish().expect(128 + 9);
}

#[test]
fn an_impossible_state_is_dropped_with_one_warning() {
    let dir = TestDir::with_seed("m1");
    begin(&dir, 2000, &islands());
    for (from, to, flaw) in [
        (
            "\"comparisons\":",
            "\"comparisons\":[],\"old\":",
            "what it says of comparisons is impossible",
        ),
        ("\"trace\":[", "\"trace\":[4294967295,", "an entry has edges that do not exist"),
        ("\"map_size\":", "\"map_size\":922337203685477580", "its map is not that of the target"),
        (
            "\"repairs\":{\"fields\":{}",
            "\"repairs\":{\"fields\":{\"7\":{\"side\":2,\"encoding\":\"Bytes\",\"at\":0}}",
            "what it says of inputs is impossible",
        ),
    ] {
        let state = dir.text("out/default/state.json");
        let (state, _) = state.split_once(",\"check\"").unwrap();
        dir.write("out/default/state.json", state.replacen(from, to, 1) + "}");
        let done = resume(&dir).run().expect(0).says(flaw).does_not_say("panicked");
        assert_eq!(done.out.matches("state.json").count(), 1, "{}", done.out);
        resume(&dir).run().expect(0).does_not_say("state.json");
    }
}

#[test]
fn special_files_in_the_queue_do_not_block() {
    let dir = TestDir::with_seed("m1");
    begin(&dir, 2000, &islands());
    let own = |name: &str| dir.path("out/default").join(name);
    for name in ["queue/id:000777,x", "crashes/id:000007,sig:06", "fuzzer_stats", "state.json"] {
        fifo(&own(name));
    }
    symlink("nowhere", own("queue/id:000778,x")).unwrap();
    let mine = dir.write("mine", "mine");
    symlink(&mine, own(".new_file")).unwrap();
    let done = resume(&dir).run().expect(0);
    done.says("queue/id:000777,x is not a regular file (2 such): not read")
        .says("crashes/id:000007,sig:06 is not a regular file (1 such): not read")
        .says("it is a FIFO, not a regular file");
    assert_eq!(dir.text("mine"), "mine");
    assert!(dir.stats().contains_key("execs_done"));
    // A file that is appended to is neither replaced nor followed.
    fs::remove_file(own("plot_data")).unwrap();
    symlink(&mine, own("plot_data")).unwrap();
    resume(&dir).run().refused(1, "plot_data: it is not a regular file", "move");
    fifo(&own("plot_data"));
    resume(&dir).run().refused(1, "plot_data: it is not a regular file", "move");
    assert_eq!(dir.text("mine"), "mine");
    fs::remove_file(own("plot_data")).unwrap();
    // A line that a killed process has not finished stays apart from the next.
    dir.write("out/default/plot_data", "# relative_time\n1, 2,");
    resume(&dir).run().expect(0);
    assert!(dir.text("out/default/plot_data").starts_with("# relative_time\n1, 2,\n"));
    // Others could put their files in the place of ours.
    fs::set_permissions(own("queue"), fs::Permissions::from_mode(0o777)).unwrap();
    resume(&dir).run().expect(0).says("every user can write to").says("chmod 700");
}

#[test]
fn a_queue_that_may_not_be_read_is_named() {
    let dir = TestDir::with_seed("m1");
    begin(&dir, 300, &islands());
    let instance = dir.path("out/default");
    let close = |mode| fs::set_permissions(&instance, fs::Permissions::from_mode(mode)).unwrap();
    close(0);
    let ffuzz = env!("CARGO_BIN_EXE_ffuzz");
    let job = if nix::unistd::geteuid().is_root() {
        let without = "--bounding-set=-dac_override,-dac_read_search";
        dir.program("setpriv").words(without).arg(ffuzz)
    } else {
        dir.program(ffuzz)
    };
    let done = job.words("-i - -o out --").arg(islands()).run();
    close(0o700);
    done.refused(1, "Permission denied", "permissions");
}

/// A library to preload: what it does with some calls of ffuzz.
fn preloaded(dir: &TestDir, source: &str) -> String {
    let source = dir.write("fails.c", source);
    let library = plain(source.to_str().unwrap(), "-shared -fPIC -D_GNU_SOURCE -ldl");
    library.display().to_string()
}

/// `rename` to a path that contains FAIL_PATH fails FAIL_COUNT times with FAIL_ERROR.
const RENAME: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
int rename(const char *from, const char *to) {
  static int done;
  const char *path = getenv("FAIL_PATH");
  if (path && strstr(to, path) && done < atoi(getenv("FAIL_COUNT"))) {
    done++;
    errno = atoi(getenv("FAIL_ERROR"));
    return -1;
  }
  int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  return next(from, to);
}
"#;

fn failing(dir: &TestDir, path: &str, count: u32, error: i32) -> Finished {
    let library = preloaded(dir, RENAME);
    let _ = fs::remove_dir_all(dir.path("out"));
    let job = dir.fuzz("-p -s 5 -E 2000", &islands(), "").env("AFL_NO_UI", "1");
    let job = job.env("LD_PRELOAD", &library).env("FAIL_PATH", path);
    job.env("FAIL_COUNT", &count.to_string()).env("FAIL_ERROR", &error.to_string()).run()
}

/// `open` and `fsync` of a path that contains FAIL_PATH fail with FAIL_ERROR, from call FAIL_FROM to FAIL_TO; if
/// FAIL_WRITES is set, writes at a position instead.
const OPEN: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails_at(const char *path) {
  static int calls;
  if (!getenv("FAIL_PATH") || !strstr(path, getenv("FAIL_PATH"))) return 0;
  if (++calls < atoi(getenv("FAIL_FROM")) || calls > atoi(getenv("FAIL_TO"))) return 0;
  errno = atoi(getenv("FAIL_ERROR"));
  return 1;
}
static int fails(const char *path) { return !getenv("FAIL_WRITES") && fails_at(path); }
static const char *name(int fd) {
  static char path[4096];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  return path;
}
int open64(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
  return fails(path) ? -1 : next(path, flags, mode);
}
int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  int mode = va_arg(list, int);
  va_end(list);
  int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  return fails(path) ? -1 : next(path, flags, mode);
}
int fsync(int fd) {
  if (fails(name(fd))) return -1;
  int (*next)(int) = dlsym(RTLD_NEXT, "fsync");
  return next(fd);
}
ssize_t pwrite64(int fd, const void *from, size_t length, off_t at) {
  if (getenv("FAIL_WRITES") && fails_at(name(fd))) return -1;
  ssize_t (*next)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
  return next(fd, from, length, at);
}
"#;

/// A campaign in which these calls for a path fail.
fn failing_opens(
    dir: &TestDir,
    path: &str,
    (from, to): (u32, u32),
    error: i32,
    words: &str,
) -> Finished {
    let library = preloaded(dir, OPEN);
    let _ = fs::remove_dir_all(dir.path("out"));
    let source = if words.is_empty() { "crashing.c" } else { "reader.c" };
    let job = dir.fuzz("-s 5 -E 3000 --run-mode fork", &target(source, ""), words);
    let job = job.env("LD_PRELOAD", &library).env("FAIL_PATH", path);
    let job = job.env("FAIL_FROM", &from.to_string()).env("FAIL_TO", &to.to_string());
    job.env("FAIL_ERROR", &error.to_string()).run()
}

const PASSING: [i32; 4] = [libc::EIO, libc::EMFILE, libc::ENFILE, libc::EACCES];

#[test]
fn a_temporary_error_of_the_input_file_does_not_end_the_campaign() {
    let dir = TestDir::with_seed("QUIAAA");
    for error in PASSING {
        let done = failing_opens(&dir, ".cur_input", (50, 52), error, "@@").expect(0);
        done.says("tried again for some seconds").says("Execution limit was reached");
        assert!(dir.stat("execs_done") >= 3000);
    }
    // One that stays has its own remedy.
    let done = failing_opens(&dir, ".cur_input", (50, 1_000_000), libc::EIO, "@@");
    done.refused(1, ".cur_input", "see dmesg");
}

#[test]
fn so_is_one_of_writing_what_a_target_reads_as_its_standard_input() {
    let dir = TestDir::with_seed("QUIAAA");
    for (error, said) in
        [(libc::EIO, "tried again for some seconds"), (libc::ENOSPC, "paused until there is room")]
    {
        let library = preloaded(&dir, OPEN);
        let _ = fs::remove_dir_all(dir.path("out"));
        let job = dir.fuzz("-s 5 -E 3000 --run-mode pipe", &target("reader.c", ""), "");
        let job = job.env("LD_PRELOAD", &library).env("FAIL_PATH", "memfd:ffuzz-input");
        let job = job.env("FAIL_WRITES", "1").env("FAIL_FROM", "50").env("FAIL_TO", "52");
        let done = job.env("FAIL_ERROR", &error.to_string()).run().expect(0);
        done.says(said).says("Execution limit was reached");
        assert!(dir.stat("execs_done") >= 3000);
    }
}

#[test]
fn a_crash_whose_folder_cannot_be_synced_is_saved_once() {
    let dir = TestDir::with_seed("PAAA");
    // The folder is opened, then synced.
    let first = PASSING.into_iter().map(|error| (1, error));
    for (call, error) in first.chain([(2, libc::EIO), (3, libc::EIO), (4, libc::EIO)]) {
        let done = failing_opens(&dir, "/crashes", (call, call), error, "").expect(0);
        done.does_not_say("exists").says("Execution limit was reached");
        assert_eq!(dir.crashes().len() as u64, dir.stat("saved_crashes"));
        assert!(!dir.crashes().is_empty());
    }
}

#[test]
fn a_temporary_error_does_not_end_the_campaign() {
    let dir = TestDir::with_seed("m1");
    for error in PASSING {
        let done = failing(&dir, "/queue/id:", 3, error).expect(0);
        let done = done.says("tried again for some seconds").says("Testing aborted");
        assert_eq!(done.out.matches("tried again").count(), 1, "{}", done.out);
        assert_eq!(dir.queue().len() as u64, dir.stat("corpus_count"));
    }
}

#[test]
fn a_permanent_error_has_its_own_remedy() {
    let remedies = [
        (libc::EIO, "see dmesg"),
        (libc::EMFILE, "ulimit -n"),
        (libc::ENFILE, "fs.file-max"),
        (libc::EACCES, "permissions"),
    ];
    thread::scope(|scope| {
        for (error, remedy) in remedies {
            scope.spawn(move || {
                let dir = TestDir::with_seed("m1");
                failing(&dir, "/queue/id:", 1_000_000, error).refused(1, "cannot write", remedy);
            });
        }
    });
}

#[test]
fn numbers_that_could_not_be_written_at_the_end_are_an_error() {
    let dir = TestDir::with_seed("m1");
    let done = failing(&dir, "/fuzzer_stats", 1_000_000, libc::ENOSPC);
    done.refused(1, "no room left to write", "free some space");
    // One that passes costs nothing.
    failing(&dir, "/fuzzer_stats", 2, libc::EIO).expect(0);
    assert!(dir.stat("execs_done") >= 2000);
}

#[test]
fn a_lock_that_cannot_be_released_causes_no_panic() {
    let dir = TestDir::with_seed("m1");
    let source = "#include <errno.h>\n#include <sys/file.h>\n#include <sys/syscall.h>\n\
                  #include <unistd.h>\nint flock(int fd, int how) {\n\
                  if (how == LOCK_UN) { errno = EIO; return -1; }\n\
                  return syscall(SYS_flock, fd, how); }\n";
    let library = preloaded(&dir, source);
    let job = dir.fuzz("-p -s 5 -E 300", &islands(), "").env("LD_PRELOAD", &library);
    job.run().expect(0).does_not_say("panicked");
    // The process is gone, and its lock with it.
    resume(&dir).run().expect(0);
}

#[test]
fn files_that_are_deleted_under_a_campaign_are_written_again() {
    let dir = TestDir::with_seed("m1");
    let job = dir.fuzz("-p -s 5", &islands(), "").env("AFL_NO_UI", "1");
    let mut running = job.env("AFL_FUZZER_STATS_UPDATE_INTERVAL", "1").start();
    running.wait_for_campaign(&dir);
    wait_until("finds", || dir.queue().len() > 3);
    let deleted = dir.queue();
    for name in &deleted {
        fs::remove_file(dir.path("out/default/queue").join(name)).unwrap();
    }
    running.wait_for("are gone: they are written again");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    let queue = dir.queue();
    assert!(deleted.iter().all(|name| queue.contains(name)), "{deleted:?} {queue:?}");
    assert_eq!(queue.len() as u64, dir.stat("corpus_count"));
    assert!(dir.stat("peak_rss_mb") > 0);
}

#[test]
fn a_start_that_ends_early_runs_no_seed_twice() {
    let dir = TestDir::new();
    for number in 0..20 {
        dir.write(&format!("in/{number:02}"), format!("seed {number}"));
    }
    let target = target("gates.c", "");
    dir.fuzz("-s 1 -E 60", &target, "").run().expect(0);
    let resumed = dir.ffuzz("-i - -o out -s 1 -E 400").arg("--").arg(target).run().expect(0);
    let said = "resumed: 20 queue entries, ";
    let at = resumed.out.find(said).unwrap_or_else(|| panic!("{}", resumed.out)) + said.len();
    let again: u32 = resumed.out[at..].split(' ').next().unwrap().parse().unwrap();
    assert!((10..20).contains(&again), "{}", resumed.out);
}
