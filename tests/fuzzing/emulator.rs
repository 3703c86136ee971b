//! `-Q` in QEMU: programs that are static, or for another processor.

use std::os::unix::process::ExitStatusExt as _;

use crate::common;
use common::*;

/// QEMU's name of a processor, and clang's.
const PROCESSORS: [(&str, &str); 6] = [
    ("x86_64", "x86_64-linux-gnu"),
    ("i386", "i386-linux-gnu"),
    ("aarch64", "aarch64-linux-gnu"),
    ("arm", "arm-linux-gnueabihf"),
    ("mips", "mips-linux-gnu"),
    ("mipsel", "mipsel-linux-gnu"),
];

fn has_emulators() -> bool {
    let there = has("qemu-aarch64") && has("qemu-x86_64") && has("ld.lld-19");
    if !there {
        skip("no QEMU (package qemu-user), or no lld");
    }
    there
}

/// A program without a C library.
fn bare(dir: &TestDir, target: &str) -> std::path::PathBuf {
    let source = repository("tests/targets/bare.c");
    let words = "-w -O1 -static -nostdlib -ffreestanding -fno-stack-protector -fuse-ld=lld-19 -o t";
    // Nothing sets the registers that MIPS code reaches its data by.
    let fixed = if target.starts_with("mips") { "-mno-abicalls -fno-pic -G0" } else { "-fno-pie" };
    let job = dir.program("clang-19").arg(format!("--target={target}"));
    job.words(words).words(fixed).arg(source).run().expect(0);
    dir.path("t")
}

/// A program for this machine, `t`.
fn compile(dir: &TestDir, flags: &str, source: &str) {
    let source = repository("tests/targets").join(source);
    dir.program("gcc").words("-O1 -o t").words(flags).arg(source).run().expect(0);
}

#[test]
fn programs_for_every_processor_are_fuzzed() {
    if !has_emulators() {
        return;
    }
    for (name, target) in PROCESSORS {
        let dir = TestDir::with_seed("AB ");
        let program = bare(&dir, target);
        let job = dir.fuzz_and_triage("-Q -s 1 -E 20000", &program, "");
        let job = job.env("AFL_BENCH_UNTIL_CRASH", "1");
        let run = job.run().expect(0);
        assert!(
            run.out.contains(&format!("the target runs in qemu-{name}: it is ")),
            "{}",
            run.out
        );
        assert_eq!(dir.crashes().len(), 1, "{name}: {}", run.out);
        // The kernel of this machine runs some of them itself.
        let report = dir.text("out/triage/report.json");
        assert!(report.contains("\"state\": \"crashes\""), "{name}: {report}");
        assert!(report.contains("\"SEGV-check-"), "{name}: {report}");
        if name == "aarch64" {
            let script = dir.path("out/triage").read_dir().unwrap().flatten();
            let script = script.map(|entry| entry.path().join("reproduce.sh"));
            let script = script.into_iter().find(|path| path.exists()).unwrap();
            assert!(std::fs::read_to_string(&script).unwrap().contains("qemu-aarch64' '"));
            let ended = dir.program(script.to_str().unwrap()).run();
            assert_eq!(ended.status.signal(), Some(libc::SIGSEGV));
        }
    }
}

#[test]
fn a_dynamic_program_for_another_processor_needs_its_libraries() {
    const FOLDER: &str = "/usr/aarch64-linux-gnu";
    if !has_emulators() {
        return;
    }
    let library = format!("{FOLDER}/lib/libc.so.6");
    if !std::path::Path::new(&library).exists() {
        return skip("no C library for AArch64 (package libc6-arm64-cross)");
    }
    let dir = TestDir::with_seed("xyz");
    dir.write(
        "t.c",
        "long read(int, void *, unsigned long); _Noreturn void exit(int); _Noreturn void abort(void);\n\
         _Noreturn void _start(void) { char b[4] = {0}; read(0, b, 3); if (b[0] == 'a') {\n\
         if (b[1] == 'b') abort(); exit(2); } exit(0); }",
    );
    let words = "--target=aarch64-linux-gnu -w -O1 -ffreestanding -fPIE -pie -nostdlib -fuse-ld=lld-19 \
                 -Wl,-dynamic-linker=/lib/ld-linux-aarch64.so.1 t.c -o t";
    dir.program("clang-19").words(words).arg(&library).run().expect(0);
    let fuzz = || dir.fuzz("-Q -s 1 -E 20000", &dir.path("t"), "");
    let without = "ended before it reached its input";
    fuzz().run().refused(1, without, "QEMU_LD_PREFIX=FOLDER has the libraries");
    let job = fuzz().env("QEMU_LD_PREFIX", FOLDER).env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0).says("runs in qemu-aarch64");
    assert_eq!(dir.crashes().len(), 1);
}

