//! What is said over the control socket: JSON, an object a line. `docs/control.md` is its text for
//! users.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::options::Schedule;
use crate::event::{DomainGain, Event, Reply, Snapshot, Source, StopReason};
use crate::mutate::dictionary::Token;

/// Raised when a client that knows this version could misunderstand the next.
pub const VERSION: u32 = 1;
/// Largest input, and the longest line: such an input in base64, and room for the rest.
pub const LONGEST_INPUT: usize = 1 << 20;
pub const LONGEST_LINE: usize = 1_400_000;
/// What a run may be given at least, milliseconds: the limit of `-t`.
const SHORTEST_TIMEOUT: u64 = 5;

/// What a client wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// These bytes are to be run and judged.
    Inject(Vec<u8>),
    Pause,
    Resume,
    Stats,
    Stop,
    Set(Setting),
}

/// What changes while the campaign runs; None stays as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Setting {
    pub timeout: Option<Duration>,
    pub schedule: Option<Schedule>,
    pub token: Option<Token>,
}

/// A command as it is written.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
enum Words {
    Inject {
        #[serde(default, rename = "type")]
        kind: Kind,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
    },
    Pause,
    Resume,
    Stats,
    Stop,
    Set {
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
}

/// What the sender takes an input for. It is judged in any case.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Input,
    Crash,
    Hang,
}

#[derive(Serialize)]
struct Numbered {
    id: u64,
    #[serde(flatten)]
    words: Words,
}

impl Command {
    /// Reads a line, and the file that it names: the command's number, and the command or what is
    /// wrong with it.
    pub fn parse(line: &[u8]) -> (Option<u64>, Result<Self, String>) {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return (None, Err(format!("this is no JSON: {error}"))),
        };
        let id = value.get("id").and_then(Value::as_u64);
        if id.is_none() && value.get("id").is_some_and(|id| !id.is_null()) {
            return (None, Err("the id is not a whole number".into()));
        }
        let words = serde_json::from_value(value).map_err(|error| error.to_string());
        (id, words.and_then(Self::check))
    }

    /// The line that [`Command::parse`] reads.
    #[must_use]
    pub fn to_line(&self, id: u64) -> String {
        let words = match self {
            Self::Inject(data) => {
                let data = Some(BASE64_STANDARD.encode(data));
                Words::Inject { kind: Kind::Input, data, path: None }
            }
            Self::Pause => Words::Pause,
            Self::Resume => Words::Resume,
            Self::Stats => Words::Stats,
            Self::Stop => Words::Stop,
            Self::Set(Setting { timeout, schedule, token }) => Words::Set {
                timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                schedule: schedule.map(|schedule| schedule.name().to_owned()),
                token: token.as_ref().map(|token| BASE64_STANDARD.encode(token.bytes())),
            },
        };
        line(&Numbered { id, words })
    }

    fn check(words: Words) -> Result<Self, String> {
        Ok(match words {
            Words::Inject { data, path, .. } => Self::Inject(input(data, path)?),
            Words::Pause => Self::Pause,
            Words::Resume => Self::Resume,
            Words::Stats => Self::Stats,
            Words::Stop => Self::Stop,
            Words::Set { timeout_ms: None, schedule: None, token: None } => {
                return Err("set needs timeout_ms, schedule or token".into());
            }
            Words::Set { timeout_ms, schedule, token } => Self::Set(Setting {
                timeout: timeout_ms.map(timeout).transpose()?,
                schedule: schedule.map(|name| schedule_of(&name)).transpose()?,
                token: token.map(|text| token_of(&text)).transpose()?,
            }),
        })
    }
}

fn decode(what: &str, text: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD.decode(text).map_err(|error| format!("{what} is not base64: {error}"))
}

fn input(data: Option<String>, path: Option<PathBuf>) -> Result<Vec<u8>, String> {
    let data = match (data, path) {
        (Some(data), None) => decode("data", &data)?,
        (None, Some(path)) => read(&path).map_err(|e| format!("cannot read {path:?}: {e}"))?,
        _ => return Err("inject needs either data or path".into()),
    };
    match data.len() {
        0 => Err("the input is empty".into()),
        length if length > LONGEST_INPUT => {
            Err(format!("the input is longer than {LONGEST_INPUT} bytes"))
        }
        _ => Ok(data),
    }
}

/// Only files: anything else may never come to its end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let data = fs::metadata(path)?;
    if !data.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if data.len() > LONGEST_INPUT as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    fs::read(path)
}

fn timeout(ms: u64) -> Result<Duration, String> {
    let range = SHORTEST_TIMEOUT..=u64::from(u32::MAX);
    if !range.contains(&ms) {
        return Err(format!("timeout_ms is not from {SHORTEST_TIMEOUT} to {}", u32::MAX));
    }
    Ok(Duration::from_millis(ms))
}

