//! Symbolization of addresses by `llvm-symbolizer` or `addr2line`, whichever is installed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::frames::{CodeAddress, LARGEST};
use super::helper::ask;

/// Newest LLVM version searched; newer than any released.
const NEWEST_LLVM: u32 = 30;
const OLDEST_LLVM: u32 = 11;
/// The symbolizer without LLVM.
const BINUTILS: &str = "addr2line";

/// First of these programs found in `search_path`.
#[must_use]
pub fn program<S: AsRef<OsStr>>(names: &[S], search_path: Option<&OsStr>) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(search_path?).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name.as_ref())));
    candidates.find(|path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// Clang version that compiled a program, if any: an older symbolizer cannot read all of its debug information, and the
/// same version spells names as the compiler does.
#[must_use]
pub fn clang_version(program: &Path) -> Option<u32> {
    const MARK: &str = "clang version ";
    let bytes = read(program)?;
    let file = object::File::parse(&*bytes).ok()?;
    let section = file.section_by_name(".comment")?;
    let text = String::from_utf8_lossy(section.data().ok()?).into_owned();
    let versions = text.match_indices(MARK).filter_map(|(at, _)| {
        let digits = &text[at + MARK.len()..];
        digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    });
    versions.max()
}

/// LLVM's symbolizer, which sanitizers call; distributions append a version to its name. Prefers the compiler's
/// version, then newer ones; the version of an unnumbered one is unknown.
fn llvm_symbolizer(search_path: Option<&OsStr>, version: Option<u32>) -> Option<PathBuf> {
    let version = version.unwrap_or_default();
    let newer = ((version + 1).max(OLDEST_LLVM)..=NEWEST_LLVM).rev();
    let older = (OLDEST_LLVM..version.min(NEWEST_LLVM + 1)).rev();
    let versioned = |version| format!("llvm-symbolizer-{version}");
    let plain = std::iter::once("llvm-symbolizer".to_owned());
    let names = std::iter::once(version).chain(newer).map(versioned);
    let names: Vec<String> = names.chain(plain).chain(older.map(versioned)).collect();
    program(&names, search_path)
}

/// A place in the source, if known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Symbol {
    /// None: unknown.
    pub(super) function: Option<String>,
    /// `FILE:LINE`.
    pub(super) source: Option<String>,
}

/// A symbolizer program.
#[derive(Debug)]
pub struct Symbolizer {
    words: Vec<OsString>,
    /// Time limit of one query.
    patience: Duration,
    /// Done after the first query.
    tried: Once,
    /// True after a timeout: no more queries, or each bug would wait for one.
    silent: AtomicBool,
    /// True once the timeout was reported.
    reported: AtomicBool,
}

impl Symbolizer {
    /// Finds the symbolizer given by the user, or the one in `search_path` that best fits this clang version.
    #[must_use]
    pub fn find(
        given: Option<&OsStr>,
        search_path: Option<&OsStr>,
        version: Option<u32>,
        patience: Duration,
    ) -> Option<Self> {
        let path = given.map(PathBuf::from).or_else(|| llvm_symbolizer(search_path, version));
        let path = path.or_else(|| program(&[BINUTILS], search_path))?;
        Some(Self::new(path, patience))
    }

    fn new(path: PathBuf, patience: Duration) -> Self {
        let options: &[&str] = match is_of_binutils(&path) {
            true => &["-a", "-i", "-f", "-C", "-e"],
            false => &["--output-style=GNU", "-a", "-i", "-f", "-C", "-e"],
        };
        let options = options.iter().map(Into::into);
        let words = std::iter::once(path.into_os_string()).chain(options).collect();
        let [silent, reported] = [AtomicBool::new(false), AtomicBool::new(false)];
        Self { words, patience, tried: Once::new(), silent, reported }
    }

    /// Path for sanitizers, which run it themselves; None for addr2line: a sanitizer has a better one built in.
    #[must_use]
    pub(crate) fn for_sanitizers(&self) -> Option<&Path> {
        Some(Path::new(&self.words[0])).filter(|path| !is_of_binutils(path))
    }

