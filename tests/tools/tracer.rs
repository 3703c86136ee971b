//! `ffuzz tracer`: what one input executes, and where two diverge.

#![cfg(target_arch = "x86_64")]

use crate::common;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Finished, TestDir, afl_target, name_of, plain, target, target_with};
use serde_json::Value;

/// Lines of two functions.
const LEFT: u32 = 17;
const RIGHT: u32 = 21;
const FLAGS: &str = "-g -O1 -pthread -ldl";

fn ours() -> PathBuf {
    target("tests/targets/traced.c", FLAGS)
}

fn foreign() -> PathBuf {
    plain("tests/targets/traced.c", FLAGS)
}

fn trace(options: &str, program: &Path, input: &str) -> Finished {
    let dir = TestDir::new();
    dir.tool(&format!("tracer {options}"), program, "").input(input).run()
}

fn json(options: &str, program: &Path, input: &str) -> Value {
    let done = trace(&format!("--json {options}"), program, input).expect(0);
    serde_json::from_str(&done.out).unwrap()
}

/// The blocks of a file.
fn blocks<'a>(document: &'a Value, module: &str) -> Vec<&'a Value> {
    let modules = document["modules"].as_array().unwrap();
    let number = modules.iter().position(|it| it["name"] == module).unwrap();
    let all = document["blocks"].as_array().unwrap();
    all.iter().filter(|block| block["module"] == number).collect()
}

