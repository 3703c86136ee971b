//! `ffuzz triage`: crash files of real targets become the bugs that are in them, in every way in which a
//! target can end, with and without a debugger, beside a campaign and after it.

use crate::collecting as fuzzmanager;
use crate::common;
use crate::schema;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{
    Finished, TestDir, afl_target, compiled, has, need, plain, repository, skip, target, target_by,
    target_with, wait_until,
};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Crash files, two for each letter.
fn crashes(dir: &TestDir, letters: &str) {
    for letter in letters.chars() {
        dir.write(&format!("crashes/{letter}1"), format!("{letter}1"));
        dir.write(&format!("crashes/{letter}2"), format!("{letter}2 and more"));
    }
}

fn triage(dir: &TestDir, options: &str, target: &Path) -> Finished {
    let before = dir.snapshot("crashes");
    let job = dir.ffuzz(&format!("triage -o out {options} crashes")).arg("--").arg(target);
    let done = job.run().expect(0);
    assert_eq!(dir.snapshot("crashes"), before, "triage leaves crashes alone");
    done
}

fn report(dir: &TestDir) -> Value {
    serde_json::from_slice(&dir.read("out/triage/report.json")).unwrap()
}

/// How many of these the report has, as far as it is written.
fn in_the_report(dir: &TestDir, what: &str) -> usize {
    let report = fs::read(dir.path("out/triage/report.json")).unwrap_or_default();
    let report = serde_json::from_slice::<Value>(&report).unwrap_or_default();
    report[what].as_array().map_or(0, Vec::len)
}

/// For each bug the crash files that belong to it, by the function where it is.
fn bugs(dir: &TestDir) -> BTreeMap<String, Vec<String>> {
    let report = report(dir);
    let of = |bug: &Value| {
        let crashes = report["crashes"].as_array().unwrap().iter();
        let own = crashes.filter(|crash| crash["bug"] == bug["id"]);
        let name =
            |crash: &Value| crash["path"].as_str().unwrap().rsplit('/').next().unwrap().into();
        let mut files: Vec<String> = own.map(name).collect();
        files.sort();
        files
    };
    let function = |bug: &Value| {
        let frames = bug["frames"].as_array().unwrap().iter().filter_map(Value::as_str);
        let ours = [
            "read_behind",
            "write_behind",
            "use_freed",
            "poke_null",
            "check",
            "give_up",
            "talk_much",
            "talk_bytes",
            "sometimes",
            "leave_child",
            "quietly",
            "last",
            "on_stack",
            "parse",
        ];
        let mut own = frames.filter_map(|frame| ours.iter().find(|name| frame.contains(**name)));
        own.next().map_or_else(|| bug["title"].to_string(), |name| (*name).to_owned())
    };
    let bugs = report["bugs"].as_array().unwrap();
    let found: BTreeMap<_, _> = bugs.iter().map(|bug| (function(bug), of(bug))).collect();
    assert_eq!(found.len(), bugs.len(), "two bugs are one: {bugs:#?}");
    found
}

/// The functions of all bugs, each of which has both of its files.
fn both_of_each(dir: &TestDir) -> Vec<String> {
    let found = bugs(dir);
    assert!(found.values().all(|files| files.len() == 2), "{found:#?}");
    found.into_keys().collect()
}

fn bug_folder(dir: &TestDir, function: &str) -> PathBuf {
    let folders = fs::read_dir(dir.path("out/triage")).unwrap().map(|entry| entry.unwrap().path());
    let has = |folder: &PathBuf| {
        let stack = fs::read_to_string(folder.join("stack.txt")).unwrap_or_default();
        stack.contains(function)
    };
    folders.filter(|path| path.is_dir()).find(has).unwrap_or_else(|| panic!("no {function}"))
}

fn asan() -> PathBuf {
    target("bugs.c", "-fsanitize=address")
}

fn cxx(flags: &str) -> PathBuf {
    plain("shapes.cc", &format!("-x c++ -lstdc++ {flags}"))
}

#[test]
fn sanitizer_reports_are_grouped_into_the_bugs_that_there_are() {
    let dir = TestDir::new();
    crashes(&dir, "owfnag");
    let done = triage(&dir, "", &asan()).says("6 bugs in 12 crash files");
    let all = ["check", "give_up", "poke_null", "read_behind", "use_freed", "write_behind"];
    assert_eq!(both_of_each(&dir), all);
    assert!(done.out.contains("bugs.c:14"), "{}", done.out);
    let folder = bug_folder(&dir, "read_behind");
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!((text("input"), text("minimized")), ("o1".into(), "o".into()));
    assert!(text("stderr.txt").contains("ERROR: AddressSanitizer: heap-buffer-overflow"));
    assert!(text("stack.txt").starts_with("#0 read_behind\n"), "{}", text("stack.txt"));
    let bug: Value = serde_json::from_str(&text("bug.json")).unwrap();
    assert_eq!((&bug["runs"], &bug["crashes"], &bug["files"]), (&6.into(), &6.into(), &2.into()));
    assert!(text("bug.signature").contains("\"read_behind\""));
    let run = Command::new(folder.join("reproduce.sh")).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(said.contains("heap-buffer-overflow") && said.contains("in read_behind"), "{said}");
}

#[test]
fn a_second_target_has_its_own_bugs() {
    let dir = TestDir::new();
    crashes(&dir, "tse");
    triage(&dir, "--sarif bugs.sarif", &cxx("-fsanitize=address"));
    assert_eq!(both_of_each(&dir), ["last", "on_stack", "parse"]);
    let sarif: Value = serde_json::from_slice(&dir.read("bugs.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &sarif["version"]), (3, &"2.1.0".into()));
    let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(place.as_str().unwrap().ends_with("shapes.cc"), "{results:#?}");
}

/// What GitHub's code scanning refuses a file without, and the standard allows to leave out.
fn shown_by_github(sarif: &Value) {
    let run = &sarif["runs"][0];
    for rule in run["tool"]["driver"]["rules"].as_array().unwrap() {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(!rule[text]["text"].as_str().unwrap().is_empty(), "{rule:#}");
        }
        let severity = rule["properties"]["security-severity"].as_str().unwrap();
        assert!((0.1..=10.0).contains(&severity.parse::<f64>().unwrap()), "{rule:#}");
    }
    for result in run["results"].as_array().unwrap() {
        let hash = &result["partialFingerprints"]["primaryLocationLineHash"];
        assert!(hash.as_str().is_some_and(|hash| hash.len() > 2), "{result:#}");
        let region = &result["locations"][0]["physicalLocation"]["region"];
        for number in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(region[number].as_u64().is_some_and(|number| number > 0), "{result:#}");
        }
    }
}

