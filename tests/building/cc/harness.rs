//! libFuzzer harnesses: every way to link one, and what its own `main` does when it is started by hand.

use std::process::{Command, Output};

use crate::compiling::{Bench, has, sorted_values};

/// Each letter is another end.
const HARNESS: &str = "#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) {\n\
    switch (n ? d[0] : 0) {\n\
    case 'A': abort();\n\
    case 'S': *(volatile int *)8 = 1; break;\n\
    case 'O': return ((volatile const uint8_t *)d)[n] == 'x';\n\
    case 'E': exit(3);\n\
    case 'T': for (;;) pause();\n\
    case 'M': { volatile char *p = malloc(200 << 20); for (size_t i = 0; i < 200 << 20; i += 4096) p[i] = 1; free((void *)p); break; }\n\
    case 'L': if (n > 5) abort();\n\
    }\n return 0; }\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("h.c", HARNESS);
    for letter in ["A", "S", "O", "E", "T", "M"] {
        bench.write(&format!("{letter}/0"), "a");
        bench.write(&format!("{letter}/deep/1"), letter);
    }
    bench.write("letter", "L");
    bench.write("good/0", "a");
    bench.write("good/1", "b");
    bench.write("good/.note", "A");
    bench
}

/// A bench with the harness `t`, compiled with these flags.
fn built(flags: &str) -> Bench {
    let bench = bench();
    bench.build(&[], &format!("-O1 -fsanitize=fuzzer{flags} h.c -o t"));
    bench
}

