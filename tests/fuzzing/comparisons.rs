//! The comparison log: what `ffuzz-showmap --comparisons` prints of a run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use crate::common;
use common::*;

/// What tests/targets/compares.c compares of `MAGI1234567890 !.`, without the folder and the columns.
const COMPARED: &str = "\
12: letters(): i32 <, 16 times or more
13: letters(): i32 ==, 16 times or more
19: LLVMFuzzerTestOneInput(): i64 <, once
    0x11 and 0x10 (constant)
20: LLVMFuzzerTestOneInput(): i64 <, once
    0x11 and 0x3f '?' (constant)
25: LLVMFuzzerTestOneInput(): i32 ==, once
    0xdbd5c3ee and 0x12345678 (constant)
26: LLVMFuzzerTestOneInput(): i64 >, once
    0x499602d2 and 0x75bcd15 (constant)
27: LLVMFuzzerTestOneInput(): i32 <, once
    0x414d 'MA' and 0xfffffffd (constant)
28: LLVMFuzzerTestOneInput(): memcmp, once
    \"MAGI1\" and \"MAGIC\" (constant)
29: LLVMFuzzerTestOneInput(): strcmp, once
    \"MAGI1234567890 .!\" and \"whole\" (constant)
30: LLVMFuzzerTestOneInput(): strncasecmp, once
    \"AGI12\" and \"AgIxx\" (constant)
31: LLVMFuzzerTestOneInput(): strstr, once
    \"MAGI1234567890 .!\" searched for \"needle\" (constant)
32: LLVMFuzzerTestOneInput(): memmem, once
    \"MAGI1234567890 .\" and \"in\\x00side\" (constant)
33: LLVMFuzzerTestOneInput(): double ==, once
    154320986.25 and 1.25 (constant)
34: LLVMFuzzerTestOneInput(): i128 ==, once
    0x1526e583121ff444 and 0x400000000000000000 (constant)
35: LLVMFuzzerTestOneInput(): switch i32, once
    0x49 'I' among 0x61 0x62 0x7a
41: LLVMFuzzerTestOneInput(): i32 ==, once
    0x2e '.' and 0x21 '!' (constant)
42: LLVMFuzzerTestOneInput(): i32 ==, once
    0x1 and 0x63 'c' (constant)
";

fn build(dir: &TestDir, compiler: &str, variables: &[(&str, &str)], line: &str) {
    let command = format!("{compiler} -g {line}");
    let mut job = dir.ffuzz(&command).env("XDG_CACHE_HOME", cache().to_str().unwrap());
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.run().expect(0);
}

/// The log of a run, line numbers in place of places, and loops without their operands.
fn comparisons(dir: &TestDir, program: &str, input: &str, variables: &[(&str, &str)]) -> String {
    let mut job = dir.tool("showmap --comparisons -q -o -", &dir.path(program), "").input(input);
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let text = job.run().out;
    let mut short = String::new();
    let mut is_loop = false;
    for line in text.lines() {
        if line.starts_with(' ') {
            if !is_loop {
                let _ = writeln!(short, "{line}");
            }
            continue;
        }
        is_loop = line.ends_with("or more");
        let (_, place) = line.split_once(".c:").unwrap_or_else(|| panic!("{line}"));
        let (number, rest) = place.split_once(':').unwrap();
        let (_, what) = rest.split_once(": ").unwrap();
        let _ = writeln!(short, "{number}: {what}");
    }
    short
}

const INPUT: &str = "MAGI1234567890 .!";

#[test]
fn every_compiler_and_level_logs_what_stands_in_the_source() {
    let source = repository("tests/targets/compares.c").display().to_string();
    for clang in clangs() {
        for level in
            ["-O0", "-O2", "-O1 -fsanitize=address,undefined", "-O1 -fsanitize=memory", "-O2 -flto"]
        {
            let dir = TestDir::new();
            let line = format!("{level} -fsanitize=fuzzer {source} -o t");
            build(&dir, "cc", &[("FFUZZ_CC", clang)], &line);
            let seen = comparisons(&dir, "t", INPUT, &[]);
            assert_eq!(seen, COMPARED, "{clang} {level}");
        }
    }
}

