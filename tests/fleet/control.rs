//! `--control`: commands to a running fuzzer and what it tells, on real targets.

use crate::client as control;
use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::{Running, TestDir, id_of, target, target_with, wait_until};
use control::{Client, injection};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

fn commanded() -> PathBuf {
    target("commanded.c", "-fsanitize=fuzzer")
}

/// A fuzzer and a client that has got its first event.
fn start(dir: &TestDir, options: &str) -> (Running, Client) {
    start_on(dir, options, &commanded())
}

fn start_on(dir: &TestDir, options: &str, target: &std::path::Path) -> (Running, Client) {
    let running = dir.fuzz(&format!("--control ctl {options}"), target, "").start();
    let mut client = Client::connect(&dir.path("ctl"));
    client.wait_for("started", |_| true);
    (running, client)
}

/// Stops it by a command, and reads what is left.
fn stop(running: Running, mut client: Client, dir: &TestDir) -> Client {
    client.order(json!({"cmd": "stop"}));
    client.read_all();
    let last = client.events.last().unwrap();
    assert_eq!((&last["event"], &last["reason"]), (&json!("stopped"), &json!("user")), "{last}");
    running.finish().expect(0);
    assert!(!dir.path("ctl").exists(), "the socket is left");
    client
}

fn name_of(event: &Value) -> String {
    let path = PathBuf::from(event["path"].as_str().unwrap());
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn an_injected_input_is_run_saved_and_reported_with_its_origin() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "");
    let hello = client.events[0].clone();
    assert_eq!(hello["pid"], running.pid());
    assert_eq!(hello["instance"], "default");
    assert_eq!(PathBuf::from(hello["out"].as_str().unwrap()), dir.path("out"));
    assert_eq!(fs::metadata(dir.path("ctl")).unwrap().permissions().mode() & 0o777, 0o600);

    let reply = client.inject("alpha");
    assert_eq!(
        (&reply["kept"], &reply["crash"], &reply["hang"]),
        (&json!(true), &json!(false), &json!(false))
    );
    let path = reply["path"].as_str().unwrap();
    assert_eq!(fs::read(path).unwrap(), b"alpha");
    assert!(name_of(&reply).contains(",sync:inject,src:000000"), "{path}");
    // It is reported before the answer, and not as a find of the fuzzer's own.
    let reported = client.all("seed").into_iter().find(|seed| seed["path"] == path).unwrap();
    assert_eq!((&reported["origin"], &reported["new_edge"]), (&json!("inject"), &json!(true)));
    assert_eq!(reported["input_id"], reply["input_id"]);

    // The same again brings nothing.
    let again = client.inject("alpha");
    assert_eq!((&again["kept"], again.get("path")), (&json!(false), None));

    // From a file; and what is not one.
    let file = dir.write("elsewhere", "betaa");
    assert_eq!(client.order(json!({"cmd": "inject", "path": file}))["kept"], true);
    let reply = client.ask(json!({"cmd": "inject", "path": dir.path("nothing")}));
    assert!(
        reply["ok"] == false && reply["error"].as_str().unwrap().contains("nothing"),
        "{reply}"
    );

    let stats = client.stats();
    assert_eq!((&stats["corpus_imported"], &stats["paused"]), (&json!(2), &json!(false)));
    let client = stop(running, client, &dir);
    assert!(client.all("seed").iter().any(|seed| seed["origin"] == "own"));
    // Nothing is reported twice, and everything that is kept from the connection on is reported.
    let reported: Vec<String> = client.all("seed").into_iter().map(name_of).collect();
    assert_eq!(reported.iter().cloned().collect::<BTreeSet<_>>().len(), reported.len());
    let first = reported.iter().map(|name| id_of(name)).min().unwrap();
    let kept = dir.queue().into_iter().filter(|name| id_of(name) >= first).collect();
    assert_eq!(reported.into_iter().collect::<BTreeSet<_>>(), kept);
    let origin = |seed: &&Value| (seed["input_id"] == 0) == (seed["origin"] == "seed");
    assert!(client.all("seed").iter().all(origin), "{:?}", client.all("seed"));
}

