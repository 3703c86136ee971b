//! `--pastis` with a broker that stands in for the real one, and does what that does seldom.

use crate::broker;
use crate::client as control;
use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::time::Instant;

use broker::{Broker, Client, start_for};
use common::{Running, TestDir, plain, stats_of, target, wait_until};
use ffuzz::fleet::pastis::engines::{ENGINES, VERSION};
use ffuzz::fleet::pastis::messages::{
    EngineMessage, EngineState, Message, SeedKind, StartMessage, Telemetry,
};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::Value;
use zip::write::SimpleFileOptions;

/// Levels on the wire.
const DEBUG: i32 = 10;
const INFO: i32 = 20;
const WARNING: i32 = 2;
const ERROR: i32 = 3;
/// A seed from which the target is a few bytes away.
const NEAR: &[u8] = b"RLAYxxxx";

fn relay() -> PathBuf {
    common::relay("", "")
}

/// An engine of one worker that waits for this broker.
fn engine(dir: &TestDir, broker: &Broker, options: &str) -> Running {
    let workers = if options.contains("-j") { "" } else { "-j 1" };
    let job = dir.ffuzz("--pastis").arg(broker.address()).words("-o out -t 1000").words(workers);
    job.words(options).env("AFL_HANG_TMOUT", "1000").start()
}

/// The folder of the only target.
fn session(dir: &TestDir) -> String {
    let mut names = dir.names("out");
    names.retain(|name| !name.starts_with('.'));
    assert_eq!(names.len(), 1, "{names:?}");
    format!("out/{}", names[0])
}

fn finish(running: Running) -> common::Finished {
    running.signal(Signal::SIGTERM);
    running.finish().expect(0)
}

#[test]
fn a_target_is_fuzzed_from_start_to_stop() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "");
    let mut client = broker.client();
    let names: Vec<&str> = client.hello.engines.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ENGINES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert!(!client.hello.host.contains(['_', '/']) && !client.hello.host.is_empty());
    client.start(start_for(&relay()));
    client.seed(SeedKind::Input, NEAR);
    client.wait_for_seed("a crash", |kind, bytes| {
        kind == SeedKind::Crash && bytes.get(4) == Some(&b'C')
    });
    client.wait_for_seed("a hang", |kind, bytes| {
        kind == SeedKind::Hang && bytes.get(4) == Some(&b'H')
    });
    client.wait_for_seed("an input", |kind, bytes| {
        kind == SeedKind::Input && bytes.starts_with(b"RLAY")
    });
    let asked = Instant::now();
    client.stop();
    running.wait_for("ended (User)");
    // A broker may expect it within 5 s, of a machine that is not overloaded.
    eprintln!("from Stop to the end: {:?}", asked.elapsed());
    // What crashes or hangs never went out as an input, nothing went back, nothing was empty or twice.
    let seeds = client.seeds();
    for (kind, bytes) in &seeds {
        assert!(!bytes.is_empty() && bytes != NEAR, "{kind:?}");
        let behind = (bytes.starts_with(b"RLAY") && bytes.len() > 5).then(|| bytes[4]);
        assert_eq!(*kind == SeedKind::Crash, behind == Some(b'C'), "{kind:?} {bytes:?}");
        assert_eq!(*kind == SeedKind::Hang, behind == Some(b'H'), "{kind:?} {bytes:?}");
    }
    assert_eq!(seeds.iter().collect::<BTreeSet<_>>().len(), seeds.len());
    // It waits for the next one.
    client.start(start_for(&relay()));
    client.wait_for_log(INFO, "fuzzing target in");
    wait_until("a fuzzer again", || running.processes().len() > 1);
    finish(running);
}

#[test]
fn programs_without_source_are_fuzzed() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "-j 1");
    let mut client = broker.client();
    client.start(StartMessage { fuzz_mode: 2, ..start_for(&plain("halves.c", "")) });
    client.seed(SeedKind::Input, b"HALx");
    client.wait_for_seed("a crash", |kind, seed| kind == SeedKind::Crash && seed == b"HALF");
    client.stop();
    running.wait_for("ended (User)");
    finish(running);
}