/// Functions that AFL++'s `cmplog` knows by their names, with the parameters after the two texts (`n`: a length).
const FUNCTIONS_OF_AFL: [(&str, &str); 4] = [
    (
        "",
        "strcmp xmlStrcmp xmlStrEqual g_strcmp0 curl_strequal strcsequal strcasecmp stricmp ap_cstr_casecmp \
         apr_cstr_casecmp OPENSSL_strcasecmp xmlStrcasecmp g_strcasecmp g_ascii_strcasecmp Curl_strcasecompare \
         Curl_safe_strcasecompare cmsstrcasecmp sqlite3_stricmp g_str_has_prefix g_str_has_suffix strstr \
         ap_strcasestr xmlStrstr xmlStrcasestr",
    ),
    (
        "n",
        "strncmp xmlStrncmp curl_strnequal strncasecmp strnicmp ap_cstr_casecmpn apr_cstr_casecmpn \
         OPENSSL_strncasecmp xmlStrncasecmp g_ascii_strncasecmp Curl_strncasecompare g_strncasecmp \
         sqlite3_strnicmp strnstr memcmp bcmp CRYPTO_memcmp OPENSSL_memcmp memcmp_const_time memcmpct",
    ),
    ("length between", "g_strstr_len"),
    ("lengths after each", "memmem"),
];

/// The others have to be somewhere.
const OF_LIBC: [&str; 8] =
    ["strcmp", "strcasecmp", "strstr", "strncmp", "strncasecmp", "memcmp", "bcmp", "memmem"];

#[test]
fn every_function_that_afl_knows_is_logged() {
    let (mut source, mut others) = (String::new(), String::new());
    let mut calls = String::new();
    let mut words = vec![];
    for (form, names) in FUNCTIONS_OF_AFL {
        for name in names.split_whitespace() {
            let word = format!("word{:02}", words.len());
            let (parameters, arguments) = match form {
                "" => ("const char *, const char *", format!("t, \"{word}\"")),
                "n" => ("const char *, const char *, long", format!("t, \"{word}\", 6")),
                "length between" => {
                    ("const char *, long, const char *", format!("t, 8, \"{word}\""))
                }
                _ => ("const char *, long, const char *, long", format!("t, 8, \"{word}\", 6")),
            };
            let _ = writeln!(source, "long {name}({parameters});");
            let _ = writeln!(calls, "  if ({name}({arguments}) == 0) n++;");
            if !OF_LIBC.contains(&name) {
                let _ = writeln!(others, "long {name}() {{ return 0; }}");
            }
            words.push((name, word));
        }
    }
    let dir = TestDir::new();
    let main = "#include <stdint.h>\n#include <stddef.h>\n";
    let body = format!(
        "int LLVMFuzzerTestOneInput(const uint8_t *d, size_t s) {{\n  char t[9] = {{0}};\n  int n = 0;\n  \
         for (size_t i = 0; i < s && i < 8; i++) t[i] = (char)d[i];\n{calls}  return n > 1000;\n}}\n"
    );
    dir.write("t.c", format!("{main}{source}{body}"));
    dir.write("others.c", &others);
    dir.program("gcc")
        .words("-w -fno-builtin -shared -fPIC others.c -o libothers.so")
        .run()
        .expect(0);
    for level in ["-O0", "-O2"] {
        let line = format!("-w -fno-builtin {level} -fsanitize=fuzzer t.c ./libothers.so -o t");
        build(&dir, "cc", &[], &line);
        let job = dir.tool("showmap -q --comparisons -o -", &dir.path("t"), "").input("xxxxxxxx");
        let log = job.run().expect(0).out;
        let missing: Vec<_> =
            words.iter().filter(|(_, word)| !log.contains(word.as_str())).collect();
        assert!(missing.is_empty(), "{level}: {missing:?}\n{log}");
    }
}

