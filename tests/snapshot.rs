//! Runs by snapshot show what runs by fork show, whatever a program does to its process.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and talk")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use ffuzz::config::options::{RunMode, TargetOptions};
use ffuzz::feedback::Judge;
use ffuzz::mutate::Candidate;
use ffuzz::target::{Executor, ExitKind, ForkServer, Observation, Setup};

/// Long enough for a fork on a machine that is busy otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is done to a process, as in `targets/state.c`: what is undone behind the run ...
const UNDONE: &[u8] = b"mnMNvlgGUzZwbLEfcCRDFdosXeqQ";
/// ... and what needs a process of its own.
const FORKED: &[u8] = b"puBxhatTkKSPrAiIyW";

fn start(target: &Path, words: &str, mode: RunMode, dir: &TestDir) -> ForkServer {
    let mut command = vec![OsString::from(target)];
    command.extend(words.split_whitespace().map(OsString::from));
    let mut options = TargetOptions::for_command(command);
    options.run_mode = mode;
    options.snapshots = true;
    options.extra_env = vec![("ASAN_OPTIONS".into(), "abort_on_error=1:detect_leaks=0".into())];
    let setup = Setup::new(&options, &dir.path(".input"), None).unwrap();
    let mut server = ForkServer::start(setup, TIMEOUT).unwrap();
    server.watch_domains();
    server
}

/// All that can be seen of a run.
#[derive(Debug, Eq, PartialEq)]
struct Seen {
    exit: ExitKind,
    edges: Vec<u8>,
    keys: BTreeMap<u32, u32>,
}

fn seen(run: &Observation<'_>) -> Seen {
    let mut keys = BTreeMap::new();
    run.dsf.for_each_changed(|_, key, value| {
        keys.insert(key, value);
    });
    Seen { exit: run.exit, edges: run.edges.to_vec(), keys }
}

fn candidates(inputs: &[Vec<u8>]) -> Vec<Candidate> {
    let candidate = |bytes: &Vec<u8>| Candidate { bytes: bytes.clone(), ..Candidate::default() };
    inputs.iter().map(candidate).collect()
}

/// Every run as it is, not checked by fork but now and then.
fn shown(server: &mut ForkServer, inputs: &[Vec<u8>]) -> Vec<Seen> {
    server.show_every_run(true);
    let (batch, mut next, mut all) = (candidates(inputs), 0, vec![]);
    while let Some(run) = server.run(&batch, &mut next).unwrap() {
        assert_eq!(run.index, all.len());
        all.push(seen(&run));
    }
    all
}

#[track_caller]
fn assert_same(target: &Path, words: &str, inputs: &[Vec<u8>], forks: u64) {
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let mut server = start(target, words, RunMode::Snapshot, &ours);
    let now = shown(&mut server, inputs);
    let runs = server.snapshot_runs().unwrap();
    assert_eq!(server.rung(), "snapshot", "{runs:?} {:?}", server.take_notes());
    let wanted = shown(&mut start(target, words, RunMode::Fork, &theirs), inputs);
    assert_eq!(now.len(), inputs.len());
    for (index, (now, wanted)) in now.iter().zip(&wanted).enumerate() {
        assert_eq!(now, wanted, "input {index}: {:?}", String::from_utf8_lossy(&inputs[index]));
    }
    assert_eq!((runs.by_fork, runs.differences), (forks, 0), "{runs:?}");
    assert!(runs.pages > runs.runs, "{runs:?}");
}

/// Each kind with two clean runs behind it, which find out what is left of it. Those that need a fork are
/// rare enough for the rung to be kept.
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

fn leaves_no_trace(flags: &str) {
    assert_same(&target("state.c", flags), "", &misbehaviours(), FORKED.len() as u64);
}

#[test]
fn what_a_run_does_to_its_process_does_not_reach_the_next() {
    leaves_no_trace("");
}

#[test]
fn neither_with_a_sanitizer() {
    leaves_no_trace("-fsanitize=address");
}

#[test]
fn nor_in_a_static_program() {
    leaves_no_trace("-static");
}

#[test]
fn nor_at_a_fixed_address() {
    leaves_no_trace("-no-pie");
}

/// The reason is said, and all results are those of fork.
fn goes_by_fork(flags: &str, cause: &str) {
    let target = target("refusing.c", flags);
    let (ours, theirs) = (TestDir::new(), TestDir::new());
    let inputs = mutants(60);
    let mut server = start(&target, "", RunMode::Snapshot, &ours);
    let now = shown(&mut server, &inputs);
    let notes = server.take_notes();
    assert_eq!(server.rung(), "fork", "{flags}: {notes:?}");
    let one = notes.len() == 1 && notes[0].contains("runs go by fork") && notes[0].contains(cause);
    assert!(one, "{flags}: {notes:?}, not {cause}");
    let wanted = shown(&mut start(&target, "", RunMode::Fork, &theirs), &inputs);
    assert_eq!(now, wanted, "{flags}");
}

