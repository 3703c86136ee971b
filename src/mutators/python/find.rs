//! Finds the libpython to load: that of the Python that the user works with, otherwise the newest known to the loader.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::PythonError;
use ffuzz_abi::python;

/// Oldest Python 3.x whose stable interface has everything that the host needs.
pub(super) const OLDEST: u32 = 9;
/// Newest Python 3.x searched by name; an interpreter found otherwise may be newer.
pub(super) const NEWEST: u32 = 29;

/// Prints, one line each, the version, the ABI flags, and the library folders as built and as unpacked. Must run in
/// every Python 3.
const ASK: &str = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], \
                   getattr(sys, 'abiflags', ''), sysconfig.get_config_var('LIBDIR') or '', \
                   sys.base_prefix + '/lib', sep='\\n')";

/// An interpreter and its answers.
#[derive(Debug, Eq, PartialEq)]
struct Python {
    program: PathBuf,
    /// `3.11`
    version: String,
    /// `t`: no global lock; `d`: debug build of Python.
    flags: String,
    folders: Vec<PathBuf>,
}

impl Python {
    /// Queries an interpreter. None if it does not exist or is no Python 3.
    fn ask(program: PathBuf) -> Option<Self> {
        let mut command = Command::new(&program);
        command.args(["-I", "-S", "-c", ASK]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Self::parse(program, &String::from_utf8_lossy(&output.stdout))
    }

    fn parse(program: PathBuf, answer: &str) -> Option<Self> {
        let mut lines = answer.lines().map(str::to_owned);
        let (version, flags) = (lines.next()?, lines.next()?);
        let folders = lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect();
        Some(Self { program, version, flags, folders })
    }

    /// Returns true without a global lock; the stable interface of 3.9 does not support that.
    fn is_unlocked(&self) -> bool {
        self.flags.contains('t')
    }

    fn is_too_old(&self) -> bool {
        let minor = self.version.strip_prefix("3.").and_then(|minor| minor.parse().ok());
        minor.is_none_or(|minor: u32| minor < OLDEST)
    }

    /// Loads its library; returns the reason on failure.
    fn load(&self) -> Result<(), String> {
        let Self { version, flags, .. } = self;
        let whose = format!("{} is Python {version}{flags}", self.program.display());
        if self.is_too_old() {
            return Err(format!("{whose}, older than 3.{OLDEST}"));
        }
        if self.is_unlocked() {
            return Err(format!("{whose}, without a global lock"));
        }
        let name = format!("libpython{version}{flags}.so.1.0");
        let there = self.folders.iter().map(|folder| folder.join(&name));
        let Some(path) = there.into_iter().find(|path| path.is_file()) else {
            return Err(format!("{whose} without {name}"));
        };
        python::load_libpython(&path)
    }
}

/// Loads a libpython and the host, once. Returns a message if the Python is not the user's.
pub(super) fn load(virtual_env: Option<&Path>) -> Result<Option<String>, PythonError> {
    let mut reasons = Vec::new();
    let programs = [virtual_env.map(|folder| folder.join("bin/python3")), Some("python3".into())];
    for python in programs.into_iter().flatten().filter_map(Python::ask) {
        match python.load() {
            Ok(()) => return host().map(|()| note(&reasons, &python.version)),
            Err(reason) => reasons.push(reason),
        }
    }
    let mut unusable = None;
    for minor in (OLDEST..=NEWEST).rev() {
        let name = format!("libpython3.{minor}.so.1.0");
        match python::load_libpython(Path::new(&name)) {
            Ok(()) => return host().map(|()| note(&reasons, &format!("3.{minor}"))),
            // Most names do not exist.
            Err(reason) if reason.contains("No such file") => {}
            Err(reason) => unusable = unusable.or(Some(reason)),
        }
    }
    reasons.extend(unusable);
    reasons.dedup();
    Err(PythonError::NoLibrary { reasons: reasons.join("; ") })
}

fn note(reasons: &[String], version: &str) -> Option<String> {
    (!reasons.is_empty()).then(|| format!("it runs in Python {version}: {}", reasons.join("; ")))
}

fn host() -> Result<(), PythonError> {
    python::load_host().map_err(|reason| PythonError::Host { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Python {
        Python::parse("python3".into(), text).unwrap()
    }

    #[test]
    fn an_answer_is_read() {
        let python = answered("3.11\n\n/usr/lib/x86_64-linux-gnu\n/usr/lib\n");
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib"].map(PathBuf::from).to_vec();
        let flags = String::new();
        let wanted = Python { program: "python3".into(), version: "3.11".into(), flags, folders };
        assert_eq!(python, wanted);
        assert!(answered("3.12\n\n\n/lib\n").folders == [PathBuf::from("/lib")], "no LIBDIR");
        assert_eq!(Python::parse("x".into(), ""), None);
    }

    #[test]
    fn an_interpreter_without_a_usable_library_says_why() {
        let load = |answer| answered(answer).load().unwrap_err();
        assert_eq!(load("3.8\n\n/x\n/x\n"), "python3 is Python 3.8, older than 3.9");
        assert_eq!(load("2.7\n\n/x\n/x\n"), "python3 is Python 2.7, older than 3.9");
        assert_eq!(load("3.14\nt\n/x\n/x\n"), "python3 is Python 3.14t, without a global lock");
        let missing = "python3 is Python 3.12 without libpython3.12.so.1.0";
        assert_eq!(load("3.12\n\n/nowhere\n/nowhere\n"), missing);
    }
}