fn schedule_of(name: &str) -> Result<Schedule, String> {
    Schedule::named(name).ok_or_else(|| {
        let names = Schedule::ALL.map(Schedule::name).join(", ");
        format!("{name:?} is no schedule: {names}")
    })
}

fn token_of(text: &str) -> Result<Token, String> {
    Token::new(&decode("token", text)?).ok_or_else(|| "a token has 1 to 128 bytes".into())
}

/// What the fuzzer says first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hello {
    pub version: u32,
    pub pid: u32,
    #[serde(serialize_with = "crate::event::lossy")]
    pub out: PathBuf,
    /// Name of the folder in `out`; a fleet has `workers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
}

impl Hello {
    /// One instance's, or a fleet's with the main first.
    #[must_use]
    pub fn new(out: PathBuf, instance: Option<String>, workers: Vec<String>) -> Self {
        Self { version: VERSION, pid: std::process::id(), out, instance, workers }
    }

    #[must_use]
    pub fn line(&self) -> String {
        line(&Message::Hello(self))
    }

    /// What clients hear of an event, a line each. `worker`: the one of a fleet that says it.
    #[must_use]
    pub fn lines(&self, event: &Event, worker: Option<&str>) -> Vec<String> {
        let messages = match worker {
            Some(worker) if !self.is_news(event, worker) => Vec::new(),
            _ => messages(event),
        };
        messages.into_iter().map(|message| line(&From { worker, message })).collect()
    }

    /// Of what workers say, the fleet tells the whole by itself, and what one has from another is
    /// known.
    fn is_news(&self, event: &Event, worker: &str) -> bool {
        match event {
            Event::SeedSaved { source: Source::Import { peer }, .. } => {
                !self.workers.contains(peer)
            }
            Event::SeedImported { .. } => self.workers.first().is_some_and(|main| main == worker),
            Event::Started | Event::Tick(_) | Event::Stopped { .. } | Event::Reply(_) => false,
            _ => true,
        }
    }
}

#[derive(Serialize)]
struct From<'a> {
    #[serde(flatten)]
    message: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
}

/// What the fuzzer says.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Message<'a> {
    Hello(&'a Hello),
    Started,
    Seed {
        #[serde(flatten)]
        find: Find<'a>,
        new_edge: bool,
    },
    Waypoint {
        #[serde(flatten)]
        find: Find<'a>,
        #[serde(flatten)]
        gain: &'a DomainGain,
    },
    Crash {
        #[serde(flatten)]
        find: Find<'a>,
        signal: i32,
    },
    Hang {
        #[serde(flatten)]
        find: Find<'a>,
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
struct Find<'a> {
    #[serde(serialize_with = "crate::event::lossy")]
    path: &'a Path,
    input_id: u64,
    #[serde(flatten)]
    source: &'a Source,
}

fn messages(event: &Event) -> Vec<Message<'_>> {
    match event {
        Event::Started => vec![Message::Started],
        Event::SeedImported { id, path, .. } => {
            let find = Find { path, input_id: id.0.into(), source: &Source::Seed };
            vec![Message::Seed { find, new_edge: false }]
        }
        Event::SeedSaved { id, path, new_edge, source, gains, .. } => {
            let find = Find { path, input_id: id.0.into(), source };
            let seed = Message::Seed { find, new_edge: *new_edge };
            let waypoints = gains.iter().map(|gain| Message::Waypoint { find, gain });
            std::iter::once(seed).chain(waypoints).collect()
        }
        Event::CrashSaved { path, number, signal, source } => {
            let find = Find { path, input_id: *number, source };
            vec![Message::Crash { find, signal: *signal }]
        }
        Event::HangSaved { path, number, source } => {
            vec![Message::Hang { find: Find { path, input_id: *number, source } }]
        }
        Event::Tick(snapshot) => vec![Message::Stats(snapshot)],
        Event::Warning { message } => vec![Message::Warning { message }],
        Event::Reply(reply) => vec![Message::Reply(reply)],
        Event::Stopped { reason, snapshot } => {
            vec![Message::Stopped { reason: *reason, snapshot }]
        }
        Event::CycleFinished { .. }
        | Event::TargetRestarted { .. }
        | Event::DomainsFound { .. }
        | Event::Notice { .. } => Vec::new(),
    }
}