    /// Time limit of one query.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// True if it answers in time; tested at the first use.
    pub(super) fn answers(&self, program: &Path) -> bool {
        self.tried.call_once(|| drop(self.ask(program, std::iter::once(0))));
        !self.silent.load(Ordering::Relaxed)
    }

    /// Message for the user, once.
    pub(super) fn take_note(&self) -> Option<String> {
        let is_news =
            self.silent.load(Ordering::Relaxed) && !self.reported.swap(true, Ordering::Relaxed);
        let (name, seconds) = (Path::new(&self.words[0]).display(), self.patience.as_secs_f64());
        is_news.then(|| {
            format!(
                "{name} gave no answer within {seconds} s: functions have no names (run it by hand, or \
                 raise -t)"
            )
        })
    }

    /// Function of each frame, after those inlined into it. Runs the symbolizer once per file.
    pub(super) fn symbols(&self, frames: &[CodeAddress]) -> Vec<Vec<Symbol>> {
        let mut symbols = vec![vec![Symbol::default()]; frames.len()];
        let mut files: Vec<&Path> = Vec::new();
        for frame in frames {
            if let Some((path, _)) = &frame.place
                && !files.contains(&path.as_path())
            {
                files.push(path);
            }
        }
        for file in files {
            let of = |frame: &CodeAddress| {
                frame.place.as_ref().filter(|(path, _)| path == file).map(|(_, at)| *at)
            };
            let places: Vec<(usize, u64)> = frames
                .iter()
                .enumerate()
                .filter_map(|(index, frame)| Some((index, of(frame)?)))
                .collect();
            let mut found = self.ask(file, places.iter().map(|(_, at)| *at));
            found.truncate(places.len());
            forget_guesses(file, places.iter().map(|(_, at)| *at).zip(&mut found));
            for ((index, _), found) in places.iter().zip(found) {
                if !found.is_empty() {
                    symbols[*index] = found;
                }
            }
        }
        symbols
    }

    fn ask(&self, file: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Vec<Symbol>> {
        if self.silent.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut words = self.words.clone();
        words.push(file.into());
        words.extend(addresses.map(|at| format!("{at:#x}").into()));
        // A program that cannot be started gives no names.
        let answer = ask(&words, self.patience).unwrap_or_else(|_| Some(String::new()));
        self.silent.fetch_or(answer.is_none(), Ordering::Relaxed);
        parse(&answer.unwrap_or_default())
    }
}

/// True for addr2line, whose options differ from LLVM's.
fn is_of_binutils(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().ends_with(BINUTILS.as_bytes()))
}

/// Parses the output: for each address a line with it, then two lines for each function: its name, and the place.
fn parse(text: &str) -> Vec<Vec<Symbol>> {
    let mut found: Vec<Vec<Symbol>> = Vec::new();
    let mut function: Option<&str> = None;
    for line in text.lines() {
        match (function.take(), found.last_mut()) {
            (Some(name), Some(symbols)) => symbols.push(symbol(name, line)),
            (None, _) if line.starts_with("0x") => found.push(Vec::new()),
            _ => function = Some(line),
        }
    }
    found
}

/// Removes wrong names: in a file with only exported symbols, addr2line answers with the nearest one before the
/// address.
fn forget_guesses<'a>(file: &Path, found: impl Iterator<Item = (u64, &'a mut Vec<Symbol>)>) {
    let is_guess = |symbols: &Vec<Symbol>| symbols.iter().all(|symbol| symbol.source.is_none());
    let mut doubtful = found.filter(|(_, symbols)| is_guess(symbols)).peekable();
    if doubtful.peek().is_none() {
        return;
    }
    let Some(bytes) = read(file) else { return };
    let Ok(file) = object::File::parse(&*bytes) else { return };
    for (at, symbols) in doubtful {
        let all = file.symbols().chain(file.dynamic_symbols());
        let before =
            all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() <= at);
        let nearest = before.max_by_key(|symbol| (symbol.address(), symbol.size()));
        // Without any symbol the name comes from another file; assembly has symbols without a size.
        let is_inside = |symbol: &object::Symbol<'_, '_>| {
            symbol.size() == 0 || at - symbol.address() < symbol.size()
        };
        if !nearest.is_none_or(|symbol| is_inside(&symbol)) {
            symbols.clear();
        }
    }
}

