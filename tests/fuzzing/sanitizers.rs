//! `-w`: sanitizer builds beside the target.

use std::path::PathBuf;
use std::time::Duration;

use ffuzz::config::options::TargetOptions;
use ffuzz::engine::corpus::Origin;
use ffuzz::engine::coverage::{Classes, map_hash};
use ffuzz::engine::executor::Executor;
use ffuzz::exec::{ForkServer, Setup};
use ffuzz::mutate::Candidate;

use crate::common::{self, Job, TestDir, afl_target, plain, target, target_by};

const ASAN: &str = "-fsanitize=address";

/// Seeds that hit all edges but those of the crash, and never two of them at once.
fn seeds() -> TestDir {
    let dir = TestDir::with_seed("A.");
    dir.write("in/b", ".B");
    dir
}

fn job(dir: &TestDir, options: &str, target: &PathBuf, build: &PathBuf) -> Job {
    dir.ffuzz("-i in -o out -t 3000 -z -w").arg(build).words(options).arg("--").arg(target)
}

/// Files of crashes that only the sanitizer build shows, and the others.
fn crashes(dir: &TestDir) -> [Vec<String>; 2] {
    let (sanitizer, target) = dir.crashes().into_iter().partition(|name| name.contains(",+san"));
    [sanitizer, target]
}

#[test]
fn a_path_of_known_edges_is_run_in_the_sanitizer_build() {
    for (mode, flags) in
        [("batch", "-DLOOP"), ("persistent", "-DLOOP"), ("snapshot", ""), ("fork", "")]
    {
        let dir = seeds();
        let build = target("both.c", &format!("{flags} {ASAN}"));
        let options = format!("-s 3 -E 5000 --run-mode {mode}");
        let done = job(&dir, &options, &target("both.c", flags), &build).run().expect(0);
        let [sanitizer, target] = crashes(&dir);
        assert!(sanitizer.len() == 1 && !target.is_empty(), "{mode}: {sanitizer:?} {target:?}");
        assert_eq!(&dir.read(&format!("out/default/crashes/{}", sanitizer[0]))[..2], b"AB");
        done.says(", 1 only in a sanitizer build");
        let names = dir.names("out/default");
        assert!(!names.iter().any(|name| name.contains("cur_input")), "{names:?}");
        // Each path once, not each run.
        let runs = dir.stat("sanitizer_execs");
        assert!((4..30).contains(&runs), "{mode}: {runs}");
        assert_eq!(dir.stat("sanitizer_crashes"), 1);
        // A resumed campaign continues to count.
        let resumed = dir.ffuzz("-i - -o out -t 3000 -z -E 1000 -w").arg(&build).arg("--");
        resumed.arg(common::target("both.c", flags)).run().expect(0);
        assert!(dir.stat("sanitizer_execs") >= runs && dir.stat("sanitizer_crashes") == 1);
    }
}

/// The target and the fuzzer compute the same number for a path.
#[test]
fn a_path_has_one_hash_on_both_sides() {
    for (flags, classes) in
        [("-DLOOP", Classes::Binary), ("-DLOOP", Classes::Counts), ("", Classes::Binary)]
    {
        let program = target("both.c", flags);
        let options = TargetOptions::for_command(vec![program.into()]);
        let dir = TestDir::new();
        let setup = Setup::new(&options, &dir.path("input"), None).unwrap();
        let mut executor = ForkServer::start(setup, Duration::from_secs(30)).unwrap();
        let inputs = ["", "..", "A.", ".B", "A..", "AB"].map(|input| input.as_bytes().to_vec());
        let batch = inputs.map(|bytes| Candidate { bytes, origin: Origin::default() });
        // The first run of a loop has the edges of the start as well.
        executor.observe(b"").unwrap();
        let mut shown = Vec::new();
        for candidate in &batch {
            shown.push(map_hash(executor.observe(&candidate.bytes).unwrap().edges, classes));
        }
        // Nothing is new any more.
        executor.learn_edges(&vec![0; executor.info().map_size()]);
        executor.settings_mut().paths = Some(classes);
        let (mut next, mut quiet) = (0, Vec::new());
        while next < batch.len() {
            let run = executor.run(&batch, &mut next).unwrap();
            // Some runs by snapshot are checked.
            let seen = run.map(|run| (run.index, map_hash(run.edges, classes)));
            quiet.extend_from_slice(executor.quiet_paths());
            quiet.extend(seen);
        }
        quiet.sort_unstable();
        assert_eq!(quiet, shown.into_iter().enumerate().collect::<Vec<_>>(), "{flags} {classes:?}");
    }
}

