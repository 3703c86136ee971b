//! `--json`: one JSON object per line; the status at most five times per second, every event immediately.

use std::io::Write;

use serde::Serialize;

use ffuzz_event::{Event, EventSink};

/// Writes JSON lines. Ignores output errors: the campaign does not depend on a reader.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
}

impl<W: Write> Json<W> {
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Json<W> {
    fn line(&mut self, object: &impl Serialize) {
        let Ok(line) = serde_json::to_string(object) else { return };
        let line = line + "\n";
        let _ = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
    }
}

impl<W: Write> EventSink for Json<W> {
    fn handle(&mut self, event: &Event) {
        self.line(event);
    }

    fn handle_of(&mut self, worker: &str, event: &Event) {
        self.line(&Of { worker, event });
    }
}

/// An event with the name of its worker.
#[derive(Serialize)]
struct Of<'a> {
    worker: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use serde_json::{Value, json};

    use super::*;
    use ffuzz_engine::corpus::SeedId;
    use ffuzz_event::{
        DomainGain, InjectionOutcome, InputOrigin, MutatorStatus, Reply, Runs, Search, Snapshot,
        StageYield, StopReason,
    };

    #[test]
    fn every_event_is_one_line_with_its_name() {
        let mutators = vec![MutatorStatus { name: "m.so".into(), calls: 7, ..Default::default() }];
        let runs = Runs { execs: 3, ..Runs::default() };
        let snapshot = Box::new(Snapshot { runs, mutators, ..Snapshot::default() });
        let mut out = Vec::new();
        let mut sink = Json::new(&mut out);
        sink.handle(&Event::Warning { message: "two\nlines".into() });
        sink.handle(&Event::Tick(snapshot.clone()));
        sink.handle(&Event::Stopped { reason: StopReason::ExecLimit, next: vec![], snapshot });
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({"event": "warning", "message": "two\nlines"}));
        assert_eq!((&lines[1]["event"], &lines[1]["execs"]), (&json!("tick"), &json!(3)));
        assert_eq!(lines[1]["mutators"][0]["calls"], 7);
        assert_eq!(lines[2]["reason"], "execlimit");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_worker_is_named_beside_its_event() {
        let mut out = Vec::new();
        Json::new(&mut out).handle_of("main", &Event::CycleFinished { cycles: 3 });
        let expected = "{\"worker\":\"main\",\"event\":\"cycle_finished\",\"cycles\":3}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_written_can_be_read_back() {
        let stages = vec![StageYield { name: "havoc".into(), finds: 2, execs: u64::MAX }];
        let runs = Runs { run_mode: "fork".into(), ..Runs::default() };
        let search = Search { stages, ..Search::default() };
        let snapshot = Box::new(Snapshot { runs, search, ..Snapshot::default() });
        let path = std::path::PathBuf::from(OsStr::from_bytes(b"out/\xff"));
        for event in [
            Event::Started,
            Event::SeedSaved {
                id: SeedId(7),
                path: path.clone(),
                new_edge: true,
                waypoint: true,
                source: InputOrigin::Import { peer: "main".into() },
                gains: vec![DomainGain { domain: "mem".into(), value: 9, ..Default::default() }],
            },
            Event::HangSaved { number: u64::MAX, path, source: InputOrigin::Inject },
            Event::Reply(Reply { id: Some(u64::MAX), ok: true, ..Reply::default() }),
            Event::Reply(Reply { outcome: Some(InjectionOutcome::default()), ..Reply::default() }),
            Event::Stopped { reason: StopReason::User, next: vec![], snapshot },
        ] {
            let mut out = Vec::new();
            Json::new(&mut out).handle(&event);
            let read: Event = serde_json::from_slice(&out).unwrap();
            let shown = format!("{event:?}").replace("\\xFF", "\u{fffd}");
            assert_eq!(format!("{read:?}"), shown);
        }
    }
}