/// Content of a program or library; None if it is not a regular file or far too large.
fn read(path: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    if about.len() > LARGEST { None } else { std::fs::read(path).ok() }
}

fn symbol(function: &str, place: &str) -> Symbol {
    let place = place.split(" (discriminator").next().unwrap_or_default();
    let is_known = !place.starts_with("??") && !place.ends_with(":0") && !place.ends_with(":?");
    Symbol {
        function: Some(function).filter(|name| *name != "??").map(str::to_owned),
        source: is_known.then(|| place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_places_are_none() {
        let text = "0x1\ninlined\n/a/b.c:1\npoke\n/a/b.c:3\n0x2\n??\n??:0\n0x3\nmain\n??:?\n0x4\n\
                    f(int)\n/x.c:7 (discriminator 2)\n";
        let found = parse(text);
        let symbol = |function: Option<&str>, source: Option<&str>| Symbol {
            function: function.map(Into::into),
            source: source.map(Into::into),
        };
        let expected = [
            vec![symbol(Some("inlined"), Some("/a/b.c:1")), symbol(Some("poke"), Some("/a/b.c:3"))],
            vec![symbol(None, None)],
            vec![symbol(Some("main"), None)],
            vec![symbol(Some("f(int)"), Some("/x.c:7"))],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn one_that_does_not_answer_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        let (path, asked) = (dir.path().join("symbolizer"), dir.path().join("asked"));
        let script = format!("#!/bin/sh\necho >> {}\nexec sleep 1000\n", asked.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let symbolizer = Symbolizer::new(path, Duration::from_millis(500));
        let frames =
            [1, 2].map(|at| CodeAddress { address: at, place: Some(("/bin/sh".into(), at)) });
        assert_eq!(symbolizer.take_note(), None);
        assert!(!symbolizer.answers(Path::new("/bin/sh")));
        assert_eq!(symbolizer.symbols(&frames), vec![vec![Symbol::default()]; 2]);
        assert!(!symbolizer.answers(Path::new("/bin/sh")));
        assert_eq!(std::fs::read(asked).unwrap(), b"\n");
        let note = symbolizer.take_note().unwrap();
        assert!(note.contains("symbolizer gave no answer within 0.5 s: "), "{note}");
        assert_eq!(symbolizer.take_note(), None);
    }

    #[test]
    fn the_user_may_name_one() {
        let find = |given: &str| {
            Symbolizer::find(Some(given.as_ref()), None, None, Duration::ZERO).unwrap()
        };
        let (llvm, binutils) = (find("/x/llvm-symbolizer"), find("/x/gnu-addr2line"));
        assert_eq!(llvm.for_sanitizers(), Some(Path::new("/x/llvm-symbolizer")));
        assert_eq!((binutils.for_sanitizers(), binutils.words.len()), (None, 6));
        // A missing one has no names, and costs no time.
        assert!(llvm.answers(Path::new("/bin/sh")) && llvm.take_note().is_none());
        assert!(Symbolizer::find(None, None, None, Duration::ZERO).is_none());
    }

    #[test]
    fn programs_are_found_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["llvm-symbolizer-14", "llvm-symbolizer-16", "llvm-symbolizer-19", "addr2line"]
        {
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(path("llvm-symbolizer"), "not executable").unwrap();
        let search = dir.path().as_os_str();
        let of = |version| llvm_symbolizer(Some(search), version);
        for (version, found) in [(None, "19"), (Some(16), "16"), (Some(15), "19"), (Some(14), "14")]
        {
            assert_eq!(of(version), Some(path(&format!("llvm-symbolizer-{found}"))), "{version:?}");
        }
        // A newer one may be the one without a number.
        assert_eq!(of(Some(21)), Some(path("llvm-symbolizer-19")));
        std::fs::set_permissions(path("llvm-symbolizer"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        assert_eq!(of(Some(21)), Some(path("llvm-symbolizer")));
        assert_eq!(of(Some(19)), Some(path("llvm-symbolizer-19")));
        assert_eq!(program(&["gdb", "addr2line"], Some(search)), Some(path("addr2line")));
        assert_eq!(program(&["gdb"], Some(search)), None);
        assert_eq!(program(&["gdb"], None), None);
    }
}
