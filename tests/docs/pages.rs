//! The page of each built-in domain: its example is compiled and run, and its commands print what
//! the page shows.

use crate::common;
use crate::page;
use std::fs;

use common::{TestDir, need, repository};
use page::{blocks, blocks_before, blocks_of, follow};

/// Numbers of blocks and frames are those of one version of clang.
fn is_right(domain: &str) {
    let page = blocks(&format!("domains/{domain}.md"));
    let example = page.iter().find(|block| block.language == "c").unwrap();
    assert!(example.text.lines().count() <= 12, "{}", example.text);
    follow(&TestDir::new(), &page, "19");
}

#[test]
fn cmp() {
    is_right("cmp");
}

#[test]
fn diff() {
    is_right("diff");
}

#[test]
fn heap() {
    is_right("heap");
}

#[test]
fn mem() {
    is_right("mem");
}

#[test]
fn out() {
    is_right("out");
}

#[test]
fn perf() {
    is_right("perf");
}

#[test]
fn slack() {
    is_right("slack");
}

#[test]
fn slow() {
    is_right("slow");
}

#[test]
fn stack() {
    is_right("stack");
}

#[test]
fn valid() {
    is_right("valid");
}

#[test]
fn the_tour_of_the_readme() {
    follow(&TestDir::new(), &blocks_before("../README.md", "## Install"), "19");
}

#[test]
fn comparisons() {
    follow(&TestDir::new(), &blocks("comparisons.md"), "19");
}

#[test]
fn speed() {
    follow(&TestDir::new(), &blocks("speed.md"), "19");
}

#[test]
fn snapshots() {
    follow(&TestDir::new(), &blocks("snapshot.md"), "19");
}

#[test]
fn programs_without_source() {
    follow(&TestDir::new(), &blocks("binary-only.md"), "19");
}

#[test]
fn servers_and_clients() {
    follow(&TestDir::new(), &blocks("network.md"), "19");
}

#[test]
fn watching() {
    follow(&TestDir::new(), &blocks("watching.md"), "19");
}

#[test]
fn scripts() {
    let mut page = blocks("ci.md");
    // The others are lines of services.
    page.retain(|block| {
        ["c", "console"].contains(&block.language.as_str()) || block.name == "nightly.sh"
    });
    assert_eq!(page.len(), 4);
    follow(&TestDir::new(), &page, "19");
}

#[test]
fn controlling_a_campaign() {
    follow(&TestDir::new(), &blocks("control.md"), "19");
}

#[test]
fn many_cores() {
    follow(&TestDir::new(), &blocks("many-cores.md"), "19");
}

#[test]
fn mutators() {
    follow(&TestDir::new(), &blocks("mutators.md"), "19");
}

#[test]
fn killerbeez() {
    follow(&TestDir::new(), &blocks("killerbeez.md"), "19");
}

#[test]
fn coverage_states() {
    follow(&TestDir::new(), &blocks("states.md"), "19");
}

#[test]
fn jobs() {
    follow(&TestDir::new(), &blocks("jobs.md"), "19");
}

#[test]
fn fuzzmanager() {
    follow(&TestDir::new(), &blocks("fuzzmanager.md"), "19");
}

#[test]
fn minimize() {
    follow(&TestDir::new(), &blocks("minimize.md"), "19");
}

/// Each section of the page about languages needs the seeds and, perhaps, the program of the one about C.
fn language(headings: &[&str]) {
    let mut page = blocks_before("languages.md", "\n## ");
    page.extend(headings.iter().flat_map(|heading| blocks_of("languages.md", heading)));
    follow(&TestDir::new(), &page, "19");
}

#[test]
fn targets_in_c() {
    language(&["C"]);
}

#[test]
fn targets_in_cpp() {
    language(&["C++"]);
}

#[test]
fn targets_in_rust() {
    language(&["Rust"]);
}

#[test]
fn targets_in_go() {
    need("go");
    language(&["Go"]);
}

#[test]
fn extensions_of_python() {
    need("/usr/bin/python3-config");
    language(&["Extensions of Python"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn targets_of_any_language_without_source() {
    language(&["C", "Programs without source"]);
}

#[test]
fn every_built_in_domain_has_its_page_and_its_row() {
    let listed = TestDir::new().ffuzz("domains").run().expect(0).out;
    let table = fs::read_to_string(repository("docs/domains.md")).unwrap();
    let mut known: Vec<String> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(|name| format!("{name}.md"))
        .collect();
    for page in &known {
        assert!(
            table.contains(&format!("| [{}](domains/{page}) |", page.trim_end_matches(".md"))),
            "{page}"
        );
    }
    let files = fs::read_dir(repository("docs/domains")).unwrap();
    let mut pages: Vec<String> =
        files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    known.sort();
    pages.sort();
    assert_eq!(known, pages);
}

/// The table of bugs is for people; what the commands leave is compared with what the page says.
#[test]
fn triage() {
    let dir = TestDir::new();
    follow(&dir, &blocks("triage.md"), "19");
    let report: serde_json::Value =
        serde_json::from_slice(&dir.read("out/triage/report.json")).unwrap();
    let files = |bug: &serde_json::Value| bug["files"].as_u64().unwrap();
    let mut counts: Vec<u64> = report["bugs"].as_array().unwrap().iter().map(files).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2], "{report:#}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn tracer() {
    follow(&TestDir::new(), &blocks("tracer.md"), "19");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn picker() {
    follow(&TestDir::new(), &blocks("picker.md"), "19");
}
