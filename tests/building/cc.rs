//! `ffuzz cc` with real compilers and linkers: what comes out runs, crashes by its own signal, and
//! tells a fuzzer what it should.

mod counters;
mod engine;
mod exec;
mod extra;
mod harness;
mod lines;
mod tools;

use crate::compiling as common;
use common::{Bench, clangs, has, repository, sorted_values, values};
use std::process::Command;

/// Dies on the input "abcd".
const NULL_WRITE: &str = "#include <stdio.h>\n#include <string.h>\n\
    int main(void) { char b[8] = {0}; if (fread(b, 1, 8, stdin) && !memcmp(b, \"abcd\", 4)) \
    *(volatile int *)0 = 1; return 0; }\n";

fn null_write() -> Bench {
    let bench = Bench::new();
    bench.write("nul.c", NULL_WRITE);
    bench.write("abcd", "abcd");
    bench.write("abce", "abce");
    bench
}

fn demo_inputs(bench: &Bench) {
    bench.write("seed", b"0\n0\n");
    bench.write("i1", b"\x41\x41\x41\x41\xfe\xca\x01\x10");
    bench.write("i2", b"\x05\x20\x00\x00\xfe\xca\x01\x10");
    bench.write("i3", b"\xfd\xff\xff\x7f\xfe\xca\x01\x10");
    bench.write("i4", b"\xfe\xca\x01\x10\xfe\xca\x01\x10");
}

fn is_crash_seen(bench: &Bench, target: &str, shared: bool) {
    assert_eq!(bench.status(target, b"abcd"), 128 + 11);
    let seen = bench.client("", target, &["abcd", "abce"]);
    let features = if shared { "features 0" } else { "features 1" };
    assert!(seen.contains(features), "{seen}");
    assert!(seen.contains("status=b new abcd edges=2"), "{seen}");
    assert!(seen.contains("status=0 new abce edges=2"), "{seen}");
}

#[test]
fn a_null_write_dies_by_signal_11_however_it_was_built() {
    let bench = null_write();
    for clang in clangs() {
        let env = [("FFUZZ_CC", clang)];
        bench.build(&env, "nul.c -o one");
        is_crash_seen(&bench, "one", true);
        bench.build(&env, "-c nul.c -o nul.o");
        bench.build(&env, "nul.o -o two");
        is_crash_seen(&bench, "two", true);
        bench.build(&env, "-static nul.c -o static");
        is_crash_seen(&bench, "static", true);
        bench.build(&env, "-O0 -no-pie -ffunction-sections -Wl,--gc-sections nul.c -o gc");
        is_crash_seen(&bench, "gc", true);
    }
}

#[test]
fn other_linkers_share_or_copy_the_counters() {
    let bench = null_write();
    for (linker, shared) in [("lld-19", true), ("gold", false), ("mold", false)] {
        if !has(&format!("ld.{linker}")) {
            continue;
        }
        bench.build(&[], &format!("-fuse-ld={} nul.c -o x", linker.trim_end_matches("-19")));
        is_crash_seen(&bench, "x", shared);
    }
}

#[test]
fn the_fallback_is_reported_in_one_line() {
    let bench = null_write();
    if !has("gold") {
        return;
    }
    let mut command = bench.compiler("cc", "-fuse-ld=gold nul.c -o x");
    let output = command.env_remove("AFL_QUIET").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert_eq!(said.matches("copied after each run").count(), 1, "{said}");
    assert_eq!(said.lines().count(), 2, "the other one counts edges: {said}");
}

#[test]
fn an_unknown_linker_is_tried_with_the_script_first() {
    let bench = null_write();
    if !has("gold") {
        return;
    }
    let wrapper = bench.write("curious-ld", "#!/bin/sh\nexec gold \"$@\"\n");
    let status = Command::new("chmod").arg("755").arg(&wrapper).status().unwrap();
    assert!(status.success());
    bench.build(&[], &format!("--ld-path={} nul.c -o x", wrapper.display()));
    is_crash_seen(&bench, "x", false);
}

#[test]
fn underscore_exit_does_not_lose_copied_counters() {
    let bench = Bench::new();
    if !has("gold") {
        return;
    }
    bench.write("in", "x");
    bench.write(
        "e.c",
        "#include <unistd.h>\nint main(int c, char **v) { if (c > 5) return 1; _exit(3); }\n",
    );
    bench.build(&[], "-fuse-ld=gold e.c -o e");
    assert!(bench.client("", "e", &["in"]).contains("status=300 new in edges=2"));
}

