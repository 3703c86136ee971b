//! Domains declared in a file (`WAYPOINTS=@FILE`), with complete validation.
//!
//! Nothing unchecked leaves this module: the pass reads the normalized [`text`], the runtime gets the record of
//! `runtime_source`, and both trust their input. `docs/declared-domains.md` explains every key to users.

mod file;
mod terms;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use terms::{Factor, KeyTerm};

/// Kind of event that a domain observes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum WatchedEvent {
    Calls,
    Returns,
    Loops,
    Blocks,
    Stores,
    Comparisons,
}

impl WatchedEvent {
    /// The keyword in the file.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Returns => "returns",
            Self::Loops => "loops",
            Self::Blocks => "blocks",
            Self::Stores => "stores",
            Self::Comparisons => "comparisons",
        }
    }

    /// True for events of named things: calls, returns and stores.
    fn has_names(self) -> bool {
        matches!(self, Self::Calls | Self::Returns | Self::Stores)
    }
}

/// Operation that enters a value into the map of a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Max,
    Min,
    Or,
    Set,
    Add,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
            Self::Or => "or",
            Self::Set => "set",
            Self::Add => "add",
        }
    }
}

/// Reducer that combines the maps of several runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    #[default]
    Max,
    Min,
    LogBucket,
    Union,
    Intersect,
}

impl Reduction {
    fn enumerator(self) -> &'static str {
        match self {
            Self::Max => "FUZZFACTORY_REDUCER_MAX",
            Self::Min => "FUZZFACTORY_REDUCER_MIN",
            Self::LogBucket => "FUZZFACTORY_REDUCER_LOG_BUCKET",
            Self::Union => "FUZZFACTORY_REDUCER_BIT_UNION",
            Self::Intersect => "FUZZFACTORY_REDUCER_BIT_INTERSECT",
        }
    }

    /// True if smaller is better; a run then starts from the maximum.
    fn is_downward(self) -> bool {
        matches!(self, Self::Min | Self::Intersect)
    }
}

/// A validated domain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Declaration {
    pub name: String,
    /// File of the declaration.
    pub file: PathBuf,
    pub watch: WatchedEvent,
    /// Functions or variables, with wildcards. Empty if the events have no names.
    pub names: Vec<String>,
    /// Functions in which the domain applies, with wildcards.
    pub functions: Vec<String>,
    /// Source files in which the domain applies, with wildcards. Empty like `functions`: everywhere.
    pub files: Vec<String>,
    /// Factors whose product is the value.
    pub value: Vec<Factor>,
    pub key: KeyTerm,
    pub operation: Operation,
    pub reducer: Reduction,
    pub size: u32,
    pub initial: u32,
}

/// An error in a declaration file, with its place.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}:{line}: {}{problem}", file.display(), key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
pub struct DomainError {
    pub file: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    pub key: Option<String>,
    pub problem: String,
    pub remedy: String,
}

/// Parses the domains of a file, in order.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Declaration>, DomainError> {
    file::parse(path, text)
}

/// The input of the pass: one line per setting, with its name first.
#[must_use]
pub fn text<'a>(declarations: impl IntoIterator<Item = &'a Declaration>) -> String {
    let mut text = String::new();
    for declared in declarations {
        let mut line = |word: &str, rest: &str| {
            let _ = writeln!(text, "{word} {rest}");
        };
        line("domain", &declared.name);
        line("watch", declared.watch.word());
        line("operation", declared.operation.word());
        line("size", &declared.size.to_string());
        line("initial", &declared.initial.to_string());
        line("key", &declared.key.to_string());
        declared.value.iter().for_each(|factor| line("value", &factor.to_string()));
        declared.names.iter().for_each(|name| line("name", name));
        declared.functions.iter().for_each(|name| line("function", name));
        declared.files.iter().for_each(|name| line("file", name));
    }
    text
}

/// Source of the runtime file of a domain, as a user would write it by hand.
#[must_use]
pub(crate) fn runtime_source(declared: &Declaration) -> String {
    let Declaration { name, size, initial, .. } = declared;
    let reducer = declared.reducer.enumerator();
    format!("FFUZZ_NEW_DOMAIN(__afl_{name}_dsf, \"{name}\", {size}u, {reducer}, {initial}u)\n")
}

#[cfg(test)]
mod tests;
