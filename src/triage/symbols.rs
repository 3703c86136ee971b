//! Names of addresses: asked from `llvm-symbolizer` or `addr2line`, whichever there is.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::frames::Frame;

/// Newer versions of LLVM than exist.
const NEWEST_LLVM: u32 = 30;
const OLDEST_LLVM: u32 = 11;

/// The first of these programs that `PATH` leads to.
#[must_use]
pub fn program<S: AsRef<OsStr>>(names: &[S], search_path: Option<&OsStr>) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(search_path?).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name.as_ref())));
    candidates.find(|path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// LLVM's symbolizer, which sanitizers call; distributions put a version behind its name.
#[must_use]
pub fn llvm_symbolizer(search_path: Option<&OsStr>) -> Option<PathBuf> {
    let versions = (OLDEST_LLVM..=NEWEST_LLVM).rev();
    let versioned: Vec<String> =
        versions.map(|version| format!("llvm-symbolizer-{version}")).collect();
    let plain = program(&["llvm-symbolizer"], search_path);
    plain.or_else(|| program(&versioned, search_path))
}

/// A place in the source, as far as the program's file tells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Symbol {
    /// None: unknown.
    pub(super) function: Option<String>,
    /// `FILE:LINE`.
    pub(super) source: Option<String>,
}

/// Asks for addresses.
#[derive(Clone, Debug)]
pub struct Symbolizer {
    words: Vec<OsString>,
}

impl Symbolizer {
    #[must_use]
    pub fn find(search_path: Option<&OsStr>) -> Option<Self> {
        let words = |program: PathBuf, options: &[&str]| {
            let options = options.iter().map(Into::into);
            std::iter::once(program.into_os_string()).chain(options).collect()
        };
        let llvm = llvm_symbolizer(search_path)
            .map(|path| words(path, &["--output-style=GNU", "--no-inlines", "-f", "-C", "-e"]));
        let words = llvm.or_else(|| {
            program(&["addr2line"], search_path).map(|path| words(path, &["-f", "-C", "-e"]))
        });
        words.map(|words| Self { words })
    }

    /// One for each frame; a program is asked once for each file.
    pub(super) fn symbols(&self, frames: &[Frame]) -> Vec<Symbol> {
        let mut symbols = vec![Symbol::default(); frames.len()];
        let mut files: Vec<&Path> = Vec::new();
        for frame in frames {
            if let Some((path, _)) = &frame.place
                && !files.contains(&path.as_path())
            {
                files.push(path);
            }
        }
        for file in files {
            let of = |frame: &Frame| {
                frame.place.as_ref().filter(|(path, _)| path == file).map(|(_, at)| *at)
            };
            let places: Vec<(usize, u64)> = frames
                .iter()
                .enumerate()
                .filter_map(|(index, frame)| Some((index, of(frame)?)))
                .collect();
            let found = self.ask(file, places.iter().map(|(_, at)| *at));
            for ((index, _), symbol) in places.iter().zip(found) {
                symbols[*index] = symbol;
            }
        }
        symbols
    }

    fn ask(&self, file: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Symbol> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).arg(file).stdin(Stdio::null()).stderr(Stdio::null());
        command.args(addresses.map(|at| format!("{at:#x}")));
        let printed = command.output().map(|output| output.stdout).unwrap_or_default();
        parse(&String::from_utf8_lossy(&printed))
    }
}

/// Two lines an address: the function, then the place.
fn parse(text: &str) -> Vec<Symbol> {
    let lines: Vec<&str> = text.lines().collect();
    let (pairs, _) = lines.as_chunks::<2>();
    let symbol = |[function, place]: &[&str; 2]| {
        let place = place.split(" (discriminator").next().unwrap_or_default();
        let is_known = !place.starts_with("??") && !place.ends_with(":0") && !place.ends_with(":?");
        Symbol {
            function: Some(*function).filter(|name| *name != "??").map(str::to_owned),
            source: is_known.then(|| place.to_owned()),
        }
    };
    pairs.iter().map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_places_are_none() {
        let text = "poke\n/a/b.c:3\n??\n??:0\nmain\n??:?\nf(int)\n/x.c:7 (discriminator 2)\n";
        let found = parse(text);
        let symbol = |function: Option<&str>, source: Option<&str>| Symbol {
            function: function.map(Into::into),
            source: source.map(Into::into),
        };
        let expected = [
            symbol(Some("poke"), Some("/a/b.c:3")),
            symbol(None, None),
            symbol(Some("main"), None),
            symbol(Some("f(int)"), Some("/x.c:7")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn programs_are_found_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["llvm-symbolizer-14", "llvm-symbolizer-19", "addr2line"] {
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(path("llvm-symbolizer"), "not executable").unwrap();
        let search = dir.path().as_os_str();
        assert_eq!(llvm_symbolizer(Some(search)), Some(path("llvm-symbolizer-19")));
        assert_eq!(program(&["gdb", "addr2line"], Some(search)), Some(path("addr2line")));
        assert_eq!(program(&["gdb"], Some(search)), None);
        assert_eq!(program(&["gdb"], None), None);
    }
}