#[test]
fn lto_keeps_coverage_and_domains() {
    let bench = null_write();
    for flags in ["-flto -fuse-ld=lld", "-flto=thin -fuse-ld=lld", "-flto"] {
        bench.build(&[("WAYPOINTS", "cmp")], &format!("{flags} nul.c -o x"));
        let seen = bench.client("", "x", &["abcd"]);
        assert!(seen.contains("status=b new abcd edges=2"), "{flags}: {seen}");
        let seen = bench.client("", "x", &["abce"]);
        assert!(sorted_values(&seen).contains(&31), "{flags}: {seen}");
    }
}

#[test]
fn sanitizers_by_variable_and_by_flag() {
    let bench = null_write();
    bench.write(
        "over.c",
        "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(4); return p[5]; }\n",
    );
    bench.build(&[("AFL_USE_ASAN", "1"), ("WAYPOINTS", "cmp")], "over.c -o over");
    assert_eq!(bench.status("over", b""), 1);
    bench.build(&[], "-fsanitize=address,undefined nul.c -o x");
    let env = [("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0")];
    let seen = bench.client_with(&env, "", "x", &["abcd", "abce"]);
    assert!(seen.contains("status=b new abcd") && seen.contains("status=0 new abce"), "{seen}");
    let mut both = bench.compiler("cc", "nul.c -o x");
    let output = both.env("AFL_USE_ASAN", "1").env("AFL_USE_MSAN", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn variables_of_afl_without_effect_are_named_and_the_others_have_theirs() {
    let bench = Bench::new();
    std::fs::write(bench.path("t.c"), "int main(void) { return 0; }\n").unwrap();
    let build = |name: &str, value: &str| {
        let mut command = bench.compiler("cc", "t.c -o t");
        command.env_remove("AFL_QUIET").env(name, value);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    for name in ["AFL_USE_RTSAN", "AFL_USE_QASAN", "AFL_LLVM_NGRAM_SIZE", "AFL_LLVM_DICT2FILE"] {
        let said = build(name, "1");
        assert!(said.contains(&format!("warning: {name} has no effect: ")), "{said}");
        assert!(said.contains("edges instrumented"), "{said}");
    }
    let said = build("AFL_LLVM_INSTRUMENT", "CLASSIC,CTX-2");
    assert!(said.contains("warning: AFL_LLVM_INSTRUMENT=CTX-2 has no effect: "), "{said}");
    // The header of IJON is there without an #include.
    std::fs::write(
        bench.path("t.c"),
        "int main(int n, char **a) { (void)a; IJON_MAX(n); return 0; }\n",
    )
    .unwrap();
    assert!(!build("AFL_LLVM_SKIP_NEVERZERO", "1").contains("edges instrumented"));
    let said = build("AFL_LLVM_IJON", "1");
    assert!(said.contains("edges instrumented") && !said.contains("warning"), "{said}");
    std::fs::write(bench.path("t.c"), "int main(void) { return 0; }\n").unwrap();
    for name in ["AFL_NOOPT", "AFL_LLVM_DISABLE_INSTRUMENTATION"] {
        assert_eq!(build(name, "1"), "");
    }
    let launcher = bench.path("launcher");
    std::fs::write(&launcher, "#!/bin/sh\necho launched >&2\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let said = build("AFL_COMPILER_LAUNCHER", launcher.to_str().unwrap());
    assert!(said.contains("launched") && said.contains("edges instrumented"), "{said}");
}

#[test]
fn links_with_names_of_afl_are_the_programs_that_take_their_place() {
    let bench = Bench::new();
    std::fs::write(bench.path("t.c"), "int main(void) { return 0; }\n").unwrap();
    let run = |name: &str, words: &str| {
        let link = bench.path(name);
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), &link);
        let mut command = Command::new(link);
        command.current_dir(bench.folder.path()).args(words.split_whitespace());
        command.output().unwrap()
    };
    for name in ["afl-clang-fast", "afl-clang-lto", "afl-gcc", "afl-gcc-fast", "afl-lto"] {
        let done = run(name, "-Xclang -fsanitize=fuzzer-no-link -o named t.c");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.contains("named: 1 edges"), "{name}: {said}");
        std::fs::remove_file(bench.path("named")).unwrap();
    }
    assert!(run("afl-g++-fast", "-x c++ -c t.c").status.success());
    let help = run("afl-cmin.bash", "--help").stdout;
    assert!(String::from_utf8_lossy(&help).contains("ffuzz-cmin"));
    let unknown = run("afl-analyze", "-i in ./t");
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        unknown.status.code() == Some(2) && said.contains("no counterpart of afl-analyze"),
        "{said}"
    );
}

