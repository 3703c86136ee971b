//! `--metrics`: the numbers as Prometheus reads them, from real campaigns.

use crate::client as control;
use crate::common;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};

use common::{DEADLINE, TestDir, free_port, target_with, wait_until};
use control::Client;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// The page, as soon as there is one with this text.
fn fetch(dir: &TestDir, port: u16, text: &str) -> String {
    let mut page = String::new();
    wait_until(&format!("a page with {text:?}"), || {
        let url = format!("http://127.0.0.1:{port}/metrics");
        let got = dir.program("curl").words("-sf -m 60").arg(url).run();
        page = got.out;
        page.contains(text)
    });
    page
}

/// Samples by name and labels. Fails if the text breaks a rule of the format.
fn parsed(page: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let (mut family, mut helped) = (String::new(), String::new());
    assert!(page.ends_with('\n'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').unwrap();
            assert!(!text.is_empty(), "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert_eq!(name, helped, "{line}");
            // All of a family stand together.
            assert!(families.insert(name.to_owned()), "{line}");
            family = name.to_owned();
        } else {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(name_and_labels(key).0, family, "{line}");
            assert!(samples.insert(key.to_owned(), value).is_none(), "{line}");
        }
    }
    samples
}

fn name_and_labels(key: &str) -> (&str, Vec<(&str, String)>) {
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let Some((name, rest)) = key.split_once('{') else {
        assert!(is_name(key), "{key}");
        return (key, Vec::new());
    };
    assert!(is_name(name), "{key}");
    let mut rest = rest.strip_suffix('}').unwrap();
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (label, text) = rest.split_once("=\"").unwrap();
        assert!(is_name(label), "{key}");
        let mut value = String::new();
        let mut letters = text.char_indices();
        let end = loop {
            match letters.next().unwrap() {
                (_, '\\') => value.push(match letters.next().unwrap().1 {
                    'n' => '\n',
                    letter @ ('\\' | '"') => letter,
                    other => panic!("\\{other} in {key}"),
                }),
                (at, '"') => break at,
                (_, letter) => value.push(letter),
            }
        };
        labels.push((label, value));
        rest = &text[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name, labels)
}

#[test]
fn prometheus_can_read_what_a_campaign_serves() {
    let dir = TestDir::with_seed("hello");
    let target = target_with("mem", "commanded.c", "-fsanitize=fuzzer");
    let port = free_port();
    let options = format!("-p --metrics {port}");
    let running = dir.fuzz(&format!("{options} -T a\"b\\c"), &target, "").start();
    // One who asks and does not read, and one who does not even ask.
    let silent = TcpStream::connect(("127.0.0.1", port));
    let page = fetch(&dir, port, "\nffuzz_execs_total ");
    let mut rude = TcpStream::connect(("127.0.0.1", port)).unwrap();
    rude.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let first = parsed(&page);
    let info = first.keys().find(|key| key.starts_with("ffuzz_info{")).unwrap();
    let (_, labels) = name_and_labels(info);
    assert!(labels.contains(&("banner", "a\"b\\c".to_owned())), "{labels:?}");
    assert!(labels.contains(&("name", "default".to_owned())), "{labels:?}");
    let domain = "{domain=\"mem\",number=\"0\",reducer=\"MAX\"}";
    assert!(first.contains_key(&format!("ffuzz_domain_keys{domain}")), "{first:?}");
    let execs = first["ffuzz_execs_total"];
    wait_until("more executions", || {
        parsed(&fetch(&dir, port, "ffuzz_execs_total"))["ffuzz_execs_total"] > execs
    });
    drop((silent, rude));
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
}

#[test]
fn a_fleet_has_metrics_of_the_whole_and_of_each_worker() {
    let dir = TestDir::with_seed("hello");
    let target = target_with("mem", "commanded.c", "-fsanitize=fuzzer");
    let port = free_port();
    let running = dir.fuzz(&format!("-j 2 --metrics 127.0.0.1:{port}"), &target, "").start();
    let both = "ffuzz_worker_fuzzing{worker=\"worker01\"} 1\n";
    let samples = parsed(&fetch(&dir, port, both));
    let of = |worker| samples[&format!("ffuzz_worker_execs_total{{worker=\"{worker}\"}}")];
    let sum = of("main") + of("worker01");
    assert!((sum - samples["ffuzz_execs_total"]).abs() < 0.5, "{samples:?}");
    running.signal(Signal::SIGINT);
    running.finish().expect(0);
}

#[test]
fn all_outputs_have_the_same_numbers_of_a_fleet() {
    let dir = TestDir::with_seed("hello");
    let target = target_with("mem", "commanded.c", "-fsanitize=fuzzer");
    let (port, statsd) = (free_port(), UdpSocket::bind("127.0.0.1:0").unwrap());
    statsd.set_read_timeout(Some(DEADLINE)).unwrap();
    let job = dir.fuzz(&format!("-j 2 --control ctl --metrics {port}"), &target, "");
    let address = statsd.local_addr().unwrap().port().to_string();
    let running = job.env("AFL_STATSD", "1").env("AFL_STATSD_PORT", &address).start();
    let mut client = Client::connect(&dir.path("ctl"));
    let fuzzing = |stats: &Value, worker: usize| stats["workers"][worker]["state"] == "fuzzing";
    client.wait_for("stats", |stats| fuzzing(stats, 0) && fuzzing(stats, 1));
    assert_eq!(client.inject("crash")["crash"], true);
    client.order(json!({"cmd": "pause"}));
    let paused = |stats: &Value, worker: usize| stats["workers"][worker]["state"] == "paused";
    client.wait_for("stats", |stats| paused(stats, 0) && paused(stats, 1));
    let names = ["execs", "corpus_count", "edges_found", "saved_crashes"];
    let mut stats = Value::Null;
    wait_until("the same numbers everywhere", || {
        stats = client.stats();
        let page = parsed(&fetch(&dir, port, "ffuzz_execs_total"));
        let gauges = datagram(&statsd);
        let ours = names.map(|name| stats[name].as_u64());
        let served = ["execs_total", "corpus_count", "edges_found", "crashes_saved_total"];
        let sent = ["execs_done", "corpus_count", "edges_found", "saved_crashes"];
        ours == served.map(|name| page.get(&format!("ffuzz_{name}")).map(|n| *n as u64))
            && ours == sent.map(|name| gauges.get(name).copied())
    });
    let each = |key: &str| {
        stats["workers"].as_array().unwrap().iter().map(|w| w[key].as_u64().unwrap()).collect()
    };
    let (corpora, edges): (Vec<u64>, Vec<u64>) = (each("corpus_count"), each("edges_found"));
    assert!(corpora.iter().all(|count| *count > 0), "{stats}");
    assert_eq!(stats["corpus_count"], corpora.iter().sum::<u64>(), "{stats}");
    assert_eq!(stats["edges_found"], *edges.iter().max().unwrap(), "{stats}");
    // Workers do not send numbers of their own between those of all.
    let next: Vec<_> = (0..3).map(|_| datagram(&statsd)["execs_done"]).collect();
    assert!(next.iter().all(|execs| stats["execs"] == *execs), "{next:?}");
    client.order(json!({"cmd": "stop"}));
    let last = client.wait_for("stopped", |_| true);
    running.finish().expect(0);
    let whole = dir.ffuzz("whatsup --json -d out").run().expect(0).out;
    let whole = &serde_json::from_str::<Value>(&whole).unwrap()["summary"];
    let kept = ["execs_done", "corpus_count", "edges_found", "saved_crashes"];
    let ours = names.map(|name| last[name].as_u64());
    assert_eq!(ours, kept.map(|name| whole[name].as_u64()), "{whole}");
}

/// The next gauges that a StatsD server gets.
fn datagram(server: &UdpSocket) -> BTreeMap<String, u64> {
    let mut buffer = [0; 1 << 16];
    let length = server.recv(&mut buffer).unwrap();
    let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
    let gauge = |line: &str| {
        let (name, value) = line.strip_prefix("fuzzing.")?.split_once(':')?;
        Some((name.to_owned(), value.strip_suffix("|g")?.parse().ok()?))
    };
    text.lines().filter_map(gauge).collect()
}

#[test]
fn an_unusable_address_is_reported_with_a_remedy() {
    let dir = TestDir::with_seed("hello");
    let target = target_with("mem", "commanded.c", "-fsanitize=fuzzer");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let job = dir.fuzz(&format!("--metrics {address}"), &target, "");
    job.run().refused(1, &format!("cannot serve numbers at {address}"), "another port");
    for bad in ["no-such-host.invalid", "127.0.0.1:x", "1.2.3.4:70000"] {
        let job = dir.fuzz(&format!("--metrics {bad}"), &target, "");
        job.run().refused(2, bad, "ffuzz --help");
    }
    assert!(!dir.path("out").exists());
}