/// The map of an input is the same in every process, whoever has translated the code.
#[test]
fn maps_are_the_same_in_every_run() {
    if !has_emulators() {
        return;
    }
    for kind in ["-static", "-static-pie"] {
        let dir = TestDir::new();
        compile(&dir, &format!("-w {kind}"), "halves.c");
        for number in 0..6 {
            dir.write(&format!("inputs/{number}"), &"HALVES"[..number]);
        }
        compare_maps(&dir);
    }
}

fn compare_maps(dir: &TestDir) {
    let maps = |folder: &str, cold: &str| {
        let options = format!("showmap -Q -i inputs -o {folder}");
        let job = dir.tool(&options, &dir.path("t"), "@@");
        let job = if cold.is_empty() { job } else { job.env(cold, "1") };
        job.run().expect(0);
        (0..6).map(|number| dir.text(&format!("{folder}/{number}"))).collect::<Vec<_>>()
    };
    let warm = maps("warm", "");
    assert!(warm[0].lines().count() > 20 && warm[0] != warm[5], "{warm:?}");
    assert_eq!(warm, maps("again", ""));
    assert_eq!(warm, maps("cold", "FFUZZ_QEMU_COLD"));
}

#[test]
fn code_that_a_packed_program_has_in_no_file_is_seen() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("xxx");
    compile(&dir, "-static -fno-stack-protector -fcf-protection=none", "unpacks.c");
    let edges = |options: &str, input: &str| {
        let job = dir.tool(&format!("showmap -q -Q {options} -o -"), &dir.path("t"), "");
        job.input(input).run().out
    };
    let maps = ["xxx", "axx", "abx"].map(|input| edges("", input));
    let sizes = maps.each_ref().map(|map| map.lines().count());
    assert!(sizes.is_sorted_by(|shorter, longer| shorter < longer), "{sizes:?}");
    assert_eq!(maps[2], edges("", "abx"), "the addresses are the same in every start");
    assert_eq!(edges("--modules none", "abx"), "");
    let run = dir.fuzz("-Q -s 1 -E 50", &dir.path("t"), "").run().expect(0);
    run.does_not_say("no instrumentation detected");
}

/// Breakpoints are preferred; `--modules` is the same in both.
#[test]
fn the_engine_and_the_modules_can_be_chosen() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("x");
    dir.write(
        "lib.c",
        "int look(int c) { if (c == 'a') return 1; if (c == 'b') return 2; return c > 'k'; }",
    );
    dir.write(
        "main.c",
        "#include <stdio.h>\nint look(int); int main(void) { return look(getchar()) > 5; }",
    );
    dir.program("gcc").words("-O1 -shared -fPIC lib.c -o liblook.so").run().expect(0);
    dir.program("gcc").words("-O1 main.c liblook.so -Wl,-rpath,$ORIGIN -o t").run().expect(0);
    let edges = |options: &str| {
        let job = dir.tool(&format!("showmap -q -Q {options} -o -"), &dir.path("t"), "");
        job.input("x").run().expect(0).out.lines().count()
    };
    let [both, program, library, all] =
        ["", "--modules t", "--modules liblook.so", "--modules all"]
            .map(|modules| edges(&format!("--qemu {modules}")));
    assert!(
        program > 0 && library > 0 && both > program && both > library,
        "{both} {program} {library}"
    );
    assert!(all > both + 20, "{all}");
    // The program has the name of a link to it, too.
    std::os::unix::fs::symlink("t", dir.path("link")).unwrap();
    let job = dir.tool("showmap -q --qemu --modules link -o -", &dir.path("link"), "");
    assert_eq!(job.input("x").run().expect(0).out.lines().count(), program);
    let run = |options: &str| {
        let words = format!("{options} -E 50 -i in -o out{options} -- ./t");
        dir.ffuzz(&words).run().expect(0)
    };
    run("-Q").does_not_say("qemu-x86_64");
    run("--qemu").says("runs in qemu-x86_64");
}

