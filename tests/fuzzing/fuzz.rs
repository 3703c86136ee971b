//! `ffuzz` on real processes: every way in which a run, a target or a campaign can end.

use crate::common;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{SmallDisk, TestDir, id_of, target, wait_until};
use nix::sys::signal::Signal;

fn outcomes() -> PathBuf {
    target("outcomes.c", "")
}

fn hostile() -> PathBuf {
    target("hostile.c", "")
}

/// A campaign that ends with the first crash, or fails by its number of executions.
const TO_THE_CRASH: (&str, &str) = ("AFL_BENCH_UNTIL_CRASH", "1");

// --- how a run ends

#[test]
fn a_target_without_faults_ends_with_a_queue_and_no_finds() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 500", &outcomes(), "none").run().expect(0);
    assert!(dir.queue()[0].ends_with("orig:seed"), "{:?}", dir.queue());
    assert_eq!(dir.crashes(), Vec::<String>::new());
    assert_eq!(dir.hangs(), Vec::<String>::new());
    assert!(dir.stat("execs_done") >= 500);
    assert!(!dir.path("out/default/.cur_input").exists());
}

#[test]
fn a_crash_is_saved_with_its_signal() {
    for (how, signal) in [("segv", "sig:11"), ("abort", "sig:06"), ("kill", "sig:09")] {
        let dir = TestDir::with_seed("A");
        let (name, value) = TO_THE_CRASH;
        let job = dir.fuzz("-s 1 -E 20000", &outcomes(), how);
        job.env(name, value).run().expect(0);
        let crashes = dir.crashes();
        assert_eq!(crashes.len(), 1, "{how}");
        assert!(crashes[0].starts_with(&format!("id:000000,{signal},src:000000")), "{crashes:?}");
        let input = dir.read(&format!("out/default/crashes/{}", crashes[0]));
        assert_eq!(input[0], b'Q');
        assert!(dir.path("out/default/crashes/README.txt").exists());
        assert!(fs::read_link(dir.path("out/crashes")).is_ok());
    }
}

#[test]
fn crashes_are_unique_by_their_edges() {
    let dir = TestDir::with_seed("AA");
    dir.fuzz("-s 1 -E 10000", &outcomes(), "sites").run().expect(0);
    let second: Vec<bool> = dir
        .crashes()
        .iter()
        .map(|name| dir.read(&format!("out/default/crashes/{name}")).get(1) == Some(&b'Q'))
        .collect();
    assert_eq!(second.len(), 2, "{:?}", dir.crashes());
    assert_ne!(second[0], second[1]);
}

#[test]
fn an_input_that_never_ends_is_a_hang() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 40 -t 1000", &outcomes(), "hang");
    job.env("AFL_HANG_TMOUT", "1500").run().expect(0);
    let hangs = dir.hangs();
    assert_eq!(hangs.len(), 1, "{hangs:?}");
    assert_eq!(dir.read(&format!("out/default/hangs/{}", hangs[0]))[0], b'Q');
    assert_eq!(dir.crashes(), Vec::<String>::new());
    assert_eq!(dir.stat("saved_hangs"), 1);
}

#[test]
fn an_input_that_crashes_only_when_it_gets_more_time_is_a_crash() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 30 -t 1000", &outcomes(), "late");
    job.env("AFL_HANG_TMOUT", "20000").run().expect(0);
    assert_eq!(dir.hangs(), Vec::<String>::new());
    assert!(dir.crashes()[0].contains("sig:06"), "{:?}", dir.crashes());
}

#[test]
fn a_loop_of_afl_runs_without_a_fork_server() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 100", &common::afl_target("before.c", ""), "");
    // Its seed would stop itself, and be too slow.
    job.env("AFL_NO_FORKSRV", "1").run().expect(0);
    assert!(dir.stat("execs_done") >= 100);
}

