//! Execution modes: the same results in every mode, whatever a target does.

use crate::common;
use crate::server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::*;
use ffuzz::config::options::RunMode;
use ffuzz::engine::executor::{Executor, ExitKind};
use ffuzz::engine::feedback::Judge;
use ffuzz::exec::{ForkServer, RunResult};
use server::{candidates, fork_server, kill, shown};

const MODES: [RunMode; 5] =
    [RunMode::Pipe, RunMode::Fork, RunMode::Snapshot, RunMode::Persistent, RunMode::Batch];
/// Long enough for a fork on a machine that is busy otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

fn ladder() -> PathBuf {
    target("ladder.c", "-O1 -fsanitize=fuzzer")
}

fn start(target: &Path, mode: RunMode, dir: &TestDir) -> ForkServer {
    let mut server =
        server::start(&server::options(target, "", mode), TIMEOUT, &dir.path(".input"));
    server.settings_mut().watch_domains = true;
    server
}

/// Ordinary inputs between those that end badly; what takes long comes once, all else twice.
fn corpus() -> Vec<Vec<u8>> {
    let mut inputs = vec![];
    for (round, kinds) in [(0u8, &b"aeqknhbldfg"[..]), (1, b"aeqknldfg")] {
        for (place, how) in (0u8..).zip(kinds.iter().copied()) {
            inputs.push(vec![b'.', place, 7 * round + 1, 200, 3]);
            inputs.push(vec![b'-'; usize::from(place) * 40]);
            inputs.push(vec![how, place, 9]);
        }
    }
    inputs
}

#[test]
fn every_execution_mode_observes_the_same() {
    let dir = TestDir::new();
    let target = ladder();
    let inputs = corpus();
    let one_by_one = |mode| {
        let dir = TestDir::new();
        let mut server = start(&target, mode, &dir);
        let all: Vec<RunResult> =
            inputs.iter().map(|input| RunResult::of(&server.observe(input).unwrap())).collect();
        assert_eq!(server.info().execs(), inputs.len() as u64);
        all
    };
    let wanted = one_by_one(RunMode::Pipe);
    let count = |kind| wanted.iter().filter(|seen| seen.exit == kind).count();
    assert_eq!(count(ExitKind::Crash { signal: 6 }), 2);
    assert_eq!(count(ExitKind::Crash { signal: 11 }), 2);
    assert_eq!(count(ExitKind::Oom), 2);
    // Most of the time is spent in waiting for hangs.
    let all = std::thread::scope(|scope| {
        MODES.map(|mode| scope.spawn(move || one_by_one(mode))).map(|one| one.join().unwrap())
    });
    for (mode, seen) in MODES.iter().zip(all) {
        for (index, (now, wanted)) in seen.iter().zip(&wanted).enumerate() {
            assert_eq!(now, wanted, "{mode:?}, input {index}: {:?}", inputs[index]);
        }
    }
    let mut server = start(&target, RunMode::Batch, &dir);
    server.settings_mut().show_every_run = true;
    let (batch, mut next) = (candidates(&inputs), 0);
    for (index, wanted) in wanted.iter().enumerate() {
        let run = server.run(&batch, &mut next).unwrap().unwrap();
        assert_eq!(run.index, index);
        assert_eq!(&RunResult::of(&run), wanted, "batch, input {index}: {:?}", inputs[index]);
    }
}

#[test]
fn a_batch_stops_at_exactly_the_runs_that_the_judge_keeps() {
    let dir = TestDir::new();
    let target = ladder();
    let inputs: Vec<Vec<u8>> =
        (0..3000u32).map(|n| vec![b'.', (n * 7 % 251) as u8, (n / 50) as u8, n as u8]).collect();
    let batch = candidates(&inputs);
    let kept = |mode| {
        let mut server = start(&target, mode, &dir);
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
        (kept, shown)
    };
    let (wanted, all) = kept(RunMode::Pipe);
    let (now, shown) = kept(RunMode::Batch);
    assert!(wanted.len() > 20 && all == inputs.len(), "{} of {all}", wanted.len());
    assert_eq!(now, wanted);
    assert_eq!(shown, wanted.len(), "dull runs were shown");
}

/// For AFL's pipes it would be "between two runs".
#[test]
fn a_process_that_stops_itself_is_a_hang() {
    let dir = TestDir::new();
    let target = ladder();
    for &mode in &MODES[1..] {
        let mut server = start(&target, mode, &dir);
        let good = RunResult::of(&server.observe(b".abc").unwrap());
        assert_eq!(server.observe(b"s").unwrap().exit, ExitKind::Hang, "{mode:?}");
        assert_eq!(RunResult::of(&server.observe(b".abc").unwrap()), good, "{mode:?}");
    }
}

/// What waits has the whole limit, and so has what is observed.
#[test]
fn only_what_computes_for_too_long_is_cut() {
    let dir = TestDir::new();
    let target = ladder();
    for mode in MODES {
        let options = server::options(&target, "", mode);
        let mut server = server::start(&options, TIMEOUT, &dir.path(".input"));
        server.settings_mut().soft_limit = Some(TIMEOUT / 100);
        let inputs = [".ok", "h", ".ok", ".ok", "h", ".ok", "b"].map(|input| input.into());
        let exits: Vec<_> = shown(&mut server, &inputs).iter().map(|seen| seen.exit).collect();
        let (ok, cut) = (ExitKind::Ok, ExitKind::Cut);
        assert_eq!(exits, [ok, cut, ok, ok, cut, ok, ExitKind::Hang], "{mode:?}");
        assert_eq!(server.observe(b"h").unwrap().exit, ExitKind::Hang, "{mode:?}");
    }
}

