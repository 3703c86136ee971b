//! `-Q`: programs without instrumentation, by breakpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::common;
use common::*;
use serde_json::Value;

const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// Compiles a program or library, and strips it.
fn build(dir: &TestDir, compiler: &str, words: &str) {
    let job = dir.program(compiler).words("-w -O2").words(words);
    job.env("LD_RUN_PATH", &dir.path("").display().to_string()).run().expect(0);
    let output = words.split(' ').skip_while(|word| *word != "-o").nth(1).unwrap();
    dir.program("strip").arg(dir.path(output)).run().expect(0);
}

fn source(name: &str) -> String {
    repository(&format!("tests/targets/{name}")).display().to_string()
}

#[test]
fn a_stripped_program_is_fuzzed_without_a_build() {
    for (compiler, words, mode) in [
        ("gcc", "", "snapshot"),
        ("clang-19", "-no-pie -fno-pie", "snapshot"),
        ("gcc", "-fcf-protection=full", "fork"),
    ] {
        let dir = TestDir::with_seed(if mode == "fork" { "HALx" } else { "HAxx" });
        build(&dir, compiler, &format!("{words} {} -o t", source("halves.c")));
        let ways = [("stdin", ""), ("file", "@@")];
        for (output, arguments) in ways.iter().take(if mode == "fork" { 1 } else { 2 }) {
            let options = format!("-Q -s 1 -E 200000 --run-mode {mode} -i in -o {output}");
            let job = dir.ffuzz(&options).arg("--").arg(dir.path("t")).words(arguments);
            let done = job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
            done.says("no instrumentation: copied code and breakpoints show ").says(" blocks of t");
            let stats = stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")));
            let of = |key: &str| stats[key].as_str();
            assert_eq!((of("saved_crashes"), of("run_mode")), ("1", mode), "{stats:?}");
            assert!(of("target_mode").ends_with("native"), "{stats:?}");
            assert_eq!(stats.get("snapshot_differs").map_or("0", |n| n.as_str()), "0");
            // Without the fuzzer the program crashes as well.
            let crash = dir.entries(&format!("{output}/default/crashes"));
            let crash = crash.iter().find(|name| name.starts_with("id:")).unwrap();
            let file = dir.path(&format!("{output}/default/crashes/{crash}"));
            let status = Command::new(dir.path("t")).arg(file).status().unwrap();
            assert!(!status.success());
        }
    }
}

#[test]
fn restored_and_forked_processes_see_the_same_blocks() {
    let dir = TestDir::with_seed("0123456789abcdef");
    build(&dir, "gcc", &format!("-x c++ {} -o t -lstdc++", source("blocks.cc")));
    dir.fuzz("-Q -c - -s 1 -E 30000", &dir.path("t"), "@@").run().expect(0);
    assert_eq!(dir.stats()["run_mode"], "snapshot");
    assert_eq!((dir.stat("snapshot_differs"), dir.stats()["stability"].as_str()), (0, "100.00%"));
    assert!(dir.stat("corpus_count") > 5, "{:?}", dir.stats());
    // By fork, each run has all breakpoints.
    let options = "showmap -Q -C -i out/default/queue -o map";
    dir.tool(options, &dir.path("t"), "@@").run().expect(0);
    assert_eq!(dir.text("map").lines().count() as u64, dir.stat("edges_found"));
}

#[test]
fn the_total_of_edges_is_what_can_be_counted() {
    let missed = |body: &str, variables: &[(&str, &str)]| {
        let dir = TestDir::with_seed("x");
        let text = format!("#include <stdio.h>\nint main(void) {{ int c = getchar(); {body} }}\n");
        build(&dir, "gcc", &format!("-O1 {} -o t", dir.write("t.c", text).display()));
        let mut job = dir.fuzz("-Q -s 1 -E 2000", &dir.path("t"), "");
        for (name, value) in variables {
            job = job.env(name, value);
        }
        job.run().expect(0);
        dir.stat("total_edges") - dir.stat("edges_found")
    };
    // All of both is reached, but for what the compiler adds.
    let (plain, branches) = (
        "return c == 7;",
        "for (int i = 0; i < 9; i++) { if (c & i) putchar(c); else puts(\"no\"); \
         if (c > 'k') puts(\"high\"); } return 0;",
    );
    for variables in [&[][..], &[("FFUZZ_NO_DETOURS", "1")]] {
        assert_eq!(missed(branches, variables), missed(plain, variables), "{variables:?}");
    }
}

#[test]
fn a_bug_in_a_library_is_found_if_its_blocks_count() {
    let dir = TestDir::with_seed("xxxx");
    build(&dir, "gcc", &format!("-shared -fPIC -DLIBRARY {} -o libhalf.so", source("halves.c")));
    let library = dir.path("libhalf.so").display().to_string();
    build(&dir, "gcc", &format!("-DPROGRAM {} {library} -o t", source("halves.c")));
    let campaign = |modules: &str, output: &str, execs: u32| {
        let options = format!("-Q -s 1 -E {execs} -i in -o {output} {modules}");
        let job = dir.ffuzz(&options).arg("--").arg(dir.path("t"));
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")))["saved_crashes"].clone()
    };
    assert_eq!(campaign("", "both", 200_000), "1");
    // The loader names such a library by a relative path.
    build(&dir, "gcc", &format!("-DPROGRAM {} ./libhalf.so -o t", source("halves.c")));
    assert_eq!(campaign("", "relative", 200_000), "1");
    assert_eq!(campaign("--modules libhalf.so", "library", 200_000), "1");
    assert_eq!(campaign("--modules t", "program", 20_000), "0");
}