#[test]
fn injected_crashes_and_hangs_are_saved() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "-t 200");
    let crash = client.order(json!({
        "cmd": "inject", "type": "crash", "data": BASE64_STANDARD.encode("crash")
    }));
    assert_eq!((&crash["crash"], &crash["kept"]), (&json!(true), &json!(false)));
    let reported = client.wait_for("crash", |_| true);
    assert_eq!((&reported["signal"], &reported["origin"]), (&json!(6), &json!("inject")));
    assert_eq!((&reported["path"], &reported["input_id"]), (&crash["path"], &json!(0)));
    let hang = client.inject("hangs");
    assert_eq!((&hang["hang"], &hang["kept"]), (&json!(true), &json!(false)));
    // What a run does counts, whatever the sender says.
    let wrong = json!({"cmd": "inject", "type": "hang", "data": BASE64_STANDARD.encode("betaa")});
    assert_eq!(client.order(wrong)["kept"], true);
    let reported = client.wait_for("hang", |_| true);
    assert_eq!((&reported["path"], &reported["origin"]), (&hang["path"], &json!("inject")));
    assert_eq!(client.inject("alpha")["kept"], true);
    stop(running, client, &dir);
    assert_eq!(dir.crashes(), ["id:000000,sig:06,sync:inject,src:000000"]);
    assert_eq!(dir.hangs(), ["id:000000,sync:inject,src:000001"]);
    assert_eq!(dir.read("out/default/hangs/id:000000,sync:inject,src:000001"), b"hangs");
}

#[test]
fn a_waypoint_is_reported_with_domain_key_value_and_place() {
    let dir = TestDir::with_seed("hello");
    let target = target_with("mem", "commanded.c", "-fsanitize=fuzzer");
    let (running, mut client) = start_on(&dir, "-p", &target);
    assert_eq!(client.inject("gamma")["kept"], true);
    let reported = client.wait_for("waypoint", |event| event["value"] == 123_457);
    assert_eq!((&reported["domain"], &reported["origin"]), (&json!("mem"), &json!("inject")));
    let place = reported["place"].as_str().unwrap();
    assert!(place.starts_with("commanded.c:"), "{place}");
    assert!(reported["key"].is_u64() && reported["keys"] == 1, "{reported}");
    let seed = client.all("seed").into_iter().find(|seed| seed["path"] == reported["path"]);
    assert_eq!(seed.unwrap()["input_id"], reported["input_id"]);
    stop(running, client, &dir);
}

#[test]
fn a_paused_fuzzer_runs_nothing_but_what_is_injected() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "");
    client.order(json!({"cmd": "pause"}));
    let before = client.stats();
    assert_eq!(before["paused"], true);
    // A second of states in which nothing happens; the time stands still, too.
    let now = before["now"].as_u64().unwrap();
    let later = client.wait_for("stats", |stats| stats["now"].as_u64().unwrap() > now + 1);
    assert_eq!(later["execs"], before["execs"]);
    let time = |stats: &Value| stats["run_time_ms"].as_u64().unwrap();
    assert!(time(&later) - time(&before) < 300, "{} to {}", time(&before), time(&later));
    assert_eq!(client.inject("alpha")["kept"], true);
    let injected = client.stats()["execs"].as_u64().unwrap();
    assert!((1..100).contains(&(injected - before["execs"].as_u64().unwrap())), "{injected}");
    client.order(json!({"cmd": "resume"}));
    client.wait_for("stats", |stats| stats["execs"].as_u64().unwrap() > injected + 1000);
    client.order(json!({"cmd": "pause"}));
    let client = stop(running, client, &dir);
    assert_eq!(client.events.last().unwrap()["paused"], true);
}

