//! The environment: one table of all variables ([`TABLE`]), and the only code that reads them.
//!
//! The help, `docs/env.md` and the warning about misspelt names are generated from the table. Other parts of the fuzzer
//! never read the environment, only the options made from it.

mod table;

use std::collections::BTreeMap;
use std::env::var_os;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use miette::Diagnostic;

pub use table::TABLE;

/// The text in a target's command line that stands for the input file: `AFL_INPUT_PLACEHOLDER`, or `@@`. Child
/// processes inherit the variable, and so use the same text.
#[must_use]
pub fn placeholder() -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    TEXT.get_or_init(|| {
        let given = var_os("AFL_INPUT_PLACEHOLDER").filter(|text| !text.is_empty());
        given.map_or_else(|| b"@@".to_vec(), OsString::into_vec)
    })
}

/// Position of [`placeholder`] in a word of a command line.
#[must_use]
pub fn placeholder_in(word: &OsStr) -> Option<usize> {
    let text = placeholder();
    word.as_bytes().windows(text.len()).position(|part| part == text)
}

/// Replaces the [`placeholder`] in every argument by the path of the input file; true if there was any.
pub fn substitute(arguments: &mut [OsString], input: &Path) -> bool {
    let mut any = false;
    for argument in arguments {
        if let Some(at) = placeholder_in(argument) {
            let bytes = argument.as_bytes();
            let rest = &bytes[at + placeholder().len()..];
            let parts = [&bytes[..at], input.as_os_str().as_bytes(), rest];
            *argument = OsStr::from_bytes(&parts.concat()).to_owned();
            any = true;
        }
    }
    any
}

/// One variable. A name that ends in `*` stands for all names with this prefix.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub name: &'static str,
    pub kind: VariableKind,
    /// Value or behavior if the variable is unset.
    pub default: &'static str,
    /// Commands that use the variable.
    pub command: &'static str,
    pub status: VariableStatus,
    pub meaning: &'static str,
}

/// Type of a value. A flag is on if the value is not empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VariableKind {
    Flag,
    Number,
    Text,
    Path,
}

/// Effect of setting a variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VariableStatus {
    /// Has the described effect.
    Honoured,
    /// Accepted without effect, because nothing is needed.
    Accepted,
    /// Unsupported: ignored with a warning.
    Ignored,
    /// An error: starting with it would be wrong.
    Refused,
    /// For the target or its runtime, which inherit it.
    Target,
    /// Set by ffuzz for its own processes; not for users.
    Internal,
}

impl VariableStatus {
    /// One word for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Honoured => "honoured",
            Self::Accepted => "accepted",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
            Self::Target => "target",
            Self::Internal => "internal",
        }
    }
}

impl Variable {
    /// Returns true if only `ffuzz-cc` reads it.
    #[must_use]
    pub fn is_for_compiler(&self) -> bool {
        self.command == "cc"
    }

    fn matches(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.name,
        }
    }
}

/// The table row of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Variable> {
    TABLE.iter().find(|variable| variable.matches(name))
}

/// An invalid value.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{name}={value} is not {expected}")]
#[diagnostic(help("unset {name}, or set it to {expected}"))]
pub struct EnvError {
    pub name: String,
    pub value: String,
    pub expected: String,
}

/// Folders that determine where the executable's embedded files are unpacked (`assets`).
#[derive(Clone, Debug, Default)]
pub struct AssetPlaces {
    /// `FFUZZ_LIB_DIR`: folder with unpacked files.
    pub lib_dir: Option<PathBuf>,
    /// `AFL_PATH`; used only if it contains the files of ffuzz.
    pub afl_path: Option<PathBuf>,
    /// `XDG_CACHE_HOME`. The first usable of this, `home` and `TMPDIR` is the place to unpack.
    pub cache_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    pub tmpdir: Option<PathBuf>,
}

impl AssetPlaces {
    /// Reads the folders from this process's environment.
    #[must_use]
    pub fn read() -> Self {
        let path = |name| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            lib_dir: path("FFUZZ_LIB_DIR"),
            afl_path: path("AFL_PATH"),
            cache_home: path("XDG_CACHE_HOME"),
            home: path("HOME"),
            tmpdir: path("TMPDIR"),
        }
    }
}