#[test]
fn campaigns_without_source_are_resumed_and_shared() {
    let dir = TestDir::with_seed("xAxx");
    build(&dir, "gcc", &format!("{} -o t", source("halves.c")));
    let target = dir.path("t");
    // Without the comparison log, that is without the crash.
    dir.fuzz("-Q -c - -s 1 -E 3000", &target, "").run().expect(0);
    let edges = dir.stat("edges_found");
    let secondary = dir.ffuzz("-Q -c - -S second -i in -o out -E 1000 --").arg(&target);
    secondary.run().expect(0);
    let second = stats_of(&dir.text("out/second/fuzzer_stats"));
    assert_ne!(second["corpus_imported"], "0", "{second:?}");
    let until_crash = |options: &str| {
        let job = dir.ffuzz(&format!("{options} -V 60 --")).arg(&target);
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0)
    };
    until_crash("-Q -i - -o out");
    assert!(dir.stat("edges_found") > edges && dir.stat("saved_crashes") == 1, "{:?}", dir.stats());
    until_crash("-Q -j 2 -i in -o fleet").says(", 1 crash");
}

#[test]
fn variables_of_afl_are_those_of_its_binary_mode() {
    let dir = TestDir::new();
    build(&dir, "gcc", &format!("{} -o t", source("overflow.c")));
    let shown = |options: &str, variable: &str, code| {
        let job = dir.tool(&format!("showmap -q -Q {options} -o map"), &dir.path("t"), "");
        job.env(variable, "1").input("r1").run().expect(code);
        dir.text("map").lines().count()
    };
    // Blocks of libc, which vary a little from run to run.
    let own = shown("", "NONE", 0);
    assert!(shown("--modules all", "NONE", 0) > own + 20);
    assert!(shown("", "AFL_INST_LIBS", 0) > own + 20);
    // --guard-heap
    shown("", "AFL_USE_QASAN", 2);
}

#[test]
fn breakpoints_change_nothing_that_a_program_does() {
    let dir = TestDir::new();
    let cases = "none blocks blocks-in-thread blocks-in-handler holds masks handles ignores no-trap sets traps \
                 own-stack vfork fork system threads segv abort";
    for compiler in COMPILERS {
        build(&dir, compiler, &format!("-w {} -o t -lpthread", source("traps.c")));
        for case in cases.split_whitespace() {
            let plain = Command::new(dir.path("t")).arg(case).output().unwrap();
            let job = dir.tool("showmap -Q -e -o map", &dir.path("t"), case).input("");
            let crashed = plain.status.code().is_none();
            let run = job.run().expect(if crashed { 2 } else { 0 });
            assert_eq!(run.out, String::from_utf8_lossy(&plain.stdout), "{compiler} {case}");
            assert!(dir.text("map").lines().count() > 5, "{compiler} {case}");
        }
    }
}

/// Functions are copied: what leads into them, and out of them, still does.
#[test]
fn copied_code_does_what_the_original_does() {
    let dir = TestDir::new();
    let flags =
        ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -no-pie -fno-pie", "-O2 -fcf-protection=full"];
    for compiler in ["g++", "clang++-19"] {
        for flags in flags {
            let words = format!("{} {flags} -o t -lpthread", source("flows.cc"));
            build(&dir, compiler, &words);
            for text in ["hello, world 0123\n", "", "aZ~\n"] {
                dir.write("text", text);
                let plain = Command::new(dir.path("t"))
                    .stdin(std::fs::File::open(dir.path("text")).unwrap())
                    .output()
                    .unwrap();
                let job = dir.tool("showmap -Q -e -o map", &dir.path("t"), "").input(text);
                let run = job.run().expect(0);
                let expected = String::from_utf8_lossy(&plain.stdout);
                assert_eq!(run.out, expected, "{compiler} {flags} {text:?}");
            }
        }
    }
}

/// As in a program of `ffuzz-cc`: a loop's turns are counted, and the edge that goes past a block.
#[test]
fn hit_counts_and_edges_are_seen() {
    let dir = TestDir::with_seed("x");
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(void) { int n = getchar() - '0', turns = 0; volatile int a = 0, b = 0;\n\
        if (getchar() == 'y') a++;\n if (n > 9) return 1;\n\
        for (int i = 0; i < n; i++) { b += a; turns++; if (turns > 100) abort(); }\n return 0; }";
    dir.write("t.c", source);
    for compiler in COMPILERS {
        build(&dir, compiler, "t.c -o t");
        let map = |text: &str| {
            let job = dir.tool("showmap -Q -q -r -o -", &dir.path("t"), "").input(text);
            job.run().expect(0).out
        };
        let (one, many) = (map("1x"), map("8x"));
        let highest = |map: &str| {
            let counts = map.lines().filter_map(|line| line.split(':').nth(1));
            counts.map(|count| count.parse::<u32>().unwrap()).max().unwrap()
        };
        // clang makes two turns of the loop into one.
        assert_eq!(highest(&one), 1, "{compiler}: {one}");
        assert!((4..=8).contains(&highest(&many)), "{compiler}: {many}");
        // Past `a++` no block is passed that the other way does not pass.
        let keys = |map: &str| map.lines().map(|line| line[..6].to_owned()).collect::<Vec<_>>();
        let (past, through) = (keys(&map("1x")), keys(&map("1y")));
        assert!(past.iter().any(|key| !through.contains(key)), "{compiler}: {past:?} {through:?}");
    }
}

/// A counter goes on from 1 after 255, also one between a comparison and a branch.
#[test]
fn a_counter_that_overflows_is_not_zero() {
    let dir = TestDir::with_seed("1");
    let source = "#include <stdio.h>\n#include <stdlib.h>\nstatic volatile int less, equal, more;\n\
        int main(void) { char text[9]; int turns = fgets(text, 9, stdin) ? atoi(text) : 0;\n\
        for (int i = 0; i < turns; i++) { if (i < turns / 2) less++; else if (i == turns / 2) equal++;\n\
        else more++; }\n return 0; }";
    dir.write("t.c", source);
    for compiler in COMPILERS {
        build(&dir, compiler, "-O1 t.c -o t");
        let counts = |turns: &str| {
            let job = dir.tool("showmap -Q -q -r -o -", &dir.path("t"), "").input(turns);
            job.run().expect(0).out
        };
        assert_eq!(counts("10"), counts("520"), "{compiler}");
        assert_ne!(counts("10"), counts("521"), "{compiler}");
    }
}

