//! Tools that read output folders: ours those of afl-fuzz, Debian's those of ours.

use crate::common;
use std::fs;
use std::path::Path;

use common::{Finished, TestDir, need, target, target_with};
use nix::sys::signal::Signal;
use serde_json::Value;

fn afl_fuzz(dir: &TestDir, words: &str, target: &Path) -> common::Job {
    need("afl-fuzz");
    let job =
        dir.program("afl-fuzz").words("-i in -o out -t 2000").words(words).arg("--").arg(target);
    job.env("AFL_SKIP_CPUFREQ", "1").env("AFL_NO_UI", "1")
}

fn whatsup(dir: &TestDir, words: &str) -> Finished {
    dir.ffuzz("whatsup").words(words).run().expect(0)
}

/// The value behind a name of the summary.
fn value(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{name} : ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn our_tools_read_a_folder_of_afl_fuzz() {
    let dir = TestDir::with_seed("QUAAA");
    let steps = target("steps.c", "");
    afl_fuzz(&dir, "-s 7 -V 3 -M one", &steps).run().expect(0);
    let running = afl_fuzz(&dir, "-s 7 -S two", &steps).start();
    common::wait_until("statistics of the second", || dir.path("out/two/fuzzer_stats").exists());
    let said = whatsup(&dir, "out").out;
    assert_eq!(
        (value(&said, "Fuzzers alive").as_str(), value(&said, "Dead or remote").as_str()),
        ("1", "1 (excluded from stats)")
    );
    assert!(said.contains("instance: one (0 days, 0 hrs)"), "{said}");
    let json: Value = serde_json::from_str(&whatsup(&dir, "--json out").out).unwrap();
    let states: Vec<&str> = json["instances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["dead", "alive"]);
    assert!(json["instances"][0]["stats"]["execs_done"].as_u64().unwrap() > 100, "{json}");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    let all = whatsup(&dir, "-s -d out").out;
    let execs = |name: &str| {
        let stats = common::stats_of(&dir.text(&format!("out/{name}/fuzzer_stats")));
        stats["execs_done"].parse::<u64>().unwrap()
    };
    let thousands = (execs("one") + execs("two")) / 1000;
    assert_eq!(value(&all, "Total execs"), format!("{thousands} thousands"));
    // One row is too little for a chart; a second one comes from us.
    let rows = dir.text("out/one/plot_data");
    dir.write(
        "out/one/plot_data",
        format!("{rows}9, 0, 1, 2, 0, 0, 9.00%, 0, 0, 2, 9.00, 99, 3\n"),
    );
    dir.ffuzz("plot out/one charts").run().expect(0).says("charts/index.html");
    let page = dir.text("charts/index.html");
    // A line for linear time and one for logarithmic time in each of three charts.
    assert_eq!(page.matches("<path class=\"k0\"").count(), 6, "{page}");
    assert!(page.contains("</span> 3</figcaption>"), "{page}");
}

// OUT/queue, the shortcut of a campaign without -M and -S, would make afl-whatsup refuse the folder.
#[test]
fn tools_of_afl_read_our_folder() {
    need("afl-whatsup");
    need("afl-plot");
    need("gnuplot");
    let dir = TestDir::with_seed("QUAAA");
    let steps = target("steps.c", "");
    let mut running = dir.fuzz("-s 1 -M one", &steps, "").start();
    running.wait_for("fuzzing; Ctrl-C stops");
    common::wait_until("statistics", || dir.path("out/one/fuzzer_stats").exists());
    let theirs = dir.program("afl-whatsup").words("out").env("TERM", "dumb").run().expect(0).out;
    assert_eq!(value(&theirs, "Fuzzers alive"), "1", "{theirs}");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    // Dead, and with the same numbers as we show.
    let theirs = dir.program("afl-whatsup").words("-s -d out").env("TERM", "dumb").run().expect(0);
    let ours = whatsup(&dir, "-s -d out").out;
    let ended = whatsup(&dir, "-s out").out;
    assert_eq!(value(&ended, "Coverage reached"), value(&ours, "Coverage reached"));
    assert_ne!(value(&ended, "Coverage reached"), "0.00%");
    assert_eq!(value(&ended, "Cumulative speed"), "0 execs/sec");
    for name in ["Fuzzers alive", "Dead or remote", "Total execs", "Pending items", "Crashes saved"]
    {
        assert_eq!(value(&theirs.out, name), value(&ours, name), "{name}");
    }
    // Their plot wants three rows and more; a short campaign has fewer.
    let rows = dir.text("out/one/plot_data");
    let last = rows.lines().last().unwrap().split_once(',').unwrap().1;
    dir.write("out/one/plot_data", format!("{rows}60,{last}\n120,{last}\n180,{last}\n"));
    dir.program("afl-plot").words("out/one plots").env("TERM", "dumb").run().expect(0);
    for picture in ["edges.png", "exec_speed.png", "high_freq.png", "low_freq.png"] {
        assert!(
            fs::metadata(dir.path(&format!("plots/{picture}"))).unwrap().len() > 1000,
            "{picture}"
        );
    }
    dir.ffuzz("plot out/one charts").run().expect(0);
    assert!(dir.text("charts/index.html").contains(">3 min</span>"));
}

#[test]
fn values_of_domains_are_shown() {
    let dir = TestDir::with_seed("AAAAAAAA");
    let both = target_with("cmp", "checked.c", "");
    dir.fuzz("-p -s 1 -E 2000 -S one", &both, "").run().expect(0);
    let said = whatsup(&dir, "-d out").out;
    assert!(said.contains("  domain cmp (MAX): best "), "{said}");
    let best = value(&said, "Best of cmp");
    assert!(best.ends_with("(one)") && best.contains("checked.c:"), "{best}");
    let json: Value = serde_json::from_str(&whatsup(&dir, "--json out").out).unwrap();
    assert_eq!(json["instances"][0]["domains"][0]["name"], "cmp", "{json}");
}

#[test]
fn added_seeds_are_imported() {
    let dir = TestDir::with_seed("AAAA");
    dir.write("more/a", "QUIA");
    dir.write("more/deeper/b", "QAAA");
    dir.write("one", "QUAA");
    fs::create_dir(dir.path("out")).unwrap();
    let add = |words: &str| dir.ffuzz("addseeds -o out").words(words).run();
    add("more").expect(0).says("2 seeds added");
    add("-i one more").expect(0).says("1 seeds added, 2 exist already");
    let names = dir.entries("out/addseeds/queue");
    let numbers: Vec<u32> = names.iter().map(|name| common::id_of(name)).collect();
    assert_eq!(numbers, [0, 1, 2], "{names:?}");
    assert!(names[0].ends_with("orig:a") && names[2].ends_with("orig:one"), "{names:?}");
    let job = afl_fuzz(&dir, "-s 7 -V 3 -M main", &target("steps.c", ""));
    job.env("AFL_IMPORT_FIRST", "1").run().expect(0);
    let stats = common::stats_of(&dir.text("out/main/fuzzer_stats"));
    assert!(stats["corpus_imported"].parse::<u32>().unwrap() >= 1, "{stats:?}");
    // And by ffuzz, whose secondary ones read from everybody.
    let job = dir.fuzz("-s 1 -E 3000 -S second", &target("steps.c", ""), "");
    job.env("AFL_IMPORT_FIRST", "1").run().expect(0);
    let queue = dir.entries("out/second/queue");
    assert!(queue.iter().any(|name| name.contains(",sync:addseeds,src:")), "{queue:?}");
}

#[test]
fn wrong_use_ends_with_1() {
    let dir = TestDir::with_seed("A");
    let refused = |words: &str, cause: &str, remedy: &str| {
        dir.ffuzz(words).run().refused(1, cause, remedy);
    };
    refused("whatsup", "missing: <OUT>", "--help");
    refused("whatsup -x out", "-x", "--help");
    refused("whatsup missing", "cannot read missing", "-o");
    refused("plot in charts", "no fuzzer has used in", "-o");
    dir.write("in/fuzzer_stats", "fuzzer_pid : 999999999\n");
    refused("plot in charts", "cannot read in/plot_data", "run longer");
    dir.write("in/plot_data", "# header\n1, 2, 3\n");
    refused("plot in charts", "too few lines", "run longer");
    dir.write("in/plot_data", "1,0,0,0,0,0,1%,0,0,0,1,1,1\n2,0,0,0,0,0,1%,0,0,0,1,1,1\n");
    dir.write("file", "");
    refused("plot in file", "cannot write file/index.html", "writable");
    refused("addseeds -o out", "no seeds given", "folders");
    refused("addseeds -o out missing", "cannot read the seed missing", "exist");
    refused("addseeds -o out in", "out is no output folder", "-o");
    dir.ffuzz("whatsup in").run().expect(0).says("Fuzzers alive : 0");
    for command in ["whatsup", "plot", "addseeds"] {
        dir.ffuzz(&format!("{command} --help")).run().expect(0).says("Usage: ffuzz-");
    }
}