#[test]
fn an_exit_code_is_a_crash_only_if_the_user_says_so() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 1000", &outcomes(), "exit").run().expect(0);
    assert_eq!(dir.crashes(), Vec::<String>::new());
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 20000", &outcomes(), "exit").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.env("AFL_CRASH_EXITCODE", "77").run().expect(0);
    assert!(dir.crashes()[0].contains("sig:00"), "{:?}", dir.crashes());
}

#[test]
fn a_memory_limit_makes_the_allocation_fail() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 500", &outcomes(), "memory").run().expect(0);
    assert_eq!(dir.crashes(), Vec::<String>::new());
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 20000 -m 200", &outcomes(), "memory");
    job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    assert!(dir.crashes()[0].contains("sig:06"), "{:?}", dir.crashes());
}

#[test]
fn inputs_arrive_through_a_file_as_well() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 20000", &outcomes(), "abort @@");
    job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
    let dir = TestDir::with_seed("A");
    let file = dir.path("named");
    let job = dir.fuzz("-s 1 -E 20000 -f named", &outcomes(), "abort");
    let job = job.arg(file).env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
}

#[test]
fn n_fuzzes_a_target_without_instrumentation() {
    let dir = TestDir::with_seed("A");
    let plain = common::plain("outcomes.c", "");
    let job = dir.fuzz("-n -s 1 -E 5000", &plain, "segv").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert!(dir.crashes()[0].contains("sig:11"), "{:?}", dir.crashes());
    assert_eq!(dir.stats()["target_mode"], "non_instrumented");
    // Which crashes are the same nobody knows: all are kept, as afl-fuzz does.
    let dir = TestDir::with_seed("AAAA");
    let plain = common::plain("crashing.c", "");
    dir.fuzz("-n -s 1 -E 3000", &plain, "").run().expect(0);
    assert!(dir.crashes().len() > 1, "{:?}", dir.crashes());
}

#[test]
fn edges_guide_to_a_crash_after_four_letters() {
    for (flags, mode) in
        [("", "default"), ("-DPERSISTENT", "persistent"), ("-DSHARED", "shmem_testcase")]
    {
        let dir = TestDir::with_seed("ABCDE");
        let steps = target("steps.c", flags);
        let job = dir.fuzz("-s 7 -E 300000", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0);
        let crashes = dir.crashes();
        assert!(crashes[0].contains("sig:06"), "{mode}");
        assert!(dir.read(&format!("out/default/crashes/{}", crashes[0])).starts_with(b"QUIZ"));
        let found = dir.stats()["target_mode"].clone();
        assert!(found.split(' ').any(|word| word == mode), "{found}");
        assert!(dir.queue().iter().any(|name| name.contains(",+cov")));
    }
}

// --- targets that do harm

#[test]
fn a_dead_fork_server_is_restarted() {
    // By fork: a run by snapshot gives up before the signal, and leaves the mark to the fork behind it.
    let dir = TestDir::with_seed("A");
    let done = dir
        .fuzz("-s 1 -E 3000 --run-mode fork", &hostile(), "kill-once")
        .arg(dir.path("mark"))
        .run();
    done.expect(0).says("target restarted").says("killed by signal 9");
    assert!(dir.path("mark").exists());
    assert!(dir.stat("execs_done") >= 3000);
    assert_eq!(dir.crashes(), Vec::<String>::new());
}

#[test]
fn an_input_that_always_kills_the_fork_server_is_a_find_and_no_crash() {
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-s 1 -E 300 --error-exitcode 9", &hostile(), "kill-always").run();
    let done = done.expect(0).says("target restarted: killed by signal 9");
    done.says("it took the target's fork server along: killed by signal 9");
    assert_eq!(dir.crashes(), Vec::<String>::new());
    let hangs = dir.names("out/default/hangs");
    assert!(hangs.len() == 1 && hangs[0].starts_with("id:000000,lost,src:"), "{hangs:?}");
    assert_eq!(dir.read(&format!("out/default/hangs/{}", hangs[0]))[0], b'Q');
    assert!(dir.stat("lost_runs") > 0);
    // The next process knows it.
    let again = dir.ffuzz("-i - -o out -s 1 -E 200").arg("--").arg(hostile()).arg("kill-always");
    again.run().expect(0);
    assert_eq!(dir.names("out/default/hangs").len(), 1);
}

