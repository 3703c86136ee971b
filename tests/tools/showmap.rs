//! `ffuzz showmap`: the edges, forms and codes of `afl-showmap`.

use crate::common;
use std::path::Path;

use common::{Job, TestDir, afl_target, need, target};

/// Inputs that hit an edge as often as their first byte says.
fn counted() -> TestDir {
    let dir = TestDir::new();
    for count in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 255] {
        dir.write(&format!("in/{count:03}"), [count, 1]);
    }
    dir
}

fn ours(dir: &TestDir, options: &str, target: &Path) -> Job {
    dir.tool(&format!("showmap {options}"), target, "")
}

fn theirs(dir: &TestDir, options: &str, target: &Path) -> Job {
    need("afl-showmap");
    dir.program("afl-showmap").words(options).arg("--").arg(target)
}

#[test]
fn single_runs_are_shown_as_afl_showmap_shows_them() {
    let dir = TestDir::new();
    let steps = afl_target("steps.c", "");
    for options in ["", "-r", "-s", "-e", "-b", "-Z"] {
        for (input, code) in [("AAAA", 0), ("QUIA", 0), ("QUIZ", 2)] {
            if (options, code) == ("-Z", 2) {
                // Theirs writes no file at all.
                continue;
            }
            let run = |job: Job| job.input(input).run().expect(code);
            run(theirs(&dir, &format!("-q {options} -o theirs"), &steps));
            run(ours(&dir, &format!("-q {options} -o ours"), &steps));
            assert!(dir.read("ours").len() > 8, "{options}");
            assert_eq!(dir.read("ours"), dir.read("theirs"), "{options} {input}");
        }
    }
}

#[test]
fn folders_are_shown_as_afl_showmap_shows_them() {
    let dir = counted();
    let counts = afl_target("counts.c", "-O0");
    // Classes are left out: theirs lack the edges whose count is not the first of a class.
    for options in ["-r", "-e", "-Z -e"] {
        theirs(&dir, &format!("-q {options} -i in -o theirs"), &counts).run().expect(0);
        ours(&dir, &format!("-q {options} -i in -o ours"), &counts).run().expect(0);
        assert_eq!(dir.names("ours"), dir.names("in"));
        for name in dir.names("in") {
            let [ours, theirs] = ["ours", "theirs"].map(|side| dir.text(&format!("{side}/{name}")));
            assert!(ours == theirs && !ours.is_empty(), "{options} {name}: {ours}{theirs}");
        }
    }
    theirs(&dir, "-q -C -i in -o their-edges", &counts).run().expect(0);
    let done = ours(&dir, "-C -i in -o our-edges", &counts).run().expect(0);
    assert_eq!(dir.text("our-edges"), dir.text("their-edges"));
    let edges = dir.text("our-edges").lines().count();
    done.says(&format!("[+] A coverage of {edges} edges were achieved out of "))
        .says("with 17 input files.");
}

#[test]
fn all_counts_have_a_class() {
    let dir = counted();
    ours(&dir, "-q -i in -o maps", &target("counts.c", "-O0")).run().expect(0);
    let class = |name: &String| {
        let text = dir.text(&format!("maps/{name}"));
        text.lines().map(|line| line[7..].parse::<u8>().unwrap()).max().unwrap()
    };
    let classes: Vec<u8> = dir.names("maps").iter().map(class).collect();
    assert_eq!(classes, [1, 2, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8]);
}

