//! `--json`: an object a line for programs, the state five times a second and every event at once.

use std::io::Write;

use serde_json::{Value, json};

use crate::event::{Event, EventSink, Snapshot};

/// Writes lines. Errors of the output are ignored: the campaign does not depend on a reader.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
}

impl<W: Write> Json<W> {
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> EventSink for Json<W> {
    fn handle(&mut self, event: &Event) {
        let line = object(event).to_string() + "\n";
        let _ = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// `event` says what it is.
fn object(event: &Event) -> Value {
    match event {
        Event::Started => json!({"event": "started"}),
        Event::SeedImported { id, path, index, total } => json!({
            "event": "seed_imported", "id": id, "path": path.to_string_lossy(), "index": index, "total": total
        }),
        Event::SeedSaved { id, path, new_edge, waypoint } => json!({
            "event": "seed_saved", "id": id, "path": path.to_string_lossy(), "new_edge": new_edge, "waypoint": waypoint
        }),
        Event::CrashSaved { path, signal } => {
            json!({"event": "crash_saved", "path": path.to_string_lossy(), "signal": signal})
        }
        Event::HangSaved { path } => json!({"event": "hang_saved", "path": path.to_string_lossy()}),
        Event::CycleFinished { cycles } => json!({"event": "cycle_finished", "cycles": cycles}),
        Event::TargetRestarted { reason } => {
            json!({"event": "target_restarted", "reason": reason})
        }
        Event::DomainsFound { lines } => json!({"event": "domains_found", "lines": lines}),
        Event::Warning { message } => json!({"event": "warning", "message": message}),
        Event::Notice { message } => json!({"event": "notice", "message": message}),
        Event::Tick(snapshot) => with_state("tick", snapshot),
        Event::Stopped { reason, snapshot } => {
            let mut value = with_state("stopped", snapshot);
            value["reason"] = format!("{reason:?}").to_lowercase().into();
            value
        }
    }
}

/// The snapshot's fields beside `event`.
fn with_state(name: &str, snapshot: &Snapshot) -> Value {
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    value["event"] = name.into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MutatorStatus, StopReason};

    #[test]
    fn every_event_is_one_line_with_its_name() {
        let mutators = vec![MutatorStatus { name: "m.so".into(), calls: 7, ..Default::default() }];
        let snapshot = Box::new(Snapshot { execs: 3, mutators, ..Snapshot::default() });
        let mut out = Vec::new();
        let mut sink = Json::new(&mut out);
        sink.handle(&Event::Warning { message: "two\nlines".into() });
        sink.handle(&Event::Tick(snapshot.clone()));
        sink.handle(&Event::Stopped { reason: StopReason::ExecLimit, snapshot });
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({"event": "warning", "message": "two\nlines"}));
        assert_eq!((&lines[1]["event"], &lines[1]["execs"]), (&json!("tick"), &json!(3)));
        assert_eq!(lines[1]["mutators"][0]["calls"], 7);
        assert_eq!(lines[2]["reason"], "execlimit");
        assert_eq!(lines.len(), 3);
    }
}
