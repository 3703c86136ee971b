//! `ffuzz picker`: which modules depend on the input.

#![cfg(target_arch = "x86_64")]

use crate::common;
use std::path::PathBuf;
use std::process::Command;

use common::{TestDir, plain, target};
use serde_json::Value;

/// One library for each verdict, and a program that is the same for all inputs.
const PARSER: &str = "int parse(const char *s) { int sum = 0; for (; *s; s++) {\
    if (*s == '<') sum += 3; else if (*s >= '0' && *s <= '9') sum *= 2; else sum--; } return sum; }";
const CONSTANT: &str = "int prepare(void) { int sum = 0; for (int i = 0; i < 9; i++) sum += i;\
    return sum; }";
/// Whatever processor: the kernel's random bytes differ between two runs.
const NOISY: &str = "#include <sys/random.h>\nvolatile int seen; int noise(void) { unsigned char r[16];\
    if (getrandom(r, sizeof r, 0) != sizeof r) return 1;\
    for (int i = 0; i < 16; i++) switch (r[i] & 7) { case 0: seen++; break; case 1: seen--; break;\
    case 2: seen *= 3; break; case 3: seen /= 5; break; case 4: seen ^= 3; break; } return 0; }";
const MAIN: &str = "#include <unistd.h>\nint parse(const char *); int prepare(void); int noise(void);\
    int main(void) { char text[4096]; prepare(); noise(); long n = read(0, text, sizeof text - 1);\
    text[n > 0 ? n : 0] = 0; parse(text); return 0; }";

fn compile(dir: &TestDir, words: &str) {
    let done =
        Command::new("cc").args(words.split(' ')).current_dir(dir.path("")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A program of one library.
fn simple(dir: &TestDir) -> PathBuf {
    dir.write("parser.c", PARSER);
    dir.write("simple.c", MAIN.replace("prepare(); noise();", ""));
    compile(dir, "-O1 -shared -fPIC parser.c -o libparser.so.1");
    compile(dir, "-O1 simple.c libparser.so.1 -Wl,-rpath,$ORIGIN -o simple");
    dir.path("simple")
}

/// A program with its three libraries.
fn program(dir: &TestDir) -> PathBuf {
    for (name, source) in [("parser", PARSER), ("constant", CONSTANT), ("noisy", NOISY)] {
        dir.write(&format!("{name}.c"), source);
        compile(dir, &format!("-O1 -shared -fPIC {name}.c -o lib{name}.so.1"));
    }
    dir.write("main.c", MAIN);
    let libraries = "libparser.so.1 libconstant.so.1 libnoisy.so.1";
    compile(dir, &format!("-O1 main.c {libraries} -Wl,-rpath,$ORIGIN -o main"));
    dir.path("main")
}

fn seeds(dir: &TestDir, count: usize) {
    for number in 0..count {
        let text = "<1a".repeat(number % 5) + &"7".repeat(number / 5) + "x";
        dir.write(&format!("seeds/{number}"), text);
    }
}

fn module<'a>(document: &'a Value, name: &str) -> &'a Value {
    let modules = document["modules"].as_array().unwrap();
    modules.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"))
}

#[test]
fn each_module_gets_its_verdict() {
    let dir = TestDir::new();
    let main = program(&dir);
    seeds(&dir, 20);
    let done = dir.tool("picker --json -i seeds", &main, "").run().expect(0);
    let document: Value = serde_json::from_str(&done.out).unwrap();
    let parser = module(&document, "libparser.so.1");
    assert_eq!(parser["verdict"], "varies with input");
    assert_eq!((&parser["noisy"], &parser["worth"]), (&0.into(), &true.into()));
    assert!(parser["varying"].as_u64().unwrap() >= 3, "{parser}");
    assert!(parser["paths"].as_u64().unwrap() >= 5, "{parser}");
    let constant = module(&document, "libconstant.so.1");
    assert_eq!((&constant["verdict"], &constant["paths"]), (&"single path".into(), &1.into()));
    assert_eq!(module(&document, "libnoisy.so.1")["verdict"], "noisy only");
    assert_eq!(module(&document, "main")["verdict"], "single path");
    assert_eq!(module(&document, "libc.so.6")["worth"], false);
    assert_eq!(document["pick"], "libparser.so.1");
    assert_eq!(document["seeds"], 20);
    assert!(document["runs"].as_u64().unwrap() >= 2, "{document}");
}