#[test]
fn a_program_that_reads_nothing_starts_at_its_entry_point() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("x");
    dir.write("t.c", "int main(int n, char **v) { return n > 3; }");
    dir.program("gcc").words("-O1 -static t.c -o t").run().expect(0);
    let job = dir.tool("showmap -q -Q -o -", &dir.path("t"), "").input("x");
    assert!(job.run().expect(0).out.lines().count() > 50);
}

/// Go's runtime starts threads before `main`.
#[test]
fn a_program_of_go_is_forked_at_its_entry_point() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("x");
    compile(&dir, "-pthread", "goroutines.c");
    for engine in ["-Q", "--qemu"] {
        let job = dir.tool(&format!("showmap {engine} -t 5000 -o -"), &dir.path("t"), "");
        assert!(job.input("G").run().expect(2).out.lines().count() > 3);
        let job = dir.tool(&format!("showmap {engine} -t 5000 -o -"), &dir.path("t"), "");
        job.input("x").run().expect(0);
    }
    let refused = dir.fuzz("-Q --native -E 5", &dir.path("t"), "").run();
    refused.refused(1, "Go's runtime", "omit --native");
    let done = dir.fuzz("-Q -t 5000 -E 5", &dir.path("t"), "").run();
    done.expect(0).says("runs in qemu-x86_64: Go's runtime starts threads before main");
}

#[test]
fn dynamic_programs_of_musl_run_in_qemu() {
    if !has_emulators() || !has("musl-gcc") {
        return;
    }
    let dir = TestDir::with_seed("a");
    dir.write(
        "t.c",
        "#include <stdio.h>\n#include <stdlib.h>\n\
         int main(void) { if (getchar() == 'b') abort(); return 0; }\n",
    );
    dir.program("musl-gcc").words("-O1 t.c -o t").run().expect(0);
    let program = dir.path("t");
    let job = dir.fuzz("-Q -s 1 -E 20000", &program, "").env("AFL_BENCH_UNTIL_CRASH", "1");
    let run = job.run().expect(0);
    let line = "the target runs in qemu-x86_64: it is not linked with glibc";
    assert!(run.out.contains(line), "{}", run.out);
    assert_eq!(dir.crashes().len(), 1, "{}", run.out);
    let refused = |options: &str, cause: &str, remedy: &str| {
        let _ = std::fs::remove_dir_all(dir.path("out"));
        dir.fuzz(options, &program, "").run().refused(1, cause, remedy);
    };
    refused("-Q --native -E 5", "which is linked with musl", "omit --native");
    refused("-n --guard-heap -E 5", "which is linked with musl", "link it with glibc");
    refused("-n --net tcp:7 -E 5", "which is linked with musl", "link it with glibc");
}