/// Functions of a file in the order of their first block.
fn functions(document: &Value, module: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for block in blocks(document, module) {
        let name = block["function"].as_str().unwrap().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

// --- one input

#[test]
fn edges_and_counts_are_those_of_showmap() {
    let inputs = ["a12", "b", "", "f", "s"];
    for (options, input) in inputs.iter().flat_map(|input| [("--most 0", *input), ("", *input)]) {
        let document = json(options, &ours(), input);
        let traced: BTreeMap<u64, u64> = document["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| (block["edge"].as_u64().unwrap(), block["count"].as_u64().unwrap()))
            .collect();
        let shown = TestDir::new().tool("showmap -q -r -o -", &ours(), "").input(input).run();
        let pair = |line: &str| {
            let (edge, count) = line.split_once(':').unwrap();
            (edge.parse().unwrap(), count.parse().unwrap())
        };
        let shown: BTreeMap<u64, u64> = shown.expect(0).out.lines().map(pair).collect();
        assert_eq!(traced, shown, "{options} {input:?}");
        assert!(!shown.is_empty());
    }
}

/// Nothing but single steps knows better what a program executes.
#[test]
fn blocks_of_any_program_are_executed_as_often_as_single_steps_say() {
    let stepper = plain("tests/targets/stepper.c", "-O1");
    for input in ["a12", "b"] {
        let dir = TestDir::new();
        let file = dir.write("input", input);
        let steps = Command::new(&stepper).arg(foreign()).arg(&file).output().unwrap();
        let steps = String::from_utf8(steps.stdout).unwrap();
        let pair = |line: &str| {
            let (offset, count) = line.split_once(' ').unwrap();
            (offset.parse().unwrap(), count.parse().unwrap())
        };
        let steps: BTreeMap<u64, u64> = steps.lines().map(pair).collect();
        let document =
            dir.tool("tracer --json --most 0 -i input", &foreign(), "@@").run().expect(0);
        let document: Value = serde_json::from_str(&document.out).unwrap();
        let traced = blocks(&document, &name_of(&foreign()));
        assert!(traced.len() > 10, "{document}");
        for block in traced {
            let (offset, count) = (block["offset"].as_u64().unwrap(), block["count"].as_u64());
            assert_eq!(steps.get(&offset).copied(), count, "{input}: {offset:#x}");
        }
    }
}

#[test]
fn functions_come_in_their_order_with_lines() {
    for (program, input) in [(ours(), "a12"), (foreign(), "a12")] {
        let document = json("", &program, input);
        let names = functions(&document, &name_of(&program));
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        assert!(place("main").unwrap() < place("left").unwrap(), "{names:?}");
        assert_eq!(place("right"), None, "{names:?}");
        let left = blocks(&document, &name_of(&program));
        let left = left.iter().find(|block| block["function"] == "left").unwrap();
        assert!(left["file"].as_str().unwrap().ends_with("tests/targets/traced.c"), "{left}");
        assert!((15..19).contains(&left["line"].as_u64().unwrap()), "{left}");
        assert_eq!((&document["exit"], &document["version"]), (&"ok".into(), &1.into()));
    }
}

#[test]
fn lines_for_people_name_place_count_function_and_line() {
    let done = trace("", &ours(), "a12").expect(0);
    let line = done.out.lines().find(|line| line.contains("  left ")).unwrap();
    assert!(line.starts_with(&name_of(&ours())) && line.contains(" #"), "{line}");
    assert!(line.contains("traced.c:"), "{line}");
    let steps = trace("--steps", &ours(), "a12").expect(0);
    assert!(steps.out.lines().count() > done.out.lines().count());
    let set = trace("--set", &ours(), "a12").expect(0);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&set.out), sorted(&done.out));
}

#[test]
fn a_block_is_recorded_as_often_as_wanted() {
    let most = |options: &str| {
        let document = json(options, &foreign(), "a23456789");
        let blocks = document["blocks"].as_array().unwrap().clone();
        let top = blocks.iter().max_by_key(|block| block["count"].as_u64()).unwrap();
        (top["count"].as_u64().unwrap(), top["counted"].as_bool().unwrap())
    };
    assert_eq!(most("--most 2"), (2, false));
    assert_eq!(most("--most 0"), (9, true));
}

#[test]
fn values_of_domains_come_with_their_places() {
    let demo = target_with("cmp", "demo/demo.c", "-g");
    let input = "\x41\x41\x41\x41";
    let done = trace("", &demo, input).expect(0);
    let value = done.out.lines().find(|line| line.starts_with("dsf[")).unwrap();
    assert!(value.contains("  cmp  demo.c:"), "{value}");
    let shown = TestDir::new().showdsf("-q", &demo, "").input(input).run().expect(0);
    let head = |line: &str| line.split("  ").next().unwrap().to_owned();
    let traced: Vec<String> = done.values().into_iter().map(head).collect();
    assert_eq!(traced, shown.values());
    let document = json("", &demo, input);
    assert_eq!(document["dsf"].as_array().unwrap().len(), traced.len());
}

#[test]
fn code_that_is_loaded_later_is_traced() {
    let document = json("--modules libm.so:libc.so", &foreign(), "o");
    let loaded = |name: &str| {
        let modules = document["modules"].as_array().unwrap();
        modules.iter().any(|it| it["name"].as_str().unwrap().starts_with(name) && it["size"] != 0)
    };
    assert!(loaded("libm.so") && loaded("libc.so"), "{}", document["modules"]);
    assert!(!functions(&document, "libc.so.6").is_empty());
    assert_eq!(blocks(&document, &name_of(&foreign())).len(), 0);
}

#[test]
fn a_script_leads_to_its_programs() {
    let dir = TestDir::new();
    let script = dir.write("run.sh", format!("#!/bin/sh\nexec {} \"$1\"\n", foreign().display()));
    Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    dir.write("input", "b");
    let done = dir.tool("tracer -i input", &script, "@@").run().expect(0);
    done.says("  right ").does_not_say("  left ");
}

#[test]
fn all_runs_have_to_agree() {
    let once = json("", &ours(), "b");
    let thrice = json("-n 3", &ours(), "b");
    assert_eq!(once["blocks"], thrice["blocks"]);
}

// --- hostile targets

/// The target ends with a signal if it notices anything.
#[test]
fn a_target_behaves_as_without_a_tracer() {
    for program in [ours(), foreign()] {
        for input in ["a", "f", "t", "v", "s", "p", "x", "o", "d"] {
            let done = trace("--most 0 --modules all", &program, input);
            assert_eq!((done.code(), done.err.as_str()), (0, ""), "{input}: {}", done.out);
        }
    }
    assert_eq!(trace("", &foreign(), "z").expect(0).err, "");
}

#[test]
fn children_and_threads_are_traced() {
    for input in ["f", "t"] {
        let document = json("", &foreign(), input);
        let names = functions(&document, &name_of(&foreign()));
        assert!(names.contains(&"right".to_owned()), "{input}: {names:?}");
    }
    trace("--steps", &foreign(), "t").expect(0).says("\nt1 ");
}

#[test]
fn threads_at_the_same_breakpoint_go_on_where_they_were() {
    // One in ten crashed when a breakpoint was set again while another thread passed it.
    for _ in 0..60 {
        let done = trace("-t 20000 --most 10000", &foreign(), "y").expect(0);
        assert_eq!(done.err, "", "{}", done.out);
    }
}

#[test]
fn a_crash_is_traced_to_its_end() {
    let done = trace("", &ours(), "c").expect(0);
    done.says("crashed by signal 6").says("  main ");
    assert_eq!(json("", &ours(), "c")["signal"], 6);
}

#[test]
fn a_run_without_an_end_is_ended() {
    for program in [ours(), foreign()] {
        let done = trace("-t 300 --most 1", &program, "l");
        done.refused(1, "it exceeded 300 ms", "-t gives it more time").says("  main ");
    }
    let done = trace("-t 1000 --steps", &ours(), "l");
    let cause = done.err.lines().next().unwrap_or_default();
    assert!(cause.contains("it exceeded 1000 ms") || cause.contains("4194304 steps"), "{cause}");
    assert_eq!(done.code(), 1);
}

#[test]
fn a_target_that_starts_too_many_is_ended() {
    let done = trace("", &ours(), "m");
    done.refused(1, "more than 256 threads and processes", "with which it starts fewer");
}

#[test]
fn a_target_that_somebody_else_traces_cannot_be_traced() {
    let follower = plain("tests/targets/follower.c", "");
    let dir = TestDir::new();
    let job = dir.program(follower.to_str().unwrap());
    let job = job.arg(env!("CARGO_BIN_EXE_ffuzz")).words("tracer --").arg(ours()).input("a");
    job.run().refused(1, "cannot be traced", "strace");
}

#[test]
fn a_signal_ends_it_at_once() {
    let dir = TestDir::new();
    let running = dir.tool("tracer -t 100000", &ours(), "").input("l").start();
    common::wait_until("the target", || running.processes().len() > 1);
    running.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(running.finish().code(), 1);
}

// --- two inputs

fn compare(options: &str, program: &Path, a: &str, b: &str) -> Finished {
    let dir = TestDir::new();
    dir.write("a", a);
    dir.write("b", b);
    dir.tool(&format!("tracer {options} --diff a b"), program, "@@").run()
}

#[test]
fn two_inputs_diverge_where_the_program_asks() {
    for program in [ours(), foreign()] {
        let done = compare("", &program, "a1", "b1").expect(0);
        let done = done.says("\n  both  ").says("  A     ").says("  B     ");
        let done = done.says("  functions: left\n").says("  functions: right\n");
        let lines: Vec<&str> = done.out.lines().filter(|it| it.contains("traced.c: ")).collect();
        let has = |line: &str, number: u32| {
            let (_, numbers) = line.split_once("traced.c: ").unwrap();
            numbers.split(", ").any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (first.parse().unwrap()..=last.parse().unwrap()).contains(&number)
            })
        };
        // The loop of each function.
        assert!(has(lines[0], LEFT) && !has(lines[0], RIGHT), "{lines:?}");
        assert!(has(lines[1], RIGHT) && !has(lines[1], LEFT), "{lines:?}");
        let document: Value =
            serde_json::from_str(&compare("--json", &program, "a1", "b1").expect(0).out).unwrap();
        assert_eq!(document["last_common"]["function"], "main");
        assert_eq!(document["a"]["next"][0]["function"], "main", "{document}");
        assert!(document["diverged_after"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_loop_that_runs_longer_is_where_they_diverge() {
    let done = compare("", &ours(), "a1", "a12").expect(0);
    let part = done.out.lines().find(|line| line.starts_with("  both")).unwrap();
    assert!(part.contains("  left "), "{}", done.out);
    done.says("reaches 0 blocks, 0 lines");
}

#[test]
fn inputs_that_make_the_same_steps() {
    compare("", &ours(), "b1", "b2").expect(0).says("Both make the same ");
    let document = compare("--json", &ours(), "b1", "b2").expect(0).out;
    assert_eq!(serde_json::from_str::<Value>(&document).unwrap()["diverged_after"], Value::Null);
}

/// The program takes other ways by chance; a random number decides, whatever the input.
const CHANCE: &str = "#include <stdio.h>\n#include <sys/random.h>\nvolatile int seen;\n\
    __attribute__((noinline)) void one(void) { seen++; }\n\
    __attribute__((noinline)) void two(void) { seen--; }\n\
    int main(int n, char **words) { int c = n > 1 ? getc(fopen(words[1], \"r\")) : 0; unsigned char r[4];\n\
      if (getrandom(r, sizeof r, 0) != sizeof r) return 1;\n\
      for (int i = 0; i < 4; i++) if (r[i] & 1) one(); else two();\n\
      if (c == 'A') seen = 7;\n return 0; }";

#[test]
fn only_blocks_that_do_not_depend_on_chance_are_compared() {
    let dir = TestDir::new();
    let source = dir.write("chance.c", CHANCE);
    let program = plain(source.to_str().unwrap(), "-g -O0");
    for _ in 0..6 {
        compare("", &program, "b", "b").expect(0).says("Both make the same ").says("left out");
    }
    let done = compare("", &program, "b", "A").expect(0).says("They diverge after ");
    done.says("reaches 0 blocks, 0 lines").says("chance.c:10");
}

#[test]
fn what_was_cut_off_is_not_compared() {
    for program in [ours(), foreign()] {
        let done = compare("-t 500", &program, "l", "b1");
        let done = done.refused(1, "it exceeded 500 ms", "-t gives it more time");
        let done = done.says("a was cut off (").does_not_say("ends here");
        done.says("Only B (b) reaches").says("as far as a was seen").says("as far as it was seen");
    }
    // The same endless run twice.
    let same = compare("-t 500", &ours(), "l", "l");
    same.does_not_say("diverge").says("No difference was seen in ");
}

#[test]
fn a_long_loop_is_bounded_and_that_is_reported() {
    let long = "a".to_owned() + &"1".repeat(400);
    let done = compare("", &ours(), &long, "b1").expect(0);
    done.says("Of each block the first 8 executions are compared; --most 0 compares all.");
    let done = compare("--most 0", &ours(), &long, "b1").expect(0);
    done.says("They diverge after ").does_not_say("executions are compared");
}

// --- AFL's builds

#[test]
fn programs_of_afl_are_traced_like_any_other() {
    let program = afl_target("tests/targets/traced.c", FLAGS);
    let document = json("", &program, "a12");
    let names = functions(&document, &name_of(&program));
    assert!(
        names.contains(&"left".to_owned()) && !names.contains(&"right".to_owned()),
        "{names:?}"
    );
    assert_eq!(document["modules"][0]["counters"], false, "{}", document["modules"]);
    let done = compare("", &program, "a1", "b1").expect(0).says("They diverge after ");
    done.says("  functions: left\n").says("  functions: right\n");
}

// --- counts

#[test]
fn counts_beyond_the_counters_are_marked() {
    let program = target(
        "tests/targets/traced.c",
        &format!("{FLAGS} -DLINE=512 -fno-vectorize -fno-unroll-loops"),
    );
    let long = "a".to_owned() + &"1".repeat(299);
    let count = |options: &str| {
        let document = json(options, &program, &long);
        let blocks = document["blocks"].as_array().unwrap().clone();
        let top = |it: &&Value| it["function"] == "left" && it["count"].as_u64() > Some(7);
        let block = blocks.iter().find(top).unwrap_or_else(|| panic!("{document}"));
        (block["count"].as_u64().unwrap(), block["counted"].as_bool().unwrap())
    };
    let (exact, counted) = count("--most 0");
    assert!(exact > 255 && counted);
    let (least, counted) = count("");
    assert!(least <= exact && !counted, "{least}");
    let line = trace("", &program, &long).expect(0).out;
    assert!(line.lines().any(|line| line.contains("  left ") && line.contains("+  ")), "{line}");
}

// --- what is refused

#[test]
fn what_makes_no_sense_is_refused() {
    let senseless = |options: &str, cause: &str, remedy: &str| {
        trace(options, &ours(), "a").refused(2, cause, remedy);
    };
    senseless("-n 0", "-n 0 would run nothing", "from 1 on");
    senseless("--diff a b -i c", "both name inputs", "omit -i");
    senseless("--diff a b --steps", "for one input", "omit them");
    senseless("--json --steps", "cannot be combined", "choose one");
    senseless("--steps -n 2", "shows one run", "omit -n");
    senseless("--most x", "invalid value 'x'", "--help");
    let refused = |options: &str, cause: &str, remedy: &str| {
        trace(options, &ours(), "a").refused(1, cause, remedy);
    };
    refused("-t 1", "-t 1 is not a timeout", "milliseconds");
    refused("-i missing", "cannot read", "check its permissions");
    refused("--modules libnone.so", "no code to trace is known", "--modules");
    refused("-o /proc/none/file", "cannot write", "check the disk");
    let dir = TestDir::new();
    let text = dir.write("text", "no program");
    trace("", &text, "a").refused(1, "cannot start the target", "");
    trace("", Path::new("./missing"), "a").refused(1, "cannot find the target", "give its path");
}