#[test]
fn the_table_ends_with_the_lines_to_use() {
    let dir = TestDir::new();
    let main = simple(&dir);
    seeds(&dir, 4);
    let done = dir.tool("picker -i seeds", &main, "").run().expect(0);
    let done = done.says("\nBuild with CC=ffuzz-cc CXX=ffuzz-c++: libparser.so.1\n");
    let done = done.says("\n--modules libparser.so.1\n").says("4 seeds, 2 runs of each");
    assert!(done.out.lines().nth(1).unwrap().starts_with("libparser.so.1 "), "{}", done.out);
    // The list is one for the same command, and for the tracer.
    let chosen = dir.tool("picker -i seeds --modules libparser.so.1", &main, "").run().expect(0);
    chosen.does_not_say("libc.so").says("libparser.so.1  varies with input");
    let traced = dir.tool("tracer -i seeds/1 --modules libparser.so.1", &main, "").run().expect(0);
    traced.says("  parse").does_not_say("  main");
}

/// The advice is followed to its end: a campaign starts.
#[test]
fn what_the_advice_says_can_be_done() {
    let dir = TestDir::with_seed("1a");
    let main = simple(&dir);
    seeds(&dir, 4);
    let advice = dir.tool("picker -i seeds", &main, "").run().expect(0);
    advice.says("\nBuild with CC=ffuzz-cc CXX=ffuzz-c++: libparser.so.1\n");
    dir.fuzz("-E 50", &main, "").run().refused(1, "is not instrumented", "ffuzz-cc");
    dir.ffuzz("cc -O1 -shared -fPIC parser.c -o libparser.so.1").run().expect(0);
    let done = dir.tool("picker -i seeds", &main, "").run().expect(0);
    done.says("\nAlready built by ffuzz-cc: libparser.so.1\n");
    dir.fuzz("-E 300", &main, "").run().expect(0);
    assert!(dir.stat("total_edges") > 0);
}

#[test]
fn a_program_of_ffuzz_needs_no_other_build() {
    let dir = TestDir::new();
    dir.write("seeds/a", "a12");
    dir.write("seeds/b", "b");
    let program = target("tests/targets/traced.c", "-g -O1 -pthread -ldl");
    let done = dir.tool("picker -i seeds", &program, "@@").run().expect(0);
    done.says("Already built by ffuzz-cc: traced-");
}

#[test]
fn seeds_that_all_take_one_way_pick_nothing() {
    let dir = TestDir::new();
    let main = simple(&dir);
    for name in ["a", "b"] {
        dir.write(&format!("seeds/{name}"), "x");
    }
    let done = dir.tool("picker -i seeds", &main, "").run().expect(0);
    done.says("No module is worth instrumenting").does_not_say("--modules");
}

#[test]
fn hostile_targets_end_with_cause_and_remedy() {
    let program = plain("tests/targets/traced.c", "-g -O1 -pthread -ldl");
    let pick_within = |timeout: u32, input: &str| {
        let dir = TestDir::new();
        dir.write("seeds/a", "a");
        dir.write("seeds/b", input);
        dir.tool(&format!("picker -t {timeout} -i seeds"), &program, "@@").run()
    };
    pick_within(3000, "l").refused(1, "it exceeded 3000 ms on seeds/b", "-t gives it more time");
    let pick = |input| pick_within(60_000, input);
    pick("m").refused(1, "more than 256 threads and processes", "starts fewer");
    for input in ["d", "f", "t", "v", "s", "p", "x", "o"] {
        let done = pick(input).expect(0);
        assert_eq!(done.err, "", "{input}");
    }
    pick("c").expect(0).says("crashed by signal 6 on seeds/b");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = TestDir::new();
    dir.write("one/seed", "a");
    dir.write("two/a", "a");
    dir.write("two/b", "b");
    let program = plain("tests/targets/traced.c", "-g -O1 -pthread -ldl");
    let pick = |options: &str| dir.tool(&format!("picker {options}"), &program, "").run();
    pick("-i one").refused(1, "1 inputs in", "inputs of different kinds");
    pick("").refused(2, "missing: -i <DIR>", "--help");
    pick("-i missing").refused(1, "cannot read the folder", "give a folder");
    pick("-n 1 -i two").refused(2, "cannot show noise", "at least 2");
    pick("-i two --modules libnone.so").refused(1, "no code to trace is known", "--modules");
}