/// Its last event, and the time that this took since `since`.
fn last_message(running: Running, mut client: Client, since: Instant) -> (Value, Duration) {
    client.read_all();
    let time = since.elapsed();
    running.finish().expect(0);
    (client.events.pop().unwrap(), time)
}

#[test]
fn a_signal_ends_a_paused_fuzzer() {
    for options in ["", "-j 2"] {
        let dir = TestDir::with_seed("hello");
        let (running, mut client) = start(&dir, options);
        client.order(json!({"cmd": "pause"}));
        running.signal(Signal::SIGINT);
        let (last, _) = last_message(running, client, Instant::now());
        assert_eq!((&last["reason"], &last["paused"]), (&json!("user"), &json!(true)), "{last}");
    }
}

#[test]
fn the_limit_of_time_ends_a_paused_fuzzer() {
    for options in ["-V 3", "-V 3 -j 2"] {
        let dir = TestDir::with_seed("hello");
        let (running, mut client) = start(&dir, options);
        let begin = Instant::now();
        client.order(json!({"cmd": "pause"}));
        let (last, time) = last_message(running, client, begin);
        assert_eq!(
            (&last["reason"], &last["paused"]),
            (&json!("timelimit"), &json!(true)),
            "{last}"
        );
        // The time limit of a pause is not its share of the campaign.
        let counted = Duration::from_millis(last["run_time_ms"].as_u64().unwrap());
        assert!(time > Duration::from_secs(2) && counted < time, "{counted:?} of {time:?}");
    }
}

#[test]
fn set_options_take_effect() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "");
    client.order(json!({"cmd": "set", "timeout_ms": 20}));
    assert_eq!(client.stats()["exec_timeout_ms"], 20);
    assert_eq!(client.inject("slow1")["hang"], true);
    client.order(json!({"cmd": "set", "timeout_ms": 2000}));
    assert_eq!(client.inject("slow1")["hang"], false);

    client.order(json!({"cmd": "set", "schedule": "rare"}));
    assert_eq!(client.stats()["schedule"], "rare");

    let is_token = |seed: &Value| {
        let data = fs::read(seed["path"].as_str().unwrap()).unwrap_or_default();
        seed["origin"] == "own" && data.starts_with(b"T0k3nXyz")
    };
    let words = client.stats()["dictionary_entries"].as_u64().unwrap();
    client.order(json!({"cmd": "set", "token": BASE64_STANDARD.encode("T0k3nXyz")}));
    assert_eq!(client.stats()["dictionary_entries"], words + 1);
    client.wait_for("seed", is_token);
    stop(running, client, &dir);
}

#[test]
fn a_main_instance_refuses_unsuitable_settings() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "-M one");
    assert_eq!(client.events[0]["instance"], "one");
    let reply = client.ask(json!({"cmd": "set", "schedule": "rare", "timeout_ms": 77}));
    assert!(reply["error"].as_str().unwrap().contains("main"), "{reply}");
    assert_ne!(client.stats()["exec_timeout_ms"], 77);
    client.order(json!({"cmd": "set", "schedule": "fast"}));
    stop(running, client, &dir);
}

#[test]
fn an_input_of_the_wrong_length_is_an_error() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "-g 3 -G 8");
    for (input, error) in [("ab", "2 bytes: this campaign takes 3 to 8"), ("", "empty")] {
        let reply = client.ask(injection(input));
        assert!(
            reply["ok"] == false && reply["error"].as_str().unwrap().contains(error),
            "{reply}"
        );
    }
    stop(running, client, &dir);
}

#[test]
fn injection_does_not_wait_for_the_fuzzer() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "");
    client.wait_for("stats", |stats| stats["execs"].as_u64().unwrap() > 1000);
    let mut times: Vec<Duration> = (0..50u32)
        .map(|number| {
            let start = Instant::now();
            client.inject(number.to_be_bytes());
            start.elapsed()
        })
        .collect();
    times.sort();
    eprintln!("injection to answer: median {:?}, longest {:?}", times[25], times[49]);
    assert!(times[25] < Duration::from_secs(1));
    stop(running, client, &dir);
}

