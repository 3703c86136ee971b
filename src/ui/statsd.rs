//! `AFL_STATSD`: the campaign's numbers as gauges for a StatsD server, under AFL++'s names.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use ffuzz_config::options::{StatsdOptions, StatsdTags};
use ffuzz_event::{Event, EventSink, Snapshot};

/// Sends one datagram per second. Datagrams to an absent server are lost without an error.
#[derive(Debug)]
pub struct Statsd {
    socket: UdpSocket,
    tags: StatsdTags,
    last: u64,
}

impl Statsd {
    /// Resolves the server's address once.
    pub fn new(options: &StatsdOptions) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((options.host.as_str(), options.port))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, tags: options.tags, last: 0 })
    }

    fn send(&mut self, snapshot: &Snapshot) {
        self.last = snapshot.times.now;
        let _ = self.socket.send(gauges(snapshot, self.tags).as_bytes());
    }
}

impl EventSink for Statsd {
    fn handle(&mut self, event: &Event) {
        match event {
            Event::Tick(snapshot) if snapshot.times.now > self.last => self.send(snapshot),
            Event::Stopped { snapshot, .. } => self.send(snapshot),
            _ => {}
        }
    }
}

fn gauges(s: &Snapshot, flavor: StatsdTags) -> String {
    let values = [
        ("cycle_done", s.cycles.cycles_done.to_string()),
        ("cycles_wo_finds", s.cycles.cycles_without_finds.to_string()),
        ("execs_done", s.runs.execs.to_string()),
        ("execs_per_sec", format!("{:.2}", s.runs.execs_per_sec)),
        ("corpus_count", s.corpus.corpus_count.to_string()),
        ("corpus_favored", s.corpus.corpus_favored.to_string()),
        ("corpus_found", s.corpus.corpus_found.to_string()),
        ("corpus_imported", s.corpus.corpus_imported.to_string()),
        ("max_depth", s.corpus.max_depth.to_string()),
        ("cur_item", s.turn.current.map_or(0, |id| id.0).to_string()),
        ("pending_favs", s.corpus.pending_favored.to_string()),
        ("pending_total", s.corpus.pending_total.to_string()),
        ("corpus_variable", s.corpus.corpus_variable.to_string()),
        ("saved_crashes", s.finds.saved_crashes.to_string()),
        ("saved_hangs", s.finds.saved_hangs.to_string()),
        ("total_crashes", s.finds.total_crashes.to_string()),
        ("slowest_exec_ms", s.resources.slowest_exec_ms.to_string()),
        ("edges_found", s.coverage.edges_found.to_string()),
        ("var_byte_count", s.coverage.unstable_edges.to_string()),
        ("havoc_expansion", s.search.havoc_expansion.to_string()),
    ];
    let (before, behind) = tags(&s.setup.banner, flavor);
    let mut text = String::new();
    for (name, value) in values {
        let _ = writeln!(text, "fuzzing.{name}{before}:{value}|g{behind}");
    }
    text
}

/// The tags after the name and those after the value.
fn tags(banner: &str, flavor: StatsdTags) -> (String, String) {
    // Separators of one flavour or the other.
    let clean = |text: &str| text.replace([',', '|', '#', ':', '=', '[', ']', '\n'], "_");
    let (banner, version) = (clean(banner), concat!("ffuzz-", env!("CARGO_PKG_VERSION")));
    let equal = format!("banner={banner},afl_version={version}");
    match flavor {
        StatsdTags::None => (String::new(), String::new()),
        StatsdTags::Dogstatsd => {
            (String::new(), format!("|#banner:{banner},afl_version:{version}"))
        }
        StatsdTags::Influxdb => (format!(",{equal}"), String::new()),
        StatsdTags::Librato => (format!("#{equal}"), String::new()),
        StatsdTags::Signalfx => (format!("[{equal}]"), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_event::{CampaignSetup, Runs, Times};

    #[test]
    fn flavours_are_those_of_afl() {
        let snapshot = Snapshot {
            setup: CampaignSetup { banner: "./t:1".into(), ..CampaignSetup::default() },
            runs: Runs { execs: 7, ..Runs::default() },
            ..Snapshot::default()
        };
        let line = |flavor| {
            let text = gauges(&snapshot, flavor);
            assert_eq!(text.lines().count(), 20);
            let line = text.lines().find(|line| line.starts_with("fuzzing.execs_done"));
            line.unwrap().replace(env!("CARGO_PKG_VERSION"), "V")
        };
        assert_eq!(line(StatsdTags::None), "fuzzing.execs_done:7|g");
        let tagged = [
            (StatsdTags::Dogstatsd, ":7|g|#banner:./t_1,afl_version:ffuzz-V"),
            (StatsdTags::Influxdb, ",banner=./t_1,afl_version=ffuzz-V:7|g"),
            (StatsdTags::Librato, "#banner=./t_1,afl_version=ffuzz-V:7|g"),
            (StatsdTags::Signalfx, "[banner=./t_1,afl_version=ffuzz-V]:7|g"),
        ];
        for (flavor, expected) in tagged {
            assert_eq!(line(flavor), format!("fuzzing.execs_done{expected}"));
        }
    }

    #[test]
    fn a_datagram_goes_out_once_a_second_and_at_the_end() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let tags = StatsdTags::None;
        let options = StatsdOptions { host: "127.0.0.1".into(), port, tags };
        let mut sink = Statsd::new(&options).unwrap();
        let snapshot = |now, execs| {
            let times = Times { now, ..Times::default() };
            let runs = Runs { execs, ..Runs::default() };
            Box::new(Snapshot { times, runs, ..Snapshot::default() })
        };
        for (now, execs) in [(5, 1), (5, 2), (6, 3)] {
            sink.handle(&Event::Tick(snapshot(now, execs)));
        }
        let reason = ffuzz_event::StopReason::User;
        sink.handle(&Event::Stopped { reason, next: vec![], snapshot: snapshot(6, 4) });
        let execs = || {
            let mut buffer = [0; 4096];
            let length = server.recv(&mut buffer).unwrap();
            let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
            text.lines().find(|line| line.contains("execs_done")).unwrap().to_owned()
        };
        let seen = [execs(), execs(), execs()];
        assert_eq!(seen, ["1", "3", "4"].map(|n| format!("fuzzing.execs_done:{n}|g")));
        let nowhere = StatsdOptions { host: "no-such-host.invalid".into(), ..options };
        assert!(Statsd::new(&nowhere).is_err());
    }
}
