//! `ffuzz cmin`: nothing is lost, whatever happens on the way, and Debian's `afl-cmin` as the judge.

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::{Running, TestDir, afl_target, need, plain, target, wait_until};
use nix::sys::signal::Signal;

/// 200 inputs of several lengths, the same in every run; none crashes the target of counts.c.
fn inputs() -> TestDir {
    let dir = TestDir::new();
    let mut state = 7u32;
    for number in 0..200 {
        let mut next = || {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (state >> 16) as u8
        };
        let length = 1 + usize::from(next() % 8);
        let mut bytes: Vec<u8> = (0..length).map(|_| next()).collect();
        bytes[0] = if b"QZ".contains(&bytes[0]) { 1 } else { bytes[0] >> (number % 8) };
        dir.write(&format!("in/{number:03}"), bytes);
    }
    dir
}

/// Runs in batches.
const HARNESS: &str = "-DKEYS -DHARNESS -fsanitize=fuzzer";

fn counts(flags: &str) -> PathBuf {
    target("counts.c", &format!("-O0 {flags}"))
}

/// All tuples that the files of a folder show, as our showmap has them.
fn tuples(dir: &TestDir, folder: &str, target: &Path, options: &str) -> BTreeSet<String> {
    let maps = format!("{folder}-maps");
    let _ = fs::remove_dir_all(dir.path(&maps));
    dir.tool(&format!("showmap -q {options} -i {folder} -o {maps}"), target, "").run().expect(0);
    let texts = dir.names(&maps).into_iter().map(|name| dir.text(&format!("{maps}/{name}")));
    texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn values(dir: &TestDir, folder: &str, target: &Path) -> String {
    dir.showdsf(&format!("-q -i {folder}"), target, "").run().expect(0).out
}

/// Runs it and returns the names that it keeps.
fn kept(dir: &TestDir, options: &str, target: &Path) -> Vec<String> {
    let _ = fs::remove_dir_all(dir.path("out"));
    let done = dir.tool(&format!("cmin -i in -o out {options}"), target, "").run().expect(0);
    let names = dir.names("out");
    done.says(&format!("[+] Narrowed down to {} files, saved in 'out'.", names.len()));
    names
}

/// Links are not linked to, so each of them is copied.
#[test]
fn a_folder_whose_copies_are_not_on_the_disk_is_not_finished() {
    let dir = TestDir::new();
    dir.write("in/.hidden", "");
    for name in ["a", "b"] {
        dir.write(&format!("files/{name}"), name);
        symlink(dir.path(&format!("files/{name}")), dir.path(&format!("in/{name}"))).unwrap();
    }
    let source =
        "#include <errno.h>\nint syncfs(int fd) { errno = EIO; return fd < 0 ? 0 : -1; }\n";
    let fails = plain(dir.write("fails.c", source).to_str().unwrap(), "-shared -fPIC");
    let cmin = || dir.tool("cmin -i in -o out", &counts(""), "").env("AFL_QUIET", "1");
    let refused = cmin().env("LD_PRELOAD", fails.to_str().unwrap()).run();
    refused.refused(1, "Input/output error", "the disk has room");
    assert!(dir.path("out/.cmin").exists());
    cmin().run().expect(0);
    assert!(!dir.path("out/.cmin").exists());
}

#[test]
fn the_result_covers_all_tuples_and_best_values() {
    let dir = inputs();
    let afl = afl_target("counts.c", "-O0");
    for target in [counts(""), counts("-DKEYS"), counts(HARNESS), afl] {
        let names = kept(&dir, "", &target);
        assert!(names.len() > 3 && names.len() < 100, "{names:?}");
        assert_eq!(tuples(&dir, "out", &target, ""), tuples(&dir, "in", &target, ""));
        assert_eq!(values(&dir, "out", &target), values(&dir, "in", &target));
        for name in &names {
            let [from, to] = ["in", "out"].map(|side| dir.path(&format!("{side}/{name}")));
            assert_eq!(fs::metadata(from).unwrap().ino(), fs::metadata(to).unwrap().ino());
        }
        // What is kept is needed: nothing of it can go in a second run.
        fs::rename(dir.path("out"), dir.path("once")).unwrap();
        let job = dir.tool("cmin -i once -o out", &target, "");
        job.run().expect(0);
        assert!(dir.names("out").len() <= names.len());
        fs::remove_dir_all(dir.path("once")).unwrap();
    }
}

/// Snapshots only say what is dull; one that is wrong about it is found out, and not believed.
#[test]
fn snapshots_and_fork_keep_the_same_inputs() {
    let dir = inputs();
    for (number, text) in ["[1]", "{", "{[", "[[{", "{[["].iter().enumerate() {
        dir.write(&format!("in/text-{number}"), text);
    }
    for (target, differs) in [(counts("-DKEYS"), false), (target("refusing.c", "-DWATCHED"), true)]
    {
        let keep = |variable: &str| {
            let _ = fs::remove_dir_all(dir.path("out"));
            let done = dir.tool("cmin -T 2 -i in -o out", &target, "").env(variable, "1").run();
            (done.expect(0), dir.names("out"))
        };
        let (done, names) = keep("AFL_NO_COLOR");
        assert_eq!(done.err.contains("repeating all runs with fork"), differs, "{}", done.err);
        assert_eq!(names, keep("FFUZZ_NO_SNAPSHOT").1);
        assert!(dir.names("out").iter().all(|name| name != ".cmin"));
    }
}

#[test]
fn the_result_has_the_edges_of_afl_cmin() {
    need("afl-cmin");
    let dir = inputs();
    for target in [afl_target("counts.c", "-O0"), counts("")] {
        let ours = kept(&dir, "-e", &target);
        let theirs = dir.program("afl-cmin").words("-e -i in -o theirs --").arg(&target);
        theirs.env("AFL_ALLOW_TMP", "1").run().expect(0);
        let edges = |folder| tuples(&dir, folder, &target, "-e");
        assert_eq!(edges("out"), edges("theirs"));
        assert!(ours.len() <= dir.names("theirs").len());
        fs::remove_dir_all(dir.path("theirs")).unwrap();
    }
}

#[test]
fn a_queue_can_be_minimized_by_afl_cmin_too() {
    need("afl-cmin");
    let dir = TestDir::with_seed("AAAA");
    let steps = target("steps.c", "");
    dir.fuzz("-s 7 -E 20000", &steps, "").run().expect(0);
    assert!(dir.queue().len() >= 3, "{:?}", dir.queue());
    let theirs = dir.program("afl-cmin").words("-i out/default/queue -o theirs --").arg(&steps);
    theirs.env("AFL_ALLOW_TMP", "1").run().expect(0);
    // The instance's folder stands for its queue.
    dir.tool("cmin -i out/default -o ours", &steps, "").run().expect(0);
    let edges = |folder| tuples(&dir, folder, &steps, "-e");
    assert_eq!(edges("ours"), edges("out/default/queue"));
    assert_eq!(edges("theirs"), edges("ours"));
    let queue = dir.queue();
    assert!(dir.names("ours").iter().all(|name| queue.contains(name)));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_targets() {
    let dir = inputs();
    for number in 0..8 {
        dir.write(
            &format!("in/crash-{number}"),
            [b"Z".as_slice(), &vec![number; number.into()]].concat(),
        );
    }
    for target in [counts("-DKEYS"), counts(HARNESS)] {
        let one = kept(&dir, "-A -T 1", &target);
        assert_eq!(kept(&dir, "-A -T 3", &target), one);
        assert_eq!(kept(&dir, "-A", &target), one);
    }
}

/// Stops with the last, largest input, after all others.
fn interrupted(dir: &TestDir, signal: Signal) -> Running {
    dir.write("hang", "");
    let mut running = dir.tool("cmin -T 1 -i in -o out", &counts("-DKEYS"), "").start();
    let work = dir.path("out/.cmin");
    wait_until("traces of three chunks", || {
        fs::metadata(&work).is_ok_and(|data| data.len() > 0) && running.processes().len() >= 3
    });
    running.wait_for("Obtaining traces");
    wait_until("the last input", || dir.path("hung").exists());
    fs::remove_file(dir.path("hung")).unwrap();
    let mut last = 0;
    let mut quiet = 0;
    wait_until("the input that waits", || {
        let len = fs::metadata(&work).unwrap().len();
        quiet = if len == last && len > 500 { quiet + 1 } else { 0 };
        last = len;
        quiet > 100
    });
    running.signal(signal);
    running
}

#[test]
fn an_interrupted_minimization_is_resumed() {
    let dir = inputs();
    let expected = kept(&dir, "", &counts("-DKEYS"));
    dir.write("in/last", [b"Q".as_slice(), &[0; 100]].concat());
    let expected_with_last = kept(&dir, "", &counts("-DKEYS"));
    assert!(expected_with_last.len() >= expected.len());
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        fs::remove_dir_all(dir.path("out")).unwrap();
        let done = interrupted(&dir, signal).finish();
        if signal == Signal::SIGINT {
            assert_eq!(done.code(), 1);
            assert!(done.err.contains("run the same command to continue"), "{}", done.err);
        }
        assert_eq!(dir.names("out"), [".cmin"]);
        // Another command does not touch it.
        let other = dir.tool("cmin -t 500 -i in -o out", &counts("-DKEYS"), "").run();
        other.refused(1, "unfinished work of another", "the same inputs");
        fs::remove_file(dir.path("hang")).unwrap();
        let done = dir.tool("cmin -i in -o out", &counts("-DKEYS"), "").run().expect(0);
        done.says("[*] Continuing: 192 of 201 files are traced already.");
        assert_eq!(dir.names("out"), expected_with_last);
    }
}

#[test]
fn options_of_afl_cmin_name_results_and_keep_crashes() {
    let dir = TestDir::new();
    for (name, bytes) in
        [("one/a", "\x01\x01"), ("two/a", "\x09\x02"), ("two/z", "Z"), ("two/y", "Z")]
    {
        dir.write(name, bytes);
    }
    let run = |options: &str| {
        let _ = fs::remove_dir_all(dir.path("out"));
        let words = format!("cmin -i one -i two -o out --crash-dir crashes {options}");
        dir.tool(&words, &counts(""), "").run().expect(0)
    };
    run("").says("2 inputs crash, saved in 'crashes'").says("in 'one', 'two'");
    assert_eq!(dir.names("out"), ["a", "a_"]);
    // SHA-1 of "Z".
    assert_eq!(dir.names("crashes"), ["909f99a779adb66a76fc53ab56c7dd1caf35d0fd"]);
    run("--as_queue --no-dedup");
    assert_eq!(dir.names("out"), ["id:000000,orig:a", "id:000001,orig:a_"]);
    run("--as_queue");
    let names = dir.names("out");
    assert!(names.iter().all(|name| name.len() == "id:000000,hash:".len() + 40), "{names:?}");
    run("--debug").says("even");
    dir.tool("cmin -C -i one -o out --crash-dir crashes", &counts(""), "").run().expect(1);
}

#[test]
fn the_help_says_what_a_coverage_state_means_for_a_corpus() {
    let dir = TestDir::new();
    let done = dir.ffuzz("cmin --help").run().expect(0);
    done.says("Keep only inputs that go beyond this coverage state").does_not_say("Show only what");
}

#[test]
fn what_a_coverage_state_has_need_not_be_kept() {
    let dir = TestDir::new();
    dir.write("old/1", "\x01\x02\x05");
    dir.write("new/1", "\x01\x02\x05");
    dir.write("new/2", "\x09\x02\x05");
    dir.write("new/3", "\x01\x02\x07");
    let counts = counts("-DKEYS");
    let run = |options: &str| {
        let _ = fs::remove_dir_all(dir.path("out"));
        dir.tool(&format!("cmin -o out {options}"), &counts, "").run().expect(0);
        dir.names("out")
    };
    assert_eq!(run("-i old --save-coverage old.state"), ["1"]);
    assert_eq!(run("-i new --load-coverage old.state --save-coverage all.state"), ["2", "3"]);
    assert!(run("-i new --load-coverage all.state").is_empty());
    dir.showdsf("-q -i new --save-coverage dsf.state", &counts, "").run().expect(0);
    dir.ffuzz("merge --only-new all.state dsf.state").run().expect(0).says("beyond: 0 edges, 0");
    let beyond = |state: &str| {
        dir.showdsf(&format!("-q -i new --load-coverage {state}"), &counts, "").run().expect(0).out
    };
    assert_eq!(beyond("old.state").trim(), "dsf[2] = 7");
    assert_eq!(beyond("all.state"), "");
}

#[test]
fn inputs_that_crash_or_hang_are_treated_as_by_afl() {
    let dir = TestDir::new();
    for (name, bytes) in [("a", "\x01\x01"), ("q", "Q"), ("z", "Z"), ("zz", "ZZ")] {
        dir.write(&format!("in/{name}"), bytes);
    }
    dir.write("hang", "");
    let run = |options: &str| {
        dir.tool(&format!("cmin -t 3000 -i in -o out {options}"), &counts(""), "").run()
    };
    run("").expect(2).says("in/z crashes the target, and 1 more").says("hint: add -A");
    // Its traces are there, and serve any choice.
    run("-C").expect(0).says("4 of 4 files are traced already");
    assert_eq!(dir.names("out"), ["z"]);
    fs::remove_dir_all(dir.path("out")).unwrap();
    run("-A").expect(0);
    assert_eq!(dir.names("out"), ["a", "q", "z"]);
    for name in ["in/z", "in/zz", "out/a", "out/q", "out/z"] {
        fs::remove_file(dir.path(name)).unwrap();
    }
    run("").expect(1).says("in/q takes too long").says("-A");
}

#[test]
fn traces_can_be_kept() {
    let dir = inputs();
    let job = dir.tool("cmin -i in -o out", &counts(""), "").env("AFL_KEEP_TRACES", "1");
    job.run().expect(0);
    assert_eq!(dir.names("out/.traces"), dir.names("in"));
    dir.tool("showmap -q -Z -i in -o maps", &counts(""), "").run().expect(0);
    for name in dir.names("in") {
        let [kept, shown] =
            ["out/.traces", "maps"].map(|folder| dir.text(&format!("{folder}/{name}")));
        assert_eq!(kept, shown, "{name}");
    }
}

#[test]
fn unusual_inputs_are_handled() {
    let dir = TestDir::new();
    let counts = counts("");
    dir.write("in/a", "\x01\x01");
    dir.write("in/.hidden", "\x09\x01");
    dir.write("in/empty", "");
    dir.write("in/x/same", "\x11\x01");
    dir.write("in/y/same", "\x21\x01");
    let mut large = vec![0x81, 2];
    large.resize((1 << 20) + 1, 0);
    dir.write("in/large", &large);
    dir.write("elsewhere", "\x05\x01");
    symlink("../elsewhere", dir.path("in/link")).unwrap();
    symlink("nowhere", dir.path("in/dangling")).unwrap();
    symlink("..", dir.path("in/round")).unwrap();
    nix::unistd::mkfifo(&dir.path("in/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let done = dir.tool("cmin -i in -o out", &counts, "").run().expect(0);
    done.says("in/large is larger than 1 MiB").says("for 5 input files");
    assert_eq!(dir.names("out"), ["a", "large", "link", "same", "y_same"]);
    assert_eq!(dir.read("out/y_same"), b"\x21\x01");
    assert!(dir.read("out/large") == large, "the whole file is kept");
    assert!(!dir.path("out/link").is_symlink());
}

#[test]
fn wrong_inputs_and_options_are_refused() {
    let dir = TestDir::new();
    let counts = counts("");
    let refused = |options: &str, cause: &str, remedy: &str| {
        dir.tool(&format!("cmin {options}"), &counts, "").run().refused(1, cause, remedy);
    };
    refused("-i in -o out", "no inputs in \"in\"", "not empty");
    refused("-i nowhere -o out", "nowhere", "folder");
    dir.write("in/a", "A");
    refused("-i in -o in/out", "is inside of the input folder", "another -o");
    refused("-i in -o in", "is inside of the input folder", "another -o");
    refused("-i in -o out -T 0", "-T 0", "from 1");
    refused("-i in -o out -t 9", "-t 9", "at least 10");
    refused("-i in -o out -U", "-U (unicorn)", "ffuzz-cc");
    refused("--foo -i in -o out", "--foo is not an option of this program", "--help");
    refused("-i in -o out --save-coverage no/x", "no/x", "path given to --save-coverage");
    assert!(!dir.path("out").exists());
    dir.tool("cmin -i in -o out", &dir.path("none"), "").run().refused(1, "cannot find", "path");
    assert!(!dir.path("out").exists());
    dir.write("full/mine", "");
    refused("-i in -o full", "is not empty", "another -o");
    dir.write("file", "");
    refused("-i in -o file", "file", "writable");
    let ends = target("initial.c", "");
    fs::set_permissions(&ends, fs::Permissions::from_mode(0o644)).unwrap();
    let done = dir.tool("cmin -i in -o out", &ends, "").run();
    fs::set_permissions(&ends, fs::Permissions::from_mode(0o755)).unwrap();
    done.refused(1, "not an executable", "chmod");
    dir.ffuzz("cmin").run().expect(1);
    dir.ffuzz("cmin --help").run().expect(0).says("Examples:");
}
