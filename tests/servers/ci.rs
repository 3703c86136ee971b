//! `ffuzz ci`: harnesses of a repository within a time, and the forms of services.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common;
use crate::schema;
use common::*;

/// A library with two bugs, and a sound one.
const BUGGY: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void parse(const uint8_t *data, size_t size) {
  if (size > 2 && data[0] == 'a' && data[1] == 'b') abort();
  if (size > 3 && !memcmp(data, "xyz", 3)) *(volatile int *)0 = 3;
}
"#;
const SOUND: &str = r#"
#include <stddef.h>
#include <stdint.h>
int lex(const uint8_t *data, size_t size) { return size > 1 && data[0] == '<' && data[1] == '>'; }
"#;

fn harness(function: &str) -> String {
    format!(
        "#include <stddef.h>\n#include <stdint.h>\nint {function}(const uint8_t *, size_t);\n\
         int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {{ {function}(data, size); return 0; }}\n"
    )
}

/// A repository with two harnesses, built into `out`.
fn repository_with_harnesses() -> TestDir {
    let dir = TestDir::new();
    dir.write("src/parse.c", BUGGY);
    dir.write("src/lex.c", SOUND);
    for name in ["parse", "lex"] {
        dir.write(&format!("fuzz/{name}_fuzzer.c"), harness(name));
    }
    std::fs::create_dir(dir.path("out")).unwrap();
    for name in ["parse", "lex"] {
        build(&dir, name);
    }
    git(&dir, &["init", "-q"]);
    dir.write(".gitignore", "out\nffuzz-ci\n*.zip\n");
    git(&dir, &["add", "."]);
    commit(&dir);
    dir
}

/// Builds the harness of `src/NAME.c` again.
fn build(dir: &TestDir, name: &str) {
    let (library, harness) = (format!("src/{name}.c"), format!("fuzz/{name}_fuzzer.c"));
    let output = format!("out/{name}_fuzzer");
    compile(dir, &["-g", "-O1", "-fsanitize=fuzzer", &library, &harness, "-o", &output]);
}

fn compile(dir: &TestDir, words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
    command.arg("cc").args(words).current_dir(dir.path("")).env("AFL_QUIET", "1");
    assert!(command.env("XDG_CACHE_HOME", cache()).status().unwrap().success());
}

fn git(dir: &TestDir, words: &[&str]) {
    let status = Command::new("git").current_dir(dir.path("")).args(words).status().unwrap();
    assert!(status.success(), "git {words:?}");
}

fn commit(dir: &TestDir) {
    git(dir, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-a", "-m", "a"]);
}

fn json(dir: &TestDir, name: &str) -> Value {
    serde_json::from_slice(&dir.read(name)).unwrap()
}

#[test]
fn bugs_are_new_once_and_services_show_them() {
    let dir = repository_with_harnesses();
    let forms = "--sarif s.json --junit j.xml --code-quality q.json --summary m.md";
    let job = dir.ffuzz(&format!("ci --time 8 -j 2 {forms} --save state.zip out"));
    let job = job.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", "step.md");
    dir.write("step.md", "before\n");
    let done = job.run().expect(77).says("2 new bugs, 0 known").says("lex_fuzzer: ");
    dir.ffuzz("ci --time 1 --archive none.zip out/lex_fuzzer")
        .run()
        .expect(0)
        .says("There was no archive");
    let lines: Vec<&str> = done.out.lines().filter(|line| line.starts_with("::error ")).collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("::error file=src/parse.c,line="),
        "{}",
        done.out
    );
    let new = done.out.lines().filter(|line| line.starts_with("new  ")).count();
    assert_eq!(new, 2, "{}", done.out);
    // The forms, by their schemas.
    let rules = std::fs::read(repository("tests/data/sarif/sarif-2.1.0-rtm.5.json")).unwrap();
    let sarif = json(&dir, "s.json");
    assert_eq!(schema::faults(&serde_json::from_slice(&rules).unwrap(), &sarif), [""; 0]);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert_eq!(result["baselineState"], "new");
        assert_eq!(
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "src/parse.c"
        );
    }
    let prints = |sarif: &Value| -> Vec<String> {
        let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
        let mut all: Vec<String> = results
            .map(|result| result["partialFingerprints"]["primaryLocationLineHash"].to_string())
            .collect();
        all.sort();
        all
    };
    is_junit(&dir, "j.xml");
    let junit = dir.text("j.xml");
    assert!(junit.contains("<testsuite name=\"lex_fuzzer\" tests=\"1\" failures=\"0\""), "{junit}");
    assert!(
        junit.contains("<testsuite name=\"parse_fuzzer\" tests=\"3\" failures=\"2\""),
        "{junit}"
    );
    let entries = json(&dir, "q.json");
    assert_eq!(entries[0]["location"]["path"], "src/parse.c");
    let page = dir.text("m.md");
    assert!(
        page.contains("2 harnesses: **2 new bugs**.") && page.contains("`src/parse.c:"),
        "{page}"
    );
    assert_eq!(dir.text("step.md"), format!("before\n{page}"));
    // With what was saved, also after the lines have moved, the bugs are known.
    dir.write("src/parse.c", format!("\n\n\n{BUGGY}"));
    build(&dir, "parse");
    let again =
        dir.ffuzz("ci --time 2 -j 2 --archive state.zip --save state.zip --sarif t.json out");
    let done = again.run().expect(0).says("0 new bugs, 2 known");
    assert!(done.out.lines().all(|line| line.starts_with("known  ")), "{}", done.out);
    assert_eq!(prints(&json(&dir, "t.json")), prints(&sarif));
    // What was repaired is not reported, and not kept.
    dir.write("src/parse.c", BUGGY.replace("abort()", "return"));
    build(&dir, "parse");
    let again = dir.ffuzz("ci --time 2 -j 2 --archive state.zip out");
    again.run().expect(0).says("0 new bugs, 1 known");
    // Without an archive a list in the repository tells what is known.
    dir.ffuzz("ci --time 6 -j 2 --accept out").run().expect(77).says("1 new bugs, 0 known");
    let list = dir.text(".ffuzz-known");
    assert!(list.contains(" # ") && list.lines().count() == 1, "{list}");
    dir.ffuzz("ci --time 6 -j 2 out").run().expect(0).says("0 new bugs, 1 known");
}

