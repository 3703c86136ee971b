//! Build tools around `ffuzz-cc`: CMake.

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
