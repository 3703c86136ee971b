//! The built-in domains and the runtime behind them: real compilers, small programs, known values.

use crate::compiling as common;
use std::process::Command;

use common::{Bench, clangs, repository, sorted_values, values};

/// A bench with a target from `tests/targets`, and inputs whose content is their name.
fn bench(waypoints: &str, source: &str, flags: &str, inputs: &[&str]) -> Bench {
    let bench = Bench::new();
    let path = repository("tests/targets").join(source);
    bench.build(&[("WAYPOINTS", waypoints)], &format!("{flags} {} -o t", path.display()));
    for input in inputs {
        bench.write(input, input);
    }
    bench
}

/// A bench with a program given as text, built as `t`.
fn program(waypoints: &str, flags: &str, source: &str) -> Bench {
    let bench = Bench::new();
    bench.write("t.c", source);
    bench.build(&[("WAYPOINTS", waypoints)], &format!("{flags} t.c -o t"));
    bench
}

/// Values of one run with this input.
fn run(bench: &Bench, input: &str) -> Vec<u32> {
    bench.write(&format!("run-{input}"), input);
    sorted_values(&bench.client("", "t", &[&format!("run-{input}")]))
}

/// The values of each run, one group a run.
fn runs(seen: &str) -> Vec<Vec<&str>> {
    let mut found = vec![];
    for line in seen.lines() {
        if line.starts_with("status=") {
            found.push(vec![]);
        } else if line.starts_with("dsf[") {
            found.last_mut().unwrap().push(line);
        }
    }
    found
}

#[test]
fn slow_perf_and_valid_agree_on_the_demo() {
    let demo = repository("demo/demo.c").display().to_string();
    for clang in clangs() {
        let bench = Bench::new();
        bench.write("seed", b"0\n0\n");
        let seen = |waypoints| {
            bench.build(
                &[("FFUZZ_CC", clang), ("WAYPOINTS", waypoints)],
                &format!("{demo} -o {waypoints}"),
            );
            bench.client("", waypoints, &["seed"])
        };
        let slow = seen("slow");
        assert!(slow.contains("domain slow start 0 size 1 reducer 0 initial 0"), "{slow}");
        let perf = seen("perf");
        assert!(perf.contains("domain perf start 0 size 65536 reducer 0 initial 0"), "{perf}");
        let valid = seen("valid");
        assert!(valid.contains("domain valid start 0 size 65536 reducer 2 initial 0"), "{valid}");
        let blocks = sorted_values(&perf);
        assert!(blocks.iter().all(|count| *count == 1), "{perf}");
        assert_eq!(sorted_values(&slow), [u32::try_from(blocks.len()).unwrap()], "clang-{clang}");
        assert_eq!(sorted_values(&valid), blocks);
        // main, the reading, A, B, and the ways out.
        assert!((4..=8).contains(&blocks.len()), "clang-{clang}: {perf}");
    }
}

const LOOPS: &str = "#include <stdio.h>\nvolatile int sum;\n\
    int main(void) { int n = getchar() - '0', s = 0;\n\
    for (int i = 0; i < n; i++) for (int k = 0; k < 10; k++) { s += sum ^ k; if (k == 5) sum = s; }\n\
    for (int i = 0; i < n; i++) putchar('x');\n\
    return 0; }\n";

#[test]
fn perf_counts_exactly_in_loops() {
    let bench = program("perf", "-O0", LOOPS);
    let counts = run(&bench, "7");
    for expected in [70, 77, 7, 8] {
        assert!(counts.contains(&expected), "{expected} is not in {counts:?}");
    }
    let once = counts.iter().filter(|count| **count == 1).count();
    let bench = program("perf", "-O0", LOOPS);
    assert_eq!(run(&bench, "0").iter().filter(|count| **count == 1).count(), once + 2);
}

#[test]
fn perf_adds_up_to_slow_however_it_is_optimised() {
    for level in ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -flto=thin -fuse-ld=lld"] {
        let (perf, slow) = (program("perf", level, LOOPS), program("slow", level, LOOPS));
        for input in ["0", "1", "9"] {
            let total: u32 = run(&perf, input).iter().sum();
            assert_eq!(run(&slow, input), [total], "{level}, input {input}");
        }
    }
}

