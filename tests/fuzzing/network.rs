//! Targets whose inputs come over a socket (`--net`): what they receive, by which calls, and what is told of them.

use crate::common;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use common::{TestDir, afl_target, has, plain, target, wait_until};

/// A list of messages, with the number of the connection of each.
fn list(messages: &[(u8, &str)]) -> Vec<u8> {
    let one = |(connection, text): &(u8, &str)| {
        let word = u32::try_from(text.len()).unwrap() | u32::from(*connection) << 24;
        [&word.to_le_bytes()[..], text.as_bytes()].concat()
    };
    messages.iter().flat_map(one).collect()
}

fn session() -> Vec<u8> {
    list(&[(0, "LOGIN x"), (0, "MAIL y"), (0, "QUIT")])
}

fn sockets() -> PathBuf {
    target("sockets.c", "")
}

/// What the target prints in one run.
fn said(net: &str, how: &str, input: impl AsRef<[u8]>) -> String {
    let dir = TestDir::new();
    let job = dir.tool(&format!("showmap -t 20000 -o map --net {net}"), &sockets(), how);
    job.input(input).run().expect(0).out
}

#[test]
fn every_way_to_wait_gets_the_same_messages() {
    for how in [
        "plain", "poll", "select", "epoll", "edges", "fork", "daemon", "second", "threads", "inetd",
    ] {
        let text = said("tcp:7000", how, session());
        assert_eq!(text, "0:LOGIN x|0:MAIL y|0:QUIT|0:end|", "{how}");
    }
    let text = said("tcp:7000", "threads", list(&[(0, "LOGIN x"), (0, "WORK")]));
    assert_eq!(text, "0:LOGIN x|0:WORK|0:end|8:worker|");
    // It asks nobody, and tries again.
    assert_eq!(said("tcp:7000", "spins", session()), "0:LOGIN x|0:MAIL y|0:QUIT|");
    let lines = list(&[(0, "one\n"), (0, "two\nthree\n")]);
    assert_eq!(said("tcp:7000", "stream", lines), "0:one|0:two|0:three|");
}

#[test]
fn local_sockets_and_clients() {
    let all = "0:LOGIN x|0:MAIL y|0:QUIT|";
    assert_eq!(said("unix:/tmp/ffuzz-sockets", "unix", session()), format!("{all}0:end|"));
    assert_eq!(said("tcp-client", "client", session()), format!("{all}0:end|"));
    assert_eq!(said("tcp-client:80", "client", session()), format!("{all}0:end|"));
    assert_eq!(said("udp-client:53", "udp-client", session()), all);
    // Another one than the client asks for: nobody answers.
    assert_eq!(said("tcp-client:81", "client", session()), "0:Connection refused|0:end|");
    assert_eq!(said("udp-client:54", "udp-client", session()), "");
}

#[test]
fn connections_are_as_many_as_the_input_names() {
    let two = list(&[(0, "LOGIN"), (1, "LOGIN"), (0, "MAIL"), (1, "DATA"), (0, ""), (1, "zz")]);
    for how in ["poll", "select", "epoll", "edges"] {
        let text = said("tcp:7000", how, &two);
        assert_eq!(text, "0:LOGIN|1:LOGIN|0:MAIL|1:DATA|0:end|1:zz|1:end|", "{how}");
    }
    // It serves one after the other, so what the second says meanwhile is lost.
    assert_eq!(said("tcp:7000", "plain", &two), "0:LOGIN|0:MAIL|0:end|1:zz|1:end|");
    // A connection whose messages are lost so far is not made.
    let three = list(&[(0, "A"), (1, "B"), (2, "C"), (0, ""), (2, "D")]);
    assert_eq!(said("tcp:7000", "plain", three), "0:A|0:end|1:D|1:end|");
}

#[test]
fn datagrams_have_senders_and_are_cut_to_the_room_for_them() {
    let all = list(&[(0, "abcdef"), (2, ""), (0, "xy")]);
    assert_eq!(said("udp:7000", "udp", all), "0:abcd|0:cut|1:|0:xy|");
}

