//! Words: what `ffuzz-cc` collects from sources, and what a campaign makes of them.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::common;
use common::*;

const WORDS: &str = "\
string_29=\"magic-number\"
bytes_33=\"EOF\"
case_14=\"IHDR\"
case_14=\"RDHI\"
case_14=\"PLTE\"
case_14=\"ETLP\"
case_14=\"IDAT\"
case_14=\"TADI\"
table_7=\"alpha\"
table_7=\"bravo\"
table_7=\"charlie\"
table_7=\"delta\"
";

/// Of tests/targets/containers.cc.
const KEYWORDS: &[&str] = &[
    "addition",
    "chartreuse",
    "furlong",
    "inserted-three",
    "keyed-one",
    "kilogram",
    "multiply",
    "placed-two",
    "subtract",
    "turquoise",
    "vermilion",
];

/// Builds a program in the folder with `ffuzz cc`; returns what it said.
fn build(dir: &TestDir, variables: &[(&str, &str)], line: &str) -> String {
    let mut job = dir.ffuzz(&format!("cc {line}")).env("XDG_CACHE_HOME", cache().to_str().unwrap());
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.run().expect(0).err
}

fn tokens(dir: &TestDir, program: &str) -> Finished {
    dir.tool("showmap --tokens -q -o -", &dir.path(program), "").run()
}

#[test]
fn every_compiler_and_level_finds_the_same_words() {
    let source = repository("tests/targets/words.c").display().to_string();
    let wanted = format!("# {source}\n{WORDS}");
    for clang in clangs() {
        for level in ["-O0", "-O2"] {
            let dir = TestDir::new();
            let line = format!("-fsanitize=fuzzer {level} {source} -o t");
            build(&dir, &[("FFUZZ_CC", clang)], &line);
            assert_eq!(tokens(&dir, "t").expect(0).out, wanted, "{clang} {level}");
        }
    }
}

/// The states of a machine are numbers that the program stores itself. Any number may be one.
#[test]
fn states_of_a_machine_are_no_words() {
    let dir = TestDir::new();
    let source = "#include <stdint.h>\nint64_t state;\nint LLVMFuzzerTestOneInput(const uint8_t *data, long size) {\n\
        if (size > 3 && *(const uint32_t *)data == 0x4b455953) return 2;\n\
        for (state = 77770001; size > 0; data++, size--)\n  switch (state) {\n\
        case 77770001: state = 77770002; if (*data) state = 77770003; break;\n\
        case 77770002: state = 77770003; if (*data) state = INT64_MAX; break;\n\
        case 77770003: state = INT64_MIN; if (*data) state = 77770001; break;\n\
        case INT64_MAX: return 1;\n  case INT64_MIN: state = 77770002; break;\n\
        }\n  return 0;\n}\n";
    dir.write("t.c", source);
    for clang in clangs() {
        build(&dir, &[("FFUZZ_CC", clang)], "-fsanitize=fuzzer -O1 t.c -o t");
        let listed = tokens(&dir, "t").expect(0).out;
        let words = listed.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>();
        assert_eq!(words, ["int_4=\"KEYS\"", "int_4=\"SYEK\""], "{clang}");
    }
}

#[test]
fn words_of_a_library_are_those_of_its_programs_too() {
    let dir = TestDir::new();
    dir.write(
        "lib.c",
        "#include <string.h>\nint is(const char *s) { return !strcmp(s, \"from-the-library\"); }\n",
    );
    dir.write(
        "main.c",
        "#include <stdio.h>\n#include <string.h>\nint is(const char *);\nint main(void) {\n  \
         char line[99];\n  if (!fgets(line, 99, stdin)) return 1;\n  \
         return is(line) || !strcmp(line, \"from-the-program\");\n}\n",
    );
    build(&dir, &[], "-shared -fPIC lib.c -o libis.so");
    let said = build(&dir, &[], "main.c -L. -lis -Wl,-rpath,$ORIGIN -o t");
    assert!(said.contains("edges instrumented, 1 word\n"), "{said}");
    let words = tokens(&dir, "t").expect(0).out;
    assert!(words.contains("string_2=\"from-the-library\""), "{words}");
    assert!(words.contains("string_7=\"from-the-program\""), "{words}");
}

/// Without the log nothing else opens them.
#[test]
fn words_open_the_gates_of_a_target() {
    let dir = TestDir::with_seed("a seed that has no word of the format");
    let source = repository("tests/targets/words.c").display().to_string();
    build(&dir, &[("FFUZZ_NO_LOG", "1")], &format!("-fsanitize=fuzzer {source} -o t"));
    let job = |runs: u64| {
        let job = dir.fuzz(&format!("-s 1 -E {runs}"), &dir.path("t"), "");
        job.env("AFL_BENCH_UNTIL_CRASH", "1")
    };
    job(20_000_000).run().expect(0);
    assert!(!dir.crashes().is_empty());
    assert_eq!(dir.stat("auto_dict_entries"), 12);
    let runs = dir.stat("execs_done");
    fs::remove_dir_all(dir.path("out")).unwrap();
    job(2 * runs).env("AFL_NO_AUTODICT", "1").run().expect(0);
    assert_eq!(dir.crashes(), Vec::<String>::new(), "after {runs} runs with words");
}

