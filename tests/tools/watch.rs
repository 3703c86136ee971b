//! `ffuzz cmin --watch`: inputs that appear later, until a signal.

use crate::common;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use common::{Job, Running, TestDir, plain, target, wait_until};
use nix::sys::signal::Signal;

fn counts(flags: &str) -> PathBuf {
    target("counts.c", &format!("-O0 {flags}"))
}

fn job(dir: &TestDir, options: &str) -> Job {
    dir.tool(&format!("cmin --watch -i in -o out {options}"), &counts("-DKEYS"), "")
}

/// Starts it and waits for the end of the first pass.
fn started(job: Job) -> Running {
    let mut running = job.start();
    running.wait_for("Watching for new inputs");
    running
}

fn end(running: Running, signal: Signal) -> common::Finished {
    running.signal(signal);
    running.finish().expect(0)
}

/// Moves a complete file there.
fn put(dir: &TestDir, name: &str, content: &[u8]) {
    let made = dir.write("made", content);
    fs::create_dir_all(dir.path(name).parent().unwrap()).unwrap();
    fs::rename(made, dir.path(name)).unwrap();
}

fn kept(dir: &TestDir) -> Vec<String> {
    dir.names("out").into_iter().filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn inputs_that_appear_are_kept_if_they_reach_something_new() {
    for flags in ["-DKEYS", "-DKEYS -DHARNESS -fsanitize=fuzzer"] {
        let dir = TestDir::new();
        dir.write("in/a", "\x01\x01");
        dir.write("in/same", "\x01\x03");
        let words = "cmin --watch -i in -o out --crash-dir crashes";
        let mut running = started(dir.tool(words, &counts(flags), ""));
        assert_eq!(kept(&dir), ["a"]);
        // Grows until another file is kept.
        let mut slow = fs::File::create(dir.path("in/slow")).unwrap();
        put(&dir, "in/new/folder/nothing", b"\x01\x03");
        put(&dir, "in/new/folder/count", b"\x09\x01");
        let mut whole = vec![0x21, 1];
        slow.write_all(&whole).unwrap();
        wait_until("the complete file", || {
            slow.write_all(b"\x00").unwrap();
            whole.push(0);
            dir.path("out/count").exists()
        });
        running.wait_for("[+] Kept in/new/folder/count as out/count");
        assert_eq!(kept(&dir), ["a", "count"]);
        drop(slow);
        wait_until("the file that grew", || dir.path("out/slow").exists());
        assert_eq!(dir.read("out/slow"), whole);
        // The best value of a domain, written in place of an input that is kept.
        dir.write("in/a", "\x01\x01\x09");
        wait_until("the new content", || dir.path("out/a_").exists());
        assert_eq!([dir.text("out/a"), dir.text("out/a_")], ["\x01\x01", "\x01\x01\x09"]);
        put(&dir, "in/z", b"Z");
        running.wait_for("[!] The target crashed by signal 6 on in/z");
        // SHA-1 of "Z".
        assert_eq!(dir.names("crashes"), ["909f99a779adb66a76fc53ab56c7dd1caf35d0fd"]);
        put(&dir, "in/last", b"\x81\x01");
        wait_until("the last one", || dir.path("out/last").exists());
        let done = end(running, Signal::SIGINT);
        done.says("[+] Added 5 files to 'out'.").does_not_say("out/same");
        assert_eq!(dir.names("out"), ["a", "a_", "count", "last", "slow"]);
    }
}

#[test]
fn a_second_start_knows_what_is_kept() {
    let dir = TestDir::new();
    let running = started(job(&dir, "--as_queue --no-dedup"));
    put(&dir, "in/a", b"\x01\x01");
    wait_until("the first one", || dir.path("out/id:000000,orig:a").exists());
    job(&dir, "").run().refused(1, "another cmin is running", "another -o");
    let other = dir.tool("cmin -i in -o out", &counts("-DKEYS"), "").run();
    other.refused(1, "another cmin is running", "another -o");
    end(running, Signal::SIGTERM).says("Added 1 files");
    put(&dir, "in/b", b"\x01\x05");
    put(&dir, "in/c", b"\x05\x01");
    // Killed: the mark in the folder stays.
    let running = started(job(&dir, "--as_queue --no-dedup"));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.finish().status.code(), None);
    assert_eq!(dir.names("out"), [".cmin", "id:000000,orig:a", "id:000001,orig:c"]);
    let other = dir.tool("cmin -i in -o out", &counts("-DKEYS"), "").run();
    other.refused(1, "unfinished work of another", "remove the folder");
    let done = end(started(job(&dir, "")), Signal::SIGINT);
    done.says("'out' has 2 files, which are kept").says("Added 0 files");
    // The traces of another command are left alone.
    dir.write("in/z", "Z");
    dir.tool("cmin -i in -o two", &counts("-DKEYS"), "").run().expect(2);
    let words = "cmin --watch -i in -o two";
    let refused = dir.tool(words, &counts("-DKEYS"), "").run();
    refused.refused(1, "unfinished work of another", "remove the folder");
}