/// Its copies would not reach all of its data.
#[test]
fn a_program_that_is_as_large_as_a_jump_reaches_keeps_breakpoints() {
    let dir = TestDir::with_seed("7");
    let source = "#include <stdio.h>\nchar far[2040u << 20]; volatile int last;\n\
        int main(void) { int n = getchar() - '0'; for (int i = 0; i < n; i++) last += i;\n\
        printf(\"%d\\n\", last); return far[n & 7]; }";
    dir.write("t.c", source);
    build(&dir, "gcc", "-fno-toplevel-reorder t.c -o t");
    let run = dir.fuzz("-Q -c - -s 1 -E 50", &dir.path("t"), "").run().expect(0);
    // That would come from a crash of a copy.
    assert!(!run.out.contains("rewritten"), "{}", run.out);
    dir.tool("showmap -Q -r -o map", &dir.path("t"), "").input("7").run().expect(0).says("21\n");
    let counts = dir.text("map");
    assert!(
        counts.lines().count() > 2 && counts.lines().all(|line| line.ends_with(":1")),
        "{counts}"
    );
}

/// A jump has five bytes, a breakpoint one: who reads the others finds only jumps.
#[test]
fn a_program_that_reads_its_code_keeps_breakpoints() {
    let dir = TestDir::with_seed("HALx");
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        __attribute__((noinline)) int f(volatile int *at) { *at = 0x11223344; at[1] = 7; return 3; }\n\
        int main(void) { int a[2]; char t[4] = \"\"; if (fread(t, 1, 4, stdin) && t[0] == 'H') puts(\"H\");\n\
        unsigned char *code = (unsigned char *)f; int at = code[0] == 0xf3 ? 4 : 0;\n\
        if (code[at + 2] != 0x44 && code[1] != 7) return 9; return f(a) - 3; }";
    dir.write("t.c", source);
    build(&dir, "gcc", "t.c -o t");
    let job = dir.fuzz("-Q -c - -s 1 -E 3000", &dir.path("t"), "");
    let run = job.env("AFL_CRASH_EXITCODE", "9").run().expect(0);
    assert!(run.out.contains("breakpoints alone"), "{}", run.out);
    assert!(!run.out.contains("may read its own code"), "{}", run.out);
    assert_eq!((dir.stat("saved_crashes"), dir.stats()["run_mode"].as_str()), (0, "snapshot"));
}

#[test]
fn a_program_that_blocks_the_signal_by_itself_does_not_crash() {
    let dir = TestDir::with_seed("x");
    build(&dir, "gcc", &format!("{} -o t -lpthread", source("traps.c")));
    let job = dir.fuzz("-Q -E 200", &dir.path("t"), "blocks-by-itself");
    let run = job.run().expect(0);
    assert_eq!(dir.stat("saved_crashes"), 0);
    assert!(
        run.err.contains("blocks or takes SIGTRAP") || run.out.contains("blocks or takes SIGTRAP")
    );
    // It crashes by a trap of its own all the same.
    let job = dir.ffuzz("-Q -E 200 -i in -o own --").arg(dir.path("t")).arg("traps");
    let run = job.run();
    assert!(format!("{}{}", run.out, run.err).contains("crash"), "{}", run.err);
}

#[test]
fn programs_of_the_system_work_with_breakpoints_everywhere() {
    let dir = TestDir::new();
    let text = std::fs::read(repository("README.md")).unwrap();
    for (program, words) in [
        ("sort", ""),
        ("sed", "s/a/bb/g;y/xyz/abc/"),
        ("grep", "-n -E f+u(z|l)"),
        ("sh", "-c cat|tr_a-z_A-Z"),
        ("sha256sum", ""),
        ("sha512sum", ""),
        ("xxd", ""),
        ("gzip", "-cn9"),
        ("sqlite3", ":memory: .schema"),
        ("readelf", "-a /bin/sh"),
    ] {
        let Some(path) = path_of(program) else { continue };
        let words: Vec<String> = words.split_whitespace().map(|w| w.replace('_', " ")).collect();
        let mut job = dir.program(path.to_str().unwrap());
        for word in &words {
            job = job.arg(word);
        }
        let plain = job.input(&text).run();
        let mut job = dir.ffuzz("showmap -Q --modules all -e -o map --").arg(&path);
        for word in &words {
            job = job.arg(word);
        }
        let run = job.input(&text).run().expect(0);
        assert_eq!(run.out, plain.out, "{program}");
        assert!(dir.text("map").lines().count() > 300, "{program}");
    }
}

/// `make transparency` takes more inputs.
const INPUTS: u64 = 12;
/// A program, its arguments, and an input; none that would run commands of a changed input.
const READERS: [(&str, &str, &str); 15] = [
    ("sed", "--sandbox -n -f @@", "s/a\\(b*\\)/<\\1>/gp;y/xyz/abc/;/q/{N;D};$!{h;G};1,3p\n"),
    (
        "bc",
        "-q @@",
        "scale=5;define f(x){if(x<2)return 1;return x*f(x-1)};f(10)/3;for(i=0;i<3;i++)i^2\n",
    ),
    ("sort", "-n -k2 @@", "a 3\nb 1\n c 2\nd 10\n\n"),
    ("tsort", "@@", "a b\nb c\nc d d e\nx y\n"),
    (
        "fmt",
        "-w 20 @@",
        "Some words, and  some more.\n\n  An indented line.\n\tA tab, anda_word_that_is_long\n",
    ),
    ("file", "-b @@", "#!/bin/sh -e\n# some words\necho 'GIF89a' \"$1\"\n"),
    (
        "ptx",
        "-w 40 @@",
        "The words of a line, permuted:\neach once in the middle. A line\nof more words\n",
    ),
    (
        "gawk",
        "--sandbox -f @@",
        "BEGIN{x[\"a\"]=1;for(i=0;i<3;i++)printf \"%d %s\\n\",i,substr(\"hello\",i);print 1/4}\n",
    ),
    (
        "sqlite3",
        "-safe -init @@ :memory: .schema",
        "create table t(a,b);insert into t values(1,'x'),(2,'y');select a,b from t order by a desc;\n",
    ),
    (
        "lua5.4",
        "@@",
        "for i,v in ipairs{1,2,3} do print(i,v*2) end print(pcall(error,'x')) print(('a'):rep(3))\n",
    ),
    (
        "xmllint",
        "--format --valid @@",
        "<!DOCTYPE r [<!ELEMENT r (a|b)*><!ENTITY e 'x'>]><r xmlns:p='u'><a q='1'>&e;</a><b/></r>\n",
    ),
    ("jq", "-c . @@", "{\"a\":[1,2.5,-3e4,true,null],\"b\":{\"c\":\"\\u00e9x\"}}\n"),
    (
        "tidy",
        "-q @@",
        "<html><title>x</title><body><p>a<b>c</p><table><tr><td>1</table><ul><li>x\n",
    ),
    (
        "rsvg-convert",
        "-f svg @@",
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='5' height='5'/></svg>\n",
    ),
    (
        "qpdf",
        "--check @@",
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n",
    ),
];

/// Copies of `text` with a few changed bytes, the same in each call.
fn changed(text: &str, count: u64) -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let mut next = |limit: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit
    };
    let mut inputs = vec![text.as_bytes().to_vec()];
    for _ in 1..count {
        let mut input = text.as_bytes().to_vec();
        for _ in 0..=next(4) {
            let at = next(input.len());
            match next(4) {
                0 => input[at] = next(256) as u8,
                1 => input[at] ^= 1 << next(8),
                2 if input.len() > 8 => drop(input.drain(at..(at + 1 + next(6)).min(input.len()))),
                _ => {
                    let from = next(input.len());
                    let piece = input[from..(from + 1 + next(9)).min(input.len())].to_vec();
                    input.splice(at..at, piece);
                }
            }
        }
        inputs.push(input);
    }
    inputs
}

