//! Terms of `value` and `key`: `"arg0 * arg1"`, `"result"`, `"site"`.

use std::fmt;

use super::WatchedEvent;

/// One factor of a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Factor {
    /// Argument of the call or of the returning function, from 0.
    Argument(u32),
    Result,
    Stored,
    /// |a − b| of the two operands of a comparison.
    Difference,
    EqualBits,
    Number(u32),
}

impl fmt::Display for Factor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(index) => write!(out, "arg {index}"),
            Self::Result => out.write_str("result"),
            Self::Stored => out.write_str("stored"),
            Self::Difference => out.write_str("difference"),
            Self::EqualBits => out.write_str("equal_bits"),
            Self::Number(number) => write!(out, "number {number}"),
        }
    }
}

impl Factor {
    /// Parses a factor; None for an unknown word.
    fn parse(word: &str) -> Option<Self> {
        match word {
            "result" => Some(Self::Result),
            "stored" => Some(Self::Stored),
            "difference" => Some(Self::Difference),
            "equal_bits" => Some(Self::EqualBits),
            _ => match argument(word) {
                Some(index) => Some(Self::Argument(index)),
                None => word.parse().ok().map(Self::Number),
            },
        }
    }

    fn is_known_to(&self, watch: WatchedEvent) -> bool {
        match self {
            Self::Argument(_) | Self::Result => {
                matches!(watch, WatchedEvent::Calls | WatchedEvent::Returns)
            }
            Self::Stored => watch == WatchedEvent::Stores,
            Self::Difference | Self::EqualBits => watch == WatchedEvent::Comparisons,
            Self::Number(_) => true,
        }
    }
}

/// Position of a value in the map.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeyTerm {
    Site,
    Argument(u32),
    Number(u32),
}

impl fmt::Display for KeyTerm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site => out.write_str("site"),
            Self::Argument(index) => write!(out, "arg {index}"),
            Self::Number(number) => write!(out, "number {number}"),
        }
    }
}

/// Parses `arg3` (the fourth argument). An index above 255 counts as a typing error.
fn argument(word: &str) -> Option<u32> {
    word.strip_prefix("arg")?.parse::<u8>().ok().map(u32::from)
}

/// Problem and remedy.
pub(super) type TermProblem = (String, String);

fn values_of(watch: WatchedEvent) -> &'static str {
    match watch {
        WatchedEvent::Calls | WatchedEvent::Returns => {
            "arg0, arg1 …, result, a number, or a product of them"
        }
        WatchedEvent::Stores => "stored, a number, or a product of them",
        WatchedEvent::Comparisons => "difference, equal_bits, a number, or a product of them",
        WatchedEvent::Loops | WatchedEvent::Blocks => "a number",
    }
}

/// Parses a product such as `"arg0 * arg1"`.
pub(super) fn value(text: &str, watch: WatchedEvent) -> Result<Vec<Factor>, TermProblem> {
    let remedy = || format!("with watch = \"{}\" write {}", watch.word(), values_of(watch));
    let factor = |word: &str| match Factor::parse(word) {
        Some(factor) if factor.is_known_to(watch) => Ok(factor),
        Some(_) => {
            Err((format!("'{word}' means nothing when {} are watched", watch.word()), remedy()))
        }
        None => Err((format!("'{word}' is no value"), remedy())),
    };
    text.split('*').map(|word| factor(word.trim())).collect()
}

/// Parses `"site"`, `"arg0"` or a number below `size`.
pub(super) fn key(text: &str, watch: WatchedEvent, size: u32) -> Result<KeyTerm, TermProblem> {
    let has_arguments = matches!(watch, WatchedEvent::Calls | WatchedEvent::Returns);
    if text == "site" {
        return Ok(KeyTerm::Site);
    }
    if let Some(index) = argument(text) {
        let key = has_arguments.then_some(KeyTerm::Argument(index));
        let problem = || format!("'{text}' means nothing when {} are watched", watch.word());
        return key.ok_or_else(|| (problem(), "write \"site\" or a number".into()));
    }
    match text.parse() {
        Ok(number) if number < size => Ok(KeyTerm::Number(number)),
        Ok(number) => Err((
            format!("{number} is not below the size of the map, {size}"),
            "write a smaller key or a larger size".into(),
        )),
        Err(_) => {
            let arguments = if has_arguments { ", \"arg0\", \"arg1\" …" } else { "" };
            Err((format!("'{text}' is no key"), format!("write \"site\"{arguments} or a number")))
        }
    }
}