#[test]
fn commands_are_handled_while_a_seed_is_trimmed() {
    let dir = TestDir::with_seed(vec![b'x'; 20_000]);
    // Whole, it is about sixty runs of a tenth of a second.
    let slow = target("commanded.c", "-fsanitize=fuzzer -DPAUSE=100000");
    let (running, mut client) = start_on(&dir, "-V 60", &slow);
    while client.stats()["stage"] != "trim" {}
    assert_eq!(client.inject("alpha")["kept"], true);
    let stats = client.stats();
    assert_eq!(stats["stage"], "trim");
    assert!(stats["trim_execs"].as_u64().unwrap() < 50, "{}", stats["trim_execs"]);
    stop(running, client, &dir);
}

#[test]
fn a_slow_reader_blocks_nothing_and_misses_no_find() {
    let dir = TestDir::with_seed("hello");
    let (running, mut slow) = start(&dir, "");
    let mut client = Client::connect(&dir.path("ctl"));
    // About two thousand finds, in lines of two hundred bytes: more than a socket holds.
    for place in 0..=255u8 {
        for count in [1, 2, 3, 4, 8, 16, 32, 128] {
            client.send(injection([b'w', place, count]));
        }
        // Read meanwhile, or nobody listens.
        let last = client.send(injection([b'w', place, 255]));
        client.wait_for("reply", |reply| reply["id"] == last);
    }
    let finds = client.all("seed").len();
    assert!(finds > 1500, "{finds}");
    let execs = client.stats()["execs"].as_u64().unwrap();
    client.wait_for("stats", |stats| stats["execs"].as_u64().unwrap() > execs + 1000);
    client.order(json!({"cmd": "pause"}));
    let kept = client.stats()["corpus_count"].as_u64().unwrap();
    slow.wait_for("seed", |seed| seed["input_id"] == kept - 1);
    let reported: BTreeSet<String> = slow.all("seed").into_iter().map(name_of).collect();
    // The first ones may have been kept before it listened.
    let first = reported.iter().map(|name| id_of(name)).min().unwrap();
    let found = dir.queue().into_iter().filter(|name| id_of(name) >= first);
    assert!(reported == found.collect(), "{} of them are reported", reported.len());
    stop(running, client, &dir);
}

#[test]
fn hostile_clients_change_nothing_for_others() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "");
    let connect = || UnixStream::connect(dir.path("ctl")).unwrap();
    // Noise, half a command, a line without end, silence.
    let mut noise = connect();
    noise.write_all(&[0, 255, b'\n', b'{', b'\n', b'\n', b'[', b']', b'\n']).unwrap();
    connect().write_all(b"{\"cmd\":\"inject\",\"id\":1,\"data\":\"QU").unwrap();
    let taken = taken_of_an_endless_line(&dir);
    assert!(taken < 64 << 20, "a line without end is read for ever");
    let mut clumsy = Client::connect(&dir.path("ctl"));
    clumsy.write("{\"cmd\":\"fly\"}\nno\n[1,2]\n{\"cmd\":\"inject\",\"id\":7,\"data\":1}\n");
    let said: Vec<Value> = (0..4).map(|_| clumsy.wait_next_reply()).collect();
    assert!(
        said.iter().all(|reply| reply["ok"] == false && reply["error"].is_string()),
        "{said:?}"
    );
    assert_eq!(said[3]["id"], 7);
    // A hundred at once: those for whom there is no room get a reason.
    let crowd: Vec<UnixStream> = (0..100).map(|_| connect()).collect();
    let execs = client.stats()["execs"].as_u64().unwrap();
    client.wait_for("stats", |stats| stats["execs"].as_u64().unwrap() > execs + 1000);
    assert_eq!(client.inject("alpha")["kept"], true);
    drop((crowd, noise, clumsy));
    // There is room again.
    wait_until("room for a client", || {
        let stream = connect();
        stream.set_read_timeout(Some(common::DEADLINE)).unwrap();
        let mut first = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut first).unwrap();
        first.contains("\"hello\"")
    });
    // The user of the fuzzer gets a message, but not of each.
    let said = running.said();
    let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("[!]")).collect();
    let refused = |line: &&str| line.contains("a client of the control socket was refused: ");
    assert!((1..5).contains(&warnings.len()) && warnings.iter().all(refused), "{said}");
    stop(running, client, &dir);
}

