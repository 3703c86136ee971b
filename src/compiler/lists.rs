//! AFL's allow and deny lists: `fun: NAME`, `src: FILE`, or just a file. `*` and `?` are wildcards. A file entry
//! matches the end of the source's path.
//!
//! clang's format differs: in an allow list both file and function must match, where AFL requires only one. So files
//! are matched here, and clang gets functions only.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::env::Env;
use super::plugin::keep_text;
use super::{CompilerError, LARGEST_TEXT};
use ffuzz_assets::Assets;
use ffuzz_sys::file;

/// Part of the sources that gets edge counters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CoverageScope {
    Full,
    None,
    /// Restricted by list files in clang's format.
    Listed {
        allow: Option<PathBuf>,
        deny: Option<PathBuf>,
    },
}

impl CoverageScope {
    /// Options of the compiler proper; None: no coverage at all.
    #[must_use]
    pub(crate) fn lists(&self) -> Option<Vec<OsString>> {
        let option = |name: &str, path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            let mut word = OsString::from(format!("-fsanitize-coverage-{name}="));
            word.push(path);
            Some(word)
        };
        match self {
            Self::None => None,
            Self::Full => Some(vec![]),
            Self::Listed { allow, deny } => {
                let words = [option("allowlist", allow), option("ignorelist", deny)];
                Some(words.into_iter().flatten().collect())
            }
        }
    }
}

/// Entries of one list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct ListEntries {
    functions: Vec<String>,
    files: Vec<String>,
}

/// The optional allow and deny lists.
#[derive(Clone, Debug, Default)]
pub struct FilterLists {
    allow: Option<ListEntries>,
    deny: Option<ListEntries>,
}

impl FilterLists {
    pub fn read(env: &Env) -> Result<Self, CompilerError> {
        let read = |path: &Option<PathBuf>| -> Result<Option<ListEntries>, CompilerError> {
            let Some(path) = path else { return Ok(None) };
            let text = file::read_text(path, LARGEST_TEXT)
                .map_err(|source| CompilerError::List { path: path.clone(), source })?;
            Ok(Some(ListEntries::parse(&text)))
        };
        Ok(Self { allow: read(&env.allow_list)?, deny: read(&env.deny_list)? })
    }

    /// The decision for one compiler call.
    pub fn choose(
        &self,
        sources: &[&OsStr],
        assets: &Assets,
    ) -> Result<CoverageScope, CompilerError> {
        let keep =
            |text: Option<String>| text.map(|text| keep_text(assets, &text, "txt")).transpose();
        if let Some(deny) = &self.deny
            && !sources.is_empty()
            && sources.iter().all(|source| deny.has_file(source))
        {
            return Ok(CoverageScope::None);
        }
        if let Some(allow) = &self.allow
            && allow.functions.is_empty()
            && !sources.iter().any(|source| allow.has_file(source))
        {
            return Ok(CoverageScope::None);
        }
        let allow = keep(self.allow.as_ref().and_then(|list| list.allow_text(sources)))?;
        let deny = keep(self.deny.as_ref().map(|list| list.deny_text(sources)))?;
        Ok(if allow.is_none() && deny.is_none() {
            CoverageScope::Full
        } else {
            CoverageScope::Listed { allow, deny }
        })
    }
}

impl ListEntries {
    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
            let entry = |kinds: [&str; 2]| {
                let (kind, name) = line.split_once(':')?;
                kinds.contains(&kind.trim()).then(|| name.trim().to_owned())
            };
            if let Some(name) = entry(["fun", "function"]) {
                list.functions.push(name);
            } else if let Some(name) = entry(["src", "source"]) {
                list.files.push(name);
            } else if !line.is_empty() {
                list.files.push(line.to_owned());
            }
        }
        list
    }

    fn has_file(&self, source: &OsStr) -> bool {
        let path = std::path::absolute(Path::new(source)).unwrap_or_else(|_| source.into());
        let path = path.to_string_lossy();
        self.files.iter().any(|pattern| matches(format!("*{pattern}").as_bytes(), path.as_bytes()))
    }

    /// None: every function of every source. clang cannot express "this file or that function", so with several sources
    /// and both kinds of entries, only the functions count.
    fn allow_text(&self, sources: &[&OsStr]) -> Option<String> {
        let listed: Vec<_> = sources.iter().filter(|source| self.has_file(source)).collect();
        if listed.len() == sources.len() {
            return None;
        }
        if self.functions.is_empty() {
            let files: Vec<String> =
                listed.iter().map(|file| file.to_string_lossy().into_owned()).collect();
            return Some(entries("src", &files) + "fun:*\n");
        }
        Some("src:*\n".to_owned() + &entries("fun", &self.functions))
    }

    fn deny_text(&self, sources: &[&OsStr]) -> String {
        let listed = sources.iter().filter(|source| self.has_file(source));
        let files: Vec<String> = listed.map(|file| file.to_string_lossy().into_owned()).collect();
        entries("src", &files) + &entries("fun", &self.functions)
    }
}

fn entries(kind: &str, names: &[String]) -> String {
    names.iter().map(|name| format!("{kind}:{name}\n")).collect()
}

/// Matches a pattern: `*` is any text, `?` any character.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', pattern)), rest) => {
            matches(pattern, text)
                || rest.is_some_and(|(_, rest)| {
                    let mut again = vec![b'*'];
                    again.extend(pattern);
                    matches(&again, rest)
                })
        }
        (Some((wanted, pattern)), Some((found, text))) => {
            (wanted == found || *wanted == b'?') && matches(pattern, text)
        }
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_files_and_functions() {
        let list = ListEntries::parse("fun: parse*\nsrc: lib/a.c # comment\n\nb.c\n");
        assert_eq!(list.functions, ["parse*"]);
        assert_eq!(list.files, ["lib/a.c", "b.c"]);
        assert!(list.has_file(OsStr::new("/x/lib/a.c")));
        assert!(!list.has_file(OsStr::new("/x/other/a.c")));
    }

    #[test]
    fn a_listed_file_gets_everything_another_only_listed_functions() {
        let list = ListEntries::parse("fun: parse\na.c\n");
        assert_eq!(list.allow_text(&[OsStr::new("a.c")]), None);
        let other = list.allow_text(&[OsStr::new("z.c")]);
        assert_eq!(other.as_deref(), Some("src:*\nfun:parse\n"));
    }

    #[test]
    fn wildcards_match_any_text() {
        assert!(matches(b"*a?c*", b"xxabcyy"));
        assert!(!matches(b"a*b", b"abc"));
    }
}
