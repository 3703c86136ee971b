//! Events for clients: JSON, one object per line. `docs/control.md` describes them for users.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::line;
use ffuzz_event::{DomainGain, Event, InputOrigin, Reply, Snapshot, StopReason};

/// Protocol version, increased when an older client could misinterpret the new protocol.
const VERSION: u32 = 1;

/// The first line from the fuzzer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hello {
    pub version: u32,
    pub pid: u32,
    #[serde(serialize_with = "ffuzz_event::lossy")]
    pub out: PathBuf,
    /// Name of the instance's folder in `out`; None for a fleet, which has `workers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
}

impl Hello {
    /// Greeting of one instance, or of a fleet, with the main first in `workers`.
    #[must_use]
    pub fn new(out: PathBuf, instance: Option<String>, workers: Vec<String>) -> Self {
        Self { version: VERSION, pid: std::process::id(), out, instance, workers }
    }

    #[must_use]
    pub fn line(&self) -> String {
        line(&EventMessage::Hello(self))
    }

    /// Lines for clients about an event. `worker`: the worker of a fleet that reports the event.
    #[must_use]
    pub fn lines(&self, event: &Event, worker: Option<&str>) -> Vec<String> {
        let messages = match worker {
            Some(worker) if !self.is_news(event, worker) => Vec::new(),
            _ => messages(event),
        };
        messages.into_iter().map(|message| line(&FromWorker { worker, message })).collect()
    }

    /// Returns false for worker events that are not forwarded: the fleet reports totals itself, and imports
    /// between workers are not new.
    fn is_news(&self, event: &Event, worker: &str) -> bool {
        match event {
            Event::SeedSaved { source: InputOrigin::Import { peer }, .. } => {
                !self.workers.contains(peer)
            }
            Event::SeedImported { .. } => self.workers.first().is_some_and(|main| main == worker),
            Event::Started | Event::Tick(_) | Event::Stopped { .. } | Event::Reply(_) => false,
            _ => true,
        }
    }
}

#[derive(Serialize)]
struct FromWorker<'a> {
    #[serde(flatten)]
    message: EventMessage<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
}

/// An event of the fuzzer.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum EventMessage<'a> {
    Hello(&'a Hello),
    Started,
    Seed {
        #[serde(flatten)]
        find: FindLine<'a>,
        new_edge: bool,
    },
    Waypoint {
        #[serde(flatten)]
        find: FindLine<'a>,
        #[serde(flatten)]
        gain: &'a DomainGain,
    },
    Crash {
        #[serde(flatten)]
        find: FindLine<'a>,
        signal: i32,
    },
    Hang {
        #[serde(flatten)]
        find: FindLine<'a>,
    },
    Stats(&'a Snapshot),
    Warning {
        message: &'a str,
    },
    Reply(&'a Reply),
    Stopped {
        reason: StopReason,
        #[serde(flatten)]
        snapshot: &'a Snapshot,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
struct FindLine<'a> {
    #[serde(serialize_with = "ffuzz_event::lossy")]
    path: &'a Path,
    input_id: u64,
    #[serde(flatten)]
    source: &'a InputOrigin,
}

fn messages(event: &Event) -> Vec<EventMessage<'_>> {
    match event {
        Event::Started => vec![EventMessage::Started],
        Event::SeedImported { id, path, .. } => {
            let find = FindLine { path, input_id: id.0.into(), source: &InputOrigin::Seed };
            vec![EventMessage::Seed { find, new_edge: false }]
        }
        Event::SeedSaved { id, path, new_edge, source, gains, .. } => {
            let find = FindLine { path, input_id: id.0.into(), source };
            let seed = EventMessage::Seed { find, new_edge: *new_edge };
            let waypoints = gains.iter().map(|gain| EventMessage::Waypoint { find, gain });
            std::iter::once(seed).chain(waypoints).collect()
        }
        Event::CrashSaved { path, number, signal, source } => {
            let find = FindLine { path, input_id: *number, source };
            vec![EventMessage::Crash { find, signal: *signal }]
        }
        Event::HangSaved { path, number, source } => {
            vec![EventMessage::Hang { find: FindLine { path, input_id: *number, source } }]
        }
        Event::Tick(snapshot) => vec![EventMessage::Stats(snapshot)],
        Event::Warning { message } => vec![EventMessage::Warning { message }],
        Event::Reply(reply) => vec![EventMessage::Reply(reply)],
        Event::Stopped { reason, snapshot, .. } => {
            vec![EventMessage::Stopped { reason: *reason, snapshot }]
        }
        Event::CycleFinished { .. }
        | Event::TargetRestarted { .. }
        | Event::DomainsFound { .. }
        | Event::Notice { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffuzz_engine::corpus::SeedId;
    use serde_json::{Value, json};

    fn saved(path: &str, source: InputOrigin, gains: Vec<DomainGain>) -> Event {
        let (id, waypoint) = (SeedId(7), !gains.is_empty());
        Event::SeedSaved { id, path: path.into(), new_edge: true, waypoint, source, gains }
    }

    fn values(hello: &Hello, event: &Event, worker: Option<&str>) -> Vec<Value> {
        let lines = hello.lines(event, worker);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_find_is_sent_with_its_origin() {
        let hello = Hello::new("out".into(), Some("default".into()), Vec::new());
        let first: Value = serde_json::from_str(&hello.line()).unwrap();
        assert_eq!(
            first,
            json!({"event": "hello", "version": 1, "pid": std::process::id(), "out": "out",
                   "instance": "default"})
        );
        let domain = |name: &str| DomainGain {
            domain: name.into(),
            key: 3,
            value: 9,
            place: "a.c:1".into(),
            keys: 2,
        };
        let event = saved("out/default/queue/id", InputOrigin::Own, vec![domain("mem")]);
        let find = json!({"path": "out/default/queue/id", "input_id": 7, "origin": "own"});
        let with = |event: &str, more: Value| {
            let mut all = find.as_object().unwrap().clone();
            all.insert("event".into(), event.into());
            all.extend(more.as_object().unwrap().clone());
            Value::from(all)
        };
        let waypoint = json!({"domain": "mem", "key": 3, "value": 9, "place": "a.c:1", "keys": 2});
        assert_eq!(
            values(&hello, &event, None),
            [with("seed", json!({"new_edge": true})), with("waypoint", waypoint)]
        );
        assert!(values(&hello, &Event::CycleFinished { cycles: 1 }, None).is_empty());
    }

    #[test]
    fn of_a_fleet_everything_is_sent_once() {
        let names = ["main", "worker01"].map(str::to_owned).into();
        let hello = Hello::new("out".into(), None, names);
        let of = |peer: &str| saved("p", InputOrigin::Import { peer: peer.into() }, Vec::new());
        assert!(values(&hello, &of("main"), Some("worker01")).is_empty());
        let news = values(&hello, &of("afl"), Some("worker01"));
        assert_eq!((&news[0]["peer"], &news[0]["worker"]), (&json!("afl"), &json!("worker01")));
        let (id, path) = (SeedId(0), PathBuf::from("p"));
        let start = Event::SeedImported { id, path, index: 1, total: 1 };
        assert_eq!(values(&hello, &start, Some("main"))[0]["origin"], "seed");
        assert!(values(&hello, &start, Some("worker01")).is_empty());
        let tick = Event::Tick(Box::default());
        assert!(values(&hello, &tick, Some("main")).is_empty());
        assert_eq!(values(&hello, &tick, None)[0]["event"], "stats");
    }
}
