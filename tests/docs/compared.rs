//! `make compare`: its statistics, its kinds, and the report of a fixed rows file.

use std::collections::BTreeMap;

#[path = "../../benches/compare/kinds.rs"]
mod kinds;
#[path = "../../benches/compare/report.rs"]
mod report;
#[path = "../../benches/compare/row.rs"]
mod row;
#[path = "../../benches/compare/sets.rs"]
mod sets;
#[path = "../../benches/compare/statistics.rs"]
mod statistics;

use kinds::{Fuzzer, Kind, wanted};
use report::Report;
use sets::{JUDGING, NoTarget, Sets, TUNING};
use statistics::{a12, geometric_mean, mann_whitney, median};

const ROWS: &str = include_str!("../data/compare/rows.jsonl");

fn near(value: f64, wanted: f64) {
    assert!((value - wanted).abs() < 0.0005, "{value}, not {wanted}");
}

#[test]
fn medians_means_and_effects() {
    near(median(&[3.0, 1.0, 2.0]), 2.0);
    near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median(&[]).is_nan());
    near(geometric_mean(&[0.5, 2.0, 8.0]), 2.0);
    near(a12(&[2.0, 3.0], &[1.0]), 1.0);
    near(a12(&[1.0, 2.0], &[1.0, 2.0]), 0.5);
}

#[test]
fn small_samples_are_tested_exactly_and_large_ones_by_the_normal_distribution() {
    near(mann_whitney(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]), 0.1);
    near(mann_whitney(&[6.0, 7.0, 8.0, 9.0, 10.0], &[1.0, 2.0, 3.0, 4.0, 5.0]), 2.0 / 252.0);
    near(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
    let numbers = |from: u32| (from..from + 12).map(f64::from).collect::<Vec<_>>();
    // U is 126 of 144, with six ties: z = 53.5 / 17.3.
    near(mann_whitney(&numbers(6), &numbers(0)), 0.002);
    near(mann_whitney(&[1.0; 15], &[1.0; 15]), 1.0);
    assert!(mann_whitney(&[], &[1.0]).is_nan());
}

#[test]
fn a_kind_is_a_fuzzer_with_options_and_variables() {
    let kind = Kind::parse("words=ffuzz+dict:FFUZZ_X=1 -z -x=3").unwrap();
    assert_eq!((&*kind.name, kind.fuzzer, kind.dictionary), ("words+dict", Fuzzer::Ffuzz, true));
    assert_eq!(kind.variables, [("FFUZZ_X".to_owned(), "1".to_owned())]);
    assert_eq!(kind.options, ["-z", "-x=3"]);
    assert_eq!(kind.words(), "FFUZZ_X=1 -z -x=3");
    assert_eq!(Kind::parse("libfuzzer").unwrap().fuzzer, Fuzzer::Libfuzzer);
    for (text, cause) in [
        ("z=honggfuzz", "\"honggfuzz\" is no fuzzer"),
        ("ffuzz:-z", "\"ffuzz:-z\" has no name of its own"),
    ] {
        assert_eq!(Kind::parse(text).unwrap_err().0, cause);
    }
}