#[test]
fn a_file_that_is_no_list_is_one_message() {
    assert_eq!(said("tcp:7000", "plain", "GET / HTTP"), "0:GET / HTTP|0:end|");
    assert_eq!(said("tcp:7000", "plain", ""), "0:end|");
    // The last length goes beyond the end.
    assert_eq!(said("tcp:7000", "plain", b"\x02\0\0\0ab\x09\0\0\0cd"), "0:ab|0:cd|0:end|");
    let many: Vec<(u8, &str)> = vec![(0, "a"); 10_000];
    assert_eq!(said("tcp:7000", "plain", list(&many)), "0:a|".repeat(10_000) + "0:end|");
    let huge = "x".repeat((1 << 20) - 4);
    let text = said("tcp:7000", "plain", list(&[(0, &huge)]));
    assert_eq!(text.matches('x').count(), huge.len());
}

/// No run waits for what cannot come, and none lasts as long as the time limit.
#[test]
fn a_target_that_does_not_take_its_messages_is_over() {
    for how in ["silent", "deaf", "greedy", "talker", "none"] {
        assert_eq!(said("tcp:7000", how, session()), "", "{how}");
    }
}

#[test]
fn what_a_program_is_to_itself_works_without_the_kernel() {
    assert_eq!(said("tcp:7000", "itself", session()), "0:acd|");
}

#[test]
fn time_and_random_numbers_are_the_same_in_each_run() {
    let text = said("tcp:7000", "chance", session());
    assert!(text.ends_with(" 1700000000|") && text.len() > 20, "{text}");
    // The processor's counter, the number of the process, and the address of a block.
    assert!(text.contains(" 1000 0 0x"), "{text}");
    assert_eq!(text, said("tcp:7000", "chance", session()));
    assert_eq!(said("tcp:7000", "alarm", session()), "0:ring|");
}