#[test]
fn exit_codes_and_messages_are_those_of_afl() {
    let dir = TestDir::new();
    dir.write("in/a", "A");
    dir.write("in/below/q", "Q");
    let outcomes = target("outcomes.c", "");
    let single = |how: &str, input: &str| {
        dir.tool("showmap -t 300 -o map", &outcomes, how).input(input).run()
    };
    single("none", "Q").expect(0).says("[+] Captured ").says("in 'map'.");
    single("abort", "Q").expect(2).says("+++ Program killed by signal 6 +++");
    single("hang", "Q").expect(1).says("+++ Program timed off +++");
    let folder = |how: &str, options: &str| {
        dir.tool(&format!("showmap -t 300 -i in -o {options}"), &outcomes, how).run()
    };
    folder("none", "maps").expect(0).says("[+] Processed 2 input files.");
    assert_eq!(dir.names("maps"), ["a", "q"]);
    folder("abort", "maps").expect(2).says("crashed by signal 6 on in/below/q");
    folder("hang", "maps").expect(1).says("it exceeded the timeout on in/below/q");
    // For cmin a crash has edges only if it is asked for.
    folder("abort", "cmin -Z").expect(2);
    assert_eq!(dir.text("cmin/q"), "");
    let asked = |name: &str, code: i32| {
        let job = dir.tool("showmap -Z -i in -o cmin", &outcomes, "abort").env(name, "1");
        job.run().expect(code);
        (dir.text("cmin/a").is_empty(), dir.text("cmin/q").is_empty())
    };
    assert_eq!(asked("AFL_CMIN_ALLOW_ANY", 2), (false, false));
    assert_eq!(asked("AFL_CMIN_CRASHES_ONLY", 0), (true, false));
}

#[test]
fn inputs_come_by_stdin_file_and_shared_memory() {
    let dir = TestDir::new();
    let edges = |target: &Path, words: &str| {
        let map = |input: &str| {
            let done = dir.tool("showmap -q -o -", target, words).input(input).run().expect(0);
            assert_eq!(done.err, "");
            done.out
        };
        assert_ne!(map("\x05"), map(""), "{words}");
        map("\x05")
    };
    let maps = target("maps.c", "");
    edges(&maps, "");
    edges(&target("persistent.c", "-DSHARED_INPUT"), "");
    edges(&target("quick.c", "-fsanitize=fuzzer"), "");
    let five = dir.write("five", "\x05");
    let named = dir.tool("showmap -q -o - -H five", &maps, "@@").run().expect(0);
    assert_eq!(named.out, edges(&maps, "@@"));
    assert_eq!(std::fs::read(&five).unwrap(), b"\x05");
    let unnamed = dir.tool("showmap -q -o - -H five", &maps, "").run().expect(0);
    assert_eq!(unnamed.out, edges(&maps, ""));
    let done = dir.tool("showmap -q -o - -H none", &maps, "").run();
    done.says("cannot read the input none").expect(1);
    let by_option = dir.tool("showmap -q -o - -f read-me", &maps, "read-me");
    assert_eq!(by_option.input("\x05").run().expect(0).out, edges(&maps, "@@"));
}

#[test]
fn domain_values_can_be_shown_too() {
    let dir = TestDir::new();
    let maps = target("maps.c", "");
    let lines = dir.tool("showmap -q --dsf -o -", &maps, "").input("\x05").run().expect(0);
    assert_eq!(lines.values(), ["dsf[0] = 5", "dsf[2] = 5", "dsf[5] = 32", "dsf[9] = 245"]);
    assert!(lines.out.starts_with("0000"), "{}", lines.out);
    let json = dir.tool("showmap -q --json -o -", &maps, "").input("\x05").run().expect(0);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["dsf"][1], serde_json::json!([2, 5]));
    assert_eq!(value["edges"].as_array().unwrap().len(), lines.out.lines().count() - 4);
}

#[test]
fn wrong_targets_and_options_are_refused() {
    let dir = TestDir::new();
    let good = target("counts.c", "");
    let refused = |options: &str, cause: &str, remedy: &str| {
        ours(&dir, &format!("-q {options}"), &good).run().refused(1, cause, remedy);
    };
    refused("-i in -o maps", "no inputs in \"in\"", "at least one file");
    refused("-i nowhere -o maps", "nowhere", "folder");
    refused("-C -o maps", "-C collects", "-i");
    refused("-e -r -o maps", "exclude each other", "leave one");
    refused("-b -Z -o maps", "different forms", "choose one");
    refused("-t 9 -o maps", "-t 9", "at least 10");
    refused("-Q -o maps", "is instrumented", "leave -Q out");
    for unknown in ["-o maps -y", "-y -i in -o maps", "-qy -o maps", "--foo=1 -i in -o maps"] {
        refused(unknown, "is not an option of this program", "--help");
    }
    dir.write("in/a", "A");
    dir.write("file", "");
    refused("-i in -o file", "cannot create the folder", "-C");
    refused("-o no/such", "no/such", "path");
    let nobody = dir.path("nobody");
    ours(&dir, "-q -o maps", &nobody).run().refused(1, "cannot find the target", "path");
    dir.ffuzz("showmap").run().expect(1);
    dir.ffuzz("showmap --help").run().expect(0).says("Examples:");
}

