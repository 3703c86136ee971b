//! Keys have names: what the passes write into a target, whatever it is built with, `showdsf` shows.

use crate::common;
use crate::compiling as cc;
use std::path::PathBuf;
use std::process::Command;

use cc::{Bench, clangs, has, repository};
use common::{TestDir, target, target_with};

const FAR: &[u8] = b"\x41\x41\x41\x41\xfe\xca\x01\x10";
const LARGEST: &[u8] = b"\xfd\xff\xff\x7f\xfe\xca\x01\x10";

fn demo() -> PathBuf {
    target_with("cmp,mem", "demo/demo.c", "")
}

/// Number of the line of the demo that holds this text.
fn line_of(text: &str) -> usize {
    let source = std::fs::read_to_string(repository("demo/demo.c")).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

/// The lines with values, blanks made single.
fn named(bench: &Bench, target: &str, input: &str) -> Vec<String> {
    let dir = TestDir::new();
    let job = dir.showdsf("-q --names", &bench.path(target), "").input(input);
    let done = job.run().expect(0);
    let lines = done.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    // Without the number of the key.
    lines.filter_map(|line| Some(line.split_once("] = ")?.1.to_owned())).collect()
}

#[test]
fn the_demo_shows_its_lines() {
    let dir = TestDir::new();
    dir.write("in/far", FAR);
    dir.write("in/largest", LARGEST);
    let done = dir.showdsf("-q -i in --names", &demo(), "").run().expect(0);
    let plain = dir.showdsf("-q -i in", &demo(), "").run().expect(0);
    let rows: Vec<Vec<&str>> =
        done.out.lines().map(|line| line.split("  ").filter(|c| !c.is_empty()).collect()).collect();
    // What stood there before is what each line begins with.
    let heads: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(heads, plain.out.lines().collect::<Vec<_>>());
    for row in &rows {
        let cells: Vec<&str> = row[1..].iter().map(|cell| cell.trim()).collect();
        let place = |text: &str| format!("demo.c:{}", line_of(text));
        match cells[..] {
            ["mem", at, "cascade()", "malloc"] => assert_eq!(at, place("return malloc")),
            ["cmp", at, "cascade()", what] => {
                let sites = ["a % 3 != 2", "b != 0x1001CAFE", "a == b"].map(place);
                assert!(sites.contains(&at.to_owned()), "{}", done.out);
                assert!(["i32 ==", "i32 !="].contains(&what), "{}", done.out);
            }
            _ => panic!("{}", done.out),
        }
    }
    assert_eq!(rows.len(), 4, "{}", done.out);
    // Columns: the second begins at one place in all lines.
    let column = |line: &str| line.find("cmp  ").or_else(|| line.find("mem  ")).unwrap();
    let columns: Vec<usize> = done.out.lines().map(column).collect();
    assert!(columns.iter().all(|at| *at == columns[0]), "{}", done.out);
}

const MEM: &[(&str, &str)] = &[("WAYPOINTS", "mem")];

fn allocator(function: &str) -> String {
    format!("#include <stdlib.h>\nvoid *{function}(int n) {{\n  return malloc(n);\n}}\n")
}

/// A program of two files of one name, in two folders.
fn twins() -> Bench {
    let bench = Bench::new();
    bench.write("a/util.c", allocator("first"));
    bench.write("b/util.c", allocator("second"));
    bench.write(
        "main.c",
        "#include <stdlib.h>\nvoid *first(int), *second(int);\n\
         int main(void) {\n  free(first(5));\n  free(second(7));\n  return 0;\n}\n",
    );
    bench
}

const TWINS: [&str; 2] = ["5 mem a/util.c:3 first() malloc", "7 mem b/util.c:3 second() malloc"];

#[test]
fn files_with_equal_names_are_distinguished() {
    let bench = twins();
    bench.build(MEM, "-O0 a/util.c b/util.c main.c -o x");
    let mut seen = named(&bench, "x", "");
    seen.sort();
    assert_eq!(seen, TWINS);
}

#[test]
fn every_clang_and_linker_keeps_the_table() {
    let bench = twins();
    bench.build(MEM, "-O0 -ffunction-sections -c a/util.c -o a.o");
    bench.build(MEM, "-O0 -c b/util.c -o b.o");
    bench.build(MEM, "-O0 -c main.c -o main.o");
    let lines = |name: &str| {
        let mut seen = named(&bench, name, "");
        seen.sort();
        seen
    };
    let mut links = vec![
        "a.o b.o".to_owned(),
        "-Wl,--gc-sections a.o b.o".into(),
        "-static a.o b.o".into(),
        "-Wl,-s a.o b.o".into(),
    ];
    for linker in ["ld.lld-19", "gold", "mold"].into_iter().filter(|linker| has(linker)) {
        let name = linker.trim_start_matches("ld.").trim_end_matches("-19");
        links.push(format!("-fuse-ld={name} -Wl,--gc-sections a.o b.o"));
    }
    bench.build(MEM, "-r a.o b.o -o ab.o");
    links.push("ab.o".into());
    Command::new("ar")
        .args(["rcs", "l.a", "a.o"])
        .current_dir(bench.folder.path())
        .status()
        .unwrap();
    links.push("b.o l.a".into());
    for link in links {
        let domains = [MEM[0], ("FFUZZ_CC", "clang-19")];
        let domains = if has("clang-19") { &domains[..] } else { MEM };
        bench.build(domains, &format!("main.o {link} -o x"));
        assert_eq!(lines("x"), TWINS, "{link}");
    }
    for clang in clangs() {
        let domains = [MEM[0], ("FFUZZ_CC", clang)];
        bench.build(&domains, "-O0 a/util.c b/util.c main.c -o x");
        assert_eq!(lines("x"), TWINS, "clang-{clang}");
    }
    if has("ld.lld-19") && has("clang-19") {
        let domains = [MEM[0], ("FFUZZ_CC", "clang-19")];
        bench.build(&domains, "-O1 -flto -fuse-ld=lld a/util.c b/util.c main.c -o x");
        let mut places: Vec<String> = lines("x");
        // Link-time inlining changes nothing: the function is that of the source.
        places.sort();
        assert_eq!(places, TWINS);
    }
}

#[test]
fn shared_libraries_have_names_too() {
    let bench = twins();
    bench.build(MEM, "-O0 -shared -fPIC b/util.c -o libb.so");
    bench.build(MEM, "-O0 a/util.c main.c -o x libb.so -Wl,-rpath,$ORIGIN");
    let mut seen = named(&bench, "x", "");
    seen.sort();
    assert_eq!(seen, TWINS);
}

#[test]
fn a_stripped_target_shows_key_numbers() {
    let bench = twins();
    bench.build(MEM, "-O0 a/util.c main.c b/util.c -o x");
    let strip = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).arg(bench.path("x")).status();
        assert!(done.unwrap().success(), "{program}");
    };
    strip("strip", &[]);
    let mut seen = named(&bench, "x", "");
    seen.sort();
    assert_eq!(seen, TWINS, "strip leaves the table");
    strip("objcopy", &["-R", ".ffuzz_keys"]);
    let dir = TestDir::new();
    let done = dir.showdsf("--names", &bench.path("x"), "").run().expect(0);
    let done = done.says("[!] The target has no table of names");
    for (line, key) in done.out.lines().zip(done.keys()) {
        assert!(line.ends_with(&format!("mem  key {key}")), "{line}");
    }
    assert_eq!(done.keys().len(), 2);
}