/// The domain is that of the engine; the steps of the target's loop look alike.
#[test]
fn programs_without_source_are_guided_by_a_domain() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "-j 1");
    let mut client = broker.client();
    let engine = EngineMessage {
        name: "FFUZZ-HEAP".into(),
        version: VERSION.into(),
        module: "pastisffuzz.heap".into(),
    };
    client.start(StartMessage {
        engine: Some(engine),
        fuzz_mode: 2,
        ..start_for(&plain("amounts.c", ""))
    });
    client.seed(SeedKind::Input, b"xx");
    client.wait_for_execs(1);
    let queue = format!("{}/out/main/queue", session(&dir));
    wait_until("a waypoint", || dir.names(&queue).iter().any(|name| name.ends_with(",+dsf")));
    let setup = fs::read_to_string(dir.path(&format!("{queue}/../fuzzer_setup"))).unwrap();
    assert!(setup.contains("WAYPOINTS=heap"), "{setup}");
    client.stop();
    running.wait_for("ended (User)");
    finish(running);
}

/// The messages of an input that is a list of them.
fn messages(input: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut rest, mut messages) = (input, Vec::new());
    while let Some((word, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*word) & 0xff_ffff;
        let (message, after) = after.split_at_checked(length.try_into().unwrap())?;
        messages.push(message);
        rest = after;
    }
    rest.is_empty().then_some(messages)
}

/// The options come from both sides: the socket of the broker wins, and the user's --split belongs to it.
#[test]
fn servers_are_fuzzed_over_their_socket() {
    let one =
        |text: &str| [&[u8::try_from(text.len()).unwrap(), 0, 0, 0], text.as_bytes()].concat();
    let list = ["LOGIN x", "MAIL y", "QUIT"].map(one).concat();
    for (user, engine_args, seed, queued) in [
        ("--net tcp:7000 -p", "--answers '^25(.)'", list.clone(), list),
        (
            "--net udp:53 --split ;",
            "--net tcp:7000",
            b"LOGIN x;MAIL y;QUIT".to_vec(),
            ["LOGIN x;", "MAIL y;", "QUIT"].map(one).concat(),
        ),
    ] {
        let (dir, broker) = (TestDir::new(), Broker::start());
        let mut running = engine(&dir, &broker, user);
        let mut client = broker.client();
        let start = StartMessage {
            argv: vec!["epoll".into()],
            engine_args: engine_args.into(),
            ..start_for(&target("sockets.c", ""))
        };
        client.start(start);
        client.seed(SeedKind::Input, &seed);
        client.wait_for_seed("a crash", |kind, bytes| {
            let has = |word: &[u8]| {
                messages(bytes).is_some_and(|all| all.iter().any(|m| m.starts_with(word)))
            };
            kind == SeedKind::Crash && has(b"DATA") && has(b"LOGIN")
        });
        client.wait_for_seed("an input", |kind, bytes| {
            kind == SeedKind::Input && messages(bytes).is_some_and(|all| all.len() > 1)
        });
        // A find of another engine, which is run as it is and not sent back.
        let other = ["LOGIN", "MAIL", "LOGIN", "DATA", "MAIL", "DATA"].map(one).concat();
        client.seed(SeedKind::Crash, &other);
        client.wait_for_log(DEBUG, "2 inputs of the broker were run, 0 dropped");
        client.stop();
        running.wait_for("ended (User)");
        assert!(client.seeds().iter().all(|(_, bytes)| *bytes != seed && *bytes != other));
        let worker = format!("{}/out/main", session(&dir));
        let queue = format!("{worker}/queue");
        // Behind the engine's own seed, if that of the broker came too late for the start.
        let mut entries = dir.entries(&queue).into_iter();
        assert!(entries.any(|name| dir.read(&format!("{queue}/{name}")) == queued));
        let setup = dir.text(&format!("{worker}/fuzzer_setup"));
        assert!(setup.contains("'--net' 'tcp:7000'") && !setup.contains("udp:53"), "{setup}");
        for word in ["--split", "--answers"] {
            let is_given = user.contains(word) || engine_args.contains(word);
            assert_eq!(setup.contains(word), is_given, "{setup}");
        }
        let stats = stats_of(&dir.text(&format!("{worker}/fuzzer_stats")));
        assert_eq!(
            stats.get("dsf0_name").map(String::as_str),
            user.contains("-p").then_some("answers")
        );
        finish(running);
    }
}