#[test]
fn demo_has_the_values_of_the_worked_examples() {
    for clang in clangs() {
        let bench = Bench::new();
        demo_inputs(&bench);
        let demo = repository("demo/demo.c").display().to_string();
        let mut command = bench.compiler("cc", &format!("{demo} -o demo"));
        command.env_remove("AFL_QUIET").env("FFUZZ_CC", clang).env("WAYPOINTS", "cmp,mem");
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(said.contains("[+] [CmpFeedback] Instrumented 3 locations."), "{said}");
        assert!(said.contains("[+] [MemAllocFeedback] Instrumented 1 locations."), "{said}");
        let seen = bench.client("", "demo", &["i3"]);
        assert!(seen.contains("domain cmp start 0 size 65536 reducer 0 initial 0"), "{seen}");
        assert!(seen.contains("domain mem start 65536 size 1024 reducer 0 initial 0"), "{seen}");
        assert_eq!(sorted_values(&seen), [13, 32, 32, 2_147_483_645]);
        assert_eq!(sorted_values(&bench.client("", "demo", &["seed"])), [19, 32]);
        assert_eq!(sorted_values(&bench.client("", "demo", &["i4"])), [32, 32, 32]);
    }
}

#[test]
fn demo_manual_has_the_values_of_the_worked_examples() {
    let bench = Bench::new();
    demo_inputs(&bench);
    let demo = repository("demo/demo-manual.c").display().to_string();
    bench.build(&[], &format!("{demo} -o manual"));
    let lines = |input| {
        let seen = bench.client("", "manual", &[input]);
        values(&seen).join(" ")
    };
    assert_eq!(lines("seed"), "dsf[0] = 19");
    assert_eq!(lines("i1"), "dsf[0] = 32 dsf[1] = 17 dsf[2] = 1094795585");
    assert_eq!(lines("i2"), "");
    assert_eq!(lines("i3"), "dsf[0] = 32 dsf[1] = 13 dsf[2] = 2147483645");
    assert_eq!(lines("i4"), "dsf[0] = 32 dsf[1] = 32");
    bench.build(&[("WAYPOINTS", "mem,cmp")], &format!("{demo} -o both"));
    let seen = bench.client("", "both", &["seed"]);
    assert!(seen.contains("domain mem start 0 size 1024"), "{seen}");
    assert!(seen.contains("domain cmp start 1024 size 65536"), "{seen}");
    assert!(seen.contains("domain closeness start 66560 size 4"), "{seen}");
}

#[test]
fn the_headers_have_no_effect_with_other_compilers() {
    let bench = Bench::new();
    let status = Command::new("cc")
        .args(["-Wall", "-Werror", "-I"])
        .arg(repository("runtime/include"))
        .arg(repository("demo/demo-manual.c"))
        .arg("-o")
        .arg(bench.path("plain"))
        .status();
    assert!(status.unwrap().success());
    assert_eq!(bench.status("plain", b"0\n0\n"), 0);
}

/// After the number of edges, which depends on how the target gets its input.
const PERSISTENT: &str = "dsf[0] = 1|dsf[1] = 5|dsf[8] = 1|status=137f same z|\
    dsf[0] = 1|dsf[8] = 4|status=0 same a|dsf[0] = 1|dsf[1] = 5|dsf[8] = 1|status=300 new b|dsf[0] = 1|\
    dsf[8] = 1|status=6 new c|dsf[0] = 1|dsf[8] = 2|status=137f new z|dsf[0] = 1|dsf[8] = 4|child gone";

/// Each part of `expected` starts its line, in this order.
fn assert_lines(seen: &str, expected: &str) {
    let mut lines = seen.lines().skip_while(|line| !line.starts_with("status="));
    for part in expected.split('|') {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(part), "expected {part}, found {line} in\n{seen}");
    }
}

