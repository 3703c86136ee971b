//! Killerbeez modules in a campaign and alone. The traps of single calls are tested where the
//! modules are called (`src/mutators/killerbeez/tests.rs`).

use crate::common;
use crate::page;
use std::fs;
use std::path::Path;

use common::{Job, TestDir, plain, skip, target};
use nix::sys::signal::Signal;

const SEED: &[u8] = b"a seed of the campaign";

/// Puts a module of `tests/mutators/modules.c` into the folder, as `libNAME_mutator.so`.
fn module(dir: &TestDir, name: &str, flags: &str) {
    let flags = format!("-shared -fPIC -D{} {flags}", name.to_uppercase());
    let built = plain("tests/mutators/modules.c", &flags);
    fs::copy(built, dir.path(&format!("lib{name}_mutator.so"))).unwrap();
}

/// `ffuzz … -- append LOG` with a module of the folder; each run is a process.
fn alone(dir: &TestDir, out: &str, options: &str, log: &str) -> Job {
    let job = dir.ffuzz(&format!("-i in -o {out} -n -s 1 --mutator-dir . --mutator-only"));
    job.words(options).arg("--").arg(plain("append.c", "")).words(log)
}

/// What a log says of a module's inputs.
fn made(dir: &TestDir, log: &str) -> Vec<String> {
    let text = dir.text(log);
    text.lines().filter(|line| line.starts_with("module-")).map(str::to_owned).collect()
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("module-{number}")).collect()
}

/// Crashes are run again when a campaign begins again.
fn without_crashes(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| line != "module-7");
    lines
}

#[test]
fn a_sequence_that_was_interrupted_goes_on_with_the_next_input() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    let wanted = "--mutator numbers --mutator-state state";
    let mut run = alone(&dir, "first", wanted, "log").start();
    run.wait_for("fuzzing; Ctrl-C stops");
    common::wait_until("some inputs", || made(&dir, "log").len() > 20);
    run.signal(Signal::SIGINT);
    run.finish().expect(0);
    let first = made(&dir, "log").len();
    // The last run may have been given up, and is made again then.
    let kept = dir.text("state").parse::<usize>().expect("the module's own words");
    assert!(kept == first || kept + 1 == first, "{kept} of {first}");
    alone(&dir, "second", &format!("{wanted} -E 30"), "log").run().expect(0);
    let mut all = made(&dir, "log");
    all.drain(kept..first);
    assert!(all.len() > first + 10, "{all:?}");
    assert_eq!(all, numbers(all.len()));
}

#[test]
fn a_killed_sequence_skips_no_input() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    let wanted = "--mutator numbers --mutator-state state";
    let job = alone(&dir, "first", wanted, "log").env("AFL_FUZZER_STATS_UPDATE_INTERVAL", "1");
    let run = job.start();
    common::wait_until("a state", || dir.path("state").exists());
    run.signal(Signal::SIGKILL);
    run.finish().expect(128 + libc::SIGKILL);
    let (kept, first) = (dir.text("state").parse::<usize>().unwrap(), made(&dir, "log").len());
    assert!(kept > 10 && kept <= first, "{kept} of {first}");
    alone(&dir, "second", &format!("{wanted} -E 30"), "log").run().expect(0);
    assert_eq!(made(&dir, "log")[first], format!("module-{kept}"));
}

#[test]
fn a_sequence_is_resumed_with_its_campaign() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    alone(&dir, "out", "--mutator numbers -E 20", "log").run().expect(0);
    let resumed =
        dir.ffuzz("-i - -o out -n --mutator-dir . --mutator-only --mutator numbers -E 60");
    let resumed = resumed.arg("--").arg(plain("append.c", "")).words("log");
    resumed.run().expect(0).does_not_say("crash ");
    let all = without_crashes(made(&dir, "log"));
    assert!(all.len() > 30, "{all:?}");
    assert_eq!(all, without_crashes(numbers(all.len() + 1)));
}