#[test]
fn a_socket_that_does_not_fit_is_refused() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    for (options, cause) in
        [("--net 80", "names no socket"), ("--net tcp:80 --answers (", "--answers (")]
    {
        let words = format!("--pastis {} {options}", broker.address());
        dir.ffuzz(&words).run().refused(2, cause, "");
    }
    let running = engine(&dir, &broker, "--net tcp:7000");
    let mut client = broker.client();
    let start = start_for(&relay());
    let with =
        |engine_args: &str| StartMessage { engine_args: engine_args.into(), ..start.clone() };
    for (start, cause) in [
        (with("--net tcp:0"), "\"0\" is no port"),
        (with("--answers a"), "--answers names a domain"),
        (StartMessage { argv: vec!["@@".into()], ..start.clone() }, "names a file for them"),
    ] {
        client.start(start);
        client.wait_for_log(ERROR, cause);
    }
    finish(running);
}

#[test]
fn numbers_are_those_of_the_statistics() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "-j 2");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.seed(SeedKind::Input, NEAR);
    client.wait_for_seed("a hang", |kind, _| kind == SeedKind::Hang);
    let stats = |worker: &str| {
        let file = format!("{}/out/{worker}/fuzzer_stats", session(&dir));
        stats_of(&fs::read_to_string(dir.path(&file)).unwrap_or_default())
    };
    wait_until("statistics of the second worker", || !stats("worker01").is_empty());
    client.stop();
    running.wait_for("ended (User)");
    let idle = |client: &Client| {
        client.numbers().into_iter().rfind(|n| n.state == EngineState::Idle as i32 && n.execs > 0)
    };
    wait_until("the last numbers", || idle(&client).is_some());
    let last: Telemetry = idle(&client).unwrap();
    let folder = format!("{}/out", session(&dir));
    let whole = dir.ffuzz("whatsup --json -d").arg(folder).run().expect(0).out;
    let whole = &serde_json::from_str::<Value>(&whole).unwrap()["summary"];
    assert_eq!(last.execs, whole["execs_done"], "{whole}");
    assert_eq!(last.hangs, whole["saved_hangs"], "{whole}");
    assert_eq!(last.edges, whole["edges_found"], "{whole}");
    assert_eq!(last.paths, whole["corpus_count"], "{whole}");
    let most = |key: &str| {
        let number = |worker| stats(worker)[key].parse::<u64>().unwrap();
        number("main").max(number("worker01"))
    };
    assert_eq!((u64::from(last.cycles), last.last_find), (most("cycles_done"), most("last_find")));
    assert!(last.hangs > 0 && last.paths > 1 && last.blocks == 0);
    assert!(last.memory > 0.0 && last.memory < 100.0);
    finish(running);
}