#[test]
fn options_that_choose_inputs_hold_for_later_ones() {
    let dir = TestDir::new();
    dir.write("in/a", "\x01\x01");
    let running = started(job(&dir, "-e -A --save-coverage all.state"));
    for (name, content) in [("b", b"\x09\x01"), ("y", b"\x01\x02"), ("z", b"ZZ")] {
        put(&dir, &format!("in/{name}"), content);
    }
    wait_until("two of them", || dir.path("out/y").exists() && dir.path("out/z").exists());
    end(running, Signal::SIGHUP).says("Added 3 files");
    assert_eq!(dir.names("out"), ["a", "y", "z"]);
    // Nothing goes beyond the state.
    fs::remove_dir_all(dir.path("out")).unwrap();
    let running = started(job(&dir, "-C --load-coverage all.state"));
    put(&dir, "in/other", b"Z!");
    put(&dir, "in/q", b"\x01\x01\x07");
    end(running, Signal::SIGINT).says("Added 0 files");
    let running = started(job(&dir, "-C"));
    end(running, Signal::SIGINT).says("Kept in/other as out/other").says("Added 1 files");
}

#[test]
fn a_signal_ends_the_first_pass_and_runs_that_take_long() {
    let dir = TestDir::new();
    dir.write("hang", "");
    dir.write("in/q", "Q");
    let running = job(&dir, "").start();
    wait_until("the input that waits", || dir.path("hung").exists());
    end(running, Signal::SIGINT).says("Added 0 files");
    assert!(dir.names("out").is_empty());
    // In time it is an input that fails, and others are run.
    let mut running = job(&dir, "-t 500").start();
    running.wait_for("it exceeded the timeout on in/q");
    put(&dir, "in/a", b"\x01\x01");
    wait_until("the next one", || dir.path("out/a").exists());
    end(running, Signal::SIGTERM);
    fs::remove_file(dir.path("in/q")).unwrap();
    fs::remove_file(dir.path("hung")).unwrap();
    let running = started(job(&dir, ""));
    put(&dir, "in/q", b"Q");
    wait_until("the input that waits", || dir.path("hung").exists());
    end(running, Signal::SIGTERM);
}

#[test]
fn inputs_that_cannot_be_read_are_named_once() {
    let dir = TestDir::new();
    let source = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <string.h>\n\
        int open64(const char *path, int flags, int mode) {\n\
        if (strstr(path, \"/locked\")) { errno = EACCES; return -1; }\n\
        int (*real)(const char *, int, int) = dlsym(RTLD_NEXT, \"open64\");\n\
        return real(path, flags, mode);\n}\n";
    let fails = plain(dir.write("fails.c", source).to_str().unwrap(), "-shared -fPIC");
    dir.write("in/a", "\x01\x01");
    dir.write("in/locked", "\x05\x01");
    std::os::unix::fs::symlink("nowhere", dir.path("in/dangling")).unwrap();
    let running = started(job(&dir, "").env("LD_PRELOAD", fails.to_str().unwrap()));
    put(&dir, "in/locked-later", b"\x09\x01");
    put(&dir, "in/b", b"\x11\x01");
    wait_until("the one that can be read", || dir.path("out/b").exists());
    put(&dir, "in/c", b"\x21\x01");
    wait_until("the next one", || dir.path("out/c").exists());
    let done = end(running, Signal::SIGINT);
    for name in ["locked", "locked-later"] {
        let line =
            format!("[!] cannot read \"in/{name}\": Permission denied (os error 13); skipped");
        assert_eq!(done.err.matches(&line).count(), 1, "{}", done.err);
    }
    assert_eq!(dir.names("out"), ["a", "b", "c"]);
}

#[test]
fn what_makes_no_sense_with_it_is_refused() {
    let dir = TestDir::new();
    let refused = |options: &str, cause: &str, remedy: &str| {
        job(&dir, options).run().refused(1, cause, remedy);
        assert!(!dir.path("out").exists());
    };
    refused("-i nowhere", "cannot read the folder \"nowhere\"", "give a folder of inputs");
    dir.write("in/a", "a");
    refused("--crash-dir in/crashes", "--crash-dir in/crashes is inside", "another --crash-dir");
    refused("-f in/file", "-f in/file is inside", "another -f");
    let traces = job(&dir, "").env("AFL_KEEP_TRACES", "1").run();
    traces.refused(1, "AFL_KEEP_TRACES cannot be used with --watch", "ffuzz-showmap -Z");
    let inside = dir.tool("cmin --watch -i in -o in/out", &counts("-DKEYS"), "").run();
    inside.refused(1, "is inside of the input folder", "another -o");
}