/// Variables with credentials for servers, or with the path of such a file. ffuzz or the job that started it needs
/// them; the target must not get them.
pub const WITHHELD: [&str; 8] = [
    "FM_CONFIG_PATH",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "CI_JOB_TOKEN",
    "CI_JOB_JWT",
    "CI_REGISTRY_PASSWORD",
];

/// All variables of a process or a test.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Reads the environment of this process.
    #[must_use]
    pub fn read() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    #[must_use]
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self { variables: pairs.iter().map(|(n, v)| (n.into(), v.into())).collect() }
    }

    /// A copy with these variables added; existing ones stay.
    #[must_use]
    pub fn with_defaults(&self, variables: Vec<(OsString, OsString)>) -> Self {
        let mut all = self.clone();
        for (name, value) in variables {
            all.variables.entry(name).or_insert(value);
        }
        all
    }

    /// The value, unless it is empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// A copy without the variables whose names end with `ending`.
    #[must_use]
    pub fn without(&self, ending: &str) -> Self {
        let mut rest = self.clone();
        rest.variables.retain(|name, _| !name.to_string_lossy().ends_with(ending));
        rest
    }

    /// The variables whose names end with `ending`.
    #[must_use]
    pub fn ending_with(&self, ending: &str) -> Vec<(OsString, OsString)> {
        let ends = |name: &OsString| name.to_string_lossy().ends_with(ending);
        let found = self.variables.iter().filter(|(name, _)| ends(name));
        found.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns true if one of the spellings of a flag is set.
    #[must_use]
    pub fn flag(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.get(name).is_some())
    }

    /// Parses an integer in `min..=max`.
    pub fn number(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, EnvError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let value = value.to_string_lossy();
        match value.trim().parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(EnvError {
                name: name.to_owned(),
                value: value.into_owned(),
                expected: if max == i64::MAX {
                    format!("a number of at least {min}")
                } else {
                    format!("a number from {min} to {max}")
                },
            }),
        }
    }

    /// Parses a fraction in 0..=1.
    pub fn fraction(&self, name: &str) -> Result<Option<f64>, EnvError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let value = value.to_string_lossy();
        match value.trim().parse::<f64>() {
            Ok(number) if (0.0..=1.0).contains(&number) => Ok(Some(number)),
            _ => Err(EnvError {
                name: name.to_owned(),
                value: value.into_owned(),
                expected: "a number from 0.0 to 1.0".to_owned(),
            }),
        }
    }

    /// Known variables that are set, for `fuzzer_setup`.
    #[must_use]
    pub fn known(&self) -> Vec<(String, String)> {
        self.set().filter(|(name, _)| find(name).is_some()).collect()
    }

    /// Warnings about variables that are unknown or have no effect, unless `AFL_IGNORE_UNKNOWN_ENVS` is set.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let quiet = self.flag(&["AFL_IGNORE_UNKNOWN_ENVS"]);
        let mut warnings = Vec::new();
        for (name, _) in self.ours() {
            match find(&name) {
                Some(v) if v.status == VariableStatus::Ignored && !v.is_for_compiler() => {
                    warnings.push(format!("{name} is ignored: {}", v.meaning));
                }
                None if !quiet => warnings.push(format!(
                    "unknown environment variable {name}; did you mean {}?",
                    nearest(&name)
                )),
                _ => {}
            }
        }
        warnings
    }

    /// The first set variable that is refused.
    #[must_use]
    pub fn refused(&self) -> Option<(String, &'static Variable)> {
        self.ours().find_map(|(name, _)| {
            let variable = find(&name).filter(|v| v.status == VariableStatus::Refused)?;
            Some((name, variable))
        })
    }

    /// AFL_* and FFUZZ_* variables with a value.
    fn ours(&self) -> impl Iterator<Item = (String, String)> {
        self.set().filter(|(name, _)| name.starts_with("AFL_") || name.starts_with("FFUZZ_"))
    }

    /// Variables with a value.
    fn set(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, value)| {
            Some((name.to_str()?.to_owned(), value.to_string_lossy().into_owned()))
        })
    }
}