#[test]
fn inputs_of_the_broker_are_run_and_never_sent_back() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_execs(1);
    client.seed(SeedKind::Input, b"");
    client.seed(SeedKind::Input, &vec![b'x'; (1 << 20) + 1]);
    client.seed(SeedKind::Crash, b"RLAYCrash");
    client.seed(SeedKind::Hang, b"RLAYHang");
    for _ in 0..3 {
        client.seed(SeedKind::Input, b"RLAYxxxx");
    }
    client.wait_for_log(WARNING, "an empty input");
    client.wait_for_log(WARNING, "above 1 MiB");
    client.send(Message::Seed(ffuzz::fleet::pastis::messages::SeedMessage {
        bytes: b"y".to_vec(),
        kind: 9,
    }));
    client.wait_for_log(WARNING, "an unknown kind");
    let worker = format!("{}/out/main", session(&dir));
    for (folder, content) in
        [("queue", "RLAYxxxx"), ("crashes", "RLAYCrash"), ("hangs", "RLAYHang")]
    {
        wait_until(&format!("{content} in {folder}"), || {
            let folder = format!("{worker}/{folder}");
            let names = dir.entries(&folder);
            names.iter().any(|name| dir.read(&format!("{folder}/{name}")) == content.as_bytes())
        });
    }
    client.stop();
    running.wait_for("inputs of the broker: 3 run, 0 dropped, 0 not run");
    let back = ["RLAYCrash", "RLAYHang", "RLAYxxxx"];
    assert!(client.seeds().iter().all(|(_, bytes)| back.iter().all(|b| b.as_bytes() != bytes)));
    finish(running);
}

#[test]
fn a_package_brings_all_that_the_target_needs() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "");
    let mut client = broker.client();
    let mut start = start_for(&relay());
    start.package =
        zip(&[("target", &start.package), ("target.dict", b"a=\"RLAY\""), ("conf", b"x")]);
    start.argv = vec!["@@".into()];
    start.seed_location = 1;
    start.environment = vec!["RELAY_SECRET=a 'b'".into(), "AFL_NO_ARITH=1".into()];
    start.engine_args = "-t 400 -G 64".into();
    client.start(start);
    client.seed(SeedKind::Input, NEAR);
    // An edge that is there only with the variable.
    client.wait_for_seed("the secret", |_, bytes| bytes.starts_with(b"RLAYS"));
    client.stop();
    running.wait_for("ended (User)");
    let folder = session(&dir);
    let setup = dir.text(&format!("{folder}/out/main/fuzzer_setup"));
    assert!(setup.contains("'-G' '64'") && setup.contains("AFL_NO_ARITH=1"), "{setup}");
    assert!(setup.contains("target.dict") && setup.contains("'@@'"), "{setup}");
    assert!(setup.contains("'400'") && !setup.contains("'1000'"), "{setup}");
    assert_eq!(dir.text(&format!("{folder}/package/conf")), "x");
    finish(running);
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(vec![]));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn invalid_start_messages_are_answered() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.wait_for_log(WARNING, "no Start after 10 s");
    let good = start_for(&relay());
    let engine = |name: &str, version: &str| {
        Some(EngineMessage { name: name.into(), version: version.into(), module: String::new() })
    };
    let foreign = {
        let mut program = good.package.clone();
        program[18] = 8;
        program
    };
    let mut link = zip::ZipWriter::new(Cursor::new(vec![]));
    link.add_symlink("target", "/bin/sh", SimpleFileOptions::default()).unwrap();
    let link = link.finish().unwrap().into_inner();
    let outside = zip(&[("target", &good.package), ("../../escaped", b"x")]);
    let wrong: Vec<(StartMessage, &str)> = vec![
        (
            StartMessage { engine: engine("AFLPP", VERSION), ..good.clone() },
            "\"AFLPP\" is not one of",
        ),
        (
            StartMessage { engine: engine("FFUZZ", "0.0.0"), ..good.clone() },
            "has version \"0.0.0\"",
        ),
        (StartMessage { package: foreign, ..good.clone() }, "is built for MIPS"),
        (StartMessage { package: outside, ..good.clone() }, "is outside of its folder"),
        (StartMessage { package: link, ..good.clone() }, "has the link"),
        (StartMessage { package: b"PK\x03\x04rubbish".to_vec(), ..good.clone() }, "is damaged"),
        (StartMessage { package: vec![], ..good.clone() }, "neither an ELF file nor a ZIP"),
        (StartMessage { file_name: "../x".into(), ..good.clone() }, "is not a file name"),
        (
            StartMessage { file_name: "\x1b[2J".repeat(10_000), ..good.clone() },
            "is not a file name",
        ),
        (StartMessage { argv: vec!["a\0".into()], ..good.clone() }, "has a zero byte"),
        (
            StartMessage {
                package: fs::read(plain("relay.c", "")).unwrap(),
                fuzz_mode: 1,
                ..good.clone()
            },
            "binary only",
        ),
        (
            StartMessage { engine_args: "-o elsewhere".into(), ..good.clone() },
            "not the broker's to set",
        ),
        (StartMessage { environment: vec!["=".into()], ..good.clone() }, "no NAME=VALUE"),
    ];
    for (start, cause) in wrong {
        client.start(start);
        client.wait_for_log(ERROR, cause);
    }
    assert!(!dir.path("escaped").exists());
    // A terminal would interpret it.
    let is_plain = |(_, line): &(i32, String)| !line.contains('\x1b') && line.len() < 2000;
    assert!(client.logs().iter().all(is_plain), "{:?}", client.logs());
    assert!(!running.said().contains('\x1b'));
    client.start(good);
    client.wait_for_execs(1);
    finish(running);
}