#[test]
fn cases_inlined_code_and_cxx() {
    let bench = Bench::new();
    bench.write(
        "s.cc",
        "#include <cstdlib>\n#include <cstdio>\n#include <cstring>\nnamespace ns {\n\
         template <class T> struct Box {\n\
           int pick(T c, const char *s) {\n\
             switch (c) {\n\
               case 65: return 1;\n\
               case 800: return 2;\n\
             }\n\
             return strcmp(s, \"a\\\"b\\\\\") == 0;\n\
           }\n};\n}\n\
         int main() {\n  ns::Box<int> box;\n  char s[3] = \"xy\";\n  int c = getchar();\n\
           return box.pick(c, s);\n}\n",
    );
    let cxx = |line: &str| {
        let job = bench.compiler("c++", line).env("WAYPOINTS", "cmp").status();
        assert!(job.unwrap().success(), "{line}");
    };
    cxx("-O2 s.cc -o x");
    let seen = named(&bench, "x", "A");
    let case = |n: u32| format!("cmp s.cc:7 ns::Box<int>::pick() switch i32, case {n}");
    assert!(seen.iter().any(|line| *line == format!("32 {}", case(65))), "{seen:?}");
    // No case: each has a value.
    let seen = named(&bench, "x", "~");
    assert!(seen.iter().any(|line| line.ends_with(&case(800))), "{seen:?}");
    let call = "cmp s.cc:11 ns::Box<int>::pick() strcmp";
    assert!(seen.iter().any(|line| line.ends_with(call)), "{seen:?}");

    // Without debug information there is still the function.
    cxx("-O0 -g0 s.cc -o x");
    let seen = named(&bench, "x", "~");
    let call = "cmp s.cc ns::Box<int>::pick() strcmp";
    assert!(seen.iter().any(|line| line.ends_with(call)), "{seen:?}");
}

#[test]
fn keys_of_manual_maps_are_numbers() {
    let dir = TestDir::new();
    let manual = target("demo/demo-manual.c", "");
    let done = dir.showdsf("-q --names", &manual, "").input(FAR).run().expect(0);
    let values: Vec<&str> = done.values();
    assert_eq!(values[0], "dsf[0] = 32          closeness  key 0");
    assert_eq!(values[2], "dsf[2] = 1094795585  closeness  key 2");
}

