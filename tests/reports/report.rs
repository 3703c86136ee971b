//! `ffuzz report`: what folders and runs show, as a page, as JSON and in Markdown.

use std::fs;

use serde_json::Value;

use crate::common;
use common::{TestDir, need, target, target_with};

/// A campaign of `targets/lines.c` with two of its three branches reached.
fn campaign() -> TestDir {
    let dir = TestDir::with_seed("a");
    dir.write("in/2", "((1)");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O0"), "").run().expect(0);
    dir
}

fn json(dir: &TestDir, words: &str) -> Value {
    let done = dir.ffuzz(&format!("report --json {words}")).run().expect(0);
    serde_json::from_str(&done.out).unwrap()
}

fn codes(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().unwrap().iter();
    warnings.map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn a_campaign_is_one_page_without_network_or_script() {
    let dir = campaign();
    dir.ffuzz("report out")
        .run()
        .expect(0)
        .says("report.html")
        .says("of the lines reached, no bug");
    let page = dir.text("report.html");
    for word in ["<script", "http:", "https:", "src=", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    // The source, in its three shades; the list of what is shut; how to repeat it.
    assert!(page.contains("targets/lines.c") && page.contains("<i class=\"u\">"), "{page}");
    assert!(page.contains("<i class=\"p\"") && page.contains("<i class=\"d\""), "{page}");
    assert!(page.contains("is never taken") || page.contains("never equal"), "{page}");
    assert!(page.contains("-s 1 -E 5"), "{page}");
    dir.ffuzz("report --source none -o none.html out").run().expect(0).says("none.html");
    assert!(dir.read("none.html").len() < page.len() - 500);
    let text = dir.ffuzz("report --markdown out").run().expect(0).out;
    assert!(text.starts_with("# ffuzz\n") && text.contains("/lines.c`"), "{text}");
}

#[test]
fn programs_read_the_report_as_json() {
    let dir = campaign();
    let report = json(&dir, "out");
    assert_eq!((&report["version"], codes(&report)), (&1.into(), vec![]));
    let totals = &report["totals"];
    assert!(totals["runs"].as_u64().unwrap() >= 2, "{totals}");
    assert_eq!(totals["functions"], serde_json::json!([2, 3]), "{totals}");
    let files = report["source"]["files"].as_array().unwrap();
    assert!(files[0]["path"].as_str().unwrap().ends_with("targets/lines.c"));
    let functions: Vec<&str> = report["never_entered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["function"].as_str().unwrap())
        .collect();
    assert_eq!(functions, ["never"]);
    let stuck = &report["stuck"][0];
    assert!(
        stuck["behind"]["counters"].as_u64().unwrap() > 0 && stuck["inputs"].as_u64().unwrap() > 0,
        "{stuck}"
    );
    assert!(stuck["excerpt"].as_array().unwrap().len() > 3, "{stuck}");
    // The order and the ids are the same each time.
    assert_eq!(json(&dir, "out")["stuck"], report["stuck"]);
    assert_eq!(
        report["corpus"]["files"].as_u64().unwrap() as usize,
        dir.entries("out/default/queue").len()
    );
}

#[test]
fn bugs_are_shown_with_their_stacks_and_inputs() {
    let dir = TestDir::with_seed("zzz");
    let freed = target("freed.c", "-g -O1 -fsanitize=address");
    dir.fuzz("-s 1 -E 3000", &freed, "").run().expect(0);
    let untriaged = json(&dir, "out");
    assert!(codes(&untriaged).contains(&"not-triaged"), "{}", untriaged["warnings"]);
    dir.ffuzz("triage out").run().expect(0);
    let report = json(&dir, "out");
    assert!(!codes(&report).contains(&"not-triaged"));
    let bugs = report["bugs"].as_array().unwrap();
    assert_eq!((bugs.len(), &report["totals"]["bugs"]), (2, &2.into()), "{bugs:?}");
    let has = |bug: &Value, stack: &str, function: &str| {
        bug["stacks"][stack].as_array().unwrap().iter().any(|frame| frame == function)
    };
    for bug in bugs {
        let is_freed = bug["title"].as_str().unwrap().contains("use-after-free");
        let place = if is_freed { "used_after" } else { "written_behind" };
        assert!(has(bug, "crash", place) && has(bug, "allocation", "copy"), "{bug}");
        assert_eq!(has(bug, "free", "used_after"), is_freed, "{bug}");
        assert!(
            bug["bytes"]["hex"].as_str().unwrap().len() > 1 && bug["seen"][1].as_u64().is_some(),
            "{bug}"
        );
        assert!(fs::metadata(dir.path(bug["reproduce"].as_str().unwrap())).is_ok(), "{bug}");
    }
    dir.ffuzz("report out").run().expect(0);
    let page = dir.text("report.html");
    assert!(page.contains("<h3>Free</h3>") && page.contains("octet-stream,"), "{page}");
}

#[test]
fn domains_are_shown_with_their_best_inputs() {
    let dir = TestDir::with_seed("AAAAAAAA");
    dir.fuzz("-p -s 1 -E 2000", &target_with("cmp", "checked.c", "-g"), "").run().expect(0);
    let report = json(&dir, "out");
    let domain = &report["domains"][0];
    assert_eq!((&domain["name"], &domain["reducer"]), (&"cmp".into(), &"MAX".into()), "{domain}");
    let key = &domain["keys"][0];
    assert!(key["place"].as_str().unwrap().contains("checked.c:"), "{key}");
    assert!(dir.path("out/default/queue").join(key["input"].as_str().unwrap()).exists(), "{key}");
    assert!(!report["campaigns"][0]["series"]["domains"]["cmp"].as_array().unwrap().is_empty());
}

#[test]
fn a_folder_of_afl_fuzz_and_two_campaigns_are_shown() {
    need("afl-fuzz");
    let dir = TestDir::with_seed("a");
    let lines = target("lines.c", "-g -O1");
    let theirs =
        dir.program("afl-fuzz").words("-i in -o theirs -t 2000 -V 2 -M one --").arg(&lines);
    theirs.env("AFL_SKIP_CPUFREQ", "1").env("AFL_NO_UI", "1").run().expect(0);
    dir.fuzz("-s 1 -E 300", &lines, "").run().expect(0);
    let report = json(&dir, "theirs");
    assert!(report["campaigns"][0]["fuzzer"].as_str().unwrap().contains("++"), "{report}");
    assert!(report["totals"]["lines"][0].as_u64().unwrap() > 10);
    let both = json(&dir, "out theirs");
    assert_eq!(both["campaigns"].as_array().unwrap().len(), 2);
    let files = |report: &Value| report["corpus"]["files"].as_u64().unwrap();
    assert_eq!(files(&both), files(&report) + files(&json(&dir, "out")));
}

#[test]
fn another_build_shows_its_lines() {
    let dir = TestDir::with_seed("a");
    dir.fuzz("-s 1 -E 300", &target("lines.c", "-g -O1"), "").run().expect(0);
    let exact = target("lines.c", "-g -O0");
    let report = json(&dir, &format!("--lines {} out", exact.display()));
    let (all, usual) = (&report["totals"]["lines"], &json(&dir, "out")["totals"]["lines"]);
    assert!(all[1].as_u64() > usual[1].as_u64(), "{all} {usual}");
}

#[test]
fn what_only_one_campaign_reaches_is_compared() {
    let dir = campaign();
    dir.write("small/in/1", "a");
    let lines = target("lines.c", "-g -O0");
    dir.ffuzz("-s 1 -E 5 -i small/in -o less --").arg(lines).run().expect(0);
    let text = dir.ffuzz("report --compare out less").run().expect(0).out;
    assert!(text.contains("functions entered only by A: 1\n    depth\n"), "{text}");
    let both: Value = json(&dir, "--compare out less");
    assert_eq!(both["files"][0]["functions"], serde_json::json!([["depth"], []]), "{both}");
    let same = dir.ffuzz("report --compare out out").run().expect(0).out;
    assert!(same.contains("have reached the same lines"), "{same}");
}

#[test]
fn damaged_and_missing_parts_leave_a_page_with_warnings() {
    let dir = campaign();
    let own = |name: &str| format!("out/default/{name}");
    let rows = dir.text(&own("plot_data"));
    dir.write(&own("plot_data"), format!("{rows}7, 3, "));
    dir.write(&own("state.json"), "{\"judge\":");
    let stats = dir.text(&own("fuzzer_stats"));
    dir.write(&own("fuzzer_stats"), &stats[..stats.len() / 2]);
    dir.write(&own("queue/id:000999,src:000000,time:5,\x1b[2J<b>"), "a");
    dir.write(&own("queue/.half"), "a");
    let report = json(&dir, "out");
    assert!(report["totals"]["lines"][0].as_u64().unwrap() > 10, "{report}");
    dir.ffuzz("report out").run().expect(0);
    assert!(!dir.text("report.html").contains("<b>\x1b"));
    // A target that is gone, and one that was built again.
    fs::write(dir.path(&own("cmdline")), "./gone\n").unwrap();
    let report = json(&dir, "out");
    assert_eq!(codes(&report), ["no-runs"]);
    let lines = fs::read(target("lines.c", "-g -O0")).unwrap();
    let copy = dir.write("gone", lines);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(copy, executable).unwrap();
    dir.write(&own("fuzzer_stats"), "last_update : 1000\nfuzzer_pid : 999999999\n");
    assert_eq!(codes(&json(&dir, "out")), ["changed"]);
    // Nothing is run.
    assert_eq!(json(&dir, "--no-run out")["source"], Value::Null);
}

#[test]
fn wrong_use_is_refused() {
    let dir = TestDir::with_seed("a");
    let refused = |words: &str, cause: &str, remedy: &str| {
        dir.ffuzz(&format!("report {words}")).run().refused(1, cause, remedy);
    };
    refused("", "missing: <OUT>", "--help");
    refused("none", "cannot read the folder none", "-o");
    refused("in", "no fuzzer has used in", "-o");
    refused("--compare in", "takes two folders, and 1 are given", "two campaigns");
    refused("--compare --markdown in in", "text or --json", "omit");
    refused("--json --markdown in", "cannot be used with", "--help");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O1"), "").run().expect(0);
    refused("-o in/none/r.html out", "cannot write to \"in/none/r.html\"", "path");
    refused("--compare --lines ./none out out", "none", "");
}