#[test]
fn the_end_of_a_sequence_is_reported() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "counter", "");
    let wanted = "--mutator counter --mutator-state state";
    alone(&dir, "a", wanted, "log")
        .run()
        .expect(0)
        .says("mutator counter exhausted after 5 inputs");
    let lines: Vec<String> = dir.text("log").lines().rev().take(5).map(|l| l[..2].into()).collect();
    assert_eq!(lines, ["4 ", "3 ", "2 ", "1 ", "0 "]);
    assert_eq!(dir.text("state"), "5");
    alone(&dir, "b", wanted, "log")
        .run()
        .expect(0)
        .says("mutator counter exhausted after 0 inputs");
    // A state of another program, with the line feed of an editor.
    dir.write("state", "3\n");
    alone(&dir, "c", wanted, "log")
        .run()
        .expect(0)
        .says("mutator counter exhausted after 2 inputs");
}

#[test]
fn batches_keep_the_order() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    let loops = target("append.c", "");
    for (out, limit) in [("one", 40), ("two", 100)] {
        let job =
            dir.ffuzz(&format!("-i in -o {out} -s 1 --mutator-dir . --mutator-only -E {limit}"));
        let job = job.words("--mutator numbers --mutator-state state").arg("--");
        job.arg(&loops).words("log").run().expect(0);
    }
    let all = made(&dir, "log");
    let mut once = all.clone();
    // What shows something new runs again before it is kept.
    once.dedup();
    assert!(once.len() > 60, "{}", once.len());
    assert_eq!(once, numbers(once.len()));
}

#[test]
fn in_a_campaign_the_stage_of_each_seed_is_continued() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    let campaign = |words: &str| {
        let job = dir.ffuzz(words).words("-o out -n --mutator-dir . --mutator numbers");
        let job = job.env("AFL_DISABLE_TRIM", "1");
        job.arg("--").arg(plain("append.c", "")).words("log").run().expect(0)
    };
    campaign("-i in -E 700");
    let first = made(&dir, "log").len();
    assert!(first > 10 && first < 600, "{first} of the module, the rest of other stages");
    let state = dir.text("out/default/state.json");
    assert!(state.starts_with(r#"{"mutators":[{"mutator":"numbers","options":null,"seeds":{"0":"#));
    campaign("-i - -E 1600");
    let all = without_crashes(made(&dir, "log"));
    assert!(all.len() > first, "{} {first}", all.len());
    assert_eq!(all, without_crashes(numbers(all.len() + 1)));
    let crash = &dir.crashes()[0];
    assert!(crash.contains(",op:numbers"), "{crash}");
}

#[test]
fn exhausted_sequences_are_not_restarted() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "counter", "");
    let job =
        dir.fuzz("-n -E 2000 --mutator-dir . --mutator counter", &plain("append.c", ""), "log");
    job.env("AFL_DISABLE_TRIM", "1").run().expect(0);
    let own = dir.text("log").lines().filter(|line| *line == "3 seed of the campaign").count();
    assert!((1..4).contains(&own), "{own}");
    assert!(dir.text("out/default/state.json").contains(r#""seeds":{"0":""}"#));
}

#[test]
fn parts_of_an_input_are_one_file() {
    let dir = TestDir::with_seed(br#"["::MEM::61", "::MEM::6162", "::MEM::616263"]"#);
    module(&dir, "parts", "");
    alone(&dir, "out", "--mutator parts", "log").run().expect(0).says("exhausted after 5 inputs");
    let last = dir.text("log").lines().last().unwrap().to_owned();
    assert_eq!(last, r#"["::MEM::45", "::MEM::4545", "::MEM::454545"]"#);
}

#[test]
fn a_screen_is_not_disturbed_by_what_modules_print() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "noisy", "");
    let wanted = "-n -E 300 --mutator-dir . --mutator noisy -d";
    let job = dir.fuzz(wanted, &plain("append.c", ""), "log").env("AFL_FORCE_UI", "1");
    let done = job.run().expect(0).says("\u{1b}[?1049h").says("\u{1b}[?1049l");
    let (_, screen) = done.out.split_once("\u{1b}[?1049h").unwrap();
    assert!(!screen.contains("NOISY"), "{screen}");
    assert!(dir.text("out/default/state.json").contains("numbers") || done.out.contains("NOISY"));
}

#[test]
fn a_program_that_exports_names_of_modules_does_no_harm() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "twin", "");
    let global = plain("tests/mutators/global.c", "-shared -fPIC");
    let job =
        alone(&dir, "out", "--mutator twin", "log").env("LD_PRELOAD", global.to_str().unwrap());
    job.run().expect(0).says("exhausted after 5 inputs");
}