/// The known name with the smallest edit distance.
fn nearest(name: &str) -> &'static str {
    let names = TABLE.iter().map(|variable| variable.name);
    names.min_by_key(|known| edit_distance(known, name)).unwrap_or_default()
}

/// The one of `names` most similar to a misspelt word, if any is similar enough.
#[must_use]
pub fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (edit_distance(name, word), name));
    // A word of four letters may have one wrong letter or two swapped letters.
    let most = (word.len() / 3).clamp(1, 3).max(usize::from(word.len() > 3) * 2);
    distances.min().filter(|(distance, _)| *distance <= most).map(|(_, name)| name)
}

/// Levenshtein distance of two ASCII words.
#[must_use]
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The variables with an effect, for `ffuzz -hh`.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("Environment variables (all of them: docs/env.md):\n");
    let rows = TABLE.iter().filter(|v| v.status == VariableStatus::Honoured);
    for v in rows.filter(|v| !v.is_for_compiler()) {
        let _ = writeln!(text, "  {:<34} {}", v.name, v.meaning);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_signs_are_replaced_inside_of_an_argument() {
        let mut arguments = vec!["x".into(), "--in=@@".into(), "y".into()];
        assert!(substitute(&mut arguments, Path::new("/o/.cur_input")));
        assert_eq!(arguments, ["x", "--in=/o/.cur_input", "y"]);
        assert!(!substitute(&mut arguments, Path::new("/o")));
    }

    impl VariableKind {
        fn word(self) -> &'static str {
            match self {
                Self::Flag => "flag",
                Self::Number => "number",
                Self::Text => "text",
                Self::Path => "path",
            }
        }
    }

    impl Variable {
        /// Origin of the variable.
        fn whose(&self) -> &'static str {
            match self.name {
                "WAYPOINTS" | "DOMAINS" | "WAYPOINTS_DISABLE_COVERAGE" => "FuzzFactory",
                name if name.starts_with("AFL_") => "AFL",
                name if name.starts_with("FFUZZ_") => "ffuzz",
                _ => "other",
            }
        }

        /// Type, and default if there is one.
        fn value(&self) -> String {
            match (self.kind.word(), self.default) {
                (kind, "off" | "none") => kind.to_owned(),
                (kind, default) => format!("{kind} [{default}]"),
            }
        }
    }

    const HEAD: &str = "\
# Environment variables

This page is generated from the table in `src/config/env/table.rs`. The column *whose* says who has defined a variable:
AFL and AFL++, FuzzFactory, `ffuzz`, or another tool or convention. A flag is on when its value is not empty; to
`ffuzz-cc`, when it is set. Brackets show a default. An unknown `AFL_*` or `FFUZZ_*` name prints a warning with the
nearest known name.

## Run time

The *tools* run a target: `showdsf`, `showmap`, `cmin` and `tmin`. What the *target* reads, it inherits.

| variable | whose | value | read by | meaning |
|---|---|---|---|---|
";

    const COMPILE: &str = "
## Compile time