#[test]
fn every_execution_mode_logs_the_same_also_of_a_crash() {
    let dir = TestDir::new();
    let source = repository("tests/targets/compares.c").display().to_string();
    build(&dir, "cc", &[], &format!("-O2 -fsanitize=fuzzer {source} -o looping"));
    let main = "int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long);\n\
                #include <stdio.h>\nint main(void) { static unsigned char data[99];\n  \
                return LLVMFuzzerTestOneInput(data, fread(data, 1, 99, stdin)); }\n";
    dir.write("main.c", main);
    build(&dir, "cc", &[], &format!("-O2 {source} -x c main.c -o plain"));
    let modes = [
        ("looping", ""),
        ("looping", "AFL_DEFER_FORKSRV"),
        ("plain", ""),
        ("plain", "FFUZZ_NO_SNAPSHOT"),
    ];
    for (program, variable) in modes {
        let variables = [(variable, "1")];
        let variables = if variable.is_empty() { &[][..] } else { &variables };
        assert_eq!(comparisons(&dir, program, INPUT, variables), COMPARED, "{program} {variable}");
        let crash = comparisons(&dir, program, "MAGI1234567890 !.", variables);
        assert!(crash.contains("0x21 '!' and 0x21 '!'"), "{program} {variable}: {crash}");
        assert!(!crash.contains("42: "), "{program} {variable}: {crash}");
    }
}

/// What the program `t` prints of the file `input`, with and without the log, and the log.
fn both_versions(dir: &TestDir) -> (String, String) {
    let alone = dir.program("./t").arg("input").run().expect(0).out;
    let line = "showmap --comparisons -o log -H input";
    dir.tool(line, &dir.path("t"), "@@").run().expect(0).says(alone.trim());
    (alone, dir.text("log"))
}

#[test]
fn second_versions_do_what_the_first_ones_do() {
    let source = repository("tests/targets/compares.cc").display().to_string();
    for clang in clangs() {
        for level in ["-O0", "-O2"] {
            let dir = TestDir::new();
            let line = format!("{level} {source} -o t -lpthread");
            build(&dir, "c++", &[("FFUZZ_CC", clang)], &line);
            for input in ["boom", "goom"] {
                dir.write("input", input);
                let (alone, log) = both_versions(&dir);
                assert!(alone.contains(" 610 114 ") && alone.contains(" back "), "{alone}");
                assert_eq!(alone.contains("caught"), input == "boom", "{alone}");
                assert!(
                    log.contains(&format!("\"{input}\" and \"boom\"")),
                    "{clang} {level}: {log}"
                );
                assert!(log.contains("recursive(): i32 <, 16 times or more"), "{log}");
                assert!(alone.contains(&format!("uit 7 1.5 {input}\n")), "{alone}");
                for line in [
                    "variadic(): double ==, 3 times",
                    "quit(): i32 ==, once",
                    "and 0x888 (constant)",
                ] {
                    assert!(log.contains(line), "{line}: {log}");
                }
                assert!(!log.contains("throwing(): bool std::operator=="), "{log}");
                assert!(!log.contains("(constant)\n    0x8 and 0x28"), "{log}");
            }
        }
    }
}

#[test]
fn the_rest_of_a_function_that_starts_the_fork_server_is_logged() {
    let source = repository("tests/targets/deferred.cc").display().to_string();
    let all = ["", "-DHELPER", "-DSOMETIMES", "-fsanitize=address,undefined -g", "-flto"];
    for (clang, level) in clangs().into_iter().flat_map(|clang| [(clang, "-O0"), (clang, "-O2")]) {
        let is_at_an_end = ["14", "19"].contains(&clang);
        for options in if is_at_an_end { &all[..] } else { &all[..1] } {
            let dir = TestDir::new();
            let line = format!("{level} {options} {source} -o t");
            build(&dir, "c++", &[("FFUZZ_CC", clang)], &line);
            for input in ["boom", "goom"] {
                dir.write("input", input);
                let (alone, log) = both_versions(&dir);
                let what = format!("{clang} {level} {options}");
                assert!(alone.starts_with("9 19 28.5 6.25 name-"), "{what}: {alone}");
                assert_eq!(alone.contains("caught before boom"), input == "boom", "{alone}");
                assert!(log.contains(&format!("\"{input}\" and \"boom\"")), "{what}: {log}");
                assert!(log.contains("and 0x777 (constant)"), "{what}: {log}");
            }
        }
    }
}