#[test]
fn the_list_shows_every_module_of_the_folder() {
    let dir = TestDir::new();
    for name in ["counter", "sparse"] {
        module(&dir, name, "");
    }
    dir.write("libtext_mutator.so", "no library");
    let list = dir.ffuzz("--mutator-list --mutator-dir .").run().expect(0);
    assert_eq!(list.out, "counter\ncounts, and takes no options\n\nsparse\n\n\n");
    let list = dir.ffuzz("--mutator-list").env("FFUZZ_MUTATOR_DIR", ".").run().expect(0);
    assert!(list.out.starts_with("counter\n"));
    dir.ffuzz("--mutator-list").run().refused(2, "without a folder", "FFUZZ_MUTATOR_DIR");
    let job = dir.ffuzz("--mutator-list --mutator-dir nowhere");
    job.run().refused(1, "cannot read", "--mutator-dir");
}

#[test]
fn mistakes_are_explained() {
    let dir = TestDir::with_seed(SEED);
    for name in ["counter", "refuses", "incomplete", "fails"] {
        module(&dir, name, "");
    }
    let append = plain("append.c", "");
    let refused = |words: &str, code: i32, cause: &str, remedy: &str| {
        let job = dir.fuzz(&format!("-n --mutator-dir . {words}"), &append, "log").run();
        job.refused(code, cause, remedy);
    };
    fs::copy(plain("tests/mutators/global.c", "-shared -fPIC"), dir.path("other.so")).unwrap();
    dir.write("text.so", "no library");
    refused("--mutator nowhere", 1, "nowhere is not in", "--mutator-list shows them");
    refused("--mutator ./nowhere.so", 1, "cannot read the mutator", "check the path");
    refused("--mutator ./text.so", 1, "no shared library", "-shared");
    refused("--mutator ./other.so", 1, "neither `afl_custom_init`", "docs/mutators.md");
    refused("--mutator incomplete", 1, "has no mutate_extended", "mutators.h");
    refused("--mutator counter --mutator-ratio 0", 2, "not a number above 0", "2.0");
    refused(
        "--mutator-options {} --mutator counter",
        2,
        "before any mutator",
        "after the --mutator",
    );
    refused("--mutator counter --mutator-options @no", 1, "@no", "after @");
    refused("--mutator-only", 2, "with 0 Killerbeez modules", "--mutator");
    refused("--mutator counter --mutator-state x", 2, "without --mutator-only", "add");
    let only = "--mutator-only --mutator-state in --mutator counter";
    refused(only, 1, "cannot read the mutator's state", "--mutator-state");
    let options = "--mutator refuses --mutator-options {\"a\":1}";
    let job = dir.fuzz(&format!("-n --mutator-dir . {options}"), &append, "log").run().expect(1);
    job.says("REFUSES: no such option").says("the mutator refuses refuses its options {\"a\":1}");
    dir.write("in/another", "seed");
    refused("--mutator-only --mutator counter", 1, "with 2 seeds", "leave one");
    fs::remove_file(dir.path("in/another")).unwrap();
    // All those have left the folder as it was.
    refused("--mutator-only --mutator fails", 1, "fails failed after 2 inputs", "message");
}

#[test]
fn a_module_that_never_returns_does_not_block_the_campaign() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "stuck", "");
    let out = |signals| format!("out{signals}");
    let start = |signals| (signals, alone(&dir, &out(signals), "--mutator stuck", "log").start());
    for (signals, mut run) in [1, 2].map(start) {
        let out = out(signals);
        run.wait_for("mutator stuck is still busy in fuzz after 5 seconds");
        run.signal(Signal::SIGTERM);
        run.wait_for("a second Ctrl-C ends it immediately");
        if signals == 2 {
            // What comes within half a second of the first is the same request.
            common::wait_until("an end", || {
                let runs = run.processes().contains(&run.pid());
                if runs {
                    run.signal(Signal::SIGTERM);
                }
                !runs
            });
        }
        let done = run.finish().expect(1);
        match signals {
            1 => done.says("mutator stuck did not return from fuzz").says("resume with -i -"),
            _ => done.does_not_say("did not return"),
        };
        let resumed = dir.ffuzz(&format!("-i - -o {out} -n -E 60"));
        let resumed = resumed.arg("--").arg(plain("append.c", "")).words("log");
        resumed.run().expect(0).says("resumed: 1 queue entries");
    }
}

