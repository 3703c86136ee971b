//! OSS-Fuzz's files next to a harness `NAME`: seeds in `NAME_seed_corpus.zip`, words in `NAME.dict`, options in
//! `NAME.options`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use ffuzz_config::sanitizers::SANITIZER_VARIABLES;
use ffuzz_inspect::binary;

/// Files and options next to a harness.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Beside {
    pub seeds: Option<PathBuf>,
    pub dictionary: Option<PathBuf>,
    /// `-max_len` in the options.
    pub max_len: Option<String>,
    /// Sanitizer options by variable name, and variables for the target.
    pub sanitizers: BTreeMap<String, String>,
    pub variables: Vec<(OsString, OsString)>,
    /// Options in the file without a counterpart.
    pub unused: Vec<String>,
}

impl Beside {
    /// Finds the files of a program; none if it is no harness of `ffuzz-cc`.
    pub fn find(program: &Path) -> Self {
        let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
            return Self::default();
        };
        let file = |end: &str| {
            let mut file = name.to_owned();
            file.push(end);
            Some(folder.join(file)).filter(|file| file.is_file())
        };
        let (seeds, words, options) = (file("_seed_corpus.zip"), file(".dict"), file(".options"));
        if seeds.is_none() && words.is_none() && options.is_none() || !binary::has_driver(program) {
            return Self::default();
        }
        let mut beside = Self { seeds, dictionary: words, ..Self::default() };
        let text = options.and_then(|file| fs::read(file).ok()).unwrap_or_default();
        beside.read(&String::from_utf8_lossy(&text), folder);
        beside
    }

    /// Parses the INI file: `[libfuzzer]`, `[asan]` and similar, `[env]`.
    fn read(&mut self, text: &str, folder: &Path) {
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.trim().to_ascii_lowercase();
                continue;
            }
            let (key, value) = line.split_once(['=', ':']).unwrap_or((line, ""));
            let (key, value) = (key.trim(), value.trim());
            let variable = format!("{}_OPTIONS", section.to_ascii_uppercase());
            match (&*section, key) {
                ("libfuzzer", "max_len") if value.parse::<u64>().is_ok_and(|most| most > 0) => {
                    self.max_len = Some(value.to_owned());
                }
                ("libfuzzer", "dict") => {
                    let file = folder.join(value);
                    match file.is_file() {
                        true => self.dictionary = Some(file),
                        false => {
                            self.unused.push(format!("dict = {value} (there is no such file)"))
                        }
                    }
                }
                // The target's output is ignored, and the search controls these itself.
                (
                    "libfuzzer",
                    "close_fd_mask" | "len_control" | "use_value_profile" | "entropic",
                ) => {}
                ("env", _) => self.variables.push((key.into(), value.into())),
                _ if SANITIZER_VARIABLES.contains(&&*variable) => {
                    let options = self.sanitizers.entry(variable).or_default();
                    options.push_str(&format!(":{key}={value}"));
                }
                _ => self.unused.push(format!("{key} = {value}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_by_sections() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("w.dict"), "a=\"b\"").unwrap();
        let mut beside = Beside::default();
        let text = "# comment\n[libfuzzer]\nmax_len = 128\ndict=w.dict\nclose_fd_mask = 3\n\
                    only_ascii = 1\n\n[ASAN]\nquarantine_size_mb=10\ndetect_leaks = 0\n[env]\nGODEBUG=x\n\
                    [grammar]\na=b\n";
        beside.read(text, dir.path());
        let asan = (String::from("ASAN_OPTIONS"), ":quarantine_size_mb=10:detect_leaks=0".into());
        assert_eq!(
            beside,
            Beside {
                dictionary: Some(dir.path().join("w.dict")),
                max_len: Some("128".into()),
                sanitizers: BTreeMap::from([asan]),
                variables: vec![("GODEBUG".into(), "x".into())],
                unused: vec!["only_ascii = 1".into(), "a = b".into()],
                ..Beside::default()
            }
        );
        beside.read("[libfuzzer]\ndict = none.dict", dir.path());
        assert!(beside.unused[2].contains("no such file"));
    }
}
