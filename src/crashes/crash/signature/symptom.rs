//! One condition of a signature.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::frames::{self, FramePattern};
use super::numbers::Number;
use super::strings::StringPattern;
use super::{CrashFacts, SignatureError};
use crate::crash::lines::lines;

#[derive(Clone, Debug)]
pub(super) enum Symptom {
    /// `text` matches a line in one of the places.
    Line {
        text: StringPattern,
        places: &'static [TextSource],
    },
    StackFrames(Vec<FramePattern>),
    StackFrame {
        name: StringPattern,
        number: Number,
    },
    StackSize(Number),
    CrashAddress(Number),
    Instruction {
        name: Option<StringPattern>,
        registers: Vec<String>,
    },
}

/// A text that symptoms search line by line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextSource {
    Stdout,
    Stderr,
    CrashData,
    Testcase,
}

impl TextSource {
    pub(super) const ALL: [Self; 4] = [Self::Stdout, Self::Stderr, Self::CrashData, Self::Testcase];
    const OUTPUTS: &[Self] = &[Self::Stdout, Self::Stderr, Self::CrashData];

    /// This source as a list.
    fn alone(self) -> &'static [Self] {
        match self {
            Self::Stdout => &[Self::Stdout],
            Self::Stderr => &[Self::Stderr],
            Self::CrashData => &[Self::CrashData],
            Self::Testcase => &[Self::Testcase],
        }
    }
}

/// A crash with its texts split into lines once for all signatures.
pub(super) struct CrashTexts<'a> {
    pub(super) crash: CrashFacts<'a>,
    lines: [OnceCell<Vec<&'a str>>; 4],
}

impl<'a> CrashTexts<'a> {
    pub(super) fn new(crash: CrashFacts<'a>) -> Self {
        Self { crash, lines: Default::default() }
    }

    /// Empty if there is no such text.
    pub(super) fn text(&self, place: TextSource) -> &'a str {
        let output = self.crash.output;
        match place {
            TextSource::Stdout => &output.stdout,
            TextSource::Stderr => &output.stderr,
            TextSource::CrashData => &output.crash_data,
            TextSource::Testcase => self.crash.testcase.unwrap_or_default(),
        }
    }

    fn lines(&self, place: TextSource) -> &[&'a str] {
        self.lines[place as usize].get_or_init(|| lines(self.text(place)))
    }

    /// True for Windows, whose paths are also tried with slashes.
    pub(super) fn tries_slashes(&self) -> bool {
        self.crash.program.os == "windows"
    }

    fn has_line(&self, text: &StringPattern, place: TextSource) -> bool {
        let also = |line: &str| {
            self.tries_slashes() && line.contains('\\') && text.matches(&line.replace('\\', "/"))
        };
        self.lines(place).iter().any(|line| text.matches(line) || also(line))
    }
}

impl Symptom {
    pub(super) fn parse(value: &Value) -> Result<Self, SignatureError> {
        let object =
            value.as_object().ok_or_else(|| SignatureError::new("a symptom is no object"))?;
        let kind = text(object, "type")?.ok_or_else(|| missing("type"))?;
        match kind {
            "output" => {
                let text = StringPattern::parse(key(object, "value")?)?;
                Ok(Self::Line { text, places: places(object)? })
            }
            "stackFrames" => {
                let names =
                    list(object, "functionNames")?.ok_or_else(|| missing("functionNames"))?;
                let names =
                    names.iter().map(|name| StringPattern::parse(name).map(FramePattern::new));
                Ok(Self::StackFrames(names.collect::<Result<_, _>>()?))
            }
            "stackFrame" => {
                let name = text(object, "functionName")?.ok_or_else(|| missing("functionName"))?;
                let number = object.get("frameNumber").unwrap_or(&Value::from(0)).clone();
                Ok(Self::StackFrame {
                    name: StringPattern::of(name)?,
                    number: Number::parse(&number)?,
                })
            }
            "stackSize" => Ok(Self::StackSize(Number::parse(key(object, "size")?)?)),
            "crashAddress" => Ok(Self::CrashAddress(Number::parse(key(object, "address")?)?)),
            "instruction" => Self::instruction(object),
            "testcase" => {
                let text = StringPattern::parse(key(object, "value")?)?;
                Ok(Self::Line { text, places: TextSource::Testcase.alone() })
            }
            _ => Err(SignatureError::new(format!("there is no symptom \"{kind}\""))),
        }
    }

    fn instruction(object: &Map<String, Value>) -> Result<Self, SignatureError> {
        let name = object.get("instructionName").filter(|name| !name.is_null());
        let name = name.map(StringPattern::parse).transpose()?;
        let registers = list(object, "registerNames")?.filter(|names| !names.is_empty());
        if name.is_none() && registers.is_none() {
            return Err(missing("instructionName"));
        }
        let registers = registers.map_or(&[][..], Vec::as_slice).iter().map(|register| {
            register
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| SignatureError::new("a register is no text"))
        });
        Ok(Self::Instruction { name, registers: registers.collect::<Result<_, _>>()? })
    }

    /// Cost of a test; cheap ones are tested first.
    pub(super) fn cost(&self) -> u8 {
        match self {
            Self::StackSize(_) | Self::CrashAddress(_) => 0,
            Self::StackFrame { .. } | Self::StackFrames(_) | Self::Instruction { .. } => 1,
            Self::Line { .. } => 2,
        }
    }

    pub(super) fn matches(&self, seen: &CrashTexts<'_>) -> bool {
        let info = seen.crash.info;
        match self {
            Self::Line { text, places } => places.iter().any(|place| seen.has_line(text, *place)),
            Self::StackFrames(list) => frames::matches(list, &info.backtrace),
            Self::StackFrame { name, number } => {
                let mut frames = (0_u64..).zip(&info.backtrace);
                frames.any(|(at, frame)| number.matches(Some(at)) && name.matches(frame))
            }
            Self::StackSize(size) => size.matches(Some(info.backtrace.len() as u64)),
            Self::CrashAddress(address) => address.matches(info.address),
            Self::Instruction { name, registers } => {
                info.instruction.as_ref().is_some_and(|text| {
                    registers.iter().all(|register| text.contains(register.as_str()))
                        && name.as_ref().is_none_or(|name| name.matches(text))
                })
            }
        }
    }
}

fn missing(key: &str) -> SignatureError {
    SignatureError::new(format!("\"{key}\" is missing"))
}

fn key<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, SignatureError> {
    object.get(name).ok_or_else(|| missing(name))
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, SignatureError> {
    let Some(value) = object.get(name) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| SignatureError::new(format!("\"{name}\" is no text")))
}

pub(super) fn list<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Vec<Value>>, SignatureError> {
    let Some(value) = object.get(name) else { return Ok(None) };
    value.as_array().map(Some).ok_or_else(|| SignatureError::new(format!("\"{name}\" is no array")))
}

fn places(object: &Map<String, Value>) -> Result<&'static [TextSource], SignatureError> {
    let Some(source) = text(object, "src")? else { return Ok(TextSource::OUTPUTS) };
    match source.to_lowercase().as_str() {
        "stdout" => Ok(TextSource::Stdout.alone()),
        "stderr" => Ok(TextSource::Stderr.alone()),
        "crashdata" => Ok(TextSource::CrashData.alone()),
        _ => Err(SignatureError::new(format!("\"src\" is \"{source}\""))),
    }
}
