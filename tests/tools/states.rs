//! Coverage states: what one campaign knows is not new to another, states are joined, and the difference
//! of two has names. The laws of joining are tested beside the type (`src/engine/feedback/known.rs`).

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{SmallDisk, TestDir, afl_target, plain, skip, target, target_with};

/// `x`, `A` and `B` take different ways, `C` crashes.
fn program() -> PathBuf {
    target("letters.c", "")
}

/// The state of these inputs, made by showmap.
fn state(dir: &TestDir, name: &str, target: &Path, inputs: &[&str]) {
    for (number, input) in inputs.iter().enumerate() {
        dir.write(&format!("{name}-in/{number}"), input);
    }
    let words = format!("showmap -q -C -i {name}-in -o {name}-edges --save-coverage {name}");
    let code = dir.tool(&words, target, "").run().code();
    assert!(code == 0 || code == 2, "{code}");
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_campaign_counts_only_what_is_beyond_the_state() {
    let dir = TestDir::with_seed("A");
    let program = target_with("cmp", "letters.c", "");
    let limits = "-p -s 1 -E 5000 --save-coverage state";
    dir.fuzz(limits, &program, "").run().expect(0);
    assert!(dir.stat("corpus_found") > 0);
    // The same search finds the same again, and nothing of it is new.
    let again = dir.ffuzz("-i in -o again -t 3000 -p -s 1 -E 2000 --load-coverage state");
    let again = again.arg("--").arg(&program).run().expect(0);
    again.says("only what is beyond counts as new").says("0 of them found");
    // What the first campaign found, the tools know as well.
    let words = "showmap -q -C -i out/default/queue -o edges --load-coverage state --dsf";
    dir.tool(words, &program, "").run().expect(0);
    assert_eq!(dir.text("edges"), "");
    dir.tool("showmap -q -C -i out/default/queue -o all", &program, "").run().expect(0);
    assert!(!dir.text("all").is_empty());
}

#[test]
fn a_state_goes_from_campaign_to_campaign_and_survives_a_kill() {
    let dir = TestDir::with_seed("A");
    let program = program();
    let endless = dir.fuzz("-s 1 --save-coverage state", &program, "");
    let mut run = endless.env("AFL_FUZZER_STATS_UPDATE_INTERVAL", "1").start();
    run.wait_for_campaign(&dir);
    common::wait_until("a state", || dir.path("state").exists());
    run.signal(nix::sys::signal::Signal::SIGKILL);
    run.finish().expect(128 + libc::SIGKILL);
    let resumed = dir.ffuzz("-i - -o out -t 3000 -E 1 --load-coverage state --save-coverage next");
    resumed.arg("--").arg(&program).run().expect(0);
    let lost = dir.ffuzz("merge --only-new next state").run().expect(0);
    lost.says("beyond: 0 edges, 0 hit counts");
}

#[test]
fn joining_has_no_order_and_a_difference_has_names() {
    let dir = TestDir::new();
    let program = target_with("cmp", "letters.c", "");
    state(&dir, "a", &program, &["x"]);
    state(&dir, "b", &program, &["x", "A", "B"]);
    state(&dir, "c", &program, &["C"]);
    let merge = |words: &str| dir.ffuzz(&format!("merge {words}")).run().expect(0);
    merge("-o abc a b c").says("merged 3 states: ");
    merge("-o cba c b a a c");
    merge("-o one abc");
    assert_eq!(dir.read("abc"), dir.read("cba"));
    assert_eq!(dir.read("abc"), dir.read("one"));
    merge("--only-new abc b").says("beyond: 0 edges, 0 hit counts, 0 crash edges");
    let beyond = json(&merge("--json --only-new a b").out);
    let edges = beyond["edges"].as_array().unwrap();
    assert!(!edges.is_empty(), "{beyond}");
    for edge in edges {
        assert_eq!(edge["function"], "main", "{edge}");
        assert!(edge["file"].as_str().unwrap().ends_with("letters.c"), "{edge}");
        assert!(edge["line"].as_u64().unwrap() > 0, "{edge}");
    }
    let keys = beyond["keys"].as_array().unwrap();
    assert!(
        keys.iter().any(|key| key["place"].as_str().unwrap().starts_with("letters.c:")),
        "{beyond}"
    );
    let text = merge("--only-new a b").out;
    assert!(text.lines().next().unwrap().starts_with("edge "), "{text}");
}

#[test]
fn a_difference_without_the_program_has_numbers() {
    let dir = TestDir::new();
    let copy = dir.path("copy");
    fs::copy(program(), &copy).unwrap();
    state(&dir, "a", &copy, &["x"]);
    state(&dir, "b", &copy, &["x", "B"]);
    fs::remove_file(&copy).unwrap();
    let said = dir.ffuzz("merge --only-new a b").run().expect(0);
    assert!(said.err.contains("no names of copy"), "{}", said.err);
    said.says("edge ").says("copy ?");
    // A stripped copy is the same build, and valid for the state.
    fs::copy(program(), &copy).unwrap();
    let stripped = Command::new("strip").arg(&copy).status().unwrap();
    assert!(stripped.success());
    dir.tool("showmap -q -C -i a-in -o edges --load-coverage a", &copy, "").run().expect(0);
    assert_eq!(dir.text("edges"), "");
}

#[test]
fn states_of_others_and_damaged_ones_are_refused() {
    let dir = TestDir::with_seed("A");
    let (own, other) = (program(), target("letters.c", "-DSOMETHING -O0"));
    state(&dir, "own", &own, &["x"]);
    let with = |state: &str, target: &Path| {
        dir.fuzz(&format!("-E 10 --load-coverage {state}"), target, "").run()
    };
    let words = (" does not fit: it is of another", "--save-coverage");
    with("own", &other).refused(1, words.0, words.1);
    assert!(!dir.path("out/default/queue").exists() || dir.queue().is_empty());
    let showmap = dir.tool("showmap -q -o - --load-coverage own", &other, "").input("x").run();
    showmap.refused(1, words.0, words.1);
    state(&dir, "other", &other, &["x"]);
    dir.ffuzz("merge -o out.state own other").run().refused(1, words.0, words.1);
    assert!(!dir.path("out.state").exists());
    with("missing", &own).refused(1, "cannot read the coverage state", "check the path");
    with("in", &own).refused(1, "a folder, not a regular file", "check the path");
    let text = dir.text("own");
    for (name, text) in [
        ("cut", text[..text.len() / 2].to_owned()),
        ("empty", String::new()),
        ("changed", text.replacen("FF", "FE", 1)),
        ("huge", text.replacen("\"map_size\":", "\"map_size\":9", 1)),
        ("number", "7".repeat(10_000)),
        ("deep", "[".repeat(100_000)),
    ] {
        dir.write(name, text);
        with(name, &own).refused(1, "is no coverage state", "give a file of --save-coverage");
    }
    dir.write("newer", text.replacen("ffuzz-coverage/1", "ffuzz-coverage/2", 1));
    with("newer", &own).refused(1, "format is ffuzz-coverage/2", "the version of ffuzz");
    dir.write("code", "{\"last_status\": 0}");
    with("code", &own).refused(1, "without edge maps", "instrumentation afl");
    let blind = dir.fuzz("-n -E 10 --load-coverage own", &plain("letters.c", ""), "").run();
    blind.refused(1, "the target has no edges", "build the target with ffuzz-cc");
    // Not only after hours.
    let nowhere = dir.fuzz("-E 10 --save-coverage no/folder/x", &own, "").run();
    nowhere.refused(1, "no/folder/x", "path given to --save-coverage");
    assert!(!dir.path("out/default/queue").exists() || dir.queue().is_empty());
}

#[test]
fn a_copy_is_the_same_program_and_the_main_worker_writes_the_state() {
    let dir = TestDir::with_seed("A");
    let copy = dir.path("another-name");
    fs::copy(program(), &copy).unwrap();
    dir.fuzz("-j 2 -E 3000 --save-coverage state", &program(), "").run().expect(0);
    let done = dir.ffuzz("-i in -o again -t 3000 -E 200 --load-coverage state --").arg(&copy).run();
    done.expect(0).says("only what is beyond counts as new");
}

/// Killerbeez's maps: 65536 bytes, never seen but for the first ones.
fn foreign(first: &str) -> String {
    let map = |first: &str| format!("\"::MEM::{first}{}\"", "FF".repeat(65536 - first.len() / 2));
    format!(
        "{{\"virgin_bits\": {}, \"virgin_tmout\": {}, \"virgin_crash\": {}}}",
        map(first),
        map(""),
        map("")
    )
}

#[test]
fn files_of_killerbeez_belong_to_maps_of_its_size() {
    let dir = TestDir::with_seed("A");
    dir.write("a", foreign("FE"));
    dir.write("b", foreign("fffc"));
    dir.ffuzz("merge -o both a b").run().expect(0).says("merged 2 states: 2 edges");
    assert!(dir.text("both").contains("\"virgin_bits\":\"::MEM::FEFCFFFF"));
    let own = dir.fuzz("-E 10 --load-coverage both", &program(), "").run();
    own.refused(1, "its map has 65536 edges", "Killerbeez's need a map of 65536 edges");
    // A program with AFL's classic map takes them, and its states can be joined with them.
    let classic =
        afl_target("letters.c", "-fsanitize-coverage=no-prune -Wno-unused-command-line-argument");
    let size = dir.tool("showmap -C -i in -o edges", &classic, "").run().expect(0).err;
    if !size.contains("Target map size: 65536") {
        return skip("this AFL++ builds programs with maps of their own size");
    }
    let run = dir.fuzz("-E 100 --load-coverage both --save-coverage own", &classic, "").run();
    run.expect(0).says("does not name its program");
    let merged = dir.ffuzz("merge -o all own a b").run().expect(0);
    assert!(merged.err.contains("a, b: cannot check that this belongs"), "{}", merged.err);
}

#[test]
fn targets_of_killerbeez_get_their_run_settings() {
    let dir = TestDir::with_seed("A");
    let done = dir.fuzz("-E 10", &plain("legacy.c", ""), "killerbeez");
    let done = done.env("AFL_SKIP_BIN_CHECK", "1").run();
    done.refused(1, "Killerbeez's own fork server protocol", "AFL_NO_FORKSRV=1 runs it");
}

/// A file without the name of its program stays doubtful, whatever it is merged with.
#[test]
fn a_state_of_an_unknown_program_leaves_a_mark() {
    let dir = TestDir::with_seed("A");
    let own = program();
    state(&dir, "own", &own, &["x"]);
    let size = usize::try_from(json(&dir.text("own"))["map_size"].as_u64().unwrap()).unwrap();
    let map = format!("\"::MEM::{}\"", "FF".repeat(size));
    let foreign = ["virgin_bits", "virgin_tmout", "virgin_crash"];
    let foreign = foreign.map(|key| format!("\"{key}\": {map}")).join(", ");
    dir.write("foreign", format!("{{{foreign}}}"));
    let merged = dir.ffuzz("merge -o all own foreign").run().expect(0);
    assert!(merged.err.contains("foreign: cannot check that this belongs"), "{}", merged.err);
    for (out, state) in [("one", "all"), ("two", "next")] {
        let words = format!("-i in -o {out} -t 3000 -E 50 --load-coverage {state}");
        let run = dir.ffuzz(&words).words("--save-coverage next --").arg(&own).run();
        run.expect(0).says(&format!("{state} does not name its program"));
    }
    let quiet = dir.ffuzz("merge -o both own own").run().expect(0);
    assert_eq!(quiet.err, "");
}

/// As Killerbeez's merger: a bit that one of the files has cleared is cleared.
#[test]
fn maps_of_crashes_are_joined_byte_for_byte() {
    let dir = TestDir::new();
    let with = |crashes: &str| {
        foreign("FE").replacen(
            "\"virgin_crash\": \"::MEM::FFFFFF",
            &format!("\"virgin_crash\": \"::MEM::{crashes}"),
            1,
        )
    };
    dir.write("a", with("7F7FFE"));
    dir.write("b", with("7FFEFE"));
    dir.ffuzz("merge -o both a b").run().expect(0);
    let both = dir.text("both");
    assert!(both.contains("\"virgin_crash\":\"::MEM::7F7EFEFF"), "{}", &both[both.len() - 200..]);
    dir.ffuzz("merge -o again both a").run().expect(0);
    assert_eq!(dir.text("again"), both);
}

/// Where Killerbeez was built, with its `merger`.
const UPSTREAM: &str = "KILLERBEEZ_BUILD";

#[test]
fn the_merger_of_killerbeez_reads_our_files_and_we_its() {
    let Some(folder) = std::env::var_os(UPSTREAM) else {
        skip(&format!("{UPSTREAM} does not name the folder of Killerbeez's merger"));
        return;
    };
    let merger = Path::new(&folder).join("merger");
    let dir = TestDir::new();
    dir.write("a", foreign("FEF0"));
    dir.write("b", foreign("FFFE7F"));
    dir.write("c", foreign("FCFFFFFFFE"));
    let ours = |words: &str| dir.ffuzz(&format!("merge {words}")).run().expect(0);
    let theirs = |words: &str| {
        dir.program(merger.to_str().unwrap()).words(&format!("afl {words}")).run().expect(0)
    };
    theirs("theirs a b c");
    ours("-o ours a b c");
    ours("-o from-theirs theirs");
    assert_eq!(dir.read("ours"), dir.read("from-theirs"));
    // Theirs takes a file of ours among its own, in the first place and later.
    ours("-o ab a b");
    for order in ["ab c", "c ab"] {
        theirs(&format!("mixed {order}"));
        assert_eq!(dir.read("mixed"), dir.read("theirs"), "{order}");
    }
}

#[test]
fn a_full_disk_leaves_the_old_state() {
    let dir = TestDir::new();
    let Some(disk) = SmallDisk::mount(dir.path("small"), "size=512k") else { return };
    dir.write("a", foreign("FE"));
    dir.write("b", foreign("FFFE"));
    let out = disk.0.join("out");
    dir.ffuzz("merge -o").arg(&out).arg("a").run().expect(0);
    let before = fs::read(&out).unwrap();
    // There is no room for a second one beside the first.
    dir.ffuzz("merge -o").arg(&out).words("a b").run().refused(
        1,
        "no room left",
        "free some space",
    );
    assert_eq!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1);
}
