//! Against a real FuzzManager server: what is sent arrives as it is, once, whatever goes away.

use crate::collecting as fuzzmanager;
use crate::common;
use std::collections::BTreeSet;

use common::{Job, TestDir, wait_until};
use ffuzz::crashes::collector::{CrashReport, Spool, Testcase};
use ffuzz::crashes::crash::{Output, ProgramInfo};
use fuzzmanager::{Answer, FalseServer, Server, configure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const PROGRAM: &str = "--product Demo --productversion 1.0 --platform x86-64 --os Linux";

fn collector(dir: &TestDir, words: &str) -> Job {
    let job = dir.ffuzz(&format!("collector {words}"));
    job.env("FM_CONFIG_PATH", dir.path("fm.conf").to_str().unwrap())
}

fn stderr(function: &str) -> String {
    format!(
        "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000001 (pc 0x55 bp 0x7f sp 0x7f T0)\n\
         \x20   #0 0x55 in {function} /src/a.c:1:2\n    #1 0x56 in stage /src/a.c:3:2\n\
         \x20   #2 0x57 in main /src/a.c:9:2\n"
    )
}

fn report(key: &str) -> CrashReport {
    let (product, os) = ("demo".to_owned(), "linux".to_owned());
    CrashReport {
        key: key.to_owned(),
        program: ProgramInfo {
            product,
            os,
            platform: "x86-64".into(),
            product_version: String::new(),
        },
        output: Output { stderr: stderr("poke"), ..Output::default() },
        testcase: Some(Testcase { bytes: key.as_bytes().to_vec(), ..Testcase::default() }),
        metadata: [("key".to_owned(), key.to_owned())].into(),
        ..CrashReport::default()
    }
}

/// The keys of all reports at the server, in order, each as often as it is there.
fn keys(server: &Server) -> Vec<String> {
    let key = |crash: &Value| {
        let metadata: Value = serde_json::from_str(crash["metadata"].as_str().unwrap()).unwrap();
        metadata["key"].as_str().unwrap().to_owned()
    };
    server.crashes().iter().map(key).collect()
}

#[test]
fn a_crash_arrives_unchanged() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    let input = b" \x80\xff\0 white space at both ends\r\n";
    dir.write("in.bin", input);
    dir.write("err.txt", [stderr("poke").as_bytes(), b"\0\xff\n"].concat());
    let words = "--submit --stderr err.txt --testcase in.bin --testcasequality 5 --env LANG=C \
                 --metadata a=b c=d --args run \\-x";
    collector(&dir, &format!("{words} {PROGRAM}")).run().expect(0).says("stored as crash 1");
    let crash = server.get("crashes/1/");
    let text = |key: &str| crash[key].as_str().unwrap().to_owned();
    assert_eq!(text("shortSignature"), "[@ poke]");
    assert_eq!(text("rawStderr"), format!("{}\u{fffd}\u{fffd}", stderr("poke")));
    assert_eq!((text("product"), text("os")), ("demo".into(), "linux".into()));
    assert_eq!((text("product_version"), text("client")), ("1.0".into(), "host-7".into()));
    let parsed = |key: &str| serde_json::from_str::<Value>(&text(key)).unwrap();
    assert_eq!(parsed("args"), json!(["run", "-x"]));
    assert_eq!(parsed("env"), json!({ "LANG": "C" }));
    assert_eq!(parsed("metadata")["c"], "d");
    assert_eq!(
        (&crash["testcase_quality"], &crash["testcase_size"]),
        (&json!(5), &json!(input.len()))
    );

    let done = collector(&dir, "--download 1").run().expect(0);
    assert!(
        done.out.starts_with("Command line arguments: run -x\n\nEnvironment variables: LANG = C\n")
    );
    assert!(done.out.ends_with("\n1.bin\n"), "{}", done.out);
    assert_eq!(dir.read("1.bin"), input);
    collector(&dir, &format!("--submit --stderr err.txt {PROGRAM}")).run().expect(0);
    collector(&dir, "--download 2").run().refused(1, "without its input", "another crash");
}

