//! Runs by snapshot show what runs by fork show, whatever a program does to its process.

use crate::common;
use crate::server;
use std::path::Path;
use std::time::Duration;

use common::*;
use ffuzz::config::options::RunMode;
use ffuzz::engine::executor::{Executor, ExitKind, SnapshotRuns};
use ffuzz::engine::feedback::Judge;
use ffuzz::exec::{ForkServer, RunResult};
use server::{candidates, field, kill, memory_and_descriptors, options, processes, shown};

/// Long enough for a fork on a machine that is busy otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is done to a process, as in `targets/state.c`: what is undone behind the run ...
const UNDONE: &[u8] = b"mnMNvlgGUzZwbLEfcCRDFdosXeqQpu35678";
/// ... and what needs a process of its own.
const FORKED: &[u8] = b"!BxhatTkKSPrAiIyWOYj24";

fn start(target: &Path, words: &str, mode: RunMode, dir: &TestDir) -> ForkServer {
    server::start(&options(target, words, mode), TIMEOUT, &dir.path(".input"))
}

/// Each run begins at main.
fn start_at_main(target: &Path, words: &str, dir: &TestDir) -> ForkServer {
    let mut options = options(target, words, RunMode::Snapshot);
    options.snapshots_at_main = true;
    server::start(&options, TIMEOUT, &dir.path(".input"))
}

#[track_caller]
fn assert_same(target: &Path, words: &str, inputs: &[Vec<u8>], forks: u64) -> SnapshotRuns {
    let ours = TestDir::new();
    let server = start(target, words, RunMode::Snapshot, &ours);
    assert_shows_same(server, (target, words), inputs, forks)
}

#[track_caller]
fn assert_shows_same(
    mut server: ForkServer,
    (target, words): (&Path, &str),
    inputs: &[Vec<u8>],
    forks: u64,
) -> SnapshotRuns {
    let theirs = TestDir::new();
    let now = shown(&mut server, inputs);
    let runs = server.info().snapshot_runs().unwrap();
    assert_eq!(server.info().run_mode().name(), "snapshot", "{runs:?} {:?}", server.take_notes());
    let wanted = shown(&mut start(target, words, RunMode::Fork, &theirs), inputs);
    assert_eq!(now.len(), inputs.len());
    for (index, (now, wanted)) in now.iter().zip(&wanted).enumerate() {
        assert_eq!(now, wanted, "input {index}: {:?}", String::from_utf8_lossy(&inputs[index]));
    }
    assert_eq!((runs.by_fork, runs.differences), (forks, 0), "{runs:?}");
    assert!(runs.pages > runs.runs, "{runs:?}");
    runs
}

/// Each kind with two clean runs behind it, which find out what is left of it. Those that need a fork are
/// rare enough for snapshots to be kept.
fn misbehaviours() -> Vec<Vec<u8>> {
    let mut inputs = vec![];
    for (place, how) in FORKED.iter().enumerate() {
        inputs.extend([vec![*how, b'-'], vec![b'.'], vec![b'.', b'.']]);
        for kind in UNDONE.iter().cycle().skip(place * 7).take(7) {
            inputs.extend([vec![*kind, b'-'], vec![b'.'], vec![b'.', b'.']]);
        }
    }
    inputs
}

/// Looks at its state before it reads, so runs begin at main; and again with the order reversed.
fn leaves_no_trace(flags: &str) {
    let (dir, inputs, forks) = (TestDir::new(), misbehaviours(), FORKED.len() as u64);
    let state = target("state.c", flags);
    assert_shows_same(start_at_main(&state, "", &dir), (&state, ""), &inputs, forks);
    let reader = target("state.c", &format!("{flags} -DREAD_FIRST"));
    assert_same(&reader, "", &inputs, forks);
}

#[test]
fn what_a_run_does_to_its_process_does_not_reach_the_next() {
    leaves_no_trace("");
}

#[test]
fn runs_are_isolated_with_address_sanitizer() {
    leaves_no_trace("-fsanitize=address");
}

#[test]
fn runs_are_isolated_with_undefined_behaviour_sanitizer() {
    leaves_no_trace("-fsanitize=undefined");
}

#[test]
fn runs_are_isolated_with_memory_sanitizer() {
    leaves_no_trace("-fsanitize=memory");
}

#[test]
fn runs_are_isolated_in_a_static_program() {
    leaves_no_trace("-static");
}

#[test]
fn runs_are_isolated_at_a_fixed_address() {
    leaves_no_trace("-no-pie");
}