#[test]
fn a_bug_in_the_third_message_is_found_and_becomes_a_report() {
    let dir = TestDir::with_seed(session());
    let job = dir.fuzz_and_triage("-s 1 -E 60000 --net tcp:7000", &sockets(), "epoll");
    let done = job.env("AFL_BENCH_UNTIL_CRASH", "1").run().expect(0);
    done.says(
        "the target listens there, took 3 of 3 messages of the first seed, and answered 3 times",
    );
    assert_eq!(dir.crashes().len(), 1);
    let report = dir.ffuzz("triage -o out").run().expect(0);
    report.says("1 bug");
    let folders = std::fs::read_dir(dir.path("out/triage")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.map(|name| format!("out/triage/{name}")).collect();
    let bug = names.iter().find(|name| dir.path(&format!("{name}/input")).exists()).unwrap();
    let session = dir.text(&format!("{bug}/session.txt"));
    assert!(session.contains("0 > LOGIN") && session.contains("0 < 251 go\\n"), "{session}");
    // The shortest session that does the same.
    let smallest = dir.read(&format!("{bug}/minimized"));
    assert_eq!(smallest, list(&[(0, "LOGIN"), (0, "MAIL"), (0, "DATA")]));
    for how in ["", "--real"] {
        let script = dir.path(&format!("{bug}/reproduce.sh"));
        let done = dir.program(script.to_str().unwrap()).words(how).run();
        assert_eq!(done.code(), 134, "{how}: {} {}", done.out, done.err);
    }
}

#[test]
fn a_session_is_shown_and_made_small() {
    let dir = TestDir::new();
    let session = list(&[(0, "HELLO"), (0, "LOGIN x"), (0, "MAIL y"), (0, "QUIT now")]);
    let shown = dir.tool("showmap --messages --net tcp:7000", &sockets(), "poll");
    shown
        .input(&session)
        .run()
        .expect(0)
        .says("0 > LOGIN x\n0 < 250 in\\n\n0 > MAIL y\n0 < 251 go");
    let without = dir.tool("showmap --messages", &sockets(), "poll").run();
    without.refused(1, "--messages needs a target whose inputs come over a socket", "--net");
    dir.write("session", &session);
    let words = "tmin -e -i session -o small --net tcp:7000";
    dir.tool(words, &sockets(), "plain").run().expect(0).says("Message removal complete");
    let small = dir.read("small");
    assert!(small.len() < session.len() - 8, "{small:?}");
    assert!(small.windows(5).any(|w| w == b"LOGIN") && small.windows(4).any(|w| w == b"MAIL"));
}

#[test]
fn seeds_in_other_forms_become_lists() {
    let dir = TestDir::with_seed("LOGIN x\r\nMAIL y\r\nQUIT");
    dir.write("in/parts", r#"["::MEM::4C4F47494E", "::MEM::4d41494C"]"#);
    dir.write("in/replayable", session());
    let options = r"-s 1 -E 60 --net tcp:7000 --split \r\n";
    let job = dir.fuzz(options, &sockets(), "poll").env("AFL_DISABLE_TRIM", "1");
    job.run().expect(0).says("took 2 of 2 messages");
    let has = |wanted: &[u8]| {
        dir.queue().iter().any(|name| dir.read(&format!("out/default/queue/{name}")) == wanted)
    };
    assert!(has(&list(&[(0, "LOGIN"), (0, "MAIL")])) && has(&session()));
    assert!(has(&list(&[(0, "LOGIN x\r\n"), (0, "MAIL y\r\n"), (0, "QUIT")])), "{:?}", dir.queue());
}

#[test]
fn beside_a_sanitizer() {
    let program = target("sockets.c", "-fsanitize=address");
    for how in ["poll", "fork"] {
        let dir = TestDir::with_seed(session());
        dir.fuzz("-s 1 -E 600 --net tcp:7000", &program, how).run().expect(0);
        let stats = dir.stats();
        assert_eq!([&*stats["run_mode"], &*stats["snapshot_differs"]], ["snapshot", "0"], "{how}");
    }
    let dir = TestDir::with_seed(session());
    let done = dir.fuzz("-s 1 -E 10 --net tcp:7000", &program, "threads").run();
    done.says("there is no stand-in for a thread for a connection beside a sanitizer");
}

/// Without the words of the program, which havoc would put in. A longer word moves the next message, which has to arrive.
#[test]
fn a_word_that_is_longer_than_its_message_is_solved() {
    let dir = TestDir::with_seed(list(&[(0, "LOGIN x"), (0, "HELO"), (0, "MAIL y")]));
    let job = dir.fuzz("-s 1 -E 6000 -d --net tcp:7000", &sockets(), "keyed");
    let job = job.env("AFL_BENCH_UNTIL_CRASH", "1").env("AFL_NO_AUTODICT", "1");
    // Else it leaves out the third message, which the target does not come to.
    job.env("AFL_DISABLE_TRIM", "1").run().expect(0);
    let crashes = dir.crashes();
    assert_eq!(crashes.len(), 1);
    let crash = dir.read(&format!("out/default/crashes/{}", crashes[0]));
    let messages: Vec<_> = ffuzz::mutate::messages::messages(&crash).collect();
    assert!(messages.len() >= 3 && messages[1].bytes.starts_with(b"AUTHENTICATE EXTERNALLY"));
}

/// QUIT becomes DATA, by each of the functions that make inputs. They crash with what is not one message.
#[test]
fn mutators_get_one_message() {
    let library = plain("tests/mutators/message.c", "-shared -fPIC");
    let python = "def fuzz(buf, add_buf, max_size):\n    \
                  assert buf.isascii() and add_buf.isascii() and 0 not in buf + add_buf, buf\n    \
                  return buf.replace(b'QUIT', b'DATA!')\n";
    let crash = |dir: &TestDir| dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
    for (function, only) in [("fuzz", "1"), ("havoc", ""), ("python", "1")] {
        let dir = TestDir::with_seed(session());
        dir.write("in/other", list(&[(0, "HELLO"), (1, "LOGIN y"), (0, "QUIT now")]));
        dir.write("quits.py", python);
        let job = dir.fuzz("-s 1 -E 9000 -d -c - --net tcp:7000", &sockets(), "poll");
        let job = job.env("AFL_BENCH_UNTIL_CRASH", "1").env("MESSAGE_BY", function);
        let job = if only.is_empty() { job } else { job.env("AFL_CUSTOM_MUTATOR_ONLY", only) };
        let job = match function {
            "python" => job.env("AFL_PYTHON_MODULE", "quits").env("PYTHONPATH", "."),
            _ => job.env("AFL_CUSTOM_MUTATOR_LIBRARY", library.to_str().unwrap()),
        };
        job.run().expect(0);
        let crash = crash(&dir);
        let messages = ffuzz::mutate::messages::messages(&crash);
        assert_eq!(ffuzz::mutate::messages::list(messages.clone()), crash, "{function}");
        // The trimming leaves only the words of the others.
        let last = messages.last().unwrap().bytes;
        assert!(only.is_empty() || last == b"DATA!", "{function}: {crash:?}");
    }
}

#[test]
fn mutators_get_the_session_if_it_is_wanted() {
    let dir = TestDir::with_seed(session());
    let source = "def fuzz(buf, add_buf, max_size):\n    \
                  return buf.replace(b'\\4\\0\\0\\0QUIT', b'\\5\\0\\0\\0DATA!')\n";
    dir.write("quits.py", source);
    let options = "-s 1 -E 2000 -d -c - --net tcp:7000 --mutator-sees session";
    let job = dir.fuzz(options, &sockets(), "poll").env("AFL_DISABLE_TRIM", "1");
    let job = job.env("AFL_BENCH_UNTIL_CRASH", "1").env("AFL_CUSTOM_MUTATOR_ONLY", "1");
    job.env("AFL_PYTHON_MODULE", "quits").env("PYTHONPATH", ".").run().expect(0);
    let crash = dir.read(&format!("out/default/crashes/{}", dir.crashes()[0]));
    assert_eq!(crash, list(&[(0, "LOGIN x"), (0, "MAIL y"), (0, "DATA!")]));
}

#[test]
fn each_message_is_post_processed_unless_the_session_is_wanted() {
    let library = plain("tests/mutators/letter.c", "-shared -fPIC -DLETTER='A'");
    let said = |options: &str| {
        let dir = TestDir::new();
        let words = format!("showmap -t 20000 -o map --net tcp:7000 {options}");
        let job = dir.tool(&words, &sockets(), "plain");
        let job = job.env("AFL_CUSTOM_MUTATOR_LIBRARY", library.to_str().unwrap());
        job.input(list(&[(0, "LOGIN"), (0, "MAIL")])).run().expect(0).out
    };
    assert_eq!(said(""), "0:LOGINA|0:MAILA|0:end|");
    assert_eq!(said("--mutator-sees session"), "0:LOGIN|0:MAIL|0:end|");
}

#[test]
fn a_killerbeez_module_changes_one_message_after_the_other() {
    for (name, seed, count) in
        [("counter", session(), 15), ("parts", list(&[(0, "L"), (0, "MA"), (0, "QUI")]), 5)]
    {
        let dir = TestDir::with_seed(seed);
        let flags = format!("-shared -fPIC -D{}", name.to_uppercase());
        let built = plain("tests/mutators/modules.c", &flags);
        std::fs::copy(built, dir.path(&format!("lib{name}_mutator.so"))).unwrap();
        let options =
            format!("-s 1 --net tcp:7000 --mutator-dir . --mutator-only --mutator {name}");
        let done = dir.fuzz(&options, &sockets(), "poll").run().expect(0);
        done.says(&format!("mutator {name} exhausted after {count} inputs"));
    }
}

/// What a server does before its first receive is done once.
#[test]
fn servers_run_by_snapshot() {
    for how in ["plain", "poll", "select", "edges", "fork", "daemon", "stream", "busy"] {
        let dir = TestDir::with_seed(session());
        let options = "-s 1 -E 4000 --net tcp:7000";
        dir.fuzz(options, &sockets(), how).env("AFL_NO_AUTODICT", "1").run().expect(0);
        let stats = dir.stats();
        assert_eq!(stats["run_mode"], "snapshot", "{how}: {stats:?}");
        assert_eq!(stats["snapshot_differs"], "0", "{how}");
        assert_eq!(stats["stability"], "100.00%", "{how}");
    }
    let dir = TestDir::with_seed(session());
    dir.fuzz("-s 1 -E 4000 --net udp:7000", &sockets(), "udp").run().expect(0);
    assert_eq!(dir.stats()["run_mode"], "snapshot");
}

/// The domain `answers`.
#[test]
fn pairs_of_answers_are_named_and_lead_the_search() {
    let dir = TestDir::with_seed(session());
    let shown = |options: &str| {
        let job =
            dir.tool(&format!("showdsf -q --names --net tcp:7000 {options}"), &sockets(), "poll");
        let out = job.input(session()).run().expect(0).out;
        let lines = out.lines().filter(|line| line.contains("dsf["));
        let mut pairs: Vec<String> = lines
            .map(|line| line.split("answers").nth(1).unwrap_or_default().trim().to_owned())
            .collect();
        pairs.sort();
        pairs
    };
    assert_eq!(shown(""), ["250 -> 251", "251 -> 500", "start -> 250"]);
    assert_eq!(shown("--answers [a-z]+"), ["go -> no", "in -> go", "start -> in"]);
    assert_eq!(shown("--answers ^25(.)"), ["0 -> 1", "1 -> other", "start -> 0"]);
    for (how, guided) in [("", None), ("-p", Some("answers"))] {
        let options = format!("-s 1 -E 2000 --net tcp:7000 {how}");
        dir.fuzz(&options, &sockets(), "poll").run().expect(0);
        let stats = dir.stats();
        assert_eq!(stats.get("dsf0_name").map(String::as_str), guided);
        let _ = std::fs::remove_dir_all(dir.path("out"));
    }
}

/// Sends each message, and waits for an answer to it.
fn talk(mut peer: impl Read + Write, messages: &[&str]) -> Vec<String> {
    let mut answer = [0; 64];
    let answers = messages.iter().map(|message| {
        peer.write_all(message.as_bytes()).unwrap();
        let length = peer.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    });
    answers.collect()
}

fn connected() -> TcpStream {
    let mut peer = None;
    wait_until("a socket that takes connections", || {
        peer = TcpStream::connect((Ipv4Addr::LOCALHOST, 7000)).ok();
        peer.is_some()
    });
    peer.unwrap()
}

/// The port is one of this machine while a session is recorded, so all of it is one test.
#[test]
fn a_session_with_a_real_peer_becomes_a_seed() {
    let dir = TestDir::with_seed(session());
    let all = ["LOGIN x", "MAIL y", "QUIT"];
    let recorded = |net: &str, how: &str, peer: &dyn Fn()| {
        let _ = std::fs::remove_file(dir.path("seed"));
        let job = dir.tool(&format!("fuzz --record seed --net {net}"), &sockets(), how);
        let job = job.start();
        peer();
        let done = job.finish().expect(0);
        done.says("a run with them gives the same answers");
        dir.read("seed")
    };
    for how in ["plain", "poll", "epoll"] {
        let answers = || assert_eq!(talk(connected(), &all), ["250 in\n", "251 go\n", "500 no\n"]);
        assert_eq!(recorded("tcp:7000", how, &answers), session(), "{how}");
    }
    let two = || {
        let (mut first, mut second) = (connected(), connected());
        assert_eq!(talk(&mut first, &["LOGIN"]), ["250 in\n"]);
        assert_eq!(talk(&mut second, &["LOGIN", "MAIL"]), ["250 in\n", "251 go\n"]);
        assert_eq!(talk(&mut first, &["MAIL"]), ["251 go\n"]);
    };
    let both = list(&[(0, "LOGIN"), (1, "LOGIN"), (1, "MAIL"), (0, "MAIL")]);
    assert!(recorded("tcp:7000", "poll", &two).starts_with(&both));
    let datagrams = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, 7000)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut answer = [0; 8];
        wait_until("an answer", || {
            socket.send(b"abcdef").is_ok()
                && socket.recv(&mut answer).is_ok_and(|length| length == 2)
        });
    };
    assert!(recorded("udp:7000", "udp", &datagrams).starts_with(&list(&[(0, "abcdef")])));
    let _ = std::fs::remove_file("/tmp/ffuzz-sockets");
    let local = || {
        let mut peer = None;
        wait_until("the socket", || {
            peer = UnixStream::connect("/tmp/ffuzz-sockets").ok();
            peer.is_some()
        });
        assert_eq!(talk(peer.unwrap(), &["LOGIN"]), ["250 in\n"]);
    };
    assert_eq!(recorded("unix:/tmp/ffuzz-sockets", "unix", &local), list(&[(0, "LOGIN")]));
    // A client, whose server is the test.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 7080)).unwrap();
    let server = || assert_eq!(talk(listener.accept().unwrap().0, &all[..1]), ["250 in\n"]);
    assert_eq!(recorded("tcp-client", "client 7080", &server), list(&[(0, "LOGIN x")]));

    let record = |options: &str| dir.tool(&format!("fuzz {options}"), &sockets(), "plain").run();
    std::fs::remove_file(dir.path("seed")).unwrap();
    let _busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 7000)).unwrap();
    record("--record seed --net tcp:7000").refused(
        1,
        "clients cannot come to 127.0.0.1:7000",
        "end the program",
    );
    assert!(!dir.path("seed").exists(), "no file without a session");
    std::fs::write(dir.path("seed"), "kept").unwrap();
    record("--record seed --net tcp:7001").refused(1, "seed cannot be written", "--record FILE");
    assert_eq!(dir.text("seed"), "kept");
    record("--record no/seed --net tcp:7001").refused(
        1,
        "no/seed cannot be written",
        "--record FILE",
    );
    record("--record seed -i in --net tcp:7001").refused(2, "no campaign", "leave out -i and -o");
}