/// By the schema of Jenkins, which does not have GitLab's attribute.
fn is_junit(dir: &TestDir, name: &str) {
    if !has("xmllint") {
        return skip("xmllint is not installed");
    }
    let mut text = dir.text(name);
    while let Some(at) = text.find(" file=\"") {
        let end = at + 7 + text[at + 7..].find('"').unwrap();
        text.replace_range(at..=end, "");
    }
    let path = dir.write("plain.xml", text);
    let schema = repository("tests/data/junit/junit-10.xsd");
    let output =
        Command::new("xmllint").args(["--noout", "--schema"]).arg(schema).arg(path).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_change_cannot_reach_is_left_out() {
    let dir = repository_with_harnesses();
    dir.write("src/lex.c", format!("{SOUND}/* changed */\n"));
    let done = dir.ffuzz("ci --time 2 -j 2 --base HEAD --junit j.xml --summary m.md out").run();
    done.expect(0).says("1 files changed since HEAD; left out: parse_fuzzer.");
    is_junit(&dir, "j.xml");
    let page = dir.text("m.md");
    assert!(
        page.contains("| parse\\_fuzzer | | | | | left out: no change since HEAD reaches it |"),
        "{page}"
    );
    assert!(!dir.path("ffuzz-ci/parse_fuzzer/out").exists());
    // A build that knows the change searches in it first.
    let diff = Command::new("git").current_dir(dir.path("")).args(["diff", "HEAD"]).output();
    dir.write("change.diff", diff.unwrap().stdout);
    let mut build = Command::new(env!("CARGO_BIN_EXE_ffuzz"));
    build.args(["cc", "-g", "-O1", "-fsanitize=fuzzer", "src/lex.c", "fuzz/lex_fuzzer.c"]);
    build.args(["-o", "out/lex_fuzzer"]).current_dir(dir.path("")).env("WAYPOINTS", "diff");
    let build = build.env("FFUZZ_DIFF", dir.path("change.diff")).env("XDG_CACHE_HOME", cache());
    assert!(build.status().unwrap().success());
    dir.ffuzz("ci --time 2 -j 1 --base HEAD out").run().expect(0);
    let stats = dir.text("ffuzz-ci/lex_fuzzer/out/default/fuzzer_stats");
    assert!(
        stats.lines().any(|line| line.starts_with("command_line") && line.contains(" -p ")),
        "{stats}"
    );
    std::fs::remove_file(dir.path("change.diff")).unwrap();
    // A file that belongs to no harness may reach all.
    dir.write("Makefile", "all:\n");
    git(&dir, &["add", "Makefile"]);
    commit(&dir);
    let done = dir.ffuzz("ci --time 3 -j 2 --base HEAD~1 out").run();
    done.expect(77).says("they may reach every harness");
    let job = dir.ffuzz("ci --time 2 --base nothing out");
    job.run().refused(1, "git cannot tell what changed since nothing", "fetch-depth: 0");
}

#[test]
fn corpora_and_crashes_are_run_before_the_search() {
    let dir = repository_with_harnesses();
    for number in 0..50 {
        dir.write(&format!("corpus/parse_fuzzer/{number}"), format!("input {number}"));
    }
    dir.write("corpus/parse_fuzzer/crash", "abc");
    let done = dir.ffuzz("ci --time 2 -j 2 --corpus corpus out").run().expect(77);
    done.says("parse_fuzzer: 51 inputs, 1 of them crash; 0 crashes of earlier runs");
    // The folder of the only harness.
    let job = dir.ffuzz("ci --time 2 -j 2 --corpus corpus/parse_fuzzer out/parse_fuzzer");
    job.run().expect(77).says("parse_fuzzer: 51 inputs, 1 of them crash");
}

#[test]
fn harnesses_that_do_not_run_and_wrong_command_lines_are_named() {
    let dir = TestDir::new();
    let source = |name: &str, body: &str| -> PathBuf {
        let text = format!(
            "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
             int LLVMFuzzerInitialize(int *c, char ***v) {{ {body} return 0; }}\n\
             int LLVMFuzzerTestOneInput(const uint8_t *d, unsigned long n) {{ return 0; }}\n"
        );
        dir.write(&format!("{name}.c"), text);
        std::fs::create_dir_all(dir.path("out")).unwrap();
        compile(&dir, &["-fsanitize=fuzzer", &format!("{name}.c"), "-o", &format!("out/{name}")]);
        dir.path("out").join(name)
    };
    source("exits", "_exit(3);");
    source("forks", "if (!fork()) _exit(0);");
    let done = dir.ffuzz("ci --time 4 -j 2 --summary m.md out").run().expect(1);
    done.says("0 new bugs");
    let page = dir.text("m.md");
    assert!(
        page.contains("| exits | | | | | does not run: ") && page.contains("| forks | "),
        "{page}"
    );
    // The results of an earlier run are replaced, other folders are not.
    dir.write("mine/file", "");
    dir.ffuzz("ci -o mine out").run().refused(1, "was not made by ffuzz ci", "-o");
    assert!(dir.path("mine/file").exists());
    dir.write("state.zip", "nothing");
    dir.ffuzz("ci --archive state.zip out").run().refused(
        1,
        "is no archive of ffuzz ci",
        "remove it",
    );
    dir.ffuzz("ci nothing").run().refused(1, "cannot read nothing", "a program with a harness");
    dir.ffuzz("ci mine").run().refused(1, "mine has no harness", "ffuzz-oss/out");
    dir.ffuzz("ci --time never out").run().refused(2, "--time", "");
    dir.ffuzz("ci --corpus nothing out").run().refused(
        2,
        "--corpus nothing is no folder",
        "inputs",
    );
    std::fs::create_dir(dir.path("copy")).unwrap();
    std::fs::copy(dir.path("out/forks"), dir.path("copy/forks")).unwrap();
    dir.ffuzz("ci out copy").run().refused(1, "two harnesses are called forks", "rename one");
}

/// A campaign that ends early says so.
#[test]
fn a_signal_ends_the_search_and_the_results_are_written() {
    let dir = repository_with_harnesses();
    let mut running = dir.ffuzz("ci --time 600 -j 2 --save state.zip --summary m.md out").start();
    wait_until("campaigns", || {
        Path::new(&dir.path("ffuzz-ci/lex_fuzzer/out/default/fuzzer_stats")).exists()
    });
    running.signal(nix::sys::signal::Signal::SIGTERM);
    running.wait_for("The run was interrupted.");
    running.finish();
    assert!(dir.text("m.md").contains("The run was interrupted."));
    // What the next run begins with is not less than what this one began with.
    dir.write("corpus/parse_fuzzer/crash", "abc");
    dir.write("corpus/parse_fuzzer/good", "xy");
    dir.ffuzz("ci --time 1 -j 2 --corpus corpus --save state.zip out").run().expect(77);
    let saved = dir.names("ffuzz-ci/parse_fuzzer/next").len();
    let again = "ci --time 600 -j 2 --archive state.zip --save state.zip out";
    for text in ["parse_fuzzer: ", "lex_fuzzer: "] {
        let mut running = dir.ffuzz(again).start();
        running.wait_for(text);
        running.signal(nix::sys::signal::Signal::SIGTERM);
        running.finish();
    }
    let done = dir.ffuzz("ci --time 1 -j 2 --archive state.zip out").run().expect(0);
    done.says("1 known").says(" crashes of earlier runs");
    let kept = dir.names("ffuzz-ci/archive/parse_fuzzer/corpus").len();
    assert!(saved > 0 && kept >= saved, "{kept} of {saved}");
    assert!(!dir.names("ffuzz-ci/archive/parse_fuzzer/crashes").is_empty());
}
