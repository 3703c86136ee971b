//! `ffuzz cc`, `ffuzz c++` and the LLVM programs next to them: see [`crate::compiler`].

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use super::exit::Failure;
use crate::assets::{Assets, NET};
use crate::compiler::env::Env;
use crate::compiler::toolchain::Language;

/// Options that print the path of a file.
const PRINTED: [(&str, &str); 3] = [
    ("--print-engine", "libffuzz.a"),
    ("--print-engine-no-main", "libffuzz_no_main.a"),
    ("--print-net", NET),
];

pub(super) fn run_c(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    run(Language::C, program, args)
}

pub(super) fn run_cxx(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    run(Language::Cxx, program, args)
}

/// Runs `ffuzz-llvm-ar` or `ffuzz-llvm-ranlib`: CMake takes `ffuzz-` for the prefix of a toolchain.
pub(super) fn run_tool(program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let name = program.strip_prefix("ffuzz-").unwrap_or(program);
    crate::compiler::run_tool(name, args, &Env::read()).map_err(|error| Failure::of(&error))
}

fn run(language: Language, program: &str, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    if args == ["--help"] {
        return super::print(&help(language, program));
    }
    if let [word] = &*args
        && let Some(archive) = PRINTED.iter().find(|(option, _)| word == option)
    {
        return print_path(archive.1);
    }
    let note = |text: &str| {
        let _ = writeln!(std::io::stderr(), "{program}: {text}");
    };
    crate::compiler::run(language, args, &Env::read(), note).map_err(|error| Failure::of(&error))
}

/// Prints the path of an archive, for builds that link libFuzzer's engine by path.
fn print_path(archive: &str) -> Result<ExitCode, Failure> {
    let assets = Assets::open(&Env::read().places).map_err(|error| Failure::of(&error))?;
    let archive = assets.archive_of(archive, &super::fuzz::this_program());
    super::print(&format!("{}\n", archive.display()))
}

/// Help text of `ffuzz-cc` or `ffuzz-c++`.
pub(super) fn help_of(name: &str) -> String {
    match name {
        "cc" => help(Language::C, "ffuzz-cc"),
        _ => help(Language::Cxx, "ffuzz-c++"),
    }
}

/// The help text. The options are clang's; environment variables control what ffuzz adds.
fn help(language: Language, program: &str) -> String {
    let (clang, what, file) = match language {
        Language::C => ("clang", "C", "parse.c"),
        Language::Cxx => ("clang++", "C++", "parse.cc"),
    };
    format!(
        "\
{what} compiler for targets: {clang} with edge coverage, domains and the fuzzer's runtime

Usage: [VARIABLE=VALUE]... {program} [OPTIONS OF {clang}] FILE...

All options are those of {clang} (see {clang} --help); they override those that {program} adds.
-fsanitize=fuzzer links the driver of ffuzz, for harnesses with LLVMFuzzerTestOneInput.
--print-engine prints the path of the same as an archive (LIB_FUZZING_ENGINE, CUSTOM_LIBFUZZER_PATH);
--print-engine-no-main that without main();
--print-net prints that of the stand-in for the network, for AFL_PRELOAD (docs/network.md).

Variables:
  WAYPOINTS=NAMES            domains for ffuzz -p, for example cmp,mem (ffuzz domains lists them)
  AFL_USE_ASAN=1             AddressSanitizer; also UBSAN, MSAN, TSAN, LSAN, CFISAN
  AFL_HARDEN=1               stack protector and _FORTIFY_SOURCE
  AFL_DONT_OPTIMIZE=1        no -g -O3 -funroll-loops
  AFL_LLVM_ALLOWLIST=FILE    coverage for these files and functions only; AFL_LLVM_DENYLIST: not for them
  FFUZZ_CC=VERSION|PATH      which clang [default: the newest from 19 to 14]
  AFL_QUIET=1                print no messages of {program}
All of them: docs/env.md. Set them for compile and link steps alike.

Examples:
  WAYPOINTS=cmp AFL_USE_ASAN=1 {program} -g {file} -o parse
  CC=ffuzz-cc CXX=ffuzz-c++ ./configure --disable-shared && make
"
    )
}
