//! Build tools around `ffuzz-cc`: CMake, ccache, and another C library.

use std::path::PathBuf;
use std::process::Command;

use crate::compiling::{Bench, has};

/// PATH with links to the program of ffuzz in front, as `make` sets them.
fn linked(bench: &Bench) -> String {
    let folder = bench.path("bin");
    std::fs::create_dir(&folder).unwrap();
    let mut list = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
    let names = list.arg("--commands").output().unwrap().stdout;
    for name in String::from_utf8(names).unwrap().lines() {
        let link = folder.join(format!("ffuzz-{name}"));
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ffuzz"), link).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    format!("{}:{path}", folder.display())
}

/// Runs a program with the links in PATH, in the folder of the bench; it has to succeed.
#[track_caller]
fn run(bench: &Bench, path: &str, variables: &[(&str, &str)], line: &str) -> String {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(bench.folder.path()).env("PATH", path);
    command.env("XDG_CACHE_HOME", crate::common::cache()).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
    said
}

const PROJECT: &str = "cmake_minimum_required(VERSION 3.13)\nproject(t C CXX)\n\
    include(CheckIPOSupported)\ncheck_ipo_supported()\nset(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)\n\
    add_library(part STATIC part.c)\nadd_executable(t t.cc)\ntarget_link_libraries(t part)\n\
    target_precompile_headers(t PRIVATE pch.h)\n";

#[test]
fn cmake_builds_with_link_time_optimization_and_precompiled_headers() {
    let bench = Bench::new();
    if !has("cmake") {
        return;
    }
    let path = linked(&bench);
    bench.write("CMakeLists.txt", PROJECT);
    bench.write("pch.h", "#include <cstdio>\nextern \"C\" int part(int);\n");
    bench.write("part.c", "int part(int c) { if (c == 'x') return 5; return 3; }\n");
    bench.write("t.cc", "int main() { return part(getchar()); }\n");
    bench.write("a", "a");
    bench.write("x", "x");
    for ijon in [None, Some(("AFL_LLVM_IJON", "1"))] {
        let _ = std::fs::remove_dir_all(bench.path("build"));
        let compilers = [("CC", "ffuzz-cc"), ("CXX", "ffuzz-c++"), ("WAYPOINTS", "cmp")];
        let variables: Vec<_> = compilers.into_iter().chain(ijon).collect();
        run(&bench, &path, &variables, "cmake -B build");
        let said = run(&bench, &path, &variables, "cmake --build build");
        assert!(said.contains("edges instrumented"), "{said}");
        assert_eq!(bench.status("build/t", b"x"), 5);
        let seen = bench.client("", "build/t", &["a", "x"]);
        assert!(seen.contains("status=300 new a") && seen.contains("status=500 new x"), "{seen}");
    }
}

#[test]
fn the_archiver_is_that_of_the_clang_that_is_used() {
    let bench = Bench::new();
    let path = linked(&bench);
    bench.write("a.c", "int f(void) { return 1; }\n");
    for clang in crate::compiling::clangs() {
        let variables = [("FFUZZ_CC", clang)];
        let said = run(&bench, &path, &variables, "ffuzz-llvm-ar --version");
        assert!(said.contains(&format!("LLVM version {clang}.")), "{said}");
        run(&bench, &path, &variables, "ffuzz-cc -flto -c a.c -o a.o");
        run(&bench, &path, &variables, "ffuzz-llvm-ar cr a.a a.o");
        run(&bench, &path, &variables, "ffuzz-llvm-ranlib a.a");
    }
    let mut lonely = Command::new(bench.path("bin/ffuzz-llvm-ar"));
    let clang: PathBuf = bench.write("alone/clang-19", "");
    let output = lonely.env("FFUZZ_CC", &clang).env("PATH", "/proc/none").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("llvm-ar of clang 19 is not installed") && said.contains("llvm-19"),
        "{said}"
    );
}

/// The number of edges and of domains of the program that `line` has compiled and a link without cache makes.
fn made(bench: &Bench, path: &str, variables: &[(&str, &str)]) -> (bool, usize) {
    run(bench, path, variables, "ffuzz-cc t.o -o t");
    let seen = bench.client("", "t", &["x"]);
    (!seen.contains("edges=0"), seen.lines().filter(|line| line.starts_with("dsf[")).count())
}

