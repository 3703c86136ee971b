//! `ffuzz-jobs`: lists of campaigns that survive kills, full disks and jobs that fail.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Finished, SmallDisk, TestDir, plain, target, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Puts a module of `tests/mutators/modules.c` into the folder.
fn module(dir: &TestDir, name: &str, flags: &str) {
    let flags = format!("-shared -fPIC -D{} {flags}", name.to_uppercase());
    let built = plain("tests/mutators/modules.c", &flags);
    fs::copy(built, dir.path(&format!("lib{name}_mutator.so"))).unwrap();
}

fn target_table(name: &str, program: &Path) -> String {
    format!("[[target]]\nname = \"{name}\"\ncommand = [\"{}\"]\n", program.display())
}

fn mutators_table(name: &str, only: bool) -> String {
    format!("[[mutators]]\nname = \"{name}\"\nchain = [{{ module = \"{name}\" }}]\nonly = {only}\n")
}

/// A list with these tables.
fn list(dir: &TestDir, tables: &[String]) {
    list_at_once(dir, 2, tables);
}

fn list_at_once(dir: &TestDir, number: usize, tables: &[String]) {
    let head = format!("output = \"results\"\nmutator_dir = \".\"\nat_once = {number}\n");
    dir.write("jobs.toml", head + &tables.concat());
}

fn jobs(dir: &TestDir, options: &str) -> common::Job {
    dir.ffuzz(&format!("jobs {options} jobs.toml"))
}

fn rows(finished: &Finished) -> Vec<Value> {
    let table: Value =
        serde_json::from_str(&finished.out).unwrap_or_else(|e| panic!("{e}: {}", finished.out));
    table["jobs"].as_array().unwrap().clone()
}

