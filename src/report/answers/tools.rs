//! The available questions and their parameters.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

/// Maximum input size.
const LARGEST_INPUT: usize = 1 << 20;

/// A question or an order.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    /// True if it changes the campaign.
    pub writes: bool,
    parameters: &'static [Parameter],
}

#[derive(Debug)]
struct Parameter {
    name: &'static str,
    kind: ArgKind,
    is_needed: bool,
    description: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ArgKind {
    Text,
    Number,
    Flag,
    Texts,
}

const fn may(name: &'static str, kind: ArgKind, description: &'static str) -> Parameter {
    Parameter { name, kind, is_needed: false, description }
}

const fn must(name: &'static str, kind: ArgKind, description: &'static str) -> Parameter {
    Parameter { name, kind, is_needed: true, description }
}

const LIMIT: Parameter = may("limit", ArgKind::Number, "entries of the answer (20)");
const AFTER: Parameter =
    may("after", ArgKind::Number, "entries to leave out: `next` of the answer before");
const DATA: Parameter = may("data", ArgKind::Text, "the input in base64");
const TEXT: Parameter = may("text", ArgKind::Text, "the input as text");
const PATH: Parameter = may("path", ArgKind::Text, "the input's file, or its name in the queue");

const fn question(
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
) -> Tool {
    Tool { name, description, writes: false, parameters }
}

const fn order(
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
) -> Tool {
    Tool { writes: true, ..question(name, description, parameters) }
}

/// All tools.
pub const TOOLS: &[Tool] = &[
    question(
        "status",
        "How the campaign fares: coverage, runs, bugs, growth of the last minutes, warnings, and what may be \
         done next.",
        &[],
    ),
    question(
        "stuck",
        "Places in the source that inputs reach and from which none goes on in some way, those first behind \
         which most code lies: the comparison that decides, its operands where they were closest, the bytes \
         of the closest input that move them.",
        &[
            LIMIT,
            AFTER,
            may("file", ArgKind::Text, "only of the file whose path ends so"),
            may("function", ArgKind::Text, "only of functions whose name contains this"),
            may("min_behind", ArgKind::Number, "only with as many edges behind"),
        ],
    ),
    question(
        "explain_stuck",
        "One place of `stuck` in detail: source around it, operands of several inputs, the inputs.",
        &[must("place", ArgKind::Text, "id of the place")],
    ),
    question(
        "coverage",
        "Which files, functions and lines are reached. Without arguments a list of files; with `file` its \
         functions and unreached lines; with `lines` the source with the number of inputs of each line.",
        &[
            may("file", ArgKind::Text, "the file whose path ends so"),
            may("function", ArgKind::Text, "only functions whose name contains this"),
            may("lines", ArgKind::Flag, "the source line by line, from line `after` on"),
            LIMIT,
            AFTER,
        ],
    ),
    question(
        "never_entered",
        "Functions that no input enters, by who may call them: `caller` (code that is reached), `pointer`, \
         `harness` (nothing that is reached: the harness has to call them).",
        &[may("reason", ArgKind::Text, "caller, pointer or harness"), LIMIT, AFTER],
    ),
    question(
        "inputs_reaching",
        "The smallest inputs that reach a line of the source.",
        &[
            must("file", ArgKind::Text, "the file whose path ends so"),
            must("line", ArgKind::Number, "the line"),
            LIMIT,
        ],
    ),
    question(
        "explain_input",
        "What an input of the queue was the first to reach, where it came from, which domain values it has.",
        &[must("input", ArgKind::Text, "its name in the queue, `id:` and its number, or its path")],
    ),
    question(
        "run_input",
        "Runs an input once: how it ends, which new edges it reaches, and, with `watch`, whether it reaches \
         or passes that place, with the operands there. Nothing is kept.",
        &[DATA, TEXT, PATH, may("watch", ArgKind::Text, "id of a stuck place, or FILE:LINE")],
    ),
    question(
        "minimize",
        "Makes an input small that still ends as it does (a crash) or, with `watch`, still comes to that place \
         and goes as far there. The campaign does not see it; bugs have a minimized input already.",
        &[DATA, TEXT, PATH, may("watch", ArgKind::Text, "id of a stuck place, or FILE:LINE")],
    ),
    question(
        "compare_inputs",
        "Runs two inputs: which lines only one of them reaches.",
        &[
            must("a", ArgKind::Text, "an input's name in the queue, or its path"),
            must("b", ArgKind::Text, "another one's"),
        ],
    ),
    question(
        "bugs",
        "The bugs that triage has made of the crashes; crashes that are not triaged.",
        &[LIMIT, AFTER],
    ),
    question(
        "bug",
        "One bug with its stacks, its input and a script to repeat it.",
        &[must("bug", ArgKind::Text, "id of the bug")],
    ),
    question(
        "domains",
        "The best values of each domain (allocated bytes, loop counts, …), where they arise and in which input.",
        &[may("name", ArgKind::Text, "only of this domain"), LIMIT],
    ),
    order(
        "inject_input",
        "Gives the running campaign an input: it is run, judged, and kept if it shows something new.",
        &[DATA, TEXT, PATH],
    ),
    order(
        "add_tokens",
        "Adds words to the dictionary of the running campaign.",
        &[must("tokens", ArgKind::Texts, "words, each of 1 to 128 bytes")],
    ),
    order(
        "prefer",
        "Gives each other turn of the running campaign to the smallest inputs that reach a function or a line, \
         for a while.",
        &[
            may("function", ArgKind::Text, "a function's name"),
            may("line", ArgKind::Text, "FILE:LINE"),
            may("seconds", ArgKind::Number, "how long, at most a day (600); 0 ends it"),
        ],
    ),
    order("pause", "Pauses the campaign.", &[]),
    order("resume", "Goes on after a pause.", &[]),
    order("stop", "Ends the campaign.", &[]),
];

impl Tool {
    /// The tool with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// JSON schema of the parameters.
    #[must_use]
    pub fn schema(&self) -> Value {
        let property = |one: &Parameter| {
            let mut kind = match one.kind {
                ArgKind::Text => json!({"type": "string"}),
                ArgKind::Number => json!({"type": "integer", "minimum": 0}),
                ArgKind::Flag => json!({"type": "boolean"}),
                ArgKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            };
            kind["description"] = one.description.into();
            (one.name.to_owned(), kind)
        };
        let needed: Vec<&str> =
            self.parameters.iter().filter(|one| one.is_needed).map(|one| one.name).collect();
        json!({
            "type": "object",
            "properties": self.parameters.iter().map(property).collect::<Map<_, _>>(),
            "required": needed,
            "additionalProperties": false,
        })
    }