#[test]
fn signatures_come_back_and_match() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    dir.write("poke.txt", stderr("poke"));
    dir.write("other.txt", stderr("other"));
    dir.write("input", "k=v");
    collector(&dir, "--refresh").run().refused(1, "no signatures yet", "export_signatures");
    for _ in 0..2 {
        let words = format!("--submit --stderr poke.txt --testcase input {PROGRAM}");
        collector(&dir, &words).run().expect(0);
    }
    let signature =
        json!({ "symptoms": [{ "type": "stackFrames", "functionNames": ["poke", "stage"] }] });
    let bucket = json!({ "signature": signature.to_string(), "shortDescription": "pokes",
        "frequent": false, "permanent": false, "doNotReduce": false });
    let bucket = server.post("buckets/?save=true&reassign=true", &bucket);
    assert_eq!(bucket["inListCount"], 2);
    server.administer(&["export_signatures", "signatures.zip"]);
    dir.write("sig/0123.signature", "{}");
    dir.write("sig/notes", "");
    collector(&dir, "--refresh").run().expect(0).says("warning: notes in").says("1 signatures in");
    assert_eq!(dir.names("sig"), [".refreshed", "1.metadata", "1.signature", "notes"]);
    let found = collector(&dir, &format!("--search --stderr poke.txt {PROGRAM}")).run().expect(0);
    let path = format!("{}\n", dir.path("sig/1.signature").display());
    assert!(found.out.starts_with(&path) && found.out.contains("\"shortDescription\": \"pokes\""));
    collector(&dir, &format!("--search --stderr other.txt {PROGRAM}")).run().expect(3);

    let done = collector(&dir, "--download-all 1").run().expect(0);
    assert_eq!(done.out, "1\n2\n");
    assert_eq!(dir.read("2"), b"k=v");
    collector(&dir, "--download-all 9").run().refused(1, "bucket 9 has 0 crashes", "the bucket");
}

#[test]
fn a_kill_during_delivery_makes_no_duplicate() {
    let Some(mut server) = Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    let spool = Spool::open(&dir.path("spool")).unwrap();
    let wanted: BTreeSet<String> = (0..30).map(|number| format!("bug {number:02}")).collect();
    for key in &wanted {
        spool.add(&report(key)).unwrap();
    }
    // Killed twice at work, with the server away in between.
    for done in [5, 12] {
        let running = collector(&dir, "--deliver spool").start();
        wait_until("some reports", || spool.counts().unwrap().sent >= done);
        running.signal(Signal::SIGKILL);
        drop(running);
        server.stop();
        let mut waiting = collector(&dir, "--deliver spool").start();
        waiting.wait_for("cannot reach");
        drop(waiting);
        server.resume();
    }
    for key in &wanted {
        spool.add(&report(key)).unwrap();
    }
    collector(&dir, "--deliver spool").run().expect(0).says("30 reports are at the server");
    let mut keys = keys(&server);
    keys.sort();
    assert_eq!(keys, Vec::from_iter(wanted));
}

#[test]
fn a_stored_report_whose_answer_got_lost_is_not_sent_again() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::new();
    let relay = FalseServer::start(vec![Answer::Lose(server.port), Answer::Forward(server.port)]);
    configure(&dir, relay.port, &server.token(), "http");
    // So long it waits for the server to be done with the request.
    dir.write("fm.conf", dir.text("fm.conf").replace("servertimeout = 20", "servertimeout = 5"));
    dir.write("sig/.refreshed", "");
    let spool = Spool::open(&dir.path("spool")).unwrap();
    spool.add(&report("a")).unwrap();
    spool.add(&report("b")).unwrap();
    collector(&dir, "--deliver spool").run().expect(0).says("2 reports are at the server");
    let mut keys = keys(&server);
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn the_request_limit_of_the_server_is_respected() {
    let Some(server) = Server::with_rate("2/second") else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    let spool = Spool::open(&dir.path("spool")).unwrap();
    let wanted: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    for key in &wanted {
        spool.add(&report(key)).unwrap();
    }
    let done = collector(&dir, "--deliver spool").run().expect(0);
    done.says("answers 429: too many requests; trying again later");
    wait_until("a second without requests", {
        let start = std::time::Instant::now();
        move || start.elapsed().as_millis() > 1100
    });
    let mut keys = keys(&server);
    keys.sort();
    assert_eq!(keys, wanted);
}

