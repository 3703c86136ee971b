//! `ffuzz -p`: domains guide, and everything that says so.
//!
//! Where each promise of FuzzFactory's is tested, here or in another file:
//!
//! | promise | tests |
//! |---|---|
//! | its targets run with and without `-p` | `every_number_of_legacy_domains…`, `hello_0…` |
//! | lines at the start, names, log | `the_start_introduces…`, `waypoints_lead…`, `the_log_has…` |
//! | `showdsf`: lines, `@@`, pipes, nothing left | `showdsf.rs` |
//! | reducers, initial values, widths, wrapping | `showdsf.rs`: `the_five…`, `four_maps…`, `wide_maps…` |
//! | each pass of a loop starts from zero | `showdsf.rs`: `persistent…`; `cc.rs`: `every_pass…` |
//! | its sources compile, elsewhere as nothing | `cc.rs`: `the_headers…`; `passes.rs`: `assumptions…` |
//! | its passes compile | `extension.rs`: `domains_of_fuzzfactory…` |
//! | no wrong sign, 62 bits, shared keys, elided calls | `cc.rs`, from `memcmp_that…` on |
//! | `valid` and `diff` know where to stop and begin | `passes.rs`: `blocks_after…`, `diff_counts…` |
//! | its fuzzer runs our targets | `passes.rs`: `fuzzfactorys_own…`, `what_does_not_fit…` |

use crate::common;
use std::path::PathBuf;

use common::{TestDir, id_of, plain, target, target_with};

const SEED: &[u8] = b"0\n0\n";

fn demo() -> PathBuf {
    target_with("cmp,mem", "demo/demo.c", "")
}

/// Best value of domain number `index` in `fuzzer_stats`.
fn best(dir: &TestDir, index: usize) -> u64 {
    dir.stat(&format!("dsf{index}_best"))
}

#[test]
fn waypoints_solve_the_demo() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-p -s 1 -E 30000", &demo(), "").run().expect(0);
    let queue = dir.queue();
    assert!(queue.iter().any(|name| name.ends_with(",+dsf")), "{queue:?}");
    // The edge behind a comparison of 32 bits, and the allocation behind that.
    assert!(queue.iter().any(|name| name.ends_with(",+cov,+dsf")), "{queue:?}");
    assert_eq!(best(&dir, 0), 32);
    assert!(best(&dir, 1) >= 1_000_000_000, "{}", best(&dir, 1));
    let stats = dir.stats();
    assert_eq!((stats["dsf_domains"].as_str(), stats["dsf_guided"].as_str()), ("2", "1"));
    assert_eq!((stats["dsf0_name"].as_str(), stats["dsf1_name"].as_str()), ("cmp", "mem"));

    // The queue, through the link in the output folder, is worth what the statistics say.
    let shown = dir.showdsf("-i out/queue", &demo(), "").run().expect(0);
    let values = shown.sorted_values();
    assert_eq!(u64::from(*values.last().unwrap()), best(&dir, 1));
}

#[test]
fn a_manual_map_solves_the_demo() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-p -s 1 -E 30000", &target("demo/demo-manual.c", ""), "").run().expect(0);
    assert_eq!(dir.stats()["dsf0_name"], "closeness");
    assert!(best(&dir, 0) >= 1_000_000_000, "{}", best(&dir, 0));
}

#[test]
fn without_p_domains_change_neither_search_nor_names() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-s 1 -E 8000", &demo(), "").run().expect(0).does_not_say("no effect");
    let queue = dir.queue();
    assert!(!queue.iter().any(|name| name.contains("+dsf")), "{queue:?}");
    assert_eq!(dir.stats()["dsf_guided"], "0");
    assert!(!dir.path("out/default/fuzzfactory.log").exists());
}

#[test]
fn p_with_a_schedule_is_the_option_of_afl() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-s 1 -E 4000 -p fast", &demo(), "").run().expect(0);
    assert!(!dir.queue().iter().any(|name| name.contains("+dsf")), "{:?}", dir.queue());
    assert_eq!(dir.stats()["dsf_guided"], "0");
    // Both at once need the long name of one.
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-s 1 -E 4000 -p --schedule fast", &demo(), "").run().expect(0);
    assert!(dir.queue().iter().any(|name| name.contains("+dsf")), "{:?}", dir.queue());
    assert_eq!(dir.stats()["dsf_guided"], "1");
}

#[test]
fn p_without_domains_warns_and_fuzzes() {
    let dir = TestDir::with_seed("A");
    let outcomes = target("outcomes.c", "");
    let job = dir.fuzz("-p -s 1 -E 20000", &outcomes, "abort").env("AFL_BENCH_UNTIL_CRASH", "1");
    job.run().expect(0).says("the target registers no domain");
    assert_eq!(dir.crashes().len(), 1);
}