/// An object with its line feed. Names and numbers only: it cannot fail.
fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::SeedId;
    use serde_json::json;

    fn parsed(line: &str) -> (Option<u64>, Result<Command, String>) {
        Command::parse(line.as_bytes())
    }

    #[test]
    fn commands_are_understood_and_written_alike() {
        let set = |timeout, schedule, token| Command::Set(Setting { timeout, schedule, token });
        let ms = Duration::from_millis;
        for (text, command) in [
            (
                r#"{"cmd":"inject","id":7,"type":"crash","data":"SGkh"}"#,
                Command::Inject("Hi!".into()),
            ),
            (r#"{"cmd":"inject","data":"SGkh","id":7,"new":[1]}"#, Command::Inject("Hi!".into())),
            (r#"{"id":7,"cmd":"pause"}"#, Command::Pause),
            (r#" {"cmd":"resume","id":7} "#, Command::Resume),
            (r#"{"cmd":"stats","id":7}"#, Command::Stats),
            (r#"{"cmd":"stop","id":7}"#, Command::Stop),
            (r#"{"cmd":"set","id":7,"timeout_ms":5}"#, set(Some(ms(5)), None, None)),
            (
                r#"{"cmd":"set","id":7,"schedule":"rare","token":"SGk="}"#,
                set(None, Some(Schedule::Rare), Token::new(b"Hi")),
            ),
        ] {
            assert_eq!(parsed(text), (Some(7), Ok(command.clone())), "{text}");
            let again = Command::parse(command.to_line(9).trim().as_bytes());
            assert_eq!(again, (Some(9), Ok(command)), "{text}");
        }
        assert_eq!(parsed(r#"{"cmd":"stop"}"#), (None, Ok(Command::Stop)));
    }

    #[test]
    fn what_is_no_command_is_told_with_its_number() {
        for (text, id, error) in [
            ("", None, "no JSON"),
            ("{\"cmd\":", None, "no JSON"),
            ("[7]", None, ""),
            (r#"{"id":7}"#, Some(7), "cmd"),
            (r#"{"id":7,"cmd":"fly"}"#, Some(7), "fly"),
            (r#"{"id":"7","cmd":"stop"}"#, None, "whole number"),
            (r#"{"id":-7,"cmd":"stop"}"#, None, "whole number"),
            (r#"{"id":7,"cmd":"inject"}"#, Some(7), "either data or path"),
            (r#"{"id":7,"cmd":"inject","data":"SGk=","path":"/x"}"#, Some(7), "either"),
            (r#"{"id":7,"cmd":"inject","data":"%"}"#, Some(7), "not base64"),
            (r#"{"id":7,"cmd":"inject","data":""}"#, Some(7), "empty"),
            (r#"{"id":7,"cmd":"inject","type":"bomb","data":"SGk="}"#, Some(7), "bomb"),
            (r#"{"id":7,"cmd":"inject","path":"/nonexistent"}"#, Some(7), "/nonexistent"),
            (r#"{"id":7,"cmd":"inject","path":"/dev/zero"}"#, Some(7), "no file"),
            (r#"{"id":7,"cmd":"set"}"#, Some(7), "set needs"),
            (r#"{"id":7,"cmd":"set","timeout_ms":4}"#, Some(7), "from 5 to"),
            (r#"{"id":7,"cmd":"set","schedule":"slow"}"#, Some(7), "explore, fast"),
            (r#"{"id":7,"cmd":"set","token":""}"#, Some(7), "1 to 128"),
        ] {
            let (its_id, command) = parsed(text);
            let said = command.unwrap_err();
            assert!(its_id == id && said.contains(error), "{text}: {said}");
        }
        assert!(Command::parse(b"\xff\0\xfe").1.is_err());
    }

    #[test]
    fn a_named_file_is_read_up_to_the_largest_input() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let command = json!({"cmd": "inject", "id": 1, "path": path}).to_string();
        fs::write(&path, "Hi!").unwrap();
        assert_eq!(parsed(&command), (Some(1), Ok(Command::Inject("Hi!".into()))));
        fs::write(&path, vec![7; LONGEST_INPUT + 1]).unwrap();
        assert!(parsed(&command).1.unwrap_err().contains("large"));
        let largest = Command::Inject(vec![7; LONGEST_INPUT]);
        assert!(largest.to_line(u64::MAX).len() <= LONGEST_LINE);
    }

    fn saved(path: &str, source: Source, gains: Vec<DomainGain>) -> Event {
        let (id, waypoint) = (SeedId(7), !gains.is_empty());
        Event::SeedSaved { id, path: path.into(), new_edge: true, waypoint, source, gains }
    }

    fn values(hello: &Hello, event: &Event, worker: Option<&str>) -> Vec<Value> {
        let lines = hello.lines(event, worker);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_find_is_told_with_where_it_came_from() {
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
        let event = saved("out/default/queue/id", Source::Own, vec![domain("mem")]);
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
    fn of_a_fleet_everything_is_told_once() {
        let names = ["main", "worker01"].map(str::to_owned).into();
        let hello = Hello::new("out".into(), None, names);
        let of = |peer: &str| saved("p", Source::Import { peer: peer.into() }, Vec::new());
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