/// A login takes milliseconds, the other messages microseconds.
#[test]
fn runs_begin_behind_messages_that_take_long() {
    for (how, net) in [("poll costly", "tcp"), ("edges costly", "tcp"), ("udp costly", "udp")] {
        let connections = list(&[(0, "LOGIN x"), (1, "MAIL"), (0, "MAIL"), (1, ""), (0, "QUIT")]);
        let dir = TestDir::with_seed(connections);
        let options = format!("-E 8000 --net {net}:7000");
        dir.fuzz(&options, &sockets(), how).run().expect(0);
        let stats = dir.stats();
        assert!(stats.contains_key("net_behind_share"), "{how}: {stats:?}");
        let behind: f64 = stats["net_snapshot_behind"].parse().unwrap();
        assert!(behind >= 1.0, "{how}: {behind}");
        assert_eq!([&*stats["run_mode"], &*stats["snapshot_differs"]], ["snapshot", "0"], "{how}");
    }
}

#[test]
fn programs_of_other_compilers_and_without_source() {
    for (program, options) in [(plain("sockets.c", ""), "-Q"), (afl_target("sockets.c", ""), "")] {
        let dir = TestDir::with_seed(session());
        let options = format!("-s 1 -E 300 --net tcp:7000 {options}");
        let done = dir.fuzz(&options, &program, "poll").run().expect(0);
        done.says("took 3 of 3 messages");
        assert!(dir.stat("edges_found") > 10);
        if options.ends_with("-Q") {
            let stats = dir.stats();
            assert_eq!([&*stats["run_mode"], &*stats["snapshot_differs"]], ["snapshot", "0"]);
        }
    }
}

