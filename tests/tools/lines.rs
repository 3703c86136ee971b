//! `ffuzz showmap --lines`, `--lcov` and `--cobertura`: source lines and functions that inputs reach.

use std::fs;

use crate::common;
use common::{TestDir, repository, target};

/// Three inputs of `targets/lines.c`.
fn inputs() -> TestDir {
    let dir = TestDir::new();
    for (name, input) in [("1", "a"), ("2", "((1)"), ("3", "ac")] {
        dir.write(&format!("in/{name}"), input);
    }
    dir
}

#[test]
fn files_and_their_lines_are_listed() {
    let (dir, lines) = (inputs(), target("lines.c", "-g -O0"));
    let done = dir.tool("showmap --lines -i in", &lines, "").run().expect(0);
    let done = done.says("3 inputs reach ").says("lines have no counter");
    let table: Vec<&str> = done.out.lines().collect();
    assert_eq!(table.len(), 3, "{}", done.out);
    assert!(table[0].ends_with("  file") && table[1].ends_with("/lines.c"), "{table:?}");
    assert!(table[1].contains(" 2/3 ") && table[2].contains(" 2/3 "), "{table:?}");

    let listing = dir.tool("showmap -q --lines=targets/lines.c -i in", &lines, "").run().expect(0);
    let source = fs::read_to_string(repository("tests/targets/lines.c")).unwrap();
    let listed = listing.out.lines().skip(1);
    let mut derived = 0;
    for (shown, line) in listed.zip(source.lines()) {
        let [_, count, code] = shown.splitn(3, '|').collect::<Vec<_>>()[..] else {
            panic!("{shown}")
        };
        assert_eq!(code, line);
        let expected = line.rsplit_once("/* ").and_then(|(_, rest)| rest.strip_suffix(" */"));
        if let Some(expected) = expected.filter(|text| text.parse::<u32>().is_ok()) {
            derived += usize::from(count.contains('~'));
            assert_eq!(count.trim().trim_start_matches('~'), expected, "{shown}");
        }
    }
    assert!(derived > 0, "{}", listing.out);
}

#[test]
fn other_programs_read_the_lines() {
    let (dir, lines) = (inputs(), target("lines.c", "-g -O0"));
    let done = dir.tool("showmap -q --lines --json -i in", &lines, "").run().expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let file = &json["files"][0];
    assert!(file["path"].as_str().unwrap().ends_with("targets/lines.c"), "{file}");
    let functions = file["functions"].as_array().unwrap().iter();
    let entered: Vec<_> = functions
        .map(|it| (it["name"].as_str().unwrap(), it["entered"].as_bool().unwrap(), &it["line"]))
        .map(|(name, entered, line)| (name, entered, line.as_u64().unwrap()))
        .collect();
    assert_eq!(entered, [("depth", true, 6), ("never", false, 17), ("main", true, 21)]);
    assert_eq!(json["totals"], file["totals"]);
    let lcov = dir.tool("showmap -q --lcov -i in", &lines, "").run().expect(0).out;
    assert!(lcov.contains("\nFNDA:0,never\n") && lcov.contains("\nFNH:2\nDA:6,1\n"), "{lcov}");
    dir.tool("showmap -q --cobertura -i in -o c.xml", &lines, "").run().expect(0);
    let xml = dir.text("c.xml");
    assert!(
        xml.contains("filename=\"lines.c\"") && xml.contains("number=\"18\" hits=\"0\""),
        "{xml}"
    );
}

#[test]
fn a_function_inside_of_another_was_reached_with_it() {
    let dir = TestDir::new();
    dir.write("in/a", "a");
    let inlined = target("inlined.cc", "-g -O2 -x c++ -lstdc++");
    let done = dir.tool("showmap -q --lcov -i in", &inlined, "").run().expect(0);
    let has = |line: &str| done.out.lines().any(|it| it == line);
    // The copy of `twice` that other files might call was not; nobody has run `halved`.
    assert!(has("FNDA:1,_Z5twicei") && has("FNDA:0,_Z6halvedi"), "{}", done.out);
    assert!(has("DA:18,1") && has("DA:23,0"), "{}", done.out);
}

#[test]
fn what_shows_no_lines_is_refused() {
    let (dir, lines) = (inputs(), target("lines.c", "-g -O0"));
    let refused = |options: &str, cause: &str, remedy: &str| {
        dir.tool(&format!("showmap -q {options}"), &lines, "").run().refused(1, cause, remedy);
    };
    refused("--lines", "show which lines files reach", "-i");
    refused(
        "--cobertura --json -i in",
        "--json is a form of --lines",
        "has the lines of all files",
    );
    refused("--lines=lines.c --json -i in", "--json is a form of --lines", "of all files");
    refused("--lines=none.c -i in", "no source file of the target is none.c", "lists them");
    let moved = TestDir::new();
    let source = moved.write("moved.c", fs::read(repository("tests/targets/lines.c")).unwrap());
    moved.ffuzz("cc -g -O0 moved.c -o moved").run().expect(0);
    fs::remove_file(source).unwrap();
    let moved = moved.path("moved");
    let job = dir.tool("showmap -q --lines=moved.c -i in", &moved, "").run();
    job.refused(1, "cannot read", "run where the target was built");
    let bare = target("lines.c", "-O0 -g0");
    let job = dir.tool("showmap -q --lines -i in", &bare, "").run();
    job.refused(1, "no debug information about lines", "-g");
}