#[test]
fn a_fork_server_that_dies_with_every_input_ends_the_campaign_with_its_cause() {
    let dir = TestDir::new();
    for n in 0..4 {
        dir.write(&format!("in/{n}"), format!("Q{n}"));
    }
    let done = dir.fuzz("-s 1 -E 3000", &hostile(), "kill-always").run();
    let done = done.refused(1, "fork server dies on every input", "AFL_DEBUG_CHILD=1");
    done.does_not_say("aborted by user").does_not_say("nice day");
}

#[test]
fn a_target_may_write_anything_into_the_shared_memory() {
    for how in ["scribble", "scribble-maps"] {
        for domains in ["", "-p"] {
            let dir = TestDir::with_seed("A");
            let hostile = common::target_with("cmp,mem", "hostile.c", "");
            let done = dir.fuzz(&format!("-s 1 -E 500 {domains}"), &hostile, how).run();
            done.expect(0).does_not_say("the target loads");
            assert!(dir.stat("execs_done") >= 500);
            assert!(dir.stat("total_edges") >= dir.stat("edges_found"));
        }
    }
}

#[test]
fn a_target_may_close_all_its_descriptors() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 1500", &hostile(), "close").run().expect(0).does_not_say("restarted");
}

#[test]
fn a_target_may_fork_children_of_its_own() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -E 400", &hostile(), "fork").run().expect(0).does_not_say("restarted");
    assert_eq!(dir.crashes(), Vec::<String>::new());
}

#[test]
fn children_that_a_target_leaves_behind_end_with_the_campaign() {
    let dir = TestDir::with_seed("A");
    // `run` fails if a process is left.
    dir.fuzz("-s 1 -E 60", &hostile(), "leave").run().expect(0);
}

#[test]
fn a_target_that_ignores_sigterm_is_killed_all_the_same() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 12 -t 100", &hostile(), "stubborn");
    let job = job.env("AFL_HANG_TMOUT", "100").env("AFL_KILL_SIGNAL", "15");
    job.run().expect(0).does_not_say("restarted");
    assert_eq!(dir.hangs().len(), 1);
}

/// Ways to build and to run a target, one for each execution mode.
const MODES: [(&str, &str); 5] = [
    ("", "pipe"),
    ("", "fork"),
    ("", "snapshot"),
    ("-DPERSISTENT", "persistent"),
    ("-DSHARED", "batch"),
];

/// Harm that keeps the fork server from answering costs a look at it, not twenty seconds: five such inputs
/// took more than a hundred in each mode.
fn costs_little(how: &str) {
    for (flags, mode) in MODES {
        let dir = TestDir::new();
        for n in 0..5 {
            dir.write(&format!("in/{n}a"), format!("A{n}"));
            dir.write(&format!("in/{n}b"), format!("Q{n}"));
        }
        let job = dir.fuzz(
            &format!("-s 1 -E 30 -t 500 --run-mode {mode}"),
            &target("hostile.c", flags),
            how,
        );
        let start = Instant::now();
        job.env("AFL_DISABLE_TRIM", "1").run().expect(0);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(90), "{how} by {mode}: {took:?}");
    }
}

#[test]
fn a_target_that_clears_the_shared_memory_costs_little() {
    costs_little("zero");
}

#[test]
fn a_target_that_stops_its_fork_server_costs_little() {
    costs_little("stop");
}

#[test]
fn a_target_that_traces_its_fork_server_costs_little() {
    costs_little("trace");
}