#[test]
fn what_is_in_the_way_of_a_session_is_named() {
    let dir = TestDir::with_seed(session());
    for (net, how, cause, remedy) in [
        ("tcp:7001", "plain", "the target listens on TCP port 7000, not there", "--net tcp:7000"),
        ("udp:7000", "plain", "the target listens on TCP port 7000, not there", "--net tcp:7000"),
        ("tcp:7000", "udp", "the target listens on UDP port 7000, not there", "--net udp:7000"),
        ("tcp:7000", "client", "the target never listens on a socket", "AFL_DEBUG_CHILD=1"),
        (
            "tcp-client:81",
            "client",
            "the target connects to TCP port 80, not there",
            "--net tcp-client:80",
        ),
        ("tcp-client", "plain", "the target never connects to a socket", "AFL_DEBUG_CHILD=1"),
        ("tcp:7000", "silent", "the target listens there and never accepts", "AFL_DEBUG_CHILD=1"),
        ("udp:7000", "raw", "there is no stand-in for socket(…, SOCK_RAW)", "AFL_DEBUG_CHILD=1"),
    ] {
        dir.fuzz(&format!("-E 10 --net {net}"), &sockets(), how).run().refused(1, cause, remedy);
        std::fs::remove_dir_all(dir.path("out")).unwrap();
    }
    let done = dir.fuzz("-s 1 -E 10 --net tcp:7000", &sockets(), "deaf").run().expect(0);
    done.says("opens its socket and receives nothing from it");
    std::fs::remove_dir_all(dir.path("out")).unwrap();
    let done = dir.fuzz("-s 1 -E 10 --net tcp:7000", &sockets(), "second").run().expect(0);
    done.says("it opens TCP port 7001 during the session, where nobody connects to");
}