/// Bytes, up to 64 MiB.
fn taken_of_an_endless_line(dir: &TestDir) -> usize {
    let mut stream = UnixStream::connect(dir.path("ctl")).unwrap();
    let piece = [b'x'; 1 << 16];
    let mut written = 0;
    while written < 64 << 20 && stream.write_all(&piece).is_ok() {
        written += piece.len();
    }
    written
}

impl Client {
    fn wait_next_reply(&mut self) -> Value {
        loop {
            let event = self.read().unwrap();
            if event["event"] == "reply" {
                return event;
            }
        }
    }
}

#[test]
fn a_fleet_answers_as_one_fuzzer() {
    let dir = TestDir::with_seed("hello");
    let (running, mut client) = start(&dir, "-j 2");
    assert_eq!(client.events[0]["workers"], json!(["main", "worker01"]));
    let reply = client.inject("alpha");
    assert_eq!(reply["kept"], true, "{reply}");
    assert!(reply["path"].as_str().unwrap().contains("/out/main/queue/"), "{reply}");
    wait_until("an import of worker01", || {
        dir.path("out/worker01/queue").exists()
            && dir
                .entries("out/worker01/queue")
                .iter()
                .any(|name| dir.read(&format!("out/worker01/queue/{name}")) == b"alpha")
    });
    let crash = client.inject("crash");
    assert_eq!(crash["crash"], true);
    let reported = client.wait_for("crash", |_| true);
    assert_eq!((&reported["worker"], &reported["origin"]), (&json!("main"), &json!("inject")));

    client.order(json!({"cmd": "set", "timeout_ms": 1234}));
    // The main refuses it, worker01 does not.
    client.order(json!({"cmd": "set", "schedule": "rare"}));
    let stats = client.wait_for("stats", |stats| stats["workers"][1]["schedule"] == "rare");
    assert_ne!(stats["workers"][0]["schedule"], "rare");
    client.order(json!({"cmd": "pause"}));
    let execs = client.stats()["execs"].clone();
    // A worker that is started again knows what was set.
    let killed = worker_pid(&dir, "worker01");
    kill(Pid::from_raw(killed), Signal::SIGKILL).unwrap();
    client.wait_for("warning", |warning| warning["message"].as_str().unwrap().contains("signal 9"));
    wait_until("worker01 again", || worker_pid(&dir, "worker01") != killed);
    let again = client.wait_for("stats", |stats| stats["workers"][1]["restarts"] == 1);
    assert_eq!(again["paused"], true);
    client.order(json!({"cmd": "resume"}));
    let execs = execs.as_u64().unwrap();
    client.wait_for("stats", |stats| stats["execs"].as_u64().unwrap() > execs + 1000);

    let client = stop(running, client, &dir);
    // Everything once: worker01's import of the main's seed is no news.
    let reported: Vec<&str> =
        client.all("seed").iter().map(|e| e["path"].as_str().unwrap()).collect();
    assert_eq!(reported.iter().collect::<BTreeSet<_>>().len(), reported.len());
    let data = |path: &&&str| fs::read(path).unwrap_or_default() == b"alpha";
    assert_eq!(reported.iter().filter(data).count(), 1, "{reported:?}");
    assert!(client.all("seed").iter().all(|seed| seed["worker"].is_string()));
    let text = fs::read_to_string(dir.path("out/worker01/fuzzer_stats")).unwrap();
    let stats = common::stats_of(&text);
    assert_eq!(stats["exec_timeout"], "1234");
}