#[test]
fn every_iteration_starts_from_initial_values() {
    let bench = Bench::new();
    for (name, content) in [("a", "a"), ("b", "b"), ("c", "cc"), ("z", "zzzz")] {
        bench.write(name, content);
    }
    let source = repository("tests/targets/persistent.c").display().to_string();
    let inputs = ["a", "z", "a", "b", "c", "z"];
    bench.build(&[], &format!("-Wall -Wextra {source} -o stdin"));
    let lines = |edges: u32| format!("status=137f new a edges={edges} |{PERSISTENT}");
    assert_lines(&bench.client("-p", "stdin", &inputs), &lines(3));
    bench.build(&[], &format!("-DSHARED_INPUT {source} -o shared"));
    assert_lines(&bench.client("-p -s", "shared", &inputs), &lines(2));
    if has("gold") {
        bench.build(&[], &format!("-fuse-ld=gold -DSHARED_INPUT {source} -o copied"));
        assert_lines(&bench.client("-p -s", "copied", &inputs), &lines(2));
    }
    let output = bench.compiler("c++", &format!("-x c++ -DSHARED_INPUT {source} -o cxx")).output();
    assert_eq!(String::from_utf8_lossy(&output.unwrap().stderr), "");
    assert_lines(&bench.client("-p -s", "cxx", &inputs), &lines(2));
    assert_eq!(bench.status("shared", b"a"), 0);
    assert_eq!(bench.status("shared", b"b"), 3);
    let v1 = bench.client_with(&[("FFUZZ_FORKSERVER", "v1")], "-p -s", "shared", &["a"]);
    assert!(v1.contains("v1 options 3 size") && v1.contains("status=137f new a"), "{v1}");
    let segment = bench.client("-n -p -s", "shared", &inputs);
    assert!(segment.contains("status=137f new a edges=2"), "{segment}");
}

#[test]
fn libraries_have_their_own_part_of_the_map() {
    let bench = Bench::new();
    bench.write("z", "z");
    bench.write("v.map", "{ global: check; local: *; };\n");
    bench.write(
        "lib.c",
        "#include \"waypoints.h\"\n#include <stdlib.h>\n\
         FUZZFACTORY_DSF_NEW(own, 2, FUZZFACTORY_REDUCER_MAX, 0);\n\
         int check(int x) { FUZZFACTORY_DSF_MAX(own, 1, x); free(malloc(7)); return x == 'a'; }\n",
    );
    bench.write(
        "use.c",
        "#include <stdio.h>\nint check(int);\nint main(void) { return check(getchar()); }\n",
    );
    let domains = [("WAYPOINTS", "mem")];
    let rpath = format!("-Wl,-rpath,{}", bench.folder.path().display());
    for flags in
        ["-Wl,-z,defs", "-Wl,-z,defs -Wl,--version-script=v.map", "-Wl,--no-undefined -fuse-ld=lld"]
    {
        bench.build(&domains, &format!("-fPIC -shared {flags} lib.c -o libown.so"));
        bench.build(&domains, &format!("use.c -o use -L. -lown {rpath}"));
        let seen = bench.client("", "use", &["z"]);
        assert!(seen.contains("features 0 map 4097"), "{flags}: {seen}");
        assert!(
            seen.contains("module libown.so start 0") && seen.contains("module use start 4096")
        );
        assert_eq!(seen.lines().filter(|line| line.starts_with("domain mem")).count(), 1, "{seen}");
        assert_eq!(sorted_values(&seen), [7, 122], "{flags}: {seen}");
    }
    let mut foreign = Command::new("cc");
    foreign
        .current_dir(bench.folder.path())
        .args(["use.c", "-o", "foreign", "-L.", "-lown", &rpath]);
    assert!(foreign.status().unwrap().success());
    assert_eq!(bench.status("foreign", b"a"), 1);
}