#[test]
fn the_input_file_may_be_replaced_by_anything() {
    for how in ["file-folder", "file-fifo", "file-link", "file-gone", "file-locked"] {
        for (options, words) in [("", "@@"), ("-f named", "named")] {
            let dir = TestDir::with_seed("A");
            dir.write("in/2", "Q");
            let victim = dir.write("victim", "somebody else's");
            let words = format!("{how} {words}");
            let done = dir.fuzz(&format!("-s 1 -E 500 {options}"), &hostile(), &words).run();
            done.expect(0).does_not_say("restarted");
            assert!(dir.stat("execs_done") >= 500, "{how}");
            assert_eq!(fs::read(&victim).unwrap(), b"somebody else's", "{how}");
        }
    }
}

#[test]
fn a_folder_that_the_user_names_as_input_file_is_left_alone() {
    let dir = TestDir::with_seed("A");
    dir.write("named/inside", "x");
    let done = dir.fuzz("-s 1 -E 50 -f named", &outcomes(), "none named").run();
    done.refused(2, "is no regular file", "name a file that may be replaced");
    assert_eq!(dir.text("named/inside"), "x");
}

#[test]
fn daemons_end_with_their_runs() {
    let modes = MODES.into_iter().chain([("", "exec")]);
    for (flags, mode) in modes {
        let dir = TestDir::with_seed("A");
        dir.write("in/2", "Q");
        let run = if mode == "exec" { "-n".into() } else { format!("--run-mode {mode}") };
        let hostile = target("hostile.c", flags);
        let job =
            dir.fuzz(&format!("-s 1 -t 5000 {run}"), &hostile, "daemon").arg(dir.path("pids"));
        let mut running = job.start();
        running.wait_for_campaign(&dir);
        let started = || fs::read_to_string(dir.path("pids")).unwrap_or_default().lines().count();
        let alive = || {
            let pids = fs::read_to_string(dir.path("pids")).unwrap_or_default();
            pids.lines().filter(|pid| dir_of_process(pid).exists()).count()
        };
        // Many came, and while more come the early ones are gone, but for those of a child's first batch: they
        // may be its helpers.
        wait_until("daemons", || started() > 220);
        let early = fs::read_to_string(dir.path("pids")).unwrap();
        let early: Vec<&str> = early.lines().skip(200).take(20).collect();
        wait_until("an end of the early daemons", || {
            early.iter().all(|pid| !dir_of_process(pid).exists())
        });
        running.signal(Signal::SIGINT);
        running.finish().expect(0);
        assert_eq!(alive(), 0, "{mode}");
    }
}

fn dir_of_process(pid: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/exe"))
}

#[test]
fn a_killed_fuzzer_leaves_no_daemon() {
    for (options, flags) in [("", ""), ("-n", ""), ("", "-DSHARED")] {
        let dir = TestDir::with_seed("Q");
        let hostile = target("hostile.c", flags);
        let job = dir.fuzz(&format!("-s 1 {options}"), &hostile, "daemon").arg(dir.path("pids"));
        let mut running = job.start();
        running.wait_for_campaign(&dir);
        wait_until("a daemon", || dir.path("pids").exists());
        running.signal(Signal::SIGKILL);
        running.finish().expect(128 + 9);
        // Their environment is empty, so `finish` does not see them.
        wait_until("an end of the daemons", || {
            let pids = fs::read_to_string(dir.path("pids")).unwrap();
            pids.lines().all(|pid| !dir_of_process(pid).exists())
        });
    }
}

// --- how a campaign ends

#[test]
fn signals_end_a_campaign_cleanly() {
    for (flags, signal) in [
        ("", Signal::SIGINT),
        ("", Signal::SIGTERM),
        ("-DPERSISTENT", Signal::SIGINT),
        ("-DSHARED", Signal::SIGTERM),
    ] {
        let dir = TestDir::with_seed("A");
        let mut running = dir.fuzz("-s 1", &target("steps.c", flags), "").start();
        running.wait_for_campaign(&dir);
        running.signal(signal);
        running.finish().expect(0);
        assert!(dir.stat("execs_done") > 0);
        assert_eq!(dir.queue().len() as u64, dir.stat("corpus_count"));
        assert!(!dir.path("out/default/.cur_input").exists());
    }
}

