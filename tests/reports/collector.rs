//! `ffuzz-collector` against bad answers: each has one line of cause and one of remedy, and what
//! could not be delivered stays.

use crate::collecting as fuzzmanager;
use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::{DEADLINE, Job, SmallDisk, TestDir, free_port, skip, wait_until};
use ffuzz::config::env::Environment;
use ffuzz::crashes::collector::{
    Client, CrashReport, Delivery, DeliveryWorker, IniValues, Settings, Spool,
};
use ffuzz::crashes::crash::Output;
use ffuzz::sys::remedy::Remedy;
use fuzzmanager::{Answer, FalseServer, configure};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const STORED: &str = r#"{"id":7,"bucket":null}"#;
const CREATED: &str = "201 Created\r\nContent-Type: application/json";
const NONE_FOUND: Answer =
    Answer::Say("200 OK\r\nContent-Type: application/json", r#"{"count":0,"results":[]}"#);
const FAILS: Answer = Answer::Say("500 Internal Server Error", "");
const STORES: Answer = Answer::Say(CREATED, STORED);
const PROGRAM: &str = "--product demo --platform x86-64 --os linux";
const REPORT: &str = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000001 (pc 0x55 bp 0x7f \
    sp 0x7f T0)\n    #0 0x55 in poke /src/a.c:1:2\n    #1 0x56 in stage /src/a.c:3:2\n    \
    #2 0x57 in main /src/a.c:9:2\n";

fn collector(dir: &TestDir, words: &str) -> Job {
    let job = dir.ffuzz(&format!("collector {words}"));
    job.env("FM_CONFIG_PATH", dir.path("fm.conf").to_str().unwrap())
}

/// A folder with a report, configured for a server that answers like this.
fn folder(answers: Vec<Answer>) -> (TestDir, FalseServer) {
    let (dir, server) = (TestDir::new(), FalseServer::start(answers));
    server.configure(&dir);
    // Signatures have just been fetched.
    dir.write("sig/.refreshed", "");
    dir.write("err.txt", REPORT);
    (dir, server)
}

fn submit(dir: &TestDir) -> Job {
    collector(dir, &format!("--submit --stderr err.txt {PROGRAM}"))
}

#[test]
fn a_refused_report_names_a_remedy() {
    let html = "Content-Type: text/html";
    let cases = [
        ("401 Unauthorized", "", "answers 401: the token", "get_auth_token"),
        ("403 Forbidden", "", "answers 403: the account", "add_permission"),
        (
            "400 Bad Request",
            r#"{"os":["too long"]}"#,
            r#"answers 400: {"os":["too long"]}"#,
            "correct",
        ),
        ("302 Found\r\nLocation: https://x/", "", "not FuzzManager's", "not to a proxy's"),
        ("200 OK", "<html>Log in</html>", "not FuzzManager's", "serverproto"),
        ("404 Not Found", "", "answers 404", "correct the values"),
    ];
    for (head, body, cause, remedy) in cases {
        let (dir, server) = folder(vec![Answer::Say(head, body)]);
        submit(&dir).run().refused(1, cause, remedy).does_not_say("very-secret");
        assert_eq!(server.requests().len(), 1, "{head}");
        assert!(server.requests()[0].contains("uthorization: Token very-secret"));
    }
    let (dir, _server) = folder(vec![Answer::Say("200 OK\r\nContent-Type: text/html", html)]);
    submit(&dir).run().refused(1, "not FuzzManager's", "not to a proxy's");
}

#[test]
fn the_requested_retry_time_is_kept() {
    let limit = Answer::Say("429 Too Many Requests\r\nRetry-After: 3", "{}");
    let (dir, server) = folder(vec![limit, NONE_FOUND, STORES]);
    let start = std::time::Instant::now();
    submit(&dir).run().expect(0).says("trying again in 3 s").says("stored as crash 7");
    assert!(start.elapsed().as_secs() >= 3);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_report_on_which_the_server_fails_is_sent_in_plain_form() {
    let (dir, server) = folder(vec![FAILS, NONE_FOUND, FAILS, NONE_FOUND, STORES]);
    submit(&dir).run().expect(0).says("answers 500");
    let requests = server.requests();
    assert!(requests[1].starts_with("GET "), "it asks first: {}", requests[1]);
    assert_eq!(
        (crash_data(&requests[0]), crash_data(&requests[2])),
        (String::new(), String::new())
    );
    let last = crash_data(&requests[4]);
    assert!(last.contains("received+signal+SIG") && last.contains("poke"), "{last}");
}

/// Of a submission.
fn crash_data(request: &str) -> String {
    let (_, rest) = request.split_once("rawCrashData=").unwrap();
    rest.split('&').next().unwrap().to_owned()
}

#[test]
fn a_server_that_fails_once_gets_the_report_as_it_is() {
    let (dir, server) = folder(vec![FAILS, NONE_FOUND, STORES]);
    submit(&dir).run().expect(0).says("answers 500").says("stored as crash 7");
    let requests = server.requests();
    assert_eq!((requests.len(), crash_data(&requests[2]).as_str()), (3, ""), "{requests:#?}");
    // A server that cannot even say whether it has the report has trouble of its own.
    let (dir, server) = folder(vec![FAILS, FAILS, FAILS, NONE_FOUND, STORES]);
    submit(&dir).run().expect(0).says("stored as crash 7");
    let requests = server.requests();
    assert_eq!((requests.len(), crash_data(&requests[4]).as_str()), (5, ""), "{requests:#?}");
}

#[test]
fn a_server_that_stores_late_gets_a_report_once() {
    const FOUND: Answer = Answer::Say(
        "200 OK\r\nContent-Type: application/json",
        r#"{"count":1,"results":[{"id":12}]}"#,
    );
    let deliver = |answers: Vec<Answer>, times: &[u64]| {
        let (dir, server) = folder(answers);
        let spool = spooled(&dir, &["a"]);
        let mut delivery = delivery(&dir, Duration::from_secs(1));
        let begin = SystemTime::now();
        for later in times {
            deliver_at(&dir, &mut delivery, begin + Duration::from_secs(*later));
        }
        assert_eq!(spool.counts().unwrap().sent, 1);
        let method = |request: &String| request.split(' ').next().unwrap().to_owned();
        server.requests().iter().map(method).collect::<Vec<_>>().join(" ")
    };
    // Twice, and nine times the time that an answer may take.
    let late = vec![Answer::Silence, NONE_FOUND, NONE_FOUND, FOUND];
    assert_eq!(deliver(late, &[0, 3, 6, 9]), "POST GET GET GET");
    // One that has lost it gets it in the end.
    let lost = vec![Answer::Silence, NONE_FOUND, NONE_FOUND, STORES];
    assert_eq!(deliver(lost, &[0, 6, 40]), "POST GET GET POST");
}

#[test]
fn show_prints_what_a_crash_report_contains() {
    let (dir, server) = folder(vec![STORES]);
    let done = collector(&dir, "--show --stderr err.txt").run().expect(0);
    let short = "[@ poke]";
    let frames = "#0 poke\n#1 stage\n#2 main\n";
    assert_eq!(done.out, format!("kind: asan\nshort: {short}\naddress: 0x1\n{frames}"));
    assert!(server.requests().is_empty());
    let gdb =
        "Program received signal SIGFPE, Arithmetic exception.\n#0  0x1 in share () at a.c:1\n";
    dir.write("gdb.txt", gdb);
    collector(&dir, "--show --crashdata gdb.txt")
        .run()
        .expect(0)
        .says("kind: gdb")
        .says("#0 share");
}

#[test]
fn a_lost_answer_is_searched_at_the_server() {
    let found = Answer::Say(
        "200 OK\r\nContent-Type: application/json",
        r#"{"count":1,"results":[{"id":12}]}"#,
    );
    let failing = Answer::Say("503 Service Unavailable", "");
    let (dir, server) = folder(vec![failing, found]);
    submit(&dir).run().expect(0).says("stored as crash 12");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn absent_slow_and_insecure_servers_have_different_messages() {
    let (dir, server) = folder(vec![Answer::Silence]);
    let refresh = |words: &str| collector(&dir, &format!("--refresh {words}")).run();
    refresh(&format!("--serverport {}", free_port())).refused(
        1,
        "cannot reach http:",
        "serverhost",
    );
    refresh("--serverproto https").refused(1, "no secure connection to https:", "servercafile");
    let text = dir.text("fm.conf").replace("servertimeout = 20", "servertimeout = 1");
    dir.write("fm.conf", text);
    refresh("").refused(1, "gave no answer in time", "whether the server runs");
    assert!(!server.requests().is_empty());
}

#[test]
fn a_damaged_archive_leaves_the_signatures_as_they_are() {
    let archive = Answer::Say("200 OK\r\nContent-Type: application/zip", "PK not really");
    let (dir, _server) = folder(vec![archive, Answer::Say("404 Not Found", "")]);
    dir.write("sig/1.signature", "{}");
    collector(&dir, "--refresh").run().refused(1, "is damaged", "export_signatures");
    collector(&dir, "--refresh").run().refused(1, "has no signatures yet", "export_signatures");
    assert_eq!(dir.names("sig"), [".refreshed", "1.signature"]);
}

/// An archive of so many files with the same content.
fn archive(count: usize, bytes: &[u8]) -> Answer {
    let options = SimpleFileOptions::default();
    let mut one = ZipWriter::new(Cursor::new(vec![]));
    one.start_file("0.signature", options).unwrap();
    one.write_all(bytes).unwrap();
    let mut one = one.finish_into_readable().unwrap();
    let mut all = ZipWriter::new(Cursor::new(vec![]));
    for number in 0..count {
        let file = one.by_index_raw(0).unwrap();
        all.raw_copy_file_rename(file, format!("{number}.signature")).unwrap();
    }
    Answer::File(all.finish().unwrap().into_inner())
}

#[test]
fn an_archive_that_would_fill_memory_or_disk_is_refused() {
    let blank = vec![b' '; 16 << 20];
    for (answer, cause) in [
        (archive(17, &blank), "it unpacks to more than 256 MiB"),
        (archive(1, &[&blank[..], b"{}"].concat()), "\"0.signature\" in it is larger than 16 MiB"),
        (archive(100_001, b"{}"), "it holds more than 100000 files"),
    ] {
        let (dir, _server) = folder(vec![answer]);
        dir.write("sig/1.signature", "{}");
        collector(&dir, "--refresh").run().refused(1, cause, "export_signatures");
        assert_eq!(dir.names("sig"), [".refreshed", "1.signature"]);
    }
}

#[test]
fn a_server_that_sends_single_bytes_slowly_is_given_up() {
    let (dir, _server) = folder(vec![Answer::Drip]);
    let mut server = settings(&dir).server().unwrap();
    server.patience = Duration::from_millis(500);
    let error = Client::new(server).unwrap().signatures(&mut vec![]).unwrap_err();
    assert!(error.to_string().ends_with("gave no answer in time"), "{error}");
    assert!(error.remedy().contains("servertimeout"), "{}", error.remedy());
}

#[test]
fn search_and_generate_answer_as_the_reference_does() {
    let (dir, _server) = folder(vec![Answer::Silence]);
    let crash = format!("--stderr err.txt {PROGRAM}");
    collector(&dir, &format!("--search {crash}")).run().expect(3).says("No match found");
    let made = collector(&dir, &format!("--generate {crash}")).run().expect(0);
    let path = made.out.trim_end().to_owned();
    // The name is the SHA-1 of the text.
    let name = dir.names("sig").pop().unwrap();
    assert!(
        path.ends_with(&format!("/sig/{name}")) && name.len() == 40 + ".signature".len(),
        "{path}"
    );
    let found = collector(&dir, &format!("--search {crash}")).run().expect(0);
    assert_eq!(found.out, format!("{path}\n"));
    fs::write(path.replace(".signature", ".metadata"), "{\n    \"size\": 2\n}").unwrap();
    let found = collector(&dir, &format!("--search {crash}")).run().expect(0);
    assert_eq!(found.out, format!("{path}\n{{\n    \"size\": 2\n}}\n"));
    // Another caller: the signature is made to fit both.
    dir.write("other.txt", REPORT.replace("in stage", "in elsewhere"));
    let words = format!("--generalize {path} --stderr other.txt {PROGRAM}");
    let fitted: serde_json::Value =
        serde_json::from_str(&collector(&dir, &words).run().expect(0).out).unwrap();
    let frames = &fitted["symptoms"][0]["functionNames"];
    assert_eq!(*frames, serde_json::json!(["poke", "?", "main"]));
    dir.write("none.txt", "hello\n");
    let words = format!("--generalize {path} --stderr none.txt {PROGRAM}");
    collector(&dir, &words).run().expect(3).says("No match found");
    let words = format!("--generalize none.txt --stderr none.txt {PROGRAM}");
    collector(&dir, &words).run().refused(1, "none.txt is not a signature", "NAME.signature");
    let nothing = format!("--generate --stderr none.txt {PROGRAM}");
    collector(&dir, &nothing).run().refused(
        1,
        "too little information for a signature",
        "sanitizer build",
    );
    dir.write("sig/bad.signature", "{");
    for (name, length) in [("long", 1 << 20), ("deep", 1 << 13)] {
        let expression = "{".repeat(length);
        let symptom = serde_json::json!({"type": "output", "value": format!("/{expression}/")});
        let signature = serde_json::json!({ "symptoms": [symptom] });
        dir.write(&format!("sig/{name}.signature"), signature.to_string());
    }
    collector(&dir, &format!("--search {crash}"))
        .run()
        .expect(0)
        .says("warning: bad is not a signature")
        .says("warning: long is not a signature: an expression is longer than 64 KiB")
        .does_not_say("warning: deep");
}

#[test]
fn wrong_usage_ends_with_2() {
    let (dir, _server) = folder(vec![Answer::Silence]);
    for words in
        ["", "--refresh --search", "--search", "--submit --stderr err.txt", "--env x --search"]
    {
        assert_eq!(collector(&dir, words).run().code(), 2, "{words}");
    }
    collector(&dir, "--search").run().refused(2, "product is not set", "BINARY.fuzzmanagerconf");
    dir.write("fm.conf", "[Main]\n");
    collector(&dir, "--refresh").run().refused(2, "sigdir is not set", "--sigdir");
    dir.write("fm.conf", "x\n");
    collector(&dir, "--refresh").run().refused(1, "line 1: a section has to come first", "[Main]");
}

#[test]
fn the_client_id_and_ignored_sections_are_shown() {
    let (dir, _server) = folder(vec![Answer::Silence]);
    let done = collector(&dir, "--get-clientid").run().expect(0);
    assert_eq!(done.out, "host-7\n");
    assert_eq!(collector(&dir, "--get-clientid --clientid a").run().out, "a\n");
    dir.write("fm.conf", "[Other]\n[Main]\nclientid = b\n");
    collector(&dir, "--get-clientid")
        .run()
        .says("Ignoring the following config file sections: Other");
}

fn spooled(dir: &TestDir, keys: &[&str]) -> Spool {
    let spool = Spool::open(&dir.path("spool")).unwrap();
    for key in keys {
        spool.add(&CrashReport { key: (*key).to_owned(), ..CrashReport::default() }).unwrap();
    }
    spool
}

#[test]
fn a_spool_keeps_what_the_server_does_not_take() {
    let (dir, server) = folder(vec![Answer::Say("401 Unauthorized", ""), NONE_FOUND, STORES]);
    let spool = spooled(&dir, &["a", "b"]);
    collector(&dir, "--deliver spool").run().refused(1, "2 reports are left", "serverauthtoken");
    assert_eq!(server.requests().len(), 1, "one refusal of the account is enough");
    assert_eq!(spool.counts().unwrap().waiting, 2);
    collector(&dir, "--deliver spool").run().expect(0).says("2 reports are at the server");
    assert_eq!(spool.counts().unwrap().sent, 2);
    assert!(spool.claim().unwrap().is_some());
    let _claim = spool.claim().unwrap();
    collector(&dir, "--deliver spool").run().refused(1, "another process delivers", "stop it");
    collector(&dir, "--deliver nowhere").run().refused(
        1,
        "nowhere is not a spool",
        "OUT/triage/spool",
    );
}

#[test]
fn a_report_that_is_refused_for_good_is_kept_with_the_reason() {
    let (dir, _server) = folder(vec![Answer::Say("400 Bad Request", "no"), STORES]);
    let spool = spooled(&dir, &["a", "b"]);
    collector(&dir, "--deliver spool").run().refused(
        1,
        "1 reports were refused",
        "see spool/refused/*.txt for the reasons",
    );
    let counts = spool.counts().unwrap();
    assert_eq!((counts.waiting, counts.sent, counts.refused), (0, 1, 1));
    let refused = dir.names("spool/refused");
    let reason = refused.iter().find(|name| name.ends_with(".txt")).unwrap();
    assert!(dir.text(&format!("spool/refused/{reason}")).contains("answers 400: no"));
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let dir = TestDir::new();
    let Some(disk) = SmallDisk::mount(dir.path("disk"), "size=256k") else { return };
    let spool = Spool::open(&disk.0.join("spool")).unwrap();
    let mut added = 0;
    let error = loop {
        let stdout = "x".repeat(50_000);
        let output = Output { stdout, ..Output::default() };
        let report = CrashReport { key: added.to_string(), output, ..CrashReport::default() };
        match spool.add(&report) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().starts_with("no room left to write"), "{error}");
    assert_eq!(error.remedy(), "free some space; nothing is lost");
    assert!(added > 1);
    assert_eq!(spool.counts().unwrap().waiting, added);
    // All of them are whole.
    let server = FalseServer::start(vec![STORES]);
    configure(&dir, server.port, "t", "http");
    fs::remove_file(
        fs::read_dir(disk.0.join("spool/waiting")).unwrap().next().unwrap().unwrap().path(),
    )
    .unwrap();
    collector(&dir, "--deliver disk/spool").run().expect(0);
    assert_eq!(spool.counts().unwrap().sent, added - 1);
}

fn settings(dir: &TestDir) -> Settings {
    let path = dir.path("fm.conf");
    let env = Environment::from_pairs(&[("FM_CONFIG_PATH", path.to_str().unwrap())]);
    Settings::read(&env, IniValues::new()).unwrap()
}

#[test]
fn several_workers_send_each_report_once() {
    let (dir, server) = folder(vec![STORES]);
    let spool = spooled(&dir, &[]);
    let start = || DeliveryWorker::start(&dir.path("spool"), &settings(&dir)).unwrap();
    let mut workers = vec![start(), start(), start()];
    for number in 0..30 {
        let report = CrashReport { key: number.to_string(), ..CrashReport::default() };
        spool.add(&report).unwrap();
        workers.iter().for_each(DeliveryWorker::wake);
        if number == 10 {
            // Whoever delivers goes away; another takes over.
            wait_until("a delivery", || spool.counts().unwrap().sent > 0);
            workers.remove(0);
        }
    }
    wait_until("all of them", || spool.counts().unwrap().sent == 30);
    for worker in workers {
        let status = worker.finish(DEADLINE);
        assert_eq!((status.counts.waiting, status.counts.sent), (0, 30));
        assert!(status.error.is_none(), "{status:?}");
    }
    assert_eq!(server.requests().len(), 30);
}

#[test]
fn the_status_names_why_reports_wait() {
    let (dir, server) = folder(vec![Answer::Say("403 Forbidden", "")]);
    spooled(&dir, &["a", "b"]);
    let worker = DeliveryWorker::start(&dir.path("spool"), &settings(&dir)).unwrap();
    wait_until("its word", || worker.status().error.is_some());
    let status = worker.finish(Duration::ZERO);
    let (cause, remedy) = status.error.unwrap();
    assert!(cause.contains("answers 403") && remedy.contains("add_permission"), "{cause} {remedy}");
    assert_eq!(status.counts.waiting, 2);
    assert_eq!(server.requests().len(), 1, "a second report is not tried at once");
}

/// Reports of one bug.
fn add(spool: &Spool, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let output = Output { stderr: REPORT.to_owned(), ..Output::default() };
        spool
            .add(&CrashReport { key: number.to_string(), output, ..CrashReport::default() })
            .unwrap();
    }
}

#[test]
fn a_frequent_bug_is_not_reported_and_a_known_one_ten_times() {
    let (dir, server) = folder(vec![STORES]);
    let spool = Spool::open(&dir.path("spool")).unwrap();
    let deliver = |numbers| {
        add(&spool, numbers);
        collector(&dir, "--deliver spool").run().expect(0)
    };
    let signature = r#"{"symptoms":[{"type":"stackFrames","functionNames":["poke"]}]}"#;
    dir.write("sig/9.signature", signature);
    dir.write("sig/9.metadata", r#"{"frequent": false}"#);
    deliver(0..7).says("7 reports are at the server");
    // Each delivery is a process of its own.
    deliver(7..12).says("10 reports are at the server").says("2 were skipped");
    assert_eq!(server.requests().len(), 10);
    // The count starts again with each refresh.
    dir.write("sig/.refreshed", "");
    deliver(12..13).says("11 reports are at the server");
    // The server asks its newest bucket first.
    dir.write("sig/10.signature", signature);
    dir.write("sig/10.metadata", r#"{"frequent": true}"#);
    deliver(13..14).says("11 reports are at the server").says("3 were skipped");
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn old_signatures_are_downloaded_again() {
    const NO_ARCHIVE: Answer = Answer::Say("404 Not Found", "");
    let answers = vec![NO_ARCHIVE, STORES, STORES, NO_ARCHIVE, STORES];
    let (dir, server) = folder(answers);
    fs::remove_file(dir.path("sig/.refreshed")).unwrap();
    let settings = settings(&dir);
    let spool = Spool::open(&dir.path("spool")).unwrap();
    let client = Client::new(settings.server().unwrap()).unwrap();
    let claim = spool.claim().unwrap().unwrap();
    let mut delivery = Delivery::new(claim, client, settings.signatures_for(&dir.path("spool")));
    let start = SystemTime::now();
    for (number, minutes) in [(0, 0), (1, 5), (2, 90)] {
        add(&spool, number..number + 1);
        let now = start + Duration::from_secs(60 * minutes);
        delivery.deliver_due(|| now, || true).unwrap();
    }
    assert!(delivery.last_error().is_none(), "{:?}", delivery.last_error());
    let requests = server.requests();
    let asks = requests.iter().map(|request| request.contains("signatures/download/"));
    assert_eq!(asks.collect::<Vec<_>>(), [true, false, false, true, false]);
}

/// Delivers at its own pace from the spool of a folder, which it has to itself.
fn delivery(dir: &TestDir, patience: Duration) -> Delivery {
    let (settings, path) = (settings(dir), dir.path("spool"));
    let mut server = settings.server().unwrap();
    server.patience = patience;
    let claim = Spool::open(&path).unwrap().claim().unwrap().unwrap();
    Delivery::new(claim, Client::new(server).unwrap(), settings.signatures_for(&path))
}

#[test]
fn a_wait_begins_when_the_request_is_given_up() {
    let (dir, server) = folder(vec![Answer::Silence]);
    spooled(&dir, &["a", "b"]);
    let mut delivery = delivery(&dir, Duration::from_secs(1));
    // Each request takes a minute.
    let begin = SystemTime::now();
    let now = || begin + Duration::from_secs(60) * server.requests().len() as u32;
    for _ in 0..2 {
        delivery.deliver_due(now, || true).unwrap();
        let error = delivery.last_error().unwrap().to_string();
        assert!(error.contains("no answer in time"), "{error}");
        assert_eq!(server.requests().len(), 1, "the server has a rest first");
    }
}

#[test]
fn a_request_that_may_be_under_way_is_not_repeated_before_it_is_settled() {
    let (dir, server) = folder(vec![Answer::HangUp, STORES, NONE_FOUND, STORES]);
    let spool = spooled(&dir, &["a"]);
    let patience = Duration::from_secs(60);
    let mut delivery = delivery(&dir, patience);
    let begin = SystemTime::now();
    let mut deliver = |later| delivery.deliver_due(|| begin + later, || true).unwrap();
    deliver(Duration::ZERO);
    spool.add(&CrashReport { key: "b".into(), ..CrashReport::default() }).unwrap();
    // The server takes others meanwhile.
    for later in [5, 30, 59] {
        deliver(Duration::from_secs(later));
        assert_eq!((server.requests().len(), spool.counts().unwrap().sent), (2, 1));
    }
    // The wait begins when the request is given up, which may be late on a busy machine.
    deliver(patience * 2);
    let requests = server.requests();
    let methods = requests.iter().map(|request| request.split(' ').next().unwrap());
    assert_eq!(methods.collect::<Vec<_>>(), ["POST", "POST", "GET", "POST"]);
    assert_eq!(spool.counts().unwrap().waiting, 0);
}

/// Delivers at this time; signatures are fresh then.
fn deliver_at(dir: &TestDir, delivery: &mut Delivery, now: SystemTime) {
    let refreshed = fs::File::options().write(true).open(dir.path("sig/.refreshed")).unwrap();
    refreshed.set_modified(now).unwrap();
    delivery.deliver_due(|| now, || true).unwrap();
}

#[test]
fn no_wait_is_longer_than_a_day() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    for head in [
        "429 Too Many Requests\r\nRetry-After: 18446744073709551615",
        "500 Internal Server Error\r\nRetry-After: 9999999999",
    ] {
        let (dir, server) = folder(vec![Answer::Say(head, ""), NONE_FOUND, STORES]);
        let spool = spooled(&dir, &["a"]);
        let mut delivery = delivery(&dir, DEADLINE);
        let begin = SystemTime::now();
        for later in [Duration::ZERO, DAY - Duration::from_secs(1)] {
            deliver_at(&dir, &mut delivery, begin + later);
            assert_eq!(server.requests().len(), 1, "{head}");
        }
        // Times are stored as text, which may cost the last bit of one.
        deliver_at(&dir, &mut delivery, begin + DAY + Duration::from_millis(1));
        assert_eq!(spool.counts().unwrap().sent, 1, "{head}");
    }
}

#[test]
fn a_clock_set_back_delays_nothing() {
    let fails = Answer::Say("500 Internal Server Error", "");
    let (dir, _server) = folder(vec![fails, NONE_FOUND, STORES]);
    let spool = spooled(&dir, &["a"]);
    let mut delivery = delivery(&dir, DEADLINE);
    let now = SystemTime::now();
    deliver_at(&dir, &mut delivery, now + Duration::from_secs(365 * 24 * 3600));
    deliver_at(&dir, &mut delivery, now);
    assert_eq!(spool.counts().unwrap().sent, 1);
}

/// The number behind a line of `targets/lines.c`.
fn expected(line: &str) -> Option<i64> {
    let (_, rest) = line.rsplit_once("/* ")?;
    rest.strip_suffix(" */")?.parse().ok()
}

#[test]
fn line_counts_equal_the_number_of_inputs() {
    let (dir, server) = folder(vec![Answer::Say(CREATED, "{}")]);
    for (name, input) in [("1", "a"), ("2", "((1)"), ("3", "ac")] {
        dir.write(&format!("inputs/{name}"), input);
    }
    let path = common::repository("tests/targets/lines.c");
    let source = fs::read_to_string(&path).unwrap();
    let target = common::target("lines.c", "-g -O0");
    let words = "--coverage inputs --repository demo --revision 1 --root";
    let send = |target: &std::path::Path, root: &std::path::Path| {
        let words = collector(&dir, words).arg(root).arg("--");
        words.arg(target).run()
    };
    send(&target, path.parent().unwrap()).expect(0).says("3 inputs reach ");
    let (_, body) = server.requests()[0]
        .split_once("\r\n\r\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let fields: serde_json::Value = serde_json::from_str(&body).unwrap();
    let tree: serde_json::Value =
        serde_json::from_str(fields["coverage"].as_str().unwrap()).unwrap();
    let counts = tree["children"]["lines.c"]["coverage"].as_array().unwrap();
    let mut checked = 0;
    for (line, count) in source.lines().zip(counts) {
        if let Some(expected) = expected(line) {
            assert_eq!(count.as_i64(), Some(expected), "{line}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");

    send(&target, &dir.path("inputs")).refused(1, "none of the 1 source files is below", "--root");
    let bare = common::target("lines.c", "-O0 -g0");
    send(&bare, &dir.path("")).refused(1, "no debug information about lines", "-g");
    send(&common::plain("outcomes.c", ""), &dir.path("")).refused(1, "", "ffuzz-cc");
    collector(&dir, words).arg(".").run().refused(1, "no command line", "-- ./target @@");
    dir.write("empty/queue/.hidden", "");
    let words = "--coverage empty --repository demo --revision 1";
    collector(&dir, words).run().refused(1, "no inputs in empty", "-o");
    assert_eq!(server.requests().len(), 1);
}

/// The lines with code that llvm-cov knows, and whether an input has reached each.
fn by_llvm_cov(dir: &TestDir, source: &str, inputs: &[&str]) -> BTreeMap<u32, bool> {
    let compiler = if source.ends_with(".cc") { "clang++-19" } else { "clang-19" };
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(dir.path("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let flags = ["-O0", "-g", "-fprofile-instr-generate", "-fcoverage-mapping", "-o", "profiled"];
    run(compiler, &[&flags[..], &[source]].concat());
    for (number, input) in inputs.iter().enumerate() {
        let mut target = Command::new(dir.path("profiled"));
        target.env("LLVM_PROFILE_FILE", dir.path(&format!("{number}.profraw")));
        let target = target.stdin(fs::File::open(dir.write("stdin", input)).unwrap());
        target.output().unwrap();
    }
    let raw: Vec<String> = (0..inputs.len()).map(|number| format!("{number}.profraw")).collect();
    let words = ["merge", "-o", "all.profdata"].into_iter().chain(raw.iter().map(String::as_str));
    run("llvm-profdata-19", &words.collect::<Vec<_>>());
    let lcov = run(
        "llvm-cov-19",
        &["export", "-format=lcov", "-instr-profile=all.profdata", "./profiled"],
    );
    let of_line = |line: &str| {
        let (number, count) = line.strip_prefix("DA:")?.split_once(',')?;
        Some((number.parse().unwrap(), count != "0"))
    };
    lcov.lines().filter_map(of_line).collect()
}

#[test]
fn covered_lines_equal_those_of_llvm_cov() {
    if ["clang-19", "llvm-cov-19", "llvm-profdata-19"]
        .iter()
        .any(|name| Command::new(name).arg("--version").output().is_err())
    {
        skip("clang-19 and llvm-19 are not installed");
        return;
    }
    let programs: [(&str, &[&str], usize); 4] = [
        ("lines.c", &["a", "((1)", "ac"], 20),
        ("ending.c", &["q", "j", "za"], 25),
        ("ending.c", &["u", "e"], 25),
        ("throwing.cc", &["r", "x"], 10),
    ];
    for (source, inputs, least) in programs {
        let (dir, server) = folder(vec![Answer::Say(CREATED, "{}")]);
        for (number, input) in inputs.iter().enumerate() {
            dir.write(&format!("inputs/{number}"), input);
        }
        let path = common::repository("tests/targets").join(source);
        let language = if source.ends_with(".cc") { "-x c++ -lstdc++" } else { "" };
        let target = common::target(source, &format!("-g -O0 {language}"));
        let words = "--coverage inputs --repository demo --revision 1 --root";
        let job = collector(&dir, words).arg(path.parent().unwrap()).arg("--").arg(target);
        job.run().expect(0);
        let fields: serde_json::Value =
            serde_json::from_str(server.requests()[0].split_once("\r\n\r\n").unwrap().1).unwrap();
        let tree: serde_json::Value =
            serde_json::from_str(fields["coverage"].as_str().unwrap()).unwrap();
        let counts = tree["children"][source]["coverage"].as_array().unwrap();
        let ours = |line: u32| counts.get(line as usize - 1)?.as_i64().filter(|count| *count >= 0);
        let text = fs::read_to_string(&path).unwrap();
        let (mut known, mut differences) = (0, Vec::new());
        for (line, reached) in by_llvm_cov(&dir, path.to_str().unwrap(), inputs) {
            let words = text.lines().nth(line as usize - 1).unwrap();
            match ours(line) {
                Some(count) if (count > 0) == reached => known += 1,
                Some(count) => differences.push(format!("{line}: {words}: {count}, not {reached}")),
                None if words.trim_end().ends_with(");") => {
                    differences.push(format!("{line}: {words}: left out"));
                }
                None => {}
            }
        }
        assert_eq!(differences, [""; 0], "{source} {inputs:?}");
        assert!(known >= least, "{source} {inputs:?}: {known}");
    }
}

#[test]
fn certificates_are_checked() {
    let dir = TestDir::new();
    let words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test \
                 -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    dir.program("openssl").words(words).run().expect(0);
    let port = free_port();
    let mut command = std::process::Command::new("openssl");
    command.args(["s_server", "-quiet", "-www", "-key", "key.pem", "-cert", "cert.pem", "-accept"]);
    command.arg(port.to_string()).current_dir(dir.path(""));
    let _server = common::Helper(command.stdout(std::process::Stdio::null()).spawn().unwrap());
    wait_until("openssl", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    configure(&dir, port, "very-secret", "https");
    let refused = collector(&dir, "--refresh").run();
    refused.refused(1, "no secure connection to https:", "servercafile").says("certificate");
    // It is the test's own, and says nothing that FuzzManager would.
    let trusted = collector(&dir, "--refresh --servercafile cert.pem").run();
    trusted.refused(1, "not FuzzManager's", "not to a proxy's");
    collector(&dir, "--refresh --servercafile key.pem").run().refused(
        1,
        "key.pem: it holds a private key, and no certificate",
        "set servercafile to your authority's certificate",
    );
}