#[test]
fn libfuzzer_targets_get_our_driver() {
    let bench = Bench::new();
    for (name, content) in [("a", "a"), ("c", "cc"), ("z", "zz")] {
        bench.write(&format!("in/{name}"), content);
    }
    bench.write(
        "fz.c",
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n\
         size_t LLVMFuzzerMutate(uint8_t *, size_t, size_t);\n\
         int LLVMFuzzerInitialize(int *c, char ***v) { return 0; }\n\
         size_t LLVMFuzzerCustomMutator(uint8_t *d, size_t s, size_t m, unsigned r) { return LLVMFuzzerMutate(d, s, m); }\n\
         int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { if (n > 1 && d[0] == 'c') abort(); return n == 1 ? -1 : 0; }\n",
    );
    bench.build(&[], "-fsanitize=fuzzer-no-link -c fz.c -o fz.o");
    for line in
        ["-fsanitize=fuzzer fz.c", "-fsanitize=fuzzer fz.o", "-fsanitize=fuzzer,address fz.c"]
    {
        bench.build(&[], &format!("{line} -o fz"));
        let seen = bench.client("-p -s", "fz", &["in/a", "in/z", "in/c"]);
        assert_lines(&seen, "status=137f new a|status=137f same z|status=6 same c");
        let run = |files: &[&str]| {
            Command::new(bench.path("fz"))
                .args(files)
                .current_dir(bench.folder.path())
                .output()
                .unwrap()
        };
        assert!(run(&["in/a", "in/z"]).status.success());
        assert!(!run(&["in"]).status.success());
    }
    bench.write(
        "fz.cc",
        "#include <cstddef>\n#include <cstdint>\n#include <string>\n\
         extern \"C\" int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) {\n\
         std::string s(reinterpret_cast<const char *>(d), n); return s == std::to_string(n); }\n",
    );
    bench.build(&[], "-fsanitize=fuzzer-no-link -c fz.cc -o fz.o");
    for line in ["-fsanitize=fuzzer fz.o", "-fsanitize=fuzzer -static fz.o"] {
        bench.build(&[], &format!("{line} -o fz"));
        let seen = bench.client("-p -s", "fz", &["in/a"]);
        assert_lines(&seen, "status=137f new a");
    }
}

/// The value of the only site whose value is at least `least`.
fn cmp_values(bench: &Bench, source: &str) -> Vec<u32> {
    bench.write("t.c", source);
    bench.write("in", "abd");
    bench.build(&[("WAYPOINTS", "cmp")], "-O2 t.c -o t");
    sorted_values(&bench.client("", "t", &["in"]))
}

#[test]
fn memcmp_turned_into_bcmp_is_instrumented_with_its_sign() {
    let bench = Bench::new();
    let source = "#include <stdio.h>\n#include <string.h>\n\
        int main(void) { char b[4] = {0}; fread(b, 1, 3, stdin); \
        int order = memcmp(\"abc\", b, 3); int same = memcmp(b, \"abd\", 3) == 0; \
        return order < 0 && same ? 42 : 1; }\n";
    let found = cmp_values(&bench, source);
    // The second is a match, which reports nothing.
    assert!(found.contains(&21) && !found.contains(&24), "{found:?}");
    assert_eq!(bench.status("t", b"abd"), 42);
}

#[test]
fn all_64_bits_are_compared() {
    let bench = Bench::new();
    let source = "#include <stdio.h>\n#include <stdint.h>\n\
        int main(int c, char **v) { volatile uint64_t x = 1ull << 63 | 5; return x == 5 ? 1 : 7; }\n";
    assert_eq!(cmp_values(&bench, source), [63]);
    assert_eq!(bench.status("t", b""), 7);
}

#[test]
fn an_unused_allocation_is_still_counted() {
    let bench = Bench::new();
    bench.write("in", "");
    // A program each: two sites of one program may share one of the 1024 keys.
    let sum = "for (int i = 0; i < 3; i++) free(malloc(100));";
    let huge = "free(calloc(1ull << 33, 1ull << 33));";
    for (body, expected) in [(sum, 300), (huge, u32::MAX)] {
        bench.write("m.c", format!("#include <stdlib.h>\nint main(void) {{ {body} return 0; }}\n"));
        bench.build(&[("WAYPOINTS", "mem")], "-O3 m.c -o m");
        assert_eq!(sorted_values(&bench.client("", "m", &["in"])), [expected]);
    }
}