/// An object that another compiler has made for libFuzzer.
#[track_caller]
fn stock(bench: &Bench, flags: &str, source: &str, object: &str) {
    let mut command = Command::new("clang-19");
    command.current_dir(bench.folder.path()).args(flags.split_whitespace());
    let output = command.args(["-c", source, "-o", object]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the harness by hand: as a shell counts it, and what it said.
fn run(bench: &Bench, target: &str, words: &str) -> (i32, String) {
    use std::os::unix::process::ExitStatusExt;
    let mut command = Command::new(bench.path(target));
    command.args(words.split_whitespace()).current_dir(bench.folder.path());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let code = status.signal().map_or_else(|| status.code().unwrap(), |signal| 128 + signal);
    (code, String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

#[track_caller]
fn runs(bench: &Bench, target: &str, words: &str, code: i32, text: &str) {
    let (found, said) = run(bench, target, words);
    assert_eq!(found, code, "{target} {words}: {said}");
    assert!(said.contains(text), "{target} {words}: no {text:?} in {said}");
}

/// The program is one of ours, and not libFuzzer.
#[track_caller]
fn is_fuzzed(bench: &Bench, target: &str) {
    let seen = bench.client("-p -s", target, &["good/0", "A/deep/1"]);
    assert!(seen.contains("status=137f new 0") && seen.contains("status=6 "), "{seen}");
    assert!(!seen.contains("edges=0"), "{seen}");
}

fn archive(bench: &Bench, name: &str, object: &str) {
    let mut command = Command::new("ar");
    command.current_dir(bench.folder.path()).args(["rcs", name, object]);
    assert!(command.status().unwrap().success());
}

#[test]
fn a_harness_in_an_archive_is_found() {
    let bench = bench();
    bench.build(&[], "-c h.c -o h.o");
    archive(&bench, "l.a", "h.o");
    for line in ["-fsanitize=fuzzer l.a", "-fsanitize=fuzzer,address l.a", "l.a -lFuzzingEngine"] {
        bench.build(&[], &format!("{line} -o t"));
        is_fuzzed(&bench, "t");
    }
    for linker in ["lld", "gold", "mold"] {
        if has(&format!("ld.{linker}")) {
            bench.build(&[], &format!("-fuse-ld={linker} -fsanitize=fuzzer l.a -o t"));
            is_fuzzed(&bench, "t");
        }
    }
    // A main of the user's own, in an archive too.
    bench.write("m.c", "int main(void) { return 42; }\n");
    bench.build(&[], "-c m.c -o m.o");
    archive(&bench, "m.a", "m.o");
    bench.build(&[], "-fsanitize=fuzzer m.a -o t");
    assert_eq!(bench.status("t", b""), 42);
}

#[test]
fn our_driver_is_linked_where_the_build_names_the_libraries() {
    let bench = bench();
    for line in [
        "-fsanitize=fuzzer -nodefaultlibs h.c -lc",
        "-fsanitize=fuzzer h.c -lgcc_s -lc -nodefaultlibs",
        "-nodefaultlibs -fsanitize=fuzzer -static h.c -lc -lgcc -lgcc_eh -lc",
    ] {
        bench.build(&[], &format!("{line} -o t"));
        is_fuzzed(&bench, "t");
    }
    let ask = |file: &str| {
        let found = Command::new("cc").arg(format!("-print-file-name={file}")).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    };
    let start = ["Scrt1.o", "crti.o", "crtbeginS.o"].map(ask).join(" ");
    let end = ["crtendS.o", "crtn.o"].map(ask).join(" ");
    bench.build(&[], &format!("-fsanitize=fuzzer -nostartfiles {start} h.c {end} -o t"));
    is_fuzzed(&bench, "t");
    // A program without libFuzzer's part that names its C library, as rustc links.
    bench.write("in", "");
    bench.write("m.c", "int main(void) { return 42; }\n");
    bench.build(&[], "m.c -nodefaultlibs -lgcc_s -lc -o m");
    let seen = bench.client("", "m", &["in"]);
    assert!(seen.contains("status=2a00 new in edges=1"), "{seen}");
    let mut command = bench.compiler("cc", "-fsanitize=fuzzer -m32 h.c -o t");
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(said.contains("ffuzz has no runtime for this machine"), "{said}");
}

#[test]
fn objects_of_stock_clang_are_linked_and_their_guards_count() {
    if !has("clang-19") {
        return;
    }
    let bench = bench();
    for flags in [
        "-fsanitize=fuzzer-no-link",
        "-fsanitize=fuzzer-no-link -fsanitize-coverage=trace-div,trace-gep,trace-loads,trace-stores",
        "-fsanitize-coverage=trace-pc-guard,trace-cmp,indirect-calls",
    ] {
        stock(&bench, flags, "h.c", "h.o");
        bench.build(&[], "-fsanitize=fuzzer h.o -o t");
        is_fuzzed(&bench, "t");
        // Another letter takes another way, and the same letter the same.
        let seen = bench.client("-p -s", "t", &["good/0", "letter", "good/0"]);
        assert_ways(&seen);
    }
    for flags in ["fuzzer-no-link,address", "address -fsanitize-coverage=trace-pc-guard"] {
        stock(&bench, &format!("-fsanitize={flags}"), "h.c", "h.o");
        bench.build(&[], "-fsanitize=fuzzer,address h.o -o t");
        is_fuzzed(&bench, "t");
    }
    // A program's own functions stay its own.
    bench.write(
        "own.c",
        "#include <stdint.h>\nint calls;\n\
         void __sanitizer_cov_trace_pc_guard_init(uint32_t *a, uint32_t *b) {}\n\
         void __sanitizer_cov_trace_pc_guard(uint32_t *g) { calls++; }\n\
         int check(void);\nint main(void) { check(); return calls; }\n",
    );
    bench.write("h.c", "int check(void) { return 0; }\n");
    stock(&bench, "-fsanitize-coverage=trace-pc-guard", "h.c", "h.o");
    bench.build(&[], "own.c h.o -o own");
    assert_eq!(bench.status("own", b""), 1);
}

/// Maps of three runs: the first and the last are equal, the second is not empty.
#[track_caller]
fn assert_ways(seen: &str) {
    let maps: Vec<&str> =
        seen.lines().filter_map(|line| line.split_once("edges=").map(|(_, map)| map)).collect();
    assert_eq!((maps.len(), maps[0]), (3, maps[2]), "{seen}");
    assert!(maps.iter().all(|map| !map.starts_with("0 ")), "{seen}");
}

#[test]
fn guards_of_shared_libraries_count_too() {
    if !has("clang-19") {
        return;
    }
    let bench = Bench::new();
    bench.write("lib.c", "int check(int x) { return x == 'a' ? 1 : x == 'b' ? 2 : 0; }\n");
    bench.write(
        "use.c",
        "#include <stdio.h>\nint check(int);\nint main(void) { return check(getchar()); }\n",
    );
    bench.write("a", "a");
    bench.write("b", "b");
    let flags = "-O1 -fPIC -fsanitize-coverage=trace-pc-guard,no-prune";
    stock(&bench, flags, "lib.c", "lib.o");
    bench.build(&[], "-shared -Wl,-z,defs lib.o -o libown.so");
    let rpath = format!("-Wl,-rpath,{}", bench.folder.path().display());
    bench.build(&[], &format!("use.c -o use -L. -lown {rpath}"));
    let seen = bench.client("", "use", &["a", "b"]);
    assert_eq!(seen.matches("module ").count(), 2, "{seen}");
    let edges: Vec<u32> = seen
        .lines()
        .filter_map(|line| line.split_once("edges=")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert!(edges.len() == 2 && edges.iter().all(|edges| *edges >= 2), "{seen}");
    assert_eq!(sorted_values(&seen), [0; 0]);
}

#[test]
fn crashes_by_hand_end_as_in_libfuzzer() {
    for flags in ["", ",address"] {
        let bench = built(flags);
        let plain = flags.is_empty();
        let signal = "ERROR: libFuzzer: deadly signal";
        runs(&bench, "t", "-runs=0 good", 0, "Done 3 runs in 0 second(s)\n");
        runs(&bench, "t", "-runs=0 A", 77, signal);
        runs(&bench, "t", "A/deep/1", 77, signal);
        let (how, code) = if plain { (signal, 77) } else { ("AddressSanitizer: SEGV", 1) };
        runs(&bench, "t", "-runs=0 good S", code, how);
        runs(&bench, "t", "S/0 S/deep/1", code, how);
        runs(&bench, "t", "-runs=0 E", 77, "SUMMARY: libFuzzer: fuzz target exited\n");
        runs(&bench, "t", "E/deep/1", 77, "ERROR: libFuzzer: fuzz target exited\n");
        if !plain {
            runs(&bench, "t", "-runs=0 O", 1, "Test unit written to ./crash-");
            runs(&bench, "t", "O/deep/1", 1, "heap-buffer-overflow");
            runs(
                &bench,
                "t",
                "-malloc_limit_mb=100 M/deep/1",
                71,
                "out-of-memory (malloc(209715200))",
            );
        }
    }
    let bench = bench();
    bench.write(
        "undefined.c",
        HARNESS.replace("abort();", "{ volatile int big = 0x7fffffff; big += 1; break; }"),
    );
    let flags = "-fsanitize=fuzzer,undefined -fno-sanitize-recover=all";
    bench.build(&[], &format!("{flags} undefined.c -o t"));
    runs(&bench, "t", "A/deep/1", 1, "signed integer overflow");
}

#[test]
fn tools_see_the_signal_itself_and_nothing_else() {
    let bench = built("");
    let by_tool = |input: &str| {
        let mut command = Command::new(bench.path("t"));
        let output = command.arg(bench.path(input)).env("FFUZZ_HARNESS_SIGNAL", "1").output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (std::os::unix::process::ExitStatusExt::signal(&output.status), output.status.code(), said)
    };
    assert_eq!(by_tool("good/0"), (None, Some(0), String::new()));
    assert_eq!(by_tool("A/deep/1"), (Some(6), None, String::new()));
    assert_eq!(by_tool("S/deep/1"), (Some(11), None, String::new()));
    assert_eq!(by_tool("E/deep/1"), (None, Some(3), String::new()));
}

#[test]
fn options_of_libfuzzer_do_what_they_do_there() {
    let bench = built("");
    let t = |words: &str, code: i32, text: &str| runs(&bench, "t", words, code, text);
    t("-runs=5 -print_final_stats=1 good/0 good/1", 0, "stat::number_of_executed_units: 10\n");
    t("-runs=0 -print_final_stats=1 good", 0, "stat::number_of_executed_units: 3\n");
    t("-runs=x good", 0, "#3\tDONE ");
    t("-timeout=1 -timeout_exitcode=9 T/deep/1", 9, "ERROR: libFuzzer: timeout after ");
    t("-runs=0 -timeout=1 T", 70, "Test unit written to ./timeout-");
    t("-runs=0 -rss_limit_mb=100 M", 71, "Test unit written to ./oom-");
    t("-rss_limit_mb=100 M/deep/1", 71, "limit: 100Mb)");
    t("-error_exitcode=5 -runs=0 A", 5, "MS: 0 ; base unit: ");
    t("-error_exitcode=5 A/deep/1", 5, "SUMMARY: libFuzzer: deadly signal\n");
    t("-handle_abrt=0 A/deep/1", 134, "Running: A/deep/1\n");
    bench.write("long/0", "LLLLLLLLLLLL");
    t("-runs=0 long", 77, "Base64: TExMTExMTExMTExM\n");
    t("-runs=0 -max_len=5 long", 0, "INITED");
    t("-max_len=5 long/0", 0, "Executed long/0 in 0 ms\n");
    let hash = "6dcd4ce23d88e2ee9568ba546c007c63d9131c1b";
    t("-runs=0 -artifact_prefix=made- A", 77, &format!("Test unit written to made-crash-{hash}\n"));
    let copy = bench.path(&format!("made-crash-{hash}"));
    assert_eq!(std::fs::read(copy).unwrap(), b"A");
    t("-runs=0 -exact_artifact_path=/dev/full A", 77, "cannot write /dev/full: no regular file\n");
    t("-runs=0 -artifact_prefix=no/ A", 1, "The required directory \"no/\" does not exist\n");
    t("-runs=0 good good/0", 1, "Not a directory: good/0; exiting\n");
    t("-help=1", 0, "  runs ");
    t("-nonsense good/0", 0, "WARNING: unrecognized flag '-nonsense'; use -help=1");
    t("--own=1 good/0", 0, "INFO: libFuzzer ignores flags that start with '--'\n");
    t("good/0 -ignore_remaining_args=1 -nonsense", 0, "Running 1 inputs 1 time(s) each.\n");
    let (_, said) = run(&bench, "t", "-verbosity=0 good/0");
    assert!(said.contains("Running: good/0\n") && !said.contains("INFO:"), "{said}");
    let (_, said) = run(&bench, "t", "-verbosity=2 -runs=3 good/0");
    assert!(said.contains("Flag: runs 3\n"), "{said}");
}

#[test]
fn an_input_from_standard_input_ends_the_harness_by_its_own_signal() {
    let bench = built("");
    assert_eq!(bench.status("t", b"a"), 0);
    assert_eq!(bench.status("t", b"A"), 134);
}

#[test]
fn words_of_aflpps_driver_mean_what_they_mean_there() {
    let bench = built("");
    bench.write("stop", "A");
    let by_hand = |words: &[&str], input: &str| {
        let mut command = Command::new(bench.path("t"));
        let stdin = std::fs::File::open(bench.path(input)).unwrap();
        let output = command.args(words).stdin(stdin).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    for words in [&[][..], &["-"], &["-1000"], &["-", "-1000"]] {
        assert_eq!(by_hand(words, "letter"), (true, String::new()), "{words:?}");
        let (good, said) = by_hand(words, "stop");
        assert!(!good && said.contains("ERROR: libFuzzer: deadly signal"), "{said}");
    }
    runs(&bench, "t", "-0 good/0", 0, "unrecognized flag '-0'");
    runs(&bench, "t", "-12x good/0", 0, "unrecognized flag '-12x'");
    // A fuzzer's process ends after as many inputs.
    let script = |words: &str| {
        bench.write("w", format!("#!/bin/sh\nexec {} {words}\n", bench.path("t").display()));
        let path = bench.path("w");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        bench.client("-p -s", "w", &["good/0", "good/1", "good/0"])
    };
    assert!(script("").contains("status=137f new 0") && !script("").contains("status=0 "));
    assert!(script("-1").contains("status=0 new 0") && !script("-1").contains("137f"));
    let two = script("-2");
    assert!(two.contains("status=137f new 0") && two.contains("status=0 same 1"), "{two}");
    // Fuzzers set this, because the program starts its fork server itself. The first line is what it asks for.
    let deferred = [("__AFL_DEFER_FORKSRV", "1")];
    let asks = |words: &str| {
        script(words);
        let seen = bench.client_with(&deferred, "-p -s", "w", &["A/deep/1"]);
        assert!(seen.contains("status=6 "), "{seen}");
        seen.lines().next().unwrap_or_default().to_owned()
    };
    assert_ne!(asks(""), asks("-"), "shared memory is not asked for");
}