// --- sorted views

/// Keys 0 MAX, 1-2 MIN, 3-5 OR, 6-9 AND; see tests/targets/maps.c.
fn maps() -> (TestDir, PathBuf) {
    let dir = TestDir::new();
    dir.write("in/five", "\x05");
    dir.write("in/three", "\x03");
    dir.write("other/five", "\x05");
    (dir, target("maps.c", ""))
}

#[test]
fn the_best_keys_come_first() {
    let dir = TestDir::new();
    let manual = target("demo/demo-manual.c", "");
    let top = |options: &str| dir.showdsf(options, &manual, "").input(FAR).run().expect(0).out;
    let values = |text: String| text.lines().filter(|l| l.starts_with("dsf[")).count();
    let all = top("-q");
    let one = top("-q --top 1");
    assert!(one.ends_with("dsf[2] = 1094795585\n") && values(one) == 1);
    assert!(top("-q --top 2").ends_with("dsf[2] = 1094795585\ndsf[0] = 32\n"));
    assert_eq!(values(top("-q --top 99")), values(all));
}

#[test]
fn the_file_that_reaches_a_value_is_named() {
    let (dir, maps) = maps();
    let done = dir.showdsf("-q -i in --best", &maps, "").run().expect(0);
    assert_eq!(
        done.out,
        "dsf[0] = 5    in/five\ndsf[2] = 3    in/three\n\
         dsf[5] = 40   in/five in/three\ndsf[9] = 241  in/five in/three\n"
    );
}

#[test]
fn two_folders_are_compared() {
    let (dir, maps) = maps();
    let done = dir.showdsf("-q --diff other in", &maps, "").run().expect(0);
    assert_eq!(done.out, "dsf[2] = 5 -> 3\ndsf[5] = 32 -> 40\ndsf[9] = 245 -> 241\n");
    let done = dir.showdsf("-q --diff in in", &maps, "").run().expect(0);
    assert_eq!(done.out, "");
    dir.showdsf("-q --diff in nowhere", &maps, "").run().refused(1, "nowhere", "folder");
}

#[test]
fn json_has_everything() {
    let dir = TestDir::new();
    dir.write("in/largest", LARGEST);
    let done = dir.showdsf("-q -i in --json --best", &demo(), "").run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&json["version"], &json["domains"][1]["name"]), (&1.into(), &"mem".into()));
    let keys = json["keys"].as_array().unwrap();
    let mem = keys.iter().find(|key| key["domain"] == "mem").unwrap();
    assert_eq!(
        (&mem["value"], &mem["files"][0]),
        (&2_147_483_645_u32.into(), &"in/largest".into())
    );
    let site = &mem["sites"][0];
    let file = repository("demo/demo.c").display().to_string();
    assert_eq!((&site["file"], &site["line"]), (&file.into(), &line_of("return malloc").into()));
    assert_eq!((&site["function"], &site["what"]), (&"cascade".into(), &"malloc".into()));
    // A single run prints to stdout as well: the document goes to a file.
    dir.showdsf("--json -o one.json", &demo(), "").input(FAR).run().expect(0);
    let one: serde_json::Value = serde_json::from_str(&dir.text("one.json")).unwrap();
    assert!(one["keys"][0].get("files").is_none());
    // Two folders have two values.
    dir.write("none/short", "0");
    let done = dir.showdsf("-q --diff none in --json", &demo(), "").run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let keys = json["keys"].as_array().unwrap();
    let mem = keys.iter().find(|key| key["domain"] == "mem").unwrap();
    assert_eq!((&mem["a"], &mem["b"]), (&serde_json::Value::Null, &2_147_483_645_u32.into()));
}

#[test]
fn options_that_make_no_sense_together_are_refused() {
    let (dir, maps) = maps();
    let refused = |options: &str, cause: &str, remedy: &str| {
        dir.showdsf(options, &maps, "").run().refused(1, cause, remedy);
    };
    refused("--top 0 -i in", "--top 0", "from 1 on");
    refused("--best", "--best has no files", "-i");
    refused("--diff in other -i in", "--diff and -i", "omit -i");
    refused("--diff in other --top 3", "--diff compares", "omit them");
    refused("--diff in other --best", "--diff compares", "omit them");
    refused("--json", "--json would be mixed", "-o FILE");
}

// --- campaigns

#[test]
fn statistics_and_progress_name_the_best_place() {
    let dir = TestDir::with_seed(FAR);
    let done = dir.fuzz("-p -s 1 -E 500", &demo(), "").env("AFL_NO_UI", "1").run().expect(0);
    let place = format!("demo.c:{}", line_of("return malloc"));
    assert_eq!(dir.stats()["dsf1_best_place"], place);
    done.says(&format!(" @{place}")).says(&format!("({place}); 1 keys"));
}