#[test]
fn a_module_that_crashes_is_named() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "crashes", "");
    let done = alone(&dir, "out", "--mutator crashes", "log").run().expect(128 + libc::SIGSEGV);
    done.says("mutator crashes crashed in fuzz (signal 11)");
    assert_eq!(dir.text("log").lines().last(), Some("2 seed of the campaign"), "all before it ran");
}

#[test]
fn a_damaged_state_affects_no_other() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "numbers", "");
    alone(&dir, "out", "--mutator numbers -E 20", "log").run().expect(0);
    dir.write("out/default/state.json", "{\"mutators\": 17");
    let job = dir.ffuzz("-i - -o out -n -E 40 --mutator-dir . --mutator numbers").arg("--");
    let job = job.arg(plain("append.c", "")).words("log");
    job.run().expect(0).says("state.json").says("mutators start over");
    assert!(dir.text("out/default/state.json").starts_with("{\"mutators\":["));
}

/// So that nobody thinks the names of the folder matter.
#[test]
fn a_module_is_known_by_its_symbols() {
    let dir = TestDir::with_seed(SEED);
    module(&dir, "counter", "");
    fs::rename(dir.path("libcounter_mutator.so"), dir.path("x.so")).unwrap();
    let job = dir.ffuzz("-i in -o out -n --mutator ./x.so --mutator-only").arg("--");
    let job = job.arg(plain("append.c", "")).words("log");
    job.run().expect(0).says("mutator x exhausted after 5 inputs");
    assert!(Path::new(&dir.path("out/default/state.json")).exists());
}

/// Where Killerbeez was built, with its `fuzzer`.
const UPSTREAM: &str = "KILLERBEEZ_BUILD";

#[test]
fn the_module_of_the_page_runs_in_killerbeez_which_continues_our_state() {
    let Some(folder) = std::env::var_os(UPSTREAM) else {
        skip(&format!("{UPSTREAM} does not name the folder of Killerbeez's fuzzer"));
        return;
    };
    let fuzzer = Path::new(&folder).join("fuzzer");
    let dir = TestDir::with_seed("aB-c");
    let page = page::blocks("killerbeez.md");
    let source = page.iter().find(|block| block.name == "swapcase.c").unwrap();
    let source = dir.write("swapcase.c", &source.text);
    let include = common::repository("include").display().to_string();
    let module = dir.path("libswapcase_mutator.so");
    let built = dir.program("cc").words("-shared -fPIC -I").arg(include).arg(source).arg("-o");
    built.arg(&module).run().expect(0);
    let echo = plain("append.c", "");
    let driver = serde_json::json!({"path": echo, "arguments": "log"});
    dir.write("driver", driver.to_string());
    dir.write("instrumentation", "{\"use_fork_server\": 0}");
    let theirs = |words: &str| {
        let job = dir.program(fuzzer.to_str().unwrap()).words("-d driver -i instrumentation");
        job.words(&format!("-s in/seed -p . {words} stdin return_code swapcase")).run().expect(0)
    };
    let ours = |out: &str| {
        let wanted = "--mutator swapcase --mutator-state state -E 9";
        alone(&dir, out, wanted, "log").run().expect(0)
    };
    ours("first");
    let state = dir.text("state");
    assert!(state.contains("\"iteration\": 1") || state.contains("\"iteration\": 2"), "{state}");
    theirs("-n 9 -u state -t ./after");
    assert_eq!(dir.text("after"), "{\"at\": 4, \"iteration\": 3}");
    theirs("-n 1 -t ./state");
    assert_eq!(dir.text("state"), "{\"at\": 1, \"iteration\": 1}");
    ours("second");
    assert_eq!(dir.text("state"), "{\"at\": 4, \"iteration\": 3}");
}
