//! `-c`: comparisons that another build of the target logs.

use std::path::{Path, PathBuf};

use crate::common::{self, Job, TestDir, compiled_by, plain, target};

const LOGGING: (&str, &str) = ("AFL_LLVM_CMPLOG", "1");
const QUIET: (&str, &str) = ("AFL_QUIET", "1");

/// The compilers of AFL++ on this machine: Debian's, whose log has the layout of before 4.20, and one of today.
fn compilers() -> Vec<String> {
    common::need("afl-clang-fast");
    let mut all = vec!["afl-clang-fast".to_owned()];
    let newer = common::repository("target/bench-peers/aflplusplus-4.40c/afl-clang-fast");
    if newer.exists() {
        all.push(newer.display().to_string());
    } else {
        common::skip("AFL++ 4.40c is not built (benches/peers.sh)");
    }
    all
}

/// A target, and its build that logs.
fn builds(compiler: &str, flags: &str) -> [PathBuf; 2] {
    [&[QUIET][..], &[QUIET, LOGGING]]
        .map(|variables| compiled_by(compiler, variables, "secrets.c", flags))
}

fn seed() -> TestDir {
    TestDir::with_seed(".".repeat(40))
}

fn job(dir: &TestDir, options: &str, logger: &Path, target: &Path, words: &str) -> Job {
    let limit = if options.contains("-E") { "" } else { "-E 20000" };
    let job = dir.ffuzz("-i in -o out -t 3000 -s 1").words(limit).words(options);
    let job = job.env("AFL_BENCH_UNTIL_CRASH", "1").arg("-c").arg(logger).arg("--");
    job.arg(target).words(words)
}

#[test]
fn a_build_of_afl_shows_what_the_target_wants() {
    for compiler in compilers() {
        for (flags, words, options) in
            [("", "", ""), ("-DNAMED", "@@", ""), ("-DSHARED", "", "-l 2AT"), ("", "", "-m 200")]
        {
            let [target, logger] = builds(&compiler, flags);
            let dir = seed();
            let done = job(&dir, options, &logger, &target, words).run().expect(0);
            assert_eq!(dir.crashes().len(), 1, "{compiler} {flags} {options}");
            assert!(dir.stat("execs_done") < 2000, "{compiler} {flags} {options}");
            done.does_not_say("warning");
        }
        let [target, _] = builds(&compiler, "");
        let dir = seed();
        dir.fuzz("-s 1 -E 2000", &target, "").run().expect(0);
        assert!(dir.crashes().is_empty(), "{compiler}");
    }
}

#[test]
fn the_target_itself_can_be_such_a_build() {
    for compiler in compilers() {
        let [target, logger] = builds(&compiler, "");
        let dir = seed();
        job(&dir, "", Path::new("0"), &logger, "").run().expect(0);
        assert_eq!(dir.crashes().len(), 1, "{compiler}");
        let dir = seed();
        let job = job(&dir, "", Path::new("0"), &target, "");
        job.run().refused(1, "it was not built with AFL_LLVM_CMPLOG=1", "AFL_LLVM_CMPLOG=1");
    }
}

#[test]
fn builds_of_both_kinds_and_targets_of_both_kinds_fit_together() {
    let ours = target("secrets.c", "");
    let [theirs, logger] = builds(&compilers()[0], "");
    for (target, logger) in
        [(&theirs, &ours), (&ours, &logger), (&ours, &ours), (&ours, &PathBuf::from("0"))]
    {
        let dir = seed();
        job(&dir, "", logger, target, "").run().expect(0);
        assert_eq!(dir.crashes().len(), 1, "{target:?} {logger:?}");
    }
    // A program without instrumentation.
    let dir = seed();
    job(&dir, "-Q", &logger, &plain("secrets.c", ""), "").run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
    let dir = seed();
    job(&dir, "-j 2", &logger, &theirs, "").run().expect(0);
    let workers = dir.names("out");
    let folders = workers.iter().map(|name| dir.path(&format!("out/{name}/crashes")));
    let found = folders.filter(|folder| folder.read_dir().is_ok_and(|files| files.count() > 0));
    assert!(found.count() > 0, "{workers:?}");
}

#[test]
fn starting_seeds_are_left_alone_if_asked() {
    let [target, logger] = builds(&compilers()[0], "");
    let dir = seed();
    // So the length leads to nothing new.
    dir.write("in/short", ".");
    let job = job(&dir, "-E 2000", &logger, &target, "").env("AFL_CMPLOG_ONLY_NEW", "1");
    job.run().expect(0).does_not_say("warning");
    assert!(dir.crashes().is_empty());
}

#[test]
fn a_build_that_logs_nothing_is_refused_and_one_that_dies_is_left_out() {
    let [target, logger] = builds(&compilers()[0], "");
    let ours = common::target_by(&[QUIET, ("FFUZZ_NO_LOG", "1")], "secrets.c", "");
    let dir = seed();
    let refused = |logger: &Path, cause: &str, remedy: &str| {
        let done = job(&dir, "", logger, &target, "").run();
        done.refused(1, "-c ", remedy).says(cause);
    };
    refused(&target, "it was not built with AFL_LLVM_CMPLOG=1", "afl-clang-fast");
    refused(&ours, "the target logs no comparisons", "afl-clang-fast");
    refused(&plain("secrets.c", ""), "is not instrumented", "ffuzz-cc");
    refused(&dir.path("missing"), "cannot find", "its path");
    refused(&dir.write("text", "x"), "not an executable", "chmod");
    let done = job(&dir, "-n", &logger, &target, "").run();
    done.refused(2, "-n sees none", "leave -n or -c out");
    let done = job(&dir, "", &logger, &target, "").env("AFL_NO_FORKSRV", "1").run();
    done.refused(2, "-c needs a fork server", "unset");
    job(&dir, "-l 2Q", &logger, &target, "").run().refused(2, "Q is unknown", "letters");
    for compiler in compilers() {
        let [target, _] = builds(&compiler, "");
        let [_, dies] = builds(&compiler, "-DDIES");
        let dir = seed();
        let done = job(&dir, "-E 3000", &dies, &target, "").run().expect(0);
        let warnings = done.out.matches("the program of -c cannot be run any more").count();
        assert_eq!(warnings, 1, "{}", done.out);
        done.says("Execution limit was reached");
    }
}