/// The reason is said, and all results are those of fork.
fn goes_by_fork((source, flags): (&str, &str), runs: usize, cause: &str) {
    goes_by_fork_with((&target(source, flags), ""), runs, cause);
}

fn goes_by_fork_with((target, words): (&Path, &str), runs: usize, cause: &str) {
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let inputs = mutants(runs);
    let mut server = start(target, words, RunMode::Snapshot, &ours);
    let now = shown(&mut server, &inputs);
    let notes = server.take_notes();
    assert_eq!(server.info().run_mode().name(), "fork", "{cause}: {notes:?}");
    let one = notes.len() == 1 && notes[0].contains("runs use fork") && notes[0].contains(cause);
    assert!(one, "{notes:?}, not {cause}");
    let wanted = shown(&mut start(target, words, RunMode::Fork, &theirs), &inputs);
    assert_eq!(now, wanted, "{cause}");
}

#[test]
fn a_program_that_cannot_be_restored_is_forked_and_the_reason_reported() {
    for (flags, cause) in [
        ("-DTHREAD", "threads before main"),
        ("-DSHARED", "shares memory"),
        ("-DTIMER", "a timer runs"),
        ("-DDESCRIPTOR", "file descriptors 180 to 196"),
        ("-DEACH_RUN", "it starts processes or threads"),
        ("-DPROLOGUE", "it starts processes or threads"),
    ] {
        goes_by_fork(("refusing.c", flags), 60, cause);
    }
}

/// Whether it depends on the clock is seen only seconds later.
#[test]
fn a_program_that_differs_when_it_is_restored_is_forked_in_the_end() {
    let watched = target("refusing.c", "-DWATCHED");
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let inputs = mutants(60);
    let mut server = start(&watched, "", RunMode::Snapshot, &ours);
    wait_until("runs by fork", || {
        shown(&mut server, &inputs);
        server.info().run_mode().name() == "fork"
    });
    let notes = server.take_notes();
    let cause = "runs use fork instead of snapshots: 4 runs had other results than with fork: 2 edges, the first";
    assert!(notes.len() == 1 && notes[0].contains(cause), "{notes:?}");
    let now = shown(&mut server, &inputs);
    assert_eq!(now, shown(&mut start(&watched, "", RunMode::Fork, &theirs), &inputs));
}

/// A fork a second later differs as well.
#[test]
fn a_program_that_depends_on_the_clock_is_restored_all_the_same() {
    let dir = TestDir::new();
    let mut server = start(&target("timed.c", ""), "", RunMode::Snapshot, &dir);
    // All is new, so each run is compared with its fork.
    server.learn_edges(&vec![0xff; server.info().map_size()]);
    let start = std::time::Instant::now();
    wait_until("differences, and the seconds in which a fork is repeated", || {
        server.observe(b"text").unwrap();
        let differences = server.info().snapshot_runs().unwrap().differences;
        differences > 5 && start.elapsed() > std::time::Duration::from_secs(7)
    });
    assert_eq!(server.info().run_mode().name(), "snapshot", "{:?}", server.take_notes());
}

#[test]
fn a_program_that_is_slower_to_restore_is_forked() {
    goes_by_fork(("memories.c", "-DCALLS"), 600, "runs took longer than with fork");
}

/// Bytes of all seeds.
fn seeds(dir: &TestDir) -> Vec<Vec<u8>> {
    dir.queue().iter().map(|name| dir.read(&format!("out/default/queue/{name}"))).collect()
}

/// Kernels before 6.7 answer the scan with ENOTTY, and have no asynchronous mode; what containers refuse
/// is up to them.
#[test]
fn without_kernel_support_a_campaign_uses_fork_and_finds_the_same() {
    let (reader, forbidding) = (target("texts.c", ""), plain("forbidding.c", ""));
    let forked = TestDir::with_seed("[1, {\"a\": 2}]");
    let options = "-i in -o out -t 3000 -s 1 -E 2000 --run-mode";
    forked.ffuzz(options).words("fork --").arg(&reader).run().expect(0);
    for (request, error, cause) in [
        ("userfaultfd", libc::ENOSYS, "userfaultfd is refused"),
        ("userfaultfd", libc::EPERM, "userfaultfd is refused"),
        ("async", libc::EINVAL, "userfaultfd is refused"),
        ("scan", libc::ENOTTY, "the kernel has no PAGEMAP_SCAN"),
        ("scan", libc::EINVAL, "the kernel has no PAGEMAP_SCAN"),
        ("seccomp", libc::EPERM, "seccomp is refused"),
        ("seccomp", libc::ENOSYS, "seccomp is refused"),
    ] {
        let dir = TestDir::with_seed("[1, {\"a\": 2}]");
        let job = dir.program(forbidding.to_str().unwrap()).words(request);
        let job = job.arg(error.to_string()).arg(env!("CARGO_BIN_EXE_ffuzz")).words(options);
        let done = job.words("snapshot --").arg(&reader).run().expect(0);
        let lines = done.err.lines().chain(done.out.lines());
        let said: Vec<&str> = lines.filter(|line| line.contains("runs use fork")).collect();
        assert!(said.len() == 1 && said[0].contains(cause), "{request} {error}: {said:?}");
        let stats = dir.stats();
        assert_eq!(stats["run_mode"], "fork", "{request} {error}");
        assert!(stats["snapshot_why"].contains(cause), "{request} {error}: {stats:?}");
        assert_eq!(seeds(&dir), seeds(&forked), "{request} {error}");
    }
}