/// A process that the fuzzer ends between two runs is not the end of the next run, whenever it becomes known.
#[test]
fn the_end_of_a_former_process_is_no_crash() {
    let dir = TestDir::new();
    let target = target("late.c", "-fsanitize=fuzzer");
    // Within the time that a fork server has to answer, and after it.
    for late in ["1400", "2900"] {
        let mut options = server::options(&target, "", RunMode::Batch);
        options.extra_env.push(("LATE".into(), late.into()));
        let mut server = server::start(&options, 3 * TIMEOUT, &dir.path(".input"));
        assert_eq!(server.observe(b"a").unwrap().exit, ExitKind::Ok);
        // Processes that log are others.
        server.settings_mut().log_comparisons = true;
        assert_eq!(server.observe(b"a").unwrap().exit, ExitKind::Ok, "{late}");
    }
}

/// What a run shows that takes thirty times as long as the others is found all the same.
#[test]
fn slow_code_is_covered_although_slow_runs_are_cut() {
    let dir = TestDir::with_seed("bb");
    let target = target("uneven.c", "-fsanitize=fuzzer");
    let job = dir.fuzz("-t 1000 -V 60", &target, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
    assert!(dir.stat("cut_runs") > 0);
}

/// Time that other processes take is not the target's.
#[test]
fn on_a_busy_machine_only_slow_runs_are_cut_and_none_is_a_timeout() {
    let dir = TestDir::with_seed("some text");
    let target = target("seldom.c", "-fsanitize=fuzzer");
    let compute = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let busy = [(); 4].map(|()| Helper(compute()));
    let job =
        dir.fuzz("-t 2000 -V 5", &target, "").env("SLOW_RUNS", dir.path("slow").to_str().unwrap());
    job.run().expect(0);
    drop(busy);
    let (cut, slow) = (dir.stat("cut_runs"), dir.read("slow").len() as u64);
    assert!(0 < cut && cut <= slow, "{cut} of {slow}");
    assert_eq!((dir.stat("total_tmout"), dir.stat("saved_hangs")), (0, 0));
}

#[test]
fn a_target_that_overwrites_the_channel_is_a_find_and_restarted() {
    let dir = TestDir::new();
    let target = ladder();
    for &mode in &MODES[1..] {
        let mut server = start(&target, mode, &dir);
        let good = RunResult::of(&server.observe(b".abc").unwrap());
        for _ in 0..3 {
            let bad = server.observe(b"o").unwrap().exit;
            assert!(bad == ExitKind::Lost || bad == ExitKind::Ok, "{mode:?} {bad:?}");
            assert_eq!(RunResult::of(&server.observe(b".abc").unwrap()), good, "{mode:?}");
        }
    }
}

#[test]
fn a_fork_server_that_is_stopped_or_killed_is_replaced() {
    let dir = TestDir::new();
    let target = ladder();
    for mode in MODES {
        let mut server = start(&target, mode, &dir);
        let good = RunResult::of(&server.observe(b".abc").unwrap());
        kill(fork_server(&target));
        assert_eq!(RunResult::of(&server.observe(b".abc").unwrap()), good, "{mode:?}");
        assert!(server.take_restart().is_some() || mode > RunMode::Fork);
    }
}

/// A lost wake-up would be a hang here.
#[test]
fn no_wake_up_is_lost_with_three_fuzzers_per_core() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let target = target("quick.c", "-O1 -fsanitize=fuzzer");
    for (mode, runs) in
        [("fork", 300), ("snapshot", 3_000), ("persistent", 20_000), ("batch", 100_000)]
    {
        let dirs: Vec<TestDir> = (0..3 * cores).map(|_| TestDir::with_seed("x")).collect();
        let start = |dir: &TestDir| {
            let options = format!("--run-mode {mode} -t 20000 -E {runs}");
            dir.fuzz(&options, &target, "").start()
        };
        let running: Vec<_> = dirs.iter().map(start).collect();
        for (running, dir) in running.into_iter().zip(&dirs) {
            running.finish().expect(0).does_not_say("restarted").does_not_say("hang ");
            assert!(dir.stat("execs_done") >= runs, "{mode}");
        }
    }
}

/// ThreadSanitizer has a thread in each process, so no process can be restored.
#[test]
fn a_build_with_thread_sanitizer_is_forked() {
    let dir = TestDir::with_seed("AAAA");
    let target = common::target_by(&[("AFL_USE_TSAN", "1")], "segments.c", "");
    let job = dir.fuzz("-s 1 -E 20000", &target, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0).says("runs use fork instead of snapshots: ThreadSanitizer has a thread");
    assert_eq!((dir.crashes().len(), dir.stats()["run_mode"].as_str()), (1, "fork"));
}

/// A child of the fork server has no threads of its parent, so the fork server starts before the harness makes them.
#[test]
fn a_harness_may_make_its_threads_at_its_startup() {
    let target = common::target("workers.cc", "-fsanitize=fuzzer -lpthread");
    for variable in ["AFL_NO_UI", "AFL_DRIVER_DONT_DEFER", "AFL_EARLY_FORKSERVER"] {
        let dir = TestDir::with_seed("AAAA");
        let job = dir.fuzz("-s 1 -E 20000", &target, "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.env(variable, "1").run().expect(0);
        assert_eq!((dir.crashes().len(), dir.stats()["run_mode"].as_str()), (1, "batch"));
        assert!(dir.hangs().is_empty());
    }
}