/// The values of each domain by name.
fn by_domain(seen: &str) -> std::collections::BTreeMap<&str, Vec<u32>> {
    let word = |line: &str, at: usize| line.split(' ').nth(at).unwrap().parse::<u32>().unwrap();
    let records = seen.lines().filter(|line| line.starts_with("domain "));
    let of_record = |line: &str| {
        let (start, size) = (word(line, 3), word(line, 5));
        let key = |line: &&str| line[4..line.find(']').unwrap()].parse::<u32>().unwrap();
        let own = values(seen).into_iter().filter(|line| key(line).wrapping_sub(start) < size);
        sorted_values(&own.collect::<Vec<_>>().join("\n"))
    };
    records.map(|line| (line.split(' ').nth(1).unwrap(), of_record(line))).collect()
}

#[test]
fn domains_do_not_instrument_each_other_in_any_order() {
    let all = ["valid", "perf", "out", "cmp", "mem", "stack", "slow", "heap", "slack", "diff"];
    let bench = Bench::new();
    bench.write("t.c", LOOPS);
    bench.write("none.diff", "");
    bench.write("9", "9");
    let seen = |names: &[&str]| {
        bench.build(
            &[("WAYPOINTS", &*names.join(",")), ("FFUZZ_DIFF", "none.diff")],
            "-O2 t.c -o t",
        );
        bench.client("", "t", &["9"])
    };
    let together = seen(&all);
    let names: Vec<&str> = together
        .lines()
        .filter_map(|line| line.strip_prefix("domain ")?.split(' ').next())
        .collect();
    assert_eq!(names, all);
    assert!(!together.contains("unlisted"), "{together}");
    let backwards: Vec<&str> = all.into_iter().rev().collect();
    // The deepest stack depends on what else there is to be saved.
    for name in ["valid", "perf", "out", "cmp", "slow", "slack"] {
        let alone = seen(&[name]);
        assert_eq!(by_domain(&together)[name], by_domain(&alone)[name], "{name}");
        assert_eq!(by_domain(&seen(&backwards))[name], by_domain(&alone)[name], "{name}");
    }
}

#[test]
fn bits_are_counted_by_an_instruction_only_where_the_target_has_it() {
    let bench = Bench::new();
    bench.write("t.c", "int same(long a, long b) { return a == b; }\n");
    let popcnt = |flags: &str| {
        bench.build(&[("WAYPOINTS", "cmp")], &format!("-O1 {flags} -S t.c -o t.s"));
        std::fs::read_to_string(bench.path("t.s")).unwrap().contains("\tpopcnt")
    };
    if cfg!(target_arch = "x86_64") {
        assert!(!popcnt(""), "not every x86-64 has it");
        assert!(popcnt("-mpopcnt"));
        assert!(popcnt("-march=x86-64-v2"));
        assert!(!popcnt("-march=x86-64-v2 -mno-popcnt"));
    }
}

#[test]
fn blocks_after_a_failed_assumption_do_not_count() {
    for level in ["-O0", "-O2", "-O2 -flto -fuse-ld=lld"] {
        let bench = bench("valid", "valid.c", level, &["az", "bz"]);
        let seen = bench.client("-p", "t", &["az", "bz", "az", "az", "bz"]);
        let runs = runs(&seen);
        assert!(runs[2].len() > 3, "{level}: {seen}");
        assert_eq!(runs[1], [""; 0], "{level}: {seen}");
        assert_eq!(runs[4], [""; 0], "{level}: {seen}");
        assert_eq!(runs[2], runs[3], "{level}: {seen}");
        // In a process of its own too, and the reason is reported.
        assert_eq!(runs_of(&bench, "bz"), [""; 0], "{level}");
        let stdin = std::fs::File::open(bench.path("bz")).unwrap();
        let output = Command::new(bench.path("t")).stdin(stdin).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("Assumption failure on") && said.contains("valid.c:"), "{said}");
    }
}