/// Whatever the input is, a program prints what it prints without `-Q`.
#[test]
fn programs_print_what_they_print_without_instrumentation() {
    let count = std::env::var("FFUZZ_TEST_INPUTS").map_or(INPUTS, |count| count.parse().unwrap());
    let mut compared = Vec::new();
    for (program, words, text) in READERS {
        let Some(path) = path_of(program) else { continue };
        let dir = TestDir::new();
        let mut plain = [String::new(), String::new()];
        let mut statuses = BTreeMap::new();
        for (number, input) in changed(text, count).iter().enumerate() {
            dir.write("input", input);
            let words = words.split(' ').map(|word| if word == "@@" { "input" } else { word });
            let job = Command::new("timeout")
                .arg("2")
                .arg(&path)
                .args(words)
                .current_dir(dir.path(""))
                .env("LC_ALL", "C")
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            // A changed program may have no end.
            if job.status.code() != Some(124) {
                dir.write(&format!("in/{number:06}"), input);
                statuses.extend(job.status.code().map(|code| (format!("{number:06}"), code)));
                plain[0] += &String::from_utf8_lossy(&job.stdout);
                plain[1] += &String::from_utf8_lossy(&job.stderr);
            }
        }
        // The files are run in the order of their names.
        let job = dir.tool("showmap -Q -q -t 20000 -H input -i in -o maps", &path, words);
        let run = job.env("AFL_DEBUG_CHILD", "1").env("LC_ALL", "C").run().expect(0);
        assert!(run.out == plain[0] && run.err == plain[1], "{program}");
        // Each of the statuses but 0 in turn is a crash.
        for status in statuses.values().filter(|status| **status != 0).collect::<BTreeSet<_>>() {
            let expected = statuses.iter().filter(|(_, other)| *other == status);
            let expected: Vec<_> = expected.map(|(name, _)| name.as_str()).collect();
            let job = dir.tool("showmap -Q -t 20000 -H input -i in -o maps", &path, words);
            let job = job.env("AFL_CRASH_EXITCODE", &(*status as i8).to_string());
            let run = job.env("LC_ALL", "C").run();
            let crashed = run.err.lines().chain(run.out.lines());
            let crashed = crashed.filter_map(|line| line.split_once("crashed by exit code on in/"));
            let mut crashed: Vec<_> = crashed.map(|(_, name)| name).collect();
            crashed.sort_unstable();
            assert_eq!(crashed, expected, "{program}: {status}");
        }
        compared.push(program);
    }
    // Those of coreutils and sed are on every machine.
    assert!(compared.len() >= 5, "{compared:?}");
}

fn path_of(program: &str) -> Option<std::path::PathBuf> {
    let folders = ["/usr/bin", "/bin"].map(std::path::PathBuf::from);
    folders.iter().map(|folder| folder.join(program)).find(|path| path.exists())
}

