//! Domains of programs without source (`-Q`).

use crate::common;
use common::*;

const SEED: &str = "12345678901234567890";

/// `amounts.c`, stripped.
fn target(compiler: &str) -> TestDir {
    let dir = TestDir::with_seed(SEED);
    build(&dir, compiler, "amounts.c", "t", "-lpthread");
    dir
}

fn build(dir: &TestDir, compiler: &str, source: &str, program: &str, words: &str) {
    let source = repository(&format!("tests/targets/{source}"));
    let job = dir.program(compiler).words("-w -O2").arg(source).words("-o").arg(program);
    job.words(words).run().expect(0);
    dir.program("strip").arg(dir.path(program)).run().expect(0);
}

/// With debug information, places are lines of the source.
#[test]
fn debug_information_names_lines() {
    let dir = TestDir::with_seed("zyx");
    let source = repository("tests/targets/sorting.c");
    dir.program("gcc").words("-w -O1 -g").arg(source).words("-o t").run().expect(0);
    let job = dir.tool("showdsf -Q -q -i in --names", &dir.path("t"), "");
    let lines = job.env("WAYPOINTS", "perf").run().expect(0).out;
    // The body of the inner loop.
    let swaps = lines.lines().find(|line| line.contains("sorting.c:13  sort()"));
    assert!(swaps.is_some_and(|line| line.contains("] = 3 ")), "{lines}");
    let job = dir.tool("showmap -Q --comparisons -q -o -", &dir.path("t"), "").input("zyx");
    job.run().expect(0).says("sorting.c:11: sort(): ");
}

/// The lines of showdsf for the seed; `words` are the program's.
fn shown(dir: &TestDir, options: &str, words: &str) -> Vec<String> {
    let job = dir.tool(&format!("showdsf -Q -q -i in --names {options}"), &dir.path("t"), words);
    job.run().expect(0).out.lines().map(str::to_owned).collect()
}