fn runs_of(bench: &Bench, input: &str) -> Vec<String> {
    values(&bench.client("", "t", &[input])).iter().map(ToString::to_string).collect()
}

#[test]
fn a_failed_assumption_of_a_library_counts_for_the_program() {
    let bench = Bench::new();
    bench.write("a", "a");
    bench.write("b", "b");
    bench.write(
        "lib.c",
        "#include \"afl_valid.h\"\nint check(int c) { ASSUME_OR_RETURN(c == 'a', 0); return 1; }\n",
    );
    bench.write(
        "use.c",
        "#include <unistd.h>\nint check(int);\nvolatile int sum;\nint main(void) {\n\
         while (__AFL_LOOP(9)) { char c = 0; if (read(0, &c, 1) != 1) return 1; sum += check(c);\n\
         for (int i = 0; i < 9; i++) sum += i; } return 0; }\n",
    );
    let env = [("WAYPOINTS", "valid")];
    bench.build(&env, "-fPIC -shared lib.c -o libown.so");
    let rpath = format!("-Wl,-rpath,{}", bench.folder.path().display());
    bench.build(&env, &format!("use.c -o use -L. -lown {rpath}"));
    let seen = bench.client("-p", "use", &["a", "b", "a"]);
    let runs = runs(&seen);
    assert!(runs[0].len() > 3 && runs[0] == runs[2], "{seen}");
    assert_eq!(runs[1], [""; 0], "{seen}");
}

#[test]
fn assumptions_work_without_the_valid_domain() {
    let source = repository("tests/targets/valid.c").display().to_string();
    let bench = bench("perf", "valid.c", "", &["az", "bz"]);
    assert_eq!(bench.status("t", b"bz"), 0);
    let include = repository("runtime/include");
    for compiler in ["cc", "clang-19"] {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Werror", "-I"]).arg(&include).arg(&source).arg("-o");
        assert!(command.arg(bench.path("plain")).status().unwrap().success(), "{compiler}");
        assert_eq!(bench.status("plain", b"bz"), 0);
    }
}

const DIFF: &str = "diff --git a/targets/diff.c b/targets/diff.c\n--- a/targets/diff.c\n\
    +++ b/targets/diff.c\t2026-01-01\n@@ -6,3 +6,3 @@\n   volatile int times = 3;\n\
    -  return x + times;\n+  return x * times;\n }\n";

#[test]
fn diff_counts_edges_after_changed_code() {
    let source = repository("tests/targets/diff.c").display().to_string();
    let bench = Bench::new();
    bench.write("a", "a");
    bench.write("b", "b");
    let diff = bench.write("change.diff", DIFF).display().to_string();
    let list = bench.write("lines", "diff.c:7\n").display().to_string();
    let location = format!("-target_locations={list}");
    for (variables, option) in [(vec![("FFUZZ_DIFF", &*diff)], ""), (vec![], &*location)] {
        let variables: Vec<_> = variables.into_iter().chain([("WAYPOINTS", "diff")]).collect();
        for clang in clangs() {
            let env: Vec<_> = variables.iter().copied().chain([("FFUZZ_CC", clang)]).collect();
            bench.build(&env, &format!("-O2 {option} {source} -o t"));
            let seen = bench.client("-p", "t", &["a", "b", "a", "b"]);
            assert!(seen.contains("domain diff start 0 size 65536 reducer 2"), "{seen}");
            let runs = runs(&seen);
            // Every pass of the loop starts from zero: "b" never gets to the change.
            assert!(runs[0].len() > 1, "clang-{clang}: {seen}");
            assert_eq!(runs[1], [""; 0], "clang-{clang}: {seen}");
            assert_eq!(runs[3], [""; 0], "clang-{clang}: {seen}");
            assert_eq!(runs[2].len(), runs[0].len(), "clang-{clang}: {seen}");
        }
    }
    let stdin = std::fs::File::open(bench.path("a")).unwrap();
    let output = Command::new(bench.path("t")).stdin(stdin).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "small\n");
}