#[test]
fn a_program_that_cannot_be_put_back_is_forked_and_the_reason_is_said() {
    for (flags, cause) in [
        ("-DNO_FAULTS", "userfaultfd is refused"),
        ("-DNO_FILTER", "seccomp is refused"),
        ("-DTHREAD", "threads before main"),
        ("-DSHARED", "shares memory"),
        ("-DTIMER", "a timer runs"),
        ("-DDESCRIPTOR", "file descriptors 180 to 196"),
        ("-DEACH_RUN", "it starts processes or threads"),
    ] {
        goes_by_fork(flags, cause);
    }
}

#[test]
fn a_run_that_takes_too_long_is_a_hang_and_the_next_is_clean() {
    let dir = TestDir::new();
    let target = target("state.c", "");
    let mut server = start(&target, "", RunMode::Snapshot, &dir);
    let good = seen(&server.observe(b".abc").unwrap());
    for input in [b"H", b"V", b"H"] {
        server.set_timeout(Duration::from_millis(300));
        assert_eq!(server.observe(input).unwrap().exit, ExitKind::Hang);
        server.set_timeout(TIMEOUT);
        assert_eq!(seen(&server.observe(b".abc").unwrap()), good);
    }
    assert_eq!(server.rung(), "snapshot");
}

#[test]
fn a_fork_server_that_is_killed_is_replaced() {
    let dir = TestDir::new();
    let target = target("texts.c", "");
    let mut server = start(&target, "", RunMode::Snapshot, &dir);
    let good = seen(&server.observe(b"[1, 2]").unwrap());
    let kill = |pid| {
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    };
    kill(processes(&target).1);
    // By fork, should the end of the child be noticed only when it is asked for a run.
    for _ in 0..2 {
        assert_eq!(seen(&server.observe(b"[1, 2]").unwrap()), good);
    }
    assert!(server.take_restart().is_none());
    kill(processes(&target).0);
    assert_eq!(seen(&server.observe(b"[1, 2]").unwrap()), good);
    assert!(server.take_restart().is_some());
    assert_eq!(server.rung(), "snapshot");
}

#[test]
fn a_campaign_says_how_its_runs_are_made() {
    let reader = target("texts.c", "");
    let dir = TestDir::with_seed("[1, {\"a\": 2}]");
    let options = "-s 1 -E 4000 --run-mode snapshot";
    dir.fuzz(options, &reader, "@@").run().expect(0).does_not_say("runs go by fork, and");
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
fn a_file_is_as_good_as_standard_input() {
    assert_same(&target("texts.c", ""), "@@", &mutants(1000), 0);
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
fn a_batch_stops_at_just_those_runs_that_a_judge_wants() {
    let reader = target_with("cmp", "texts.c", "");
    let inputs = mutants(3000);
    let batch = candidates(&inputs);
    let kept = |mode| {
        let dir = TestDir::new();
        let mut server = start(&reader, "", mode, &dir);
        let mut judge = Judge::new(server.map_size(), server.domains(), true);
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
        assert_eq!(server.snapshot_runs().map_or(0, |runs| runs.by_fork), 0);
        (kept, shown)
    };
    let (wanted, all) = kept(RunMode::Fork);
    let (now, shown) = kept(RunMode::Snapshot);
    assert!(wanted.len() > 20 && all == inputs.len(), "{} of {all}", wanted.len());
    assert_eq!(now, wanted);
    // Two checks.
    assert!(shown <= wanted.len() + 2, "{shown} of {}", wanted.len());
}

fn targets() -> [(PathBuf, &'static str); 2] {
    [(target("texts.c", ""), ""), (target("texts.c", ""), "@@")]
}

#[test]
fn nothing_grows_over_many_runs() {
    for (target, words) in targets() {
        let dir = TestDir::new();
        let mut server = start(&target, words, RunMode::Snapshot, &dir);
        let batch = candidates(&mutants(64));
        let mut measure = |runs: usize| {
            for _ in 0..runs / batch.len() {
                let mut next = 0;
                while server.run(&batch, &mut next).unwrap().is_some() {}
            }
            server.learn_edges(&vec![0; server.map_size()]);
            memory_and_descriptors(&target)
        };
        measure(10_000);
        let before = measure(10_000);
        let after = measure(60_000);
        assert_eq!(before.1, after.1, "descriptors");
        assert!(after.0 <= before.0 + 64, "{} kB, then {}", before.0, after.0);
    }
}

/// The fork server of this thread that runs the target, and its child.
fn processes(target: &Path) -> (i32, i32) {
    let children = |pid: &str| {
        let list = std::fs::read_to_string(format!("/proc/{pid}/children")).unwrap_or_default();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()
    };
    let runs = |pid: &i32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program == target.canonicalize().unwrap())
    };
    let server = children("thread-self").into_iter().find(runs).unwrap();
    (server, children(&format!("{server}/task/{server}"))[0])
}

/// Memory in kB and descriptors of the process that is put back.
fn memory_and_descriptors(target: &Path) -> (u64, usize) {
    let (_, child) = processes(target);
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
    let field = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let memory = field.trim().trim_end_matches(" kB").parse().unwrap();
    (memory, std::fs::read_dir(format!("/proc/{child}/fd")).unwrap().count())
}