#[test]
fn sarif_is_valid_and_its_paths_are_relative_to_the_source() {
    let dir = TestDir::new();
    crashes(&dir, "tse");
    let schema = fs::read(repository("tests/data/sarif/sarif-2.1.0-rtm.5.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let place = |options: &str| {
        triage(&dir, &format!("--sarif bugs.sarif {options}"), &cxx("-fsanitize=address"));
        let sarif: Value = serde_json::from_slice(&dir.read("bugs.sarif")).unwrap();
        assert_eq!(schema::faults(&schema, &sarif), [""; 0], "{sarif:#}");
        let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        shown_by_github(&sarif);
        let base = &sarif["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"];
        (place["artifactLocation"].clone(), base.as_str().unwrap().to_owned())
    };
    let root = repository("").canonicalize().unwrap();
    let (artifact, base) = place(&format!("--source-root {}", root.display()));
    let wanted = json!({"uri": "tests/targets/shapes.cc", "uriBaseId": "SRCROOT"});
    assert_eq!((artifact, base), (wanted, format!("file://{}/", root.display())));
    // The tree in which it was built is another one than this.
    dir.write("src/targets/shapes.cc", "");
    dir.write("src/.git/HEAD", "");
    let (artifact, _) = place("--source-root src");
    assert_eq!(artifact, json!({"uri": "targets/shapes.cc", "uriBaseId": "SRCROOT"}));
    // The check finds faults.
    let faulty = json!({"version": "2.1.0", "runs": [{"tool": {}, "results": [{"level": "bad"}]}]});
    assert_eq!(schema::faults(&schema, &faulty).len(), 3);
}

/// Names of all bugs.
fn ids(dir: &TestDir) -> Vec<String> {
    let report = report(dir);
    let bugs = report["bugs"].as_array().unwrap().iter();
    let mut ids: Vec<String> = bugs.map(|bug| bug["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// The compilers of C++ that are here, with AddressSanitizer.
fn compilers() -> Vec<String> {
    let names = ["14", "15", "16", "19"].map(|version| format!("clang++-{version}"));
    names.into_iter().filter(|name| has(name)).collect()
}

#[test]
fn one_bug_has_one_name_whatever_the_size_of_the_input_and_the_compiler() {
    let mut names = Vec::new();
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let flags = format!("-x c++ -fsanitize=address {level}");
            let target = compiled(&compiler, "sized.cc", &flags);
            for sizes in [[49, 35], [22, 11], [9, 200]] {
                let dir = TestDir::new();
                for (depth, size) in sizes.into_iter().enumerate() {
                    dir.write(
                        &format!("crashes/{depth}"),
                        format!("{:0<size$}", format!("w{depth}")),
                    );
                }
                triage(&dir, "-n 1 --minimize 0", &target);
                names.push((ids(&dir), format!("{compiler} {level} {sizes:?}")));
            }
        }
    }
    let (first, others) = names.split_first().expect("no compiler");
    assert!(first.0.len() == 1 && first.0[0].starts_with("heap-buffer-overflow-WRITE-Store-fill-"));
    for other in others {
        assert_eq!(other.0, first.0, "{} and {}", first.1, other.1);
    }
}

#[test]
fn the_symbolizer_of_the_target_s_compiler_is_asked() {
    let dir = TestDir::new();
    crashes(&dir, "o");
    let versions: Vec<&str> = ["14", "15", "16", "19"]
        .into_iter()
        .filter(|version| {
            Command::new(format!("llvm-symbolizer-{version}")).arg("--version").output().is_ok()
        })
        .collect();
    let compiler = Command::new("clang-19").arg("--version").output();
    if compiler.is_err() || !versions.contains(&"19") || versions.len() < 2 {
        skip("clang-19 and an older llvm-symbolizer are not installed");
        return;
    }
    only(&dir, &["gdb"]);
    let script = |name: &str, real: &str| {
        let real = Command::new("sh").args(["-c", &format!("command -v {real}")]).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        let text = format!(
            "#!/bin/sh\necho {name} >> {}\nexec {} \"$@\"\n",
            dir.path("asked").display(),
            real.trim()
        );
        let path = dir.write(&format!("bin/{name}"), text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let older = script("llvm-symbolizer", &format!("llvm-symbolizer-{}", versions[0]));
    for version in &versions {
        script(&format!("llvm-symbolizer-{version}"), &format!("llvm-symbolizer-{version}"));
    }
    let target = compiled("clang-19", "bugs.c", "-fsanitize=address");
    let asked = |given: Option<&Path>| {
        let _ = fs::remove_file(dir.path("asked"));
        let _ = fs::remove_dir_all(dir.path("out"));
        let job = dir
            .ffuzz("triage -o out -n 1 --minimize 0 crashes")
            .env("PATH", dir.path("bin").to_str().unwrap());
        let job = given
            .into_iter()
            .fold(job, |job, path| job.env("ASAN_SYMBOLIZER_PATH", path.to_str().unwrap()));
        job.arg("--").arg(&target).run().expect(0).says("1 bug in 2 crash files");
        let mut asked: Vec<String> = dir.text("asked").lines().map(str::to_owned).collect();
        asked.sort();
        asked.dedup();
        asked
    };
    assert_eq!(asked(None), ["llvm-symbolizer-19"]);
    assert_eq!(asked(Some(&older)), ["llvm-symbolizer"]);
}

/// A Rust program of `tests/targets`, which aborts when it panics.
fn rust(dir: &TestDir, name: &str, level: &str) -> PathBuf {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let path = dir.path(&format!("{name}-{level}"));
    let mut command = Command::new(compiler);
    command.args([
        "--edition",
        "2021",
        "-g",
        "-C",
        "panic=abort",
        "-C",
        &format!("opt-level={level}"),
    ]);
    let source = repository("tests/targets").join(name).with_extension("rs");
    let output = command.arg("-o").arg(&path).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn panics_of_rust_are_bugs_of_their_places() {
    need("gdb");
    let dir = TestDir::new();
    let programs = [("panics", "rnma", 4), ("gives_up", "vtlp", 4)];
    for (name, letters, number) in programs {
        let mut names: Vec<(Vec<String>, String)> = Vec::new();
        for level in ["0", "2"] {
            let target = rust(&dir, name, level);
            for (bytes, tools) in [("zz", None), ("zzzzzzz", None), ("zzz", Some("addr2line"))] {
                for folder in ["crashes", "out"] {
                    let _ = fs::remove_dir_all(dir.path(folder));
                }
                for letter in letters.chars() {
                    dir.write(&format!("crashes/{letter}"), format!("{letter}{bytes}"));
                }
                let _ = fs::remove_dir_all(dir.path("bin"));
                let job = dir.ffuzz("triage -o out -n 1 --minimize 0 crashes");
                let job =
                    tools.into_iter().fold(job, |job, tool| job.env("PATH", &only(&dir, &[tool])));
                job.arg("--").arg(target.clone()).run().expect(0);
                names.push((ids(&dir), format!("{name} -O{level} {bytes} {tools:?}")));
            }
        }
        assert_eq!(names[0].0.len(), number, "{names:#?}");
        for other in &names {
            assert_eq!(other.0, names[0].0, "{}", other.1);
        }
        let report = report(&dir);
        for bug in report["bugs"].as_array().unwrap() {
            let signature = bug["signature"].to_string();
            let machinery = ["core::panicking", "std::", "abort", "raise"];
            assert!(!machinery.iter().any(|name| signature.contains(name)), "{signature}");
            let place = bug["place"].as_str().unwrap_or_else(|| panic!("{bug:#}"));
            assert!(place.contains(&format!("{name}.rs:")), "{bug:#}");
        }
    }
}

/// A hook of the program's own says nothing, and calls more functions than distinguish a bug.
#[test]
fn a_panic_hook_hides_neither_place_nor_function() {
    let dir = TestDir::new();
    for letter in ["a", "b"] {
        dir.write(&format!("crashes/{letter}"), letter);
    }
    triage(&dir, "--minimize 0", &rust(&dir, "hooked", "0"));
    let report = report(&dir);
    let bugs = report["bugs"].as_array().unwrap();
    assert_eq!(bugs.len(), 2, "{bugs:#?}");
    for bug in bugs {
        let [title, place] = ["title", "place"].map(|key| bug[key].as_str().unwrap());
        assert!(
            title.contains("[@ hooked::first]") || title.contains("[@ hooked::second]"),
            "{title}"
        );
        assert!(place.contains("hooked.rs:"), "{place}");
        let line: u32 = place.rsplit(':').next().unwrap().parse().unwrap();
        let text = include_str!("../targets/hooked.rs").lines().nth(line as usize - 1).unwrap();
        assert!(text.contains("panic!"), "{place}: {text}");
    }
}

#[test]
fn panics_have_their_names_without_debug_information_of_libc() {
    let dir = TestDir::new();
    let hidden = "mount -t tmpfs none /usr/lib/debug 2>/dev/null || test ! -e /usr/lib/debug";
    if dir.program("unshare").words("-rm sh -c").arg(hidden).run().code() != 0 {
        return skip("unshare --mount is not allowed");
    }
    let target = rust(&dir, "panics", "0");
    for letter in ["r", "n", "m", "a"] {
        dir.write(&format!("crashes/{letter}"), format!("{letter}zz"));
    }
    dir.ffuzz("triage -o out -n 1 --minimize 0 crashes --").arg(&target).run().expect(0);
    let names = ids(&dir);
    fs::remove_dir_all(dir.path("out")).unwrap();
    let script = format!(
        "{hidden}; PATH={} exec {} triage -o out -n 1 --minimize 0 crashes -- {}",
        only(&dir, &["addr2line"]),
        env!("CARGO_BIN_EXE_ffuzz"),
        target.display()
    );
    dir.program("unshare").words("-rm sh -c").arg(script).run().expect(0);
    assert_eq!((ids(&dir), names.len()), (names, 4));
}

#[test]
fn gdb_reports_a_signal_without_output() {
    need("gdb");
    let dir = TestDir::new();
    crashes(&dir, "nagq");
    triage(&dir, "", &plain("bugs.c", "")).does_not_say("pthread_kill").does_not_say("abort");
    assert_eq!(both_of_each(&dir), ["check", "give_up", "poke_null", "quietly"]);
    let text = fs::read_to_string(bug_folder(&dir, "poke_null").join("debugger.txt")).unwrap();
    assert!(text.contains("received signal SIGSEGV") && text.contains("\nrip "), "{text}");
    assert!(text.contains("=> 0x") && text.contains("#1 "), "{text}");
}

/// A folder with nothing but these programs in it.
fn only(dir: &TestDir, programs: &[&str]) -> String {
    fs::create_dir_all(dir.path("bin")).unwrap();
    for name in programs {
        let found =
            Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
        let path = String::from_utf8(found.stdout).unwrap();
        std::os::unix::fs::symlink(path.trim(), dir.path(&format!("bin/{name}"))).unwrap();
    }
    dir.path("bin").display().to_string()
}

#[test]
fn without_gdb_the_own_tracer_gives_the_same_bugs() {
    for programs in [&["addr2line"][..], &[]] {
        let dir = TestDir::new();
        crashes(&dir, "nag");
        let job =
            dir.ffuzz("triage -j 1 -o out crashes").env("PATH", &only(&dir, programs)).arg("--");
        job.arg(plain("bugs.c", "")).run().expect(0).says("3 bugs in 6 crash files");
        if programs.is_empty() {
            // Without a symbolizer there are no names, and still all are distinguished.
            assert!(bugs(&dir).values().all(|files| files.len() == 2));
            continue;
        }
        assert_eq!(both_of_each(&dir), ["check", "give_up", "poke_null"]);
        let text = fs::read_to_string(bug_folder(&dir, "poke_null").join("debugger.txt")).unwrap();
        assert!(text.starts_with("Program received signal SIGSEGV, Segmentation fault.\n#0  0x"));
        assert!(text.contains(" in poke_null () at ") && text.contains("#2  0x"), "{text}");
        assert!(text.contains("\nCrash Address: 0x1\n") && text.contains("\nrip\t0x"), "{text}");
    }
}

/// clang puts the number of a check into the instruction that traps.
#[test]
fn checks_that_trap_in_one_function_are_bugs_of_their_own() {
    let target = target_by(&[("AFL_USE_UBSAN", "1")], "checks.c", "-g");
    for programs in [None, Some(&["addr2line"][..])] {
        if programs.is_none() {
            need("gdb");
        }
        let dir = TestDir::new();
        crashes(&dir, "asid");
        let mut job = dir.ffuzz("triage -o out crashes");
        if let Some(programs) = programs {
            job = job.env("PATH", &only(&dir, programs));
        }
        job.arg("--").arg(&target).run().expect(0).says("4 bugs in 8 crash files");
        let report = report(&dir);
        let titles = report["bugs"].as_array().unwrap().iter();
        let mut titles: Vec<_> = titles.map(|bug| bug["title"].as_str().unwrap()).collect();
        titles.sort_unstable();
        let found = [
            "division by zero or overflow",
            "index out of bounds",
            "integer addition overflow",
            "shift out of bounds",
        ];
        assert_eq!(titles, found.map(|found| format!("{found} [@ check]")));
    }
}

/// What gdb says about a crash of `function` in the sanitizer's build, where a variable wants that.
fn name_from_gdb(dir: &TestDir, variable: &str, function: &str) -> String {
    need("gdb");
    let before = dir.names("");
    let job = dir.ffuzz("triage -o out -n 1 --minimize 0 crashes").env(variable, "1");
    job.arg("--").arg(asan()).run().expect(0).does_not_say("[!]");
    let after = dir.names("").into_iter().filter(|name| name != "out").collect::<Vec<_>>();
    assert_eq!(after, before, "a core file is left");
    let folder = bug_folder(dir, function);
    let said = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    assert!(said.contains("ERROR: AddressSanitizer"), "{said}");
    fs::read_to_string(folder.join("debugger.txt")).unwrap()
}

#[test]
fn gdb_can_be_requested_for_every_crash() {
    let dir = TestDir::new();
    crashes(&dir, "no");
    let text = name_from_gdb(&dir, "FTB_FORCE_GDB", "poke_null");
    assert!(text.contains("received signal SIGSEGV") && text.contains("\nrip "), "{text}");
    assert!(
        text.contains("#0  ") && text.contains("poke_null") && text.contains("=> 0x"),
        "{text}"
    );
    assert_eq!(both_of_each(&dir), ["poke_null", "read_behind"]);
}

#[test]
fn gdb_can_be_requested_for_core_files() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let dir = TestDir::new();
    crashes(&dir, "n");
    let job = || {
        let job = dir.ffuzz("triage -o out crashes").env("FTB_FORCE_GDBCORE", "1");
        job.arg("--").arg(asan()).run()
    };
    if pattern.starts_with('|') {
        job().refused(1, "the kernel pipes core files to a program", "unset FTB_FORCE_GDBCORE");
        return;
    }
    use nix::sys::resource::{Resource, getrlimit};
    if getrlimit(Resource::RLIMIT_CORE).unwrap().1 == 0 && !nix::unistd::geteuid().is_root() {
        skip("this user may have no core files (ulimit -Hc)");
        return;
    }
    let text = name_from_gdb(&dir, "FTB_FORCE_GDBCORE", "poke_null");
    assert!(text.starts_with("Program terminated with signal SIGSEGV"), "{text}");
    assert!(text.contains("poke_null") && text.contains("\nrip "), "{text}");
    let bug = report(&dir)["bugs"][0].clone();
    assert_eq!(
        (bug["kind"].as_str(), bug["address"].as_str()),
        (Some("gdb"), Some("0x1")),
        "{bug}"
    );
    let numbered = fs::read_to_string("/proc/sys/kernel/core_uses_pid").unwrap();
    if pattern == "core\n" && numbered == "0\n" {
        dir.write("core", "somebody's");
        job().refused(1, "a core file would overwrite ./core", "move that file away");
        assert_eq!(dir.text("core"), "somebody's");
    }
    let job = dir.ffuzz("triage -o out crashes").env("FTB_FORCE_GDB", "1");
    let job = job.env("PATH", &only(&dir, &[])).arg("--").arg(asan());
    job.run().refused(1, "FTB_FORCE_GDB is set, but there is no gdb", "install gdb");
}

#[test]
fn a_symbolizer_that_hangs_is_not_waited_for_again_and_again() {
    let dir = TestDir::new();
    crashes(&dir, "nowf");
    let path =
        dir.write("symbolizer/llvm-symbolizer", "#!/bin/sh\necho >> asked\nexec sleep 1000\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    // Ten times as long as a run, and at least 5 s.
    let job = dir.ffuzz("triage -o out -t 500 -n 1 --minimize 0 crashes").arg("--").arg(asan());
    let done = job.env("ASAN_SYMBOLIZER_PATH", path.to_str().unwrap()).run().expect(0);
    done.says("llvm-symbolizer gave no answer within 5 s: functions have no names (run it by hand")
        .says("4 bugs in 8 crash files");
    assert_eq!(dir.text("asked"), "\n");
}

#[test]
fn facts_that_could_not_be_written_are_written_later() {
    let dir = TestDir::new();
    crashes(&dir, "g");
    let (target, options) = (plain("bugs.c", ""), "-j 1 --minimize 0");
    triage(&dir, options, &target).says("1 bug in 2 crash files");
    let id = report(&dir)["bugs"][0]["id"].as_str().unwrap().to_owned();
    let facts = format!("out/triage/{id}/bug.json");
    fs::remove_dir_all(dir.path("out")).unwrap();
    // What is in the way takes the part of a disk that is full.
    dir.write(&format!("{facts}/x"), "");
    let job = dir.ffuzz(&format!("triage -o out {options} crashes")).arg("--").arg(&target);
    job.env("AFL_QUIET", "1").run().refused(1, "cannot write", "");
    fs::remove_dir_all(dir.path(&facts)).unwrap();
    triage(&dir, options, &target).says("2 crash files, 2 of them known");
    assert!(dir.path(&facts).is_file() && report(&dir)["bugs"][0]["minimized_from"].is_string());
}

#[test]
fn file_names_that_are_not_utf8_work() {
    let dir = TestDir::new();
    let name = |bytes: &[u8]| dir.path("crashes").join(OsString::from_vec(bytes.to_vec()));
    fs::create_dir(dir.path("crashes")).unwrap();
    // With a replacement character in its place both would be the same.
    fs::write(name(b"a\xff"), "o1 and more").unwrap();
    fs::write(name(b"a\xfe"), "w2 and more").unwrap();
    fs::write(name(b"a\\xff"), "x").unwrap();
    triage(&dir, "", &asan()).says("2 bugs in 3 crash files").says("1 file did not crash again");
    for (function, input) in [("read_behind", "o"), ("write_behind", "w")] {
        let folder = bug_folder(&dir, function);
        assert_eq!(fs::read_to_string(folder.join("minimized")).unwrap(), input);
    }
    let report = report(&dir);
    let paths = report["crashes"].as_array().unwrap().iter().map(|crash| &crash["path"]);
    let mut paths: Vec<&str> =
        paths.map(|path| path.as_str().unwrap().rsplit('/').next().unwrap()).collect();
    paths.sort();
    assert_eq!(paths, ["a\\\\xff", "a\\xfe", "a\\xff"]);
    triage(&dir, "", &asan()).says("3 of them known");
}

#[test]
fn what_a_target_prints_takes_bounded_room() {
    let dir = TestDir::new();
    crashes(&dir, "pu");
    triage(&dir, "-n 1 --minimize 0", &asan());
    assert_eq!(both_of_each(&dir), ["talk_bytes", "talk_much"]);
    let folder = bug_folder(&dir, "talk_much");
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(text("stdout.txt").starts_with("first words\nxxx"));
    assert!(text("stdout.txt").contains(" bytes left out]\n"));
    assert!(text("stderr.txt").contains("last words\n"), "the end is kept");
    assert!(text("stderr.txt").len() < 1 << 20);
    let said = fs::read(bug_folder(&dir, "talk_bytes").join("stderr.txt")).unwrap();
    assert!(String::from_utf8(said).unwrap().contains("caf\u{fffd} \u{fffd} end"));
}

/// 'h' crashes unless somebody looks, 'a' in any case.
const SHY: &str = "#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n\
    static int is_traced(void) { char line[256]; int pid = 0;\n\
      FILE *status = fopen(\"/proc/self/status\", \"r\");\n\
      while (status && fgets(line, sizeof line, status)) sscanf(line, \"TracerPid: %d\", &pid);\n\
      return pid != 0; }\n\
    int main(void) { int c = getchar(); if (c == 'a' || (c == 'h' && !is_traced())) abort();\n\
      return 0; }\n";

#[test]
fn a_crash_that_does_not_happen_under_a_debugger_is_a_bug() {
    let dir = TestDir::new();
    let source = dir.write("shy.c", SHY);
    let target = plain(source.to_str().unwrap(), "");
    crashes(&dir, "h");
    triage(&dir, "-j 1", &target).says("1 bug in 2 crash files");
    let bug = report(&dir)["bugs"][0].clone();
    assert_eq!((&bug["crashes"], &bug["runs"]), (&6.into(), &6.into()), "{bug:#}");
    assert_eq!((&bug["signal"], &bug["minimized_size"]), (&"SIGABRT".into(), &1.into()));
    // Also where every run has been traced so far.
    let dir = TestDir::new();
    crashes(&dir, "ah");
    dir.write("crashes/x", "fine");
    triage(&dir, "-j 1", &target).says("2 bugs in 5 crash files").says("1 file did not crash");
}

#[test]
fn hangs_children_and_bugs_that_come_and_go() {
    let dir = TestDir::new();
    crashes(&dir, "hc");
    dir.write("crashes/fine", "x");
    dir.write("crashes/r", "r");
    // Nothing is left of the children: `run` looks.
    triage(&dir, "-t 500 -n 30 --minimize 0", &plain("bugs.c", ""))
        .says("2 bugs in 6 crash files")
        .says("1 file did not crash again")
        .says("2 files took too long");
    let report = report(&dir);
    let states = report["crashes"].as_array().unwrap().iter().map(|crash| {
        (crash["path"].as_str().unwrap().to_owned(), crash["state"].as_str().unwrap().to_owned())
    });
    let states: BTreeMap<String, String> = states.collect();
    let of = |name: &str| states.iter().find(|(path, _)| path.ends_with(name)).unwrap().1.as_str();
    assert_eq!([of("/h1"), of("/fine"), of("/r")], ["times_out", "no_crash", "crashes"]);
    let rare = report["bugs"].as_array().unwrap().iter().find(|bug| bug["files"] == 1).unwrap();
    let crashes = rare["crashes"].as_u64().unwrap();
    assert!(rare["runs"] == 30 && (1..30).contains(&crashes), "{rare:#}");
}

#[test]
fn a_sanitizer_build_runs_first() {
    let dir = TestDir::new();
    // 'g' aborts in both; what is read behind a block is no crash without a sanitizer.
    crashes(&dir, "og");
    let options = format!("-w {}", asan().display());
    triage(&dir, &options, &plain("bugs.c", "")).says("2 bugs in 4 crash files");
    assert_eq!(both_of_each(&dir), ["give_up", "read_behind"]);
    let dir = TestDir::new();
    crashes(&dir, "g");
    let options = format!("-w {}", cxx("-fsanitize=address").display());
    triage(&dir, &options, &plain("bugs.c", "")).says("(not with -w)");
    assert_eq!(report(&dir)["bugs"][0]["only_without_sanitizer"], true);
}

#[test]
fn targets_with_loops_and_shared_memory_are_run_by_hand() {
    for (flags, words) in [
        ("-DSHARED", ""),
        ("-DDRIVER -fsanitize=fuzzer", ""),
        ("-DDRIVER -fsanitize=fuzzer", "@@"),
        ("", "@@"),
    ] {
        let dir = TestDir::new();
        crashes(&dir, "nw");
        let target = target("bugs.c", &format!("{flags} -fsanitize=address"));
        let job = dir.ffuzz("triage -o out crashes").arg("--").arg(target).words(words);
        job.run().expect(0).says("2 bugs in 4 crash files");
        assert_eq!(both_of_each(&dir), ["poke_null", "write_behind"], "{flags} {words}");
    }
}

#[test]
fn what_is_known_is_not_run_again_also_after_a_kill() {
    let dir = TestDir::new();
    // Each of them takes a second.
    for number in 0..6 {
        dir.write(&format!("crashes/{number}"), format!("h{number}"));
    }
    dir.write("crashes/n", "n1");
    let start =
        || dir.ffuzz("triage -j 1 -t 1000 -o out crashes").arg("--").arg(plain("bugs.c", ""));
    let running = start().start();
    wait_until("a report of some files", || {
        fs::read(dir.path("out/triage/report.json")).is_ok_and(|text| {
            let report: Value = serde_json::from_slice(&text).unwrap();
            report["crashes"].as_array().unwrap().len() >= 2
        })
    });
    running.signal(Signal::SIGKILL);
    // Nothing of the target is left.
    running.finish();
    let known = report(&dir)["crashes"].as_array().unwrap().len();
    let done = start().run().expect(0).says(&format!("7 crash files, {known} of them known"));
    assert!(done.out.contains("1 bug in 7 crash files"), "{}", done.out);
    start().run().expect(0).says("7 of them known");
    // Another content is another crash, another program another report.
    dir.write("crashes/0", "n3");
    start().run().expect(0).says("6 of them known").says("1 bug in 7 crash files");
    triage(&dir, "-t 300 -n 1", &asan()).does_not_say("known");
}

#[test]
fn a_folder_of_afl_fuzz_is_triaged_by_its_own_command_line() {
    need("afl-fuzz");
    let dir = TestDir::with_seed("PAAA");
    let job = dir.program("afl-fuzz").words("-i in -o out -V 3 -t 2000 --");
    let job = job.arg(afl_target("crashing.c", "")).env("AFL_SKIP_CPUFREQ", "1");
    job.env("AFL_NO_UI", "1").run().expect(0);
    let (before, crashes) = (dir.snapshot("out/default"), dir.crashes());
    assert!(!crashes.is_empty());
    let words = format!("1 bug in {} crash file", crashes.len());
    dir.ffuzz("triage -o out").run().expect(0).says(&words);
    assert_eq!(dir.snapshot("out/default"), before);

    let Some(server) = fuzzmanager::Server::start() else { return };
    server.configure(&dir);
    let job = dir.ffuzz("triage -o out --collector");
    job.env("FM_CONFIG_PATH", dir.path("fm.conf").to_str().unwrap()).run().expect(0).says(&words);
    assert_eq!(server.crashes().len(), 1);
    for crash in crashes {
        assert!(dir.path(&format!("out/default/crashes/{crash}.submitted")).exists(), "{crash}");
    }
}

// --- beside a campaign

fn campaign(dir: &TestDir, options: &str) -> common::Job {
    dir.fuzz_and_triage(options, &target("crashing.c", ""), "")
}

/// Runs a campaign until its triage knows a bug, however little of a core that gets, and ends it.
fn until_a_bug(dir: &TestDir, job: common::Job) -> Finished {
    let running = job.start();
    wait_until("a bug", || in_the_report(dir, "bugs") > 0);
    running.signal(Signal::SIGINT);
    running.finish().expect(0).says("(1 bug)")
}

#[test]
fn a_short_campaign_ends_with_its_report() {
    let dir = TestDir::with_seed("PAAA");
    let running = campaign(&dir, "-V 600").start();
    // The lowest priority gets little on a busy machine.
    wait_until("all crashes in the report", || {
        let reported = in_the_report(&dir, "crashes");
        reported > 1 && reported == dir.crashes().len()
    });
    running.signal(Signal::SIGINT);
    let done = running.finish().expect(0);
    let summary = done.out.split("+++ Testing aborted").nth(1).unwrap();
    assert!(summary.contains(&format!("{} crashes (1 bug)", dir.crashes().len())), "{summary}");
    assert_eq!(dir.stat("saved_bugs"), 1);
    assert_eq!(report(&dir)["crashes"].as_array().unwrap().len(), dir.crashes().len());
    let names = dir.names("out/triage");
    assert!(names.contains(&"log".into()) && dir.text("out/triage/log").is_empty(), "{names:?}");
}

/// Extension, file, variables and libraries of the campaign are also those of the script, and of a triage in another
/// shell.
#[test]
fn a_bug_is_reproduced_as_the_campaign_ran_the_target() {
    let target = target("placed.c", "");
    let library = plain("placed-lib.c", "-shared -fPIC");
    let library = library.to_str().unwrap();
    let ways = [
        ("extension", "-e png", "@@", ("AFL_NO_UI", "1")),
        ("file", "-f work.in", "", ("AFL_NO_UI", "1")),
        ("variable", "", "@@", ("AFL_TARGET_ENV", "MODE='on now'")),
        ("library", "", "@@", ("AFL_PRELOAD", library)),
    ];
    for (how, options, file, (name, value)) in ways {
        let dir = TestDir::with_seed("A");
        let words = format!("{how} {file}");
        let job = dir.fuzz_and_triage(&format!("-s 1 -V 600 {options}"), &target, &words);
        until_a_bug(&dir, job.env(name, value));
        let reproduced = |dir: &TestDir| {
            let mut script = Command::new(bug_folder(dir, "main").join("reproduce.sh"));
            let ended = script.current_dir("/").output().unwrap();
            ended.status.signal() == Some(nix::libc::SIGABRT)
        };
        assert!(reproduced(&dir), "{how}");
        fs::remove_dir_all(dir.path("out/triage")).unwrap();
        dir.ffuzz("triage -o out").run().expect(0).says("1 bug in 1 crash file");
        assert!(reproduced(&dir), "{how}");
    }
}

#[test]
fn triage_can_be_disabled() {
    let dir = TestDir::with_seed("PAAA");
    let job = campaign(&dir, "-V 2").env("FFUZZ_NO_TRIAGE", "1");
    job.run().expect(0).says("crashes, 0 hangs");
    assert!(!dir.path("out/triage").exists());
}

#[test]
fn triage_ends_with_a_killed_campaign() {
    let dir = TestDir::with_seed("PAAA");
    let running = campaign(&dir, "-V 600").start();
    wait_until("a bug", || {
        !fs::read(dir.path("out/triage/report.json")).unwrap_or_default().is_empty()
    });
    running.signal(Signal::SIGKILL);
    // Waits until no process is left; one that ends may still have the lock for a moment.
    running.finish();
    wait_until("the lock", || {
        let lock = fs::File::open(dir.path("out/triage/.lock")).unwrap();
        Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_ok()
    });
    // The next one goes on with the report.
    dir.ffuzz("triage -o out").run().expect(0).says("1 bug in ");
}

#[test]
fn workers_share_one_triage() {
    let dir = TestDir::with_seed("PAAA");
    let running = campaign(&dir, "-j 2 -V 600").start();
    wait_until("a report", || dir.path("out/triage/report.json").exists());
    let read = |pid: &str, file: &str| {
        fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    let follows = |pid: &str| read(pid, "cmdline").contains("\0--follow\0");
    // A child that has not become the target yet looks like the triage that it comes from.
    let is_child = |pid: &str| {
        let status = read(pid, "status");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_none_or(|parent| follows(parent.trim()))
    };
    let processes = running.processes().into_iter().map(|pid| pid.to_string());
    assert_eq!(processes.filter(|pid| follows(pid) && !is_child(pid)).count(), 1);
    running.signal(Signal::SIGINT);
    let done = running.finish().expect(0);
    assert!(done.out.contains(" crashes (1 bug)"), "{}", done.out);
}

#[test]
fn minimization_cut_short_by_the_end_is_done_later() {
    let dir = TestDir::new();
    // A hundred runs take seconds, and more than that are needed.
    dir.write("out/default/crashes/id:0", format!("{}a", "x".repeat(3000)));
    let script = "case `cat` in *a*) sleep 0.05; kill -SEGV $$ ;; esac";
    dir.write("out/default/cmdline", format!("/bin/sh\n-c\n{script}\n"));
    let words = ["triage", "--follow", "--minimize", "600", "-o", "out"];
    let mut follower = Command::new(env!("CARGO_BIN_EXE_ffuzz"))
        .args(words)
        .current_dir(dir.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let bug = || {
        let text = fs::read(dir.path("out/triage/report.json")).ok()?;
        let report: Value = serde_json::from_slice(&text).ok()?;
        Some(report["bugs"][0].clone()).filter(Value::is_object)
    };
    wait_until("a bug", || bug().is_some());
    // Its end would mean that the campaign is gone.
    let mut line = follower.stdin.take().unwrap();
    line.write_all(b"finish 60000\n").unwrap();
    assert!(follower.wait().unwrap().success());
    let left = bug().unwrap();
    assert!(left["minimized_from"].is_null() && left["minimized_size"].is_u64(), "{left:#}");
    let folder = dir.path("out/triage").join(left["id"].as_str().unwrap());
    assert!(folder.join("bug.json").exists());
    dir.ffuzz("triage --minimize 1 -o out").run().expect(0).says("1 crash files, 1 of them known");
    assert!(bug().unwrap()["minimized_from"].is_string());
}

// --- to the crash server

#[test]
fn each_bug_is_delivered_once_by_triage_and_by_a_campaign() {
    let Some(server) = fuzzmanager::Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    let config = dir.path("fm.conf").display().to_string();
    crashes(&dir, "og");
    dir.write("crashes/fine", "x");
    for _ in 0..2 {
        // One after the other, so that it is known which file of a bug is the first.
        let job = dir.ffuzz("triage --collector -j 1 -o out crashes");
        let job = job.env("FM_CONFIG_PATH", &config).arg("--").arg(asan());
        job.run().expect(0).says("2 reports sent, 0 waiting, 0 refused");
    }
    let known = server.crashes();
    assert_eq!(known.len(), 2, "{known:#?}");
    let sent =
        |key: &str| -> Value { serde_json::from_str(known[0][key].as_str().unwrap()).unwrap() };
    assert!(sent("env")["ASAN_OPTIONS"].as_str().unwrap().contains("symbolize=1"), "{known:#?}");
    let (file, rate) = (sent("metadata")["file"].clone(), sent("metadata")["reproduced"].clone());
    assert!(["o1", "g1"].contains(&file.as_str().unwrap()) && rate == "1 of 1", "{known:#?}");
    let names = dir.names("crashes");
    assert!(names.contains(&"o1.submitted".into()) && names.contains(&"g2.submitted".into()));
    assert!(names.contains(&"fine.failed".into()), "{names:?}");
    dir.write("in/seed", "PAAA");
    let job = dir.fuzz_and_triage("-V 600 --collector", &target("crashing.c", ""), "");
    let running = job.env("FM_CONFIG_PATH", &config).start();
    wait_until("its report", || server.crashes().len() == 3);
    running.signal(Signal::SIGINT);
    running.finish().expect(0).says("(1 bug)");
    dir.ffuzz("triage --collector -o out").env("FM_CONFIG_PATH", &config).run().expect(0);
    assert_eq!(server.crashes().len(), 3);
}

#[test]
fn a_bug_is_reported_when_its_first_file_was_run() {
    let (dir, server, config) = with_a_server();
    for name in ["g1", "g2", "g3", "n1"] {
        dir.write(&format!("crashes/{name}"), name);
    }
    // Notes before each run how many reports there are.
    let (log, spool) = (dir.path("log"), dir.path("out/triage/spool"));
    let script = format!(
        "echo `cat $1` `ls {0}/waiting {0}/sent | grep -c json` >> {1}; exec {2} $1",
        spool.display(),
        log.display(),
        plain("bugs.c", "").display()
    );
    let job = dir.ffuzz("triage --collector --minimize 1 -j 1 -o out crashes");
    let job = job.env("FM_CONFIG_PATH", &config).words("-- /bin/sh -c").arg(&script);
    let job = job.words("sh @@");
    job.run().expect(0).says("2 reports sent");
    assert_eq!(server.requests().len(), 2);
    let log = dir.text("log");
    let reports = |line: &str| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    let of = |word: &str| log.lines().filter(|line| line.starts_with(word)).collect::<Vec<_>>();
    // The first file of the other bug does not wait for all runs of the first bug's files,
    assert!(of("g2").iter().all(|line| reports(line) >= 1), "{log}");
    let first_n = log.lines().position(|line| line.starts_with("n1")).unwrap();
    let later_g = log.lines().skip(first_n).filter(|line| line.starts_with("g2")).count();
    assert!(later_g > 0, "{log}");
    // and both are reported before their rates are known and inputs are minimized.
    let after_n = log.lines().skip(first_n).skip_while(|line| line.starts_with("n1"));
    assert!(after_n.clone().count() > 0 && after_n.clone().all(|line| reports(line) >= 2), "{log}");
    let rates = report(&dir)["crashes"].clone();
    let rates = rates.as_array().unwrap().iter().map(|crash| crash["runs"].as_u64().unwrap());
    assert_eq!(rates.collect::<Vec<_>>(), [3; 4]);
}

#[test]
fn a_rare_crash_is_rerun_until_it_happens() {
    let dir = TestDir::new();
    dir.write("crashes/rare", "x");
    let runs = dir.path("runs");
    let script = format!(
        "echo >> {0}; [ $((`wc -l < {0}` % 7)) = 0 ] || exit 0; kill -SEGV $$",
        runs.display()
    );
    let job = dir.ffuzz("triage -j 1 --minimize 0 -t 60000 -o out crashes");
    let job = job.words("-- /bin/sh -c").arg(&script);
    job.run().expect(0).says("1 bug in 1 crash file").does_not_say("did not crash again");
    let bug = report(&dir)["bugs"][0].clone();
    assert_eq!((&bug["crashes"], &bug["signal"]), (&1.into(), &"SIGSEGV".into()), "{bug:#}");
    let folder = dir.path("out/triage").join(bug["id"].as_str().unwrap());
    let said = fs::read_to_string(folder.join("debugger.txt")).unwrap();
    assert!(said.contains("received signal SIGSEGV"), "{said}");
}

/// A run with names shows nothing: those of the first run's addresses are found without it.
#[test]
fn a_crash_that_comes_once_has_names() {
    let dir = TestDir::new();
    let source = dir.write(
        "once.c",
        "#include <fcntl.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         __attribute__((noinline)) void only_once(char *block) { block[4] = 1; }\n\
         int main(void) { char c; if (read(0, &c, 1) < 1) return 1;\n\
         if (open(getenv(\"MARK\"), O_CREAT | O_EXCL | O_RDWR, 0600) < 0) return 0;\n\
         only_once(malloc(4)); return 0; }\n",
    );
    dir.write("crashes/x", "x");
    let target = plain(source.to_str().unwrap(), "-g -O0 -fsanitize=address");
    let job = dir.ffuzz("triage -j 1 -n 1 --minimize 0 -o out crashes --").arg(target);
    let mark = dir.path("mark").display().to_string();
    job.env("MARK", &mark).run().expect(0).says("1 bug in 1 crash file");
    let bug = report(&dir)["bugs"][0].clone();
    assert_eq!(bug["frames"][0], "only_once", "{bug:#}");
    assert!(bug["place"].as_str().unwrap().ends_with("once.c:4"), "{bug:#}");
    assert!(bug["title"].as_str().unwrap().contains("[@ only_once]"), "{bug:#}");
}

#[test]
fn a_signal_that_a_sanitizer_caught_is_named_and_options_do_not_contradict() {
    let dir = TestDir::new();
    let source = dir.write(
        "share.c",
        "#include <unistd.h>\nint main(void) { char c = 1; if (read(0, &c, 1) < 0) return 1;\n\
         volatile int parts = c - 'x'; return 1000 / parts; }\n",
    );
    dir.write("crashes/x", "x");
    triage(&dir, "", &plain(source.to_str().unwrap(), "-fsanitize=address"));
    let bug = report(&dir)["bugs"][0].clone();
    assert_eq!(bug["signal"], "SIGFPE", "{bug:#}");
    let folder = dir.path("out/triage").join(bug["id"].as_str().unwrap());
    let script = fs::read_to_string(folder.join("reproduce.sh")).unwrap();
    let lists = script.lines().filter_map(|line| line.strip_prefix("export "));
    let lists: BTreeMap<&str, &str> = lists
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| name.ends_with("_OPTIONS"))
        .collect();
    assert!(lists.contains_key("ASAN_OPTIONS"), "{script}");
    assert!(!lists.contains_key("MSAN_OPTIONS") && !lists.contains_key("TSAN_OPTIONS"), "{script}");
    for (name, list) in lists {
        let options =
            list.trim_matches('\'').split(':').filter_map(|option| option.split('=').next());
        let mut names: Vec<&str> = options.collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{name}: {list}");
    }
}

#[test]
fn a_crash_that_needs_other_inputs_is_marked_and_repeated() {
    for (flags, words) in
        [("-DSHARED", ""), ("", ""), ("-DNAMED", "@@"), ("-DDRIVER -fsanitize=fuzzer", "")]
    {
        needs_others(&target("before.c", flags), words, flags, Some(6));
    }
}

#[test]
fn so_is_one_of_a_target_of_afl() {
    for (flags, words) in [("-DSHARED", ""), ("", ""), ("-DNAMED", "@@")] {
        // Only who traces it can hand over the next input.
        needs_others(&afl_target("before.c", flags), words, flags, None);
    }
    let flags = "-DDRIVER -fsanitize=fuzzer";
    needs_others(&afl_target("before.c", flags), "", flags, Some(6));
}

/// As far as that version was built for the benchmarks: Debian's is older.
#[test]
fn so_is_one_of_a_target_of_afl_4_40() {
    let compiler = common::repository("target/bench-peers/aflplusplus-4.40c/afl-clang-fast");
    if !compiler.exists() {
        return common::skip("AFL++ 4.40c is not built (benches/peers.sh)");
    }
    for (flags, words) in [("-DSHARED", ""), ("", ""), ("-DNAMED", "@@")] {
        let target = common::compiled(compiler.to_str().unwrap(), "before.c", flags);
        needs_others(&target, words, flags, None);
    }
}

/// Outside a fork server the loop of AFL++ 4.20 and newer takes one input.
#[test]
fn so_is_one_whose_loop_needs_a_fork_server() {
    for (number, words) in ["", "@@"].into_iter().enumerate() {
        let dir = TestDir::new();
        for (name, input) in [
            ("crashes/id:000000,sig:06,src:000000", "Bad"),
            ("crashes/id:000001,sig:11,src:000000", "C"),
            ("before_crashes/RECORD:000000,cnt:000000", "x"),
            ("before_crashes/RECORD:000000,cnt:000001", "A"),
            ("before_crashes/RECORD:000000,cnt:000002", "Bad"),
        ] {
            dir.write(&format!("out/default/{name}"), input);
        }
        // Its report is a sanitizer's the second time.
        let flags = ["", "-g -fsanitize=address"][number];
        let target = plain("greeted.c", flags);
        let job = dir.ffuzz("triage -o out -n 2 --").arg(target).words(words);
        let done = job.run().expect(0).says("2 bugs in 2 crash files");
        assert!(done.out.contains("before it in the same process"), "{flags}: {}", done.out);
        let folder = bug_folder(&dir, "needs_another");
        let facts: Value =
            serde_json::from_slice(&fs::read(folder.join("bug.json")).unwrap()).unwrap();
        let counts = (&facts["runs"], &facts["crashes"], &facts["signal"]);
        assert_eq!(counts, (&2.into(), &2.into(), &"SIGABRT".into()), "{facts:#}");
        assert_eq!(fs::read(folder.join("minimized")).unwrap()[0], b'B');
        let said = fs::read_to_string(folder.join("stderr.txt")).unwrap();
        assert!(!said.contains("AFL++ tool"), "{said}");
        bug_folder(&dir, "needs_none");
    }
}

/// `signal`: how `reproduce.sh` ends that gives the process what it needs.
fn needs_others(target: &Path, words: &str, flags: &str, signal: Option<i32>) {
    let dir = TestDir::with_seed("AAAA");
    let job = dir.fuzz("-s 7 -E 30000", target, words);
    let done = job.run().expect(0);
    assert!(done.out.contains(" crashes, 1 did not repeat alone"), "{flags}: {}", done.out);
    let crashes = dir.crashes();
    let first = |name: &String| dir.read(&format!("out/default/crashes/{name}"))[0];
    let needy = crashes.iter().find(|name| first(name) == b'B').unwrap();
    let number = common::id_of(needy);
    let file = |end: &str| dir.path(&format!("out/default/before_crashes/RECORD:{number:06}{end}"));
    let before = fs::read(file(",cnt:000000")).unwrap();
    assert_eq!(before[0], b'A', "{flags}");
    let said = fs::read_to_string(file(".txt")).unwrap();
    assert!(said.starts_with("it crashes in a process that gets these "), "{flags}: {said}");
    // afl-fuzz would not remove a folder of crashes that holds others' files.
    let names = dir.names("out/default/crashes");
    assert!(!names.iter().any(|name| name.starts_with("RECORD:")), "{flags}: {names:?}");
    let names = dir.names("out/default/before_crashes");
    let records = names.iter().filter(|name| name.starts_with("RECORD:"));
    let own = format!("RECORD:{number:06}");
    assert!(records.clone().all(|name| name.starts_with(&own)), "{flags}: {names:?}");
    // The last of them is the crash.
    let last = records.filter(|name| !name.ends_with(".txt")).max().unwrap();
    assert_eq!(dir.read(&format!("out/default/before_crashes/{last}"))[0], b'B');

    let done = dir.ffuzz("triage -o out").run().expect(0).says("2 bugs in ");
    assert!(done.out.contains("before it in the same process"), "{flags}: {}", done.out);
    let folder = bug_folder(&dir, "needs_another");
    use std::os::unix::process::ExitStatusExt;
    let input = fs::read(folder.join("input")).unwrap();
    let run = Command::new(folder.join("reproduce.sh")).output().unwrap();
    assert_eq!(run.status.signal(), signal, "{flags}: {run:?}");
    if signal.is_none() {
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(1) && said.contains("ffuzz-cc"), "{run:?}");
    }
    assert_eq!(fs::read(folder.join("input")).unwrap(), input, "{flags}");
    assert!(fs::read(folder.join("minimized")).unwrap().len() <= 4);
    let other = bug_folder(&dir, "needs_none");
    assert!(!other.join("before,cnt:000000").exists(), "{flags}");
    assert_eq!(Command::new(other.join("reproduce.sh")).status().unwrap().signal(), Some(11));
}

#[test]
fn input_files_hold_no_bytes_of_earlier_inputs() {
    for (flags, variable) in [("-DLOOP", "X"), ("", "X"), ("", "FFUZZ_NO_SNAPSHOT")] {
        let dir = TestDir::with_seed("A");
        dir.write("in/long", "AZZZZZZZZZZZZZZZZ");
        let job =
            dir.fuzz_and_triage("-s 7 -E 20000", &target("tail.c", flags), "").env(variable, "1");
        job.run().expect(0).says("findings   : 0 crashes, 0 hangs");
    }
}

/// Makes a bucket of each bug's signature; each gets exactly one crash.
fn make_buckets(server: &fuzzmanager::Server, dir: &TestDir) {
    for bug in report(dir)["bugs"].as_array().unwrap() {
        let signature = bug["signature"].to_string();
        let bucket = json!({ "signature": signature, "shortDescription": bug["title"],
            "frequent": false, "permanent": false, "doNotReduce": false });
        let made = server.post("buckets/?save=true&reassign=true", &bucket);
        assert_eq!(made["inListCount"], 1, "{bug:#}\n{made:#}");
    }
}

#[test]
fn buckets_are_filled_despite_interruptions() {
    let Some(mut server) = fuzzmanager::Server::start() else { return };
    let (first, second) = (TestDir::new(), TestDir::new());
    let targets = [(&first, asan(), "owfn"), (&second, cxx("-fsanitize=address"), "tse")];
    let start = |dir: &TestDir, target: &Path| {
        let job = dir.ffuzz("triage --collector -n 1 -j 1 -o out crashes").arg("--").arg(target);
        job.env("FM_CONFIG_PATH", dir.path("fm.conf").to_str().unwrap()).start()
    };
    let count = |dir: &TestDir, part: &str| {
        let names = fs::read_dir(dir.path(&format!("out/triage/spool/{part}")));
        let names = names.into_iter().flatten().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().ends_with(".json")).count()
    };
    for (dir, target, letters) in &targets {
        server.configure(dir);
        crashes(dir, letters);
        // Killed once with the server there, and once while it is away.
        let killed = start(dir, target);
        wait_until("a report at the server", || count(dir, "sent") > 0);
        killed.signal(Signal::SIGKILL);
        killed.finish();
        server.stop();
        let killed = start(dir, target);
        wait_until("all reports", || count(dir, "sent") + count(dir, "waiting") >= letters.len());
        killed.signal(Signal::SIGKILL);
        killed.finish();
        server.resume();
        let words = format!("{} reports sent, 0 waiting, 0 refused", letters.len());
        start(dir, target).finish().expect(0).says(&words);
    }
    assert_eq!(server.crashes().len(), 7);
    make_buckets(&server, &first);
    make_buckets(&server, &second);
    let crashes = server.crashes();
    let mut buckets: Vec<u64> =
        crashes.iter().map(|crash| crash["bucket"].as_u64().unwrap()).collect();
    buckets.sort_unstable();
    buckets.dedup();
    assert_eq!(buckets.len(), 7, "{crashes:#?}");
}

/// A folder whose server stores whatever it is given, and the path of its configuration.
fn with_a_server() -> (TestDir, fuzzmanager::FalseServer, String) {
    let stores = fuzzmanager::Answer::Say(
        "201 Created\r\nContent-Type: application/json",
        r#"{"id":7,"bucket":null}"#,
    );
    let server = fuzzmanager::FalseServer::start(vec![stores]);
    let dir = TestDir::with_seed("PAAA");
    server.configure(&dir);
    dir.write("sig/.refreshed", "");
    let config = dir.path("fm.conf").display().to_string();
    (dir, server, config)
}

#[test]
fn what_another_tool_has_delivered_is_not_delivered_again() {
    let (dir, server, config) = with_a_server();
    crashes(&dir, "og");
    dir.write("crashes/o2.submitted", "");
    let run = || {
        let job = dir.ffuzz("triage --collector --minimize 0 -o out crashes").arg("--").arg(asan());
        job.env("FM_CONFIG_PATH", &config).run().expect(0)
    };
    run().says("1 reports sent");
    assert!(server.requests()[0].contains("give_up") && dir.path("crashes/o1.submitted").exists());
    // Its own marks are as good once the folder of the report is gone,
    fs::remove_dir_all(dir.path("out")).unwrap();
    run().says("0 reports sent");
    // and a new bug in a file that was delivered as another one is news.
    dir.write("crashes/g1", "w1");
    dir.write("crashes/g2", "w2");
    run().says("1 reports sent");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_bug_without_its_input_is_not_reported() {
    let (dir, server, config) = with_a_server();
    crashes(&dir, "og");
    let words = "--minimize 0";
    triage(&dir, words, &asan()).says("2 bugs in 4 crash files");
    let folder = bug_folder(&dir, "give_up");
    let input = fs::read(folder.join("input")).unwrap();
    fs::remove_file(folder.join("input")).unwrap();
    let run = || {
        let job = dir.ffuzz(&format!("triage --collector {words} -o out crashes")).arg("--");
        job.arg(asan()).env("FM_CONFIG_PATH", &config).run().expect(0)
    };
    run().says("a bug is not reported: cannot read ").says("1 reports sent");
    assert!(!server.requests()[0].contains("give_up"));
    fs::write(folder.join("input"), input).unwrap();
    run().does_not_say("not reported");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn more_time_and_more_runs_correct_the_report() {
    let (dir, server, config) = with_a_server();
    dir.write("crashes/slow", "slow");
    dir.write("crashes/rare", "rare");
    let runs = dir.path("runs").display().to_string();
    // One crashes after a second, the other one in its 60th run.
    let script = format!(
        "read -r word; case $word in slow) sleep 1 ;; rare) echo >> {runs}; \
         [ `wc -l < {runs}` -ge 60 ] || exit 0 ;; esac; kill -SEGV $$"
    );
    let run = |options: &str| {
        let job = dir.ffuzz(&format!("triage --collector --minimize 0 -o out {options} crashes"));
        let job = job.env("FM_CONFIG_PATH", &config).words("-- /bin/sh -c").arg(&script);
        job.run().expect(0)
    };
    run("-n 1 -t 300").says("0 bugs in 2 crash files").says("1 file took too long");
    assert!(dir.path("crashes/slow.failed").exists() && dir.path("crashes/rare.failed").exists());
    run("-n 1 -t 200").says("2 of them known");
    run("-n 1 -t 60000").says("1 of them known").says("in 2 crash files").says("1 file did not");
    assert_eq!(report(&dir)["bugs"][0]["files"], 1);
    run("-n 100 -t 60000").says("1 of them known").does_not_say("1 file did not crash");
    for name in ["slow", "rare"] {
        assert!(dir.path(&format!("crashes/{name}.submitted")).exists(), "{name}");
        assert!(!dir.path(&format!("crashes/{name}.failed")).exists(), "{name}");
    }
    assert!(!server.requests().is_empty());
}

#[test]
fn a_server_and_a_file_beside_the_target_are_enough() {
    let (dir, server, config) = with_a_server();
    let target = dir.path("Parser");
    fs::copy(self::target("crashing.c", ""), &target).unwrap();
    let run = || {
        until_a_bug(
            &dir,
            dir.fuzz_and_triage("-V 600", &target, "").env("FM_CONFIG_PATH", &config),
        );
    };
    run();
    assert_eq!(server.requests().len(), 0);
    fs::remove_dir_all(dir.path("out")).unwrap();
    let own = "[Main]\nproduct = Parser\nproduct_version = 7\nplatform = x86-64\nos = linux\n\
        [Metadata]\nteam = blue\n";
    dir.write("Parser.fuzzmanagerconf", own);
    run();
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    for part in ["product=parser&", "product_version=7&", "team", "blue", "testcase=", "tool=ffuzz"]
    {
        assert!(requests[0].contains(part), "{part}: {}", requests[0]);
    }
}

#[test]
fn an_absent_or_refusing_server_does_not_stop_triage() {
    let unauthorized = fuzzmanager::Answer::Say("401 Unauthorized", "");
    let refusing = fuzzmanager::FalseServer::start(vec![unauthorized]);
    for (port, words) in [
        (common::free_port(), "triage: cannot reach http://127.0.0.1:"),
        (refusing.port, "answers 401: the token is missing or wrong (set serverauthtoken to "),
    ] {
        let dir = TestDir::with_seed("PAAA");
        fuzzmanager::configure(&dir, port, "very-secret", "http");
        dir.write("sig/.refreshed", "");
        let config = dir.path("fm.conf").display().to_string();
        let job = campaign(&dir, "-V 600 --collector").env("FM_CONFIG_PATH", &config);
        let done = until_a_bug(&dir, job).says(words).does_not_say("very-secret");
        // The end names them, and what to do.
        done.says("1 not delivered yet: ffuzz-collector --deliver /").says("/out/triage/spool\n");
        let waiting = dir.names("out/triage/spool/waiting");
        assert!(waiting.iter().any(|name| name.ends_with(".json")), "{waiting:?}");
    }
}

#[test]
fn a_campaign_fetches_signatures_and_does_not_send_frequent_bugs() {
    let Some(server) = fuzzmanager::Server::start() else { return };
    let dir = TestDir::with_seed("PAAA");
    server.configure(&dir);
    let config = dir.path("fm.conf").display().to_string();
    let campaign = || {
        let job = dir.fuzz_and_triage("-V 600 --collector", &target("crashing.c", ""), "");
        until_a_bug(&dir, job.env("FM_CONFIG_PATH", &config));
        dir.ffuzz("triage --collector -o out").env("FM_CONFIG_PATH", &config).run().expect(0)
    };
    campaign().says("1 reports sent");
    let bug = report(&dir)["bugs"][0].clone();
    let bucket = json!({ "signature": bug["signature"].to_string(), "shortDescription": "known",
        "frequent": true, "permanent": false, "doNotReduce": false });
    server.post("buckets/?save=true&reassign=true", &bucket);
    server.administer(&["export_signatures", "signatures.zip"]);
    fs::rename(dir.path("out"), dir.path("first")).unwrap();
    campaign().says("0 reports sent, 0 waiting, 0 refused, 1 skipped as frequent");
    assert_eq!(server.crashes().len(), 1);
    assert!(dir.names("sig").contains(&"1.signature".into()), "{:?}", dir.names("sig"));
}

/// Two hangs, in `spin` and in `wait`, each with other functions below.
const HANGS: &str = "#include <unistd.h>\n\
    __attribute__((noinline)) int odd(volatile int *n) { return ++*n; }\n\
    __attribute__((noinline)) int even(volatile int *n) { return odd(n) + odd(n); }\n\
    __attribute__((noinline)) int spin(volatile int *n) { for (;;) { odd(n); even(n); } }\n\
    __attribute__((noinline)) int wait(void) { for (;;) pause(); }\n\
    int main(void) { char c[4] = {0}; volatile int n = 0; if (read(0, c, 4) < 0) return 1;\n\
    if (c[0] == 's') return spin(&n) + 1; if (c[0] == 'w') return wait() + 1; return 0; }\n";

#[test]
fn hangs_can_be_reported_as_bugs_of_their_function() {
    let dir = TestDir::new();
    let source = dir.write("hangs.c", HANGS);
    let target = plain(source.to_str().unwrap(), "-O0");
    for (name, input) in [("id:0", "s1"), ("id:1", "s22"), ("id:2", "w"), ("id:3", "quick")] {
        dir.write(&format!("out/default/hangs/{name}"), input);
    }
    let triage = |words: &str| {
        let job = dir.ffuzz(&format!("triage -t 500 -j 1 -o out {words} --"));
        job.arg(&target).run().expect(0)
    };
    triage("").says("0 bugs in 0 crash files");
    triage("--report-hangs").says("2 bugs in 4 crash files").says("1 file did not crash again");
    let report = report(&dir);
    let bugs = report["bugs"].as_array().unwrap();
    let mut titles: Vec<&str> = bugs.iter().map(|bug| bug["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["[Non-crash bug] hang in spin", "[Non-crash bug] hang in wait"]);
    assert!(bugs.iter().all(|bug| bug["class"] == "hang"));
    let states = report["crashes"].as_array().unwrap().iter().map(|crash| crash["state"].as_str());
    assert_eq!(states.filter(|state| *state == Some("times_out")).count(), 3);
}

/// Functions whose names differ by a number alone.
#[test]
fn hangs_in_numbered_functions_are_two_bugs() {
    let dir = TestDir::new();
    let source = dir.write(
        "hangs.c",
        "#include <unistd.h>\nstatic volatile int n;\n\
         __attribute__((noinline)) void hang1(void) { for (;;) n++; }\n\
         __attribute__((noinline)) void hang2(void) { for (;;) n--; }\n\
         int main(void) { char c = 0; if (read(0, &c, 1) < 0) return 1;\n\
         if (c == '1') hang1(); else hang2(); return 0; }\n",
    );
    let target = plain(source.to_str().unwrap(), "-O0");
    for name in ["1", "2"] {
        dir.write(&format!("out/default/hangs/id:{name}"), name);
    }
    let job = dir.ffuzz("triage -t 500 -j 1 -o out --report-hangs --").arg(&target);
    job.run().expect(0).says("2 bugs in 2 crash files");
}

#[test]
fn a_hang_costs_one_run() {
    let dir = TestDir::new();
    let source = dir.write("hangs.c", HANGS);
    let target = plain(source.to_str().unwrap(), "-O0");
    dir.write("out/default/hangs/id:0", "s1");
    let runs = dir.path("runs").display().to_string();
    let script = format!("echo >> {runs}; exec \"$0\"");
    let job = dir.ffuzz("triage -t 500 -o out --report-hangs -- /bin/sh -c").arg(script);
    job.arg(target).run().expect(0).says("1 bug in 1 crash file");
    assert_eq!(dir.text("runs"), "\n");
    assert_eq!(report(&dir)["bugs"][0]["title"], "[Non-crash bug] hang in spin");
}

#[test]
fn hangs_of_a_campaign_can_be_reported() {
    let Some(server) = fuzzmanager::Server::start() else { return };
    let dir = TestDir::with_seed("xx");
    server.configure(&dir);
    let config = dir.path("fm.conf").display().to_string();
    let source = dir.write("hangs.c", HANGS);
    let target = target(source.to_str().unwrap(), "-O0");
    let job = dir.fuzz_and_triage("-V 5 -t 50 --collector --report-hangs", &target, "");
    job.env("FM_CONFIG_PATH", &config).env("AFL_HANG_TMOUT", "100").run().expect(0);
    assert!(!dir.hangs().is_empty() && dir.crashes().is_empty());
    // There is no crash: it was started for the hang.
    assert!(dir.path("out/triage/log").exists());
    let job = dir.ffuzz("triage -t 500 --report-hangs --collector -o out");
    job.env("FM_CONFIG_PATH", &config).run().expect(0);
    let known = server.crashes();
    assert!(!known.is_empty() && known.len() <= 2, "{known:#?}");
    for crash in known {
        let title = crash["shortSignature"].as_str().unwrap().to_owned();
        assert!(title.starts_with("[Non-crash bug] hang in "), "{title}");
    }
    // Other tools have no marks for hangs.
    assert_eq!(dir.names("out/default/hangs").len(), dir.hangs().len());
}

#[test]
fn records_of_a_domain_can_be_reported() {
    let Some(server) = fuzzmanager::Server::start() else { return };
    let dir = TestDir::with_seed("\x01");
    server.configure(&dir);
    let config = dir.path("fm.conf").display().to_string();
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n\
        unsigned char n = 0; if (read(0, &n, 1) < 1) return 1;\n\
        char *volatile block = malloc(n * 100u);\n  free(block);\n  return 0;\n}\n";
    let source = dir.write("sizes.c", source);
    let target = target_with("mem", source.to_str().unwrap(), "-O0");
    let words = "-p -V 6 --collector --report-records heap=1,mem=2000";
    let job = dir.fuzz_and_triage(words, &target, "").env("FM_CONFIG_PATH", &config);
    job.run().expect(0);
    assert!(dir.crashes().is_empty() && dir.path("out/triage/log").exists());
    let words = "triage --collector --report-records mem=2000 -o out";
    for _ in 0..2 {
        dir.ffuzz(words).env("FM_CONFIG_PATH", &config).run().expect(0).says("1 reports sent");
    }
    let known = server.crashes();
    assert_eq!(known.len(), 1, "{known:#?}");
    assert_eq!(known[0]["shortSignature"], "[Non-crash bug] mem reaches 2000 at sizes.c:5");
    let metadata: Value = serde_json::from_str(known[0]["metadata"].as_str().unwrap()).unwrap();
    assert!(metadata["value"].as_str().unwrap().parse::<u32>().unwrap() >= 2000, "{metadata}");
    assert!(known[0]["testcase"].is_string(), "{known:#?}");

    let job = dir.ffuzz("triage --collector --report-records mem -o out");
    job.env("FM_CONFIG_PATH", &config).run().refused(2, "mem is not of the form", "mem=1000000");
    let job = dir.ffuzz("triage --report-records mem=1 -o out");
    job.run().refused(2, "--report-records needs a crash server", "--collector");
}

#[test]
fn server_problems_are_reported() {
    let dir = TestDir::with_seed("x");
    crashes(&dir, "g");
    let target = plain("bugs.c", "");
    let words = format!("-- {}", target.display());
    let none = dir.path("none").display().to_string();
    let job = dir.ffuzz(&format!("triage --collector -o out crashes {words}"));
    job.env("FM_CONFIG_PATH", &none).run().refused(1, "serverhost", "");
    let job = dir.ffuzz(&format!("triage --collector=host -o out crashes {words}"));
    job.run().refused(2, "is not an address", "https://HOST:PORT");
    let job = dir.fuzz_and_triage("--collector", &target, "").env("FM_CONFIG_PATH", &none);
    job.run().refused(1, "serverhost", "");
    let job = dir.fuzz_and_triage("--collector", &target, "").env("FFUZZ_NO_TRIAGE", "1");
    job.run().refused(2, "FFUZZ_NO_TRIAGE", "leave out");
}

// --- what a user can do wrong

#[test]
fn failures_name_a_cause_and_a_remedy() {
    let dir = TestDir::new();
    dir.ffuzz("triage").run().refused(2, "no folder given", "-o OUT");
    dir.ffuzz("triage -o missing").run().refused(
        1,
        "cannot read the folder missing",
        "name the folder",
    );
    crashes(&dir, "n");
    dir.ffuzz("triage -o out crashes").run().refused(1, "no command line", "after --");
    dir.ffuzz("triage -o out crashes -- ./missing").run().refused(1, "missing", "");
    dir.ffuzz("triage -n 0 -o out crashes -- x").run().refused(2, "-n", "");
    dir.write("file", "");
    let target = plain("bugs.c", "");
    let job = dir.ffuzz("triage -o file crashes").arg("--").arg(&target);
    job.run().refused(1, "cannot write", "check the folder");
    let words = format!("triage -o out crashes -- {}", target.display());
    dir.ffuzz(&words).run().expect(0);
    let lock = fs::File::open(dir.path("out/triage/.lock")).unwrap();
    let lock = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusive).unwrap();
    dir.ffuzz(&words).run().refused(1, "another triage is at work", "wait for its end");
    drop(lock);
}

#[test]
fn the_page_names_what_is_written() {
    let page = fs::read_to_string(repository("docs/triage.md")).unwrap();
    let dir = TestDir::new();
    crashes(&dir, "n");
    triage(&dir, "", &plain("bugs.c", ""));
    let folder = bug_folder(&dir, "poke_null");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    for name in names.map(|name| name.into_string().unwrap()).chain(["report.json".into()]) {
        assert!(page.contains(&format!("`{name}`")), "docs/triage.md does not name {name}");
    }
    let report = report(&dir);
    for object in [&report, &report["bugs"][0], &report["crashes"][0]] {
        for key in object.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "docs/triage.md does not name {key}");
        }
    }
}