#[test]
fn a_misspelt_variable_is_reported_unless_quiet() {
    let dir = counted();
    let steps = target("steps.c", "");
    for (options, wanted) in [("-o seen -i in", true), ("-q -o seen -i in", false)] {
        let done = ours(&dir, options, &steps).env("AFL_DEBUGG", "1").run().expect(0);
        assert_eq!(done.err.contains("did you mean AFL_DEBUG?"), wanted, "{}", done.err);
    }
}

#[test]
fn a_list_of_files_is_run_as_their_folder_is() {
    let dir = counted();
    let counts = target("counts.c", "-O0");
    let lines: Vec<String> = dir.names("in").iter().map(|name| format!("in/{name}\n")).collect();
    dir.write("list", lines.concat());
    ours(&dir, "-q -i in -o all", &counts).run().expect(0);
    ours(&dir, "-q -I list -o listed", &counts).run().expect(0);
    assert_eq!(dir.names("listed"), dir.names("in"));
    for name in dir.names("in") {
        assert_eq!(dir.read(&format!("listed/{name}")), dir.read(&format!("all/{name}")));
    }
    ours(&dir, "-C -I list -o edges", &counts).run().expect(0).says("Reading from list 'list'");
    let missing = ours(&dir, "-I none -o edges", &counts).run();
    missing.refused(1, "cannot read the list \"none\"", "the path of an input in each line");
}

#[test]
fn a_stream_has_the_edges_of_single_runs() {
    let dir = TestDir::new();
    let steps = target("steps.c", "");
    let inputs = ["AAAA", "QUIA", "QUIZ"];
    let number = |number: usize| u32::try_from(number).unwrap().to_ne_bytes().to_vec();
    let stream = inputs.map(|input| [number(input.len()), input.into()].concat()).concat();
    dir.write("stream", [stream, number(0)].concat());
    let line = format!("\"$0\" showmap -q -S -- {} <stream >answers", steps.display());
    dir.program("sh").arg("-c").arg(line).arg(env!("CARGO_BIN_EXE_ffuzz")).run().expect(0);
    let answers = dir.read("answers");
    let mut rest = &answers[..];
    let mut take = |bytes: usize| {
        let (first, others) = rest.split_at(bytes);
        rest = others;
        first.iter().rev().fold(0usize, |all, byte| all << 8 | usize::from(*byte))
    };
    for (input, status) in inputs.into_iter().zip([0, 0, 2 | 6 << 8]) {
        assert_eq!(take(2), status, "{input}");
        let edges = (0..take(4)).map(|_| format!("{:06}:{}\n", take(4), take(1)));
        let edges: String = edges.collect();
        let job = ours(&dir, "-q -o single", &steps).input(input);
        job.run().expect(if status == 0 { 0 } else { 2 });
        assert_eq!(edges, dir.text("single"), "{input}");
        assert_eq!(take(8), 0);
    }
    assert!(rest.is_empty());
    ours(&dir, "-S -o file", &steps).run().expect(1).says("cannot be used with");
}

#[test]
fn another_text_may_stand_for_the_input_file() {
    let dir = TestDir::new();
    dir.write("in/a", "A");
    let reader = target("reader.c", "");
    let shown = |words: &str, placeholder: &str| {
        let job = dir.tool("showmap -q -i in -o maps", &reader, words);
        job.env("AFL_INPUT_PLACEHOLDER", placeholder).run().expect(0);
        dir.text("maps/a")
    };
    let expected = shown("@@", "");
    assert_eq!(shown("{input}", "{input}"), expected);
    // Then @@ is a word like others.
    assert_ne!(shown("@@", "{input}"), expected);
}