fn worker_pid(dir: &TestDir, worker: &str) -> i32 {
    let path = dir.path(&format!("out/{worker}/fuzzer_stats"));
    let mut pid = None;
    wait_until(&format!("fuzzer_stats of {worker}"), || {
        let stats = common::stats_of(&fs::read_to_string(&path).unwrap_or_default());
        pid = stats.get("fuzzer_pid").and_then(|pid| pid.parse().ok());
        pid.is_some()
    });
    pid.unwrap()
}

#[test]
fn the_socket_of_a_killed_fuzzer_is_replaced_and_one_in_use_is_not() {
    let dir = TestDir::with_seed("hello");
    let (running, client) = start(&dir, "");
    let job = dir.ffuzz("-i in -o other --control ctl --").arg(commanded());
    job.run().refused(1, "belongs to a running fuzzer", "another one with --control");
    assert!(!dir.path("other").exists());
    running.signal(Signal::SIGKILL);
    running.finish().expect(128 + 9);
    drop(client);
    assert!(dir.path("ctl").exists());
    let running = dir.ffuzz("-i - -o out --control ctl --").arg(commanded()).start();
    let mut client = Client::connect(&dir.path("ctl"));
    client.wait_for("started", |_| true);
    stop(running, client, &dir);
}

#[test]
fn an_unusable_socket_path_is_reported_first() {
    let dir = TestDir::with_seed("hello");
    let refused = |path: &str, cause: &str, remedy: &str| {
        let job = dir.ffuzz("-i in -o out --control").arg(path).arg("--").arg(commanded());
        job.run().refused(1, cause, remedy);
        assert!(!dir.path("out").exists());
    };
    refused(&"x".repeat(120), "has 120 bytes", "shorter");
    dir.write("file", "mine");
    refused("file", "is not a socket", "another path");
    refused("no/such/folder", "cannot create the control socket", "--control");
    assert_eq!(dir.read("file"), b"mine");
    let job = dir.ffuzz("-i in -o out --control - --").arg(commanded());
    job.run().refused(2, "--json", "--json as well");
    // A name that somebody else listens at is not touched.
    let _listener = UnixListener::bind(dir.path("theirs")).unwrap();
    refused("theirs", "belongs to a running fuzzer", "another");
    assert!(UnixStream::connect(dir.path("theirs")).is_ok());
}

#[test]
fn commands_can_be_given_on_standard_input() {
    let dir = TestDir::with_seed("hello");
    let line = |command: Value| format!("{command}\n");
    let mut inject = injection("alpha");
    inject["id"] = 5.into();
    let input = line(inject) + "noise\n" + &line(json!({"cmd": "pause", "id": 6}));
    let job = dir.fuzz("--json --control -", &commanded(), "").input(input);
    let mut running = job.start();
    running.wait_for("\"id\":6");
    let replies: Vec<Value> = running
        .said()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["event"] == "reply")
        .collect();
    let known = |id: Value| replies.iter().find(|reply| reply["id"] == id).unwrap();
    assert_eq!(known(json!(6))["ok"], true);
    assert!(known(Value::Null)["error"].as_str().unwrap().contains("not JSON"));
    // Its input has ended while it was paused: nobody could let it go on, so it does.
    running.wait_for("\"id\":5");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
    let kept = dir.queue().into_iter().find(|name| name.contains("sync:inject")).unwrap();
    assert_eq!(dir.read(&format!("out/default/queue/{kept}")), b"alpha");
}

/// One that no input passes: the value is a hash of four bytes.
const GATE: &str = r"
#include <stdint.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint32_t hash = 7;
  if (size < 8) return 0;
  for (int i = 0; i < 8; i++) hash = (hash ^ data[i]) * 0x01000193;
  if ((hash ^ hash >> 16) == 0x12345678) abort();
  return 0;
}
";