/// The server knows the repository `demo`.
fn set_up_repository(server: &Server, dir: &TestDir) {
    let git = dir.path("repository");
    assert!(dir.program("git").arg("init").arg("-q").arg(&git).run().status.success());
    let provider = ["setup_repository", "demo", "GITSourceCodeProvider"];
    server.administer(&[&provider[..], &[git.to_str().unwrap()]].concat());
}

#[test]
fn the_lines_that_a_campaign_has_reached_are_stored() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::with_seed("((1)");
    server.configure(&dir);
    set_up_repository(&server, &dir);
    let target = common::target("lines.c", "-g -O0");
    dir.fuzz("-E 200 -s 1", &target, "").run().expect(0);
    let words = "--coverage out --repository demo --revision 83038f74 --root";
    let done = collector(&dir, words).arg(common::repository("tests")).run().expect(0);
    done.says(&format!("{} inputs reach ", dir.queue().len())).says(" lines in 1 files");
    let stored = server.coverage();
    let tree = server.file(stored[0]["coverage"].as_str().unwrap());
    let tree: Value = serde_json::from_slice(&tree).unwrap();
    let file = &tree["children"]["targets"]["children"]["lines.c"];
    let source = std::fs::read_to_string(common::repository("tests/targets/lines.c")).unwrap();
    let count = |words: &str| {
        let line = source.lines().position(|line| line.contains(words)).unwrap();
        file["coverage"][line].as_i64().unwrap()
    };
    // Every input ends up in one of these two, if it is not empty.
    assert!(count("depth++;") >= 1 && count("if (!fgets") == dir.queue().len() as i64);
    assert_eq!(count("#include <stdio.h>"), -1);
    assert!(file["linesMissed"].as_u64().unwrap() > 0 && tree["linesTotal"] == file["linesTotal"]);
}

#[test]
fn coverage_is_stored() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    set_up_repository(&server, &dir);
    dir.write(
        "lcov.info",
        format!("SF:{}\nDA:1,3\nDA:2,0\nend_of_record\n", dir.path("src/a.c").display()),
    );
    let words = "--coverage lcov.info --repository demo --revision 83038f74 --description";
    collector(&dir, words).arg("first run").run().expect(0);
    collector(&dir, "--coverage lcov.info --repository none --revision 1").run().refused(
        1,
        "answers 4",
        "",
    );
    collector(&dir, "--coverage lcov.info").run().refused(
        2,
        "repository is not set",
        "setup_repository",
    );
    collector(&dir, "--coverage fm.conf --repository demo").run().refused(
        1,
        "neither lcov",
        "llvm-cov",
    );
    let stored = server.coverage();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(
        (&stored[0]["revision"], &stored[0]["description"]),
        (&json!("83038f74"), &json!("first run"))
    );
}

#[test]
fn a_command_is_run_and_its_crash_is_sent() {
    let Some(server) = Server::start() else { return };
    let dir = TestDir::new();
    server.configure(&dir);
    let source = "#include <stdlib.h>\n#include <stdio.h>\n\
        __attribute__((noinline)) void poke(int c) { volatile int *p = (int *)(long)c; *p = 1; }\n\
        int main(int n, char **words) { FILE *f = fopen(words[n - 1], \"r\");\n\
        if (f && fgetc(f) == '!') poke(1); return 0; }\n";
    let path = dir.write("a.c", source);
    let target = common::plain(path.to_str().unwrap(), "-fno-omit-frame-pointer");
    dir.write("bad", b"!\xff");
    dir.write("good", "?");
    let submit = |input: &str| {
        let job = collector(&dir, &format!("--autosubmit {PROGRAM} --testcase {input}"));
        job.arg(&target).words(&format!("-v {input}")).run()
    };
    submit("good").refused(1, "does not crash", "--autosubmit");
    submit("bad").expect(0).says("stored as crash 1");
    let crash = server.get("crashes/1/");
    assert_eq!(crash["shortSignature"], "[@ poke]", "{crash}");
    assert_eq!(crash["crashAddress"], "0x1");
    assert_eq!(crash["args"], r#"["-v"]"#);
    // A program that reads its standard input.
    let job = collector(&dir, &format!("--autosubmit {PROGRAM} --testcase bad"));
    job.arg(&target).arg("/dev/stdin").run().expect(0).says("stored as crash 2");
    assert_eq!(server.get("crashes/2/")["args"], r#"["/dev/stdin"]"#);
}