#[test]
fn keywords_of_containers_are_words() {
    let source = repository("tests/targets/containers.cc").display().to_string();
    let dir = TestDir::with_seed("a text");
    let of_libstdcxx = clangs().into_iter().flat_map(|clang| [(clang, "-O0"), (clang, "-O2")]);
    let newest = *clangs().last().unwrap();
    for (clang, options) in of_libstdcxx.chain([(newest, "-O1 -stdlib=libc++")]) {
        let line = format!("c++ -std=c++17 {options} -fsanitize=fuzzer {source} -o t");
        let job = dir.ffuzz(&line).env("XDG_CACHE_HOME", cache().to_str().unwrap());
        let built = job.env("FFUZZ_CC", clang).run();
        if built.err.contains("file not found") {
            skip("there is no libc++");
            continue;
        }
        built.expect(0);
        let found = tokens(&dir, "t").expect(0).out;
        let mut words: Vec<&str> =
            found.lines().filter_map(|line| line.split('"').nth(1)).collect();
        words.sort_unstable();
        assert_eq!(words, KEYWORDS, "{clang} {options}");
    }
    let job = dir.fuzz("-E 3000000", &dir.path("t"), "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert!(!dir.crashes().is_empty());
}

#[test]
fn strings_of_a_program_of_afl_are_words() {
    need("afl-clang-fast");
    let dir = TestDir::with_seed("a seed that has no word of the format");
    let program = compiled("afl-clang-fast", "words.c", "-fsanitize=fuzzer");
    let words = dir.tool("showmap --tokens -q -o -", &program, "").run().expect(0).out;
    for word in ["magic-number", "alpha", "charlie"] {
        assert!(words.contains(&format!("string_0=\"{word}\"")), "{word}: {words}");
    }
    assert!(!words.contains("AFL_"), "{words}");
    dir.fuzz("-E 100", &program, "").run().expect(0);
    assert!(dir.stat("auto_dict_entries") > 3);
}

#[test]
fn without_words_there_are_none() {
    let dir = TestDir::with_seed("seed");
    let source = repository("tests/targets/words.c").display().to_string();
    let target = target("words.c", "-fsanitize=fuzzer");
    dir.fuzz("-E 100", &target, "").env("AFL_NO_AUTODICT", "1").run().expect(0);
    assert_eq!(dir.stat("auto_dict_entries"), 0);
    build(&dir, &[("FFUZZ_NO_WORDS", "1")], &format!("-fsanitize=fuzzer {source} -o t"));
    tokens(&dir, "t").refused(1, "the target has no words", "FFUZZ_NO_WORDS");
}

#[test]
fn a_damaged_table_is_refused_and_the_campaign_goes_on() {
    let dir = TestDir::with_seed("seed");
    let target = target("words.c", "-fsanitize=fuzzer");
    dir.write("table", "6162\tint\t/a.c\t1\nnonsense\n");
    let copied = Command::new("objcopy")
        .arg("--update-section")
        .arg(format!(".ffuzz_words={}", dir.path("table").display()))
        .args([&target, &dir.path("t")])
        .status();
    assert!(copied.unwrap().success());
    tokens(&dir, "t").refused(1, "are damaged", "build it again with ffuzz-cc");
    let done = dir.fuzz("-E 100", &dir.path("t"), "").run().expect(0);
    done.says("are damaged: not used");
    assert_eq!(dir.stat("auto_dict_entries"), 0);
}

#[test]
fn too_many_words_are_thinned_out_and_that_is_said() {
    let dir = TestDir::with_seed("seed");
    let mut source = "#include <stdint.h>\n#include <stddef.h>\n".to_owned();
    // The pass takes at most 256 of one table.
    for table in 0..40 {
        let words: String = (0..250).map(|word| format!("\"word-{table}-{word}\",\n")).collect();
        let _ = writeln!(source, "const char *const names{table}[] = {{ {words} }};");
    }
    source += "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return 0; }\n";
    dir.write("many.c", source);
    build(&dir, &[], "-fsanitize=fuzzer many.c -o t");
    let done = dir.fuzz("-E 100", &dir.path("t"), "").run().expect(0);
    done.says("the target has 10000 words: 4096 of them, evenly spread, are used");
    assert_eq!(dir.stat("auto_dict_entries"), 4096);
}