#[test]
fn files_of_the_same_name_have_different_keys_and_a_rebuild_the_same() {
    let bench = Bench::new();
    bench.write("in", "");
    let folders = ["a", "b", "c", "d", "e", "f"];
    for (folder, size) in folders.iter().zip([1, 2, 4, 8, 16, 32]) {
        let source =
            format!("#include <stdlib.h>\nvoid {folder}_f(void) {{ free(malloc({size})); }}\n");
        bench.write(&format!("{folder}/util.c"), source);
    }
    let calls = folders.map(|folder| format!("void {folder}_f(void);\n")).concat();
    let body = folders.map(|folder| format!("{folder}_f(); ")).concat();
    bench.write("main.c", format!("{calls}int main(void) {{ {body}return 0; }}\n"));
    let files = folders.map(|folder| format!("{folder}/util.c")).join(" ");
    let line = format!("main.c {files} -o m");
    bench.build(&[("WAYPOINTS", "mem")], &line);
    let first = bench.client("", "m", &["in"]);
    // Paths are random here and the map has 1024 keys: two of six may meet, more than that not.
    let sizes = sorted_values(&first);
    assert!(sizes.len() >= 5 && sizes.iter().sum::<u32>() == 63, "{sizes:?}");
    bench.build(&[("WAYPOINTS", "mem")], &line);
    assert_eq!(values(&bench.client("", "m", &["in"])), values(&first));
}