#[test]
fn an_equal_start_changes_nothing_and_a_different_one_restarts() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.start(start_for(&relay()));
    client.wait_for_log(INFO, "is being fuzzed already: the campaign continues");
    client.wait_for_execs(1);
    assert_eq!(client.logs().iter().filter(|(_, line)| line.starts_with("fuzzing ")).count(), 1);
    let other = StartMessage { file_name: "other".into(), ..start_for(&relay()) };
    client.start(other.clone());
    client.wait_for_log(INFO, "fuzzing other in");
    wait_until("the other's queue", || {
        dir.names("out").iter().any(|name| {
            name.starts_with("other-") && dir.path(&format!("out/{name}/out/main/queue")).exists()
        })
    });
    // The first has not ended when the next begins.
    client.stop();
    client.start(other);
    wait_until("an end and a beginning", || {
        let logs = client.logs();
        let count = |text: &str| logs.iter().filter(|(_, line)| line.starts_with(text)).count();
        let last = client.numbers().pop();
        let goes = last.is_some_and(|n| n.state == EngineState::Running as i32 && n.execs > 0);
        count("other-") == 1 && count("fuzzing other in") == 2 && goes
    });
    finish(running);
}

#[test]
fn reconnecting_to_a_broker_works() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_execs(1);
    client.hang_up();
    // The next connection is not one that says anything sensible.
    drop(broker.stream());
    let mut noise = broker.stream();
    let _ =
        noise.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n0123456789abcdef");
    running.wait_for("no connection to");
    let other = broker.client();
    other.hang_up();
    // Hello first, which `client` sees to; the broker has forgotten everything.
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_log(INFO, "the campaign continues");
    client.seed(SeedKind::Input, NEAR);
    client.wait_for_seed("a crash", |kind, _| kind == SeedKind::Crash);
    let found = client.seeds();
    client.hang_up();
    // Another one gets it all, but for what it has.
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.seed(found[0].0, &found[0].1);
    for (kind, bytes) in &found[1..] {
        client.wait_for_seed("an earlier find", |k, b| k == *kind && b == bytes);
    }
    assert!(!client.seeds().contains(&found[0]));
    finish(running);
}

/// A broker that was started again would give it another one, and all engines with it.
#[test]
fn an_engine_at_work_asks_for_its_own_target_first() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_execs(1);
    client.hang_up();
    let again = broker.client();
    let names: Vec<&str> = again.hello.engines.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["FFUZZ"]);
    // This broker has nothing for it.
    again.wait_for_log(INFO, "no target for the current engine: offering all engines");
    let mut other = broker.client();
    assert_eq!(other.hello.engines.len(), ENGINES.len());
    other.start(start_for(&relay()));
    other.wait_for_log(INFO, "the campaign continues");
    finish(running);
}

