//! Libraries of `ffuzz-cc` in a program of another compiler: the runtime is loaded into it.

use std::process::Command;

use crate::common::{TestDir, has, skip};

/// An allocation to count, branches one within the other, a word to find.
const LIBRARY: &str = "#include <stdlib.h>\n#include <string.h>\n\
    int check(const char *b, int n) {\n\
      free(malloc(n));\n\
      if (n > 3 && b[0] == 'F') { if (b[1] == 'U') { if (!memcmp(b + 2, \"magic\", 5)) abort(); return 2; } return 1; }\n\
      return 0; }\n";
const MAIN: &str = "#include <unistd.h>\n\
    int check(const char *, int);\n\
    int main(void) { char b[64] = {0}; int n = read(0, b, 63); return check(b, n) > 100; }\n";

const UNTIL: &str = "AFL_BENCH_UNTIL_CRASH";

fn compile(dir: &TestDir, compiler: &str, words: &str) {
    let done =
        Command::new(compiler).args(words.split(' ')).current_dir(dir.path("")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The library, linked with these flags, and the plain program.
fn build(dir: &TestDir, flags: &str) {
    dir.write("lib.c", LIBRARY);
    dir.write("main.c", MAIN);
    dir.write("v.map", "{ global: check; local: *; };\n");
    let words = format!("cc -O1 -g -shared -fPIC {flags} lib.c -o liblook.so");
    dir.ffuzz(&words).env("WAYPOINTS", "mem").run().expect(0);
    compile(dir, "cc", "-O1 main.c liblook.so -Wl,-rpath,$ORIGIN -o main");
}

#[test]
fn a_library_is_fuzzed_below_a_plain_program() {
    let dir = TestDir::with_seed("Fabcdefg");
    build(&dir, "");
    dir.fuzz("-p -E 300000", &dir.path("main"), "").env(UNTIL, "1").run().expect(0).says("lib.c:");
    assert_eq!(dir.crashes().len(), 1);
    assert!((5..20).contains(&dir.stat("total_edges")), "{:?}", dir.stats());
    assert_eq!(dir.stats()["run_mode"], "snapshot");
    let shown = dir.tool("showmap --comparisons -o -", &dir.path("main"), "").input("FUxxxxxxx");
    shown.run().expect(0).says("'F'").says("magic");
}

/// However it is linked and run, its edges are the same.
#[test]
fn every_way_shows_the_edges_of_the_library() {
    let dir = TestDir::new();
    let edges = |environment: &[(&str, &str)]| {
        let job = dir.tool("showmap -q -o -", &dir.path("main"), "").input("FUxxxxxxx");
        environment.iter().fold(job, |job, (name, value)| job.env(name, value)).run().expect(0).out
    };
    let mut seen = Vec::new();
    for flags in ["", "-Wl,-z,defs -Wl,--version-script=v.map", "-Wl,-z,defs -fuse-ld=lld"] {
        build(&dir, flags);
        seen.push(edges(&[]));
    }
    seen.push(edges(&[("AFL_NO_FORKSRV", "1")]));
    assert!(seen[0].lines().count() >= 2, "{seen:?}");
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
}

#[test]
fn a_plain_program_loads_its_library_at_run_time() {
    let dir = TestDir::with_seed("Fabcdefg");
    build(&dir, "");
    let source = "#include <dlfcn.h>\n#include <unistd.h>\n\
        int main(void) { char b[64] = {0}; int n = read(0, b, 63);\n\
        void *l = dlopen(\"./liblook.so\", RTLD_NOW);\n\
        int (*check)(const char *, int) = dlsym(l, \"check\"); return check(b, n) > 100; }\n";
    dir.write("loads.c", source);
    compile(&dir, "cc", "loads.c -o loads -ldl");
    let alone = dir.fuzz("-E 50", &dir.path("loads"), "").run();
    alone.refused(1, "is not instrumented", "AFL_PRELOAD");
    let library = dir.path("liblook.so");
    let job = dir.fuzz("-E 300000", &dir.path("loads"), "").env(UNTIL, "1");
    job.env("AFL_PRELOAD", library.to_str().unwrap()).run().expect(0);
    assert_eq!(dir.crashes().len(), 1);
}

/// What the target starts in turn is not fuzzed, and has the preloaded libraries of the user alone.
#[test]
fn programs_that_the_target_starts_have_no_runtime() {
    if !has("sh") {
        return skip("no shell");
    }
    let dir = TestDir::with_seed("F");
    build(&dir, "");
    let source = "#include <stdlib.h>\nint check(const char *, int);\n\
        int main(void) { check(\"F\", 1); return system(\"test \\\"$LD_PRELOAD\\\" = \\\"$WANTED\\\"\") ? (abort(), 1) : 0; }\n";
    dir.write("starts.c", source);
    compile(&dir, "cc", "starts.c liblook.so -Wl,-rpath,$ORIGIN -o starts");
    let starts = dir.path("starts");
    dir.tool("showmap -q -o -", &starts, "").input("F").run().expect(0);
    let library = dir.path("liblook.so");
    let library = library.to_str().unwrap();
    let job = dir.tool("showmap -q -o -", &starts, "").input("F").env("AFL_PRELOAD", library);
    job.env("WANTED", library).run().expect(0);
    let job = dir.tool("showmap -q -o -", &starts, "").input("F");
    job.env("WANTED", "other").run().expect(2);
}
