//! `ffuzz oss-build`: projects of OSS-Fuzz and ClusterFuzzLite by their own scripts.

use std::process::Command;

use crate::common;
use common::*;

/// A parser with enough branches for the check of a bad build, and its harness.
const PARSER: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int parse(const uint8_t *data, size_t size) {
  int sum = 0;
  for (size_t i = 0; i < size; i++) {
    switch (data[i]) {
#define ONE(N) case N: if (i + 1 < size && data[i + 1] == N + 1) sum += N; break;
#define TEN(N) ONE(N) ONE(N + 1) ONE(N + 2) ONE(N + 3) ONE(N + 4) ONE(N + 5) ONE(N + 6) ONE(N + 7) ONE(N + 8) ONE(N + 9)
      TEN(0) TEN(10) TEN(20) TEN(30) TEN(40) TEN(50) TEN(60)
    }
  }
  return sum;
}
"#;
const HARNESS: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int parse(const uint8_t *, size_t);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 4 && !memcmp(data, "seed", 4) && data[4] == '!') abort();
  if (size > 64 && parse(data, size) == 7) abort();
  parse(data, size);
  return 0;
}
"#;
/// As scripts of OSS-Fuzz are: pieces of flags, `-lFuzzingEngine` of old ones, seeds and words beside a harness.
const SCRIPT: &str = r#"#!/bin/bash -eu
test "$FUZZING_ENGINE $SANITIZER $ARCHITECTURE" = "libfuzzer ${WANTED_SANITIZER:-address} x86_64"
test -d "$WORK"
$CC $CFLAGS -c parser.c -o $WORK/parser.o
for harness in *_fuzzer.c; do
  name=${harness%.c}
  $CC $CFLAGS -c $harness -o $WORK/$name.o
  $CXX $CXXFLAGS $WORK/$name.o $WORK/parser.o -o $OUT/$name $LIB_FUZZING_ENGINE