#[test]
fn recorded_inputs_are_kept_apart_and_do_not_guide() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("--dsf-record -s 1 -E 4000", &demo(), "").run().expect(0);
    assert!(!dir.queue().iter().any(|name| name.contains("+dsf")), "{:?}", dir.queue());
    let recorded = std::fs::read_dir(dir.path("out/default/perf_inputs")).unwrap().count();
    assert!(recorded > 0);
}

/// The line as it has to be, made from the three decimal numbers in it.
fn update_line(line: &str, key: &str) -> String {
    let words = line.split(['=', ' ']);
    let [val, new, earlier] =
        words.filter_map(|word| word.parse::<u32>().ok()).collect::<Vec<_>>()[..]
    else {
        panic!("not three numbers: {line}");
    };
    format!(
        "DSF update at {key} val={val} (0x{val:08x}); new aggregate: {new} (0x{new:08x}); \
         earlier was: {earlier} (0x{earlier:08x})"
    )
}

#[test]
fn the_log_has_the_lines_of_fuzzfactory() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-p -s 1 -E 6000", &demo(), "").run().expect(0);
    let log = dir.text("out/fuzzfactory.log");
    let is_key = |text: &str| {
        text.len() == 8 && text.starts_with("0x") && u32::from_str_radix(&text[2..], 16).is_ok()
    };
    let mut kinds = [0; 8];
    let mut named = std::collections::BTreeSet::new();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let kind = match words.as_slice() {
            ["DSF", "update", "at", key, ..] => {
                let key = key.strip_prefix("key=").and_then(|key| key.strip_suffix(','));
                assert!(key.is_some_and(is_key), "{line}");
                assert!(key.is_some_and(|key| named.contains(key)), "no name before {line}");
                assert_eq!(line, update_line(line, words[3]));
                0
            }
            ["========", "Starting", "Keys", "========"] => 1,
            ["#", "DSF", "map", number] => {
                assert!(["0", "1"].contains(number), "{line}");
                2
            }
            ["#", "key", key, "is", domain, place, "cascade()", ..] => {
                assert!(is_key(key) && ["cmp", "mem"].contains(domain), "{line}");
                assert!(place.starts_with("demo.c:"), "{line}");
                assert!(named.insert(key.to_string()), "named twice: {line}");
                7
            }
            ["At", "key", key, "val", "is", _, hex] => {
                assert!(is_key(key.trim_end_matches(',')), "{line}");
                let value: i32 = words[5].parse().unwrap();
                assert_eq!(*hex, format!("(hex=0x{value:08x})"), "{line}");
                3
            }
            ["===============Fuzzing", "test", "case", number] => {
                assert!(number.starts_with('#') && number.ends_with("==============="), "{line}");
                4
            }
            ["adding", path, "to", "queue"] => {
                // Trimming and resuming never rename: every path is there.
                assert!(dir.path(path).exists(), "{line}");
                5
            }
            ["This", "input", "is", "the", "new", "top", "rated", "entry", "for", "key", key] => {
                assert!(is_key(key), "{line}");
                6
            }
            _ if line == "(Test case is not favored)" => continue,
            _ => panic!("a line of no known kind: {line}"),
        };
        kinds[kind] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
    assert_eq!((kinds[1], kinds[2]), (1, 2), "one start, two maps");
}

#[test]
fn a_resumed_campaign_starts_from_the_values_of_its_queue() {
    let dir = TestDir::with_seed(SEED);
    dir.fuzz("-p -s 1 -E 20000", &demo(), "").run().expect(0);
    let (queue, reached) = (dir.queue(), best(&dir, 0));
    assert!(reached > 19);
    let limit = dir.stat("execs_done") + queue.len() as u64 * 10 + 500;
    let job = dir.ffuzz(&format!("-p -i - -o out -t 3000 -s 2 -E {limit} --"));
    job.arg(demo()).run().expect(0);
    assert!(best(&dir, 0) >= reached);
    // What is known is not found again: nearly nothing joins the queue.
    assert_eq!(dir.queue()[..queue.len()], queue);
    assert!(dir.queue().len() < queue.len() + 8, "{} then {}", queue.len(), dir.queue().len());
    let log = dir.text("out/fuzzfactory.log");
    let start = log.rsplit("======== Starting Keys ========\n").next().unwrap();
    assert!(start.starts_with("# DSF map 0\nAt key "), "{start}");
}

// --- targets of the original

#[test]
fn legacy_targets_are_guided_by_domains_alone() {
    let legacy = plain("legacy.c", "");
    let run = |options: &str| {
        let dir = TestDir::with_seed("AAAA");
        let job = dir.fuzz(&format!("{options} -s 1 -E 15000"), &legacy, "dsf1");
        job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
        dir
    };
    let guided = run("-p");
    assert!(guided.crashes()[0].contains("sig:06"), "{:?}", guided.queue());
    assert!(guided.queue().iter().any(|name| name.ends_with(",+dsf")));
    // The same without -p: no domain, no way through 32 bits.
    let blind = run("");
    assert_eq!(blind.crashes(), Vec::<String>::new());
    assert_eq!(blind.queue().len(), 1, "{:?}", blind.queue());
}