/// Lines of the journal that say that a job has ended, by job.
fn ends(dir: &TestDir) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    let text = fs::read_to_string(dir.path("results/journal")).unwrap_or_default();
    for line in text.lines() {
        if let Ok(entry) = serde_json::from_str::<Value>(line)
            && entry["what"]["ended"].is_object()
        {
            *ends.entry(entry["job"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    ends
}

#[test]
fn a_list_that_is_killed_twice_repeats_nothing_that_is_finished() {
    let dir = TestDir::new();
    // A module of each kind: finite, endless, one that fills its buffer, one without states.
    let modules = ["counter", "numbers", "grower", "stateless"];
    let mut tables = vec![
        target_table("letters", &target("letters.c", "")),
        target_table("reader", &target("reader.c", "")).replace("\"]", "\", \"@@\"]"),
    ];
    for name in modules {
        module(&dir, name, "");
        tables.push(mutators_table(name, true));
    }
    for seed in ["first", "second", "third"] {
        dir.write(seed, format!("{seed} seed"));
    }
    tables.push("[[job]]\nseeds = [\"first\", \"second\", \"third\"]\nexecs = 300\n".into());
    list(&dir, &tables);
    for finished in [3, 9] {
        let run = jobs(&dir, "").start();
        wait_until("some jobs", || ends(&dir).len() >= finished);
        run.signal(Signal::SIGKILL);
        run.finish().expect(128 + libc::SIGKILL);
    }
    let before = ends(&dir);
    let last = jobs(&dir, "--json").run().expect(0);
    assert!(
        last.err.contains(&format!("24 jobs, {} already finished", before.len())),
        "{}",
        last.err
    );
    let after = ends(&dir);
    assert_eq!(after.len(), 24);
    assert!(after.values().all(|count| *count == 1), "{after:?}");
    let rows = rows(&last);
    assert_eq!(rows.len(), 24);
    for row in &rows {
        assert_eq!(row["status"], "done", "{row}");
        let execs = row["execs"].as_u64().unwrap();
        let is_endless = row["mutators"] == "numbers" || row["mutators"] == "grower";
        assert!(if is_endless { execs >= 300 } else { execs >= 5 }, "{row}");
    }
    // Nothing is left to do, and the table is the same.
    let again = jobs(&dir, "--json").run().expect(0);
    assert_eq!(again.out, last.out);
    assert_eq!(jobs(&dir, "--json --table").run().expect(0).out, last.out);
    jobs(&dir, "--table").run().expect(0).says("24 of 24 jobs done");
}

#[test]
fn states_are_carried_from_job_to_job() {
    let dir = TestDir::new();
    module(&dir, "numbers", "");
    dir.write("seed", "A seed of these jobs");
    let append = plain("append.c", "");
    let blind =
        target_table("blind", &append).replace("\"]", "\", \"log\"]") + "options = [\"-n\"]\n";
    list(
        &dir,
        &[
            "rounds = 2\ncarry_coverage = true\n".to_owned(),
            target_table("letters", &target("letters.c", "")),
            blind,
            mutators_table("numbers", true),
            "[[job]]\ntargets = [\"letters\"]\nmutators = []\nseeds = [\"seed\"]\nexecs = 3000\n"
                .into(),
            "[[job]]\ntargets = [\"blind\"]\nseeds = [\"seed\"]\nexecs = 30\n".into(),
        ],
    );
    let done = jobs(&dir, "--json").env("FFUZZ_NO_TRIAGE", "1").run().expect(0);
    let rows = rows(&done);
    let of = |target: &str, round: u64| {
        rows.iter().find(|row| row["target"] == target && row["round"] == round).unwrap()
    };
    assert!(of("letters", 1)["new_edges"].as_u64().unwrap() > 0, "{rows:?}");
    assert_eq!(of("letters", 2)["new_edges"], 0);
    assert!(of("letters", 2)["execs"].as_u64().unwrap() >= 3000 - 64, "{rows:?}");
    assert!(dir.path("results/states/letters.json").exists());
    // The module went on where it was: no number comes twice.
    let log = dir.text("log");
    let numbers: Vec<&str> = log.lines().filter(|line| line.starts_with("module-")).collect();
    assert!(numbers.len() >= 50, "{log}");
    let mut once = numbers.clone();
    once.dedup();
    let expected: Vec<String> = (0..once.len()).map(|number| format!("module-{number}")).collect();
    assert_eq!(once, expected);
}

#[test]
fn each_row_has_its_own_edges_and_an_edge_is_new_once() {
    let dir = TestDir::new();
    dir.write("one", "A seed");
    dir.write("two", "A seed");
    let job = "[[job]]\nmutators = []\nseeds = [\"one\", \"two\"]\nexecs = 2000\n".to_owned();
    list(&dir, &[target_table("letters", &target("letters.c", "")), job]);
    let done = jobs(&dir, "--json").env("FFUZZ_NO_TRIAGE", "1").run().expect(0);
    let table: Value = serde_json::from_str(&done.out).unwrap();
    let rows = rows(&done);
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("new_edges"), table["edges"]["letters"].as_u64().unwrap(), "{table}");
    // Side by side or not, both start from nothing, and both find the way of the seed.
    assert!(rows.iter().all(|row| row["edges"].as_u64() > Some(0)), "{table}");
    assert!(sum("edges") > sum("new_edges"), "{table}");
}

#[test]
fn a_list_is_the_same_under_every_path() {
    let dir = TestDir::new();
    dir.write("lists/seed", "A seed");
    fs::copy(target("letters.c", ""), dir.path("lists/letters")).unwrap();
    dir.write(
        "lists/jobs.toml",
        "output = \"results\"\n[[target]]\nname = \"letters\"\ncommand = [\"./letters\"]\n\
         [[job]]\nmutators = []\nseeds = [\"seed\"]\nexecs = 200\n",
    );
    let jobs = |list: &str| dir.ffuzz("jobs").arg(list).env("FFUZZ_NO_TRIAGE", "1").run().expect(0);
    jobs("lists/jobs.toml");
    std::os::unix::fs::symlink("lists", dir.path("link")).unwrap();
    jobs("link/jobs.toml").says("1 jobs, 1 already finished");
    fs::rename(dir.path("lists"), dir.path("moved")).unwrap();
    jobs("moved/jobs.toml").says("1 jobs, 1 already finished");
}

#[test]
fn a_job_that_fails_does_not_end_the_others() {
    let dir = TestDir::new();
    module(&dir, "counter", "");
    module(&dir, "refuses", "");
    module(&dir, "stuck", "");
    dir.write("seed", "A");
    let mut tables = vec![
        target_table("missing", &dir.path("no-such-program")),
        target_table("letters", &target("letters.c", "")),
        mutators_table("none", true),
    ];
    tables.extend(["counter", "refuses", "stuck"].map(|name| mutators_table(name, true)));
    tables.push("[[job]]\nseeds = [\"seed\"]\nexecs = 100\nstall_seconds = 3\n".into());
    // Most of them only wait.
    list_at_once(&dir, 8, &tables);
    let done = jobs(&dir, "--json").run().expect(1);
    for row in rows(&done) {
        let (target, mutators) =
            (row["target"].as_str().unwrap(), row["mutators"].as_str().unwrap());
        let cause = row["cause"].as_str().unwrap_or_default();
        let expected = match (target, mutators) {
            ("letters", "counter") => {
                assert_eq!(row["status"], "done", "{row}");
                continue;
            }
            (_, "none") => "none",
            ("missing", _) => "no-such-program",
            (_, "refuses") => "refuses",
            _ => "no run for 3 seconds",
        };
        assert!(row["status"] == "failed" && cause.contains(expected), "{row}");
        assert!(!row["remedy"].as_str().unwrap().is_empty(), "{row}");
    }
    // A failed job is tried again, a finished one is not.
    module(&dir, "none", "-DCOUNTER");
    jobs(&dir, "")
        .run()
        .expect(1)
        .says("8 jobs, 1 already finished")
        .says("done letters/none/seed");
}

/// Each job has a socket of its own, in memory: jobs in parallel share no port.
#[test]
fn servers_and_clients_are_targets() {
    let dir = TestDir::new();
    module(&dir, "numbers", "");
    let message =
        |text: &str| [&[u8::try_from(text.len()).unwrap(), 0, 0, 0], text.as_bytes()].concat();
    dir.write("session", ["LOGIN x", "MAIL y", "QUIT"].map(message).concat());
    let table = |name: &str, words: &str, delivery: &str| {
        let table = target_table(name, &target("sockets.c", ""));
        table.replace("\"]", &format!("\", {words}]")) + &format!("delivery = \"{delivery}\"\n")
    };
    let own = "[[job]]\nmutators = []\ntargets = [\"server\", \"other\"]\nseeds = [\"session\"]\nexecs = 60000\n";
    let foreign = "[[job]]\ntargets = [\"client\"]\nseeds = [\"session\"]\nexecs = 20\n";
    list(
        &dir,
        &[
            table("server", "\"epoll\"", "tcp:7000"),
            table("other", "\"plain\"", "tcp:7000"),
            table("client", "\"client\", \"81\"", "tcp-client:81"),
            mutators_table("numbers", true),
            own.into(),
            foreign.into(),
        ],
    );
    let done = dir.ffuzz_and_triage("jobs --json jobs.toml").run().expect(0);
    for row in rows(&done) {
        let name = row["target"].as_str().unwrap();
        let folder = format!("results/jobs/{name}/{}/session", row["mutators"].as_str().unwrap());
        let log = dir.text(&format!("{folder}/log"));
        assert_eq!(row["status"], "done", "{row} {log}");
        assert!(row["edges"].as_u64() > Some(5), "{row}");
        assert!(log.contains("took 3 of 3 messages of the first seed"), "{log}");
        if name != "client" {
            assert!(row["crashes"].as_u64() > Some(0), "{row} {log}");
            // The triage has the socket, too. Beside a campaign it is slow if others use the cores: this ends it.
            let triage = dir.ffuzz(&format!("triage -o {folder}/out")).run().expect(0);
            assert!(triage.out.contains("[@ "), "{} {}", triage.out, triage.err);
        }
    }
}

#[test]
fn mistakes_in_the_list_have_their_place() {
    let dir = TestDir::new();
    dir.write("seed", "A");
    let refused = |text: &str, cause: &str, remedy: &str| {
        dir.write("jobs.toml", text);
        jobs(&dir, "").run().refused(1, cause, remedy);
        assert!(!dir.path("results").exists());
    };
    refused("output = ", "jobs.toml, line 1, column ", "docs/jobs.md");
    refused("output = \"results\"\n", "it has no job", "[[job]]");
    refused(
        "output = \"results\"\n[[job]]\nseeds = [\"seed\", \"nothing\"]\nexecs = 1\n[[target]]\nname = \"a\"\n\
         command = [\"./a\"]\n",
        "line 3, column 18: cannot read the seed \"nothing\"",
        "relative to the job file",
    );
    // Two jobs cannot share it, or the list would not understand what it does.
    for option in ["--error-exitcode", "--metrics=9000", "-V", "--net=tcp:7000", "--net"] {
        let text = format!(
            "output = \"results\"\n[[target]]\nname = \"a\"\ncommand = [\"./a\"]\n\
             options = [\"{option}\"]\n[[job]]\nseeds = [\"seed\"]\nexecs = 1\n"
        );
        refused(&text, "is not an option for jobs", "docs/jobs.md");
    }
    for (command, delivery, cause, remedy) in [
        (
            "\"./a\", \"@@\"",
            "tcp:80",
            "delivery over the socket \"tcp:80\", and the command has @@",
            "one of them",
        ),
        ("\"./a\"", "tcp:0", "\"tcp:0\" is no delivery: \"0\" is no port", "tcp:PORT"),
        ("\"./a\"", "sctp:80", "\"sctp:80\" is no delivery", "tcp:PORT"),
    ] {
        let text = format!(
            "output = \"results\"\n[[target]]\nname = \"a\"\ncommand = [{command}]\n\
             delivery = \"{delivery}\"\n[[job]]\nseeds = [\"seed\"]\nexecs = 1\n"
        );
        refused(&text, &format!("line 5, column 12: {cause}"), remedy);
    }
    fs::remove_file(dir.path("jobs.toml")).unwrap();
    jobs(&dir, "").run().refused(1, "cannot read jobs.toml", "--help has an example");
    dir.write("jobs.toml", [0xff, 0xfe]);
    jobs(&dir, "").run().refused(1, "it is not UTF-8 text", "--help has an example");
}

#[test]
fn an_end_on_request_is_in_good_order_and_two_do_not_share_a_folder() {
    let dir = TestDir::new();
    dir.write("seed", "A");
    let job = "[[job]]\nseeds = [\"seed\"]\nseconds = 1000\n".to_owned();
    list(&dir, &[target_table("letters", &target("letters.c", "")), job]);
    let mut run = jobs(&dir, "").start();
    let stats = "results/jobs/letters/built-in/seed/out/default/fuzzer_stats";
    wait_until("a campaign", || dir.path(stats).exists());
    jobs(&dir, "").run().refused(1, "another ffuzz-jobs runs these jobs", "another output");
    run.wait_for("starts letters/built-in/seed");
    run.signal(Signal::SIGINT);
    let ended = run.finish().expect(1).says("interrupted: 1 of 1 jobs are not finished");
    ended.says("run the same command again").says("waiting");
    let log = dir.text("results/jobs/letters/built-in/seed/log");
    assert!(log.contains("resume     :"), "{log}");
    // What was damaged by hand is reported.
    dir.write("results/journal", "{}\n{}\n");
    jobs(&dir, "").run().refused(1, "line 1 of the journal", "remove ");
}

#[test]
fn a_full_disk_ends_with_one_line_and_loses_nothing() {
    let dir = TestDir::new();
    module(&dir, "counter", "");
    dir.write("seed", "A");
    let Some(disk) = SmallDisk::mount(dir.path("results"), "size=4m") else { return };
    let with = |seeds: &str| {
        let job = format!("[[job]]\nseeds = [{seeds}]\nexecs = 100\n");
        let target = target_table("letters", &target("letters.c", ""));
        list(&dir, &[target, mutators_table("counter", true), job]);
    };
    with("\"seed\"");
    // The journal's file gets a block only when it is written.
    fs::write(disk.0.join("journal"), "").unwrap();
    fs::create_dir(disk.0.join("states")).unwrap();
    let fillers = fill(&disk.0);
    let full = jobs(&dir, "").run().expect(1).says("cannot use the journal");
    full.says("free some space; finished jobs are kept");
    fillers.iter().for_each(|path| drop(fs::remove_file(path)));
    jobs(&dir, "").run().expect(0).says("1 of 1 jobs done");
    // Then there is one more, and no room for it.
    dir.write("more", "B");
    with("\"seed\", \"more\"");
    let fillers = fill(&disk.0);
    jobs(&dir, "")
        .run()
        .expect(1)
        .says("free some space")
        .does_not_say("starts letters/counter/seed");
    fillers.iter().for_each(|path| drop(fs::remove_file(path)));
    let last = jobs(&dir, "").run().expect(0).says("2 jobs, 1 already finished");
    last.says("2 of 2 jobs done").does_not_say("starts letters/counter/seed");
    assert_eq!(ends(&dir)["letters/counter/seed"], 1);
}

/// Files that leave no room for another one.
fn fill(folder: &Path) -> Vec<PathBuf> {
    let mut fillers = Vec::new();
    for size in [1 << 20, 1 << 16, 1 << 12] {
        loop {
            let path = folder.join(format!("filler-{}", fillers.len()));
            let written = fs::write(&path, vec![1; size]);
            fillers.push(path);
            if written.is_err() {
                break;
            }
        }
    }
    fillers
}