#[test]
fn programs_that_cannot_have_breakpoints_are_refused() {
    let dir = TestDir::with_seed("x");
    let c = source("halves.c");
    build(&dir, "gcc", &format!("{c} -o plain"));
    build(&dir, "gcc", &format!("-static {c} -o static"));
    dir.write("start.c", "void _exit(int); void _start(void) { _exit(0); }");
    build(&dir, "gcc", "-nostartfiles start.c -o unstarted");
    dir.ffuzz(&format!("cc {c} -o ours")).run().expect(0);
    for (words, cause, remedy) in [
        ("--native -- ./static", "linked statically", "omit --native"),
        ("-- ./ours", "this one is instrumented", "leave -Q out"),
        ("-- ./unstarted", "before main", "AFL_DEBUG_CHILD=1"),
        ("--modules libnone.so -- ./plain", "none of the target's files", "they are plain, libc"),
    ] {
        let run = dir.ffuzz(&format!("-Q -V 2 -i in -o out {words}")).run().expect(1);
        assert!(run.err.contains(cause) && run.err.contains(remedy), "{words}: {}", run.err);
    }
    let refused = |job: Job, cause: &str| job.run().refused(2, cause, "");
    refused(dir.ffuzz("-Q -n -i in -o out -- ./plain"), "-Q and -n exclude each other");
    refused(dir.ffuzz("--modules x -i in -o out -- ./plain"), "--modules chooses");
    let job = dir.ffuzz("-Q -i in -o out -- ./plain").env("AFL_NO_FORKSRV", "1");
    refused(job, "needs a fork server");
}

#[test]
fn comparisons_are_solved_without_source() {
    for compiler in COMPILERS {
        let dir = TestDir::with_seed("x".repeat(60));
        build(&dir, compiler, &format!("{} -o t", source("gates.c")));
        for seed in 1..=3 {
            let options = format!("-Q -s {seed} -E 20000 -i in -o out{seed}");
            let job = dir.ffuzz(&options).arg("--").arg(dir.path("t")).words("@@");
            job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
            let stats = stats_of(&dir.text(&format!("out{seed}/default/fuzzer_stats")));
            assert_eq!(stats["saved_crashes"], "1", "{compiler} {seed}: {stats:?}");
        }
        // Whoever asks is told where they are.
        let job = dir.tool("showmap -Q --comparisons -o log", &dir.path("t"), "");
        job.input("x".repeat(60)).run().expect(0);
        let log = dir.text("log");
        assert!(log.contains("t+0x") && log.contains("0xdeadbeef (constant)"), "{log}");
    }
}

/// Programs of `tests/challenges/` as gcc compiles them: comparisons become others, or are no `cmp`. Without words.
#[test]
fn challenges_are_solved_without_source() {
    let dir = TestDir::with_seed("x".repeat(48));
    let main = repository("benches/targets/once.c").display().to_string();
    // Memory as numbers of eight bytes, ranges by one comparison, floating-point numbers.
    for (name, execs) in [
        ("hexadecimal", 30_000),
        ("base64", 30_000),
        ("affine", 10_000),
        ("date", 10_000),
        ("sums", 10_000),
        ("floats", 10_000),
        ("fields", 20_000),
        ("crc32", 2_000),
        ("strtol", 5_000),
    ] {
        let path = repository(&format!("tests/challenges/{name}.c")).display().to_string();
        build(&dir, "gcc", &format!("{path} {main} -o {name}"));
        let options = format!("-Q -s 1 -t 2000 -E {execs} -i in -o out-{name}");
        let job = dir.ffuzz(&options).arg("--").arg(dir.path(name));
        job.env("AFL_NO_AUTODICT", "1").env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        let stats = stats_of(&dir.text(&format!("out-{name}/default/fuzzer_stats")));
        assert_eq!(stats["saved_crashes"], "1", "{name}: {stats:?}");
    }
}

/// The handler does what the instruction would have done.
#[test]
fn logged_comparisons_of_floating_point_numbers_are_right() {
    for (compiler, flags) in [("gcc", ""), ("gcc", "-mavx"), ("clang-19", "-O0")] {
        let dir = TestDir::new();
        build(&dir, compiler, &format!("{} {flags} -o t", source("unordered.c")));
        dir.tool("showmap -Q --comparisons -q -o log", &dir.path("t"), "").run().expect(0);
        let log = dir.text("log");
        assert!(log.contains(": f64") && log.contains(": f32"), "{compiler} {flags}: {log}");
    }
}

/// What `--guard-heap` finds and nothing else does.
#[test]
fn a_guarded_heap_shows_overflows() {
    let dir = TestDir::with_seed("xx");
    build(&dir, "gcc", &format!("{} -o t", source("overflow.c")));
    // Each by hand: nothing without the option, a crash with it.
    let kinds =
        [("r1", 11), ("w1", 11), ("s1", 6), ("u1", 6), ("f1", 11), ("d1", 6), ("W1", 6), ("U1", 6)];
    for (kind, signal) in kinds {
        let run = |options: &str, code| {
            let job = dir.tool(&format!("showmap -q {options} -o map"), &dir.path("t"), "");
            job.input(kind).run().expect(code)
        };
        // libc sees these itself.
        let without = if matches!(kind, "d1" | "u1") { 2 } else { 0 };
        run("-Q", without);
        run("-Q --guard-heap", 2);
        let job = dir.tool("showmap -Q --guard-heap -o map", &dir.path("t"), "").input(kind);
        let said = job.run().expect(2).err;
        assert!(said.contains(&format!("killed by signal {signal}")), "{kind}: {said}");
    }
    // Campaign and triage: the bug is in the program, and its crash file repeats.
    let job = dir.fuzz_and_triage("-Q --guard-heap -V 60 -s 1", &dir.path("t"), "@@");
    let run = job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    assert!(dir.stat("saved_crashes") > 0 && run.out.contains("bug "), "{}", run.out);
    let report = dir.text("out/triage/report.json");
    assert!(report.contains("\"state\": \"crashes\""), "{report}");
    assert!(!report.contains("-libffuzz-heap"), "{report}");
}

