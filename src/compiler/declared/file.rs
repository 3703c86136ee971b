//! Parses TOML into [`Declaration`]s. Each error has line, key and remedy.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{SeqAccess, Visitor};
use toml::Spanned;

use super::terms::{self, KeyTerm, TermProblem};
use super::{Declaration, DomainError, Operation, Reduction, WatchedEvent};

const MANUAL: &str = "docs/declared-domains.md explains every key";
/// Maximum length of a name in the runtime's record, without the closing NUL.
const LONGEST_NAME: usize = 47;
const DEFAULT_SIZE: u32 = 65536;
/// Maximum domain size that the fuzzer accepts.
const LARGEST_SIZE: u32 = 1 << 28;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    domain: Vec<DomainTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DomainTable {
    name: Spanned<String>,
    watch: Spanned<WatchedEvent>,
    names: Option<Spanned<Words>>,
    r#in: Option<Spanned<Words>>,
    value: Option<Spanned<NumberOrText>>,
    key: Option<Spanned<NumberOrText>>,
    operation: Spanned<Operation>,
    #[serde(default)]
    reducer: Reduction,
    size: Option<Spanned<i64>>,
    initial: Option<Spanned<i64>>,
}

/// A string, or a number used as one.
struct NumberOrText(String);

impl<'de> Deserialize<'de> for NumberOrText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = NumberOrText;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string or a number")
            }
            fn visit_str<E>(self, text: &str) -> Result<NumberOrText, E> {
                Ok(NumberOrText(text.trim().to_owned()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<NumberOrText, E> {
                Ok(NumberOrText(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A list of strings, or a single string.
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordsVisitor;
        impl<'de> Visitor<'de> for WordsVisitor {
            type Value = Words;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string or a list of strings")
            }
            fn visit_str<E>(self, text: &str) -> Result<Words, E> {
                Ok(Words(vec![text.to_owned()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = vec![];
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(Words(words))
            }
        }
        deserializer.deserialize_any(WordsVisitor)
    }
}

/// Locates errors in the file.
struct FilePlace<'a> {
    path: &'a Path,
    text: &'a str,
}

impl FilePlace<'_> {
    fn mistake(&self, key: Option<String>, at: usize, refusal: TermProblem) -> DomainError {
        let line = 1 + self.text[..at.min(self.text.len())].matches('\n').count();
        DomainError { file: self.path.to_owned(), line, key, problem: refusal.0, remedy: refusal.1 }
    }

    fn refuse(&self, key: &str, span: Range<usize>, refusal: TermProblem) -> DomainError {
        self.mistake(Some(key.to_owned()), span.start, refusal)
    }

    /// Converts an error of the TOML parser; the expectation becomes the remedy.
    fn syntax(&self, error: &toml::de::Error) -> DomainError {
        let said = error.message().replace('\n', " ");
        let (problem, remedy) = match said.split_once(", expected ") {
            Some((problem, expected)) => (problem.to_owned(), format!("expected {expected}")),
            None => (said, MANUAL.to_owned()),
        };
        let at = error.span().map_or(0, |span| span.start);
        let names_its_key = problem.contains(" field `");
        let key = if names_its_key { None } else { self.key_before(at) };
        self.mistake(key, at, (problem, remedy))
    }

    /// The key at an offset: on its line, or on an earlier line within a list.
    fn key_before(&self, at: usize) -> Option<String> {
        let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
        let key = self.text[..end].lines().rev().find_map(|line| Some(line.split_once('=')?.0))?;
        Some(key.trim().to_owned()).filter(|key| !key.is_empty() && !key.starts_with('['))
    }
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Declaration>, DomainError> {
    let place = FilePlace { path, text };
    let tables: Tables = toml::from_str(text).map_err(|error| place.syntax(&error))?;
    if tables.domain.is_empty() {
        let refusal = ("holds no domain".to_owned(), format!("begin with [[domain]]: {MANUAL}"));
        return Err(place.mistake(None, 0, refusal));
    }
    tables.domain.into_iter().map(|table| declaration(&place, table)).collect()
}

fn declaration(place: &FilePlace, table: DomainTable) -> Result<Declaration, DomainError> {
    let watch = *table.watch.get_ref();
    let name = checked(place, "name", &table.name, |name| domain_name(name))?;
    let size = match &table.size {
        Some(size) => checked(place, "size", size, |size| in_range(*size, 1, LARGEST_SIZE))?,
        None => DEFAULT_SIZE,
    };
    let down = table.reducer.is_downward();
    let initial = match &table.initial {
        // Users write -1 for the bit pattern of all ones.
        Some(initial) if *initial.get_ref() == -1 => u32::MAX,
        Some(initial) => {
            checked(place, "initial", initial, |initial| in_range(*initial, 0, u32::MAX))?
        }
        None if down => u32::MAX,
        None => 0,
    };
    let operation = checked(place, "operation", &table.operation, |op| can_improve(*op, down))?;
    let value = match &table.value {
        Some(text) => checked(place, "value", text, |text| terms::value(&text.0, watch))?,
        None => vec![terms::Factor::Number(1)],
    };
    let key = match &table.key {
        Some(text) => checked(place, "key", text, |text| terms::key(&text.0, watch, size))?,
        None => KeyTerm::Site,
    };
    let names = match &table.names {
        Some(list) => checked(place, "names", list, |words| names_for(watch, words))?,
        None if watch.has_names() => {
            let refusal =
                refusal("missing", "names = [\"malloc\", \"png_*\"] selects the functions");
            return Err(place.refuse("names", table.watch.span(), refusal));
        }
        None => vec![],
    };
    let places = match &table.r#in {
        Some(list) => checked(place, "in", list, patterns)?,
        None => vec![],
    };
    let (files, functions) = places.into_iter().partition(|name| name.contains(['.', '/']));
    let file = place.path.to_owned();
    let reducer = table.reducer;
    Ok(Declaration {
        name,
        file,
        watch,
        names,
        functions,
        files,
        value,
        key,
        operation,
        reducer,
        size,
        initial,
    })
}

fn refusal(problem: &str, remedy: &str) -> TermProblem {
    (problem.to_owned(), remedy.to_owned())
}

fn checked<T, R>(
    place: &FilePlace,
    key: &str,
    found: &Spanned<T>,
    check: impl Fn(&T) -> Result<R, TermProblem>,
) -> Result<R, DomainError> {
    check(found.get_ref()).map_err(|refusal| place.refuse(key, found.span(), refusal))
}

fn domain_name(name: &str) -> Result<String, TermProblem> {
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let good = name.chars().all(part) && !name.starts_with(|letter: char| letter.is_ascii_digit());
    if name.is_empty() || !good || name.len() > LONGEST_NAME {
        let problem = format!("'{name}' is no name for a domain");
        return Err((
            problem,
            format!("use letters, digits and _, not a digit first, at most {LONGEST_NAME}"),
        ));
    }
    Ok(name.to_owned())
}

fn in_range(number: i64, least: u32, most: u32) -> Result<u32, TermProblem> {
    let fits = u32::try_from(number).ok().filter(|number| (least..=most).contains(number));
    let remedy = || format!("write a number from {least} to {most}");
    fits.ok_or_else(|| (format!("{number} is out of range"), remedy()))
}

/// Rejects operations that never lower a map that starts at the maximum, such as sums, unions or maxima.
fn can_improve(operation: Operation, downward: bool) -> Result<Operation, TermProblem> {
    if downward && !matches!(operation, Operation::Min | Operation::Set) {
        return Err(refusal(
            "the reducers min and intersect need lower values, and only \"min\" and \"set\" can lower a value",
            "write operation = \"min\", or another reducer",
        ));
    }
    Ok(operation)
}

fn names_for(watch: WatchedEvent, words: &Words) -> Result<Vec<String>, TermProblem> {
    if !watch.has_names() {
        let problem = format!("{} have no names", watch.word());
        return Err((
            problem,
            "remove the line; in = [\"parse_*\", \"png*.c\"] limits the files and functions".into(),
        ));
    }
    patterns(words)
}

fn patterns(words: &Words) -> Result<Vec<String>, TermProblem> {
    if words.0.is_empty() {
        return Err(refusal("is empty", "write at least one name; * stands for all"));
    }
    let wrong = words.0.iter().find(|word| {
        let open = word.rfind('[').is_some_and(|at| !word[at..].contains(']'));
        word.is_empty() || open || word.contains(char::is_control)
    });
    match wrong {
        Some(word) => Err((
            format!("'{}' is no pattern", word.escape_default()),
            "write a name; * ? [a-z] are wildcards".into(),
        )),
        None => Ok(words.0.clone()),
    }
}