/// What is new is made by fork even long after the start.
#[test]
fn snapshots_report_no_false_finds() {
    let watched = target("refusing.c", "-DWATCHED");
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let mut server = start(&watched, "", RunMode::Snapshot, &ours);
    shown(&mut server, &vec![b"text".to_vec(); 3000]);
    assert_eq!(server.info().snapshot_runs().unwrap().differences, 0);
    server.learn_edges(&vec![0xff; server.info().map_size()]);
    let wanted =
        RunResult::of(&start(&watched, "", RunMode::Fork, &theirs).observe(b"{}").unwrap());
    for batched in [false, true] {
        // The child that differed is gone.
        server.observe(b"text").unwrap();
        let batch = candidates(&[b"{}".to_vec()]);
        let run = match batched {
            true => server.run(&batch, &mut 0).unwrap().unwrap(),
            false => server.observe(b"{}").unwrap(),
        };
        assert_eq!(RunResult::of(&run), wanted, "{batched}");
    }
    assert_eq!(server.info().snapshot_runs().unwrap().differences, 2);
    assert_eq!(server.info().run_mode().name(), "snapshot");
}

/// A word of the runtime's notes, another one in each run, behind which many clean runs come.
#[test]
fn what_writes_over_notes_of_the_runtime_does_not_reach_the_next_run() {
    let state = target("state.c", "");
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let mut inputs = vec![];
    for place in (0..48u16).chain((48..4096).step_by(37)) {
        let [high, low] = place.to_be_bytes();
        inputs.push(vec![b'J', high, low]);
        inputs.extend(std::iter::repeat_n(b".abc".to_vec(), 20));
    }
    let mut server = start_at_main(&state, "", &ours);
    let now = shown(&mut server, &inputs);
    let wanted = shown(&mut start(&state, "", RunMode::Fork, &theirs), &inputs);
    for (index, (now, wanted)) in now.iter().zip(&wanted).enumerate() {
        let difference = now.difference(wanted);
        assert_eq!(
            now,
            wanted,
            "run {} behind {:?}: {difference}",
            index % 21,
            inputs[index / 21 * 21]
        );
    }
    assert_eq!(server.info().run_mode().name(), "snapshot", "{:?}", server.take_notes());
}

#[test]
fn huge_pages_are_restored() {
    let huge = target("memories.c", "-DHUGE");
    assert_same(&huge, "", &mutants(300), 0);
    let dir = TestDir::new();
    let mut server = start(&huge, "", RunMode::Snapshot, &dir);
    server.observe(b"[]").unwrap();
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", processes(&huge).0));
    if field(&rollup.unwrap(), "AnonHugePages:") == 0 {
        skip("this machine makes no huge pages");
    }
}

/// A run that takes what is left does not take it from the next.
#[test]
fn a_memory_limit_applies_to_each_run() {
    let taking = target("memories.c", "-DTAKE");
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let inputs = [1u8, 100, 250, 30, 100].map(|mib| vec![mib]);
    let inputs = inputs.iter().cycle().take(100).cloned().collect::<Vec<_>>();
    let runs = |mode, dir: &TestDir| {
        let mut options = options(&taking, "", mode);
        options.memory_limit = Some(200 << 20);
        let mut server = server::start(&options, TIMEOUT, &dir.path(".input"));
        (shown(&mut server, &inputs), server.info().run_mode().name())
    };
    let (now, mode) = runs(RunMode::Snapshot, &ours);
    assert_eq!((now, mode), (runs(RunMode::Fork, &theirs).0, "snapshot"));
}