#[test]
fn diff_names_its_missing_prerequisites() {
    let bench = Bench::new();
    bench.write("t.c", "int main(void) { return 0; }\n");
    let mut command = bench.compiler("cc", "t.c -o t");
    command.env("WAYPOINTS", "diff").env_remove("AFL_QUIET").env_remove("FFUZZ_DIFF");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("does not know what has changed"), "{said}");
    assert!(said.contains("Set FFUZZ_DIFF=FILE"), "{said}");
    let output = command.env("FFUZZ_DIFF", "missing").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("domain 'diff' cannot read missing"), "{said}");
}

#[test]
fn every_allocating_function_is_seen_and_none_is_elided() {
    let source = repository("tests/targets/allocations.cc").display().to_string();
    let bench = Bench::new();
    bench.write("in", "");
    for (clang, level) in
        clangs().into_iter().flat_map(|clang| ["-O0", "-O3"].map(|level| (clang, level)))
    {
        for (waypoints, last) in [("mem", Some(u32::MAX)), ("heap", None)] {
            let mut command =
                bench.compiler("c++", &format!("{level} -Wno-everything {source} -o t"));
            command.env("FFUZZ_CC", clang).env("WAYPOINTS", waypoints);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let mut expected = vec![
                1, 4, 6, 11, 128, 1000, 2000, 3000, 4000, 5008, 6000, 7000, 8000, 9000, 10000,
                11000,
            ];
            // For `mem` the request that cannot be met; for `heap` (key 0) the peak of all.
            expected.push(last.unwrap_or(11000));
            let seen = bench.client("", "t", &["in"]);
            assert_eq!(sorted_values(&seen), expected, "{waypoints} clang-{clang} {level}");
        }
    }
}

#[test]
fn heap_follows_what_lives_at_the_same_time() {
    let source = "#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        void *volatile kept[10];\n\
        int main(void) { while (__AFL_LOOP(10)) { char n = '0'; if (read(0, &n, 1) < 0) return 1; n -= '0';\n\
        for (int i = 0; i < n; i++) kept[i] = malloc(100);\n\
        for (int i = 0; i < n; i++) free(kept[i]);\n\
        for (int i = 0; i < 50; i++) free(malloc(30)); } return 0; }\n";
    let bench = program("heap", "-O2", source);
    bench.write("5", "5");
    bench.write("2", "2");
    let seen = bench.client("-p", "t", &["5", "2", "5"]);
    let found: Vec<Vec<u32>> =
        runs(&seen).iter().map(|lines| sorted_values(&lines.join("\n"))).collect();
    assert_eq!(found, [vec![30, 500, 500], vec![30, 200, 200], vec![30, 500, 500]], "{seen}");
}

#[test]
fn stack_counts_bytes_and_frames_whatever_leaves_them() {
    for level in ["-O0", "-O2"] {
        let bench = bench("stack", "stack.c", level, &["3", "9"]);
        let [few, many] = [run(&bench, "3"), run(&bench, "9")];
        // main, jump, recurse, and the bytes.
        assert_eq!(few[..3], [1, 4, 4], "{level}");
        assert_eq!(many[..3], [1, 10, 10], "{level}");
        assert!(many[3] > few[3] + 6 * 100, "{few:?} {many:?}");
    }
}

#[test]
fn slack_is_the_minimum_distance() {
    let source = "#include <stdio.h>\n\
        int main(void) { int n = getchar(), hits = 0;\n\
        for (int i = 0; i < 3; i++) { if (n + i < 100) hits++; }\n\
        if ((unsigned)n * 3 == 500) hits += 4;\n\
        if ((long long)n << 33 > 7) hits += 8;\n\
        return hits > 1000; }\n";
    let bench = program("slack", "-O0", source);
    // 'a' is 97: 97+2 against 100; 291 against 500; the last is far; i against 3; hits.
    let found = run(&bench, "a");
    assert_eq!(found, [0, 1, 209, 989], "the loop's own bound, 99 < 100, 291 == 500, 11 > 1000");
    let bench = program(
        "slack",
        "-O0",
        "int main(int c, char **v) { signed char x = -128; return x < c + 126; }\n",
    );
    // The number of arguments is 2: 128.
    assert_eq!(run(&bench, ""), [256], "signed operands");
}