#[test]
fn invalid_messages_are_reported_and_skipped() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.send_frame(0, b"\xff\xff\xff\xff");
    client.wait_for_log(WARNING, "an invalid message");
    client.send_frame(1, b"one part");
    client.send_frame(0, b"and another");
    client.send_frame(4, b"\x05OTHERcommand");
    client.send(Message::Hello(client.hello.clone()));
    client.wait_for_log(WARNING, "a message that is meant for brokers");
    // A frame that cannot be ends the connection; the next one is good.
    client.send_bytes(&[0xff; 64]);
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_execs(1);
    finish(running);
}

/// Counts of the fuzzer that runs: of the fleet those that were received, forwarded, run and answered, and
/// of its worker those that were received, run and answered.
fn counts(dir: &TestDir) -> [u64; 7] {
    let socket = dir.path(&session(dir)).join("control");
    let stats = control::Client::connect(&socket).stats();
    let (fleet, worker) = (&stats["injected"], &stats["workers"][0]["injected"]);
    [
        &fleet["received"],
        &fleet["forwarded"],
        &fleet["run"],
        &fleet["answered"],
        &worker["received"],
        &worker["run"],
        &worker["answered"],
    ]
    .map(|count| count.as_u64().unwrap_or(0))
}

/// The engine's own: received, known already, given as seeds, injected and answered.
fn account(said: &str) -> [u64; 5] {
    let line = said.lines().rfind(|line| line.contains("inputs of the broker: ")).unwrap();
    let (_, inside) = line.split_once("not run (").unwrap();
    let numbers = inside.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<u64> = numbers.map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap_or_else(|numbers| panic!("{numbers:?} in {line}"))
}

/// At each step of the way as many come out as went in, and the engine stops with all of them run.
fn no_input_is_lost(dir: &TestDir, mut running: Running, mut client: Client, sent: u64) {
    client.wait_for_log(DEBUG, &format!("{sent} inputs of the broker were run, 0 dropped"));
    let mut last = counts(dir);
    // What the fleet knows of its worker comes five times a second.
    wait_until("the counts of the worker", || {
        last = counts(dir);
        last[6] >= last[3]
    });
    client.stop();
    running.wait_for(&format!("inputs of the broker: {sent} run, 0 dropped, 0 not run ("));
    let [received, known, seeds, injected, answered] = account(&running.said());
    finish(running);
    eprintln!(
        "{received} received, {seeds} as seeds, {injected} injected, {answered} answered; {last:?}"
    );
    assert_eq!([received, known, seeds + injected, answered], [sent, 0, sent, injected]);
    assert_eq!(last, [injected; 7]);
}

#[test]
fn ten_thousand_inputs_are_all_run() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    let begun = Instant::now();
    for number in 0..10_000u32 {
        let mut bytes = vec![b'x'; 1024];
        bytes[..8].copy_from_slice(format!("{number:08}").as_bytes());
        client.seed(SeedKind::Input, &bytes);
    }
    client.wait_for_log(DEBUG, "10000 inputs of the broker were run, 0 dropped");
    let took = begun.elapsed();
    eprintln!("10000 inputs of 1 KiB: {took:?} from the first to the last");
    no_input_is_lost(&dir, running, client, 10_000);
}

#[test]
fn alerts_are_sent_once_there_is_a_report() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    let report =
        br#"[{"id": 1, "type": "x"}, {"id": 2, "type": "y"}, {"id": 3, "type": "z"}, {"id": 4}]"#;
    let target = common::relay("", "-DALERTS");
    let environment = vec!["RELAY_SECRET=1".into()];
    client.start(StartMessage { report: report.to_vec(), environment, ..start_for(&target) });
    client.seed(SeedKind::Input, NEAR);
    let alerts = |client: &Client| -> Vec<(i64, bool)> {
        let received = client.received().into_iter();
        let data = received.filter_map(|message| match message {
            Message::Data(data) => Some(serde_json::from_str::<Value>(&data.json).unwrap()),
            _ => None,
        });
        data.map(|alert| (alert["id"].as_i64().unwrap(), alert["validated"].as_bool().unwrap()))
            .collect()
    };
    // The last is there only with the variable.
    wait_until("all alerts", || {
        let alerts = alerts(&client);
        let reached = |id| alerts.iter().any(|(other, _)| *other == id);
        reached(1) && alerts.contains(&(2, true)) && reached(4)
    });
    assert!(alerts(&client).iter().all(|(id, _)| *id != 3));
    finish(running);
}