#[test]
fn registration_mistakes_stop_the_program() {
    let bench = Bench::new();
    let header = "#include \"waypoints.h\"\nint main(void) { return 0; }\n";
    bench.write(
        "zero.c",
        format!("{header}FUZZFACTORY_DSF_NEW(z, 0, FUZZFACTORY_REDUCER_MAX, 0);\n"),
    );
    bench.build(&[], "zero.c -o zero");
    let output = Command::new(bench.path("zero")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "[-] ERROR: Invalid domain-specific map size: 0\n");
    assert_eq!(output.status.code(), Some(1));
    let twice = "FFUZZ_NEW_DOMAIN(a, \"n\", 1, FUZZFACTORY_REDUCER_MAX, 0)\nFFUZZ_NEW_DOMAIN(b, \"n\", 2, FUZZFACTORY_REDUCER_MAX, 0)\n";
    bench.write("twice.c", format!("{header}{twice}"));
    bench.build(&[], "twice.c -o twice");
    let output = Command::new(bench.path("twice")).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("registered twice"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn unknown_domains_are_refused_with_the_known_ones() {
    let bench = null_write();
    let mut command = bench.compiler("cc", "nul.c -o x");
    let output = command.env("WAYPOINTS", "cmp,nonsense").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("unknown domain 'nonsense' (known: cmp, diff, heap, mem"), "{said}");
}

#[test]
fn configure_probes_get_the_output_of_plain_clang() {
    let bench = null_write();
    for question in ["--version", "-dumpmachine", "-print-prog-name=ld", "-v", "-dumpversion"] {
        let ours = bench.compiler("cc", question).env("FFUZZ_CC", "19").output().unwrap();
        let clang = Command::new("clang-19").arg(question).output().unwrap();
        assert_eq!(ours.stdout, clang.stdout, "{question}");
        assert_eq!(ours.stderr, clang.stderr, "{question}");
        assert_eq!(ours.status, clang.status, "{question}");
    }
    bench.write("conftest.c", "int main(void) { return 0; }\n");
    for line in [
        "conftest.c -o conftest",
        "-E conftest.c",
        "-c conftest.c",
        "-MM conftest.c",
        "-Werror -c conftest.c",
    ] {
        let mut command = bench.compiler("cc", line);
        let output = command.env("WAYPOINTS", "cmp,mem").env_remove("AFL_QUIET").output().unwrap();
        assert!(output.status.success(), "{line}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    }
    assert_eq!(bench.status("conftest", b""), 0);
    let broken = bench.write("broken.c", "int main(void) { return }\n");
    let output = bench.compiler("cc", &broken.display().to_string()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn unusual_command_lines_work() {
    let bench = Bench::new();
    bench.write("a.c", "int b(void);\nint s(void);\nint main(void) { return b() + s(); }\n");
    bench.write("b.c", "int b(void) { return 1; }\n");
    bench.write(
        "s.s",
        ".globl s\ns: movl $2, %eax\n ret\n.section .note.GNU-stack,\"\",@progbits\n",
    );
    bench.write("args", "-c b.c -o b.o");
    bench.build(&[], "@args");
    bench.build(&[], "-c a.c -o a.o");
    bench.build(&[], "-r a.o b.o -o ab.o");
    bench.build(&[], "ab.o s.s -o all");
    assert_eq!(bench.status("all", b""), 3);
    bench.build(&[], "a.c b.c s.s -o three -lm");
    assert_eq!(bench.status("three", b""), 3);
    bench.build(&[], "-S b.c -o b.s");
    bench.build(&[], "-c -emit-llvm b.c -o b.bc");
    bench.build(&[], "-nostdlib -ffreestanding -c b.c -o free.o");
    bench.build(&[], "a.c s.s free.o -o four");
    assert_eq!(bench.status("four", b""), 3);
    bench.write("src.txt", "int main(void) { return 9; }\n");
    bench.build(&[], "-x c src.txt -o five");
    assert_eq!(bench.status("five", b""), 9);
}

#[test]
fn lists_choose_what_gets_counters() {
    let bench = Bench::new();
    bench.write("in", "");
    bench.write(
        "a.c",
        "int f(int x) { return x > 3 ? 1 : 2; }\nint main(int c, char **v) { return f(c); }\n",
    );
    let counters = |name: &str, content: &str| {
        let list = bench.write("list", content).display().to_string();
        bench.build(&[(name, &list)], "-O0 a.c -o a");
        let seen = bench.client("", "a", &["in"]);
        let module = seen.lines().find_map(|line| line.split("counters ").nth(1)?.parse().ok());
        module.unwrap_or(0)
    };
    let all: u32 = counters("AFL_LLVM_ALLOWLIST", "a.c\n");
    let only_f = counters("AFL_LLVM_ALLOWLIST", "fun: f\n");
    let not_f = counters("AFL_LLVM_DENYLIST", "fun: f\n");
    assert!(only_f > 0 && not_f > 0 && only_f + not_f == all, "{only_f} + {not_f} = {all}");
    assert_eq!(counters("AFL_LLVM_ALLOWLIST", "src: other.c\n"), 0);
    assert_eq!(counters("AFL_LLVM_DENYLIST", "src: a.c\n"), 0);
}

#[test]
fn afl_showmap_reads_our_targets() {
    let bench = null_write();
    if !has("afl-showmap") {
        return;
    }
    bench.write("in/a", "a");
    bench.write("in/z", "zzzz");
    let persistent = repository("tests/targets/persistent.c").display().to_string();
    bench.build(&[], "nul.c -o fork");
    bench.build(&[], &format!("{persistent} -o persistent"));
    bench.build(&[], &format!("-DSHARED_INPUT {persistent} -o shared"));
    for target in ["fork", "persistent", "shared"] {
        let out = bench.path(&format!("maps-{target}"));
        let mut command = Command::new("afl-showmap");
        command.current_dir(bench.folder.path()).args(["-q", "-i", "in", "-o"]).arg(&out);
        let output = command.arg("--").arg(bench.path(target)).output().unwrap();
        for name in ["a", "z"] {
            let map = std::fs::read_to_string(out.join(name));
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(map.is_ok_and(|map| !map.is_empty()), "{target}: {text}");
        }
    }
}

#[test]
fn a_bogus_segment_is_answered_with_the_error_word() {
    let bench = null_write();
    bench.build(&[], "nul.c -o x");
    let word = bench.path("word");
    let script = format!(
        "__AFL_SHM_ID=999999999 {} 198</dev/null 199>{}",
        bench.path("x").display(),
        word.display()
    );
    let status = Command::new("bash").arg("-c").arg(script).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(std::fs::read(word).unwrap(), 0xf800_088f_u32.to_ne_bytes());
}

/// What it says without AFL_QUIET.
fn printed(bench: &Bench, variables: &[(&str, &str)], line: &str) -> String {
    let mut command = bench.compiler("cc", line);
    let output = command.env_remove("AFL_QUIET").envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}: {said}");
    assert_eq!(output.stdout, b"", "{line}");
    said
}

#[test]
fn a_link_reports_the_number_of_edges() {
    let bench = Bench::new();
    bench.write("a.c", "int b(int);\nint main(int n, char **v) { return n > 1 ? b(n) : 0; }\n");
    bench.write("b.c", "int b(int n) { return n + 1; }\n");
    for line in ["-c a.c -o a.o", "-c b.c", "-E a.c -o a.i", "-MM a.c -MF a.d -o x"] {
        assert_eq!(printed(&bench, &[], line), "", "{line}");
    }
    let said = printed(&bench, &[], "a.o b.o -o prog");
    let count = |said: &str| -> u32 {
        let rest = said.strip_prefix("ffuzz-cc: prog: ").unwrap_or_else(|| panic!("{said}"));
        rest.strip_suffix(" edges instrumented\n")
            .unwrap_or_else(|| panic!("{said}"))
            .parse()
            .unwrap()
    };
    let edges = count(&said);
    assert!((3..20).contains(&edges), "{said}");
    // As many as the runtime has.
    let dumped = Command::new(bench.path("prog")).env("AFL_DUMP_MAP_SIZE", "1").output().unwrap();
    let size: u32 = String::from_utf8(dumped.stdout).unwrap().trim().parse().unwrap();
    assert!(edges <= size && size < edges + 64, "{edges} of {size}");
    assert_eq!(count(&printed(&bench, &[], "a.c b.c -oprog")), edges);
    assert!(printed(&bench, &[], "a.o b.o").starts_with("ffuzz-cc: a.out: "));
    assert_eq!(printed(&bench, &[("AFL_QUIET", "1")], "a.o b.o -o prog"), "");
    assert_eq!(printed(&bench, &[("WAYPOINTS_DISABLE_COVERAGE", "1")], "a.c b.c -o prog"), "");
    let clang = |source: &str| {
        let args = ["-c", source, "-o", "plain.o"];
        assert!(
            Command::new("clang-19")
                .args(args)
                .current_dir(bench.folder.path())
                .status()
                .unwrap()
                .success()
        );
    };
    bench.write("m.c", "int main(void) { return 0; }\n");
    clang("m.c");
    let said = printed(&bench, &[], "plain.o -o prog");
    assert!(
        said.contains("prog: no edge is instrumented; compile its sources with ffuzz-cc"),
        "{said}"
    );
    let broken =
        bench.compiler("cc", "plain.o missing.o -o prog").env_remove("AFL_QUIET").output().unwrap();
    assert_eq!(broken.status.code(), Some(1));
    assert!(!String::from_utf8(broken.stderr).unwrap().contains("edges"));
}

#[test]
fn a_domain_without_instrumented_places_is_reported_once_per_program() {
    let bench = Bench::new();
    bench.write("a.c", "int b(int);\nint main(int n, char **v) { return b(n) == 1234; }\n");
    bench.write("b.c", "int b(int n) { return n; }\n");
    let wanted = [("WAYPOINTS", "cmp,mem")];
    let mut said = printed(&bench, &wanted, "-c a.c -o a.o");
    said += &printed(&bench, &wanted, "-c b.c -o b.o");
    assert!(!said.contains("targets"), "{said}");
    let linked = printed(&bench, &wanted, "a.o b.o -o prog");
    let line = "ffuzz-cc: warning: prog: no instrumentation targets for MemAllocFeedback\n";
    assert_eq!(linked.matches("no instrumentation targets").count(), 1, "{linked}");
    assert!(linked.contains(line), "{linked}");
    let whole = printed(&bench, &wanted, "a.c b.c -o prog");
    assert_eq!(whole.matches("no instrumentation targets").count(), 1, "{whole}");
}

#[test]
fn misspelt_variables_are_noticed() {
    let bench = Bench::new();
    bench.write("a.c", "int main(void) { return 0; }\n");
    let wrong = [("AFL_USE_ASN", "1"), ("WAYPOINT", "cmp")];
    let said = printed(&bench, &wrong, "-c a.c -o a.o");
    assert_eq!(
        said,
        "ffuzz-cc: warning: unknown environment variable AFL_USE_ASN; did you mean AFL_USE_ASAN?\n\
         ffuzz-cc: warning: unknown environment variable WAYPOINT; did you mean WAYPOINTS?\n"
    );
    for silence in ["AFL_QUIET", "AFL_IGNORE_UNKNOWN_ENVS"] {
        assert_eq!(printed(&bench, &[wrong[0], (silence, "1")], "-c a.c -o a.o"), "", "{silence}");
    }
    assert_eq!(printed(&bench, &wrong, "-E a.c -o a.i"), "");
    bench.write("conftest.c", "int main(void) { return 0; }\n");
    assert_eq!(printed(&bench, &wrong, "conftest.c -o conftest"), "");
}

#[test]
fn help_is_that_of_ffuzz_and_names_the_variables() {
    let bench = Bench::new();
    for (language, clang) in [("cc", "clang"), ("c++", "clang++")] {
        let output = bench.compiler(language, "--help").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(text.contains(&format!("Usage: [VARIABLE=VALUE]... ffuzz-{language} ")), "{text}");
        assert!(text.contains(&format!("see {clang} --help")), "{text}");
        for name in ["WAYPOINTS=", "AFL_USE_ASAN=", "FFUZZ_CC="] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 105), "{text}");
    }
}
