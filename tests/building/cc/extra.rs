//! Counters of the program's own, in the section `__libfuzzer_extra_counters`: seen, cleared before each run, and
//! without a place.

use crate::compiling::{Bench, clangs, has, repository};
use std::process::Command;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("extra.c", std::fs::read(repository("tests/targets/extra.c")).unwrap());
    bench.write("harness.cc", std::fs::read(repository("tests/targets/consumes.cc")).unwrap());
    for (name, input) in [("a", "a"), ("b", "b"), ("c", "a")] {
        bench.write(&format!("in/{name}"), input);
    }
    bench
}

/// The counters of the section, 300 in a module without a name, tell the inputs apart, whatever was run before.
#[track_caller]
fn are_seen(bench: &Bench, context: &str) {
    let seen = bench.client("-p -s", "t", &["in/a"]);
    let own = seen.lines().find_map(|line| line.strip_prefix("module - start "));
    let own = own.and_then(|own| own.split_once(" counters "));
    let (start, count) = own.unwrap_or_else(|| panic!("{context}: {seen}"));
    let start: usize = start.parse().unwrap();
    assert_eq!(count, "300", "{context}: {seen}");
    tool(bench, "showmap -q -e -i in -o maps");
    let hit = |name: &str| -> Vec<usize> {
        let map = std::fs::read_to_string(bench.path(&format!("maps/{name}"))).unwrap();
        let edges = map.lines().map(|line| line.split(':').next().unwrap().parse().unwrap());
        edges.filter(|edge: &usize| (start..start + 300).contains(edge)).collect()
    };
    let [a, b] = [b'a', b'b'].map(|letter| vec![start + usize::from(letter)]);
    assert_eq!([hit("a"), hit("b"), hit("c")], [a.clone(), b, a], "{context}");
}

fn tool(bench: &Bench, words: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
    command.current_dir(bench.folder.path()).args(words.split_whitespace());
    let output = command.args(["--", "./t"]).env("AFL_QUIET", "1").output().unwrap();
    assert!(output.status.success(), "{words}: {output:?}");
}

fn linkers() -> impl Iterator<Item = String> {
    let there = |linker: &&str| has(&format!("ld.{linker}"));
    let named = ["bfd", "lld", "gold", "mold"].into_iter().filter(there);
    named.map(|linker| format!("-fuse-ld={linker}"))
}

#[test]
fn counters_of_the_program_are_part_of_its_coverage() {
    let bench = bench();
    let mut lines: Vec<String> = linkers().collect();
    for flags in ["", "-flto", "-flto -fuse-ld=lld", "-fsanitize=address", "-no-pie", "-static"] {
        lines.push(flags.to_owned());
    }
    for line in lines {
        for sections in ["", "-ffunction-sections -fdata-sections -Wl,--gc-sections"] {
            let line = format!("-O1 {line} {sections}");
            bench.build(&[], &format!("{line} -fsanitize=fuzzer extra.c -o t"));
            are_seen(&bench, &line);
        }
        bench.build(&[], &format!("-O1 {line} -DMAIN extra.c -o t"));
        are_seen(&bench, &line);
    }
    for clang in clangs() {
        bench.build(&[("FFUZZ_CC", clang)], "-O1 -fsanitize=fuzzer extra.c -o t");
        are_seen(&bench, clang);
    }
}

#[test]
fn counters_of_a_library_are_part_of_its_coverage() {
    let bench = bench();
    let rpath = format!("-Wl,-rpath,{}", bench.folder.path().display());
    for linker in linkers().chain([String::new()]) {
        for flags in ["", "-Wl,--gc-sections -fdata-sections", "-Wl,-z,defs", "-flto"] {
            if flags == "-flto" && linker == "-fuse-ld=mold" {
                continue;
            }
            let line = format!("-O1 {flags} {linker}");
            let own = format!("{line} -DLIBRARY -shared -fPIC extra.c -o libown.so");
            bench.build(&[], &own);
            bench.build(
                &[],
                &format!("-O1 {linker} -DUSER -fsanitize=fuzzer extra.c -L. -lown {rpath} -o t"),
            );
            are_seen(&bench, &line);
        }
    }
}

/// The header is compiler-rt's; each clang has its own.
#[test]
fn fuzzed_data_provider_is_found_by_every_clang() {
    let bench = bench();
    for clang in clangs() {
        let mut command = bench.compiler("c++", "-O1 -fsanitize=fuzzer harness.cc -o t");
        let output = command.env("FFUZZ_CC", clang).output().unwrap();
        assert!(output.status.success(), "{clang}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(bench.client("-p -s", "t", &["in/a"]).contains("status=137f new "), "{clang}");
    }
}