    /// Refuses unknown or invalid arguments.
    pub fn check(&self, given: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in given {
            let known = self.parameters.iter().find(|one| one.name == name);
            let one = known.ok_or_else(|| format!("{} does not take {name:?}", self.name))?;
            let are_texts = |all: &Vec<Value>| all.iter().all(Value::is_string);
            let (fits, kind) = match one.kind {
                ArgKind::Text => (value.is_string(), "a text"),
                ArgKind::Number => (value.is_u64(), "a whole number from 0 on"),
                ArgKind::Flag => (value.is_boolean(), "true or false"),
                ArgKind::Texts => (value.as_array().is_some_and(are_texts), "a list of texts"),
            };
            if !fits {
                return Err(format!("{name} has to be {kind}"));
            }
        }
        let missing =
            self.parameters.iter().find(|one| one.is_needed && !given.contains_key(one.name));
        missing.map_or(Ok(()), |one| Err(format!("{} needs {}", self.name, one.name)))
    }
}

/// Checked arguments of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolArgs<'a>(pub &'a Map<String, Value>);

impl<'a> ToolArgs<'a> {
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// A number of things.
    pub(super) fn size(self, name: &str) -> Option<usize> {
        self.number(name).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    pub(super) fn flag(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        let all = self.0.get(name).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Bytes given as `data` or `text`; None if there is a path, or nothing.
    pub(super) fn bytes(self) -> Result<Option<Vec<u8>>, String> {
        let bytes = match (self.text("data"), self.text("text"), self.text("path")) {
            (Some(data), None, None) => {
                let bytes = BASE64_STANDARD.decode(data);
                bytes.map_err(|error| format!("data is not base64: {error}"))?
            }
            (None, Some(text), None) => text.as_bytes().to_vec(),
            (None, None, Some(_)) => return Ok(None),
            _ => return Err("give one of data, text and path".into()),
        };
        match bytes.len() {
            0 => Err("the input is empty".into()),
            1..=LARGEST_INPUT => Ok(Some(bytes)),
            _ => Err(format!("the input is longer than {LARGEST_INPUT} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the control socket, arguments are next to these fields.
    #[test]
    fn no_argument_is_named_like_the_parts_of_a_command() {
        for tool in TOOLS {
            let is_taken = |one: &Parameter| ["id", "cmd"].contains(&one.name);
            assert!(!tool.parameters.iter().any(is_taken), "{}", tool.name);
        }
    }

    #[test]
    fn what_a_tool_does_not_take_is_refused() {
        let tool = Tool::named("inputs_reaching").unwrap();
        let check = |value: Value| tool.check(value.as_object().unwrap());
        assert_eq!(check(json!({"file": "a.c", "line": 3, "limit": 5})), Ok(()));
        assert!(check(json!({"file": "a.c"})).unwrap_err().contains("needs line"));
        assert!(check(json!({"file": "a.c", "line": -1})).unwrap_err().contains("whole number"));
        assert!(check(json!({"file": 1, "line": 1})).unwrap_err().contains("a text"));
        assert!(
            check(json!({"file": "a", "line": 1, "x": 1})).unwrap_err().contains("does not take")
        );
        assert_eq!(tool.schema()["required"], json!(["file", "line"]));
    }

    #[test]
    fn an_input_is_given_in_one_way() {
        let bytes = |value: Value| ToolArgs(value.as_object().unwrap()).bytes();
        assert_eq!(bytes(json!({"data": "SGk="})), Ok(Some(b"Hi".to_vec())));
        assert_eq!(bytes(json!({"text": "Hi"})), Ok(Some(b"Hi".to_vec())));
        assert_eq!(bytes(json!({"path": "/x"})), Ok(None));
        for bad in [
            json!({}),
            json!({"data": "%"}),
            json!({"text": ""}),
            json!({"text": "a", "path": "b"}),
        ] {
            assert!(bytes(bad.clone()).is_err(), "{bad}");
        }
    }
}
