//! `-Q`: programs that are not as most are. Each is fuzzed, or one line says why not.

use std::os::unix::fs::{PermissionsExt, chown};

use crate::common;
use common::*;

/// A program `t` of gcc, stripped.
fn build(dir: &TestDir, words: &str, source: &str) {
    let source = repository("tests/targets").join(source);
    dir.program("gcc").words("-w -O2 -s").words(words).arg(source).run().expect(0);
}

/// Memory that a program makes executable is its own: nothing there is changed, and it is gone after each run.
#[test]
fn code_that_is_made_by_the_program_runs_as_it_is() {
    let dir = TestDir::with_seed("JAxx");
    build(&dir, "-o t", "makes_code.c");
    let job = dir.fuzz("-Q -s 1 -E 50000", &dir.path("t"), "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0).does_not_say("differently");
    let stats = dir.stats();
    assert_eq!((dir.crashes().len(), dir.stat("snapshot_differs")), (1, 0), "{stats:#?}");
    assert_eq!(stats["run_mode"], "snapshot");
}

/// Neither breakpoints nor QEMU work where no code may be made.
#[test]
fn a_policy_that_forbids_writable_code_is_named() {
    let dir = TestDir::with_seed("xxxx");
    build(&dir, "-o t", "makes_code.c");
    build(&dir, "-DREFUSED -o refuse", "makes_code.c");
    let job = dir.program("./refuse").arg(env!("CARGO_BIN_EXE_ffuzz"));
    let job = job.words("-Q -t 3000 -V 5 -i in -o out --").arg(dir.path("t"));
    let job = job.env("AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES", "1").env("AFL_NO_AFFINITY", "1");
    let done = job.run();
    if done.code() == 77 {
        skip("this kernel has no PR_SET_MDWE");
        return;
    }
    done.refused(1, "its code cannot be made writable", "PR_SET_MDWE");
}

/// The loader ignores `LD_PRELOAD` there, and a copy in QEMU runs as the user.
#[test]
fn a_setuid_program_runs_in_the_emulator() {
    if !nix::unistd::geteuid().is_root() || !has("qemu-x86_64") {
        skip("no QEMU (package qemu-user), or no right to give a file to another user");
        return;
    }
    let dir = TestDir::with_seed("xxxx");
    build(&dir, "-o t", "halves.c");
    chown(dir.path("t"), Some(65534), None).unwrap();
    std::fs::set_permissions(dir.path("t"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    let done = dir.fuzz("-Q -s 1 -E 60", &dir.path("t"), "").run().expect(0);
    done.says("the target runs in qemu-x86_64: it runs as another user");
    assert!(dir.stat("edges_found") > 10 && dir.stats()["target_mode"].contains("qemu"));
    let job = dir.ffuzz("-Q --native -i in -o refused --").arg(dir.path("t"));
    job.run().refused(1, "runs as another user", "fuzz a copy of it");
}

#[test]
fn a_library_that_disappears_is_named_when_the_target_starts_again() {
    let dir = TestDir::with_seed("xxxx");
    dir.write(
        "part.c",
        "int part(const char *b) { return b[0] == 'H' ? b[1] == 'A' ? 2 : 1 : 0; }",
    );
    dir.write(
        "t.c",
        "#include <unistd.h>\nint part(const char *); int main(void) { char b[8] = {0}; \
         return read(0, b, 8) < 0 ? 9 : part(b); }",
    );
    dir.program("gcc").words("-w -O2 -s -shared -fPIC part.c -o libpart.so").run().expect(0);
    dir.program("gcc").words("-w -O2 -s t.c -o t -L. -lpart -Wl,-rpath,$ORIGIN").run().expect(0);
    let mut campaign = dir.fuzz("-Q -V 100", &dir.path("t"), "").start();
    campaign.wait_for_campaign(&dir);
    std::fs::remove_file(dir.path("libpart.so")).unwrap();
    let fuzzer = campaign.pid();
    for pid in campaign.processes().into_iter().filter(|pid| *pid != fuzzer) {
        let pid = nix::unistd::Pid::from_raw(pid);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    }
    let run = campaign.finish().expect(1);
    assert!(run.err.contains("libpart.so"), "{}", run.err);
    assert!(run.err.contains("LD_LIBRARY_PATH"), "{}", run.err);
    assert!(!dir.queue().is_empty());
}

/// Panics of Rust unwind through copied functions.
#[test]
fn a_program_of_rust_is_fuzzed() {
    let dir = TestDir::with_seed("r1");
    let source = repository("tests/targets/panics.rs");
    let job = dir.program("rustc").words("-O -C strip=symbols -o t").arg(source);
    job.run().expect(0);
    dir.fuzz("-Q -s 1 -E 3000", &dir.path("t"), "").run().expect(0).does_not_say("differently");
    let stats = dir.stats();
    assert_eq!((&*stats["run_mode"], dir.stat("snapshot_differs")), ("snapshot", 0), "{stats:#?}");
    assert!(dir.stat("corpus_found") > 3, "{stats:#?}");
}