#[test]
fn comparisons_that_no_seed_passes_are_listed() {
    for options in ["-t 3000", "-t 3000 -j 2"] {
        let dir = TestDir::with_seed("hello, world");
        dir.write("gate.c", GATE);
        let job = dir.ffuzz("cc -g -O2 -fsanitize=fuzzer gate.c -o gate");
        job.env("XDG_CACHE_HOME", common::cache().to_str().unwrap()).run().expect(0);
        let (running, mut client) = start_on(&dir, options, &dir.path("gate"));
        let mut gate = Value::Null;
        wait_until("the gate", || {
            let listed = client.order(json!({"cmd": "blockers"}));
            let all = listed["blockers"].as_array().cloned().unwrap_or_default();
            gate = all.into_iter().find(|one| one["line"] == 8).unwrap_or_default();
            gate["bytes"].is_array() && gate["attempts"].as_u64() > Some(0)
        });
        assert_eq!(
            (&gate["function"], &gate["comparison"], &gate["outcome"]),
            (&json!("LLVMFuzzerTestOneInput()"), &json!("i32 =="), &json!("never equal")),
            "{gate:#}"
        );
        assert!(gate["operands"].as_str().unwrap().ends_with("0x12345678 (constant)"), "{gate:#}");
        assert!(fs::exists(gate["path"].as_str().unwrap()).unwrap(), "{gate:#}");
        assert_eq!(gate["bytes"], json!([[0, 7]]), "{gate:#}");
        stop(running, client, &dir);
    }
}

#[test]
fn a_log_of_afl_lists_none() {
    common::need("afl-clang-fast");
    let dir = TestDir::with_seed(".".repeat(40));
    let variables = [("AFL_QUIET", "1"), ("AFL_LLVM_CMPLOG", "1")];
    let target = common::compiled_by("afl-clang-fast", &variables, "secrets.c", "");
    for options in ["-c 0", "-c 0 -j 2"] {
        let (running, mut client) = start_on(&dir, options, &target);
        let reply = client.ask(json!({"cmd": "blockers"}));
        assert!(reply["error"].as_str().unwrap().contains("a log of AFL++ (-c)"), "{reply}");
        stop(running, client, &dir);
        fs::remove_dir_all(dir.path("out")).unwrap();
    }
}

#[test]
fn questions_are_answered_beside_the_campaign() {
    let dir = TestDir::with_seed("a");
    let lines = target("lines.c", "-g -O0");
    let (running, mut client) = start_on(&dir, "", &lines);
    let covered = client.ask(json!({"cmd": "coverage"}));
    assert_eq!(covered["ok"], true, "{covered}");
    let answer = &covered["answer"];
    assert!(answer["lines"][0].as_u64().unwrap() > 10, "{covered}");
    assert!(answer["entries"][0]["file"].as_str().unwrap().ends_with("lines.c"), "{covered}");
    // Of two clients each gets its own answers, also while nothing is fuzzed.
    client.order(json!({"cmd": "pause"}));
    let mut other = Client::connect(&dir.path("ctl"));
    let stuck = other.ask(json!({"cmd": "stuck", "limit": 1}));
    assert_eq!(
        (&stuck["ok"], stuck["answer"]["entries"].is_array()),
        (&json!(true), true),
        "{stuck}"
    );
    let place = &stuck["answer"]["entries"][0]["id"];
    let explained = client.ask(json!({"cmd": "explain_stuck", "place": place}));
    assert_eq!(&explained["answer"]["id"], place, "{explained}");
    let run = client.ask(json!({"cmd": "run_input", "text": "n", "watch": "lines.c:18"}));
    assert_eq!(run["answer"]["watch"]["reached"], true, "{run}");
    let refused = client.ask(json!({"cmd": "stuck", "limit": "x"}));
    assert!(refused["error"].as_str().unwrap().contains("whole number"), "{refused}");
    stop(running, client, &dir);
    other.read_all();
}