/// Nothing has a name there.
#[test]
fn triage_names_what_the_guarded_heap_has_found_and_the_place_in_a_stripped_program() {
    let dir = TestDir::new();
    build(&dir, "gcc", &format!("-O0 -s {} -o t", source("overflow.c")));
    let kinds = [
        ("s1", "heap-buffer-overflow"),
        ("r1", "heap-buffer-overflow"),
        ("u1", "heap-buffer-underflow"),
        ("F1", "heap-use-after-free"),
        ("W1", "heap-use-after-free"),
        ("d1", "double-free"),
    ];
    for (kind, class) in kinds {
        dir.write(&format!("{kind}/crash"), kind);
        let job =
            dir.ffuzz(&format!("triage --guard-heap -o out-{kind} --sarif {kind}.sarif {kind} --"));
        job.arg(dir.path("t")).words("@@").run().expect(0);
        let report: Value =
            serde_json::from_slice(&dir.read(&format!("out-{kind}/triage/report.json"))).unwrap();
        let bug = &report["bugs"][0];
        let text = |name: &str| bug[name].as_str().unwrap_or_default().to_owned();
        assert!(text("id").starts_with(&format!("{class}-t-0x")), "{kind}: {bug:#}");
        assert_eq!(text("class"), class, "{kind}: {bug:#}");
        assert!(text("title").starts_with(class), "{kind}: {bug:#}");
        assert!(text("title").contains("[@ t+0x"), "{kind}: {bug:#}");
        assert!(!bug["frames"].as_array().unwrap().contains(&"??".into()), "{kind}: {bug:#}");
        assert!(dir.text(&format!("{kind}.sarif")).contains(&format!("\"ruleId\": \"{class}\"")));
    }
}

#[test]
fn a_guarded_heap_is_refused_where_it_cannot_be() {
    let dir = TestDir::with_seed("x");
    let c = source("halves.c");
    build(&dir, "gcc", &format!("-static {c} -o static"));
    dir.ffuzz(&format!("cc -fsanitize=address {c} -o asan")).run().expect(0);
    for (target, cause) in [("./static", "linked statically"), ("./asan", "that of a sanitizer")] {
        let run = dir.ffuzz(&format!("--guard-heap -V 2 -i in -o out -- {target}")).run().expect(1);
        assert!(run.err.contains("--guard-heap") && run.err.contains(cause), "{}", run.err);
    }
}

/// The build of `-w` is instrumented and has a heap of its own.
#[test]
fn new_paths_run_in_a_sanitizer_build_too() {
    let dir = TestDir::with_seed("HALx");
    let c = source("halves.c");
    build(&dir, "gcc", &format!("{c} -o t"));
    dir.ffuzz(&format!("cc -fsanitize=address {c} -o asan")).run().expect(0);
    for options in ["", "--guard-heap"] {
        let output = format!("out{options}");
        let options = format!("-Q {options} -w ./asan -s 1 -E 20000 -i in -o {output}");
        let job = dir.ffuzz_and_triage(&options).arg("--").arg(dir.path("t"));
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        let stats = stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")));
        assert_eq!(stats["saved_crashes"], "1", "{stats:?}");
        let report = dir.text(&format!("{output}/triage/report.json"));
        assert!(report.contains("\"sanitizer_build\": \"") && report.contains("look"), "{report}");
    }
}

#[test]
fn runs_are_ordered_by_pipes_if_that_is_asked_for() {
    let dir = TestDir::with_seed("HALx");
    build(&dir, "gcc", &format!("{} -o t", source("halves.c")));
    let job = dir.fuzz("-Q --run-mode pipe -c - -s 1 -E 3000", &dir.path("t"), "");
    let run = job.run().expect(0);
    assert!(!run.out.contains("restarted") && !run.err.contains("restarted"), "{}", run.out);
    assert_eq!(dir.stats()["run_mode"], "pipe");
    assert!(dir.stat("edges_found") > 8, "{:?}", dir.stats());
}

/// There is no table of a compiler: strings that look like words are a dictionary.
#[test]
fn strings_are_words() {
    let dir = TestDir::with_seed("x");
    let source = "#include <stdio.h>\n#include <string.h>\n\
        static const char *const words[] = {\"frobnicate\", \"<!--\", \"END\"};\n\
        int main(int n, char **v) { char b[32] = {0}; if (!fgets(b, 31, stdin)) puts(\"cannot read the file\");\n\
        for (int i = 0; i < 3; i++) if (!strcmp(b, words[i])) return printf(\"%s%d\", v[0], i); return 0; }";
    dir.write("t.c", source);
    build(&dir, "gcc", "t.c -o t");
    build(&dir, "gcc", "-static t.c -o static");
    let words = |program: &str, options: &str| {
        let job = dir.tool(&format!("showmap {options} --tokens -q -o -"), &dir.path(program), "");
        job.run().expect(0).says("=\"frobnicate\"").says("=\"<!--\"").says("=\"END\"")
    };
    words("t", "-Q").does_not_say("cannot").does_not_say("%s");
    if has("qemu-x86_64") {
        words("static", "-Q").does_not_say("%s");
    }
    dir.fuzz("-Q -E 100", &dir.path("t"), "").run().expect(0);
    assert!(dir.stat("auto_dict_entries") >= 3);
    let without = dir.ffuzz("-Q -E 100 -i in -o without -- ./t").env("AFL_NO_AUTODICT", "1");
    without.run().expect(0);
    let stats = stats_of(&dir.text("without/default/fuzzer_stats"));
    assert_eq!(stats["auto_dict_entries"], "0");
}