#[test]
fn what_a_kind_is_compared_with_runs_too() {
    let names = |chosen, own, base, quick| -> String {
        let kinds = wanted(chosen, own, base, quick).unwrap();
        kinds.iter().map(|kind| &*kind.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("", "", false, true), "ffuzz afl-cmplog libfuzzer");
    assert_eq!(names("", "", true, true), "ffuzz base");
    assert_eq!(names("", "z=ffuzz:-z; y=ffuzz+dict:-y", false, true), "ffuzz+dict ffuzz z y+dict");
    assert_eq!(names("afl+dict", "", false, false), "ffuzz+dict afl+dict");
    assert_eq!(wanted("", "", true, false).unwrap().len(), 12);
}

#[test]
fn only_rows_of_the_newest_builds_are_compared() {
    let (rows, broken) = row::parse(ROWS);
    assert_eq!((rows.len(), broken), (19, 1));
    let rows = row::comparable(rows, 20.0);
    assert_eq!(rows.len(), 16);
    assert!(rows.iter().all(|row| row.build != "ffuzz-0" && row.edges_total == 16));
    assert_eq!(row::edges("1a0").collect::<Vec<_>>(), [0, 5, 7]);
}

#[test]
fn the_report_says_who_reaches_more_and_where() {
    let report = Report::new(row::comparable(row::parse(ROWS).0, 20.0), Sets::default());
    let names = |target: &str| -> Vec<String> {
        (0..16).map(|edge| format!("{target}{}", edge / 8)).collect()
    };
    let functions =
        ["alpha", "beta"].map(|target| (target.to_owned(), names(target))).into_iter().collect();
    let text = report.text(&functions);
    for line in [
        "| ffuzz | 1a2b3c4, lab |  | 8 | 20.0 | A processor (2 cores) |",
        "| alpha | ffuzz | 4 | 10 (8 to 11) | 125 | | |  |",
        "| alpha | afl | 4 | 6 (4 to 6) | 125 | 0.579 | 0.00 | 0.029 |",
        "| beta | afl | 4 | 8 (8 to 8) | 125 | 2.000 | 1.00 | 0.029 |",
        "Seeds: the small ones of each target.",
        "| afl | ffuzz | 2 | 1.076 | 1 | 1 |",
        "| alpha | afl | 0 | ffuzz | 7 | –; alpha1 5, alpha0 2 |",
        "| beta | afl | 4 | ffuzz | 0 | beta0 4; – |",
    ] {
        assert!(text.lines().any(|found| found == line), "no line {line}\nin\n{text}");
    }
    assert!(report.text(&BTreeMap::new()).contains("| ? 4; – |"), "without a symbolizer");
}

#[test]
fn each_set_has_a_mean_of_its_own_the_judging_set_first() {
    let mut rows = row::comparable(row::parse(ROWS).0, 20.0);
    for row in rows.iter_mut().filter(|row| row.target == "beta") {
        row.target = "beta+ordinary".into();
    }
    let text = Report::new(rows, Sets::parse("alpha\nbeta\n", "beta\n")).text(&BTreeMap::new());
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in\n{text}"));
    let places = [
        "Seeds: the small ones of each target; ordinary (rows TARGET+ordinary).",
        "The judging set:",
        "| afl | ffuzz | 1 | 2.000 | 1 | 0 |",
        "The tuning set:",
        "| afl | ffuzz | 1 | 0.579 | 0 | 1 |",
    ]
    .map(place);
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_set_stands_for_its_targets() {
    let sets = Sets::parse("a\nb\nc\n", "b\nc\n");
    let named = |words| sets.named(words).map(|names| names.join(" "));
    assert_eq!(named("judging").unwrap(), "b c");
    assert_eq!(named("c tuning judging").unwrap(), "c a b");
    assert_eq!(named("a d"), Err(NoTarget("d".into())));
    assert_eq!(["b+ordinary", "a"].map(|target| sets.of(target)), [JUDGING, TUNING]);
}

#[test]
fn the_script_has_each_target_in_one_set() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/targets.sh");
    let list = |words: &[&str]| {
        let output = std::process::Command::new(script).arg("--list").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (all, tuning, judging) = (list(&[]), list(&[TUNING]), list(&[JUDGING]));
    assert_eq!(all, tuning.clone() + &judging);
    assert!(judging.lines().count() >= 10 && !judging.lines().any(|name| tuning.contains(name)));
    assert!(all.starts_with("cmark\nlibpng\nlcms2\nexpat\n"), "those of QUICK=1: {all}");
}

#[test]
fn the_picture_has_a_chart_a_target_and_a_line_a_kind() {
    let rows = row::comparable(row::parse(ROWS).0, 20.0);
    let picture = Report::new(rows, Sets::default()).picture();
    assert_eq!(picture.matches("<polyline").count(), 4);
    assert!(picture.contains(">alpha</text>") && picture.contains(">beta</text>"));
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
    assert!(Report::new(vec![], Sets::default()).picture().ends_with("</svg>\n"));
}