#[test]
fn a_run_that_takes_too_long_is_a_hang_and_the_next_is_clean() {
    let dir = TestDir::new();
    let target = target("state.c", "");
    let mut server = start(&target, "", RunMode::Snapshot, &dir);
    let good = RunResult::of(&server.observe(b".abc").unwrap());
    for input in [b"H", b"V", b"H"] {
        server.settings_mut().timeout = Duration::from_millis(300);
        assert_eq!(server.observe(input).unwrap().exit, ExitKind::Hang);
        server.settings_mut().timeout = TIMEOUT;
        assert_eq!(RunResult::of(&server.observe(b".abc").unwrap()), good);
    }
    assert_eq!(server.info().run_mode().name(), "snapshot");
}

#[test]
fn a_fork_server_that_is_killed_is_replaced() {
    let dir = TestDir::new();
    let target = target("texts.c", "");
    let mut server = start(&target, "", RunMode::Snapshot, &dir);
    let good = RunResult::of(&server.observe(b"[1, 2]").unwrap());
    kill(processes(&target).1);
    // By fork, should the end of the child be noticed only when it is asked for a run.
    for _ in 0..2 {
        assert_eq!(RunResult::of(&server.observe(b"[1, 2]").unwrap()), good);
    }
    assert!(server.take_restart().is_none());
    kill(processes(&target).0);
    assert_eq!(RunResult::of(&server.observe(b"[1, 2]").unwrap()), good);
    assert!(server.take_restart().is_some());
    assert_eq!(server.info().run_mode().name(), "snapshot");
}

#[test]
fn a_campaign_reports_its_execution_mode() {
    let reader = target("texts.c", "");
    let dir = TestDir::with_seed("[1, {\"a\": 2}]");
    let options = "-s 1 -E 4000 --run-mode snapshot";
    dir.fuzz(options, &reader, "@@").run().expect(0).does_not_say("runs use fork instead");
    let stats = dir.stats();
    assert_eq!(stats["run_mode"], "snapshot");
    assert_eq!(stats["snapshot_differs"], "0");
    assert!(stats["snapshot_pages"].parse::<f64>().unwrap() > 1.0, "{stats:?}");
    assert!(stats["snapshot_by_fork"].ends_with('%'), "{stats:?}");
    let off = TestDir::with_seed("[1]");
    off.fuzz(options, &reader, "@@").env("FFUZZ_NO_SNAPSHOT", "1").run().expect(0);
    assert_eq!(off.stats()["run_mode"], "fork");
}