#[test]
fn a_batch_of_slow_runs_ends_with_the_present_one() {
    // With a seed of the generator a batch has 64 inputs, however slow they are, if a stage has that many.
    let dir = TestDir::with_seed("A".repeat(100));
    let job = dir.fuzz("-s 1 --run-mode batch", &target("sleepy.c", ""), "");
    let mut running = job.arg(dir.path("log")).env("AFL_DISABLE_TRIM", "1").start();
    running.wait_for("fuzzing; Ctrl-C stops");
    let runs = || fs::metadata(dir.path("log")).map_or(0, |data| data.len());
    let before = runs();
    wait_until("a batch", || runs() > before + 2);
    let before = runs();
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    let more = runs() - before;
    assert!(more < 12, "{more} runs after the signal");
}

#[test]
fn an_endless_run_does_not_delay_the_end() {
    for mode in ["--run-mode pipe", "--run-mode fork", "--run-mode snapshot", "-n"] {
        let dir = TestDir::with_seed("A");
        let job = dir.fuzz(&format!("-t 600000 {mode}"), &outcomes(), "hang @@");
        let mut running = job.start();
        running.wait_for_campaign(&dir);
        let input = dir.path("out/default/.cur_input");
        wait_until("the endless run", || {
            let waits = |pid: &i32| {
                let text = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
                let state = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
                text.contains("pause") || state.starts_with("34 ")
            };
            let started = fs::read(&input).is_ok_and(|input| input.first() == Some(&b'Q'));
            started && running.processes().iter().any(waits)
        });
        running.signal(Signal::SIGINT);
        running.finish().expect(0);
        assert!(dir.hangs().is_empty(), "nobody knows whether it would have ended");
    }
}

#[test]
fn a_killed_fuzzer_leaves_neither_segment_nor_process() {
    for flags in ["", "-DPERSISTENT", "-DSHARED"] {
        let dir = TestDir::with_seed("A");
        let mut running = dir.fuzz("-s 1", &target("steps.c", flags), "").start();
        running.wait_for_campaign(&dir);
        // The check below is worth something only if there is something to be left behind.
        assert!(running.processes().len() >= 2, "fuzzer and fork server");
        assert_eq!(running.segments().is_empty(), flags != "-DSHARED");
        running.signal(Signal::SIGKILL);
        running.finish().expect(128 + 9);
    }
}

#[test]
fn a_fuzzer_killed_in_the_middle_of_a_run_leaves_nothing() {
    for options in ["-t 600000", "-n -t 600000"] {
        let dir = TestDir::with_seed("A");
        let mut running = dir.fuzz(options, &outcomes(), "hang").start();
        running.wait_for_campaign(&dir);
        // Fuzzer, run and guard; with a fork server that one too.
        let processes = if options.contains("-n") { 3 } else { 4 };
        let input = dir.path("out/default/.cur_input");
        wait_until("the endless run", || {
            fs::read(&input).is_ok_and(|input| input.first() == Some(&b'Q'))
                && running.processes().len() == processes
        });
        running.signal(Signal::SIGKILL);
        running.finish().expect(128 + 9);
    }
}

#[test]
fn a_time_limit_ends_a_campaign() {
    let dir = TestDir::with_seed("A");
    dir.fuzz("-s 1 -V 1", &outcomes(), "none").run().expect(0);
    assert!(dir.stat("run_time") >= 1 && dir.stat("run_time") < 30);
}

#[test]
fn equal_random_seeds_give_equal_campaigns() {
    let found = || {
        let dir = TestDir::with_seed("ABCDE");
        dir.fuzz("-s 3 -E 5000", &target("steps.c", ""), "").run().expect(0);
        let inputs = dir.queue().into_iter().map(|name| dir.read(&format!("out/queue/{name}")));
        inputs.collect::<Vec<_>>()
    };
    assert_eq!(found(), found());
}