/// Domain, and value, of the line that ends like this.
fn value_of(lines: &[String], domain: &str, end: &str) -> u64 {
    let found = lines.iter().find(|line| {
        line.ends_with(end) && line.split_whitespace().nth(3).is_some_and(|word| word == domain)
    });
    let line = found.unwrap_or_else(|| panic!("no {domain} {end} in {lines:#?}"));
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

#[test]
fn waypoints_lead_to_large_values_without_source() {
    for (compiler, words) in [("gcc", "m"), ("clang-19", "m"), ("gcc", "w")] {
        let dir = target(compiler);
        let campaign = |guidance: &str, output: &str| {
            let options = format!("-Q {guidance} -c - -s 1 -E 10000 -i in -o {output}");
            dir.ffuzz(&options).arg("--").arg(dir.path("t")).words(words).run().expect(0);
            let stats = stats_of(&dir.text(&format!("{output}/default/fuzzer_stats")));
            assert_eq!((&*stats["run_mode"], &*stats["snapshot_differs"]), ("snapshot", "0"));
            let best = |domain: usize| stats[&format!("dsf{domain}_best")].parse::<u64>().unwrap();
            if words == "m" { best(0).min(best(1)) } else { best(2) }
        };
        let (guided, recorded) = (campaign("-p", "out"), campaign("--dsf-record", "recorded"));
        assert!(2 * guided >= 3 * recorded, "{compiler} {words}: {guided} {recorded}");
    }
}

#[test]
fn places_are_named_and_are_the_same_in_each_process() {
    let dir = target("gcc");
    let lines = shown(&dir, "", "m");
    for domain in ["mem", "heap"] {
        assert_eq!(value_of(&lines, domain, "calloc"), 1000, "{lines:#?}");
        // Of a function that jumps to malloc, the call of that.
        assert_eq!(value_of(&lines, domain, "malloc"), 1);
    }
    assert_eq!(value_of(&lines, "heap", "peak of all blocks in bytes"), 1000);
    assert!(lines.iter().filter(|line| line.contains("  t+0x")).count() == 4, "{lines:#?}");
    // The address space is another one each time, and so is the file.
    std::fs::create_dir(dir.path("elsewhere")).unwrap();
    std::fs::copy(dir.path("t"), dir.path("elsewhere/t")).unwrap();
    let job = dir.tool("showdsf -Q -q -i in --names", &dir.path("elsewhere/t"), "m");
    assert_eq!(job.run().expect(0).out.lines().collect::<Vec<_>>(), lines);
    assert_eq!(shown(&dir, "", "m"), lines);
}

#[test]
fn calls_through_pointers_count_and_have_names() {
    for compiler in ["gcc", "clang-19"] {
        let dir = target(compiler);
        let lines = shown(&dir, "", "p");
        assert_eq!(value_of(&lines, "heap", "malloc"), 700, "{lines:#?}");
        // What is released through a pointer as well.
        assert_eq!(value_of(&lines, "heap", "peak of all blocks in bytes"), 700);
    }
}

#[test]
fn writes_threads_and_children_count() {
    let dir = target("clang-19");
    let lines = shown(&dir, "", "w");
    assert_eq!((value_of(&lines, "out", "putc"), value_of(&lines, "out", "fwrite")), (1, 4));
    let lines = shown(&dir, "", "t");
    // Threads that add at the same time may lose a sum.
    assert!((64_000..=256_000).contains(&value_of(&lines, "mem", "malloc")), "{lines:#?}");
    assert!((64..=256).contains(&value_of(&lines, "heap", "malloc")), "{lines:#?}");
    assert_eq!(value_of(&shown(&dir, "", "f"), "heap", "realloc"), 5000);
}

#[test]
fn a_guarded_heap_and_other_modules_count_the_same() {
    let dir = target("gcc");
    let lines = shown(&dir, "", "m");
    assert_eq!(shown(&dir, "--guard-heap", "m"), lines);
    let all = shown(&dir, "--modules all", "m");
    assert!(
        lines.iter().all(|line| all.iter().any(|other| other.contains(&line[..9]))),
        "{all:#?}"
    );
}

#[test]
fn a_campaign_without_guidance_has_no_domains() {
    let dir = target("gcc");
    let map = |options: &str, output: &str| {
        let job = dir.tool(&format!("showmap -Q {options} -o {output}"), &dir.path("t"), "m");
        job.input(SEED).run().expect(0);
        dir.text(output)
    };
    let plain = map("", "plain");
    let with = map("--dsf", "with");
    let edges: Vec<&str> = with.lines().filter(|line| !line.starts_with("dsf")).collect();
    assert_eq!(plain.lines().collect::<Vec<_>>(), edges);
    assert_ne!(plain, with);
    dir.fuzz("-Q -s 1 -E 1000", &dir.path("t"), "m").run().expect(0);
    assert!(!dir.stats().keys().any(|key| key.starts_with("dsf")), "{:?}", dir.stats());
    let heap = dir.tool("showdsf -Q -i in --json -q", &dir.path("t"), "m").env("WAYPOINTS", "heap");
    let heap = heap.run().expect(0).out;
    assert!(heap.contains("\"heap\"") && !heap.contains("\"mem\""), "{heap}");
    let job = dir.ffuzz("-Q -p -i in -o refused -- ./t").env("WAYPOINTS", "heap,cmp");
    job.run().refused(1, "WAYPOINTS names cmp", "set WAYPOINTS to some of them");
}

#[test]
fn tools_keep_the_values_of_domains() {
    let dir = target("gcc");
    // 1 6 15 12 13: four steps.
    dir.write("in/long", [1, 6, 15, 12, 13, b'x', b'y']);
    let job = dir.tool("tmin -Q --dsf heap -i in/long -o small", &dir.path("t"), "m");
    job.run().expect(0);
    let small = std::fs::read(dir.path("small")).unwrap();
    assert!(small.len() == 5, "{small:?}");
    for domains in ["", "mem"] {
        let output = format!("corpus{domains}");
        let job = dir.tool(&format!("cmin -Q -i in -o {output}"), &dir.path("t"), "m");
        job.env("WAYPOINTS", domains).run().expect(0);
        let files = std::fs::read_dir(dir.path(&output)).unwrap().count();
        assert!((1..=2).contains(&files), "{domains}: {files}");
        let long = std::fs::exists(dir.path(&format!("{output}/long"))).unwrap();
        assert!(long || domains.is_empty());
    }
}

/// `sorting.c`, with the letters of the alphabet in the wrong order: 325 swaps.
fn sorting() -> TestDir {
    let dir = TestDir::with_seed("zyxwvutsrqponmlkjihgfedcba");
    build(&dir, "gcc", "sorting.c", "t", "");
    dir
}

#[test]
fn executions_of_blocks_are_counted_however_a_run_ends() {
    let dir = sorting();
    // 400 bytes; more than a counter of coverage holds.
    let long: Vec<u8> = (0..=255).rev().chain((0..144).rev()).collect();
    dir.write("long/a", &long);
    let shown = |input: &str, words: &str| {
        let options = format!("showdsf -Q -q -i {input} --names");
        let job = dir.tool(&options, &dir.path("t"), words).env("WAYPOINTS", "perf,slow");
        job.run().expect(0).out
    };
    // exit, _exit, a signal that nothing survives, abort.
    for words in ["", "_", "k", "a"] {
        let text = shown("in", words);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(lines.iter().any(|line| line.contains("] = 325 ")), "{words}: {lines:#?}");
        assert!(lines.iter().all(|line| line.contains("t+0x") || line.contains("slow")));
        let all = value_of(&lines, "slow", "blocks executed");
        assert!((3 * 325..5 * 325).contains(&all), "{words}: {text}");
    }
    let swaps = (255 * 256 + 143 * 144) / 2 + (0..144).map(|byte| 255 - byte).sum::<u32>();
    let text = shown("long", "");
    assert!(text.contains(&format!("] = {swaps} ")), "{swaps}: {text}");
    // In all ways to run it.
    for mode in ["snapshot", "fork", "pipe"] {
        let options = format!("-p -Q --run-mode {mode} -c - -s 1 -E 300 -i in -o {mode}");
        let job = dir.ffuzz(&options).arg("--").arg(dir.path("t")).env("WAYPOINTS", "perf,slow");
        job.run().expect(0);
        let stats = stats_of(&dir.text(&format!("{mode}/default/fuzzer_stats")));
        assert_eq!(stats["run_mode"], mode);
        let best = |domain: &str| stats[&format!("{domain}_best")].parse::<u64>().unwrap();
        assert!(best("dsf0") >= 325, "{stats:#?}");
        assert!(best("dsf1") > 3 * 325, "{stats:#?}");
    }
}

#[test]
fn inputs_that_take_long_are_found_without_source() {
    let dir = TestDir::with_seed("abcdefghijklmnop");
    build(&dir, "gcc", "sorting.c", "t", "");
    let job = dir.fuzz("-Q -p -c - -s 1 -G 16 -E 20000", &dir.path("t"), "");
    job.env("WAYPOINTS", "perf").run().expect(0);
    // Of 120 swaps at most.
    assert!(dir.stat("dsf0_best") > 100, "{:#?}", dir.stats());
    assert_eq!((&*dir.stats()["run_mode"], dir.stat("snapshot_differs")), ("snapshot", 0));
    let job = dir.ffuzz("-Q -p -i in -o refused -- ./t").env("WAYPOINTS", "perf");
    let job = job.env("FFUZZ_NO_DETOURS", "1");
    job.run().refused(1, "the domain perf needs hit counts", "unset FFUZZ_NO_DETOURS");
}
