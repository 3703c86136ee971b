//! One condition of a signature.

use serde_json::{Map, Value};

use super::frames::{self, Wanted};
use super::numbers::Number;
use super::strings::Text;
use super::{Crash, Refused};
use crate::crash::lines::lines;

#[derive(Clone, Debug)]
pub(super) enum Symptom {
    Output { text: Text, source: Option<Source> },
    StackFrames(Vec<Wanted>),
    StackFrame { name: Text, number: Number },
    StackSize(Number),
    CrashAddress(Number),
    Instruction { name: Option<Text>, registers: Vec<String> },
    Testcase(Text),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Source {
    Stdout,
    Stderr,
    CrashData,
}

impl Symptom {
    pub(super) fn parse(value: &Value) -> Result<Self, Refused> {
        let object = value.as_object().ok_or_else(|| Refused::new("a symptom is no object"))?;
        let kind = text(object, "type")?.ok_or_else(|| missing("type"))?;
        match kind {
            "output" => Ok(Self::Output {
                text: Text::parse(key(object, "value")?)?,
                source: source(object)?,
            }),
            "stackFrames" => {
                let names =
                    list(object, "functionNames")?.ok_or_else(|| missing("functionNames"))?;
                let names = names.iter().map(|name| Text::parse(name).map(Wanted::new));
                Ok(Self::StackFrames(names.collect::<Result<_, _>>()?))
            }
            "stackFrame" => {
                let name = text(object, "functionName")?.ok_or_else(|| missing("functionName"))?;
                let number = object.get("frameNumber").unwrap_or(&Value::from(0)).clone();
                Ok(Self::StackFrame { name: Text::of(name)?, number: Number::parse(&number)? })
            }
            "stackSize" => Ok(Self::StackSize(Number::parse(key(object, "size")?)?)),
            "crashAddress" => Ok(Self::CrashAddress(Number::parse(key(object, "address")?)?)),
            "instruction" => Self::instruction(object),
            "testcase" => Ok(Self::Testcase(Text::parse(key(object, "value")?)?)),
            _ => Err(Refused::new(format!("there is no symptom \"{kind}\""))),
        }
    }

    fn instruction(object: &Map<String, Value>) -> Result<Self, Refused> {
        let name = object.get("instructionName").filter(|name| !name.is_null());
        let name = name.map(Text::parse).transpose()?;
        let registers = list(object, "registerNames")?.filter(|names| !names.is_empty());
        if name.is_none() && registers.is_none() {
            return Err(missing("instructionName"));
        }
        let registers = registers.map_or(&[][..], Vec::as_slice).iter().map(|register| {
            register
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| Refused::new("a register is no text"))
        });
        Ok(Self::Instruction { name, registers: registers.collect::<Result<_, _>>()? })
    }

    /// Cheap ones are asked first.
    pub(super) fn cost(&self) -> u8 {
        match self {
            Self::StackSize(_) | Self::CrashAddress(_) => 0,
            Self::StackFrame { .. } | Self::StackFrames(_) | Self::Instruction { .. } => 1,
            Self::Output { .. } | Self::Testcase(_) => 2,
        }
    }

    pub(super) fn matches(&self, crash: &Crash<'_>) -> bool {
        let info = crash.info;
        let has_slashes = crash.program.os == "windows";
        match self {
            Self::Output { text, source } => {
                let output = crash.output;
                let places = [
                    (Source::Stdout, &output.stdout),
                    (Source::Stderr, &output.stderr),
                    (Source::CrashData, &output.crash_data),
                ];
                let mut places =
                    places.iter().filter(|(place, _)| source.is_none_or(|wanted| wanted == *place));
                places.any(|(_, all)| any_line(text, all, has_slashes))
            }
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
            Self::Testcase(text) => {
                crash.testcase.is_some_and(|testcase| any_line(text, testcase, has_slashes))
            }
        }
    }
}

/// Windows' paths are also tried with slashes.
fn any_line(text: &Text, all: &str, has_slashes: bool) -> bool {
    if !has_slashes && !all.contains(text.literal()) {
        return false;
    }
    lines(all).into_iter().any(|line| {
        text.matches(line)
            || (has_slashes && line.contains('\\') && text.matches(&line.replace('\\', "/")))
    })
}

fn missing(key: &str) -> Refused {
    Refused::new(format!("\"{key}\" is missing"))
}

fn key<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Refused> {
    object.get(name).ok_or_else(|| missing(name))
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refused> {
    let Some(value) = object.get(name) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| Refused::new(format!("\"{name}\" is no text")))
}

pub(super) fn list<'a>(
    object: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Vec<Value>>, Refused> {
    let Some(value) = object.get(name) else { return Ok(None) };
    value.as_array().map(Some).ok_or_else(|| Refused::new(format!("\"{name}\" is no array")))
}

fn source(object: &Map<String, Value>) -> Result<Option<Source>, Refused> {
    let Some(source) = text(object, "src")? else { return Ok(None) };
    match source.to_lowercase().as_str() {
        "stdout" => Ok(Some(Source::Stdout)),
        "stderr" => Ok(Some(Source::Stderr)),
        "crashdata" => Ok(Some(Source::CrashData)),
        _ => Err(Refused::new(format!("\"src\" is \"{source}\""))),
    }
}
