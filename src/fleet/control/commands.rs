//! Commands of clients: JSON, one object per line. `docs/control.md` describes them for users.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::questions::is_question;
use ffuzz_config::options::Schedule;
use ffuzz_mutate::dictionary::Token;
use ffuzz_sys::file;

/// Maximum input size, and maximum line length: room for such an input in base64 and the other
/// fields.
pub const LONGEST_INPUT: usize = 1 << 20;
pub(super) const LONGEST_LINE: usize = 1_400_000;
/// Maximum number of preferred inputs; default and maximum duration of a preference.
const MOST_PREFERRED: usize = 1000;
const PREFERRED_S: u64 = 600;
const LONGEST_PREFERRED_S: u64 = 86_400;
/// Minimum timeout of a run in milliseconds: the limit of `-t`.
const SHORTEST_TIMEOUT: u64 = 5;

/// A client's command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Run and judge these bytes.
    Inject(Vec<u8>),
    Pause,
    Resume,
    Stats,
    Blockers,
    Stop,
    Set(Setting),
    Prefer(Preference),
    /// A question about the campaign, in the form in which the client sent it.
    Ask(Value),
}

/// Settings to change while the campaign runs; None leaves one unchanged.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Setting {
    pub timeout: Option<Duration>,
    pub schedule: Option<Schedule>,
    pub token: Option<Token>,
}

/// Inputs of the queue that get every other turn for a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Preference {
    /// Names of files in the queue, or paths.
    pub inputs: Vec<PathBuf>,
    pub time: Duration,
}

/// A command in JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
enum CommandWords {
    Inject {
        #[serde(default, rename = "type")]
        kind: InputKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
    },
    Pause,
    Resume,
    Stats,
    Blockers,
    Stop,
    Set {
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    Prefer {
        inputs: Vec<PathBuf>,
        #[serde(default = "preferred_s")]
        seconds: u64,
    },
}

fn preferred_s() -> u64 {
    PREFERRED_S
}

/// The sender's classification of an input, which is judged in any case.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum InputKind {
    #[default]
    Input,
    Crash,
    Hang,
}

#[derive(Serialize)]
struct NumberedCommand {
    id: u64,
    #[serde(flatten)]
    words: CommandWords,
}