#[test]
fn out_counts_bytes_by_place() {
    for level in ["-O0", "-O3"] {
        let bench = bench("out", "output.c", level, &["7"]);
        assert_eq!(run(&bench, "7"), [1, 3, 5, 6, 16, 77, 100], "{level}");
    }
}

#[test]
fn string_functions_are_seen_without_any_flag() {
    let source = "#include <stdio.h>\n#include <string.h>\n#include <strings.h>\n\
        int main(void) { char b[8] = {0}; if (fread(b, 1, 7, stdin) == 0) return 9; return CALL; }\n";
    for (call, expected) in [
        ("strcmp(b, \"abcd\") == 0", 31),
        ("strncmp(b, \"abzz\", 3) != 0", 21),
        ("strcasecmp(b, \"abcd\") == 0", 31),
        ("strncasecmp(b, \"abcd\", 4) == 0", 31),
        ("memcmp(b, \"abcd\", 4) == 0", 31),
        ("bcmp(b, \"abcd\", 4) == 0", 31),
        ("strstr(b, \"bcd\") != 0", 23),
    ] {
        let bench = program("cmp", "-O3", &source.replace("CALL", call));
        let found = run(&bench, "abcf");
        assert!(found.contains(&expected), "{call}: {found:?}");
    }
}

#[test]
fn equal_texts_report_nothing_and_long_ones_64_bytes() {
    let source = "#include <stdio.h>\n#include <string.h>\n\
        static char a[300], b[300];\n\
        int main(void) { fread(a, 1, 200, stdin); memset(b, 'x', LENGTH); return CALL; }\n";
    for (call, length, expected) in [
        ("strcmp(a, b)", 200, None),
        ("strncmp(a, b, 100)", 150, None),
        ("memcmp(a, b, 200)", 200, None),
        ("strstr(a, b) != 0", 60, None),
        // The NUL of one side against an x: 4 bits of 8.
        ("strcmp(a, b)", 10, Some(84)),
        ("strcmp(a, b + 4)", 100, None),
        ("memcmp(a, b, 30)", 10, Some(80 + 20 * 4)),
    ] {
        let source = source.replace("CALL", call).replace("LENGTH", &length.to_string());
        let bench = program("cmp", "-O1", &source);
        let found = run(&bench, &"x".repeat(200));
        let expected: Vec<u32> = expected.into_iter().collect();
        assert_eq!(found, expected, "{call}, {length}");
    }
}

#[test]
fn a_switch_reports_each_value_of_a_run() {
    let switch = "int c; volatile int n = 0; while ((c = getchar()) != EOF) switch (c) {\n\
        case 'a': n = 5; break; case 'h': n = 7; break; case 0x7c: n = 9; break; }\n";
    let main = format!("#include <stdio.h>\nint main(void) {{ {switch} return n; }}\n");
    let bench = program("cmp", "-O0", &main);
    // Bits of 32: three cases, and -1, which every input ends with. i differs from them in 1, 1 and 3 bits.
    assert_eq!(run(&bench, "h"), [32, 32]);
    assert_eq!(run(&bench, "haha"), [32, 32, 32]);
    for input in ["i", "iii"] {
        assert_eq!(run(&bench, input), [29, 31, 31, 32]);
    }
    assert_eq!(run(&bench, "ihi"), [29, 31, 32, 32]);
    // In one process the next run starts from zero.
    let main = format!(
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) {{ while (__AFL_LOOP(9)) {{ rewind(stdin); {switch} }} }}\n"
    );
    let bench = program("cmp", "-O0", &main);
    bench.write("h", "hih");
    let seen = bench.client("", "t", &["h", "h", "h"]);
    let runs = runs(&seen);
    assert!(
        runs.len() == 3 && runs[0].len() == 5 && runs[1..].iter().all(|run| *run == runs[0]),
        "{seen}"
    );
}