#[test]
fn a_resumed_campaign_keeps_names_and_continues_numbers() {
    let dir = TestDir::with_seed("ABCDE");
    let steps = target("steps.c", "");
    let job = dir.fuzz("-s 7 -E 300000", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let (queue, crashes) = (dir.queue(), dir.crashes());
    let (execs, found) = (dir.stat("execs_done"), dir.stat("corpus_found"));
    assert!(queue.len() > 3 && crashes.len() == 1);
    let before = dir.snapshot("out/default/crashes");

    let resume = |limit: u64| {
        let job = dir.ffuzz(&format!("-i - -o out -t 3000 -s 8 -E {limit} --"));
        job.arg(&steps).run().expect(0)
    };
    resume(execs + 3000);
    assert_eq!(dir.queue()[..queue.len()], queue);
    assert!(dir.stat("execs_done") >= execs + 3000);
    assert!(dir.stat("execs_done") < execs + 30_000);
    assert!(dir.stat("corpus_found") >= found);
    assert_eq!(dir.stat("corpus_count") as usize, dir.queue().len());
    let ids: Vec<u32> = dir.queue().iter().map(|name| id_of(name)).collect();
    assert!(ids.iter().enumerate().all(|(at, id)| at as u32 == *id), "{ids:?}");
    // The crash is known: it is neither lost, renamed nor found again.
    assert_eq!(dir.crashes(), crashes);
    assert_eq!(dir.snapshot("out/default/crashes"), before);
}

#[test]
fn a_queue_with_a_gap_keeps_its_numbers() {
    let dir = TestDir::with_seed("ABCDE");
    let steps = target("steps.c", "");
    let job = dir.fuzz("-s 7 -E 300000", &steps, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    let mut queue = dir.queue();
    fs::remove_file(dir.path(&format!("out/default/queue/{}", queue[1]))).unwrap();
    queue.remove(1);
    let limit = dir.stat("execs_done") + 2000;
    let job = dir.ffuzz(&format!("-i - -o out -t 3000 -s 8 -E {limit} --"));
    job.arg(&steps).run().expect(0).says("is missing");
    assert_eq!(dir.queue()[..queue.len()], queue);
}

#[test]
fn autoresume_starts_and_then_resumes() {
    let dir = TestDir::with_seed("A");
    for limit in [1000, 2000] {
        let job = dir.fuzz(&format!("-s 1 -E {limit}"), &outcomes(), "none");
        job.env("AFL_AUTORESUME", "1").run().expect(0);
    }
    assert!(dir.stat("execs_done") >= 2000);
    assert!(dir.queue()[0].contains("orig:seed") && !dir.queue()[0].contains("orig:id"));
}

#[test]
fn instances_have_folders_of_their_own() {
    let dir = TestDir::with_seed("A");
    for name in ["-M one", "-S two"] {
        dir.fuzz(&format!("-s 1 -E 300 {name}"), &outcomes(), "none").run().expect(0);
    }
    assert_eq!(dir.entries("out/one/queue").len(), dir.entries("out/two/queue").len());
    assert!(!dir.path("out/queue").exists());
    assert!(!dir.path("out/one/is_main_node").exists());
}

#[test]
fn binding_to_a_core_is_reported() {
    let dir = TestDir::with_seed("A");
    let job = dir.fuzz("-s 1 -E 300 -b 0", &outcomes(), "none");
    job.without_env("AFL_NO_AFFINITY").run().expect(0);
    assert_eq!(dir.stats()["cpu_affinity"], "0");
}

// --- a full disk

#[test]
fn a_full_disk_pauses_the_campaign_until_there_is_room() {
    for words in ["many", "many @@"] {
        let dir = TestDir::with_seed("A");
        let Some(disk) = SmallDisk::mount(dir.path("disk"), "size=4m") else { return };
        // Room for the start and for a few finds.
        dir.write("disk/filler", vec![1; (4 << 20) - (120 << 10)]);
        let counting = target("counting.c", "");
        let job = dir.ffuzz("-i in -o disk/out -t 3000 -s 1 -E 2500 --").arg(counting);
        let mut running = job.words(words).start();
        running.wait_for("paused until there is room");
        let before = dir.entries("disk/out/default/queue");
        fs::remove_file(dir.path("disk/filler")).unwrap();
        running.finish().expect(0);
        let after = dir.entries("disk/out/default/queue");
        assert!(after.len() > before.len() + 10, "{} then {}", before.len(), after.len());
        let dense = after.iter().enumerate().all(|(at, name)| at as u32 == id_of(name));
        assert!(dense, "{after:?}");
        let whole = |name: &String| {
            fs::metadata(disk.0.join("out/default/queue").join(name)).unwrap().len() > 0
        };
        assert!(after.iter().all(whole));
        let stats = common::stats_of(&dir.text("disk/out/default/fuzzer_stats"));
        assert_eq!(stats["corpus_count"], after.len().to_string());
    }
}

#[test]
fn a_paused_campaign_can_be_stopped() {
    // By a signal, or by its limit of time.
    for limit in ["", "-V 2"] {
        let dir = TestDir::with_seed("A");
        let Some(_disk) = SmallDisk::mount(dir.path("disk"), "size=4m") else { return };
        dir.write("disk/filler", vec![1; (4 << 20) - (120 << 10)]);
        let job = dir.ffuzz(&format!("-i in -o disk/out -t 3000 -s 1 {limit} --"));
        let mut running = job.arg(target("counting.c", "")).words("many").start();
        running.wait_for("paused until there is room");
        if limit.is_empty() {
            running.signal(Signal::SIGINT);
        }
        // The find that could not be written is reported.
        running.finish().expect(1).says("no room left");
    }
}

/// A campaign with `@@` on a small disk that somebody else fills while it runs.
fn full_disk_under_the_input_file(limit: &str) -> Option<(TestDir, SmallDisk, common::Running)> {
    // Both ways through the target: nothing is left to be found, and to be written.
    let dir = TestDir::with_seed("A");
    dir.write("in/2", "Q");
    let disk = SmallDisk::mount(dir.path("disk"), "size=3m")?;
    let words = "-i in -o disk/out -t 3000 -s 1 --run-mode fork";
    let job = dir.ffuzz(&format!("{words} {limit} --")).arg(outcomes()).words("none @@");
    let mut running = job.start();
    running.wait_for("fuzzing; Ctrl-C stops");
    let mut filler = fs::File::create(dir.path("disk/filler")).unwrap();
    // Until nothing is left, also of what the campaign gives back meanwhile.
    wait_until("the pause", || {
        while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
        running.said().contains("no room left to write the input")
    });
    Some((dir, disk, running))
}

#[test]
fn a_full_disk_under_the_input_file_pauses_the_campaign() {
    let Some((dir, _disk, running)) = full_disk_under_the_input_file("-E 10000") else { return };
    fs::remove_file(dir.path("disk/filler")).unwrap();
    running.finish().expect(0);
    let stats = common::stats_of(&dir.text("disk/out/default/fuzzer_stats"));
    assert!(stats["execs_done"].parse::<u64>().unwrap() >= 10_000, "{stats:?}");
}

#[test]
fn a_campaign_without_room_for_an_input_can_be_stopped() {
    for limit in ["", "-V 3"] {
        let Some((_dir, _disk, running)) = full_disk_under_the_input_file(limit) else { return };
        if limit.is_empty() {
            running.signal(Signal::SIGTERM);
        }
        // No input is lost; the last statistics may be, and then that is what has failed.
        let done = running.finish();
        let failed = done.err.contains("fuzzer_stats");
        done.expect(i32::from(failed)).does_not_say("queue/id:");
    }
}

#[test]
fn the_crash_command_runs_for_each_crash() {
    let dir = TestDir::with_seed("A");
    let job = dir.ffuzz("-i in -o out -t 3000 -s 1 -E 20000 -I").arg("cp \"$1\" copy");
    let job = job.arg("--").arg(outcomes()).words("abort").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    wait_until("the copy", || dir.path("copy").exists());
    assert_eq!(dir.read("copy")[0], b'Q');
}