/// Mutants of a few texts, by a generator that anybody can repeat.
fn mutants(count: usize) -> Vec<Vec<u8>> {
    let texts: [&[u8]; 4] = [
        b"{\"a\": [1, 2, {\"b\": null}], \"c\": \"text\"}",
        b"[true, false, 12.5e3, \"\\u00e4\\n\", []]",
        b"{\"deep\": [[[[[[1]]]]]], \"x\": -0.1}",
        b"nothing",
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut mutant = || {
        let mut text = texts[random(texts.len())].to_vec();
        for _ in 0..random(6) {
            let at = random(text.len());
            match random(3) {
                0 => text[at] = b"{}[]\",:0123456789\\ tfn"[random(22)],
                1 => text.insert(at, b"{}[]\",:0"[random(8)]),
                _ => drop(text.split_off(at.max(1))),
            }
        }
        text
    };
    (0..count).map(|_| mutant()).collect()
}

#[test]
fn mutants_show_the_same_edges_and_keys() {
    let reader = target_with("cmp,mem,perf,heap,stack", "texts.c", "");
    assert_same(&reader, "", &mutants(2000), 0);
}

#[test]
fn an_input_file_works_like_standard_input() {
    assert_same(&target("texts.c", ""), "@@", &mutants(1000), 0);
}

/// What is the same in each run is done once, and what it leaves open is as it was.
#[test]
fn runs_begin_at_the_first_read_of_the_input() {
    let target = target_with("cmp,mem", "prologue.c", "");
    let inputs = mutants(400);
    let runs = assert_same(&target, "plain", &inputs, 0);
    assert!(runs.prologue > 20, "{runs:?}");
    let dir = TestDir::new();
    let at_main = start_at_main(&target, "plain", &dir);
    let at_main = assert_shows_same(at_main, (&target, "plain"), &inputs, 0);
    assert_eq!(at_main.prologue, 0);
    assert_same(&target, "plain @@", &inputs, 0);
    for flags in ["-fsanitize=address", "-fsanitize=undefined", "-static", "-no-pie"] {
        let other = self::target("prologue.c", flags);
        let runs = assert_same(&other, "plain", &inputs, 0);
        assert!(runs.prologue > 20, "{flags}: {runs:?}");
    }
    // One that looks at it at once, and one that never does.
    assert!(assert_same(&target, "first", &inputs, 0).prologue < 3);
    assert_same(&target, "unread", &inputs, 0);
}

/// By whatever name the program knows it.
#[test]
fn every_way_to_read_the_input_is_detected() {
    let target = target("prologue.c", "");
    let inputs = mutants(200);
    for words in ["stdin", "proc", "dup", "map", "size @@", "relative @@"] {
        let runs = assert_same(&target, words, &inputs, 0);
        assert!(runs.prologue > 20, "{words}: {runs:?}");
    }
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let shown_by = |mode, dir: &TestDir| {
        std::os::unix::fs::symlink(dir.path(".input"), dir.path("link")).unwrap();
        let words = format!("link {}", dir.path("link").display());
        let mut options = options(&target, &words, mode);
        options.file = Some(dir.path(".input"));
        let mut server = server::start(&options, TIMEOUT, &dir.path(".input"));
        (shown(&mut server, &inputs), server.info().run_mode().name())
    };
    let (now, mode) = shown_by(RunMode::Snapshot, &ours);
    assert_eq!((now, mode), (shown_by(RunMode::Fork, &theirs).0, "snapshot"));
}

/// What a snapshot cannot hold: a peer, chance, another process.
#[test]
fn runs_begin_before_operations_that_cannot_be_undone() {
    let target = target("prologue.c", "");
    let plain = assert_same(&target, "plain", &mutants(20), 0).prologue;
    let socket = assert_same(&target, "socket", &mutants(200), 1);
    assert!(socket.prologue > 20 && socket.prologue <= plain, "{socket:?}, {plain}");
    // What a run does with what the prologue made: the first tells, and from then on they begin before it.
    for words in ["lock", "flags"] {
        let runs = assert_same(&target, words, &mutants(200), 1);
        assert!(runs.prologue > 20 && runs.prologue <= plain + 1, "{words}: {runs:?}, {plain}");
    }
    // Memory is put back, also if a run unmaps it.
    for words in ["large", "grown"] {
        let runs = assert_same(&target, words, &mutants(200), 0);
        assert!(runs.prologue > plain, "{words}: {runs:?}, {plain}");
    }
    // The call itself, or the process, cannot be made before a run.
    for (words, forks) in [("null", 0), ("once", 0), ("long", 0)] {
        assert_same(&target, words, &mutants(100), forks);
    }
    // Chance is the last thing that is asked before the input, and it is asked in each run.
    for words in ["device", "random"] {
        let dir = TestDir::new();
        let mut server = start(&target, words, RunMode::Snapshot, &dir);
        server.observe(b"text").unwrap();
        assert_eq!(server.info().snapshot_runs().unwrap().prologue, plain, "{words}");
    }
    assert_same(&target, "device", &mutants(200), 0);
}

/// Whatever happens before the first look is what each run would do: a crash is one.
#[test]
fn a_crash_before_the_first_read_is_that_of_each_run() {
    let target = target("prologue.c", "");
    for words in ["crash", "fault"] {
        goes_by_fork_with((&target, words), 60, "signal 11");
    }
}

#[test]
fn many_crashes_only_pause_snapshots() {
    let target = target("bugs.c", "");
    let dir = TestDir::new();
    let mut server = start(&target, "", RunMode::Snapshot, &dir);
    let mut observe = |input: &[u8], count: usize| {
        for _ in 0..count {
            server.observe(input).unwrap();
        }
        server.info().run_mode().name().to_owned()
    };
    assert_eq!(observe(b"-", 100), "snapshot");
    assert_eq!(observe(b"g", 30), "fork");
    assert_eq!(observe(b"-", 1_100), "snapshot");
    let notes = server.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("for a while: "), "{notes:?}");
}

#[test]
fn constructors_count_in_each_run() {
    assert_same(&target("early.cc", "-lstdc++"), "", &mutants(300), 0);
}

#[test]
fn a_deferred_start_is_where_runs_begin() {
    assert_same(&target("texts.c", "-DDEFERRED"), "", &mutants(300), 0);
}