#[test]
fn all_128_bits_are_compared() {
    let source = "#include <stdio.h>\n#include <string.h>\n\
        int main(void) { unsigned __int128 a = 0, b = (unsigned __int128)1 << 127 | 1;\n\
        if (fread(&a, 1, 1, stdin) != 1) return 1; return a == b; }\n";
    let bench = program("cmp", "-O1", source);
    // 'a' is 0x61: bits 5, 6 and 127 differ.
    assert!(run(&bench, "a").contains(&125));
}

#[test]
fn sums_without_a_call_saturate() {
    let source = "#include <stdint.h>\nuint32_t __ffuzz_first_or_full(uint32_t *, uint32_t, uint32_t);\n\
        int main(void) { uint32_t x = 0; return __ffuzz_first_or_full(&x, 0xfffffff0u, 0x20) == 0xffffffffu &&\n\
        __ffuzz_first_or_full(&x, 0, 5) == 5 && __ffuzz_first_or_full(&x, 0, 0) == 0 ? 0 : 1; }\n";
    assert_eq!(program("", "", source).status("t", b""), 0);
}

#[test]
fn no_touched_key_is_lost_with_threads() {
    let bench = bench("", "threads.c", "-pthread", &["x"]);
    let seen = bench.client("", "t", &["x"; 12]);
    assert!(!seen.contains("unlisted"), "{seen}");
    for run in runs(&seen) {
        assert_eq!(run.len(), 9 * 2000);
    }
}