Set these for compile and link steps alike. [Building targets](building-targets.md) describes lists,
[comparisons.md](comparisons.md) words and the log, [domains.md](domains.md#use-domains) what `WAYPOINTS` takes. The
embedded files are unpacked to `$XDG_CACHE_HOME/ffuzz` (or `~/.cache/ffuzz`), mode 0700; to `$TMPDIR/ffuzz-UID` if that
is not writable or there is no home folder.

| variable | whose | value | meaning |
|---|---|---|---|
";

    const WITHOUT: &str = "
## Without effect

All of them are AFL's. *Accepted*: the purpose is met without it. *Ignored*: not supported, which a warning says.
*Refused*: starting without its effect would be wrong.

| variable | read by | state | reason |
|---|---|---|---|
";

    const INTERNAL: &str = "
## Internal

The fuzzer and `ffuzz-cc` set these for their own processes. Never set one.

| variable | meaning |
|---|---|
";

    /// Formats a table; neighbours that differ only in their names share a row.
    fn rows(table: &[&Variable], cells: impl Fn(&Variable) -> String) -> String {
        let mut text = String::new();
        for same in table.chunk_by(|a, b| cells(a) == cells(b)) {
            let names: Vec<String> = same.iter().map(|v| format!("`{}`", v.name)).collect();
            let _ = writeln!(text, "| {} | {} |", names.join(", "), cells(same[0]));
        }
        text
    }

    /// The text of `docs/env.md`.
    fn markdown() -> String {
        let (internal, users): (Vec<&Variable>, Vec<&Variable>) =
            TABLE.iter().partition(|v| v.status == VariableStatus::Internal);
        let (effect, without): (Vec<&Variable>, Vec<&Variable>) = users
            .into_iter()
            .partition(|v| [VariableStatus::Honoured, VariableStatus::Target].contains(&v.status));
        let (compile, run): (Vec<&Variable>, Vec<&Variable>) =
            effect.into_iter().partition(|v| v.command.starts_with("cc"));
        let reader = |v: &Variable| match v.status {
            VariableStatus::Target => "target",
            _ => v.command,
        };
        let run = rows(&run, |v| {
            format!("{} | {} | {} | {}", v.whose(), v.value(), reader(v), v.meaning)
        });
        let compile = rows(&compile, |v| format!("{} | {} | {}", v.whose(), v.value(), v.meaning));
        let without =
            rows(&without, |v| format!("{} | {} | {}", v.command, v.status.word(), v.meaning));
        let internal = rows(&internal, |v| v.meaning.to_owned());
        format!("{HEAD}{run}{COMPILE}{compile}{WITHOUT}{without}{INTERNAL}{internal}")
    }

    #[test]
    fn docs_are_those_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/env.md");
        if std::env::var_os("FFUZZ_TEST_WRITE_DOCS").is_some() {
            std::fs::write(path, markdown()).expect("docs/env.md");
        }
        let written = std::fs::read_to_string(path).expect("docs/env.md");
        assert!(written == markdown(), "run: FFUZZ_TEST_WRITE_DOCS=1 cargo test docs_are");
    }

    #[test]
    fn names_are_unique_and_texts_fit_a_table() {
        for (index, v) in TABLE.iter().enumerate() {
            assert!(!TABLE[..index].iter().any(|other| other.name == v.name), "{}", v.name);
            assert!(!v.meaning.is_empty() && !v.meaning.contains('|'), "{}", v.name);
        }
    }

    #[test]
    fn a_mistyped_name_is_reported_with_the_nearest() {
        let env = Environment::from_pairs(&[("AFL_NO_IU", "1"), ("AFL_EMPTY", ""), ("HOME", "/")]);
        assert_eq!(
            env.warnings(),
            ["unknown environment variable AFL_NO_IU; did you mean AFL_NO_UI?"]
        );
        let ours = Environment::from_pairs(&[("FFUZZ_MUTATORS_DIR", "1")]).warnings();
        assert!(ours[0].ends_with("did you mean FFUZZ_MUTATOR_DIR?"), "{ours:?}");
        let not_ours = [("AFL_EXITPOINT", "0x1"), ("AFL_FRIDA_INST_RANGES", "libx.so")];
        let said = Environment::from_pairs(&not_ours).warnings();
        assert!(
            said.len() == 2 && said.iter().all(|line| line.contains(" is ignored: ")),
            "{said:?}"
        );
        let quiet = [("AFL_NO_IU", "1"), ("AFL_IGNORE_UNKNOWN_ENVS", "1")];
        assert!(Environment::from_pairs(&quiet).warnings().is_empty());
        assert!(Environment::from_pairs(&[("AFL_LLVM_CMPLOG", "1")]).warnings().is_empty());
    }

    #[test]
    fn numbers_are_checked() {
        let env = Environment::from_pairs(&[("AFL_HANG_TMOUT", "50"), ("AFL_SYNC_TIME", "x")]);
        assert_eq!(env.number("AFL_HANG_TMOUT", 1, i64::MAX).expect("number"), Some(50));
        assert_eq!(env.number("AFL_MAP_SIZE", 1, 2).expect("unset"), None);
        let error = env.number("AFL_HANG_TMOUT", 1, 9).expect_err("too large");
        assert_eq!(error.to_string(), "AFL_HANG_TMOUT=50 is not a number from 1 to 9");
        assert!(env.number("AFL_SYNC_TIME", 0, 9).is_err());
    }
}