#[test]
fn what_cannot_be_emulated_is_refused() {
    let dir = TestDir::with_seed("x");
    dir.write("t.c", "int main(void) { return 0; }");
    dir.program("gcc").words("-static t.c -o t").run().expect(0);
    let program = dir.path("t");
    let folder = dir.path("empty").display().to_string();
    let job = dir.fuzz("-Q -E 5", &program, "").env("PATH", &folder);
    job.run().refused(1, "qemu-x86_64 is not installed", "apt-get install qemu-user");
    dir.fuzz("-Q --native -E 5", &program, "").run().refused(
        1,
        "linked statically",
        "omit --native",
    );
    if has_emulators() {
        dir.program("gcc").words("t.c -o d").run().expect(0);
        dir.fuzz("--qemu --guard-heap -E 5", &dir.path("d"), "").run().refused(
            1,
            "--guard-heap",
            "omit --guard-heap",
        );
        dir.write("dies.c", "#include <stdlib.h>\nint main(void) { abort(); }");
        dir.program("gcc").words("-static dies.c -o dies").run().expect(0);
        let job = dir.fuzz("-Q -E 5", &dir.path("dies"), "").env("QEMU_CPU", "none");
        job.run().refused(1, "ended before it reached its input", "AFL_DEBUG_CHILD=1");
        let job = dir.fuzz("-Q -m 100 -E 5", &program, "");
        job.run().refused(1, "ended before it reached its input", "leave -m out");
    }
}

#[test]
fn emulated_campaigns_are_resumed_and_shared() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("xAxx");
    compile(&dir, "-static", "halves.c");
    dir.fuzz("-Q -s 1 -E 300", &dir.path("t"), "").run().expect(0);
    let edges = dir.stat("edges_found");
    let again =
        |options: &str| dir.ffuzz(&format!("{options} --")).arg(dir.path("t")).run().expect(0);
    again("-Q -i - -o out -E 600");
    assert!(dir.stat("edges_found") >= edges && dir.stat("execs_done") >= 600, "{:?}", dir.stats());
    again("-Q -j 2 -i in -o fleet -E 300").says("runs in qemu-x86_64");
    // The fork server may begin elsewhere: what comes before the input is counted, too.
    let shown = |entry: Option<String>| {
        let job = dir.tool("showmap -q -Q -o map", &dir.path("t"), "").input("x");
        let job = match &entry {
            Some(address) => job.env("AFL_ENTRYPOINT", address),
            None => job,
        };
        job.run().expect(0);
        dir.text("map").lines().count()
    };
    let names = dir.program("nm").arg(dir.path("t")).run().expect(0).out;
    let start = names.lines().find_map(|line| line.strip_suffix(" T _start")).unwrap();
    assert!(shown(Some(format!("0x{start}"))) > shown(None) + 20);
}

/// The plugin speaks AFL's protocol with whoever starts it.
#[test]
fn afl_fuzz_drives_the_plugin() {
    if !has_emulators() || !has("afl-fuzz") {
        return;
    }
    let dir = TestDir::with_seed("HAxx");
    compile(&dir, "-static", "halves.c");
    // This puts the plugin into the cache.
    let shown = dir.tool("showmap -q -Q -o map", &dir.path("t"), "").input("x");
    shown.env("XDG_CACHE_HOME", dir.path("cache").to_str().unwrap()).run().expect(0);
    let version = dir.path("cache/ffuzz").read_dir().unwrap().flatten().next().unwrap();
    let plugin = version.path().join("libffuzz-qemu.so");
    let job =
        dir.program("afl-fuzz").words("-i in -o out -s 7 -V 8 -t 5000 -- qemu-x86_64 -plugin");
    let job = job.arg(plugin).arg(dir.path("t")).env("AFL_SKIP_CPUFREQ", "1").env("AFL_NO_UI", "1");
    job.env("AFL_SKIP_BIN_CHECK", "1").run().expect(0);
    let stats = stats_of(&dir.text("out/default/fuzzer_stats"));
    let number = |key: &str| stats[key].parse::<u64>().unwrap();
    assert!(number("execs_done") > 100 && number("corpus_found") > 0, "{stats:?}");
}

/// Runs that never end are ended.
#[test]
fn an_emulated_run_that_hangs_is_ended() {
    if !has_emulators() {
        return;
    }
    let dir = TestDir::with_seed("x");
    dir.write(
        "t.c",
        "#include <stdio.h>\nint main(void) { if (getchar() == 'h') for (;;) continue; return 0; }",
    );
    dir.program("gcc").words("-O0 -static t.c -o t").run().expect(0);
    let job = dir.tool("showmap -Q -t 200 -o -", &dir.path("t"), "").input("h");
    job.run().expect(1);
}