done
$CXX $CXXFLAGS $WORK/old_fuzzer.o $WORK/parser.o -o $OUT/old_fuzzer -lFuzzingEngine
cp $SRC/*.dict $OUT/new_fuzzer.dict
cp $SRC/seeds.zip $OUT/new_fuzzer_seed_corpus.zip
printf '[libfuzzer]\nmax_len = 24\nonly_ascii = 1\n[asan]\ndetect_leaks=0\n' > $OUT/new_fuzzer.options
"#;

fn sources(dir: &TestDir, folder: &str) {
    dir.write(&format!("{folder}/parser.c"), PARSER);
    for name in ["new", "old"] {
        dir.write(&format!("{folder}/{name}_fuzzer.c"), HARNESS);
    }
}

fn scripts(dir: &TestDir, folder: &str) {
    dir.write(&format!("{folder}/build.sh"), SCRIPT);
    dir.write(&format!("{folder}/words.dict"), "a=\"seed\"");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("nested/seed", options).unwrap();
    std::io::Write::write_all(&mut zip, b"seed?").unwrap();
    dir.write(&format!("{folder}/seeds.zip"), zip.finish().unwrap().into_inner());
}

/// A repository with the files for ClusterFuzzLite: its sources are copied, and stay as they are.
#[test]
fn a_repository_for_clusterfuzzlite_is_built_and_its_files_are_found() {
    let dir = TestDir::new();
    sources(&dir, "repository");
    scripts(&dir, "repository/.clusterfuzzlite");
    dir.write(
        "repository/.clusterfuzzlite/Dockerfile",
        "FROM gcr.io/oss-fuzz-base/base-builder\nRUN apt-get update && apt-get install -y make\n\
         COPY . $SRC/parser\nWORKDIR $SRC/parser\nCOPY .clusterfuzzlite/build.sh .clusterfuzzlite/*.dict $SRC/\n\
         COPY .clusterfuzzlite/seeds.zip $SRC/\n",
    );
    let before = dir.snapshot("repository");
    let mut built = dir.ffuzz("oss-build repository").run().expect(0);
    for name in ["new", "old"] {
        built = built.says(&format!(
            "[+] {}: ",
            dir.path(&format!("ffuzz-oss/out/{name}_fuzzer")).display()
        ));
    }
    built.says(" counters, seeds, dictionary\n");
    assert_eq!(dir.snapshot("repository"), before);
    // The lines that `bad_build_check` looks for.
    let harness = dir.path("ffuzz-oss/out/new_fuzzer");
    let checked =
        dir.program(harness.to_str().unwrap()).words("-seed=1337 -runs=4").run().expect(0);
    checked.says("Done 4 runs").says("inline 8-bit counters): ");
    // Without -i and -x the campaign has the seeds and words beside the harness.
    let done =
        dir.ffuzz("-o out -E 3000 -s 1 --").arg(&harness).env("AFL_NO_UI", "1").run().expect(0);
    done.says("seeds are those beside the harness")
        .says("the dictionary is the one beside the harness")
        .says("not used of the options beside the harness: only_ascii = 1");
    assert_eq!(dir.read(&format!("out/default/queue/{}", dir.queue()[0])), b"seed?");
    let longest =
        dir.queue().iter().map(|name| dir.read(&format!("out/default/queue/{name}")).len()).max();
    assert!(longest <= Some(24), "{longest:?}");
    assert!(!dir.path("out/default/.unpacked-seeds").exists());
    // An archive may be named, too. A campaign that is there needs none.
    dir.ffuzz("-i ffuzz-oss/out/new_fuzzer_seed_corpus.zip -o other -E 200 --")
        .arg(&harness)
        .run()
        .expect(0);
    assert_eq!(
        dir.names("other/default/queue").iter().filter(|name| name.contains("orig:")).count(),
        1
    );
    dir.write("bad.zip", "PK\x03\x04 no archive");
    dir.ffuzz("-i bad.zip -o third --")
        .arg(&harness)
        .run()
        .expect(1)
        .says("cannot read the archive");
}

/// A project of OSS-Fuzz, whose Dockerfile clones the sources.
#[test]
fn a_project_of_oss_fuzz_is_built_from_given_or_cloned_sources() {
    let dir = TestDir::new();
    sources(&dir, "upstream");
    scripts(&dir, "projects/parser");
    let upstream = dir.path("upstream");
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a"],
    ] {
        assert!(Command::new("git").current_dir(&upstream).args(words).status().unwrap().success());
    }
    dir.write(
        "projects/parser/Dockerfile",
        format!(
            "FROM gcr.io/oss-fuzz-base/base-builder\nRUN git clone file://{} /src/parser\nRUN wget http://h/x\n\
             WORKDIR /src/parser\nCOPY build.sh *.dict seeds.zip $SRC/\n",
            upstream.display()
        ),
    );
    let missing = dir.ffuzz("oss-build projects/parser").run().expect(1);
    missing
        .says("sources that the Dockerfile clones are missing: parser")
        .says("--clone clones them (git clone file://")
        .says("--source parser=FOLDER");
    let cloned = dir.ffuzz("oss-build --clone -o cloned projects/parser").run().expect(0);
    cloned.says("Not run of the Dockerfile: wget http://h/x");
    let given = "oss-build --source parser=upstream -s undefined -o given projects/parser";
    dir.ffuzz(given).env("WANTED_SANITIZER", "undefined").run().expect(0);
    for output in ["cloned", "given"] {
        let harness = dir.path(&format!("{output}/out/new_fuzzer"));
        dir.write("crash", "seed!");
        dir.program(harness.to_str().unwrap())
            .words("crash")
            .run()
            .expect(77)
            .says("deadly signal");
    }
}

#[test]
fn a_bad_build_is_named() {
    let dir = TestDir::new();
    let refused = |cause: &str, remedy: &str| {
        dir.ffuzz("oss-build project").run().expect(1).says(cause).says(remedy);
    };
    refused("cannot read project", "name the folder of a project");
    dir.write("project/parser.c", PARSER);
    refused("project has neither build.sh nor .clusterfuzzlite/build.sh", "oss-fuzz/projects");
    dir.write("project/build.sh", "false");
    refused("build.sh failed (exit status: 1)", "see its last command above");
    dir.write("project/Dockerfile", "RUN apt-get install -y zip\nWORKDIR nowhere\n");
    refused("nowhere, which is not there", "--source NAME=FOLDER");
    dir.write("project/Dockerfile", "RUN apt-get install -y zip\n");
    refused("build.sh failed", "the Dockerfile installs: zip");
    dir.write("project/build.sh", "echo main > $OUT/program");
    refused("the build has left no harness", "with LLVMFuzzerTestOneInput in them");
    // Built by another compiler, and with an uninstrumented library.
    dir.write("project/new_fuzzer.c", HARNESS);
    std::fs::remove_file(dir.path("project/Dockerfile")).unwrap();
    dir.write(
        "project/build.sh",
        "cc parser.c -c -o $WORK/p.o\n$CC $CFLAGS -c new_fuzzer.c -o $WORK/h.o\n\
         $CXX $CXXFLAGS $WORK/h.o $WORK/p.o $LIB_FUZZING_ENGINE -o $OUT/new_fuzzer",
    );
    refused("counters only: compile the library with $CC and $CFLAGS", "new_fuzzer: ");
}

/// Scripts for Rust call `cargo fuzz`, and copy from where that builds.
#[test]
fn cargo_fuzz_in_a_script_is_ffuzz() {
    let dir = TestDir::new();
    dir.write("project/Cargo.toml", "[package]\nname = \"parser\"\nedition = \"2021\"\n");
    dir.write("project/src/lib.rs", "");
    let harness = std::fs::read_to_string(repository("tests/targets/keyed.rs")).unwrap();
    let branch =
        |n: usize| format!("if data.get({n}) == Some(&{n}) {{ std::hint::black_box({n}); }}\n");
    let branches: String = (0..60).map(branch).collect();
    let more = format!("fn check(data: &[u8]) -> Option<()> {{\n{branches}");
    let harness = harness.replace("fn check(data: &[u8]) -> Option<()> {\n", &more);
    dir.write("project/fuzz/keyed.rs", harness);
    dir.write(
        "project/fuzz/Cargo.toml",
        "[package]\nname = \"parser-fuzz\"\nedition = \"2021\"\n[workspace]\n\
         [[bin]]\nname = \"keyed\"\npath = \"keyed.rs\"\n",
    );
    dir.write(
        "project/build.sh",
        "cargo fuzz build -O --debug-assertions\n\
         cp fuzz/target/x86_64-unknown-linux-gnu/release/keyed $OUT/\n",
    );
    let mut job = dir.ffuzz("oss-build project");
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO"] {
        job = job.without_env(name);
    }
    job.run().expect(0).says("/out/keyed: ");
}