#[test]
fn so_are_seeds_imports_and_the_inputs_of_other_builds() {
    // A seed that is fine in the target.
    let dir = TestDir::with_seed("AB");
    let build = target("both.c", ASAN);
    job(&dir, "-s 1 -E 500", &target("both.c", ""), &build).run().expect(0);
    assert_eq!(crashes(&dir)[0].len(), 1);
    // A build without counters: a kind of crash is known by the edges of the target.
    let dir = seeds();
    let variables = [("AFL_LLVM_ONLY_FSRV", "1"), ("AFL_QUIET", "1")];
    let build = target_by(&variables, "both.c", ASAN);
    job(&dir, "-s 3 -E 20000", &target("both.c", "-DLOOP"), &build).run().expect(0);
    assert_eq!(crashes(&dir)[0].len(), 1);
    // A target and a sanitizer build of AFL++.
    let dir = seeds();
    let build = afl_target("both.c", &format!("-DLOOP {ASAN}"));
    job(&dir, "-s 3 -E 20000", &afl_target("both.c", "-DLOOP"), &build).run().expect(0);
    assert_eq!(crashes(&dir)[0].len(), 1);
}

#[test]
fn what_counts_as_a_path_can_be_chosen() {
    let (fast, build) = (target("both.c", "-DLOOP"), target("both.c", &format!("-DLOOP {ASAN}")));
    for (abstraction, found) in
        [("simplify_trace", 1), ("unique_trace", 1), ("coverage_increase", 0)]
    {
        let dir = seeds();
        let job = job(&dir, "-s 3 -E 20000", &fast, &build);
        job.env("AFL_SAN_ABSTRACTION", abstraction).run().expect(0);
        assert_eq!(crashes(&dir)[0].len(), found, "{abstraction}");
    }
    let dir = seeds();
    let without = dir.fuzz("-E 100", &fast, "").env("AFL_SAN_ABSTRACTION", "unique_trace");
    without.run().expect(0).says("AFL_SAN_ABSTRACTION has no effect without -w");
    let job = job(&dir, "", &fast, &build).env("AFL_SAN_ABSTRACTION", "all");
    job.run().refused(1, "AFL_SAN_ABSTRACTION=all is unknown", "coverage_increase");
}

#[test]
fn two_workers_and_two_builds() {
    let dir = seeds();
    let fast = target("both.c", "-DLOOP");
    let [plain, build] = ["", ASAN].map(|flags| target("both.c", &format!("-DLOOP {flags}")));
    let job =
        dir.ffuzz_and_triage("-i in -o out -t 3000 -z -j 2 -E 200000 -w").arg(&plain).arg("-w");
    let done = job.arg(&build).arg("--").arg(&fast).run().expect(0);
    done.says("has no sanitizer").says("only in a sanitizer build");
}

#[test]
fn a_build_that_cannot_run_is_refused_or_left_out() {
    let dir = seeds();
    let fast = target("both.c", "-DLOOP");
    let missing = dir.path("missing");
    job(&dir, "", &fast, &missing).run().refused(1, "-w", "give its path");
    let text = dir.write("text", "no program");
    job(&dir, "", &fast, &text).run().refused(1, "-w", "");
    job(&dir, "", &fast, &plain("both.c", "")).run().refused(1, "is not instrumented", "ffuzz-cc");
    job(&dir, "-n", &fast, &target("both.c", ASAN)).run().refused(2, "-n", "leave -n or -w out");
    // One whose fork server ends, and cannot be started again.
    let dies = target("both.c", "-DDIES");
    let done = job(&dir, "-s 1 -E 3000 --run-mode fork", &fast, &dies).run().expect(0);
    done.says("a build of -w cannot be run any more").says("Execution limit was reached");
}
