//! Core files: their location, and the one that a run has left.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

const PATTERN: &str = "/proc/sys/kernel/core_pattern";
/// Setting that appends the process id to the name.
const NUMBERED: &str = "/proc/sys/kernel/core_uses_pid";

/// Reasons why core files are unavailable.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CoreError {
    #[error("the kernel pipes core files to a program ({PATTERN} is {pattern:?})")]
    #[diagnostic(help("as root: echo core > {PATTERN}; or unset FTB_FORCE_GDBCORE"))]
    Piped { pattern: String },
    #[error("core files have no folder of their own ({PATTERN} is {pattern:?})")]
    #[diagnostic(help("as root: echo core > {PATTERN}; or unset FTB_FORCE_GDBCORE"))]
    NoFolder { pattern: String },
    #[error("a core file would overwrite {}", path.display())]
    #[diagnostic(help("move that file away"))]
    InTheWay { path: PathBuf },
}

/// Location of core files.
#[derive(Debug)]
pub struct Cores {
    folder: PathBuf,
    /// Prefix of their names.
    start: OsString,
}

impl Cores {
    /// Reads the kernel's settings, for processes started here.
    pub fn find() -> Result<Self, CoreError> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::of(read(PATTERN).trim_end(), read(NUMBERED).trim_end() == "1")
    }

    fn of(pattern: &str, numbered: bool) -> Result<Self, CoreError> {
        let shown = || pattern.to_owned();
        if pattern.starts_with('|') {
            return Err(CoreError::Piped { pattern: shown() });
        }
        let (literal, is_whole) = match pattern.split_once('%') {
            Some((literal, rest)) if !rest.contains('/') => (literal, false),
            Some(_) => return Err(CoreError::NoFolder { pattern: shown() }),
            None => (pattern, !numbered),
        };
        let (folder, start) = literal.rsplit_once('/').map_or((".", literal), |(folder, start)| {
            (if folder.is_empty() { "/" } else { folder }, start)
        });
        let path = Path::new(folder).join(start);
        if is_whole && path.exists() {
            return Err(CoreError::InTheWay { path });
        }
        Ok(Self { folder: folder.into(), start: start.into() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Core files that exist now.
    pub(super) fn list(&self) -> HashSet<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_bytes();
            name.starts_with(self.start.as_bytes()) && path.is_file()
        };
        entries.map(|entry| entry.path()).filter(is_one).collect()
    }

    /// A core file that is not in `before`.
    pub(super) fn new_since(&self, before: &HashSet<PathBuf>) -> Option<Core> {
        self.list().into_iter().find(|path| !before.contains(path)).map(Core)
    }
}

/// A core file; removed when dropped.
#[derive(Debug)]
pub(super) struct Core(PathBuf);

impl Core {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use ffuzz_sys::remedy::Remedy;

    use super::*;

    #[test]
    fn the_place_is_read_from_the_pattern() {
        let place = |pattern: &str| {
            let cores = Cores::of(pattern, true).unwrap();
            (cores.folder.display().to_string(), cores.start.into_string().unwrap())
        };
        let is = |folder: &str, start: &str| (folder.to_owned(), start.to_owned());
        assert_eq!(place("core"), is(".", "core"));
        assert_eq!(place("core.%e.%p"), is(".", "core."));
        assert_eq!(place("/var/cores/%p"), is("/var/cores", ""));
        assert_eq!(place("/core"), is("/", "core"));
        let error = |pattern: &str| Cores::of(pattern, true).unwrap_err();
        assert!(matches!(error("|/usr/bin/apport %p"), CoreError::Piped { .. }));
        assert!(matches!(error("/var/%e/core"), CoreError::NoFolder { .. }));
        assert!(error("|x").remedy().contains("unset FTB_FORCE_GDBCORE"));
    }

    #[test]
    fn only_a_new_file_is_one_and_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let pattern = dir.path().join("core").display().to_string();
        let cores = Cores::of(&pattern, false).unwrap();
        fs::write(dir.path().join("core.1"), "").unwrap();
        let before = cores.list();
        assert!(cores.new_since(&before).is_none());
        fs::write(&pattern, "").unwrap();
        fs::write(dir.path().join("other"), "").unwrap();
        assert!(matches!(Cores::of(&pattern, false), Err(CoreError::InTheWay { .. })));
        assert!(Cores::of(&pattern, true).is_ok());
        let core = cores.new_since(&before).unwrap();
        assert_eq!(core.path(), Path::new(&pattern));
        drop(core);
        assert_eq!(cores.list(), before);
    }
}
