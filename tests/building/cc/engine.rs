//! The engine as an archive, for builds that another compiler links.

use std::path::PathBuf;
use std::process::Command;

use super::{Bench, has};
use crate::common;

fn archive(option: &str) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_ffuzz")).args(["c++", option]).output().unwrap();
    assert!(output.status.success());
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    assert!(path.is_file(), "{}", path.display());
    path
}

/// A harness behind a comparison, as OSS-Fuzz's scripts build one: stock clang, and the engine by its path.
const HARNESS: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t word;
  if (size < 12) return 0;
  memcpy(&word, data + 4, 8);
  if (word == 0x1122334455667788) abort();
  return 0;
}
"#;

const MAIN: &str = r#"
#include <stdint.h>
#include <stddef.h>
int LLVMFuzzerRunDriver(int *, char ***, int (*)(const uint8_t *, size_t));
int LLVMFuzzerTestOneInput(const uint8_t *, size_t);
int main(int argc, char **argv) { return LLVMFuzzerRunDriver(&argc, &argv, LLVMFuzzerTestOneInput); }
"#;

fn build(bench: &Bench, flags: &str, objects: &str, engine: &str) {
    let coverage = "-g -O1 -fsanitize=fuzzer-no-link";
    let run = |words: String| {
        let mut command = Command::new("clang-19");
        let output = command.args(words.split_whitespace()).current_dir(bench.folder.path());
        let output = output.output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(format!("{coverage} {flags} -c harness.c -o harness.o"));
    run("-c main.c -o main.o".into());
    run(format!("{flags} {objects} {} -o t", archive(engine).display()));
}

fn solves(bench: &Bench) {
    let dir = common::TestDir::with_seed("aaaabbbbbbbbcccc");
    let job = dir.fuzz("-s 1 -V 60", &bench.path("t"), "").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0);
    assert!(!dir.crashes().is_empty());
    assert_eq!(dir.stats()["target_mode"], "shmem_testcase persistent deferred");
}

#[test]
fn objects_of_stock_clang_are_fuzzed_with_the_archive() {
    if !has("clang-19") {
        common::skip("no clang-19");
        return;
    }
    // With a sanitizer the archive's functions count, too, not its weak ones.
    for flags in ["", "-fsanitize=address"] {
        let bench = Bench::new();
        bench.write("harness.c", HARNESS);
        bench.write("main.c", MAIN);
        build(&bench, flags, "harness.o", "--print-engine");
        solves(&bench);
        // The archive knows the program that has printed its path.
        let dir = common::TestDir::new();
        let job = dir.program(bench.path("t").to_str().unwrap()).words("-runs=20");
        job.without_env("FFUZZ").run().expect(0).says("Done 20 runs in ");
        build(&bench, flags, "main.o harness.o", "--print-engine");
        build(&bench, flags, "main.o harness.o", "--print-engine-no-main");
        solves(&bench);
    }
}