#[test]
fn targets_and_options_that_cannot_have_it_are_refused() {
    let dir = TestDir::with_seed(session());
    let refused = |options: &str, program: &PathBuf, words: &str, cause: &str, remedy: &str| {
        let is_usage = ["is no", "names no", "--split", "--answers", "--mutator"]
            .iter()
            .any(|word| cause.starts_with(word));
        let code = if is_usage { 2 } else { 1 };
        dir.fuzz(options, program, words).run().refused(code, cause, remedy);
    };
    let (fitting, fixed) = (sockets(), target("sockets.c", "-static"));
    refused("--net tcp:7000", &fixed, "plain", "which is linked statically", "dynamically");
    refused("--net tcp:7000", &fitting, "@@", "names a file for them", "leave out @@");
    refused("--net sctp:7", &fitting, "plain", "names no socket", "tcp-client[:PORT]");
    refused("--net tcp:70000", &fitting, "plain", "is no port", "udp:PORT");
    refused("--net tcp:7 --split x\\q", &fitting, "plain", "--split", "--help lists the options");
    refused("--net tcp:7 --answers a", &fitting, "plain", "--answers", "add -p");
    refused("--net tcp:7 -p --answers a(", &fitting, "plain", "--answers a(", "extended");
    let (sees, of_files) = ("--mutator-sees", target("append.c", ""));
    refused(
        "--mutator-sees session",
        &of_files,
        "x",
        "--mutator-sees without --net",
        "--net tcp:80",
    );
    let words = "--net tcp:7000 --mutator-sees all";
    refused(words, &fitting, "plain", "--mutator-sees all is not known", sees);
    if has("qemu-x86_64") {
        let words = "--net does not reach into QEMU";
        refused(
            "--net tcp:7000 --qemu",
            &plain("sockets.c", ""),
            "plain",
            words,
            "leave --qemu out",
        );
    }
    let owned = dir.path("owned");
    std::fs::copy(&fitting, &owned).unwrap();
    let is_given = std::os::unix::fs::chown(&owned, Some(65534), None).is_ok();
    if is_given {
        std::fs::set_permissions(&owned, std::fs::Permissions::from_mode(0o4755)).unwrap();
        refused("--net tcp:7000", &owned, "plain", "runs as another user", "without that mode bit");
    }
}