#[test]
fn a_batch_stops_at_exactly_the_runs_that_the_judge_keeps() {
    let reader = target_with("cmp", "texts.c", "");
    let inputs = mutants(3000);
    let batch = candidates(&inputs);
    let kept = |mode| {
        let dir = TestDir::new();
        let mut server = start(&reader, "", mode, &dir);
        server.settings_mut().watch_domains = true;
        let mut judge = Judge::new(server.info().map_size(), server.info().domains(), true);
        let (mut kept, mut shown, mut next) = (vec![], 0, 0);
        while next < batch.len() {
            judge.teach(&mut server);
            let Some(run) = server.run(&batch, &mut next).unwrap() else { break };
            let (index, verdict) = (run.index, judge.judge(&run));
            shown += 1;
            if verdict.is_interesting() {
                let second = server.observe(&inputs[index]).unwrap();
                judge.confirm(&verdict.gains, &second);
                kept.push((index, verdict));
            }
        }
        assert_eq!(server.info().snapshot_runs().map_or(0, |runs| runs.by_fork), 0);
        (kept, shown)
    };
    let (wanted, all) = kept(RunMode::Fork);
    let (now, shown) = kept(RunMode::Snapshot);
    assert!(wanted.len() > 20 && all == inputs.len(), "{} of {all}", wanted.len());
    assert_eq!(now, wanted);
    // The first, as many that were timed, and two later ones.
    assert!(shown <= wanted.len() + 16 + 16 + 2, "{shown} of {}", wanted.len());
}

/// Memory and descriptors behind so many runs, and behind many more.
fn grows_not(target: &Path, words: &str, runs: usize) {
    let dir = TestDir::new();
    let mut server = start(target, words, RunMode::Snapshot, &dir);
    server.learn_edges(&vec![0; server.info().map_size()]);
    let batch = candidates(&mutants(64));
    let mut measure = |runs: usize| {
        for _ in 0..runs / batch.len() {
            let mut next = 0;
            while server.run(&batch, &mut next).unwrap().is_some() {}
        }
        assert_eq!(server.info().run_mode().name(), "snapshot", "{:?}", server.take_notes());
        memory_and_descriptors(target)
    };
    measure(runs / 10);
    let before = measure(runs / 10);
    let after = measure(runs);
    assert_eq!(before.1, after.1, "descriptors");
    assert!(after.0 <= before.0 + 64, "{} kB, then {}", before.0, after.0);
}

#[test]
fn memory_does_not_grow_over_many_runs() {
    let reader = target("texts.c", "");
    for words in ["", "@@"] {
        grows_not(&reader, words, 20_000);
    }
}

#[test]
fn leaks_of_runs_are_undone() {
    grows_not(&target("memories.c", "-DTAKE -DLEAST"), "", 4_000);
}

/// What the first run leaves outside of its process keeps its repetition by fork from crashing.
#[test]
fn a_crash_that_does_not_come_again_with_fork_is_kept_with_what_it_has_left_behind() {
    for how in ["", "socket"] {
        let dir = TestDir::with_seed("A");
        let options = "-s 1 -E 3000 --run-mode snapshot";
        let done = dir.fuzz(options, &target("leaves.c", ""), how).run().expect(0);
        let why = "did not come again in a new process (exit code 1); the first run made, removed or wrote \"app.lock\"";
        done.says(why);
        let crashes = dir.crashes();
        assert!(crashes.len() == 1 && crashes[0].starts_with("id:000000,sig:06"), "{crashes:?}");
        let account = dir.read("out/default/before_crashes/RECORD:000000.txt");
        assert!(String::from_utf8_lossy(&account).contains(why));
        assert!(dir.path("app.lock").exists());
    }
}

#[test]
fn a_crash_of_a_restored_process_that_nothing_explains_is_left_out_with_a_line() {
    let dir = TestDir::with_seed("A");
    let options = "-s 1 -E 3000 --run-mode snapshot";
    let done = dir.fuzz(options, &target("leaves.c", ""), "nothing").run().expect(0);
    done.says("a crash is left out: it (killed by signal 6").says("changed no file");
    assert_eq!(dir.crashes(), Vec::<String>::new());
}

#[test]
fn a_startup_may_block_signals_and_set_what_each_run_begins_with() {
    let target = target("settled.c", "");
    let inputs: Vec<Vec<u8>> =
        ["u", "ux.", "a", "ax.", "u", "a", ""].map(|text| text.as_bytes().to_vec()).to_vec();
    let runs = assert_same(&target, "", &inputs, 0);
    assert!(runs.prologue >= 40, "{runs:?}");
}