/// What breakpoints do is no crash of the program, however often it happens; what the program does is one.
#[test]
fn a_program_that_breakpoints_break_has_no_false_crash() {
    let dir = TestDir::with_seed("seed");
    build(&dir, "gcc", &format!("{} -o t", source("fragile.c")));
    for (case, cause, detours) in [
        ("none", "", true),
        ("reads-itself", "it may read its own code", true),
        ("reads-itself", "it may read its own code", false),
        ("filters", "", true),
        ("filters", "system call filter (seccomp) forbids", false),
        ("refuses", "ends differently without breakpoints", false),
        ("small-stack", "", true),
        ("small-stack", "signals on a small stack", false),
    ] {
        let variable = if detours { "0" } else { "1" };
        // Not enough for the bug, but beyond the first runs, all of which were always repeated.
        let output = format!("{case}{variable}");
        let options = format!("-Q -t 3000 -c - -s 1 -E 400 -i in -o {output} --");
        let job = dir.ffuzz(&options).env("FFUZZ_NO_DETOURS", variable);
        let run = job.arg(dir.path("t")).arg(case).run().expect(0);
        let stats = stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")));
        assert_eq!(stats["saved_crashes"], "0", "{case}: {}", run.out);
        assert!(format!("{}{}", run.out, run.err).contains(cause), "{case}: {}", run.out);
        let shown = |input: &str| {
            let job = dir.tool("showmap -Q -o map", &dir.path("t"), case);
            job.env("FFUZZ_NO_DETOURS", variable).input(input)
        };
        shown("seed").run().expect(0);
        let killed = shown("BUG").run().expect(2);
        // Though the run is repeated. A filter ends it earlier.
        let times = format!("{}{}", killed.out, killed.err).matches("a bug").count();
        assert!(times == 1 || (times == 0 && case != "none"), "{case}: {times}");
    }
}

/// Whether a program reads its input says only a run that ended by itself.
#[test]
fn a_run_that_a_filter_ends_does_not_say_that_no_input_is_read() {
    let dir = TestDir::with_seed("seed");
    build(&dir, "gcc", &format!("{} -o t", source("fragile.c")));
    for (how, is_warned) in [("filters-first", false), ("reads-nothing", true)] {
        let options = format!("-Q -t 3000 -c - -s 1 -E 50 -i in -o {how} --");
        let job = dir.ffuzz(&options).env("FFUZZ_NO_DETOURS", "1").arg(dir.path("t"));
        let run = job.arg(how).run().expect(0);
        assert_eq!(run.out.contains("does not read"), is_warned, "{how}: {}", run.out);
    }
}

/// A filter that ffuzz itself has inherited: code that must not be made writable is refused, or kills.
#[test]
fn a_filter_that_forbids_writable_code_is_named() {
    let dir = TestDir::with_seed("seed");
    build(&dir, "gcc", &format!("{} -o t", source("fragile.c")));
    let forbidding = plain("forbidding.c", "");
    for (error, cause, remedy) in [
        ("13", "cannot be made writable", "--qemu"),
        ("0", "filter (seccomp) kills the target before main", "--qemu"),
    ] {
        let job = dir.program(forbidding.to_str().unwrap()).words("code").arg(error);
        let job = job.arg(env!("CARGO_BIN_EXE_ffuzz")).words("-Q -E 50 -i in -o out --");
        job.arg(dir.path("t")).run().refused(1, cause, remedy);
    }
}

/// A program without unwind tables has breakpoints in the start code of the C library alone.
#[test]
fn a_program_whose_code_is_not_found_runs_in_the_emulator() {
    let dir = TestDir::with_seed("seed");
    let tables = "-fno-asynchronous-unwind-tables";
    build(&dir, "gcc", &format!("{tables} {} -o blind", source("fragile.c")));
    build(&dir, "gcc", &format!("{} -o seeing", source("fragile.c")));
    for (program, is_warned) in [("blind", true), ("seeing", false)] {
        let options = format!("-Q --native -E 50 -i in -o {program}-out --");
        let run = dir.ffuzz(&options).arg(dir.path(program)).run().expect(0);
        let warning = "no instrumentation detected: the seeds reach no edge; --modules all";
        assert_eq!(run.out.contains(warning), is_warned, "{program}: {}", run.out);
    }
    if has("qemu-x86_64") {
        let run = dir.ffuzz("-Q -E 50 -i in -o emulated --").arg(dir.path("blind"));
        run.run().expect(0).says("runs in qemu-x86_64: most of its code is not found");
        let stats = stats_of(&dir.text("emulated/default/fuzzer_stats"));
        assert_ne!(stats["edges_found"], "0", "{stats:?}");
    }
}

/// A crash that comes in a third of the runs is one, and breakpoints are not blamed for it.
#[test]
fn a_crash_that_comes_at_times_is_kept() {
    let dir = TestDir::with_seed("seed");
    build(&dir, "gcc", &format!("{} -o t", source("fragile.c")));
    for _ in 0..4 {
        let run = dir.tool("showmap -Q -o map", &dir.path("t"), "at-times").input("seed").run();
        assert!([0, 2].contains(&run.code()), "{}", run.err);
        assert!(!run.err.contains("without breakpoints"), "{}", run.err);
    }
    let run = dir.fuzz("-Q -c - -s 1 -E 300", &dir.path("t"), "at-times").run();
    assert!(!run.out.contains("ends differently without"), "{}", run.out);
    // Of a campaign whose only seed crashes nothing is left but that.
    assert!(run.code() == 1 || dir.stat("saved_crashes") > 0, "{}", run.out);
}

#[test]
fn a_program_that_loops_because_of_breakpoints_has_no_false_hang() {
    let dir = TestDir::with_seed("seed");
    build(&dir, "gcc", &format!("{} -o t", source("fragile.c")));
    // Long enough for a run without breakpoints on a machine that is busy otherwise.
    dir.fuzz("-Q -c - -t 400 -E 4", &dir.path("t"), "loops").run().expect(0);
    assert_eq!((dir.stat("saved_hangs"), dir.stat("corpus_count")), (0, 1));
}