#[test]
fn a_function_that_starts_the_fork_server_may_be_dropped() {
    let dir = TestDir::new();
    dir.write(
        "dead.c",
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         static int never(void) { return 0; }\n\
         static int serve(void) { __AFL_INIT(); char b[8] = {0}; return read(0, b, 7) && !strcmp(b, \"x\"); }\n\
         int main(int n, char **v) { return never() ? serve() : n > 5 && !strcmp(v[1], \"y\"); }\n",
    );
    for clang in clangs() {
        build(&dir, "cc", &[("FFUZZ_CC", clang)], "-O2 dead.c -o t");
        dir.program("./t").run().expect(0);
    }
}

#[test]
fn comparisons_in_main_after_a_deferred_start_are_solved() {
    let dir = TestDir::with_seed("AAAAAAAAAAAA");
    // Runs with the log, each in a new process, get less of the time on a busy machine.
    let job = dir.fuzz("-E 5000000 --error-exitcode 7", &target("deferred-loop.c", "-O2"), "");
    job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(7);
}

#[test]
fn functions_that_look_as_if_they_compared_are_logged_and_solved() {
    let dir = TestDir::with_seed("MAGI1234567890 .!");
    let library = plain("tests/targets/lookalikes-lib.c", "-O1 -c").display().to_string();
    let source = repository("tests/targets/lookalikes.c").display().to_string();
    build(&dir, "cc", &[], &format!("-O2 -fsanitize=fuzzer {source} {library} -o t"));
    let seen = comparisons(&dir, "t", INPUT, &[]);
    for line in [
        ": same, once\n    \"MAGI1234567890 .!\" and \"by-name\"",
        ": lib_equal, once\n    \"MAGI\" and \"\\x01\\x02\\x03\\x04\"",
        ": call by pointer, once\n    \"1234567890 .!\" and \"chosen\"",
    ] {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    for other in [": counts,", ": lib_match,", ": lib_apply,"] {
        assert!(!seen.contains(other), "{other}: {seen}");
    }
    // No letter of what the library compares is logged or counted.
    // Without -s the time of the stage counts, which a busy machine makes short.
    let run = dir.fuzz("-s 1 -E 200000 --error-exitcode 7", &dir.path("t"), "").run();
    run.expect(7);
}

#[test]
fn strings_of_both_libraries_are_logged() {
    let source = repository("tests/targets/cpp-strings.cc").display().to_string();
    let dir = TestDir::new();
    for library in ["libstdc++", "libc++"] {
        let line = format!("-O1 -stdlib={library} -fsanitize=fuzzer {source} -o t");
        let job = dir.ffuzz(&format!("c++ -g {line}"));
        let built = job.env("XDG_CACHE_HOME", cache().to_str().unwrap()).run();
        if library == "libc++" && built.err.contains("'cstdint' file not found") {
            common::skip("there is no libc++");
            return;
        }
        built.expect(0);
        for text in ["uno, short", "uno, longer than what has room in the object"] {
            let log = dir.tool("showmap --comparisons -q -o -", &dir.path("t"), "").input(text);
            let log = log.run().out;
            let part = format!("\"{}\" and \"twenty\"", &text[..6]);
            let whole = format!("\"{text}\" and \"a text\"");
            for wanted in ["\"uno\" and \"one\"", &part, &whole] {
                assert!(log.contains(wanted), "{library}: {wanted}: {log}");
            }
        }
    }
}

/// A function is called with the answer of its caller, unless it can be called by others.
#[test]
fn only_functions_with_unknown_callers_ask_whether_to_log() {
    let source = "#define F __attribute__((noinline)) static int\nint putchar(int);\n\
        F own(const char *t, long n) { int k = 0; for (long i = 0; i < n; i++) k += t[i] == 'x'; return k; }\n\
        F kept(const char *t, long n) { return t[n] == 'k'; }\nint (*pointer)(const char *, long) = kept;\n\
        F of_main(const char *t, long n) { return t[n] == 'm'; }\nint plain(int a) { return putchar(a + 1); }\n\
        static int inlined(const char *t) { return t[0] == 'i' ? putchar(1) : 2; }\n\
        int caller(const char *t) { return inlined(t); }\n\
        int harness(const char *t, long n) { return own(t, n) + own(t + 1, n - 1) + kept(t, 1); }\n\
        int main(int n, char **v) { return of_main(v[0], n) + of_main(v[0], 2); }\n";
    for clang in clangs() {
        let dir = TestDir::new();
        dir.write("t.c", source);
        build(&dir, "cc", &[("FFUZZ_CC", clang)], "-O2 -c t.c -o t.o");
        let code = dir.program("objdump").words("-dr t.o").run().expect(0).out;
        let asks = |name: &str| {
            let body = code.split(&format!("<{name}>:\n")).nth(1).unwrap();
            body.split("\n\n").next().unwrap().contains("_ffuzz_log_on")
        };
        for name in ["kept", "of_main", "harness", "caller", "main"] {
            assert!(asks(name), "{clang} {name}: {code}");
        }
        assert!(!asks("own") && !asks("plain"), "{clang}: {code}");
    }
}

#[test]
fn the_log_changes_no_edge_and_can_be_left_out() {
    let source = repository("tests/targets/compares.c").display().to_string();
    let dir = TestDir::new();
    build(&dir, "cc", &[], &format!("-O2 -fsanitize=fuzzer {source} -o with"));
    let without = [("FFUZZ_NO_LOG", "1")];
    build(&dir, "cc", &without, &format!("-O2 -fsanitize=fuzzer {source} -o without"));
    let edges = |program| {
        let job = dir.tool("showmap -q -o -", &dir.path(program), "").input(INPUT);
        job.run().expect(0).out
    };
    assert_eq!(edges("with"), edges("without"));
    let refused = dir.tool("showmap --comparisons -o -", &dir.path("without"), "").run();
    refused.refused(1, "the target does not log comparisons", "FFUZZ_NO_LOG");
}

#[test]
fn a_library_logs_for_its_program_and_a_full_log_is_named() {
    let dir = TestDir::new();
    let mut lib = String::from("int check(const unsigned char *d, int n) {\n  int s = 0;\n");
    lib.push_str("  for (int i = 0; i < 40; i++) {\n");
    for number in 0..5000 {
        let _ = writeln!(lib, "    if (d[i % n] * 7 + {number} == {}) s++;", number * 3);
    }
    lib.push_str("  }\n  return s;\n}\n");
    dir.write("lib.c", lib);
    dir.write(
        "main.c",
        "#include <stdio.h>\nint check(const unsigned char *, int);\nint main(void) {\n  \
         unsigned char d[99];\n  int n = fread(d, 1, 99, stdin);\n  return n > 0 && check(d, n) == 77;\n}\n",
    );
    build(&dir, "cc", &[], "-O1 -shared -fPIC lib.c -o libcheck.so");
    build(&dir, "cc", &[], "main.c -L. -lcheck -Wl,-rpath,$ORIGIN -o t");
    let job = dir.tool("showmap --comparisons -o log", &dir.path("t"), "").input("abc");
    let seen = job.run().expect(0);
    assert!(seen.err.contains("[+] 65536 comparisons at "), "{}", seen.err);
    assert!(seen.err.contains("the log was full"), "{}", seen.err);
    assert!(dir.text("log").contains("lib.c:4:"), "{}", dir.text("log"));
}

#[test]
fn what_cannot_be_relied_on_does_not_keep_the_gate_shut() {
    let library = "#include <stdint.h>\n#include <string.h>\n\
        int check(const uint8_t *d) { uint32_t w; memcpy(&w, d, 4); return w * 3 == 0x33333333u; }";
    for how in ["noise", "fork", "loop", "unload"] {
        let dir = TestDir::with_seed("Lxxxxxxx");
        dir.write("in/other", "xxxxxxxx");
        dir.write("lib.c", library);
        let source = repository("tests/targets/bad-compares.c").display().to_string();
        build(&dir, "cc", &[], "-O1 -shared -fPIC lib.c -o libcheck.so");
        build(&dir, "cc", &[], &format!("-g -O1 -fsanitize=fuzzer {source} -o t"));
        let job = dir.fuzz("-s 1 -t 500 -E 8000", &dir.path("t"), "").env("HOW", how);
        let job = job.env("LIBRARY", dir.path("libcheck.so").to_str().unwrap());
        // The claims about noise are those of a whole campaign.
        let job = if how == "noise" { job } else { job.env("AFL_BENCH_UNTIL_CRASH", "1") };
        job.run().expect(0);
        assert!(dir.stat("saved_crashes") > 0, "{how}: {:?}", dir.stats());
        // No bytes of the input are said to decide what changes by itself.
        let state: Value = serde_json::from_str(&dir.text("out/default/state.json")).unwrap();
        let sites = state["blockers"]["sites"].as_object().unwrap();
        for wanted in [123_456_789, 0x1111_2222, 0x4444_5555, 0x6666_7777] {
            let is_it = |site: &&Value| site["blocker"]["operands"][1]["Value"] == wanted;
            let site = sites.values().find(is_it);
            assert_eq!(site.is_some(), how == "noise", "{wanted:#x}: {state:#}");
            if let Some(site) = site {
                assert_eq!(site["blocker"]["deciding"], json!([]), "{site:#}");
            }
        }
    }
}

#[test]
fn integers_of_any_width_are_logged_and_solved() {
    let dir = TestDir::with_seed("x".repeat(48));
    let source = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\
        int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {\n\
          unsigned _BitInt(256) value, wanted = 1;\n\
          if (size < 40) return 0;\n\
          memcpy(&value, data + 5, 32);\n\
          for (int i = 0; i < 16; i++) wanted = wanted * 1000003 + data[i % 4] / 128;\n\
          if (value == wanted) abort();\n\
          return value < wanted;\n}\n";
    dir.write("wide.c", source);
    // Older ones know no integers of more than 128 bits.
    for clang in clangs().iter().filter(|clang| !["14", "15"].contains(clang)) {
        build(&dir, "cc", &[("FFUZZ_CC", clang)], "-O1 -fsanitize=fuzzer wide.c -o t");
        let job = dir.fuzz("-s 1 -E 3000", &dir.path("t"), "").env("AFL_BENCH_UNTIL_CRASH", "1");
        job.run().expect(0);
        assert!(dir.stat("saved_crashes") > 0, "{clang}: {:?}", dir.stats());
        std::fs::remove_dir_all(dir.path("out")).unwrap();
    }
}

/// Gates of which a folder of inputs passes some.
const GATES: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t word;
  char text[9] = "";
  if (size < 12) return 0;
  if (data[0] != 'G') return 0;
  memcpy(&word, data + 2, 4);
  if (word == 0x11223344) return 1;
  memcpy(text, data + 8, 4);
  if (atoi(text) > 77) abort();
  return 0;
}
"#;

#[test]
fn what_no_input_passes_is_listed_with_the_bytes_that_decide() {
    let dir = TestDir::new();
    let source = dir.write("gates.c", GATES).display().to_string();
    let job = dir.ffuzz(&format!("cc -g -O2 -fsanitize=fuzzer {source} -o t"));
    job.env("XDG_CACHE_HOME", cache().to_str().unwrap()).run().expect(0);
    dir.write("in/a", "x...........");
    dir.write("in/b", "G.....\"\"12..");
    dir.write("in/c", b"G.\x44\x33\x22\x10..31..");
    let run = |options: &str| dir.tool(options, &dir.path("t"), "").run().expect(0);
    let listed = run("showmap --blockers -i in");
    let folder = dir.path("").display().to_string();
    let expected = format!(
        "{folder}gates.c:8:12: LLVMFuzzerTestOneInput(): i64 <, always equal in 3 of 3 inputs; 1 edge behind it
    0xc and 0xc (constant) in a
{folder}gates.c:11:12: LLVMFuzzerTestOneInput(): i32 ==, never equal in 2 of 3 inputs; 1 edge behind it
    0x10223344 and 0x11223344 (constant) in c: bytes 2-5
{folder}gates.c:13:18: LLVMFuzzerTestOneInput(): i32 >, always less in 2 of 3 inputs; 1 edge behind it
    0x1f and 0x4d 'M' (constant) in c: bytes 8-9
"
    );
    assert_eq!(listed.out, expected);
    listed.says("3 places with ways that are never taken");
    let json: serde_json::Value =
        serde_json::from_str(&run("showmap --blockers --json -q -i in").out).unwrap();
    assert_eq!(json[1]["bytes"], serde_json::json!([[2, 5]]), "{json:#}");
    assert_eq!((&json[1]["behind"], &json[1]["functions"]), (&1.into(), &0.into()));
    assert_eq!((&json[2]["line"], &json[2]["outcome"]), (&13.into(), &"always less".into()));
    let job = dir.tool("showmap --blockers", &dir.path("t"), "").run();
    job.refused(1, "--blockers compares the runs of many inputs", "-i");
}

/// A harness in Rust, as docs/building-targets.md builds it.
fn rust_harness(dir: &TestDir) -> PathBuf {
    let linker = dir.path("ffuzz-cc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), &linker).unwrap();
    let page = std::fs::read_to_string(repository("docs/building-targets.md")).unwrap();
    let flags = page.split("RUSTFLAGS=\"").nth(1).unwrap().split('"').next().unwrap();
    let flags = flags.replace("linker=ffuzz-cc", &format!("linker={}", linker.display()));
    let target = dir.path("keyed");
    let mut command = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
    command.args(["--edition", "2024", "-g", "-C", "opt-level=3"]).args(flags.split_whitespace());
    command.env("XDG_CACHE_HOME", cache()).arg("-o").arg(&target);
    let output = command.arg(repository("tests/targets/keyed.rs")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target
}

#[test]
fn comparisons_that_rustc_reports_are_solved_and_named() {
    let dir = TestDir::new();
    let target = rust_harness(&dir);
    dir.write("in/a", "hello");
    let job = dir.fuzz("-E 5000000 -s 1", &target, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    // A backtrace would take longer than a run may.
    job.env("RUST_BACKTRACE", "1").run().expect(0);
    assert_eq!(dir.crashes().len(), 1, "{}", dir.stat("execs_done"));
    let input = b"\xef\xbe\xed\xfea keyword that is longer than registers:trans 1";
    let job = dir.tool("showmap --comparisons -q -o -", &target, "").input(input);
    let text = job.run().expect(0).out;
    let place = text.lines().find(|line| line.contains("keyed.rs:14:"));
    assert!(place.is_some_and(|line| line.contains(": keyed::check(): i32, once")), "{text}");
    assert!(text.contains("    0xfeedbeef (constant) and 0xfeedbeef"), "{text}");
    assert!(text.contains("\"a keyword that is longer than registers:\""), "{text}");
}

#[test]
fn comparisons_that_stock_clang_reports_are_solved_and_named() {
    if !has("clang-19") {
        return;
    }
    let dir = TestDir::new();
    let source = repository("tests/targets/keyed.c").display().to_string();
    dir.write("in/a", "twelve bytes");
    for (name, flags) in [("plain", ""), ("address", ",address")] {
        let object = dir.path(&format!("{name}.o"));
        let mut command = Command::new("clang-19");
        command.args(["-g", "-O1", "-c", &source, "-o"]).arg(&object);
        let status = command.arg(format!("-fsanitize=fuzzer-no-link{flags}")).status().unwrap();
        assert!(status.success());
        let line = format!("cc -fsanitize=fuzzer{flags} {} -o {name}", object.display());
        dir.ffuzz(&line).env("XDG_CACHE_HOME", cache().to_str().unwrap()).run().expect(0);
        let target = dir.path(name);
        let job = dir.tool("showmap --comparisons -q -o -", &target, "").input("twelve bytes");
        let text = job.run().expect(0).out;
        assert!(text.contains("keyed.c:10:12: LLVMFuzzerTestOneInput(): i64, once"), "{text}");
        let _ = std::fs::remove_dir_all(dir.path("out"));
        let job = dir.fuzz("-E 300000 -s 1", &target, "");
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        assert_eq!(dir.crashes().len(), 1, "{name}: {}", dir.stat("execs_done"));
    }
}

/// The versions of functions that log take no time for types that they do not use: HarfBuzz's largest file took
/// five minutes.
#[test]
fn debug_information_makes_no_build_slow() {
    let dir = TestDir::new();
    let mut source = String::new();
    for i in 0..6000 {
        writeln!(source, "struct s{i} {{ int a, b, c, d, e, f; }} g{i};").unwrap();
    }
    for i in 0..3000 {
        writeln!(source, "int f{i}(int n) {{ return g{i}.a == n; }}").unwrap();
    }
    dir.write("t.c", source);
    let mut total = 0.0;
    let mut seconds = |variable: &str| {
        let job = dir.ffuzz("cc -g -O0 -c t.c -o t.o").env(variable, "1");
        job.env("XDG_CACHE_HOME", cache().to_str().unwrap()).run().expect(0);
        let time = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().user_time();
        let before =
            std::mem::replace(&mut total, time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6);
        total - before
    };
    // The first one may build the pass.
    seconds("FFUZZ_NO_LOG");
    let (without, with) = (seconds("FFUZZ_NO_LOG"), seconds("AFL_QUIET"));
    assert!(with < 6.0 * without, "{with} s, {without} s without a log");
}
