//! Configuration files in the dialect of Python's `configparser`, as FuzzManager uses.
//!
//! Reads only the sections `Main` and `Metadata`. A `[DEFAULT]` applies to both.

use std::collections::BTreeMap;

/// Maximum depth of references between values; deeper ones are circular.
const MAX_DEPTH: usize = 10;
const DEFAULT: &str = "DEFAULT";

pub type IniValues = BTreeMap<String, String>;

/// Values of the two sections, and the names of the ignored ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct IniFile {
    pub(super) main: IniValues,
    pub(super) metadata: IniValues,
    pub(super) ignored: Vec<String>,
}

/// Place and reason of a syntax error.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum IniError {
    #[error("line {line}: {what}")]
    Line { line: usize, what: &'static str },
    #[error("{key}: {what}")]
    Value { key: String, what: &'static str },
}

impl IniFile {
    pub(super) fn parse(text: &str) -> Result<Self, IniError> {
        let mut sections = Sections::default();
        for (index, line) in text.lines().enumerate() {
            sections.line(line).map_err(|what| IniError::Line { line: index + 1, what })?;
        }
        sections.finish()
    }

    /// Warning about ignored sections.
    #[must_use]
    pub(super) fn warning(&self) -> Option<String> {
        let names = self.ignored.join(" ");
        let text = format!("Warning: Ignoring the following config file sections: {names}");
        (!self.ignored.is_empty()).then_some(text)
    }
}

/// A section while it is parsed; each value is a list of lines.
#[derive(Debug)]
struct Section {
    name: String,
    values: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Default)]
struct Sections {
    all: Vec<Section>,
    /// Index of the current section.
    at: Option<usize>,
    /// Indentation of the last key; deeper lines continue its value.
    indent: usize,
    in_value: bool,
}

impl Sections {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let text = line.trim();
        if text.is_empty() {
            if let Some(value) = self.value() {
                value.push(String::new());
            }
            return Ok(());
        }
        if text.starts_with(['#', ';']) {
            return Ok(());
        }
        let indent = line.chars().take_while(|letter| letter.is_whitespace()).count();
        if indent > self.indent
            && let Some(value) = self.value()
        {
            value.push(text.to_owned());
            return Ok(());
        }
        self.indent = indent;
        match text.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) {
            Some((name, _)) if !name.is_empty() => self.begin(name),
            _ => self.add(text),
        }
    }

    /// The value being parsed.
    fn value(&mut self) -> Option<&mut Vec<String>> {
        let section = self.all.get_mut(self.at?)?;
        section.values.last_mut().filter(|_| self.in_value).map(|(_, lines)| lines)
    }

    fn begin(&mut self, name: &str) -> Result<(), &'static str> {
        self.in_value = false;
        self.at = self.all.iter().position(|section| section.name == name);
        match self.at {
            Some(_) if name != DEFAULT => Err("this section is there already"),
            Some(_) => Ok(()),
            None => {
                self.at = Some(self.all.len());
                self.all.push(Section { name: name.to_owned(), values: vec![] });
                Ok(())
            }
        }
    }

    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        let Some(at) = self.at else { return Err("a section has to come first, such as [Main]") };
        let Some((key, value)) = text.split_once(['=', ':']) else {
            return Err("neither a section nor KEY = VALUE");
        };
        let (key, value) = (key.trim(), value.trim());
        let values = &mut self.all[at].values;
        if key.is_empty() {
            return Err("no key before the sign");
        }
        if values.iter().any(|(known, _)| known == key) {
            return Err("this key is there already");
        }
        values.push((key.to_owned(), vec![value.to_owned()]));
        self.in_value = true;
        Ok(())
    }

    fn finish(self) -> Result<IniFile, IniError> {
        let section = |name: &str| -> Result<IniValues, IniError> {
            // Defaults alone make no section.
            let Some(own) = self.raw(name) else { return Ok(IniValues::new()) };
            let mut raw = self.raw(DEFAULT).unwrap_or_default();
            raw.extend(own);
            let expand = |key: &String| Ok((key.clone(), expand(&raw, key, 0)?));
            raw.keys().map(expand).collect()
        };
        let known = [DEFAULT, "Main", "Metadata"];
        let others = self.all.iter().filter(|section| !known.contains(&section.name.as_str()));
        Ok(IniFile {
            main: section("Main")?,
            metadata: section("Metadata")?,
            ignored: others.map(|section| section.name.clone()).collect(),
        })
    }

    fn raw(&self, name: &str) -> Option<IniValues> {
        let section = self.all.iter().find(|section| section.name == name)?;
        let join = |lines: &[String]| lines.join("\n").trim_end().to_owned();
        Some(section.values.iter().map(|(key, lines)| (key.clone(), join(lines))).collect())
    }
}

/// The value of a key with `%(other)s` and `%%` replaced.
fn expand(raw: &IniValues, key: &str, depth: usize) -> Result<String, IniError> {
    let fault = |what| IniError::Value { key: key.to_owned(), what };
    if depth == MAX_DEPTH {
        return Err(fault("its values name each other in a circle"));
    }
    let value = raw.get(key).ok_or_else(|| fault("named by another key, but not there"))?;
    let (mut text, mut rest) = (String::new(), value.as_str());
    while let Some((before, after)) = rest.split_once('%') {
        text += before;
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|after| after.split_once(")s"));
        let (name, after) = name.ok_or_else(|| fault("a percent sign has to be written %%"))?;
        text += &expand(raw, name, depth + 1)?;
        rest = after;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn values(of: &Value) -> IniValues {
        serde_json::from_value(of.clone()).expect("a map of texts")
    }

    #[test]
    fn every_recorded_text_reads_as_the_reference_reads_it() {
        let text = include_str!("../../../tests/data/fuzzmanager/config.json");
        let recorded: Value = serde_json::from_str(text).expect("JSON");
        let cases = recorded["cases"].as_array().expect("cases");
        assert!(cases.len() >= 24);
        for case in cases {
            let read = IniFile::parse(case["text"].as_str().expect("text"));
            if case["error"] == true {
                assert!(read.is_err(), "{case}");
                continue;
            }
            let read = read.unwrap_or_else(|error| panic!("{error}: {case}"));
            assert_eq!(read.main, values(&case["main"]), "{case}");
            assert_eq!(read.metadata, values(&case["metadata"]), "{case}");
            assert_eq!(read.warning().as_deref(), case["warning"].as_str(), "{case}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = |text| IniFile::parse(text).expect_err("a fault").to_string();
        assert_eq!(error("[Main]\n\nx"), "line 3: neither a section nor KEY = VALUE");
        assert_eq!(
            error("[Main]\na = %(b)s\nb = %(a)s"),
            "a: its values name each other in a circle"
        );
        assert_eq!(error("[Main]\na = %(z)s"), "z: named by another key, but not there");
    }
}