#[test]
fn inlined_updates_of_libraries_reach_the_same_map() {
    let bench = Bench::new();
    bench.write("9", "9");
    bench.write(
        "lib.c",
        "int count(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }\n",
    );
    bench.write(
        "use.c",
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n\
         int main(void) { while (__AFL_LOOP(5)) { char c = 0; if (read(0, &c, 1) != 1) return 1;\n\
         void *lib = dlopen(LIB, RTLD_NOW); if (!lib) return 2;\n\
         int (*count)(int) = (int (*)(int))dlsym(lib, \"count\"); count(100 * (c - '0')); dlclose(lib); } return 0; }\n",
    );
    let env = [("WAYPOINTS", "perf")];
    bench.build(&env, "-fPIC -shared -O1 lib.c -o lib.so");
    let lib = bench.path("lib.so").display().to_string();
    bench.build(&env, &format!("-O1 -DLIB=\"{lib}\" use.c -o use"));
    let seen = bench.client("-p", "use", &["9", "9", "9"]);
    assert_eq!(seen.matches("domain perf").count(), 1, "{seen}");
    for run in runs(&seen) {
        assert!(run.iter().any(|line| line.ends_with("= 900")), "{seen}");
    }
    assert!(!seen.contains("unlisted") && seen.matches("status=137f").count() == 3, "{seen}");
}

#[test]
fn inlined_updates_work_with_sanitizers() {
    for flags in ["-fsanitize=address,undefined", "-fsanitize=memory", "-fsanitize=thread"] {
        let bench = program("perf,cmp,slack", &format!("-O0 {flags}"), LOOPS);
        bench.write("7", "7");
        let seen = bench.client("", "t", &["7"]);
        assert!(seen.contains("status=0 "), "{flags}: {seen}");
        assert!(seen.lines().any(|line| line.ends_with("= 70")), "{flags}: {seen}");
    }
}

#[test]
fn a_variable_of_the_usual_form_names_its_domain() {
    let names = "#include \"waypoints.h\"\n\
        FUZZFACTORY_DSF_NEW(__afl_foo_dsf, 1, FUZZFACTORY_REDUCER_MAX, 0)\n\
        FUZZFACTORY_DSF_NEW(__afl_dsf, 1, FUZZFACTORY_REDUCER_MAX, 0)\n\
        FUZZFACTORY_DSF_NEW(plain_dsf, 1, FUZZFACTORY_REDUCER_MAX, 0)\n\
        int main(void) { return 0; }\n";
    let bench = program("", "", names);
    bench.write("in", "");
    let seen = bench.client("", "t", &["in"]);
    for name in ["domain foo start", "domain __afl_dsf start", "domain plain_dsf start"] {
        assert!(seen.contains(name), "{seen}");
    }
}

/// Each letter is a way through the annotations.
const SELECTIVE: &str = "#include <stdio.h>\n__AFL_COVERAGE();\n#ifdef START_OFF\n__AFL_COVERAGE_START_OFF();\n#endif\n\
    __attribute__((noinline)) static int f(int c) {\n\
      for (volatile int i = 0; i < 9; i++) { if (i % 2) puts(\"a\"); else if (i % 3) puts(\"b\"); else puts(\"c\"); }\n\
    return c; }\n\
    #ifdef LOOP\n__AFL_FUZZ_INIT();\n#endif\n\
    static void run(int c) {\n\
      if (c == 'n') __AFL_COVERAGE_ON();\n\
      if (c == 'o') __AFL_COVERAGE_OFF();\n\
      f(c);\n\
      if (c == 'd') __AFL_COVERAGE_DISCARD();\n\
      if (c == 's') __AFL_COVERAGE_SKIP();\n\
      if (c == 'o') __AFL_COVERAGE_ON();\n\
    }\n\
    int main(void) {\n\
    #ifdef LOOP\n  while (__AFL_LOOP(1000)) run(__AFL_FUZZ_TESTCASE_LEN ? __AFL_FUZZ_TESTCASE_BUF[0] : 0);\n\
    #else\n  run(getchar());\n#endif\n  return 0; }\n";

#[test]
fn aflpps_annotations_leave_edges_out() {
    let bench = Bench::new();
    bench.write("t.c", SELECTIVE);
    for letter in ["n", "o", "p", "d", "s"] {
        bench.write(letter, letter);
    }
    let edges = |options: &str, input: &str| -> u32 {
        let seen = bench.client(options, "t", &[input]);
        let count = seen.split("edges=").nth(1).and_then(|rest| rest.split_whitespace().next());
        count.unwrap_or_else(|| panic!("{seen}")).parse().unwrap()
    };
    for (flags, options) in [("", ""), ("-DLOOP", "-p -s"), ("-x c++ -DLOOP", "-p -s")] {
        bench.build(&[], &format!("-Wall -Werror -O1 {flags} t.c -o t"));
        let all = edges(options, "p");
        assert!(all > 2, "{flags}: {all}");
        assert!(edges(options, "o") < all, "{flags}: what f reaches is not seen");
        assert!(edges(options, "d") < edges(options, "o"), "{flags}: nothing before is seen");
        assert_eq!(edges(options, "s"), 0, "{flags}");
        bench.build(&[], &format!("-Wall -Werror -O1 -DSTART_OFF {flags} t.c -o t"));
        assert_eq!(edges(options, "p"), 0, "{flags}: it is never on");
        assert!((3..=all).contains(&edges(options, "n")), "{flags}: it is on");
    }
}

#[test]
fn ijons_annotations_fill_three_maps() {
    let bench = bench("", "ijon.c", "-Wall -Werror", &["abc"]);
    let seen = bench.client("", "t", &["abc"]);
    assert!(seen.contains("domain ijon start 0 size 65536 reducer 2"), "{seen}");
    assert!(seen.contains("domain ijon-max start 65536 size 4096 reducer 0"), "{seen}");
    assert!(seen.contains("domain ijon-min start 69632 size 4096 reducer 1"), "{seen}");
    let found = values(&seen);
    assert!(
        found.contains(&"dsf[65541] = 27") && found.contains(&"dsf[65543] = 4294967295"),
        "{seen}"
    );
    assert!(found.contains(&"dsf[69638] = 203"), "{seen}");
    assert!(found.contains(&"dsf[65544] = 33") && found.contains(&"dsf[69641] = 303"), "{seen}");
    // Each caller has a slot in both maps.
    for value in ["= 1003", "= 2003"] {
        assert_eq!(found.iter().filter(|line| line.ends_with(value)).count(), 2, "{seen}");
    }
    for value in ["= 21", "= 103", "= 997", "= 3"] {
        assert!(found.iter().any(|line| line.ends_with(value)), "{value}: {seen}");
    }
    let mut command = bench.compiler("c++", "-x c++ -Wall -Werror");
    let source = repository("tests/targets/ijon.c");
    assert!(command.arg(&source).arg("-o").arg(bench.path("cxx")).status().unwrap().success());
    let include = repository("runtime/include");
    for words in [["cc", "-xc"], ["c++", "-xc++"]] {
        let mut command = Command::new(words[0]);
        command.args(["-Wall", "-Wextra", "-Werror", words[1], "-I"]).arg(&include).arg(&source);
        assert!(command.arg("-o").arg(bench.path("plain")).status().unwrap().success());
        assert_eq!(bench.status("plain", b"abc"), 0);
    }
}

#[test]
fn fuzzfactorys_own_fuzzer_gets_its_layout() {
    let bench = Bench::new();
    bench.write("i3", b"\xfd\xff\xff\x7f\xfe\xca\x01\x10");
    let demo = repository("demo/demo.c").display().to_string();
    bench.build(&[("WAYPOINTS", "cmp,mem")], &format!("{demo} -o t"));
    let seen = bench.client("-l", "t", &["i3", "i3"]);
    assert!(seen.contains("hello 00000002\n"), "{seen}");
    assert!(seen.contains("domain - start 0 size 65536 reducer 0 initial 0"), "{seen}");
    assert!(seen.contains("domain - start 65536 size 1024 reducer 0 initial 0"), "{seen}");
    let runs = runs(&seen);
    assert_eq!(sorted_values(&runs[0].join("\n")), [13, 32, 32, 2_147_483_645], "{seen}");
    assert_eq!(runs[0], runs[1]);
    assert_eq!(seen.matches("edges=0").count(), 0, "{seen}");
    // Without domains the hello is that of AFL 2.52b.
    bench.build(&[], &format!("{demo} -o none"));
    let seen = bench.client("-l", "none", &["i3"]);
    assert!(seen.contains("hello 00000000\n") && seen.contains("status=0 new i3"), "{seen}");
}

#[test]
fn iterations_start_from_initial_values_under_fuzzfactorys_fuzzer() {
    let bench = bench("", "persistent.c", "", &["a", "zzzz"]);
    let inputs = ["a", "zzzz", "a"];
    let legacy = bench.client("-l -p", "t", &inputs);
    assert!(legacy.contains("hello 00000002\n"), "{legacy}");
    assert_eq!(runs(&legacy), runs(&bench.client("-p", "t", &inputs)), "{legacy}");
}

#[test]
fn what_does_not_fit_into_the_old_layout_is_reported() {
    let mut source = String::from("#include \"waypoints.h\"\nint main(void) { return 0; }\n");
    for name in ["a", "b", "c", "d", "e"] {
        source += &format!("FUZZFACTORY_DSF_NEW({name}, 1, FUZZFACTORY_REDUCER_MAX, 0)\n");
    }
    let five = program("", "", &source);
    five.write("in", "");
    let (seen, said) = five.client_says("-l", "t", &["in"]);
    assert!(
        seen.contains("hello 00000000\n") && seen.contains("status=0 new in edges=1"),
        "{seen}"
    );
    assert!(said.contains("room for 4 domains") && said.contains("fewer WAYPOINTS"), "{said}");
    assert!(!five.client_says("", "t", &["in"]).1.contains("room for"));
}

#[test]
fn more_counters_than_the_old_map_has_are_folded_into_it() {
    let source = "#include <stdint.h>\nvoid __sanitizer_cov_8bit_counters_init(uint8_t *, uint8_t *);\n\
        static uint8_t many[70000];\n\
        __attribute__((constructor(2))) static void counters(void) { __sanitizer_cov_8bit_counters_init(many, many + 70000); }\n\
        int main(void) { many[69999] = 5; return 0; }\n";
    let bench = program("", "", source);
    bench.write("in", "");
    let seen = bench.client("-l", "t", &["in"]);
    assert!(seen.contains("hits=6"), "{seen}");
}
