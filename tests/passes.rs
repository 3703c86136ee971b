//! The built-in domains and the runtime behind them: real compilers, small programs, known values.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may panic and talk")]

#[path = "common/cc.rs"]
mod common;

use common::{Bench, repository, sorted_values};

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
fn sums_without_a_call_stay_at_the_largest_value() {
    let source = "#include <stdint.h>\nuint32_t __ffuzz_first_or_full(uint32_t *, uint32_t, uint32_t);\n\
        int main(void) { uint32_t x = 0; return __ffuzz_first_or_full(&x, 0xfffffff0u, 0x20) == 0xffffffffu &&\n\
        __ffuzz_first_or_full(&x, 0, 5) == 5 && __ffuzz_first_or_full(&x, 0, 0) == 0 ? 0 : 1; }\n";
    assert_eq!(program("", "", source).status("t", b""), 0);
}

#[test]
fn no_touched_key_is_lost_between_threads() {
    let bench = bench("", "threads.c", "-pthread", &["x"]);
    let seen = bench.client("", "t", &["x"; 12]);
    assert!(!seen.contains("unlisted"), "{seen}");
    for run in runs(&seen) {
        assert_eq!(run.len(), 9 * 2000);
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
fn passes_of_the_loop_begin_anew_under_fuzzfactorys_fuzzer() {
    let bench = bench("", "persistent.c", "", &["a", "zzzz"]);
    let inputs = ["a", "zzzz", "a"];
    let legacy = bench.client("-l -p", "t", &inputs);
    assert!(legacy.contains("hello 00000002\n"), "{legacy}");
    assert_eq!(runs(&legacy), runs(&bench.client("-p", "t", &inputs)), "{legacy}");
}

#[test]
fn what_does_not_fit_into_the_old_layout_is_told() {
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