#[test]
fn every_number_of_legacy_domains_runs_with_and_without_p() {
    let legacy = plain("legacy.c", "");
    for count in 1..=4 {
        for option in ["-p", ""] {
            let dir = TestDir::with_seed("AAAA");
            let options = format!("{option} -s 1 -E 600");
            dir.fuzz(&options, &legacy, &format!("dsf{count}")).run().expect(0);
            assert_eq!(dir.stat("dsf_domains"), count);
            let waypoints = dir.queue().iter().any(|name| name.contains("+dsf"));
            assert_eq!(waypoints, option == "-p", "{count}: {:?}", dir.queue());
            assert!(dir.queue().iter().enumerate().all(|(at, n)| at as u32 == id_of(n)));
        }
    }
}

#[test]
fn handshake_0_means_no_domains() {
    let legacy = plain("legacy.c", "");
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-p -s 1 -E 300", &legacy, "classic").run().expect(0);
    done.says("No domain-specific front-ends to receive.\n").says("registers no domain");
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-s 1 -E 300", &legacy, "classic").run().expect(0);
    done.does_not_say("domain-specific");
}

#[test]
fn the_start_lists_the_domains_as_fuzzfactory_does() {
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-p -s 1 -E 300", &target("maps.c", ""), "").run().expect(0);
    done.says(
        "Receiving 4 domain-specific front-ends..\n\
         [+] 4 domain-specific front-end configs received\n\
         DSF 0: Start=0x000000, End=0x000001, Size=1, Reducer[0]=MAX, Initial=0\n\
         DSF 1: Start=0x000001, End=0x000003, Size=2, Reducer[1]=MIN, Initial=-1\n\
         DSF 2: Start=0x000003, End=0x000006, Size=3, Reducer[3]=BITWISE_UNION, Initial=0\n\
         DSF 3: Start=0x000006, End=0x00000a, Size=4, Reducer[4]=BITWISE_INTERSECTION, \
         Initial=-1\n\
         Total DSF map length = 10\n",
    );
}

#[test]
fn maps_without_memory_or_beyond_the_limit_are_refused() {
    let dir = TestDir::with_seed("A");
    let large = target("wide.c", "-DHUGE=100000000u");
    let (cause, remedy) = ("there is no memory for the maps of its domains", "smaller domain maps");
    dir.fuzz("-p -m 200", &large, "").run().refused(1, cause, remedy);
    dir.showdsf("-m 200", &large, "").run().expect(1).says(cause).says(remedy);
    let larger = target("wide.c", "-DHUGE=300000000u");
    let cause = "domain maps have 300131073 keys, more than the 268435456 that ffuzz takes";
    dir.fuzz("-p", &larger, "").run().refused(1, cause, "use smaller maps");
}

#[test]
fn maps_that_change_between_starts_are_refused() {
    let dir = TestDir::with_seed("A");
    let starts = dir.path("starts").display().to_string();
    let done = dir.fuzz("-p", &target("changing.c", ""), "").env("STARTS", &starts).run();
    let cause = "registers other maps than at its first start";
    done.refused(1, cause, "the same maps in every start");
}

#[test]
fn bad_domain_records_give_a_one_line_error() {
    let dir = TestDir::with_seed("A");
    for kind in ["range", "gap", "order", "reducer"] {
        for option in ["-p", ""] {
            let done = dir.fuzz(option, &plain("legacy.c", ""), kind).run();
            done.refused(1, "domain records are unusable", "ffuzz-cc");
        }
    }
}

// --- slow inputs, and values that mean nothing

#[test]
fn the_timeout_grows_with_a_domain_for_slow_inputs() {
    let dir = TestDir::with_seed([1]);
    let job = dir.ffuzz("-p -i in -o out -s 1 -E 400 --").arg(target("slow.c", ""));
    job.run().expect(0);
    assert!(best(&dir, 0) >= 120 && dir.stat("exec_timeout") >= 40, "{}", best(&dir, 0));
}

#[test]
fn a_given_timeout_does_not_grow() {
    let dir = TestDir::with_seed([1]);
    // The seed takes a hundredth of the limit; a value of 101 is beyond it.
    dir.fuzz("-p -s 1 -E 40 -t 250", &target("slow.c", ""), "slower").run().expect(0);
    assert!((1..=100).contains(&best(&dir, 0)), "{}", best(&dir, 0));
    assert_eq!(dir.stat("exec_timeout"), 250);
}

#[test]
fn a_value_that_every_run_changes_makes_no_endless_waypoints() {
    let dir = TestDir::with_seed("AAAA");
    dir.fuzz("-p -s 1 -E 3000", &target("slow.c", ""), "noise").run().expect(0);
    assert!(dir.queue().len() < 20, "{:?}", dir.queue());
}