/// An engine that does nothing from its first Start on until somebody writes to the FIFO `gate`.
fn behind_a_gate(dir: &TestDir, broker: &Broker) -> Running {
    mkfifo(&dir.path("gate"), Mode::S_IRWXU).unwrap();
    let (library, gate) = (plain("gate.c", "-shared -fPIC"), dir.path("gate"));
    let job = dir.ffuzz("--pastis").arg(broker.address()).words("-o out -t 1000 -j 1");
    let job = job.env("LD_PRELOAD", library.to_str().unwrap());
    job.env("GATE", gate.to_str().unwrap()).start()
}

/// The engine takes messages in a row, and more of them wait than it takes in one.
#[test]
fn inputs_that_have_piled_up_are_all_run() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = behind_a_gate(&dir, &broker);
    let mut client = broker.client();
    client.start(start_for(&relay()));
    for number in 0..21_000u32 {
        client.seed(SeedKind::Input, &number.to_be_bytes());
    }
    let _open = fs::OpenOptions::new().write(true).open(dir.path("gate")).unwrap();
    no_input_is_lost(&dir, running, client, 21_000);
}

/// Somebody who does not read in time loses what the broker sends.
#[test]
fn a_blocked_disk_does_not_stop_the_reader() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let mut running = behind_a_gate(&dir, &broker);
    let mut client = broker.client();
    client.start(start_for(&relay()));
    // Much more than the kernel keeps for a reader: 40 MB.
    for number in 0..400u32 {
        let mut bytes = vec![b'x'; 100_000];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        client.seed(SeedKind::Input, &bytes);
    }
    assert!(!running.said().contains("fuzzing target in"));
    let _open = fs::OpenOptions::new().write(true).open(dir.path("gate")).unwrap();
    client.wait_for_log(DEBUG, "400 inputs of the broker were run, 0 dropped");
    client.stop();
    running.wait_for("inputs of the broker: 400 run, 0 dropped, 0 not run");
    finish(running);
}

#[test]
fn a_target_that_does_not_start_is_reported_to_the_broker() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "");
    let mut client = broker.client();
    // It crashes on all that there is, until something else comes.
    client.start(start_for(&common::relay("", "-DDIGIT_CRASHES")));
    client.wait_for_log(ERROR, "starts again in");
    client.seed(SeedKind::Input, b"good");
    // A run of the default seed counts as well.
    client.wait_for_execs(1000);
    finish(running);
}

#[test]
fn nothing_is_left_of_an_engine_that_is_killed() {
    let (dir, broker) = (TestDir::new(), Broker::start());
    let running = engine(&dir, &broker, "-j 2");
    let mut client = broker.client();
    client.start(start_for(&relay()));
    client.wait_for_execs(1);
    running.signal(Signal::SIGKILL);
    running.finish().expect(128 + 9);
}

#[test]
fn invalid_options_are_refused() {
    let dir = TestDir::new();
    let refused = |words: &str, cause: &str, remedy: &str| {
        dir.ffuzz(words).run().refused(2, cause, remedy);
    };
    for address in ["host", ":5555", "host:", "host:0", "host:70000"] {
        refused(&format!("--pastis {address}"), "is not HOST:PORT", "--help");
    }
    refused("--pastis h:1 ./target", "the broker names the target", "bins");
    refused("--pastis h:1 -M main", "--pastis excludes -M", "leave out -M");
    refused("--pastis h:1 -C", "--pastis excludes -C", "leave out -C");
    refused("--pastis h:1 -c ./log", "--pastis excludes -c ./log", "leave it out");
    dir.write("file", "");
    let job = dir.ffuzz("--pastis 127.0.0.1:1 -o file/out").run();
    job.refused(1, "cannot write to", "-o OUT");
}