impl Command {
    /// Parses a line and reads the file that it names. Returns the command's number, and the
    /// command or an error message.
    pub fn parse(line: &[u8]) -> (Option<u64>, Result<Self, String>) {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return (None, Err(format!("this is not JSON: {error}"))),
        };
        let id = value.get("id").and_then(Value::as_u64);
        if id.is_none() && value.get("id").is_some_and(|id| !id.is_null()) {
            return (None, Err("the id is not a whole number".into()));
        }
        if value.get("cmd").and_then(Value::as_str).is_some_and(is_question) {
            return (id, Ok(Self::Ask(value)));
        }
        let words = serde_json::from_value(value).map_err(|error| error.to_string());
        (id, words.and_then(Self::check))
    }

    /// The line from which [`Command::parse`] reads this command.
    #[must_use]
    pub(crate) fn to_line(&self, id: u64) -> String {
        let words = match self {
            Self::Ask(question) => {
                let mut question = question.clone();
                question["id"] = id.into();
                return super::line(&question);
            }
            Self::Inject(data) => {
                let data = Some(BASE64_STANDARD.encode(data));
                CommandWords::Inject { kind: InputKind::Input, data, path: None }
            }
            Self::Pause => CommandWords::Pause,
            Self::Resume => CommandWords::Resume,
            Self::Stats => CommandWords::Stats,
            Self::Blockers => CommandWords::Blockers,
            Self::Stop => CommandWords::Stop,
            Self::Set(Setting { timeout, schedule, token }) => CommandWords::Set {
                timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                schedule: schedule.map(|schedule| schedule.name().to_owned()),
                token: token.as_ref().map(|token| BASE64_STANDARD.encode(token.bytes())),
            },
            Self::Prefer(Preference { inputs, time }) => {
                CommandWords::Prefer { inputs: inputs.clone(), seconds: time.as_secs() }
            }
        };
        super::line(&NumberedCommand { id, words })
    }

    fn check(words: CommandWords) -> Result<Self, String> {
        Ok(match words {
            CommandWords::Inject { data, path, .. } => Self::Inject(input(data, path)?),
            CommandWords::Pause => Self::Pause,
            CommandWords::Resume => Self::Resume,
            CommandWords::Stats => Self::Stats,
            CommandWords::Blockers => Self::Blockers,
            CommandWords::Stop => Self::Stop,
            CommandWords::Prefer { inputs, seconds } => {
                if inputs.len() > MOST_PREFERRED {
                    return Err(format!("more than {MOST_PREFERRED} inputs cannot be preferred"));
                }
                if seconds > LONGEST_PREFERRED_S {
                    return Err(format!("seconds is more than {LONGEST_PREFERRED_S}, a day"));
                }
                Self::Prefer(Preference { inputs, time: Duration::from_secs(seconds) })
            }
            CommandWords::Set { timeout_ms: None, schedule: None, token: None } => {
                return Err("set needs timeout_ms, schedule or token".into());
            }
            CommandWords::Set { timeout_ms, schedule, token } => Self::Set(Setting {
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

/// Reads a file, up to one byte beyond the limit. Refuses anything else, because reading it may
/// never end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    file::read(path, LONGEST_INPUT as u64 + 1)
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
        format!("{name:?} is not a schedule: {names}")
    })
}

fn token_of(text: &str) -> Result<Token, String> {
    Token::new(&decode("token", text)?).ok_or_else(|| "a token has 1 to 128 bytes".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

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
            (r#"{"cmd":"blockers","id":7}"#, Command::Blockers),
            (r#"{"cmd":"stop","id":7}"#, Command::Stop),
            (
                r#"{"cmd":"prefer","id":7,"inputs":["id:000003"]}"#,
                Command::Prefer(Preference {
                    inputs: vec!["id:000003".into()],
                    time: Duration::from_secs(600),
                }),
            ),
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
    fn what_is_no_command_is_reported_with_its_number() {
        for (text, id, error) in [
            ("", None, "not JSON"),
            ("{\"cmd\":", None, "not JSON"),
            ("[7]", None, ""),
            (r#"{"id":7}"#, Some(7), "cmd"),
            (r#"{"id":7,"cmd":"fly"}"#, Some(7), "fly"),
            (r#"{"id":7,"cmd":"prefer"}"#, Some(7), "inputs"),
            (r#"{"id":7,"cmd":"prefer","inputs":[],"seconds":86401}"#, Some(7), "a day"),
            (r#"{"id":"7","cmd":"stop"}"#, None, "whole number"),
            (r#"{"id":-7,"cmd":"stop"}"#, None, "whole number"),
            (r#"{"id":7,"cmd":"inject"}"#, Some(7), "either data or path"),
            (r#"{"id":7,"cmd":"inject","data":"SGk=","path":"/x"}"#, Some(7), "either"),
            (r#"{"id":7,"cmd":"inject","data":"%"}"#, Some(7), "not base64"),
            (r#"{"id":7,"cmd":"inject","data":""}"#, Some(7), "empty"),
            (r#"{"id":7,"cmd":"inject","type":"bomb","data":"SGk="}"#, Some(7), "bomb"),
            (r#"{"id":7,"cmd":"inject","path":"/proc/none"}"#, Some(7), "/proc/none"),
            (r#"{"id":7,"cmd":"inject","path":"/dev/zero"}"#, Some(7), "a device"),
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
        assert!(parsed(&command).1.unwrap_err().contains("is longer than 1048576"));
        let largest = Command::Inject(vec![7; LONGEST_INPUT]);
        assert!(largest.to_line(u64::MAX).len() <= LONGEST_LINE);
    }
}