/// All its breakpoints take longer than the limit allows, which is no reason to do without copies.
#[test]
fn a_program_of_many_blocks_does_not_end_differently() {
    let dir = TestDir::with_seed("seed");
    let source = "#include <stdio.h>\nint main(void) { int c = getchar();\n\
        __asm__ volatile(\".rept 50000\\ntest %0, %0\\nje 1f\\nnop\\n1:\\n.endr\" : : \"r\"(c) : \"cc\");\n\
        return c == 'x'; }";
    dir.write("t.c", source);
    build(&dir, "gcc", "t.c -o t");
    let job = dir.fuzz("-Q -c - -t 100 -E 8", &dir.path("t"), "").env("FFUZZ_NO_DETOURS", "1");
    let run = job.run().expect(0);
    assert!(!run.out.contains("differently") && !run.err.contains("differently"), "{}", run.out);
    assert_eq!(dir.stat("saved_hangs"), 0);
    // The whole run was seen.
    assert!(dir.stat("edges_found") > 50_000, "{:?}", dir.stats());
}

/// Blocks are numbered by their place in the files.
#[test]
fn a_file_that_changes_ends_the_campaign_when_the_target_starts_again() {
    let dir = TestDir::with_seed("xxxx");
    let c = source("halves.c");
    build(&dir, "gcc", &format!("{c} -o t"));
    let target = dir.path("t");
    build(&dir, "gcc", &format!("-O1 {c} -o u"));
    let mut campaign = dir.fuzz("-Q -V 100", &target, "").start();
    campaign.wait_for_campaign(&dir);
    std::fs::rename(dir.path("u"), &target).unwrap();
    let fuzzer = campaign.pid();
    for pid in campaign.processes().into_iter().filter(|pid| *pid != fuzzer) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGKILL,
        );
    }
    let run = campaign.finish().expect(1);
    assert!(run.err.contains("has changed since the start"), "{}", run.err);
    assert!(run.err.contains("-i -"), "{}", run.err);
}

#[test]
fn a_program_that_is_executed_by_the_target_is_named() {
    let dir = TestDir::with_seed("x");
    let source = "#include <unistd.h>\nint main(int n, char **v) { \
        return n > 1 ? 0 : execl(\"/proc/self/exe\", \"unpacked\", \"again\", (char *)0); }";
    dir.write("t.c", source);
    build(&dir, "gcc", "t.c -o t");
    let run = |out: &str, words: &str| {
        let job = dir.ffuzz(&format!("-Q -s 1 -E 20 -i in -o {out} --")).arg(dir.path("t"));
        job.words(words).run().expect(0)
    };
    run("o1", "").says("executes another program (unpacked)").says("fuzz that program itself");
    run("o2", "once").does_not_say("executes another program");
}

/// Its blocks are not known when it is loaded.
#[test]
fn a_library_that_is_loaded_when_it_runs_is_named_and_can_be_preloaded() {
    let dir = TestDir::with_seed("xxxx");
    dir.write(
        "p.c",
        "#include <stdlib.h>\nint parse(const char *b) { if (b[0] == 'H') { if (b[1] == 'A') { \
         if (b[2] == 'L') abort(); return 3; } return 2; } return 1; }",
    );
    dir.write(
        "t.c",
        "#include <dlfcn.h>\n#include <unistd.h>\nint main(void) { char b[8] = {0}; \
         if (read(0, b, 8) < 0) return 9; void *p = dlopen(\"./plugin.so\", RTLD_NOW); \
         if (!p) return 8; return ((int (*)(const char *))dlsym(p, \"parse\"))(b); }",
    );
    build(&dir, "gcc", "-shared -fPIC p.c -o plugin.so");
    build(&dir, "gcc", "t.c -o t -ldl");
    let plugin = std::fs::canonicalize(dir.path("plugin.so")).unwrap().display().to_string();
    let fuzz = |options: &str| dir.ffuzz(&format!("-Q -s 1 -i in {options} --")).arg(dir.path("t"));
    let said = fuzz("-E 100 -o out").run().expect(0);
    said.says(&format!("loads {plugin} only when it runs")).says(&format!("AFL_PRELOAD={plugin}"));
    fuzz("--modules t -E 100 -o only").run().expect(0).does_not_say("only when it runs");
    let job = fuzz("--modules t,plugin.so -E 200000 -o preloaded").env("AFL_PRELOAD", &plugin);
    let done = job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    done.does_not_say("only when it runs");
    assert!(dir.text("preloaded/default/fuzzer_stats").contains("saved_crashes     : 1"));
}

#[test]
fn code_in_several_segments_counts() {
    let dir = TestDir::with_seed("AAAA");
    let words = "-Wl,--section-start=hotcode=0x600000";
    build(&dir, "gcc", &format!("{} {words} -o t", source("segments.c")));
    for options in ["", "--modules all"] {
        let job = dir.ffuzz(&format!("-Q -s 1 -E 200000 -i in -o out{} {options}", options.len()));
        let job = job.arg("--").arg(dir.path("t")).env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0).does_not_say("killed by signal 5");
        let crashes = dir.names(&format!("out{}/default/crashes", options.len()));
        assert!(crashes.iter().any(|name| name.starts_with("id:000000,sig:06")), "{crashes:?}");
    }
}

/// The fork that a run is compared with executes the startup as well, which is no reason to cut it.
#[test]
fn runs_begin_behind_a_startup_that_takes_long() {
    let dir = TestDir::with_seed("AAAA");
    build(&dir, "gcc", &format!("{} -o t", source("startup.c")));
    for (output, options, target) in
        [("native", "-Q", dir.path("t")), ("built", "", target("startup.c", ""))]
    {
        let job = dir.ffuzz(&format!("{options} -E 20000 -i in -o {output}"));
        job.arg("--").arg(target).run().expect(0);
        let stats = stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")));
        let of = |key: &str| stats[key].as_str();
        assert_eq!((of("run_mode"), of("snapshot_differs")), ("snapshot", "0"), "{stats:?}");
    }
}