#[test]
fn objects_of_other_settings_never_come_from_ccache() {
    let bench = Bench::new();
    if !has("ccache") {
        return;
    }
    let path = linked(&bench);
    bench.write("x", "x");
    bench.write("h.h", "#include <stdlib.h>\n");
    bench.write(
        "t.c",
        "#include \"h.h\"\n#include <stdio.h>\nint main(void) {\n\
         int c = getchar(); if (c == 4711) return 1; free(malloc(c)); return 0; }\n",
    );
    bench.write("list", "other.c\n");
    let cache = bench.path("ccache").display().to_string();
    let modes: [&[(&str, &str)]; 4] = [
        &[],
        &[("CCACHE_NODIRECT", "1")],
        &[("CCACHE_SLOPPINESS", "time_macros,system_headers,include_file_mtime")],
        &[("AFL_COMPILER_LAUNCHER", "ccache")],
    ];
    for mode in modes {
        let _ = std::fs::remove_dir_all(&cache);
        let launched = mode.iter().any(|(name, _)| *name == "AFL_COMPILER_LAUNCHER");
        let line = match launched {
            true => "ffuzz-cc -MD -c t.c -o t.o",
            false => "ccache ffuzz-cc -MD -c t.c -o t.o",
        };
        let compiled = |more: &[(&'static str, &'static str)]| {
            let always = [("CCACHE_DIR", cache.as_str())];
            let all: Vec<_> = always.iter().chain(mode).chain(more).copied().collect();
            run(&bench, &path, &all, line);
            let rest: Vec<_> =
                more.iter().filter(|(name, _)| *name != "AFL_LLVM_ALLOWLIST").copied().collect();
            made(&bench, &path, &rest)
        };
        let hits = || {
            let said = run(&bench, &path, &[("CCACHE_DIR", &cache)], "ccache --print-stats");
            let count = |name| {
                said.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok())
            };
            count("direct_cache_hit").unwrap() + count("preprocessed_cache_hit").unwrap()
        };
        assert_eq!(compiled(&[]), (true, 0), "{mode:?}");
        assert_eq!(hits(), 0, "{mode:?}");
        assert_eq!(compiled(&[]), (true, 0), "{mode:?}");
        assert_eq!(hits(), 1, "the same settings are found: {mode:?}");
        let rules = std::fs::read_to_string(bench.path("t.d")).unwrap();
        assert!(rules.contains("h.h") && !rules.contains("/dev/null"), "{rules}");
        // Each twice: what is stored for one is not taken for the next.
        for _ in 0..2 {
            let memory = compiled(&[("WAYPOINTS", "mem")]);
            assert_eq!(memory, (true, 1), "{mode:?}");
            assert_ne!(compiled(&[("WAYPOINTS", "cmp")]), (true, 0), "{mode:?}");
            assert_eq!(compiled(&[]), (true, 0), "{mode:?}");
            assert_eq!(compiled(&[("AFL_LLVM_ALLOWLIST", "list")]), (false, 0), "{mode:?}");
            assert_eq!(compiled(&[("WAYPOINTS_DISABLE_COVERAGE", "1")]), (false, 0), "{mode:?}");
        }
        let before = hits();
        compiled(&[("FFUZZ_NO_WORDS", "1")]);
        compiled(&[("AFL_OPT_LEVEL", "1")]);
        compiled(&[("AFL_HARDEN", "1")]);
        compiled(&[("AFL_LLVM_NOT_ZERO", "1")]);
        assert_eq!(hits(), before, "{mode:?}");
    }
    let depend = [("CCACHE_DEPEND", "1"), ("CCACHE_DIR", &*cache)];
    let said = run(&bench, &path, &depend, "ccache ffuzz-cc -MD -c t.c -o other.o");
    assert!(said.contains("with CCACHE_DEPEND ccache takes objects of other settings"), "{said}");
}

#[test]
fn programs_of_musl_are_linked_and_count_their_edges() {
    const MUSL: &str = "/usr/lib/x86_64-linux-musl";
    let bench = Bench::new();
    if !has("musl-gcc") || !PathBuf::from(MUSL).join("crt1.o").exists() {
        return;
    }
    bench.write("a", "a");
    bench.write("x", "x");
    bench.write(
        "t.c",
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n\
         switch (getchar()) { case 'x': abort(); case 'y': puts(\"y\"); } return 0; }\n",
    );
    let headers = "--target=x86_64-linux-musl -nostdinc -isystem /usr/include/x86_64-linux-musl";
    bench.build(&[], &format!("{headers} -c t.c -o t.o"));
    let objects = format!("{MUSL}/crt1.o {MUSL}/crti.o t.o -L{MUSL} -lc {MUSL}/crtn.o");
    for kind in ["-static", "-no-pie -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"] {
        bench.build(&[], &format!("{kind} -nostdlib {objects} -o t"));
        let seen = bench.client("", "t", &["a", "x"]);
        assert!(seen.contains("status=0 new a") && seen.contains("status=6 new x"), "{seen}");
    }
}
